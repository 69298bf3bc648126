//! The model of an observed load: requests one by one, or sums over intervals. Whole numbers throughout, with their units in the names.

use std::collections::HashMap;
use std::num::NonZeroU64;

use fathom_model::{Op, PerOp};
use serde::Serialize;

use crate::LoadFormat;

/// What an application asked of a device, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedLoad {
    /// Where it comes from.
    pub format: LoadFormat,
    /// The device, by the name that the source gives it; empty where it has none.
    pub device: String,
    /// Wall clock at the time 0 of the load, ns since the epoch; `None` where the source does not say.
    pub started_unix_ns: Option<u64>,
    /// The clock of the source.
    pub clock: LoadClock,
    /// From its beginning to its end, ns.
    pub length_ns: u64,
    /// The load itself.
    pub course: LoadCourse,
    /// Stretches without data, by their times.
    pub gaps: Vec<LoadGap>,
    /// What a reader has to know of the source, one sentence each without its full stop.
    pub notes: Vec<String>,
}

/// The clock that the times of a source are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadClock {
    /// UTC.
    Utc,
    /// The local time of the observed host, whose zone the source does not say; taken for UTC.
    Local,
    /// Times since the beginning alone.
    Relative,
}

/// The load in the detail of its source.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadCourse {
    /// Every request.
    Requests(RequestTrace),
    /// Sums over intervals, by their times, without overlap.
    Intervals(Vec<ObservedInterval>),
}

/// Requests by their times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestTrace {
    /// The files that requests index; of a device its name alone.
    pub files: Vec<String>,
    /// The requests.
    pub requests: Vec<ObservedRequest>,
    /// Each request has its time; otherwise it has that of the waits before it, and was made when the previous one was complete.
    pub has_times: bool,
    /// Where requests were seen.
    pub point: RequestPoint,
}

/// Where requests were seen on their way to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestPoint {
    /// As a program or file system makes them.
    #[default]
    Program,
    /// As they are passed to the driver: merged, split and in the order of the scheduler.
    Driver,
}

/// A request. The sizes are chosen so that millions are kept: 32 bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedRequest {
    /// When it was made, ns since the beginning of the load.
    pub at_ns: u64,
    /// Its first byte on the device or file.
    pub offset: u64,
    /// From then to its completion, ns, at least 1; `None` where the source does not say.
    pub latency_ns: Option<NonZeroU64>,
    /// Its length, bytes; 0 for syncs.
    pub bytes: u32,
    /// The file, an index into [`RequestTrace::files`].
    pub file: u16,
    /// The operation.
    pub op: Op,
    /// The thread that made it, by [`ThreadNumbers`]; 0 where the source does not say.
    pub thread: u8,
}

/// Threads by a number of one byte, from 1 on in the order in which they appear; those beyond 255 have none.
#[derive(Clone, Debug, Default)]
pub struct ThreadNumbers {
    known: HashMap<u32, u8>,
}

impl ThreadNumbers {
    /// The number of the thread with the identifier `tid`, or 0: that of the idle thread means none.
    pub fn number(&mut self, tid: u32) -> u8 {
        if tid == 0 {
            return 0;
        }
        let next = u8::try_from(self.known.len() + 1).unwrap_or(0);
        match next {
            0 => self.known.get(&tid).copied().unwrap_or(0),
            next => *self.known.entry(tid).or_insert(next),
        }
    }
}

/// Sums over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedInterval {
    /// Beginning, ns since that of the load.
    pub start_ns: u64,
    /// Length, ns, at least 1.
    pub length_ns: u64,
    /// By operation, where the source tells them apart.
    pub by_op: PerOp<ServedIo>,
    /// All operations together: the source's own sum, or that of the operations.
    pub total: ServedIo,
    /// Mean number of outstanding I/Os, thousandths.
    pub queue_depth_milli: Option<u64>,
    /// Share of the time with at least one I/O outstanding, millionths.
    pub utilization_ppm: Option<u32>,
    /// Whether a limit of the volume or instance was reached.
    pub limit_reached: Option<bool>,
    /// Burst credits left, millionths of their capacity; the lowest of several buckets.
    pub credits_ppm: Option<u32>,
    /// I/Os in the busiest second of the interval.
    pub peak_ops_per_second: PerOp<Option<u64>>,
}

