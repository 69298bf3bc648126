//! The files of one worker, with the functions that all engines share: refusing impossible requests, and operations
//! without an asynchronous form.

use std::fs::File;
use std::sync::Arc;

use fathom_model::{Op, Request};
use fathom_sys::{SetupError, SetupStep, buffer::BufferPool, transfer};

use crate::{EngineError, EngineSetup, OpenFile};

pub(crate) const EINVAL: i64 = -22;
const EBADF: i64 = -9;
const EBUSY: i64 = -16;

/// One open file.
pub(crate) struct EngineTarget {
    pub file: Arc<File>,
    pub is_block_device: bool,
}

/// The open files of a worker, in the order requests index them.
pub(crate) struct Targets {
    list: Box<[EngineTarget]>,
    max_block: usize,
}

impl Targets {
    /// Takes the files of a setup; fails if one is not open.
    pub fn new(engine: &'static str, setup: &EngineSetup) -> Result<Self, EngineError> {
        let opened = |(index, open): (usize, &OpenFile)| match &open.file {
            Some(file) => Ok(EngineTarget { file: Arc::clone(file), is_block_device: open.is_block_device }),
            None => Err(EngineError {
                engine,
                attempted: format!("use file {index}, which is not open"),
                source: std::io::Error::from_raw_os_error(EBADF as i32),
                hint: None,
            }),
        };
        let list = setup.files.iter().enumerate().map(opened).collect::<Result<_, _>>()?;
        Ok(Targets { list, max_block: setup.max_block })
    }

    /// The files themselves.
    pub fn files(&self) -> Vec<Arc<File>> {
        self.list.iter().map(|target| Arc::clone(&target.file)).collect()
    }

    /// The target of a request, or the negative errno of the failed request: EBADF for an unknown file, EINVAL for a
    /// length above the largest block or an offset that no file can have.
    #[inline(always)]
    pub fn check(&self, request: &Request) -> Result<&EngineTarget, i64> {
        let Some(target) = self.list.get(request.file as usize) else { return Err(EBADF) };
        if request.len as usize > self.max_block || request.offset > i64::MAX as u64 {
            return Err(EINVAL);
        }
        Ok(target)
    }

    /// Executes a sync or trim synchronously; a request that is impossible returns a negative errno.
    pub fn execute(&self, request: &Request) -> i64 {
        match self.check(request) {
            Ok(target) => target.execute(request),
            Err(errno) => errno,
        }
    }
}

impl EngineTarget {
    /// Executes a sync or trim synchronously. Reads and writes return EINVAL.
    pub fn execute(&self, request: &Request) -> i64 {
        match request.op {
            Op::Sync => transfer::sync(&self.file, false),
            Op::Datasync => transfer::sync(&self.file, true),
            Op::Trim => self.trim(request),
            Op::Read | Op::Write => EINVAL,
        }
    }

    /// Linux does not discard blocks of a claimed device that are dirty in the page cache: they are written back first.
    fn trim(&self, request: &Request) -> i64 {
        let trim = || transfer::trim(&self.file, self.is_block_device, request.offset, request.len);
        match trim() {
            EBUSY if self.is_block_device && transfer::sync(&self.file, true) == 0 => trim(),
            result => result,
        }
    }
}

/// The buffers of an engine without a ring that owns them.
pub(crate) fn buffers(engine: &'static str, setup: &EngineSetup) -> Result<BufferPool, EngineError> {
    BufferPool::new(setup.depth, setup.max_block).map_err(|source| EngineError {
        engine,
        attempted: format!("allocate {} buffers of {} bytes", setup.depth, setup.max_block),
        source,
        hint: Some(BUFFER_HINT.to_owned()),
    })
}

const BUFFER_HINT: &str = "lower iodepth, bs or numjobs";

/// The error of a failed setup, with the remedy for its step.
pub(crate) fn setup_failed(engine: &'static str, error: SetupError, hint: Option<String>) -> EngineError {
    let general = (error.step == SetupStep::Buffers).then(|| BUFFER_HINT.to_owned());
    EngineError { engine, attempted: error.attempted, source: error.source, hint: hint.or(general) }
}

/// The error of an engine that failed during a run.
pub(crate) fn run_failed(engine: &'static str, attempted: &str, source: std::io::Error) -> EngineError {
    EngineError { engine, attempted: attempted.to_owned(), source, hint: None }
}
