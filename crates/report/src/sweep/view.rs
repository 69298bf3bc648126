//! What `sweep` shows: heat maps and curves, the limits, the knees and the answers to what was asked.

use std::cmp::Ordering;

use fathom_analysis::Analysis;
use fathom_analysis::criterion::{Criterion, MetricKind};
use fathom_analysis::estimate::Estimate;
use fathom_analysis::pattern::block_name;
use fathom_analysis::sweep::knee::Knee;
use fathom_analysis::sweep::limits::UndecidedCharge;
use fathom_analysis::sweep::offered::OfferedPoint;
use fathom_analysis::sweep::point::{SweepPoint, SweepSpot};
use fathom_analysis::sweep::{Sweep, assess};
use fathom_model::Nanos;
use fathom_model::units::{self, UnitSystem};
use fathom_record::{Activity, LatencySummary, RunRecord, SweepActivity, TestStatus};

use super::{goals, grid, rows};
use crate::run_view::{self, LATENCY_COLUMNS, latency_cells};
use crate::stream::RowSource;
use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, View, decimal, iops_text};

/// Everything that is known of a sweep; the fio command of each point where `show_fio` says so.
pub fn view(analysis: &Analysis<'_>, sweep: &Sweep, show_fio: bool) -> View {
    let record = analysis.record;
    let mut view = run_view::of_run(record);
    view.data = data(record, sweep);
    view.push("", [Block::Table(rows::table(&record.header, &record.tests))]);
    push_below_rows(analysis, sweep, show_fio, &mut view);
    view
}

/// The rows of a sweep.
pub const ROWS: RowSource = RowSource {
    table: rows::table,
    data: Some(|run| data(run, &assess(run))),
    units: reach_units,
    below: |analysis, show_fio| {
        let mut view = View::default();
        push_below_rows(analysis, &assess(analysis.record), show_fio, &mut view);
        view
    },
    has_titles: false,
};

/// What stands below the rows.
fn push_below_rows(analysis: &Analysis<'_>, sweep: &Sweep, show_fio: bool, view: &mut View) {
    let record = analysis.record;
    if sweep.points.iter().all(|point| point.ios == 0) {
        view.push("", [Block::note("Nothing was measured.")]);
    } else {
        grid::push(sweep, view);
        view.push("Limits", [limits(sweep)]);
        view.push("Recommended queue depth", [knees(&sweep.knees)]);
        goals::push(sweep, view);
    }
    view.push("Findings", [run_view::brief_findings(record)]);
    view.push("Workload suitability", run_view::suitability(analysis));
    view.push("", [Block::Notes(notes(record, sweep))]);
    view.push("Equivalent fio commands", show_fio.then(|| run_view::fio_commands(record)));
    view.units = reach_units(record);
}

/// The units of the bandwidth that was to be reached.
fn reach_units(record: &RunRecord) -> Option<UnitSystem> {
    let Activity::Sweep(SweepActivity { reach: Some(reach), .. }) = &record.header.activity else {
        return None;
    };
    let goal = Criterion::parse(reach).ok().filter(|goal| goal.metric.kind == MetricKind::BytesPerSecond)?;
    Some(UnitSystem::of(goal.value))
}

fn limits(sweep: &Sweep) -> Block {
    let mut figures = Vec::new();
    let directions = [
        ("read", &sweep.limits.read, &sweep.rate_durations.read),
        ("write", &sweep.limits.write, &sweep.rate_durations.write),
    ];
    for (name, limits, durations) in directions {
        let (Some(iops), Some(bytes)) = (limits.iops, limits.bytes_per_second) else { continue };
        let mut figure =
            |what: &str, cell: Cell| figures.push(KeyFigure::new(format!("{name} {what}"), cell));
        let mebibytes = |rate| decimal(rate / f64::from(1 << 20));
        figure("IOPS limit", estimate(iops, iops_text, "IOPS"));
        if let Some(duration) = &durations.iops {
            figure("IOPS duration", duration.text().into());
        }
        match &limits.undecided {
            Some(undecided) => figure("bandwidth limit", undecided_charge(undecided).into()),
            None => figure("bandwidth limit", estimate(bytes, mebibytes, "MiB/s")),
        }
        let duration = durations.bytes_per_second.as_ref().zip(durations.block_size_bytes);
        if let Some((duration, block)) = duration.filter(|_| bytes.value().is_some()) {
            let rate = |iops: f64| format!("{} MiB/s", mebibytes(iops * block as f64));
            let text = format!("{}; blocks of {}", duration.text_with(rate), block_name(block));
            figure("bandwidth duration", text.into());
        }
        if let Some(unit) = limits.io_unit_bytes {
            let text = format!("{}: larger I/Os count as several", estimate(unit, kib, "KiB").text);
            figure("I/O unit", Cell { text, ..estimate(unit, kib, "KiB") });
        }
        if let Some(cell) = limits.crossover_block_size_bytes.map(crossover) {
            figure("crossover block size", cell);
        }
        if let Some(range) = limits.near_both_block_size_bytes {
            figure("near both limits", near_both(sweep, name == "write", (range.low, range.high)).into());
        }
        if limits.is_client_bound {
            let text = "The jobs kept their CPUs busy at the highest rate, so this host's CPUs are the limit there. \
                        More --numjobs may reach more.";
            figure("CPU limit", text.into());
        }
    }
    Block::KeyFigures(figures)
}

