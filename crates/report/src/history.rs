//! The list of past runs, and what the history says of several of them.

pub mod diff;
pub mod trend;

use std::io;

use fathom_record::{BestFigures, HistoryRow, TestStatus};
use jiff::Timestamp;

use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, Tone, View};
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

/// The list as a table, or `none` where it is empty; times in the zone of `style`.
pub fn view(rows: &[HistoryRow], none: &str, style: &Style) -> View {
    let columns = [
        Column::right("run"),
        Column::left("date"),
        Column::left("kind").dispensable(5),
        Column::left("target"),
        Column::left("host").dispensable(3),
        Column::right("read IOPS"),
        Column::right("write IOPS").dispensable(4),
        Column::right("MiB/s").dispensable(2),
        Column::right("p50").dispensable(0),
        Column::left("result"),
        Column::right("findings").dispensable(1),
        Column::left("tags"),
        Column::left("labels"),
        Column::left("notes").dispensable(6),
    ];
    let is_one_host = rows.windows(2).all(|pair| pair[0].hostname == pair[1].hostname);
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
            if is_one_host { Cell::default() } else { row.hostname.as_str().into() },
            best.read_iops.map(Cell::iops).into(),
            best.write_iops.map(Cell::iops).into(),
            best.bytes_per_second.map(Cell::mebibytes).into(),
            best.lat_p50_ns.map(Cell::mean_latency).into(),
            result(row).into(),
            (row.findings > 0).then(|| Cell::count(row.findings)).into(),
            row.tags.join(", ").into(),
            labels(row).into(),
            row.notes.join("; ").into(),
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

/// The location of a history, its sizes in bytes, and its counts, each under its name.
pub fn size_view(location: &str, sizes: &[(&'static str, u64)], counts: &[(&'static str, u64)]) -> View {
    let sizes = sizes.iter().map(|&(name, bytes)| (name, Cell::bytes(bytes)));
    let cells = sizes.chain(counts.iter().map(|&(name, count)| (name, Cell::count(count))));
    let cells: Vec<(&str, Cell)> = std::iter::once(("location", Cell::from(location))).chain(cells).collect();
    let row = |(name, cell): &(&str, Cell)| Row::new([Cell::from(*name), cell.clone()]);
    let data = Table::new(["name", "value"].map(Column::left), cells.iter().map(row));
    let mut view = View { data, ..View::default() };
    view.push(
        "",
        [Block::KeyFigures(cells.into_iter().map(|(name, cell)| KeyFigure::new(name, cell)).collect())],
    );
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

fn labels(row: &HistoryRow) -> String {
    let labels: Vec<String> = row.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    labels.join(" ")
}

/// Every run with all that is listed of it.
fn data(rows: &[HistoryRow]) -> Table {
    const COLUMNS: [&str; 22] = [
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
        "device",
        "volume_type",
        "tags",
        "labels",
        "notes",
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
            row.device.as_str().into(),
            row.volume_type.as_deref().unwrap_or_default().into(),
            row.tags.join(",").into(),
            labels(row).into(),
            row.notes.join("; ").into(),
            row.tool_version.as_str().into(),
        ])
    };
    Table::new(COLUMNS.map(Column::left), rows.iter().map(row))
}
