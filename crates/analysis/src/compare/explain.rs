//! Where a cell comes from: the runs behind it, the places of its figures in their sources, the fio command of the test, and the
//! computation.

use fathom_model::{Nanos, units};
use fathom_record::import::FigureOrigin;
use serde::Serialize;

use super::cell::CellState;
use super::figure::Figure;
use super::pairs::Pair;
use super::rows::{ComparedRow, RowFigure, RunTest};
use super::source::{ComparedSource, LABELS};
use crate::compare::figure::{ratio_interval_text, ratio_text};
use crate::compare::ratio::IntervalBasis;
use crate::criterion::{Metric, MetricKind, Statistic};
use crate::say::{count, mebibytes};

/// A cell and all that it rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellExplanation {
    /// The address of the cell: `B:rand-read.read.iops`.
    pub cell: String,
    /// The source, by its letter.
    pub source: &'static str,
    /// The source as the user named it.
    pub name: String,
    /// What the test did.
    pub work: String,
    /// The value in base units; `None` where there is none.
    pub value: Option<f64>,
    /// The value with its unit, or why there is none.
    pub text: String,
    /// Why there is none.
    pub state: CellState,
    /// The figure as a formula.
    pub rule: &'static str,
    /// How the runs are put together.
    pub computation: String,
    /// The runs of the source that have the test.
    pub runs: Vec<ExplainedRun>,
    /// The ratio to the base with its interval, where there is one.
    pub ratio: Option<String>,
    /// Why the cell has no ratio or no verdict.
    pub reason: Option<String>,
}

/// The part of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedRun {
    /// Where the run was read from.
    pub origin: String,
    /// The test's id there.
    pub test: String,
    /// When it began, ms since the epoch; 0 where that is unknown.
    pub started_unix_ms: u64,
    /// Its value in base units; `None` where it has none.
    pub value: Option<f64>,
    /// The numbers that make it, or where they stand.
    pub from: String,
    /// Line of the source, from 1; `None` where it has no lines of its own.
    pub line: Option<u64>,
    /// The text at that line.
    pub printed: Option<String>,
    /// Why it is not counted.
    pub excluded: Option<String>,
    /// The fio command that does the same; empty where there is none.
    pub fio: String,
}

/// Explains the cell of this address.
///
/// # Errors
/// There is no such cell; the message names those that there are.
pub fn explain(
    address: &str,
    sources: &[ComparedSource],
    rows: &[ComparedRow],
    pairs: &[Pair],
) -> Result<CellExplanation, String> {
    let form = || format!("'{address}' is not a cell: write SOURCE:TEST.FIGURE, such as {}", example(rows));
    let (letter, rest) = address.split_once(':').ok_or_else(form)?;
    let letter = letter.trim().to_ascii_uppercase();
    let source = LABELS.iter().take(sources.len()).position(|label| *label == letter).ok_or_else(|| {
        format!("there is no source '{letter}': use {} to {}", LABELS[0], LABELS[sources.len().max(1) - 1])
    })?;
    let of_row = |row: &&ComparedRow| rest.strip_prefix(&row.test).is_some_and(|rest| rest.starts_with('.'));
    // The longest id, where one begins with another.
    let row = rows.iter().filter(of_row).max_by_key(|row| row.test.len()).ok_or_else(|| {
        let known: Vec<&str> = rows.iter().map(|row| row.test.as_str()).collect();
        format!("'{address}' names no test of the sources: use one of {}", known.join(", "))
    })?;
    let name = &rest[row.test.len() + 1..];
    let figures = row.figures();
    let figure = figures.iter().find(|of| of.figure.is_called(name)).ok_or_else(|| {
        let known: Vec<String> = figures.iter().map(|of| of.figure.address()).collect();
        format!("{} has no figure '{name}': use one of {}", row.test, known.join(", "))
    })?;
    Ok(of_cell(figure, source, &sources[source], row, pairs))
}

fn example(rows: &[ComparedRow]) -> String {
    let first = rows
        .iter()
        .find_map(|row| Some(format!("A:{}.{}", row.test, row.figures().first()?.figure.address())));
    first.unwrap_or_else(|| "A:rand-read.read.iops".to_owned())
}

