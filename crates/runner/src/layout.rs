//! File layout: creating files with the size and content that a run needs, before the measurement.
//!
//! Content is incompressible and bypasses the page cache if the file system permits, so that a layout runs at the speed
//! of the device and leaves no pages in memory.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use fathom_model::plan::Fallocate;
use fathom_sys::device::TargetHandle;
use fathom_sys::io::{FallocateMode, OpenFlags, fadvise_dontneed, fallocate, reopen};
use fathom_workload::{Rng, payload};

use crate::RunError;
use crate::session::Session;

const CHUNK: usize = 1 << 20;
const ALIGN: usize = 4096;
/// Without O_DIRECT, data is synced after this many bytes, so that the page cache does not hide the speed of the
/// device.
const BUFFERED_SYNC_BYTES: u64 = 64 << 20;

/// Progress of a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutProgress {
    /// The file.
    pub path: PathBuf,
    /// Bytes that it has.
    pub done_bytes: u64,
    /// Bytes that it will have.
    pub total_bytes: u64,
    /// Time since the start of this layout, ns.
    pub elapsed_ns: u64,
}

/// Requirements on a file before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// Bytes it must have.
    pub size: u64,
    /// Every byte must be written.
    pub filled: bool,
    /// Preallocation otherwise.
    pub fallocate: Fallocate,
    /// It is removed after the run.
    pub unlink: bool,
}

fn error(attempted: &'static str, path: &Path, source: std::io::Error) -> RunError {
    RunError::target(attempted, path, source)
}

fn open_for_layout(target: &TargetHandle) -> Result<File, RunError> {
    let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
    target.reopen(flags).map_err(|source| error("open", target.path(), source))
}

/// Extends the file as needed. Existing content is never changed.
pub(crate) fn lay_out(
    session: &Session,
    target: &TargetHandle,
    need: Need,
    report: &mut dyn FnMut(&LayoutProgress),
) -> Result<(), RunError> {
    let path = target.path();
    let file = open_for_layout(target)?;
    let has = file.metadata().map_err(|source| error("inspect", path, source))?.len();
    if has >= need.size {
        return Ok(());
    }
    if !need.filled {
        // Filling reports its progress; reserving is immediate, and reported once.
        report(&LayoutProgress {
            path: path.to_owned(),
            done_bytes: need.size,
            total_bytes: need.size,
            elapsed_ns: 0,
        });
    }
    let reserved = reserve(&file, has, need).map_err(|source| error("reserve space for", path, source));
    let mut filled = Filled { end: if need.filled { has } else { need.size }, by_others: false };
    let made = match need.filled {
        true => reserved.and_then(|()| fill_from(session, target, (need.size, None), &mut filled, report)),
        false => reserved,
    };
    // After a failure or interruption the file keeps neither data nor reserved blocks, unless other processes wrote to
    // it. The first error is reported.
    let is_ours = !filled.by_others && file.metadata().is_ok_and(|now| now.len() <= filled.end);
    if made.is_err() && is_ours {
        let _ = file.set_len(has);
    }
    made
}

/// Result of filling a file.
struct Filled {
    /// Size of the file afterwards.
    end: u64,
    /// Other processes extended it: their data is neither overwritten nor truncated.
    by_others: bool,
}

/// Gives the file its size as the plan's `fallocate` says. What a job writes may end before it lacks the space: then it runs
/// without, unless it asks for the reservation with `keep`.
fn reserve(file: &File, has: u64, need: Need) -> std::io::Result<()> {
    const UNSUPPORTED: [i32; 3] = [95, 38, 22];
    // ENOSPC and EDQUOT. A size that no file can have (EFBIG) is refused: the job would fill the file system.
    const NO_SPACE: [i32; 2] = [28, 122];
    let is_among = |error: &std::io::Error, numbers: &[i32]| {
        error.raw_os_error().is_some_and(|errno| numbers.contains(&errno))
    };
    let mode = match need.fallocate {
        Fallocate::None => return Ok(()),
        // A file to be filled grows only as it is filled: a killed layout must not leave a file of full size.
        Fallocate::Truncate if need.filled => return Ok(()),
        Fallocate::Truncate => return file.set_len(need.size),
        Fallocate::Keep => FallocateMode::KeepSize,
        Fallocate::Native | Fallocate::Posix if need.filled => FallocateMode::KeepSize,
        Fallocate::Native | Fallocate::Posix => FallocateMode::Extend,
    };
    match fallocate(file, mode, has, need.size - has) {
        Err(error) if mode == FallocateMode::Extend && is_among(&error, &NO_SPACE) => Ok(()),
        Err(error) if is_among(&error, &UNSUPPORTED) => {
            if need.fallocate == Fallocate::Posix && !need.filled { file.set_len(need.size) } else { Ok(()) }
        }
        other => other,
    }
}

