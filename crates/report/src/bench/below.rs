//! What stands below the table of `bench`: verdicts on what was expected, findings, notes, and the fio commands.

use std::io;

use fathom_analysis::steady::lasting::{Lasting, SUSTAINED_SECONDS, lasting};
use fathom_model::units;
use fathom_record::{ExpectationRecord, Finding, RunRecord, TestRecord, TestSummary};

use crate::bench::table::{INDENT, commits, count, decimal, name, row_latency};
use crate::columns::{self, Align, Columns, pad, wrap};
use crate::{Style, TextWriter, bench::rounds as bench_rounds, bench::together as bench_together, promises};

/// Writes everything below the table.
pub(crate) fn render(
    record: &RunRecord,
    summaries: &[TestSummary],
    style: &Style,
    width: usize,
    out: &mut TextWriter,
) -> io::Result<()> {
    promises::render(record, style, width, out)?;
    if record.header.promises.is_empty() {
        expectations(record, style, width, out)?;
    }
    bench_rounds::render(record, style, width, out)?;
    findings(record, style, width, out)?;
    bench_together::render(record, style, width, out)?;
    conclusions(record, style, width, out)?;
    let mut notes = notes(record, summaries);
    notes.splice(0..0, legend(summaries));
    if !notes.is_empty() {
        writeln!(out)?;
    }
    for line in notes.iter().flat_map(|note| wrap(note, width, INDENT, INDENT + 2)) {
        writeln!(out, "{line}")?;
    }
    if style.show_fio { fio_commands(record, out) } else { Ok(()) }
}

/// For records that were made when suites alone expected anything: one line per expectation with what was measured and the verdict.
fn expectations(record: &RunRecord, style: &Style, width: usize, out: &mut TextWriter) -> io::Result<()> {
    let judged = |test: &TestRecord, expected: &ExpectationRecord| {
        let (quantity, shown) = quantity(&expected.metric);
        let value = format!("{} {}", expected.is, shown(expected.value));
        let verdict = match expected.met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "not measured",
        };
        let observed = expected.observed.map(shown).unwrap_or_default();
        vec![name(test).to_owned(), expected.class.clone(), quantity, value, observed, verdict.to_owned()]
    };
    // What a use needs is told of with the use.
    let is_of_class = |test: &&TestRecord| test.purpose.is_empty();
    let of_test = |test: &TestRecord| test.expected.iter().map(|one| judged(test, one)).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = record.tests.iter().filter(is_of_class).flat_map(of_test).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let head = vec!["expected of", "class", "", "at", "measured", "verdict"];
    let align = vec![Align::Left, Align::Left, Align::Left, Align::Right, Align::Right, Align::Left];
    let mut columns = Columns { head, align, rows };
    let gap = columns.fit(width - INDENT, &["class"]);
    let lines = columns.lines(gap);
    writeln!(out)?;
    writeln!(out, "{:INDENT$}{}", "", style.bold(&lines[0]))?;
    for line in &lines[1..] {
        let missed = line.ends_with("missed");
        writeln!(out, "{:INDENT$}{}", "", if missed { style.red(line) } else { line.clone() })?;
    }
    Ok(())
}

/// Name and printed form of the quantity that a metric's address ends in.
fn quantity(metric: &str) -> (String, fn(f64) -> String) {
    let latency: fn(f64) -> String = |ns| units::latency(ns.max(0.0).round() as u64);
    let mut parts = metric.rsplit('.');
    match (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) {
        ("iops", _) => ("IOPS".to_owned(), count),
        ("bytes_per_second", _) => ("MB/s".to_owned(), |rate| decimal(rate / 1e6)),
        (statistic, kind) => (format!("{} {statistic}", kind.trim_end_matches("_ns")), latency),
    }
}

pub(crate) fn findings(
    record: &RunRecord,
    style: &Style,
    width: usize,
    out: &mut TextWriter,
) -> io::Result<()> {
    if record.findings.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    writeln!(out, "{}", style.bold("What it tells"))?;
    let names = record.findings.iter().map(|finding| columns::width(finding.id.name())).max().unwrap_or(0);
    let indent = INDENT + names + 2;
    // What is to be done about several of one kind is said once, after the last.
    for alike in record.findings.chunk_by(|one, next| (&one.id, &one.remedy) == (&next.id, &next.remedy)) {
        let claims = alike.iter().flat_map(|finding| wrap(&claim(record, finding), width, indent, indent));
        let remedy = alike[0].remedy.iter().flat_map(|remedy| wrap(remedy, width, indent, indent));
        for (index, line) in claims.chain(remedy).enumerate() {
            let label = if index == 0 { alike[0].id.name() } else { "" };
            writeln!(out, "{:INDENT$}{}  {}", "", pad(label, names), line.trim_start_matches(' '))?;
        }
    }
    Ok(())
}

/// The claim with the tests it rests on.
fn claim(record: &RunRecord, finding: &Finding) -> String {
    let of_finding = record.tests.iter().filter(|test| finding.tests.contains(&test.id));
    match of_finding.map(name).collect::<Vec<_>>().as_slice() {
        [] => finding.claim.clone(),
        tests => format!("{}: {}", tests.join("; "), finding.claim),
    }
}

