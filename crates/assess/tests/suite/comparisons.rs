//! Precision and comparisons on simulated volumes of known rates, through the whole loop: how often the interval holds the true
//! rate, and how often verdicts are right. The gate makes a few tries, `cargo lab comparisons` many.

use fathom_analysis::compare::figure::Deltas;
use fathom_analysis::compare::interleaved::interleaved;
use fathom_analysis::compare::pairs::pairs;
use fathom_analysis::compare::ratio::RatioVerdict;
use fathom_analysis::compare::rows::matched_rows;
use fathom_analysis::compare::source::SourceRun;
use fathom_assess::against::{self, AgainstPlan, AgainstSettings, Opponent};
use fathom_assess::{
    BenchPlan, BenchSettings, MeasurementEvent, PrecisionSettings, RunSettings, StepObserver,
};
use fathom_model::Nanos;
use fathom_record::{RunRecord, TestSummary};
use fathom_runner::RunObserver;

/// Tries of each kind.
fn tries() -> u64 {
    std::env::var("FATHOM_TRIES").ok().and_then(|tries| tries.parse().ok()).unwrap_or(2)
}

/// A volume, a test and its true rate, IOPS. Latencies vary from I/O to I/O: a slow volume is a noisy one.
const KNOWN: [(&str, &str, f64); 10] = [
    ("iops=500&latency=1ms", "rand-read", 500.0),
    ("iops=3000&latency=500us&latency_spread=1", "rand-read", 3000.0),
    ("iops=1000&bandwidth=100MiB&latency=1ms", "seq-read", 100.0),
    ("write_iops=2000&latency=400us", "rand-write", 2000.0),
    ("latency=500us", "lat-read", 2000.0),
    ("latency=400us&latency_spread=1", "lat-read", 2500.0),
    ("latency=1ms&latency_spread=1", "lat-write", 1000.0),
    ("latency=4ms&latency_spread=1", "lat-read", 250.0),
    ("latency=8ms&latency_spread=1", "lat-write", 125.0),
    ("latency=20ms&latency_spread=1", "lat-read", 50.0),
];

fn settings(target: String, only: &str, seed: u64) -> BenchSettings {
    BenchSettings {
        run: RunSettings { target: target.into(), seed: Some(seed), ..RunSettings::default() },
        suite: "standard".to_owned(),
        only: vec![only.to_owned()],
        ..BenchSettings::default()
    }
}

#[test]
fn a_precision_holds_the_known_rate_and_saves_time() {
    let (mut all, mut holding, mut reached, mut shares) = (0, 0, 0, Vec::new());
    for (volume, test, truth) in KNOWN {
        for seed in 0..tries() {
            let target = format!("sim:custom?{volume}&seed={seed}");
            let precision = Some(PrecisionSettings { target_fraction: 0.02, least: None });
            let plan =
                BenchPlan::make(BenchSettings { precision, ..settings(target.clone(), test, seed) }).unwrap();
            let record = fathom_assess::run(&plan, &mut plan.session(), &mut ()).unwrap();
            let test = &record.tests[0];
            let (summary, precision) = (TestSummary::new(test), test.precision.expect("it was asked for"));
            let iops = summary.total.expect("I/Os completed").iops;
            let is_longest = summary.measured_ns + 500_000_000 >= precision.most_ns;
            assert!(precision.reached || is_longest, "{target}: {precision:?}");
            reached += u64::from(precision.reached);
            let half = precision.reached_fraction.unwrap();
            assert!(
                (half <= 0.02 || !precision.reached) && summary.stability.unwrap().mean_ci95_fraction == half,
                "{target}"
            );
            assert!(summary.measured_ns + 100_000_000 >= precision.least_ns, "{target}");
            let fixed = precision.most_ns as f64;
            (all, holding) = (all + 1, holding + u64::from((iops - truth).abs() <= half * iops));
            shares.push(summary.measured_ns as f64 / fixed);
        }
    }
    shares.sort_unstable_by(f64::total_cmp);
    let median = shares[shares.len() / 2];
    println!(
        "{holding} of {all} intervals hold the true rate; {:.1} % of the fixed time in the median",
        median * 100.0
    );
    assert!(holding * 100 >= all * 95, "{holding} of {all}");
    assert!(median <= 1.0 / 3.0, "{median}");
    assert!(reached * 10 >= all * 9, "{reached} of {all} reached it");
}

/// Receives the runs of both targets.
#[derive(Default)]
struct Runs {
    lane: usize,
    runs: [Vec<SourceRun>; 2],
}

impl RunObserver for Runs {}

impl StepObserver for Runs {
    fn step(&mut self, event: &MeasurementEvent) {
        match event {
            MeasurementEvent::Lane(lane) => self.lane = *lane,
            MeasurementEvent::RunEnded(record) => {
                // As they are when they are read again.
                let record = RunRecord::from_json(&record.to_json()).expect("a record can be read again");
                self.runs[self.lane].push(SourceRun { origin: String::new(), record });
            }
            _ => {}
        }
    }
}

/// The verdict on two volumes.
fn verdict(a: &str, b: &str, test: &str, seed: u64) -> Option<RatioVerdict> {
    let target = |volume: &str, seed: u64| format!("sim:custom?{volume}&seed={seed}");
    let bench =
        BenchSettings { runtime: Some(Nanos::from_secs(10)), ..settings(target(a, 2 * seed), test, seed) };
    let opponent = Opponent::Target(target(b, 2 * seed + 1).into());
    let settings = AgainstSettings { bench, opponent, budget: None, deltas: Deltas::default() };
    let plan = AgainstPlan::make(settings).expect("the volumes are there");
    let mut runs = Runs::default();
    against::run(&plan, &mut plan.session(), &mut runs).expect("a volume needs no layout");
    let sources = plan.sources(&runs.runs).expect("the catalogue is sound");
    let pairs = pairs(&matched_rows(&sources), 0, plan.deltas);
    interleaved(&sources, &pairs).expect("the runs are interleaved").verdicts[0].verdict
}

#[test]
fn verdicts_on_simulated_volumes_are_right() {
    const PAIRS: [(&str, &str, &str); 4] = [
        ("iops=1000&latency=1ms&latency_spread=1", "iops=1050&latency=1ms&latency_spread=1", "rand-read"),
        ("latency=2100us&latency_spread=1", "latency=2ms&latency_spread=1", "lat-read"),
        ("latency=10500us&latency_spread=1", "latency=10ms&latency_spread=1", "lat-write"),
        ("bandwidth=100MiB&latency=1ms", "bandwidth=105MiB&latency=1ms", "seq-read"),
    ];
    let (mut apart, mut alike, mut all) = (0, 0, 0);
    for (slow, fast, test) in PAIRS {
        for seed in 1..=tries() {
            all += 2;
            apart += u64::from(verdict(slow, fast, test, seed) == Some(RatioVerdict::Better));
            apart += u64::from(verdict(fast, slow, test, seed) == Some(RatioVerdict::Worse));
            for same in [slow, fast] {
                let found = verdict(same, same, test, seed);
                alike +=
                    u64::from(matches!(found, Some(RatioVerdict::Equivalent | RatioVerdict::Inconclusive)));
            }
        }
    }
    println!("5 % apart: {apart} of {all} told apart; identical: {alike} of {all} not");
    assert!(apart * 100 >= all * 90, "{apart} of {all}");
    assert!(alike * 100 >= all * 95, "{alike} of {all}");
}
