//! From the record of an identification to a twin.

use fathom_record::{JobRecord, Latency, RunRecord, TestRecord};
use fathom_stats::histogram;
use fathom_stats::sample::upper_median;

use super::measured::{LoadMeasurement, LoadMeasurements, RATE_WITHIN};
use super::probe::{LatencyProbe, ProbedLoad, REACHED, probes};
use super::{SCHEMA, Twin, TwinBurst, TwinLatency, TwinLimit, TwinOp, TwinRate, TwinSource};
use crate::findings::client::run_queue_wait_share;
use crate::identified::{BucketUnit, Burst, Figure, Identified, IoScope};
use crate::identify::probe::IoDirection;
use crate::identify::script::{IdentifySpec, identified_of};
use crate::identify::series::length_s;

/// Time whose I/Os a limiter admits at once that does not release them in turns, ns.
const USUAL_TURN_NS: u64 = 10_000_000;
/// A rate within this share of a limit, burst or sustained, is that of the limit.
const NEAR: f64 = 1.07;
/// A rate below this share of that of a lower depth fell meanwhile.
const FALLEN: f64 = 0.7;
/// Latencies that make a distribution.
const MIN_SAMPLES: u64 = 100;
/// Parts of a million between two quantiles: below the slowest hundredth, and in it.
const STEP: u32 = 1_000;
const STEP_OF_SLOWEST: u32 = 100;
const SLOWEST: u32 = 990_000;
const MILLION: u32 = 1_000_000;

