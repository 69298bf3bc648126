//! PMIx: the launcher is Open MPI's `mpirun` or `srun --mpi=pmix`, and is asked through its library, which is loaded when needed.
//!
//! Each call runs on a thread of its own that owns all memory the library sees: a call that does not return in time is left behind
//! with its thread, and the rank goes on to end the job.

mod abi;

use std::ffi::CString;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use abi::{Functions, Proc, Status, Value};

use super::connection::Asked;
use super::{JobPlace, ProcessManager, ProcessManagerError, TextLimits};

/// The interface limits keys to 511 bytes, and values not at all; larger ones are of no use to callers that divide anyway.
const LIMITS: TextLimits = TextLimits { key: 511, value: 16 << 10 };
/// The time that the library has to pass a request to abort on.
const ABORT_LIMIT: Duration = Duration::from_secs(1);

/// A process's place in a job that a server of PMIx knows.
#[derive(Debug)]
pub(super) struct Pmix {
    functions: &'static Functions,
    place: Proc,
    size: u32,
    /// A call did not return; another could only wait for it.
    is_stuck: bool,
}

impl Pmix {
    /// Joins the job of the server that the environment names.
    pub(super) fn join(limit: Duration) -> Result<Pmix, ProcessManagerError> {
        Self::with(abi::functions().map_err(ProcessManagerError::Library)?, limit)
    }

    fn with(functions: &'static Functions, limit: Duration) -> Result<Pmix, ProcessManagerError> {
        let asked = Asked::new("PMIx_Init", limit);
        let place = done(functions, asked, within(asked, move || functions.init())?)?;
        let mut pmix = Pmix { functions, place, size: 0, is_stuck: false };
        let asked = asked.then("PMIx_Get(pmix.job.size)");
        let everybody = place.of_rank(abi::ANY_RANK);
        let value = pmix.call(asked, move |functions| functions.get(&everybody, abi::JOB_SIZE))?;
        let is_inside = |size: &u32| place.rank() < *size;
        match value {
            Value::Number(size) => pmix.size = Some(size).filter(is_inside).unwrap_or(0),
            Value::Text(_) | Value::Other(_) => {}
        }
        match pmix.size {
            0 => Err(asked.unexpected(format!("{value:?} for rank {}", place.rank()))),
            _ => Ok(pmix),
        }
    }

    /// Makes a call of the library with the time limit of `asked`.
    fn call<T: Send + 'static>(
        &mut self,
        asked: Asked,
        call: impl FnOnce(&'static Functions) -> Result<T, Status> + Send + 'static,
    ) -> Result<T, ProcessManagerError> {
        if self.is_stuck {
            return Err(asked.is_late());
        }
        let functions = self.functions;
        let returned = within(asked, move || call(functions));
        self.is_stuck = matches!(returned, Err(ProcessManagerError::Deadline { .. }));
        done(functions, asked, returned?)
    }
}

/// Runs `call` on a thread of its own and waits until its limit.
fn within<T: Send + 'static>(
    asked: Asked,
    call: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ProcessManagerError> {
    let (send, receive) = mpsc::sync_channel(1);
    let run = move || {
        // Nobody receives where the limit has passed.
        send.send(call()).ok();
    };
    let spawned = thread::Builder::new().name("pmix".to_owned()).spawn(run);
    spawned.map_err(|source| ProcessManagerError::Thread { asked: asked.name, source })?;
    receive.recv_timeout(asked.left()?).map_err(|_| asked.is_late())
}

/// The result, or the library's text for its failure.
fn done<T>(functions: &Functions, asked: Asked, result: Result<T, Status>) -> Result<T, ProcessManagerError> {
    result.map_err(|status| asked.unexpected(functions.describe(status)))
}

impl ProcessManager for Pmix {
    fn place(&self) -> JobPlace {
        JobPlace { interface: "PMIx", rank: self.place.rank(), size: self.size, limits: LIMITS }
    }

    fn put(&mut self, key: &str, value: &str, limit: Duration) -> Result<(), ProcessManagerError> {
        LIMITS.check_key(key)?;
        LIMITS.check_value(value)?;
        let (key, value) = (c_text(key), c_text(value));
        self.call(Asked::new("PMIx_Put", limit), move |functions| functions.put(&key, &value))
    }

    fn get(&mut self, rank: u32, key: &str, limit: Duration) -> Result<String, ProcessManagerError> {
        LIMITS.check_key(key)?;
        let asked = Asked::new("PMIx_Get", limit);
        let (process, name) = (self.place.of_rank(rank), c_text(key));
        let found = self.call(asked, move |functions| match functions.get(&process, &name) {
            Err(status) if status.is_not_found() => Ok(None),
            found => found.map(Some),
        })?;
        match found {
            Some(Value::Text(text)) => Ok(text),
            Some(other) => Err(asked.unexpected(format!("{other:?}"))),
            None => Err(ProcessManagerError::NoValue { rank, key: key.to_owned() }),
        }
    }

    fn fence(&mut self, limit: Duration) -> Result<(), ProcessManagerError> {
        self.call(Asked::new("fence", limit), |functions| functions.commit().and_then(|()| functions.fence()))
    }

    fn finish(&mut self, limit: Duration) -> Result<(), ProcessManagerError> {
        self.call(Asked::new("PMIx_Finalize", limit), Functions::finalize)
    }

    fn abort(&mut self, code: i32, message: &str) {
        let (functions, message) = (self.functions, c_text(message));
        within(Asked::new("PMIx_Abort", ABORT_LIMIT), move || functions.abort(code, &message)).ok();
    }
}

/// A C string; what follows a NUL is cut off.
fn c_text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
