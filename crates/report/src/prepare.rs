//! Reports of `prepare`: a row per stage, whether the workload settled, what went wrong.

use std::io::{self, Write};

use fathom_analysis::prepare::{StageResult, results, stage_of};
use fathom_model::Nanos;
use fathom_model::units::duration;
use fathom_record::{PrepareStage, RoundsRecord, RunRecord, TestStatus};
use serde_json::json;

use crate::bench::endings::figure;
use crate::document::object;
use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, Tone, View};
use crate::{Style, run_json, run_view, verdict};

/// Writes the document of `prepare --json`, indented.
///
/// # Errors
/// Those of `out`.
pub fn document(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let stages = results(record);
    let verdict = json!({
        "complete": is_complete(&stages),
        "errors": stages.iter().map(|stage| stage.errors).sum::<u64>(),
        "steady": rounds(record).map(|rounds| rounds.steady),
    });
    let result = json!({ "size_bytes": record.header.size_bytes, "stages": stages });
    run_json::write("fathom.prepare/1", record, &verdict, &result, style, out)
}

/// What became of each stage.
pub fn view(record: &RunRecord) -> View {
    let mut view = run_view::of_run(record);
    let results = results(record);
    if results.is_empty() {
        view.push("", [Block::note("Nothing was done.")]);
    } else {
        push_verdict(record, &results, &mut view);
    }
    let columns = [
        Column::left("stage"),
        Column::right("done"),
        Column::right("of").dispensable(0),
        Column::right("time"),
        Column::right("MiB/s"),
        Column::right("errors"),
        Column::left("state"),
    ];
    let has_errors = results.iter().any(|result| result.errors > 0);
    let stages = Table::new(columns, results.iter().map(|result| row(record, result)));
    view.push("", [Block::Table(if has_errors { stages } else { stages.without(&["errors"]) })]);
    view.data = data(record, &results);
    let steadiness = rounds(record).map(steadiness).unwrap_or_default();
    view.push_full("Steady state", [Block::KeyFigures(steadiness)]);
    view.push_full("Findings", [run_view::findings(record)]);
    let unfinished = record.tests.iter().filter(|test| test.status != TestStatus::Complete).map(|test| {
        let title = stage_of(test).map_or(test.id.as_str(), |stage| stage.title());
        let reason = test.reason.as_deref().unwrap_or("reason unknown");
        format!("{title}: {}: {reason}.", test.status.name())
    });
    let mut notes: Vec<String> = unfinished.collect();
    notes.dedup();
    notes.extend(record.header.notes.iter().map(|note| format!("{note}.")));
    view.push_full("Notes", [Block::Notes(notes)]);
    view
}

fn is_complete(stages: &[StageResult]) -> bool {
    !stages.is_empty() && stages.iter().all(|stage| stage.complete && stage.errors == 0)
}

/// Whether the target is ready to be measured, and what is missing.
fn push_verdict(record: &RunRecord, results: &[StageResult], view: &mut View) {
    let time: u64 = results.iter().map(|result| result.elapsed_ns).sum();
    let time = duration(Nanos(rounds(record).map_or(0, |rounds| rounds.elapsed_ns).max(time)));
    let steady =
        rounds(record).map(|rounds| if rounds.steady { ", steady state reached" } else { ", not steady" });
    view.warn("Stopped", run_view::interruption(record));
    if is_complete(results) {
        view.say(
            "Ready",
            format!(
                "{} prepared in {time}{}",
                Cell::bytes(record.header.size_bytes).text,
                steady.unwrap_or_default()
            ),
        );
    } else {
        let first = results.iter().find(|result| !result.complete || result.errors > 0);
        let title = first.map(|first| first.stage.title()).unwrap_or_default();
        let reason = record
            .tests
            .iter()
            .find_map(|test| test.reason.as_deref().filter(|_| test.status != TestStatus::Complete));
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        view.warn("Not ready", format!("{title} did not complete{reason}"));
    }
    verdict::push_problems(record, view);
}

fn row(record: &RunRecord, result: &StageResult) -> Row {
    let rounds = rounds(record).filter(|_| is_workload(result));
    let count = rounds.map_or(0, |rounds| rounds.values.len() as u64);
    let (done, of) = match (is_workload(result), count) {
        (true, 1) => (Cell::integer(1, "1 round"), Cell::default()),
        (true, count) => (Cell::integer(count, format!("{count} rounds")), Cell::default()),
        (false, _) => (result.covered_bytes.map(Cell::bytes).into(), Cell::bytes(record.header.size_bytes)),
    };
    let elapsed_ns = rounds.map_or(result.elapsed_ns, |rounds| rounds.elapsed_ns);
    let row = Row::new([
        result.stage.title().into(),
        done,
        of,
        Some(elapsed_ns).filter(|&ns| ns > 0).map(Cell::duration).into(),
        result.bytes_per_second.map(Cell::mebibytes).into(),
        Cell::count(result.errors),
        state(result, rounds).into(),
    ]);
    row.toned(if result.complete && result.errors == 0 { Tone::Normal } else { Tone::Alarm })
}

fn is_workload(result: &StageResult) -> bool {
    result.stage == PrepareStage::Workload
}

fn state(result: &StageResult, rounds: Option<&RoundsRecord>) -> &'static str {
    match (is_workload(result), rounds) {
        (true, Some(rounds)) if rounds.steady => "steady",
        (true, Some(_)) if result.complete => "not steady",
        (true, Some(_)) => "interrupted",
        (true, None) => "not started",
        (false, _) if result.complete => "complete",
        (false, _) if result.moved_bytes == 0 && result.errors == 0 => "not started",
        (false, _) => "incomplete",
    }
}

