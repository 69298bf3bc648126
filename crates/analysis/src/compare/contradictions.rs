//! Figures of one source that cannot all be right, and figures of several that tell of one limit.

use fathom_model::{Nanos, units};
use fathom_record::import::{Figure as ImportedFigure, FigureBound, StatedFigure};
use fathom_record::{LatencySummary, OpSummary, RunRecord};
use serde::Serialize;

use super::figure::Figure;
use super::rows::{ComparedRow, RunTest, own_rows};
use super::source::{LABELS, SourceKind};
use super::work::Work;
use crate::criterion::{Metric, MetricDirection, MetricKind};
use crate::plateau::AGREE;
use crate::say::{count, mebibytes, percent};

/// A contradiction or a coincidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contradiction {
    /// What it is.
    pub kind: ContradictionKind,
    /// The sources, by their letters.
    pub sources: Vec<&'static str>,
    /// The tests; the claim is about the last.
    pub tests: Vec<String>,
    /// What is said of it.
    pub claim: String,
}

impl Contradiction {
    /// Within a source, which is named together with the test.
    fn of_source(mut self, source: usize) -> Contradiction {
        let test = self.tests.last().map(|test| format!(", {test}")).unwrap_or_default();
        self.claim = format!("{}{test}: {}", LABELS[source], self.claim);
        self.sources = vec![LABELS[source]];
        self
    }
}

/// The kinds of contradictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContradictionKind {
    /// Rate and latency against the queue depth.
    Little,
    /// Rate times block size against bandwidth.
    RateAndBandwidth,
    /// Bytes over runtime against bandwidth.
    BytesAndRuntime,
    /// Percentiles out of order.
    Percentiles,
    /// The latency of one test against the rate of another with one request at a time.
    LatencyAndRate,
    /// A sequential read faster than the fastest place of the volume.
    FasterThanMaximum,
    /// What a text states against what it measured.
    Stated,
    /// Two volumes of the same bandwidth whose small I/Os differ.
    SharedLimit,
}

/// All of them: within each run, then between the tests of each source, then between pairs of sources.
pub fn contradictions(rows: &[ComparedRow]) -> Vec<Contradiction> {
    let kinds = rows.first().map_or(&[][..], |row| &row.kinds);
    let mut found = Vec::new();
    for row in rows {
        let sources = 0..row.runs.len();
        found.extend(sources.flat_map(|source| within(row, source).map(move |one| one.of_source(source))));
    }
    for source in 0..kinds.len() {
        found.extend(between(rows, source).into_iter().map(|one| one.of_source(source)));
    }
    for one in 0..kinds.len() {
        // Models have nothing in common that they could share.
        let is_real = |source: &usize| kinds[*source] != SourceKind::Simulated;
        let pairs = (one + 1..kinds.len()).map(|other| [one, other]).filter(|pair| pair.iter().all(is_real));
        found.extend(pairs.filter_map(|pair| shared_limit(rows, pair)));
    }
    found
}

/// Those within one run, without the name of a source.
pub fn contradictions_of(record: &RunRecord) -> Vec<Contradiction> {
    let rows = own_rows(record);
    rows.iter().flat_map(|row| within(row, 0)).chain(between(&rows, 0)).collect()
}

/// Rates differ by at least this where no common limit holds them.
const APART: f64 = 0.10;
/// Tests in which rates have to agree before they tell of a common limit.
const MIN_TESTS: usize = 2;
/// Requests from here on are held by limits on bandwidth.
const LARGE_BLOCK: f64 = 65_536.0;
/// The same requests are at most so many times faster in another test.
const SAME_PATH: f64 = 2.0;
/// A test of a file is at most so many times faster than the fastest place of the volume.
const SAME_SURFACE: f64 = 1.5;

