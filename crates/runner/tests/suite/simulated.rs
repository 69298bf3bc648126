//! The whole runner in virtual time: several jobs, one clock, every number exact.

mod conditions;

use fathom_engine::sim::FixedLatency;
use fathom_model::plan::{DepthPlan, Mix, SizeSpec};
use fathom_model::{JobPlan, Nanos, RunPlan};
use fathom_runner::Session;
use fathom_stats::{OpOutcome, RunOutcome};

use crate::plans::{job, timed};

const MODEL: FixedLatency = FixedLatency {
    read: Nanos::from_micros(500),
    write: Nanos::from_micros(1000),
    flush: Nanos::from_micros(2000),
    parallelism: 4,
};

fn run(plan: &RunPlan) -> RunOutcome {
    Session::simulated(MODEL, 1 << 30).run(plan, &mut ()).expect("the plan fits the target")
}

fn check_conservation(outcome: &RunOutcome) {
    for worker in &outcome.workers {
        for phase in worker.ramp.iter().chain([&worker.measured]) {
            let series = |op: usize, of: fn(&fathom_stats::IntervalOp) -> u64| -> u64 {
                phase.series.iter().map(|interval| of(interval.ops()[op])).sum()
            };
            for (index, op) in phase.ops().into_iter().enumerate() {
                assert_eq!(series(index, |op| op.ios), op.ios, "series and total agree");
                assert_eq!(series(index, |op| op.bytes), op.bytes);
                assert_eq!(series(index, |op| op.clat_sum_ns), op.clat.moments.sum as u64);
                let bins = |op: &fathom_stats::IntervalOp| op.clat_bins.iter().map(|bin| bin.1).sum();
                assert_eq!(series(index, bins), op.clat.histogram.samples());
                assert_eq!(
                    op.slat.moments.sum + op.clat.moments.sum,
                    op.lat.moments.sum,
                    "slat + clat = lat"
                );
            }
        }
        let total = |of: fn(&OpOutcome) -> u64| -> u64 {
            worker.ramp.iter().chain([&worker.measured]).flat_map(|phase| phase.ops()).map(of).sum()
        };
        assert_eq!(
            total(|op| op.issued),
            total(|op| op.ios) + total(|op| op.failed),
            "issued = completed + failed"
        );
    }
}

#[test]
fn below_the_parallelism_latency_is_the_service_time() {
    let plan = RunPlan { jobs: vec![timed(job("read", Mix::Read, true, 4), 10)], ..RunPlan::default() };
    let outcome = run(&plan);
    check_conservation(&outcome);
    let read = &outcome.workers[0].measured.read;
    // Four servers at 500 us each give 8,000 reads a second. The last four are issued just before the end and drained.
    assert_eq!(read.ios, 80_000);
    assert_eq!((read.clat.moments.min, read.clat.moments.max), (500_000, 500_000));
    assert_eq!(outcome.workers[0].measured.end_ns, 10_000_000_000);
}

#[test]
fn several_jobs_share_one_device_and_one_clock() {
    let mut plan = RunPlan::default();
    for (name, depth) in [("a", 1), ("b", 4), ("c", 16)] {
        plan.jobs.push(timed(job(name, Mix::Read, true, depth), 20));
    }
    let outcome = run(&plan);
    check_conservation(&outcome);
    let ios: Vec<u64> = outcome.workers.iter().map(|worker| worker.measured.read.ios).collect();
    let total: u64 = ios.iter().sum();
    assert!((159_990..=160_030).contains(&total), "8,000 a second for 20 s, plus what drains: {ios:?}");
    for (worker, depth) in outcome.workers.iter().zip([1.0, 4.0, 16.0]) {
        // Little's law: each job has its share of the queue depth.
        let read = &worker.measured.read;
        let seconds = (worker.measured.end_ns - worker.measured.start_ns) as f64 / 1e9;
        let in_flight = read.ios as f64 / seconds * read.lat.moments.mean() / 1e9;
        assert!((in_flight - depth).abs() < 0.01 * depth, "{in_flight} in flight at depth {depth}");
    }
    assert_eq!(outcome, run(&plan), "the same plan gives the same outcome");
}

