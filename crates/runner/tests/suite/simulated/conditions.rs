//! Conditions that jobs check while they run, exact in virtual time: four servers of 500 us for each read.

use fathom_model::plan::{FlowPlan, LatencyTarget, LeastRates, Mix, SteadyStatePlan, ThinkTime};
use fathom_model::{JobPlan, Nanos, PerOp, Rate, RunPlan};
use fathom_stats::{RunOutcome, WorkerOutcome};

use super::{check_conservation, run};
use crate::plans::{job, timed};

fn run_jobs(jobs: Vec<JobPlan>) -> RunOutcome {
    let outcome = run(&RunPlan { jobs, ..RunPlan::default() });
    check_conservation(&outcome);
    outcome
}

fn run_one(job: JobPlan) -> WorkerOutcome {
    run_jobs(vec![job]).workers.remove(0)
}

fn seconds(worker: &WorkerOutcome) -> f64 {
    (worker.measured.end_ns - worker.measured.start_ns) as f64 / 1e9
}

#[test]
fn a_job_below_its_least_rate_fails_after_the_first_cycle() {
    let least = |iops: u64, bandwidth: u64| {
        let mut slow = timed(job("slow", Mix::Read, true, 1), 10);
        slow.end.least_rates = LeastRates {
            iops: PerOp::splat(iops),
            bandwidth: PerOp::splat(bandwidth),
            cycle: Nanos::from_millis(500),
        };
        run_one(slow)
    };
    // One request at a time: 2,000 reads a second.
    for kept in [least(1_990, 0), least(0, 1_990 * 4096)] {
        assert_eq!((kept.failure.as_ref(), kept.measured.read.ios), (None, 20_000));
    }
    for missed in [least(2_010, 0), least(0, 2_010 * 4096)] {
        let failure = missed.failure.as_ref().expect("it failed");
        assert!(failure.errno == 5 && failure.message.contains("not met, got"), "{}", failure.message);
        assert!((seconds(&missed) - 2.5).abs() < 0.01, "two seconds and a cycle: {}", seconds(&missed));
    }
}

#[test]
fn pauses_delay_a_rate_only_if_it_ignores_them() {
    let paused = |delays_rate| {
        let mut paused = timed(job("paused", Mix::Read, true, 4), 9);
        paused.time.rate.rates.read = Rate::iops(100);
        paused.time.think_time =
            ThinkTime { pause: Nanos::from_secs(1), blocks: Some(50), delays_rate, ..ThinkTime::default() };
        run_one(paused).measured.read.ios
    };
    let (caught_up, delayed) = (paused(false), paused(true));
    assert!((300..=302).contains(&delayed), "50 in half a second, then a pause: {delayed}");
    assert!(caught_up > 420, "{caught_up}");
}

#[test]
fn cycles_are_spent_after_each_request() {
    let mut busy = timed(job("busy", Mix::Read, true, 1), 10);
    busy.time.think_time.cycles = 500_000;
    let read = run_one(busy).measured.read;
    assert!((9_999..=10_001).contains(&read.ios), "1 ms each: {}", read.ios);
    assert_eq!(read.lat.moments.max, 500_000);
}

#[test]
fn a_ramp_lasts_until_its_bytes_are_moved() {
    let mut ramped = timed(job("ramped", Mix::Read, true, 4), 2);
    ramped.time.ramp_bytes = 4_000 * 4096;
    let worker = run_one(ramped.clone());
    let ramp = worker.ramp.as_ref().expect("there is a ramp");
    assert!((4_000..4_020).contains(&ramp.read.ios), "{}", ramp.read.ios);
    assert_eq!(worker.measured.read.ios + ramp.read.ios, 16_000 + ramp.end_ns * 8 / 1_000_000);
    ramped.time.ramp = Nanos::from_secs(1);
    let worker = run_one(ramped);
    assert!(worker.ramp.expect("there is a ramp").end_ns >= 1_000_000_000);
}

#[test]
fn the_queue_depth_is_the_largest_that_keeps_the_latency() {
    let search = |iodepth, target_us: u64, run| {
        let mut job = timed(job("search", Mix::Read, true, iodepth), 10);
        let target = Nanos::from_micros(target_us);
        let window = Nanos::from_millis(200);
        job.end.latency_target = LatencyTarget { target, window, percentile: 100.0, run };
        run_one(job)
    };
    // Eight requests take 1 ms on four servers; nine take longer.
    let found = search(64, 1_000, false);
    let ramp = found.ramp.as_ref().expect("the search");
    assert_eq!(found.latency.expect("searched").depth, 8);
    assert!(seconds(&found) < 0.203 && seconds(&found) >= 0.2, "one window: {}", seconds(&found));
    assert!(found.measured.read.lat.moments.max <= 1_000_000, "of that depth alone");
    assert!(ramp.read.lat.moments.max > 1_000_000);
    assert_eq!(search(6, 1_000, false).latency.expect("searched").depth, 6);
    let hopeless = search(64, 400, false);
    assert_eq!((hopeless.latency.expect("searched").depth, hopeless.ramp.is_some()), (1, false));
    assert_eq!(hopeless.measured.read.ios, 20_000, "all of the search is reported");
    let adjusted = search(64, 1_000, true);
    assert!(adjusted.ramp.is_none() && (seconds(&adjusted) - 10.0).abs() < 0.01);
    assert!((8..=9).contains(&adjusted.latency.expect("searched").depth));
}

#[test]
fn jobs_of_a_flow_share_requests_by_their_weights() {
    let member = |name, weight, seconds| {
        let mut member = timed(job(name, Mix::Read, true, 4), seconds);
        member.threads.flow = FlowPlan { weight, id: 1, sleep: Nanos::ZERO };
        member
    };
    let ios = |outcome: &RunOutcome| -> Vec<u64> {
        outcome.workers.iter().map(|worker| worker.measured.read.ios).collect()
    };
    let both = ios(&run_jobs(vec![member("a", 3, 10), member("b", 1, 10)]));
    assert!(both[0].abs_diff(3 * both[1]) < 200, "{both:?}");
    assert!(both[0] + both[1] > 70_000, "the device is busy: {both:?}");
    // After the end of the first the other has the device for itself.
    let short = ios(&run_jobs(vec![member("a", 3, 5), member("b", 1, 10)]));
    assert!(short[1] > 40_000, "{short:?}");
}

#[test]
fn a_steady_state_ends_the_job() {
    let mut steady = timed(job("steady", Mix::Read, true, 4), 60);
    steady.end.steady_state = SteadyStatePlan {
        limit: 1.0,
        percent: true,
        duration: Nanos::from_secs(3),
        interval: Nanos::from_secs(1),
        ..SteadyStatePlan::default()
    };
    let worker = run_one(steady.clone());
    let outcome = worker.steady.as_ref().expect("it was watched");
    assert!(outcome.attained && (seconds(&worker) - 3.0).abs() < 0.01, "{}", seconds(&worker));
    assert_eq!(outcome.iops, [8_000; 3]);
    assert_eq!(worker.failure, None);
    steady.time.runtime = Some(Nanos::from_secs(2));
    let outcome = run_one(steady).steady.expect("it was watched");
    assert!(!outcome.attained && outcome.iops.len() <= 2);
}
