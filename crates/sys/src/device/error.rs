//! The error of this module tree: the failed action, its object and the cause.

use std::io;
use std::path::PathBuf;

/// Why something about a target could not be learnt.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// A path could not be inspected, opened or read.
    #[error("cannot {attempted} {path}: {}", crate::io::describe(source), path = path.display())]
    Io { attempted: &'static str, path: PathBuf, source: io::Error },
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
        match self {
            DeviceError::Io { source, .. } => match source.kind() {
                _ if matches!(source.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    Some("raise the number of open files (ulimit -n)")
                }
                io::ErrorKind::NotFound => Some("check the spelling, or create it first"),
                io::ErrorKind::PermissionDenied => Some("run as root, or add yourself to the disk group"),
                _ => None,
            },
            DeviceError::UnknownDevice { .. } => Some("use a name listed by `ls /sys/class/block`"),
            DeviceError::NoMount { .. } => Some("mount /proc"),
            DeviceError::Counters { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_path_and_cause() {
        let error = DeviceError::Io {
            attempted: "open",
            path: "/dev/sdz".into(),
            source: io::ErrorKind::PermissionDenied.into(),
        };
        assert_eq!(error.to_string(), "cannot open /dev/sdz: permission denied");
        assert!(error.hint().is_some_and(|hint| hint.contains("disk")));
    }
}
