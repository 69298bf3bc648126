//! The loop with a scripted engine and a clock that only the engine advances.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use fathom_engine::registry;
use fathom_model::plan::{DepthPlan, Mix, OnError, Pattern, Payload, ThinkTime, TimePlan};
use fathom_model::{PerOp, Rate, RatePlan, Request};
use fathom_stats::CpuUsage;
use fathom_stats::live::{LiveWorker, Recorded};
use fathom_workload::{Extent, SourcePlan};

use super::*;
use crate::stop::StopHandle;
use crate::worker::WorkerSpec;

#[derive(Clone)]
struct ManualClock(Rc<Cell<u64>>);

impl Clock for ManualClock {
    fn now(&self) -> u64 {
        self.0.get()
    }
}

/// Every step takes 100 ns. Requests complete in order, one at a time, with the scripted results, then in full.
struct Scripted {
    clock: ManualClock,
    /// Requests complete in `queue`.
    is_synchronous: bool,
    /// All requests have completed at the first reap.
    inline: bool,
    results: VecDeque<i64>,
    waiting: VecDeque<(u32, Request)>,
    /// How many of `waiting` have been submitted.
    submitted: usize,
    seen: Rc<RefCell<Vec<Request>>>,
}

impl Scripted {
    fn pass(&self) {
        self.clock.0.set(self.clock.0.get() + 100);
    }

    fn result(&mut self, request: &Request) -> i64 {
        self.results.pop_front().unwrap_or(i64::from(request.len))
    }
}

impl Engine for Scripted {
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        let request = |slot: u32| requests[slot as usize];
        if self.is_synchronous {
            let first = request(slots[0]);
            self.seen.borrow_mut().push(first);
            self.pass();
            return Queued::Done(self.result(&first));
        }
        self.seen.borrow_mut().extend(slots.iter().map(|&slot| request(slot)));
        self.waiting.extend(slots.iter().map(|&slot| (slot, request(slot))));
        Queued::Accepted(slots.len() as u32)
    }

    fn submit(&mut self) -> Result<u32, EngineError> {
        self.pass();
        let gone = self.waiting.len() - self.submitted;
        self.submitted = self.waiting.len();
        Ok(gone as u32)
    }

    fn reap(
        &mut self,
        _: u32,
        _: u32,
        _: Option<Nanos>,
        done: &mut Vec<Completion>,
    ) -> Result<Reaped, EngineError> {
        self.pass();
        let most = if self.inline { self.waiting.len() } else { 1 };
        while done.len() < most
            && let Some((slot, request)) = self.waiting.pop_front()
        {
            self.submitted -= 1;
            let result = self.result(&request);
            done.push(Completion { slot, result });
        }
        Ok(Reaped::Some(done.len() as u32))
    }

    fn payload(&mut self, _: u32) -> &mut [u8] {
        &mut []
    }
}

pub(crate) fn spec(mix: Mix, iodepth: u32, blocks: u64) -> WorkerSpec {
    WorkerSpec {
        job: 0,
        clone: 0,
        writes_through: false,
        name: String::new(),
        entry: registry::find("null").expect("it is registered"),
        setup: fathom_engine::EngineSetup {
            depth: iodepth,
            max_block: 4096,
            files: Vec::new(),
            paths: Vec::new(),
            direct: false,
            writes: false,
            random: false,
            options: Default::default(),
            priorities: Default::default(),
        },
        source: SourcePlan {
            pattern: Pattern { mix, random: false },
            block_size: PerOp::splat(4096.into()),
            extents: vec![Extent { offset: 0, len: blocks * 4096 }],
            random_map: true,
            access: Default::default(),
            bytes_per_loop: blocks * 4096,
            loops: Some(1),
            fsync_every: 0,
            fdatasync_every: 0,
            seed: 1,
            repeats: false,
            to_file_ends: true,
        },
        payload: Payload::Zero,
        verify: None,
        depth: DepthPlan::new(iodepth),
        time: TimePlan::default(),
        serialize_overlap: false,
        on_error: OnError::default(),
        cpus: Vec::new(),
        priorities_are_of_lat: false,
        recorded: Recorded {
            slat: true,
            clat: true,
            lat: true,
            is_synchronous: false,
            scheduled: false,
            syncs: true,
        },
        used: [true; 3],
        invalidate: false,
        end_fsync: false,
        log: None,
        issue_log: None,
        replay: None,
        exit: Default::default(),
        threads: Default::default(),
        usage: Default::default(),
        end: Default::default(),
        cycles_ns: 0,
        flow: None,
    }
}

