//! What ended tests: the rounds that they were repeated in until they were steady, and the precision that their rates reached.

use fathom_analysis::{Analysis, RecordRow};
use fathom_record::{RoundsRecord, RunRecord, TestRecord, TestStatus};

use crate::run_view::id;
use crate::view::{Block, Cell, Column, Table, Tone, iops_text};

/// A test that was repeated, with its verdict.
struct Repeated<'a> {
    test: &'a TestRecord,
    rounds: &'a RoundsRecord,
    verdict: (&'static str, Tone),
}

impl Repeated<'_> {
    fn of(test: &TestRecord) -> Option<Repeated<'_>> {
        let rounds = test.rounds.as_ref()?;
        let verdict = match (rounds.steady, test.status) {
            (true, _) => ("steady", Tone::Normal),
            (false, TestStatus::Complete) => ("not steady", Tone::Alarm),
            (false, _) => ("interrupted", Tone::Alarm),
        };
        Some(Repeated { test, rounds, verdict })
    }

    fn shown(&self, value: Option<f64>) -> Cell {
        value.map(|value| figure(&self.rounds.tracked, value)).into()
    }

    fn mean(&self) -> Option<f64> {
        let RoundsRecord { values, counted, .. } = self.rounds;
        let counted = &values[values.len().saturating_sub(*counted as usize)..];
        (!counted.is_empty()).then(|| counted.iter().sum::<f64>() / counted.len() as f64)
    }

    fn round(&self) -> Cell {
        match self.rounds.round_ns {
            0 => "its size".into(),
            ns => Cell::duration(ns),
        }
    }
}

/// A row per test that was repeated, and what the table means; nothing where none was.
pub(super) fn rounds(record: &RunRecord) -> Vec<Block> {
    let repeated: Vec<Repeated<'_>> = record.tests.iter().filter_map(Repeated::of).collect();
    let table = Table::of::<Repeated<'_>>(
        &[
            (Column::left("until steady"), &|it| id(it.test).into()),
            (Column::right("rounds"), &|it| Cell::count(it.rounds.values.len() as u64)),
            (Column::right("of").dispensable(0), &|it| it.round()),
            (Column::right("in all"), &|it| Cell::duration(it.rounds.elapsed_ns)),
            (Column::right("first"), &|it| it.shown(it.rounds.values.first().copied())),
            (Column::right("last 5"), &|it| it.shown(it.mean())),
            (Column::right("range").dispensable(2), &|it| it.rounds.range_fraction.map(Cell::percent).into()),
            (Column::right("drift").dispensable(1), &|it| it.rounds.drift_fraction.map(Cell::percent).into()),
            (Column::left("verdict"), &|it| it.verdict.0.into()),
        ],
        &repeated,
    );
    let rule = "Steady state: the last five rounds range over at most 20 % of their mean and drift by at most 10 %. The results of \
                a test are those of its last five rounds.";
    with_rule(table.toned(repeated.iter().map(|it| it.verdict.1)), rule)
}

/// A figure with its unit.
pub(crate) fn figure(tracked: &str, value: f64) -> Cell {
    match tracked {
        "lat_ns" => Cell::mean_latency(value.round()),
        "bytes_per_second" => Cell::real(value, format!("{} MiB/s", Cell::mebibytes(value).text)),
        _ => Cell::real(value, format!("{} IOPS", iops_text(value))),
    }
}

