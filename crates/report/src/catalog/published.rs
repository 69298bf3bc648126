//! What `catalog published` shows: published figures beside those of the models. Pure.

use fathom_catalog::{ComparedFigure, FigureVerdict, Published, PublishedRun};

use crate::view::{Block, Cell, Column, Row, Table, View};

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
        let row = |one: &&ComparedFigure| {
            Row::new([
                one.figure.metric.as_str().into(),
                Cell::real(one.figure.value, one.figure.text()),
                simulated(one),
                one.deviation_text().into(),
                format!("{}{}", one.verdict.name(), number(one)).into(),
            ])
        };
        let columns = [
            Column::left("figure"),
            Column::right("published"),
            Column::right("model"),
            Column::right("deviation").dispensable(0),
            Column::left("explained"),
        ];
        let table = Table::new(columns, own.iter().map(row));
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
    let columns = [
        Column::left("run"),
        Column::left("types"),
        Column::left("volume"),
        Column::left("tool"),
        Column::left("workload"),
        Column::left("figure"),
        Column::right("published"),
        Column::left("unit"),
        Column::left("kind"),
        Column::left("qualifier"),
        Column::right("simulated"),
        Column::right("deviation"),
        Column::left("verdict"),
        Column::left("why"),
        Column::left("source"),
    ];
    let rows = compared.iter().filter_map(|one| {
        let run = runs.iter().find(|run| run.id == one.run)?;
        let article = Published::shipped().article_of(run);
        Some(Row::new([
            one.run.as_str().into(),
            run.types.join(" ").into(),
            run.volume.as_str().into(),
            run.tool.as_str().into(),
            run.workload.as_str().into(),
            one.figure.metric.as_str().into(),
            Cell::real(one.figure.value, one.figure.text()),
            one.figure.unit.as_str().into(),
            one.figure.kind.as_deref().into(),
            one.figure.qualifier.as_deref().into(),
            simulated(one),
            one.deviation.map(|share| Cell::real(share, one.deviation_text())).into(),
            one.verdict.name().into(),
            one.why.into(),
            article.map(|article| article.title.as_str()).into(),
        ]))
    });
    Table::new(columns, rows)
}
