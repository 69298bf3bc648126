//! The report of `bench`: one row per test, and below it what is to be known of the numbers.

use fathom_analysis::pattern::block_name;
use fathom_model::plan::Mix;
use fathom_record::{JobRecord, LatencySummary, RunHeader, RunRecord, TestRecord, TestStatus, TestSummary};

use crate::bench::{durations, expectations, notes, precision, rounds, together};
use crate::run_view;
use crate::stream::RowSource;
use crate::view::{Block, Cell, Column, Row, Table, View, iops_text};

/// Everything that a bench shows; the fio command of each test where `show_fio` says so.
pub fn view(record: &RunRecord, show_fio: bool) -> View {
    let summaries: Vec<TestSummary> = record.tests.iter().map(TestSummary::new).collect();
    let mut view = run_view::of_run(record);
    view.data = data(record, &summaries);
    view.units = expectations::units(record);
    match record.tests.is_empty() {
        true => view.push("", [Block::note("No test was run.")]),
        false => view.push("", [Block::Table(table(&record.header, &record.tests, &summaries))]),
    }
    push_below_rows(record, &summaries, show_fio, &mut view);
    view
}

/// The rows of a bench.
pub const ROWS: RowSource = RowSource {
    table: |header, tests| {
        let summaries: Vec<TestSummary> = tests.iter().map(TestSummary::new).collect();
        table(header, tests, &summaries)
    },
    row: |header, test| Some(row(test, &TestSummary::new(test), columns(header))),
    data: Some(|run| {
        let summaries: Vec<TestSummary> = run.tests.iter().map(TestSummary::new).collect();
        data(run, &summaries)
    }),
    units: expectations::units,
    below: view_below_rows,
    has_titles: false,
};

/// What stands below the rows, where those were shown as the tests ended.
fn view_below_rows(record: &RunRecord, show_fio: bool) -> View {
    let summaries: Vec<TestSummary> = record.tests.iter().map(TestSummary::new).collect();
    let mut view = View { units: expectations::units(record), ..View::default() };
    push_below_rows(record, &summaries, show_fio, &mut view);
    view
}

fn push_below_rows(record: &RunRecord, summaries: &[TestSummary], show_fio: bool, view: &mut View) {
    view.push("Expectations", expectations::blocks(record));
    view.push("", rounds::blocks(record));
    view.push("", precision::blocks(record));
    view.push("Findings", [run_view::findings(record)]);
    view.push("Separately and together", [together::figures(record)]);
    view.push("Workload suitability", run_view::suitability(record));
    view.push("Duration of the rates", [durations::lines(record)]);
    view.push("Notes", [Block::Notes(notes::notes(record, summaries))]);
    if show_fio {
        view.push("Equivalent fio commands", [run_view::fio_commands(record)]);
    }
}

const COLUMNS: [Column; 11] = [
    Column::left("test"),
    Column::left("I/O").dispensable(11),
    Column::right("IOPS").takes_remark().reserved(9),
    Column::right("CI%").dispensable(5).reserved(4),
    Column::right("MiB/s").reserved(6),
    Column::right("mean").dispensable(1).reserved(7),
    Column::right("p50").reserved(7),
    Column::right("p99").reserved(7),
    Column::right("p99.9").dispensable(4),
    Column::right("device").dispensable(3),
    Column::right("device lat").dispensable(0),
];

/// The last columns, which are the kernel's view of the device.
const OF_DEVICE: usize = 2;

/// The number of columns: without a device its own would only take room.
fn columns(header: &RunHeader) -> usize {
    let has_device = !header.conditions.target.devices.is_empty();
    if has_device { COLUMNS.len() } else { COLUMNS.len() - OF_DEVICE }
}

fn table(header: &RunHeader, tests: &[TestRecord], summaries: &[TestSummary]) -> Table {
    let columns = columns(header);
    let rows = tests.iter().zip(summaries).map(|(test, summary)| row(test, summary, columns));
    Table { reserves: true, ..Table::new(&COLUMNS[..columns], rows) }
}

/// The first `columns` cells of a test.
fn row(test: &TestRecord, summary: &TestSummary, columns: usize) -> Row {
    let latency = row_latency(summary);
    let shown = |carried: Option<u64>, thin: Option<u64>| match (carried, thin) {
        (Some(ns), _) => Cell::latency(ns),
        (None, Some(ns)) => Cell::integer(ns, format!("~{}", Cell::latency(ns).text)),
        (None, None) => Cell::default(),
    };
    let total = summary.total.as_ref();
    let device = summary.device.as_ref().filter(|_| total.is_some());
    let mut cells = [
        row_name(test).into(),
        shape(test.jobs.first(), test.jobs.len()).into(),
        iops(summary).into(),
        summary
            .stability
            .map(|stability| stability.mean_ci95_fraction)
            .map(|half| Cell::real(half, format!("{:.1}", half * 100.0)))
            .into(),
        total.map(|op| Cell::mebibytes(op.bytes_per_second)).into(),
        latency.mean.map(Cell::mean_latency).into(),
        shown(latency.p50, latency.thin.p50),
        shown(latency.p99, latency.thin.p99),
        shown(latency.p999, latency.thin.p999),
        device.map(|device| Cell::iops(device.iops)).into(),
        device.and_then(|device| device.lat_mean_ns).map(Cell::mean_latency).into(),
    ];
    if test.status == TestStatus::Failed {
        // What completed before the failure is in the data, but it is no result of the test.
        cells[2..].fill(Cell::default());
    }
    Row::ended(cells.into_iter().take(columns), test)
}