fn of_cell(
    RowFigure { figure, cells }: &RowFigure,
    at: usize,
    source: &ComparedSource,
    row: &ComparedRow,
    pairs: &[Pair],
) -> CellExplanation {
    let (figure, cell) = (*figure, &cells[at]);
    let text = match cell.value {
        Some(value) => format!("{}{}", cell.prefix(), shown(figure, value)),
        None => cell.state.text().to_owned(),
    };
    let pair = pairs
        .iter()
        .find(|pair| pair.test == row.test && pair.figure == figure && pair.source_b == LABELS[at]);
    let computation = match cell.runs {
        0 => "no run has a value".to_owned(),
        1 => "the value of the only run that has one".to_owned(),
        runs => format!("geometric mean of {runs} runs"),
    };
    CellExplanation {
        cell: format!("{}:{}.{}", LABELS[at], row.test, figure.address()),
        source: LABELS[at],
        name: source.name.clone(),
        work: row.work_of(at).map(|work| work.text()).unwrap_or_default(),
        value: cell.value,
        text,
        state: cell.state,
        rule: figure.rule(),
        computation,
        runs: row.runs[at].iter().map(|run| of_run(figure, run)).collect(),
        ratio: pair.and_then(ratio),
        reason: pair.and_then(|pair| pair.reason.clone()),
    }
}

/// A value in the units of the tables.
fn shown(figure: Figure, value: f64) -> String {
    match figure {
        Figure::Metric(Metric { kind: MetricKind::BytesPerSecond, .. }) => mebibytes(value),
        _ => figure.quantity(value),
    }
}

fn of_run(figure: Figure, run: &RunTest) -> ExplainedRun {
    let value = figure.value(run);
    let place = run.imported.as_ref().and_then(|imported| imported.place(&figure.source_name(run)));
    let excluded = match (run.is_usable(), value) {
        (false, _) => Some(match &run.reason {
            Some(reason) => format!("{}: {reason}", run.status.name()),
            None => run.status.name().to_owned(),
        }),
        (true, None) if run.is_stalled => Some("no I/O completed".to_owned()),
        (true, None) => Some("the run does not have the figure".to_owned()),
        (true, Some(_)) => None,
    };
    ExplainedRun {
        origin: run.origin.clone(),
        test: run.id.clone(),
        started_unix_ms: run.started_unix_ms,
        value,
        from: value.map(|value| from(figure, run, value)).unwrap_or_default(),
        line: place.map(|place| place.line).filter(|line| *line > 0),
        printed: place.map(|place| place.text.clone()).filter(|text| !text.is_empty()),
        excluded,
        fio: run.fio.clone(),
    }
}

/// The numbers behind the value of one run.
fn from(figure: Figure, run: &RunTest, value: f64) -> String {
    let text = shown(figure, value);
    if let Some(printed) = figure.printed(run) {
        return match printed.origin {
            FigureOrigin::Printed => format!("{text} as printed"),
            FigureOrigin::Derived => format!("{text}, which follows from other figures of the source"),
        };
    }
    let summary = &run.summary;
    let time = units::duration(Nanos(summary.measured_ns));
    let Figure::Metric(metric) = figure else { return text };
    let Some(op) = metric.direction.and_then(|direction| direction.of(summary)) else { return text };
    let latency = |samples: u64| format!("{text} of {} latencies", units::grouped(samples));
    match metric.kind {
        MetricKind::Iops => format!("{} I/Os in {time}", units::grouped(op.ios)),
        MetricKind::BytesPerSecond => format!("{} bytes in {time}", units::grouped(op.bytes)),
        MetricKind::Latency(..) if op.lat_ns.samples > 0 => latency(op.lat_ns.samples),
        MetricKind::Latency(..) => latency(op.clat_ns.samples),
    }
}

/// `1.94 (95 % CI 1.92-1.96, 3 and 3 runs), better`.
fn ratio(pair: &Pair) -> Option<String> {
    let basis = match pair.interval {
        Some(IntervalBasis::WithinRun) => ", from the seconds within one run of each",
        _ => "",
    };
    let interval = pair
        .low
        .zip(pair.high)
        .map(|(low, high)| format!("95 % CI {}{basis}, ", ratio_interval_text(low, high)));
    let verdict = pair.verdict.map(|verdict| format!(", {}", verdict.name())).unwrap_or_default();
    Some(format!(
        "{} to {} ({}{} and {} runs){verdict}",
        ratio_text(pair.ratio?),
        pair.source_a,
        interval.unwrap_or_default(),
        count(f64::from(pair.runs_b)),
        count(f64::from(pair.runs_a))
    ))
}

