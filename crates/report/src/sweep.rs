//! Reports of `sweep`: heat maps and curves (`grid`), the limits, the knees and the answers to what was asked.

mod grid;

use std::cmp::Ordering;
use std::io::{self, Write};

use fathom_analysis::Analysis;
use fathom_analysis::criterion::{Criterion, MetricKind};
use fathom_analysis::estimate::Estimate;
use fathom_analysis::pattern::{AccessPattern, block_name};
use fathom_analysis::sweep::knee::Knee;
use fathom_analysis::sweep::limits::UndecidedCharge;
use fathom_analysis::sweep::offered::{Highest, OfferedPoint};
use fathom_analysis::sweep::point::SweepPoint;
use fathom_analysis::sweep::{Sweep, SweepAnswer, SweepGoal, assess};
use fathom_analysis::verdict::VolumeVerdict;
use fathom_model::Nanos;
use fathom_model::units::{self, UnitSystem};
use fathom_record::{Activity, RunHeader, RunRecord, SweepActivity, TestRecord, TestStatus};
use serde_json::json;

use crate::document::object;
use crate::run_view::{self, LATENCY_COLUMNS, latency_members};
use crate::stream::RowSource;
use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, View, decimal, iops_text};
use crate::{Style, run_json, verdict};

/// Writes the document of `sweep --json`, indented.
///
/// # Errors
/// Those of `out`.
pub fn document(analysis: &Analysis<'_>, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let sweep = assess(analysis.record);
    let conclusions = json!({ "conclusions": analysis.conclusions() });
    let verdict = VolumeVerdict::of_sweep(analysis, &sweep);
    let result = object([json!(sweep), conclusions]);
    run_json::write("fathom.sweep/1", analysis.record, &verdict, &result, style, out)
}

/// The report; the fio command of each point where `show_fio` says so.
pub fn view(analysis: &Analysis<'_>, show_fio: bool) -> View {
    let record = analysis.record;
    let sweep = assess(record);
    let mut view =
        View { data: data(record, &sweep), units: reach_units(record), ..run_view::of_run(record) };
    if sweep.points.iter().all(|point| point.ios == 0) {
        view.push("", [Block::note("Nothing was measured.")]);
        view.push_full("", [Block::Table(table(&record.header, &record.tests))]);
    } else {
        push_answers(&sweep, &mut view);
        verdict::push(&VolumeVerdict::of_sweep(analysis, &sweep), record, &mut view);
        if view.verdict.iter().all(|line| line.label != ANSWER) {
            view.push_brief("", [Block::Table(grid::best(&sweep))]);
        }
        view.push_full("", [Block::Table(table(&record.header, &record.tests))]);
        grid::push(&sweep, &mut view);
        view.push_full("Limits", [limits(&sweep)]);
        view.push_full("Recommended queue depth", [knees(&sweep.knees)]);
        push_goals(&sweep, &mut view);
    }
    view.push_full("Findings", [run_view::brief_findings(record)]);
    view.push_full("Workload suitability", run_view::suitability(analysis));
    view.push_full("", [Block::Notes(notes(record, &sweep))]);
    view.push("Equivalent fio commands", show_fio.then(|| run_view::fio_commands(record)));
    view
}

/// The rows of a sweep.
pub const ROWS: RowSource =
    RowSource { table, data: Some(|run| data(run, &assess(run))), units: reach_units, has_titles: false };

/// The label of the line that answers what was asked.
const ANSWER: &str = "Answer";