/// Runs `spec` to its end; returns its counters and the requests that the engine received.
fn run(spec: &WorkerSpec, is_synchronous: bool, results: &[i64]) -> (Arc<LiveWorker>, Vec<Request>) {
    run_on(spec, |engine| {
        engine.is_synchronous = is_synchronous;
        engine.results = results.iter().copied().collect();
    })
}

/// As [`run`], on a scripted engine that `script` sets up.
fn run_on(spec: &WorkerSpec, script: impl FnOnce(&mut Scripted)) -> (Arc<LiveWorker>, Vec<Request>) {
    let (live, seen, _) = run_with_sleeps(spec, script);
    (live, seen)
}

/// As [`run_on`]; also returns how often the worker slept.
fn run_with_sleeps(
    spec: &WorkerSpec,
    script: impl FnOnce(&mut Scripted),
) -> (Arc<LiveWorker>, Vec<Request>, u64) {
    let clock = ManualClock(Rc::new(Cell::new(1000)));
    let seen = Rc::new(RefCell::new(Vec::new()));
    let mut engine = Scripted {
        clock: clock.clone(),
        is_synchronous: false,
        inline: false,
        results: VecDeque::new(),
        waiting: VecDeque::new(),
        submitted: 0,
        seen: seen.clone(),
    };
    script(&mut engine);
    let live = spec.live();
    let stop = StopSignal { run: StopHandle::default(), phase: StopHandle::default() };
    let mut worker = Worker::new(spec, Box::new(engine), clock, live.clone(), (stop, CpuUsage::default));
    worker.start(spec);
    let mut sleeps = 0;
    loop {
        match worker.step().expect("a scripted engine does not fail") {
            Step::Progress => {}
            Step::BlockedUntil(time) => {
                sleeps += 1;
                worker.clock.0.set(time.0);
            }
            Step::Finished => return (live, seen.take(), sleeps),
        }
        worker.wake();
    }
}

/// `requests` reads, evenly spaced at `iops`, with sleeps that may exceed a due time by `coalescing_ns`.
fn rated(requests: u64, iops: u64, coalescing_ns: u64) -> WorkerSpec {
    let mut spec = spec(Mix::Read, 64, requests);
    let rates = PerOp { read: Rate::iops(iops), write: None, trim: None };
    spec.time.rate = RatePlan { rates, ..RatePlan::default() }.coalesced(Nanos(coalescing_ns));
    spec.recorded.scheduled = true;
    spec
}

#[test]
fn one_wake_up_serves_the_requests_of_a_dense_rate() {
    for (iops, coalescing_ns, sleeps, latest_ns) in [
        (100_000, 0, 300, 0),
        (100_000, 20_000, 100, 20_000),
        (60_000, 20_000, 150, 16_667),
        (40_000, 20_000, 300, 0),
    ] {
        let (live, seen, slept) =
            run_with_sleeps(&rated(300, iops, coalescing_ns), |engine| engine.inline = true);
        assert_eq!((seen.len(), slept), (300, sleeps), "{iops} {coalescing_ns}");
        let read = live.measured.read(0).read;
        // No request is submitted together with another one, so their latencies are those of single ones.
        assert_eq!(read.lat.moments.max, 200, "{iops} {coalescing_ns}");
        assert_eq!(live.measured.submit[BatchCounts::bucket(1)].get(), 300);
        let late = read.open_loop.latest_ns;
        assert!((latest_ns..=latest_ns + 100).contains(&late), "{iops} {coalescing_ns}: {late}");
        // The rate is the same: the end is seen when one more would be due.
        let length_ns = live.measured.ended_ns() - live.measured.start_ns.get();
        let due_ns = 300 * 1_000_000_000 / iops;
        assert!(
            (due_ns..=due_ns + latest_ns + 500).contains(&length_ns),
            "{iops} {coalescing_ns}: {length_ns}"
        );
    }
}

