//! Hosts that were slower than the others for a time.
//!
//! In each block the hosts are ranked. A host among the slowest fifth, whose rate is also below the median by more than counts
//! as equivalent, is slow in that block. If all hosts were alike, one of `n` hosts would be slow in `r` of `m` blocks in a row
//! with a probability of at most `n (m - r + 1) q^r`, where `q` is the share of hosts that are slow at a time: a union bound over
//! hosts and places. A stretch for which it is below 1 % is no chance.

use fathom_record::FleetTest;
use fathom_stats::sample::{mean, median};
use serde::Serialize;

use super::blocks::RateBlocks;
use super::{EQUIVALENT_RATE, HostResult};

/// Fewest hosts and blocks.
const MIN_HOSTS: usize = 3;
const MIN_BLOCKS: usize = 6;
/// Most blocks that the time is divided into.
const MAX_BLOCKS: usize = 20;
/// Share of the hosts that are looked at as the slowest of a block: one in so many.
const SLOWEST: usize = 5;
/// Probability below which a stretch is no chance.
const CHANCE: f64 = 0.01;

/// Hosts that were slower than the others for a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stragglers {
    /// Why none can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The slowest first.
    pub hosts: Vec<Straggler>,
}

/// A host that was slower than the others for a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Straggler {
    /// The host.
    pub host: String,
    /// Begin and end, ns since the start of the first host.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
    /// It was slow all the time that was looked at.
    pub throughout: bool,
    /// Its rate in this time.
    pub iops: f64,
    /// The median of all hosts in this time, averaged over its blocks.
    pub median_iops: f64,
    /// Largest probability of such a stretch if all hosts were alike.
    pub p_value: f64,
}

impl Stragglers {
    /// The stragglers among hosts that completed a test.
    pub(super) fn of(fleet: &FleetTest, hosts: &[&HostResult]) -> Stragglers {
        let blocks = RateBlocks::of(fleet, hosts, MAX_BLOCKS);
        let (count, hosts) = (blocks.count(), blocks.hosts.len());
        let none = |reason: String| Stragglers { reason: Some(reason), hosts: Vec::new() };
        if hosts < MIN_HOSTS {
            return none(format!("{hosts} hosts with a course in common; {MIN_HOSTS} are needed"));
        }
        if count < MIN_BLOCKS {
            return none(format!("{count} blocks of a second or more in common; {MIN_BLOCKS} are needed"));
        }
        let slowest = (hosts / SLOWEST).max(1);
        let limits: Vec<BlockLimit> =
            (0..count).map(|block| BlockLimit::of(blocks.at(block), slowest)).collect();
        let chance = slowest as f64 / hosts as f64;
        let mut found: Vec<Straggler> =
            (0..hosts).filter_map(|host| straggler(&blocks, &limits, host, chance)).collect();
        let share = |straggler: &Straggler| straggler.iops / straggler.median_iops;
        found.sort_by(|one, other| share(one).total_cmp(&share(other)));
        Stragglers { reason: None, hosts: found }
    }
}

/// What makes a host slow in one block.
struct BlockLimit {
    median: f64,
    /// The rate of the quickest of the slowest.
    slowest: f64,
}

impl BlockLimit {
    fn of(mut rates: Vec<f64>, slowest: usize) -> BlockLimit {
        rates.sort_by(f64::total_cmp);
        BlockLimit { median: median(&rates).unwrap_or(0.0), slowest: rates[slowest - 1] }
    }

    fn is_slow(&self, rate: f64) -> bool {
        rate <= self.slowest && rate < self.median * (1.0 - EQUIVALENT_RATE)
    }
}

/// The longest stretch in which a host was slow, if it is no chance.
fn straggler(blocks: &RateBlocks<'_>, limits: &[BlockLimit], host: usize, chance: f64) -> Option<Straggler> {
    let rates = &blocks.rates[host];
    let mut longest = 0..0;
    let mut from = 0;
    for block in 0..=rates.len() {
        if block == rates.len() || !limits[block].is_slow(rates[block]) {
            if block - from > longest.len() {
                longest = from..block;
            }
            from = block + 1;
        }
    }
    let (hosts, places) = (blocks.hosts.len() as f64, (rates.len() - longest.len() + 1) as f64);
    let p_value = (hosts * places * chance.powi(longest.len() as i32)).min(1.0);
    let medians: Vec<f64> = limits[longest.clone()].iter().map(|limit| limit.median).collect();
    (!longest.is_empty() && p_value < CHANCE).then(|| Straggler {
        host: blocks.hosts[host].host.clone(),
        from_ns: blocks.start_of(longest.start),
        to_ns: blocks.start_of(longest.end),
        throughout: longest.len() == rates.len(),
        iops: mean(&rates[longest.clone()]),
        median_iops: mean(&medians),
        p_value,
    })
}
