//! The process manager of a parallel job: how the processes that one launcher started on many hosts meet, exchange short texts and
//! end together.
//!
//! A launcher (`srun`, `mpiexec`, `mpirun`) serves its processes through one of three interfaces: PMI-1 and PMI-2 are text on an
//! inherited socket, PMIx is a library of the launcher that is loaded when it is needed. [`join`] finds the one in the environment.
//! All of them offer the same: a rank, a number of ranks, a space of keys and values, and a barrier behind which the values are
//! known to everybody. A process that dies never enters the barrier and the launcher does not say so, so that each call has a limit;
//! what to do then is the caller's decision, and [`ProcessManager::abort`] ends the whole job. Values have a length that depends on
//! the interface; encoding and division of longer ones belong to the caller.

mod connection;
mod error;
mod pmi;
mod pmix;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::time::Duration;

pub use error::ProcessManagerError;

use connection::Inherited;
use pmi::Pmi;
use pmix::Pmix;

/// Variables of launchers that started this process, with the number of processes of its job.
const PROCESSES: &[&str] = &["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];
/// The variable of an allocation: only a promise where no launcher runs in it.
const ALLOCATION: &str = "SLURM_NTASKS";

/// Longest texts that a process manager takes, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLimits {
    /// Of a key.
    pub key: usize,
    /// Of a value.
    pub value: usize,
}

impl TextLimits {
    /// Refuses a key that is too long, or that a launcher would cut.
    fn check_key(self, key: &str) -> Result<(), ProcessManagerError> {
        check("key", key, self.key)
    }

    /// The same of a value.
    fn check_value(self, value: &str) -> Result<(), ProcessManagerError> {
        check("value", value, self.value)
    }
}

fn check(what: &'static str, text: &str, max: usize) -> Result<(), ProcessManagerError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b';');
    let reason = match text.len() {
        0 => "it is empty",
        length if length > max => "it is longer than the launcher takes",
        _ if !is_plain => "it is not printable ASCII without blanks and semicolons",
        _ => return Ok(()),
    };
    Err(ProcessManagerError::Text { what, length: text.len(), reason })
}

/// A process's place in its job.
#[derive(Clone, Copy, Debug)]
pub struct JobPlace {
    /// `PMI-1`, `PMI-2`, `PMIx`.
    pub interface: &'static str,
    /// Number of this process, from 0.
    pub rank: u32,
    /// Processes of the job.
    pub size: u32,
    /// The longest texts that can be put.
    pub limits: TextLimits,
}

/// A process's connection to the launcher of its job.
///
/// Keys are unique over all ranks and over time: no key is put twice. Keys and values are printable ASCII without blanks and
/// semicolons, and not empty. After [`ProcessManagerError::Deadline`] the connection serves for [`ProcessManager::abort`] only.
pub trait ProcessManager: Send + Debug {
    /// The place of this process.
    fn place(&self) -> JobPlace;

    /// Makes a value known to all processes once all have entered the next fence.
    ///
    /// # Errors
    /// The text is not permitted; the launcher does not take it, or does not answer within `limit`.
    fn put(&mut self, key: &str, value: &str, limit: Duration) -> Result<(), ProcessManagerError>;

    /// The value that `rank` has put before the last fence.
    ///
    /// # Errors
    /// That rank put no such key; the launcher does not answer within `limit`.
    fn get(&mut self, rank: u32, key: &str, limit: Duration) -> Result<String, ProcessManagerError>;

    /// Waits until every process of the job has come here. A launcher that notices the end of one (PMIx) may let the others pass
    /// before it ends them: what that rank has not put is missing then.
    ///
    /// # Errors
    /// [`ProcessManagerError::Deadline`]: one has not come within `limit`; the launcher does not say which.
    fn fence(&mut self, limit: Duration) -> Result<(), ProcessManagerError>;

    /// Leaves the job. A process that ends without it makes launchers end the job.
    ///
    /// # Errors
    /// The launcher does not answer within `limit`.
    fn finish(&mut self, limit: Duration) -> Result<(), ProcessManagerError>;

    /// Asks the launcher to end all processes of the job with this exit code. Returns where the launcher does not end this one
    /// first; the caller then has to end itself.
    fn abort(&mut self, code: i32, message: &str);
}

/// Joins the job that this process was started for; `None` where no launcher started it. `variable` looks up the environment.
///
/// To be called once, before other threads run: the library of PMIx may change the environment.
///
/// # Errors
/// The variables of the launcher are wrong; it does not answer within `limit`, or speaks otherwise; PMIx's library is missing.
pub fn join(
    variable: &dyn Fn(&str) -> Option<String>,
    limit: Duration,
) -> Result<Option<Box<dyn ProcessManager>>, ProcessManagerError> {
    // The descriptor decides: variables outlive their launcher, as where one launcher is started by another, but an open socket
    // is left by the innermost one.
    if let Some(inherited) = Inherited::from_environment(variable)? {
        return Ok(Some(match is_of_slurm(variable) {
            true => Box::new(Pmi::connect_2(inherited, variable("PMI_JOBID"), limit)?),
            false => Box::new(Pmi::connect_1(inherited, limit)?),
        }));
    }
    match variable("PMIX_RANK").is_some() && variable("PMIX_NAMESPACE").is_some() {
        true => Ok(Some(Box::new(Pmix::join(limit)?))),
        false => Ok(None),
    }
}

/// True where Slurm's own server is behind the socket, which names its job in the environment. Processes of a hydra that Slurm has
/// started inherit that name; hydra, which always counts the ranks of a host, would agree on version 2, but its fence of version 2
/// lets ranks out before the last has come.
fn is_of_slurm(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    variable("PMI_JOBID").is_some() && variable("MPI_LOCALNRANKS").is_none()
}

/// The largest number of processes that a launcher announces in the environment, with its variable; `None` where none does.
/// `variable` looks up the environment.
///
/// A job of one process where this says more is one of several that did not find each other: they would all measure alone, and each
/// would report as if it were the whole.
pub fn promised_size(variable: &dyn Fn(&str) -> Option<String>) -> Option<(&'static str, u32)> {
    let number = |name: &'static str| Some((name, variable(name)?.trim().parse::<u32>().ok()?));
    let of_processes = PROCESSES.iter().filter_map(|name| number(name)).max_by_key(|(_, size)| *size);
    of_processes.or_else(|| number(ALLOCATION))
}
