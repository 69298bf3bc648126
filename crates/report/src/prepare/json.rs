//! The document of `prepare --json`: `fathom.prepare/1`.

use std::io::{self, Write};

use fathom_analysis::prepare::{CompletedPiece, StageResult, results, stage_of};
use fathom_record::{PrepareStage, RoundsRecord, RunRecord, TestRecord, TestStatus, TestSummary};
use serde::Serialize;

use crate::{Style, run_json};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.prepare/1";

#[derive(Serialize)]
struct PrepareDocument<'a> {
    size_bytes: u64,
    stages: Vec<StageDocument<'a>>,
}

#[derive(Serialize)]
struct StageDocument<'a> {
    #[serde(flatten)]
    result: StageResult,
    /// Null where nothing was moved.
    bytes_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<WorkloadDocument<'a>>,
    pieces: Vec<PieceDocument<'a>>,
}

#[derive(Serialize)]
struct WorkloadDocument<'a> {
    rw: &'a str,
    block_size_bytes: u64,
    iodepth: u32,
    /// Of the rounds that count; null where nothing completed.
    iops: Option<f64>,
    rounds: Option<&'a RoundsRecord>,
}

#[derive(Serialize)]
struct PieceDocument<'a> {
    /// Null for the workload.
    offset_bytes: Option<u64>,
    /// Bytes of the piece; null where it did not come to its end.
    bytes: Option<u64>,
    elapsed_ns: u64,
    bytes_per_second: Option<f64>,
    status: TestStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    fio: &'a str,
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let result = PrepareDocument {
        size_bytes: record.header.size_bytes,
        stages: results(record).into_iter().map(|result| stage(record, result)).collect(),
    };
    run_json::write(SCHEMA, record, &result, style, out)
}

fn stage(record: &RunRecord, result: StageResult) -> StageDocument<'_> {
    let tests: Vec<&TestRecord> =
        record.tests.iter().filter(|test| stage_of(test) == Some(result.stage)).collect();
    let is_workload = result.stage == PrepareStage::Workload;
    StageDocument {
        bytes_per_second: result.bytes_per_second(),
        result,
        workload: tests.first().filter(|_| is_workload).map(|test| workload(test)),
        pieces: tests.into_iter().map(piece).collect(),
    }
}

fn workload(test: &TestRecord) -> WorkloadDocument<'_> {
    let job = test.jobs.first();
    WorkloadDocument {
        rw: job.map_or("", |job| job.rw()),
        block_size_bytes: job.map_or(0, |job| job.largest_blocks().write),
        iodepth: job.map_or(0, |job| job.iodepth()),
        iops: TestSummary::new(test).total.map(|total| total.iops),
        rounds: test.rounds.as_ref(),
    }
}

fn piece(test: &TestRecord) -> PieceDocument<'_> {
    let done = CompletedPiece::of(test).map(|done| done.piece);
    let summary = TestSummary::new(test);
    PieceDocument {
        offset_bytes: fathom_analysis::prepare::place(&test.id).map(|(_, offset)| offset),
        bytes: done.map(|piece| piece.length),
        elapsed_ns: summary.measured_ns,
        bytes_per_second: summary.total.map(|total| total.bytes_per_second),
        status: test.status,
        reason: test.reason.as_deref(),
        fio: &test.fio,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_record::{Activity, PrepareActivity};
    use serde_json::Value;

    #[test]
    fn what_is_not_known_is_null_and_never_zero() {
        let rounds =
            RoundsRecord { values: vec![1.0; 5], steady: true, counted: 5, ..RoundsRecord::default() };
        let test = TestRecord {
            id: PrepareStage::Workload.id().to_owned(),
            status: TestStatus::Complete,
            rounds: Some(rounds),
            ..TestRecord::default()
        };
        let mut record = RunRecord { tests: vec![test], ..RunRecord::default() };
        let mut out = Vec::new();
        let stages = vec![PrepareStage::Fill, PrepareStage::Workload];
        record.header.activity = Activity::Prepare(PrepareActivity { stages });
        render(&record, &Style::default(), &mut out).unwrap();
        let document: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(document["schema"], SCHEMA);
        let [fill, workload] = [&document["stages"][0], &document["stages"][1]];
        assert_eq!(
            (&fill["stage"], &fill["covered_bytes"], &fill["pieces"]),
            (&"fill".into(), &0.into(), &Value::Array(vec![]))
        );
        assert_eq!((&fill["bytes_per_second"], &fill["workload"]), (&Value::Null, &Value::Null));
        assert_eq!((&workload["complete"], &workload["covered_bytes"]), (&true.into(), &Value::Null));
        assert_eq!(workload["workload"]["rounds"]["steady"], true);
        assert_eq!(workload["workload"]["iops"], Value::Null);
    }
}
