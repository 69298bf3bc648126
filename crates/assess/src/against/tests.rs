//! Comparisons on simulated volumes: which runs are made in which order, when they end, and what is refused.

use fathom_analysis::compare::figure::Deltas;
use fathom_analysis::compare::interleaved::interleaved;
use fathom_analysis::compare::ratio::RatioVerdict;
use fathom_model::Nanos;
use fathom_runner::RunObserver;

use super::*;
use crate::compare::source_of;
use crate::expectations::ExpectationSettings;
use crate::plan::{BenchSettings, Effort};
use crate::precision::PrecisionSettings;
use crate::site::RunSettings;

/// Receives the runs, and stops after so many measurements.
#[derive(Default)]
struct Kept {
    lane: usize,
    order: Vec<(String, usize)>,
    runs: Vec<Vec<SourceRun>>,
    stop: Option<(fathom_runner::StopHandle, usize)>,
}

impl RunObserver for Kept {}

impl StepObserver for Kept {
    fn step(&mut self, event: &MeasurementEvent) {
        match event {
            MeasurementEvent::Lane(lane) => self.lane = *lane,
            MeasurementEvent::StepEnded(test) => {
                self.order.push((test.id.clone(), self.lane));
                if let Some((stop, _)) = self.stop.as_ref().filter(|(_, after)| *after == self.order.len()) {
                    stop.request("signal 2");
                }
            }
            MeasurementEvent::RunEnded(record) => {
                self.runs.resize_with(2, Vec::new);
                self.runs[self.lane].push(SourceRun { origin: String::new(), record: (**record).clone() });
            }
            _ => {}
        }
    }
}

fn bench(target: &str, only: &[&str]) -> BenchSettings {
    BenchSettings {
        run: RunSettings { target: target.into(), seed: Some(1), ..RunSettings::default() },
        suite: "standard".to_owned(),
        effort: Effort::Quick,
        only: only.iter().map(|id| (*id).to_owned()).collect(),
        ..BenchSettings::default()
    }
}

fn settings(bench: BenchSettings, opponent: Opponent) -> AgainstSettings {
    AgainstSettings { bench, opponent, budget: None, deltas: Deltas::default() }
}

fn plan(a: &str, b: &str, only: &[&str]) -> AgainstPlan {
    AgainstPlan::make(settings(bench(a, only), Opponent::Target(b.into()))).unwrap()
}

fn measured(plan: &AgainstPlan, stop_after: Option<usize>) -> Kept {
    let mut session = plan.session();
    let stop = stop_after.map(|after| (session.stop_handle(), after));
    let mut kept = Kept { stop, ..Kept::default() };
    run(plan, &mut session, &mut kept).unwrap();
    kept
}

fn verdicts(plan: &AgainstPlan, kept: &Kept) -> Vec<(String, Option<RatioVerdict>, u32)> {
    let sources = plan.sources(&kept.runs).unwrap();
    let pairs = pairs(&matched_rows(&sources), 0, plan.deltas);
    let found = interleaved(&sources, &pairs).unwrap();
    found.verdicts.into_iter().map(|one| (one.test, one.verdict, one.blocks)).collect()
}

#[test]
fn blocks_alternate_and_end_at_the_first_clear_look() {
    let plan = plan("sim:custom?iops=1000", "sim:custom?iops=1050", &["rand-read", "seq-read"]);
    let kept = measured(&plan, None);
    assert_eq!((kept.runs[0].len(), kept.runs[1].len()), (6, 6));
    let order: Vec<(&str, usize)> = kept.order.iter().map(|(id, lane)| (id.as_str(), *lane)).collect();
    let block = |one: usize, other: usize| {
        [("rand-read", one), ("rand-read", other), ("seq-read", other), ("seq-read", one)]
    };
    assert_eq!(order[..8], [block(0, 1), block(1, 0)].concat());
    let better = Some(RatioVerdict::Better);
    assert_eq!(
        verdicts(&plan, &kept),
        [("rand-read".to_owned(), better, 6), ("seq-read".to_owned(), better, 6)]
    );
    for (block, run) in kept.runs[1].iter().enumerate() {
        let place = run.record.header.interleaved.clone().unwrap();
        assert_eq!((place.block as usize, place.looks.as_slice()), (block, LOOKS.as_slice()));
        assert_eq!(run.record.status, TestStatus::Complete);
        assert!(run.record.tests[0].jobs[0].plan.time.ramp > Nanos::ZERO, "each block has its ramp");
    }
    let seeds = |runs: &[SourceRun]| -> Vec<String> {
        runs.iter().map(|run| run.record.tests[0].fio.clone()).collect()
    };
    assert_ne!(seeds(&kept.runs[0])[0], seeds(&kept.runs[0])[1], "each block makes other random choices");
}

