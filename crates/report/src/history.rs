//! The list of past runs.

use std::io;

use fathom_analysis::criterion::Metric;
use fathom_record::HistoryRow;
use jiff::Timestamp;
use serde::Serialize;

use crate::view::{Block, Cell, Column, Row, Table, View};
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

/// The list as a table; times in the zone of `style`.
pub fn view(rows: &[HistoryRow], style: &Style) -> View {
    let columns = [
        Column::right("run"),
        Column::left("started"),
        Column::left("kind").dispensable(1),
        Column::left("target"),
        Column::right("tests").dispensable(2),
        Column::left("status"),
        Column::left("labels").dispensable(0),
    ];
    let row = |row: &HistoryRow| {
        let started = match row.started_unix_ms {
            0 => row.started.clone(),
            ms => style.time(ms, "%Y-%m-%d %H:%M"),
        };
        Row::new([
            Cell::integer(row.id, row.id.to_string()),
            started.into(),
            row.kind.name().into(),
            row.target.as_str().into(),
            Cell::integer(row.tests, row.tests.to_string()),
            row.status.name().into(),
            labels(row).into(),
        ])
    };
    let table = Table::new(columns, rows.iter().map(row));
    let has_labels = rows.iter().any(|row| !row.labels.is_empty());
    let mut view = View { data: data(rows), ..View::default() };
    match rows {
        [] => view.push("", [Block::note("No runs stored.")]),
        _ => view.push("", [Block::Table(if has_labels { table } else { table.without(&["labels"]) })]),
    }
    view
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

/// `metric` over the runs; times in the zone of `style`.
pub fn trend_view(metric: Metric, rows: &[TrendRow], style: &Style) -> View {
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
            Cell::real(row.value, metric.kind.quantity(row.value)),
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
        [] => view.push("", [Block::note("No stored run has this metric.")]),
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
    const COLUMNS: [&str; 11] = [
        "id",
        "started",
        "started_unix_ms",
        "target",
        "kind",
        "command",
        "status",
        "tests",
        "hostname",
        "labels",
        "tool_version",
    ];
    let row = |row: &HistoryRow| {
        Row::new([
            Cell::count(row.id),
            row.started.as_str().into(),
            Cell::count(row.started_unix_ms),
            row.target.as_str().into(),
            row.kind.name().into(),
            row.command.as_str().into(),
            row.status.name().into(),
            Cell::count(row.tests),
            row.hostname.as_str().into(),
            labels(row).into(),
            row.tool_version.as_str().into(),
        ])
    };
    Table::new(COLUMNS.map(Column::left), rows.iter().map(row))
}
