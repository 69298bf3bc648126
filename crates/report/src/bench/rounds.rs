//! The table of the rounds that tests were repeated in until they were steady: how many, how far apart, and whether they agree.

use fathom_record::{RoundsRecord, RunRecord, TestRecord, TestStatus};

use crate::run_view::id;
use crate::view::{Block, Cell, Column, Row, Table, Tone, iops_text};

const COLUMNS: [Column; 9] = [
    Column::left("until steady"),
    Column::right("rounds"),
    Column::right("of").dispensable(0),
    Column::right("in all"),
    Column::right("first"),
    Column::right("last 5"),
    Column::right("range").dispensable(2),
    Column::right("drift").dispensable(1),
    Column::left("verdict"),
];

/// A row per test that was repeated, and what the table means; nothing where none was.
pub(super) fn blocks(record: &RunRecord) -> Vec<Block> {
    let rows: Vec<Row> =
        record.tests.iter().filter_map(|test| Some(row(test, test.rounds.as_ref()?))).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let rule = "Steady state: the last five rounds range over at most 20 % of their mean and drift by at most 10 %. The results of \
                a test are those of its last five rounds.";
    vec![Block::Table(Table::new(COLUMNS, rows)), Block::note(rule)]
}

fn row(test: &TestRecord, rounds: &RoundsRecord) -> Row {
    let counted = &rounds.values[rounds.values.len().saturating_sub(rounds.counted as usize)..];
    let mean = (!counted.is_empty()).then(|| counted.iter().sum::<f64>() / counted.len() as f64);
    let shown = |value: Option<f64>| Cell::from(value.map(|value| figure(&rounds.tracked, value)));
    let (verdict, tone) = match (rounds.steady, test.status) {
        (true, _) => ("steady", Tone::Normal),
        (false, TestStatus::Complete) => ("not steady", Tone::Alarm),
        (false, _) => ("interrupted", Tone::Alarm),
    };
    let each = if rounds.round_ns > 0 { Cell::duration(rounds.round_ns) } else { "its size".into() };
    let cells = [
        id(test).into(),
        Cell::count(rounds.values.len() as u64),
        each,
        Cell::duration(rounds.elapsed_ns),
        shown(rounds.values.first().copied()),
        shown(mean),
        rounds.range_fraction.map(Cell::percent).into(),
        rounds.drift_fraction.map(Cell::percent).into(),
        verdict.into(),
    ];
    Row::new(cells).toned(tone)
}

/// A figure with its unit.
pub(crate) fn figure(tracked: &str, value: f64) -> Cell {
    match tracked {
        "lat_ns" => Cell::mean_latency(value.round()),
        "bytes_per_second" => Cell::real(value, format!("{} MiB/s", Cell::mebibytes(value).text)),
        _ => Cell::real(value, format!("{} IOPS", iops_text(value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::text;
    use crate::view::View;
    use crate::{Style, text_writer};

    fn test(id: &str, values: &[f64], steady: bool) -> TestRecord {
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
            test("random read", &[3000.0, 300.0, 300.0, 300.0, 300.0, 300.0], true),
            test("random write", &[100.0; 25], false),
            test("latency", &[100.0; 2], false),
            TestRecord::default(),
        ];
        let record = RunRecord { tests, ..RunRecord::default() };
        let mut view = View::default();
        view.push("", blocks(&record));
        let style = Style { width: 90, ..Style::default() };
        let text = text_writer::text(|out| text::render(&view, &style, out)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
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
}