/// Writes incompressible data from the end of the file up to `size`, or until `deadline` on the session's clock.
/// Returns the resulting size.
pub(crate) fn fill(
    session: &Session,
    target: &TargetHandle,
    size: u64,
    deadline: Option<u64>,
    report: &mut dyn FnMut(&LayoutProgress),
) -> Result<u64, RunError> {
    let mut filled = Filled { end: 0, by_others: false };
    fill_from(session, target, (size, deadline), &mut filled, report)?;
    Ok(filled.end)
}

/// Appends a piece, bypassing the page cache if the file system permits; true if it went through the cache. Both files
/// append, so that a piece never overwrites data that another process just appended.
fn append_piece(direct: &mut Option<File>, mut buffered: &File, piece: &[u8]) -> std::io::Result<bool> {
    const EINVAL: i32 = 22;
    if let Some(mut file) = direct.as_ref().filter(|_| piece.len().is_multiple_of(ALIGN)) {
        match file.write_all(piece) {
            Err(error) if error.raw_os_error() == Some(EINVAL) => *direct = None,
            other => return other.map(|()| false),
        }
    }
    buffered.write_all(piece).map(|()| true)
}

/// As [`fill`]; `filled` is the result even after a failure.
fn fill_from(
    session: &Session,
    target: &TargetHandle,
    (size, deadline): (u64, Option<u64>),
    filled: &mut Filled,
    report: &mut dyn FnMut(&LayoutProgress),
) -> Result<(), RunError> {
    let path = target.path();
    let failed = |source| error("lay out", path, source);
    let appending = OpenFlags { read: true, write: true, append: true, ..OpenFlags::default() };
    let buffered = target.reopen(appending).map_err(|source| error("open", path, source))?;
    let has = buffered.metadata().map_err(failed)?.len();
    filled.end = has;
    let began = session.now();
    let progress = |done_bytes, now| {
        let (path, elapsed_ns) = (path.to_owned(), now - began);
        LayoutProgress { path, done_bytes, total_bytes: size, elapsed_ns }
    };
    let mut rng = Rng::stream(has ^ size, 0x1a);
    let mut stamp = payload::BlockStamp::new(rng.next_u64());
    let mut space = vec![0u8; CHUNK + ALIGN];
    let start = space.as_ptr().align_offset(ALIGN);
    let chunk = &mut space[start..start + CHUNK];
    payload::fill_random(chunk, &mut rng);
    let direct = reopen(&buffered, OpenFlags { direct: true, ..appending }).ok();
    let mut direct = direct.filter(|_| has.is_multiple_of(ALIGN as u64));
    let (mut at, mut unsynced, mut reported) = (has, 0, began);
    while at < size {
        if let Some(reason) = session.stop_handle().reason() {
            return Err(RunError::Stopped { reason });
        }
        let now = session.now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            break;
        }
        if now - reported >= 200_000_000 {
            reported = now;
            report(&progress(at, now));
        }
        let longer = buffered.metadata().map_err(failed)?.len();
        if longer > at {
            // Another process appends to the file, or fills it too.
            (at, filled.by_others) = (longer.min(size), true);
            direct = direct.filter(|_| at.is_multiple_of(ALIGN as u64));
            continue;
        }
        let len = (size - at).min(CHUNK as u64) as usize;
        stamp.apply(&mut chunk[..len]);
        if append_piece(&mut direct, &buffered, &chunk[..len]).map_err(failed)? {
            unsynced += len as u64;
        }
        at += len as u64;
        filled.end = at;
        if unsynced >= BUFFERED_SYNC_BYTES {
            buffered.sync_data().map_err(failed)?;
            unsynced = 0;
        }
    }
    buffered.sync_all().map_err(failed)?;
    // Advice only: if the file system keeps the pages, they only take memory.
    let _ = fadvise_dontneed(&buffered, 0, 0);
    report(&progress(at, session.now()));
    filled.end = at;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_writes_needs_no_space_for_all_of_its_size() {
        // More than is free, and less than the largest file of any file system.
        const SIZE: u64 = 8 << 40;
        let check = |fallocate, filled, expected: bool| {
            // Memory refuses at once; ext4 first takes all that is free on the disk, which other tests use too.
            let file = tempfile::tempfile_in("/dev/shm").unwrap();
            let need = Need { size: SIZE, filled, fallocate, unlink: false };
            assert_eq!(reserve(&file, 0, need).is_ok(), expected, "{need:?}");
        };
        check(Fallocate::None, false, true);
        check(Fallocate::Native, false, true);
        check(Fallocate::Posix, false, true);
        check(Fallocate::Keep, false, false);
        check(Fallocate::Native, true, false);
        check(Fallocate::Posix, true, false);
    }
}
