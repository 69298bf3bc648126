//! The buffers that requests move data through.
//!
//! One pool per worker: a single mapping cut into equal slots, faulted in before the measurement, and physically
//! contiguous (huge pages) where that spares the block layer from splitting large requests. [`LentBuffers`] adds who
//! holds each slot: while the kernel has one, it is inaccessible.

use std::io;
use std::ptr::NonNull;

const PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;

/// From this block size on, ordinary pages make a request that many devices must split: 64 segments of 4 KiB.
const LARGE_BLOCK: usize = 256 << 10;

/// Pools up to this size are tried without asking what memory there is.
const UNCHECKED: usize = 64 << 20;

/// Equal buffers in one mapping, each aligned to 4096 bytes.
#[derive(Debug)]
pub struct BufferPool {
    mapping: Mapping,
    block: usize,
    stride: usize,
    slots: u32,
}

impl BufferPool {
    /// Maps and faults in `slots` buffers of `block` bytes, zeroed.
    ///
    /// Fails with `OutOfMemory` where the product does not fit the address space or the system refuses it.
    pub fn new(slots: u32, block: usize) -> io::Result<Self> {
        let too_large = || io::Error::from_raw_os_error(libc::ENOMEM);
        let stride = block.max(1).checked_next_multiple_of(PAGE).ok_or_else(too_large)?;
        let wanted = stride.checked_mul(slots.max(1) as usize).ok_or_else(too_large)?;
        let contiguous = stride >= LARGE_BLOCK && wanted >= HUGE_PAGE / 2;
        let len = if contiguous {
            wanted.checked_next_multiple_of(HUGE_PAGE).ok_or_else(too_large)?
        } else {
            wanted
        };
        if len > UNCHECKED && available_memory().is_some_and(|available| len as u64 > available) {
            return Err(too_large());
        }
        let mapping = Mapping::new(len)?;
        mapping.fault_in()?;
        Ok(BufferPool { mapping, block, stride, slots })
    }

    /// Buffers in the pool.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Usable bytes of each buffer.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Distance between neighbouring buffers in bytes.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The buffer of `slot`.
    #[inline]
    pub fn bytes(&mut self, slot: u32) -> &mut [u8] {
        let start = self.address(slot);
        // SAFETY: `address` checked the slot; its bytes are mapped, initialised and borrowed through `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(start, self.block) }
    }

    /// Where the buffer of `slot` starts.
    #[inline]
    pub(crate) fn address(&self, slot: u32) -> *mut u8 {
        assert!(slot < self.slots, "slots are numbered below the depth");
        // SAFETY: the mapping holds `slots` strides, and `slot` is below `slots`.
        unsafe { self.mapping.start.as_ptr().add(slot as usize * self.stride) }
    }
}

/// A pool whose slots may be in the kernel's hands.
#[derive(Debug)]
pub struct LentBuffers {
    pool: BufferPool,
    lent: Box<[bool]>,
    count: u32,
}

impl LentBuffers {
    /// All buffers of `pool`, none lent.
    pub fn new(pool: BufferPool) -> Self {
        let lent = vec![false; pool.slots() as usize].into_boxed_slice();
        LentBuffers { pool, lent, count: 0 }
    }

    /// The pool itself, for its measures.
    pub fn pool(&self) -> &BufferPool {
        &self.pool
    }

    /// Slots that are lent.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The buffer of a slot that is not lent. Panics where it is: the driver never touches a slot in flight.
    #[inline]
    pub fn bytes(&mut self, slot: u32) -> &mut [u8] {
        assert!(!self.lent[slot as usize], "slot {slot} is in flight; its buffer belongs to the kernel");
        self.pool.bytes(slot)
    }

    /// Lends a slot and returns the start of its buffer. Panics if it is lent already.
    #[inline]
    pub(crate) fn lend(&mut self, slot: u32) -> *mut u8 {
        let lent = &mut self.lent[slot as usize];
        assert!(!*lent, "slot {slot} is in flight and cannot be queued again");
        *lent = true;
        self.count += 1;
        self.pool.address(slot)
    }

    /// Takes a slot back. Panics where it is not lent: the kernel completes a request once.
    #[inline]
    pub(crate) fn take_back(&mut self, slot: u32) {
        let lent = &mut self.lent[slot as usize];
        assert!(*lent, "slot {slot} completed without being in flight");
        *lent = false;
        self.count -= 1;
    }
}

