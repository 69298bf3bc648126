//! Who may have caused the I/O of a device: what `/proc` counts per process, and the files a process holds open there.
//!
//! The counts are those of the process on all its devices together. Those of other users' processes are visible to root
//! only. Write-back counts when the pages were dirtied. Makes no file system calls on targets.

use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::root::SysRoot;

/// The I/O of a process since its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessIo {
    /// Its id.
    pub process: u32,
    /// When it was started, in the kernel's ticks: together with the id it identifies a process uniquely.
    pub started: u64,
    /// Its name, truncated by the kernel.
    pub command: String,
    /// Bytes that were fetched from storage for it.
    pub read_bytes: u64,
    /// Bytes that it caused to be written, minus those discarded before write-back.
    pub written_bytes: u64,
}

/// A file that a process holds open on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFile {
    /// Its path as the kernel shows it, with ` (deleted)` if it was removed.
    pub path: PathBuf,
    /// The device itself rather than a file on it.
    pub is_device: bool,
}

/// All readable processes, by id.
pub fn process_io(root: &SysRoot) -> Vec<ProcessIo> {
    let ids = root.names("/proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
    let mut processes: Vec<ProcessIo> = ids.filter_map(|id| one(root, id)).collect();
    processes.sort_by_key(|process| process.process);
    processes
}

fn one(root: &SysRoot, process: u32) -> Option<ProcessIo> {
    let place = format!("/proc/{process}");
    let io = root.text(format!("{place}/io"))?;
    let count = |name: &str| {
        io.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse::<u64>().ok())
    };
    let (read_bytes, written) = (count("read_bytes")?, count("write_bytes")?);
    if read_bytes == 0 && written == 0 {
        return None;
    }
    let stat = root.text(format!("{place}/stat"))?;
    // The name is in parentheses and may hold anything, parentheses too.
    let (head, fields) = stat.rsplit_once(')')?;
    const STARTED: usize = 19;
    Some(ProcessIo {
        process,
        started: fields.split_whitespace().nth(STARTED)?.parse().ok()?,
        command: head.split_once('(')?.1.to_owned(),
        read_bytes,
        written_bytes: written.saturating_sub(count("cancelled_write_bytes").unwrap_or(0)),
    })
}

/// Most descriptors of a process that are read.
const MAX_FILES: usize = 4096;

/// The first file that `process` holds open on the block device `major:minor` or on one of the devices in `above`,
/// which lie on it; the device itself before files on it.
pub fn open_on(root: &SysRoot, process: u32, devices: &[(u32, u32)]) -> Option<ProcessFile> {
    let place = format!("/proc/{process}/fd");
    let mut on_it = None;
    for name in root.names(&place).into_iter().take(MAX_FILES) {
        let path = root.path(format!("{place}/{name}"));
        // Cached attributes are enough: an unresponsive file server must not block this call.
        let Ok(stat) = rustix::fs::statx(CWD, &path, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS)
        else {
            continue;
        };
        let is_block = u32::from(stat.stx_mode) & 0o170_000 == 0o060_000;
        let is_device = is_block && devices.contains(&(stat.stx_rdev_major, stat.stx_rdev_minor));
        if !is_device && (is_block || !devices.contains(&(stat.stx_dev_major, stat.stx_dev_minor))) {
            continue;
        }
        let file = ProcessFile { path: std::fs::read_link(&path).unwrap_or_default(), is_device };
        if is_device {
            return Some(file);
        }
        on_it.get_or_insert(file);
    }
    on_it
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fixture::Fixture;

    #[test]
    fn processes_report_their_bytes() {
        let fixture = Fixture::new();
        let process = |id: u32, name: &str, io: &str| {
            let zeros = "0 ".repeat(17);
            fixture.write(&format!("proc/{id}/stat"), &format!("{id} ({name}) S {zeros} 0 7{id} 0 0\n"));
            fixture.write(&format!("proc/{id}/io"), io);
        };
        process(20, "a) (b", "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 4096\n");
        process(3, "idle", "rchar: 9\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n");
        process(4, "odd", "read_bytes: x\nwrite_bytes: 1\n");
        process(5, "more cancelled", "read_bytes: 0\nwrite_bytes: 1\ncancelled_write_bytes: 4096\n");
        fixture.write("proc/6/stat", "6 (other user) S 0").write("proc/self/io", "read_bytes: 1\n");
        let seen = process_io(&fixture.root());
        let seen: Vec<_> = seen
            .iter()
            .map(|p| (p.process, p.started, p.command.as_str(), p.read_bytes, p.written_bytes))
            .collect();
        assert_eq!(seen, [(5, 75, "more cancelled", 0, 0), (20, 720, "a) (b", 4096, 4096)]);
    }

    #[test]
    fn open_files_are_found_by_the_device_they_are_on() {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let stat = rustix::fs::statx(CWD, file.path(), AtFlags::empty(), StatxFlags::BASIC_STATS).unwrap();
        let root = SysRoot::real();
        let own = std::process::id();
        let found = open_on(&root, own, &[(stat.stx_dev_major, stat.stx_dev_minor)]).unwrap();
        assert!(!found.is_device && found.path.is_absolute(), "{found:?}");
        assert_eq!(open_on(&root, own, &[(4095, 1)]), None);
        assert_eq!(open_on(&root, u32::MAX, &[(stat.stx_dev_major, stat.stx_dev_minor)]), None);
    }
}
