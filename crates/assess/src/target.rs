//! What `bench` was pointed at. Looks, and changes nothing.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fathom_model::units::bytes;
use fathom_runner::{WritePermit, Written, admit};
use fathom_sys::device::{FilesystemFacts, PathKind, TargetHandle, TargetStack};
use fathom_sys::io::{OpenFlags, block_device_size, open_target};
use fathom_volume::VolumeModel;

use crate::AssessError;
use crate::catalogue::VolumeTypes;
use crate::error::plain;
use crate::machine::random;
use crate::simulated::{SimulatedVolume, is_simulated};

/// What is to be measured.
#[derive(Clone, Debug, PartialEq)]
pub enum BenchTarget {
    /// A directory: a working file is made in it.
    Directory {
        /// As typed.
        path: PathBuf,
        /// Where it lies.
        filesystem: FilesystemFacts,
    },
    /// A regular file, used within its present size.
    File {
        /// As typed.
        path: PathBuf,
        /// Bytes it has.
        size: u64,
        /// Its content may be overwritten.
        destroy: bool,
        /// It occupies less than its size: what is missing is read from no device.
        sparse: bool,
    },
    /// A block device.
    BlockDevice {
        /// As typed.
        path: PathBuf,
        /// Bytes it has.
        size: u64,
        /// Its content may be overwritten.
        destroy: bool,
    },
    /// A simulated volume, on virtual time.
    Simulated(Box<SimulatedVolume>),
}

impl BenchTarget {
    /// Looks at `path`, which may name one of `types`. `destroy` are the targets that the user named with `--destroy-data`.
    ///
    /// # Errors
    /// There is nothing there, it cannot be measured, or `destroy` names something else.
    pub fn inspect(
        path: &Path,
        destroy: &[PathBuf],
        types: &VolumeTypes,
    ) -> Result<BenchTarget, AssessError> {
        if is_simulated(path) {
            let target = BenchTarget::Simulated(Box::new(SimulatedVolume::named(path, types)?));
            if let Some(other) = destroy.iter().find(|other| *other != path) {
                return Err(not_named(path, other));
            }
            return target.large_enough(path);
        }
        let metadata = std::fs::metadata(path).map_err(|error| unseen(path, &error))?;
        if path.to_str().is_none() {
            // Tests are written as options, which are text; a name that is none would become another one.
            let hint = "rename it, or use a symbolic link with a valid name";
            return Err(AssessError::target(path, "its name is not valid UTF-8", hint));
        }
        let stack = stack_of(path)?;
        let permit = WritePermit::own(destroy);
        if let Some(other) = destroy.iter().find(|_| !permit.names(path)) {
            return Err(not_named(path, other));
        }
        let destroy = !destroy.is_empty();
        let target = match stack.target {
            PathKind::Directory => return directory(path, stack.filesystem.unwrap_or_default(), destroy),
            PathKind::File => {
                if destroy {
                    never_overruled(path)?;
                }
                let (size, occupied) = (metadata.len(), metadata.blocks().saturating_mul(512));
                BenchTarget::File { path: path.to_owned(), size, destroy, sparse: occupied < size / 10 * 9 }
            }
            PathKind::BlockDevice => {
                let open = open_target(path, OpenFlags::default());
                let size = open.and_then(|device| block_device_size(&device)).map_err(|error| {
                    let hint = "run as root, or add yourself to the disk group";
                    AssessError::target(path, format!("cannot be opened: {}", plain(&error)), hint)
                })?;
                if destroy {
                    never_overruled(path)?;
                }
                BenchTarget::BlockDevice { path: path.to_owned(), size, destroy }
            }
            PathKind::CharDevice | PathKind::Missing | PathKind::Other => {
                return Err(not_a_target(path));
            }
        };
        target.large_enough(path)
    }

    /// A simulated volume of one's own making.
    pub fn simulated(name: &str, model: VolumeModel) -> BenchTarget {
        BenchTarget::Simulated(Box::new(SimulatedVolume::of(name, model)))
    }

