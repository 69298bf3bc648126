//! The location of the history and the type of its file system. Inspects paths only, never contents.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use fathom_sys::files::{DATABASE_FILES, PathRefusal, PrivateAccess, resolve_private_file, try_directory};

use crate::Error;
use crate::error::{ANOTHER, ErrorKind};

/// The default path of the history: `$XDG_DATA_HOME/fathom/history.db`, or the same under `~/.local/share`. `None` if
/// `env` has neither that directory nor a home.
pub fn default_path(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // A relative XDG_DATA_HOME must be ignored (XDG base directory specification).
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("fathom/history.db"))
}

/// The absolute form of `path`, because SQLite treats names such as `:memory:` and the empty one specially.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|source| Error::io("find the history", path, source))
}

/// The real path of the history at `path`, through links that no other user can have made. The file is created if
/// `access` permits.
pub(crate) fn resolve(path: &Path, access: PrivateAccess) -> Result<PathBuf, Error> {
    let found = match resolve_private_file(path, access) {
        Ok(found) if found.exists => found.path,
        Ok(_) => return Err(Error::missing(path.display(), "no such file")),
        Err(error) if access == PrivateAccess::Existing && error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::missing(path.display(), "no such file"));
        }
        Err(error) => return Err(refused(path, access, error)),
    };
    // SQLite also reads and writes its side files.
    for suffix in DATABASE_FILES {
        let beside = with_suffix(&found, suffix);
        resolve_private_file(&beside, PrivateAccess::Existing)
            .map_err(|error| refused(&beside, access, error))?;
    }
    match other_name(&found) {
        Some((what, remedy)) => {
            Err(Error::at(path.display(), ErrorKind::Unusable, what, format!("{remedy}; or {ANOTHER}")))
        }
        None => Ok(found),
    }
}

/// Why the file at the real path `path` may have further names, and how it gets one name.
///
/// SQLite finds the log of the latest changes by the name of the database: under two names there are two logs, and the runs of one
/// are lost.
fn other_name(path: &Path) -> Option<(&'static str, &'static str)> {
    const HARD_LINK: (&str, &str) =
        ("has several names (hard links)", "remove the other names, or make a copy and use that");
    // As `-v FILE:FILE` of a container does.
    const MOUNT: (&str, &str) = ("is mounted as a single file", "mount the directory that it lies in");
    if fs::metadata(path).is_ok_and(|file| file.nlink() > 1) {
        return Some(HARD_LINK);
    }
    let mounts = fs::read("/proc/self/mountinfo").ok()?;
    mount_points(&mounts).any(|(point, _)| point == path).then_some(MOUNT)
}

/// The files of an open history.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    path: PathBuf,
    database: Option<(u64, u64)>,
    /// Once there is one.
    log: Option<(u64, u64)>,
}

impl OpenFiles {
    /// Those at the absolute `path`, which have just been opened.
    pub(crate) fn at(path: &Path) -> OpenFiles {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        OpenFiles { database: inode_at(&path), log: None, path }
    }

    /// Whether their names still lead to them, asked after each change: what is written to a removed file is lost.
    pub(crate) fn are_in_place(&mut self) -> bool {
        let log = inode_at(&with_suffix(&self.path, "-wal"));
        let is_same_log = self.log.is_none() || self.log == log;
        self.log = log;
        is_same_log && self.database.is_some() && inode_at(&self.path) == self.database
    }
}

