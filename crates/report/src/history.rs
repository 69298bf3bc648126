//! The list of past runs, as a table and as JSON.

use std::io;

use fathom_record::HistoryRow;
use jiff::Timestamp;

use crate::columns::{Align, Columns};
use crate::{Style, TextWriter, document};

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

const LEFT: Align = Align::Left;
const RIGHT: Align = Align::Right;

/// Writes the list as a table.
///
/// # Errors
/// Those of `out`.
pub fn render_table(rows: &[HistoryRow], style: &Style, out: &mut TextWriter) -> io::Result<()> {
    if rows.is_empty() {
        return writeln!(out, "No runs are kept yet.");
    }
    let row = |row: &HistoryRow| {
        let started = match row.started_unix_ms {
            0 => row.started.clone(),
            ms => style.time(ms, "%Y-%m-%d %H:%M"),
        };
        let labels: Vec<String> = row.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        vec![
            row.id.to_string(),
            started,
            row.kind.name().to_owned(),
            row.target.clone(),
            row.tests.to_string(),
            row.status.name().to_owned(),
            labels.join(" "),
        ]
    };
    let mut columns = Columns {
        head: vec!["run", "started", "kind", "target", "tests", "status", "labels"],
        align: vec![RIGHT, LEFT, LEFT, LEFT, RIGHT, LEFT, LEFT],
        rows: rows.iter().map(row).collect(),
    };
    if rows.iter().all(|row| row.labels.is_empty()) {
        columns.drop("labels");
    }
    let gap = columns.fit(style.width.max(40), &["labels", "kind", "tests"]);
    let lines = columns.lines(gap);
    writeln!(out, "{}", style.bold(&lines[0]))?;
    lines[1..].iter().try_for_each(|line| writeln!(out, "{line}"))
}
