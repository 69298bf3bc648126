//! What a device did in an interval, from what the kernel counted: rates, sizes, waits, queue, utilisation.
//!
//! A mean over no request is `None`, never 0, and so is every rate of a device that has not answered for a while.

use fathom_model::{Op, PerOp};
use serde::{Deserialize, Serialize};

use crate::load::ObservedLoad;
use crate::wire::is_default;
use crate::{LatencySummary, OpSummary, TestSummary};

/// A device over a whole monitoring run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonitoredDevice {
    /// All intervals as one.
    pub means: MonitorInterval,
    /// The intervals, of which only the first are kept.
    pub intervals: Vec<MonitorInterval>,
}

impl MonitoredDevice {
    /// The headline numbers.
    pub(crate) fn summary(&self) -> TestSummary {
        let of = |done: &OpActivity| {
            (done.ios > 0).then(|| OpSummary {
                ios: done.ios,
                bytes: done.bytes,
                iops: self.means.per_second(done.ios).unwrap_or(0.0),
                bytes_per_second: self.means.per_second(done.bytes).unwrap_or(0.0),
                lat_ns: LatencySummary {
                    samples: done.ios,
                    mean: done.await_ns(),
                    ..LatencySummary::default()
                },
                ..OpSummary::default()
            })
        };
        let activity = &self.means.activity;
        TestSummary {
            read: of(&activity.ops.read),
            write: of(&activity.ops.write),
            trim: of(&activity.ops.trim),
            total: of(&activity.total()),
            elapsed_ns: self.means.elapsed_ns,
            measured_ns: self.means.elapsed_ns,
            ..TestSummary::default()
        }
    }
}

/// A device that is watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchedDevice {
    /// The kernel's name.
    pub name: String,
    /// Its node.
    pub path: String,
    /// What was asked for, where that is not the device itself: a directory or file on it, or another name.
    pub asked: Option<String>,
    /// Bytes.
    pub size_bytes: u64,
    /// Smallest unit it can be addressed in, bytes.
    pub logical_block_bytes: u64,
    /// The devices it lies on, nearest first.
    pub under: Vec<String>,
    /// It has no queue of its own: its requests are counted before they are merged or split.
    pub stacked: bool,
}

/// How one kind of request was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpActivity {
    /// Requests completed.
    pub ios: u64,
    /// Requests that were merged into another before they were issued.
    pub merges: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Milliseconds from when each was made to its completion, summed.
    pub ticks_ms: u64,
}

impl OpActivity {
    fn add(&mut self, other: &OpActivity) {
        self.ios += other.ios;
        self.merges += other.merges;
        self.bytes += other.bytes;
        self.ticks_ms += other.ticks_ms;
    }

    /// Mean bytes per request.
    pub fn mean_bytes(&self) -> Option<f64> {
        (self.ios > 0).then(|| self.bytes as f64 / self.ios as f64)
    }

    /// Mean ns from when a request was made to its completion.
    pub fn await_ns(&self) -> Option<f64> {
        (self.ios > 0).then(|| self.ticks_ms as f64 * 1e6 / self.ios as f64)
    }

    /// How far off that mean may be, ns: the kernel sums up in whole ms.
    pub fn await_error_ns(&self) -> Option<f64> {
        (self.ios > 0).then(|| 1e6 / self.ios as f64)
    }
}

/// How a device's counters grew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceActivity {
    /// Reads, writes and discards.
    pub ops: PerOp<OpActivity>,
    /// Cache flushes; they move nothing.
    pub flush: OpActivity,
    /// Milliseconds with at least one request in flight.
    pub busy_ms: u64,
    /// Milliseconds that the requests completed spent waiting and being served, summed.
    pub queue_ms: u64,
}

impl DeviceActivity {
    /// Adds what `other` counted.
    pub fn add(&mut self, other: &DeviceActivity) {
        for op in Op::DATA {
            self.ops[op].add(&other.ops[op]);
        }
        self.flush.add(&other.flush);
        self.busy_ms += other.busy_ms;
        self.queue_ms += other.queue_ms;
    }

