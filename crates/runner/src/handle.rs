//! A run on its own thread, so that its controller never blocks with it.
//!
//! Everything that touches the target happens on that thread. The controlling thread receives events and waits a
//! bounded time for each; if the thread does not respond after a stop, the run is abandoned, and the results reported
//! so far remain.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use fathom_model::{Nanos, RunPlan};
use fathom_stats::{RunOutcome, Snapshot};
use fathom_sys::clock::{RealClock, monotonic_ns};

use crate::control::{InFlight, RunControl, RunState};
use crate::observe::RunObserver;
use crate::session::{Session, Time};
use crate::{LayoutProgress, RunError};

/// Longest wait of the controlling thread for an event before it checks the state of the run.
const POLL: Duration = Duration::from_millis(100);
/// Time for the run to respond after a stop request. Data written during file layout may take longer to reach the
/// device.
const PATIENCE_NS: u64 = 3_600_000_000;
const LAYOUT_PATIENCE_NS: u64 = 4_600_000_000;
/// Capacity of the event queue; the run waits when it is full.
const BACKLOG: usize = 1024;
/// Stack of the run's thread, as large as that of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// An event of a run.
#[derive(Clone, Debug)]
pub enum RunEvent {
    /// A file is being laid out.
    Layout(LayoutProgress),
    /// A snapshot of running workers, every half second of the session's clock.
    Snapshot(Box<Snapshot>),
    /// The answer to [`RunHandle::ask_for_outcome`].
    OutcomeSoFar(Box<RunOutcome>),
}

impl RunEvent {
    /// Passes the event to `observer`.
    pub fn tell(&self, observer: &mut (impl RunObserver + ?Sized)) {
        match self {
            RunEvent::Layout(progress) => observer.layout(progress),
            RunEvent::Snapshot(snapshot) => observer.snapshot(snapshot),
            RunEvent::OutcomeSoFar(outcome) => observer.outcome_so_far(outcome),
        }
    }
}

/// The progress of a run since the last call.
#[derive(Debug)]
pub enum Progress<E, T> {
    /// An event.
    Event(E),
    /// No event yet.
    Waiting,
    /// The thread of the run is stuck in this action: it does not respond to a stop request, or a single request
    /// exceeds its time limit. The handle is not usable any more.
    Stuck(RunState),
    /// The run has ended.
    Ended(T),
}

enum Message<E, T> {
    Event(E),
    /// The run waits until this is dropped.
    Settle {
        _waiting: Sender<()>,
    },
    Ended(Box<T>),
    Panicked(Box<dyn std::any::Any + Send>),
}

/// A run on its own thread, with events `E` and the result `T`. Dropping the handle requests a stop and does not wait.
pub struct RunHandle<E, T> {
    control: RunControl,
    messages: Receiver<Message<E, T>>,
    is_outcome_wanted: Arc<AtomicBool>,
    has_ended: bool,
    /// Time since which the run has not responded to a stop request, ns of the monotonic clock.
    stuck_since_ns: Option<u64>,
}

/// The run's end of a handle.
pub struct EventSender<E, T> {
    messages: SyncSender<Message<E, T>>,
    is_outcome_wanted: Arc<AtomicBool>,
    outcomes: Option<RegularOutcomes>,
}

/// Outcomes so far at regular times.
struct RegularOutcomes {
    interval: Nanos,
    next: Nanos,
}

impl RunHandle<RunEvent, Result<RunOutcome, RunError>> {
    /// Prepares and runs `plan` on the session that `session` makes, on its own thread. `control` determines the start
    /// of its phases.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn prepare(
        control: RunControl,
        session: impl FnOnce() -> Session + Send + 'static,
        plan: Arc<RunPlan>,
    ) -> io::Result<Self> {
        RunHandle::begin(control.clone(), move |sender| session().controlled(control).run(&plan, sender))
    }
}