#[test]
fn a_sleep_ends_with_the_stage_it_belongs_to() {
    // 9 requests are due in 85 us; a sleep to the last of three would leave two of them.
    let mut spec = rated(1_000, 100_000, 20_000);
    spec.time.runtime = Some(Nanos(85_000));
    let (live, seen, _) = run_with_sleeps(&spec, |engine| engine.inline = true);
    assert_eq!((seen.len(), live.measured.read(0).read.open_loop.backlog), (9, 0));
}

#[test]
fn a_worker_that_is_behind_submits_batches() {
    // Twice the rate of single requests, which take 200 ns.
    let mut spec = rated(10_000, 10_000_000, 20_000);
    (spec.depth.batch_submit, spec.depth.batch_submit_inline) = (8, 32);
    let (live, seen, _) = run_with_sleeps(&spec, |engine| engine.inline = true);
    assert_eq!(seen.len(), 10_000);
    let batches: u64 = live.measured.submit[BatchCounts::bucket(8)..].iter().map(|count| count.get()).sum();
    assert!(batches > 0);
    let latest_ns = live.measured.read(0).read.open_loop.latest_ns;
    assert!((40_000..50_000).contains(&latest_ns), "{latest_ns}");
}

#[test]
fn synchronous_requests_of_a_batch_have_separate_latencies() {
    let (live, _) = run(&spec(Mix::Trim, 8, 8), true, &[]);
    let trim = live.measured.ops[Op::Trim as usize].lat.as_ref().expect("recorded").read();
    assert_eq!((trim.moments.count, trim.moments.min, trim.moments.max), (8, 100, 100));
}

#[test]
fn the_remainder_of_a_short_request_counts_with_it() {
    let (live, seen) = run(&spec(Mix::Read, 1, 1), false, &[1000, 96]);
    let ranges: Vec<(u64, u32)> = seen.iter().map(|request| (request.offset, request.len)).collect();
    assert_eq!(ranges, [(0, 4096), (1000, 3096), (1096, 3000)]);
    let read = &live.measured.ops[Op::Read as usize];
    assert_eq!((read.issued.get(), read.ios.get(), read.bytes.get(), read.short.get()), (1, 1, 4096, 2));
    // Three submissions and three waits of 100 ns: all but the first submission is the device's time.
    let sums = [&read.slat, &read.clat, &read.lat].map(|latency| latency.as_ref().expect("recorded").sum());
    assert_eq!(sums, [100, 500, 600]);
}

#[test]
fn a_request_that_fails_after_a_short_part_is_one_failure() {
    let (live, _) = run(&spec(Mix::Read, 1, 4), false, &[1000, -5]);
    let read = &live.measured.ops[Op::Read as usize];
    assert_eq!((read.issued.get(), read.ios.get(), read.failed.get(), read.bytes.get()), (1, 0, 1, 0));
    assert_eq!(live.measured.ended_ns(), 1400);
}

#[test]
fn the_synchronous_turn_counts_like_the_common_turn() {
    let on_errors = |go_on| OnError { continue_read: go_on, continue_write: go_on, continue_verify: go_on };
    let scripts: [(Mix, &[i64], bool); 5] = [
        (Mix::Read, &[], false),
        (Mix::Write, &[4096, 1000, 96, 4096, 4095], false),
        (Mix::ReadWrite { read_percent: 50 }, &[4096, -5, 4096, 0, 512, -28], true),
        (Mix::Read, &[4096, 4096, -5], false),
        (Mix::TrimWrite, &[0, 1], true),
    ];
    let pauses = [(0, None, 0), (5_000, Some(3), 0), (5_000, None, 1_000), (5_000, Some(7), 500)];
    for ((mix, results, go_on), (pause, blocks, io_time)) in
        scripts.into_iter().flat_map(|script| pauses.map(|pause| (script, pause)))
    {
        let mut spec = spec(mix, 1, 40);
        (spec.source.fsync_every, spec.end_fsync, spec.on_error) = (7, true, on_errors(go_on));
        spec.time.think_time =
            ThinkTime { pause: Nanos(pause), blocks, io_time: Nanos(io_time), ..ThinkTime::default() };
        let (long, long_seen) = run(&spec, true, results);
        spec.recorded = Recorded { slat: false, is_synchronous: true, ..spec.recorded };
        let (short, short_seen) = run(&spec, true, results);
        assert_eq!(short_seen, long_seen, "{mix:?}");
        let (mut short, mut long) = (short.measured.read(0), long.measured.read(0));
        for op in short.ops_mut().into_iter().chain(long.ops_mut()) {
            // The common turn also recorded submission latencies, which are all 0 here.
            assert_eq!(op.slat.moments.sum, 0);
            op.slat = Default::default();
        }
        assert_eq!(short, long, "{mix:?} with {results:?}");
    }
}

