//! What no output may take the place of: the history with SQLite's files beside it, any other history, what a command reads, and
//! what a device or file system lives in.
//!
//! Files are compared by device, inode and time of birth: names do not matter, and a new file that gets the number of a removed
//! one is another.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::path_walk::{DirectoryEntry, MAX_LINKS};
use super::refusal::PathRefusal;
use crate::device::{Obstacle, ObstacleClass, Survey, SysRoot, TargetHandle};

/// How the names of the files end that SQLite keeps beside a database.
pub const DATABASE_FILES: [&str; 3] = ["-wal", "-shm", "-journal"];
/// The identifier of the application in an SQLite database that is a history, at byte 68.
pub const HISTORY_OWNER: [u8; 4] = *b"fthm";
const OWNER_AT: usize = 68;

/// Which file it is, under whatever name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: (u32, u32),
    inode: u64,
    born: (i64, u32),
}

/// What this process has named or read.
struct Taken {
    histories: Vec<PathBuf>,
    inputs: Vec<(Identity, &'static str)>,
}

static TAKEN: Mutex<Taken> = Mutex::new(Taken { histories: Vec::new(), inputs: Vec::new() });

fn with<T>(look: impl FnOnce(&mut Taken) -> T) -> T {
    look(&mut TAKEN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// From now on no output is written to the history at `path` or to a file of SQLite beside it, whether or not it exists.
pub fn keep_history(path: &Path) {
    let Ok(path) = std::path::absolute(path) else { return };
    with(|taken| {
        if !taken.histories.contains(&path) {
            taken.histories.push(path);
        }
    });
}

/// From now on no output takes the place of `file`, a `noun` that is read.
pub(super) fn keep_input(file: impl AsFd, noun: &'static str) {
    let Ok(identity) = identity(file, c"", AtFlags::EMPTY_PATH) else { return };
    with(|taken| {
        if taken.inputs.iter().all(|(other, _)| *other != identity) {
            taken.inputs.push((identity, noun));
        }
    });
}

/// What `file` is to this process, if it is an input or belongs to the history.
pub fn own_use(file: impl AsFd) -> Option<String> {
    let identity = identity(file, c"", AtFlags::EMPTY_PATH).ok()?;
    own_use_of(identity)
}

fn own_use_of(identity: Identity) -> Option<String> {
    let (histories, input) = with(|taken| {
        let input = taken.inputs.iter().find(|(other, _)| *other == identity).map(|(_, noun)| *noun);
        (taken.histories.clone(), input)
    });
    let is_same = |path: &Path| identity_at(path).is_ok_and(|other| other == identity);
    if histories.iter().any(|history| history_files(history).iter().any(|path| is_same(path))) {
        return Some("it belongs to the history in use".to_owned());
    }
    input.map(|noun| format!("it is the {noun} that this command reads"))
}

/// Refuses an output to `entry` that would take the place of something.
pub(super) fn refuse(entry: &DirectoryEntry) -> io::Result<()> {
    let refuse = |why: String| Err(PathRefusal::InUse(why).into());
    if will_be_history(entry) {
        return refuse("it belongs to the history in use".to_owned());
    }
    let is_regular = entry
        .found
        .as_ref()
        .is_some_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile);
    if !is_regular {
        return Ok(());
    }
    if let Some(why) = own_use_of(identity(&entry.directory, &entry.name, AtFlags::SYMLINK_NOFOLLOW)?) {
        return refuse(why);
    }
    if entry.found.as_ref().is_none_or(|found| found.st_size == 0) {
        return Ok(());
    }
    match opened(entry)? {
        Some(file) => match use_of(&file)? {
            Some(why) => refuse(why),
            None => Ok(()),
        },
        None => Ok(()),
    }
}

/// The file that was found, to look at; `None` where this user may do neither, or it is gone.
fn opened(entry: &DirectoryEntry) -> io::Result<Option<OwnedFd>> {
    let open = |flags: OFlags| {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::LARGEFILE;
        rustix::fs::openat(&entry.directory, &entry.name, flags, Mode::empty())
    };
    match open(OFlags::RDONLY).or_else(|_| open(OFlags::WRONLY)) {
        Ok(file) => Ok(Some(file)),
        Err(Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What lives in the file: a history, a loop device, swap, a file system. A lock does not count: `flock FILE command` has one.
pub(super) fn use_of(file: &OwnedFd) -> io::Result<Option<String>> {
    let file: File = file.try_clone()?.into();
    if let Some(what) = content(&file) {
        return Ok(Some(what.to_owned()));
    }
    let handle = TargetHandle::of(file, Path::new("it"))?;
    let root = SysRoot::real();
    let Ok(survey) = Survey::of(&root, &[]) else { return Ok(None) };
    let obstacles = survey.obstacles(&handle).unwrap_or_default();
    let is_use = |obstacle: &&Obstacle| {
        obstacle.class() == ObstacleClass::InUse && !matches!(obstacle, Obstacle::Locked { .. })
    };
    let of_loop = || Some(format!("it holds the data of {}", survey.loop_device_over(&handle)?.display()));
    Ok(obstacles.iter().find(is_use).map(ToString::to_string).or_else(of_loop))
}

/// What the first bytes say.
fn content(file: &File) -> Option<&'static str> {
    const LOGS: [[u8; 4]; 3] = [[0x37, 0x7f, 0x06, 0x82], [0x37, 0x7f, 0x06, 0x83], [0xd9, 0xd5, 0x05, 0xf9]];
    let mut head = Vec::new();
    file.take(100).read_to_end(&mut head).ok()?;
    let is_history =
        head.starts_with(b"SQLite format 3\0") && head.get(OWNER_AT..OWNER_AT + 4)? == HISTORY_OWNER;
    if is_history {
        return Some("it is a history");
    }
    LOGS.iter().any(|magic| head.starts_with(magic)).then_some("it is the log of a database")
}

/// True where `entry` is where the history or a file beside it lies or is going to.
fn will_be_history(entry: &DirectoryEntry) -> bool {
    let directory = identity(&entry.directory, c"", AtFlags::EMPTY_PATH).ok();
    with(|taken| taken.histories.clone()).iter().flat_map(|history| history_files(history)).any(|path| {
        path.file_name() == Some(&entry.name)
            && path.parent().and_then(|parent| identity_at(parent).ok()) == directory
    })
}

/// The paths of a history and of SQLite's files, which lie where its links lead.
fn history_files(path: &Path) -> Vec<PathBuf> {
    let real = led_to(path);
    [""].iter()
        .chain(&DATABASE_FILES)
        .map(|end| {
            let mut name: OsString = real.clone().into();
            name.push(end);
            name.into()
        })
        .collect()
}

/// Where the links of `path` lead, also where nothing is there yet.
fn led_to(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match (fs::canonicalize(&path), fs::read_link(&path)) {
            (Ok(real), _) => return real,
            (Err(_), Ok(link)) => path = path.parent().unwrap_or(Path::new("/")).join(link),
            (Err(_), Err(_)) => break,
        }
    }
    path
}

fn identity_at(path: &Path) -> io::Result<Identity> {
    identity(rustix::fs::CWD, path, AtFlags::empty())
}

fn identity(
    directory: impl AsFd,
    name: impl rustix::path::Arg + Copy,
    flags: AtFlags,
) -> io::Result<Identity> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = rustix::fs::statx(&directory, name, flags, wanted)?;
    Ok(Identity {
        device: (found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        // Zeros where the file system does not keep it.
        born: (found.stx_btime.tv_sec, found.stx_btime.tv_nsec),
    })
}
