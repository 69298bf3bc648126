//! Memory that is taken from the rest of the machine.

use std::io;
use std::ptr::NonNull;

/// Memory that stays in RAM and is used for nothing until it is dropped.
#[derive(Debug)]
pub struct LockedMemory {
    start: NonNull<libc::c_void>,
    len: usize,
}

impl LockedMemory {
    /// Allocates and locks `len` bytes, more than 0. Fails with EAGAIN or ENOMEM above the limits of the process or the
    /// memory there is.
    pub fn new(len: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        let start = match NonNull::new(start) {
            Some(start) if start.as_ptr() != libc::MAP_FAILED => start,
            _ => return Err(io::Error::last_os_error()),
        };
        let memory = LockedMemory { start, len };
        // SAFETY: the range is the mapping made above; locking faults it in.
        let result = unsafe { libc::mlock(memory.start.as_ptr(), len) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(memory) }
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned, and nothing refers to it.
        unsafe { libc::munmap(self.start.as_ptr(), self.len) };
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
        let Ok(memory) = LockedMemory::new(64 << 10) else { return };
        assert!(locked_kib() >= 64);
        drop(memory);
        assert!(LockedMemory::new(0).is_err() && LockedMemory::new(usize::MAX / 2).is_err());
    }
}
