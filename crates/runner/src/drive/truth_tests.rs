//! Audit of the path from engine and clock to the counters: nothing is lost or counted twice.
//!
//! A wrapper logs every clock reading and every call between driver and engine, from which the exact latency of each request
//! follows without the recorder. `audit` checks every request and every completion.

use std::collections::{BTreeMap, BTreeSet};

use fathom_engine::registry::ENGINES;
use fathom_engine::{EngineEntry, EngineSetup, OpenFile};
use fathom_stats::Latency;
use fathom_sys::clock::RealClock;
use fathom_sys::io::{OpenFlags, open_target};
use fathom_workload::Rng;

use super::*;

#[path = "audit_tests.rs"]
mod audit;

const BLOCK: u64 = 4096;

type Journal = Rc<RefCell<Vec<Event>>>;

/// A logged event.
enum Event {
    /// The clock was read.
    Clock(u64),
    /// The engine accepted these requests.
    Accepted(Vec<(u32, Op)>),
    /// The engine completed this request when it was offered.
    Done(u32, Op),
    /// This many accepted requests were submitted.
    Submitted(u32),
    /// These completed.
    Reaped(Vec<u32>),
}

#[derive(Clone)]
struct LoggedClock {
    clock: RealClock,
    journal: Journal,
}

impl Clock for LoggedClock {
    fn now(&self) -> u64 {
        let now = self.clock.now();
        self.journal.borrow_mut().push(Event::Clock(now));
        now
    }
}

struct LoggedEngine {
    engine: Box<dyn Engine>,
    journal: Journal,
}

impl Engine for LoggedEngine {
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        let queued = self.engine.queue(slots, requests);
        let op = |slot: u32| requests[slot as usize].op;
        let event = match queued {
            Queued::Done(result) => {
                assert_eq!(result, i64::from(requests[slots[0] as usize].len));
                Event::Done(slots[0], op(slots[0]))
            }
            Queued::Accepted(count) => {
                assert_eq!(count as usize, slots.len(), "an engine has room for its depth");
                Event::Accepted(slots.iter().map(|&slot| (slot, op(slot))).collect())
            }
        };
        self.journal.borrow_mut().push(event);
        queued
    }

    fn submit(&mut self) -> Result<u32, EngineError> {
        let went = self.engine.submit()?;
        self.journal.borrow_mut().push(Event::Submitted(went));
        Ok(went)
    }

    fn reap(
        &mut self,
        min: u32,
        max: u32,
        wait: Option<Nanos>,
        done: &mut Vec<Completion>,
    ) -> Result<Reaped, EngineError> {
        let before = done.len();
        let reaped = self.engine.reap(min, max, wait, done)?;
        let slots = done[before..].iter().map(|completion| completion.slot).collect();
        self.journal.borrow_mut().push(Event::Reaped(slots));
        Ok(reaped)
    }

    fn payload(&mut self, slot: u32) -> &mut [u8] {
        self.engine.payload(slot)
    }
}

/// The latencies of one operation, one number per request.
#[derive(Default)]
struct Exact {
    slat: Vec<u64>,
    clat: Vec<u64>,
    lat: Vec<u64>,
}