/// Within the runs of one test of a source.
fn within(row: &ComparedRow, source: usize) -> impl Iterator<Item = Contradiction> {
    let runs = row.runs[source].iter().filter(|run| run.is_usable());
    let of_run =
        runs.flat_map(|run| contradictions_within(run).into_iter().chain(contradicted_statements(run)));
    of_run.map(|(kind, claim)| Contradiction {
        kind,
        sources: Vec::new(),
        tests: vec![row.test.clone()],
        claim,
    })
}

/// Between the tests of one source.
fn between(rows: &[ComparedRow], source: usize) -> Vec<Contradiction> {
    let tests = rows.iter().filter_map(|row| Some((row, row.usable(source).next()?)));
    let tests: Vec<(&ComparedRow, &RunTest)> = tests.collect();
    let firsts = tests.iter().filter(|(_, run)| latency_alone(run).is_some() || fastest_place(run).is_some());
    let pairs = firsts.flat_map(|one| tests.iter().map(move |other| [*one, *other]));
    let found = pairs.filter(|[one, other]| !std::ptr::eq(one.0, other.0)).filter_map(|pair| {
        let (kind, claim) = latency_and_rate(pair).or_else(|| faster_than_maximum(pair))?;
        let tests = pair.map(|(row, _)| row.test.clone()).to_vec();
        Some(Contradiction { kind, sources: Vec::new(), tests, claim })
    });
    found.collect()
}

type TestPair<'a> = [(&'a ComparedRow, &'a RunTest); 2];

/// True of one random request at a time.
fn is_single(run: &RunTest) -> bool {
    let is_random = run.work.operation.as_ref().is_some_and(|operation| operation.starts_with("rand"));
    is_random && run.work.iodepth == Some(1) && run.work.jobs.unwrap_or(1) == 1
}

/// A mean latency that is stated without a rate, ns.
fn latency_alone(run: &RunTest) -> Option<f64> {
    let total = run.summary.total.as_ref()?;
    total.lat_ns.mean.or(total.clat_ns.mean).filter(|_| total.iops == 0.0)
}

/// The rate of the fastest place, bytes per second.
fn fastest_place(run: &RunTest) -> Option<f64> {
    let windows = run.imported.as_ref()?.entries.first()?.read.as_ref()?.bandwidth_windows.as_ref()?;
    windows.max.map(|max| max.value)
}

/// A latency of single requests, stated without a rate, against the rate of single requests of another test. Larger I/Os may take
/// longer in proportion to their size.
fn latency_and_rate([(one, first), (other, second)]: TestPair<'_>) -> Option<(ContradictionKind, String)> {
    if !is_single(first) || !is_single(second) || first.work.operation != second.work.operation {
        return None;
    }
    let (mean, rate) = (latency_alone(first)?, second.summary.total.clone()?);
    let possible = 1e9 / mean;
    let larger = block_bytes(first).zip(block_bytes(second)).map(|(first, second)| (first / second).max(1.0));
    (rate.iops > possible * larger.unwrap_or(1.0) * SAME_PATH).then(|| {
        let cause = match larger {
            Some(_) => " A cache or a small test file answered one of them".to_owned(),
            None => unknown_cause(
                [(one, first), (other, second)],
                |run| block_bytes(run).is_none().then_some("block size"),
                "larger I/Os, a small test file or a cache",
                "block size and range",
            ),
        };
        let claim = format!(
            "{} IOPS with one request at a time exceed the {} that the latency of {} in {} allows.{cause}",
            count(rate.iops),
            count(possible),
            units::latency(mean.round() as u64),
            one.test,
        );
        (ContradictionKind::LatencyAndRate, claim)
    })
}

