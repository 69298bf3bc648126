//! The state that several runs share: the clock, open targets, permits to write, and the stop request.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fathom_engine::sim::{BEGIN_NS, FixedLatency, Volume, World};
use fathom_model::{Nanos, RunPlan};
use fathom_stats::RunOutcome;
use fathom_sys::clock::RealClock;
use fathom_sys::device::{HandleKind, TargetHandle};

use crate::control::RunControl;
use crate::guard::WritePermit;
use crate::observe::RunObserver;
use crate::prepare::{self, Prepared};
use crate::stop::StopHandle;
use crate::{CompletionLog, LayoutProgress, RunError, layout};

/// Longest sleep between two checks whether to continue.
const WAIT_PIECE: Duration = Duration::from_millis(50);

/// Real or virtual time.
#[derive(Clone)]
pub(crate) enum Time {
    Real(RealClock),
    Virtual { world: Rc<World>, names: VolumeNames },
}

impl Time {
    /// Session ns.
    pub fn now(&self) -> u64 {
        match self {
            Time::Real(clock) => clock.now(),
            Time::Virtual { world, .. } => world.now().0,
        }
    }

    /// The time that `cycles` of the CPU take, ns; a virtual CPU has 1 GHz.
    pub fn ns_of_cycles(&self, cycles: u64) -> u64 {
        match self {
            Time::Real(clock) => clock.ns_of_cycles(cycles),
            Time::Virtual { .. } => cycles,
        }
    }

    /// Waits until `at_ns` while `go_on` returns true; virtual time advances immediately.
    pub fn wait_until(&self, at_ns: u64, go_on: impl FnMut() -> bool) {
        match self {
            Time::Real(clock) => clock.sleep_until(at_ns, WAIT_PIECE, go_on),
            Time::Virtual { world, .. } => world.advance_to(Nanos(at_ns).max(world.now())),
        }
    }
}

/// The mapping from paths to simulated volumes.
#[derive(Clone)]
pub(crate) enum VolumeNames {
    /// Any path is the only volume.
    Any,
    /// The path at the same index.
    These(Vec<PathBuf>),
}

impl VolumeNames {
    /// The volume of `path`.
    pub fn find(&self, path: &Path) -> Option<usize> {
        match self {
            VolumeNames::Any => Some(0),
            VolumeNames::These(names) => names.iter().position(|name| name == path),
        }
    }
}

/// Facts about the clock for the reader of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockFacts {
    /// `tsc`, `clock_monotonic` or `virtual`.
    pub source: &'static str,
}

/// A session: one clock and the targets that several runs share.
pub struct Session {
    pub(crate) time: Time,
    /// The session's own files, which need no permit.
    own: BTreeMap<PathBuf, Arc<TargetHandle>>,
    /// Block devices that runs have named: until the session ends, each name means the same device, and claims last.
    devices: RefCell<BTreeMap<PathBuf, Arc<TargetHandle>>>,
    pub(crate) permit: WritePermit,
    pub(crate) control: RunControl,
    /// The log of the next run.
    log: RefCell<Option<Box<dyn CompletionLog>>>,
    bounds_virtual_time: bool,
}

impl Session {
    /// A session in real time. Calibrating the clock takes 5 ms.
    pub fn real() -> Self {
        Session::on(Time::Real(RealClock::start()))
    }

    /// A session in virtual time, in which every target is one simulated volume of `target_size` bytes.
    pub fn simulated(model: FixedLatency, target_size: u64) -> Self {
        let volume = Volume::beginning_at(&model.model(target_size), 0, BEGIN_NS)
            .expect("latencies and a parallelism without limits are a valid model");
        Session::on(Time::Virtual { world: World::new(vec![volume]), names: VolumeNames::Any })
    }

    /// A session in virtual time, in which targets are the volumes of these names; their burst credits carry over
    /// between runs. They begin at [`BEGIN_NS`].
    pub fn on_volumes(volumes: Vec<(PathBuf, Volume)>) -> Self {
        let (names, volumes) = volumes.into_iter().unzip();
        Session::on(Time::Virtual { world: World::new(volumes), names: VolumeNames::These(names) })
    }

    pub(crate) fn on(time: Time) -> Self {
        Session {
            time,
            own: BTreeMap::new(),
            devices: RefCell::default(),
            permit: WritePermit::default(),
            control: RunControl::default(),
            log: RefCell::default(),
            bounds_virtual_time: false,
        }
    }

    /// The same session, whose time counts although it is virtual and passes at once: for tests of deadlines.
    pub fn with_bounded_time(self) -> Self {
        Session { bounds_virtual_time: true, ..self }
    }

    /// True where measurements are bounded in time.
    pub fn bounds_time(&self) -> bool {
        !self.is_simulated() || self.bounds_virtual_time
    }

    /// True in virtual time, in which facts about host and wall clock do not apply.
    pub fn is_simulated(&self) -> bool {
        matches!(self.time, Time::Virtual { .. })
    }

    /// ns since the session began.
    pub fn now(&self) -> u64 {
        self.time.now()
    }

