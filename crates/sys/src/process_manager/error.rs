//! Why a process manager could not be asked.

use std::io;
use std::time::Duration;

use crate::library::{LOADS_LIBRARIES, LibraryError};

/// Why a process manager could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ProcessManagerError {
    /// A variable of the launcher is missing or wrong.
    #[error("the launcher's environment has no valid {0}")]
    Environment(&'static str),
    /// The socket failed.
    #[error("the connection to the launcher failed: {}", crate::io::describe(.0))]
    Connection(#[source] io::Error),
    /// The launcher closed the socket.
    #[error("the launcher closed the connection")]
    Closed,
    /// No answer came in time; of a fence: not all ranks have come.
    #[error("the launcher did not answer '{asked}' within {limit:?}")]
    Deadline {
        /// The request.
        asked: &'static str,
        /// The time it was given.
        limit: Duration,
    },
    /// Another answer than the one that was expected.
    #[error("the launcher answered '{asked}' with '{answer}'")]
    Answer {
        /// The request.
        asked: &'static str,
        /// The answer, or what is wrong with it.
        answer: String,
    },
    /// A key or value that cannot be put.
    #[error("a {what} of {length} bytes cannot be put: {reason}")]
    Text {
        /// Key or value.
        what: &'static str,
        /// Its length.
        length: usize,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// No such value.
    #[error("rank {rank} put no value '{key}'")]
    NoValue {
        /// The rank that was asked for.
        rank: u32,
        /// The key.
        key: String,
    },
    /// PMIx's library cannot be loaded.
    #[error("cannot load the launcher's PMIx library: {0}")]
    Library(LibraryError),
    /// A thread for a call of PMIx's library cannot be started.
    #[error("cannot start a thread for '{asked}': {}", crate::io::describe(.source))]
    Thread {
        /// The request.
        asked: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl ProcessManagerError {
    /// What to do about it, where anything helps.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ProcessManagerError::Environment(_) => Some(
                "start all ranks with one launcher: srun --mpi=pmi2, mpiexec (MPICH) or mpirun (Open MPI)",
            ),
            ProcessManagerError::Deadline { asked: "fence", .. } => {
                Some("a rank has died, hangs, or was not started; see its host")
            }
            ProcessManagerError::Connection(_)
            | ProcessManagerError::Closed
            | ProcessManagerError::Deadline { .. } => Some("check that the launcher still runs"),
            ProcessManagerError::Answer { .. } => {
                Some("use another interface of the launcher: srun --mpi=pmi2, or mpiexec (MPICH)")
            }
            ProcessManagerError::Library(_) if !LOADS_LIBRARIES => Some(
                "start with srun --mpi=pmi2 or mpiexec (MPICH), which need no library, or use a fathom that loads libraries",
            ),
            ProcessManagerError::Library(_) => Some(
                "install libpmix (Debian: libpmix2) on every host, or start with srun --mpi=pmi2 or mpiexec (MPICH), which need none",
            ),
            ProcessManagerError::Thread { .. } => Some("raise the limit of processes (ulimit -u)"),
            ProcessManagerError::Text { .. } | ProcessManagerError::NoValue { .. } => None,
        }
    }
}
