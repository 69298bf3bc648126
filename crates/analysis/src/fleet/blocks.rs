//! The rates of hosts over the time that they have in common, in blocks long enough to be independent of one another.

use fathom_record::FleetTest;

use super::HostResult;

/// Shortest block, ns.
const MIN_NS: u64 = 1_000_000_000;

/// Rates of several hosts, block by block.
#[derive(Clone, Debug, Default)]
pub(super) struct RateBlocks<'a> {
    pub(super) hosts: Vec<&'a HostResult>,
    /// I/Os per second of each host, block by block.
    pub(super) rates: Vec<Vec<f64>>,
    /// Start of the first block, ns since the start of the first host.
    start_ns: u64,
    block_ns: u64,
}

impl<'a> RateBlocks<'a> {
    /// The rates of hosts with a course over the longest common window, in `most` blocks or fewer.
    pub(super) fn of(fleet: &FleetTest, hosts: &[&'a HostResult], most: usize) -> RateBlocks<'a> {
        let longest = fleet.windows.iter().max_by_key(|window| window.end_ns.saturating_sub(window.start_ns));
        let (Some(window), cell_ns @ 1..) = (longest, fleet.cell_ns) else { return RateBlocks::default() };
        let first = window.start_ns.div_ceil(cell_ns) as usize;
        let last = (window.end_ns / cell_ns) as usize;
        let cells = last.saturating_sub(first);
        let group = (MIN_NS.div_ceil(cell_ns) as usize).max(cells.div_ceil(most.max(1))).max(1);
        let hosts: Vec<&HostResult> =
            hosts.iter().copied().filter(|host| host.outcome.course.len() >= last).collect();
        let block_ns = cell_ns * group as u64;
        let per_second = 1e9 / block_ns as f64;
        let rates = |host: &&HostResult| -> Vec<f64> {
            let within = host.outcome.course.get(first..last).unwrap_or_default();
            let rate = |block: &[u64]| block.iter().sum::<u64>() as f64 * per_second;
            within.chunks_exact(group).map(rate).collect()
        };
        RateBlocks {
            rates: hosts.iter().map(rates).collect(),
            hosts,
            start_ns: first as u64 * cell_ns,
            block_ns,
        }
    }

    /// Number of blocks.
    pub(super) fn count(&self) -> usize {
        self.rates.first().map_or(0, Vec::len)
    }

    /// The rates of all hosts in one block.
    pub(super) fn at(&self, block: usize) -> Vec<f64> {
        self.rates.iter().map(|rates| rates[block]).collect()
    }

    /// Start of a block, or end of the one before, ns since the start of the first host.
    pub(super) fn start_of(&self, block: usize) -> u64 {
        self.start_ns + block as u64 * self.block_ns
    }
}
