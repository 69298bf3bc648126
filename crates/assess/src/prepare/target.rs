//! What `prepare` was pointed at. Looks, and changes nothing.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fathom_model::units::bytes;
use fathom_runner::WritePermit;
use fathom_sys::device::{FilesystemFacts, PathKind, TargetStack, unfit_for_a_new_file};

use super::settings::PrepareSettings;
use crate::AssessError;
use crate::error::plain;
use crate::settings::RunSettings;
use crate::simulated::{SimulatedVolume, is_simulated};
use crate::target::{BenchTarget, absolute, never_overruled};
use crate::working_file::ROOT_RESERVE;

/// What is to be prepared.
#[derive(Clone, Debug, PartialEq)]
pub struct PrepareTarget {
    /// What it is.
    pub kind: PrepareKind,
    /// The path that jobs name.
    pub file: PathBuf,
    /// Bytes to be prepared, from its start.
    pub size: u64,
    /// Bytes it has, or will have.
    pub capacity: u64,
    /// Its content may be lost.
    pub may_write: bool,
    /// What its requests are multiples of, bytes.
    pub unit: u64,
    /// It occupies less than its size.
    pub sparse: bool,
    /// Where a file lies.
    pub filesystem: Option<FilesystemFacts>,
    /// The simulated volume that it is.
    pub volume: Option<Box<SimulatedVolume>>,
}

/// The kinds of target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrepareKind {
    /// A file that is not there yet.
    NewFile,
    /// A file that is there.
    File,
    /// A block device.
    BlockDevice,
    /// A simulated volume, on virtual time.
    Simulated,
}

/// The least that is worth preparing.
const LEAST: u64 = 1 << 20;

impl PrepareTarget {
    /// Looks at the target of `settings`.
    ///
    /// # Errors
    /// It is nothing that can be prepared, it may not be written to although the user allowed it, or there is no room.
    pub fn inspect(settings: &PrepareSettings) -> Result<PrepareTarget, AssessError> {
        let (run, path) = (&settings.run, &settings.run.target);
        if is_simulated(path) {
            return simulated(settings);
        }
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return new_file(settings),
            Err(error) => {
                let hint = "check its permissions and those of the directories above it";
                return run.refuse(format!("cannot be inspected: {}", plain(&error)), hint);
            }
        };
        if metadata.is_dir() {
            let name = path.join("fathom.dat");
            let hint =
                format!("use a file in it, which is created: fathom prepare {} --size 10g", name.display());
            return run.refuse("is a directory; only files and block devices can be prepared", hint);
        }
        if !metadata.is_file() {
            return device(settings);
        }
        existing_file(settings, &metadata)
    }

    /// The part of `file` that `settings` name, of a target of `capacity` bytes whose requests are multiples of `unit`.
    fn new(
        settings: &PrepareSettings,
        kind: PrepareKind,
        file: PathBuf,
        (capacity, unit): (u64, u64),
    ) -> Result<PrepareTarget, AssessError> {
        Ok(PrepareTarget {
            kind,
            file,
            size: within(settings, capacity, unit)?,
            capacity,
            may_write: true,
            unit,
            sparse: false,
            filesystem: None,
            volume: None,
        })
    }

    /// The word used for it in sentences.
    pub fn noun(&self) -> &'static str {
        match self.kind {
            PrepareKind::NewFile | PrepareKind::File => "file",
            PrepareKind::BlockDevice | PrepareKind::Simulated => "device",
        }
    }
}

fn device(settings: &PrepareSettings) -> Result<PrepareTarget, AssessError> {
    let (run, path) = (&settings.run, &settings.run.target);
    let target = BenchTarget::inspect(path, &settings.run.destroy, &settings.run.types)?;
    let BenchTarget::BlockDevice { size: capacity, destroy, .. } = target else {
        return run
            .refuse("is neither a regular file nor a block device", "use a regular file or a block device");
    };
    let unit = target.request_unit(path);
    let all = PrepareTarget::new(settings, PrepareKind::BlockDevice, absolute(path), (capacity, unit))?;
    Ok(PrepareTarget { may_write: destroy, ..all })
}

