//! A load as sums over stretches of time: what is folded over the limits of a volume.

use fathom_model::Op;
use fathom_observed::{LoadCourse, ObservedInterval, ObservedLoad, ObservedRequest, ServedIo};
use fathom_volume::FluidSum;

use crate::closed_form::{OfferedLoad, RecurringBurst};

/// A second, ns.
const SECOND_NS: u64 = 1_000_000_000;
/// Most windows that requests are added up in.
const MAX_WINDOWS: u64 = 20_000;
/// Shortest window, ns.
const MIN_WINDOW_NS: u64 = 10_000_000;
/// A stated load is predicted over a month of 31 days: it goes on, and so has to hold without the credits of the beginning.
const STATED_NS: u64 = 31 * 86_400_000_000_000;
/// Intervals of a stated load.
const STATED_STEPS: u64 = 48;
/// Fewest and most bursts of a stated load that are predicted.
const MIN_BURSTS: u64 = 4;
const MAX_BURSTS: u64 = 1_000;
/// Share of sequential I/Os from which a load is taken for sequential.
const MOSTLY_SEQUENTIAL: f64 = 0.5;

/// A load in sums.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadDemand {
    /// By their times, without overlap.
    pub steps: Vec<DemandStep>,
    /// From its beginning to its end, ns.
    pub length_ns: u64,
    /// Requests continue each other; `None` where offsets are unknown.
    pub is_sequential: Option<bool>,
    /// The source tells reads and writes apart.
    pub has_directions: bool,
    /// What the source lacks.
    pub notes: Vec<DemandNote>,
}

/// What an interval asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DemandStep {
    /// Beginning, ns since that of the load.
    pub start_ns: u64,
    /// Length, ns, at least 1.
    pub length_ns: u64,
    /// Reads.
    pub reads: FluidSum,
    /// Everything else.
    pub writes: FluidSum,
    /// A limit was reached: more was asked than was served.
    pub limit_reached: bool,
    /// I/Os of its busiest second.
    pub peak_ops_per_second: Option<u64>,
}

/// What a source does not say, and what was assumed instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemandNote {
    /// Bytes are unknown: limits on bandwidth are not checked.
    NoBytes,
    /// Reads and writes are not told apart.
    NoDirections,
    /// There are stretches without data, in which credits neither rise nor fall.
    Gaps,
    /// In a part of the time (per mille) a limit was reached: more was asked than is recorded.
    Limited(u32),
}

impl DemandNote {
    /// In words.
    pub fn text(self) -> String {
        match self {
            DemandNote::NoBytes => {
                "the source has no bytes: limits on bandwidth are not checked".to_owned()
            }
            DemandNote::NoDirections => {
                "the source does not tell reads and writes apart: results hold for all reads and for all writes".to_owned()
            }
            DemandNote::Gaps => {
                "stretches without data are left out: credits neither rise nor fall in them".to_owned()
            }
            DemandNote::Limited(per_mille) => format!(
                "in {} % of the time the source reports that a limit was reached: more was asked than is recorded, and up to twice as \
                 much is checked there",
                f64::from(per_mille) / 10.0
            ),
        }
    }
}

impl DemandStep {
    /// I/Os.
    pub fn ops(&self) -> u64 {
        self.reads.ops.saturating_add(self.writes.ops)
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.reads.bytes.saturating_add(self.writes.bytes)
    }

    fn add(&mut self, request: &ObservedRequest) {
        let sum = if request.op == Op::Read { &mut self.reads } else { &mut self.writes };
        sum.ops += 1;
        if request.op != Op::Trim {
            sum.bytes = sum.bytes.saturating_add(u64::from(request.bytes));
        }
    }
}

