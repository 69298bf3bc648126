//! Files and directories of this user's own, and the path of a file that a library is going to open by name.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, FileType, Mode};

use super::output::{check_existing, create_entry};
use super::path_walk::{MissingDirectories, Walked, walk, walk_to_directory};
use super::refusal::{PathRefusal, kind_of};

/// The intended use of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateAccess {
    /// It may be missing, and is not made.
    Existing,
    /// It is made where it is missing (0600), and the directories above it as well (0700).
    Create,
}

/// A regular file, or the place of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedFile {
    /// An absolute path without links.
    pub path: PathBuf,
    /// Whether there is a file.
    pub exists: bool,
}

/// Where `path` leads, by links that only root or this user can have made.
///
/// Whoever opens the path that comes back should follow no link in it: between now and then a directory on it that
/// belongs to somebody else may have been replaced.
///
/// # Errors
/// A [`PathRefusal`] where something else than a regular file lies there, or one that another user may have planted; the
/// system's own.
pub fn resolve_private_file(path: &Path, access: PrivateAccess) -> io::Result<ResolvedFile> {
    let missing = match access {
        PrivateAccess::Existing => MissingDirectories::Refuse,
        PrivateAccess::Create => MissingDirectories::Make,
    };
    let entry = match walk(path, missing)? {
        Walked::Entry(entry) => entry,
        Walked::Descriptor(_) => return Err(PathRefusal::NotAFile("an open descriptor").into()),
    };
    if let Some(found) = &entry.found {
        check_existing(&entry, found)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(PathRefusal::NotAFile(kind_of(found.st_mode)).into());
        }
    } else if access == PrivateAccess::Create {
        match create_entry(&entry, Mode::RUSR | Mode::WUSR) {
            // Another fathom process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => drop(other?),
        }
    }
    // The kernel's own account of where the directory lies.
    let directory = std::fs::read_link(format!("/proc/self/fd/{}", entry.directory.as_raw_fd()))?;
    debug_assert!(directory.as_os_str().as_bytes().starts_with(b"/"));
    Ok(ResolvedFile {
        path: directory.join(&entry.name),
        exists: entry.found.is_some() || access == PrivateAccess::Create,
    })
}

/// Makes the directory at `path` and those above it for this user alone, where they are missing.
///
/// # Errors
/// As for [`resolve_private_file`].
pub fn make_private_directories(path: &Path) -> io::Result<()> {
    walk_to_directory(path, OsStr::new(""), MissingDirectories::Make).map(drop)
}

/// Says whether files may be made in the directory at `path`.
///
/// # Errors
/// The directory is missing, or this user may not write to it; or its file system is read-only.
pub fn check_writable_directory(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// True where only root and this user may change what the directory at `path` holds.
pub fn is_own_directory(path: &Path) -> bool {
    walk_to_directory(path, OsStr::new(""), MissingDirectories::Refuse)
        .is_ok_and(|entry| entry.is_in_own_directory())
}

/// Says whether the directory at `path` takes a new file.
///
/// # Errors
/// It does not.
pub fn try_directory(path: &Path) -> io::Result<()> {
    tempfile::Builder::new().prefix(".fathom-").tempfile_in(path)?.close()
}
