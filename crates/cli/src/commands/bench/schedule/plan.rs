//! What a schedule is going to do, as text and as JSON, and what it leaves.

use std::io;

use fathom_assess::PlanCost;
use fathom_assess::schedule::{SchedulePlan, ScheduleTraffic};
use fathom_record::RunSchedule;
use fathom_report::schedule::{ScheduleReport, span, times};
use fathom_report::{Style, TextWriter, document};
use serde::Serialize;

use crate::commands::bench::plan_text;
use crate::output;

/// The plan; with the tests of a run, and their fio commands, where `in_full` says so.
pub fn text(
    plan: &SchedulePlan,
    in_full: Option<bool>,
    style: &Style,
    out: &mut TextWriter,
) -> io::Result<()> {
    let SchedulePlan { schedule, bench, next, .. } = plan;
    let is_simulated = bench.targets[0].target.is_simulated();
    let rest = match *next {
        0 => String::new(),
        next if next >= schedule.slots() => "; no run is left".to_owned(),
        next => format!("; continues with run {}", next + 1),
    };
    let (times, span) = (times(schedule), span(schedule, is_simulated, style));
    output::paragraph(&format!("Schedule {}: {times}, {span}{rest}.", schedule.name), out)?;
    output::paragraph(&format!("All runs: {}", plan.traffic.text()), out)?;
    output::notes(&plan.notes, out)?;
    writeln!(out, "Each run:")?;
    plan_text(bench, in_full.is_some(), in_full == Some(true), out)
}

#[derive(Serialize)]
struct SchedulePlanDocument<'a> {
    schema: &'static str,
    schedule: &'a RunSchedule,
    target: String,
    slots: u64,
    /// The first slot without a run, from 0.
    next_slot: u64,
    /// Of one run.
    cost: &'a PlanCost,
    /// Of all runs that are left.
    traffic: &'a ScheduleTraffic,
    tests: Vec<&'a str>,
    notes: Vec<&'a String>,
}

/// The plan as JSON.
pub fn json(plan: &SchedulePlan, out: &mut TextWriter) -> io::Result<()> {
    let running = plan.bench.tests.iter().filter(|test| test.skip.is_none());
    let document = SchedulePlanDocument {
        schema: "fathom.schedule-plan/1",
        schedule: &plan.schedule,
        target: plan.bench.target_name(),
        slots: plan.schedule.slots(),
        next_slot: plan.next,
        cost: &plan.bench.cost,
        traffic: &plan.traffic,
        tests: running.map(|test| test.id.as_str()).collect(),
        notes: plan.notes.iter().chain(&plan.bench.notes).collect(),
    };
    document::write(&document, &mut out.json())
}

/// Says where the runs are, and how to go on.
pub fn write_kept(
    report: &ScheduleReport,
    is_kept: bool,
    only_due: bool,
    out: &mut TextWriter,
) -> io::Result<()> {
    if is_kept {
        let name = &report.schedule.name;
        writeln!(out)?;
        writeln!(out, "Kept with the label schedule={name}: fathom history list --label schedule={name}")?;
    }
    match &report.resume {
        Some(line) if !only_due => writeln!(out.verbatim(), "To resume: {line}"),
        _ => Ok(()),
    }
}
