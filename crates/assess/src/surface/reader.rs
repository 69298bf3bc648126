//! Reads that are inspected: whether blocks can be read, how long that takes, what they hold. Each series runs beside the
//! surface under a [`RunHandle`], which reports a read that is stuck, so that the surface does not get stuck with it.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use fathom_analysis::surface::scan::ByteRange;
use fathom_engine::{EngineSetup, OpenFile, RawEngineOptions, registry};
use fathom_model::{Nanos, Op, Request};
use fathom_runner::{Progress, RunHandle, Session, SingleCompletion, SingleFeed, SingleRequest};
use fathom_sys::io::{OpenFlags, open_target};
use fathom_sys::residency::is_hole;

use crate::machine;

/// A target that is read.
pub(crate) struct SurfaceReader {
    engine: &'static str,
    /// Without a file where it cannot be opened.
    setup: EngineSetup,
}

impl SurfaceReader {
    /// Opens the target at `path`, of which `size` bytes are read in blocks of at most `max_block`.
    pub fn open(
        path: &Path,
        size: u64,
        is_block_device: bool,
        direct: bool,
        max_block: usize,
    ) -> SurfaceReader {
        let file = open_target(path, OpenFlags { direct, ..OpenFlags::default() }).ok().map(Arc::new);
        let engine = if direct && machine::probe("io_uring").is_ok() { "io_uring" } else { "psync" };
        let setup = EngineSetup {
            depth: 1,
            max_block,
            files: vec![OpenFile { file, size, is_block_device, volume: 0 }],
            paths: Vec::new(),
            direct,
            writes: false,
            random: true,
            options: RawEngineOptions::default(),
            priorities: Default::default(),
        };
        SurfaceReader { engine, setup }
    }

    /// Makes the requests of `feed` and returns it: at its end, or as far as it came where a read took longer than `patience`,
    /// `session` was stopped, or nothing can be read at all.
    pub fn run<F>(&self, feed: F, patience: Nanos, session: &Session) -> F
    where
        F: SingleFeed + Clone + Send + 'static,
    {
        let feed = Arc::new(Mutex::new(feed));
        let (mut own, engine, setup) = (feed.clone(), self.engine, self.setup.clone());
        self.beside(patience, session, move |session, _| {
            session.requester(registry::find(engine)?, setup).ok()?.run(&mut own).ok()
        });
        feed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads `spans` in turn; fewer results than spans where [`SurfaceReader::run`] ended early.
    pub fn read(&self, spans: Vec<ByteRange>, patience: Nanos, session: &Session) -> Vec<Look> {
        self.run(Reads { spans, looks: Vec::new() }, patience, session).looks
    }

    /// Whether all of a range of a file is a hole; `None` where that is not known within `patience`.
    pub fn is_hole(&self, range: ByteRange, patience: Nanos, session: &Session) -> Option<bool> {
        self.beside(patience, session, move |_, file| is_hole(file, range.offset, range.length))
    }

    /// Does `work` on the open file; `None` where it takes longer than `patience` or `session` is stopped meanwhile.
    fn beside<T: Send + 'static>(
        &self,
        patience: Nanos,
        session: &Session,
        work: impl FnOnce(&Session, &File) -> T + Send + 'static,
    ) -> Option<T> {
        let (file, stop) = (self.setup.files.first()?.file.clone()?, session.stop_handle());
        let work = move |session: &Session, _: &mut _| work(session, &file);
        let mut handle: RunHandle<(), T> = RunHandle::beside(session, patience, work).ok()?;
        loop {
            match handle.wait() {
                Progress::Ended(result) => return Some(result),
                Progress::Stuck(_) => return None,
                Progress::Waiting if stop.is_requested() => return None,
                Progress::Waiting | Progress::Event(()) => {}
            }
        }
    }
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Positive errno of a read that failed.
    pub errno: Option<i32>,
    pub time_ns: u64,
    /// Every byte is zero.
    pub is_zero: bool,
}

const EIO: i32 = 5;

impl Look {
    /// The result of `completion`, which brought the first bytes of `payload`.
    pub fn of(completion: &SingleCompletion, payload: &[u8]) -> Look {
        let SingleCompletion { request, start_ns, end_ns, .. } = *completion;
        // Less than was asked for is the end of a file that has become shorter.
        let errno = match completion.result.unwrap_or(0) {
            result if result < 0 => Some(-result as i32),
            result if result < i64::from(request.len) => Some(EIO),
            _ => None,
        };
        let is_zero = errno.is_none() && payload.iter().take(request.len as usize).all(|byte| *byte == 0);
        Look { errno, time_ns: end_ns - start_ns, is_zero }
    }
}

/// A read of `span`, at once.
pub(super) fn read_of(span: ByteRange) -> SingleRequest {
    let request = Request { op: Op::Read, file: 0, len: span.length as u32, offset: span.offset };
    SingleRequest { request, not_before_ns: 0, spin_ns: 0, syncs: false }
}

/// Reads some ranges in turn.
#[derive(Clone)]
struct Reads {
    spans: Vec<ByteRange>,
    looks: Vec<Look>,
}

impl SingleFeed for Reads {
    fn next(&mut self, _now: u64) -> Option<SingleRequest> {
        self.spans.get(self.looks.len()).copied().map(read_of)
    }

    fn completed(&mut self, completion: &SingleCompletion, payload: &[u8]) {
        self.looks.push(Look::of(completion, payload));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    const PATIENCE: Nanos = Nanos::from_secs(10);

    fn range(offset: u64, length: u64) -> ByteRange {
        ByteRange { offset, length }
    }

    #[test]
    fn reads_report_zeros_errors_and_holes() {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        file.as_file().write_all_at(&[7], 5 * 4096).unwrap();
        let (reader, session) =
            (SurfaceReader::open(file.path(), 1 << 20, false, false, 65_536), Session::real());
        let spans = [0, 5 * 4096, 1 << 20].map(|offset| range(offset, 4096)).to_vec();
        let looks = reader.read(spans.clone(), PATIENCE, &session);
        let found: Vec<_> = looks.iter().map(|look| (look.errno, look.is_zero)).collect();
        // Behind its end there is nothing to be read.
        assert_eq!(found, [(None, true), (None, false), (Some(EIO), false)]);
        assert_eq!(reader.is_hole(range(1 << 19, 65_536), PATIENCE, &session), Some(true));
        assert_eq!(reader.is_hole(range(0, 65_536), PATIENCE, &session), Some(false));
        let missing = SurfaceReader::open(Path::new("/no/such/file"), 0, false, false, 512);
        assert_eq!(missing.read(spans.clone(), PATIENCE, &session), []);
        session.stop_handle().request("signal 2");
        assert_eq!(reader.read(spans, PATIENCE, &session), []);
    }
}
