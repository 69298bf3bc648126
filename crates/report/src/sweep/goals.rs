//! What `sweep` answers to what was asked: the most under an objective, the highest rate offered, the least depth for a
//! rate.

use std::io;

use fathom_analysis::pattern::block_name;
use fathom_analysis::sweep::offered::{Highest, OfferedPoint};
use fathom_analysis::sweep::{Sweep, SweepAnswer, SweepGoal};
use fathom_model::{Nanos, units};

use crate::TextWriter;
use crate::bench::table::{count, decimal};
use crate::columns::{Align, Columns};
use crate::sweep::table::{SweepPage, capital};

impl SweepPage<'_> {
    /// The answers to one question.
    pub(crate) fn answers(
        &self,
        what: &str,
        goal: Option<&SweepGoal>,
        out: &mut TextWriter,
    ) -> io::Result<()> {
        let Some(SweepGoal { criterion, answers, .. }) = goal else { return Ok(()) };
        let row = |answer: &SweepAnswer| {
            let name = format!("{} {}", answer.rw.title(), block_name(answer.block_size_bytes));
            let nowhere = if answer.inconclusive { "too few requests to tell" } else { "nowhere" };
            let Some(best) = &answer.best else { return vec![name, nowhere.to_owned()] };
            let jobs = if best.spot.numjobs > 1 { format!(" x{}", best.spot.numjobs) } else { String::new() };
            let shown = |ns: Option<u64>| ns.map(units::latency).unwrap_or_default();
            vec![
                name,
                format!("d{}{jobs}", best.spot.iodepth),
                count(best.iops),
                decimal(best.bytes_per_second / 1_048_576.0),
                best.lat_ns.mean.map(|mean| units::latency(mean as u64)).unwrap_or_default(),
                shown(best.lat_ns.p99),
                cheaper(answer),
            ]
        };
        let head = vec!["", "at", "IOPS", "MiB/s", "mean", "p99", ""];
        let align =
            [Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Left];
        let columns = Columns { head, align: align.to_vec(), rows: answers.iter().map(row).collect() };
        let title = capital(&format!("{what} {criterion}"));
        self.columns(&title, columns, &["MiB/s", "p99"], out)
    }

    /// The highest rates under the objective.
    pub(crate) fn offered(&self, sweep: &Sweep, out: &mut TextWriter) -> io::Result<()> {
        let Some(SweepGoal { criterion, .. }) = sweep.slo.as_ref().filter(|_| !sweep.offered.is_empty())
        else {
            return Ok(());
        };
        let shown = |ns: Option<u64>| ns.map(units::latency).unwrap_or_default();
        let row = |highest: &Highest| {
            let name = format!("{} {}", highest.rw.title(), block_name(highest.block_size_bytes));
            let too_much =
                highest.too_high_iops.map_or("not found".to_owned(), |rate| units::grouped(u64::from(rate)));
            let Some(best) = &highest.best else {
                let nothing = if highest.inconclusive { "too few requests to tell" } else { "none" };
                return vec![name, nothing.to_owned(), String::new(), String::new(), String::new(), too_much];
            };
            vec![
                name,
                units::grouped(u64::from(best.offer.rate_iops)),
                best.response_ns.mean.map(|mean| units::latency(mean as u64)).unwrap_or_default(),
                shown(best.response_ns.p99),
                tried(highest, best),
                too_much,
            ]
        };
        let head = vec!["", "per second", "mean", "p99", "tried", "too many"];
        let align = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Right];
        let rows = sweep.offered.iter().map(row).collect();
        let columns = Columns { head, align: align.to_vec(), rows };
        let title = format!("The highest rate under {criterion}, offered evenly");
        self.columns(&title, columns, &["mean", "tried"], out)
    }
}

/// How often and how long the answer was offered, and whether it is the last word.
fn tried(highest: &Highest, best: &OfferedPoint) -> String {
    let text = format!("{} x {}", highest.times, units::duration(Nanos(best.measured_ns)));
    if highest.search_complete { text } else { format!("{text}, unfinished") }
}

/// What the answers under an objective rest on.
pub(crate) fn about_the_objective(sweep: &Sweep) -> Vec<String> {
    if sweep.slo.is_none() {
        return Vec::new();
    }
    let mut notes = vec![
        "\"The most under\" holds for a fixed number of requests in flight: requests that come at their own pace \
         queue up and wait longer"
            .to_owned(),
    ];
    if sweep.offered.is_empty() {
        let text = "the time was over before a rate was offered; --budget gives more";
        notes.push(text.to_owned());
    } else {
        notes.push("the times of rates that were offered count from when a request was due".to_owned());
    }
    let late = |highest: &Highest| highest.best.as_ref().is_some_and(|best| best.generator_late);
    if sweep.offered.iter().any(late) {
        let text =
            "requests were made late by this machine itself, and the response times hold that lateness";
        notes.push(text.to_owned());
    }
    notes
}

/// Whether depth or jobs cost less.
fn cheaper(answer: &SweepAnswer) -> String {
    let (Some(best), Some(jobs)) = (&answer.best, &answer.in_jobs) else { return String::new() };
    let (Some(one), Some(many)) = (best.cpu_per_request_ns, jobs.cpu_per_request_ns) else {
        return String::new();
    };
    let cpu = |ns: f64| units::latency(ns as u64);
    format!("CPU per request {}, with {} jobs {}", cpu(one), jobs.spot.numjobs, cpu(many))
}
