//! The columns of a run beside its record, by which it is listed and found: filled from the header and each test as they are
//! stored, and for the runs of older formats when these are migrated.

use fathom_analysis::criterion::{LatencySpan, Metric, MetricDirection, MetricKind, Statistic};
use fathom_record::{RunHeader, SCHEMA, TestRecord, TestSummary};
use fathom_sys::clock::unix_ms;
use serde::de::IgnoredAny;

use crate::RunId;
use crate::database::{MORE, Transaction, Value};
use crate::error::Failure;
use crate::history::json;
use crate::notes::{ADD_TAG, is_tag};

const SET_HEADER: &str =
    "UPDATE runs SET header = ?2, started_unix_ms = ?3, target = ?4, kind = ?5, command = ?6,
    hostname = ?7, device = ?8, volume_type = ?9, labels = ?10, tool_version = ?11 WHERE id = ?1";

const INSERT_RUN: &str = "INSERT INTO runs (schema, header, stored_unix_ms) VALUES (?1, '', ?2) RETURNING id";

/// Adds a run with this header.
pub(crate) fn insert_run(transaction: &Transaction<'_>, header: &RunHeader) -> Result<RunId, Failure> {
    let stored = i64::try_from(unix_ms()).unwrap_or(0);
    let run = transaction.first(INSERT_RUN, &[SCHEMA.into(), stored.into()], |row| row.run(0))?;
    let run = run.unwrap_or(RunId(0));
    for tag in header.tags.iter().filter(|tag| is_tag(tag)) {
        transaction.execute(ADD_TAG, &[run.0.into(), tag.as_str().into()])?;
    }
    set_header(transaction, run, header, &json(header))?;
    Ok(run)
}

/// Stores a header, whose JSON is `text`, and the columns that come from it.
pub(crate) fn set_header(
    transaction: &Transaction<'_>,
    run: RunId,
    header: &RunHeader,
    text: &str,
) -> Result<(), Failure> {
    let (command, labels) = (header.command.join(" "), json(&header.labels));
    let (device, volume_type) = (header.device_identity(), header.volume_type());
    let target = header.target_text();
    let values = [
        run.0.into(),
        text.into(),
        // A time that no clock has is stored as none.
        i64::try_from(header.started_unix_ms).unwrap_or(0).into(),
        (&*target).into(),
        header.activity.kind().name().into(),
        command.as_str().into(),
        header.host().hostname.as_str().into(),
        device.as_str().into(),
        volume_type.into(),
        labels.as_str().into(),
        header.tool_version.as_str().into(),
    ];
    transaction.execute(SET_HEADER, &values).map(drop)
}

/// The figures of a run that a list shows are the best of its tests.
const COUNT_TEST: &str = "UPDATE runs SET tests = tests + 1,
    read_iops = CASE WHEN read_iops >= ?2 THEN read_iops ELSE coalesce(?2, read_iops) END,
    write_iops = CASE WHEN write_iops >= ?3 THEN write_iops ELSE coalesce(?3, write_iops) END,
    bytes_per_second = CASE WHEN bytes_per_second >= ?4 THEN bytes_per_second ELSE coalesce(?4, bytes_per_second) END,
    lat_p50_ns = CASE WHEN lat_p50_ns <= ?5 THEN lat_p50_ns ELSE coalesce(?5, lat_p50_ns) END WHERE id = ?1";

/// Counts a test of a run, and takes its figures where they are the best so far.
pub(crate) fn count_test(
    transaction: &Transaction<'_>,
    run: RunId,
    summary: &TestSummary,
) -> Result<(), Failure> {
    let of = |direction, kind| Metric { direction: Some(direction), kind }.of(summary);
    let median = MetricKind::Latency(LatencySpan::Total, Statistic::Percentile(500_000));
    let values = [
        run.0.into(),
        of(MetricDirection::Read, MetricKind::Iops).into(),
        of(MetricDirection::Write, MetricKind::Iops).into(),
        of(MetricDirection::Total, MetricKind::BytesPerSecond).into(),
        of(MetricDirection::Total, median).into(),
    ];
    transaction.execute(COUNT_TEST, &values).map(drop)
}

/// Stores the metrics of `test` under their names, in one statement: each takes the way to a server and back. For a repeated
/// test, the last values apply.
pub(crate) fn insert_metrics(
    transaction: &Transaction<'_>,
    run: RunId,
    test: &str,
    summary: &TestSummary,
) -> Result<(), Failure> {
    let metrics: Vec<(String, f64)> =
        Metric::all_of(summary).into_iter().map(|(metric, value)| (metric.to_string(), value)).collect();
    if metrics.is_empty() {
        return Ok(());
    }
    let mut values: Vec<Value<'_>> = vec![run.0.into(), test.into()];
    let mut rows = String::new();
    for (name, value) in &metrics {
        values.push(name.as_str().into());
        values.push(Some(*value).into());
        let separator = if rows.is_empty() { "" } else { ", " };
        rows += &format!("{separator}(?1, ?2, ?{}, ?{})", values.len() - 1, values.len());
    }
    let insert = format!(
        "INSERT INTO metrics (run_id, test, metric, value) VALUES {rows}
         ON CONFLICT (metric, test, run_id) DO UPDATE SET value = excluded.value"
    );
    transaction.execute(&insert, &values).map(drop)
}

/// Fills the columns of every stored run. What cannot be read of a run stays as it is: it is reported when the run is read.
pub(crate) fn fill(transaction: &Transaction<'_>) -> Result<(), Failure> {
    let mut runs = Vec::new();
    transaction.each("SELECT id FROM runs ORDER BY id", &[], |row| {
        runs.push(row.run(0));
        MORE
    })?;
    for run in runs {
        fill_header(transaction, run)?;
        fill_tests(transaction, run)?;
    }
    Ok(())
}

fn fill_header(transaction: &Transaction<'_>, run: RunId) -> Result<(), Failure> {
    let select = "SELECT header, findings FROM runs WHERE id = ?1";
    let read =
        |index: usize| transaction.first(select, &[run.0.into()], |row| row.text(index).map(str::to_owned));
    let findings = read(1)?.flatten().and_then(|text| serde_json::from_str::<Vec<IgnoredAny>>(&text).ok());
    let count = findings.map_or(0, |findings| findings.len() as i64);
    let values = [run.0.into(), count.into()];
    transaction.execute("UPDATE runs SET finding_count = ?2 WHERE id = ?1", &values)?;
    let Some(text) = read(0)?.flatten() else { return Ok(()) };
    match RunHeader::from_json(&text) {
        Ok(header) => set_header(transaction, run, &header, &text),
        Err(_) => Ok(()),
    }
}

fn fill_tests(transaction: &Transaction<'_>, run: RunId) -> Result<(), Failure> {
    let select = "SELECT position, body FROM tests WHERE run_id = ?1 ORDER BY position";
    transaction.each(select, &[run.0.into()], |row| {
        let position = row.int(0).unwrap_or_default();
        let Some(test) = row.text(1).and_then(|body| TestRecord::from_json(body).ok()) else {
            transaction.execute("UPDATE runs SET tests = tests + 1 WHERE id = ?1", &[run.0.into()])?;
            return MORE;
        };
        let name = "UPDATE tests SET id = ?3 WHERE run_id = ?1 AND position = ?2";
        transaction.execute(name, &[run.0.into(), position.into(), test.id.as_str().into()])?;
        let summary = TestSummary::new(&test);
        count_test(transaction, run, &summary)?;
        // Formats before the second had no metrics.
        insert_metrics(transaction, run, &test.id, &summary)?;
        MORE
    })
}