fn simulated(settings: &PrepareSettings) -> Result<PrepareTarget, AssessError> {
    let (run, path) = (&settings.run, &settings.run.target);
    if settings.resume {
        let reason = "a simulated volume starts anew with each command and cannot be resumed";
        return Err(AssessError::usage(format!("{}: {reason}", path.display()), "omit --resume"));
    }
    let target = BenchTarget::inspect(path, &settings.run.destroy, &settings.run.types)?;
    let unit = target.request_unit(path);
    let BenchTarget::Simulated(volume) = target else {
        return run.refuse("is not a simulated volume", "use sim:ID?size=50GiB");
    };
    let file = volume.path.clone();
    let all = PrepareTarget::new(settings, PrepareKind::Simulated, file, (volume.size(), unit))?;
    Ok(PrepareTarget { volume: Some(volume), ..all })
}

/// The part of `capacity` that is used.
fn within(settings: &PrepareSettings, capacity: u64, unit: u64) -> Result<u64, AssessError> {
    let run = &settings.run;
    let given = settings.run.size.unwrap_or(capacity);
    if given > capacity {
        let reason = format!("--size is {}, but the target has {}", bytes(given), bytes(capacity));
        return run.refuse(reason, "omit --size to use all of it");
    }
    let size = given - given % unit;
    if size < LEAST {
        return run.refuse(format!("{} is too little to prepare", bytes(given)), "use at least 1 MiB");
    }
    Ok(size)
}

fn new_file(settings: &PrepareSettings) -> Result<PrepareTarget, AssessError> {
    let (run, path) = (&settings.run, &settings.run.target);
    let parent = absolute(path).parent().map(Path::to_path_buf).unwrap_or_default();
    if settings.resume || !settings.run.destroy.is_empty() {
        let option = if settings.resume { "--resume" } else { "--destroy-data" };
        let hint = format!("check the name, or omit {option} to create it");
        return run.refuse("no such file", hint);
    }
    if !parent.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return run.refuse("no such file or directory", "create the directory first, or check the name");
    }
    if let Some(reason) = unfit_for_a_new_file(path) {
        return run.refuse(
            reason,
            "check the name (`lsblk` lists the devices); fathom creates no files among device nodes",
        );
    }
    if settings.run.size.is_none() {
        let hint = "give its size: --size 10g";
        return run.refuse("no such file, and no size to create it with", hint);
    }
    let filesystem = filesystem_of(run)?;
    let all = PrepareTarget::new(settings, PrepareKind::NewFile, absolute(path), (u64::MAX, 4096))?;
    has_room(run, &filesystem, all.size)?;
    Ok(PrepareTarget { capacity: all.size, filesystem: Some(filesystem), ..all })
}

fn existing_file(
    settings: &PrepareSettings,
    metadata: &std::fs::Metadata,
) -> Result<PrepareTarget, AssessError> {
    let (run, path) = (&settings.run, &settings.run.target);
    if path.to_str().is_none() {
        return run
            .refuse("its name is not valid UTF-8", "rename it, or use a symbolic link with a valid name");
    }
    let permit = WritePermit::own(&settings.run.destroy);
    if let Some(other) = settings.run.destroy.iter().find(|_| !permit.names(path)) {
        let reason = format!("is not the target named by --destroy-data={}", other.display());
        return run.refuse(reason, "use the path of the target, or omit --destroy-data");
    }
    let may_write = !settings.run.destroy.is_empty();
    if may_write {
        never_overruled(path)?;
    }
    let filesystem = filesystem_of(run)?;
    let (has, occupied) = (metadata.len(), metadata.blocks().saturating_mul(512));
    let capacity = if may_write { has.max(settings.run.size.unwrap_or(has)) } else { has };
    let unit = BenchTarget::File { path: path.clone(), size: has, destroy: may_write, sparse: false }
        .request_unit(path);
    let all = PrepareTarget::new(settings, PrepareKind::File, absolute(path), (capacity, unit))?;
    if may_write {
        has_room(run, &filesystem, all.size.saturating_sub(occupied))?;
    }
    let sparse = occupied < has / 10 * 9;
    Ok(PrepareTarget { may_write, sparse, filesystem: Some(filesystem), ..all })
}