impl Twin {
    /// The twin of the volume that `run` identified and whose latencies it measured.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of(run: &RunRecord) -> Result<Twin, String> {
        let (found, spec) =
            identified_of(run).zip(IdentifySpec::of(run)).ok_or("the run identified nothing")?;
        let mut twin = Twin::limited_by(&found, &run.tests);
        // A test file is a part of the volume.
        let filesystem = run.header.conditions.target.filesystem.as_ref();
        let of_directory = filesystem.filter(|_| run.header.conditions.target.kind == "directory");
        twin.size_bytes = of_directory.map_or(spec.size, |filesystem| filesystem.total_bytes.max(spec.size));
        twin.source = source(run);
        for probe in probes(&found, &spec.limits, &run.tests) {
            if probe.repeat > 0 {
                continue;
            }
            match LoadMeasurements::of(&probe, &run.tests) {
                Some(measured) => twin.add(&probe, &measured, rate_of_lower_depths(&probe, &run.tests)),
                None => twin.notes.push(format!("{} were not measured", probe.title())),
            }
        }
        if twin.tables(TwinOp::Read, false).is_empty() {
            return Err("no unloaded latency was measured".to_owned());
        }
        let waited = run.tests.iter().filter(|test| test.id.starts_with("twin-")).flat_map(|test| &test.jobs);
        let waited = waited.map(run_queue_wait_share).fold(0.0, f64::max);
        if waited > RATE_WITHIN {
            let percent = waited * 100.0;
            twin.notes.push(format!(
                "fathom waited for a CPU for up to {percent:.0} % of the time in which latencies were measured: they are too long; \
                 identify the volume again while the machine is idle"
            ));
        }
        twin.notes.extend(found.confounders.iter().map(|cause| cause.text.clone()));
        if !spec.limits.writes {
            twin.notes.push("writes were not measured: they behave like reads".to_owned());
        }
        Ok(twin)
    }

    /// The limits that were `found`, and the turns in which they admit I/Os as far as `tests` show them.
    pub(super) fn limited_by(found: &Identified, tests: &[TestRecord]) -> Twin {
        let mut twin = Twin {
            schema: SCHEMA.to_owned(),
            io_unit_bytes: found.io_unit_bytes.value().map(|bytes| bytes as u64).filter(|bytes| *bytes > 0),
            turn_ns: USUAL_TURN_NS,
            ..Twin::default()
        };
        let has_writes = found.iops.write.is_some() || found.bytes_per_second.write.is_some();
        let scopes = match found.shares_limits {
            Some(true) => &[(IoScope::Both, IoDirection::Read)][..],
            _ if !has_writes => &[(IoScope::Both, IoDirection::Read)],
            _ => &[(IoScope::Reads, IoDirection::Read), (IoScope::Writes, IoDirection::Write)],
        };
        for &(scope, way) in scopes {
            let writes = way == IoDirection::Write;
            let mut rate = |unit: BucketUnit| {
                let figures = match unit {
                    BucketUnit::Ios => &found.iops,
                    BucketUnit::Bytes => &found.bytes_per_second,
                };
                let peak = figures.of(writes).and_then(Figure::value);
                let is_its = |burst: &&Burst| burst.unit == unit && burst.scope.counts(writes);
                match found.bursts.iter().find(is_its) {
                    None => peak.map(|value| TwinRate { baseline: whole(value), burst: None }),
                    Some(burst) => twin.bursting(burst, peak, way),
                }
            };
            let (iops, bytes_per_second) = (rate(BucketUnit::Ios), rate(BucketUnit::Bytes));
            let limit = TwinLimit { scope, iops, bytes_per_second };
            for (missing, what) in [(limit.iops, "IOPS"), (limit.bytes_per_second, "bandwidth")] {
                if missing.is_none() {
                    let of = if scope == IoScope::Both { "" } else { way.name() };
                    twin.notes.push(format!("no {of} {what} limit is known").replace("  ", " "));
                }
            }
            if limit.iops.is_some() || limit.bytes_per_second.is_some() {
                twin.limits.push(limit);
            }
        }
        if has_writes && found.shares_limits.is_none() {
            twin.notes
                .push("whether reads and writes share limits is unknown: they have separate ones".to_owned());
        }
        twin.parallelism = found.parallelism.value().map(|count| count as u32).filter(|count| *count > 0);
        if let Some(turn_s) = twin.turn_s(tests) {
            twin.turn_ns = (turn_s * 1e9) as u64;
        }
        twin
    }

    /// The rate of a limit with `burst`. Where its burst rate is unknown, another limit is reached before it; where its capacity is, it does
    /// not burst. `None` without a baseline.
    fn bursting(&mut self, burst: &Burst, peak: Option<f64>, way: IoDirection) -> Option<TwinRate> {
        let baseline = whole(burst.baseline_rate.value()?);
        let Some(capacity) = burst.capacity.value().map(whole) else {
            self.notes.push(format!("the burst credits of {}s are unknown: none", way.name()));
            return Some(TwinRate { baseline, burst: None });
        };
        let rate = burst.burst_rate.value().or(peak).map(whole).filter(|rate| *rate > baseline);
        Some(TwinRate { baseline, burst: Some(TwinBurst { rate, capacity }) })
    }

    /// The length of a turn, s: the median of those that the latencies at limits show.
    fn turn_s(&self, tests: &[TestRecord]) -> Option<f64> {
        let of = |test: &TestRecord| -> Option<f64> {
            let probe = LatencyProbe::of_full_load(&test.id)?;
            let moments = &latency_of(test.jobs.first()?, probe.way).moments;
            let is_limited = self.state_at(&probe, rate_of(test, probe.way)?) == ReachedLimit::Limited;
            let turn = length_s((moments.mean(), moments.stdev()), moments.min as f64);
            (is_limited && turn > 0.0).then_some(turn)
        };
        upper_median(tests.iter().filter_map(of))
    }

    /// True where `probe` reached a limit in `tests`.
    pub(super) fn is_limited_in(&self, probe: &LatencyProbe, tests: &[TestRecord]) -> bool {
        let measured = LoadMeasurements::of(probe, tests);
        measured.is_some_and(|all| self.state_at(probe, all.one.iops) == ReachedLimit::Limited)
    }

    /// Adds what was `measured`; `slower_depths` is the highest rate of a lower depth.
    fn add(&mut self, probe: &LatencyProbe, measured: &LoadMeasurements, slower_depths: f64) {
        let LoadMeasurement { iops, latency, .. } = &measured.one;
        let op = if probe.load == ProbedLoad::Synced { TwinOp::Sync } else { probe.way.into() };
        let load = match probe.load {
            ProbedLoad::Full if *iops < FALLEN * slower_depths => ReachedLimit::Changed,
            ProbedLoad::Full => self.state_at(probe, *iops),
            _ => ReachedLimit::AtRest,
        };
        if !measured.agree {
            self.notes.push(format!("{} differed from one measurement to the next", probe.title()));
        }
        let count = latency.moments.count;
        if count < MIN_SAMPLES || load == ReachedLimit::Changed {
            let why =
                if count < MIN_SAMPLES { format!("only {count}") } else { "the rate changed".to_owned() };
            self.notes.push(format!("{} are not known: {why}", probe.title()));
            return;
        }
        self.latencies.push(TwinLatency {
            op,
            is_limited: load == ReachedLimit::Limited,
            block_bytes: u32::try_from(probe.block_bytes).unwrap_or(u32::MAX),
            depth: probe.depth,
            quantiles: quantiles(latency),
        });
    }

    /// What a full load at `rate` requests a second has reached.
    fn state_at(&self, probe: &LatencyProbe, rate: f64) -> ReachedLimit {
        let limits = self.limits_of(probe.way, probe.block_bytes);
        let is_near = |limit: &f64| (REACHED..NEAR).contains(&(rate / limit));
        match (limits.iter().any(is_near), limits.last()) {
            (true, _) => ReachedLimit::Limited,
            (_, Some(sustained)) if rate > *sustained => ReachedLimit::Changed,
            _ => ReachedLimit::AtRest,
        }
    }
}