/// A sequential read faster than the fastest place of the volume in another sequential read. At the latency of that place the rate
/// grows in proportion to the bytes in flight (Little), so only what is beyond that tells of a cache or a burst.
fn faster_than_maximum([(one, first), (other, second)]: TestPair<'_>) -> Option<(ContradictionKind, String)> {
    let is_read = |run: &RunTest| run.work.operation.as_deref() == Some("read");
    if !is_read(first) || !is_read(second) {
        return None;
    }
    let most = fastest_place(first)?;
    let rate = second.summary.read.as_ref()?.bytes_per_second;
    let more =
        bytes_in_flight(first).zip(bytes_in_flight(second)).map(|(first, second)| (second / first).max(1.0));
    (most > 0.0 && rate > most * more.unwrap_or(1.0) * SAME_SURFACE).then(|| {
        let cause = match more {
            Some(_) => " A cache, or a burst, answered it".to_owned(),
            None => unknown_cause(
                [(one, first), (other, second)],
                |run| match (block_bytes(run), run.work.iodepth, run.work.cache_mode.as_deref()) {
                    (None, ..) => Some("block size"),
                    (_, None, _) => Some("queue depth"),
                    (.., Some("direct")) => None,
                    _ => Some("readahead"),
                },
                "more bytes in flight, readahead, a cache or a burst",
                "block size and queue depth, with direct I/O",
            ),
        };
        let claim = format!(
            "{} is more than {}, the maximum of {}.{cause}",
            mebibytes(rate),
            mebibytes(most),
            one.test
        );
        (ContradictionKind::FasterThanMaximum, claim)
    })
}

/// That the cause is unknown, since a condition of one of the tests is, with the candidates and the test that would decide.
fn unknown_cause(
    tests: TestPair<'_>,
    lacks: impl Fn(&RunTest) -> Option<&'static str>,
    candidates: &str,
    alike: &str,
) -> String {
    let lacking = tests.iter().find_map(|(row, run)| Some(format!("{} of {}", lacks(run)?, row.test)));
    let lacking = lacking.unwrap_or_default();
    format!(
        " The {lacking} is unknown, so the cause may be {candidates}. To decide, run both with the same {alike}"
    )
}

/// Bytes of each request; `None` where they differ, or the source does not say.
fn block_bytes(run: &RunTest) -> Option<f64> {
    units::parse_bytes(run.work.block_size.as_deref()?).ok().map(|bytes| bytes as f64)
}

/// Bytes in flight; `None` where they are unknown, as they are behind a readahead.
fn bytes_in_flight(run: &RunTest) -> Option<f64> {
    let jobs = run.work.jobs.unwrap_or(1);
    let requests = f64::from(run.work.iodepth? * jobs);
    (run.work.cache_mode.as_deref() == Some("direct")).then_some(block_bytes(run)? * requests)
}

/// How a test tells of a shared limit.
enum Evidence {
    /// The same bandwidth of large or sequential I/Os.
    Same(f64),
    /// Other rates of small ones.
    Apart,
}

/// Sources whose bandwidths agree in several tests of large blocks although their small I/Os do not: one limit holds both.
fn shared_limit(rows: &[ComparedRow], [one, other]: [usize; 2]) -> Option<Contradiction> {
    let (mut agree, mut apart, mut rates, mut is_single) = (Vec::new(), 0, Vec::new(), true);
    for row in rows.iter().filter(|row| row.is_comparable(one, other)) {
        let Some((first, second)) = row.usable(one).next().zip(row.usable(other).next()) else { continue };
        match evidence(first, second) {
            Some(Evidence::Same(rate)) => {
                agree.push(row.test.clone());
                rates.push(rate);
                is_single &= first.work.iodepth.is_none_or(|depth| depth == 1);
            }
            Some(Evidence::Apart) => apart += 1,
            None => {}
        }
    }
    if agree.len() < MIN_TESTS || apart == 0 {
        return None;
    }
    let (least, most) = rates
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
    let at =
        if most <= least * (1.0 + APART) { format!(" at about {}", mebibytes(most)) } else { String::new() };
    let alone = if is_single { ", or the latency of one request at a time" } else { "" };
    Some(Contradiction {
        kind: ContradictionKind::SharedLimit,
        sources: vec![LABELS[one], LABELS[other]],
        claim: format!(
            "{} and {} have the same bandwidth within {:.0} % in {}{at}, although their small I/Os differ: one limit, of the \
             instance or of both types{alone}, holds both",
            LABELS[one],
            LABELS[other],
            AGREE * 100.0,
            agree.join(" and ")
        ),
        tests: agree,
    })
}

