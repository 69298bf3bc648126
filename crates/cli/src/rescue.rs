//! What a run has so far, and its report from another thread where the first is stuck.
//!
//! The runner gives up on workers that do not come back. But between tests the first thread itself asks the target (its
//! size, its state), and a device that hangs then would hold the report up for as long as it likes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fathom_history::{Store, Warning};
use fathom_record::{RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_runner::StopHandle;

use crate::exit::Exit;
use crate::output;

/// The watcher looks this often.
const LOOK: Duration = Duration::from_millis(100);
/// Looks after a stop was asked for at which the first thread is given up. What was written while laying out may take a
/// moment to get through.
const PATIENCE: u32 = 35;
const PATIENCE_LAYING_OUT: u32 = 45;

/// What there is so far.
struct Partial {
    header: Option<RunHeader>,
    tests: Vec<TestRecord>,
    store: Store,
    /// The file with a name that is being laid out.
    laid_out: Option<PathBuf>,
}

/// Shared between the run and who reports in its place.
#[derive(Clone)]
pub struct Rescue {
    partial: Arc<Mutex<Partial>>,
    /// The first thread may be asking the target.
    is_preparing: Arc<AtomicBool>,
    is_laying_out: Arc<AtomicBool>,
    is_reported: Arc<AtomicBool>,
}

/// Ends the watching when dropped.
pub struct RescueWatch {
    _alive: Sender<()>,
}

impl Rescue {
    /// Nothing has been measured yet.
    pub fn new() -> Rescue {
        let partial = Partial { header: None, tests: Vec::new(), store: Store::None, laid_out: None };
        Rescue {
            partial: Arc::new(Mutex::new(partial)),
            is_preparing: Arc::new(AtomicBool::new(true)),
            is_laying_out: Arc::new(AtomicBool::new(false)),
            is_reported: Arc::new(AtomicBool::new(false)),
        }
    }

    fn partial(&self) -> MutexGuard<'_, Partial> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run has begun and is stored in `store`.
    pub fn begun(&self, header: &RunHeader, store: Store) {
        let mut partial = self.partial();
        (partial.header, partial.store) = (Some(header.clone()), store);
    }

    /// The target is being filled; `name` is that of a file that has one, and would stay.
    pub fn laying_out(&self, name: Option<&Path>) {
        let laid_out = &mut self.partial().laid_out;
        if laid_out.as_deref() != name {
            *laid_out = name.map(Path::to_path_buf);
        }
        self.is_laying_out.store(true, Ordering::Release);
    }

    /// A test begins: its target is made ready.
    pub fn preparing(&self) {
        self.is_laying_out.store(false, Ordering::Release);
        self.is_preparing.store(true, Ordering::Release);
    }

    /// Workers are at it; they are given up by the runner where they do not come back.
    pub fn working(&self) {
        self.is_preparing.store(false, Ordering::Release);
    }

    /// A test has ended; what storing it has to say.
    pub fn ended(&self, test: &TestRecord) -> Option<Warning> {
        self.working();
        let mut partial = self.partial();
        partial.tests.push(test.clone());
        partial.store.append(test)
    }

    /// Where the tests were stored, for who reports. Does not come back where that is somebody else.
    pub fn into_store(self) -> Store {
        if self.is_reported.swap(true, Ordering::AcqRel) {
            loop {
                std::thread::park();
            }
        }
        std::mem::replace(&mut self.partial().store, Store::None)
    }

    /// Watches until what it returns is dropped. Where the first thread does not come back after `stop`, `report` is
    /// given what there is, and ends the program.
    pub fn watch(
        &self,
        stop: StopHandle,
        report: impl FnOnce(Option<RunRecord>, Store) + Send + 'static,
    ) -> std::io::Result<RescueWatch> {
        let (sender, receiver) = channel();
        let rescue = self.clone();
        std::thread::Builder::new().name("rescue".to_owned()).spawn(move || {
            if rescue.is_stuck(&stop, &receiver) && !rescue.is_reported.swap(true, Ordering::AcqRel) {
                let (record, store) = rescue.what_there_is(&stop);
                report(record, store);
            }
        })?;
        Ok(RescueWatch { _alive: sender })
    }

    /// Waits until the first thread has been stuck for too long; false where the run ends before.
    fn is_stuck(&self, stop: &StopHandle, ended: &Receiver<()>) -> bool {
        let mut looks = 0;
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK) {
            let is_waiting = stop.is_requested() && self.is_preparing.load(Ordering::Acquire);
            looks = if is_waiting { looks + 1 } else { 0 };
            let is_laying_out = self.is_laying_out.load(Ordering::Acquire);
            if looks > (if is_laying_out { PATIENCE_LAYING_OUT } else { PATIENCE }) {
                return true;
            }
        }
        false
    }

    /// The record so far, where a run has begun, and where its tests were stored.
    fn what_there_is(&self, stop: &StopHandle) -> (Option<RunRecord>, Store) {
        let mut partial = self.partial();
        let is_laying_out = self.is_laying_out.load(Ordering::Acquire);
        let what = if is_laying_out { "file layout did not end" } else { "the target was not made ready" };
        let left = partial.laid_out.take().filter(|_| is_laying_out);
        let left = left
            .map(|name| format!("; {} may be left incomplete: remove it", name.display()))
            .unwrap_or_default();
        let note = format!(
            "{what}: the device does not respond, and fathom's first thread is stuck in the kernel{left}"
        );
        output::warn(&format!("fathom: {note}"));
        let tests = std::mem::take(&mut partial.tests);
        let record = partial.header.take().map(|mut header| {
            header.interrupted = stop.reason();
            header.notes.push(note);
            let mut record =
                RunRecord { status: TestStatus::Incomplete, header, tests, ..RunRecord::default() };
            record.findings = fathom_analysis::findings(&record);
            record
        });
        (record, std::mem::replace(&mut partial.store, Store::None))
    }
}

