//! What shows a run while it goes on, beside the progress of its command: every event changes the state that views and streams
//! read.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use fathom_assess::{MeasurementEvent, MeasurementStep, StepObserver, findings_of};
use fathom_model::Nanos;
use fathom_record::{RunRecord, TestStatus};
use fathom_report::live::json::LiveLine;
use fathom_report::live::{LiveStage, LiveTest};
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::{RunOutcome, Snapshot};

use super::hub::Hub;

/// Time left as the command's own progress estimates it; `None` before it can.
pub type TimeLeftCell = Rc<Cell<Option<Nanos>>>;

/// Tells the command's own progress, and the hub where there is one.
pub struct LiveObserver<O> {
    progress: O,
    hub: Option<Arc<Hub>>,
    left: TimeLeftCell,
    /// The tests so far of each run that is measured in turns.
    records: BTreeMap<usize, RunRecord>,
    lane: usize,
}

impl<O> LiveObserver<O> {
    /// Tells `progress`, which estimates the time left in `left`, and `hub`.
    pub fn new(progress: O, hub: Option<Arc<Hub>>, left: TimeLeftCell) -> LiveObserver<O> {
        LiveObserver { progress, hub, left, records: BTreeMap::new(), lane: 0 }
    }

    /// What the tests so far tell.
    fn find(&self, hub: &Hub) {
        let findings: Vec<_> = self.records.values().flat_map(findings_of).collect();
        let known = hub.state().findings.clone();
        hub.change(None, |state| state.set_findings(findings.clone()));
        for finding in findings.iter().filter(|finding| !known.contains(finding)) {
            hub.change(Some(LiveLine::Finding(finding)), |_| {});
        }
    }
}

impl<O: RunObserver> RunObserver for LiveObserver<O> {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.progress.layout(progress);
        if let Some(hub) = &self.hub {
            hub.change(Some(LiveLine::Layout), |state| {
                state.lay_out(progress.done_bytes, progress.total_bytes);
                state.time_left = self.left.get();
            });
        }
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.progress.snapshot(snapshot);
        if let Some(hub) = &self.hub {
            hub.change(Some(LiveLine::Snapshot), |state| {
                state.tick(snapshot);
                state.time_left = self.left.get();
            });
        }
    }

    fn wants_outcome_so_far(&mut self) -> bool {
        self.progress.wants_outcome_so_far()
    }

    fn next_outcome_ns(&self) -> Option<u64> {
        self.progress.next_outcome_ns()
    }

    fn takes_due_outcome(&mut self, elapsed_ns: u64) -> bool {
        self.progress.takes_due_outcome(elapsed_ns)
    }

    fn outcome_so_far(&mut self, outcome: &RunOutcome) {
        self.progress.outcome_so_far(outcome);
    }

    fn ends_phase(&mut self) -> bool {
        self.progress.ends_phase()
    }
}

impl<O: StepObserver> StepObserver for LiveObserver<O> {
    fn step(&mut self, event: &MeasurementEvent) {
        self.progress.step(event);
        if let MeasurementEvent::Lane(lane) = event {
            self.lane = *lane;
        }
        let Some(hub) = self.hub.clone() else { return };
        match event {
            MeasurementEvent::Begun(header) => {
                if hub.wants_findings {
                    let (status, header) = (TestStatus::Complete, (**header).clone());
                    self.records.insert(self.lane, RunRecord { status, header, ..RunRecord::default() });
                }
                hub.change(Some(LiveLine::Begun), |state| state.begin(header));
            }
            MeasurementEvent::StepBegun(step) => {
                let MeasurementStep { id, title, number, of, .. } = step.clone();
                let test = LiveTest { id, title, number, of };
                hub.change(Some(LiveLine::TestBegun), |state| state.begin_test(test));
            }
            MeasurementEvent::Waiting(_) => hub.change(None, |state| state.enter(LiveStage::Waiting)),
            MeasurementEvent::StepEnded(test) => {
                hub.change(None, |state| state.end_test(test));
                hub.change(Some(LiveLine::TestEnded(test)), |_| {});
                if let Some(record) = self.records.get_mut(&self.lane) {
                    record.tests.push((**test).clone());
                    self.find(&hub);
                }
            }
            _ => {}
        }
    }
}
