//! A load in sums on the limits of a volume, for one way in which the I/Os may have arrived within their intervals.

use fathom_model::Op;
use fathom_volume::{
    FluidLane, FluidReport, FluidServed, FluidStep, FluidSum, FluidUnit, FluidVolume, ModelError,
    VolumeLatency, VolumeModel,
};

use crate::demand::{DemandStep, LoadDemand};
use crate::prediction::Requirement;
use crate::prediction::{ExhaustionRange, LowestCredits, Prediction, ThrottleCause};
use crate::tally::{Tally, add_latencies};

/// How I/Os arrived within their intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals<'a> {
    /// At a constant rate: the least that an interval asks of a volume.
    Evenly,
    /// All at one instant, at the end of one interval and the beginning of the next by turns, or at the rate of the busiest second
    /// where that is known: the most. Where a limit was reached, twice as many.
    AtOnce,
    /// As in the burstiest stretch of a finer recording: shares of an interval that arrive at once, one after the other.
    Shaped(&'a [u64]),
}

/// How a load in sums is predicted.
#[derive(Clone, Copy, Debug)]
pub struct SumsSettings<'a> {
    /// How I/Os arrived.
    pub arrivals: Arrivals<'a>,
    /// Requests continue each other; only where the source does not say.
    pub is_sequential: bool,
    /// All I/Os are reads; only where the source does not tell them apart.
    pub all_reads: bool,
    /// The load times so many thousandths.
    pub growth_milli: u64,
    /// Latencies that slices are compared with.
    pub limits: &'a [Requirement],
}

const MILLION: u64 = 1_000_000;
/// Shares of the time below this are what rounding leaves where a bucket runs dry.
const MIN_SHARE: f64 = 1e-6;
/// Points of a piece whose waiting time changes.
const POINTS: u64 = 64;
/// Ends of the parts that a distribution of latencies is divided into, per million.
const PARTS: [u32; 38] = parts();

const fn parts() -> [u32; 38] {
    let mut ends = [0; 38];
    let mut index = 1;
    while index < 38 {
        let step = match index {
            1..=9 => 100_000,
            10..=18 => 10_000,
            19..=27 => 1_000,
            _ => 100,
        };
        ends[index] = ends[index - 1] + step;
        index += 1;
    }
    ends
}

/// What `demand` would get of `model`.
///
/// # Errors
/// The model is not valid.
pub fn predict_sums(
    model: &VolumeModel,
    demand: &LoadDemand,
    settings: &SumsSettings<'_>,
) -> Result<Prediction, ModelError> {
    let longest = demand.steps.iter().map(|step| step.length_ns).max().unwrap_or(1);
    let lanes = FluidLane::of(model).iter().map(|&lane| FluidVolume::new(model, lane));
    let mut lanes: Vec<FluidVolume> = lanes.collect::<Result<_, _>>()?;
    let mean_bytes = demand.mean_bytes().unwrap_or(0.0) as u64;
    let mut sums = SumsTally {
        tally: Tally::new(demand.length_ns, longest, settings.limits),
        at_rest: [0; 2],
        service: [
            ServiceTime::of(&model.read_latency, mean_bytes),
            ServiceTime::of(&model.write_latency, mean_bytes),
        ],
        rounding: MILLION / 2,
    };
    let mut scale = Scale::default();
    for (index, step) in demand.steps.iter().enumerate() {
        for fluid in &mut lanes {
            let gap = step.start_ns.saturating_sub(fluid.now_ns());
            if gap > 0 {
                fluid.skip(gap);
            }
        }
        let credits = credits(&lanes);
        let asked = scale.asked(step, settings);
        sums.begin(step.start_ns, asked, credits);
        each_part(index, demand, asked, settings, &mut |part| {
            lanes.iter_mut().for_each(|lane| lane.pass(part, &mut |served| sums.take(served)));
        });
    }
    let end_ns = lanes.iter().map(FluidVolume::now_ns).max().unwrap_or(0);
    let credits = credits(&lanes);
    lanes.iter_mut().for_each(|lane| lane.drain(u64::MAX - lane.now_ns(), &mut |served| sums.take(served)));
    let drained_ns = lanes.iter().map(FluidVolume::now_ns).max().unwrap_or(0);
    let backlog_ns = drained_ns.saturating_sub(end_ns);
    let mut prediction = sums.prediction(&lanes, demand, backlog_ns, credits);
    prediction.exhaustion = prediction.exhausted_ns.map(|at_ns| match settings.arrivals {
        Arrivals::AtOnce => ExhaustionRange { low: earliest_ns(demand, at_ns), high: Some(at_ns) },
        Arrivals::Evenly | Arrivals::Shaped(_) => ExhaustionRange::at(at_ns),
    });
    Ok(prediction)
}

