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
    let is_one_host = rows.windows(2).all(|pair| pair[0].hostname == pair[1].hostname);
    let date = |row: &HistoryRow| match row.dated_unix_ms() {
        0 => row.started.clone(),
        ms => style.time(ms, "%Y-%m-%d %H:%M"),
    };
    let host = |row: &HistoryRow| (!is_one_host).then_some(row.hostname.as_str()).into();
    let all = Table::of::<HistoryRow>(
        &[
            (Column::right("run").id("id"), &|row| Cell::integer(row.id, row.id.to_string())),
            (Column::data("started"), &|row| row.started.as_str().into()),
            (Column::data("started_unix_ms"), &|row| Cell::count(row.started_unix_ms)),
            (Column::data("stored_unix_ms"), &|row| Cell::count(row.stored_unix_ms)),
            (Column::left("date").id(""), &|row| date(row).into()),
            (Column::left("kind").id("").dispensable(5), &|row| row.kind.name().into()),
            (Column::left("target"), &|row| row.target.as_str().into()),
            (Column::data("kind"), &|row| row.kind.name().into()),
            (Column::left("host").id("").dispensable(3), &host),
            (Column::data("command"), &|row| row.command.as_str().into()),
            (Column::data("status"), &|row| row.status.name().into()),
            (Column::data("tests"), &|row| Cell::count(row.tests)),
            (Column::right("read IOPS").id("read_iops"), &|row| row.best.read_iops.map(Cell::iops).into()),
            (Column::right("write IOPS").id("write_iops").dispensable(4), &|row| {
                row.best.write_iops.map(Cell::iops).into()
            }),
            (Column::right("MiB/s").id("bytes_per_second").dispensable(2), &|row| {
                row.best.bytes_per_second.map(Cell::mebibytes).into()
            }),
            (Column::right("p50").id("lat_p50_ns").dispensable(0), &|row| {
                row.best.lat_p50_ns.map(Cell::mean_latency).into()
            }),
            (Column::left("result").id(""), &|row| result(row).into()),
            (Column::data("verdict"), &|row| row.verdict.as_deref().into()),
            (Column::right("findings").id("").dispensable(1), &|row| {
                (row.findings > 0).then(|| Cell::count(row.findings)).into()
            }),
            (Column::data("findings"), &|row| Cell::count(row.findings)),
            (Column::data("hostname"), &|row| row.hostname.as_str().into()),
            (Column::data("device"), &|row| row.device.as_str().into()),
            (Column::data("volume_type"), &|row| row.volume_type.as_deref().into()),
            (Column::left("tags").id(""), &|row| row.tags.join(", ").into()),
            (Column::data("tags"), &|row| row.tags.join(",").into()),
            (Column::left("labels"), &|row| labels(row).into()),
            (Column::left("notes").dispensable(6), &|row| row.notes.join("; ").into()),
            (Column::data("tool_version"), &|row| row.tool_version.as_str().into()),
        ],
        rows,
    );
    let tone = |row: &HistoryRow| match (row.status, row.verdict.as_deref()) {
        (TestStatus::Failed, _) | (_, Some("missed")) => Tone::Alarm,
        (TestStatus::Incomplete, _) => Tone::Dim,
        _ => Tone::Normal,
    };
    let mut view = View { data: all.clone(), ..View::default() };
    match rows {
        [] => view.push("", [Block::note(none)]),
        _ => {
            let table = all.without(&[""]).without_empty().toned(rows.iter().map(tone));
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