    /// Reads, writes and discards together.
    pub fn total(&self) -> OpActivity {
        let mut total = OpActivity::default();
        Op::DATA.into_iter().for_each(|op| total.add(&self.ops[op]));
        total
    }

    /// True where anything completed.
    pub fn is_some(&self) -> bool {
        self.total().ios + self.flush.ios > 0
    }
}

/// Requests in flight, as they were found at several moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InFlight {
    /// At the end.
    pub last: u64,
    /// The most.
    pub most: u64,
    /// Sum over all moments.
    pub sum: u64,
    /// Moments.
    pub samples: u64,
}

impl InFlight {
    /// One more moment.
    pub fn record(&mut self, now: u64) {
        self.last = now;
        self.most = self.most.max(now);
        self.sum += now;
        self.samples += 1;
    }

    /// Adds the moments of a later time.
    pub fn add(&mut self, later: &InFlight) {
        self.last = later.last;
        self.most = self.most.max(later.most);
        self.sum += later.sum;
        self.samples += later.samples;
    }

    /// Mean over the moments.
    pub fn mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum as f64 / self.samples as f64)
    }
}

/// Whether a device was there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// All the time.
    #[default]
    There,
    /// It came, or came back; its numbers count from there.
    Appeared,
    /// It went; there are no numbers.
    Gone,
}

impl Presence {
    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Presence::There => "there",
            Presence::Appeared => "appeared",
            Presence::Gone => "gone",
        }
    }
}

/// A process that moved data while it had the device or a file on it open.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessActivity {
    /// Its id.
    pub process: u32,
    /// Its name.
    pub command: String,
    /// Bytes per second fetched from storage for it, on all devices together.
    pub read_bytes_per_second: f64,
    /// Bytes per second it caused to be written, on all devices together.
    pub write_bytes_per_second: f64,
    /// What it has open.
    pub file: String,
}

/// One device in one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonitorInterval {
    /// Intervals count from 1.
    pub number: u64,
    /// The device.
    pub device: WatchedDevice,
    /// Its end in wall-clock time, ms since the epoch.
    pub end_unix_ms: u64,
    /// Its length, ns.
    pub elapsed_ns: u64,
    /// Whether the device was there.
    pub presence: Presence,
    /// What was counted.
    pub activity: DeviceActivity,
    /// Requests in flight.
    pub in_flight: InFlight,
    /// For how long nothing has completed although requests are in flight, ns; none where that is no stall.
    pub stalled_ns: Option<u64>,
    /// Its requests one by one, where they are traced.
    #[serde(skip_serializing_if = "is_default")]
    pub load: Option<ObservedLoad>,
    /// Who may have caused it, most bytes first.
    #[serde(skip_serializing_if = "is_default")]
    pub owners: Vec<ProcessActivity>,
}

impl MonitorInterval {
    fn seconds(&self) -> Option<f64> {
        let known = self.elapsed_ns > 0 && self.presence != Presence::Gone;
        let stalled = self.stalled_ns.is_some() && !self.activity.is_some();
        (known && !stalled).then_some(self.elapsed_ns as f64 / 1e9)
    }

    /// `count` per second.
    pub fn per_second(&self, count: u64) -> Option<f64> {
        Some(count as f64 / self.seconds()?)
    }

    /// The mean number of requests waiting or being served, weighted by time. A request counts with all its time when it
    /// completes, so one that hangs is missing until then: `in_flight` has it.
    pub fn queue_depth_mean(&self) -> Option<f64> {
        Some(self.activity.queue_ms as f64 / 1e3 / self.seconds()?)
    }

    /// The share of time with at least one request in flight, 0 to 1. A device that serves several at once may have capacity
    /// left at 1.
    pub fn utilisation(&self) -> Option<f64> {
        Some((self.activity.busy_ms as f64 / 1e3 / self.seconds()?).min(1.0))
    }

    /// Busy time per request, ns: what others call service time. That is what it is where a device serves one at a time;
    /// elsewhere it is only the inverse of the rate while busy.
    pub fn busy_per_request_ns(&self) -> Option<f64> {
        self.seconds()?;
        let requests = self.activity.total().ios + self.activity.flush.ios;
        (requests > 0).then(|| self.activity.busy_ms as f64 * 1e6 / requests as f64)
    }

