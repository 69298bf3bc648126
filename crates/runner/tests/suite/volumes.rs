//! Jobs on simulated volumes: limits with burst credits apply exactly to all jobs together, and credits carry over
//! between runs.

use fathom_engine::sim::{BEGIN_NS, Volume};
use fathom_model::plan::{Mix, ThinkTime};
use fathom_model::{JobPlan, Nanos, RunPlan};
use fathom_runner::{RunError, Session};
use fathom_stats::RunOutcome;
use fathom_volume::{Fault, FaultKind, Limit, LimitStage, LimitState, TokenRate, VolumeLatency, VolumeModel};

use crate::plans::{job, timed};

/// 50 GiB: 3,000 IOPS while burst credits last, then 150; 0.5 ms latency.
fn volume(credit: u64) -> VolumeModel {
    let rate = |tokens| TokenRate::per_second(tokens).expect("it is one");
    let ios =
        Limit::Credit { base: rate(150), burst: Some(rate(3000)), capacity: 5_400_000, initial: credit };
    VolumeModel {
        read_latency: VolumeLatency::fixed(500_000),
        shared: vec![LimitStage { ios: Some(ios), ..LimitStage::default() }],
        ..VolumeModel::unlimited(50 << 30)
    }
}

fn session(models: &[(&str, VolumeModel)]) -> Session {
    let begun = |(name, model): &(&str, VolumeModel)| {
        ((*name).into(), Volume::beginning_at(model, 1, BEGIN_NS).expect("the model is sound"))
    };
    Session::on_volumes(models.iter().map(begun).collect())
}

fn reading(target: &str, depth: u32, seconds: u64) -> JobPlan {
    let mut job = timed(job("read", Mix::Read, true, depth), seconds);
    job.clones[0].paths = vec![target.into()];
    job
}

fn run(session: &Session, jobs: Vec<JobPlan>) -> RunOutcome {
    session.run(&RunPlan { jobs, ..RunPlan::default() }, &mut ()).expect("the plan fits the volumes")
}

fn ios(outcome: &RunOutcome) -> Vec<u64> {
    outcome.workers.iter().map(|worker| worker.measured.read.ios).collect()
}

#[test]
fn three_jobs_on_one_bucket_share_its_rate_and_littles_law_holds() {
    let session = session(&[("v", volume(5_400_000))]);
    let outcome = run(&session, vec![reading("v", 1, 60), reading("v", 4, 60), reading("v", 16, 60)]);
    let total: u64 = ios(&outcome).iter().sum();
    // What was in flight at the end drains: 21 more at the most.
    assert!((180_000..=180_021).contains(&total), "{:?}", ios(&outcome));
    for (worker, depth) in outcome.workers.iter().zip([1.0, 4.0, 16.0]) {
        let read = &worker.measured.read;
        let seconds = (worker.measured.end_ns - worker.measured.start_ns) as f64 / 1e9;
        let held = read.ios as f64 / seconds * read.lat.moments.mean() / 1e9;
        assert!((held / depth - 1.0).abs() < 1e-3, "{held} of {depth}");
    }
}

#[test]
fn credits_spent_by_one_run_are_missing_in_the_next() {
    // 2,850 a second above the baseline: ten seconds' worth.
    let session = session(&[("v", volume(28_500))]);
    let first = ios(&run(&session, vec![reading("v", 8, 10)]))[0];
    assert!((29_990..=30_010).contains(&first), "{first}");
    let second = ios(&run(&session, vec![reading("v", 8, 10)]))[0];
    assert!((1_490..=1_520).contains(&second), "{second}");
}

#[test]
fn a_volume_can_be_inspected_between_runs() {
    let session = session(&[("v", volume(5_400_000))]);
    let left = || {
        session.inspect_volume("v".as_ref(), |volume, now| {
            match volume.stage_states(now).next().and_then(|one| one.ios) {
                Some(LimitState::Credit { left, .. }) => left,
                other => panic!("{other:?}"),
            }
        })
    };
    assert_eq!(left(), Some(5_400_000));
    run(&session, vec![reading("v", 8, 10)]);
    // 2,850 a second, and what was in flight at the end.
    assert!(left().is_some_and(|left| (5_371_490..=5_371_510).contains(&left)), "{:?}", left());
    assert_eq!(session.inspect_volume("other".as_ref(), |_, _| ()), None);
}

#[test]
fn synchronous_engines_are_replaced_by_the_simulated_volume() {
    let with = |engine: &str, depth| {
        let mut job = reading("v", depth, 10);
        job.engine.name = engine.to_owned();
        ios(&run(&session(&[("v", volume(5_400_000))]), vec![job]))
    };
    // Half a millisecond each, one at a time.
    assert_eq!((with("psync", 8), with("io_uring", 1)), (vec![20_000], vec![20_000]));
}

