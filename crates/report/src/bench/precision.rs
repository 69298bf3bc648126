//! The table of the tests that a precision was to end: how long each took, what it reached, and which did not get there.

use fathom_record::{PrecisionRecord, RunRecord, TestRecord, TestStatus, TestSummary};

use crate::run_view::id;
use crate::view::{Block, Cell, Column, Row, Table, Tone};

const COLUMNS: [Column; 5] = [
    Column::left("precision"),
    Column::right("measured"),
    Column::right("interval"),
    Column::right("target"),
    Column::left("verdict"),
];

/// A row per test that a precision was to end; nothing where none was.
pub(super) fn blocks(record: &RunRecord) -> Vec<Block> {
    let rows: Vec<Row> =
        record.tests.iter().filter_map(|test| Some(row(test, test.precision.as_ref()?))).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let rule = "A test ends once half of the 95 % confidence interval of its rate is within the target; the interval allows for \
                repeated looks.";
    vec![Block::Table(Table::new(COLUMNS, rows)), Block::note(rule)]
}

fn row(test: &TestRecord, precision: &PrecisionRecord) -> Row {
    let share = |fraction: f64| Cell::real(fraction, format!("±{:.2} %", fraction * 100.0));
    let (verdict, tone) = match (precision.reached, test.status) {
        (_, TestStatus::Incomplete) => ("interrupted", Tone::Alarm),
        (_, TestStatus::Failed) => ("failed", Tone::Alarm),
        (true, _) => ("reached", Tone::Normal),
        (false, _) => ("not reached", Tone::Alarm),
    };
    let cells = [
        id(test).into(),
        Cell::duration(TestSummary::new(test).measured_ns),
        precision.reached_fraction.map(share).into(),
        share(precision.target_fraction),
        verdict.into(),
    ];
    Row::new(cells).toned(tone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::text;
    use crate::view::View;
    use crate::{Style, text_writer};
    use fathom_record::{JobRecord, PhaseOutcome};

    fn test(id: &str, seconds: u64, reached_fraction: Option<f64>, status: TestStatus) -> TestRecord {
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
            test("rand-read", 6, Some(0.018), TestStatus::Complete),
            test("rand-write", 120, Some(0.064), TestStatus::Complete),
            test("lat-read", 2, None, TestStatus::Incomplete),
            TestRecord::default(),
        ];
        let record = RunRecord { tests, ..RunRecord::default() };
        let mut view = View::default();
        view.push("", blocks(&record));
        let style = Style { width: 90, ..Style::default() };
        let text = text_writer::text(|out| text::render(&view, &style, out)).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
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
