//! The error of this module tree: the failed action, its object and the cause.

use std::io;
use std::path::PathBuf;

/// Why something about a target could not be learnt.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The path could not be inspected.
    #[error("cannot inspect {path}: {}", crate::io::describe(source), path = path.display())]
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
    #[error("cannot parse the disk counters of {path}: {text:?}", path = path.display())]
    Counters {
        /// The file.
        path: PathBuf,
        /// The start of its contents.
        text: String,
    },
    /// The kernel has no block device of that name.
    #[error("no block device named {name:?} in /sys/class/block")]
    UnknownDevice {
        /// The kernel name asked for.
        name: String,
    },
    /// No mount was found that holds the path.
    #[error("cannot find the mounted file system of {path}", path = path.display())]
    NoMount {
        /// The path as given.
        path: PathBuf,
    },
}

impl DeviceError {
    /// The remedy, if there is one.
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
                return Some("use a name listed by `ls /sys/class/block`");
            }
            DeviceError::NoMount { .. } => return Some("mount /proc"),
            DeviceError::Counters { .. } => return None,
        };
        match kind {
            io::ErrorKind::NotFound => Some("check the spelling, or create it first"),
            io::ErrorKind::PermissionDenied => Some("run as root, or add yourself to the disk group"),
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
