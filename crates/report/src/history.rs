//! The list of past runs, and what the history says of several of them.

pub mod diff;
pub mod trend;

use std::io;

use fathom_record::{BestFigures, HistoryRow, TestStatus};
use jiff::Timestamp;
use serde_json::json;

use crate::document::object;
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
    let is_one_host = rows.windows(2).all(|pair| pair[0].hostname == pair[1].hostname);
    let date = |row: &HistoryRow| match row.dated_unix_ms() {
        0 => row.started.clone(),
        ms => style.time(ms, "%Y-%m-%d %H:%M"),
    };
    let host = |row: &HistoryRow| (!is_one_host).then_some(row.hostname.as_str()).into();
    let table = Table::of::<HistoryRow>(
        &[
            (Column::right("run"), &|row| Cell::integer(row.id, row.id.to_string())),
            (Column::left("date"), &|row| date(row).into()),
            (Column::left("kind").dispensable(5), &|row| row.kind.name().into()),
            (Column::left("target"), &|row| row.target.as_str().into()),
            (Column::left("host").dispensable(3), &host),
            (Column::right("read IOPS"), &|row| row.best.read_iops.map(Cell::iops).into()),
            (Column::right("write IOPS").dispensable(4), &|row| row.best.write_iops.map(Cell::iops).into()),
            (Column::right("MiB/s").dispensable(2), &|row| {
                row.best.bytes_per_second.map(Cell::mebibytes).into()
            }),
            (Column::right("p50").dispensable(0), &|row| row.best.lat_p50_ns.map(Cell::mean_latency).into()),
            (Column::left("result"), &|row| result(row).into()),
            (Column::right("findings").dispensable(1), &|row| {
                (row.findings > 0).then(|| Cell::count(row.findings)).into()
            }),
            (Column::left("tags"), &|row| row.tags.join(", ").into()),
            (Column::left("labels"), &|row| labels(row).into()),
            (Column::left("notes").dispensable(6), &|row| row.notes.join("; ").into()),
        ],
        rows,
    );
    let tone = |row: &HistoryRow| match (row.status, row.verdict.as_deref()) {
        (TestStatus::Failed, _) | (_, Some("missed")) => Tone::Alarm,
        (TestStatus::Incomplete, _) => Tone::Dim,
        _ => Tone::Normal,
    };
    let mut view = View { data: data(rows), ..View::default() };
    match rows {
        [] => view.push("", [Block::note(none)]),
        _ => {
            let table = table.without_empty().toned(rows.iter().map(tone));
            let legend = "IOPS and MiB/s are the highest of a run's tests, p50 is the lowest.";
            view.push("", [Block::Table(table)]);
            if rows.iter().any(|row| row.best != BestFigures::default()) {
                view.push("", [Block::note(legend)]);
            }
        }
    }
    view
}

fn data(rows: &[HistoryRow]) -> Table {
    const COLUMNS: &str = "\
        id,started,started_unix_ms,stored_unix_ms,target,kind,command,status,tests,\
        read_iops=best.read_iops,write_iops=best.write_iops,bytes_per_second=best.bytes_per_second,\
        lat_p50_ns=best.lat_p50_ns,verdict,findings,hostname,device,volume_type,tags,labels,notes,tool_version";
    let document =
        |row: &HistoryRow| object([json!(row), json!({ "tags": row.tags.join(","), "labels": labels(row) })]);
    Table::of_documents(&[COLUMNS], rows.iter().map(document))
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
