//! Options about what a job keeps up or waits for while it runs: rates, a steady state, a latency, its share of a flow.

use fathom_model::plan::{SteadyFigure, SteadyStatePlan};
use fathom_model::{Nanos, Op, OptionRow, OptionValueKind, PerOp};

use crate::job_options::JobOptions;
use crate::value;

/// Parses the least rates of the operations.
fn least(rates: &mut PerOp<u64>, text: &str) -> Result<(), String> {
    let mut parsed = *rates;
    for (op, entry) in Op::DATA.into_iter().zip(value::per_operation(text)?) {
        if let Some(entry) = entry {
            parsed[op] = value::integer(entry)?;
        }
    }
    *rates = parsed;
    Ok(())
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

/// The rows of this category.
pub(super) const ROWS: &[OptionRow<JobOptions>] = &[
    OptionRow {
        name: "rate_min",
        aliases: &["ratemin"],
        kind: OptionValueKind::Size,
        default: "0",
        doc: "Bytes per second below which the job fails, checked every rate_cycle after the first 2 s: one rate, or read,write,trim.",
        apply: |options, text| least(&mut options.end.least_rates.bandwidth, text),
    },
    OptionRow {
        name: "rate_iops_min",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "0",
        doc: "Requests per second below which the job fails, checked every rate_cycle after the first 2 s: one rate, or read,write,trim.",
        apply: |options, text| least(&mut options.end.least_rates.iops, text),
    },
    OptionRow {
        name: "rate_cycle",
        aliases: &["ratecycle"],
        kind: OptionValueKind::Int,
        default: "1000",
        doc: "Milliseconds over which rate_min and rate_iops_min are checked.",
        apply: |options, text| {
            let cycle = value::count(text, 0)?;
            options.end.least_rates.cycle = Nanos::from_millis(u64::from(cycle));
            Ok(())
        },
    },
    OptionRow {
        name: "steadystate",
        aliases: &["ss"],
        kind: OptionValueKind::Text,
        default: "iops_slope:0.01%",
        doc: "What must be steady for steadystate_duration to end the job: iops, bw or lat (greatest deviation from the mean) or iops_slope, bw_slope or lat_slope, with a limit as a number or a percentage of the mean (iops:2%).",
        apply: |options, text| {
            options.steady_state = Some(steady(text)?);
            Ok(())
        },
    },
    OptionRow {
        name: "steadystate_duration",
        aliases: &["ss_dur"],
        kind: OptionValueKind::Seconds,
        default: "0",
        doc: "Time over which steadystate is judged (plain number: seconds); 0 means that no steady state is waited for.",
        apply: |options, text| value::seconds(text).map(|time| options.end.steady_state.duration = time),
    },
    OptionRow {
        name: "steadystate_ramp_time",
        aliases: &["ss_ramp"],
        kind: OptionValueKind::Seconds,
        default: "0",
        doc: "Time before the first sample of steadystate (plain number: seconds).",
        apply: |options, text| value::seconds(text).map(|time| options.end.steady_state.ramp = time),
    },
    OptionRow {
        name: "steadystate_check_interval",
        aliases: &["ss_interval"],
        kind: OptionValueKind::Seconds,
        default: "1",
        doc: "Time of a sample of steadystate (plain number: seconds).",
        apply: |options, text| value::seconds(text).map(|time| options.end.steady_state.interval = time),
    },
    OptionRow {
        name: "latency_target",
        aliases: &[],
        kind: OptionValueKind::Micros,
        default: "0",
        doc: "Find the largest queue depth up to iodepth that keeps this latency, and report a last window at it (plain number: microseconds).",
        apply: |options, text| value::micros(text).map(|time| options.end.latency_target.target = time),
    },
    OptionRow {
        name: "latency_window",
        aliases: &[],
        kind: OptionValueKind::Micros,
        default: "0",
        doc: "Time at each queue depth that latency_target tries (plain number: microseconds); 0 means 100 ms.",
        apply: |options, text| value::micros(text).map(|time| options.end.latency_target.window = time),
    },
    OptionRow {
        name: "latency_percentile",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "100",
        doc: "Percentage of the requests that must keep latency_target.",
        apply: |options, text| match value::percentiles(text)?.as_slice() {
            &[percentile] => {
                options.end.latency_target.percentile = percentile;
                Ok(())
            }
            _ => Err("one percentage is needed".to_owned()),
        },
    },
    OptionRow {
        name: "latency_run",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Go on adjusting the queue depth to latency_target until the job ends.",
        apply: |options, text| value::boolean(text).map(|run| options.end.latency_target.run = run),
    },
    OptionRow {
        name: "flow",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "0",
        doc: "Weight of the job in the requests of all jobs with the same flow_id: weights of 3 and 1 give 3 requests for each one.",
        apply: |options, text| {
            value::integer_in(text, 0, 1_000).map(|weight| options.threads.flow.weight = weight as u32)
        },
    },
    OptionRow {
        name: "flow_id",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "0",
        doc: "Number of the flow that flow belongs to.",
        apply: |options, text| value::count(text, 0).map(|id| options.threads.flow.id = id),
    },
    OptionRow {
        name: "flow_sleep",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "0",
        doc: "Microseconds that a job waits when it is ahead of its share in a flow; 0 means as briefly as possible.",
        apply: |options, text| {
            value::count(text, 0).map(|time| options.threads.flow.sleep = Nanos::from_micros(u64::from(time)))
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let check = |pair, field: fn(&JobOptions) -> bool| {
            assert!(field(&JobOptions::from_pairs(&[pair]).unwrap()), "{pair:?}");
        };
        check(("ratemin", "1m,,4k"), |o| {
            o.end.least_rates.bandwidth == PerOp { read: 1 << 20, write: 0, trim: 4096 }
        });
        check(("rate_iops_min", "200"), |o| o.end.least_rates.iops == PerOp::splat(200));
        check(("ratecycle", "500"), |o| o.end.least_rates.cycle == Nanos::from_millis(500));
        check(("ss_dur", "4"), |o| o.end.steady_state.duration == Nanos::from_secs(4));
        check(("ss_ramp", "500ms"), |o| o.end.steady_state.ramp == Nanos::from_millis(500));
        check(("ss_interval", "2"), |o| o.end.steady_state.interval == Nanos::from_secs(2));
        check(("latency_target", "2ms"), |o| o.end.latency_target.target == Nanos::from_millis(2));
        check(("latency_window", "500"), |o| o.end.latency_target.window == Nanos::from_micros(500));
        check(("latency_percentile", "99.9"), |o| o.end.latency_target.percentile == 99.9);
        check(("latency_run", "1"), |o| o.end.latency_target.run);
        check(("flow", "3"), |o| o.threads.flow.weight == 3);
        check(("flow_id", "7"), |o| o.threads.flow.id == 7);
        check(("flow_sleep", "50"), |o| o.threads.flow.sleep == Nanos::from_micros(50));
        for bad in [
            ("rate_min", "fast"),
            ("rate_iops_min", "1,2,3,4"),
            ("latency_percentile", "101"),
            ("latency_percentile", "50:99"),
            ("flow", "1001"),
        ] {
            assert!(JobOptions::from_pairs(&[bad]).is_err(), "{bad:?}");
        }
    }

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