/// A line per use: whether the volume serves it, and why.
fn conclusions(record: &RunRecord, style: &Style, width: usize, out: &mut TextWriter) -> io::Result<()> {
    let all = fathom_analysis::conclusions::conclusions(record);
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    writeln!(out, "{}", style.bold("What it is good for"))?;
    let names = all.iter().map(|conclusion| columns::width(&conclusion.purpose)).max().unwrap_or(0);
    let indent = INDENT + names + 2;
    for conclusion in &all {
        let text = format!("{}: {}.", conclusion.verdict.name(), conclusion.reason);
        for (index, line) in wrap(&text, width, indent, indent).iter().enumerate() {
            let label = if index == 0 { conclusion.purpose.as_str() } else { "" };
            writeln!(out, "{:INDENT$}{}  {}", "", pad(label, names), line.trim_start_matches(' '))?;
        }
    }
    Ok(())
}

/// How long the rates last, where that can be said of any; else what it would take.
fn lasting_note(record: &RunRecord) -> Option<String> {
    let measured = record.tests.iter().filter(|test| !test.jobs.is_empty());
    let labels: Vec<(&TestRecord, Lasting)> = measured.map(|test| (test, lasting(test))).collect();
    let named = |wanted: Lasting| {
        let tests: Vec<&str> =
            labels.iter().filter(|(_, label)| *label == wanted).map(|(test, _)| name(test)).collect();
        (!tests.is_empty()).then(|| format!("{}: {}", wanted.name(), tests.join("; ")))
    };
    let told: Vec<String> = [Lasting::Sustained, Lasting::Peak].into_iter().filter_map(named).collect();
    match (labels.is_empty(), told.is_empty()) {
        (true, _) => None,
        (false, true) => Some(format!(
            "Whether these rates last is undecided: it takes {} s of an even rate (--until-steady, or --runtime).",
            SUSTAINED_SECONDS
        )),
        (false, false) => {
            Some(format!("Rates that last, and peaks: {}; all others undecided.", told.join(". ")))
        }
    }
}

/// What the heads of the table mean that do not say it themselves.
fn legend(summaries: &[TestSummary]) -> Option<String> {
    let mut parts = Vec::new();
    if summaries.iter().any(|summary| summary.stability.is_some()) {
        parts.push("±% is the spread of the rate from second to second".to_owned());
    }
    let measured = summaries.iter().filter(|summary| summary.total.is_some());
    if let Some(device) = measured.filter_map(|summary| summary.device.as_ref()).next() {
        parts.push(format!("device is what the kernel counted for {}, per second", device.name));
    }
    (!parts.is_empty()).then(|| format!("{}.", parts.join("; ")))
}

/// Notes in the order they came, each once, with the tests it belongs to.
#[derive(Default)]
struct TestNotes<'a>(Vec<(String, Vec<&'a str>)>);

impl<'a> TestNotes<'a> {
    fn add(&mut self, text: impl Into<String>, test: Option<&'a TestRecord>) {
        let text = text.into();
        let label = test.map(name);
        match self.0.iter_mut().find(|(known, _)| *known == text) {
            Some((_, tests)) => tests.extend(label),
            None => self.0.push((text, label.into_iter().collect())),
        }
    }
}

/// What a reader must know to read the numbers.
fn notes(record: &RunRecord, summaries: &[TestSummary]) -> Vec<String> {
    let mut notes = TestNotes::default();
    for note in &record.header.notes {
        notes.add(note, None);
    }
    for (test, summary) in record.tests.iter().zip(summaries) {
        for note in &test.notes {
            notes.add(note, Some(test));
        }
        if commits(summary) {
            notes.add("latencies are those of the sync alone, without the write before it.", Some(test));
        }
        if let Some(total) = summary.total.as_ref().filter(|_| !is_timed(test)) {
            let span = units::duration(fathom_model::Nanos(summary.measured_ns));
            notes.add(format!("{} in {span}.", units::bytes(total.bytes)), Some(test));
        }
    }
    if summaries.iter().any(shows_thin) {
        notes.add("~ marks a percentile beyond which fewer than ten samples lie.", None);
    }
    notes.0.extend(lasting_note(record).map(|note| (note, Vec::new())));
    if let Some(why) = &record.header.interrupted {
        notes.add(format!("The run was broken off: {why}."), None);
    }
    let line = |(text, tests): (String, Vec<&str>)| match tests.as_slice() {
        [] => text,
        tests => format!("{}: {text}", tests.join("; ")),
    };
    notes.0.into_iter().map(line).collect()
}

/// True where the test was to run for a time, not to move an amount.
fn is_timed(test: &TestRecord) -> bool {
    test.jobs.iter().all(|job| job.plan.time.time_based)
}

/// True where the row of the table shows an uncertain percentile.
fn shows_thin(summary: &TestSummary) -> bool {
    let thin = row_latency(summary).thin;
    thin.p50.or(thin.p99).or(thin.p999).is_some()
}

/// The exact commands, never wrapped, so that they can be copied.
fn fio_commands(record: &RunRecord, out: &mut TextWriter) -> io::Result<()> {
    writeln!(out)?;
    writeln!(out, "The same with fio:")?;
    for test in record.tests.iter().filter(|test| !test.fio.is_empty()) {
        writeln!(out, "{:INDENT$}# {}", "", test.id)?;
        writeln!(out.verbatim(), "{:INDENT$}{}", "", test.fio)?;
    }
    Ok(())
}
