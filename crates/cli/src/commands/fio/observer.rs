//! What fio says while its jobs run: files laid out, the line of the estimated end, the answer to SIGUSR1.

use std::collections::HashMap;
use std::path::Path;

use fathom_model::{Nanos, RunPlan};
use fathom_options::{CommandOptions, Eta};
use fathom_record::{RunRecord, TestMeta, test_record};
use fathom_report::fio::banner as fio_banner;
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::{RunOutcome, Snapshot};

use super::aggregate_log::AggregateLog;
use super::debug::DebugTrace;
use super::idleness::IdleWatch;
use super::sink::Sink;
use crate::eta::EtaLine;
use crate::output;
use crate::progress::StallNote;

/// Says what fio says while a run goes on.
pub struct FioObserver<'a> {
    pub sink: Sink,
    pub plan: &'a RunPlan,
    /// The clone that each file is laid out for: job, and place in it; without those whose layout was reported.
    pub unannounced: HashMap<&'a Path, (usize, usize)>,
    pub eta: Option<EtaLine>,
    pub aggregate: Option<AggregateLog>,
    pub stall: StallNote,
    pub meta: TestMeta,
    pub idle: Option<IdleWatch>,
    pub trace: DebugTrace,
}

impl RunObserver for FioObserver<'_> {
    fn layout(&mut self, progress: &LayoutProgress) {
        if let Some(idle) = &mut self.idle {
            idle.restart();
        }
        self.trace.layout(progress, &mut self.sink);
        if !self.sink.has_text() {
            return;
        }
        let Some((index, clone)) = self.unannounced.remove(progress.path.as_path()) else { return };
        let (job, paths) = (&self.plan.jobs[index], &self.plan.jobs[index].clones[clone].paths);
        // One line tells of all files of a clone.
        let files = paths.len();
        for path in paths {
            self.unannounced.remove(path.as_path());
        }
        let line = fio_banner::layout_line(&job.name, files, progress.total_bytes * files as u64);
        // The report says so if the output cannot be written.
        let _ = self.sink.write(|out| writeln!(out, "{line}"));
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.trace.snapshot(snapshot, &mut self.sink);
        if let Some(aggregate) = &mut self.aggregate {
            aggregate.add(snapshot);
        }
        // What reads fio's output knows no such lines, so they are for people alone.
        if let Some(line) = self.stall.line(snapshot).filter(|_| output::stderr_is_seen()) {
            if let Some(eta) = &mut self.eta {
                eta.finish();
            }
            output::warn(&line);
        }
        if let Some(eta) = &mut self.eta {
            eta.show(snapshot);
        }
    }

    /// As fio answers SIGUSR1: with the documents of the end, as they would be now.
    fn outcome_so_far(&mut self, outcome: &RunOutcome) {
        if let Some(eta) = &mut self.eta {
            eta.finish();
        }
        let test = test_record(self.meta.clone(), self.plan, outcome.clone());
        let record = RunRecord { status: test.status, tests: vec![test], ..RunRecord::default() };
        // The report says so if the output cannot be written.
        let _ = self.sink.report(&record, self.idle.as_ref().map(IdleWatch::end));
    }
}

/// Which clone each file of `plan` is laid out for: the first that names it.
pub fn layouts(plan: &RunPlan) -> HashMap<&Path, (usize, usize)> {
    let mut layouts = HashMap::new();
    for (index, job) in plan.jobs.iter().enumerate() {
        for (clone, path) in
            job.clones.iter().enumerate().flat_map(|(c, p)| p.paths.iter().map(move |p| (c, p)))
        {
            layouts.entry(path.as_path()).or_insert((index, clone));
        }
    }
    layouts
}

/// As fio decides it: never between the lines of a JSON document, else on a terminal or where asked for.
pub fn shows_eta(command: &CommandOptions, sink: &Sink) -> bool {
    if command.eta == Eta::Never || (!sink.has_text() && !sink.is_file()) {
        return false;
    }
    command.eta == Eta::Always || output::stdout_is_seen()
}

/// The line of the estimated end, as it was asked for.
pub fn eta_line(command: &CommandOptions, plan: &RunPlan) -> EtaLine {
    EtaLine::new(command.eta_interval.unwrap_or(Nanos::from_secs(1)), command.eta_newline, plan)
}
