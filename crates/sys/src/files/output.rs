//! Making and replacing files that a user named for output.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use tempfile::NamedTempFile;

use super::path_walk::{DirectoryEntry, MissingDirectories, Walked, duplicate, walk, walk_to_directory};
use super::refusal::{PathRefusal, kind_of};
use super::taken;

/// Retries of inspecting a path whose target changed meanwhile.
const ATTEMPTS: usize = 8;

/// Opens `path` for writing, and makes the file or cuts it to nothing.
///
/// Permitted targets: a regular file, a FIFO with a reader, a terminal, `/dev/null`, and whatever this process was
/// given open (`/dev/stdout`, `/dev/fd/N`), which is used as it is. A link is followed where only root or this user can
/// have made it.
///
/// # Errors
/// A [`PathRefusal`], or the system's own.
pub fn create_output(path: &Path) -> io::Result<File> {
    for _ in 0..ATTEMPTS {
        match walk(path, MissingDirectories::Refuse)? {
            Walked::Descriptor(number) => return given(number),
            Walked::Entry(entry) => {
                if let Some(file) = open_entry(&entry)? {
                    return Ok(file);
                }
            }
        }
    }
    Err(PathRefusal::Replaced.into())
}

/// Says whether [`create_output`] or [`replace_output`] could write to `path`, and leaves everything as it is. Rights to
/// a file or directory are not looked at.
///
/// # Errors
/// As for [`create_output`].
pub fn check_output(path: &Path) -> io::Result<()> {
    match walk(path, MissingDirectories::Refuse)? {
        Walked::Descriptor(number) => given(number).map(drop),
        Walked::Entry(entry) => check_entry(&entry),
    }
}

/// Replaces `path` by the output of `write`: readers see all of it or the previous contents. A file that is new gets
/// `mode` less the umask, an old one keeps its own.
///
/// What [`create_output`] takes and is no file of ours with a single name is written to where it lies.
///
/// # Errors
/// As for [`create_output`], and those of `write`.
pub fn replace_output(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    if let Walked::Entry(entry) = walk(path, MissingDirectories::Refuse)? {
        check_entry(&entry)?;
        let mode = match &entry.found {
            None => Some(mode),
            Some(found) => is_ours_alone(found).then_some(found.st_mode & 0o777),
        };
        if let Some(mode) = mode
            && let Some(file) = temporary_beside(&entry, mode)?
        {
            return replace_entry(&entry, file, write);
        }
    }
    let mut out = BufWriter::new(create_output(path)?);
    write(&mut out)?;
    out.flush()
}

/// Makes an empty file that only this user can read, where nothing lies yet, not even a link.
///
/// # Errors
/// `AlreadyExists`; a [`PathRefusal`]; the system's own.
pub fn create_new(path: &Path) -> io::Result<()> {
    // The name itself must not be followed.
    let name = path.file_name().ok_or(Errno::ISDIR)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entry = walk_to_directory(parent, name, MissingDirectories::Refuse)?;
    create_entry(&entry, Mode::RUSR | Mode::WUSR).map(drop)
}

/// Makes a directory with a random name in the directory for temporary files, for this user alone. For what has no
/// other place: no other user can know or use the names in it.
///
/// # Errors
/// It cannot be made.
pub fn private_directory() -> io::Result<PathBuf> {
    let mode = Permissions::from_mode(0o700);
    Ok(tempfile::Builder::new().prefix("fathom-").permissions(mode).tempdir()?.keep())
}

pub(super) fn create_entry(entry: &DirectoryEntry, mode: Mode) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(&entry.directory, &entry.name, flags | OFlags::LARGEFILE, mode)?.into())
}

/// Opens the target that was found; `None` if it has been replaced.
fn open_entry(entry: &DirectoryEntry) -> io::Result<Option<File>> {
    check_entry(entry)?;
    let Some(found) = &entry.found else {
        return match create_entry(entry, Mode::from_raw_mode(0o666)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            other => other.map(Some),
        };
    };
    // Without O_NONBLOCK a FIFO would be waited for.
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&entry.directory, &entry.name, flags | OFlags::LARGEFILE, Mode::empty());
    let file: OwnedFd = match opened {
        Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
        Err(Errno::NXIO) if is(found, FileType::Fifo) => return Err(PathRefusal::NoReader.into()),
        other => other?,
    };
    let now = rustix::fs::fstat(&file)?;
    if (now.st_dev, now.st_ino, now.st_mode) != (found.st_dev, found.st_ino, found.st_mode) {
        return Ok(None);
    }
    let status = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, status - OFlags::NONBLOCK)?;
    if is(&now, FileType::RegularFile) {
        refuse_kernel_file(&file)?;
        rustix::fs::ftruncate(&file, 0)?;
    }
    Ok(Some(file.into()))
}

