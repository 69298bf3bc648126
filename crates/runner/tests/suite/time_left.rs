//! The time left that a run shows, in virtual time: after a third of the run within 10 % of what it turns out to be.

use fathom_engine::sim::FixedLatency;
use fathom_model::plan::{Mix, SizeSpec, VerifyBacklog, VerifyMethod, VerifyPlan};
use fathom_model::{JobPlan, Nanos, RunPlan};
use fathom_runner::{RunObserver, Session};
use fathom_stats::Snapshot;

use crate::plans::{job, timed};

/// What a run showed: time since its start, and time left, ns.
#[derive(Default)]
struct Shown(Vec<(u64, Option<u64>)>);

impl RunObserver for Shown {
    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.0.push((snapshot.elapsed_ns, snapshot.remaining_ns));
    }
}

/// Runs `jobs` on a volume whose reads take `read_us` and its writes 500 us.
#[track_caller]
fn check(read_us: u64, jobs: Vec<JobPlan>) {
    let volume = FixedLatency {
        read: Nanos::from_micros(read_us),
        write: Nanos::from_micros(500),
        flush: Nanos::from_micros(2000),
        parallelism: 4,
    };
    let mut shown = Shown::default();
    let plan = RunPlan { jobs, ..RunPlan::default() };
    let outcome =
        Session::simulated(volume, 1 << 30).run(&plan, &mut shown).expect("the plan fits the target");
    let length_ns = outcome.elapsed_ns;
    let later: Vec<_> = shown.0.iter().filter(|(at, _)| *at >= length_ns / 3).collect();
    assert!(later.len() > 10, "{} snapshots of {length_ns} ns", later.len());
    for (at, left) in later {
        let expected = at + left.expect("something was done");
        assert!(
            expected.abs_diff(length_ns) <= length_ns / 10,
            "at {at} ns the end was expected at {expected} ns; it was at {length_ns} ns"
        );
    }
}

/// 400 MiB in blocks of 4 KiB.
fn sized(mix: Mix, depth: u32) -> JobPlan {
    let mut sized = job("sized", mix, true, depth);
    sized.io.size = Some(SizeSpec::Bytes(400 << 20));
    sized
}

fn verified(mix: Mix, change: impl FnOnce(&mut VerifyPlan)) -> JobPlan {
    let mut verified = sized(mix, 4);
    let mut verify = VerifyPlan::new(VerifyMethod::Crc32c);
    change(&mut verify);
    verified.io.verify = Some(verify);
    verified
}

#[test]
fn of_times_and_sizes() {
    check(500, vec![timed(job("timed", Mix::Read, true, 4), 30)]);
    for mix in [Mix::Read, Mix::Write, Mix::ReadWrite { read_percent: 30 }, Mix::TrimWrite] {
        check(100, vec![sized(mix, 1)]);
    }
    let mut looped = sized(Mix::Write, 2);
    looped.io.loops = 5;
    check(500, vec![looped, timed(sized(Mix::Read, 1), 40)]);
    let mut ramped = sized(Mix::Read, 1);
    ramped.time.ramp = Nanos::from_secs(20);
    check(500, vec![ramped]);
}

#[test]
fn of_jobs_that_read_back() {
    let mut looped = verified(Mix::Write, |_| {});
    looped.io.loops = 4;
    check(250, vec![looped.clone()]);
    // It ends while the first pass is read back.
    looped.time.ramp = Nanos::from_secs(15);
    check(250, vec![looped.clone()]);
    check(500, vec![timed(looped, 20)]);
    check(500, vec![verified(Mix::Write, |_| {})]);
    check(500, vec![verified(Mix::ReadWrite { read_percent: 60 }, |_| {})]);
    check(500, vec![verified(Mix::Write, |verify| verify.reads_back = false)]);
    check(
        250,
        vec![verified(Mix::Write, |verify| verify.backlog = Some(VerifyBacklog { blocks: 64, batch: 64 }))],
    );
    check(500, vec![verified(Mix::Write, |verify| verify.only = true)]);
}