/// When what happens at `at_ns` may have happened at the earliest: with the first of the two intervals whose I/Os come together, since
/// they may all have come then.
fn earliest_ns(demand: &LoadDemand, at_ns: u64) -> u64 {
    let begun = demand.steps.partition_point(|step| step.start_ns <= at_ns);
    let is_over = |step: &DemandStep| at_ns - step.start_ns > step.length_ns;
    match begun.checked_sub(1) {
        Some(index) if !is_over(&demand.steps[index]) => demand.steps[index / 2 * 2].start_ns,
        _ => at_ns,
    }
}

/// The lowest level of the credits of all, of one.
fn credits(lanes: &[FluidVolume]) -> Option<f64> {
    lanes.iter().filter_map(FluidVolume::credits_ppm).min().map(|ppm| f64::from(ppm) / 1e6)
}

/// The load of an interval for each thousand of the recorded one.
fn factor_milli(step: &DemandStep, settings: &SumsSettings<'_>) -> u64 {
    let is_more = step.limit_reached && settings.arrivals != Arrivals::Evenly;
    if is_more { 2 * settings.growth_milli } else { settings.growth_milli }
}

/// Scales a load interval by interval. What is left of one is added to the next: intervals may be too short for one more I/O.
#[derive(Debug, Default)]
struct Scale {
    /// I/Os of reads, then of writes, thousandths.
    rest: [u64; 2],
}

impl Scale {
    /// The reads and writes that the next interval asks for.
    fn asked(&mut self, step: &DemandStep, settings: &SumsSettings<'_>) -> (FluidSum, FluidSum) {
        let factor = factor_milli(step, settings);
        let [reads, writes] = [(step.reads, 0), (step.writes, 1)].map(|(sum, direction)| {
            let rest = &mut self.rest[direction];
            let ops = u128::from(sum.ops) * u128::from(factor) + u128::from(*rest);
            *rest = (ops % 1000) as u64;
            part_of(sum, (ops / 1000) as u64, (factor, 1000))
        });
        if settings.all_reads { (writes, reads) } else { (reads, writes) }
    }
}

/// The parts of an interval, one after the other.
fn each_part(
    index: usize,
    demand: &LoadDemand,
    (reads, writes): (FluidSum, FluidSum),
    settings: &SumsSettings<'_>,
    pass: &mut dyn FnMut(&FluidStep),
) {
    let step = &demand.steps[index];
    let whole = FluidStep {
        length_ns: step.length_ns,
        reads,
        writes,
        is_at_once: false,
        is_sequential: demand.is_sequential.unwrap_or(settings.is_sequential),
    };
    match settings.arrivals {
        Arrivals::Evenly => pass(&whole),
        Arrivals::AtOnce => {
            let ops = reads.ops + writes.ops;
            // A known rate of the busiest second bounds how fast they came.
            let busy_ns = step.peak_ops_per_second.map(|peak| {
                let peak = (u128::from(peak) * u128::from(factor_milli(step, settings)) / 1000).max(1);
                ((u128::from(ops) * 1_000_000_000 / peak) as u64).min(step.length_ns)
            });
            let burst = FluidStep { length_ns: busy_ns.unwrap_or(0), is_at_once: busy_ns.is_none(), ..whole };
            let idle = FluidStep { length_ns: step.length_ns - burst.length_ns, ..FluidStep::default() };
            let is_last = index + 1 == demand.steps.len();
            let order = if index.is_multiple_of(2) && !is_last { [&idle, &burst] } else { [&burst, &idle] };
            order.into_iter().for_each(pass);
        }
        Arrivals::Shaped(shares) => {
            let total = shares.iter().sum::<u64>().max(1);
            let (mut sum, mut before) = (0, whole_at(&whole, 0, total));
            for (place, share) in shares.iter().enumerate() {
                sum += share;
                let until = whole_at(&whole, sum, total);
                let at =
                    |place: usize| (u128::from(step.length_ns) * place as u128 / shares.len() as u128) as u64;
                let part = |from: FluidSum, to: FluidSum| FluidSum {
                    ops: to.ops - from.ops,
                    bytes: to.bytes - from.bytes,
                };
                pass(&FluidStep {
                    length_ns: at(place + 1) - at(place),
                    reads: part(before.0, until.0),
                    writes: part(before.1, until.1),
                    is_at_once: true,
                    is_sequential: whole.is_sequential,
                });
                before = until;
            }
        }
    }
}