/// Refuses to write to `entry` if that could harm anybody or destroy what is in use.
fn check_entry(entry: &DirectoryEntry) -> io::Result<()> {
    entry.found.as_ref().map_or(Ok(()), |found| check_existing(entry, found))?;
    taken::refuse(entry)
}

/// Refuses to write to `entry` if that could harm another user.
pub(super) fn check_existing(entry: &DirectoryEntry, found: &Stat) -> io::Result<()> {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile | FileType::Fifo => {}
        FileType::CharacterDevice if is_harmless_device(found.st_rdev) => return Ok(()),
        FileType::Directory => return Err(Errno::ISDIR.into()),
        _ => return Err(PathRefusal::NotAFile(kind_of(found.st_mode)).into()),
    }
    if entry.is_in_sticky_directory() && !is_ours(found) && found.st_uid != entry.directory_stat.st_uid {
        return Err(PathRefusal::ForeignFile.into());
    }
    if !entry.is_in_own_directory() && found.st_nlink > 1 {
        return Err(PathRefusal::HardLink.into());
    }
    Ok(())
}

/// `/dev/null`, `/dev/zero`, `/dev/full`, and what shows text: consoles and pseudo terminals.
fn is_harmless_device(device: u64) -> bool {
    /// The first minor number of serial lines, which are no screens.
    const SERIAL: u32 = 64;
    match (rustix::fs::major(device), rustix::fs::minor(device)) {
        (1, minor) => matches!(minor, 3 | 5 | 7),
        (4, minor) => minor < SERIAL,
        (5, minor) => minor == 0,
        (136..=143, _) => true,
        _ => false,
    }
}

/// A descriptor that this process was started with, for writing.
fn given(number: i32) -> io::Result<File> {
    let file = File::from(duplicate(number)?);
    let stat = rustix::fs::fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => Err(PathRefusal::NotAFile(kind_of(stat.st_mode)).into()),
        FileType::CharacterDevice if !is_harmless_device(stat.st_rdev) && !file.is_terminal() => {
            Err(PathRefusal::NotAFile(kind_of(stat.st_mode)).into())
        }
        _ => Ok(file),
    }
}

/// A file that is to take the place of `entry`; `None` where the directory takes no new file, but an old one is there.
fn temporary_beside(entry: &DirectoryEntry, mode: u32) -> io::Result<Option<NamedTempFile>> {
    refuse_kernel_file(&entry.directory)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".fathom-").rand_bytes(16).permissions(Permissions::from_mode(mode));
    match builder.tempfile_in(held(&entry.directory)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && entry.found.is_some() => Ok(None),
        other => other.map(Some),
    }
}

fn replace_entry(
    entry: &DirectoryEntry,
    file: NamedTempFile,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.as_file().sync_all()?;
    file.persist(held(&entry.directory).join(&entry.name))?;
    Ok(())
}

/// A path that leads to the checked directory even if its name leads elsewhere now.
fn held(directory: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

/// Refuses file systems whose files control the kernel.
fn refuse_kernel_file(file: impl std::os::fd::AsFd) -> io::Result<()> {
    const KERNEL: [u64; 8] = [
        0x9fa0,      // proc
        0x6265_6572, // sysfs
        0x6462_6720, // debugfs
        0x7472_6163, // tracefs
        0x6367_7270, // cgroup2
        0x6265_6570, // configfs
        0x7363_6673, // securityfs
        0xde5e_81e4, // efivarfs
    ];
    let kind = rustix::fs::fstatfs(file)?.f_type as u64;
    if KERNEL.contains(&kind) { Err(PathRefusal::KernelFile.into()) } else { Ok(()) }
}

fn is(stat: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(stat.st_mode) == kind
}

fn is_ours(file: &Stat) -> bool {
    file.st_uid == rustix::process::geteuid().as_raw()
}

/// True for a file that another one can take the place of without anybody's loss.
fn is_ours_alone(file: &Stat) -> bool {
    is(file, FileType::RegularFile) && is_ours(file) && file.st_nlink == 1
}
