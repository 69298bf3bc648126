//! Where a read would be answered from: the page cache, a hole in a file, or beneath.
//!
//! Looks and changes nothing; a state may have passed by the time the request is made.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::SeekFrom;

/// cachestat(2) has this number on every architecture.
const CACHESTAT: libc::c_long = 451;

#[repr(C)]
struct CacheRange {
    offset: u64,
    len: u64,
}

#[repr(C)]
#[derive(Default)]
struct CacheCounts {
    cached: u64,
    dirty: u64,
    write_back: u64,
    evicted: u64,
    recently_evicted: u64,
}

const _: () = assert!(size_of::<CacheCounts>() == 40);

/// Whether the page cache holds all of `offset..offset + len`; `None` if unknown: before Linux 6.5 for another user's
/// file. An empty range is not cached.
pub fn is_cached(file: &File, offset: u64, len: u64) -> Option<bool> {
    if len == 0 {
        return Some(false);
    }
    let page = rustix::param::page_size() as u64;
    let first = offset / page * page;
    let span = (offset + len).div_ceil(page) * page - first;
    match cached_pages(file, first, span) {
        Ok(pages) => Some(pages >= span / page),
        Err(_) => all_in_core(file, first, span),
    }
}

fn cached_pages(file: &File, offset: u64, len: u64) -> io::Result<u64> {
    let range = CacheRange { offset, len };
    let mut counts = CacheCounts::default();
    // SAFETY: both structures are the kernel's own in size and layout, and outlive the call.
    let answer = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut counts, 0) };
    if answer == 0 { Ok(counts.cached) } else { Err(io::Error::last_os_error()) }
}

/// By mincore(2), which answers "all" to those who may not know.
fn all_in_core(file: &File, offset: u64, len: u64) -> Option<bool> {
    let user = rustix::process::geteuid();
    if !user.is_root() && file.metadata().ok()?.uid() != user.as_raw() {
        return None;
    }
    let len = usize::try_from(len).ok()?;
    let mut pages = vec![0_u8; len / rustix::param::page_size()];
    let (read, shared) = (rustix::mm::ProtFlags::READ, rustix::mm::MapFlags::SHARED);
    // SAFETY: a new mapping at an address of the kernel's choice; nothing is read through it.
    let map = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, read, shared, file, offset) }.ok()?;
    // SAFETY: the mapping is `len` bytes long and `pages` has a byte for each of its pages.
    let answer = unsafe { libc::mincore(map, len, pages.as_mut_ptr()) };
    // SAFETY: the mapping was created above and has no other user.
    unsafe { rustix::mm::munmap(map, len) }.ok()?;
    (answer == 0).then(|| pages.iter().all(|page| page & 1 == 1))
}

/// Whether all of `offset..offset + len` of a regular file is a hole: never written, and read from no device. Files
/// whose system cannot tell have none.
pub fn is_hole(file: &File, offset: u64, len: u64) -> bool {
    match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(data) => data >= offset + len,
        Err(error) => error == rustix::io::Errno::NXIO,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::io::{Advice, fadvise};

    #[test]
    fn written_pages_are_cached() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 65_536], 0).unwrap();
        assert_eq!(is_cached(&file, 4096, 8192), Some(true));
        assert_eq!(is_cached(&file, 100, 50), Some(true));
        assert_eq!(is_cached(&file, 1 << 20, 4096), Some(false));
        assert_eq!(is_cached(&file, 0, 0), Some(false));
        // Both methods agree on a completely cached range.
        assert_eq!(all_in_core(&file, 0, 65_536), Some(true));
    }

    #[test]
    fn dropped_pages_are_not_cached() {
        // Next to the sources: a file system in memory drops nothing.
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all_at(&[7; 65_536], 0).unwrap();
        file.sync_all().unwrap();
        fadvise(&file, 0, 0, Advice::DontNeed).unwrap();
        if crate::device::filesystem_of(env!("CARGO_MANIFEST_DIR").as_ref()).unwrap().major == 0 {
            return;
        }
        assert_eq!(is_cached(&file, 0, 65_536), Some(false));
        assert_eq!(all_in_core(&file, 0, 65_536), Some(false));
    }

    #[test]
    fn holes_are_not_cached() {
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.set_len(1 << 20).unwrap();
        file.write_all_at(&[7; 4096], 65_536).unwrap();
        assert!(is_hole(&file, 0, 65_536) && is_hole(&file, 1 << 19, 4096));
        assert!(!is_hole(&file, 65_536, 4096) && !is_hole(&file, 61_440, 8192));
    }
}