impl LoadDemand {
    /// The sums of `load`; `None` where it has neither rates nor numbers of I/Os. `sequential` is its share of sequential I/Os.
    pub fn of(load: &ObservedLoad, sequential: Option<f64>) -> Option<LoadDemand> {
        let demand = match &load.course {
            LoadCourse::Requests(trace) if trace.has_times => {
                let mut tally = DemandTally::new(load.length_ns);
                tally.take_all(&trace.requests);
                tally.demand()
            }
            LoadCourse::Requests(_) => return None,
            LoadCourse::Intervals(intervals) => LoadDemand::of_intervals(intervals, load.length_ns),
        };
        demand.completed(sequential, !load.gaps.is_empty())
    }

    /// The same with what its sums do not say; `None` where it has no I/Os or no length.
    pub fn completed(mut self, sequential: Option<f64>, has_gaps: bool) -> Option<LoadDemand> {
        self.is_sequential = sequential.map(|share| share >= MOSTLY_SEQUENTIAL);
        if has_gaps {
            self.notes.push(DemandNote::Gaps);
        }
        (self.ops() > 0 && self.length_ns > 0).then_some(self)
    }

    /// The sums of `iops` requests per second of `load`, all the time or in bursts, as far as these are not too many.
    pub fn stated(load: &OfferedLoad, iops: f64, burst: Option<RecurringBurst>) -> LoadDemand {
        let bytes = load.mean_bytes();
        let reads = load.read_fraction.unwrap_or(0.0);
        // Bytes of whole I/Os: those of a part of one more would count as a further unit of each.
        let sum =
            |ops: f64| FluidSum { ops: ops.round() as u64, bytes: (ops.round() * bytes).round() as u64 };
        let step = |start_ns: u64, length_ns: u64, iops: f64| {
            let ops = iops * length_ns as f64 / 1e9;
            let (reads, writes) = (sum(ops * reads), sum(ops * (1.0 - reads)));
            DemandStep { start_ns, length_ns, reads, writes, ..DemandStep::default() }
        };
        let steps: Vec<DemandStep> = match burst {
            None => {
                let length = STATED_NS / STATED_STEPS;
                (0..STATED_STEPS).map(|index| step(index * length, length, iops)).collect()
            }
            Some(burst) => {
                let of_period = |index: u64| {
                    let start = index * burst.period_ns;
                    let rest = burst.period_ns - burst.length_ns;
                    [
                        step(start, burst.length_ns, iops),
                        step(start + burst.length_ns, rest, burst.iops_between),
                    ]
                };
                let bursts = (STATED_NS / burst.period_ns.max(1)).clamp(MIN_BURSTS, MAX_BURSTS);
                (0..bursts).flat_map(of_period).collect()
            }
        };
        LoadDemand {
            length_ns: steps.last().map_or(1, |step| step.start_ns + step.length_ns),
            steps,
            // What waits for a sync each time is never merged.
            is_sequential: Some(load.sequential && load.synced_after.is_none()),
            has_directions: load.read_fraction.is_some(),
            notes: Vec::new(),
        }
    }

    fn of_intervals(intervals: &[ObservedInterval], length_ns: u64) -> LoadDemand {
        let mut demand = LoadDemand { length_ns, has_directions: true, ..LoadDemand::default() };
        let (mut lacks_bytes, mut limited_ns) = (false, 0_u64);
        for interval in intervals {
            let by_op = &interval.by_op;
            let has_directions = by_op.read.ops.is_some() && by_op.write.ops.is_some();
            let sum =
                |part: ServedIo| FluidSum { ops: part.ops.unwrap_or(0), bytes: part.bytes.unwrap_or(0) };
            let trims = by_op.trim.ops.unwrap_or(0);
            let (reads, mut writes) = match has_directions {
                true => (sum(by_op.read), sum(by_op.write)),
                // All as writes; a second prediction has all as reads.
                false => (FluidSum::default(), sum(interval.total)),
            };
            if has_directions {
                writes.ops = writes.ops.saturating_add(trims);
            }
            demand.has_directions &= has_directions || interval.total.ops == Some(0);
            let step = DemandStep {
                start_ns: interval.start_ns,
                length_ns: interval.length_ns.max(1),
                reads,
                writes,
                limit_reached: interval.limit_reached == Some(true) || interval.credits_ppm == Some(0),
                peak_ops_per_second: peak(interval),
            };
            lacks_bytes |= step.ops() > 0 && step.bytes() == 0;
            limited_ns += if step.limit_reached { step.length_ns } else { 0 };
            demand.steps.push(step);
        }
        let known: u64 = demand.steps.iter().map(|step| step.length_ns).sum();
        let limited = (u128::from(limited_ns) * 1000).div_ceil(u128::from(known.max(1))) as u32;
        demand.notes.extend(lacks_bytes.then_some(DemandNote::NoBytes));
        demand.notes.extend((!demand.has_directions).then_some(DemandNote::NoDirections));
        demand.notes.extend((limited > 0).then_some(DemandNote::Limited(limited)));
        demand
    }

