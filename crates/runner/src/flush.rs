//! The flush between two runs of a session: what a cache still holds of the writes of one would hold up the next.

use std::io;
use std::path::Path;
use std::sync::Arc;

use fathom_engine::{EngineSetup, OpenFile, RawEngineOptions, registry};
use fathom_model::{Nanos, Op, Request};
use fathom_sys::io::OpenFlags;

use crate::RunError;
use crate::session::{Session, Time};
use crate::single::{SingleCompletion, SingleFeed, SingleRequest};

/// One data sync, and its completion.
#[derive(Default)]
struct Flush(Option<SingleCompletion>);

impl SingleFeed for Flush {
    fn next(&mut self, _now: u64) -> Option<SingleRequest> {
        let request = Request { op: Op::Datasync, file: 0, len: 0, offset: 0 };
        let at_once = SingleRequest { request, not_before_ns: 0, spin_ns: 0, syncs: false };
        self.0.is_none().then_some(at_once)
    }

    fn completed(&mut self, completion: &SingleCompletion, _payload: &[u8]) {
        self.0 = Some(*completion);
    }
}

impl Session {
    /// Flushes the target at `path` and returns how long that took: what was written to it is on its medium afterwards.
    ///
    /// # Errors
    /// The target cannot be opened or flushed, or the run was asked to stop before.
    pub fn flush(&self, path: &Path) -> Result<Nanos, RunError> {
        let failed = |source| RunError::target("flush", path, source);
        let (file, volume) = match &self.time {
            Time::Real(_) => {
                let opened = self.handle(path).and_then(|target| target.reopen(OpenFlags::default()));
                (Some(Arc::new(opened.map_err(failed)?)), 0)
            }
            Time::Virtual { names, .. } => (None, names.find(path).unwrap_or_default()),
        };
        let setup = EngineSetup {
            depth: 1,
            max_block: 512,
            files: vec![OpenFile { file, size: 0, is_block_device: false, volume }],
            paths: Vec::new(),
            direct: false,
            writes: false,
            random: false,
            options: RawEngineOptions::default(),
            priorities: Default::default(),
        };
        let engine = |error: fathom_engine::EngineError| failed(io::Error::other(error.to_string()));
        let entry = registry::find("psync").ok_or_else(|| failed(io::ErrorKind::Unsupported.into()))?;
        let mut flush = Flush::default();
        self.requester(entry, setup).map_err(engine)?.run(&mut flush).map_err(engine)?;
        let Some(completion) = flush.0 else {
            let reason = self.stop_handle().reason().unwrap_or_default();
            return Err(RunError::Stopped { reason });
        };
        match completion.result {
            Some(result) if result < 0 => Err(failed(io::Error::from_raw_os_error(-result as i32))),
            _ => Ok(Nanos(completion.end_ns - completion.start_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_engine::sim::FixedLatency;

    use super::*;

    #[test]
    fn a_flush_takes_as_long_as_the_target_takes() {
        let (one, flush) = (Nanos(1), Nanos::from_millis(3));
        let model = FixedLatency { read: one, write: one, flush, parallelism: 1 };
        assert_eq!(Session::simulated(model, 1 << 20).flush(Path::new("any")).unwrap(), flush);
    }

    #[test]
    fn a_target_that_is_not_there_is_named() {
        let error = Session::real().flush(Path::new("/no/such/file")).unwrap_err();
        assert!(error.to_string().contains("/no/such/file"), "{error}");
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Session::real().flush(file.path()).is_ok());
    }

    #[test]
    fn a_stop_prevents_it() {
        let session = Session::real();
        session.stop_handle().request("signal 2");
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(session.flush(file.path()), Err(RunError::Stopped { .. })));
    }
}