fn evidence(first: &RunTest, second: &RunTest) -> Option<Evidence> {
    let (one, other) = (first.summary.total.as_ref()?, second.summary.total.as_ref()?);
    let log = |one: f64, other: f64| (one > 0.0 && other > 0.0).then(|| (other / one).ln().abs());
    match is_large(first)? {
        true => log(one.bytes_per_second, other.bytes_per_second)
            .filter(|log| *log <= AGREE)
            .map(|_| Evidence::Same(one.bytes_per_second)),
        // A single request at a time meets a latency, not a limit.
        false => log(one.iops, other.iops)
            .filter(|log| *log > APART && first.work.iodepth != Some(1))
            .map(|_| Evidence::Apart),
    }
}

/// Whether a limit on bandwidth holds the I/Os of a test; `None` where neither their size nor their order is known.
fn is_large(run: &RunTest) -> Option<bool> {
    let total = run.summary.total.as_ref()?;
    if total.ios > 0 && total.bytes > 0 {
        return Some(total.bytes as f64 / total.ios as f64 >= LARGE_BLOCK);
    }
    block_bytes(run).map(|size| size >= LARGE_BLOCK).or_else(|| {
        // Sequential I/Os are merged, or made large enough.
        let operation = run.work.operation.as_deref()?;
        (!operation.starts_with("rand")).then_some(true)
    })
}

/// Statements are rounded.
const ROUNDING: f64 = 0.02;
/// Factors between units that are taken for one another.
const UNIT_FACTORS: [f64; 3] = [1e3, 1e6, 1024.0];

/// The statements that contradict the output.
fn contradicted_statements(run: &RunTest) -> Vec<(ContradictionKind, String)> {
    let stated = run.imported.iter().flat_map(|imported| &imported.stated);
    stated.filter_map(|stated| Some((ContradictionKind::Stated, contradicted(run, stated)?))).collect()
}

/// A whole number from here on that is stated with all its digits was copied, not rounded.
const FULL_DIGITS: f64 = 10_000.0;

fn contradicted(run: &RunTest, stated: &StatedFigure) -> Option<String> {
    let metric = Metric::parse(&stated.figure);
    let measured = measured(run, metric, &stated.figure)?;
    if stated.value.agrees_with(measured) || stated.value.value <= 0.0 || measured.value <= 0.0 {
        return None;
    }
    let factor = measured.value / stated.value.value;
    // A rounded statement is right; one with all its digits was to be the same.
    let is_count = metric.is_some_and(|metric| metric.kind == MetricKind::Iops);
    let has_all_digits =
        is_count && stated.value.resolution <= measured.resolution && measured.value >= FULL_DIGITS;
    let is_rounded = factor.ln().abs() <= ROUNDING && !stated.text.starts_with('~');
    if is_rounded && !has_all_digits
        || is_round(stated.value.value, measured.value)
        || is_about(stated, measured.value)
    {
        return None;
    }
    let apart = factor.max(1.0 / factor);
    let is_unit = UNIT_FACTORS.iter().any(|unit| (apart / unit).ln().abs() <= ROUNDING);
    let why = match is_unit {
        true => format!(", {} times as {}: the unit of the statement is wrong", count(apart), word(factor)),
        false => String::new(),
    };
    let (label, value) = match metric {
        Some(metric) => {
            let figure = Figure::Metric(metric);
            (figure.label(), figure.quantity(measured.value))
        }
        None => {
            let name = stated.figure.rsplit('.').next().unwrap_or_default().trim_end_matches("_ns");
            (name.to_owned(), units::duration(Nanos(measured.value.round() as u64)))
        }
    };
    let is_bound = stated.value.bound.prefix();
    Some(format!(
        "the text states {is_bound}{} as {label} ({}), and the output has {value}{why}",
        stated.text,
        stated.kind.name()
    ))
}

/// A round statement may be so far from what was measured.
const ROUND: f64 = 0.10;

