//! What another program measured: a row for each operation of a test, what is missing, and every figure as data.

use fathom_model::Op;
use fathom_record::import::{
    Figure, FigureNumber, FigureOrigin, ImportedLoad, ImportedOp, ImportedTest, NamedFigure,
};
use fathom_record::{Activity, ImportFormat, RunRecord, TestRecord, TestStatus};

use crate::run_view;
use crate::view::{Block, Cell, Column, Row, Table, Tone, View};

/// Behind a figure that the source does not have.
const DERIVED: &str = "*";

/// Everything that is known of an imported run.
pub fn view(record: &RunRecord) -> View {
    let mut view = run_view::of_run(record);
    let rows: Vec<Row> = record.tests.iter().flat_map(rows).collect();
    if rows.is_empty() {
        view.push("", [Block::note("The source has no test.")]);
    }
    let columns = [
        Column::left("test"),
        Column::left("I/O"),
        Column::right("bs").dispensable(5),
        Column::right("QD").dispensable(5),
        Column::right("jobs").dispensable(3),
        Column::right("IOPS").takes_remark(),
        Column::right("MiB/s"),
        Column::right("mean"),
        Column::right("p50").dispensable(4),
        Column::right("p99"),
        Column::right("max").dispensable(2),
        Column::right("time").dispensable(1),
    ];
    view.push("", [Block::Table(Table::new(columns, rows).without_empty())]);
    view.data = data(record);
    view.push("Missing figures", [Block::Table(missing(record))]);
    view.push("Notes", [Block::Notes(notes(record))]);
    view
}

/// A row for each operation of a test.
fn rows(test: &TestRecord) -> Vec<Row> {
    let Some(imported) = test.imported() else { return Vec::new() };
    let mut ops: Vec<(&str, ImportedOp)> =
        Op::DATA.into_iter().filter_map(|op| Some((op.name(), imported.op(op)?))).collect();
    if ops.is_empty() {
        ops.extend(imported.total().map(|total| ("total", total)));
    }
    ops.extend(imported.op(Op::Sync).map(|sync| ("sync", sync)));
    let tone = if test.status == TestStatus::Failed { Tone::Alarm } else { Tone::Normal };
    if ops.is_empty() {
        let remark = test.reason.clone().or_else(|| Some("no I/O".to_owned()));
        return vec![Row { remark, ..Row::new([run_view::name(test)]).toned(Tone::Dim) }];
    }
    ops.iter().map(|(name, op)| row(test, &imported.load, name, op).toned(tone)).collect()
}

fn row(test: &TestRecord, load: &ImportedLoad, name: &str, op: &ImportedOp) -> Row {
    // fio prints percentiles of clat unless asked for others.
    let latency = [&op.lat, &op.clat].into_iter().find(|latency| latency.mean.is_some()).unwrap_or(&op.lat);
    let tail = [&op.lat, &op.clat].into_iter().find(|of| !of.percentiles.is_empty()).unwrap_or(latency);
    let percentile = |percent: f64| {
        let found = tail.percentiles.iter().find(|found| found.percent == percent);
        cell(found.map(|found| found.ns), Cell::latency)
    };
    let rw = load.rw.as_deref().filter(|rw| !rw.is_empty());
    let io = match rw {
        Some(rw) if rw == name => name.to_owned(),
        Some(rw) => format!("{rw} {name}"),
        None => name.to_owned(),
    };
    Row::new([
        run_view::name(test).into(),
        io.into(),
        block(load, name),
        load.queue_depth.map(|depth| Cell::count(depth.into())).into(),
        load.jobs.map(|jobs| Cell::count(jobs.into())).into(),
        cell(op.iops, Cell::iops),
        cell(op.bytes_per_second, Cell::mebibytes),
        cell(latency.mean, Cell::latency),
        percentile(50.0),
        percentile(99.0),
        cell(latency.max, Cell::latency),
        cell(op.runtime_ns, Cell::duration),
    ])
}

/// A figure, marked where it follows from others.
fn cell<T: FigureNumber>(figure: Option<Figure<T>>, show: impl Fn(T) -> Cell) -> Cell {
    let marked = |figure: Figure<T>| {
        let mut cell = show(figure.value);
        if figure.origin == FigureOrigin::Derived {
            cell.text.push_str(DERIVED);
        }
        cell
    };
    figure.map(marked).into()
}