fn estimate(estimate: Estimate, text: impl Fn(f64) -> String, unit: &str) -> Cell {
    match estimate {
        Estimate::Known { value, low, high } => {
            Cell::real(value, format!("{} {unit} ({} to {} {unit})", text(value), text(low), text(high)))
        }
        Estimate::AtLeast(low) => format!("not reached; at least {} {unit}", text(low)).into(),
        Estimate::AtMost(high) => format!("at most {} {unit}", text(high)).into(),
    }
}

fn undecided_charge(undecided: &UndecidedCharge) -> String {
    let rate = decimal(undecided.bytes_per_second / f64::from(1 << 20));
    let unit = kib(undecided.io_unit_bytes.value().unwrap_or_default());
    let remedy = undecided
        .deciding_block_size_bytes
        .map(|size| format!("; measure --bs {} as well", block_name(size)));
    format!(
        "inconclusive: a limit of {rate} MiB/s, or I/Os of more than {unit} KiB count as several{}",
        remedy.unwrap_or_default()
    )
}

fn kib(bytes: f64) -> String {
    format!("{:.1}", bytes / 1024.0)
}

fn crossover(block: Estimate) -> Cell {
    match block {
        Estimate::Known { value, .. } => {
            let text = estimate(block, kib, "KiB").text;
            let meaning = "smaller blocks meet the IOPS limit, larger ones the bandwidth limit";
            Cell::real(value, format!("{text}: {meaning}"))
        }
        Estimate::AtLeast(low) => format!("{} KiB or more", kib(low)).into(),
        Estimate::AtMost(high) => format!("{} KiB or less", kib(high)).into(),
    }
}

/// The range near both limits, with a point that was measured in it.
fn near_both(sweep: &Sweep, writes: bool, (low, high): (f64, f64)) -> String {
    let range = format!("blocks of {} to {} KiB reach at least 90 % of both", kib(low), kib(high));
    let in_range = sweep.points.iter().filter(|point| {
        (low..=high).contains(&(point.spot.block_size_bytes as f64))
            && point.spot.rw.writes() == writes
            && point.is_sound()
    });
    match in_range.max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second)) {
        Some(point) => format!(
            "{range}; measured at {}: {} IOPS and {} MiB/s",
            block_name(point.spot.block_size_bytes),
            iops_text(point.iops),
            Cell::mebibytes(point.bytes_per_second).text
        ),
        None => range,
    }
}

fn knees(knees: &[Knee]) -> Block {
    let columns = [
        Column::left("workload"),
        Column::right("latency"),
        Column::right("throughput"),
        Column::right("plateau IOPS").dispensable(0),
        Column::right("IOPS at QD 1 latency"),
        Column::right("reached at"),
    ];
    let depth = |depth: u32| Cell::integer(u64::from(depth), format!("QD {depth}"));
    let row = |knee: &Knee| {
        let jobs = if knee.numjobs > 1 { format!(" x {} jobs", knee.numjobs) } else { String::new() };
        let throughput = match knee.iodepth_throughput {
            Some(of_plateau) if knee.rules_differ => {
                Cell { text: format!("QD {of_plateau} (broad)"), ..depth(of_plateau) }
            }
            Some(of_plateau) => depth(of_plateau),
            None => "not reached".into(),
        };
        Row::new([
            format!("{} {}{jobs}", knee.rw.title(), block_name(knee.block_size_bytes)).into(),
            depth(knee.iodepth_latency),
            throughput,
            knee.plateau_iops.map(Cell::iops).into(),
            knee.low_latency.map(|rate| Cell::iops(rate.iops)).into(),
            knee.low_latency.map(|rate| depth(rate.iodepth)).into(),
        ])
    };
    Block::Table(Table::new(columns, knees.iter().map(row)))
}

