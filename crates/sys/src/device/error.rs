//! The one error of this module tree: what was attempted on what, and why it failed.

use std::io;
use std::path::PathBuf;

/// Why something about a target could not be learnt.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The path itself could not be looked at.
    #[error("cannot look at {path}: {}", crate::io::describe(source), path = path.display())]
    Stat {
        /// The path as given.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A file could not be opened.
    #[error("cannot open {path}: {}", crate::io::describe(source), path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A file or device could not be read.
    #[error("cannot read {path}: {}", crate::io::describe(source), path = path.display())]
    Read {
        /// The file or device.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// Counters that do not look like the kernel's.
    #[error("{path} has no disk counters this program understands: {text:?}", path = path.display())]
    Counters {
        /// The file.
        path: PathBuf,
        /// The start of what it said.
        text: String,
    },
    /// The kernel has no block device of that name.
    #[error("there is no block device named {name:?} in /sys/class/block")]
    UnknownDevice {
        /// The kernel name asked for.
        name: String,
    },
    /// No mount was found that holds the path.
    #[error("no mounted file system was found for {path}", path = path.display())]
    NoMount {
        /// The path as given.
        path: PathBuf,
    },
}

impl DeviceError {
    /// What the user can do about it, where something can be done.
    pub fn hint(&self) -> Option<&'static str> {
        let kind = match self {
            DeviceError::Stat { source, .. }
            | DeviceError::Open { source, .. }
            | DeviceError::Read { source, .. }
                if matches!(source.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) =>
            {
                return Some("raise the number of open files (ulimit -n)");
            }
            DeviceError::Stat { source, .. }
            | DeviceError::Open { source, .. }
            | DeviceError::Read { source, .. } => source.kind(),
            DeviceError::UnknownDevice { .. } => {
                return Some("`ls /sys/class/block` lists the kernel's names");
            }
            DeviceError::NoMount { .. } => return Some("/proc must be mounted to tell file systems apart"),
            DeviceError::Counters { .. } => return None,
        };
        match kind {
            io::ErrorKind::NotFound => Some("check the spelling, or create it first"),
            io::ErrorKind::PermissionDenied => Some(
                "block devices are readable for root and the group `disk`: run as root or join that group",
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_path_and_cause() {
        let error =
            DeviceError::Open { path: "/dev/sdz".into(), source: io::ErrorKind::PermissionDenied.into() };
        assert_eq!(error.to_string(), "cannot open /dev/sdz: permission denied");
        assert!(error.hint().is_some_and(|hint| hint.contains("disk")));
    }
}
