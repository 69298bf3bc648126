//! The report on a schedule: how it went, how each figure varies, what changed, and which hours and hosts differ.

use fathom_analysis::schedule::{FigureVariation, GroupVariation, VariationVerdict};
use fathom_analysis::trend::{LEAST_RUNS, TrendSeries, TrendVerdict};
use fathom_record::{MissedSlots, TestStatus};

use super::{ScheduleReport, UnmetExpectation, instant, slots, span, times, too_few};
use crate::Style;
use crate::bench::expectations::tone;
use crate::history::trend::words::change;
use crate::history::trend::{date, runs_of, value_cell};
use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, Tone, View};

/// Most expectations that are named one by one.
const MOST_UNMET: usize = 20;
/// Most changes that are named one by one.
const MOST_CHANGES: usize = 20;

/// The report; times in the zone of `style`.
pub fn view(report: &ScheduleReport, style: &Style) -> View {
    let mut view = View { data: data(report), ..View::default() };
    view.push("Schedule", [Block::KeyFigures(head(report, style))]);
    view.push("Missed slots", [Block::Table(missed(report, style))]);
    view.push("Expectations", expectations(report, style));
    let mut notes = vec!["Medians, quartiles and extremes of the complete runs.".to_owned()];
    notes.retain(|_| !report.figures.is_empty());
    view.push("Variation", [Block::Table(variation(report)), Block::Notes(notes)]);
    view.push("Changes", [Block::Notes(changes(report, style))]);
    view.push("By hour of the day", groups(report, "hours", |figure| &figure.by_hour));
    let hosts = report.figures.iter().map(|figure| figure.by_host.difference.groups.len()).max();
    if hosts > Some(1) {
        view.push("By host", groups(report, "hosts", |figure| &figure.by_host));
    }
    view
}

fn head(report: &ScheduleReport, style: &Style) -> Vec<KeyFigure> {
    let counts = [TestStatus::Complete, TestStatus::Failed, TestStatus::Incomplete].map(|status| {
        let count = report.count(status);
        (count > 0).then(|| format!("{count} {}", status.name()))
    });
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let runs = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
    let mut figures = vec![
        KeyFigure::new("name", report.schedule.name.as_str()),
        KeyFigure::new("target", report.target.as_str()),
        KeyFigure::new("plan", times(&report.schedule)),
        KeyFigure::new("first and last run", span(&report.schedule, report.is_simulated, style)),
        KeyFigure::new("runs", runs),
    ];
    if report.missed_count() > 0 {
        let missed = KeyFigure::new("missed slots", Cell::count(report.missed_count()));
        figures.push(KeyFigure { tone: Tone::Alarm, ..missed });
    }
    if report.left > 0 {
        figures.push(KeyFigure::new("slots left", Cell::count(report.left)));
    }
    figures
}

fn missed(report: &ScheduleReport, style: &Style) -> Table {
    let columns = [Column::left("slots"), Column::left("due"), Column::left("reason")];
    let at = |slot: u64| instant(&report.schedule, report.is_simulated, slot, style);
    let row = |missed: &MissedSlots| {
        let (first, last) = (missed.first, missed.first.saturating_add(missed.count).saturating_sub(1));
        let due = if first == last { at(first) } else { format!("{} to {}", at(first), at(last)) };
        let reason = match &missed.error {
            Some(error) => format!("{}: {error}", missed.reason.text()),
            None => missed.reason.text().to_owned(),
        };
        Row::new([Cell::from(slots(missed)), due.into(), reason.into()])
    };
    Table::new(columns, report.missed.iter().map(row))
}

/// The expectations that runs did not meet, the newest runs where there are many.
fn expectations(report: &ScheduleReport, style: &Style) -> [Block; 2] {
    let columns = [
        Column::right("slot"),
        Column::left("due").dispensable(0),
        Column::left("test"),
        Column::left(""),
        Column::right("expected"),
        Column::right("measured"),
        Column::left("verdict"),
    ];
    let shown = &report.unmet[report.unmet.len().saturating_sub(MOST_UNMET)..];
    let row = |unmet: &UnmetExpectation| {
        let due = instant(&report.schedule, report.is_simulated, unmet.slot, style);
        let slot = [Cell::count(unmet.slot + 1), due.into()];
        Row::new(slot.into_iter().chain(unmet.cells.clone())).toned(tone(&unmet.result.verdict))
    };
    let more = report.unmet.len() - shown.len();
    let rest = (more > 0).then(|| format!("{more} earlier ones are in the JSON format."));
    [Block::Table(Table::new(columns, shown.iter().map(row))), Block::Notes(rest.into_iter().collect())]
}

fn variation(report: &ScheduleReport) -> Table {
    let columns = [
        Column::left("test"),
        Column::left("figure"),
        Column::right("runs"),
        Column::right("median"),
        Column::right("lower quartile").dispensable(1),
        Column::right("upper quartile").dispensable(2),
        Column::right("lowest"),
        Column::right("highest"),
        Column::left("over time").dispensable(0),
    ];
    let row = |figure: &FigureVariation| {
        let value = |value: f64| value_cell(figure.metric.kind, value);
        Row::new([
            figure.test.to_string().into(),
            figure.metric.kind.label().into(),
            Cell::count(figure.all.runs as u64),
            value(figure.all.median),
            value(figure.all.quartile_low),
            value(figure.all.quartile_high),
            value(figure.least),
            value(figure.greatest),
            over_time(&figure.series).into(),
        ])
    };
    Table::new(columns, report.figures.iter().map(row))
}

