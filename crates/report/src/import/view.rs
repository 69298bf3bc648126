//! What another program measured: a row for each operation of a test, what is missing, and every figure as data.

use fathom_model::Op;
use fathom_record::import::{
    Figure, FigureNumber, FigureOrigin, ImportedLatency, ImportedLoad, ImportedOp, ImportedTest,
    MissingFigure, NamedFigure,
};
use fathom_record::{Activity, FindingId, ImportFormat, RunRecord, TestRecord, TestStatus};

use serde_json::json;

use crate::run_view;
use crate::verdict;
use crate::view::{Block, Cell, Column, Table, Tone, View};

/// Behind a figure that the source does not have.
const DERIVED: &str = "*";

/// Everything that is known of an imported run.
pub fn view(record: &RunRecord) -> View {
    let mut view = run_view::of_run(record);
    let limits = [FindingId::BurstPossible, FindingId::IopsCap];
    for limit in record.findings.iter().filter(|found| limits.contains(&found.id)) {
        view.say("Limited by", limit.claim.clone());
    }
    verdict::push_problems(record, &mut view);
    let lines: Vec<Line<'_>> = imported(record).flat_map(|(test, imported)| lines(test, imported)).collect();
    if lines.is_empty() {
        view.push("", [Block::note("The source has no test.")]);
    }
    view.push("", [Block::Table(table(&lines))]);
    view.data = data(record);
    view.push_full("Findings", [run_view::brief_findings(record)]);
    view.push_full("Missing figures", [Block::Table(missing(record))]);
    view.push_full("Notes", [Block::Notes(notes(record))]);
    view
}

/// An operation of a test; without a name and figures where the test has none.
struct Line<'a> {
    test: &'a TestRecord,
    load: &'a ImportedLoad,
    name: &'static str,
    op: ImportedOp,
}

/// A line for each operation of a test.
fn lines<'a>(test: &'a TestRecord, imported: &'a ImportedTest) -> Vec<Line<'a>> {
    let mut ops: Vec<(&'static str, ImportedOp)> =
        Op::DATA.into_iter().filter_map(|op| Some((op.name(), imported.op(op)?))).collect();
    if ops.is_empty() {
        ops.extend(imported.total().map(|total| ("total", total)));
    }
    ops.extend(imported.op(Op::Sync).map(|sync| ("sync", sync)));
    if ops.is_empty() {
        ops.push(("", ImportedOp::default()));
    }
    ops.into_iter().map(|(name, op)| Line { test, load: &imported.load, name, op }).collect()
}

fn table(lines: &[Line<'_>]) -> Table {
    let mut table = Table::of::<Line<'_>>(
        &[
            (Column::left("test"), &|line| run_view::name(line.test).into()),
            (Column::left("I/O"), &|line| io(line).into()),
            (Column::right("bs").dispensable(5), &|line| block(line.load, line.name)),
            (Column::right("QD").dispensable(5), &|line| count(line, line.load.queue_depth)),
            (Column::right("jobs").dispensable(3), &|line| count(line, line.load.jobs)),
            (Column::right("IOPS").takes_remark(), &|line| cell(line.op.iops, Cell::iops)),
            (Column::right("MiB/s"), &|line| cell(line.op.bytes_per_second, Cell::mebibytes)),
            (Column::right("mean"), &|line| cell(latency(&line.op).mean, Cell::latency)),
            (Column::right("p50").dispensable(4), &|line| cell(percentile(&line.op, 50.0), Cell::latency)),
            (Column::right("p99"), &|line| cell(percentile(&line.op, 99.0), Cell::latency)),
            (Column::right("max").dispensable(2), &|line| cell(latency(&line.op).max, Cell::latency)),
            (Column::right("time").dispensable(1), &|line| cell(line.op.runtime_ns, Cell::duration)),
        ],
        lines,
    );
    for (row, line) in table.rows.iter_mut().zip(lines) {
        match line.test.status {
            _ if line.name.is_empty() => {
                row.remark = line.test.reason.clone().or_else(|| Some("no I/O".to_owned()));
                row.tone = Tone::Dim;
            }
            TestStatus::Failed => row.tone = Tone::Alarm,
            _ => {}
        }
    }
    table.without_empty()
}

/// `randread`, `randrw write`.
fn io(line: &Line<'_>) -> String {
    match line.load.rw.as_deref().filter(|rw| !rw.is_empty() && *rw != line.name) {
        Some(rw) if !line.name.is_empty() => format!("{rw} {}", line.name),
        _ => line.name.to_owned(),
    }
}

fn count(line: &Line<'_>, count: Option<u32>) -> Cell {
    count.filter(|_| !line.name.is_empty()).map(|count| Cell::count(count.into())).into()
}

fn latency(op: &ImportedOp) -> &ImportedLatency {
    [&op.lat, &op.clat].into_iter().find(|latency| latency.mean.is_some()).unwrap_or(&op.lat)
}

/// fio prints percentiles of clat unless asked for others.
fn percentile(op: &ImportedOp, percent: f64) -> Option<Figure<u64>> {
    let tail = [&op.lat, &op.clat].into_iter().find(|of| !of.percentiles.is_empty()).unwrap_or(latency(op));
    tail.percentiles.iter().find(|found| found.percent == percent).map(|found| found.ns)
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
    let missing = imported(record)
        .flat_map(|(test, imported)| imported.missing.iter().map(move |missing| (test, missing)));
    Table::of::<(&TestRecord, &MissingFigure)>(
        &[
            (Column::right("line"), &|(_, it)| {
                Some(it.line).filter(|line| *line > 0).map(Cell::count).into()
            }),
            (Column::left("test"), &|(test, _)| run_view::name(test).into()),
            (Column::left("figure"), &|(_, it)| it.figure.as_str().into()),
            (Column::left("state"), &|(_, it)| it.reason.text().into()),
            (Column::left("text"), &|(_, it)| it.text.trim().into()),
        ],
        missing,
    )
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
    const COLUMNS: &str = "test,entry,figure,value,resolution,origin";
    let rows = imported(record).flat_map(|(test, imported)| {
        imported.figures().into_iter().map(move |NamedFigure { entry, name, figure }| {
            let entry = entry.and_then(|index| imported.entries.get(index));
            json!({
                "test": test.id,
                "entry": entry.map(|entry| &entry.name),
                "figure": name,
                "value": figure.value,
                "resolution": figure.resolution,
                "origin": figure.origin,
            })
        })
    });
    Table::of_documents(&[COLUMNS], rows)
}
