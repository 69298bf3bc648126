//! Loads and volumes drawn at random, in virtual time: a recording reduced to sums of 1 s and of 5 min leaves a range, and what
//! the load really gets of the volume lies in it. `FATHOM_LOADS` makes more of them than the gate does.

use fathom_volume::Limit;

use super::tests::{Draws, Shape, bucket, figures, measured, model, rate, run};
use super::*;
use crate::{Arrivals, DemandStep, ExhaustionRange, LoadDemand, PredictionSet, SumsSettings, predict_sums};

const SECOND: u64 = 1_000_000_000;
/// Four sums of 5 min.
const LENGTH: u64 = 1_200 * SECOND;
const WINDOWS: [u64; 2] = [SECOND, 300 * SECOND];
/// Loads of the gate.
const USUAL_LOADS: u64 = 12;
/// Rates end with the last request. Sums know latencies by a few parts of their distribution, and histograms have bins.
const RATE_SLACK: f64 = 0.03;
const LATENCY_SLACK: f64 = 0.05;
/// Credits below a thousandth of the bucket are exhausted.
const EXHAUSTED_SLACK: f64 = 0.05;

/// Sums over `window_ns` of what was recorded.
fn reduced(requests: &[ObservedRequest], window_ns: u64) -> LoadDemand {
    let count = LENGTH.div_ceil(window_ns);
    let step = |index: u64| DemandStep {
        start_ns: index * window_ns,
        length_ns: window_ns.min(LENGTH - index * window_ns),
        ..DemandStep::default()
    };
    let mut steps: Vec<DemandStep> = (0..count).map(step).collect();
    for request in requests {
        let step = &mut steps[(request.at_ns / window_ns).min(count - 1) as usize];
        let sum = if request.op == Op::Read { &mut step.reads } else { &mut step.writes };
        sum.ops += 1;
        sum.bytes += u64::from(request.bytes);
    }
    LoadDemand { steps, length_ns: LENGTH, has_directions: true, ..LoadDemand::default() }
}

/// Whether the truth lies in the range of both ways of arrival.
fn is_in_range(demand: &LoadDemand, model: &VolumeModel, truth: &Prediction) -> Result<(), String> {
    let both = [Arrivals::Evenly, Arrivals::AtOnce].map(|arrivals| {
        let settings = SumsSettings {
            arrivals,
            is_sequential: false,
            all_reads: false,
            growth_milli: 1000,
            limits: &[],
        };
        predict_sums(model, demand, &settings).unwrap()
    });
    let ends = [figures(&both[0]), figures(&both[1])];
    let named = [("rate", RATE_SLACK), ("p50", LATENCY_SLACK), ("p99", LATENCY_SLACK)];
    for (index, named) in named.into_iter().enumerate() {
        is_between(named, figures(truth)[index], ends.map(|end| end[index]))?;
    }
    let set = PredictionSet { all: both.into() };
    match (set.exhausted(), truth.exhausted_ns) {
        (Some(ExhaustionRange { low, high }), Some(found)) => {
            let ends = [low as f64, high.map_or(f64::INFINITY, |ns| ns as f64)];
            is_between(("time of exhaustion", EXHAUSTED_SLACK), found as f64, ends)
        }
        (Some(ExhaustionRange { high: Some(_), .. }), None) => Err("credits are not exhausted".to_owned()),
        (None, Some(at_ns)) => Err(format!("credits are exhausted at {at_ns}")),
        _ => Ok(()),
    }
}

fn is_between((name, slack): (&str, f64), found: f64, [one, other]: [f64; 2]) -> Result<(), String> {
    let (low, high) = (one.min(other), one.max(other));
    let is_inside = found >= low * (1.0 - slack) && found <= high * (1.0 + slack);
    is_inside.then_some(()).ok_or_else(|| format!("{name}: {found} is not in {low} to {high}"))
}

/// The shape of a load, and a volume near its rate.
fn drawn(seed: u64) -> (Shape, VolumeModel) {
    let mut draws = Draws(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..8 {
        draws.next();
    }
    let mut between = |low: f64, high: f64| low * (high / low).powf(draws.next());
    let mean = between(30.0, 200.0);
    let shape = match seed % 4 {
        0 => Shape::Constant(mean),
        1 => Shape::Diurnal(mean),
        2 => Shape::Batch(mean / 0.28),
        _ => Shape::Bursty(mean),
    };
    let whole = |value: f64| (value as u64).max(1);
    let latency_us = whole(between(200.0, 3_000.0));
    let limit = match seed / 4 % 2 {
        0 => Limit::Rate(rate(whole(mean * between(0.9, 5.0)))),
        _ => {
            let base = mean * between(0.5, 1.3);
            let capacity = mean * LENGTH as f64 / 1e9 * between(0.02, 0.3);
            bucket(whole(base), whole(base * between(2.0, 6.0)), whole(capacity))
        }
    };
    (shape, model(limit, latency_us))
}

#[test]
fn the_truth_lies_in_the_range_that_sums_leave() {
    let asked = std::env::var("FATHOM_LOADS").ok().and_then(|loads| loads.parse().ok());
    let loads = asked.unwrap_or(USUAL_LOADS);
    let recorded_on = model(Limit::Rate(rate(10_000)), 300);
    let mut within = [0; WINDOWS.len()];
    let mut failures = Vec::new();
    for seed in 0..loads {
        let (shape, other) = drawn(seed);
        let recorded = run(shape, &recorded_on, seed, LENGTH);
        let truth = measured(&run(shape, &other, seed, LENGTH), &other, LENGTH);
        for (window, within) in WINDOWS.into_iter().zip(&mut within) {
            match is_in_range(&reduced(&recorded, window), &other, &truth) {
                Ok(()) => *within += 1,
                Err(error) => {
                    failures.push(format!("load {seed}, {shape:?}, sums of {} s: {error}", window / SECOND));
                }
            }
        }
    }
    println!(
        "the truth of {} (sums of 1 s) and {} (5 min) of {loads} loads lies in the range",
        within[0], within[1]
    );
    let holds = within.iter().all(|within| within * 10 >= loads * 9);
    assert!(holds, "{within:?} of {loads}: {failures:#?}");
}