/// Whether the level changed, in a word.
fn over_time(series: &[TrendSeries]) -> String {
    let changes: usize = series.iter().map(|one| one.analysis.changes.len()).sum();
    let is_open = series.iter().all(|one| one.analysis.verdict == TrendVerdict::Inconclusive);
    match changes {
        0 if is_open => "inconclusive".to_owned(),
        0 => "no change".to_owned(),
        1 => "1 change".to_owned(),
        count => format!("{count} changes"),
    }
}

/// A sentence for each change of a level.
fn changes(report: &ScheduleReport, style: &Style) -> Vec<String> {
    let is_open = |figure: &FigureVariation| figure.series.iter().all(|one| one.points.len() < LEAST_RUNS);
    if !report.figures.is_empty() && report.figures.iter().all(is_open) {
        return vec![format!("Inconclusive: a change shows in {LEAST_RUNS} runs or more.")];
    }
    let of_series = |figure: &FigureVariation, series: &TrendSeries| -> Vec<String> {
        let kind = figure.metric.kind;
        let host = if series.key.is_empty() { String::new() } else { format!(" on {}", series.key) };
        let sentence = |found: &fathom_analysis::trend::ChangePoint| {
            let (before, after) = (found.before, found.after);
            let point = &series.points[found.at];
            let when = match (report.is_simulated, date(point, style)) {
                (false, date) if !date.is_empty() => format!("from {date} on"),
                _ => format!("from run {} on", found.at + 1),
            };
            format!(
                "{}{host}: {} {} {when}, from a median of {} ({}) to {} ({}).",
                figure.test,
                kind.label(),
                change(found, |value| kind.quantity(value)),
                kind.quantity(before.median),
                runs_of(before.to - before.from),
                kind.quantity(after.median),
                runs_of(after.to - after.from),
            )
        };
        series.analysis.changes.iter().map(sentence).collect()
    };
    let mut sentences: Vec<String> = report
        .figures
        .iter()
        .flat_map(|figure| {
            figure.series.iter().flat_map(|series| of_series(figure, series)).collect::<Vec<_>>()
        })
        .collect();
    let more = sentences.len().saturating_sub(MOST_CHANGES);
    sentences.truncate(MOST_CHANGES);
    if more > 0 {
        sentences.push(format!("{more} more changes are in the JSON format."));
    }
    sentences
}

/// Which figures differ by hour or by host.
fn groups(
    report: &ScheduleReport,
    name: &'static str,
    of: impl Fn(&FigureVariation) -> &GroupVariation,
) -> [Block; 2] {
    let columns = [
        Column::left("test"),
        Column::left("figure"),
        Column::left("verdict"),
        Column::right("p").dispensable(0),
        Column::right("explained").dispensable(1),
        Column::left("worst"),
        Column::right("median there"),
        Column::right("of all"),
    ];
    let row = |figure: &FigureVariation| {
        let found = of(figure);
        let worst = found.worst.as_ref();
        let group = worst.and_then(|key| found.difference.groups.iter().find(|group| group.key == *key));
        let explained = found
            .difference
            .explained
            .filter(|_| found.verdict == VariationVerdict::Differs)
            .map(Cell::percent);
        Row::new([
            Cell::from(figure.test.to_string()),
            figure.metric.kind.label().into(),
            found.verdict.text().into(),
            found.difference.p.map(|p| Cell::real(p, probability(p))).into(),
            explained.into(),
            worst.map(String::as_str).unwrap_or_default().into(),
            group.map(|group| value_cell(figure.metric.kind, group.median)).into(),
            group.and_then(|group| group.ratio).map(Cell::percent).into(),
        ])
    };
    let open = report.figures.iter().map(|figure| too_few(of(figure).verdict, name));
    let notes = match open.collect::<Option<Vec<String>>>() {
        Some(all) => all.into_iter().take(1).collect(),
        None => Vec::new(),
    };
    let is_open = report.figures.iter().all(|figure| of(figure).verdict == VariationVerdict::Inconclusive);
    let rows = report.figures.iter().filter(|_| !is_open).map(row);
    let explained = format!("explained: share of the variance of the ranks that lies between {name}.");
    let table = Table::new(columns, rows)
        .with_legend("p", "p: probability of such differences by chance.")
        .with_legend("explained", explained);
    [Block::Table(table), Block::Notes(notes)]
}

fn probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

/// Every value, for CSV and JSON Lines.
fn data(report: &ScheduleReport) -> Table {
    const COLUMNS: [&str; 7] = ["schedule", "run", "host", "due_unix_ms", "test", "metric", "value"];
    let rows = report.figures.iter().flat_map(|figure| {
        let metric = figure.metric.to_string();
        figure.series.iter().flat_map(move |series| {
            let metric = metric.clone();
            series.points.iter().map(move |point| {
                Row::new([
                    report.schedule.name.as_str().into(),
                    Cell::count(point.run),
                    series.key.to_string().into(),
                    Cell::count(point.dated_unix_ms),
                    series.test.to_string().into(),
                    metric.as_str().into(),
                    Cell::real(point.value, ""),
                ])
            })
        })
    });
    Table::new(COLUMNS.map(Column::left), rows)
}
