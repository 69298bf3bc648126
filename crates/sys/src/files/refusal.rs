//! Why a path is not opened for writing although the system would allow it.

use std::ffi::OsString;
use std::io;

use rustix::fs::FileType;

/// Why a path is not written to. Travels in an [`io::Error`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathRefusal {
    /// Somebody else may have put the link there.
    #[error("the symbolic link '{}' lies where other users may make one", link.display())]
    Link {
        /// The name of the link.
        link: OsString,
    },
    /// In a sticky directory, where the file may have been planted.
    #[error("it belongs to another user and lies in a directory that others may write to")]
    ForeignFile,
    /// In a directory that others may write to, where a second name may have been planted.
    #[error("it has further names (hard links) and lies in a directory that others may write to")]
    HardLink,
    /// A device, socket or anything else that output would harm.
    #[error("it is {0}, not a regular file")]
    NotAFile(&'static str),
    /// A file by which the kernel is controlled.
    #[error("it is a file of the kernel, not of a disk")]
    KernelFile,
    /// Something else has its data there: a device or file system in use, a history, an input of the same command.
    #[error("{0}")]
    InUse(String),
    /// Nobody has the other end open, so opening it would wait.
    #[error("no process reads from the FIFO")]
    NoReader,
    /// The target changes faster than it can be opened.
    #[error("it was replaced while it was opened")]
    Replaced,
}

impl PathRefusal {
    /// The refusal that `error` carries.
    pub fn of(error: &io::Error) -> Option<&PathRefusal> {
        error.get_ref()?.downcast_ref()
    }

    /// The remedy.
    pub fn hint(&self) -> &'static str {
        match self {
            PathRefusal::Link { .. } => {
                "name the file itself, or a file in a directory that only you may write to"
            }
            PathRefusal::ForeignFile | PathRefusal::HardLink | PathRefusal::Replaced => {
                "name a new file, or one in a directory that only you may write to"
            }
            PathRefusal::NotAFile(_) | PathRefusal::KernelFile => "name a regular file",
            PathRefusal::InUse(_) => "name another file",
            PathRefusal::NoReader => "start the reader first, or write to standard output",
        }
    }
}

impl From<PathRefusal> for io::Error {
    fn from(refusal: PathRefusal) -> io::Error {
        let kind = match refusal {
            PathRefusal::NotAFile(_) => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::PermissionDenied,
        };
        io::Error::new(kind, refusal)
    }
}

/// The kind of a file that is not a regular one.
pub(super) fn kind_of(mode: u32) -> &'static str {
    match FileType::from_raw_mode(mode) {
        FileType::BlockDevice => "a block device",
        FileType::CharacterDevice => "a character device",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        _ => "a file of an unknown kind",
    }
}
