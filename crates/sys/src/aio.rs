//! A kernel AIO context (the interface under libaio) that owns its buffers and its files.
//!
//! Raw system calls: the C library adds nothing but names. As in `uring`, a request is named by its slot, and the
//! slot's buffer cannot be reached while the kernel has it.

mod abi;

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use crate::buffer::{BufferPool, LentBuffers};
use crate::transfer::{self, TransferFlags};
use crate::{SetupError, SetupStep};
use abi::{IoEvent, Iocb, Opcode, RingView};

/// A wait for requests in flight while a context is dropped, ns.
const DRAIN_WAIT_NS: u64 = 1_000_000_000;
/// So many waits without a completion, and a context that is dropped leaves its memory to the kernel.
const DRAIN_PATIENCE: u32 = 5;

/// The options of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextOptions {
    /// Slots.
    pub depth: u32,
    /// Bytes of each slot's buffer.
    pub block: usize,
    /// Per-request flags.
    pub transfer: TransferFlags,
    /// Always ask the kernel for completions, rather than reading them from the ring that it maps for us.
    pub reap_by_call: bool,
}

/// A context with `depth` slots on a fixed set of files.
pub struct Context {
    id: ManuallyDrop<ContextId>,
    ring: Option<RingView>,
    buffers: ManuallyDrop<LentBuffers>,
    files: ManuallyDrop<Vec<Arc<File>>>,
    /// One per slot, prepared once; a request fills in what differs.
    blocks: ManuallyDrop<Box<[Iocb]>>,
    /// Slots queued and not yet taken by the kernel, as it wants to be given them.
    queued: Vec<*mut Iocb>,
    /// Requests that ended without the kernel keeping them.
    ended: Vec<(u32, i64)>,
    events: Box<[IoEvent]>,
    read_flags: u32,
    write_flags: u32,
}

impl Context {
    /// Makes a context on `files`.
    pub fn new(files: Vec<Arc<File>>, options: ContextOptions) -> Result<Context, SetupError> {
        let depth = options.depth.max(1);
        // The cheap refusal first: a depth beyond fs.aio-max-nr must not cost its buffers.
        let id = ContextId::new(depth).map_err(|source| {
            let attempted = format!("create an AIO context for queue depth {depth}");
            SetupError::new(SetupStep::Kernel, attempted, source)
        })?;
        let pool = BufferPool::new(depth, options.block).map_err(|source| {
            let attempted = format!("allocate {depth} buffers of {} bytes", options.block);
            SetupError::new(SetupStep::Buffers, attempted, source)
        })?;
        Ok(Context {
            ring: if options.reap_by_call { None } else { RingView::of(id.0) },
            id: ManuallyDrop::new(id),
            blocks: ManuallyDrop::new((0..depth).map(Iocb::new).collect()),
            buffers: ManuallyDrop::new(LentBuffers::new(pool)),
            files: ManuallyDrop::new(files),
            queued: Vec::with_capacity(depth as usize),
            ended: Vec::with_capacity(depth as usize),
            events: vec![IoEvent::default(); depth as usize].into_boxed_slice(),
            read_flags: options.transfer.of_reads().bits(),
            write_flags: options.transfer.bits(),
        })
    }

    /// The buffer of a slot that is not in flight. Panics where it is.
    #[inline]
    pub fn bytes(&mut self, slot: u32) -> &mut [u8] {
        self.buffers.bytes(slot)
    }

    /// Prepares a read of `len` bytes at `offset` of the `file`-th file into the slot's buffer.
    ///
    /// Panics where the slot is in flight, or `len` or `file` are out of range: the caller has checked the request.
    #[inline]
    pub fn read(&mut self, slot: u32, file: u32, offset: u64, len: u32) {
        self.prepare(slot, file, Opcode::Read, offset, len);
    }

    /// Prepares a write of `len` bytes from the slot's buffer. Panics as [`Context::read`] does.
    #[inline]
    pub fn write(&mut self, slot: u32, file: u32, offset: u64, len: u32) {
        self.prepare(slot, file, Opcode::Write, offset, len);
    }

    /// Gives the next requests of a slot that is not in flight this priority, as Linux packs it; 0 is that of the thread.
    pub fn set_priority(&mut self, slot: u32, priority: u16) {
        self.blocks[slot as usize].set_priority(priority);
    }

