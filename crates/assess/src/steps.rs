//! A run whose next measurement follows from those before: the observer receives each, the record grows by it, and a stop
//! ends it with what there is.

use fathom_record::{MissedSlots, RoundsRecord, RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_runner::{RunEvent, RunObserver, Session};

use crate::published_rates;
use crate::settings::RunSettings;

/// A measurement that is about to begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasurementStep {
    /// The id of its test.
    pub id: String,
    /// What it does, for people.
    pub title: String,
    /// Its number, from 1.
    pub number: usize,
    /// How many there will be, where that is known.
    pub of: Option<usize>,
    /// ns of the budget that are spent.
    pub spent_ns: u64,
}

/// What a measurement tells.
#[derive(Clone, Debug)]
pub enum MeasurementEvent {
    /// A test's own run goes on, or a file is laid out.
    Run(RunEvent),
    /// The target is ready, and is inspected before measuring begins.
    Inspecting(Box<RunHeader>),
    /// Measuring begins.
    Begun(Box<RunHeader>),
    /// A measurement begins.
    StepBegun(MeasurementStep),
    /// A round of the measurement begins: its number, from 0, and what came of those before it.
    RoundBegun(usize, Box<RoundsRecord>),
    /// A measurement has ended, been skipped or failed, or was made by the run that this one goes on with.
    StepEnded(Box<TestRecord>),
    /// Several runs are measured in turns: what follows belongs to this one.
    Lane(usize),
    /// The run of the current lane has ended; another may begin there.
    RunEnded(Box<RunRecord>),
    /// The next run of a schedule is waited for until this instant, ms since the epoch.
    Waiting(u64),
    /// A run of a schedule could not begin.
    SlotFailed(MissedSlots),
}

/// Receives the events of a measurement; those of a test's own run come as calls of [`RunObserver`].
pub trait StepObserver: RunObserver {
    fn step(&mut self, _event: &MeasurementEvent) {}
}

impl StepObserver for () {}

/// The state of such a run.
pub(crate) struct Steps<'a> {
    pub session: &'a Session,
    pub observer: &'a mut dyn StepObserver,
    pub record: RunRecord,
    settings: &'a RunSettings,
    /// How many there will be, where that is known.
    pub of: Option<usize>,
}

impl<'a> Steps<'a> {
    /// The target is ready.
    pub fn begin(
        header: RunHeader,
        settings: &'a RunSettings,
        session: &'a Session,
        observer: &'a mut dyn StepObserver,
    ) -> Steps<'a> {
        observer.step(&MeasurementEvent::Begun(Box::new(header.clone())));
        let record = RunRecord { status: TestStatus::Complete, header, ..RunRecord::default() };
        Steps { session, observer, record, settings, of: None }
    }

    /// The next measurement begins.
    pub fn next(&mut self, id: &str, title: &str, spent_ns: u64) {
        let (number, of) = (self.record.tests.len() + 1, self.of);
        let (id, title) = (id.to_owned(), title.to_owned());
        self.session.enter_step(number as u32);
        let step = MeasurementStep { id, title, number, of, spent_ns };
        self.observer.step(&MeasurementEvent::StepBegun(step));
    }

    /// Adds a measurement whose command the job text has, or that another run made.
    pub fn add(&mut self, mut test: TestRecord) {
        published_rates::look_up(&self.record.header, self.settings, &mut test);
        self.observer.step(&MeasurementEvent::StepEnded(Box::new(test.clone())));
        self.record.tests.push(test);
    }

    /// Keeps a measurement that has ended.
    pub fn keep(&mut self, test: TestRecord) {
        if !test.fio.is_empty() {
            self.record.header.job_text.push_str(&test.fio);
            self.record.header.job_text.push('\n');
        }
        self.add(test);
    }

    /// ns that the measurements took.
    pub fn elapsed_ns(&self) -> u64 {
        self.record.tests.iter().map(|test| test.elapsed_ns).sum()
    }

    /// Adds what a reader of the results should know.
    pub fn note(&mut self, note: String) {
        self.record.header.notes.push(note);
    }

    /// True where nothing more is to begin.
    pub fn is_over(&self) -> bool {
        self.session.stop_handle().is_requested()
    }

    /// The record of what was measured, as far as it came.
    pub fn end(mut self) -> RunRecord {
        if let Some(reason) = self.session.stop_handle().reason() {
            self.record.header.interrupted = Some(reason);
            self.record.status = TestStatus::Incomplete;
        } else if self.record.tests.iter().all(|test| test.status == TestStatus::Failed) {
            self.record.status = TestStatus::Failed;
        }
        self.record
    }
}
