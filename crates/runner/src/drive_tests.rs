//! The loop over a scripted engine and a clock that only the engine moves.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use fathom_engine::registry;
use fathom_model::plan::{Mix, Pattern, Payload, TimePlan};
use fathom_model::{Nanos, PerOp};
use fathom_stats::live::Recorded;
use fathom_workload::{Extent, SourcePlan};

use super::*;
use crate::stop::StopHandle;
use crate::worker::{WorkerSpec, build};

#[derive(Clone)]
struct Hand(Rc<Cell<u64>>);

impl Clock for Hand {
    fn now(&self) -> u64 {
        self.0.get()
    }
}

/// Every step takes 100 ns. Requests complete in order, one at a time, with the scripted results, then whole.
struct Scripted {
    clock: Hand,
    /// Requests are done in `queue`.
    at_once: bool,
    results: VecDeque<i64>,
    waiting: VecDeque<(u32, Request)>,
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
    fn queue(&mut self, slot: u32, request: &Request) -> Queued {
        self.seen.borrow_mut().push(*request);
        if self.at_once {
            self.pass();
            return Queued::Done(self.result(request));
        }
        self.waiting.push_back((slot, *request));
        Queued::Later
    }

    fn submit(&mut self) -> Result<u32, EngineError> {
        self.pass();
        Ok(self.waiting.len() as u32)
    }

    fn reap(
        &mut self,
        _: u32,
        _: u32,
        _: Option<Nanos>,
        done: &mut Vec<Completion>,
    ) -> Result<Reaped, EngineError> {
        self.pass();
        let Some((slot, request)) = self.waiting.pop_front() else { return Ok(Reaped::Some(0)) };
        let result = self.result(&request);
        done.push(Completion { slot, result });
        Ok(Reaped::Some(1))
    }

    fn payload(&mut self, _: u32) -> &mut [u8] {
        &mut []
    }
}

fn spec(mix: Mix, iodepth: u32, blocks: u64) -> WorkerSpec {
    WorkerSpec {
        job: 0,
        clone: 0,
        name: String::new(),
        entry: registry::find("null").expect("it is registered"),
        setup: fathom_engine::EngineSetup {
            depth: iodepth,
            max_block: 4096,
            files: Vec::new(),
            direct: false,
            writes: false,
            random: false,
            options: Default::default(),
        },
        source: SourcePlan {
            pattern: Pattern { mix, random: false },
            block_size: PerOp::splat(4096),
            extents: vec![Extent { offset: 0, len: blocks * 4096 }],
            random_map: true,
            bytes_per_loop: blocks * 4096,
            loops: Some(1),
            fsync_every: 0,
            fdatasync_every: 0,
            seed: 1,
        },
        payload: Payload::Zero,
        depth: DepthPlan::new(iodepth),
        time: TimePlan::default(),
        on_error: OnError::default(),
        cpus: Vec::new(),
        recorded: Recorded { slat: true, clat: true, lat: true },
        used: [true; 3],
        invalidate: false,
        end_fsync: false,
        exit_all: false,
    }
}

/// Runs `spec` to its end; answers its counters and the requests that the engine saw.
fn run(spec: &WorkerSpec, at_once: bool, results: &[i64]) -> (Arc<LiveWorker>, Vec<Request>) {
    let clock = Hand(Rc::new(Cell::new(1000)));
    let seen = Rc::new(RefCell::new(Vec::new()));
    let engine = Scripted {
        clock: clock.clone(),
        at_once,
        results: results.iter().copied().collect(),
        waiting: VecDeque::new(),
        seen: seen.clone(),
    };
    let live = spec.live();
    let stop = StopSignal { run: StopHandle::default(), phase: StopHandle::default() };
    let mut worker = build(spec, Box::new(engine), clock, live.clone(), (stop, CpuUsage::default));
    worker.start(spec);
    while let Ok(Step::Progress) = worker.step() {}
    (live, seen.take())
}

#[test]
fn requests_done_one_after_another_in_a_batch_take_their_own_time_each() {
    let (live, _) = run(&spec(Mix::Trim, 8, 8), true, &[]);
    let trim = live.measured.ops[Op::Trim as usize].lat.as_ref().expect("recorded").read();
    assert_eq!((trim.moments.count, trim.moments.min, trim.moments.max), (8, 100, 100));
}

#[test]
fn the_rest_of_a_request_that_was_cut_short_belongs_to_it() {
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
fn a_request_that_fails_after_a_part_is_one_failure() {
    let (live, _) = run(&spec(Mix::Read, 1, 4), false, &[1000, -5]);
    let read = &live.measured.ops[Op::Read as usize];
    assert_eq!((read.issued.get(), read.ios.get(), read.failed.get(), read.bytes.get()), (1, 0, 1, 0));
    assert_eq!(live.measured.ended_ns(), 1400);
}
