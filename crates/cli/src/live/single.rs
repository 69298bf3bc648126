//! Shows a run of one test, for commands that follow it by themselves.

use std::sync::Arc;

use fathom_assess::{MeasurementEvent, MeasurementStep, StepObserver};
use fathom_model::Nanos;
use fathom_record::{RunHeader, TestRecord};
use fathom_report::live::LiveState;
use fathom_report::live::json::LiveLine;
use fathom_runner::RunEvent;

use super::observer::{LiveObserver, TimeLeftCell};
use super::{Hub, LiveOutputs};

/// A run of one test that is shown while it goes on.
pub struct SingleTest {
    observer: LiveObserver<()>,
    left: TimeLeftCell,
    outputs: LiveOutputs,
}

impl SingleTest {
    /// Shown by `outputs`.
    pub fn new(outputs: LiveOutputs) -> SingleTest {
        let left = TimeLeftCell::default();
        SingleTest { observer: LiveObserver::new((), outputs.hub(), left.clone()), left, outputs }
    }

    /// The run begins, and its test.
    pub fn begin(&mut self, header: &RunHeader, id: &str, title: String) {
        self.observer.step(&MeasurementEvent::Begun(Box::new(header.clone())));
        let id = id.to_owned();
        let step = MeasurementStep { id, title, number: 1, of: Some(1), spent_ns: 0 };
        self.observer.step(&MeasurementEvent::StepBegun(step));
    }

    /// True where a view has the terminal.
    pub fn has_screen(&self) -> bool {
        self.outputs.has_screen()
    }

    /// The state of the run, where somebody may read it.
    pub fn hub(&self) -> Option<Arc<Hub>> {
        self.outputs.hub()
    }

    /// The run goes on.
    pub fn take(&mut self, event: &RunEvent) {
        if let RunEvent::Snapshot(snapshot) = event {
            self.left.set(snapshot.remaining_ns.map(Nanos));
        }
        event.tell(&mut self.observer);
    }

    /// Changes what is shown, and tells the streams.
    pub fn change(&self, line: Option<LiveLine<'_>>, change: impl FnOnce(&mut LiveState)) {
        if let Some(hub) = self.outputs.hub() {
            hub.change(line, change);
        }
    }

    /// The run has ended; the terminal is as it was.
    pub fn end(mut self, test: &TestRecord) {
        self.observer.step(&MeasurementEvent::StepEnded(Box::new(test.clone())));
    }
}
