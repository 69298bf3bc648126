//! Requests under a rate in virtual time: every due time and every response time is exact.

use fathom_engine::sim::FixedLatency;
use fathom_model::plan::Mix;
use fathom_model::{JobPlan, Nanos, PerOp, Rate, RatePlan, RateProcess, RunPlan};
use fathom_runner::Session;
use fathom_stats::{OpOutcome, PhaseOutcome};

use crate::plans::{job, timed};

const MODEL: FixedLatency = FixedLatency {
    read: Nanos::from_micros(500),
    write: Nanos::from_micros(1000),
    flush: Nanos::from_micros(2000),
    parallelism: 4,
};

fn run(job: JobPlan) -> PhaseOutcome {
    let plan = RunPlan { jobs: vec![job], ..RunPlan::default() };
    let outcome = Session::simulated(MODEL, 1 << 30).run(&plan, &mut ()).expect("the plan fits the target");
    assert_eq!(outcome.workers[0].failure, None);
    outcome.workers[0].measured.clone()
}

/// A job of random requests for `seconds` at so many reads and writes per second.
fn paced(mix: Mix, depth: u32, seconds: u64, (reads, writes): (u64, u64)) -> JobPlan {
    let mut job = timed(job("paced", mix, true, depth), seconds);
    let rates = PerOp { read: Rate::iops(reads), write: Rate::iops(writes), trim: None };
    job.time.rate = RatePlan { rates, ..RatePlan::default() };
    job
}

fn percentile(op: &OpOutcome, share: f64) -> u64 {
    let latency = &op.open_loop.response;
    let wanted = (latency.moments.count as f64 * share).ceil() as u64;
    let mut seen = 0;
    let found = latency.histogram.sparse().find(|&(_, count)| {
        seen += count;
        seen >= wanted
    });
    fathom_stats::histogram::midpoint(found.expect("there are samples").0)
}

#[test]
fn a_rate_below_the_devices_limit_is_kept_exactly() {
    for depth in [1, 64] {
        let measured = run(paced(Mix::Read, depth, 10, (1_000, 0)));
        let read = &measured.read;
        assert_eq!((read.ios, read.issued), (10_000, 10_000), "depth {depth}");
        let response = &read.open_loop.response.moments;
        assert_eq!((response.count, response.min, response.max), (10_000, 500_000, 500_000));
        assert_eq!((read.open_loop.latest_ns, read.open_loop.backlog), (0, 0));
        assert_eq!(measured.schedule_end_ns - measured.start_ns, 10_000_000_000);
        assert_eq!(read.clat.moments.max, 500_000);
    }
}

#[test]
fn requests_above_the_devices_limit_wait_and_count_from_their_due_time() {
    // One server, 2,000 IOPS, for 2,500 due: a fifth remains as backlog, and the last ones issued are 2 s late.
    let measured = run(paced(Mix::Read, 1, 10, (2_500, 0)));
    let read = &measured.read;
    assert_eq!((read.ios, read.open_loop.backlog), (20_000, 5_000));
    assert_eq!(read.lat.moments.max, 500_000, "the device's own time stays what it is");
    assert_eq!(read.open_loop.response.moments.max, 2_000_400_000);
    assert_eq!(read.open_loop.latest_ns, 1_999_900_000);
    // Not caused by the driver.
    assert_eq!(read.open_loop.late.moments.max, 0);
}

#[test]
fn both_directions_keep_their_rates_for_any_mix() {
    let measured = run(paced(Mix::ReadWrite { read_percent: 75 }, 16, 10, (300, 200)));
    assert_eq!((measured.read.ios, measured.write.ios), (3_000, 2_000));
    assert_eq!(measured.write.open_loop.response.moments.min, 1_000_000);
    assert_eq!(measured.write.open_loop.response.moments.count, 2_000);
}

#[test]
fn a_direction_without_a_rate_uses_the_queue_depth() {
    let measured = run(paced(Mix::ReadWrite { read_percent: 50 }, 8, 10, (0, 100)));
    let [read, write, _] = measured.ops();
    assert_eq!(write.ios, 1_000);
    // 4 servers for 10 s, less 1,000 writes of 1 ms.
    assert!((76_000..=78_100).contains(&read.ios), "{}", read.ios);
    assert_eq!(read.open_loop.response.moments.count, 0);
    assert!(write.open_loop.response.moments.max < 3_000_000, "{:?}", write.open_loop.response.moments);
}

#[test]
fn syncs_follow_their_writes_and_have_no_due_times() {
    let mut job = paced(Mix::Write, 4, 10, (0, 100));
    job.io.fsync_every = 1;
    let measured = run(job);
    assert_eq!((measured.write.ios, measured.syncs), (1_000, 1_000));
    assert_eq!(measured.write.open_loop.response.moments.max, 1_000_000);
}

#[test]
fn the_schedule_continues_through_the_ramp() {
    let mut job = paced(Mix::Read, 4, 5, (1_000, 0));
    job.time.ramp = Nanos::from_secs(1);
    job.time.start_delay = (Nanos::from_millis(300), Nanos::from_millis(300));
    let plan = RunPlan { jobs: vec![job], ..RunPlan::default() };
    let outcome = Session::simulated(MODEL, 1 << 30).run(&plan, &mut ()).expect("the plan fits the target");
    let worker = &outcome.workers[0];
    let ramp = worker.ramp.as_ref().expect("there is one");
    assert_eq!(ramp.read.ios + worker.measured.read.ios, 6_000);
    assert_eq!(worker.measured.read.open_loop.response.moments.max, 500_000);
}

#[test]
fn finished_work_leaves_no_backlog() {
    let mut job = paced(Mix::Read, 4, 5, (1_000, 0));
    (job.time.runtime, job.time.time_based) = (None, false);
    job.io.io_size = Some(fathom_model::plan::SizeSpec::Bytes(500 * 4096));
    let read = run(job).read.clone();
    assert_eq!((read.ios, read.open_loop.backlog), (500, 0));
}

#[test]
fn queueing_of_random_arrivals_matches_theory() {
    // M/D/1 at half load: the mean wait is half a service time, by Pollaczek and Khinchine.
    let mut job = paced(Mix::Read, 1, 200, (1_000, 0));
    job.time.rate.process = RateProcess::Poisson;
    let read = run(job).read.clone();
    let mean = read.open_loop.response.moments.sum as f64 / read.open_loop.response.moments.count as f64;
    assert!((read.ios as f64 / 200_000.0 - 1.0).abs() < 0.01, "{}", read.ios);
    assert!((mean / 750_000.0 - 1.0).abs() < 0.02, "{mean}");
    assert!(percentile(&read, 0.99) > 1_500_000);
}
