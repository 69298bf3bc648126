//! The files and devices of a run: those that it writes to, their layout before the run, and their removal after it.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_engine::{NameUse, registry};
use fathom_model::plan::SizeSpec;
use fathom_model::{JobPlan, RunPlan};
use fathom_sys::device::{HandleKind, TargetHandle, TargetIdentity};
use fathom_workload::Extent;

use crate::RunError;
use crate::guard::{self, Written};
use crate::layout::{self, Need};
use crate::observe::RunObserver;
use crate::session::Session;
use crate::targets::{self, Target, TargetKind};

/// Removes the file at `path`, unless the path leads to another file now.
pub(crate) fn remove(path: &Path, identity: TargetIdentity) -> std::io::Result<()> {
    let now = std::fs::symlink_metadata(path)?;
    let (major, minor) = fathom_sys::device::numbers_of(now.dev());
    if TargetIdentity::File(major, minor, now.ino()) != identity && !now.is_symlink() {
        return Err(std::io::Error::other("another file has replaced it"));
    }
    std::fs::remove_file(path)
}

/// One path on each device and one on each file system, because all files there share the devices beneath.
pub(crate) fn places(targets: &BTreeMap<PathBuf, Target>) -> Vec<PathBuf> {
    let mut places: BTreeMap<(u32, u32, bool), PathBuf> = BTreeMap::new();
    for target in targets.values() {
        let place = match target.identity {
            Some(TargetIdentity::Device(major, minor)) => (major, minor, true),
            Some(TargetIdentity::File(major, minor, _)) => (major, minor, false),
            None => continue,
        };
        places.entry(place).or_insert_with(|| target.path.clone());
    }
    places.into_values().collect()
}

/// Makes the directories of the files that `plan` names, as fio does. Not below `/dev`, where a name that does not exist is
/// refused. It may hang with a file system, so it is called where signals are handled already. Returns those that it made.
///
/// # Errors
/// One of `required` does not exist, or a directory cannot be made.
pub fn make_directories(plan: &RunPlan, required: &[PathBuf]) -> Result<Vec<PathBuf>, RunError> {
    if let Some(missing) = required.iter().find(|directory| !directory.is_dir()) {
        return Err(RunError::unsuitable(
            missing,
            "is not a directory",
            "create it; only the directories of filename are created",
        ));
    }
    let uses_files = |job: &&JobPlan| {
        job.files.allow_create
            && registry::find(&job.engine.name).is_some_and(|entry| entry.traits.needs_files)
    };
    let paths =
        plan.jobs.iter().filter(uses_files).flat_map(|job| &job.clones).flat_map(|clone| &clone.paths);
    let mut made = Vec::new();
    for path in paths.filter(|path| !path.starts_with("/dev")) {
        let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) else {
            continue;
        };
        if directory.exists() {
            continue;
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|source| RunError::target("create", directory, source))?;
        made.push(directory.to_owned());
    }
    Ok(made)
}

/// The targets that the run writes to, in jobs or before them.
pub(crate) fn written<'a>(
    session: &Session,
    plan: &RunPlan,
    targets: &'a BTreeMap<PathBuf, Target>,
    needs: &BTreeMap<PathBuf, Need>,
) -> Vec<Written<'a>> {
    let mut written: BTreeMap<&Path, Written<'a>> = BTreeMap::new();
    for job in &plan.jobs {
        for path in job.clones.iter().flat_map(|clone| &clone.paths) {
            let target = &targets[path];
            let Some(handle) = target.handle.as_deref().filter(|_| session.own_file(path).is_none()) else {
                continue;
            };
            let grows = needs.get(path).is_some_and(|need| need.size > target.size);
            // Unlinking the last name of a file removes it for all its users.
            let is_unlinked = job.files.unlink && target.is_file();
            let removes = registry::find(&job.engine.name)
                .is_some_and(|entry| entry.traits.names == Some(NameUse::RemoveFile));
            if !job.io.modifies() && !grows && !is_unlinked && !removes {
                continue;
            }
            let allow = job.files.allow_mounted_write;
            let entry = written.entry(&target.path).or_insert(Written { handle, allow_mounted_write: allow });
            entry.allow_mounted_write &= allow;
        }
    }
    written.into_values().collect()
}

/// The ranges of the files that the workers use, by job, clone and path. A job without a size uses what earlier jobs make of
/// a file, and not what later ones do.
pub(crate) type UsedRanges = BTreeMap<(usize, usize, PathBuf), Extent>;

/// What each file needs before the run, and the range that each worker uses of it.
pub(crate) struct FileNeeds {
    pub needs: BTreeMap<PathBuf, Need>,
    pub ranges: UsedRanges,
}

