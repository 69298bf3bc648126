//! The report of `compare --explain`: a section for each cell.

use fathom_analysis::compare::VolumeComparison;
use fathom_analysis::compare::explain::{CellExplanation, ExplainedRun};

use super::view::short_name;
use crate::view::{Block, Cell, KeyFigure, Table, View};

/// The cells that were to be explained.
pub(super) fn view(comparison: &VolumeComparison) -> View {
    let mut view = View { data: data(&comparison.explanations), ..View::default() };
    for cell in &comparison.explanations {
        let commands = cell.runs.iter().filter(|run| !run.fio.is_empty());
        let mut known: Vec<(String, String)> = Vec::new();
        for run in commands {
            if known.iter().all(|(_, command)| *command != run.fio) {
                known.push((format!("{} ({})", run.test, run.origin), run.fio.clone()));
            }
        }
        let title = format!("{}: {}", cell.cell, cell.text);
        view.push(title, [Block::KeyFigures(figures(cell)), Block::Commands(known)]);
    }
    view
}

fn figures(cell: &CellExplanation) -> Vec<KeyFigure> {
    let mut figures = vec![KeyFigure::new("source", format!("{}, {}", cell.source, short_name(&cell.name)))];
    if !cell.work.is_empty() {
        figures.push(KeyFigure::new("test", cell.work.as_str()));
    }
    figures.push(KeyFigure::new("figure", cell.rule));
    figures.push(KeyFigure::new("computation", cell.computation.as_str()));
    let label =
        |place: usize| if cell.runs.len() > 1 { format!("run {}", place + 1) } else { "run".to_owned() };
    figures
        .extend(cell.runs.iter().enumerate().map(|(place, run)| KeyFigure::new(label(place), run_text(run))));
    figures.extend(cell.ratio.as_ref().map(|ratio| KeyFigure::new("ratio", ratio.as_str())));
    figures.extend(cell.reason.as_ref().map(|reason| KeyFigure::new("no verdict", reason.as_str())));
    figures
}

fn run_text(run: &ExplainedRun) -> String {
    let place = match (run.line, &run.printed) {
        (Some(line), Some(text)) => Some(format!("line {line}: {text}")),
        (Some(line), None) => Some(format!("line {line}")),
        (None, Some(text)) => Some(text.clone()),
        (None, None) => None,
    };
    let excluded = run.excluded.as_ref().map(|reason| format!("not counted: {reason}"));
    let from = Some(run.from.clone()).filter(|from| !from.is_empty());
    [Some(format!("{}, test {}", run.origin, run.test)), from, place, excluded]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; ")
}

/// A row for each run of each cell.
fn data(cells: &[CellExplanation]) -> Table {
    struct DataRow<'a> {
        cell: &'a CellExplanation,
        run: &'a ExplainedRun,
    }
    let rows = cells.iter().flat_map(|cell| cell.runs.iter().map(move |run| DataRow { cell, run }));
    let real = |value: Option<f64>| Cell::from(value.map(|value| Cell::real(value, value.to_string())));
    Table::data::<DataRow<'_>>(
        &[
            ("cell", &|row| row.cell.cell.as_str().into()),
            ("value", &|row| real(row.cell.value)),
            ("computation", &|row| row.cell.computation.as_str().into()),
            ("run", &|row| row.run.origin.as_str().into()),
            ("test", &|row| row.run.test.as_str().into()),
            ("run_value", &|row| real(row.run.value)),
            ("from", &|row| row.run.from.as_str().into()),
            ("line", &|row| row.run.line.map(Cell::count).into()),
            ("printed", &|row| row.run.printed.clone().into()),
            ("excluded", &|row| row.run.excluded.clone().into()),
            ("fio", &|row| row.run.fio.as_str().into()),
        ],
        rows,
    )
}
