//! The plan of a bench, before it begins.

use std::io;

use fathom_analysis::criterion::{Metric, parse_percent};
use fathom_assess::{
    BenchPlan, PlanCost, PlannedTest, UseProfile, at_need, engine_rows, percent_text, profiles,
};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration};
use fathom_record::ExpectationRecord;
use fathom_report::{TextWriter, document, pad, width};
use serde_json::json;

use crate::exit::Complaint;
use crate::output;

/// What is going to be done and what it costs.
pub(in crate::commands) fn plan_text(
    plan: &BenchPlan,
    in_full: bool,
    show_fio: bool,
    out: &mut TextWriter,
) -> io::Result<()> {
    let running = plan.tests.iter().filter(|test| test.skip.is_none()).count();
    let tests = if running == 1 { "1 test".to_owned() } else { format!("{running} tests") };
    let (title, time) = (&plan.suite.title, time_text(&plan.cost));
    let what =
        format!("{title}: {tests} on {}, {time}{}.", plan.target_name(), plan.targets[0].target.time_note());
    output::paragraph(&what, out)?;
    for text in [rounds_text(plan), precision_text(plan)].into_iter().flatten() {
        output::paragraph(&text, out)?;
    }
    output::paragraph(&plan.traffic.text(plan.test_file()), out)?;
    for (purpose, test) in at_need(plan) {
        let time = precise(Nanos(test.runtime.unwrap_or_default().0 + test.ramp.0));
        let text = format!("If {} decides nothing, {} follows ({time}).", purpose.name, test.id);
        output::paragraph(&text, out)?;
    }
    announce_expected(plan, out)?;
    output::notes(&plan.notes, out)?;
    if in_full {
        let wide = plan.tests.iter().map(|test| width(&test.id)).max().unwrap_or(0);
        for test in &plan.tests {
            writeln!(out, "  {}  {}", pad(&test.id, wide), describe(test))?;
            if show_fio {
                writeln!(out.verbatim(), "  {:wide$}  {}", "", plan.fio_command(test, plan.size))?;
            }
        }
        list_expected(plan, out)?;
    }
    Ok(())
}

/// A short time to the tenth of a second, so that the plan adds up.
pub(super) fn precise(time: Nanos) -> String {
    let tenths = time.0 / 100_000_000;
    if tenths < 600 && !tenths.is_multiple_of(10) {
        format!("{:.1} s", tenths as f64 / 10.0)
    } else {
        duration(time)
    }
}

/// A test in a line.
pub(super) fn describe(test: &PlannedTest) -> String {
    if let Some(reason) = &test.skip {
        return format!("{}: skipped: {reason}", test.title);
    }
    let at_most = test.rounds.map(|rounds| format!(", {} at most", precise(rounds.budget)));
    let time = match (test.runtime, test.io_bytes) {
        (Some(runtime), None) => match test.precision {
            Some(goal) => format!("{} to {}", precise(Nanos(goal.least_ns)), precise(runtime)),
            None => precise(runtime),
        },
        (Some(limit), Some(size)) => format!("over all of {}, {} at most", bytes(size), precise(limit)),
        (None, Some(size)) => format!("over all of {}", bytes(size)),
        (None, None) => "until complete".to_owned(),
    };
    let ramp = if test.ramp > Nanos::ZERO {
        format!(" after {} of ramp", precise(test.ramp))
    } else {
        String::new()
    };
    let rounds = match (&test.rounds, test.io_bytes) {
        (None, _) => "",
        (Some(_), None) => "rounds of ",
        (Some(_), Some(_)) => "rounds ",
    };
    format!("{}: {rounds}{time}{ramp}{}", test.title, at_most.unwrap_or_default())
}

/// How many expectations there are, in a sentence; nothing where there are none.
fn announce_expected(plan: &BenchPlan, out: &mut TextWriter) -> io::Result<()> {
    match plan.expectations.as_slice() {
        [] => Ok(()),
        [expectation] => output::paragraph(&format!("Checks {}.", expectation_line(expectation)), out),
        all => output::paragraph(&format!("Checks {} expectations.", all.len()), out),
    }
}

/// All of them, a line each.
fn list_expected(plan: &BenchPlan, out: &mut TextWriter) -> io::Result<()> {
    if !plan.expectations.is_empty() {
        writeln!(out)?;
        writeln!(out, "Expectations:")?;
    }
    plan.expectations.iter().try_for_each(|expectation| writeln!(out, "  {}", expectation_line(expectation)))
}

