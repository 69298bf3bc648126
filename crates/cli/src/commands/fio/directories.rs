//! The files of a directory, for `opendir`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The regular files in `directory` and below it, in the order of their names. Links are not followed.
pub(super) fn files_below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_below_and_links_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("b/c")).unwrap();
        for name in ["z", "b/c/y", "b/x"] {
            fs::write(at(name), "1").unwrap();
        }
        std::os::unix::fs::symlink(at("z"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("b"), at("loop")).unwrap();
        assert_eq!(files_below(dir.path()).unwrap(), [at("b/c/y"), at("b/x"), at("z")]);
        assert!(files_below(&at("none")).is_err());
    }
}
