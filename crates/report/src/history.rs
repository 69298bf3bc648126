//! The list of past runs.

use std::io;

use fathom_analysis::criterion::{Metric, MetricKind};
use fathom_record::{BestFigures, HistoryRow, TestStatus};
use jiff::Timestamp;
use serde::Serialize;

use crate::view::{Block, Cell, Column, Row, Table, Tone, View};
use crate::{Style, document};

/// Writes the list as a JSON array.
///
/// # Errors
/// Those of `out`.
pub fn render_json(rows: &[HistoryRow], out: &mut dyn io::Write) -> io::Result<()> {
    document::write(&rows, out)
}

/// A moment as RFC 3339 in UTC (`2026-09-21T14:13:20Z`), seconds and finer as far as they are not zero.
pub fn started(unix_ms: u64) -> String {
    let timestamp = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    timestamp.unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}

/// The list as a table, under `none` where it is empty; times in the zone of `style`.
pub fn view(rows: &[HistoryRow], none: &str, style: &Style) -> View {
    let columns = [
        Column::right("run"),
        Column::left("date"),
        Column::left("kind").dispensable(3),
        Column::left("target"),
        Column::right("read IOPS"),
        Column::right("write IOPS").dispensable(4),
        Column::right("MiB/s").dispensable(2),
        Column::right("p50").dispensable(0),
        Column::left("result"),
        Column::right("findings").dispensable(1),
        Column::left("tags"),
        Column::left("labels"),
    ];
    let row = |row: &HistoryRow| {
        let date = match row.dated_unix_ms() {
            0 => row.started.clone(),
            ms => style.time(ms, "%Y-%m-%d %H:%M"),
        };
        let best = &row.best;
        let tone = match (row.status, row.verdict.as_deref()) {
            (TestStatus::Failed, _) | (_, Some("missed")) => Tone::Alarm,
            (TestStatus::Incomplete, _) => Tone::Dim,
            _ => Tone::Normal,
        };
        let cells = [
            Cell::integer(row.id, row.id.to_string()),
            date.into(),
            row.kind.name().into(),
            row.target.as_str().into(),
            best.read_iops.map(Cell::iops).into(),
            best.write_iops.map(Cell::iops).into(),
            best.bytes_per_second.map(Cell::mebibytes).into(),
            best.lat_p50_ns.map(Cell::mean_latency).into(),
            result(row).into(),
            (row.findings > 0).then(|| Cell::count(row.findings)).into(),
            row.tags.join(", ").into(),
            labels(row).into(),
        ];
        Row::new(cells).toned(tone)
    };
    let mut view = View { data: data(rows), ..View::default() };
    match rows {
        [] => view.push("", [Block::note(none)]),
        _ => {
            let table = Table::new(columns, rows.iter().map(row)).without_empty();
            let legend = "IOPS and MiB/s are the highest of a run's tests, p50 is the lowest.";
            view.push("", [Block::Table(table)]);
            if rows.iter().any(|row| row.best != BestFigures::default()) {
                view.push("", [Block::note(legend)]);
            }
        }
    }
    view
}

/// How a run ended, or the result of its checks: `missed`, `complete`, `incomplete, met`.
fn result(row: &HistoryRow) -> String {
    match (row.status, &row.verdict) {
        (TestStatus::Complete, Some(verdict)) => verdict.clone(),
        (status, Some(verdict)) => format!("{}, {verdict}", status.name()),
        (status, None) => status.name().to_owned(),
    }
}

/// One point of a trend.
#[derive(Clone, Debug, Serialize)]
pub struct TrendRow {
    /// Number of the run.
    pub run: u64,
    /// Start, ms since the epoch; 0 for simulated runs.
    pub started_unix_ms: u64,
    /// The target as the user named it.
    pub target: String,
    /// Id of the test.
    pub test: String,
    /// The metric's name (`read.lat_ns.p99`).
    pub metric: String,
    /// IOPS, bytes per second or ns.
    pub value: f64,
}

/// `metric` over the runs, or `none` where there is nothing to show; times in the zone of `style`.
pub fn trend_view(metric: Metric, rows: &[TrendRow], none: &str, style: &Style) -> View {
    let columns = [
        Column::right("run"),
        Column::left("started"),
        Column::left("target").dispensable(0),
        Column::left("test"),
        Column::right("value").drawn(),
    ];
    let row = |row: &TrendRow| {
        let started = match row.started_unix_ms {
            0 => "simulated".to_owned(),
            ms => style.time(ms, "%Y-%m-%d %H:%M"),
        };
        Row::new([
            Cell::integer(row.run, row.run.to_string()),
            started.into(),
            row.target.as_str().into(),
            row.test.as_str().into(),
            match metric.kind {
                MetricKind::BytesPerSecond => Cell::rate(row.value),
                kind => Cell::real(row.value, kind.quantity(row.value)),
            },
        ])
    };
    const DATA: [&str; 6] = ["run", "started_unix_ms", "target", "test", "metric", "value"];
    let data = |row: &TrendRow| {
        Row::new([
            Cell::count(row.run),
            Cell::count(row.started_unix_ms),
            row.target.as_str().into(),
            row.test.as_str().into(),
            row.metric.as_str().into(),
            Cell::real(row.value, ""),
        ])
    };
    let data = Table::new(DATA.map(Column::left), rows.iter().map(data));
    let mut view = View { data, ..View::default() };
    match rows {
        [] => view.push("", [Block::note(none)]),
        _ => view.push(metric.label(), [Block::Table(Table::new(columns, rows.iter().map(row)))]),
    }
    view
}

fn labels(row: &HistoryRow) -> String {
    let labels: Vec<String> = row.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    labels.join(" ")
}

/// Every run with all that is listed of it.
fn data(rows: &[HistoryRow]) -> Table {
    const COLUMNS: [&str; 19] = [
        "id",
        "started",
        "started_unix_ms",
        "stored_unix_ms",
        "target",
        "kind",
        "command",
        "status",
        "tests",
        "read_iops",
        "write_iops",
        "bytes_per_second",
        "lat_p50_ns",
        "verdict",
        "findings",
        "hostname",
        "tags",
        "labels",
        "tool_version",
    ];
    let row = |row: &HistoryRow| {
        Row::new([
            Cell::count(row.id),
            row.started.as_str().into(),
            Cell::count(row.started_unix_ms),
            Cell::count(row.stored_unix_ms),
            row.target.as_str().into(),
            row.kind.name().into(),
            row.command.as_str().into(),
            row.status.name().into(),
            Cell::count(row.tests),
            row.best.read_iops.map(Cell::iops).into(),
            row.best.write_iops.map(Cell::iops).into(),
            row.best.bytes_per_second.map(Cell::mebibytes).into(),
            row.best.lat_p50_ns.map(Cell::mean_latency).into(),
            row.verdict.as_deref().unwrap_or_default().into(),
            Cell::count(row.findings),
            row.hostname.as_str().into(),
            row.tags.join(",").into(),
            labels(row).into(),
            row.tool_version.as_str().into(),
        ])
    };
    Table::new(COLUMNS.map(Column::left), rows.iter().map(row))
}
