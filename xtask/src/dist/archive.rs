//! Archives whose bytes depend on names, modes and contents alone, and checksums. GNU tar and gzip write them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::process::{output, sha256};

/// Packs what is in `directory` into `archive`, sorted, as root's.
pub fn tar(directory: &Path, archive: &Path, epoch: i64) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    tar.env("LC_ALL", "C").env_remove("TAR_OPTIONS");
    tar.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{epoch}")).arg("--file").arg(archive).arg("--directory").arg(directory);
    output(tar.arg("--").args(names(directory)?)).map(drop)
}

/// The names in `directory`, sorted.
fn names(directory: &Path) -> anyhow::Result<Vec<std::ffi::OsString>> {
    let mut names = fs::read_dir(directory)
        .and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<Vec<_>, _>>()
        })
        .with_context(|| format!("cannot list {}", directory.display()))?;
    names.sort_unstable();
    Ok(names)
}

/// Compresses files, each in its place and with `.gz` behind its name.
pub fn gzip(files: &[PathBuf]) -> anyhow::Result<()> {
    let mut gzip = Command::new("gzip");
    gzip.env_remove("GZIP").args(["-9", "--no-name", "--force", "--"]).args(files);
    output(&mut gzip).map(drop)
}

/// The lines of `sha256sum` for every file in `directory`, sorted by name.
pub fn checksums(directory: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    for name in names(directory)? {
        let path = directory.join(&name);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let _ = writeln!(text, "{}  {}", sha256(&bytes), name.to_string_lossy());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::stage::{self, PackedFile};
    use super::*;

    #[test]
    fn archives_of_the_same_files_are_the_same() {
        let packed = |order: [usize; 2], epoch| {
            let directory = tempfile::tempdir().unwrap();
            let (from, to) = (directory.path().join("from"), directory.path().join("x.tar"));
            fs::create_dir(&from).unwrap();
            let files = [PackedFile::program("usr/bin/b", "b"), PackedFile::data("etc/a", "a")];
            for index in order {
                stage::write(&from, &files[index..=index], epoch).unwrap();
            }
            tar(&from, &to, epoch).unwrap();
            gzip(std::slice::from_ref(&to)).unwrap();
            let bytes = fs::read(to.with_extension("tar.gz")).unwrap();
            (bytes, directory)
        };
        let first = packed([0, 1], 7).0;
        assert_eq!(first, packed([1, 0], 7).0);
        assert_ne!(first, packed([0, 1], 8).0);
        assert_eq!(first[4..8], [0; 4], "the time of gzip");
    }

    #[test]
    fn checksums_are_those_of_sha256sum() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("b"), "").unwrap();
        fs::write(directory.path().join("a"), "abc").unwrap();
        assert_eq!(
            checksums(directory.path()).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n\
             e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
        );
    }
}