fn notes(record: &RunRecord, sweep: &Sweep) -> Vec<String> {
    let mut notes = record.header.notes.clone();
    for point in &sweep.points {
        let title = point.spot.title();
        if let Some(ns) = point.stalled_ns {
            let length = units::duration(Nanos(ns));
            notes.push(format!(
                "{title}: stalled, no completion for {length}; excluded from all conclusions."
            ));
        } else if let Some(reason) = point.reason.as_ref().filter(|_| point.status != TestStatus::Complete) {
            notes.push(format!("{title}: {}: {reason}", point.status.name()));
        }
    }
    notes.extend(depths_not_held(&sweep.points));
    notes.extend(run_view::interruption(record));
    notes
}

/// One line for all points whose mean queue depth was not the one asked for.
fn depths_not_held(points: &[SweepPoint]) -> Option<String> {
    let share =
        |point: &SweepPoint| point.queue_depth_mean.map(|held| held / f64::from(point.spot.in_flight()));
    let off = points.iter().filter(|point| point.ios > 0 && point.stalled_ns.is_none() && !point.is_sound());
    let off: Vec<&SweepPoint> = off.filter(|point| point.status == TestStatus::Complete).collect();
    let worst = off.iter().min_by(|a, b| share(a).partial_cmp(&share(b)).unwrap_or(Ordering::Equal))?;
    let held = worst.queue_depth_mean.unwrap_or(0.0);
    let points = if off.len() == 1 { "1 point".to_owned() } else { format!("{} points", off.len()) };
    Some(format!(
        "{points} did not hold the queue depth asked for (worst: {}, mean {held:.1}); excluded from all conclusions.",
        worst.spot.title()
    ))
}

/// All points and offered rates.
fn data(record: &RunRecord, sweep: &Sweep) -> Table {
    let mut columns = vec![
        Column::left("rw"),
        Column::right("block_size_bytes"),
        Column::right("iodepth"),
        Column::right("numjobs"),
        Column::right("rate_iops"),
        Column::left("status"),
        Column::left("reason"),
        Column::right("iops"),
        Column::right("bytes_per_second"),
    ];
    columns.extend(LATENCY_COLUMNS);
    columns.extend(["depth_mean", "cpu_per_request_ns", "stalled_ns"].map(Column::right));
    columns.extend(["response_mean_ns", "response_p99_ns", "elapsed_ns"].map(Column::right));
    let offered = record.tests.iter().filter_map(OfferedPoint::of);
    let rows = sweep.points.iter().map(point_row).chain(offered.map(|point| offered_row(&point)));
    Table::new(columns, rows)
}

fn spot_cells(spot: SweepSpot, rate: Option<u32>) -> [Cell; 5] {
    [
        spot.rw.name().into(),
        Cell::integer(spot.block_size_bytes, block_name(spot.block_size_bytes)),
        Cell::count(u64::from(spot.iodepth)),
        Cell::count(u64::from(spot.numjobs)),
        rate.map(|rate| Cell::count(u64::from(rate))).into(),
    ]
}

fn point_row(point: &SweepPoint) -> Row {
    let is_measured = point.ios > 0;
    let cells = spot_cells(point.spot, None).into_iter().chain([
        point.status.name().into(),
        point.reason.clone().into(),
        is_measured.then(|| Cell::iops(point.iops)).into(),
        is_measured.then(|| Cell::mebibytes(point.bytes_per_second)).into(),
    ]);
    let last = [
        point.queue_depth_mean.map(|depth| Cell::real(depth, decimal(depth))).into(),
        point.cpu_per_request_ns.map(Cell::mean_latency).into(),
        point.stalled_ns.map(Cell::duration).into(),
        Cell::default(),
        Cell::default(),
        Cell::duration(point.elapsed_ns),
    ];
    Row::new(cells.chain(latency_cells(&point.lat_ns)).chain(last))
}

fn offered_row(point: &OfferedPoint) -> Row {
    let bytes = point.iops * point.offer.block_size_bytes as f64;
    let cells = spot_cells(point.offer.spot(), Some(point.offer.rate_iops)).into_iter().chain([
        point.status.name().into(),
        Cell::default(),
        Cell::iops(point.iops),
        Cell::mebibytes(bytes),
    ]);
    let last = [
        Cell::default(),
        Cell::default(),
        Cell::default(),
        point.response_ns.mean.map(Cell::mean_latency).into(),
        point.response_ns.p99.map(Cell::latency).into(),
        Cell::duration(point.elapsed_ns),
    ];
    Row::new(cells.chain(latency_cells(&LatencySummary::default())).chain(last))
}