/// Shows `record`, where a run has begun, and ends the program, from whatever thread.
pub fn end(record: Option<RunRecord>, exit: Exit, report: impl FnOnce(&RunRecord) -> std::io::Result<()>) {
    match record.as_ref().map(report) {
        None => output::warn("fathom: nothing was measured"),
        Some(Ok(())) => {}
        Some(Err(error)) => {
            output::warn(&format!("fathom: cannot write the report: {}", output::plain(&error)))
        }
    }
    std::process::exit(i32::from(exit.number()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(rescue: &Rescue, stop: &StopHandle) -> Receiver<Option<RunRecord>> {
        let (sender, receiver) = channel();
        let watch = rescue.watch(stop.clone(), move |record, _| sender.send(record).unwrap()).unwrap();
        // Not dropped: the first thread is stuck.
        std::mem::forget(watch);
        receiver
    }

    #[test]
    fn what_was_measured_is_reported_where_the_first_thread_is_stuck() {
        let (rescue, stop) = (Rescue::new(), StopHandle::default());
        rescue.begun(&RunHeader::default(), Store::None);
        rescue.ended(&TestRecord { id: "first".to_owned(), ..TestRecord::default() });
        rescue.preparing();
        let report = told(&rescue, &stop);
        stop.request("signal 2");
        let record = report.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!(
            (record.status, record.header.interrupted.as_deref()),
            (TestStatus::Incomplete, Some("signal 2"))
        );
        assert_eq!(record.tests.len(), 1);
    }

    #[test]
    fn one_reports_alone() {
        let (rescue, stop) = (Rescue::new(), StopHandle::default());
        let report = told(&rescue, &stop);
        drop(rescue.clone().into_store());
        stop.request("signal 2");
        // The watcher gives up without a word, and its sender with it.
        assert_eq!(report.recv_timeout(Duration::from_secs(60)), Err(RecvTimeoutError::Disconnected));
    }
}