    /// Adds a later interval of the same device; one in which it was not there adds nothing.
    pub fn add(&mut self, later: &MonitorInterval) {
        if later.presence == Presence::Gone {
            return;
        }
        self.number = later.number;
        self.end_unix_ms = later.end_unix_ms;
        self.elapsed_ns += later.elapsed_ns;
        self.stalled_ns = later.stalled_ns;
        self.activity.add(&later.activity);
        self.in_flight.add(&later.in_flight);
        match (&mut self.load, &later.load) {
            (Some(load), Some(more)) => load.merge(more),
            (load @ None, more) => load.clone_from(more),
            (Some(_), None) => {}
        }
        // Whose it was changes from one to the next.
        self.owners.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval() -> MonitorInterval {
        let read = OpActivity { ios: 500, merges: 20, bytes: 500 * 4096, ticks_ms: 1000 };
        let write = OpActivity { ios: 100, merges: 0, bytes: 100 * 65_536, ticks_ms: 500 };
        let flush = OpActivity { ios: 10, ticks_ms: 25, ..OpActivity::default() };
        let ops = PerOp { read, write, trim: OpActivity::default() };
        let activity = DeviceActivity { ops, flush, busy_ms: 1830, queue_ms: 1525 };
        MonitorInterval { elapsed_ns: 2_000_000_000, activity, ..MonitorInterval::default() }
    }

    #[test]
    fn rates_and_means_follow_from_the_counters() {
        let interval = interval();
        let read = interval.activity.ops.read;
        assert_eq!(interval.per_second(read.ios), Some(250.0));
        assert_eq!((read.mean_bytes(), read.await_ns()), (Some(4096.0), Some(2e6)));
        let flush = interval.activity.flush;
        assert_eq!((flush.await_ns(), flush.await_error_ns()), (Some(2.5e6), Some(1e5)));
        assert_eq!(interval.activity.total().ios, 600);
        assert_eq!(interval.queue_depth_mean(), Some(0.7625));
        assert_eq!(interval.utilisation(), Some(0.915));
        assert_eq!(interval.busy_per_request_ns(), Some(3e6));
    }

    #[test]
    fn what_did_not_happen_has_no_mean() {
        let idle = MonitorInterval { elapsed_ns: 1_000_000_000, ..MonitorInterval::default() };
        assert_eq!((idle.per_second(0), idle.utilisation()), (Some(0.0), Some(0.0)));
        let trim = idle.activity.ops.trim;
        assert_eq!((trim.mean_bytes(), trim.await_ns(), idle.busy_per_request_ns()), (None, None, None));
        assert_eq!(idle.in_flight.mean(), None);
    }

    #[test]
    fn a_device_that_does_not_answer_has_no_rates() {
        let stalled =
            MonitorInterval { stalled_ns: Some(2_000_000_000), elapsed_ns: 1, ..MonitorInterval::default() };
        assert_eq!((stalled.per_second(0), stalled.utilisation()), (None, None));
        // It began to in this very interval.
        let at_last = MonitorInterval { stalled_ns: Some(1), ..interval() };
        assert_eq!(at_last.per_second(10), Some(5.0));
        let gone = MonitorInterval { presence: Presence::Gone, ..interval() };
        assert_eq!(gone.per_second(10), None);
    }

    #[test]
    fn utilisation_is_no_more_than_all() {
        // Ticks of the kernel's timer round up.
        let mut interval = interval();
        interval.activity.busy_ms = 2004;
        assert_eq!(interval.utilisation(), Some(1.0));
    }

    #[test]
    fn intervals_add_up() {
        let (mut first, mut second) = (interval(), interval());
        [1, 5].into_iter().for_each(|now| first.in_flight.record(now));
        second.in_flight.record(3);
        let gone = MonitorInterval { presence: Presence::Gone, ..interval() };
        let mut sum = first;
        [gone, second].iter().for_each(|later| sum.add(later));
        assert_eq!(sum.per_second(sum.activity.ops.read.ios), Some(250.0));
        assert_eq!((sum.in_flight.most, sum.in_flight.last, sum.in_flight.mean()), (5, 3, Some(3.0)));
    }
}