fn inode_at(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

fn refused(path: &Path, access: PrivateAccess, source: io::Error) -> Error {
    let at = path.display();
    match PathRefusal::of(&source) {
        Some(PathRefusal::NotAFile(_) | PathRefusal::KernelFile) => {
            Error::at(at, ErrorKind::Unusable, "is not a regular file", ANOTHER)
        }
        None if source.kind() == io::ErrorKind::IsADirectory => {
            let hint = format!("name a file in it: --history {}", path.join("history.db").display());
            Error::at(at, ErrorKind::Unusable, "is a directory, not a file", hint)
        }
        _ => {
            let making = access == PrivateAccess::Create && PathRefusal::of(&source).is_none();
            Error::io(if making { "create the history" } else { "open the history" }, path, source)
        }
    }
}

/// The path of one of SQLite's side files.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The reason why no file can be created next to `path`, determined after SQLite's failure, because SQLite does not
/// return the errno.
pub(crate) fn why_not_writable(path: &Path) -> Option<io::Error> {
    try_directory(path.parent().unwrap_or(Path::new("/"))).err()
}

/// Whether `path` is on a file system that other machines may use at the same time, or on one in user space.
pub(crate) fn is_shared(path: &Path) -> bool {
    // The file may not exist yet, and links must be resolved.
    let real = fs::canonicalize(path).or_else(|_| fs::canonicalize(path.parent().unwrap_or(path)));
    match (real, fs::read("/proc/self/mountinfo")) {
        (Ok(real), Ok(mounts)) => file_system(&mounts, &real).is_some_and(|name| is_shared_type(&name)),
        _ => false,
    }
}

/// The type of the file system of `path`: the longest mount point above it, the last one if several match.
fn file_system(mountinfo: &[u8], path: &Path) -> Option<String> {
    let above = mount_points(mountinfo).filter(|(point, _)| path.starts_with(point));
    above.max_by_key(|(point, _)| point.components().count()).map(|(_, kind)| kind)
}

/// Each mount point, and the type of what is mounted there.
fn mount_points(mountinfo: &[u8]) -> impl Iterator<Item = (PathBuf, String)> {
    mountinfo.split(|&byte| byte == b'\n').filter_map(|line| {
        let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
        let dash = fields.iter().position(|&field| field == b"-")?;
        let kind = String::from_utf8_lossy(fields.get(dash + 1)?).into_owned();
        Some((unescape(fields.get(4)?), kind))
    })
}

/// Undoes the octal escapes of `/proc/self/mountinfo` (`\040` for a space).
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal =
            tail.get(..3).filter(|_| first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

fn is_shared_type(name: &str) -> bool {
    const SHARED: &[&str] = &[
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
        "ocfs2", "orangefs", "pvfs2", "smb3", "smbfs", "virtiofs", "vboxsf", "wekafs",
    ];
    SHARED.contains(&name) || name == "fuse" || name.starts_with("fuse.")
}

/// `path` as an SQLite URI with `parameters`; all special bytes are escaped.
pub(crate) fn uri(path: &Path, parameters: &str) -> String {
    let mut uri = String::from("file:");
    for &byte in OsStr::as_bytes(path.as_os_str()) {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri + "?" + parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_paths() {
        fn check(environment: &[(&str, &str)], expected: Option<&str>) {
            let env = |name: &str| {
                environment.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value))
            };
            assert_eq!(default_path(env), expected.map(PathBuf::from), "{environment:?}");
        }
        check(&[("XDG_DATA_HOME", "/data"), ("HOME", "/home/me")], Some("/data/fathom/history.db"));
        check(&[("HOME", "/home/me")], Some("/home/me/.local/share/fathom/history.db"));
        check(
            &[("XDG_DATA_HOME", ""), ("HOME", "/home/me")],
            Some("/home/me/.local/share/fathom/history.db"),
        );
        check(
            &[("XDG_DATA_HOME", "relative"), ("HOME", "/home/me")],
            Some("/home/me/.local/share/fathom/history.db"),
        );
        check(&[("HOME", "")], None);
        check(&[], None);
    }

    #[test]
    fn file_systems() {
        const MOUNTS: &[u8] = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
            30 22 0:40 / /home rw - nfs4 server:/home rw\n\
            31 30 0:41 / /home/my\\040data rw - tmpfs none rw\n\
            32 22 0:42 / /mnt rw shared:2 master:1 - xfs /dev/sdb rw\n\
            33 22 0:43 / /mnt rw - fuse.sshfs host:/ rw\n\
            broken line\n";
        fn check(path: &str, kind: &str, shared: bool) {
            let found = file_system(MOUNTS, Path::new(path)).unwrap();
            assert_eq!((found.as_str(), is_shared_type(&found)), (kind, shared), "{path}");
        }
        check("/var/lib/h.db", "ext4", false);
        check("/home/me/h.db", "nfs4", true);
        check("/homely/h.db", "ext4", false);
        check("/home/my data/h.db", "tmpfs", false);
        check("/mnt/h.db", "fuse.sshfs", true);
        assert_eq!(file_system(b"", Path::new("/x")), None);
    }

    #[test]
    fn escapes() {
        fn check(field: &[u8], expected: &[u8]) {
            assert_eq!(unescape(field).as_os_str().as_bytes(), expected);
        }
        check(b"/plain", b"/plain");
        check(b"/a\\040b\\134", b"/a b\\");
        check(b"/a\\04", b"/a\\04");
        check(b"/a\\777", b"/a\\777");
        check(b"/\xff", b"/\xff");
    }

    #[test]
    fn uris() {
        fn check(path: &[u8], expected: &str) {
            assert_eq!(uri(Path::new(OsStr::from_bytes(path)), "immutable=1"), expected);
        }
        check(b"/a/b-c_1.db", "file:/a/b-c_1.db?immutable=1");
        check(b"/a b?c#d%\xff", "file:/a%20b%3Fc%23d%25%FF?immutable=1");
    }
}