fn block(load: &ImportedLoad, name: &str) -> Cell {
    let op = Op::DATA.into_iter().find(|op| op.name() == name);
    let Some(range) = op.and_then(|op| load.block_size[op]) else { return Cell::default() };
    match range.min == range.max {
        true => Cell::bytes(range.max),
        false => format!("{}-{}", Cell::bytes(range.min).text, Cell::bytes(range.max).text).into(),
    }
}

fn missing(record: &RunRecord) -> Table {
    let columns = [
        Column::right("line"),
        Column::left("test"),
        Column::left("figure"),
        Column::left("state"),
        Column::left("text"),
    ];
    let rows = imported(record).flat_map(|(test, imported)| {
        imported.missing.iter().map(move |missing| {
            let line = Some(missing.line).filter(|&line| line > 0);
            Row::new([
                line.map(Cell::count).into(),
                run_view::name(test).into(),
                missing.figure.as_str().into(),
                missing.reason.text().into(),
                Cell::from(missing.text.trim()),
            ])
        })
    });
    Table::new(columns, rows)
}

fn notes(record: &RunRecord) -> Vec<String> {
    let mut notes = Vec::new();
    if let Activity::Import(source) = &record.header.activity {
        let tools = imported(record).map(|(_, test)| format!("{} {}", test.tool, test.tool_version));
        let mut tools: Vec<String> =
            tools.map(|tool| tool.trim().to_owned()).filter(|tool| !tool.is_empty()).collect();
        let mut seen = std::collections::BTreeSet::new();
        tools.retain(|tool| seen.insert(tool.clone()));
        let by =
            if tools.is_empty() { String::new() } else { format!(", measured with {}", tools.join(", ")) };
        let file = if source.file == "-" { "the standard input" } else { &source.file };
        notes.push(format!("Imported from {file} ({}){by}.", source.format.title()));
    }
    let is_derived = |found: NamedFigure| found.figure.origin == FigureOrigin::Derived;
    let sums = |test: &ImportedTest| test.entries.len() > 1;
    if imported(record).any(|(_, test)| sums(test) || test.figures().into_iter().any(is_derived)) {
        notes.push(format!("{DERIVED} follows from other figures of the source, which does not have it."));
    }
    for (test, imported) in
        imported(record).filter(|(_, test)| states_groups(record) && !test.beside.is_empty())
    {
        notes.push(format!("{} ran together with {}.", run_view::name(test), imported.beside.join(", ")));
    }
    let reasons = record.tests.iter().filter_map(|test| Some((test, test.reason.as_ref()?)));
    notes.extend(reasons.map(|(test, reason)| format!("{}: {reason}.", run_view::name(test))));
    notes.extend(record.header.notes.iter().map(|note| format!("{note}.")));
    notes
}

/// True where the source says which tests ran at the same time: only fio's outputs number the groups of their jobs.
fn states_groups(record: &RunRecord) -> bool {
    let Activity::Import(source) = &record.header.activity else { return false };
    matches!(source.format, ImportFormat::FioJson | ImportFormat::FioTerse | ImportFormat::FioText)
}

fn imported(record: &RunRecord) -> impl Iterator<Item = (&TestRecord, &ImportedTest)> {
    record.tests.iter().filter_map(|test| Some((test, test.imported()?)))
}

/// A row for each figure of the source.
fn data(record: &RunRecord) -> Table {
    struct DataRow<'a> {
        test: &'a TestRecord,
        entry: &'a str,
        found: NamedFigure,
    }
    let rows = imported(record).flat_map(|(test, imported)| {
        imported.figures().into_iter().map(move |found| {
            let entry = found.entry.and_then(|index| imported.entries.get(index));
            DataRow { test, entry: entry.map_or("", |entry| &entry.name), found }
        })
    });
    Table::data::<DataRow<'_>>(
        &[
            ("test", &|row| row.test.id.as_str().into()),
            ("entry", &|row| row.entry.into()),
            ("figure", &|row| row.found.name.as_str().into()),
            ("value", &|row| Cell::real(row.found.figure.value, row.found.figure.value.to_string())),
            ("resolution", &|row| {
                Cell::real(row.found.figure.resolution, row.found.figure.resolution.to_string())
            }),
            ("origin", &|row| row.found.figure.origin.name().into()),
        ],
        rows,
    )
}
