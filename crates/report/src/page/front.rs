//! The first screen of a page beside the verdict: the chart that shows what happened, the limits, and the uses.

use fathom_analysis::conclusions::Use;
use fathom_analysis::identify::script::identified_of;
use fathom_analysis::steady::rate_duration::{DurationBasis, Lasting};
use fathom_analysis::sweep::{self, Sweep};
use fathom_analysis::verdict::{
    RateDirection, RateUnit, RateVerdict, SuitabilityVerdict, VolumeVerdict, problems,
};
use fathom_analysis::{Analysis, RecordRow};
use fathom_model::Op;
use fathom_record::{ActivityKind, Observed, RunRecord, TestRecord, TestStatus, TestSummary};

use super::axes::plot;
use super::{course, drawn_tests, overview, parts};
use crate::axis_text::{rate_text, time_axis};
use crate::bench;
use crate::columns::capital;
use crate::run_view;
use crate::view::{
    Axis, Cell, Front, FrontFigure, Plot, PlotForm, PlotLimit, PlotMark, PlotPoint, PlotSeries, UseGroup,
    UseTone,
};

/// Most figures that it has room for.
const MAX_FIGURES: usize = 11;
/// How much longer than the burst its chart is.
const AFTER_BURST: f64 = 1.35;

/// The first screen of a run beside what its report has for it.
pub(super) fn front(analysis: &Analysis<'_>, known: Front) -> Front {
    let record = analysis.record;
    let verdict = match record.header.activity.kind() {
        ActivityKind::Sweep => VolumeVerdict::of_sweep(analysis, &sweep::assess(record)),
        ActivityKind::Bench | ActivityKind::Fio => VolumeVerdict::of_tests(analysis),
        _ => VolumeVerdict::default(),
    };
    let mut figures = of_rates(&verdict.rates);
    let title = if figures.is_empty() { "Figures" } else { "Limits" };
    match figures.is_empty() {
        true => figures = headlines(record),
        false => figures.extend(unloaded(analysis)),
    }
    let (title, mut figures) =
        if known.figures.is_empty() { (title, figures) } else { (known.title, known.figures) };
    figures.truncate(MAX_FIGURES);
    Front { plot: story(analysis, &verdict), title, figures, uses: uses(&verdict.suitability) }
}

/// The uses by how well they are served.
fn uses(all: &SuitabilityVerdict) -> Vec<UseGroup> {
    let groups = [
        ("Suits", UseTone::Good, &all.suitable),
        ("During bursts only", UseTone::Partly, &all.in_bursts),
        ("Marginal", UseTone::Partly, &all.marginal),
        ("Not for", UseTone::Bad, &all.unsuitable),
    ];
    let title = |name: &&str| Use::named(name).map_or(*name, |one| one.title).to_owned();
    let shown = groups.into_iter().filter(|(_, _, names)| !names.is_empty());
    shown
        .map(|(heading, tone, names)| UseGroup { heading, tone, names: names.iter().map(title).collect() })
        .collect()
}

/// The rates, those that can be held indefinitely before those of bursts, and the depth that reaches them.
fn of_rates(rates: &[RateVerdict]) -> Vec<FrontFigure> {
    let mut figures = Vec::new();
    for rate in rates {
        let with_unit = |value: f64| match rate.unit {
            RateUnit::Iops => Cell { text: format!("{} IOPS", Cell::iops(value).text), ..Cell::iops(value) },
            RateUnit::BytesPerSecond => Cell::rate(value),
        };
        let direction = match rate.direction {
            RateDirection::ReadAndWrite => "",
            RateDirection::Read => "read ",
            RateDirection::Write => "write ",
        };
        let precision = rate.low.zip(rate.high).map(|(low, high)| interval(rate.measured, low, high));
        let note = precision.unwrap_or_default();
        let figure = |name: &str, value: f64, note: String| FrontFigure {
            note,
            ..FrontFigure::new(capital(&format!("{direction}{name}")), with_unit(value))
        };
        if rate.lasting == Lasting::Burst {
            let basis = match rate.basis {
                Some(DurationBasis::PublishedRule) => "published rule",
                _ => "after the fall",
            };
            figures.extend(rate.sustained.map(|held| figure("sustained", held, basis.to_owned())));
            figures.push(figure("burst", rate.measured, note));
        } else {
            let name = if rate.unit == RateUnit::Iops { "I/O rate" } else { "bandwidth" };
            figures.push(figure(name, rate.measured, note));
        }
    }
    let enough = rates.iter().find_map(|rate| rate.queue_depth_enough);
    figures.extend(enough.map(|depth| FrontFigure::new("Reached at", format!("QD {depth:.0}"))));
    figures
}

