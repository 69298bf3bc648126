//! The observations of one phase of one worker: intervals and windows as differences of two readings.

use fathom_stats::live::LivePhase;
use fathom_stats::{DATA_OPS, Histogram, Interval, IntervalOp, KernelThreads, Moments, series};

use super::TICK_NS;

/// A window shorter than this is not a sample of bandwidth.
const SHORTEST_WINDOW_NS: u64 = TICK_NS / 10 * 9;

/// The last reading of one operation.
#[derive(Clone, Debug, Default)]
struct Reading {
    ios: u64,
    bytes: u64,
    clat_sum_ns: u64,
    bins: Vec<u64>,
}

/// The observations of one phase of one worker.
#[derive(Clone, Debug, Default)]
pub(super) struct PhaseWatch {
    readings: [Reading; DATA_OPS],
    last_end: u64,
    closed: bool,
    pub series: Vec<Interval>,
    pub windows: [(Moments, Moments); DATA_OPS],
    /// The unfinished windows of bandwidth and IOPS.
    open: [OpenWindow; 2],
}

/// A window of several intervals.
#[derive(Clone, Copy, Debug, Default)]
struct OpenWindow {
    span_ns: u64,
    amounts: [u64; DATA_OPS],
}

/// The results of observing one phase.
#[derive(Debug, Default)]
pub(crate) struct PhaseSeen {
    pub series: Vec<Interval>,
    /// Bandwidth (KiB/s) and IOPS per full window.
    pub windows: [(Moments, Moments); DATA_OPS],
    pub kernel_threads: KernelThreads,
}

impl PhaseWatch {
    /// Takes the difference since the last reading as an interval of `live`, and adds its latencies to `seen`.
    pub fn tick(&mut self, live: &LivePhase, time: &TickTime, seen: &mut Histogram) {
        let start = live.start_ns.get();
        if start == 0 || self.closed {
            return;
        }
        let ended = live.ended_ns();
        self.closed = ended != 0;
        let from = self.last_end.max(start);
        let to = if ended != 0 { ended.max(from) } else { time.now.max(from) };
        let span = to - from;
        if span == 0 && !self.closed {
            // Two readings at the same time give no interval; completions between them belong to the next one.
            return;
        }
        let ops: [IntervalOp; DATA_OPS] =
            std::array::from_fn(|op| self.readings[op].advance(&live.ops[op], self.closed));
        ops.iter().flat_map(|op| &op.clat_bins).for_each(|&(bin, count)| seen.add(usize::from(bin), count));
        self.add_to_windows(span, &ops, time.samples_ns);
        let (start_ns, end_ns) = (from.saturating_sub(time.origin), to.saturating_sub(time.origin));
        let is_empty = ops.iter().all(|op| op.ios == 0);
        let quiet_ns = if is_empty { span } else { to - time.last_completion.clamp(from, to) };
        let [read, write, trim] = ops;
        let interval = Interval { tick: time.number, start_ns, end_ns, quiet_ns, read, write, trim };
        series::push(&mut self.series, interval);
        self.last_end = to;
    }

    /// Adds an interval to the windows of bandwidth and IOPS, and records those that have their length in `samples_ns`.
    fn add_to_windows(&mut self, span: u64, ops: &[IntervalOp; DATA_OPS], samples_ns: [u64; 2]) {
        for (kind, window) in self.open.iter_mut().enumerate() {
            if span < SHORTEST_WINDOW_NS && window.span_ns == 0 {
                continue;
            }
            window.span_ns += span;
            for (amount, op) in window.amounts.iter_mut().zip(ops) {
                *amount += if kind == 0 { op.bytes } else { op.ios };
            }
            if window.span_ns < samples_ns[kind] / 10 * 9 {
                continue;
            }
            let OpenWindow { span_ns, amounts } = std::mem::take(window);
            for ((bandwidth, iops), amount) in self.windows.iter_mut().zip(amounts) {
                let (moments, unit) = if kind == 0 { (bandwidth, 1024) } else { (iops, 1) };
                if amount > 0 || moments.count > 0 {
                    let per_second = u128::from(amount) * 1_000_000_000 / u128::from(span_ns.max(1));
                    moments.record(per_second as u64 / unit);
                }
            }
        }
    }
}

impl Reading {
    /// The counts since the last reading. Bins may lag behind the count of requests, so the `last` reading always reads
    /// them.
    fn advance(&mut self, live: &fathom_stats::live::LiveOp, last: bool) -> IntervalOp {
        let (ios, bytes) = (live.ios.get(), live.bytes.get());
        let sum = live.clat.as_ref().map_or(0, |clat| clat.sum());
        let mut bins = Vec::new();
        if let (Some(clat), true) = (&live.clat, last || ios > self.ios) {
            self.bins.resize(fathom_stats::histogram::BINS, 0);
            for (bin, (count, seen)) in clat.counts().zip(&mut self.bins).enumerate() {
                if count != *seen {
                    bins.push((bin as u16, count - *seen));
                    *seen = count;
                }
            }
        }
        let op = IntervalOp {
            ios: ios - self.ios,
            bytes: bytes - self.bytes,
            clat_sum_ns: sum - self.clat_sum_ns,
            clat_bins: bins,
        };
        (self.ios, self.bytes, self.clat_sum_ns) = (ios, bytes, sum);
        op
    }
}

/// One tick: its number in the series and the time.
pub(super) struct TickTime {
    pub number: u32,
    pub now: u64,
    pub origin: u64,
    /// The last completion of the worker, session ns.
    pub last_completion: u64,
    /// Lengths of the windows of bandwidth and IOPS.
    pub samples_ns: [u64; 2],
}