#[test]
fn the_mix_is_exact_and_both_directions_are_counted() {
    let plan = RunPlan {
        jobs: vec![timed(job("mixed", Mix::ReadWrite { read_percent: 75 }, true, 8), 5)],
        ..RunPlan::default()
    };
    let outcome = run(&plan);
    check_conservation(&outcome);
    let [read, write, _] = outcome.workers[0].measured.ops();
    let share = read.ios as f64 / (read.ios + write.ios) as f64;
    assert!((share - 0.75).abs() < 0.001, "{share}");
    assert!(write.lat.moments.mean() > read.lat.moments.mean());
}

#[test]
fn a_ramp_is_counted_separately() {
    let mut ramped = timed(job("ramped", Mix::Read, true, 4), 4);
    ramped.time.ramp = Nanos::from_secs(2);
    let outcome = run(&RunPlan { jobs: vec![ramped], ..RunPlan::default() });
    check_conservation(&outcome);
    let worker = &outcome.workers[0];
    let ramp = worker.ramp.as_ref().expect("there is a ramp");
    assert_eq!((ramp.start_ns, ramp.end_ns), (0, 2_000_000_000));
    assert_eq!(worker.measured.start_ns, 2_000_000_000);
    assert_eq!(ramp.read.ios + worker.measured.read.ios, 48_000);
    assert_eq!(worker.measured.series.len(), 8, "half-second ticks");
    assert_eq!(worker.measured.read.iops_windows.min, 8_000);
}

#[test]
fn a_ramp_consumes_the_jobs_size_as_in_fio() {
    let mut ramped = job("ramped", Mix::Read, false, 1);
    ramped.io.size = Some(SizeSpec::Bytes(100 * 4096));
    ramped.time.ramp = Nanos::from_millis(20);
    let outcome = run(&RunPlan { jobs: vec![ramped], ..RunPlan::default() });
    check_conservation(&outcome);
    let worker = &outcome.workers[0];
    let in_ramp = worker.ramp.as_ref().map_or(0, |ramp| ramp.read.ios);
    // Half a millisecond each: 39 end within the ramp, the fortieth at its very end.
    assert_eq!((in_ramp, worker.measured.read.ios), (39, 61));
}

#[test]
fn sized_jobs_end_with_their_bytes_and_loops_repeat_them() {
    let mut sized = job("sized", Mix::Write, false, 2);
    sized.io.size = Some(SizeSpec::Bytes(100 * 4096));
    sized.io.loops = 3;
    let outcome = run(&RunPlan { jobs: vec![sized], ..RunPlan::default() });
    check_conservation(&outcome);
    assert_eq!(outcome.workers[0].measured.write.ios, 300);
    assert_eq!(outcome.workers[0].measured.write.bytes, 300 * 4096);
}

#[test]
fn phases_wait_for_each_other() {
    let mut second = timed(job("second", Mix::Write, true, 1), 1);
    (second.phase, second.group) = (1, 1);
    let plan =
        RunPlan { jobs: vec![timed(job("first", Mix::Read, true, 1), 2), second], ..RunPlan::default() };
    let outcome = run(&plan);
    assert_eq!(outcome.workers[0].measured.end_ns, 2_000_000_000);
    assert_eq!(outcome.workers[1].measured.start_ns, 2_000_000_000);
    assert_eq!(outcome.elapsed_ns, 3_000_000_000);
}

#[test]
fn syncs_follow_writes_and_end_the_job() {
    let mut synced = job("synced", Mix::Write, false, 1);
    synced.io.size = Some(SizeSpec::Bytes(10 * 4096));
    synced.io.fdatasync_every = 5;
    synced.io.end_fsync = true;
    let outcome = run(&RunPlan { jobs: vec![synced], ..RunPlan::default() });
    let measured = &outcome.workers[0].measured;
    // After five writes; after ten the work is done. The final fsync takes its time but is not counted, as in fio.
    assert_eq!((measured.write.ios, measured.syncs), (10, 1));
    assert_eq!((measured.sync_lat.moments.min, measured.sync_lat.moments.max), (2_000_000, 2_000_000));
    assert_eq!(measured.end_ns, 10 * 1_000_000 + 2 * 2_000_000);
}

#[test]
fn think_time_pauses_between_blocks() {
    let mut thoughtful = timed(job("thoughtful", Mix::Read, true, 2), 1);
    thoughtful.time.think_time.pause = Nanos::from_millis(10);
    thoughtful.time.think_time.blocks = Some(4);
    let outcome = run(&RunPlan { jobs: vec![thoughtful], ..RunPlan::default() });
    check_conservation(&outcome);
    // Four reads at depth 2 take 1 ms, then 10 ms of pause: 11 ms per round.
    assert_eq!(outcome.workers[0].measured.read.ios, 364);
}