/// Whether a full load reached a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReachedLimit {
    AtRest,
    Limited,
    /// It is at no limit and above a sustained rate, or below the rate of a lower depth: the rate changed meanwhile.
    Changed,
}

fn whole(value: f64) -> u64 {
    (value.round() as u64).max(1)
}

fn source(run: &RunRecord) -> TwinSource {
    let target = &run.header.conditions.target;
    let device = target.devices.last();
    TwinSource {
        target: run.header.target.clone(),
        device: device.map_or_else(String::new, |device| {
            format!("{} {} {}", device.name, device.model, device.serial)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        }),
        identified_unix_ms: run.header.started_unix_ms,
        version: run.header.tool_version.clone(),
    }
}

pub(super) fn rate_of(test: &TestRecord, way: IoDirection) -> Option<f64> {
    let measured = &test.jobs.first()?.measured;
    let ios = if way == IoDirection::Write { measured.write.ios } else { measured.read.ios };
    let ns = measured.elapsed_ns();
    (ns > 0).then(|| ios as f64 * 1e9 / ns as f64)
}

/// The highest rate of full loads of `probe`'s size at lower depths; 0 where there is none.
fn rate_of_lower_depths(probe: &LatencyProbe, tests: &[TestRecord]) -> f64 {
    let of = |test: &TestRecord| -> Option<f64> {
        let other = LatencyProbe::of_full_load(&test.id)?;
        let is_lower =
            (other.way, other.block_bytes) == (probe.way, probe.block_bytes) && other.depth < probe.depth;
        rate_of(test, probe.way).filter(|_| is_lower)
    };
    tests.iter().filter_map(of).fold(0.0, f64::max)
}

/// Total latencies of one direction.
pub(super) fn latency_of(job: &JobRecord, way: IoDirection) -> &Latency {
    if way == IoDirection::Write { &job.measured.write.lat } else { &job.measured.read.lat }
}

/// The quantiles of `latency`: the middles of its bins, moved so that their mean is the exact one. Bins with few latencies are taken
/// together.
fn quantiles(latency: &Latency) -> Vec<(u32, u64)> {
    let moments = &latency.moments;
    let middle = |bin: usize| histogram::midpoint(bin).clamp(moments.min, moments.max.max(moments.min));
    let samples = latency.histogram.samples().max(1);
    let part = |count: u64| (u128::from(count) * u128::from(MILLION) / u128::from(samples)) as u32;
    let (mut points, mut counted, mut from) = (Vec::<(u32, u64)>::new(), 0, None);
    let mut bins = latency.histogram.sparse().peekable();
    while let Some((bin, count)) = bins.next() {
        let &mut (begin, first) = from.get_or_insert((part(counted), bin));
        counted += count;
        let end = part(counted);
        let step = if begin >= SLOWEST { STEP_OF_SLOWEST } else { STEP };
        let goes_on = bins.peek().is_some_and(|(next, _)| *next == bin + 1);
        if goes_on && end < begin + step || end <= begin + 1 && end < MILLION {
            continue;
        }
        let begin = if begin == 0 { 0 } else { begin + 1 };
        if begin < end {
            points.push((begin, middle(first)));
        } else if points.last().is_some_and(|last| last.0 >= end) {
            // Less than a millionth.
            points.pop();
        }
        points.push((end, middle(bin)));
        from = None;
    }
    if let Some(last) = points.last_mut() {
        last.0 = MILLION;
    }
    let mean = mean_of(&points);
    let factor = if mean > 0.0 { moments.mean() / mean } else { 1.0 };
    points.into_iter().map(|(part, ns)| (part, (ns as f64 * factor).round() as u64)).collect()
}