impl<E: Send + 'static, T: Send + 'static> RunHandle<E, T> {
    /// Begins `work` on its own thread. It must run under `control`, and send its events to the sender.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn begin(
        control: RunControl,
        work: impl FnOnce(&mut EventSender<E, T>) -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, messages) = sync_channel(BACKLOG);
        let is_outcome_wanted = Arc::new(AtomicBool::new(false));
        let mut events =
            EventSender { messages: sender, is_outcome_wanted: is_outcome_wanted.clone(), outcomes: None };
        let body = move || {
            let last = match catch_unwind(AssertUnwindSafe(|| work(&mut events))) {
                Ok(result) => Message::Ended(Box::new(result)),
                Err(panic) => Message::Panicked(panic),
            };
            // The receiver is gone if the run was abandoned.
            let _ = events.messages.send(last);
        };
        std::thread::Builder::new().name("run".to_owned()).stack_size(STACK_BYTES).spawn(body)?;
        Ok(RunHandle { control, messages, is_outcome_wanted, has_ended: false, stuck_since_ns: None })
    }

    /// Begins `work` on its own thread, with another session on the clock of `session`, if that is real, which the same
    /// stop request ends. It is stuck if its preparation or a single request takes longer than `patience`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn beside(
        session: &Session,
        patience: Nanos,
        work: impl FnOnce(&Session, &mut EventSender<E, T>) -> T + Send + 'static,
    ) -> io::Result<Self> {
        let clock = match &session.time {
            Time::Real(clock) => *clock,
            Time::Virtual { .. } => RealClock::start(),
        };
        let control = session.control.beside(patience.0);
        RunHandle::begin(control.clone(), move |events| {
            let session = Session::on(Time::Real(clock)).controlled(control);
            session.control.set_in_flight(Some(InFlight { since_ns: session.now(), offset: 0 }));
            work(&session, events)
        })
    }

    /// The progress since the last call; waits at most a tenth of a second. Earlier events count as processed. A panic
    /// of the run is resumed here.
    pub fn wait(&mut self) -> Progress<E, T> {
        loop {
            let message = match self.messages.recv_timeout(POLL) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => {
                    return self.stuck().map_or(Progress::Waiting, Progress::Stuck);
                }
                Err(RecvTimeoutError::Disconnected) => unreachable!("a run's last message is its end"),
            };
            // Any message shows that the thread responds.
            self.stuck_since_ns = None;
            match message {
                Message::Settle { .. } => {}
                Message::Event(event) => return Progress::Event(event),
                Message::Panicked(panic) => resume_unwind(panic),
                Message::Ended(result) => {
                    self.has_ended = true;
                    return Progress::Ended(*result);
                }
            }
        }
    }

    /// The action in which the run is stuck, once the time limit has passed.
    fn stuck(&mut self) -> Option<RunState> {
        let state = self.control.state();
        if self.control.is_overdue() {
            return Some(state);
        }
        let patience_ns = match state {
            RunState::Preparing => PATIENCE_NS,
            RunState::LayingOut(_) => LAYOUT_PATIENCE_NS,
            RunState::Ready(_) | RunState::Running => u64::MAX,
        };
        if patience_ns == u64::MAX || !self.control.stop_handle().is_requested() {
            self.stuck_since_ns = None;
            return None;
        }
        let now = monotonic_ns();
        let since = *self.stuck_since_ns.get_or_insert(now);
        (now - since > patience_ns).then_some(state)
    }

    /// What its phases, its stop and its snapshots are asked of.
    pub fn control(&self) -> &RunControl {
        &self.control
    }

    /// Requests the outcome so far, which the run sends at its next tick.
    pub fn ask_for_outcome(&self) {
        self.is_outcome_wanted.store(true, Ordering::Release);
    }

    /// The reason of the stop request, if there was one.
    pub fn stop_reason(&self) -> Option<String> {
        self.control.stop_handle().reason()
    }
}

impl<E, T> Drop for RunHandle<E, T> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.control.stop_handle().request("the controlling thread has ended");
        }
    }
}

impl<E, T> EventSender<E, T> {
    /// Sends an event to the controlling thread; waits if its queue is full. Dropped if the run was abandoned.
    pub fn tell(&self, event: E) {
        let _ = self.messages.send(Message::Event(event));
    }

    /// Waits until all events so far have been processed, so that their processing (storing a test) does not coincide
    /// with the next measurement.
    pub fn settle(&self) {
        let (waiting, is_settled) = channel();
        if self.messages.send(Message::Settle { _waiting: waiting }).is_ok() {
            let _ = is_settled.recv();
        }
    }

    /// Sends the outcome so far every `interval`.
    pub fn send_outcomes(&mut self, interval: Nanos) {
        self.outcomes = Some(RegularOutcomes { interval, next: interval });
    }

    /// True once after each request for the outcome so far.
    pub fn takes_outcome_request(&self) -> bool {
        self.is_outcome_wanted.swap(false, Ordering::AcqRel)
    }
}

impl<E: From<RunEvent>, T> RunObserver for EventSender<E, T> {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.tell(RunEvent::Layout(progress.clone()).into());
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.tell(RunEvent::Snapshot(Box::new(snapshot.clone())).into());
    }

    fn wants_outcome_so_far(&mut self) -> bool {
        self.takes_outcome_request()
    }

    fn next_outcome_ns(&self) -> Option<u64> {
        self.outcomes.as_ref().map(|outcomes| outcomes.next.0)
    }

    fn takes_due_outcome(&mut self, elapsed_ns: u64) -> bool {
        self.outcomes.as_mut().is_some_and(|outcomes| outcomes.passes(Nanos(elapsed_ns)))
    }

    fn outcome_so_far(&mut self, outcome: &RunOutcome) {
        self.tell(RunEvent::OutcomeSoFar(Box::new(outcome.clone())).into());
    }
}

impl RegularOutcomes {
    /// True if one is due at `elapsed`.
    fn passes(&mut self, elapsed: Nanos) -> bool {
        if elapsed < self.next {
            return false;
        }
        let passed = elapsed.0 / self.interval.0.max(1);
        self.next = Nanos((passed + 1).saturating_mul(self.interval.0));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_regular_outcome_is_sent_however_many_are_due() {
        let due = |interval_ms: u64, ticks: &[u64]| -> Vec<bool> {
            let interval = Nanos::from_millis(interval_ms);
            let mut outcomes = RegularOutcomes { interval, next: interval };
            ticks.iter().map(|&tick| outcomes.passes(Nanos::from_millis(tick))).collect()
        };
        assert_eq!(due(1_000, &[500, 1_001, 1_500, 2_000, 2_501]), [false, true, false, true, false]);
        assert_eq!(due(100, &[500, 1_000]), [true, true]);
        assert_eq!(due(700, &[500, 1_000, 1_500, 3_000]), [false, true, true, true]);
    }
}