#[test]
fn think_time_pauses_between_periods() {
    let mut thoughtful = timed(job("thoughtful", Mix::Read, true, 2), 1);
    thoughtful.time.think_time.pause = Nanos::from_millis(100);
    thoughtful.time.think_time.io_time = Nanos::from_millis(300);
    let counted = |job: &JobPlan| {
        let outcome = run(&RunPlan { jobs: vec![job.clone()], ..RunPlan::default() });
        check_conservation(&outcome);
        outcome.workers[0].measured.read.ios
    };
    // 600 rounds of two reads in 300 ms; then 100 ms of pause: 300, 300 and 200 ms of a second.
    assert_eq!(counted(&thoughtful), 2 * (600 + 600 + 400));
    // A count that is reached before ends the block: four reads in 1 ms.
    thoughtful.time.think_time.blocks = Some(4);
    assert_eq!(counted(&thoughtful), 4 * 10);
}

#[test]
fn times_may_have_the_largest_value() {
    let mut job = timed(job("endless", Mix::Read, true, 2), 1);
    job.time.think_time.pause = Nanos::MAX;
    let mut later = job.clone();
    later.time.start_delay = (Nanos::ZERO, Nanos::MAX);
    later.time.ramp = Nanos::MAX;
    job.exit_all = true;
    let outcome = run(&RunPlan { jobs: vec![job, later], ..RunPlan::default() });
    assert_eq!(outcome.workers[0].measured.end_ns, 1_000_000_000);
    assert_eq!(outcome.elapsed_ns, 1_000_000_000);
}

#[test]
fn a_volume_without_latency_ends_its_jobs_with_an_error() {
    let none = Nanos::ZERO;
    let nothing = FixedLatency { read: none, write: none, flush: none, parallelism: 4 };
    for jobs in [1, 2] {
        let jobs = (0..jobs).map(|_| timed(job("endless", Mix::Read, true, 2), 1)).collect();
        let plan = RunPlan { jobs, ..RunPlan::default() };
        let outcome = Session::simulated(nothing, 1 << 30).run(&plan, &mut ()).expect("the plan fits");
        for worker in &outcome.workers {
            let failure = worker.failure.as_ref().expect("it has no other end");
            assert!(failure.message.starts_with("simulated time does not advance"), "{failure:?}");
        }
    }
}

#[test]
fn think_time_counts_blocks_not_syncs() {
    let mut synced = job("synced", Mix::Write, false, 1);
    synced.io.size = Some(SizeSpec::Bytes(10 * 4096));
    synced.io.fsync_every = 1;
    synced.time.think_time.pause = Nanos::from_millis(100);
    let outcome = run(&RunPlan { jobs: vec![synced], ..RunPlan::default() });
    let measured = &outcome.workers[0].measured;
    assert_eq!((measured.write.ios, measured.syncs), (10, 9));
    // Ten writes of 1 ms, each with a pause, and nine flushes of 2 ms: fio pauses after the last block too.
    assert_eq!(measured.end_ns, 10 * 101_000_000 + 9 * 2_000_000);
}

#[test]
fn a_job_stopped_before_its_start_has_no_times() {
    let mut short = timed(job("short", Mix::Read, true, 1), 1);
    short.exit_all = true;
    let mut delayed = timed(job("delayed", Mix::Read, true, 1), 60);
    delayed.time.start_delay = (Nanos::from_secs(30), Nanos::from_secs(30));
    delayed.time.ramp = Nanos::from_secs(5);
    let mut ramping = timed(job("ramping", Mix::Read, true, 1), 60);
    ramping.time.ramp = Nanos::from_secs(50);
    let outcome = run(&RunPlan { jobs: vec![short, delayed, ramping], ..RunPlan::default() });
    check_conservation(&outcome);
    let times = |phase: &fathom_stats::PhaseOutcome| (phase.start_ns, phase.end_ns);
    let [_, delayed, ramping] = &outcome.workers[..] else { panic!("three workers") };
    assert_eq!((times(delayed.ramp.as_ref().unwrap()), times(&delayed.measured)), ((0, 0), (0, 0)));
    assert_eq!(times(ramping.ramp.as_ref().unwrap()), (0, 1_000_000_000));
    assert_eq!((times(&ramping.measured), ramping.measured.read.ios), ((0, 0), 0));
    assert!(ramping.ramp.as_ref().unwrap().read.ios > 0 && ramping.slowest.is_empty());
}