    /// Prepares an fsync, or an fdatasync where `data_only`. Panics as [`Context::read`] does.
    pub fn sync(&mut self, slot: u32, file: u32, data_only: bool) {
        let opcode = if data_only { Opcode::Datasync } else { Opcode::Sync };
        self.prepare(slot, file, opcode, 0, 0);
    }

    #[inline(always)]
    fn prepare(&mut self, slot: u32, file: u32, opcode: Opcode, offset: u64, len: u32) {
        assert!(len as usize <= self.buffers.pool().block(), "a request is no longer than its buffer");
        let descriptor = self.files[file as usize].as_raw_fd();
        self.buffers.lend(slot);
        let block = &mut self.blocks[slot as usize];
        if opcode.is_sync() {
            block.set(opcode, 0, descriptor, 0, 0, 0);
        } else {
            let buffer = self.buffers.pool().address(slot).expose_provenance() as u64;
            let flags = if opcode == Opcode::Write { self.write_flags } else { self.read_flags };
            block.set(opcode, flags, descriptor, buffer, offset, len);
        }
        self.queued.push(block);
    }

    /// Requests that were submitted and have not been handed out by [`Context::reap`].
    #[inline]
    pub fn submitted(&self) -> u32 {
        self.buffers.count() - self.queued.len() as u32
    }

    /// Hands everything prepared to the kernel; answers how many it took.
    ///
    /// Fewer than prepared where it wants completions reaped first. A request that it refuses counts as taken and comes
    /// back with its errno. Fails if the kernel permanently accepts none.
    pub fn submit(&mut self) -> io::Result<u32> {
        let mut gone = 0;
        let mut failure = None;
        while gone < self.queued.len() {
            let waiting = &self.queued[gone..];
            // SAFETY: every pointer is to an own block, whose buffer is lent until its completion is taken.
            let taken =
                unsafe { libc::syscall(libc::SYS_io_submit, self.id.0, waiting.len(), waiting.as_ptr()) };
            if taken > 0 {
                gone += taken as usize;
                continue;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                _ if taken == 0 => break,
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::ENOMEM) => {
                    failure = Some(error);
                    break;
                }
                errno => {
                    self.refused(gone, errno.unwrap_or(libc::EIO));
                    gone += 1;
                }
            }
        }
        self.queued.drain(..gone);
        match failure {
            Some(error) if gone == 0 && self.submitted() == 0 => Err(error),
            _ => Ok(gone as u32),
        }
    }

    /// Ends the first request of what the kernel would not take: with its errno, or, for a sync that the file has no
    /// asynchronous form of, with the result of a plain one.
    #[cold]
    fn refused(&mut self, index: usize, errno: i32) {
        let position = self.blocks.iter().position(|block| std::ptr::eq(block, self.queued[index]));
        let slot = position.expect("queued pointers are to our blocks");
        let (opcode, descriptor) = self.blocks[slot].request();
        let result = match opcode {
            Some(opcode) if opcode.is_sync() && errno == libc::EINVAL => {
                let file = self.files.iter().find(|file| file.as_raw_fd() == descriptor);
                file.map_or(-i64::from(libc::EBADF), |file| transfer::sync(file, opcode == Opcode::Datasync))
            }
            _ => -i64::from(errno),
        };
        self.ended.push((slot as u32, result));
    }

    /// Hands up to `max` completions (slot, and bytes moved or a negative errno) to `each`; answers how many.
    ///
    /// Waits for at least `min`, at most `wait_ns` (`None` = without limit), and never for more than were submitted.
    /// Answers fewer where the time is over or a signal came. Fails only where the context itself does.
    #[inline]
    pub fn reap(
        &mut self,
        min: u32,
        max: u32,
        wait_ns: Option<u64>,
        mut each: impl FnMut(u32, i64),
    ) -> io::Result<u32> {
        let min = min.min(max).min(self.submitted());
        let mut count = self.take_ended(max, &mut each);
        if let Some(ring) = &mut self.ring {
            while count < max
                && let Some(event) = ring.next()
            {
                self.buffers.take_back(event.slot());
                each(event.slot(), event.result());
                count += 1;
            }
        }
        let left = self.submitted().min(max - count);
        if count < min || (self.ring.is_none() && left > 0) {
            count += self.get_events(min.saturating_sub(count), left, wait_ns, &mut each)?;
        }
        Ok(count)
    }

    #[inline]
    fn take_ended(&mut self, max: u32, each: &mut impl FnMut(u32, i64)) -> u32 {
        if self.ended.is_empty() {
            return 0;
        }
        let count = self.ended.len().min(max as usize);
        for (slot, result) in self.ended.drain(..count) {
            self.buffers.take_back(slot);
            each(slot, result);
        }
        count as u32
    }

    fn get_events(
        &mut self,
        min: u32,
        max: u32,
        wait_ns: Option<u64>,
        each: &mut impl FnMut(u32, i64),
    ) -> io::Result<u32> {
        let limit = wait_ns.map(|limit| libc::timespec {
            tv_sec: (limit / 1_000_000_000) as libc::time_t,
            tv_nsec: (limit % 1_000_000_000) as libc::c_long,
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let (room, events) = (max.min(self.events.len() as u32), self.events.as_mut_ptr());
        // SAFETY: `events` has room for `room` events and, as the limit, outlives the call.
        let taken = unsafe {
            libc::syscall(libc::SYS_io_getevents, self.id.0, min as i64, room as i64, events, limit)
        };
        if taken < 0 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(libc::EINTR) { Ok(0) } else { Err(error) };
        }
        for event in &self.events[..taken as usize] {
            self.buffers.take_back(event.slot());
            each(event.slot(), event.result());
        }
        Ok(taken as u32)
    }

    /// Waits for all requests in the kernel; false if some do not complete.
    fn drain(&mut self) -> bool {
        let mut patience = DRAIN_PATIENCE;
        while self.submitted() > 0 && patience > 0 {
            match self.reap(1, u32::MAX, Some(DRAIN_WAIT_NS), |_, _| ()) {
                Ok(0) => patience -= 1,
                Ok(_) => patience = DRAIN_PATIENCE,
                Err(_) => return false,
            }
        }
        self.submitted() == 0
    }
}

