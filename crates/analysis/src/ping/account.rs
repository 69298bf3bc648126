//! How a ping stands while it goes on: what its requests add up to at one moment, and the request without an answer.

use fathom_model::PerOp;
use fathom_record::ping::{PingCounts, PingLoad};
use fathom_record::{DeviceTick, HostInterval};
use fathom_stats::Latency;

/// What the requests of a ping add up to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PingAccount {
    /// How many requests had which result; the single stalls are left out.
    pub counts: PingCounts,
    /// The requests that were answered.
    pub load: PingLoad,
    /// Answered requests.
    pub ios: PerOp<u64>,
    /// Their bytes.
    pub bytes: PerOp<u64>,
    /// Latencies of the requests that count.
    pub lat_ns: Latency,
    /// The same from the moments they were due; `None` where no schedule is kept.
    pub response_ns: Option<Latency>,
    /// Intervals of the schedule that had their request, or their burst.
    pub intervals: u64,
    /// When the latest of these requests was made, ns since the ping began.
    pub latest_ns: u64,
}

impl PingAccount {
    /// Intervals of `interval_ns` that have passed without their request: never made where late answers delay the schedule,
    /// and still to be made where it is fixed. `None` without an interval.
    pub fn missed_intervals(&self, interval_ns: u64) -> Option<u64> {
        let passed = self.latest_ns.checked_div(interval_ns)? + 1;
        Some(if self.intervals > 0 { passed.saturating_sub(self.intervals) } else { 0 })
    }
}

/// How a ping stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PingProgress {
    /// Since it began, ns.
    pub elapsed_ns: u64,
    /// What its requests add up to.
    pub account: PingAccount,
    /// For how long the request in flight has had no answer, ns; `None` where none is in flight.
    pub waits_ns: Option<u64>,
    /// What the kernel has counted of the target's devices since the last progress; none on virtual time.
    pub devices: Vec<DeviceTick>,
    /// The same of the machine.
    pub host: Option<HostInterval>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_without_their_request_are_missed() {
        let check = |latest_ns: u64, intervals: u64, interval_ns: u64, expected: Option<u64>| {
            let account = PingAccount { latest_ns, intervals, ..PingAccount::default() };
            assert_eq!(account.missed_intervals(interval_ns), expected, "{latest_ns} {intervals}");
        };
        check(0, 0, 100, Some(0));
        check(0, 1, 100, Some(0));
        check(250, 3, 100, Some(0));
        // The second took 250: the one due at 200 is missed, and that of 300 made late.
        check(350, 3, 100, Some(1));
        check(350, 3, 0, None);
    }
}
