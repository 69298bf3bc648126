//! A trend: the verdict on each series first, then a plot, the changes, the groups and the runs.

use std::io;
use std::sync::Arc;

use fathom_analysis::criterion::{Metric, MetricKind};
use fathom_analysis::trend::{
    ChangePoint, ERROR, GroupDifference, GroupSpread, MIN_RUNS, ShiftRatio, TrendLevel, TrendPoint,
    TrendSeries, TrendVerdict,
};
use fathom_model::units::UnitSystem;
use serde_json::{Value, json};

use crate::document::object;
use crate::view::{
    Axis, Block, Cell, Column, Plot, PlotForm, PlotPoint, PlotSeries, Row, Table, Tone, View, decimal,
    iops_text,
};
use crate::{Style, document};

/// What a trend shows.
#[derive(Clone, Debug)]
pub struct TrendReport {
    /// The metric, with its direction.
    pub metric: Metric,
    /// What its runs are grouped by: `device`, `host`, `label:NAME`, `hour`.
    pub by: String,
    /// The series, by test and group.
    pub series: Vec<TrendSeries>,
    /// The groups of each test, compared.
    pub groups: Vec<(Arc<str>, GroupDifference)>,
}

/// Series that have a sentence, and those that have a plot: those that changed come first.
const MAX_SENTENCES: usize = 20;
const MAX_PLOTS: usize = 6;
/// Runs in the table of a text: the newest.
const MAX_RUNS: usize = 20;
/// Probabilities below this are called significant.
const SIGNIFICANT: f64 = 0.05;

/// The trend without its values, or `none` where there is nothing to show; times in the zone of `style`.
pub fn view(report: &TrendReport, none: &str, style: &Style) -> View {
    let mut view = View::default();
    if report.series.is_empty() {
        view.push("", [Block::note(none)]);
        return view;
    }
    let mut by_interest: Vec<&TrendSeries> = report.series.iter().collect();
    by_interest.sort_by_key(|series| series.analysis.verdict != TrendVerdict::Changed);
    let mut sentences: Vec<String> =
        by_interest.iter().take(MAX_SENTENCES).flat_map(|series| verdict(report, series, style)).collect();
    if by_interest.len() > MAX_SENTENCES {
        let more = by_interest.len() - MAX_SENTENCES;
        sentences.push(format!("{more} more series are in the CSV and JSON formats."));
    }
    view.push("Verdict", [Block::Notes(sentences)]);
    let plotted = by_interest.iter().filter(|series| series.points.len() > 1).take(MAX_PLOTS);
    view.push(
        report.metric.label(),
        [Block::Plots(plotted.map(|series| plot(report, series, style)).collect())],
    );
    view.push("Changes", [Block::Table(changes(report, style))]);
    for (test, found) in report.groups.iter().filter(|(_, found)| found.groups.len() > 1) {
        let title = format!("{test} by {}", report.by);
        view.push(title, [Block::Table(groups(report, found)), Block::note(difference(found))]);
    }
    view.push("Runs", runs(report, style));
    view
}

/// `rand-read on web1:/dev/vda`, `rand-read with volume=gp2`.
fn name(report: &TrendReport, series: &TrendSeries) -> String {
    match (report.by.strip_prefix("label:"), &*series.key) {
        (_, "") => series.test.to_string(),
        (Some(label), key) => format!("{} with {label}={key}", series.test),
        (None, key) => format!("{} on {key}", series.test),
    }
}

