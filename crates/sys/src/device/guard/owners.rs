//! Other processes that write to a target or have it locked, according to `/proc`: a running virtual machine locks its
//! disk images, and nothing else of it shows on the host.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::mounts::{Process, process_of};
use crate::device::handle::{HandleKind, TargetHandle, TargetIdentity};
use crate::device::root::SysRoot;
use crate::io::{OpenFlags, is_locked_by_another};

/// An open file or lock of another process on an object that shares a target's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DataOwner {
    pub of: TargetIdentity,
    pub process: Process,
    /// It may write.
    pub writes: bool,
    /// It holds a lock.
    pub locks: bool,
}

/// The other processes that have one of `shared` open for writing, mapped for writing or locked. Those of processes that this
/// user may not inspect are not detected.
pub(super) fn owners(root: &SysRoot, shared: &[TargetIdentity]) -> Vec<DataOwner> {
    let own = std::process::id();
    let mut found: Vec<DataOwner> = Vec::new();
    let ids = root.names("/proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
    for id in ids.filter(|&id| id != own && !shared.is_empty()) {
        for descriptor in root.names(format!("/proc/{id}/fd")) {
            let link = root.path(format!("/proc/{id}/fd/{descriptor}"));
            let Some(of) = leads_to(&link).filter(|of| shared.contains(of)) else { continue };
            let info = root.text(format!("/proc/{id}/fdinfo/{descriptor}")).unwrap_or_default();
            let (writes, locks) = (may_write(&link), shows_lock(&info, of));
            if (writes || locks)
                && !found.iter().any(|o| (o.of, o.process.id, o.writes, o.locks) == (of, id, writes, locks))
            {
                found.push(DataOwner { of, process: process_of(root, id), writes, locks });
            }
        }
        // A mapping outlives its descriptor.
        for of in mapped(root, id).filter(|of| shared.contains(of)) {
            if !found.iter().any(|owner| (owner.of, owner.process.id, owner.writes) == (of, id, true)) {
                found.push(DataOwner { of, process: process_of(root, id), writes: true, locks: false });
            }
        }
    }
    found
}

/// What process `id` has mapped shared and writable.
fn mapped(root: &SysRoot, id: u32) -> impl Iterator<Item = TargetIdentity> {
    let maps = root.text(format!("/proc/{id}/maps")).unwrap_or_default();
    let mappings: Vec<(String, TargetIdentity)> = maps.lines().filter_map(shared_mapping).collect();
    mappings.into_iter().map(move |(range, of)| {
        // The link leads to the object itself, and only root may follow it: a device has another identity than its node, and
        // some file systems have another device in their listings.
        leads_to(&root.path(format!("/proc/{id}/map_files/{range}"))).unwrap_or(of)
    })
}

/// The addresses and the file of a line of `maps` such as `7f0c-7f0d rw-s 00000000 08:01 131   /srv/image`, if it is shared and writable.
fn shared_mapping(line: &str) -> Option<(String, TargetIdentity)> {
    let mut fields = line.split_ascii_whitespace();
    let (range, rights, _offset) = (fields.next()?, fields.next()?.as_bytes(), fields.next()?);
    let (major, minor) = fields.next()?.split_once(':')?;
    let inode: u64 = fields.next()?.parse().ok()?;
    let is_writing = rights.get(1) == Some(&b'w') && rights.get(3) == Some(&b's') && inode != 0;
    let number = |text| u32::from_str_radix(text, 16).ok();
    is_writing.then_some((range.to_owned(), TargetIdentity::File(number(major)?, number(minor)?, inode)))
}

/// The target of a descriptor.
fn leads_to(link: &Path) -> Option<TargetIdentity> {
    // Cached attributes are enough: an unresponsive file server must not block this call.
    let stat = rustix::fs::statx(CWD, link, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS).ok()?;
    match u32::from(stat.stx_mode) & 0o170_000 {
        0o060_000 => Some(TargetIdentity::Device(stat.stx_rdev_major, stat.stx_rdev_minor)),
        0o100_000 => Some(TargetIdentity::File(stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino)),
        _ => None,
    }
}

/// The permissions of the link itself are the descriptor's.
fn may_write(link: &Path) -> bool {
    const OWNER_WRITES: u32 = 0o200;
    rustix::fs::lstat(link).is_ok_and(|stat| stat.st_mode & OWNER_WRITES != 0)
}

/// The kinds of locks that identify an owner. On devices udev takes flock's for a moment whenever something has
/// changed; leases are how servers cache.
fn kinds_for(is_file: bool) -> &'static [&'static str] {
    if is_file { &["POSIX", "OFDLCK", "FLOCK"] } else { &["POSIX", "OFDLCK"] }
}

/// True where `/proc/PID/fdinfo/FD` lists a lock: `lock:  1: OFDLCK ADVISORY READ -1 08:01:131 0 EOF`.
fn shows_lock(info: &str, of: TargetIdentity) -> bool {
    let kinds = kinds_for(matches!(of, TargetIdentity::File(..)));
    let locks = info.lines().filter_map(|line| line.strip_prefix("lock:"));
    locks.filter_map(|lock| lock.split_whitespace().nth(1)).any(|kind| kinds.contains(&kind))
}