#[test]
fn identical_volumes_are_equivalent_and_a_clear_test_does_not_wait_for_another() {
    let a = "sim:custom?iops=1000&latency=1ms&latency_spread=1&seed=1";
    let b = "sim:custom?iops=1000&latency=1ms&latency_spread=1&seed=2";
    let plan = plan(a, b, &["lat-read", "rand-read"]);
    let found = verdicts(&plan, &measured(&plan, None));
    assert!(found.iter().all(|(_, verdict, _)| *verdict == Some(RatioVerdict::Equivalent)), "{found:?}");
    assert_eq!(found[1].2, 6, "{found:?}");
}

#[test]
fn a_stop_keeps_the_blocks_that_were_measured() {
    let plan = plan("sim:custom?iops=1000", "sim:custom?iops=1050", &["rand-read"]);
    let kept = measured(&plan, Some(7));
    assert_eq!((kept.runs[0].len(), kept.runs[1].len()), (3, 4));
    let last = &kept.runs[1][3].record;
    assert_eq!((last.status, last.header.interrupted.as_deref()), (TestStatus::Incomplete, Some("signal 2")));
    assert_eq!(verdicts(&plan, &kept)[0].1, Some(RatioVerdict::Better));
}

#[test]
fn a_budget_limits_the_blocks() {
    let noisy = |seed: u32| format!("sim:custom?latency=50ms&latency_spread=1&seed={seed}");
    let settings = |budget: u64| AgainstSettings {
        budget: Some(Nanos::from_secs(budget)),
        ..settings(bench(&noisy(1), &["lat-read"]), Opponent::Target(noisy(2).into()))
    };
    let plan = AgainstPlan::make(settings(41)).unwrap();
    assert_eq!(
        (plan.block_time(), plan.most_blocks(), plan.least_blocks()),
        (Some(Nanos::from_secs(8)), 5, 5)
    );
    let kept = measured(&plan, None);
    assert_eq!((kept.runs[0].len(), kept.runs[1].len()), (5, 5));
    let error = AgainstPlan::make(settings(15)).unwrap_err();
    assert!(
        error.kind == crate::ErrorKind::Usage && error.to_string().contains("at least 2 blocks of 8 s"),
        "{error}"
    );
}

#[test]
fn saved_runs_are_an_opponent_with_their_own_tests() {
    let saved_by = |runs: u32| {
        let other = plan("sim:custom?iops=1000", "sim:custom?iops=900", &["rand-read"]);
        let kept = measured(&other, None);
        let runs = kept.runs[1][..runs as usize].to_vec();
        Box::new(source_of("tag:before".to_owned(), runs, &Default::default()).unwrap())
    };
    let made = |runs: u32| {
        let settings = settings(bench("sim:custom?iops=1000", &[]), Opponent::Saved(saved_by(runs)));
        AgainstPlan::make(settings).unwrap()
    };
    let plan = made(6);
    assert_eq!(plan.names(), ["sim:custom?iops=1000", "tag:before"]);
    let kept = measured(&plan, None);
    assert_eq!(kept.order.len(), 6);
    let found = verdicts(&plan, &kept);
    assert_eq!((found.len(), found[0].0.as_str(), found[0].1), (1, "rand-read", Some(RatioVerdict::Worse)));
    // One run gets a ratio and no verdict, so that repeating the other is of no use.
    let plan = made(1);
    let kept = measured(&plan, None);
    assert_eq!((kept.order.len(), verdicts(&plan, &kept)[0].1), (1, Some(RatioVerdict::Single)));
}

#[test]
fn both_targets_are_used_within_the_smaller_one() {
    let plan = plan("sim:custom?iops=1000&size=2GiB", "sim:custom?iops=1000&size=1GiB", &["rand-read"]);
    let kept = measured(&plan, Some(2));
    let sizes: Vec<u64> = kept.runs.iter().map(|runs| runs[0].record.header.size_bytes).collect();
    assert_eq!(sizes, [1 << 30, 1 << 30]);
    let fio: Vec<bool> =
        kept.runs.iter().map(|runs| runs[0].record.tests[0].fio.contains("--size=1g")).collect();
    assert_eq!(fio, [true, true]);
}

#[test]
fn contradictions_are_refused_by_name() {
    let check = |change: &dyn Fn(&mut BenchSettings), other: &str, expected: &str| {
        let mut bench = bench("sim:custom?iops=1000", &["rand-read"]);
        change(&mut bench);
        let error = AgainstPlan::make(settings(bench, Opponent::Target(other.into()))).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.hint.is_some(), "{error}");
    };
    let other = "sim:custom?iops=900";
    check(&|bench| bench.until_steady = true, other, "--until-steady and --against");
    let precision = Some(PrecisionSettings { target_fraction: 0.02, least: None });
    check(&|bench| bench.precision = precision, other, "--precision and --against");
    check(&|bench| bench.further = vec!["sim:custom?iops=5".into()], other, "one target with another");
    let expectations =
        ExpectationSettings { lines: vec!["rand-read.iops>=5".to_owned()], ..ExpectationSettings::default() };
    check(&|bench| bench.expectations = expectations.clone(), other, "--expect checks one target");
    check(&|_| {}, "/", "is simulated, and / is not");
}
