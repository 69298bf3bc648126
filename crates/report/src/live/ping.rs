//! A ping while it goes on: its account, and the snapshots between one account and the next.

use fathom_analysis::ping::{PingAccount, PingHow, PingProgress};
use fathom_model::{Op, PerOp};
use fathom_record::{Histogram, Latency, Snapshot};

use super::state::{LiveLatency, STALLED_FROM_NS};

/// The data operations in the order of snapshots.
const OPS: [Op; 3] = [Op::Read, Op::Write, Op::Trim];

/// Where a ping ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PingEnd {
    /// After so many requests.
    pub count: Option<u64>,
    /// After this time, ns.
    pub work_ns: Option<u64>,
}

/// A ping that goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LivePing {
    /// How it is made.
    pub how: PingHow,
    /// Where it ends.
    pub end: PingEnd,
    /// What its requests add up to so far.
    pub account: PingAccount,
    /// Response times of the last tick; `None` where no schedule is kept.
    pub response_now: Option<LiveLatency>,
    /// When the last tick ended, ns since the ping began.
    ticked_ns: u64,
}

impl LivePing {
    /// A ping that begins.
    pub fn new(how: PingHow, end: PingEnd) -> LivePing {
        LivePing { how, end, ..LivePing::default() }
    }

    /// Response times so far; `None` where no schedule is kept.
    pub fn response_so_far(&self) -> Option<LiveLatency> {
        self.account.response_ns.as_ref().map(|response| LiveLatency::of(&response.histogram))
    }

    /// Intervals of the schedule that passed without their request; `None` without a schedule.
    pub fn missed_intervals(&self) -> Option<u64> {
        self.account.missed_intervals(self.how.interval_ns)
    }

    /// Goes on to `progress`, and returns the tick that it ends. Its latencies are those from a request to its answer.
    pub(super) fn advance(&mut self, progress: &PingProgress) -> Snapshot {
        let PingProgress { elapsed_ns, account, waits_ns, devices, host } = progress;
        let before = std::mem::replace(&mut self.account, account.clone());
        let tick_ns = elapsed_ns.saturating_sub(self.ticked_ns);
        self.ticked_ns = *elapsed_ns;
        let since = |now: &PerOp<u64>, before: &PerOp<u64>| OPS.map(|op| now[op] - before[op]);
        let (ios, bytes) = (since(&account.ios, &before.ios), since(&account.bytes, &before.bytes));
        let per_second = |counts: [u64; 3]| counts.map(|count| count as f64 * 1e9 / tick_ns.max(1) as f64);
        let moments = (&account.lat_ns.moments, &before.lat_ns.moments);
        let (counted, sum_ns) = (moments.0.count - moments.1.count, moments.0.sum - moments.1.sum);
        let response = account.response_ns.as_ref().map(|now| {
            let before = before.response_ns.as_ref().map(|response| &response.histogram);
            LiveLatency::of(&grown(&now.histogram, before))
        });
        self.response_now = response;
        let Latency { histogram, .. } = &account.lat_ns;
        let bins = grown(histogram, Some(&before.lat_ns.histogram));
        let waits_ns = waits_ns.unwrap_or(0);
        Snapshot {
            elapsed_ns: *elapsed_ns,
            remaining_ns: self.remaining_ns(*elapsed_ns),
            iops: per_second(ios),
            bytes_per_second: per_second(bytes),
            clat_mean_ns: sum_ns.checked_div(u128::from(counted)).and_then(|mean| u64::try_from(mean).ok()),
            running: 1,
            workers: 1,
            stalled_ns: waits_ns,
            stalled_in_flight: u64::from(waits_ns >= STALLED_FROM_NS),
            tick_ns,
            ios,
            bytes,
            clat_sum_ns: u64::try_from(sum_ns).unwrap_or(u64::MAX),
            in_flight: u64::from(progress.waits_ns.is_some()),
            clat_bins: bins.sparse().map(|(bin, count)| (bin as u16, count)).collect(),
            devices: devices.clone(),
            host: *host,
            ..Snapshot::default()
        }
    }

    /// Time until its end, ns; `None` where it has none.
    fn remaining_ns(&self, elapsed_ns: u64) -> Option<u64> {
        let by_time = self.end.work_ns.map(|work_ns| work_ns.saturating_sub(elapsed_ns));
        let made = self.account.counts.requests;
        let by_count = self.end.count.filter(|_| made > 0).map(|count| {
            let each_ns = self.how.interval_ns.max(elapsed_ns / made);
            count.saturating_sub(made).saturating_mul(each_ns)
        });
        [by_time, by_count].into_iter().flatten().min()
    }
}

/// What `now` has beyond `before`.
fn grown(now: &Histogram, before: Option<&Histogram>) -> Histogram {
    let mut known: Vec<(usize, u64)> = before.map(|before| before.sparse().collect()).unwrap_or_default();
    known.reverse();
    Histogram::from_sparse(now.sparse().filter_map(|(bin, count)| {
        while known.last().is_some_and(|(earlier, _)| *earlier < bin) {
            known.pop();
        }
        let known = known.last().filter(|(earlier, _)| *earlier == bin).map_or(0, |(_, count)| *count);
        (count > known).then(|| (bin, count - known))
    }))
}
