//! The report of `compare --explain`: a section for each cell.

use fathom_analysis::compare::VolumeComparison;
use fathom_analysis::compare::explain::{CellExplanation, ExplainedRun};

use serde_json::{Value, json};

use super::view::short_name;
use crate::view::{Block, KeyFigure, Table, View};

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
    const COLUMNS: &str = "\
        cell,value,computation,run=run.origin,test=run.test,run_value=run.value,from=run.from,\
        line=run.line,printed=run.printed,excluded=run.excluded,fio=run.fio";
    let of_cell = |cell: &CellExplanation| {
        let CellExplanation { cell, value, computation, runs, .. } = cell;
        let row = |run: &ExplainedRun| json!({ "cell": cell, "value": value, "computation": computation, "run": run });
        runs.iter().map(row).collect::<Vec<Value>>()
    };
    Table::of_documents(&[COLUMNS], cells.iter().flat_map(of_cell))
}