/// `rand-read.iops >= 5,000 (5 %) for 99.9 % of the time (class standard)`.
fn expectation_line(expectation: &ExpectationRecord) -> String {
    let ExpectationRecord { test, metric, is, value, tolerance_percent, share, class, conditions, .. } =
        expectation;
    let value = Metric::parse(metric).map(|metric| metric.kind.figure(*value)).unwrap_or_default();
    let mut text = format!("{test}.{metric} {is} {value} ±{tolerance_percent} %");
    text.extend(share.map(|share| format!(" for {} % of the time", share.fraction * 100.0)));
    text.extend(conditions.credit.map(|_| " while burst credits remain"));
    if !class.is_empty() {
        text.push_str(&format!(" (class {class})"));
    }
    text
}

/// Reads the precision of a rate.
pub fn parse_precision(text: &str) -> Result<f64, String> {
    let percent = parse_percent(text)?;
    let is_useful = (MIN_PRECISION..=MAX_PRECISION).contains(&percent);
    is_useful
        .then_some(percent)
        .ok_or_else(|| format!("'{}' is not between {MIN_PRECISION}% and {MAX_PRECISION}%", text.trim()))
}

/// No interval of a run is narrower, and a wider one says too little, percent.
const MIN_PRECISION: f64 = 0.1;
const MAX_PRECISION: f64 = 20.0;

/// When tests end, where a precision ends them.
fn precision_text(plan: &BenchPlan) -> Option<String> {
    let goal = plan.tests.iter().find_map(|test| test.precision.filter(|_| test.skip.is_none()))?;
    let (least, most) = (precise(Nanos(goal.least_ns)), precise(Nanos(goal.most_ns)));
    let target = percent_text(goal.target_fraction);
    Some(format!(
        "Ends each test once the 95 % interval of its rate is within {target}: after {least} to {most}."
    ))
}

/// How long the tests are repeated, where they are.
fn rounds_text(plan: &BenchPlan) -> Option<String> {
    let rounds = plan.tests.iter().find_map(|test| test.rounds.filter(|_| test.skip.is_none()))?;
    let each = rounds.round.map_or_else(|| "no time limit".to_owned(), precise);
    let rule = "until the last five range over at most 20 % of their mean and drift by at most 10 %";
    Some(format!("Repeats each test in rounds ({each}) {rule}; within {}.", duration(rounds.budget)))
}

fn time_text(cost: &PlanCost) -> String {
    let span = |most: Nanos| match cost.least_time {
        Some(least) => format!("between {} and {}", duration(least), duration(most)),
        None => format!("about {}", duration(most)),
    };
    match (cost.time, cost.tests_time) {
        (Some(time), _) => span(time),
        (None, Some(tests)) => format!("{} after file layout", span(tests)),
        (None, None) => "no time limit".to_owned(),
    }
}

/// The same as a document. A time or a precision is null where it does not end the test.
pub(super) fn plan_json(plan: &BenchPlan, out: &mut TextWriter) -> io::Result<()> {
    let tests = plan.tests.iter().map(|test| {
        json!({
            "id": test.id,
            "title": test.title,
            "fio": plan.fio_command(test, plan.size),
            "runtime_ns": test.runtime.map(|runtime| runtime.0),
            "ramp_ns": test.ramp.0,
            "rounds_budget_ns": test.rounds.map(|rounds| rounds.budget.0),
            "precision_fraction": test.precision.map(|goal| goal.target_fraction),
            "least_runtime_ns": test.precision.map(|goal| goal.least_ns),
            "skipped": test.skip,
        })
    });
    let mut document = json!({
        "schema": "fathom.plan/1",
        "suite": plan.suite.name,
        "target": plan.target_name(),
        "size_bytes": plan.size,
        "seed": plan.seed,
        "cost": plan.cost,
        "traffic": plan.traffic,
        "tests": tests.collect::<Vec<_>>(),
    });
    if !plan.expectations.is_empty() {
        document["expectations"] = json!(plan.expectations);
    }
    document["notes"] = json!(plan.notes);
    document::write(&document, &mut out.json())
}

/// Prints all profiles.
pub(super) fn print_profiles(json: bool) -> Result<(), Complaint> {
    let all = profiles(&["all".to_owned()], &engine_rows())?;
    let document = json!({ "schema": "fathom.profiles/1", "profiles": all });
    output::print(|out| match json {
        true => document::write(&document, &mut out.json()),
        false => text(&all, out),
    })?;
    Ok(())
}

fn text(all: &[UseProfile], out: &mut TextWriter) -> io::Result<()> {
    for (index, UseProfile { description, purpose, .. }) in all.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        output::paragraph(&format!("{}: {description}", purpose.name), out)?;
        let (full, small) = (purpose.full.text(), purpose.small.text());
        output::paragraph(&format!("    needs {full} (marginal: {small}) for {} h", purpose.hours), out)?;
        output::paragraph(&format!("    source: {}", purpose.source), out)?;
    }
    Ok(())
}
