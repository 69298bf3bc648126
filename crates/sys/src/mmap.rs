//! A file mapped into memory, read and written by copying.
//!
//! No reference into the mapping ever exists: the bytes belong to the file and may change at any time. A page that the
//! file cannot deliver (it was cut, or the device failed) makes a request end with EIO; see `guard`.

mod guard;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::{SetupError, SetupStep};
use guard::Guard;

/// How a mapping will be used, as advice to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapAdvice {
    /// In random order, so that nothing is read ahead.
    pub random: bool,
    /// In huge pages, where the file system has them.
    pub huge: bool,
}

/// The first `len` bytes of a file.
#[derive(Debug)]
pub struct FileMap {
    file: Arc<File>,
    start: NonNull<u8>,
    len: u64,
    access: i32,
    advice: MapAdvice,
    /// The mapping could not be restored after a fault and is not to be touched.
    broken: bool,
}

impl FileMap {
    /// Maps `len` bytes of `file`. The file must be open for reading, and for writing too where the mapping is to be. Fails
    /// where the kernel has no huge pages and they are advised.
    pub fn new(file: Arc<File>, len: u64, writable: bool, advice: MapAdvice) -> Result<FileMap, SetupError> {
        let failed = |source| SetupError::new(SetupStep::Map, format!("map {len} bytes of a file"), source);
        guard::install().map_err(failed)?;
        let access = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        let bytes = usize::try_from(len).map_err(|_| failed(io::Error::from_raw_os_error(libc::ENOMEM)))?;
        // SAFETY: a new mapping at a place the kernel chooses touches nothing that exists.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        let start = if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast::<u8>()) };
        let start = start.ok_or_else(|| failed(io::Error::last_os_error()))?;
        let map = FileMap { file, start, len, access, advice, broken: false };
        map.advise(start, bytes).map_err(failed)?;
        Ok(map)
    }

    /// Advises the kernel on `bytes` bytes of the mapping at `place`; fails where it cannot use huge pages.
    fn advise(&self, place: NonNull<u8>, bytes: usize) -> io::Result<()> {
        let order = if self.advice.random { libc::MADV_RANDOM } else { libc::MADV_SEQUENTIAL };
        // SAFETY: the range lies within the mapping, and advice changes no contents.
        let advise = |advice| unsafe { libc::madvise(place.as_ptr().cast(), bytes, advice) };
        if self.advice.huge && advise(libc::MADV_HUGEPAGE) != 0 {
            return Err(io::Error::last_os_error());
        }
        // A wish, which the kernel may refuse.
        let _ = advise(order);
        Ok(())
    }

    /// Mapped bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True where nothing is mapped, which the kernel never grants.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies from the file; answers the bytes copied (fewer, or 0, at the end of the mapping) or a negative errno.
    #[inline]
    pub fn read(&mut self, into: &mut [u8], offset: u64) -> i64 {
        let count = self.within(offset, into.len());
        self.copy(offset, count, |place| {
            // SAFETY: `count` bytes are mapped at `place`, and `into` holds at least as many; they do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(place, into.as_mut_ptr(), count) }
        })
    }

    /// Copies to the file; answers the bytes copied or a negative errno: ENOSPC beyond the end of the mapping, EBADF
    /// where it is not writable.
    #[inline]
    pub fn write(&mut self, from: &[u8], offset: u64) -> i64 {
        if self.access & libc::PROT_WRITE == 0 {
            return -i64::from(libc::EBADF);
        }
        let count = self.within(offset, from.len());
        if count == 0 && !from.is_empty() {
            return -i64::from(libc::ENOSPC);
        }
        self.copy(offset, count, |place| {
            // SAFETY: as in `read`, and the mapping is writable.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), place, count) }
        })
    }