/// `±0.8 %`.
fn interval(value: f64, low: f64, high: f64) -> String {
    format!("±{:.1} %", (high - low) / 2.0 / value.abs().max(f64::MIN_POSITIVE) * 100.0)
}

/// Latencies of tests that had one I/O in flight.
fn unloaded(analysis: &Analysis<'_>) -> Vec<FrontFigure> {
    if analysis.record.header.activity.kind() != ActivityKind::Bench {
        return Vec::new();
    }
    let is_unloaded = |row: &&RecordRow<'_>| {
        let [job] = row.test.jobs.as_slice() else { return false };
        row.test.status == TestStatus::Complete && job.iodepth() == 1
    };
    let figure = |row: &RecordRow<'_>| {
        let lat = bench::view::row_latency(&row.summary);
        let note = lat.p99.map(|ns| format!("p99 {}", Cell::latency(ns).text)).unwrap_or_default();
        Some(FrontFigure {
            note,
            ..FrontFigure::new(capital(run_view::name(&row.test)), Cell::latency(lat.p50?))
        })
    };
    analysis.tests().iter().filter(is_unloaded).filter_map(figure).collect()
}

/// The chart that shows what happened.
fn story(analysis: &Analysis<'_>, verdict: &VolumeVerdict) -> Option<Plot> {
    let record = analysis.record;
    let kind = record.header.activity.kind();
    if kind == ActivityKind::Sweep {
        return super::sweep_plots(record).into_iter().next();
    }
    let drawn = drawn_tests(record);
    let of_test = |test: &TestRecord| {
        let plot = course::plots(record, test).into_iter().next()?;
        let name = capital(run_view::name(test));
        Some(if drawn.len() > 1 { Plot { title: format!("{name}: {}", plot.title), ..plot } } else { plot })
    };
    let named = |id: &String| drawn.iter().find(|test| test.id == *id).and_then(|test| of_test(test));
    let spoiled = || problems(record).flat_map(|found| &found.tests).find_map(named);
    match kind {
        ActivityKind::Bench | ActivityKind::Fio => {
            let by_rule = verdict.rates.iter().find_map(burst);
            let bars = || {
                overview::plots(record)
                    .into_iter()
                    .next()
                    .filter(|plot| plot.abridged(super::MAX_BARS).is_none())
            };
            let of_verdict = || verdict.rates.iter().find_map(|rate| named(&rate.test));
            let fallen = || {
                let is_fallen = |rate: &&RateVerdict| rate.basis == Some(DurationBasis::ObservedFall);
                verdict.rates.iter().find(is_fallen).and_then(|rate| named(&rate.test))
            };
            by_rule.or_else(fallen).or_else(spoiled).or_else(bars).or_else(of_verdict)
        }
        ActivityKind::Identify => {
            let longest = drawn.iter().max_by_key(|test| test.elapsed_ns)?;
            Some(Plot { limits: identified_limits(record), ..of_test(longest)? })
        }
        ActivityKind::Simulate => forecasts(&drawn),
        _ => None,
    }
    .or_else(|| drawn.iter().find_map(|test| of_test(test)))
}

/// A burst from full credits as the published rule has it, of which a test measured the beginning.
fn burst(rate: &RateVerdict) -> Option<Plot> {
    let (lasts, held) = rate.lasts_ns.zip(rate.sustained)?;
    if rate.unit != RateUnit::Iops || rate.basis != Some(DurationBasis::PublishedRule) {
        return None;
    }
    let (lasts, end) = (lasts as f64, lasts as f64 * AFTER_BURST);
    let points = vec![
        PlotPoint { from: 0.0, to: lasts, y: rate.measured, interval: None },
        PlotPoint { from: lasts, to: end, y: held, interval: None },
    ];
    let series = vec![PlotSeries { name: String::new(), points }];
    let limit = |name: &str, y: f64| PlotLimit { name: name.to_owned(), series: 0, y };
    let title = "IOPS at full load, from full credits: measured, then by the published rule";
    let x = time_axis(0, end as u64);
    let plot = plot(title, PlotForm::Steps, x, Axis::linear("IOPS", rate_text), series)?;
    Some(Plot {
        limits: vec![
            limit(&format!("baseline {}", rate_text(held)), held),
            limit(&format!("burst {}", rate_text(rate.measured)), rate.measured),
        ],
        marks: vec![PlotMark { series: 0, from: 0.0, to: rate.measured_ns as f64, reason: "measured" }],
        ..plot
    })
}

