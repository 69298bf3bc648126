//! The report of `bench`: one row per test, and below it what is to be known of the numbers.

use fathom_analysis::pattern::block_name;
use fathom_analysis::steady::rate_duration::Lasting;
use fathom_analysis::together::{TargetSharing, Together};
use fathom_analysis::verdict::VolumeVerdict;
use fathom_analysis::{Analysis, RecordRow};
use fathom_model::plan::Mix;
use fathom_record::{JobRecord, LatencySummary, OpSummary, RunHeader, TestRecord, TestStatus, TestSummary};

use crate::bench::{endings, expectations, notes};
use crate::run_view::{self, id};
use crate::stream::RowSource;
use crate::verdict;
use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, View, iops_text};

/// Tests on several targets at once that stand first.
const MAX_TOGETHER: usize = 3;

/// Everything that a bench shows; the fio command of each test where `show_fio` says so.
pub fn view(analysis: &Analysis<'_>, show_fio: bool) -> View {
    let record = analysis.record;
    let mut view = View {
        data: Table::of(COLUMNS, analysis.tests()),
        units: expectations::units(record),
        ..run_view::of_run(record)
    };
    if record.tests.is_empty() {
        view.push("", [Block::note("No test was run.")]);
    } else {
        expectations::push_verdict(analysis, &mut view);
        for found in analysis.together().iter().take(MAX_TOGETHER) {
            view.say(found.test.trim_end_matches("-together"), together_text(found));
        }
        verdict::push(&VolumeVerdict::of_tests(analysis), record, &mut view);
        view.say("Skipped", skipped(&record.tests));
        view.push_brief("", [Block::Table(brief_table(&record.header, analysis.tests()))]);
        view.push_full("", [Block::Table(table(&record.header, analysis.tests()))]);
    }
    view.push("Expectations", expectations::blocks(analysis));
    view.push("", endings::rounds(record));
    view.push("", endings::precision(analysis));
    view.push_full("Separately and together", [together(analysis.together())]);
    view.push_full("Findings", [run_view::findings(record)]);
    view.push_full("Workload suitability", run_view::suitability(analysis));
    view.push_full("Duration of the rates", [durations(analysis)]);
    view.push_full("Notes", [Block::Notes(notes::notes(analysis))]);
    if show_fio {
        view.push("Equivalent fio commands", [run_view::fio_commands(record)]);
    }
    view
}

/// The rows of a bench.
pub const ROWS: RowSource = RowSource {
    table: |header, tests| table(header, &rows(tests)),
    data: Some(|run| Table::of(COLUMNS, rows(&run.tests))),
    units: expectations::units,
    has_titles: false,
};

/// The tests that were run, without what they lack.
fn brief_table(header: &RunHeader, tests: &[RecordRow<'_>]) -> Table {
    let run: Vec<RecordRow<'_>> =
        tests.iter().filter(|row| row.test.status != TestStatus::Skipped).cloned().collect();
    Table { reserves: false, ..table(header, &run) }.without_empty()
}

/// How many tests were not run, and why the first was not.
fn skipped(tests: &[TestRecord]) -> Option<String> {
    let skipped: Vec<&TestRecord> = tests.iter().filter(|test| test.status == TestStatus::Skipped).collect();
    let reason = skipped.first()?.reason.as_deref().unwrap_or("reason unknown");
    let tests = if skipped.len() == 1 { "1 test".to_owned() } else { format!("{} tests", skipped.len()) };
    Some(format!("{tests}: {reason}"))
}

/// The rate that remains of a burst: a column of runs that have one.
const AFTER_BURST: &str = "then IOPS";
/// Columns of the kernel's view: without a device they would only take room.
const OF_DEVICE: [&str; 2] = ["device", "device lat"];

/// A column, and its cell of a test.
type TestColumn = (Column, &'static dyn Fn(&RecordRow<'_>) -> Cell);

