//! Latencies by the priority of the requests.

use serde::{Deserialize, Serialize};

use crate::live::{LiveLatency, LiveOp, LiveWorker};
use crate::{DATA_OPS, Latency};

/// The latencies of the requests with one priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PriorityLatency {
    /// The priority as Linux packs it: 3 bits of class, 10 of hint, 3 of level.
    pub priority: u16,
    /// Completion latencies, or total ones if the job reports percentiles of those.
    pub latency: Latency,
}

impl PriorityLatency {
    /// What was recorded of one priority so far.
    pub(crate) fn read((priority, live): &(u16, LiveLatency)) -> PriorityLatency {
        PriorityLatency { priority: *priority, latency: live.read() }
    }
}

impl LiveOp {
    /// Counts the latency of a request with this priority, in ns. Only the owning worker may call this.
    #[cold]
    pub fn record_priority(&self, priority: u16, ns: u64) {
        if let Some((_, latency)) = self.priorities.iter().find(|(value, _)| *value == priority) {
            latency.record(ns);
        }
    }
}

impl LiveWorker {
    /// Records latencies by priority: for each data operation, the priorities that its requests may have.
    pub fn with_priorities(mut self, of_ops: &[Vec<u16>; DATA_OPS]) -> Self {
        for phase in self.ramp.iter_mut().chain([&mut self.measured]) {
            for (op, values) in phase.ops.iter_mut().zip(of_ops) {
                op.priorities = values.iter().map(|&value| (value, LiveLatency::default())).collect();
            }
        }
        self
    }
}

/// Adds the latencies of another worker; priorities that are new come last.
pub(crate) fn merge(mine: &mut Vec<PriorityLatency>, theirs: &[PriorityLatency]) {
    for other in theirs {
        match mine.iter_mut().find(|one| one.priority == other.priority) {
            Some(one) => one.latency.merge(&other.latency),
            None => mine.push(other.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_priorities_are_added() {
        let of = |priority, ns| PriorityLatency { priority, latency: Latency::repeated(1, ns) };
        let mut mine = vec![of(0, 10), of(0x2000, 20)];
        merge(&mut mine, &[of(0x4001, 5), of(0x2000, 40)]);
        let seen: Vec<_> = mine
            .iter()
            .map(|one| (one.priority, one.latency.moments.count, one.latency.moments.sum))
            .collect();
        assert_eq!(seen, [(0, 1, 10), (0x2000, 2, 60), (0x4001, 1, 5)]);
    }
}