    fn large_enough(self, path: &Path) -> Result<BenchTarget, AssessError> {
        let Some(size) = self.size().filter(|size| *size < crate::working_file::MIN_SIZE) else {
            return Ok(self);
        };
        if let BenchTarget::Simulated(volume) = self {
            let has = bytes(volume.size());
            let message = format!("{}: has {has}; the tests need at least 16 MiB", path.display());
            return Err(AssessError::usage(message, "use a larger size="));
        }
        let hint = "use the directory instead (a test file is created in it and removed), or a larger target";
        Err(AssessError::target(path, format!("has {}; the tests need at least 16 MiB", bytes(size)), hint))
    }

    /// Bytes that it has; `None` for a directory.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            BenchTarget::Directory { .. } => None,
            BenchTarget::File { size, .. } | BenchTarget::BlockDevice { size, .. } => Some(*size),
            BenchTarget::Simulated(volume) => Some(volume.size()),
        }
    }

    /// True where time is virtual.
    pub fn is_simulated(&self) -> bool {
        matches!(self, BenchTarget::Simulated(_))
    }

    /// What follows a time in a sentence: that it is simulated, where it is.
    pub fn time_note(&self) -> &'static str {
        if self.is_simulated() { " of simulated time" } else { "" }
    }

    /// The word used in records.
    pub fn kind(&self) -> &'static str {
        match self {
            BenchTarget::Directory { .. } => "directory",
            BenchTarget::File { .. } => "file",
            BenchTarget::BlockDevice { .. } => "block_device",
            BenchTarget::Simulated(_) => "simulated",
        }
    }

    /// The path that jobs name; in a directory a file that exists under no name.
    pub(crate) fn working_path(&self) -> PathBuf {
        match self {
            BenchTarget::Directory { path, .. } => absolute(path).join("fathom.tmp"),
            BenchTarget::File { path, .. } | BenchTarget::BlockDevice { path, .. } => absolute(path),
            BenchTarget::Simulated(volume) => volume.path.clone(),
        }
    }

    /// What was `typed`, by a name that means the same everywhere on this machine.
    pub(crate) fn name(&self, typed: &Path) -> String {
        match self {
            BenchTarget::Simulated(volume) => volume.path.display().to_string(),
            _ => absolute(typed).display().to_string(),
        }
    }

    /// What direct requests are multiples of, bytes.
    pub(crate) fn request_unit(&self, typed: &Path) -> u64 {
        if self.is_simulated() {
            return 512;
        }
        let stack = TargetStack::of(typed).ok();
        let sectors = stack.iter().flat_map(|stack| &stack.devices);
        let largest = sectors.filter_map(|device| device.logical_block_size).max();
        // A file system without a device behind it says nothing; pages are what all of them take.
        largest.unwrap_or(4096).max(512)
    }

    /// Default seed of all random choices: the same each time on a simulated volume.
    pub(crate) fn usual_seed(&self) -> u64 {
        match self {
            BenchTarget::Simulated(volume) => volume.seed,
            _ => random() >> 32,
        }
    }

    /// Why tests that write are skipped; `None` where they are not.
    pub(crate) fn write_refusal(&self) -> Option<String> {
        let (what, path) = match self {
            BenchTarget::File { path, destroy: false, .. } => ("file's content", path),
            BenchTarget::BlockDevice { path, destroy: false, .. } => ("device's data", path),
            _ => return None,
        };
        Some(format!("would overwrite the {what}: requires --destroy-data={}", path.display()))
    }
}

pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn not_named(path: &Path, other: &Path) -> AssessError {
    let reason = format!("is not the target named by --destroy-data={}", other.display());
    AssessError::target(path, reason, "use the path of the target, or omit --destroy-data")
}

/// What lies below `path`.
pub(crate) fn stack_of(path: &Path) -> Result<TargetStack, AssessError> {
    TargetStack::of(path).map_err(|error| {
        let hint = error.hint().map(str::to_owned);
        AssessError { hint, ..AssessError::target(path, error.to_string(), "") }
    })
}