/// True of what the measured figure rounds to: the zeros at the end of `7000` or `30 s` are not meant to be exact. `7000` has one
/// digit that is, `25000` two.
fn is_round(stated: f64, measured: f64) -> bool {
    let is_multiple = |unit: f64| (stated / unit - (stated / unit).round()).abs() < 1e-6;
    let digit = 10f64.powf(stated.log10().floor());
    let unit = if is_multiple(digit) { digit } else { digit / 10.0 };
    is_multiple(unit) && (measured - stated).abs() <= (unit / 2.0).min(ROUND * stated)
}

/// True of what is said to be about right, to one of its last digit: `~30 s` of 24 s.
fn is_about(stated: &StatedFigure, measured: f64) -> bool {
    stated.text.starts_with('~') && (measured - stated.value.value).abs() <= 2.0 * stated.value.resolution
}

fn word(factor: f64) -> &'static str {
    if factor > 1.0 { "much" } else { "little" }
}

/// The figure of the output: a metric, or any other by its name.
fn measured(run: &RunTest, metric: Option<Metric>, name: &str) -> Option<ImportedFigure<f64>> {
    let imported = run.imported.as_ref()?;
    match metric {
        Some(metric) => imported.figure(metric),
        None => imported.figures().into_iter().find(|found| found.name == name).map(|found| found.figure),
    }
}

/// Printed figures are rounded, and a run ends with what is in flight.
const PRINT_ROUNDING: f64 = 0.05;
/// A mean number of outstanding I/Os above the depth by more than this is impossible.
const LITTLE: f64 = 0.10;
/// A job that only does I/O spends at least this share of its time waiting for it.
const IDLE: f64 = 0.10;
/// The same of a job that may have waited, as far as its source says.
const LONG_IDLE: f64 = 0.01;

/// What contradicts itself in one run of a test.
fn contradictions_within(run: &RunTest) -> Vec<(ContradictionKind, String)> {
    if run.hosts > 1 {
        // Their counters are those of all the time, their rates those of the time they have in common.
        return Vec::new();
    }
    let mut found = Vec::new();
    let summary = &run.summary;
    let directions = [
        ("reads", MetricDirection::Read, &summary.read),
        ("writes", MetricDirection::Write, &summary.write),
        ("trims", MetricDirection::Trim, &summary.trim),
    ];
    let is_told_apart = directions.iter().any(|(_, _, op)| op.is_some());
    let total = (!is_told_apart).then_some(("I/Os", MetricDirection::Total, &summary.total));
    let mut outstanding = 0.0;
    for (name, direction, op) in directions.into_iter().chain(total) {
        let Some(op) = op else { continue };
        found.extend(rate_and_bandwidth(run, name, direction, op));
        found.extend(bytes_and_runtime(summary.measured_ns, name, op));
        found.extend(disordered(name, latency(op)));
        outstanding += op.iops * latency(op).mean.unwrap_or(0.0) / 1e9;
    }
    found.extend(little(run, outstanding));
    found
}

/// Rate times latency against the number of I/Os that the jobs can and do keep outstanding (Little's law).
fn little(run: &RunTest, outstanding: f64) -> Option<(ContradictionKind, String)> {
    let Work { iodepth, jobs, sync, rate, .. } = &run.work;
    // A source that names no jobs has one.
    let depth = iodepth.map(|depth| f64::from(depth) * f64::from(jobs.unwrap_or(1)));
    let iops = count(run.summary.total.as_ref().map_or(0.0, |total| total.iops));
    let at = format!("{iops} IOPS at the stated mean latency");
    if let Some(depth) = depth.filter(|depth| outstanding > depth * (1.0 + LITTLE) + 0.05) {
        let text =
            format!("{at} take {} outstanding I/Os, and the test has {}", count(outstanding), count(depth));
        return Some((ContradictionKind::Little, text));
    }
    // A job that neither waits nor syncs has an I/O outstanding nearly all the time.
    let waits = [sync, rate].map(|part| part.as_deref().map(|part| part != "none"));
    let least = match waits {
        [Some(false), Some(false)] => IDLE,
        [Some(true), _] | [_, Some(true)] => return None,
        _ => LONG_IDLE,
    };
    let jobs = f64::from(jobs.unwrap_or(1));
    (outstanding > 0.0 && outstanding < jobs * least).then(|| {
        let share = percent(outstanding / jobs);
        (
            ContradictionKind::Little,
            format!("{at} keep the device busy for {share} of the time: rate and latency do not go together"),
        )
    })
}

