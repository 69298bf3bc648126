//! The precision that ends a test: how it is read, and what the plan says of it.

use fathom_analysis::criterion::parse_percent;
use fathom_assess::BenchPlan;

use super::plan::precise;

/// Reads the precision of a rate.
pub fn parse(text: &str) -> Result<f64, String> {
    let percent = parse_percent(text)?;
    let is_useful = (LEAST_PRECISION..=MOST_PRECISION).contains(&percent);
    is_useful
        .then_some(percent)
        .ok_or_else(|| format!("'{}' is not between {LEAST_PRECISION}% and {MOST_PRECISION}%", text.trim()))
}

/// No interval of a run is narrower, and a wider one says too little, percent.
const LEAST_PRECISION: f64 = 0.1;
const MOST_PRECISION: f64 = 20.0;

/// When tests end, where a precision ends them.
pub fn text(plan: &BenchPlan) -> Option<String> {
    let goal = plan.tests.iter().find_map(|test| test.precision.filter(|_| test.skip.is_none()))?;
    let (least, most) = (precise(goal.least), precise(goal.most));
    let target = goal.target_text();
    Some(format!(
        "Ends each test once the 95 % interval of its rate is within {target}: after {least} to {most}."
    ))
}