/// A lock on the target that another process holds, also one whose descriptors this user may not look at: which process,
/// where that can be told.
pub(super) fn lock_on(root: &SysRoot, target: &TargetHandle) -> Option<Option<Process>> {
    let kinds = kinds_for(target.kind() == HandleKind::File);
    let text = root.text("/proc/locks").unwrap_or_default();
    if let Some(process) = listed_lock(&text, kinds, target.inode()) {
        return Some(process.map(|id| process_of(root, id)));
    }
    let file = target.reopen(OpenFlags::default()).ok()?;
    is_locked_by_another(&file).unwrap_or(false).then_some(None)
}

/// A lock of one of `kinds` on `inode` in the text of `/proc/locks`, and its process where one is named. Locks of this
/// process do not count.
fn listed_lock(text: &str, kinds: &[&str], inode: TargetIdentity) -> Option<Option<u32>> {
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, kind, _, _, process, file, ..] = fields[..] else { return None };
        // Leases are how servers cache, and a line with an arrow waits for a lock of another line.
        if !kinds.contains(&kind) || identity_of(file) != Some(inode) {
            return None;
        }
        let process = process.parse::<u32>().ok();
        (process != Some(std::process::id())).then_some(process)
    })
}

/// `08:01:131`: device in hexadecimal, inode in decimal.
fn identity_of(field: &str) -> Option<TargetIdentity> {
    let mut parts = field.split(':');
    let mut hexadecimal = || u32::from_str_radix(parts.next()?, 16).ok();
    let (major, minor) = (hexadecimal()?, hexadecimal()?);
    Some(TargetIdentity::File(major, minor, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_found_by_inode() {
        let own = std::process::id();
        let text = &format!(
            "1: OFDLCK ADVISORY  READ -1 08:01:131 100 101\n\
                    1: -> POSIX  ADVISORY  WRITE 9 08:01:77 0 EOF\n\
                    2: FLOCK  ADVISORY  WRITE 812 fd:0a:4026 0 EOF\n\
                    3: LEASE  ACTIVE    READ 7 08:01:5 0 EOF\n\
                    4: POSIX  ADVISORY  WRITE {own} 08:01:6 0 EOF\n"
        );
        let check = |inode: (u32, u32, u64), expected: Option<Option<u32>>| {
            let kinds = ["POSIX", "OFDLCK", "FLOCK"];
            let found = listed_lock(text, &kinds, TargetIdentity::File(inode.0, inode.1, inode.2));
            assert_eq!(found, expected, "{inode:?}");
        };
        check((8, 1, 131), Some(None));
        check((0xfd, 0x0a, 4026), Some(Some(812)));
        check((8, 1, 5), None);
        check((8, 1, 6), None);
        check((8, 1, 77), None);
        check((8, 2, 131), None);
    }

    #[test]
    fn locks_are_listed_with_the_descriptor() {
        let info = |kind: &str| {
            format!("pos:\t0\nflags:\t02\nlock:\t1: {kind}  ADVISORY  READ -1 08:01:131 0 EOF\n")
        };
        let check = |kind: &str, on_file: bool, on_device: bool| {
            let found = [TargetIdentity::File(8, 1, 131), TargetIdentity::Device(8, 1)]
                .map(|of| shows_lock(&info(kind), of));
            assert_eq!(found, [on_file, on_device], "{kind}");
        };
        check("OFDLCK", true, true);
        check("POSIX", true, true);
        check("FLOCK", true, false);
        check("LEASE", false, false);
        assert!(!shows_lock("pos:\t0\nflags:\t02\n", TargetIdentity::Device(8, 1)));
    }

    #[test]
    fn shared_and_writable_mappings_are_read() {
        let check = |line: &str, expected: Option<TargetIdentity>| {
            assert_eq!(shared_mapping(line).map(|(_, of)| of), expected, "{line}");
        };
        let file = TargetIdentity::File(0xfd, 1, 131);
        check("7f0c00000000-7f0c00001000 rw-s 00000000 fd:01 131    /a b", Some(file));
        check("7f0c00000000-7f0c00001000 rw-p 00000000 fd:01 131    /a", None);
        check("7f0c00000000-7f0c00001000 r--s 00000000 fd:01 131    /a", None);
        check("7f0c00000000-7f0c00001000 rw-s 00000000 00:00 0 ", None);
        check("broken", None);
    }

    #[test]
    fn own_descriptors_do_not_count_as_writers() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let target = TargetHandle::open(file.path()).unwrap();
        assert_eq!(owners(&SysRoot::real(), &[target.identity()]), []);
        assert_eq!(lock_on(&SysRoot::real(), &target), None);
    }

    #[test]
    fn another_process_with_the_file_open_is_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let target = TargetHandle::open(file.path()).unwrap();
        let start = |open: std::fs::File| {
            std::process::Command::new("cat")
                .stdin(std::process::Stdio::piped())
                .stdout(open)
                .spawn()
                .unwrap()
        };
        let mut child = start(std::fs::File::options().write(true).open(file.path()).unwrap());
        let found = owners(&SysRoot::real(), &[target.identity()]);
        assert!(
            found.iter().any(|owner| owner.process.id == child.id() && owner.writes && !owner.locks),
            "{found:?}"
        );
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