/// Every column of the table and of the values, each declared once.
const COLUMNS: &[TestColumn] = &[
    (Column::left("test").id(""), &|row| row_name(&row.test).into()),
    (Column::data("test"), &|row| row.test.id.as_str().into()),
    (Column::data("title"), &|row| row.test.title.as_str().into()),
    (Column::data("status"), &|row| row.test.status.name().into()),
    (Column::left("I/O").id("").dispensable(11), &|row| shape(&row.test.jobs).into()),
    (Column::data("rw"), &|row| of_job(row, |job| job.rw().into())),
    (Column::data("iodepth"), &|row| of_job(row, |job| Cell::count(job.iodepth().into()))),
    (Column::data("numjobs"), &|row| Cell::count(row.test.jobs.len() as u64)),
    (Column::data("block_size_bytes"), &|row| of_job(row, |job| Cell::bytes(largest_block(job)))),
    (Column::right("IOPS").id("iops").takes_remark().reserved(9), &|row| iops(&row.summary).into()),
    (Column::data("read_iops"), &|row| rate(&row.summary.read)),
    (Column::data("write_iops"), &|row| rate(&row.summary.write)),
    (Column::data("trim_iops"), &|row| rate(&row.summary.trim)),
    (Column::right("CI%").id("").dispensable(5).reserved(4), &|row| {
        let half = row.summary.stability.map(|stability| stability.mean_ci95_fraction);
        half.map(|half| Cell::real(half, format!("{:.1}", half * 100.0))).into()
    }),
    (Column::right("MiB/s").id("bytes_per_second").reserved(6), &|row| {
        row.summary.total.as_ref().map(|op| Cell::mebibytes(op.bytes_per_second)).into()
    }),
    (Column::right(AFTER_BURST).id("sustained_iops").dispensable(2).reserved(0), &|row| {
        row.duration().after_burst().map(Cell::iops).into()
    }),
    (Column::data("iops_ci95_fraction"), &|row| {
        row.summary.stability.map(|stability| Cell::percent(stability.mean_ci95_fraction)).into()
    }),
    (Column::data("iops_cv"), &|row| {
        row.summary.stability.map(|stability| Cell::percent(stability.cv)).into()
    }),
    (Column::right("mean").id("lat_mean_ns").dispensable(1).reserved(7), &|row| {
        row_latency(&row.summary).mean.map(Cell::mean_latency).into()
    }),
    (Column::data("lat_min_ns"), &|row| row_latency(&row.summary).min.map(Cell::latency).into()),
    (Column::right("p50").id("lat_p50_ns").reserved(7), &|row| {
        percentile(row, |lat| (lat.p50, lat.thin.p50))
    }),
    (Column::right("p99").id("lat_p99_ns").reserved(7), &|row| {
        percentile(row, |lat| (lat.p99, lat.thin.p99))
    }),
    (Column::right("p99.9").id("lat_p999_ns").dispensable(4), &|row| {
        percentile(row, |lat| (lat.p999, lat.thin.p999))
    }),
    (Column::data("lat_max_ns"), &|row| row_latency(&row.summary).max.map(Cell::latency).into()),
    (Column::right("device").id("device_iops").dispensable(3), &|row| {
        row.summary.device.as_ref().map(|device| Cell::iops(device.iops)).into()
    }),
    (Column::right("device lat").id("device_lat_mean_ns").dispensable(0), &|row| {
        row.summary.device.as_ref().and_then(|device| device.lat_mean_ns).map(Cell::mean_latency).into()
    }),
    (Column::data("measured_ns"), &|row| Cell::duration(row.summary.measured_ns)),
];

fn table(header: &RunHeader, tests: &[RecordRow<'_>]) -> Table {
    // What completed before a failure is in the data, but it is no result of the test.
    let is_result =
        |row: &RecordRow<'_>| row.test.status != TestStatus::Failed && row.summary.total.is_some();
    let shown = tests.iter().map(|row| if is_result(row) { row.clone() } else { row.without_figures() });
    let mut table = Table { reserves: true, ..Table::of(COLUMNS, shown) };
    for (row, test) in table.rows.iter_mut().zip(tests) {
        *row = Row::ended(std::mem::take(&mut row.cells), &test.test);
    }
    let has_device = !header.conditions.target.devices.is_empty();
    let has_burst = tests.iter().any(|row| row.duration().after_burst().is_some());
    let table = table.without(&[""]).without(if has_device { &[] } else { &OF_DEVICE });
    if has_burst { table } else { table.without(&[AFTER_BURST]) }
}

fn rows(tests: &[TestRecord]) -> Vec<RecordRow<'_>> {
    tests.iter().map(RecordRow::of).collect()
}

fn of_job(row: &RecordRow<'_>, cell: fn(&JobRecord) -> Cell) -> Cell {
    row.test.jobs.first().map(cell).into()
}

fn rate(op: &Option<OpSummary>) -> Cell {
    op.as_ref().map(|op| Cell::iops(op.iops)).into()
}

/// A percentile, marked where too few samples lie beyond it.
fn percentile(row: &RecordRow<'_>, of: fn(&LatencySummary) -> (Option<u64>, Option<u64>)) -> Cell {
    match of(&row_latency(&row.summary)) {
        (Some(ns), _) => Cell::latency(ns),
        (None, Some(ns)) => Cell::integer(ns, format!("~{}", Cell::latency(ns).text)),
        (None, None) => Cell::default(),
    }
}

/// The id; of one target among several with its path, which ends the title.
fn row_name(test: &TestRecord) -> String {
    let target = test.title.rsplit_once(", ").map(|(_, target)| target);
    match target.filter(|target| target.starts_with('/') || target.starts_with("sim:")) {
        Some(target) => format!("{} {target}", test.id),
        None => test.id.clone(),
    }
}

fn largest_block(job: &JobRecord) -> u64 {
    let sizes = job.largest_blocks();
    sizes.read.max(sizes.write).max(sizes.trim)
}

