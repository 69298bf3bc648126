//! Why a monitor did not begin.

use std::path::PathBuf;

use fathom_sys::device::DeviceError;

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
            MonitorError::Device(error) => error.hint()?,
        };
        Some(text.to_owned())
    }

    /// True where the command line asked for what is not to be had.
    pub fn is_usage(&self) -> bool {
        matches!(self, MonitorError::Simulated(_))
    }
}
