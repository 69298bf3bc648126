//! Errors of preparation. Failed requests are results and part of the outcome.

use std::io;
use std::path::{Path, PathBuf};

use fathom_engine::{EngineError, registry};
use fathom_model::JobPlan;
use fathom_sys::io::describe;

/// The reason why a run did not begin. Nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A target could not be opened or created.
    #[error("{attempted} {}: {}", path.display(), describe(source))]
    Target {
        /// The failed action, a verb ("open", "create", "lay out").
        attempted: &'static str,
        /// The target.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
        /// O_DIRECT was requested.
        direct: bool,
    },
    /// The target cannot be measured.
    #[error("{}: {reason}", path.display())]
    Unsuitable {
        /// The target.
        path: PathBuf,
        /// The reason.
        reason: String,
        /// The remedy.
        hint: String,
    },
    /// The plan does not fit the target.
    #[error("job '{job}': {reason}")]
    Plan {
        /// The job.
        job: String,
        /// The reason.
        reason: String,
        /// The remedy.
        hint: String,
    },
    /// Writing would destroy data.
    #[error("refusing to write to {}: {}", path.display(), reasons.join("; "))]
    Refused {
        /// The device or file.
        path: PathBuf,
        /// The reasons, one sentence each.
        reasons: Vec<String>,
        /// The flag that overrides the refusal, or another remedy.
        hint: String,
    },
    /// An engine could not be opened.
    #[error("job '{job}': {source}")]
    Engine {
        /// The job.
        job: String,
        /// The engine's error.
        source: EngineError,
    },
    /// The caller requested a stop before the measurement began.
    #[error("stopped during preparation: {reason}")]
    Stopped {
        /// The reason for the stop.
        reason: String,
    },
}

impl RunError {
    pub(crate) fn plan(job: &str, reason: impl Into<String>, hint: impl Into<String>) -> RunError {
        RunError::Plan { job: job.to_owned(), reason: reason.into(), hint: hint.into() }
    }

    pub(crate) fn unknown_engine(job: &JobPlan) -> RunError {
        let names: Vec<&str> = registry::ENGINES.iter().map(|entry| entry.name).collect();
        let reason = format!("unknown engine '{}'", job.engine.name);
        RunError::plan(&job.name, reason, format!("choose one of: {}", names.join(", ")))
    }

    pub(crate) fn unsuitable(path: &Path, reason: impl Into<String>, hint: impl Into<String>) -> RunError {
        RunError::Unsuitable { path: path.to_owned(), reason: reason.into(), hint: hint.into() }
    }

    /// Of a target that is not opened for direct I/O.
    pub(crate) fn target(attempted: &'static str, path: &Path, source: io::Error) -> RunError {
        RunError::Target { attempted, path: path.to_owned(), source, direct: false }
    }

    /// The remedy.
    pub fn hint(&self) -> Option<String> {
        match self {
            RunError::Target { source, direct, .. } => target_hint(source, *direct).map(str::to_owned),
            RunError::Unsuitable { hint, .. }
            | RunError::Plan { hint, .. }
            | RunError::Refused { hint, .. } => Some(hint.clone()),
            RunError::Engine { source, .. } => source.hint().map(str::to_owned),
            RunError::Stopped { .. } => None,
        }
    }
}

fn target_hint(source: &io::Error, direct: bool) -> Option<&'static str> {
    const EINVAL: i32 = 22;
    match source.raw_os_error()? {
        EINVAL if direct => {
            Some("use direct=0 (--buffered) or another target: the file system does not support O_DIRECT")
        }
        EINVAL => None,
        errno => errno_hint(errno),
    }
}

/// The remedy for writes that a host-managed zoned device refuses.
pub(crate) const HOST_MANAGED_HINT: &str = "reset its zones (`blkzone reset`) and write them in order with rw=write, direct=1 and \
     iodepth=1, or limit offset and size to conventional zones; zonemode=zbd is not supported";

/// The remedy for an errno of a target.
pub(crate) fn errno_hint(errno: i32) -> Option<&'static str> {
    Some(match errno {
        1 => "check the attributes of the file or device and your privileges",
        2 => "check the path and create its directory",
        5 => "check the kernel log (dmesg): the device reported an I/O error",
        12 => "lower iodepth, bs or numjobs to use less memory",
        13 => "run as the owner or root, or choose another target",
        16 => "unmount or release the device, which is in exclusive use",
        22 => "with direct=1, bs, offset and size must be multiples of the device's logical block size",
        23 | 24 => "raise `ulimit -n` or lower numjobs",
        26 => "choose another target: the file is in use",
        27 => "lower size, or raise `ulimit -f`: the file would exceed it or the limit of the file system",
        28 => "lower size or choose another target",
        30 => "choose a writable target, or only read",
        95 => "the target does not support this operation",
        122 => "lower size or choose another target: the disk quota is exceeded",
        _ => return None,
    })
}