/// Reads and writes of `share` in `total` of a step.
fn whole_at(step: &FluidStep, share: u64, total: u64) -> (FluidSum, FluidSum) {
    let of = |count: u64| (u128::from(count) * u128::from(share) / u128::from(total)) as u64;
    let sum = |sum: FluidSum| part_of(sum, of(sum.ops), (share, total));
    (sum(step.reads), sum(step.writes))
}

/// So many I/Os like those of `sum`, a `share` of them. Their mean size is the same: bytes of a part of one more I/O would count as a
/// further unit of each.
fn part_of(sum: FluidSum, ops: u64, share: (u64, u64)) -> FluidSum {
    let (part, whole) = if sum.ops > 0 { (ops, sum.ops) } else { share };
    FluidSum { ops, bytes: (u128::from(sum.bytes) * u128::from(part) / u128::from(whole)) as u64 }
}

/// The latency of requests that no limit delays.
#[derive(Clone, Debug)]
struct ServiceTime {
    /// Upper end and middle of each part, ns.
    parts: Vec<(u64, u64)>,
    median_ns: u64,
    /// So long a wait hides the distribution.
    hidden_from_ns: u64,
}

impl ServiceTime {
    fn of(latency: &VolumeLatency, bytes: u64) -> ServiceTime {
        let transfer = latency.transfer.map_or(0, |rate| rate.time_for(bytes));
        let at = |per_million: u32| latency.quantile_ns(per_million).saturating_add(transfer);
        let part = |ends: &[u32]| (at(ends[1]), at(ends[0] + (ends[1] - ends[0]) / 2));
        ServiceTime {
            parts: PARTS.windows(2).map(part).collect(),
            median_ns: at(500_000),
            hidden_from_ns: at(999_000).saturating_mul(8),
        }
    }
}

/// Adds up what is served.
struct SumsTally {
    tally: Tally,
    /// Reads and writes that waited for nothing, in the current slice.
    at_rest: [u64; 2],
    service: [ServiceTime; 2],
    /// Added before counts are rounded down, millionths.
    rounding: u64,
}

const OPS: [Op; 2] = [Op::Read, Op::Write];

impl SumsTally {
    /// Begins an interval.
    fn begin(&mut self, start_ns: u64, asked: (FluidSum, FluidSum), credits: Option<f64>) {
        if start_ns >= self.tally.slice_end_ns() {
            self.flush();
            self.tally.reach(start_ns, || credits);
        }
        let (reads, writes) = asked;
        self.tally.arrive(Op::Read, reads);
        self.tally.arrive(Op::Write, writes);
    }