#[test]
fn a_pause_of_years_ends_at_a_stop() {
    struct Stopper(fathom_runner::StopHandle);
    impl fathom_runner::RunObserver for Stopper {
        fn snapshot(&mut self, _: &fathom_stats::Snapshot) {
            self.0.request("enough");
        }
    }
    let years = Nanos::from_secs(100 * 365 * 86_400);
    let (mut delayed, mut resting) = (reading("v", 4, 10), reading("v", 4, 10));
    delayed.time.start_delay = (years, years);
    resting.time.think_time = ThinkTime { pause: years, blocks: Some(100), ..ThinkTime::default() };
    resting.time.runtime = Some(years);
    let session = session(&[("v", volume(5_400_000))]);
    let plan = RunPlan { jobs: vec![delayed, resting], ..RunPlan::default() };
    let outcome = session.run(&plan, &mut Stopper(session.stop_handle())).expect("the plan fits the volume");
    assert_eq!((outcome.elapsed_ns, ios(&outcome)), (500_000_000, vec![0, 100]));
    assert_eq!(outcome.interrupted.as_deref(), Some("enough"));
}

#[test]
fn an_observer_ends_a_phase_and_not_the_run() {
    struct Ender(u64);
    impl fathom_runner::RunObserver for Ender {
        fn snapshot(&mut self, snapshot: &fathom_stats::Snapshot) {
            self.0 = snapshot.elapsed_ns;
        }
        fn ends_phase(&mut self) -> bool {
            self.0 == 3_000_000_000
        }
    }
    let (first, mut second) = (reading("v", 4, 60), reading("v", 4, 1));
    (second.phase, second.group) = (1, 1);
    let session = session(&[("v", volume(5_400_000))]);
    let plan = RunPlan { jobs: vec![first, second], ..RunPlan::default() };
    let outcome = session.run(&plan, &mut Ender(0)).expect("the plan fits the volume");
    let measured: Vec<u64> =
        outcome.workers.iter().map(|worker| worker.measured.elapsed_ns() / 100_000_000).collect();
    assert_eq!((measured, outcome.interrupted), (vec![30, 10], None));
}

#[test]
fn volumes_are_found_by_name_and_unknown_ones_refused() {
    let session = session(&[("small", volume(0)), ("large", volume(5_400_000))]);
    let outcome = run(&session, vec![reading("small", 4, 10), reading("large", 4, 10)]);
    let ios = ios(&outcome);
    assert!(ios[0] <= 1_510 && ios[1] >= 29_990, "{ios:?}");
    let plan = RunPlan { jobs: vec![reading("other", 1, 1)], ..RunPlan::default() };
    let error = session.run(&plan, &mut ()).err();
    assert!(matches!(error, Some(RunError::Unsuitable { .. })), "{error:?}");
}

#[test]
fn a_volume_that_stops_responding_is_abandoned_and_reported_as_stalled() {
    let mut silent = volume(5_400_000);
    silent.faults.push(Fault { at_ns: 2_000_000_000, length_ns: u64::MAX, kind: FaultKind::Stall });
    let session = session(&[("silent", silent), ("v", volume(5_400_000))]);
    let outcome = run(&session, vec![reading("silent", 8, 5), reading("v", 8, 5)]);
    let [stuck, other] = &outcome.workers[..] else { panic!("{} workers", outcome.workers.len()) };
    assert!(stuck.stuck && stuck.failure.is_some() && !other.stuck, "{:?}", stuck.failure);
    let stall = stuck.stalls.first().expect("nothing completed for seconds");
    assert!(!stall.over && stall.depth == 8 && stall.length_ns >= 6_000_000_000, "{stall:?}");
    let [asked, answered] = [stuck, other].map(|worker| worker.measured.read.ios);
    assert!((5_990..=6_010).contains(&asked) && answered >= 15_000, "{asked} {answered}");
}

#[test]
fn a_failing_volume_ends_the_run_and_is_counted() {
    let fault = |kind| Fault { at_ns: 1_000_000_000, length_ns: 1_000_000_000, kind };
    let mut failing = volume(5_400_000);
    failing.faults.push(fault(FaultKind::Error { errno: 5, per_million: 1_000_000 }));
    let outcome = run(&session(&[("v", failing)]), vec![reading("v", 4, 3)]);
    let worker = &outcome.workers[0];
    assert_eq!(worker.failure.as_ref().map(|failure| failure.errno), Some(5));
    let read = &worker.measured.read;
    assert_eq!(read.issued, read.ios + read.failed);
    assert!((2_990..=3_010).contains(&read.ios), "{}", read.ios);
}