fn rounds(record: &RunRecord) -> Option<&RoundsRecord> {
    record.tests.iter().find_map(|test| test.rounds.as_ref())
}

fn steadiness(rounds: &RoundsRecord) -> Vec<KeyFigure> {
    let values: Vec<String> =
        rounds.values.iter().map(|value| figure(&rounds.tracked, *value).text).collect();
    let percent =
        |share: Option<f64>| share.map_or_else(|| "unknown".to_owned(), |share| Cell::percent(share).text);
    let verdict = if rounds.steady { "the last five are steady" } else { "the last five are not steady" };
    vec![
        KeyFigure::new(format!("rounds of {}", duration(Nanos(rounds.round_ns))), values.join(", ")),
        KeyFigure::new(
            "verdict",
            format!(
                "{verdict}: range {}, drift {} (at most 20 % and 10 %)",
                percent(rounds.range_fraction),
                percent(rounds.drift_fraction)
            ),
        ),
        KeyFigure::new("advice", "start the measurement at once: an idle device recovers"),
    ]
}

/// A row for each stage.
fn data(record: &RunRecord, results: &[StageResult]) -> Table {
    const COLUMNS: &str = "\
        stage,state,complete,covered_bytes,size_bytes,moved_bytes,elapsed_ns,bytes_per_second,errors,\
        rounds,range_fraction=settled.range_fraction,drift_fraction=settled.drift_fraction";
    let document = |result: &StageResult| {
        let rounds = rounds(record).filter(|_| is_workload(result));
        let rest = json!({
            "state": state(result, rounds),
            "size_bytes": record.header.size_bytes,
            "rounds": rounds.map(|rounds| rounds.values.len()),
            "settled": rounds,
        });
        object([json!(result), rest])
    };
    Table::of_documents(&[COLUMNS], results.iter().map(document))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use crate::formats;
    use fathom_model::Op;
    use fathom_record::{
        Activity, ErrorCount, JobRecord, OpOutcome, PhaseOutcome, PrepareActivity, RunHeader, TestRecord,
    };
    use serde_json::Value;

    const MIB: u64 = 1 << 20;

    /// A piece of 100 MiB that took two seconds.
    fn piece(id: &str, status: TestStatus, errors: u64) -> TestRecord {
        let op = OpOutcome { issued: 100, ios: 100, bytes: 100 * MIB, ..OpOutcome::default() };
        let measured = PhaseOutcome { end_ns: 2_000_000_000, write: op, ..PhaseOutcome::default() };
        let errors = match errors {
            0 => Vec::new(),
            count => vec![ErrorCount { op: Op::Write, errno: 5, count }],
        };
        let job = JobRecord { measured, errors, ..JobRecord::default() };
        let reason = (status != TestStatus::Complete).then(|| "signal 2".to_owned());
        TestRecord { id: id.to_owned(), status, reason, jobs: vec![job], ..TestRecord::default() }
    }

    fn lines(tests: Vec<TestRecord>, stages: &[PrepareStage]) -> Vec<String> {
        let header = RunHeader { size_bytes: 200 * MIB, ..RunHeader::default() };
        let record = RunRecord { tests, header, ..RunRecord::default() };
        let begun: BTreeSet<PrepareStage> = record.tests.iter().filter_map(stage_of).collect();
        let stages = if stages.is_empty() { begun.into_iter().collect() } else { stages.to_vec() };
        let mut record = record;
        record.header.activity = Activity::Prepare(PrepareActivity { stages });
        let view = view(&record);
        let text = {
            let style = Style { is_full: true, ..Style::default() };
            crate::text_writer::text(|out| formats::text::render(&view, &style, out)).unwrap()
        };
        text.lines().skip_while(|line| !line.starts_with("  ")).map(str::to_owned).collect()
    }

    #[test]
    fn each_stage_has_a_line_and_what_ended_it() {
        let second = format!("fill-{}", 100 * MIB);
        let tests = vec![piece("fill-0", TestStatus::Complete, 0), piece(&second, TestStatus::Incomplete, 0)];
        assert_eq!(
            lines(tests.clone(), &[PrepareStage::Fill, PrepareStage::Workload, PrepareStage::Touch]),
            [
                "  Not ready  fill did not complete (signal 2)",
                "",
                "  stage                     done       of  time  MiB/s  state",
                "  fill                   100 MiB  200 MiB   4 s   50.0  incomplete",
                "  precondition, rounds  0 rounds                        not started",
                "  touch                      0 B  200 MiB               not started",
                "",
                "Notes",
                "  fill: incomplete: signal 2.",
            ]
        );
        // Without a known plan, the stages that were begun are shown.
        assert_eq!(lines(tests, &[]).len(), 7);
        assert_eq!(lines(Vec::new(), &[]), ["  Nothing was done."]);
    }

    #[test]
    fn failed_requests_have_a_column() {
        let found = lines(vec![piece("fill-0", TestStatus::Complete, 3)], &[]);
        let table = found.iter().position(|line| line.starts_with("  stage")).unwrap();
        assert_eq!(found[table], "  stage     done       of  time  MiB/s  errors  state");
        assert_eq!(found[table + 1], "  fill   100 MiB  200 MiB   2 s   50.0       3  incomplete");
    }

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
        document(&record, &Style::default(), &mut out).unwrap();
        let document: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(document["schema"], "fathom.prepare/1");
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