fn latency(op: &OpSummary) -> &LatencySummary {
    if op.lat_ns.mean.is_some() { &op.lat_ns } else { &op.clat_ns }
}

/// The rate times the block size against the bandwidth, beyond the resolution of both.
fn rate_and_bandwidth(
    run: &RunTest,
    name: &str,
    direction: MetricDirection,
    op: &OpSummary,
) -> Option<(ContradictionKind, String)> {
    let block = units::parse_bytes(run.work.block_size.as_deref()?).ok()? as f64;
    let by_rate = op.iops * block;
    let printed = |kind| Figure::Metric(Metric { direction: Some(direction), kind }).printed(run);
    let printed = [printed(MetricKind::Iops), printed(MetricKind::BytesPerSecond)];
    let is_bound = printed.iter().flatten().any(|figure| figure.bound != FigureBound::Exact);
    let resolution: f64 =
        printed.iter().flatten().map(|figure| figure.resolution / figure.value.max(1e-9)).sum();
    let allowed = PRINT_ROUNDING + resolution;
    let differs =
        by_rate > 0.0 && op.bytes_per_second > 0.0 && (by_rate / op.bytes_per_second).ln().abs() > allowed;
    // An end of the range may be a smaller request.
    (differs && !is_bound).then(|| {
        let claim = format!(
            "{} IOPS of {} are {}, but the bandwidth of its {name} is {}",
            count(op.iops),
            run.work.block_size.as_deref().unwrap_or_default(),
            mebibytes(by_rate),
            mebibytes(op.bytes_per_second)
        );
        (ContradictionKind::RateAndBandwidth, claim)
    })
}

/// Bytes over the runtime against the bandwidth.
fn bytes_and_runtime(measured_ns: u64, name: &str, op: &OpSummary) -> Option<(ContradictionKind, String)> {
    let by_runtime = op.bytes as f64 * 1e9 / measured_ns as f64;
    let is_stated = op.bytes > 0 && measured_ns > 0 && op.bytes_per_second > 0.0;
    (is_stated && (by_runtime / op.bytes_per_second).ln().abs() > PRINT_ROUNDING).then(|| {
        let claim = format!(
            "{} of {name} in {} are {}, but the stated bandwidth is {}",
            units::bytes(op.bytes),
            units::duration(fathom_model::Nanos(measured_ns)),
            mebibytes(by_runtime),
            mebibytes(op.bytes_per_second)
        );
        (ContradictionKind::BytesAndRuntime, claim)
    })
}

/// Percentiles, and the mean, that are out of order.
fn disordered(name: &str, latency: &LatencySummary) -> Option<(ContradictionKind, String)> {
    let percentiles = [
        ("min", latency.min),
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p95", latency.p95),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
        ("max", latency.max),
    ];
    let known: Vec<(&str, f64)> =
        percentiles.iter().filter_map(|(name, ns)| Some((*name, (*ns)? as f64))).collect();
    let pair = known.windows(2).find(|pair| pair[0].1 > pair[1].1 * (1.0 + PRINT_ROUNDING))?;
    let text = |(name, ns): (&str, f64)| format!("{name} {}", units::latency(ns as u64));
    Some((
        ContradictionKind::Percentiles,
        format!("latency of {name}: {} is above {}", text(pair[0]), text(pair[1])),
    ))
}