    /// I/Os in all.
    pub fn ops(&self) -> u64 {
        self.steps.iter().map(DemandStep::ops).sum()
    }

    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.steps.iter().map(DemandStep::bytes).sum()
    }

    /// Time with data, ns.
    pub fn known_ns(&self) -> u64 {
        self.steps.iter().map(|step| step.length_ns).sum::<u64>().max(1)
    }

    /// I/Os per second of the busiest interval.
    pub fn peak_iops(&self) -> f64 {
        let rate = |step: &DemandStep| step.ops() as f64 * SECOND_NS as f64 / step.length_ns as f64;
        self.steps.iter().map(rate).fold(0.0, f64::max)
    }

    /// I/Os per second.
    pub fn mean_iops(&self) -> f64 {
        self.ops() as f64 * SECOND_NS as f64 / self.known_ns() as f64
    }

    /// Mean size, bytes; `None` where bytes are unknown.
    pub fn mean_bytes(&self) -> Option<f64> {
        let bytes = self.bytes();
        (bytes > 0 && self.ops() > 0).then(|| bytes as f64 / self.ops() as f64)
    }

    /// Share of reads.
    pub fn read_share(&self) -> Option<f64> {
        let reads: u64 = self.steps.iter().map(|step| step.reads.ops).sum();
        self.has_directions.then(|| reads as f64 / self.ops().max(1) as f64)
    }
}

/// Adds requests up in equal windows, one after the other.
#[derive(Debug)]
pub struct DemandTally {
    length_ns: u64,
    window_ns: u64,
    steps: Vec<DemandStep>,
    /// The window of the latest request, and its times, ns.
    index: usize,
    start_ns: u64,
    end_ns: u64,
}

impl DemandTally {
    /// Of a load of this length.
    pub fn new(length_ns: u64) -> DemandTally {
        let window_ns = (length_ns / MAX_WINDOWS).max(MIN_WINDOW_NS).min(length_ns.max(1));
        let count = length_ns.div_ceil(window_ns).max(1);
        let step = |index: u64| DemandStep {
            start_ns: index * window_ns,
            length_ns: window_ns.min(length_ns.saturating_sub(index * window_ns)).max(1),
            ..DemandStep::default()
        };
        let steps = (0..count).map(step).collect();
        DemandTally { length_ns, window_ns, steps, index: 0, start_ns: 0, end_ns: 0 }
    }

    #[inline]
    fn take(&mut self, request: &ObservedRequest) {
        // A flush is counted by no limit.
        if request.op.is_sync() {
            return;
        }
        if request.at_ns < self.start_ns || request.at_ns >= self.end_ns {
            self.reach(request.at_ns);
        }
        self.steps[self.index].add(request);
    }

    /// Adds the next requests.
    pub fn take_all(&mut self, requests: &[ObservedRequest]) {
        requests.iter().for_each(|request| self.take(request));
    }

