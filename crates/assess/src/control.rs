//! A measurement of several tests on a thread of its own: begins it, follows it, has each test kept as it ends, and makes the
//! partial record where its thread does not come back from the target.

use std::collections::BTreeMap;
use std::io;

use fathom_record::{MissedSlots, RoundsRecord, RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_runner::{EventSender, Progress, RunControl, RunEvent, RunHandle, RunObserver, RunState, Session};

use crate::findings::findings_of;
use crate::site::RunSettings;
use crate::{AssessError, published_rates};

/// Drives a measurement whose result is `T`.
pub type MeasurementHandle<T = RunRecord> = RunHandle<MeasurementEvent, Result<T, AssessError>>;

/// Keeps what is measured, as it is measured.
pub trait TestKeeper {
    /// The run begins.
    fn begin(&mut self, header: &RunHeader);
    /// A test has ended.
    fn append(&mut self, test: &TestRecord);
    /// Several runs are measured in turns: what follows belongs to this one.
    fn lane(&mut self, _lane: usize) {}
    /// The run of the current lane has ended.
    fn end(&mut self, _record: &RunRecord) {}
}

/// How a measurement ended.
#[derive(Debug)]
pub enum MeasurementEnd<T = RunRecord> {
    /// By itself, or as it was asked to.
    Ended(T),
    /// Its thread is stuck in a request to the target, and was given up after a stop.
    GivenUp {
        /// What it is stuck in.
        note: String,
        /// The tests that had ended; `None` where the target was not ready. Of runs that are measured in turns the first that had
        /// not ended; the keeper received each that had begun.
        record: Option<Box<RunRecord>>,
    },
}

/// Begins `measure` under `control` on a thread of its own, where it makes its session.
///
/// # Errors
/// The thread cannot be started.
pub fn begin_measurement<T: Send + 'static>(
    control: RunControl,
    measure: impl FnOnce(RunControl, &mut dyn StepObserver) -> Result<T, AssessError> + Send + 'static,
) -> io::Result<MeasurementHandle<T>> {
    RunHandle::begin(control.clone(), move |events| measure(control, events))
}