fn filesystem_of(run: &RunSettings) -> Result<FilesystemFacts, AssessError> {
    let path = &run.target;
    let stack = TargetStack::of(path).map_err(|error| {
        AssessError::target(path, error.to_string(), error.hint().unwrap_or("check the path"))
    })?;
    match stack.target {
        PathKind::File | PathKind::Missing => Ok(stack.filesystem.unwrap_or_default()),
        _ => {
            run.refuse("is neither a regular file nor a block device", "use a regular file or a block device")
        }
    }
}

/// Refuses what would fill a file system to the brim.
fn has_room(run: &RunSettings, filesystem: &FilesystemFacts, more: u64) -> Result<(), AssessError> {
    if filesystem.read_only {
        let reason = format!("its file system at {} is mounted read-only", filesystem.mount_point.display());
        return run.refuse(reason, "choose a writable directory");
    }
    let reserve = if filesystem.is_root_filesystem { ROOT_RESERVE } else { 0 };
    let usable = filesystem.free_bytes.saturating_sub(reserve);
    if more <= usable {
        return Ok(());
    }
    let kept = if reserve > 0 { ", of which 1.0 GiB is reserved for the system" } else { "" };
    let reason = format!("needs {} more, {} free{kept}", bytes(more), bytes(filesystem.free_bytes));
    run.refuse(reason, "choose a smaller --size, or free some space")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspect(target: &Path, size: Option<u64>, destroy: &[&Path]) -> Result<PrepareTarget, AssessError> {
        PrepareTarget::inspect(&PrepareSettings {
            run: RunSettings {
                target: target.to_owned(),
                size,
                destroy: destroy.iter().map(|path| path.to_path_buf()).collect(),
                ..RunSettings::default()
            },
            ..PrepareSettings::default()
        })
    }

    #[test]
    fn files_are_made_read_or_written_as_far_as_was_said() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, vec![1; 3 << 20]).unwrap();
        let new = dir.path().join("new");
        let check = |path: &Path,
                     size: Option<u64>,
                     destroy: &[&Path],
                     expected: Result<(PrepareKind, u64, bool), &str>| {
            match (inspect(path, size, destroy), expected) {
                (Ok(target), Ok(expected)) => {
                    assert_eq!((target.kind, target.size, target.may_write), expected)
                }
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{error}");
                    assert!(error.hint.is_some(), "{error}");
                }
                (found, _) => panic!("{}: {found:?}, expected {expected:?}", path.display()),
            }
        };
        check(&new, Some(2 << 20), &[], Ok((PrepareKind::NewFile, 2 << 20, true)));
        check(&new, None, &[], Err("no size to create it"));
        check(&new, Some(1 << 60), &[], Err(" more, "));
        check(&new, Some(4096), &[], Err("too little"));
        check(&new, Some(2 << 20), &[&new], Err("no such file"));
        check(&dir.path().join("no/new"), Some(2 << 20), &[], Err("no such file or directory"));
        check(&file, None, &[], Ok((PrepareKind::File, 3 << 20, false)));
        check(&file, Some(5 << 20), &[], Err("the target has 3.0 MiB"));
        check(&file, Some(5 << 20), &[&file], Ok((PrepareKind::File, 5 << 20, true)));
        check(&file, None, &[&new], Err("is not the target named by --destroy-data="));
        check(dir.path(), Some(2 << 20), &[], Err("is a directory"));
        check(Path::new("/dev/null"), None, &[], Err("neither"));
    }
}
