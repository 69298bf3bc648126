//! The files of an artefact, and the directory that an archiver reads them from: owner, modes and times are the same everywhere.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;

const DIRECTORY_MODE: u32 = 0o755;

/// A file of an artefact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedFile {
    /// Its path, relative to the top.
    pub path: String,
    pub mode: u32,
    pub bytes: Vec<u8>,
}

impl PackedFile {
    /// A program.
    pub fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> PackedFile {
        PackedFile { path: path.into(), mode: 0o755, bytes: bytes.into() }
    }

    /// A file that is read.
    pub fn data(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> PackedFile {
        PackedFile { path: path.into(), mode: 0o644, bytes: bytes.into() }
    }
}

/// Writes `files` below `directory`, which exists; all times are `epoch`.
pub fn write(directory: &Path, files: &[PackedFile], epoch: i64) -> anyhow::Result<()> {
    for file in files {
        let path = directory.join(&file.path);
        let parent = path.parent().context("a file has a directory")?;
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        fs::write(&path, &file.bytes).with_context(|| format!("cannot write {}", path.display()))?;
        set_mode(&path, file.mode)?;
    }
    settle(directory, epoch)
}

/// Gives every directory its mode, and everything its time: directories last, because their entries change it.
pub fn settle(directory: &Path, epoch: i64) -> anyhow::Result<()> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list {}", directory.display()))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            settle(&entry.path(), epoch)?;
        } else {
            set_time(&entry.path(), epoch)?;
        }
    }
    set_mode(directory, DIRECTORY_MODE)?;
    set_time(directory, epoch)
}

fn set_mode(path: &Path, mode: u32) -> anyhow::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .with_context(|| format!("cannot change the mode of {}", path.display()))
}

fn set_time(path: &Path, epoch: i64) -> anyhow::Result<()> {
    let seconds = u64::try_from(epoch).context("a time before 1970")?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    File::open(path)
        .and_then(|file| file.set_modified(time))
        .with_context(|| format!("cannot change the time of {}", path.display()))
}

/// The space that `files` take where they are installed, KiB, each rounded up.
pub fn installed_kib(files: &[PackedFile]) -> usize {
    files.iter().map(|file| file.bytes.len().div_ceil(1024)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_times_depend_on_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let files = [
            PackedFile::program("usr/bin/fathom", "#!/bin/sh\n"),
            PackedFile::data("usr/share/doc/x", vec![0; 1025]),
        ];
        write(directory.path(), &files, 1_790_000_000).unwrap();
        let check = |path: &str, mode| {
            let metadata = fs::metadata(directory.path().join(path)).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o7777, mode, "{path}");
            let time = metadata.modified().unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            assert_eq!(time, Duration::from_secs(1_790_000_000), "{path}");
        };
        check("usr/bin/fathom", 0o755);
        check("usr/share/doc/x", 0o644);
        check("usr/share", 0o755);
        check("", 0o755);
        assert_eq!(installed_kib(&files), 3);
    }
}