/// The requirements on each file before the run.
pub(crate) fn needs(plan: &RunPlan, targets: &mut BTreeMap<PathBuf, Target>) -> Result<FileNeeds, RunError> {
    let mut needs: BTreeMap<PathBuf, Need> = BTreeMap::new();
    let mut ranges = UsedRanges::new();
    for (index, job) in plan.jobs.iter().enumerate() {
        for (clone, path) in
            job.clones.iter().enumerate().flat_map(|(i, c)| c.paths.iter().map(move |p| (i, p)))
        {
            let Some(target) = targets.get_mut(path) else { continue };
            let names = registry::find(&job.engine.name).and_then(|entry| entry.traits.names);
            if names.is_some_and(|names| !names.needs_file()) {
                continue;
            }
            let Extent { offset, len } = targets::extent(job, clone, target)?;
            ranges.insert((index, clone, path.clone()), Extent { offset, len });
            if !target.is_file() {
                continue;
            }
            if target.kind == TargetKind::Missing && !job.files.allow_create {
                return Err(RunError::unsuitable(
                    path,
                    "does not exist, and allow_file_create=0",
                    "name an existing file, or set allow_file_create=1",
                ));
            }
            let usage = job.files.usage;
            let grows = usage.create_on_open || usage.fill_device && !job.io.pattern.reads();
            let size = if grows {
                0
            } else {
                (offset + len).max(targets::file_size(job, clone, target).unwrap_or(0))
            };
            // A mapping cannot extend a file.
            let is_mapped = job.engine.name == "mmap";
            let filled = !grows && (job.io.pattern.reads() || job.files.overwrite || is_mapped);
            let (size, filled) = match targets::recorded_file(job, clone, target) {
                // Writes of a recording extend the file where they did.
                Some(file) if is_mapped => (file.end, true),
                Some(file) => (file.read_end, file.read_end > 0),
                None if names.is_some() => (size_of_named(job, clone), false),
                None => (size, filled),
            };
            let need = needs.entry(path.clone()).or_insert(Need {
                size: 0,
                filled: false,
                fallocate: job.files.fallocate,
                unlink: false,
            });
            need.size = need.size.max(size);
            // A later job without a size uses the file as it will be.
            target.planned = need.size;
            need.filled |= filled;
            need.unlink |= job.files.unlink;
        }
    }
    Ok(FileNeeds { needs, ranges })
}

/// Bytes of a file that is inspected or removed: any size will do.
fn size_of_named(job: &JobPlan, clone: usize) -> u64 {
    let files = job.clones[clone].paths.len().max(1) as u64;
    let size = job.io.size.and_then(SizeSpec::bytes).unwrap_or(0);
    job.io.file_size.unwrap_or(size / files)
}

/// Creates and fills the files of the whole run, each once, and opens handles for those that were missing. On failure
/// or interruption, no file remains that this run created and did not complete, or would have removed at its end.
pub(crate) fn lay_out_all(
    session: &Session,
    targets: &mut BTreeMap<PathBuf, Target>,
    needs: BTreeMap<PathBuf, Need>,
    observer: &mut dyn RunObserver,
) -> Result<(), RunError> {
    let mut temporary = Vec::new();
    for (path, need) in needs {
        let Some(target) = targets.get_mut(&path) else { continue };
        if target.handle.is_some() && target.size >= need.size {
            continue;
        }
        session.permit.admit_layout(&path, need.size)?;
        let (handle, is_new) = match target.handle.clone() {
            Some(handle) => (handle, false),
            None => create(session, &path)?,
        };
        session.control.lays_out(Some(path.as_path()).filter(|path| session.own_file(path).is_none()));
        let laid_out = layout::lay_out(session, &handle, need, &mut |progress| observer.layout(progress));
        if is_new && (need.unlink || laid_out.is_err()) {
            temporary.push((path, handle.identity()));
        }
        if let Err(error) = laid_out {
            for (path, identity) in temporary {
                // The earlier error is the one to report.
                let _ = remove(&path, identity);
            }
            return Err(error);
        }
        target.identity = Some(handle.identity());
        target.handle = Some(handle);
    }
    Ok(())
}

/// Creates the file at `path`; returns whether it is new, because another program, or another name in this run, may
/// have created it first.
fn create(session: &Session, path: &Path) -> Result<(Arc<TargetHandle>, bool), RunError> {
    let failed = |source| RunError::target("create", path, source);
    match TargetHandle::create(path) {
        Ok(handle) => return Ok((Arc::new(handle), true)),
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed(error)),
        Err(_) => {}
    }
    let handle = session.handle(path).map_err(failed)?;
    if handle.kind() != HandleKind::File {
        return Err(RunError::unsuitable(
            path,
            "was replaced during preparation",
            "find the process that replaces it, and retry",
        ));
    }
    guard::admit(&session.permit, &[Written { handle: &handle, allow_mounted_write: false }])?;
    Ok((handle, false))
}
