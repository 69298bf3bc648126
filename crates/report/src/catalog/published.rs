//! What `catalog published` shows: published figures beside those of the models. Pure.

use fathom_catalog::{ComparedFigure, FigureVerdict, Published, PublishedRun};
use serde_json::json;

use crate::document::object;
use crate::view::{Block, Cell, Column, Table, View};

/// The figures of `runs`, run by run.
pub fn view(runs: &[&PublishedRun], compared: &[ComparedFigure]) -> View {
    let mut view = View { data: data(runs, compared), ..View::default() };
    view.push("", [Block::note(summary(compared))]);
    for run in runs {
        let own: Vec<&ComparedFigure> = compared.iter().filter(|one| one.run == run.id).collect();
        let title = format!("{}: {}, {}, {}", run.id, run.volume, run.tool, run.workload);
        let mut reasons: Vec<&str> = Vec::new();
        for why in own.iter().filter_map(|one| one.why) {
            if !reasons.contains(&why) {
                reasons.push(why);
            }
        }
        let number = |one: &ComparedFigure| {
            let index = reasons.iter().position(|why| Some(*why) == one.why);
            index.map(|index| format!(" ({})", index + 1)).unwrap_or_default()
        };
        let table = Table::of::<&ComparedFigure>(
            &[
                (Column::left("figure"), &|one| one.figure.metric.as_str().into()),
                (Column::right("published"), &|one| Cell::real(one.figure.value, one.figure.text())),
                (Column::right("model"), &|one| simulated(one)),
                (Column::right("deviation").dispensable(0), &|one| one.deviation_text().into()),
                (Column::left("explained"), &|one| format!("{}{}", one.verdict.name(), number(one)).into()),
            ],
            &own,
        );
        let article = Published::shipped().article_of(run);
        let mut notes: Vec<String> =
            reasons.iter().enumerate().map(|(index, why)| format!("({}) {why}.", index + 1)).collect();
        notes.extend(article.map(|article| format!("Source: \"{}\" ({}).", article.title, article.when)));
        view.push(title, [Block::Table(table), Block::Notes(notes)]);
    }
    let legend = "The model ran the same load in virtual time. \"by rule\": within 5 % by published rules; \"by load\": \
                  determined by the load alone; \"as measured\": by a model built from other measurements of the type; \
                  \"input\": the model was fitted to this measurement, so that it explains nothing.";
    view.push("", [Block::note(legend)]);
    view
}

/// The count of each verdict.
fn summary(compared: &[ComparedFigure]) -> String {
    let verdicts = [
        FigureVerdict::Rule,
        FigureVerdict::Load,
        FigureVerdict::AsMeasured,
        FigureVerdict::Input,
        FigureVerdict::Unexplained,
    ];
    let count = |verdict| compared.iter().filter(|one| one.verdict == verdict).count();
    let counts: Vec<String> =
        verdicts.into_iter().map(|verdict| format!("{} {}", count(verdict), verdict.name())).collect();
    format!("{} published figures: {}.", compared.len(), counts.join(", "))
}

fn simulated(one: &ComparedFigure) -> Cell {
    one.simulated.map(|value| Cell::real(value, one.simulated_text())).into()
}

/// A row for each figure.
fn data(runs: &[&PublishedRun], compared: &[ComparedFigure]) -> Table {
    let of_runs = compared.iter().filter_map(|one| Some((*runs.iter().find(|run| run.id == one.run)?, one)));
    const COLUMNS: &str = "\
        run,types,volume,tool,workload,figure=metric,published=value,unit,kind,qualifier,simulated,\
        deviation,verdict,why,source";
    let document = |(run, one): (&PublishedRun, &ComparedFigure)| {
        let of_run = json!({
            "types": run.types.join(" "),
            "volume": run.volume,
            "tool": run.tool,
            "workload": run.workload,
            "verdict": one.verdict.name(),
            "source": Published::shipped().article_of(run).map(|article| &article.title),
        });
        object([json!(one), of_run])
    };
    Table::of_documents(&[COLUMNS], of_runs.map(document))
}