/// Every test with its values in base units.
fn data(record: &RunRecord, summaries: &[TestSummary]) -> Table {
    let rate = |iops: Option<f64>| Cell::from(iops.map(Cell::iops));
    let ns = |summary: &TestSummary, of: fn(&LatencySummary) -> Option<u64>| {
        Cell::from(of(&row_latency(summary)).map(Cell::latency))
    };
    Table::data::<(&TestRecord, &TestSummary)>(
        &[
            ("test", &|(test, _)| test.id.as_str().into()),
            ("title", &|(test, _)| test.title.as_str().into()),
            ("status", &|(test, _)| test.status.name().into()),
            ("rw", &|(test, _)| test.jobs.first().map(JobRecord::rw).into()),
            ("iodepth", &|(test, _)| test.jobs.first().map(|job| Cell::count(job.iodepth().into())).into()),
            ("numjobs", &|(test, _)| Cell::count(test.jobs.len() as u64)),
            ("block_size_bytes", &|(test, _)| test.jobs.first().map(largest_block).map(Cell::bytes).into()),
            ("iops", &|(_, summary)| rate(summary.total.as_ref().map(|op| op.iops))),
            ("read_iops", &|(_, summary)| rate(summary.read.as_ref().map(|op| op.iops))),
            ("write_iops", &|(_, summary)| rate(summary.write.as_ref().map(|op| op.iops))),
            ("trim_iops", &|(_, summary)| rate(summary.trim.as_ref().map(|op| op.iops))),
            ("bytes_per_second", &|(_, summary)| {
                summary.total.as_ref().map(|op| Cell::mebibytes(op.bytes_per_second)).into()
            }),
            ("iops_ci95_fraction", &|(_, summary)| {
                summary.stability.map(|stability| Cell::percent(stability.mean_ci95_fraction)).into()
            }),
            ("iops_cv", &|(_, summary)| {
                summary.stability.map(|stability| Cell::percent(stability.cv)).into()
            }),
            ("lat_mean_ns", &|(_, summary)| row_latency(summary).mean.map(Cell::mean_latency).into()),
            ("lat_min_ns", &|(_, summary)| ns(summary, |lat| lat.min)),
            ("lat_p50_ns", &|(_, summary)| ns(summary, |lat| lat.p50.or(lat.thin.p50))),
            ("lat_p99_ns", &|(_, summary)| ns(summary, |lat| lat.p99.or(lat.thin.p99))),
            ("lat_p999_ns", &|(_, summary)| ns(summary, |lat| lat.p999.or(lat.thin.p999))),
            ("lat_max_ns", &|(_, summary)| ns(summary, |lat| lat.max)),
            ("device_iops", &|(_, summary)| rate(summary.device.as_ref().map(|device| device.iops))),
            ("device_lat_mean_ns", &|(_, summary)| {
                summary.device.as_ref().and_then(|device| device.lat_mean_ns).map(Cell::mean_latency).into()
            }),
            ("measured_ns", &|(_, summary)| Cell::duration(summary.measured_ns)),
        ],
        record.tests.iter().zip(summaries),
    )
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
pub(super) fn row_latency(summary: &TestSummary) -> LatencySummary {
    if let Some(sync) = summary.sync.as_ref().filter(|_| is_synced(summary)) {
        return sync.lat_ns.clone();
    }
    let total = summary.total.clone().unwrap_or_default();
    total.latency().clone()
}

/// True where (nearly) every write was followed by a sync.
pub(super) fn is_synced(summary: &TestSummary) -> bool {
    let writes = summary.write.as_ref().map_or(0, |write| write.ios);
    summary.sync.as_ref().is_some_and(|sync| writes > 0 && sync.ios * 10 >= writes * 9)
}

/// `4k d64 75/25`, `128k d1 x8`, `4k d1 +fdatasync`, `4k-64k d8`.
fn shape(job: Option<&JobRecord>, workers: usize) -> String {
    let Some(job) = job else { return String::new() };
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
    if workers > 1 {
        parts.push(format!("x{workers}"));
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
    let rates: Vec<f64> = ops.map(|op| op.iops).collect();
    let texts: Vec<String> = rates.iter().map(|rate| iops_text(*rate)).collect();
    (!rates.is_empty()).then(|| Cell::real(rates.iter().sum(), texts.join("+")))
}
