//! Why a ping did not begin, or broke off. The sentences are ioping's where it has one for the case.

use std::io;
use std::path::PathBuf;

use fathom_engine::EngineError;
use fathom_model::units::bytes;

use crate::AssessError;
use crate::error::plain;

/// A ping that could not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum PingError {
    /// The target cannot be looked at.
    #[error("stat \"{}\" failed: {}", path.display(), plain(source))]
    Stat {
        /// As typed.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Neither directory, file nor block device.
    #[error("unsupported destination: \"{}\"", path.display())]
    Unsupported {
        /// As typed.
        path: PathBuf,
    },
    /// Writing to a file or device without consent.
    #[error("think twice, then use -WWW to shred this target")]
    ThinkTwice,
    /// Writing to a device that was not named.
    #[error("would overwrite the data on {}: requires --destroy-data={}", path.display(), path.display())]
    Unnamed {
        /// The device.
        path: PathBuf,
    },
    /// Consent for something that is not the target.
    #[error("{} is not the target named by --destroy-data={}", path.display(), other.display())]
    OtherNamed {
        /// The target.
        path: PathBuf,
        /// What was named.
        other: PathBuf,
    },
    /// The range does not fit the target.
    #[error("target is too small for this")]
    TooSmall,
    /// A request does not fit the range.
    #[error("request size is too big for this target")]
    TooBig,
    /// Too little room for the working file.
    #[error("{}: needs {}, {} available", path.display(), bytes(*wanted), bytes(*free))]
    NoRoom {
        /// The directory.
        path: PathBuf,
        /// Bytes.
        wanted: u64,
        /// Bytes that are free beyond what is kept for the system.
        free: u64,
    },
    /// The working file cannot be made.
    #[error("failed to create temporary file at \"{}\": {}", path.display(), reason(source))]
    NoFile {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: Box<AssessError>,
    },
    /// Opening or filling the file failed.
    #[error("failed to {attempted} \"{}\": {}", path.display(), plain(source))]
    Open {
        /// `open`, or `fill a file in`.
        attempted: &'static str,
        /// What.
        path: PathBuf,
        /// O_DIRECT was asked for.
        direct: bool,
        /// The system's answer.
        source: io::Error,
    },
    /// The simulated volume cannot be.
    #[error("{0}")]
    Simulated(#[source] AssessError),
    /// Nothing would ever end it.
    #[error("without a count or a time limit this would never end in virtual time")]
    Endless,
    /// The target is refused.
    #[error("{0}")]
    Refused(#[source] AssessError),
    /// There is no such engine, or it cannot do what is asked.
    #[error("{reason}")]
    Engine {
        /// What is wrong.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The engine failed.
    #[error("{0}")]
    EngineFailed(#[source] EngineError),
    /// A request failed, where that is the end.
    #[error("request failed: {}", plain(&io::Error::from_raw_os_error(*errno)))]
    Request {
        /// The system's answer.
        errno: i32,
    },
    /// A thread could not be started, or ended without a word.
    #[error("the thread that issues I/Os {0}")]
    Thread(String),
    /// Asked to end before the first request.
    #[error("interrupted by {reason} before the first request")]
    Stopped {
        /// Why.
        reason: String,
    },
}

/// Why, without the path, which stands before it.
fn reason(error: &AssessError) -> String {
    let AssessError::Target { reason, .. } = error else { return error.to_string() };
    reason.strip_prefix("cannot create the test file: ").unwrap_or(reason).to_owned()
}

const EINVAL: i32 = 22;

impl PingError {
    /// What to do about it, where something can be done.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            PingError::Stat { .. } => "use a directory, an existing file or a block device",
            PingError::Unsupported { .. } => "use a directory, a regular file or a block device",
            PingError::ThinkTwice => "this would overwrite the data on the target",
            PingError::Unnamed { .. } => "omit -W and -G to read only",
            PingError::OtherNamed { .. } => "use the path of the target, or omit --destroy-data",
            PingError::TooSmall => "use a smaller -S (range) or -o (offset)",
            PingError::TooBig => "use a smaller -s (request) or a larger -S (range)",
            PingError::NoRoom { .. } => "use a smaller -S, or free some space",
            PingError::Open { direct: true, source, .. } if source.raw_os_error() == Some(EINVAL) => {
                "the file system does not support direct I/O: use --buffered"
            }
            PingError::Open { .. } => "check permissions, or run as root",
            PingError::Endless => "set a count (-c 10) or a time (-w 1min)",
            PingError::Refused(error) | PingError::Simulated(error) => return error.hint(),
            PingError::NoFile { source, .. } => return source.hint(),
            PingError::Engine { hint, .. } => return hint.clone(),
            PingError::EngineFailed(error) => return error.hint().map(str::to_owned),
            PingError::Request { errno: EINVAL } => {
                "direct I/O requires sizes and offsets in whole sectors: use -s 4k, or --buffered"
            }
            PingError::Request { .. } | PingError::Thread(_) | PingError::Stopped { .. } => return None,
        };
        Some(text.to_owned())
    }

    /// True where the command line asked for what is not to be had.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            PingError::ThinkTwice
                | PingError::Unnamed { .. }
                | PingError::OtherNamed { .. }
                | PingError::Engine { .. }
                | PingError::Simulated(_)
                | PingError::Endless
        )
    }

    /// True where the run itself failed, not its preparation.
    pub fn is_of_the_run(&self) -> bool {
        matches!(self, PingError::EngineFailed(_) | PingError::Request { .. } | PingError::Thread(_))
    }
}
