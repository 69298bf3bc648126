//! What fio reports of a latency target and of a steady state, as text and JSON.

use fathom_model::plan::FigureForm;
use fathom_record::{JobRecord, LatencyOutcome, SteadyOutcome, mean_of_samples};
use serde_json::{Value, json};

use crate::fio::number::Figures;

/// The search of a job, or what fio reports without one.
fn searched(job: &JobRecord) -> LatencyOutcome {
    let mut none = LatencyOutcome { depth: job.iodepth(), ..LatencyOutcome::default() };
    none.target.percentile = 100.0;
    job.latency.unwrap_or(none)
}

/// A time in its largest unit of at least 1.
fn scaled(ns: u64) -> String {
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let (unit, scale) = units.into_iter().rev().find(|(_, scale)| ns >= *scale).unwrap_or(units[0]);
    format!("{:.2}{unit}", ns as f64 / scale as f64)
}

/// The line of the target latency and the queue depth.
pub(crate) fn latency_line(job: &JobRecord) -> String {
    let LatencyOutcome { target, depth } = searched(job);
    format!(
        "     latency   : target={}, window={}, percentile={:.2}%, depth={depth}",
        scaled(target.target.0),
        scaled(target.window.0),
        target.percentile
    )
}

/// The members of the target latency and the queue depth.
pub(crate) fn latency_members(job: &JobRecord) -> Value {
    let LatencyOutcome { target, depth } = searched(job);
    let window_us = target.window.0 / 1_000;
    json!({
        "latency_depth": depth,
        "latency_target": target.target.0,
        "latency_target_ns": target.target.0,
        "latency_percentile": target.percentile,
        "latency_window": window_us,
        "latency_window_us": window_us,
    })
}

/// The line of the steady state.
pub(crate) fn steady_line(steady: &SteadyOutcome, form: &FigureForm) -> String {
    let [first, second] = form.families();
    let bandwidth = mean_of_samples(&steady.bandwidth) as u64;
    format!(
        "  steadystate  : attained={}, bw={} ({}), iops={}, {}{}={:.3}{}",
        if steady.attained { "yes" } else { "no" },
        form.bandwidth(bandwidth, first),
        form.bandwidth(bandwidth, second),
        form.count(mean_of_samples(&steady.iops) as u64),
        steady.plan.figure.name(),
        if steady.plan.slope { " slope" } else { " mean dev" },
        steady.criterion,
        percent_sign(steady)
    )
}

/// The object of the steady state.
pub(crate) fn steady_object(steady: &SteadyOutcome) -> Value {
    let SteadyOutcome { plan, attained, criterion, deviation, slope, iops, bandwidth, latency_ns } = steady;
    // fio lists a whole window, with zeros for samples that were not taken.
    let window = |samples: &[u64]| {
        let missing = plan.samples().min(MAX_SAMPLES).saturating_sub(samples.len());
        samples.iter().copied().chain(std::iter::repeat_n(0, missing)).collect::<Vec<_>>()
    };
    let sign = percent_sign(steady);
    let slope_of_name = if plan.slope { "_slope" } else { "" };
    let mut object = json!({
        "ss": format!("{}{slope_of_name}:{:.6}{sign}", plan.figure.name(), plan.limit),
        "duration": plan.duration.0 / 1_000_000_000,
        "attained": u8::from(*attained),
        "criterion": format!("{criterion:.6}{sign}"),
        "max_deviation": deviation,
        "slope": slope,
        "data": {
            "bw_mean": mean_of_samples(bandwidth) as u64,
            "iops_mean": mean_of_samples(iops) as u64,
        },
    });
    let data = &mut object["data"];
    if !latency_ns.is_empty() {
        data["lat_mean"] = (mean_of_samples(latency_ns) as u64).into();
    }
    data["iops"] = window(iops).into();
    data["bw"] = window(bandwidth).into();
    if !latency_ns.is_empty() {
        data["lat_ns"] = window(latency_ns).into();
    }
    object
}

/// Most samples that are listed though they were not taken.
const MAX_SAMPLES: usize = 86_400;

fn percent_sign(steady: &SteadyOutcome) -> &'static str {
    if steady.plan.percent { "%" } else { "" }
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;
    use fathom_model::plan::{LatencyTarget, SteadyFigure, SteadyStatePlan};

    use super::*;

    fn steady(slope: bool, percent: bool) -> SteadyOutcome {
        let plan = SteadyStatePlan {
            figure: SteadyFigure::Iops,
            slope,
            limit: 50.0,
            percent,
            duration: Nanos::from_secs(4),
            ramp: Nanos::ZERO,
            interval: Nanos::from_secs(1),
        };
        let iops = vec![791_669, 900_301, 999_986, 1_164_193];
        let bandwidth = iops.iter().map(|iops| iops * 4096).collect();
        let mut outcome = SteadyOutcome { plan, iops, bandwidth, ..SteadyOutcome::default() };
        outcome.judge();
        outcome
    }

    #[test]
    fn a_steady_state_is_reported_as_fio_does() {
        let attained = steady(false, true);
        assert_eq!(
            steady_line(&attained, &FigureForm::default()),
            "  steadystate  : attained=yes, bw=3766MiB/s (3949MB/s), iops=964k, iops mean dev=20.762%"
        );
        let object = steady_object(&attained);
        assert_eq!((&object["ss"], &object["criterion"]), (&json!("iops:50.000000%"), &json!("20.762242%")));
        assert_eq!((&object["attained"], &object["duration"]), (&json!(1), &json!(4)));
        assert_eq!((&object["max_deviation"], &object["slope"]), (&json!(200_155.75), &json!(0.0)));
        assert_eq!(object["data"]["iops_mean"], json!(964_037));
        let keys: Vec<&String> = object["data"].as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["bw_mean", "iops_mean", "iops", "bw"]);
        let sloping = steady(true, false);
        assert!(steady_line(&sloping, &FigureForm::default()).ends_with(", iops slope=121725.700"));
        assert_eq!(steady_object(&sloping)["ss"], json!("iops_slope:50.000000"));
    }

    #[test]
    fn samples_that_were_not_taken_are_zeros() {
        let mut early = steady(false, true);
        early.iops.truncate(1);
        assert_eq!(steady_object(&early)["data"]["iops"], json!([791_669, 0, 0, 0]));
    }

    #[test]
    fn a_latency_target_is_reported_in_its_units() {
        let target = LatencyTarget {
            target: Nanos::from_millis(2),
            window: Nanos::from_millis(500),
            percentile: 95.0,
            run: false,
        };
        let job = JobRecord { latency: Some(LatencyOutcome { target, depth: 20 }), ..JobRecord::default() };
        assert_eq!(
            latency_line(&job),
            "     latency   : target=2.00ms, window=500.00ms, percentile=95.00%, depth=20"
        );
        let members = latency_members(&job);
        assert_eq!(members["latency_target"], json!(2_000_000));
        assert_eq!(members["latency_window"], json!(500_000));
        assert_eq!(members["latency_depth"], json!(20));
        let none = latency_line(&JobRecord::default());
        assert_eq!(none, "     latency   : target=0.00ns, window=0.00ns, percentile=100.00%, depth=1");
    }
}