/// Derives exact latencies from a journal: a request starts at the clock reading before it is offered, is issued at the
/// reading after its submission, and completes at the reading after its completion. A synchronous request is issued at
/// its start.
fn replay(journal: &[Event]) -> [Exact; Op::COUNT] {
    #[derive(Clone, Copy)]
    struct Begun {
        op: Op,
        start: u64,
        issued: u64,
    }
    let mut exact: [Exact; Op::COUNT] = Default::default();
    let mut begun: BTreeMap<u32, Begun> = BTreeMap::new();
    let mut accepted = VecDeque::new();
    let (mut last, mut gone, mut back) = (0, Vec::new(), Vec::new());
    for event in journal {
        match event {
            Event::Accepted(requests) => {
                for &(slot, op) in requests {
                    let twice = begun.insert(slot, Begun { op, start: last, issued: 0 });
                    assert!(twice.is_none(), "slot {slot} was offered while it was in flight");
                    accepted.push_back(slot);
                }
            }
            &Event::Done(slot, op) => {
                begun.insert(slot, Begun { op, start: last, issued: last });
                back.push(slot);
            }
            &Event::Submitted(count) => gone.extend(accepted.drain(..count as usize)),
            Event::Reaped(slots) => back.extend_from_slice(slots),
            &Event::Clock(now) => {
                for slot in gone.drain(..) {
                    begun.get_mut(&slot).expect("submitted requests were accepted").issued = now;
                }
                for slot in back.drain(..) {
                    let Begun { op, start, issued } =
                        begun.remove(&slot).expect("completed requests were submitted");
                    let exact = &mut exact[op as usize];
                    exact.slat.push(issued - start);
                    exact.clat.push(now - issued);
                    exact.lat.push(now - start);
                }
                last = now;
            }
        }
    }
    assert!(begun.is_empty() && back.is_empty(), "all requests completed");
    exact
}

/// Checks recorded latencies against the exact ones: count, sum, squares and extremes are equal to the ns; percentiles
/// differ by at most the bin's error, which is 1/128, and 0 below 128 ns.
fn check_latency(what: &str, recorded: &Latency, mut exact: Vec<u64>) {
    exact.sort_unstable();
    let moments = &recorded.moments;
    let sum = exact.iter().map(|&ns| u128::from(ns)).sum();
    let squares = exact.iter().map(|&ns| u128::from(ns) * u128::from(ns)).sum();
    assert_eq!(
        (moments.count, moments.sum, moments.sum_squares),
        (exact.len() as u64, sum, squares),
        "{what}"
    );
    assert_eq!(recorded.histogram.samples(), moments.count, "{what}");
    let (Some(&first), Some(&last)) = (exact.first(), exact.last()) else { return };
    assert_eq!((moments.min, moments.max), (first, last), "{what}");
    let hundredths = (1..=99).map(|percent| percent * 100).chain([9950, 9990, 9995, 9999, 10_000]);
    for hundredth in hundredths {
        let rank = (exact.len() * hundredth).div_ceil(10_000).max(1);
        let (percent, ns) = (hundredth as f64 / 100.0, exact[rank - 1]);
        let binned = recorded.histogram.percentile(percent).expect("there are samples");
        let off = binned.abs_diff(ns) * 128;
        assert!(off <= if ns < 128 { 0 } else { ns }, "{what}: p{percent} is {binned}, exactly {ns}");
    }
}

/// Reads, writes and syncs of 4 KiB on `file`, several times over all of it.
fn measured_spec(entry: &'static EngineEntry, depth: DepthPlan, file: OpenFile, direct: bool) -> WorkerSpec {
    let mut spec = spec(Mix::ReadWrite { read_percent: 60 }, depth.iodepth, file.size / BLOCK);
    let is_synchronous = entry.traits.synchronous || (entry.traits.synchronous_alone && depth.iodepth == 1);
    spec.entry = entry;
    spec.depth = depth;
    spec.setup = EngineSetup { files: vec![file], direct, writes: true, random: true, ..spec.setup };
    spec.payload = Payload::Stamped;
    spec.source.pattern.random = true;
    // A disk takes its time, memory does not.
    (spec.source.loops, spec.source.fsync_every) = (Some(if direct { 2 } else { 5 }), 500);
    spec.recorded = Recorded {
        slat: !is_synchronous,
        clat: true,
        lat: true,
        is_synchronous,
        scheduled: false,
        syncs: true,
    };
    spec
}