/// The refusal of a path that is there and cannot be measured.
pub(crate) fn not_a_target(path: &Path) -> AssessError {
    let reason = "is neither a directory, a regular file nor a block device";
    AssessError::target(path, reason, "use a directory, a regular file or a block device")
}

/// The refusal of a path that cannot be looked at.
pub(crate) fn unseen(path: &Path, error: &io::Error) -> AssessError {
    if error.kind() == io::ErrorKind::NotFound {
        let hint =
            "use a directory (a test file is created in it and removed), an existing file or a block device";
        return AssessError::target(path, "no such file or directory", hint);
    }
    let hint = "check its permissions and those of the directories above it";
    AssessError::target(path, format!("cannot be inspected: {}", plain(error)), hint)
}

fn directory(path: &Path, filesystem: FilesystemFacts, destroy: bool) -> Result<BenchTarget, AssessError> {
    if destroy {
        let hint = "omit --destroy-data: bench creates its own test file";
        return Err(AssessError::target(path, "is a directory, which is never overwritten", hint));
    }
    if filesystem.read_only {
        let reason = format!("its file system at {} is mounted read-only", filesystem.mount_point.display());
        let hint = "choose a writable directory, or the device itself";
        return Err(AssessError::target(path, reason, hint));
    }
    Ok(BenchTarget::Directory { path: path.to_owned(), filesystem })
}

/// Refuses a device or file that no flag of ours allows to write to, before anything is measured; the run itself asks once
/// more, of what it has opened then.
pub(crate) fn never_overruled(path: &Path) -> Result<(), AssessError> {
    let handle = TargetHandle::open(path).map_err(|error| unseen(path, &error))?;
    let permit = WritePermit::own(&[path.to_owned()]);
    admit(&permit, &[Written { handle: &handle, allow_mounted_write: false }])
        .map(drop)
        .map_err(AssessError::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, vec![1; 20 << 20]).unwrap();
        let small = dir.path().join("small");
        std::fs::write(&small, b"x").unwrap();
        let missing = dir.path().join("missing");
        let check = |path: &Path, destroy: &[&Path], expected: Result<&str, &str>| {
            let destroy: Vec<PathBuf> = destroy.iter().map(|path| path.to_path_buf()).collect();
            match (BenchTarget::inspect(path, &destroy, &VolumeTypes::default()), expected) {
                (Ok(target), Ok(kind)) => assert_eq!(target.kind(), kind),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, _) => panic!("{}: {found:?}, expected {expected:?}", path.display()),
            }
        };
        check(dir.path(), &[], Ok("directory"));
        check(&file, &[], Ok("file"));
        check(&file, &[&file], Ok("file"));
        check(&small, &[], Err("at least 16 MiB"));
        check(&missing, &[], Err("no such file"));
        check(Path::new("/no/such/dir/file"), &[], Err("no such file"));
        check(Path::new("/dev/null"), &[], Err("neither"));
        check(&file, &[&small], Err("is not the target named by --destroy-data="));
        check(dir.path(), &[dir.path()], Err("is a directory"));
        let volume = Path::new("sim:custom?iops=100&size=16MiB");
        check(volume, &[], Ok("simulated"));
        check(volume, &[volume], Ok("simulated"));
        check(volume, &[&file], Err("is not the target named by --destroy-data="));
        check(Path::new("sim:custom?iops=100&size=15MiB"), &[], Err("at least 16 MiB"));
        check(Path::new("./sim:custom"), &[], Err("no such file"));
    }

    #[test]
    fn writing_needs_the_word() {
        let file = |destroy| BenchTarget::File { path: "/x".into(), size: 1 << 30, destroy, sparse: false };
        assert!(file(false).write_refusal().is_some_and(|reason| reason.contains("--destroy-data=/x")));
        assert_eq!(file(true).write_refusal(), None);
    }
}
