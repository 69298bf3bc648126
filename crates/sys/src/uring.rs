//! An io_uring that owns its buffers and its files.
//!
//! A request is named by its slot; the slot's buffer cannot be reached while the kernel has it, so queueing is safe.
//! Features are probed, never derived from the kernel version. The ring stays on the thread that made it: the kernel
//! enforces that for deferred task work, and the type in all cases.

mod locked;
mod setup;

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use io_uring::{EnterFlags, IoUring, opcode, types};

use crate::buffer::LentBuffers;
use crate::sqe::{FLAG_ASYNC, FLAG_FIXED_FILE, FSYNC_DATASYNC, Sqe};

use locked::Locked;
pub use locked::registered_memory_limit;
pub use setup::{MAX_DEPTH, RingFeatures, RingOptions, SqThread, Wish};

/// Turns of busy polling before a wait with a submission thread goes to sleep in the kernel.
const SQ_THREAD_SPINS: u32 = 2_000;
/// A wait for requests in flight while a ring is dropped, ns.
const DRAIN_WAIT_NS: u64 = 1_000_000_000;
/// So many waits without a completion, and a ring that is dropped leaves its memory to the kernel.
const DRAIN_PATIENCE: u32 = 5;

/// A ring with `depth` slots on a fixed set of files.
pub struct Ring {
    /// Before the buffers, so that the kernel lets go of them first.
    ring: ManuallyDrop<IoUring>,
    buffers: ManuallyDrop<LentBuffers>,
    files: ManuallyDrop<Vec<Arc<File>>>,
    /// One per slot for vectored requests, otherwise empty.
    vectors: ManuallyDrop<Box<[libc::iovec]>>,
    /// The file of a request: a descriptor, or an index of the registered files.
    targets: Box<[i32]>,
    /// Which registered buffer holds each slot.
    buffer_indices: Box<[u16]>,
    features: RingFeatures,
    /// Index of the registered ring descriptor, or the descriptor itself.
    enter_fd: i32,
    enter_flags: u32,
    read_code: u8,
    write_code: u8,
    base_flags: u8,
    read_flags: u32,
    write_flags: u32,
    /// Every Nth request goes to a kernel worker immediately; 0 = none.
    force_async: u32,
    until_async: u32,
    /// Queued and not yet taken by the kernel.
    pending: u32,
    /// The registered buffers' share of what may be locked.
    locked: Option<Locked>,
    /// Not `Send`: see the module.
    one_thread: PhantomData<*const ()>,
}

impl Ring {
    /// The granted features.
    pub fn features(&self) -> RingFeatures {
        self.features
    }

    /// The buffer of a slot that is not in flight. Panics where it is.
    #[inline]
    pub fn bytes(&mut self, slot: u32) -> &mut [u8] {
        self.buffers.bytes(slot)
    }

    /// Prepares a read of `len` bytes at `offset` of the `file`-th file into the slot's buffer.
    ///
    /// A `priority` of 0 is that of the thread. Panics where the slot is in flight, or `len` or `file` are out of range: the
    /// caller has checked the request.
    #[inline(always)]
    pub fn read(&mut self, slot: u32, file: u32, offset: u64, len: u32, priority: u16) {
        self.transfer((self.read_code, self.read_flags, priority), slot, file, offset, len);
    }

    /// Prepares a write of `len` bytes from the slot's buffer. Panics as [`Ring::read`] does.
    #[inline(always)]
    pub fn write(&mut self, slot: u32, file: u32, offset: u64, len: u32, priority: u16) {
        self.transfer((self.write_code, self.write_flags, priority), slot, file, offset, len);
    }

    /// Prepares an fsync, or an fdatasync where `data_only`. Panics as [`Ring::read`] does.
    pub fn sync(&mut self, slot: u32, file: u32, data_only: bool) {
        let op_flags = if data_only { FSYNC_DATASYNC } else { 0 };
        let fd = self.targets[file as usize];
        self.buffers.lend(slot);
        self.push(slot, Sqe { opcode: opcode::Fsync::CODE, fd, op_flags, ..Sqe::default() });
    }

