//! Resolves a path component by component, by descriptors, and follows no symbolic link that another user may have
//! made.
//!
//! The kernel has such a rule (`fs.protected_symlinks`) for sticky directories that everyone may write to. This one holds
//! whatever the setting is, and in directories of a group and of other users as well.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::refusal::PathRefusal;

/// Most links on a path, as in the kernel.
pub(super) const MAX_LINKS: usize = 40;
const PROC_SUPER_MAGIC: u64 = 0x9fa0;
const STICKY: u32 = 0o1000;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Where a path leads.
pub(super) enum Walked {
    /// A name in a directory, whether or not there is a file of that name. It is no symbolic link.
    Entry(Box<DirectoryEntry>),
    /// A descriptor of this process (`/dev/stdout`, `/dev/fd/3`), which its parent has opened.
    Descriptor(RawFd),
}

/// A name in an open directory.
pub(super) struct DirectoryEntry {
    pub(super) directory: OwnedFd,
    pub(super) directory_stat: Stat,
    pub(super) name: OsString,
    /// The target.
    pub(super) found: Option<Stat>,
}

impl DirectoryEntry {
    /// True where only root and this user may change what the directory holds.
    pub(super) fn is_in_own_directory(&self) -> bool {
        is_own(&self.directory_stat)
    }

    pub(super) fn is_in_sticky_directory(&self) -> bool {
        self.directory_stat.st_mode & STICKY != 0 && self.directory_stat.st_mode & WRITABLE_BY_OTHERS != 0
    }
}

/// The action for a missing directory in the path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingDirectories {
    Refuse,
    /// Make them, for this user alone.
    Make,
}

/// Finds out where `path` leads.
pub(super) fn walk(path: &Path, missing: MissingDirectories) -> io::Result<Walked> {
    let mut walk = PathWalk::begin(path, missing)?;
    while let Some(name) = walk.rest.pop() {
        if let Some(end) = walk.step(name)? {
            let ends_as_directory = path.as_os_str().as_bytes().ends_with(b"/");
            return if ends_as_directory { Err(Errno::ISDIR.into()) } else { Ok(end) };
        }
    }
    // It ends with a directory that has no name here: `/`, `.`, `..`.
    Err(Errno::ISDIR.into())
}

/// The directory at `path`, for an entry of the name `name` about which nothing is known.
pub(super) fn walk_to_directory(
    path: &Path,
    name: &OsStr,
    missing: MissingDirectories,
) -> io::Result<DirectoryEntry> {
    let mut walk = PathWalk { ends_with_directory: true, ..PathWalk::begin(path, missing)? };
    while let Some(next) = walk.rest.pop() {
        walk.step(next)?;
    }
    walk.entry(name.to_owned(), None)
}

struct PathWalk {
    directory: OwnedFd,
    /// Names yet to come, the next one last; `/` starts anew.
    rest: Vec<OsString>,
    links: usize,
    missing: MissingDirectories,
    /// The last name is one of a directory as well.
    ends_with_directory: bool,
}

impl PathWalk {
    fn begin(path: &Path, missing: MissingDirectories) -> io::Result<PathWalk> {
        if path.as_os_str().is_empty() {
            return Err(Errno::NOENT.into());
        }
        let directory = open_directory(rustix::fs::CWD, ".")?;
        let mut walk =
            PathWalk { directory, rest: Vec::new(), links: 0, missing, ends_with_directory: false };
        walk.push(path);
        Ok(walk)
    }

    fn push(&mut self, path: &Path) {
        self.rest.extend(path.components().rev().filter_map(|component| match component {
            Component::CurDir | Component::Prefix(_) => None,
            other => Some(other.as_os_str().to_owned()),
        }));
    }