/// The mean of a distribution that is linear between its quantiles.
fn mean_of(points: &[(u32, u64)]) -> f64 {
    let area = |pair: &[(u32, u64)]| f64::from(pair[1].0 - pair[0].0) * (pair[0].1 as f64 + pair[1].1 as f64);
    points.windows(2).map(area).sum::<f64>() / (2.0 * f64::from(MILLION))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identified::{EachWay, Figure, IoScope};

    fn latency(values: impl IntoIterator<Item = u64>) -> Latency {
        let mut latency = Latency::default();
        values.into_iter().for_each(|ns| latency.record(ns));
        latency
    }

    /// What a volume that draws evenly from the quantiles makes of them.
    fn drawn(points: &[(u32, u64)]) -> Latency {
        latency((0..MILLION).step_by(3).map(|at| {
            let upper = points.partition_point(|point| point.0 < at).clamp(1, points.len() - 1);
            let (from, to) = (points[upper - 1], points[upper]);
            let share = f64::from(at.saturating_sub(from.0)) / f64::from(to.0 - from.0);
            from.1 + ((to.1 - from.1) as f64 * share) as u64
        }))
    }

    #[test]
    fn a_bucket_of_which_a_part_is_unknown_keeps_its_baseline() {
        let known = |value: f64| Figure::known(value, value, value);
        let check = |rate: Figure, capacity: Figure, expected: Option<TwinBurst>| {
            let burst = Burst {
                unit: BucketUnit::Ios,
                scope: IoScope::Both,
                burst_rate: rate,
                baseline_rate: known(300.0),
                capacity,
                refill_rate: Figure::default(),
                seconds_to_empty: Figure::default(),
                seconds_to_refill: Figure::default(),
            };
            let figures = EachWay { read: Some(Figure::unknown("another limit")), write: None };
            let found = Identified { iops: figures, bursts: vec![burst], ..Identified::default() };
            let twin = Twin::limited_by(&found, &[]);
            assert_eq!(twin.limits[0].iops, Some(TwinRate { baseline: 300, burst: expected }));
        };
        let burst = |rate| Some(TwinBurst { rate, capacity: 54_000 });
        check(known(3000.0), known(54_000.0), burst(Some(3000)));
        check(Figure::unknown("another limit"), known(54_000.0), burst(None));
        check(known(3000.0), Figure::unknown("not refilled"), None);
    }

    #[test]
    fn quantiles_have_the_distribution_and_its_exact_mean() {
        let check = |values: Vec<u64>| {
            let measured = latency(values);
            let points = quantiles(&measured);
            assert_eq!((points[0].0, points[points.len() - 1].0), (0, MILLION));
            let is_rising = |pair: &[(u32, u64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
            assert!(points.windows(2).all(is_rising), "{points:?}");
            let again = drawn(&points);
            let mean = again.moments.mean() / measured.moments.mean();
            assert!((mean - 1.0).abs() < 0.002, "{mean}");
            let apart = crate::twin::agreement::distance(&measured.histogram, &again.histogram).unwrap();
            assert!(apart < 0.01, "{apart}: {points:?}");
        };
        check((0..5000).map(|at| 100_000 + at * 20).collect());
        // Nearly constant, which a bin is wider than.
        check((0..5000).map(|at| 64_000_000 + at * 10).collect());
        check(vec![1_000_000; 400]);
        // Turns of a limiter, and a few that take much longer.
        check((0..5000).map(|at| if at % 3 == 0 { 60_000 + at } else { 96_000_000 + 1000 * at }).collect());
        check((0..5000).map(|at| if at > 4990 { 900_000_000 } else { 80_000 + 3 * at }).collect());
        // One of two millions, which is less than a part.
        check((0..2_000_000).map(|at| if at == 7 { 900_000 } else { 80_000 }).collect());
        check((0..2_000_000).map(|at| if at < 3 { 90_000 * (at + 1) } else { 80_000 + at % 900 }).collect());
    }
}
