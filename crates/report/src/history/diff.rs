//! What differs between two runs: the conditions and figures of their comparison that are not the same.

use std::io;

use fathom_analysis::compare::VolumeComparison;
use fathom_analysis::compare::differences::Difference;
use fathom_analysis::compare::figure::ratio_text;
use fathom_analysis::compare::pairs::Pair;
use serde_json::json;

use crate::document;
use crate::view::{Block, Cell, Column, Row, Table, View};

/// The pairs of figures whose values differ by as much as counts, or of which only one run has a value.
fn differing(comparison: &VolumeComparison) -> Vec<&Pair> {
    let differs = |pair: &&Pair| match (pair.a, pair.b) {
        (Some(a), Some(b)) if a > 0.0 && b > 0.0 => {
            let delta = pair.figure.threshold(comparison.deltas).delta;
            !(1.0 - delta..=1.0 + delta).contains(&(b / a))
        }
        (a, b) => a.is_some() != b.is_some() || a != b,
    };
    comparison.pairs.iter().filter(differs).collect()
}

/// The differences of two runs, named `a` and `b`.
pub fn view(comparison: &VolumeComparison, [a, b]: [&str; 2]) -> View {
    let differing = differing(comparison);
    let mut view = View { data: data(comparison, &differing), ..View::default() };
    let conditions = comparison.differences.len();
    let count = |count: usize, one: &str, more: &str| match count {
        0 => format!("no {one}"),
        1 => format!("1 {one}"),
        count => format!("{count} {more}"),
    };
    let summary = format!(
        "{a} and {b} differ in {} and {}; {} of {} figures differ by less than counts.",
        count(conditions, "condition", "conditions"),
        count(differing.len(), "figure", "figures"),
        comparison.pairs.len() - differing.len(),
        comparison.pairs.len(),
    );
    view.push("", [Block::note(summary)]);
    view.push("Differences in conditions", [Block::Table(conditions_table(comparison))]);
    let value = |pair: &Pair, value: Option<f64>, state: &'static str| match value {
        Some(value) => Cell::real(value, pair.figure.quantity(value)),
        None => state.into(),
    };
    let figure = |pair: &Pair| {
        let direction = pair.direction.map(|direction| format!("{direction} ")).unwrap_or_default();
        format!("{direction}{}", pair.metric).into()
    };
    let figures = Table::of::<Pair>(
        &[
            (Column::left("test"), &|pair| pair.test.as_str().into()),
            (Column::left("figure"), &figure),
            (Column::right("A"), &|pair| value(pair, pair.a, pair.state_a.text())),
            (Column::right("B"), &|pair| value(pair, pair.b, pair.state_b.text())),
            (Column::right("B/A"), &|pair| {
                pair.ratio.map(|ratio| Cell::real(ratio, ratio_text(ratio))).into()
            }),
            (Column::left("verdict"), &|pair| pair.verdict.map(|verdict| verdict.name()).into()),
        ],
        differing,
    );
    view.push("Figures", [Block::Table(figures)]);
    view
}

fn conditions_table(comparison: &VolumeComparison) -> Table {
    let columns = [Column::left("condition"), Column::left("A"), Column::left("B"), Column::left("tests")];
    let row = |one: &Difference| {
        let value = |at: usize| one.values.get(at).cloned().flatten().unwrap_or_else(|| "unknown".to_owned());
        Row::new([one.condition.to_owned(), value(0), value(1), one.tests.join(", ")])
    };
    Table::new(columns, comparison.differences.iter().map(row)).without_empty()
}

/// Conditions and figures in one table: what it is, and both values in base units.
fn data(comparison: &VolumeComparison, differing: &[&Pair]) -> Table {
    let conditions = comparison.differences.iter().map(|one| {
        let value = |at: usize| one.values.get(at).cloned().flatten().unwrap_or_default();
        Row::new([one.tests.join(" "), one.condition.to_owned(), value(0), value(1), String::new()])
    });
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let figures = differing.iter().map(|pair| {
        let direction = pair.direction.map(|direction| format!("{direction}.")).unwrap_or_default();
        Row::new([
            pair.test.clone(),
            format!("{direction}{}", pair.metric),
            number(pair.a),
            number(pair.b),
            number(pair.ratio),
        ])
    });
    Table::new(["test", "name", "a", "b", "ratio"].map(Column::left), conditions.chain(figures))
}

/// Writes the differences of the runs, as they were named, as `fathom.diff/1`; its members are those of `fathom.compare/1`.
///
/// # Errors
/// Those of `out`.
pub fn render_json(
    comparison: &VolumeComparison,
    sources: [&str; 2],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let document = json!({
        "schema": "fathom.diff/1",
        "sources": sources,
        "differences": comparison.differences,
        "pairs": differing(comparison),
    });
    document::write(&document, out)
}