#[cfg(test)]
mod tests {
    use super::ContradictionKind::{BytesAndRuntime, Little, Percentiles, RateAndBandwidth, SharedLimit};
    use super::*;
    use crate::compare::rows::{RunTest, matched_rows};
    use crate::compare::source::ComparedSource;
    use crate::compare::work::Work;
    use crate::fixture::{TestLoad, record};
    use fathom_record::OpSummary;
    use fathom_record::import::{Figure, ImportedEntry, ImportedOp, ImportedTest, RateWindows};

    fn source(loads: &[TestLoad]) -> ComparedSource {
        ComparedSource::of_records([record(loads)])
    }

    fn kinds(change: impl Fn(&mut RunTest)) -> Vec<ContradictionKind> {
        let sources = [source(&[TestLoad { depth: 4, iops: 1000.0, ..TestLoad::default() }])];
        let mut rows = matched_rows(&sources);
        change(&mut rows[0].runs[0][0]);
        contradictions(&rows).into_iter().map(|one| one.kind).collect()
    }

    fn read(run: &mut RunTest) -> &mut OpSummary {
        run.summary.read.as_mut().unwrap()
    }

    #[test]
    fn figures_that_cannot_all_be_right_are_found() {
        assert_eq!(kinds(|_| {}), []);
        // An access time of 20 ms beside 1,000 IOPS at depth 4.
        assert_eq!(kinds(|run| read(run).lat_ns.mean = Some(20e6)), [Little]);
        // 0.168 µs for 168 µs.
        assert_eq!(kinds(|run| read(run).lat_ns.mean = Some(168.0)), [Little]);
        let pauses = |run: &mut RunTest| {
            run.work.rate = Some("pauses of 1.00 ms".to_owned());
            read(run).lat_ns.mean = Some(168.0);
        };
        assert_eq!(kinds(pauses), []);
        assert_eq!(kinds(|run| read(run).bytes_per_second *= 1.2), [RateAndBandwidth, BytesAndRuntime]);
        assert_eq!(kinds(|run| run.summary.measured_ns *= 4), [BytesAndRuntime]);
        assert_eq!(kinds(|run| read(run).lat_ns.p50 = Some(9_000_000_000)), [Percentiles]);
    }

    #[test]
    fn the_same_bandwidth_beside_different_rates_is_a_shared_limit() {
        let small = |iops| TestLoad { iops, depth: 32, ..TestLoad::default() };
        let large = |id, iops| TestLoad { id, bs: 1 << 20, iops, ..TestLoad::default() };
        let a = source(&[small(1000.0), large("read", 60.0), large("write", 60.0)]);
        let of = |other: ComparedSource| {
            let sources = [a.clone(), other];
            contradictions(&matched_rows(&sources)).into_iter().map(|one| one.kind).collect::<Vec<_>>()
        };
        assert_eq!(of(source(&[small(2000.0), large("read", 60.5), large("write", 59.5)])), [SharedLimit]);
        assert_eq!(of(source(&[small(1000.0), large("read", 60.5), large("write", 59.5)])), []);
        assert_eq!(of(source(&[small(2000.0), large("read", 60.5), large("write", 99.5)])), []);
    }

    /// Whether a statement of this text and resolution contradicts 6,842 IOPS.
    fn contradicts_rate(value: f64, resolution: f64) -> bool {
        let figure = |value, resolution| Figure { value, resolution, ..Figure::default() };
        let op = ImportedOp { iops: Some(figure(6842.0, 0.5)), ..ImportedOp::default() };
        let entries = vec![ImportedEntry { read: Some(op), ..ImportedEntry::default() }];
        let text = format!("{value} IOPS");
        let value = figure(value, resolution);
        let stated =
            vec![StatedFigure { figure: "read.iops".to_owned(), text, value, ..StatedFigure::default() }];
        let imported = Some(ImportedTest { entries, stated, ..ImportedTest::default() });
        kinds(|run| run.imported = imported.clone()).contains(&ContradictionKind::Stated)
    }

