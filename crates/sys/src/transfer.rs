//! Requests that finish within the call: one system call each, and its result as the kernel gave it.
//!
//! Every function answers bytes moved, or a negative errno, and allocates nothing.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};

use rustix::fs::SeekFrom;
use rustix::io::{Errno, ReadWriteFlags};

use crate::io::{FallocateMode, discard_blocks, fallocate};

/// Flags of [`read_vectored_at`] and [`write_vectored_at`], as `RWF_*` in preadv2(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferFlags {
    /// RWF_HIPRI: poll for the completion.
    pub poll: bool,
    /// RWF_NOWAIT: fail with EAGAIN instead of waiting.
    pub no_wait: bool,
    /// RWF_DONTCACHE: drop the cached pages afterwards (Linux 6.14 and later).
    pub uncached: bool,
    /// RWF_ATOMIC: a write is written whole or not at all (Linux 6.11 and later). For writes only.
    pub atomic: bool,
}

impl TransferFlags {
    /// The flags as the kernel takes them.
    pub const fn bits(self) -> u32 {
        const RWF_ATOMIC: u32 = 0x40;
        const RWF_DONTCACHE: u32 = 0x80;
        (if self.poll { libc::RWF_HIPRI as u32 } else { 0 })
            | (if self.no_wait { libc::RWF_NOWAIT as u32 } else { 0 })
            | (if self.uncached { RWF_DONTCACHE } else { 0 })
            | (if self.atomic { RWF_ATOMIC } else { 0 })
    }

    /// The flags of reads, which are not atomic.
    pub const fn of_reads(self) -> TransferFlags {
        TransferFlags { atomic: false, ..self }
    }
}

/// pread(2).
#[inline]
pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> i64 {
    until_uninterrupted(|| rustix::io::pread(file, &mut *bytes, offset))
}

/// pwrite(2).
#[inline]
pub fn write_at(file: &File, bytes: &[u8], offset: u64) -> i64 {
    until_uninterrupted(|| rustix::io::pwrite(file, bytes, offset))
}

/// preadv2(2) with one buffer.
#[inline]
pub fn read_vectored_at(file: &File, bytes: &mut [u8], offset: u64, flags: TransferFlags) -> i64 {
    let flags = ReadWriteFlags::from_bits_retain(flags.bits());
    until_uninterrupted(|| rustix::io::preadv2(file, &mut [IoSliceMut::new(&mut *bytes)], offset, flags))
}

/// pwritev2(2) with one buffer.
#[inline]
pub fn write_vectored_at(file: &File, bytes: &[u8], offset: u64, flags: TransferFlags) -> i64 {
    let flags = ReadWriteFlags::from_bits_retain(flags.bits());
    until_uninterrupted(|| rustix::io::pwritev2(file, &[IoSlice::new(bytes)], offset, flags))
}

/// lseek(2) from the start of the file; answers 0 or a negative errno.
#[inline]
pub fn seek_to(file: &File, offset: u64) -> i64 {
    until_uninterrupted(|| rustix::fs::seek(file, SeekFrom::Start(offset)).map(|_| 0))
}

/// read(2) at the file's own position.
#[inline]
pub fn read_next(file: &File, bytes: &mut [u8]) -> i64 {
    until_uninterrupted(|| rustix::io::read(file, &mut *bytes))
}

/// write(2) at the file's own position.
#[inline]
pub fn write_next(file: &File, bytes: &[u8]) -> i64 {
    until_uninterrupted(|| rustix::io::write(file, bytes))
}

/// fsync(2), or fdatasync(2) where `data_only`.
pub fn sync(file: &File, data_only: bool) -> i64 {
    until_uninterrupted(|| {
        if data_only { rustix::fs::fdatasync(file) } else { rustix::fs::fsync(file) }.map(|()| 0)
    })
}

/// Discards a range: BLKDISCARD on a block device, a punched hole in a file. Answers `len` or a negative errno.
pub fn trim(file: &File, is_block_device: bool, offset: u64, len: u32) -> i64 {
    let result = if is_block_device {
        discard_blocks(file, offset, u64::from(len))
    } else {
        fallocate(file, FallocateMode::PunchHole, offset, u64::from(len))
    };
    match result {
        Ok(()) => i64::from(len),
        Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}

#[inline(always)]
fn until_uninterrupted(mut call: impl FnMut() -> Result<usize, Errno>) -> i64 {
    loop {
        match call() {
            Ok(moved) => return moved as i64,
            Err(Errno::INTR) => {}
            Err(errno) => return -i64::from(errno.raw_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_equal_the_kernels() {
        let file = tempfile::tempfile().unwrap();
        let mut bytes = [0; 8];
        assert_eq!(write_at(&file, b"0123456789", 0), 10);
        assert_eq!(read_at(&file, &mut bytes, 4), 6);
        assert_eq!(&bytes[..6], b"456789");
        assert_eq!(read_at(&file, &mut bytes, 10), 0);
        assert_eq!(read_at(&file, &mut bytes, u64::MAX), -i64::from(libc::EINVAL));
        let flags = TransferFlags::default();
        assert_eq!(write_vectored_at(&file, b"ab", 2, flags), 2);
        assert_eq!(read_vectored_at(&file, &mut bytes, 1, flags), 8);
        assert_eq!(&bytes, b"1ab45678");
        assert_eq!((seek_to(&file, 3), read_next(&file, &mut bytes[..2])), (0, 2));
        assert_eq!((&bytes[..2], write_next(&file, b"X")), (&b"b4"[..], 1));
        assert_eq!((sync(&file, true), sync(&file, false)), (0, 0));
        assert_eq!(trim(&file, false, 0, 4096), 4096);
        assert_eq!((read_at(&file, &mut bytes, 0), bytes), (8, [0; 8]));
        assert_eq!(trim(&file, false, 0, 0), -i64::from(libc::EINVAL));
        assert!(trim(&file, true, 0, 4096) < 0, "a file is not a device");
    }

    #[test]
    fn a_file_opened_for_reading_refuses_writes() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let file = File::open(named.path()).unwrap();
        assert_eq!(write_at(&file, b"x", 0), -i64::from(libc::EBADF));
        assert_eq!(write_next(&file, b"x"), -i64::from(libc::EBADF));
    }
}