    fn take(&mut self, served: FluidServed) {
        let counts = [served.reads, served.writes];
        let (first, last) = (served.first_wait_ns, served.last_wait_ns);
        if first == 0 && last == 0 {
            self.at_rest.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            return;
        }
        let points = if first.abs_diff(last) > first.max(last) / 50 { POINTS } else { 1 };
        for (index, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let mut before = 0;
            for point in 0..points {
                let until = (u128::from(count) * u128::from(point + 1) / u128::from(points)) as u64;
                let place = 2 * i128::from(point) + 1;
                let change = (i128::from(last) - i128::from(first)) * place / (2 * i128::from(points));
                let wait = (i128::from(first) + change).max(0) as u64;
                self.add(index, until - before, wait);
                before = until;
            }
        }
    }

    /// Adds `count` requests that waited for `wait` ns.
    fn add(&mut self, index: usize, count: u64, wait: u64) {
        let service = &self.service[index];
        let lat = self.tally.latencies(OPS[index]);
        if wait >= service.hidden_from_ns {
            let ns = wait.saturating_add(service.median_ns);
            add_latencies(lat, count, ns, ns);
            return;
        }
        // Few requests are spread over the parts from one call to the next, by the golden ratio.
        self.rounding = (self.rounding + 618_034) % MILLION;
        let mut before = 0;
        for (end, &(upper, middle)) in PARTS[1..].iter().zip(&service.parts) {
            // So that a percentile lies in the part that ends there, not in the next.
            let end = u64::from(*end + 1).min(MILLION);
            let until = ((u128::from(count) * u128::from(end) + u128::from(self.rounding))
                / u128::from(MILLION)) as u64;
            add_latencies(lat, until - before, wait + upper, wait + middle);
            before = until;
        }
    }

    fn flush(&mut self) {
        for index in 0..2 {
            let count = std::mem::take(&mut self.at_rest[index]);
            if count > 0 {
                self.add(index, count, 0);
            }
        }
    }

    fn prediction(
        mut self,
        lanes: &[FluidVolume],
        demand: &LoadDemand,
        backlog_ns: u64,
        credits: Option<f64>,
    ) -> Prediction {
        self.flush();
        let known_ns = demand.known_ns();
        let elapsed = known_ns.saturating_add(backlog_ns).max(1);
        let (summary, above_objective_ns, slices) = self.tally.finish_at(demand.length_ns, elapsed, credits);
        let reports: Vec<FluidReport> = lanes.iter().flat_map(FluidVolume::reports).collect();
        let throttled = lanes.iter().map(FluidVolume::throttled_ns).max().unwrap_or(0);
        let lowest = reports.iter().filter_map(|report| report.lowest).min();
        Prediction {
            summary,
            served_share: known_ns as f64 / elapsed as f64,
            throttled_share: throttled as f64 / elapsed as f64,
            lowest_credits: lowest.map(|(ppm, at_ns)| LowestCredits { share: f64::from(ppm) / 1e6, at_ns }),
            exhausted_ns: reports.iter().filter_map(|report| report.exhausted_ns).min(),
            longest_queue: lanes.iter().map(FluidVolume::most_waiting).sum(),
            backlog_ns,
            above_objective_ns,
            causes: causes(&reports, elapsed),
            billed_transactions: u64::from(reports.iter().any(|report| report.is_billed)),
            slices,
            ..Prediction::default()
        }
    }
}

/// Why requests waited.
fn causes(reports: &[FluidReport], elapsed_ns: u64) -> Vec<ThrottleCause> {
    let mut causes: Vec<ThrottleCause> = Vec::new();
    for report in reports {
        let limit = match report.unit {
            FluidUnit::Ios => "IOPS",
            FluidUnit::Bytes => "bandwidth",
            FluidUnit::Servers => "parallelism",
        };
        let at_baseline = report.throttled_at_baseline_ns;
        for (ns, is_at_baseline) in [(report.throttled_ns - at_baseline, false), (at_baseline, true)] {
            let share = ns as f64 / elapsed_ns as f64;
            if share >= MIN_SHARE {
                causes.push(ThrottleCause { owner: report.stage.clone(), limit, is_at_baseline, share });
            }
        }
    }
    causes.sort_by(|one, other| other.share.total_cmp(&one.share));
    causes
}

#[cfg(test)]
#[path = "sums_tests.rs"]
mod tests;