#[test]
fn a_job_continues_over_eio_or_over_the_errors_it_names() {
    let all = OnError { continue_read: true, continue_write: true, continue_verify: true };
    let io = OnError { continue_verify: false, ..all };
    let check = |on_error: OnError, named: &[i32], errno: i64, goes_on: bool| {
        let mut spec = spec(Mix::Write, 1, 4);
        (spec.on_error, spec.end.ignored_of_writes) = (on_error, named.to_vec());
        let (_, seen) = run(&spec, false, &[-errno]);
        assert_eq!(seen.len(), if goes_on { 4 } else { 1 }, "{on_error:?} {named:?} {errno}");
    };
    for (on_error, errno, goes_on) in
        [(all, 5, true), (all, 84, true), (all, 28, false), (io, 5, true), (io, 84, false), (io, 95, false)]
    {
        check(on_error, &[], errno, goes_on);
    }
    for (on_error, errno, goes_on) in
        [(OnError::default(), 28, true), (all, 28, true), (all, 5, false), (OnError::default(), 5, false)]
    {
        check(on_error, &[28], errno, goes_on);
    }
}

#[test]
fn batches_grow_while_requests_complete_during_submission() {
    let mut spec = spec(Mix::Read, 64, 8 + 16 + 32 + 32 + 5);
    spec.depth = DepthPlan::batched(64, true, 4096);
    let submitted = |inline| {
        let (live, seen) = run_on(&spec, |engine| engine.inline = inline);
        assert_eq!(seen.len(), 93);
        live.measured.submit.each_ref().map(fathom_stats::live::Cell::get)
    };
    // Calls that moved 0, 1-4, 5-8, 9-16, 17-32, 33-64 and more.
    assert_eq!(submitted(true), [0, 0, 2, 1, 2, 0, 0], "8, 16, 32, 32 and the last 5");
    let asynchronous = submitted(false);
    assert_eq!(asynchronous[3..], [0; 4], "never more than the plan's 8 with an asynchronous device");
}

#[test]
fn requests_completed_together_are_all_recorded() {
    let mut spec = spec(Mix::ReadWrite { read_percent: 50 }, 64, 200);
    spec.depth = DepthPlan::batched(64, true, 4096);
    spec.on_error = OnError { continue_read: true, continue_write: true, continue_verify: true };
    let (live, seen) = run_on(&spec, |engine| {
        engine.inline = true;
        engine.results = [4096, 4096, -5, 4096, 100].into();
    });
    let failed: u64 = live.measured.ops.iter().map(|op| op.failed.get()).sum();
    assert_eq!((failed, seen.len()), (1, 201), "one fails, one is short and its remainder is issued");
    for op in [Op::Read, Op::Write] {
        let counted = &live.measured.ops[op as usize];
        let offered =
            seen.iter().filter(|request| request.op == op && request.offset % 4096 == 0).count() as u64;
        assert_eq!(counted.issued.get(), offered, "{op}");
        assert_eq!(counted.ios.get() + counted.failed.get(), offered, "{op}");
        assert_eq!(counted.bytes.get(), counted.ios.get() * 4096, "{op}");
        let outcome = live.measured.read(0).op(op).clone();
        for latency in [&outcome.slat, &outcome.clat, &outcome.lat] {
            assert_eq!(latency.moments.count, counted.ios.get(), "{op}");
        }
        assert_eq!(outcome.slat.moments.sum + outcome.clat.moments.sum, outcome.lat.moments.sum, "{op}");
    }
}

#[path = "truth_tests.rs"]
mod truth;
