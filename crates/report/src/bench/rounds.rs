//! The table of the rounds that tests were repeated in until they were steady: how many, how far apart, and whether they agree.

use std::io;

use fathom_model::Nanos;
use fathom_model::units::{duration, latency};
use fathom_record::{RoundsRecord, RunRecord, TestRecord, TestStatus};

use crate::bench::table::{INDENT, count, decimal, name};
use crate::columns::{Align, Columns, wrap};
use crate::{Style, TextWriter};

/// Writes a row per test that was repeated, and what the table means; nothing where none was.
pub(crate) fn render(
    record: &RunRecord,
    style: &Style,
    width: usize,
    out: &mut TextWriter,
) -> io::Result<()> {
    let rows: Vec<Vec<String>> =
        record.tests.iter().filter_map(|test| Some(row(test, test.rounds.as_ref()?))).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let head = vec!["until steady", "rounds", "of", "in all", "first", "last 5", "range", "drift", "verdict"];
    let mut align = vec![Align::Right; head.len()];
    (align[0], align[8]) = (Align::Left, Align::Left);
    let mut columns = Columns { head, align, rows };
    let gap = columns.fit(width - INDENT, &["of", "drift", "range"]);
    let lines = columns.lines(gap);
    writeln!(out)?;
    writeln!(out, "{:INDENT$}{}", "", style.bold(&lines[0]))?;
    for line in &lines[1..] {
        let unsettled = !line.ends_with(STEADY) || line.ends_with(NOT_STEADY);
        writeln!(out, "{:INDENT$}{}", "", if unsettled { style.red(line) } else { line.clone() })?;
    }
    let rule = "Steady is where the last five rounds range over at most 20 % of their mean and drift by at most 10 %. The \
                figures of a test are those of its last five rounds.";
    wrap(rule, width, INDENT, INDENT).iter().try_for_each(|line| writeln!(out, "{line}"))
}

const STEADY: &str = "steady";
const NOT_STEADY: &str = "not steady";

fn row(test: &TestRecord, rounds: &RoundsRecord) -> Vec<String> {
    let percent =
        |share: Option<f64>| share.map(|share| format!("{:.1} %", share * 100.0)).unwrap_or_default();
    let counted = &rounds.values[rounds.values.len().saturating_sub(rounds.counted as usize)..];
    let mean = (!counted.is_empty()).then(|| counted.iter().sum::<f64>() / counted.len() as f64);
    let shown = |value: Option<f64>| value.map(|value| figure(&rounds.tracked, value)).unwrap_or_default();
    let verdict = match (rounds.steady, test.status) {
        (true, _) => STEADY,
        (false, TestStatus::Complete) => NOT_STEADY,
        (false, _) => "broken off",
    };
    let each = if rounds.round_ns > 0 { duration(Nanos(rounds.round_ns)) } else { "its size".to_owned() };
    vec![
        name(test).to_owned(),
        rounds.values.len().to_string(),
        each,
        duration(Nanos(rounds.elapsed_ns)),
        shown(rounds.values.first().copied()),
        shown(mean),
        percent(rounds.range_fraction),
        percent(rounds.drift_fraction),
        verdict.to_owned(),
    ]
}

/// A figure with its unit.
pub(crate) fn figure(tracked: &str, value: f64) -> String {
    match tracked {
        "lat_ns" => latency(value.max(0.0).round() as u64),
        "bytes_per_second" => format!("{} MiB/s", decimal(value / f64::from(1 << 20))),
        _ => format!("{} IOPS", count(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(title: &str, values: &[f64], steady: bool) -> TestRecord {
        let rounds = RoundsRecord {
            tracked: "iops".to_owned(),
            values: values.to_vec(),
            round_ns: 60_000_000_000,
            elapsed_ns: 60_000_000_000 * values.len() as u64,
            counted: values.len().min(5) as u32,
            steady,
            range_fraction: (values.len() >= 5).then_some(0.004),
            drift_fraction: (values.len() >= 5).then_some(-0.001),
        };
        let status = if values.len() < 5 { TestStatus::Incomplete } else { TestStatus::Complete };
        TestRecord { title: title.to_owned(), status, rounds: Some(rounds), ..TestRecord::default() }
    }

    #[test]
    fn each_repeated_test_has_a_row() {
        let tests = vec![
            test("random read", &[3000.0, 300.0, 300.0, 300.0, 300.0, 300.0], true),
            test("random write", &[100.0; 25], false),
            test("latency", &[100.0; 2], false),
            TestRecord::default(),
        ];
        let record = RunRecord { tests, ..RunRecord::default() };
        let mut out = Vec::new();
        render(&record, &Style::default(), 90, &mut TextWriter::new(&mut out)).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..5],
            [
                "",
                "  until steady  rounds     of  in all       first    last 5  range   drift  verdict",
                "  random read        6  1 min   6 min  3,000 IOPS  300 IOPS  0.4 %  -0.1 %  steady",
                "  random write      25  1 min  25 min    100 IOPS  100 IOPS  0.4 %  -0.1 %  not steady",
                "  latency            2  1 min   2 min    100 IOPS  100 IOPS                 broken off",
            ]
        );
    }
}
