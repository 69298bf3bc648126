//! The slowest requests of a worker, with where and when they happened.

use fathom_stats::SlowRequest;

const KEPT: usize = 32;

/// Keeps the slowest requests. The common case, a request that is not among them, costs one comparison.
#[derive(Debug, Default)]
pub(crate) struct Slowest {
    kept: Vec<SlowRequest>,
    /// A request must exceed this to be kept; 0 until the list is full.
    pub threshold_ns: u64,
}

impl Slowest {
    #[cold]
    pub fn insert(&mut self, request: SlowRequest) {
        let at = self.kept.partition_point(|kept| kept.lat_ns >= request.lat_ns);
        self.kept.insert(at, request);
        self.kept.truncate(KEPT);
        if self.kept.len() == KEPT {
            self.threshold_ns = self.kept[KEPT - 1].lat_ns;
        }
    }

    pub fn clear(&mut self) {
        *self = Slowest::default();
    }

    /// Slowest first.
    pub fn into_vec(self) -> Vec<SlowRequest> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::Op;

    use super::*;

    #[test]
    fn keeps_the_slowest_in_order() {
        let mut slowest = Slowest::default();
        for lat_ns in (0..1000).map(|i| (i * 7919) % 1000) {
            if lat_ns > slowest.threshold_ns {
                slowest.insert(SlowRequest { start_ns: 0, lat_ns, op: Op::Read, offset: 0, depth: 1 });
            }
        }
        let kept: Vec<u64> = slowest.into_vec().iter().map(|r| r.lat_ns).collect();
        assert_eq!(kept, (968..1000).rev().collect::<Vec<u64>>());
    }
}