    /// Writes every changed page to the device (msync); answers 0 or a negative errno.
    pub fn sync(&self) -> i64 {
        // SAFETY: the range is our mapping; syncing does not change its contents.
        match unsafe { libc::msync(self.start.as_ptr().cast(), self.len as usize, libc::MS_SYNC) } {
            0 => 0,
            _ => -i64::from(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    /// How many of `len` bytes from `offset` on are mapped.
    #[inline(always)]
    fn within(&self, offset: u64, len: usize) -> usize {
        self.len.saturating_sub(offset).min(len as u64) as usize
    }

    #[inline(always)]
    fn copy(&mut self, offset: u64, count: usize, copy: impl FnOnce(*mut u8)) -> i64 {
        if count == 0 {
            return 0;
        }
        if self.broken {
            return -i64::from(libc::EIO);
        }
        // SAFETY: `within` found the offset inside the mapping.
        let place = unsafe { self.start.as_ptr().add(offset as usize) };
        let guard = Guard::over(place.addr(), count);
        copy(place);
        if guard.faulted() {
            self.restore(offset, count);
            return -i64::from(libc::EIO);
        }
        count as i64
    }

    /// Puts the file back where the guard put empty pages.
    #[cold]
    fn restore(&mut self, offset: u64, count: usize) {
        let page = guard::page_size();
        let first = offset as usize / page * page;
        let bytes = (offset as usize + count).next_multiple_of(page) - first;
        let (fixed, descriptor) = (libc::MAP_SHARED | libc::MAP_FIXED, self.file.as_raw_fd());
        // SAFETY: the range lies within the pages of this mapping, to which no reference exists.
        let place = unsafe { self.start.as_ptr().add(first) };
        // SAFETY: as above.
        let mapped = unsafe { libc::mmap(place.cast(), bytes, self.access, fixed, descriptor, first as i64) };
        self.broken = mapped == libc::MAP_FAILED;
        if let Some(place) = NonNull::new(place).filter(|_| !self.broken) {
            // The kernel has followed the advice before.
            let _ = self.advise(place, bytes);
        }
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // SAFETY: this type owns the mapping, and this is its last use.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const EIO: i64 = -(libc::EIO as i64);

    fn file_of(len: u64) -> Arc<File> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len).unwrap();
        Arc::new(file)
    }

    #[test]
    fn copies_reach_the_file_and_stop_at_its_end() {
        let file = file_of(10_000);
        let mut map =
            FileMap::new(Arc::clone(&file), 10_000, true, MapAdvice { random: true, huge: false }).unwrap();
        assert_eq!(map.write(&[7; 100], 9_950), 50);
        assert_eq!(map.write(&[7; 100], 10_000), -i64::from(libc::ENOSPC));
        assert_eq!(map.write(&[9; 5000], 100), 5000);
        assert_eq!(map.sync(), 0);
        let mut bytes = [0; 4096];
        file.read_exact_at(&mut bytes, 100).unwrap();
        assert!(bytes.iter().all(|&byte| byte == 9));
        assert_eq!((map.read(&mut bytes, 9_950), map.read(&mut bytes, 10_000)), (50, 0));
        assert_eq!((map.read(&mut bytes, u64::MAX), map.read(&mut [], 0)), (0, 0));
        assert!(bytes[..50].iter().all(|&byte| byte == 7));
    }

    #[test]
    fn a_file_that_shrinks_gives_eio_and_recovers() {
        let file = file_of(64 << 10);
        let mut map = FileMap::new(Arc::clone(&file), 64 << 10, true, MapAdvice::default()).unwrap();
        let mut bytes = [1; 16 << 10];
        file.set_len(20 << 10).unwrap();
        assert_eq!(map.read(&mut bytes, 0), 16 << 10);
        for _ in 0..2 {
            assert_eq!(map.read(&mut bytes, 16 << 10), EIO);
            assert_eq!(map.write(&bytes, 40 << 10), EIO);
        }
        file.set_len(64 << 10).unwrap();
        assert_eq!(map.write(&[5; 16 << 10], 40 << 10), 16 << 10);
        let mut seen = [0; 16 << 10];
        file.read_exact_at(&mut seen, 40 << 10).unwrap();
        assert!(seen.iter().all(|&byte| byte == 5), "the file is mapped again, not what stood in for it");
    }

    #[test]
    fn impossible_mappings_are_refused() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let read_only = Arc::new(File::open(named.path()).unwrap());
        for (file, len, writable) in
            [(file_of(1), 0, false), (file_of(1), u64::MAX, false), (Arc::clone(&read_only), 4096, true)]
        {
            assert_eq!(
                FileMap::new(file, len, writable, MapAdvice::default()).unwrap_err().step,
                SetupStep::Map
            );
        }
        let mut map = FileMap::new(read_only, 4096, false, MapAdvice::default()).unwrap();
        assert_eq!(map.write(&[1], 0), -i64::from(libc::EBADF));
    }
}