    /// Waits until `at_ns` of the session's clock, or until a stop request; virtual time advances immediately, and burst credits
    /// return meanwhile.
    pub fn wait_until(&self, at_ns: u64) {
        let stop = self.stop_handle();
        self.time.wait_until(at_ns, || !stop.is_requested());
    }

    /// Facts about the clock for the reader of the results.
    pub fn clock_facts(&self) -> ClockFacts {
        ClockFacts {
            source: match &self.time {
                Time::Real(clock) => clock.source().name(),
                Time::Virtual { .. } => "virtual",
            },
        }
    }

    /// Replaces the session's control by `control`.
    pub fn controlled(mut self, control: RunControl) -> Session {
        if let Time::Real(clock) = &self.time {
            control.set_clock(*clock);
        }
        self.control = control;
        self
    }

    /// A handle that stops the session's runs; may be sent to other threads.
    pub fn stop_handle(&self) -> StopHandle {
        self.control.stop_handle()
    }

    /// Calls `inspect` with the simulated volume of `path` and the session's clock; `None` if there is no such volume.
    pub fn inspect_volume<T>(&self, path: &Path, inspect: impl FnOnce(&Volume, u64) -> T) -> Option<T> {
        let Time::Virtual { world, names } = &self.time else { return None };
        world.inspect(names.find(path)?, |volume| inspect(volume, world.now().0))
    }

    /// Advances virtual time by a span in which the volumes stay as they are, between two runs. Real time is not skipped.
    pub fn skip(&self, span: Nanos) {
        if let Time::Virtual { world, .. } = &self.time {
            world.skip(span);
        }
    }

    /// Sets the permit to write.
    pub fn set_permit(&mut self, permit: WritePermit) {
        self.permit = permit;
    }

    /// Passes the requests of the next run to `log`, those of the jobs that are logged.
    pub fn set_log(&mut self, log: Box<dyn CompletionLog>) {
        self.log = RefCell::new(Some(log));
    }

    /// The log of the next run.
    pub(crate) fn take_log(&self) -> Option<Box<dyn CompletionLog>> {
        self.log.take()
    }

    /// Makes `path` mean `file` in every plan that names it, whether or not the file has that name on disk. Jobs reopen
    /// it, each with its own flags; the caller's descriptor keeps an unnamed file alive. It is the session's own file
    /// and needs no permit.
    ///
    /// # Errors
    /// The file cannot be identified.
    pub fn hold(&mut self, path: PathBuf, file: File) -> io::Result<()> {
        let handle = TargetHandle::of(file, &path)?;
        self.own.insert(path, Arc::new(handle));
        Ok(())
    }

    /// The session's own file at `path`.
    pub(crate) fn own_file(&self, path: &Path) -> Option<&Arc<TargetHandle>> {
        self.own.get(path)
    }

    /// The target of `path` for the rest of the session.
    ///
    /// # Errors
    /// It does not exist, or cannot be inspected.
    pub(crate) fn handle(&self, path: &Path) -> io::Result<Arc<TargetHandle>> {
        let mut devices = self.devices.borrow_mut();
        if let Some(known) = self.own.get(path).or_else(|| devices.get(path)) {
            return Ok(known.clone());
        }
        let opened = TargetHandle::open(path)?;
        if opened.kind() != HandleKind::BlockDevice {
            return Ok(Arc::new(opened));
        }
        // Another name of a device shares its claim.
        let same = devices.values().find(|known| known.identity() == opened.identity()).cloned();
        let handle = same.unwrap_or_else(|| Arc::new(opened));
        devices.insert(path.to_owned(), handle.clone());
        Ok(handle)
    }

    /// Writes incompressible data to a file of the session or at a path, until it has `size` bytes or the session's
    /// clock passes `deadline`; returns its size then, in whole MiB if it is smaller.
    pub fn lay_out(
        &self,
        path: &Path,
        size: u64,
        deadline: Option<u64>,
        observer: &mut dyn FnMut(&LayoutProgress),
    ) -> Result<u64, RunError> {
        let handle = self.handle(path).map_err(|source| RunError::target("open", path, source))?;
        self.control.lays_out(Some(path).filter(|_| self.own_file(path).is_none()));
        let filled = layout::fill(self, &handle, size, deadline, observer);
        self.control.prepares();
        filled
    }

    /// Opens and lays out the targets of a plan, and refuses targets that must not be written to.
    pub fn prepare<'a>(
        &'a self,
        plan: &'a RunPlan,
        observer: &mut dyn RunObserver,
    ) -> Result<Prepared<'a>, RunError> {
        prepare::prepare(self, plan, observer)
    }

    /// Waits for the start of a run of single requests, which lasts `longest_ns` at the most, where the control has a gate.
    pub fn await_start(&self, longest_ns: Option<u64>) {
        self.control.pass_single(&self.time, longest_ns);
    }

    /// The measurement of this number begins, from 1: where the control has a gate, it counts phases by measurements.
    pub fn enter_step(&self, number: u32) {
        self.control.enter_step(number);
    }

    /// Prepares and starts immediately.
    pub fn run(&self, plan: &RunPlan, observer: &mut dyn RunObserver) -> Result<RunOutcome, RunError> {
        Ok(self.prepare(plan, observer)?.start(observer))
    }
}