/// What was asked comes first: the rate under an objective, and the least depth that reaches a rate.
fn push_answers(sweep: &Sweep, view: &mut View) {
    for highest in &sweep.offered {
        let Some(SweepGoal { criterion, .. }) = &sweep.slo else { continue };
        let name = workload(highest.rw, highest.block_size_bytes).text;
        match &highest.best {
            Some(best) => {
                let rate = units::grouped(u64::from(best.offer.rate_iops));
                view.say(ANSWER, format!("{name}: up to {rate} IOPS at random times meet {criterion}"));
            }
            None if highest.inconclusive => {
                view.say(ANSWER, format!("{name}: inconclusive, too few samples for {criterion}"));
            }
            None => view.warn(ANSWER, format!("{name}: no offered rate meets {criterion}")),
        }
    }
    let goals = sweep.slo.iter().filter(|_| sweep.offered.is_empty()).chain(&sweep.reach);
    for (goal, answer) in
        goals.flat_map(|goal| goal.answers.iter().map(move |answer| (&goal.criterion, answer)))
    {
        let name = workload(answer.rw, answer.block_size_bytes).text;
        match &answer.best {
            Some(best) => {
                let (iops, depth) = (iops_text(best.iops), depth(best.spot.iodepth, best.spot.numjobs).text);
                view.say(ANSWER, format!("{name}: {iops} IOPS at QD {depth} meet {goal}"));
            }
            None if answer.inconclusive => {
                view.say(ANSWER, format!("{name}: inconclusive, too few samples for {goal}"));
            }
            None => view.warn(ANSWER, format!("{name}: no queue depth meets {goal}")),
        }
    }
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

/// A section for each question that was asked.
fn push_goals(sweep: &Sweep, view: &mut View) {
    if let Some(SweepGoal { criterion: objective, answers, .. }) = &sweep.slo {
        let mut notes = vec![
            "Measured at a fixed queue depth; I/Os that arrive at their own pace queue up and take longer."
                .to_owned(),
        ];
        if sweep.offered.is_empty() {
            let text = "No rate was offered: the time budget ended. Raise --budget to find the highest offered rate.";
            notes.push(text.to_owned());
        }
        let title = format!("Maximum under {objective}");
        match sweep.offered.is_empty() {
            true => view.push(title, [answers_table(answers), Block::Notes(notes)]),
            false => view.push_full(title, [answers_table(answers), Block::Notes(notes)]),
        }
        view.push(format!("Highest offered rate under {objective}"), offered(&sweep.offered));
    }
    if let Some(SweepGoal { criterion: goal, answers, .. }) = &sweep.reach {
        view.push(format!("Lowest queue depth for {goal}"), [answers_table(answers)]);
    }
}

fn workload(rw: AccessPattern, block: u64) -> Cell {
    format!("{} {}", rw.title(), block_name(block)).into()
}

fn answers_table(answers: &[SweepAnswer]) -> Block {
    let columns = [
        Column::left("workload"),
        Column::right("QD").takes_remark(),
        Column::right("IOPS"),
        Column::right("MiB/s").dispensable(0),
        Column::right("mean"),
        Column::right("p99").dispensable(1),
        Column::left("CPU per I/O"),
    ];
    let row = |answer: &SweepAnswer| {
        let name = workload(answer.rw, answer.block_size_bytes);
        let Some(best) = &answer.best else {
            let none = if answer.inconclusive { "inconclusive: too few samples" } else { "none" };
            return Row { remark: Some(none.to_owned()), ..Row::new([name]) };
        };
        Row::new([
            name,
            depth(best.spot.iodepth, best.spot.numjobs),
            Cell::iops(best.iops),
            Cell::mebibytes(best.bytes_per_second),
            best.lat_ns.mean.map(Cell::mean_latency).into(),
            best.lat_ns.p99.map(Cell::latency).into(),
            cpu_of_both(answer).into(),
        ])
    };
    let table = Table::new(columns, answers.iter().map(row));
    let is_compared = answers.iter().any(|answer| cpu_of_both(answer).is_some());
    Block::Table(if is_compared { table } else { table.without(&["CPU per I/O"]) })
}

/// `8`, `8 x 4 jobs`.
fn depth(depth: u32, jobs: u32) -> Cell {
    let of_jobs = if jobs > 1 { format!(" x {jobs} jobs") } else { String::new() };
    Cell::integer(u64::from(depth), format!("{depth}{of_jobs}"))
}

/// CPU time per I/O with all queue depth in one job, and spread over several.
fn cpu_of_both(answer: &SweepAnswer) -> Option<String> {
    let (best, jobs) = (answer.best.as_ref()?, answer.in_jobs.as_ref()?);
    let cpu = |ns: f64| units::latency(ns as u64);
    let (one, many) = (cpu(best.cpu_per_request_ns?), cpu(jobs.cpu_per_request_ns?));
    Some(format!("{one}; {many} with {} jobs", jobs.spot.numjobs))
}

fn offered(highest: &[Highest]) -> [Block; 2] {
    let columns = [
        Column::left("workload"),
        Column::right("IOPS"),
        Column::right("mean").dispensable(0),
        Column::right("p99"),
        Column::right("tries").dispensable(1),
        Column::right("missed at"),
    ];
    let row = |highest: &Highest| {
        let too_much = highest.too_high_iops.map(|rate| Cell::count(u64::from(rate)));
        let too_much = too_much.unwrap_or_else(|| "not found".into());
        let too_much = if highest.too_high_for_host { "unknown".into() } else { too_much };
        let name = workload(highest.rw, highest.block_size_bytes);
        let Some(best) = &highest.best else {
            let none = if highest.inconclusive { "inconclusive: too few samples" } else { "none" };
            let empty = Cell::default;
            return Row::new([name, none.into(), empty(), empty(), empty(), too_much]);
        };
        Row::new([
            name,
            Cell::count(u64::from(best.offer.rate_iops)),
            best.response_ns.mean.map(Cell::mean_latency).into(),
            best.response_ns.p99.map(Cell::latency).into(),
            tries(highest, best).into(),
            too_much,
        ])
    };
    let mut notes = Vec::new();
    if !highest.is_empty() {
        notes.push("Response times count from when each I/O was due.".to_owned());
    }
    if highest.iter().any(|highest| highest.best.as_ref().is_some_and(|best| best.generator_late)) {
        let text = "This host issued I/Os late; the response times include that delay.";
        notes.push(text.to_owned());
    }
    if highest.iter().any(|highest| highest.too_high_for_host) {
        let text = "At higher rates this host issued I/Os late: the target may hold more. Repeat it on an idle host.";
        notes.push(text.to_owned());
    }
    [Block::Table(Table::new(columns, highest.iter().map(row))), Block::Notes(notes)]
}

/// How often and how long the rate was offered, and whether the search ended.
fn tries(highest: &Highest, best: &OfferedPoint) -> String {
    let text = format!("{} x {}", highest.times, units::duration(Nanos(best.measured_ns)));
    if highest.search_complete { text } else { format!("{text}, unfinished") }
}

/// Room for `randwrite-256k-d256-x16`.
const NAME: u8 = 24;

const COLUMNS: [Column; 6] = [
    Column::left("test").reserved(NAME),
    Column::right("IOPS").takes_remark().reserved(9),
    Column::right("MiB/s").reserved(8),
    Column::right("mean"),
    Column::right("p99").dispensable(1),
    Column::right("mean QD").dispensable(0),
];

fn table(_header: &RunHeader, tests: &[TestRecord]) -> Table {
    let rows = tests.iter().filter_map(row);
    Table { reserves: true, ..Table::new(COLUMNS, rows) }
}

fn row(test: &TestRecord) -> Option<Row> {
    let (rates, latency, depth) = if let Some(offered) = OfferedPoint::of(test) {
        let bytes = offered.iops * offered.offer.block_size_bytes as f64;
        ((offered.iops, bytes), offered.response_ns, None)
    } else {
        let point = SweepPoint::of(test)?;
        ((point.iops, point.bytes_per_second), point.lat_ns, point.queue_depth_mean)
    };
    let is_measured = rates.0 > 0.0 && test.status != TestStatus::Failed;
    let cells = [
        test.id.as_str().into(),
        Cell::iops(rates.0),
        Cell::mebibytes(rates.1),
        latency.mean.map(Cell::mean_latency).into(),
        latency.p99.map(Cell::latency).into(),
        depth.map(|depth| Cell::real(depth, decimal(depth))).into(),
    ];
    let cells = cells.into_iter().take(if is_measured { COLUMNS.len() } else { 1 });
    Some(Row::ended(cells, test))
}

/// All points and offered rates.
fn data(record: &RunRecord, sweep: &Sweep) -> Table {
    const POINT: &str = "rw,block_size_bytes,iodepth,numjobs,rate_iops,status,reason,iops,bytes_per_second";
    const REST: &str = "\
        depth_mean=queue_depth_mean,cpu_per_request_ns,stalled_ns,\
        response_mean_ns=response_ns.mean,response_p99_ns=response_ns.p99,elapsed_ns";
    let points = sweep.points.iter().map(|point| object([json!(point), latency_members(&point.lat_ns)]));
    let offered = record.tests.iter().filter_map(OfferedPoint::of).map(|point| {
        let bytes_per_second = point.iops * point.offer.block_size_bytes as f64;
        let rate = json!({ "bytes_per_second": bytes_per_second });
        object([json!(point.offer.spot()), json!(point), rate])
    });
    Table::of_documents(&[POINT, LATENCY_COLUMNS, REST], points.chain(offered))
}
