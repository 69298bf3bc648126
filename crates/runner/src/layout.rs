//! Giving files the size and content that a run needs, before it is measured.
//!
//! Content is incompressible and written past the page cache where the file system allows, so that a layout takes the
//! time the device takes and leaves nothing behind in memory.

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
/// Without O_DIRECT, written data is forced out this often, so that the page cache does not swallow the device's pace.
const BUFFERED_SYNC_BYTES: u64 = 64 << 20;

/// How far a layout has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutProgress {
    /// The file.
    pub path: PathBuf,
    /// Bytes it holds.
    pub done_bytes: u64,
    /// Bytes it shall hold.
    pub total_bytes: u64,
    /// Since this layout began, ns.
    pub elapsed_ns: u64,
}

/// What a file has to be before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// Bytes it must have.
    pub size: u64,
    /// Every byte must have been written.
    pub filled: bool,
    /// How it gets its size otherwise.
    pub fallocate: Fallocate,
    /// It is removed at the end.
    pub unlink: bool,
}

fn error(attempted: &'static str, path: &Path, source: std::io::Error) -> RunError {
    RunError::Target { attempted, path: path.to_owned(), source, direct: false }
}

fn open_for_layout(target: &TargetHandle) -> Result<File, RunError> {
    let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
    target.reopen(flags).map_err(|source| error("open", target.path(), source))
}

/// Extends the file to what is needed. Existing content is never touched.
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
        // Filling tells its own progress; reserving is done at once, and told all the same.
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
    // What failed or was interrupted keeps neither data nor reserved blocks, unless others wrote meanwhile. The first error
    // is the one to tell.
    let is_ours = !filled.by_others && file.metadata().is_ok_and(|now| now.len() <= filled.end);
    if made.is_err() && is_ours {
        let _ = file.set_len(has);
    }
    made
}

/// How far a file was filled.
struct Filled {
    /// Bytes that it has then.
    end: u64,
    /// Others made it longer meanwhile: what they wrote is neither overwritten nor cut off.
    by_others: bool,
}

/// Gives the file its size as the plan's `fallocate` says.
fn reserve(file: &File, has: u64, need: Need) -> std::io::Result<()> {
    const UNSUPPORTED: [i32; 3] = [95, 38, 22];
    let mode = match need.fallocate {
        Fallocate::None => return Ok(()),
        // A file to be filled keeps its size until it is: a layout that dies must not leave a file that looks whole.
        Fallocate::Truncate if need.filled => return Ok(()),
        Fallocate::Truncate => return file.set_len(need.size),
        Fallocate::Keep => FallocateMode::KeepSize,
        Fallocate::Native | Fallocate::Posix if need.filled => FallocateMode::KeepSize,
        Fallocate::Native | Fallocate::Posix => FallocateMode::Extend,
    };
    match fallocate(file, mode, has, need.size - has) {
        Err(error) if error.raw_os_error().is_some_and(|errno| UNSUPPORTED.contains(&errno)) => {
            if need.fallocate == Fallocate::Posix && !need.filled { file.set_len(need.size) } else { Ok(()) }
        }
        other => other,
    }
}

/// Writes incompressible data from the file's present end up to `size`, or until `deadline` on the session's clock.
/// Returns the bytes it has then.
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

/// Appends a piece past the page cache where the file system allows it; true where it went through the cache. Both files
/// append, so that a piece never lands on what another process appended a moment before.
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

/// As [`fill`]; `filled` tells how far it came, also where it failed.
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
            // Somebody else appends to the file, or fills it as well.
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
    // Advice only: a file system that keeps the pages costs nothing but memory.
    let _ = fadvise_dontneed(&buffered, 0, 0);
    report(&progress(at, session.now()));
    filled.end = at;
    Ok(())
}