fn runs_of(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

/// `run 42 (2026-11-02 14:00)`.
fn dated(point: &TrendPoint, style: &Style) -> String {
    match date(point, style) {
        date if date.is_empty() => format!("run {}", point.run),
        date => format!("run {} ({date})", point.run),
    }
}

/// A sentence for each change, or one that says that there is none.
fn verdict(report: &TrendReport, series: &TrendSeries, style: &Style) -> Vec<String> {
    let (name, label) = (name(report, series), report.metric.label());
    let quantity = |value: f64| report.metric.kind.quantity(value);
    let all = runs_of(series.points.len());
    let median = series.analysis.levels.first().map_or(0.0, |level| level.median);
    match series.analysis.verdict {
        TrendVerdict::Inconclusive => vec![format!(
            "{name}: inconclusive. {label} has {all} (median {}); a change shows in {MIN_RUNS} or more.",
            quantity(median)
        )],
        TrendVerdict::NoChange => vec![format!(
            "{name}: no change of {label} is significant in {all} (median {}).",
            quantity(median)
        )],
        TrendVerdict::Changed => series
            .analysis
            .changes
            .iter()
            .map(|found| {
                let (last, first) = (&series.points[found.at - 1], &series.points[found.at]);
                let (before, after) = (found.before, found.after);
                format!(
                    "{name}: {label} {} between {} and {}, from a median of {} ({}) to {} ({}).",
                    change(found, quantity),
                    dated(last, style),
                    dated(first, style),
                    quantity(before.median),
                    runs_of(before.to - before.from),
                    quantity(after.median),
                    runs_of(after.to - after.from),
                )
            })
            .collect(),
    }
}

/// The values as dots and the medians of their levels as lines.
fn plot(report: &TrendReport, series: &TrendSeries, style: &Style) -> Plot {
    let (unit, scale, text): (String, f64, fn(f64) -> String) = match report.metric.kind {
        MetricKind::Iops => ("IOPS".to_owned(), 1.0, iops_text),
        MetricKind::BytesPerSecond => {
            (UnitSystem::Iec.rate_unit().to_owned(), 1.0 / UnitSystem::Iec.mega(), decimal)
        }
        MetricKind::Latency(..) => (report.metric.kind.label(), 1.0, |ns| Cell::mean_latency(ns).text),
    };
    let dot = |(index, point): (usize, &TrendPoint)| PlotPoint::at(index as f64 + 0.5, point.value * scale);
    let levels = series.analysis.levels.iter().map(|level| PlotPoint {
        from: level.from as f64,
        to: level.to as f64,
        y: level.median * scale,
        interval: None,
    });
    let points = series.points.iter().enumerate().map(dot).chain(levels).collect();
    Plot {
        title: format!("{} ({unit}; lines: medians)", name(report, series)),
        form: PlotForm::Steps,
        x: Axis::named(series.points.iter().map(|point| dated(point, style)).collect()),
        y: Axis::linear("", text),
        series: vec![PlotSeries { name: String::new(), points }],
        limits: Vec::new(),
        marks: Vec::new(),
    }
}

pub(crate) fn value_cell(kind: MetricKind, value: f64) -> Cell {
    match kind {
        MetricKind::BytesPerSecond => Cell::rate(value),
        kind => Cell::real(value, kind.quantity(value)),
    }
}

/// When it ran, or was stored; empty where both are unknown.
fn date(point: &TrendPoint, style: &Style) -> String {
    match point.dated_unix_ms {
        0 => String::new(),
        ms => style.time(ms, "%Y-%m-%d %H:%M"),
    }
}

fn changes(report: &TrendReport, style: &Style) -> Table {
    let columns = [
        Column::left("test"),
        Column::left("group").dispensable(0),
        Column::right("run"),
        Column::left("date"),
        Column::right("before"),
        Column::right("after"),
        Column::right("change"),
        Column::right("95 % interval"),
    ];
    let kind = report.metric.kind;
    let rows = report.series.iter().flat_map(|series| {
        series.analysis.changes.iter().map(move |found| {
            let point = &series.points[found.at];
            Row::new([
                series.test.to_string().into(),
                series.key.to_string().into(),
                Cell::count(point.run),
                date(point, style).into(),
                value_cell(kind, found.before.median),
                value_cell(kind, found.after.median),
                found.ratio.map(|ratio| Cell::real(ratio.value, percent_of(ratio.value))).into(),
                found.ratio.map(|ratio| interval(&ratio)).into(),
            ])
        })
    });
    Table::new(columns, rows)
}

fn groups(report: &TrendReport, found: &GroupDifference) -> Table {
    let columns = [
        Column::left("group"),
        Column::right("runs"),
        Column::right("median").drawn(),
        Column::right("lower quartile").dispensable(0),
        Column::right("upper quartile").dispensable(1),
        Column::right("of all"),
    ];
    let kind = report.metric.kind;
    let row = |group: &GroupSpread| {
        Row::new([
            group.key.as_str().into(),
            Cell::count(group.runs as u64),
            value_cell(kind, group.median),
            value_cell(kind, group.quartile_low),
            value_cell(kind, group.quartile_high),
            group.ratio.map(|ratio| Cell::real(ratio, percent_of(ratio))).into(),
        ])
    };
    Table::new(columns, found.groups.iter().map(row))
}

/// What the comparison of the groups says.
fn difference(found: &GroupDifference) -> String {
    match found.p {
        None => "Inconclusive: fewer than two groups have 3 runs or more.".to_owned(),
        Some(p) if p >= SIGNIFICANT => {
            format!("No difference between the groups is significant (p = {p:.2}).")
        }
        Some(p) => {
            let by_median = |one: &&GroupSpread, other: &&GroupSpread| one.median.total_cmp(&other.median);
            let ends = (found.groups.iter().min_by(by_median), found.groups.iter().max_by(by_median));
            let (Some(least), Some(most)) = ends else { return String::new() };
            let p = if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") };
            format!("The groups differ ({p}): lowest in {}, highest in {}.", least.key, most.key)
        }
    }
}

/// The newest runs of all series.
fn runs(report: &TrendReport, style: &Style) -> [Block; 2] {
    let columns = [
        Column::right("run"),
        Column::left("date"),
        Column::left("target").dispensable(0),
        Column::left("test"),
        Column::right("value").drawn(),
    ];
    let mut all: Vec<(&TrendSeries, &TrendPoint)> = report
        .series
        .iter()
        .flat_map(|series| series.points.iter().rev().take(MAX_RUNS).map(move |point| (series, point)))
        .collect();
    all.sort_by_key(|(_, point)| (point.dated_unix_ms, point.run));
    let shown = &all[all.len().saturating_sub(MAX_RUNS)..];
    let row = |(series, point): &(&TrendSeries, &TrendPoint)| {
        let is_new_level = series.analysis.changes.iter().any(|found| series.points[found.at] == **point);
        let tone = if is_new_level { Tone::Alarm } else { Tone::Normal };
        Row::new([
            Cell::integer(point.run, point.run.to_string()),
            date(point, style).into(),
            point.target.to_string().into(),
            series.test.to_string().into(),
            value_cell(report.metric.kind, point.value),
        ])
        .toned(tone)
    };
    let count: usize = report.series.iter().map(|series| series.points.len()).sum();
    let rest = match count > shown.len() {
        true => vec![format!("The newest {} of {count} values; CSV and JSON have all.", shown.len())],
        false => Vec::new(),
    };
    [Block::Table(Table::new(columns, shown.iter().map(row))), Block::Notes(rest)]
}

/// Every value with the median of its level, for CSV and JSON Lines: there may be too many for the view of people.
pub fn data_view(report: &TrendReport) -> View {
    const COLUMNS: &str = "\
        run,started_unix_ms,target,group,test,metric,value,level_median,level_from_run,level_to_run";
    let metric = report.metric.to_string();
    let mut rows: Vec<Value> = Vec::new();
    for series in &report.series {
        for level in &series.analysis.levels {
            let points = &series.points[level.from..level.to];
            let of_level = json!({
                "group": &*series.key,
                "test": &*series.test,
                "metric": metric,
                "level_median": level.median,
                "level_from_run": points[0].run,
                "level_to_run": points[points.len() - 1].run,
            });
            rows.extend(points.iter().map(|point| object([json!(point), of_level.clone()])));
        }
    }
    View { data: Table::of_documents(&[COLUMNS], rows), ..View::default() }
}

/// Writes the trend; `error` is the probability of a change in any series where there is none.
///
/// # Errors
/// Those of `out`.
pub fn render_json(report: &TrendReport, out: &mut dyn io::Write) -> io::Result<()> {
    let groups = report.groups.iter();
    let groups = groups.map(|(test, found)| json!({ "test": &**test, "p": found.p, "groups": found.groups }));
    let document = json!({
        "schema": "fathom.trend/1",
        "metric": report.metric.to_string(),
        "by": report.by,
        "error": ERROR,
        "series": report.series.iter().map(series).collect::<Vec<Value>>(),
        "groups": groups.collect::<Vec<Value>>(),
    });
    document::write(&document, out)
}

fn series(series: &TrendSeries) -> Value {
    let run = |index: usize| series.points[index].run;
    let change = |found: &ChangePoint| {
        json!({
            "last_before": run(found.at - 1),
            "first_after": run(found.at),
            "started_unix_ms": series.points[found.at].started_unix_ms,
            "median_before": found.before.median,
            "median_after": found.after.median,
            "ratio": found.ratio,
        })
    };
    let level = |level: &TrendLevel| {
        json!({
            "first_run": run(level.from),
            "last_run": run(level.to - 1),
            "runs": level.to - level.from,
            "median": level.median,
        })
    };
    json!({
        "test": &*series.test,
        "group": &*series.key,
        "verdict": series.analysis.verdict,
        "autocorrelation": series.analysis.autocorrelation,
        "changes": series.analysis.changes.iter().map(change).collect::<Vec<Value>>(),
        "levels": series.analysis.levels.iter().map(level).collect::<Vec<Value>>(),
        "points": series.points,
    })
}

/// Ratios from here on are said as multiples.
const MULTIPLE: f64 = 2.0;

/// `fell by 12 % (95 % confidence interval: 11 to 13 %)`, `rose to 3.1 times (95 % confidence interval: 3.0 to 3.2)`.
fn change(found: &ChangePoint, quantity: impl Fn(f64) -> String) -> String {
    let Some(ratio) = found.ratio else {
        let difference = (found.after.median - found.before.median).abs();
        let verb = if found.after.median < found.before.median { "fell" } else { "rose" };
        return format!("{verb} by {}", quantity(difference));
    };
    let what = match ratio.value {
        value if value < 1.0 => format!("fell by {}", percent(1.0 - value)),
        value if value < MULTIPLE => format!("rose by {}", percent(value - 1.0)),
        value => format!("rose to {value:.1} times"),
    };
    format!("{what} (95 % confidence interval: {})", interval(&ratio))
}

/// The interval in the form of the ratio: `-13 to -11 %`, `3.0 to 3.2 times`.
fn interval(ratio: &ShiftRatio) -> String {
    if ratio.value >= MULTIPLE {
        return format!("{:.1} to {:.1} times", ratio.low, ratio.high);
    }
    let (low, high) = (ratio.low - 1.0, ratio.high - 1.0);
    match (signed(low), signed(high)) {
        // Two digits would show no interval.
        (from, to) if from == to => format!("{:+.2} to {:+.2} %", low * 100.0, high * 100.0),
        (from, to) => format!("{from} to {to} %"),
    }
}

/// `-12 %`, `+0.4 %`, `3.1 times`.
fn percent_of(ratio: f64) -> String {
    if ratio >= MULTIPLE { format!("{ratio:.1} times") } else { format!("{} %", signed(ratio - 1.0)) }
}

fn signed(share: f64) -> String {
    let text = digits(share.abs());
    if text == "0.0" { text } else { format!("{}{text}", if share < 0.0 { '-' } else { '+' }) }
}

/// `12 %`, `0.4 %`.
fn percent(share: f64) -> String {
    format!("{} %", digits(share))
}

fn digits(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

#[cfg(test)]
mod words_tests {
    use fathom_analysis::trend::TrendLevel;

    use super::*;

    fn found(ratio: Option<(f64, f64, f64)>) -> String {
        let level = |median: f64| TrendLevel { from: 0, to: 1, median };
        let ratio = ratio.map(|(value, low, high)| ShiftRatio { value, low, high });
        let point = ChangePoint { at: 1, before: level(3000.0), after: level(0.0), ratio };
        change(&point, |value| format!("{value:.0} IOPS"))
    }

    #[test]
    fn changes_are_said_in_percent_or_as_multiples() {
        for (ratio, expected) in [
            (Some((0.88, 0.87, 0.893)), "fell by 12 % (95 % confidence interval: -13 to -11 %)"),
            (Some((1.004, 1.0, 1.008)), "rose by 0.4 % (95 % confidence interval: 0.0 to +0.8 %)"),
            (Some((3.1, 3.02, 3.2)), "rose to 3.1 times (95 % confidence interval: 3.0 to 3.2 times)"),
            (Some((0.88, 0.8799, 0.8801)), "fell by 12 % (95 % confidence interval: -12.01 to -11.99 %)"),
            (None, "fell by 3000 IOPS"),
        ] {
            assert_eq!(found(ratio), expected);
        }
        assert_eq!((percent_of(0.88), percent_of(1.0)), ("-12 %".to_owned(), "0.0 %".to_owned()));
    }
}