#[test]
fn progress_of_a_later_phase_excludes_earlier_ones() {
    #[derive(Default)]
    struct Seen(Vec<fathom_stats::Snapshot>);
    impl fathom_runner::RunObserver for Seen {
        fn snapshot(&mut self, snapshot: &fathom_stats::Snapshot) {
            self.0.push(snapshot.clone());
        }
    }
    let mut second = timed(job("second", Mix::Read, true, 1), 2);
    (second.phase, second.group) = (1, 1);
    second.time.ramp = Nanos::from_secs(1);
    let jobs = vec![timed(job("first", Mix::Read, true, 1), 10), second];
    let mut seen = Seen::default();
    let plan = RunPlan { jobs, ..RunPlan::default() };
    Session::simulated(MODEL, 1 << 30).run(&plan, &mut seen).expect("the plan fits the target");
    let first = seen.0.iter().find(|snapshot| snapshot.elapsed_ns > 10_000_000_000).expect("a second phase");
    assert!((first.iops[0] - 2_000.0).abs() < 10.0, "{} reads a second", first.iops[0]);
    assert!(first.stalled_ns <= 500_000, "stalled for {} ns", first.stalled_ns);
}

#[test]
fn a_start_delay_is_not_measured() {
    let mut delayed = timed(job("delayed", Mix::Read, true, 1), 1);
    delayed.time.start_delay = (Nanos::from_secs(3), Nanos::from_secs(3));
    let outcome = run(&RunPlan { jobs: vec![delayed], ..RunPlan::default() });
    let measured = &outcome.workers[0].measured;
    assert_eq!((measured.start_ns, measured.end_ns), (3_000_000_000, 4_000_000_000));
    assert_eq!(measured.read.ios, 2_000);
}

#[test]
fn exitall_ends_the_other_jobs_after_the_first() {
    let mut short = timed(job("short", Mix::Read, true, 1), 1);
    short.exit_all = true;
    let plan =
        RunPlan { jobs: vec![short, timed(job("long", Mix::Read, true, 1), 60)], ..RunPlan::default() };
    let outcome = run(&plan);
    assert!(outcome.elapsed_ns < 1_010_000_000, "{} ns", outcome.elapsed_ns);
    assert_eq!(outcome.interrupted, None);
}

#[test]
fn a_low_water_mark_drains_before_refilling() {
    let mut low = timed(job("low", Mix::Read, true, 8), 1);
    low.depth.low = 1;
    let outcome = run(&RunPlan { jobs: vec![low], ..RunPlan::default() });
    let depth = outcome.workers[0].measured.depth;
    check_conservation(&outcome);
    // Refilled from one in flight: all depths from 2 to 8 occur, not only the full queue.
    assert!(depth.0[1] > 0 && depth.0[2] > depth.0[1] && depth.0[3] > 0, "{depth:?}");
}

#[test]
fn requests_count_at_the_queue_depth_of_their_batch() {
    let mut deep = timed(job("deep", Mix::Read, true, 16), 10);
    deep.depth = DepthPlan::batched(16, true, 4096);
    let outcome = run(&RunPlan { jobs: vec![deep], ..RunPlan::default() });
    check_conservation(&outcome);
    let depth = outcome.workers[0].measured.depth.0;
    let share = depth[4] as f64 / depth.iter().sum::<u64>() as f64;
    assert!(share > 0.99, "at depth 16: {share}, {depth:?}");
}

#[test]
fn littles_law_holds_over_the_whole_run() {
    for depth in [1, 2, 3, 8, 64] {
        let plan =
            RunPlan { jobs: vec![timed(job("little", Mix::Read, true, depth), 10)], ..RunPlan::default() };
        let outcome = run(&plan);
        let measured = &outcome.workers[0].measured;
        let read = &measured.read;
        let seconds = (measured.end_ns - measured.start_ns) as f64 / 1e9;
        let in_flight = read.ios as f64 / seconds * read.lat.moments.mean() / 1e9;
        assert!((in_flight / f64::from(depth) - 1.0).abs() < 0.001, "depth {depth}: {in_flight}");
    }
}
