//! What `prepare` did, for people: a line per stage, whether the workload settled, what went wrong.

use std::io;

use fathom_analysis::prepare::{StageResult, results, stage_of};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped};
use fathom_record::{PrepareStage, RoundsRecord, RunRecord, TestStatus};

use crate::bench::rounds::figure;
use crate::bench::table::{INDENT, decimal, header};
use crate::columns::{Align, Columns, wrap};
use crate::{Style, TextWriter};

/// Writes what became of each stage.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let width = style.width.max(40);
    header(record, style, width, out)?;
    let results = results(record);
    if results.is_empty() {
        return writeln!(out, "  Nothing was done.");
    }
    let head = vec!["stage", "done", "of", "time", "MiB/s", "errors", ""];
    let mut align = vec![Align::Right; head.len()];
    (align[0], align[6]) = (Align::Left, Align::Left);
    let rows = results.iter().map(|result| row(record, result)).collect();
    let mut columns = Columns { head, align, rows };
    if results.iter().all(|result| result.errors == 0) {
        columns.drop("errors");
    }
    let gap = columns.fit(width - INDENT, &["of"]);
    let lines = columns.lines(gap);
    writeln!(out, "{:INDENT$}{}", "", style.bold(&lines[0]))?;
    for (line, result) in lines[1..].iter().zip(&results) {
        let line = if result.complete && result.errors == 0 { line.clone() } else { style.red(line) };
        writeln!(out, "{:INDENT$}{line}", "")?;
    }
    below(record, style, width, out)
}

fn row(record: &RunRecord, result: &StageResult) -> Vec<String> {
    let is_workload = result.stage == PrepareStage::Workload;
    let state = match () {
        () if is_workload => return workload_row(record, result),
        () if result.complete => "complete",
        () if result.moved_bytes == 0 && result.errors == 0 => "not begun",
        () => "incomplete",
    };
    vec![
        result.stage.title().to_owned(),
        bytes(result.covered_bytes),
        bytes(record.header.size_bytes),
        time(result),
        result.bytes_per_second().map(|rate| decimal(rate / f64::from(1 << 20))).unwrap_or_default(),
        grouped(result.errors),
        state.to_owned(),
    ]
}

fn time(result: &StageResult) -> String {
    if result.elapsed_ns == 0 { String::new() } else { duration(Nanos(result.elapsed_ns)) }
}

fn rounds(record: &RunRecord) -> Option<&RoundsRecord> {
    record.tests.iter().find_map(|test| test.rounds.as_ref())
}

fn workload_row(record: &RunRecord, result: &StageResult) -> Vec<String> {
    let rounds = rounds(record);
    let count = rounds.map_or(0, |rounds| rounds.values.len());
    let state = match rounds {
        Some(rounds) if rounds.steady => "steady",
        Some(_) if result.complete => "not steady",
        Some(_) => "broken off",
        None => "not begun",
    };
    let elapsed = rounds.map(|rounds| duration(Nanos(rounds.elapsed_ns))).unwrap_or_default();
    let done = if count == 1 { "1 round".to_owned() } else { format!("{count} rounds") };
    let rate = result.bytes_per_second().map(|rate| decimal(rate / f64::from(1 << 20))).unwrap_or_default();
    let title = result.stage.title().to_owned();
    vec![title, done, String::new(), elapsed, rate, grouped(result.errors), state.to_owned()]
}

fn below(record: &RunRecord, style: &Style, width: usize, out: &mut TextWriter) -> io::Result<()> {
    let mut paragraphs = Vec::new();
    if let Some(rounds) = rounds(record) {
        paragraphs.push(rounds_text(rounds));
    }
    for finding in &record.findings {
        let remedy = finding.remedy.clone().unwrap_or_default();
        paragraphs.push(format!("{}: {} {remedy}", finding.id, finding.claim));
    }
    for test in record.tests.iter().filter(|test| test.status != TestStatus::Complete) {
        let title = stage_of(test).map_or(test.id.as_str(), |stage| stage.title());
        let reason = test.reason.clone().unwrap_or_else(|| "no reason is known".to_owned());
        paragraphs.push(format!("{title}: {}: {reason}.", test.status.name()));
    }
    paragraphs.extend(record.header.notes.iter().map(|note| format!("Note: {note}.")));
    paragraphs.dedup();
    for (index, text) in paragraphs.iter().enumerate() {
        if index == 0 {
            writeln!(out)?;
        }
        for line in wrap(text, width, INDENT, INDENT + 2) {
            writeln!(out, "{}", if text.starts_with("Note") { style.dim(&line) } else { line })?;
        }
    }
    Ok(())
}