    /// Prepares punching a hole of `len` bytes at `offset`. Panics as [`Ring::read`] does.
    pub fn punch_hole(&mut self, slot: u32, file: u32, offset: u64, len: u32) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (opcode, address) = (opcode::Fallocate::CODE, u64::from(len));
        let fd = self.targets[file as usize];
        self.buffers.lend(slot);
        // The kernel answers 0; the length travels along, so that the completion can tell it.
        let user_data = u64::from(len) << 32;
        self.push(slot, Sqe { opcode, fd, offset, address, len: mode as u32, user_data, ..Sqe::default() });
    }

    #[inline(always)]
    fn transfer(
        &mut self,
        (opcode, op_flags, ioprio): (u8, u32, u16),
        slot: u32,
        file: u32,
        offset: u64,
        len: u32,
    ) {
        assert!(len as usize <= self.buffers.pool().block(), "a request is no longer than its buffer");
        let fd = self.targets[file as usize];
        let start = self.buffers.lend(slot);
        let mut sqe = Sqe { opcode, ioprio, fd, offset, len, op_flags, ..Sqe::default() };
        if let Some(vector) = self.vectors.get_mut(slot as usize) {
            vector.iov_len = len as usize;
            sqe.address = std::ptr::from_ref(vector).expose_provenance() as u64;
            sqe.len = 1;
        } else {
            sqe.address = start.expose_provenance() as u64;
            sqe.buffer_index = self.buffer_indices[slot as usize];
        }
        self.push(slot, sqe);
    }

    /// Queues an entry whose slot has just been lent.
    #[inline(always)]
    fn push(&mut self, slot: u32, mut sqe: Sqe) {
        sqe.flags = self.base_flags;
        if self.force_async != 0 {
            self.until_async -= 1;
            if self.until_async == 0 {
                self.until_async = self.force_async;
                sqe.flags |= FLAG_ASYNC;
            }
        }
        sqe.user_data |= u64::from(slot);
        // SAFETY: the ring owns buffer, vector and file, and keeps them until the slot has come back.
        let pushed = unsafe { self.ring.submission().push(sqe.as_entry()) };
        pushed.expect("the queue has a place for every slot, and a slot is queued once");
        self.pending += 1;
    }

    /// Requests that the kernel has taken and that have not been handed out by [`Ring::reap`].
    #[inline]
    pub fn in_kernel(&self) -> u32 {
        // A submission thread takes requests as they are prepared.
        if self.features.sq_thread { self.buffers.count() } else { self.buffers.count() - self.pending }
    }

    /// Hands everything prepared to the kernel, which also gets to finish completions; answers how many it took.
    ///
    /// Fewer than prepared if the kernel needs completions to be reaped first. Fails if it refuses permanently.
    pub fn submit(&mut self) -> io::Result<u32> {
        if self.features.sq_thread {
            return self.submit_to_thread();
        }
        let mut gone = 0;
        while self.pending > 0 {
            match self.enter(self.pending, 0, EnterFlags::GETEVENTS.bits(), None) {
                Ok(0) => break,
                Ok(taken) => {
                    gone += taken;
                    self.pending -= taken;
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN | libc::EBUSY) if gone + self.in_kernel() > 0 => {
                        self.run_completions()?;
                        break;
                    }
                    _ if gone > 0 => break,
                    _ => return Err(error),
                },
            }
        }
        Ok(gone)
    }

    fn submit_to_thread(&mut self) -> io::Result<u32> {
        let gone = std::mem::take(&mut self.pending);
        // The thread reads the tail that `push` published; it must be seen before asking whether the thread sleeps.
        fence(Ordering::SeqCst);
        if gone > 0 && self.ring.submission().need_wakeup() {
            self.enter(gone, 0, EnterFlags::SQ_WAKEUP.bits(), None)?;
        }
        Ok(gone)
    }

    /// Hands up to `max` completions (slot, and bytes moved or a negative errno) to `each`; answers how many.
    ///
    /// Waits for at least `min`, at most `wait_ns` (`None` = without limit), and never for more than the kernel has.
    /// Answers fewer where the time is over or a signal came. Fails only where the ring itself does.
    #[inline]
    pub fn reap(
        &mut self,
        min: u32,
        max: u32,
        wait_ns: Option<u64>,
        mut each: impl FnMut(u32, i64),
    ) -> io::Result<u32> {
        let min = min.min(max).min(self.in_kernel());
        let mut count = self.take(max, &mut each);
        if count >= min && (count > 0 || max == 0 || !self.peek_needs_enter()) {
            return Ok(count);
        }
        if min == 0 {
            self.run_completions()?;
            return Ok(self.take(max, &mut each));
        }
        count += self.spin(min - count, max - count, &mut each);
        while count < min {
            let entered = self.wait(min - count, wait_ns);
            let taken = self.take(max - count, &mut each);
            count += taken;
            match entered {
                // A bounded wait is not restarted: only the caller knows the remaining time.
                Ok(true) if wait_ns.is_none() => {}
                Ok(_) => break,
                Err(error) => match error.raw_os_error() {
                    // EBUSY: completions overflowed, and there is room for them now.
                    Some(libc::EBUSY | libc::EAGAIN) if taken > 0 => {}
                    _ => return Err(error),
                },
            }
        }
        Ok(count)
    }

    /// Takes the entries of the completion queue, without a system call.
    #[inline]
    fn take(&mut self, max: u32, each: &mut impl FnMut(u32, i64)) -> u32 {
        let mut count = 0;
        let mut queue = self.ring.completion();
        while count < max
            && let Some(entry) = queue.next()
        {
            let (slot, trimmed) = (entry.user_data() as u32, (entry.user_data() >> 32) as i64);
            let result = i64::from(entry.result());
            self.buffers.take_back(slot);
            each(slot, if result < 0 { result } else { result + trimmed });
            count += 1;
        }
        count
    }

    /// True where completions may be waiting that only entering the ring brings into the queue.
    #[inline]
    fn peek_needs_enter(&mut self) -> bool {
        if self.features.polled {
            return self.in_kernel() > 0;
        }
        let queue = self.ring.submission();
        queue.taskrun() || queue.cq_overflow()
    }

    /// With a submission thread, completions mostly come without a system call: look for them a while.
    fn spin(&mut self, min: u32, max: u32, each: &mut impl FnMut(u32, i64)) -> u32 {
        let mut count = 0;
        if self.features.sq_thread {
            for _ in 0..SQ_THREAD_SPINS {
                count += self.take(max - count, each);
                if count >= min {
                    break;
                }
                std::hint::spin_loop();
            }
        }
        count
    }

    /// Lets the kernel complete requests without waiting.
    fn run_completions(&mut self) -> io::Result<()> {
        match self.enter(0, 0, EnterFlags::GETEVENTS.bits(), None) {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Waits for `min` completions; false where the time is over or a signal came.
    fn wait(&mut self, min: u32, wait_ns: Option<u64>) -> io::Result<bool> {
        let flags = EnterFlags::GETEVENTS.bits();
        let entered = match wait_ns {
            Some(limit) if self.features.timed_waits => {
                let time =
                    types::Timespec::new().sec(limit / 1_000_000_000).nsec((limit % 1_000_000_000) as u32);
                self.enter(0, min, flags, Some(&types::SubmitArgs::new().timespec(&time)))
            }
            Some(limit) => return self.wait_by_poll(limit),
            None => self.enter(0, min, flags, None),
        };
        match entered {
            Ok(_) => Ok(true),
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR) => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// A bounded wait for one completion on kernels before 5.11, whose rings do not support it.
    fn wait_by_poll(&mut self, limit_ns: u64) -> io::Result<bool> {
        let mut waited = libc::pollfd { fd: self.ring.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let limit_ms = i32::try_from(limit_ns.div_ceil(1_000_000)).unwrap_or(i32::MAX);
        // SAFETY: one pollfd that outlives the call.
        let ready = unsafe { libc::poll(&raw mut waited, 1, limit_ms) };
        self.run_completions()?;
        Ok(ready > 0)
    }

    #[inline]
    fn enter(
        &self,
        submit: u32,
        min: u32,
        flags: u32,
        args: Option<&types::SubmitArgs<'_, '_>>,
    ) -> io::Result<u32> {
        const ARGS_SIZE: usize = size_of::<types::SubmitArgs<'static, 'static>>();
        const _: () = assert!(ARGS_SIZE == 24);
        let (extended, address, size) = match args {
            Some(args) => (EnterFlags::EXT_ARG.bits(), std::ptr::from_ref(args), ARGS_SIZE),
            None => (0, std::ptr::null(), 0),
        };
        let flags = flags | extended | self.enter_flags;
        // SAFETY: the ring and everything its entries point to is ours; `args` outlives the call.
        let result = unsafe {
            libc::syscall(libc::SYS_io_uring_enter, self.enter_fd, submit, min, flags, address, size)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as u32) }
    }

    /// Waits for all requests in the kernel; false if some do not complete. Queued requests are never submitted.
    fn drain(&mut self) -> bool {
        if self.in_kernel() == 0 {
            return true;
        }
        // Kernels before 6.0 cannot; the requests then end by themselves.
        let soon = types::Timespec::new().nsec(1_000_000);
        let _ = self.ring.submitter().register_sync_cancel(Some(soon), types::CancelBuilder::any());
        let mut patience = DRAIN_PATIENCE;
        while self.in_kernel() > 0 && patience > 0 {
            match self.reap(1, u32::MAX, Some(DRAIN_WAIT_NS), |_, _| ()) {
                Ok(0) => patience -= 1,
                Ok(_) => patience = DRAIN_PATIENCE,
                Err(_) => return false,
            }
        }
        self.in_kernel() == 0
    }
}

impl Drop for Ring {
    /// Cancels requests if possible and waits for the others. Buffers of requests that never complete stay allocated:
    /// the kernel may still write there.
    fn drop(&mut self) {
        let drained = self.drain();
        if drained && self.features.fixed_buffers {
            // A closed ring releases its locked memory with a delay; this releases it immediately.
            let _ = self.ring.submitter().unregister_buffers();
        }
        if drained && self.features.fixed_files {
            // The same for files: a file system with an open file cannot be unmounted.
            let _ = self.ring.submitter().unregister_files();
        }
        self.unregister_ring();
        if !drained {
            std::mem::forget(self.locked.take());
        } else {
            // SAFETY: each is dropped here and nowhere else, and the kernel has none of the buffers.
            unsafe { ManuallyDrop::drop(&mut self.ring) };
            // SAFETY: as above.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
            // SAFETY: as above.
            unsafe { ManuallyDrop::drop(&mut self.vectors) };
            // SAFETY: as above.
            unsafe { ManuallyDrop::drop(&mut self.files) };
        }
    }
}

#[cfg(test)]
mod tests;
