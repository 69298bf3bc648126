//! The latencies of an operation, and what share of them is beyond a limit.

use fathom_record::Latency;

/// Latencies, and how many there are of each.
#[derive(Clone, Debug)]
pub(super) struct LatencySamples {
    all: Latency,
    bins: Vec<(u64, u64)>,
}

impl LatencySamples {
    pub(super) fn of(all: Latency) -> LatencySamples {
        LatencySamples { bins: all.fio_bins(), all }
    }

    pub(super) fn percentile(&self, percent: f64) -> Option<u64> {
        self.all.percentile(percent)
    }

    pub(super) fn mean_ns(&self) -> f64 {
        self.all.moments.mean()
    }

    /// Share of the samples beyond `limit_ns`.
    pub(super) fn share_beyond(&self, limit_ns: f64) -> f64 {
        let beyond = self.bins.iter().rev().take_while(|(ns, _)| *ns as f64 > limit_ns);
        beyond.map(|(_, count)| count).sum::<u64>() as f64 / self.all.samples().max(1) as f64
    }

    pub(super) fn count(&self) -> u64 {
        self.all.samples()
    }
}
