//! The working file of `bench`: how large it may be, and how it is made so that no death of the process leaves it behind; how it is
//! filled before anything is measured.

use std::fs::File;
use std::path::Path;

use fathom_model::Nanos;
use fathom_model::units::{UnitSystem, bytes, duration};
use fathom_runner::{LayoutProgress, RunObserver, Session};
use fathom_sys::device::FilesystemFacts;
use fathom_sys::io::{OpenFlags, open_target, open_unnamed, reopen};

use crate::error::plain;
use crate::machine::random;
use crate::target::BenchTarget;
use crate::{AssessError, working_file};

/// Least size of what is measured: 1 MiB blocks at depth 8, twice over.
pub(crate) const MIN_SIZE: u64 = 16 << 20;
/// Sizes are whole multiples of this, so that every block size fits.
const UNIT: u64 = 1 << 20;
/// Kept free on the root file system, where running out of space hurts everything.
pub(crate) const ROOT_RESERVE: u64 = 1 << 30;

/// How large the working file shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SizePlan {
    /// Bytes.
    pub size: u64,
    /// Why it is less than the suite has it; empty where it is not.
    pub note: Option<String>,
}

/// The size that a suite wants for its test file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WantedSize {
    /// Bytes.
    pub bytes: u64,
    /// The source of the suite recommends this size, so the file may take half of the free space instead of a tenth.
    pub is_recommended: bool,
}

impl WantedSize {
    /// A size that nobody recommends.
    pub const fn usual(bytes: u64) -> WantedSize {
        WantedSize { bytes, is_recommended: false }
    }
}

/// The size for a directory on `filesystem`: what the user asked for where it fits, else the smaller of the suite's size
/// and its part of the free space.
pub(crate) fn plan_size(
    path: &Path,
    filesystem: &FilesystemFacts,
    wanted: WantedSize,
    requested: Option<u64>,
) -> Result<SizePlan, AssessError> {
    let reserve = if filesystem.is_root_filesystem { ROOT_RESERVE } else { 0 };
    let usable = filesystem.free_bytes.saturating_sub(reserve);
    if filesystem.total_bytes == 0 {
        let reason = format!("its file system ({}) cannot store files", filesystem.fs_type);
        return Err(AssessError::target(path, reason, "choose a directory on a disk"));
    }
    if let Some(requested) = requested {
        let size = requested - requested % UNIT;
        if size < MIN_SIZE {
            return Err(AssessError::too_small(requested));
        }
        if size > usable {
            let kept = if reserve > 0 { ", of which 1.0 GiB is reserved for the system" } else { "" };
            let hint = if usable < MIN_SIZE {
                "free some space or choose another directory".to_owned()
            } else {
                format!("use --size {}m or less", usable / UNIT)
            };
            let reason = format!("needs {}, {} free{kept}", bytes(size), bytes(filesystem.free_bytes));
            return Err(AssessError::target(path, reason, hint));
        }
        return Ok(SizePlan { size, note: None });
    }
    let (part, name) = if wanted.is_recommended { (2, "half") } else { (10, "a tenth") };
    let size = wanted.bytes.min(usable / part);
    let size = size - size % UNIT;
    if size < MIN_SIZE {
        let free = bytes(filesystem.free_bytes);
        let reason = format!("{free} free, and {name} of it is too little for the tests");
        let hint = "free some space, choose another directory, or set --size 16m";
        return Err(AssessError::target(path, reason, hint));
    }
    let system = UnitSystem::of(wanted.bytes as f64);
    let note = (size < wanted.bytes - wanted.bytes % UNIT).then(|| {
        format!(
            "the test file has {} instead of {}, {name} of the free space; set the size with --size",
            system.amount(size),
            system.amount(wanted.bytes)
        )
    });
    Ok(SizePlan { size, note })
}

/// Makes the working file in `dir`: without a name where the file system can, else under an unguessable one that is
/// removed at once.
pub(crate) fn make(dir: &Path, direct: bool) -> Result<File, AssessError> {
    let fail = |what: &str, error: std::io::Error| {
        let hint = match error.kind() {
            std::io::ErrorKind::PermissionDenied => Some("choose a directory that this user can write to"),
            std::io::ErrorKind::ReadOnlyFilesystem => Some("choose a writable directory"),
            std::io::ErrorKind::StorageFull => Some("free some space or choose another directory"),
            _ if matches!(error.raw_os_error(), Some(ENFILE | EMFILE)) => {
                Some("raise the limit of open files (ulimit -n)")
            }
            _ => None,
        };
        let reason = format!("cannot {what} the test file: {}", plain(&error));
        AssessError { hint: hint.map(str::to_owned), ..AssessError::target(dir, reason, "") }
    };
    let file = make_unnamed(dir).map_err(|error| fail("create", error))?;
    if direct {
        let flags = OpenFlags { write: true, direct: true, ..OpenFlags::default() };
        reopen(&file, flags).map_err(|error| match error.raw_os_error() {
            Some(EINVAL) => no_direct_io(dir),
            _ => fail("reopen", error),
        })?;
    }
    Ok(file)
}

/// The refusal of a target whose file system does not support direct I/O.
pub(crate) fn no_direct_io(path: &Path) -> AssessError {
    AssessError::target(
        path,
        "its file system does not support direct I/O (O_DIRECT)",
        "use --buffered to measure through the page cache, or another target",
    )
}

const EINVAL: i32 = 22;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

