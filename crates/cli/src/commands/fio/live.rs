//! `--tui` and `--live` of `fathom fio`: the jobs of a run as one test.

use std::sync::Arc;

use fathom_assess::{MeasurementStep, StepObserver};
use fathom_model::units::UnitSystem;
use fathom_model::{Nanos, RunPlan};
use fathom_options::CommandOptions;
use fathom_record::{RunHeader, TestRecord};
use fathom_runner::{RunControl, RunEvent};

use super::FioRefusal;
use super::keeper::targets;
use crate::exit::Complaint;
use crate::live::arguments::{LiveArguments, LiveStream};
use crate::live::observer::{LiveObserver, TimeLeftCell};
use crate::live::{Hub, LiveOutputs, LiveRun};

/// What shows a run of fio's jobs while it goes on.
pub struct FioLive {
    observer: LiveObserver<()>,
    left: TimeLeftCell,
    outputs: LiveOutputs,
}

impl FioLive {
    /// Opens what the command line asks for; others can follow a run that is kept.
    ///
    /// # Errors
    /// It names no stream, or the terminal, a file or an address cannot be had.
    pub fn open(
        command: &CommandOptions,
        plan: &Arc<RunPlan>,
        header: &RunHeader,
        control: RunControl,
        can_be_followed: bool,
    ) -> Result<FioLive, FioRefusal> {
        let parse = |text: &String| {
            LiveStream::parse(text).map_err(|sentence| {
                FioRefusal::new(format!("fio: cannot stream to --live={text}"), Some(sentence))
            })
        };
        let streams = command.live.iter().map(parse).collect::<Result<_, _>>()?;
        let arguments = LiveArguments { tui: command.tui, streams };
        let units = UnitSystem::default();
        let run = LiveRun { steps: Vec::new(), control, can_skip: true, units, can_be_followed };
        let outputs = LiveOutputs::open(&arguments, run).map_err(|complaint| {
            let Complaint { message, hint, .. } = complaint;
            FioRefusal::new(format!("fio: {message}"), hint)
        })?;
        let left = TimeLeftCell::default();
        let mut observer = LiveObserver::new((), outputs.hub(), left.clone());
        let names: Vec<String> = targets(plan).iter().map(|path| path.display().to_string()).collect();
        observer.begun(&RunHeader { target: names.join(","), ..header.clone() });
        let mut jobs: Vec<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
        jobs.dedup();
        let (id, title) = ("fio".to_owned(), jobs.join(", "));
        observer.step_begun(&MeasurementStep { id, title, number: 1, of: Some(1), spent_ns: 0 });
        Ok(FioLive { observer, left, outputs })
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

    /// The run has ended; the terminal is as it was.
    pub fn end(mut self, test: &TestRecord) {
        self.observer.step_ended(test);
    }
}
