//! The expectations of a bench, before it runs.

use std::io;

use fathom_analysis::criterion::Metric;
use fathom_assess::BenchPlan;
use fathom_record::ExpectationRecord;
use fathom_report::TextWriter;

use crate::output;

/// How many expectations there are, in a sentence; nothing where there are none.
pub(super) fn announce(plan: &BenchPlan, out: &mut TextWriter) -> io::Result<()> {
    match plan.expectations.as_slice() {
        [] => Ok(()),
        [expectation] => output::paragraph(&format!("Checks {}.", line(expectation)), out),
        all => output::paragraph(&format!("Checks {} expectations.", all.len()), out),
    }
}

/// All of them, a line each.
pub(super) fn list(plan: &BenchPlan, out: &mut TextWriter) -> io::Result<()> {
    if !plan.expectations.is_empty() {
        writeln!(out)?;
        writeln!(out, "Expectations:")?;
    }
    plan.expectations.iter().try_for_each(|expectation| writeln!(out, "  {}", line(expectation)))
}

/// `rand-read.iops >= 5,000 (5 %) for 99.9 % of the time (class standard)`.
fn line(expectation: &ExpectationRecord) -> String {
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