/// A row per test that a precision was to end: how long it took, what it reached, and whether that was enough.
pub(super) fn precision(analysis: &Analysis<'_>) -> Vec<Block> {
    let share = |fraction: f64| Cell::real(fraction, format!("±{:.2} %", fraction * 100.0));
    let verdict =
        |row: &RecordRow<'_>| match (row.test.precision.is_some_and(|it| it.reached), row.test.status) {
            (_, TestStatus::Incomplete) => ("interrupted", Tone::Alarm),
            (_, TestStatus::Failed) => ("failed", Tone::Alarm),
            (true, _) => ("reached", Tone::Normal),
            (false, _) => ("not reached", Tone::Alarm),
        };
    let ended = || analysis.tests().iter().filter(|row| row.test.precision.is_some());
    let table = Table::of::<RecordRow<'_>>(
        &[
            (Column::left("precision"), &|row| id(&row.test).into()),
            (Column::right("measured"), &|row| Cell::duration(row.summary.measured_ns)),
            (Column::right("interval"), &|row| {
                row.test.precision.and_then(|it| it.reached_fraction).map(share).into()
            }),
            (Column::right("target"), &|row| row.test.precision.map(|it| share(it.target_fraction)).into()),
            (Column::left("verdict"), &|row| verdict(row).0.into()),
        ],
        ended(),
    );
    let rule = "A test ends once half of the 95 % confidence interval of its rate is within the target; the interval allows for \
                repeated looks.";
    with_rule(table.toned(ended().map(|row| verdict(row).1)), rule)
}

/// A table, and what it means below it.
fn with_rule(table: Table, rule: &str) -> Vec<Block> {
    if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table), Block::note(rule)] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::text;
    use crate::view::View;
    use crate::{Style, text_writer};
    use fathom_record::{JobRecord, PhaseOutcome, PrecisionRecord};

    fn lines(blocks: Vec<Block>) -> Vec<String> {
        let mut view = View::default();
        view.push("", blocks);
        let style = Style { width: 90, ..Style::default() };
        let text = text_writer::text(|out| text::render(&view, &style, out)).unwrap();
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    fn repeated(id: &str, values: &[f64], steady: bool) -> TestRecord {
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
        TestRecord { id: id.to_owned(), status, rounds: Some(rounds), ..TestRecord::default() }
    }

    #[test]
    fn each_repeated_test_has_a_row() {
        let tests = vec![
            repeated("random read", &[3000.0, 300.0, 300.0, 300.0, 300.0, 300.0], true),
            repeated("random write", &[100.0; 25], false),
            repeated("latency", &[100.0; 2], false),
            TestRecord::default(),
        ];
        let record = RunRecord { tests, ..RunRecord::default() };
        let lines = lines(rounds(&record));
        assert_eq!(
            lines[..4],
            [
                "  until steady  rounds     of  in all       first    last 5  range   drift  verdict",
                "  random read        6  1 min   6 min  3,000 IOPS  300 IOPS  0.4 %  -0.1 %  steady",
                "  random write      25  1 min  25 min    100 IOPS  100 IOPS  0.4 %  -0.1 %  not steady",
                "  latency            2  1 min   2 min    100 IOPS  100 IOPS                 interrupted",
            ]
        );
    }

    fn ended(id: &str, seconds: u64, reached_fraction: Option<f64>, status: TestStatus) -> TestRecord {
        let precision = PrecisionRecord {
            target_fraction: 0.02,
            reached_fraction,
            reached: reached_fraction.is_some_and(|half| half <= 0.02),
            ..PrecisionRecord::default()
        };
        let measured = PhaseOutcome { end_ns: seconds * 1_000_000_000, ..PhaseOutcome::default() };
        let jobs = vec![JobRecord { measured, ..JobRecord::default() }];
        TestRecord { id: id.to_owned(), status, precision: Some(precision), jobs, ..TestRecord::default() }
    }

    #[test]
    fn tests_that_did_not_reach_the_precision_are_named() {
        let tests = vec![
            ended("rand-read", 6, Some(0.018), TestStatus::Complete),
            ended("rand-write", 120, Some(0.064), TestStatus::Complete),
            ended("lat-read", 2, None, TestStatus::Incomplete),
            TestRecord::default(),
        ];
        let record = RunRecord { tests, ..RunRecord::default() };
        let lines = lines(precision(&Analysis::of(&record)));
        assert_eq!(
            lines[..4],
            [
                "  precision   measured  interval   target  verdict",
                "  rand-read        6 s   ±1.80 %  ±2.00 %  reached",
                "  rand-write     2 min   ±6.40 %  ±2.00 %  not reached",
                "  lat-read         2 s            ±2.00 %  interrupted",
            ]
        );
    }
}