fn rounds_text(rounds: &RoundsRecord) -> String {
    let values: Vec<String> =
        rounds.values.iter().map(|value| figure(&rounds.tracked, *value).text).collect();
    let percent = |share: Option<f64>| {
        share.map_or_else(|| "unknown".to_owned(), |share| format!("{:.1} %", share * 100.0))
    };
    let verdict = if rounds.steady { "the last five agree" } else { "the last five do not agree" };
    format!(
        "Rounds of {}: {}. Range {}, drift {}: {verdict} (at most 20 % and 10 %). A device \
         that rests recovers: begin the measurement at once.",
        duration(Nanos(rounds.round_ns)),
        values.join(", "),
        percent(rounds.range_fraction),
        percent(rounds.drift_fraction),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_record::{Activity, PrepareActivity};
    use fathom_record::{ErrorCountRecord, JobRecord, OpRecord, PhaseRecord, RunHeader, TestRecord};

    const MIB: u64 = 1 << 20;

    /// A piece of 100 MiB that took two seconds.
    fn piece(id: &str, status: TestStatus, errors: u64) -> TestRecord {
        let op = OpRecord { issued: 100, ios: 100, bytes: 100 * MIB, ..OpRecord::default() };
        let measured = PhaseRecord { end_ns: 2_000_000_000, write: op, ..PhaseRecord::default() };
        let errors = match errors {
            0 => Vec::new(),
            count => vec![ErrorCountRecord { op: "write".to_owned(), errno: 5, count }],
        };
        let job = JobRecord { rw: "write".to_owned(), measured, errors, ..JobRecord::default() };
        let reason = (status != TestStatus::Complete).then(|| "signal 2".to_owned());
        TestRecord { id: id.to_owned(), status, reason, jobs: vec![job], ..TestRecord::default() }
    }

    fn lines(tests: Vec<TestRecord>, stages: &[PrepareStage]) -> Vec<String> {
        let begun = tests
            .iter()
            .filter_map(stage_of)
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        let header = RunHeader { size_bytes: 200 * MIB, ..RunHeader::default() };
        let mut record = RunRecord { tests, header, ..RunRecord::default() };
        let mut out = Vec::new();
        let activity = PrepareActivity { stages: if stages.is_empty() { begun } else { stages.to_vec() } };
        record.header.activity = Activity::Prepare(activity);
        render(&record, &Style::default(), &mut TextWriter::new(&mut out)).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().skip_while(|line| !line.starts_with("  ")).map(str::to_owned).collect()
    }

    #[test]
    fn each_stage_has_a_line_and_what_ended_it() {
        let second = format!("fill-{}", 100 * MIB);
        let tests = vec![piece("fill-0", TestStatus::Complete, 0), piece(&second, TestStatus::Incomplete, 0)];
        assert_eq!(
            lines(tests.clone(), &[PrepareStage::Fill, PrepareStage::Workload, PrepareStage::Touch]),
            [
                "  stage                     done       of  time  MiB/s",
                "  fill                   100 MiB  200 MiB   4 s   50.0  incomplete",
                "  precondition, rounds  0 rounds                        not begun",
                "  touch                      0 B  200 MiB               not begun",
                "",
                "  fill: incomplete: signal 2.",
            ]
        );
        // Where the plan is not known, what was begun is told.
        assert_eq!(lines(tests, &[]).len(), 4);
        assert_eq!(lines(Vec::new(), &[]), ["  Nothing was done."]);
    }

    #[test]
    fn failed_requests_have_a_column() {
        let found = lines(vec![piece("fill-0", TestStatus::Complete, 3)], &[]);
        assert_eq!(found[0], "  stage     done       of  time  MiB/s  errors");
        assert_eq!(found[1], "  fill   100 MiB  200 MiB   2 s   50.0       3  incomplete");
    }
}
