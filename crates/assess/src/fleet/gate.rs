//! What holds the run of a rank: the gate before each phase, and the number of the test that it is at.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fathom_record::{MissedSlots, RoundsRecord, RunHeader, RunRecord, TestRecord};
use fathom_runner::{LayoutProgress, PhaseGate, ReadyPhase, RunObserver, StopHandle};
use fathom_stats::{RunOutcome, Snapshot};

use super::meeting::RunPoint;
use super::message::{GateAnswer, Request};
use crate::steps::{MeasurementStep, StepObserver};

/// How often a phase that waits looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Lets each phase start when it starts on all ranks.
pub struct FleetGate {
    requests: Mutex<Sender<Request>>,
    /// The test that runs, from 1.
    step: AtomicU32,
    /// The last phase that was ready.
    last: Mutex<RunPoint>,
}

impl FleetGate {
    pub(super) fn new(requests: Sender<Request>) -> FleetGate {
        let last = Mutex::new(RunPoint::default());
        FleetGate { requests: Mutex::new(requests), step: AtomicU32::new(1), last }
    }

    /// The test of this number begins, from 1.
    pub fn enter_step(&self, number: u32) {
        self.step.store(number, Ordering::Release);
    }

    /// The next phase of the present test.
    fn next_point(&self) -> RunPoint {
        let step = self.step.load(Ordering::Acquire);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let stage = if last.step == step { last.stage + 1 } else { 1 };
        *last = RunPoint { step, stage };
        *last
    }
}

impl PhaseGate for FleetGate {
    fn pass(&self, phase: &ReadyPhase, stop: &StopHandle) {
        let (reply, answer) = channel();
        let point = self.next_point();
        let request = Request::Ready { point, longest_ns: phase.longest_ns, reply };
        let sent = self.requests.lock().unwrap_or_else(PoisonError::into_inner).send(request);
        if sent.is_err() {
            stop.request("the ranks have parted");
        }
        while !stop.is_requested() {
            match answer.recv_timeout(LOOK) {
                Ok(GateAnswer::Start) => break,
                Ok(GateAnswer::Never(reason)) => stop.request(&reason),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => stop.request("the ranks have parted"),
            }
        }
    }
}

/// Tells the gate of each test, and an observer of everything.
pub struct FleetSteps<'a> {
    gate: Arc<FleetGate>,
    observer: &'a mut dyn StepObserver,
}

impl<'a> FleetSteps<'a> {
    /// Tells `gate` and `observer`.
    pub fn new(gate: Arc<FleetGate>, observer: &'a mut dyn StepObserver) -> FleetSteps<'a> {
        FleetSteps { gate, observer }
    }
}

impl RunObserver for FleetSteps<'_> {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.observer.layout(progress);
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.observer.snapshot(snapshot);
    }

    fn wants_outcome_so_far(&mut self) -> bool {
        self.observer.wants_outcome_so_far()
    }

    fn next_outcome_ns(&self) -> Option<u64> {
        self.observer.next_outcome_ns()
    }

    fn takes_due_outcome(&mut self, elapsed_ns: u64) -> bool {
        self.observer.takes_due_outcome(elapsed_ns)
    }

    fn outcome_so_far(&mut self, outcome: &RunOutcome) {
        self.observer.outcome_so_far(outcome);
    }

    fn ends_phase(&mut self) -> bool {
        self.observer.ends_phase()
    }
}

impl StepObserver for FleetSteps<'_> {
    fn begun(&mut self, header: &RunHeader) {
        self.observer.begun(header);
    }

    fn step_begun(&mut self, step: &MeasurementStep) {
        self.gate.enter_step(step.number as u32);
        self.observer.step_begun(step);
    }

    fn round_begun(&mut self, index: usize, so_far: &RoundsRecord) {
        self.observer.round_begun(index, so_far);
    }

    fn lane(&mut self, lane: usize) {
        self.observer.lane(lane);
    }

    fn run_ended(&mut self, record: &RunRecord) {
        self.observer.run_ended(record);
    }

    fn waiting(&mut self, due_unix_ms: u64) {
        self.observer.waiting(due_unix_ms);
    }

    fn slot_failed(&mut self, failed: &MissedSlots) {
        self.observer.slot_failed(failed);
    }

    fn step_ended(&mut self, test: &TestRecord) {
        self.observer.step_ended(test);
    }
}
