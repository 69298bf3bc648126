//! The answers of `sweep` to what was asked: the maximum under a latency objective, the highest offered rate, the lowest queue
//! depth for a rate.

use fathom_analysis::pattern::{AccessPattern, block_name};
use fathom_analysis::sweep::offered::{Highest, OfferedPoint};
use fathom_analysis::sweep::{Sweep, SweepAnswer, SweepGoal};
use fathom_model::{Nanos, units};

use crate::view::{Block, Cell, Column, Row, Table, View};

/// Adds a section for each question.
pub(super) fn push(sweep: &Sweep, view: &mut View) {
    if let Some(SweepGoal { criterion: objective, answers, .. }) = &sweep.slo {
        let mut notes = vec![
            "Measured at a fixed queue depth; I/Os that arrive at their own pace queue up and take longer."
                .to_owned(),
        ];
        if sweep.offered.is_empty() {
            let text = "No rate was offered: the time budget ended. Raise --budget to find the highest offered rate.";
            notes.push(text.to_owned());
        }
        view.push(format!("Maximum under {objective}"), [answers_table(answers), Block::Notes(notes)]);
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
    [Block::Table(Table::new(columns, highest.iter().map(row))), Block::Notes(notes)]
}

/// How often and how long the rate was offered, and whether the search ended.
fn tries(highest: &Highest, best: &OfferedPoint) -> String {
    let text = format!("{} x {}", highest.times, units::duration(Nanos(best.measured_ns)));
    if highest.search_complete { text } else { format!("{text}, unfinished") }
}
