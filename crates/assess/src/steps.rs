//! A run whose next measurement follows from those before: the observer receives each, the record grows by it, and a stop
//! ends it with what there is.

use fathom_record::{MissedSlots, RoundsRecord, RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_runner::{RunObserver, Session};

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

/// Receives the events of such a run. Every method is optional.
pub trait StepObserver: RunObserver {
    /// The target is ready, and is inspected before measuring begins.
    fn inspecting(&mut self, _header: &RunHeader) {}
    /// Measuring begins.
    fn begun(&mut self, _header: &RunHeader) {}
    /// A measurement begins.
    fn step_begun(&mut self, _step: &MeasurementStep) {}
    /// A round of the measurement begins, this being what came of those before it.
    fn round_begun(&mut self, _index: usize, _so_far: &RoundsRecord) {}
    /// Several runs are measured in turns: what follows belongs to this one.
    fn lane(&mut self, _lane: usize) {}
    /// The run of the current lane has ended; another may begin there.
    fn run_ended(&mut self, _record: &RunRecord) {}
    /// The next run of a schedule is waited for until this instant.
    fn waiting(&mut self, _due_unix_ms: u64) {}
    /// A run of a schedule could not begin.
    fn slot_failed(&mut self, _failed: &MissedSlots) {}
    /// A measurement has ended, been skipped or failed, or was made by the run that this one goes on with.
    fn step_ended(&mut self, _test: &TestRecord) {}
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
        observer.begun(&header);
        let record = RunRecord { status: TestStatus::Complete, header, ..RunRecord::default() };
        Steps { session, observer, record, settings, of: None }
    }

    /// The next measurement begins.
    pub fn next(&mut self, id: &str, title: &str, spent_ns: u64) {
        let (number, of) = (self.record.tests.len() + 1, self.of);
        let (id, title) = (id.to_owned(), title.to_owned());
        self.session.enter_step(number as u32);
        self.observer.step_begun(&MeasurementStep { id, title, number, of, spent_ns });
    }

    /// Adds a measurement whose command the job text has, or that another run made.
    pub fn add(&mut self, mut test: TestRecord) {
        published_rates::look_up(&self.record.header, self.settings, &mut test);
        self.observer.step_ended(&test);
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
