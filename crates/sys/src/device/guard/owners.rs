//! Other processes that write to a target or have it locked, where `/proc` tells: a running virtual machine locks its
//! disk images, and nothing else of it shows on the host.

use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::mounts::{Process, process_of};
use crate::device::handle::{HandleKind, Identity, TargetHandle};
use crate::device::root::SysRoot;
use crate::io::{OpenFlags, is_locked_by_another};

/// The other processes that have one of `targets` open for writing, each with the position of its target. Descriptors of
/// processes that this user may not look at are not seen.
pub(super) fn writers(root: &SysRoot, targets: &[Identity]) -> Vec<(usize, Process)> {
    let own = std::process::id();
    let mut found = Vec::new();
    let ids = root.names("/proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
    for id in ids.filter(|&id| id != own) {
        for descriptor in root.names(format!("/proc/{id}/fd")) {
            let link = root.path(format!("/proc/{id}/fd/{descriptor}"));
            let Some(at) =
                written_through(&link).and_then(|identity| targets.iter().position(|t| *t == identity))
            else {
                continue;
            };
            if !found.iter().any(|(target, process): &(usize, Process)| (*target, process.id) == (at, id)) {
                found.push((at, process_of(root, id)));
            }
        }
    }
    found
}

/// What a descriptor leads to, where it is open for writing.
fn written_through(link: &std::path::Path) -> Option<Identity> {
    const OWNER_WRITES: u32 = 0o200;
    // The permissions of the link itself are the descriptor's.
    let mode = rustix::fs::lstat(link).ok()?.st_mode;
    if mode & OWNER_WRITES == 0 {
        return None;
    }
    // What the kernel has in memory is enough: a server that is gone must not hold us up.
    let stat = rustix::fs::statx(CWD, link, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS).ok()?;
    match u32::from(stat.stx_mode) & 0o170_000 {
        0o060_000 => Some(Identity::Device(stat.stx_rdev_major, stat.stx_rdev_minor)),
        0o100_000 => Some(Identity::File(stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino)),
        _ => None,
    }
}

/// A lock on the target that another process holds: which process, where that can be told.
pub(super) fn lock_on(root: &SysRoot, target: &TargetHandle) -> Option<Option<Process>> {
    // On devices udev takes flock's locks for a moment whenever something has changed.
    let kinds: &[&str] =
        if target.kind() == HandleKind::File { &["POSIX", "OFDLCK", "FLOCK"] } else { &["POSIX", "OFDLCK"] };
    let text = root.text("/proc/locks").unwrap_or_default();
    if let Some(process) = listed_lock(&text, kinds, target.inode()) {
        return Some(process.map(|id| process_of(root, id)));
    }
    let file = target.reopen(OpenFlags::default()).ok()?;
    is_locked_by_another(&file).unwrap_or(false).then_some(None)
}

/// A lock of one of `kinds` on `inode` in the text of `/proc/locks`, and its process where one is named. Locks of this
/// process do not count.
fn listed_lock(text: &str, kinds: &[&str], inode: Identity) -> Option<Option<u32>> {
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
fn identity_of(field: &str) -> Option<Identity> {
    let mut parts = field.split(':');
    let mut hexadecimal = || u32::from_str_radix(parts.next()?, 16).ok();
    let (major, minor) = (hexadecimal()?, hexadecimal()?);
    Some(Identity::File(major, minor, parts.next()?.parse().ok()?))
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
            let found = listed_lock(text, &kinds, Identity::File(inode.0, inode.1, inode.2));
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
    fn own_descriptors_are_no_other_writer() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let target = TargetHandle::open(file.path()).unwrap();
        assert_eq!(writers(&SysRoot::real(), &[target.identity()]), []);
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
        let found = writers(&SysRoot::real(), &[target.identity()]);
        assert!(found.iter().any(|(at, process)| (*at, process.id) == (0, child.id())), "{found:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
