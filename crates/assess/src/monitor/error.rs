//! Why a monitor did not begin.

use std::io::ErrorKind;
use std::path::PathBuf;

use fathom_sys::device::DeviceError;
use fathom_sys::files::PathRefusal;

/// A monitor that could not begin.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// Neither a device nor something on one.
    #[error("no block device or path named {}", .0.display())]
    NoSuch(PathBuf),
    /// A file or directory that lies on no block device.
    #[error("{} is on {fs_type}, which has no block device", path.display())]
    NoDevice {
        /// As typed.
        path: PathBuf,
        /// The type of its file system.
        fs_type: String,
    },
    /// The file system it is on does not answer.
    #[error("{} does not respond", .0.display())]
    Silent(PathBuf),
    /// A simulated volume.
    #[error("{} is a simulated volume: the kernel has no counters for it, and its time is virtual", .0.display())]
    Simulated(PathBuf),
    /// Not one disk.
    #[error("this machine has no visible disks")]
    NoDisks,
    /// A recording is of one device.
    #[error("a recording is of one device, not of {0}")]
    RecordsOne(usize),
    /// A device that is to be recorded is away.
    #[error("{0} is not there")]
    NotThere(String),
    /// The file of a recording cannot be made.
    #[error("cannot create the recording {}: {}", path.display(), fathom_sys::io::describe(error))]
    Recording {
        /// As typed.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It cannot be looked at.
    #[error("{0}")]
    Device(#[from] DeviceError),
}

impl MonitorError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            MonitorError::NoSuch(_) => "use a name from `ls /sys/class/block`, or none to show all disks",
            MonitorError::NoDevice { .. } => "use a device, or a directory on a disk",
            MonitorError::Silent(_) => "use the device itself, which needs no response",
            MonitorError::Simulated(_) => "use `fathom fio` or `fathom bench` on it; they report each second",
            MonitorError::NoDisks => "check that /sys is mounted",
            MonitorError::RecordsOne(_) => "name one device; record others by further runs",
            MonitorError::NotThere(_) => "attach the device, or name another one",
            MonitorError::Recording { error, .. } => match PathRefusal::of(error) {
                Some(refusal) => refusal.hint(),
                None if error.kind() == ErrorKind::AlreadyExists => {
                    "remove it or name a new file; no recording is overwritten"
                }
                None => "name a new file in an existing directory",
            },
            MonitorError::Device(error) => error.hint()?,
        };
        Some(text.to_owned())
    }

    /// True where the command line asked for what is not to be had.
    pub fn is_usage(&self) -> bool {
        matches!(self, MonitorError::Simulated(_) | MonitorError::RecordsOne(_))
    }
}
