//! Where `/proc`, `/sys` and `/dev` are: the real ones, or a copy below a prefix for tests.
//!
//! Reads are small and tolerant: an attribute that is missing or unreadable is `None`, because which of them exist
//! depends on driver, kernel and permissions.

use std::fs;
use std::path::{Path, PathBuf};

/// The root below which `/proc`, `/sys` and `/dev` are looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SysRoot {
    prefix: Option<PathBuf>,
}

impl SysRoot {
    /// The running system.
    pub fn real() -> SysRoot {
        SysRoot::default()
    }

    /// A copy of (parts of) `/proc`, `/sys` and `/dev` below `prefix`.
    pub fn at(prefix: impl Into<PathBuf>) -> SysRoot {
        SysRoot { prefix: Some(prefix.into()) }
    }

    /// True for the running system, where paths may also be asked with system calls.
    pub fn is_real(&self) -> bool {
        self.prefix.is_none()
    }

    /// The place of an absolute path in this root.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        match &self.prefix {
            None => absolute.to_path_buf(),
            Some(prefix) => prefix.join(absolute.strip_prefix("/").unwrap_or(absolute)),
        }
    }

    /// A file's bytes, or `None` when it cannot be read.
    pub fn bytes(&self, absolute: impl AsRef<Path>) -> Option<Vec<u8>> {
        fs::read(self.path(absolute)).ok()
    }

    /// A file's text without surrounding blanks and NULs; `None` if it cannot be read or is blank.
    pub fn text(&self, absolute: impl AsRef<Path>) -> Option<String> {
        let bytes = self.bytes(absolute)?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_string())
    }

    /// A file's text as a decimal number.
    pub fn number(&self, absolute: impl AsRef<Path>) -> Option<u64> {
        self.text(absolute)?.parse().ok()
    }

    /// A file's text as a switch: `1` is true, `0` is false.
    pub fn switch(&self, absolute: impl AsRef<Path>) -> Option<bool> {
        match self.number(absolute)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// The names in a directory, sorted; empty when there is no such directory.
    pub fn names(&self, absolute: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(absolute)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// True when the path exists in this root.
    pub fn exists(&self, absolute: impl AsRef<Path>) -> bool {
        self.path(absolute).exists()
    }

    /// The kernel name of the block device `major:minor`, from `/sys/dev/block`.
    pub fn block_name(&self, major: u32, minor: u32) -> Option<String> {
        let link = fs::read_link(self.path(format!("/sys/dev/block/{major}:{minor}"))).ok()?;
        Some(link.file_name()?.to_str()?.to_string())
    }

    /// The directory of a block device or partition in sysfs, `/sys/class/block/NAME`.
    pub fn block_dir(&self, name: &str) -> PathBuf {
        Path::new("/sys/class/block").join(name)
    }
}