    #[test]
    fn a_round_statement_is_no_contradiction() {
        for (value, is_one) in [
            (7000.0, false),
            (6800.0, false),
            (6840.0, false),
            (6500.0, true),
            (6000.0, true),
            (68420.0, true),
        ] {
            assert_eq!(contradicts_rate(value, 0.5), is_one, "{value}");
        }
    }

    /// The claim on a sequential read at `rate` MiB/s beside a surface whose fastest place has 15.8 MiB/s with one I/O of 64 KiB
    /// in flight.
    fn beside_surface(rate: f64, surface: impl Fn(&mut Work), file: impl Fn(&mut Work)) -> Option<String> {
        const MIB: f64 = 1_048_576.0;
        let load = |id| TestLoad { id, rw: "read", bs: 65_536, ..TestLoad::default() };
        let sources = [source(&[load("surface"), load("file")])];
        let mut rows = matched_rows(&sources);
        let max = Some(Figure { value: 15.8 * MIB, ..Figure::default() });
        let windows = Some(RateWindows { max, ..RateWindows::default() });
        let op = Some(ImportedOp { bandwidth_windows: windows, ..ImportedOp::default() });
        let entries = vec![ImportedEntry { read: op, ..ImportedEntry::default() }];
        rows[0].runs[0][0].imported = Some(ImportedTest { entries, ..ImportedTest::default() });
        read(&mut rows[1].runs[0][0]).bytes_per_second = rate * MIB;
        surface(&mut rows[0].runs[0][0].work);
        file(&mut rows[1].runs[0][0].work);
        let mut found = contradictions(&rows);
        found.retain(|one| one.kind == ContradictionKind::FasterThanMaximum);
        found.pop().map(|one| one.claim)
    }

    #[test]
    fn a_cache_is_named_only_where_bytes_in_flight_do_not_explain_the_rate() {
        let as_it_is = |_: &mut Work| {};
        let cached = beside_surface(57.4, as_it_is, as_it_is).unwrap();
        assert!(cached.contains("A cache, or a burst, answered it"), "{cached}");
        let deeper = |work: &mut Work| work.iodepth = Some(4);
        assert_eq!(beside_surface(57.4, as_it_is, deeper), None, "four times the bytes in flight");
        assert!(beside_surface(157.4, as_it_is, deeper).is_some_and(|claim| claim.contains("A cache")));
        let larger = |work: &mut Work| work.block_size = Some("1m".to_owned());
        assert_eq!(beside_surface(157.4, as_it_is, larger), None);
        for (unknown, name) in [
            ((|work| work.block_size = None) as fn(&mut Work), "block size of surface"),
            (|work| work.iodepth = None, "queue depth of surface"),
            (|work| work.cache_mode = None, "readahead of surface"),
            (|work| work.cache_mode = Some("buffered".to_owned()), "readahead of surface"),
        ] {
            let claim = beside_surface(57.4, unknown, as_it_is).unwrap();
            assert!(claim.contains(name) && !claim.contains("answered it"), "{claim}");
            assert!(claim.contains("run both with the same block size and queue depth"), "{claim}");
        }
    }

    #[test]
    fn a_latency_of_larger_requests_does_not_contradict_the_rate_of_smaller_ones() {
        let found = |change: fn(&mut Work)| {
            let load = |id| TestLoad { id, ..TestLoad::default() };
            let sources = [source(&[load("access"), load("rand-read")])];
            let mut rows = matched_rows(&sources);
            let access = &mut rows[0].runs[0][0];
            change(&mut access.work);
            let total = access.summary.total.as_mut().unwrap();
            (total.iops, total.lat_ns.mean) = (0.0, Some(6e6));
            let all = contradictions(&rows);
            let claim = all.into_iter().find(|one| one.kind == ContradictionKind::LatencyAndRate);
            claim.map_or_else(String::new, |one| one.claim)
        };
        assert!(found(|_| {}).contains("A cache or a small test file"));
        assert_eq!(found(|work| work.block_size = Some("64k".to_owned())), "");
        let unknown = found(|work| work.block_size = None);
        assert!(unknown.contains("block size of access is unknown"), "{unknown}");
    }
}