impl Figure {
    /// Its name within a test: `read.iops`, `cv`.
    pub fn address(&self) -> String {
        match self.direction() {
            Some(direction) => format!("{direction}.{}", self.metric()),
            None => self.metric(),
        }
    }

    /// The name of what a source states of it.
    fn source_name(&self, run: &RunTest) -> String {
        match self {
            Figure::CpuPerIo => "cpu.user_percent".to_owned(),
            Figure::Elapsed => {
                let op = if run.summary.read.is_some() { "read" } else { "write" };
                format!("{op}.runtime_ns")
            }
            _ => self.address(),
        }
    }

    /// True where `name` means it: its address, or a short form of it (`read.lat.p99`, `iops` of the only operation).
    fn is_called(&self, name: &str) -> bool {
        let is_short = |metric: &Metric| {
            Metric::parse(name).is_some_and(|named| {
                named.kind == metric.kind
                    && (named.direction.is_none() || named.direction == metric.direction)
            })
        };
        self.address() == name || matches!(self, Figure::Metric(metric) if is_short(metric))
    }

    /// The figure as a formula.
    fn rule(&self) -> &'static str {
        match self {
            Figure::Metric(Metric { kind, .. }) => match kind {
                MetricKind::Iops => "completed I/Os / measured time",
                MetricKind::BytesPerSecond => "completed bytes / measured time",
                MetricKind::Latency(_, Statistic::Mean) => "sum of all latencies / their number",
                MetricKind::Latency(..) => {
                    "percentile of the histogram of all latencies, bins of at most 1/128 of a value"
                }
            },
            Figure::CpuPerIo => "CPU time of the jobs and of kernel threads on their behalf / completed I/Os",
            Figure::Variation => "standard deviation / mean of the rates of the seconds",
            Figure::WorstSecond => "rate of the slowest second / mean rate",
            Figure::NearMean => "seconds whose rate is within 10 % of the mean / all seconds",
            Figure::PublishedShare => "measured rate / published sustained rate",
            Figure::Elapsed => "measured time of a test that ends with its size",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::figure::Deltas;
    use crate::compare::pairs::pairs;
    use crate::compare::rows::matched_rows;
    use crate::fixture::{TestLoad, record};

    fn explained(address: &str) -> Result<CellExplanation, String> {
        let source = |rates: &[f64]| {
            ComparedSource::of_records(rates.iter().map(|iops| {
                record(&[
                    TestLoad { iops: *iops, seconds: vec![1.0; 5], ..TestLoad::default() },
                    TestLoad { id: "t.u", depth: 8, ..TestLoad::default() },
                ])
            }))
        };
        let sources = [source(&[1000.0, 1002.0]), source(&[500.0, 502.0])];
        let rows = matched_rows(&sources);
        explain(address, &sources, &rows, &pairs(&rows, 0, Deltas::default()))
    }

    #[test]
    fn a_cell_names_its_runs_and_its_computation() {
        let cell = explained("b:t.iops").unwrap();
        assert_eq!(
            (cell.cell.as_str(), cell.computation.as_str()),
            ("B:t.read.iops", "geometric mean of 2 runs")
        );
        assert_eq!(cell.rule, "completed I/Os / measured time");
        assert_eq!(cell.runs.len(), 2);
        assert!(cell.runs[0].from.contains("I/Os in 5"), "{:?}", cell.runs);
        assert!(cell.ratio.is_some_and(|ratio| ratio.starts_with("0.50 to A (95 % CI ")));
        // A test whose id holds a point.
        assert_eq!(explained("A:t.u.read.iops").unwrap().cell, "A:t.u.read.iops");
        assert_eq!(explained("A:t.read.lat.mean").unwrap().cell, "A:t.read.lat_ns.mean");
    }

    #[test]
    fn a_cell_that_there_is_not_has_an_error_with_those_that_there_are() {
        for (address, part) in [
            ("t.iops", "write SOURCE:TEST.FIGURE, such as A:t.read.iops"),
            ("C:t.iops", "there is no source 'C': use A to B"),
            ("A:x.iops", "use one of t, t.u"),
            ("A:t.write.iops", "t has no figure 'write.iops': use one of read.iops, read.bytes_per_second"),
        ] {
            let error = explained(address).unwrap_err();
            assert!(error.contains(part), "{address}: {error}");
        }
    }
}
