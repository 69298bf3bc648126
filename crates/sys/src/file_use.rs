//! Locks on whole files, and writing back ranges of the page cache.
//!
//! Locks (flock) belong to the open file: two openings of one file exclude each other, in one process or in two, and closing
//! a file releases its lock.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

/// A lock on a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLock {
    /// Shared with other readers.
    Read,
    /// Exclusive.
    Write,
    /// None.
    Free,
}

/// Takes or releases a lock (flock), replacing that of the open file. Without `waits` it returns false where another holds
/// it.
///
/// # Errors
/// The file cannot be locked.
pub fn lock(file: &File, lock: FileLock, waits: bool) -> io::Result<bool> {
    let operation = match (lock, waits) {
        (FileLock::Read, true) => FlockOperation::LockShared,
        (FileLock::Read, false) => FlockOperation::NonBlockingLockShared,
        (FileLock::Write, true) => FlockOperation::LockExclusive,
        (FileLock::Write, false) => FlockOperation::NonBlockingLockExclusive,
        (FileLock::Free, _) => FlockOperation::Unlock,
    };
    loop {
        match rustix::fs::flock(file, operation) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

/// What [`sync_range`] does, as `SYNC_FILE_RANGE_*` in sync_file_range(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeSyncFlags {
    /// Wait for earlier write-back of the range.
    pub wait_before: bool,
    /// Begin the write-back of dirty pages.
    pub write: bool,
    /// Wait for the end of the write-back.
    pub wait_after: bool,
}

/// sync_file_range(2) on `offset..offset + len`; returns 0 or a negative errno.
pub fn sync_range(file: &File, offset: u64, len: u64, flags: RangeSyncFlags) -> i64 {
    let bits = [
        (flags.wait_before, libc::SYNC_FILE_RANGE_WAIT_BEFORE),
        (flags.write, libc::SYNC_FILE_RANGE_WRITE),
        (flags.wait_after, libc::SYNC_FILE_RANGE_WAIT_AFTER),
    ];
    let bits = bits.iter().filter(|(wanted, _)| *wanted).fold(0, |bits, (_, bit)| bits | bit);
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else {
        return -i64::from(libc::EINVAL);
    };
    // SAFETY: it takes integers and touches no memory of the caller; the descriptor is open.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, bits) };
    if result < 0 {
        return -i64::from(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO));
    }
    0
}

/// The sizes of atomic writes to a file or device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicSizes {
    /// Smallest, bytes.
    pub min: u32,
    /// Largest, bytes.
    pub max: u32,
}

/// The sizes of atomic writes with O_DIRECT, powers of two (statx, Linux 6.11); `None` where the kernel, the file system or
/// the device has none.
pub fn atomic_sizes(file: &File) -> Option<AtomicSizes> {
    const STATX_WRITE_ATOMIC: u32 = 0x1_0000;
    /// Words of the structure: the mask of what is filled in, and the two sizes.
    const MASK: usize = 0;
    const MIN: usize = 0xa8 / 4;
    const MAX: usize = 0xac / 4;
    let mut words = [0_u32; 64];
    let (descriptor, empty, to) = (file.as_raw_fd(), c"".as_ptr(), words.as_mut_ptr());
    // SAFETY: the kernel reads an empty string and writes at most 256 bytes, the size of the array; both outlive the call.
    let result = unsafe {
        libc::syscall(libc::SYS_statx, descriptor, empty, libc::AT_EMPTY_PATH, STATX_WRITE_ATOMIC, to)
    };
    let sizes = AtomicSizes { min: words[MIN], max: words[MAX] };
    (result == 0 && words[MASK] & STATX_WRITE_ATOMIC != 0 && sizes.max > 0).then_some(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openings_of_one_file_exclude_each_other() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let open = || File::options().read(true).write(true).open(named.path()).unwrap();
        let (one, other) = (open(), open());
        assert!(lock(&one, FileLock::Read, false).unwrap() && lock(&other, FileLock::Read, false).unwrap());
        assert!(!lock(&one, FileLock::Write, false).unwrap(), "another reads");
        assert!(lock(&other, FileLock::Free, false).unwrap());
        assert!(lock(&one, FileLock::Write, true).unwrap());
        assert!(!lock(&other, FileLock::Read, false).unwrap(), "another writes");
        drop(one);
        assert!(lock(&other, FileLock::Read, false).unwrap(), "closing releases");
        let reader = File::open(named.path()).unwrap();
        lock(&other, FileLock::Free, false).unwrap();
        assert!(lock(&reader, FileLock::Write, false).unwrap(), "also of a file that is open for reading");
    }

    #[test]
    fn files_in_memory_have_no_atomic_writes() {
        let file = File::from(rustix::fs::memfd_create("m", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
        assert_eq!(atomic_sizes(&file), None);
    }

    #[test]
    fn ranges_are_written_back() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let all = RangeSyncFlags { wait_before: true, write: true, wait_after: true };
        assert_eq!(sync_range(&file, 0, 4096, all), 0);
        assert_eq!(sync_range(&file, u64::MAX, 1, all), -i64::from(libc::EINVAL));
    }
}
