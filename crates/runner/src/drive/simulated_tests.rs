//! Comparison of both turns of a worker on simulated volumes.

use std::rc::Rc;

use fathom_engine::registry;
use fathom_engine::sim::{BEGIN_NS, Volume, World};
use fathom_model::plan::{DepthPlan, Mix, OnError, Pattern, Payload, ThinkTime, TimePlan};
use fathom_model::{PerOp, RatePlan};
use fathom_stats::live::Recorded;
use fathom_stats::{PhaseOutcome, SlowRequest};
use fathom_volume::{Fault, FaultKind, Limit, LimitStage as Limits, TokenRate, VolumeLatency, VolumeModel};
use fathom_workload::{Extent, Rng, SourcePlan};

use super::*;
use crate::drive::Step;
use crate::stop::{StopHandle, StopSignal};
use crate::worker::WorkerSpec;

const SIZE: u64 = 1 << 30;

fn one_of<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

fn spec(rng: &mut Rng) -> WorkerSpec {
    let iodepth = one_of(rng, &[1, 2, 3, 32, 100]);
    let mix = one_of(rng, &[Mix::Read, Mix::Write, Mix::ReadWrite { read_percent: 60 }, Mix::TrimWrite]);
    let until = one_of(rng, &[None, Some(Nanos::from_millis(300)), Some(Nanos(123_456_789))]);
    WorkerSpec {
        job: 0,
        clone: 0,
        writes_through: false,
        name: String::new(),
        entry: registry::find("sim").expect("it is registered"),
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
            pattern: Pattern { mix, random: one_of(rng, &[true, false]) },
            block_size: PerOp::splat(4096.into()),
            extents: vec![Extent { offset: 0, len: SIZE }],
            random_map: one_of(rng, &[true, false]),
            access: Default::default(),
            bytes_per_loop: one_of(rng, &[1, 77, 1000]) * 4096,
            loops: if until.is_some() { None } else { Some(2) },
            fsync_every: one_of(rng, &[0, 0, 3]),
            fdatasync_every: one_of(rng, &[0, 0, 5]),
            seed: rng.next_u64(),
            repeats: false,
            to_file_ends: true,
        },
        payload: Payload::Zero,
        verify: None,
        depth: DepthPlan {
            low: one_of(rng, &[iodepth, iodepth - 1, iodepth / 2]),
            ..one_of(rng, &[DepthPlan::new(iodepth), DepthPlan::batched(iodepth, true, 4096)])
        },
        time: TimePlan {
            runtime: until,
            time_based: until.is_some(),
            ramp: one_of(rng, &[Nanos::ZERO, Nanos(10_000_001)]),
            think_time: ThinkTime {
                pause: one_of(rng, &[Nanos::ZERO, Nanos::ZERO, Nanos(5_000_000)]),
                blocks: one_of(rng, &[None, Some(50)]),
                io_time: one_of(rng, &[Nanos::ZERO, Nanos(7_654_321)]),
                spin: Nanos::ZERO,
                ..ThinkTime::default()
            },
            rate: RatePlan::default(),
            ..TimePlan::default()
        },
        serialize_overlap: false,
        on_error: OnError {
            continue_read: one_of(rng, &[true, false]),
            continue_write: true,
            ..OnError::default()
        },
        cpus: Vec::new(),
        priorities_are_of_lat: false,
        recorded: Recorded {
            slat: true,
            clat: true,
            lat: true,
            is_synchronous: true,
            scheduled: false,
            syncs: true,
        },
        used: [true; 3],
        invalidate: false,
        end_fsync: one_of(rng, &[true, false]),
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

fn model(rng: &mut Rng) -> VolumeModel {
    let limit = |tokens| Some(Limit::Rate(TokenRate::per_second(tokens).expect("it is one")));
    let latency = |rng: &mut Rng| match one_of(rng, &[0, 1, 2]) {
        0 => VolumeLatency::fixed(0),
        1 => VolumeLatency::fixed(200_000),
        _ => VolumeLatency::around(500_000),
    };
    // With a limit above one I/O per ns, several proceed at the same time.
    let ios = limit(one_of(rng, &[3_000, 40_000, 2_500_000_000]));
    let fault = FaultKind::Error { per_million: 30_000, errno: 5 };
    VolumeModel {
        shared: vec![Limits { ios, bytes: limit(100 << 20), ..Limits::default() }],
        parallelism: one_of(rng, &[None, Some(3)]),
        read_latency: latency(rng),
        write_latency: latency(rng),
        sync_latency: latency(rng),
        faults: one_of(rng, &[None, Some(Fault { at_ns: 50_000_000, length_ns: 20_000_000, kind: fault })])
            .into_iter()
            .collect(),
        ..VolumeModel::unlimited(SIZE)
    }
}

/// The results of a worker.
type Counted = (Option<PhaseOutcome>, PhaseOutcome, Vec<SlowRequest>, u64);

/// Runs a worker to its end, in strides of `stride_ns` or by common turns only; returns also the number of common
/// turns.
fn run(spec: &WorkerSpec, model: &VolumeModel, stride_ns: Option<u64>) -> (Counted, u64) {
    let world = World::new(vec![Volume::beginning_at(model, 1, BEGIN_NS).expect("the model is sound")]);
    let live = spec.live();
    let stop = StopSignal { run: StopHandle::default(), phase: StopHandle::default() };
    let engine = SimEngine::new(world.clone(), vec![0], false);
    let mut worker = Worker::simulated(spec, engine, VirtualClock(Rc::clone(&world)), live.clone(), stop);
    worker.start(spec);
    let mut turns = 0;
    loop {
        let last = Nanos(world.now().0 + stride_ns.unwrap_or(0));
        let due = match stride_ns.and_then(|_| worker.run_simulated(last)) {
            Some(due) => due,
            None => {
                turns += 1;
                match worker.step().expect("volumes do not fail as engines") {
                    Step::Progress => continue,
                    Step::Finished => break,
                    Step::BlockedUntil(due) => due,
                }
            }
        };
        world.advance_to(due);
        worker.wake();
    }
    let asked = world.inspect(0, |volume| volume.counters().issued).expect("it is there");
    let slowest = worker.into_end().slowest;
    ((live.ramp.as_ref().map(|ramp| ramp.read(0)), live.measured.read(0), slowest, asked), turns)
}

#[test]
fn the_simulated_turn_counts_like_the_common_turn() {
    let mut shorter = 0;
    for seed in 0..300 {
        let rng = &mut Rng::new(seed);
        let (spec, model) = (spec(rng), model(rng));
        let (expected, turns) = run(&spec, &model, None);
        for stride_ns in [0, 1_000_000, u64::MAX / 2] {
            let (found, fewer) = run(&spec, &model, Some(stride_ns));
            assert!(
                found == expected,
                "seed {seed}, {stride_ns}: {:?} {:?} {model:?}",
                spec.source,
                spec.time
            );
            shorter += u64::from(fewer < turns / 10);
        }
    }
    assert!(shorter > 200, "the simulated turn was taken {shorter} times");
}
