//! The state that a run shares with its controller: stop request, gate before each phase, and progress.
//!
//! The run accesses it once per phase and once per tick of the observer, never per request.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fathom_stats::Snapshot;
use fathom_sys::clock::RealClock;

use crate::session::Time;
use crate::stop::StopHandle;

/// Interval at which a waiting phase checks for a stop request.
const STOP_POLL: Duration = Duration::from_millis(20);

/// The current action of a run's thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunState {
    /// Inspecting and opening targets; a system call may hang.
    #[default]
    Preparing,
    /// File layout before the first phase, which may hang too; with the path of the file, if it has one.
    LayingOut(Option<PathBuf>),
    /// Every worker of a phase is ready, and the phase waits to be started.
    Ready(ReadyPhase),
    /// Workers run. The runner abandons workers that do not respond.
    Running,
}

/// A phase whose workers have opened their engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyPhase {
    /// Its number, from 0, over all runs of the session.
    pub number: u64,
    /// When it became ready, ns of the session's clock.
    pub at_ns: u64,
    /// Its length at the most, if runtimes determine it, ns.
    pub longest_ns: Option<u64>,
}

/// Decides when each phase of a run may start.
pub trait PhaseGate: Send + Sync {
    /// Returns when the phase may start, or after a stop request. Called on the thread of the run.
    fn pass(&self, phase: &ReadyPhase, stop: &StopHandle);

    /// The measurement of this number begins, from 1, whose phases follow.
    fn enter_step(&self, _number: u32) {}
}

/// A single request in flight, or the preparation of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// When it began, ns of the session's clock.
    pub since_ns: u64,
    /// Offset, bytes.
    pub offset: u64,
}

/// Controls the runs of one session. Clones control the same runs and may be sent to other threads.
#[derive(Clone, Default)]
pub struct RunControl {
    stop: StopHandle,
    shared: Arc<Shared>,
    /// A single request that takes longer is stuck, ns; `None` = it may take as long as it likes.
    patience_ns: Option<u64>,
    /// Decides when phases start, instead of the holder of the control.
    gate: Option<Arc<dyn PhaseGate>>,
}

#[derive(Default)]
struct Shared {
    view: Mutex<View>,
    changed: Condvar,
    /// Start of the single request in flight, ns of the session's clock plus 1; 0 = none.
    waiting_since: AtomicU64,
    /// Offset, bytes.
    waiting_at: AtomicU64,
}

#[derive(Default)]
struct View {
    state: RunState,
    snapshot: Option<Snapshot>,
    /// The clock of the session, in real time.
    clock: Option<RealClock>,
    gate: Gate,
    /// Why the running phase is to end at its next tick.
    phase_end: Option<String>,
}

/// The gate before each phase.
#[derive(Default)]
struct Gate {
    /// Phases wait to be started; otherwise they start as soon as they are ready.
    holds: bool,
    /// The number of the next phase.
    next: u64,
    /// Start of the ready phase, ns of the session's clock; `None` while it waits.
    start_at: Option<u64>,
}

impl RunControl {
    /// Every phase waits, once its workers are ready, until [`RunControl::start_at`] is called.
    pub fn holding_phases() -> RunControl {
        let control = RunControl::default();
        control.view().gate.holds = true;
        control
    }

    /// `self` with phases that `gate` lets start.
    pub fn with_gate(self, gate: Arc<dyn PhaseGate>) -> RunControl {
        RunControl { gate: Some(gate), ..self }
    }

    /// `self` with the stop request `stop`.
    pub fn with_stop(self, stop: StopHandle) -> RunControl {
        RunControl { stop, ..self }
    }

    /// Controls a run beside, which a stop of this one ends as well. A single request of it is stuck after `patience_ns`.
    pub(crate) fn beside(&self, patience_ns: u64) -> RunControl {
        RunControl { stop: self.stop.part(), patience_ns: Some(patience_ns), ..RunControl::default() }
    }

    /// The request to stop.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// The current action of the run.
    pub fn state(&self) -> RunState {
        self.view().state.clone()
    }

    /// The phase that waits to be started, if any.
    pub fn ready(&self) -> Option<ReadyPhase> {
        match self.view().state {
            RunState::Ready(phase) => Some(phase),
            _ => None,
        }
    }