/// The latency a row shows: of the sync where every write is followed by one, else total latency (completion latency
/// where that was not recorded).
pub(crate) fn row_latency(summary: &TestSummary) -> LatencySummary {
    if let Some(sync) = summary.sync.as_ref().filter(|_| is_synced(summary)) {
        return sync.lat_ns.clone();
    }
    summary.total.as_ref().map(|total| total.latency().clone()).unwrap_or_default()
}

/// True where (nearly) every write was followed by a sync.
pub(super) fn is_synced(summary: &TestSummary) -> bool {
    let writes = summary.write.as_ref().map_or(0, |write| write.ios);
    summary.sync.as_ref().is_some_and(|sync| writes > 0 && sync.ios * 10 >= writes * 9)
}

/// `4k d64 75/25`, `128k d1 x8`, `4k d1 +fdatasync`, `4k-64k d8`.
pub(crate) fn shape(jobs: &[JobRecord]) -> String {
    let Some(job) = jobs.first() else { return String::new() };
    let io = &job.plan.io;
    let (least, most) = (job.smallest_blocks(), job.largest_blocks());
    let sizes = |least: u64, most: u64| match () {
        () if least < most => format!("{}-{}", block_name(least), block_name(most)),
        () => block_name(most),
    };
    let (read, write) = (sizes(least.read, most.read), sizes(least.write, most.write));
    let mut parts = vec![match job.rw() {
        "rw" | "randrw" if read != write => format!("{read}/{write}"),
        "write" | "randwrite" => write,
        "trim" | "randtrim" => sizes(least.trim, most.trim),
        _ => read,
    }];
    parts.push(format!("d{}", job.iodepth()));
    if jobs.len() > 1 {
        parts.push(format!("x{}", jobs.len()));
    }
    if let Mix::ReadWrite { read_percent } = io.pattern.mix {
        parts.push(format!("{read_percent}/{}", 100u8.saturating_sub(read_percent)));
    }
    for (sync, every) in [("fsync", io.fsync_every), ("fdatasync", io.fdatasync_every)] {
        match every {
            0 => {}
            1 => parts.push(format!("+{sync}")),
            every => parts.push(format!("+{sync}/{every}")),
        }
    }
    parts.join(" ")
}

/// The rate of each direction: `3,001`, or `2,251+750` where there are two.
fn iops(summary: &TestSummary) -> Option<Cell> {
    let ops = [&summary.read, &summary.write, &summary.trim].into_iter().flatten();
    let texts: Vec<String> = ops.map(|op| iops_text(op.iops)).collect();
    Some(Cell::real(summary.total.as_ref()?.iops, texts.join("+")))
}

/// What several targets do apart, what together, and whether they share a limit.
fn together(all: &[Together]) -> Block {
    let figure =
        |found: &Together| KeyFigure::new(found.test.trim_end_matches("-together"), together_text(found));
    Block::KeyFigures(all.iter().map(figure).collect())
}

fn together_text(found: &Together) -> String {
    let verdict = match found.verdict {
        TargetSharing::SharesLimit => "shared limit",
        TargetSharing::Independent => "independent",
        TargetSharing::Inconclusive => "inconclusive",
    };
    let each = found.targets.iter().zip(&found.iops_apart);
    let apart: Vec<String> = each.map(|(target, iops)| format!("{target} {}", iops_text(*iops))).collect();
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    let interval = found.ratio.low.zip(found.ratio.high);
    let interval = interval.map(|(low, high)| format!(" ({}-{})", percent(low), percent(high)));
    let why = found.reason.map(|why| format!(": {why}")).unwrap_or_default();
    format!(
        "{verdict}{why}. {} IOPS separately; {} IOPS together, {}{} % of the sum.",
        apart.join(" and "),
        iops_text(found.iops_together),
        percent(found.ratio.value),
        interval.unwrap_or_default()
    )
}

/// How long the rates last: one line for all tests of the same duration, those that are known first.
fn durations(analysis: &Analysis<'_>) -> Block {
    let mut groups: Vec<(Lasting, String, Vec<&str>)> = Vec::new();
    let complete =
        |row: &&RecordRow<'_>| row.test.status == TestStatus::Complete && !row.test.jobs.is_empty();
    for row in analysis.tests().iter().filter(complete) {
        let text = row.duration().text();
        match groups.iter_mut().find(|(_, known, _)| *known == text) {
            Some((.., tests)) => tests.push(id(&row.test)),
            None => groups.push((row.duration().label, text, vec![id(&row.test)])),
        }
    }
    groups.sort_by_key(|(label, ..)| *label == Lasting::Inconclusive);
    Block::Notes(match groups.as_slice() {
        [(_, text, tests)] if tests.len() > 1 => vec![format!("all tests: {text}.")],
        _ => groups.iter().map(|(_, text, tests)| format!("{}: {text}.", tests.join(", "))).collect(),
    })
}
