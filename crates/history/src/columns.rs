//! The columns of a run beside its record, by which it is listed and found: filled from the header and each test as they are
//! stored, and for the runs of older formats when these are migrated.

use fathom_analysis::criterion::{LatencySpan, Metric, MetricDirection, MetricKind, Statistic};
use fathom_record::{RunHeader, SCHEMA, TestRecord, TestSummary};
use rusqlite::{Transaction, params};

use crate::RunId;
use crate::history::json;
use crate::list::text_of;

const SET_HEADER: &str =
    "UPDATE runs SET header = ?2, started_unix_ms = ?3, target = ?4, kind = ?5, command = ?6,
    hostname = ?7, device = ?8, volume_type = ?9, labels = ?10, tool_version = ?11 WHERE id = ?1";

/// Adds a run with this header.
pub(crate) fn insert_run(transaction: &Transaction<'_>, header: &RunHeader) -> rusqlite::Result<RunId> {
    transaction.execute(
        "INSERT INTO runs (schema, header, stored_unix_ms) VALUES (?1, '', unixepoch() * 1000)",
        [SCHEMA],
    )?;
    let run = RunId(transaction.last_insert_rowid());
    set_header(transaction, run, header, &json(header))?;
    Ok(run)
}

/// Stores a header, whose JSON is `text`, and the columns that come from it.
pub(crate) fn set_header(
    transaction: &Transaction<'_>,
    run: RunId,
    header: &RunHeader,
    text: &str,
) -> rusqlite::Result<()> {
    let values = params![
        run.0,
        text,
        // A time that no clock has is stored as none.
        i64::try_from(header.started_unix_ms).unwrap_or(0),
        header.target,
        header.activity.kind().name(),
        header.command.join(" "),
        header.host().hostname,
        header.device_identity(),
        header.volume_type(),
        json(&header.labels),
        header.tool_version,
    ];
    transaction.prepare_cached(SET_HEADER)?.execute(values).map(drop)
}

/// The figures of a run that a list shows are the best of its tests.
const COUNT_TEST: &str = "UPDATE runs SET tests = tests + 1,
    read_iops = coalesce(max(read_iops, ?2), read_iops, ?2),
    write_iops = coalesce(max(write_iops, ?3), write_iops, ?3),
    bytes_per_second = coalesce(max(bytes_per_second, ?4), bytes_per_second, ?4),
    lat_p50_ns = coalesce(min(lat_p50_ns, ?5), lat_p50_ns, ?5) WHERE id = ?1";

/// Counts a test of a run, and takes its figures where they are the best so far.
pub(crate) fn count_test(
    transaction: &Transaction<'_>,
    run: RunId,
    summary: &TestSummary,
) -> rusqlite::Result<()> {
    let of = |direction, kind| Metric { direction: Some(direction), kind }.of(summary);
    let median = MetricKind::Latency(LatencySpan::Total, Statistic::Percentile(500_000));
    let values = params![
        run.0,
        of(MetricDirection::Read, MetricKind::Iops),
        of(MetricDirection::Write, MetricKind::Iops),
        of(MetricDirection::Total, MetricKind::BytesPerSecond),
        of(MetricDirection::Total, median),
    ];
    transaction.prepare_cached(COUNT_TEST)?.execute(values).map(drop)
}

/// Stores the metrics of `test` under their names. For a repeated test, the last values apply.
pub(crate) fn insert_metrics(
    transaction: &Transaction<'_>,
    run: RunId,
    test: &str,
    summary: &TestSummary,
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT OR REPLACE INTO metrics (run_id, test, metric, value) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for (metric, value) in Metric::all_of(summary) {
        insert.execute(params![run.0, test, metric.to_string(), value])?;
    }
    Ok(())
}

/// Fills the columns of every stored run. What cannot be read of a run stays as it is: it is reported when the run is read.
pub(crate) fn fill(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut found = transaction.prepare("SELECT id FROM runs ORDER BY id")?;
    let runs: Vec<i64> = found.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for run in runs.into_iter().map(RunId) {
        fill_header(transaction, run)?;
        fill_tests(transaction, run)?;
    }
    Ok(())
}

fn fill_header(transaction: &Transaction<'_>, run: RunId) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(
        "SELECT header, iif(json_valid(findings), json_array_length(findings), 0) FROM runs WHERE id = ?1",
    )?;
    let mut rows = statement.query([run.0])?;
    let Some(row) = rows.next()? else { return Ok(()) };
    let findings: i64 = row.get(1).unwrap_or(0);
    let read = text_of(row, 0, "header").ok().map(str::to_owned);
    drop(rows);
    transaction.execute("UPDATE runs SET finding_count = ?2 WHERE id = ?1", [run.0, findings])?;
    let Some(text) = read else { return Ok(()) };
    match RunHeader::from_json(&text) {
        Ok(header) => set_header(transaction, run, &header, &text),
        Err(_) => Ok(()),
    }
}

fn fill_tests(transaction: &Transaction<'_>, run: RunId) -> rusqlite::Result<()> {
    let mut statement =
        transaction.prepare_cached("SELECT position, body FROM tests WHERE run_id = ?1 ORDER BY position")?;
    let mut rows = statement.query([run.0])?;
    while let Some(row) = rows.next()? {
        let position: i64 = row.get(0)?;
        let body = text_of(row, 1, "test").ok();
        let test = body.and_then(|body| TestRecord::from_json(body).ok());
        let Some(test) = test else {
            transaction.execute("UPDATE runs SET tests = tests + 1 WHERE id = ?1", [run.0])?;
            continue;
        };
        name_test(transaction, run, position, &test.id)?;
        let summary = TestSummary::new(&test);
        count_test(transaction, run, &summary)?;
        // Formats before the second had no metrics.
        insert_metrics(transaction, run, &test.id, &summary)?;
    }
    Ok(())
}

fn name_test(transaction: &Transaction<'_>, run: RunId, position: i64, id: &str) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE tests SET id = ?3 WHERE run_id = ?1 AND position = ?2")?
        .execute(params![run.0, position, id])
        .map(drop)
}