/// Bytes available without swapping, if known: faulting in more would make the kernel kill processes.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// A private anonymous mapping.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping owns its pages, which any thread may access; it has no interior mutability.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(len: usize) -> io::Result<Self> {
        if len < HUGE_PAGE {
            return Ok(Mapping { start: map_anonymous(len)?, len });
        }
        // Huge pages need an aligned start, which mmap does not promise: map more and give the ends back.
        let padded = len.checked_add(HUGE_PAGE).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let start = map_anonymous(padded)?;
        let before = start.as_ptr().align_offset(HUGE_PAGE);
        // SAFETY: `before < HUGE_PAGE`, so the aligned start and the end of `len` lie within the padded mapping.
        let (aligned, end) = unsafe { (start.add(before), start.add(before + len)) };
        unmap(start, before);
        unmap(end, padded - before - len);
        // Transparent huge pages only: reserved ones (MAP_HUGETLB) belong to other programs. Kernels without them
        // refuse; then ordinary pages are used. SAFETY: the advised range is an own mapping.
        let _ = unsafe { libc::madvise(aligned.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
        Ok(Mapping { start: aligned, len })
    }

    /// Gives every page its memory now, so that no request pays for it.
    fn fault_in(&self) -> io::Result<()> {
        // SAFETY: the range is an own mapping; populating does not change its contents.
        if unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, libc::MADV_POPULATE_WRITE) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) {
            return Err(error);
        }
        // Kernels before 5.14 cannot be asked, so each page is touched.
        for offset in (0..self.len).step_by(PAGE) {
            // SAFETY: `offset` lies within the mapping, to which no reference exists yet.
            unsafe { self.start.as_ptr().add(offset).write_volatile(0) };
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.start, self.len);
    }
}

fn map_anonymous(len: usize) -> io::Result<NonNull<u8>> {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping at a place the kernel chooses touches nothing that exists.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
}

fn unmap(start: NonNull<u8>, len: usize) {
    if len > 0 {
        // SAFETY: every caller owns the range and drops its last use with this call.
        unsafe { libc::munmap(start.as_ptr().cast(), len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_apart_and_zero() {
        for (slots, block) in
            [(1, 1), (3, 512), (64, 4096), (5, 4097), (2, 100_000), (4, 1 << 20), (3, 2 << 20)]
        {
            let mut pool = BufferPool::new(slots, block).unwrap();
            for slot in 0..slots {
                let bytes = pool.bytes(slot);
                assert_eq!((bytes.len(), bytes.as_ptr().align_offset(4096)), (block, 0), "{slots} x {block}");
                assert!(bytes.iter().all(|&byte| byte == 0));
                bytes.fill(slot as u8 + 1);
            }
            for slot in 0..slots {
                assert!(pool.bytes(slot).iter().all(|&byte| byte == slot as u8 + 1), "{slots} x {block}");
            }
        }
    }

    #[test]
    fn pools_waste_little() {
        for (slots, block, mapped) in [
            (64, 4096, 64 * 4096),
            (1, 1, 4096),
            (513, 4096, 513 * 4096),
            (1, 512 << 10, 512 << 10),
            (1, 1 << 20, 2 << 20),
            (32, 1 << 20, 32 << 20),
            (3, 1 << 20, 4 << 20),
        ] {
            let pool = BufferPool::new(slots, block).unwrap();
            assert_eq!(pool.mapping.len, mapped, "{slots} x {block}");
            if mapped >= HUGE_PAGE {
                assert_eq!(pool.mapping.start.as_ptr().align_offset(HUGE_PAGE), 0);
            }
        }
    }

    #[test]
    fn impossible_pools_are_refused() {
        let more_than_there_is = available_memory().unwrap() as usize + (1 << 30);
        for (slots, block) in [
            (1, more_than_there_is),
            (u32::MAX, usize::MAX),
            (2, usize::MAX / 2),
            (1, usize::MAX),
            (4096, 1 << 46),
        ] {
            let kind = BufferPool::new(slots, block).unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::OutOfMemory, "{slots} x {block}");
        }
    }

    #[test]
    fn pages_are_allocated_before_the_first_use() {
        let mut pool = BufferPool::new(256, 4096).unwrap();
        let before = crate::thread::usage_of_this_thread().minor_faults;
        for slot in 0..256 {
            pool.bytes(slot)[0] = 1;
        }
        assert!(crate::thread::usage_of_this_thread().minor_faults - before < 16);
    }

    #[test]
    fn buffers_in_flight_are_inaccessible() {
        let refused =
            |act: &mut dyn FnMut()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).is_err();
        let mut buffers = LentBuffers::new(BufferPool::new(2, 4096).unwrap());
        buffers.lend(1);
        assert_eq!(buffers.count(), 1);
        buffers.bytes(0)[0] = 1;
        assert!(refused(&mut || buffers.bytes(1)[0] = 1));
        assert!(refused(&mut || _ = buffers.lend(1)));
        assert!(refused(&mut || buffers.take_back(0)));
        assert!(refused(&mut || _ = buffers.bytes(2)));
        buffers.take_back(1);
        buffers.bytes(1)[0] = 1;
        assert_eq!(buffers.count(), 0);
    }
}