/// Follows a measurement to its end: tells `observer` of what happens, and has `keeper` keep each test before the next begins.
///
/// # Errors
/// It could not begin.
pub fn follow<T: Send + 'static>(
    mut handle: MeasurementHandle<T>,
    keeper: &mut dyn TestKeeper,
    observer: &mut dyn StepObserver,
) -> Result<MeasurementEnd<T>, AssessError> {
    let mut partial: BTreeMap<usize, RunRecord> = BTreeMap::new();
    let (mut lane, mut inspected) = (0, None);
    loop {
        match handle.wait() {
            Progress::Waiting => {}
            Progress::Ended(ended) => return ended.map(MeasurementEnd::Ended),
            Progress::Stuck(state) => {
                let note = stuck_note(&state);
                let mut first: Option<Box<RunRecord>> = None;
                for (lane, record) in partial {
                    let record = incomplete(record, handle.stop_reason(), note.clone());
                    keeper.lane(lane);
                    keeper.end(&record);
                    first.get_or_insert(Box::new(record));
                }
                if let Some(header) = inspected {
                    let record = RunRecord { header, ..RunRecord::default() };
                    let record = incomplete(record, handle.stop_reason(), note.clone());
                    first.get_or_insert(Box::new(record));
                }
                return Ok(MeasurementEnd::GivenUp { note, record: first });
            }
            Progress::Event(event) => {
                match &event {
                    MeasurementEvent::Run(event) => event.tell(observer),
                    event => observer.step(event),
                }
                match event {
                    MeasurementEvent::Inspecting(header) => inspected = Some(*header),
                    MeasurementEvent::Begun(header) => {
                        keeper.begin(&header);
                        partial.insert(lane, RunRecord { header: *header, ..RunRecord::default() });
                    }
                    MeasurementEvent::StepEnded(test) => {
                        keeper.append(&test);
                        partial.entry(lane).and_modify(|record| record.tests.push((*test).clone()));
                    }
                    MeasurementEvent::Lane(next) => {
                        lane = next;
                        keeper.lane(next);
                    }
                    MeasurementEvent::RunEnded(record) => {
                        partial.remove(&lane);
                        keeper.end(&record);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The record of a measurement that was given up.
fn incomplete(mut record: RunRecord, stop_reason: Option<String>, note: String) -> RunRecord {
    record.status = TestStatus::Incomplete;
    record.header.interrupted = stop_reason;
    record.header.notes.push(note);
    record.findings = findings_of(&record);
    record
}

/// What a run that was given up is stuck in.
pub fn stuck_note(state: &RunState) -> String {
    let (what, left) = match state {
        RunState::LayingOut(Some(name)) => {
            ("file layout did not end", format!("; {} may be left incomplete: remove it", name.display()))
        }
        RunState::LayingOut(None) => ("file layout did not end", String::new()),
        _ => ("the target was not made ready", String::new()),
    };
    format!("{what}: the device does not respond, and fathom's run thread is stuck in the kernel{left}")
}

impl From<RunEvent> for MeasurementEvent {
    fn from(event: RunEvent) -> MeasurementEvent {
        MeasurementEvent::Run(event)
    }
}

impl<T> StepObserver for EventSender<MeasurementEvent, T> {
    fn step(&mut self, event: &MeasurementEvent) {
        self.tell(event.clone());
        // What storing it writes is no load beside the next test.
        if matches!(
            event,
            MeasurementEvent::Begun(_) | MeasurementEvent::StepEnded(_) | MeasurementEvent::RunEnded(_)
        ) {
            self.settle();
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::sync::mpsc::channel;

    #[derive(Default)]
    struct Kept(Vec<String>);

    impl TestKeeper for Kept {
        fn begin(&mut self, header: &RunHeader) {
            self.0.push(format!("begun {}", header.target));
        }
        fn append(&mut self, test: &TestRecord) {
            self.0.push(test.id.clone());
        }
    }

    #[test]
    fn a_thread_that_gets_stuck_in_the_inspection_leaves_a_record_without_tests() {
        let (release, released) = channel::<()>();
        let control = RunControl::default();
        let stop = control.stop_handle();
        let handle = begin_measurement(control, move |_, observer| {
            let header = RunHeader { target: "sda".to_owned(), ..RunHeader::default() };
            observer.step(&MeasurementEvent::Inspecting(Box::new(header)));
            stop.request("signal 2");
            let _ = released.recv();
            Ok(RunRecord::default())
        });
        let mut kept = Kept::default();
        let end = follow(handle.expect("a thread"), &mut kept, &mut ()).expect("it began");
        drop(release);
        let MeasurementEnd::GivenUp { note, record: Some(record) } = end else { panic!("{end:?}") };
        assert_eq!((record.status, record.header.target.as_str()), (TestStatus::Incomplete, "sda"));
        assert_eq!((record.header.notes, kept.0), (vec![note], Vec::new()), "what has not begun is not kept");
    }

    /// A measurement that has made one test and then hangs, or ends.
    fn measured(hangs: bool) -> (MeasurementEnd, Vec<String>) {
        let (release, released) = channel::<()>();
        let control = RunControl::default();
        let stop = control.stop_handle();
        let handle = begin_measurement(control, move |_, observer| {
            let header = RunHeader { target: "sda".to_owned(), ..RunHeader::default() };
            observer.step(&MeasurementEvent::Begun(Box::new(header.clone())));
            let test = TestRecord { id: "first".to_owned(), ..TestRecord::default() };
            observer.step(&MeasurementEvent::StepEnded(Box::new(test.clone())));
            if hangs {
                stop.request("signal 2");
                let _ = released.recv();
            }
            Ok(RunRecord { header, tests: vec![test], ..RunRecord::default() })
        });
        let mut kept = Kept::default();
        let end = follow(handle.expect("a thread"), &mut kept, &mut ()).expect("it began");
        drop(release);
        (end, kept.0)
    }

    #[test]
    fn tests_are_kept_as_they_end() {
        let (end, kept) = measured(false);
        assert!(matches!(end, MeasurementEnd::Ended(record) if record.tests.len() == 1));
        assert_eq!(kept, ["begun sda", "first"]);
    }

    #[test]
    fn the_partial_record_has_the_tests_that_ended_before_the_thread_got_stuck() {
        let (end, kept) = measured(true);
        let MeasurementEnd::GivenUp { note, record: Some(record) } = end else { panic!("{end:?}") };
        assert_eq!((record.status, record.tests.len()), (TestStatus::Incomplete, 1));
        assert_eq!(record.header.interrupted.as_deref(), Some("signal 2"));
        assert_eq!(
            (record.header.notes, kept),
            (vec![note], vec!["begun sda".to_owned(), "first".to_owned()])
        );
    }

    #[test]
    fn a_file_that_would_stay_is_named() {
        let note = |name: Option<&str>| stuck_note(&RunState::LayingOut(name.map(PathBuf::from)));
        assert!(note(Some("/mnt/data")).ends_with("; /mnt/data may be left incomplete: remove it"));
        assert!(note(None).starts_with("file layout did not end: ") && note(None).ends_with("in the kernel"));
        assert!(stuck_note(&RunState::Preparing).starts_with("the target was not made ready: "));
    }
}
