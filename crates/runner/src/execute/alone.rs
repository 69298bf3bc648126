//! One worker on the caller's thread, with a clock that only its readings advance.
//!
//! For instruction counts of the loop: without other threads, observer and kernel clock, the same plan takes the same
//! path each time. Counts are exact; times are meaningless.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use fathom_engine::EngineError;
use fathom_engine::sim::FixedLatency;
use fathom_model::{Nanos, RunPlan};
use fathom_stats::{CpuUsage, RunOutcome, WorkerFailure, WorkerOutcome};

use super::{Run, Running};
use crate::RunError;
use crate::clock::Clock;
use crate::disks::Disks;
use crate::drive::{Step, Worker};
use crate::host_watch::HostWatch;
use crate::session::Session;
use crate::stop::{StopHandle, StopSignal};

/// Minimum time between two readings, ns: the cost of one on common machines.
const TICK_NS: u64 = 20;

/// The model of an unused device.
const UNUSED: FixedLatency =
    FixedLatency { read: Nanos::ZERO, write: Nanos::ZERO, flush: Nanos::ZERO, parallelism: 1 };

/// A clock that advances with each reading.
#[derive(Clone)]
struct TickingClock(Rc<Cell<u64>>);

impl Clock for TickingClock {
    #[inline(always)]
    fn now(&self) -> u64 {
        let now = self.0.get();
        // Uneven, so that the recorder has no advantage from repeated latencies.
        self.0.set(now + TICK_NS + (now >> 3 & 31));
        now
    }
}

/// Runs the only worker of `plan` to its end. Its engine must not need files; each target has `target_size` bytes.
pub fn run_alone(plan: &RunPlan, target_size: u64) -> Result<WorkerOutcome, RunError> {
    let session = Session::simulated(UNUSED, target_size);
    let mut prepared = session.prepare(plan, &mut ())?;
    let mut specs = std::mem::take(&mut prepared.specs);
    let refused = |job: &str, reason: String, hint: &str| RunError::plan(job, reason, hint);
    let Some(spec) = specs.pop().filter(|_| specs.is_empty()) else {
        let job = plan.jobs.first().map_or("", |job| job.name.as_str());
        return Err(refused(job, "a single worker is required".into(), "plan one worker"));
    };
    if spec.entry.traits.needs_files {
        let reason = format!("engine {} needs files, which are not supported here", spec.entry.name);
        return Err(refused(&spec.name, reason, "use ioengine=null"));
    }
    let engine = (spec.entry.open)(spec.setup.clone())
        .map_err(|source| RunError::Engine { job: spec.name.clone(), source })?;
    let clock = TickingClock(Rc::new(Cell::new(session.now())));
    let stop = StopSignal { run: session.stop_handle(), phase: StopHandle::default() };
    let live = spec.live();
    let mut worker = Worker::new(&spec, engine, clock.clone(), live.clone(), (stop, CpuUsage::default));
    let origin = session.now();
    worker.start(&spec);
    if let Err(error) = turn(&mut worker) {
        worker.fail(WorkerFailure::new(0, error.to_string(), error.hint()));
    }
    let now = clock.now();
    live.close(now);
    let mut run = Run {
        prepared: &prepared,
        origin,
        tick: 0,
        disks: Disks::default(),
        host: HostWatch::default(),
        disks_began: false,
        workers: 1,
        later_ns: None,
        later: StopHandle::default(),
        steady: Default::default(),
        outcome: RunOutcome::default(),
    };
    let running = vec![Running {
        spec: Arc::new(spec),
        live,
        stop: StopHandle::default(),
        started_unix_ms: 0,
        end: Some(worker.into_end()),
    }];
    let watch = run.observer(&running, origin);
    Ok(run.collect(running, watch, now).remove(0))
}

/// Runs the loop to its end, skipping all waits.
fn turn(worker: &mut Worker<TickingClock>) -> Result<(), EngineError> {
    loop {
        match worker.step()? {
            Step::Progress => {}
            Step::BlockedUntil(time) => {
                let clock = &worker.clock.0;
                clock.set(clock.get().max(time.0));
                worker.wake();
            }
            Step::Finished => return Ok(()),
        }
    }
}
