//! Memory that is taken from the rest of the machine.

use std::ffi::c_void;
use std::io;

use rustix::mm::{MapFlags, ProtFlags, mlock, mmap_anonymous, munmap};

/// Memory that stays in RAM and is used for nothing until it is dropped.
#[derive(Debug)]
pub struct LockedMemory {
    start: *mut c_void,
    len: usize,
}

/// What is locked between two looks at whether to go on: the kernel clears it first, which takes some 10 ms.
const PIECE_BYTES: usize = 64 << 20;

impl LockedMemory {
    /// Allocates and locks `len` bytes, more than 0, as long as `goes_on` says so. Fails with EAGAIN or ENOMEM above the limits of
    /// the process or the memory there is.
    pub fn new(len: usize, goes_on: impl Fn() -> bool) -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, access, flags) }?;
        let memory = LockedMemory { start, len };
        for offset in (0..len).step_by(PIECE_BYTES) {
            if !goes_on() {
                break;
            }
            let piece = memory.start.wrapping_byte_add(offset);
            // SAFETY: the piece lies in the mapping made above; locking faults it in.
            unsafe { mlock(piece, PIECE_BYTES.min(len - offset)) }?;
        }
        Ok(memory)
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned, and nothing refers to it.
        let _ = unsafe { munmap(self.start, self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KiB that this process has locked.
    fn locked_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
        line.trim().trim_end_matches("kB").trim().parse().unwrap()
    }

    #[test]
    fn memory_is_locked_until_it_is_dropped() {
        let Ok(memory) = LockedMemory::new(64 << 10, || true) else { return };
        assert!(locked_kib() >= 64);
        drop(memory);
        let new = |len| LockedMemory::new(len, || true);
        assert!(new(0).is_err() && new(usize::MAX / 2).is_err());
        // A run that is to end locks no more.
        let before = locked_kib();
        let stopped = LockedMemory::new(8 << 20, || false);
        assert!(stopped.is_ok() && locked_kib() <= before);
    }
}
