//! Options about what a job keeps up or waits for while it runs: rates, a steady state, a latency, its share of a flow.

use fathom_model::OptionValueKind::{Int, Size, Text};
use fathom_model::plan::{SteadyFigure, SteadyStatePlan};
use fathom_model::{Nanos, PerOp};

use super::{JobOption, count, int, micros, per_op, row, seconds, set, switch};
use crate::value;

/// Stores the least rates of the operations.
fn least(rates: &mut PerOp<u64>, text: &str) -> Result<(), String> {
    per_op(rates, text, "", value::integer)
}

const CRITERIA: [(&str, (SteadyFigure, bool)); 6] = [
    ("iops", (SteadyFigure::Iops, false)),
    ("iops_slope", (SteadyFigure::Iops, true)),
    ("bw", (SteadyFigure::Bw, false)),
    ("bw_slope", (SteadyFigure::Bw, true)),
    ("lat", (SteadyFigure::Lat, false)),
    ("lat_slope", (SteadyFigure::Lat, true)),
];

/// Parses `CRITERION:LIMIT` or `CRITERION:LIMIT%`.
fn steady(text: &str) -> Result<SteadyStatePlan, String> {
    let (criterion, limit) = match text.split_once(':') {
        Some((criterion, limit)) => (criterion, Some(limit.trim())),
        None => (text, None),
    };
    let (figure, slope) = value::choice(criterion, &CRITERIA)?;
    let needed = "steadystate threshold must be specified in addition to criterion, as in iops_slope:0.3%";
    let limit = limit.filter(|limit| !limit.is_empty()).ok_or(needed)?;
    let number = |text: &str| {
        let number = text.trim().parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0);
        number.ok_or_else(|| format!("'{limit}' is not a limit"))
    };
    let (limit, percent) = match limit.strip_suffix('%') {
        Some(share) => (number(share)?, true),
        None if figure == SteadyFigure::Lat => {
            (latency_limit(limit).map_or_else(|| number(limit), Ok)?, false)
        }
        None => (number(limit).or_else(|_| value::integer(limit).map(|limit| limit as f64))?, false),
    };
    Ok(SteadyStatePlan { figure, slope, limit, percent, ..SteadyStatePlan::default() })
}

/// A limit of latency with a unit, in ns; plain numbers are ns.
fn latency_limit(text: &str) -> Option<f64> {
    let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    has_unit.then(|| value::micros(text).ok()).flatten().map(|limit| limit.0 as f64)
}

pub(super) const ROWS: &[JobOption] = &[
    row("rate_min", Size, |options, text| least(&mut options.plan.end.least_rates.bandwidth, text))
        .aliases(&["ratemin"])
        .default("0")
        .doc(
            "Bytes per second below which the job fails, checked every rate_cycle after the first 2 s: \
              one rate, or read,write,trim.",
        ),
    row("rate_iops_min", Int, |options, text| least(&mut options.plan.end.least_rates.iops, text))
        .default("0")
        .doc(
            "Requests per second below which the job fails, checked every rate_cycle after the first 2 \
              s: one rate, or read,write,trim.",
        ),
    count("rate_cycle", 0, |options, millis| {
        options.plan.end.least_rates.cycle = Nanos::from_millis(u64::from(millis))
    })
    .aliases(&["ratecycle"])
    .default("1000")
    .doc("Milliseconds over which rate_min and rate_iops_min are checked."),
    row("steadystate", Text, |options, text| set(&mut options.steady_state, steady(text)))
        .aliases(&["ss"])
        .default("iops_slope:0.01%")
        .doc(
            "Figure that must be steady for steadystate_duration to end the job: iops, bw or lat (greatest \
              deviation from the mean) or iops_slope, bw_slope or lat_slope, with a limit as a number or a \
              percentage of the mean (iops:2%).",
        ),
    seconds("steadystate_duration", |options, time| options.plan.end.steady_state.duration = time)
        .aliases(&["ss_dur"])
        .doc(
            "Time over which steadystate is judged (plain number: seconds); 0 means that no steady state \
              is waited for.",
        ),
    seconds("steadystate_ramp_time", |options, time| options.plan.end.steady_state.ramp = time)
        .aliases(&["ss_ramp"])
        .doc("Time before the first sample of steadystate (plain number: seconds)."),
    seconds("steadystate_check_interval", |options, time| options.plan.end.steady_state.interval = time)
        .aliases(&["ss_interval"])
        .default("1")
        .doc("Time of a sample of steadystate (plain number: seconds)."),
    micros("latency_target", |options, time| options.plan.end.latency_target.target = time).doc(
        "Find the largest queue depth up to iodepth that keeps this latency, and report a last \
              window at it (plain number: microseconds).",
    ),
    micros("latency_window", |options, time| options.plan.end.latency_target.window = time).doc(
        "Time at each queue depth that latency_target tries (plain number: microseconds); 0 means \
              100 ms.",
    ),
    row("latency_percentile", Text, |options, text| match value::percentiles(text)?.as_slice() {
        &[percentile] => {
            options.plan.end.latency_target.percentile = percentile;
            Ok(())
        }
        _ => Err("one percentage is needed".to_owned()),
    })
    .default("100")
    .doc("Percentage of the requests that must keep latency_target."),
    switch("latency_run", |options, run| options.plan.end.latency_target.run = run)
        .doc("Go on adjusting the queue depth to latency_target until the job ends."),
    int("flow", 0..=1_000, |options, weight| options.plan.threads.flow.weight = weight as u32)
        .default("0")
        .doc(
            "Weight of the job in the requests of all jobs with the same flow_id: weights of 3 and 1 \
              give 3 requests for each one.",
        ),
    count("flow_id", 0, |options, id| options.plan.threads.flow.id = id)
        .default("0")
        .doc("Number of the flow that flow belongs to."),
    count("flow_sleep", 0, |options, time| {
        options.plan.threads.flow.sleep = Nanos::from_micros(u64::from(time))
    })
    .default("0")
    .doc(
        "Microseconds that a job waits when it is ahead of its share in a flow; 0 means as briefly \
              as possible.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criteria_of_a_steady_state_have_a_limit() {
        let parsed = |text| steady(text).map(|it| (it.figure, it.slope, it.limit, it.percent));
        for (text, expected) in [
            ("iops:2%", (SteadyFigure::Iops, false, 2.0, true)),
            ("iops:150", (SteadyFigure::Iops, false, 150.0, false)),
            ("iops_slope:0.3%", (SteadyFigure::Iops, true, 0.3, true)),
            ("bw:1m", (SteadyFigure::Bw, false, 1_048_576.0, false)),
            ("bw_slope:0.5%", (SteadyFigure::Bw, true, 0.5, true)),
            ("lat:50us", (SteadyFigure::Lat, false, 50_000.0, false)),
            ("lat_slope:100", (SteadyFigure::Lat, true, 100.0, false)),
        ] {
            assert_eq!(parsed(text), Ok(expected), "{text}");
        }
        for bad in ["iops", "iops:", "iops:-1", "iops:%", "foo:1", "bw:1x", "lat:nan"] {
            assert!(steady(bad).is_err(), "{bad}");
        }
    }
}
