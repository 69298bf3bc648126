//! What a bench is going to be held against, before it runs.

use std::io;

use fathom_analysis::criterion::Metric;
use fathom_analysis::promise::figure;
use fathom_assess::BenchPlan;
use fathom_record::PromiseRecord;
use fathom_report::TextWriter;

use crate::output;

/// How many promises there are, in a sentence; nothing where there are none.
pub(super) fn announce(plan: &BenchPlan, out: &mut TextWriter) -> io::Result<()> {
    match plan.promises.as_slice() {
        [] => Ok(()),
        [promise] => output::paragraph(&format!("Holds what comes out against {}.", line(promise)), out),
        all => output::paragraph(&format!("Holds what comes out against {} promises.", all.len()), out),
    }
}

/// All of them, a line each.
pub(super) fn list(plan: &BenchPlan, out: &mut TextWriter) -> io::Result<()> {
    if !plan.promises.is_empty() {
        writeln!(out)?;
        writeln!(out, "Promised:")?;
    }
    plan.promises.iter().try_for_each(|promise| writeln!(out, "  {}", line(promise)))
}

/// `rand-read.iops >= 5,000 (5 %) for 99.9 % of the time, as standard`.
fn line(promise: &PromiseRecord) -> String {
    let PromiseRecord { test, metric, is, value, tolerance_percent, share, class, conditions, .. } = promise;
    let value = Metric::parse(metric).map(|quantity| figure(quantity.kind, *value)).unwrap_or_default();
    let mut text = format!("{test}.{metric} {is} {value} ±{tolerance_percent} %");
    text.extend(share.map(|share| format!(" for {} % of the time", share.fraction * 100.0)));
    text.extend(conditions.credit.map(|_| " while there is credit"));
    if !class.is_empty() {
        text.push_str(&format!(", as {class}"));
    }
    text
}