    fn step(&mut self, name: OsString) -> io::Result<Option<Walked>> {
        if name == "/" || name == ".." {
            self.directory = open_directory(&self.directory, &name)?;
            return Ok(None);
        }
        let is_last = self.is_last();
        let found = match open_path(&self.directory, &name) {
            Err(Errno::NOENT) if is_last => return self.end(name, None),
            Err(Errno::NOENT) if self.missing == MissingDirectories::Make => self.make_directory(&name)?,
            other => other?,
        };
        let stat = rustix::fs::fstat(&found)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            return self.follow(name, &found, &stat);
        }
        if is_last {
            return self.end(name, Some(stat));
        }
        self.directory = found;
        Ok(None)
    }

    fn is_last(&self) -> bool {
        self.rest.is_empty() && !self.ends_with_directory
    }

    fn end(&self, name: OsString, found: Option<Stat>) -> io::Result<Option<Walked>> {
        Ok(Some(Walked::Entry(Box::new(self.entry(name, found)?))))
    }

    fn entry(&self, name: OsString, found: Option<Stat>) -> io::Result<DirectoryEntry> {
        let directory = self.directory.try_clone()?;
        let directory_stat = rustix::fs::fstat(&directory)?;
        // What looks like the directory above may be a file.
        if FileType::from_raw_mode(directory_stat.st_mode) != FileType::Directory {
            return Err(Errno::NOTDIR.into());
        }
        Ok(DirectoryEntry { directory, directory_stat, name, found })
    }

    fn make_directory(&self, name: &OsStr) -> io::Result<OwnedFd> {
        match rustix::fs::mkdirat(&self.directory, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(open_path(&self.directory, name)?),
            Err(error) => Err(error.into()),
        }
    }

    fn follow(&mut self, name: OsString, link: &OwnedFd, stat: &Stat) -> io::Result<Option<Walked>> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        if let Some(number) = own_descriptor(&self.directory, &name) {
            if self.is_last() {
                return Ok(Some(Walked::Descriptor(number)));
            }
            self.directory = open_directory(&self.directory, &name)?;
            return Ok(None);
        }
        if !may_follow(&rustix::fs::fstat(&self.directory)?, stat) {
            return Err(PathRefusal::Link { link: name }.into());
        }
        let target = rustix::fs::readlinkat(link, c"", Vec::new())?;
        self.push(Path::new(&OsString::from_vec(target.into_bytes())));
        Ok(None)
    }
}

fn open_path(directory: impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

fn open_directory(directory: impl AsFd, name: impl AsRef<Path>) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name.as_ref(), flags, Mode::empty())
}

/// The number of the descriptor that `name` stands for, where `directory` is `/proc/self/fd`.
fn own_descriptor(directory: &OwnedFd, name: &OsStr) -> Option<RawFd> {
    let number = name.to_str()?.parse().ok()?;
    if rustix::fs::fstatfs(directory).ok()?.f_type as u64 != PROC_SUPER_MAGIC {
        return None;
    }
    let here = rustix::fs::fstat(directory).ok()?;
    let is_here = |path: &str| {
        let other = rustix::fs::stat(path);
        other.is_ok_and(|other| (other.st_dev, other.st_ino) == (here.st_dev, here.st_ino))
    };
    (is_here("/proc/self/fd") || is_here("/proc/thread-self/fd")).then_some(number)
}

/// A duplicate of a descriptor that this process was started with.
pub(super) fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(Errno::BADF.into());
    }
    // SAFETY: the kernel checks the number; its file is only duplicated, and the borrow ends with the call.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(rustix::io::fcntl_dupfd_cloexec(borrowed, 0)?)
}

/// True where only root and this user may change what the directory holds.
fn is_own(directory: &Stat) -> bool {
    is_of_root_or_us(directory) && directory.st_mode & WRITABLE_BY_OTHERS == 0
}

fn is_of_root_or_us(file: &Stat) -> bool {
    file.st_uid == 0 || file.st_uid == rustix::process::geteuid().as_raw()
}

/// Whether a link may be followed: only root or we can have made it.
///
/// In a sticky directory no other user can rename our link. A link with several names may have been brought there by
/// link(2), which asks for no right to it.
fn may_follow(directory: &Stat, link: &Stat) -> bool {
    let is_sticky = directory.st_mode & STICKY != 0;
    is_own(directory)
        || (is_of_root_or_us(directory) && is_sticky && is_of_root_or_us(link) && link.st_nlink == 1)
}