/// Runs a logged job and checks the recorder's figures against the log.
fn check_recorder(spec: &WorkerSpec, what: &str) {
    let engine = match (spec.entry.open)(spec.setup.clone()) {
        Ok(engine) => engine,
        Err(error) => return println!("skipped {what}: {error}"),
    };
    let journal = Journal::default();
    let engine = LoggedEngine { engine, journal: journal.clone() };
    let clock = LoggedClock { clock: RealClock::start(), journal: journal.clone() };
    let (live, worker) = drive(spec, Box::new(engine), clock);
    let mut exact = replay(&journal.borrow());
    let phase = live.measured.read(0);
    let mut slowest: Vec<u64> = exact.iter().flat_map(|exact| exact.lat.iter().copied()).collect();
    for (op, counted) in Op::DATA.into_iter().zip(phase.ops()) {
        let Exact { slat, clat, lat } = std::mem::take(&mut exact[op as usize]);
        let name = |latency: &str| format!("{what}: {latency} of {op}");
        assert_eq!((counted.ios, counted.issued), (lat.len() as u64, lat.len() as u64), "{}", name("count"));
        assert_eq!(counted.bytes, counted.ios * BLOCK, "{}", name("bytes"));
        if spec.recorded.slat {
            check_latency(&name("slat"), &counted.slat, slat);
        }
        check_latency(&name("clat"), &counted.clat, clat);
        check_latency(&name("lat"), &counted.lat, lat);
    }
    let syncs = std::mem::take(&mut exact[Op::Sync as usize].lat);
    assert_eq!(phase.syncs, syncs.len() as u64, "{what}: syncs");
    check_latency(&format!("{what}: syncs"), &phase.sync_lat, syncs);
    let kept: Vec<u64> = worker.into_end().slowest.iter().map(|slow| slow.lat_ns).collect();
    slowest.sort_unstable_by(|one, other| other.cmp(one));
    assert_eq!(kept, slowest[..kept.len()], "{what}: the slowest");
    assert!(!kept.is_empty());
}

/// Drives a worker to its end in real time.
fn drive<C: Clock>(spec: &WorkerSpec, engine: Box<dyn Engine>, clock: C) -> (Arc<LiveWorker>, Worker<C>) {
    let live = spec.live();
    let stop = StopSignal { run: StopHandle::default(), phase: StopHandle::default() };
    let mut worker = Worker::new(spec, engine, clock, live.clone(), (stop, CpuUsage::default));
    worker.start(spec);
    loop {
        match worker.step().expect("the engine works") {
            Step::Progress => {}
            Step::BlockedUntil(_) => worker.wake(),
            Step::Finished => return (live, worker),
        }
    }
}

/// Depths as a plain command line gives them, and batches that divide neither the depth nor each other.
fn depths() -> [DepthPlan; 5] {
    let odd = DepthPlan {
        batch_submit: 7,
        batch_submit_inline: 13,
        batch_complete_min: 3,
        batch_complete_max: 11,
        low: 41,
        ..DepthPlan::new(64)
    };
    [
        DepthPlan::new(1),
        DepthPlan::batched(8, true, BLOCK),
        DepthPlan::batched(64, true, BLOCK),
        odd,
        DepthPlan { batch_submit: 37, batch_submit_inline: 37, batch_complete_min: 0, ..DepthPlan::new(37) },
    ]
}

#[test]
fn recorded_latencies_equal_the_logged_ones() {
    let directory = tempfile::tempdir().expect("the temporary directory takes files");
    let path = directory.path().join("target");
    let size = 2048 * BLOCK;
    std::fs::write(&path, vec![1; size as usize]).expect("the temporary directory has room");
    for entry in ENGINES.iter().filter(|entry| entry.traits.moves_data || !entry.traits.needs_files) {
        let depths = depths();
        let depths = if entry.traits.synchronous { &depths[..1] } else { &depths[..] };
        let ways =
            if entry.traits.needs_files && entry.name != "mmap" { &[false, true][..] } else { &[false] };
        for (&direct, &depth) in
            ways.iter().flat_map(|direct| depths.iter().map(move |depth| (direct, depth)))
        {
            let flags = OpenFlags { read: true, write: true, direct, ..OpenFlags::default() };
            let file = match open_target(&path, flags) {
                Ok(file) => OpenFile { file: Some(Arc::new(file)), size, is_block_device: false, volume: 0 },
                Err(error) => {
                    println!("skipped {} direct={direct}: {error}", entry.name);
                    continue;
                }
            };
            let what = format!("{} direct={direct} {depth:?}", entry.name);
            check_recorder(&measured_spec(entry, depth, file, direct), &what);
        }
    }
}
