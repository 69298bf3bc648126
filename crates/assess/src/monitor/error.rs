//! Why a monitor did not begin.

use std::path::PathBuf;

use fathom_sys::device::DeviceError;

/// A monitor that could not begin.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// Neither a device nor something on one.
    #[error("there is no block device {}, and nothing of that name to find one under", .0.display())]
    NoSuch(PathBuf),
    /// A file or directory that lies on no block device.
    #[error("{} lies on {fs_type}, which has no block device of its own", path.display())]
    NoDevice {
        /// As typed.
        path: PathBuf,
        /// The type of its file system.
        fs_type: String,
    },
    /// The file system it is on does not answer.
    #[error("{} does not answer", .0.display())]
    Silent(PathBuf),
    /// A modelled volume.
    #[error("{} is a modelled volume: the kernel counts nothing of it, and its time is virtual", .0.display())]
    Simulated(PathBuf),
    /// Not one disk.
    #[error("this machine shows no disks")]
    NoDisks,
    /// It cannot be looked at.
    #[error("{0}")]
    Device(#[from] DeviceError),
}

impl MonitorError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            MonitorError::NoSuch(_) => {
                "`ls /sys/class/block` lists the kernel's names; without a name all disks are shown"
            }
            MonitorError::NoDevice { .. } => "name a device, or a directory on a disk",
            MonitorError::Silent(_) => "name the device itself, which is not asked",
            MonitorError::Simulated(_) => {
                "`fathom fio` and `fathom bench` run on it, and tell second by second what it does"
            }
            MonitorError::NoDisks => "is /sys mounted?",
            MonitorError::Device(error) => error.hint()?,
        };
        Some(text.to_owned())
    }

    /// True where the command line asked for what is not to be had.
    pub fn is_usage(&self) -> bool {
        matches!(self, MonitorError::Simulated(_))
    }
}