    /// The latest snapshot of a running phase, at most half a second old on the session's clock.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.view().snapshot.clone()
    }

    /// ns of the session's clock; in virtual time, when the waiting phase became ready. `None` before the session
    /// exists, or without a waiting phase.
    pub fn now_ns(&self) -> Option<u64> {
        let view = self.view();
        match (&view.clock, &view.state) {
            (Some(clock), _) => Some(clock.now()),
            (None, RunState::Ready(phase)) => Some(phase.at_ns),
            (None, _) => None,
        }
    }

    /// Starts the waiting phase at `instant_ns` of the session's clock, immediately if that has passed. False if no
    /// phase waits, or it has a start time already.
    pub fn start_at(&self, instant_ns: u64) -> bool {
        let mut view = self.view();
        let is_held = matches!(view.state, RunState::Ready(_)) && view.gate.start_at.is_none();
        if is_held {
            view.gate.start_at = Some(instant_ns);
            self.shared.changed.notify_all();
        }
        is_held
    }

    /// Ends the running phase at its next tick, as its runtime would; `reason` is in the outcome, which is interrupted by it.
    /// Later phases and runs go on. False if no phase runs.
    pub fn end_phase(&self, reason: &str) -> bool {
        let mut view = self.view();
        let is_running = view.state == RunState::Running;
        if is_running {
            view.phase_end.get_or_insert_with(|| reason.to_owned());
        }
        is_running
    }

    /// The reason for which the running phase is to end, once.
    pub(crate) fn takes_phase_end(&self) -> Option<String> {
        self.view().phase_end.take()
    }

    /// The single request in flight, if the run makes single requests and reports them.
    pub fn in_flight(&self) -> Option<InFlight> {
        let since_ns = self.shared.waiting_since.load(Ordering::Acquire).checked_sub(1)?;
        Some(InFlight { since_ns, offset: self.shared.waiting_at.load(Ordering::Relaxed) })
    }

    /// The single request in flight and its age, ns; `None` in virtual time.
    pub fn waited(&self) -> Option<(InFlight, u64)> {
        let (in_flight, now) = (self.in_flight()?, self.now_ns()?);
        Some((in_flight, now.saturating_sub(in_flight.since_ns)))
    }

    /// Whether a single request exceeds its time limit.
    pub(crate) fn is_overdue(&self) -> bool {
        self.patience_ns
            .is_some_and(|patience_ns| self.waited().is_some_and(|(_, waited_ns)| waited_ns > patience_ns))
    }

    /// Sets the single request in flight; `None` after its completion.
    pub fn set_in_flight(&self, in_flight: Option<InFlight>) {
        if let Some(InFlight { offset, .. }) = in_flight {
            self.shared.waiting_at.store(offset, Ordering::Relaxed);
        }
        let since = in_flight.map_or(0, |in_flight| in_flight.since_ns + 1);
        self.shared.waiting_since.store(since, Ordering::Release);
    }

    /// Sets the clock of the session.
    pub(crate) fn set_clock(&self, clock: RealClock) {
        self.view().clock = Some(clock);
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.shared.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run begins to inspect its targets.
    pub(crate) fn prepares(&self) {
        self.view().state = RunState::Preparing;
    }

    /// The run begins the layout of a file.
    pub(crate) fn lays_out(&self, named: Option<&Path>) {
        self.view().state = RunState::LayingOut(named.map(Path::to_path_buf));
    }

    /// Stores the latest snapshot of a running phase.
    pub(crate) fn publish(&self, snapshot: &Snapshot) {
        self.view().snapshot = Some(snapshot.clone());
    }

    /// All workers of a phase are ready, which lasts `longest_ns` if runtimes determine it: returns when the phase starts, or on a
    /// stop request.
    pub(crate) fn pass_gate(&self, time: &Time, longest_ns: Option<u64>) {
        if let Some(instant_ns) = self.wait_for_start(time, longest_ns) {
            time.wait_until(instant_ns, || !self.stop.is_requested());
        }
        let mut view = self.view();
        // A request that came between two phases was meant for neither.
        (view.state, view.phase_end) = (RunState::Running, None);
    }

    /// Waits for the start of a run of single requests of `longest_ns` at the most, where phases are gated.
    pub(crate) fn pass_single(&self, time: &Time, longest_ns: Option<u64>) {
        if self.gate.is_some() {
            self.pass_gate(time, longest_ns);
            // A single request that hangs is noticed as in the preparation.
            self.prepares();
        }
    }

    pub(crate) fn enter_step(&self, number: u32) {
        self.gate.iter().for_each(|gate| gate.enter_step(number));
    }

    /// The start time of the phase; `None` = immediately.
    fn wait_for_start(&self, time: &Time, longest_ns: Option<u64>) -> Option<u64> {
        let mut view = self.view();
        let ready = ReadyPhase { number: view.gate.next, at_ns: time.now(), longest_ns };
        view.gate.next += 1;
        if let Some(gate) = &self.gate {
            view.state = RunState::Ready(ready);
            drop(view);
            gate.pass(&ready, &self.stop);
            return None;
        }
        if !view.gate.holds {
            return None;
        }
        view.state = RunState::Ready(ready);
        view.gate.start_at = None;
        while view.gate.start_at.is_none() && !self.stop.is_requested() {
            let waited = self.shared.changed.wait_timeout(view, STOP_POLL);
            view = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        view.gate.start_at.take()
    }
}
