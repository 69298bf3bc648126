//! Why a job of many ranks cannot begin.

use fathom_sys::process_manager::ProcessManagerError;

/// Why a job of many ranks cannot begin. The failure of one rank later is a result, not one of these.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// No launcher started this process.
    #[error("--fleet joins a job that a launcher started, and none started this process")]
    NoLauncher,
    /// The launcher announced more ranks than the job has.
    #[error("this process is alone in its job, but {variable} says {promised} processes")]
    Alone {
        /// The variable.
        variable: &'static str,
        /// Its value.
        promised: u32,
    },
    /// The launcher cannot be asked.
    #[error("{phase}: {source}")]
    Manager {
        /// What the ranks were about to do.
        phase: &'static str,
        /// Why.
        source: ProcessManagerError,
    },
    /// What another rank put cannot be read.
    #[error("{phase}: rank {rank} sent what cannot be read: {reason}")]
    Message {
        /// What the ranks were about to do.
        phase: &'static str,
        /// The rank.
        rank: u32,
        /// What is wrong with it.
        reason: String,
    },
    /// Rank 0 found that the ranks cannot measure together.
    #[error("{reason}")]
    Refused {
        /// Which rank, and why.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// The roles cannot be used.
    #[error("{file}: {reason}")]
    Roles {
        /// The name of the file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The ranks cannot share the target as was asked for.
    #[error("--fleet-split=offset: {0}")]
    Split(String),
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(String),
}

impl FleetError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let text: &str = match self {
            FleetError::NoLauncher => {
                "start it with srun --mpi=pmi2, mpiexec (MPICH) or mpirun (Open MPI), or omit --fleet"
            }
            FleetError::Alone { .. } => {
                "start all ranks with one launcher, and Slurm's with srun --mpi=pmi2 or --mpi=pmix; \
                 otherwise each would report as if it were all of them"
            }
            FleetError::Manager { .. } if self.is_deadline() => {
                "a rank has died, hangs or was not started; --fleet-join=TIME waits longer for the first meeting"
            }
            FleetError::Manager { source, .. } => return source.hint().map(str::to_owned),
            FleetError::Message { .. } => "use one version of fathom on every host",
            FleetError::Refused { hint, .. } => hint,
            FleetError::Roles { .. } => {
                "write [[role]] with name, ranks = \"0-3,8\" or hosts = [\"h1\"], and [role.options] of fio"
            }
            FleetError::Split(_) => "give each job a size in bytes: size=100g",
            FleetError::Thread(_) => "raise the number of processes (ulimit -u)",
        };
        Some(text.to_owned()).filter(|hint| !hint.is_empty())
    }

    /// True where the ranks did not come to a fence, so that the launcher has to end the job.
    pub fn is_deadline(&self) -> bool {
        matches!(self, FleetError::Manager { source: ProcessManagerError::Deadline { .. }, .. })
    }
}
