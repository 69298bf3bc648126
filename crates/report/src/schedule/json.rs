//! The JSON document of a schedule: `fathom.schedule/1`.

use std::io;

use fathom_analysis::expectation::ExpectationResult;
use fathom_analysis::schedule::{FigureVariation, GroupVariation};
use fathom_analysis::trend::{ERROR, GroupSpread, TrendLevel, TrendVerdict};
use fathom_record::{MissedSlots, RunSchedule};
use serde::Serialize;

use super::{ScheduleReport, ScheduledRun};
use crate::document;

#[derive(Serialize)]
struct ScheduleDocument<'a> {
    schema: &'static str,
    schedule: &'a RunSchedule,
    target: &'a str,
    simulated: bool,
    slots: u64,
    slots_left: u64,
    /// The command line that goes on with it; null where no slot is left.
    resume: Option<&'a str>,
    runs: Vec<RunDocument<'a>>,
    missed_slots: u64,
    missed: &'a [MissedSlots],
    /// Those that were not met; left out where the runs have none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unmet_expectations: Vec<UnmetDocument<'a>>,
    /// Probability of a difference or change in any figure where there is none.
    error: f64,
    figures: Vec<FigureDocument<'a>>,
}

#[derive(Serialize)]
struct UnmetDocument<'a> {
    slot: u64,
    #[serde(flatten)]
    result: &'a ExpectationResult,
}

#[derive(Serialize)]
struct RunDocument<'a> {
    slot: u64,
    /// From slot 0 on.
    due_ms: u64,
    /// Null where the time is virtual.
    due_unix_ms: Option<u64>,
    /// Null where it is not kept in the history.
    run: Option<u64>,
    started_unix_ms: u64,
    status: &'static str,
    hostname: &'a str,
}

#[derive(Serialize)]
struct FigureDocument<'a> {
    test: &'a str,
    metric: String,
    runs: usize,
    median: f64,
    quartile_low: f64,
    quartile_high: f64,
    least: f64,
    greatest: f64,
    over_time: Vec<CourseDocument<'a>>,
    by_hour: &'a GroupVariation,
    by_host: &'a GroupVariation,
}

#[derive(Serialize)]
struct CourseDocument<'a> {
    host: &'a str,
    verdict: TrendVerdict,
    autocorrelation: f64,
    /// Runs of one level, by their place in the schedule's runs on this host.
    levels: &'a [TrendLevel],
}

/// Writes the schedule.
///
/// # Errors
/// Those of `out`.
pub fn render(report: &ScheduleReport, out: &mut dyn io::Write) -> io::Result<()> {
    let runs = report.runs.iter().map(|run| run_document(run, report));
    let unmet = report.unmet.iter().map(|unmet| UnmetDocument { slot: unmet.slot, result: &unmet.result });
    let document = ScheduleDocument {
        schema: "fathom.schedule/1",
        schedule: &report.schedule,
        target: &report.target,
        simulated: report.is_simulated,
        slots: report.schedule.slots(),
        slots_left: report.left,
        resume: report.resume.as_deref(),
        runs: runs.collect(),
        missed_slots: report.missed_count(),
        missed: &report.missed,
        unmet_expectations: unmet.collect(),
        error: ERROR,
        figures: report.figures.iter().map(figure).collect(),
    };
    document::write(&document, out)
}

fn run_document<'a>(run: &'a ScheduledRun, report: &ScheduleReport) -> RunDocument<'a> {
    let schedule = &report.schedule;
    RunDocument {
        slot: run.slot,
        due_ms: schedule.since_start_ms(run.slot),
        due_unix_ms: (!report.is_simulated).then(|| schedule.instant_of(run.slot)),
        run: run.run,
        started_unix_ms: run.started_unix_ms,
        status: run.status.name(),
        hostname: &run.hostname,
    }
}

fn figure(figure: &FigureVariation) -> FigureDocument<'_> {
    let GroupSpread { runs, quartile_low, median, quartile_high, .. } = figure.all;
    let over_time = figure.series.iter().map(|series| CourseDocument {
        host: &series.key,
        verdict: series.analysis.verdict,
        autocorrelation: series.analysis.autocorrelation,
        levels: &series.analysis.levels,
    });
    FigureDocument {
        test: &figure.test,
        metric: figure.metric.to_string(),
        runs,
        median,
        quartile_low,
        quartile_high,
        least: figure.least,
        greatest: figure.greatest,
        over_time: over_time.collect(),
        by_hour: &figure.by_hour,
        by_host: &figure.by_host,
    }
}