    /// Goes to the window of a time; what comes after the last one counts in that.
    fn reach(&mut self, at_ns: u64) {
        let last = self.steps.len() - 1;
        self.index = ((at_ns / self.window_ns) as usize).min(last);
        self.start_ns = self.index as u64 * self.window_ns;
        self.end_ns = if self.index == last { u64::MAX } else { self.start_ns + self.window_ns };
    }

    /// The sums.
    pub fn demand(self) -> LoadDemand {
        let DemandTally { length_ns, steps, .. } = self;
        LoadDemand { steps, length_ns, is_sequential: None, has_directions: true, notes: Vec::new() }
    }
}

/// The I/Os of the busiest second, of reads and writes together where both are known: at least those of one, at most the sum.
fn peak(interval: &ObservedInterval) -> Option<u64> {
    let peaks = &interval.peak_ops_per_second;
    match (peaks.read, peaks.write) {
        (None, None) => None,
        (read, write) => Some(read.unwrap_or(0).saturating_add(write.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::PerOp;

    use super::*;

    fn io(ops: u64, bytes: u64) -> ServedIo {
        ServedIo { ops: Some(ops), bytes: Some(bytes), latency_sum_ns: None }
    }

    #[test]
    fn intervals_keep_their_sums() {
        let by_op = PerOp { read: io(30, 300), write: io(10, 100), trim: ServedIo::default() };
        let one = ObservedInterval {
            length_ns: SECOND_NS,
            by_op,
            total: io(40, 400),
            ..ObservedInterval::default()
        };
        let limited = ObservedInterval { start_ns: SECOND_NS, limit_reached: Some(true), ..one };
        let demand = LoadDemand::of_intervals(&[one, limited], 2 * SECOND_NS);
        assert_eq!((demand.ops(), demand.bytes(), demand.mean_iops()), (80, 800, 40.0));
        assert_eq!((demand.read_share(), demand.mean_bytes()), (Some(0.75), Some(10.0)));
        assert_eq!(demand.notes, [DemandNote::Limited(500)]);
    }

    #[test]
    fn what_is_not_told_apart_is_noted() {
        let total = ServedIo { bytes: None, ..io(40, 0) };
        let one = ObservedInterval { length_ns: SECOND_NS, total, ..ObservedInterval::default() };
        let demand = LoadDemand::of_intervals(&[one], SECOND_NS);
        assert_eq!(demand.notes, [DemandNote::NoBytes, DemandNote::NoDirections]);
        assert_eq!((demand.read_share(), demand.mean_bytes(), demand.ops()), (None, None, 40));
        assert!(demand.notes.iter().all(|note| !note.text().ends_with('.')));
    }

    #[test]
    fn stated_loads_consist_of_whole_ios() {
        // 10.000008 in each second: 558,000.4 in each interval, which must not count as larger ones.
        let load = OfferedLoad { read_fraction: Some(1.0), ..OfferedLoad::of(65_536.0, false) };
        let demand = LoadDemand::stated(&load, 10.000_008, None);
        let reads = FluidSum { ops: 558_000, bytes: 558_000 * 65_536 };
        assert!(demand.steps.iter().all(|step| step.reads == reads), "{:?}", demand.steps[0]);
    }

    #[test]
    fn requests_are_added_up_in_windows() {
        let request = |at_ns: u64, op: Op| ObservedRequest {
            at_ns,
            offset: 0,
            latency_ns: None,
            bytes: 512,
            file: 0,
            thread: 0,
            op,
        };
        let all = [(0, Op::Read), (5, Op::Sync), (SECOND_NS, Op::Write), (SECOND_NS * 2, Op::Trim)];
        let mut tally = DemandTally::new(2 * SECOND_NS);
        all.into_iter().for_each(|(at, op)| tally.take(&request(at, op)));
        let demand = tally.demand();
        assert_eq!((demand.steps.len(), demand.ops(), demand.bytes()), (200, 3, 1024));
        assert_eq!(demand.steps.last().map(|step| step.writes.ops), Some(1));
    }
}