/// A context of the kernel, destroyed when dropped; that waits for requests in flight.
struct ContextId(libc::c_ulong);

impl ContextId {
    fn new(depth: u32) -> io::Result<ContextId> {
        let mut id: libc::c_ulong = 0;
        // SAFETY: the kernel writes the new context's id into a local that outlives the call.
        match unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut id) } {
            0 => Ok(ContextId(id)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for ContextId {
    fn drop(&mut self) {
        // SAFETY: this type owns the context, and this is its last use.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

impl Drop for Context {
    /// Waits for requests in flight. Buffers of requests that never complete stay allocated, and so does the context:
    /// destroying it would block, and the kernel may still write to the buffers.
    fn drop(&mut self) {
        if self.drain() {
            // SAFETY: each is dropped here and nowhere else, and the kernel has none of the buffers.
            unsafe { ManuallyDrop::drop(&mut self.id) };
            // SAFETY: as above.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
            // SAFETY: as above.
            unsafe { ManuallyDrop::drop(&mut self.blocks) };
            // SAFETY: as above.
            unsafe { ManuallyDrop::drop(&mut self.files) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_takes_syncs_after_other_requests_of_the_slot() {
        let file = Arc::new(tempfile::tempfile().expect("a temporary file"));
        let options =
            ContextOptions { depth: 1, block: 4096, transfer: TransferFlags::default(), reap_by_call: false };
        let mut context = Context::new(vec![file], options).expect("the kernel has AIO");
        let finish = |context: &mut Context| {
            assert_eq!(context.submit().expect("it goes"), 1);
            assert!(context.ended.is_empty(), "the kernel refused it");
            let mut result = None;
            context.reap(1, 1, None, |_, bytes| result = Some(bytes)).expect("it comes back");
            result
        };
        context.write(0, 0, 0, 4096);
        assert_eq!(finish(&mut context), Some(4096));
        for data_only in [false, true] {
            context.sync(0, 0, data_only);
            assert_eq!(finish(&mut context), Some(0));
        }
        context.read(0, 0, 0, 4096);
        assert_eq!(finish(&mut context), Some(4096));
    }
}