/// Makes a file for reading and writing in `dir`: without a name where the file system can, else under an unguessable one that is
/// removed at once.
pub(crate) fn make_unnamed(dir: &Path) -> std::io::Result<File> {
    match open_unnamed(dir) {
        Err(error) if can_do_without(&error) => named_and_removed(dir),
        opened => opened,
    }
}

/// The errors of a file system without O_TMPFILE: EOPNOTSUPP, EISDIR, EINVAL.
fn can_do_without(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(95 | 21 | EINVAL))
}

fn named_and_removed(dir: &Path) -> std::io::Result<File> {
    let path = dir.join(format!(".fathom-{:016x}.tmp", random()));
    let flags = OpenFlags { read: true, write: true, create: true, exclusive: true, ..OpenFlags::default() };
    let file = open_target(&path, flags)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// What is laid out.
pub(crate) struct Layout<'a> {
    /// Where.
    pub target: &'a BenchTarget,
    /// The path that jobs name.
    pub file: &'a Path,
    /// Bytes wanted.
    pub size: u64,
    /// It will be opened for direct I/O.
    pub direct: bool,
    /// Longest time; `None` = as long as it takes.
    pub limit: Option<Nanos>,
}

/// Makes the working file where the target is a directory and fills it for as long as it may take; returns the bytes
/// that are used then.
///
/// # Errors
/// It cannot be made or written, or has too little when the time is over.
pub(crate) fn lay_out(
    layout: &Layout<'_>,
    session: &mut Session,
    observer: &mut dyn RunObserver,
    notes: &mut Vec<String>,
) -> Result<u64, AssessError> {
    let BenchTarget::Directory { path, .. } = layout.target else { return Ok(layout.size) };
    let file = working_file::make(path, layout.direct)?;
    session.hold(layout.file.to_owned(), file).map_err(|error| {
        let reason = format!("cannot inspect the test file: {}", plain(&error));
        AssessError { hint: None, ..AssessError::target(path, reason, "") }
    })?;
    let deadline = layout.limit.map(|time| session.now() + time.0);
    let mut report = |progress: &LayoutProgress| observer.layout(progress);
    let got = session.lay_out(layout.file, layout.size, deadline, &mut report)?;
    let size = got - got % (1 << 20);
    let Some(limit) = layout.limit.filter(|_| size < layout.size) else { return Ok(size) };
    if size < working_file::MIN_SIZE {
        let reason = format!("accepted only {} in {}, too little for the tests", bytes(got), duration(limit));
        let hint = "use --size 16m and more time (--runtime, --budget)";
        return Err(AssessError::target(path, reason, hint));
    }
    notes.push(format!(
        "the test file has {} instead of {}, limited by a layout time of {}; set the size with --size",
        bytes(size),
        bytes(layout.size),
        duration(limit)
    ));
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: u64 = 1 << 30;

    #[test]
    fn sizes() {
        let check = |free: u64, root: bool, requested: Option<u64>, expected: Result<(u64, bool), &str>| {
            let filesystem = FilesystemFacts {
                free_bytes: free,
                total_bytes: 200 * G,
                is_root_filesystem: root,
                ..FilesystemFacts::default()
            };
            let found = plan_size(Path::new("/t"), &filesystem, WantedSize::usual(4 * G), requested);
            match (found, expected) {
                (Ok(plan), Ok(expected)) => {
                    assert_eq!((plan.size, plan.note.is_some()), expected, "{free} {root} {requested:?}")
                }
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, _) => panic!("{free} {root} {requested:?}: {found:?}"),
            }
        };
        check(100 * G, false, None, Ok((4 * G, false)));
        check(20 * G, false, None, Ok((2 * G, true)));
        check(21 * G, true, None, Ok((2 * G, true)));
        check(100 << 20, false, None, Err("a tenth"));
        check(G, true, None, Err("a tenth"));
        check(100 << 20, false, Some(64 << 20), Ok((64 << 20, false)));
        check(100 << 20, false, Some((64 << 20) + 5), Ok((64 << 20, false)));
        check(100 << 20, false, Some(G), Err("100 MiB free"));
        check(100 * G, false, Some(0), Err("too small"));
        check(100 * G, false, Some(1), Err("too small"));
        check(2 * G, true, Some(G + 1), Ok((G, false)));
        check(2 * G, true, Some(G + UNIT), Err("reserved for the system"));
    }

    #[test]
    fn a_recommended_size_may_take_half_of_the_free_space() {
        let check = |free: u64, expected: (u64, bool)| {
            let filesystem =
                FilesystemFacts { free_bytes: free, total_bytes: 200 * G, ..FilesystemFacts::default() };
            let wanted = WantedSize { bytes: 20_000_000_000, is_recommended: true };
            let plan = plan_size(Path::new("/t"), &filesystem, wanted, None).unwrap();
            assert_eq!((plan.size, plan.note.is_some()), expected, "{free}");
        };
        check(40 * G, (20_000_000_000 / UNIT * UNIT, false));
        check(16 * G, (8 * G, true));
    }

    #[test]
    fn nothing_is_left_in_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let unnamed = make(dir.path(), false).unwrap();
        let removed = named_and_removed(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        for file in [unnamed, removed] {
            std::os::unix::fs::FileExt::write_all_at(&file, b"data", 0).unwrap();
            assert_eq!(file.metadata().unwrap().len(), 4);
        }
        let error = make(Path::new("/proc"), false).unwrap_err();
        assert!(error.to_string().contains("/proc: cannot create the test file"), "{error}");
    }
}