/// What was identified, as lines over the I/Os of a probe.
fn identified_limits(record: &RunRecord) -> Vec<PlotLimit> {
    let Some(found) = identified_of(record) else { return Vec::new() };
    let limit = |name: &str, y: Option<f64>| {
        y.map(|y| PlotLimit { name: format!("{name} {}", rate_text(y)), series: 0, y })
    };
    let read = found.iops.read.as_ref().and_then(|figure| figure.value());
    let baseline = found.bursts.first().and_then(|burst| match burst.unit {
        fathom_analysis::identified::BucketUnit::Ios => burst.baseline_rate.value(),
        fathom_analysis::identified::BucketUnit::Bytes => None,
    });
    [limit("IOPS limit", read), limit("baseline", baseline)].into_iter().flatten().collect()
}

/// The rates of several volumes under one load.
fn forecasts(drawn: &[&TestRecord]) -> Option<Plot> {
    let of_volume = |test: &&TestRecord| {
        let Some(Observed::Forecast(forecast)) = &test.observed else { return None };
        let (slices, _) = course::slices(test);
        let points = slices.iter().map(course::Slice::total).collect();
        Some(PlotSeries { name: forecast.target.clone(), points })
    };
    let series: Vec<PlotSeries> = drawn.iter().filter_map(of_volume).collect();
    let points = || series.iter().flat_map(|series| &series.points);
    let end = points().map(|point| point.to).fold(0.0, f64::max);
    let x = time_axis(0, end as u64);
    if drawn.len() < 2 {
        return None;
    }
    plot("IOPS over time", PlotForm::Steps, x, Axis::linear("IOPS", rate_text), series)
}

/// What a test gave in one direction.
struct DirectionResult<'a> {
    test: &'a str,
    iops: f64,
    bytes_per_second: f64,
    median_ns: Option<u64>,
}

/// The results of all tests in one direction; those of a sweep once their rates had settled, as in its own tables.
fn results<'a>(
    measured: &'a [(String, TestSummary)],
    swept: Option<&Sweep>,
    op: Op,
) -> Vec<DirectionResult<'a>> {
    let of_test = |(test, summary): &'a (String, TestSummary)| {
        let direction = match op {
            Op::Write => summary.write.as_ref()?,
            _ => summary.read.as_ref()?,
        };
        let point = swept.and_then(|sweep| sweep.points.iter().find(|point| point.spot.id() == *test));
        let (iops, bytes_per_second) = match point {
            Some(point) => (point.iops, point.bytes_per_second),
            None => (direction.iops, direction.bytes_per_second),
        };
        let median_ns = direction.latency().p50;
        Some(DirectionResult { test, iops, bytes_per_second, median_ns })
    };
    measured.iter().filter_map(of_test).collect()
}

/// The best of what was measured, each with its test.
fn headlines(record: &RunRecord) -> Vec<FrontFigure> {
    // Its probes are short and begin with full credits; what it found stands in its own sections.
    // The transfers of a surface are summed up in its own table.
    let kind = record.header.activity.kind();
    if matches!(kind, ActivityKind::Identify | ActivityKind::Surface) {
        return Vec::new();
    }
    let measured = parts::measured(record);
    let swept = (kind == ActivityKind::Sweep).then(|| sweep::assess(record));
    let mut figures = Vec::new();
    for op in [Op::Read, Op::Write] {
        let all = results(&measured, swept.as_ref(), op);
        let name = op.name();
        let figure = |what: &str, test: &str, cell: Cell| {
            let note = if measured.len() > 1 { test.to_owned() } else { String::new() };
            FrontFigure { note, ..FrontFigure::new(capital(&format!("{name} {what}")), cell) }
        };
        // The rate of a ping is its interval.
        let highest = |value: fn(&DirectionResult<'_>) -> f64| {
            let results = all.iter().filter(|result| value(result) > 0.0 && kind != ActivityKind::Ping);
            results.max_by(|one, other| value(one).total_cmp(&value(other)))
        };
        if let Some(result) = highest(|result| result.iops) {
            figures.push(figure("IOPS", result.test, Cell::iops(result.iops)));
        }
        if let Some(result) = highest(|result| result.bytes_per_second) {
            figures.push(figure("bandwidth", result.test, Cell::rate(result.bytes_per_second)));
        }
        let medians = all.iter().filter_map(|result| Some((result.test, result.median_ns?)));
        if let Some((test, ns)) = medians.min_by_key(|(_, ns)| *ns) {
            figures.push(figure("median latency", test, Cell::latency(ns)));
        }
    }
    figures
}