/// I/Os that an interval completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedIo {
    /// I/Os.
    pub ops: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
    /// The sum of their latencies, ns.
    pub latency_sum_ns: Option<u64>,
}

/// A stretch without data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LoadGap {
    /// Beginning, ns since that of the load.
    pub start_ns: u64,
    /// Length, ns.
    pub length_ns: u64,
    /// Why there is no data.
    pub reason: GapReason,
}

/// Why a stretch has no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapReason {
    /// The source has none: the device was idle or detached, or data were lost.
    Missing,
    /// A counter fell: the host restarted or the device was replaced.
    CounterReset,
    /// The source says that the host restarted.
    Restart,
}

impl RequestPoint {
    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            RequestPoint::Program => "program",
            RequestPoint::Driver => "driver",
        }
    }
}

impl ServedIo {
    /// The sum of several operations. A figure that one with I/Os lacks is unknown of all.
    fn sum_of(parts: [ServedIo; 3]) -> ServedIo {
        let sum = |figure: fn(&ServedIo) -> Option<u64>| {
            let counted = parts.iter().filter(|part| **part != ServedIo::default() && part.ops != Some(0));
            let all = counted.map(figure).collect::<Option<Vec<u64>>>()?;
            let is_known = parts.iter().any(|part| figure(part).is_some());
            is_known.then(|| all.into_iter().fold(0, u64::saturating_add))
        };
        ServedIo {
            ops: sum(|part| part.ops),
            bytes: sum(|part| part.bytes),
            latency_sum_ns: sum(|part| part.latency_sum_ns),
        }
    }

    /// The same with what it lacks from `other`.
    pub(crate) fn or(self, other: ServedIo) -> ServedIo {
        ServedIo {
            ops: self.ops.or(other.ops),
            bytes: self.bytes.or(other.bytes),
            latency_sum_ns: self.latency_sum_ns.or(other.latency_sum_ns),
        }
    }
}

impl ObservedInterval {
    /// Its end, ns since the beginning of the load.
    pub const fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.length_ns)
    }

    /// The same with the sum of the operations where the source has none.
    pub(crate) fn with_total(mut self) -> ObservedInterval {
        let PerOp { read, write, trim } = self.by_op;
        self.total = self.total.or(ServedIo::sum_of([read, write, trim]));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_stay_small() {
        assert_eq!(size_of::<ObservedRequest>(), 32);
    }

    #[test]
    fn totals_are_those_of_the_source_or_the_sum() {
        let of = |ops, bytes, latency_sum_ns| ServedIo { ops, bytes, latency_sum_ns };
        let total_of = |read, write, trim| {
            ObservedInterval { by_op: PerOp { read, write, trim }, ..ObservedInterval::default() }
                .with_total()
                .total
        };
        let (read, none) = (of(Some(3), Some(12), Some(7)), ServedIo::default());
        assert_eq!(total_of(read, of(Some(4), None, Some(9)), none), of(Some(7), None, Some(16)));
        assert_eq!(total_of(read, of(Some(0), None, None), none), read, "what has no I/Os lacks nothing");
        assert_eq!(
            total_of(of(None, Some(5), None), of(None, Some(6), None), none),
            of(None, Some(11), None)
        );
        assert_eq!(total_of(none, none, none), none);
        let by_op = PerOp { read, ..PerOp::default() };
        let total = ServedIo { ops: Some(8), ..ServedIo::default() };
        let own = ObservedInterval { by_op, total, ..ObservedInterval::default() }.with_total();
        assert_eq!(own.total.ops, Some(8));
    }
}
