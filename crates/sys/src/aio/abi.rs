//! The memory layout of the kernel's AIO interface (`linux/aio_abi.h`, and the ring of `fs/aio.c`).

use std::sync::atomic::{AtomicU32, Ordering};

/// IOCB_CMD_*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Opcode {
    Read = 0,
    Write = 1,
    Sync = 2,
    Datasync = 3,
}

impl Opcode {
    pub const fn is_sync(self) -> bool {
        matches!(self, Opcode::Sync | Opcode::Datasync)
    }

    fn from_raw(raw: u16) -> Option<Opcode> {
        [Opcode::Read, Opcode::Write, Opcode::Sync, Opcode::Datasync]
            .into_iter()
            .find(|code| *code as u16 == raw)
    }
}

/// `struct iocb`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Iocb {
    data: u64,
    #[cfg(target_endian = "little")]
    key: u32,
    rw_flags: u32,
    #[cfg(target_endian = "big")]
    key: u32,
    opcode: u16,
    priority: i16,
    descriptor: u32,
    buffer: u64,
    bytes: u64,
    offset: u64,
    reserved: u64,
    flags: u32,
    result_descriptor: u32,
}

const _: () = assert!(size_of::<Iocb>() == 64 && std::mem::offset_of!(Iocb, opcode) == 16);
const _: () = assert!(std::mem::offset_of!(Iocb, buffer) == 24 && std::mem::offset_of!(Iocb, offset) == 40);

impl Iocb {
    pub fn new(slot: u32) -> Self {
        Iocb { data: u64::from(slot), ..Iocb::default() }
    }

    /// Sets what to do. A sync has neither buffer nor range: the kernel refuses it with EINVAL otherwise.
    #[inline(always)]
    pub fn set(&mut self, opcode: Opcode, flags: u32, descriptor: i32, buffer: u64, offset: u64, len: u32) {
        self.opcode = opcode as u16;
        self.rw_flags = flags;
        self.descriptor = descriptor as u32;
        self.bytes = u64::from(len);
        self.offset = offset;
        self.buffer = buffer;
    }

    /// Sets the priority of all further requests; 0 = that of the thread.
    pub fn set_priority(&mut self, priority: u16) {
        const FLAG_PRIORITY: u32 = 1 << 1;
        self.priority = priority as i16;
        self.flags = if priority == 0 { 0 } else { FLAG_PRIORITY };
    }

    /// The operation and the descriptor it is for.
    pub fn request(&self) -> (Option<Opcode>, i32) {
        (Opcode::from_raw(self.opcode), self.descriptor as i32)
    }
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IoEvent {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

const _: () = assert!(size_of::<IoEvent>() == 32);

impl IoEvent {
    #[inline(always)]
    pub fn slot(&self) -> u32 {
        self.data as u32
    }

    #[inline(always)]
    pub fn result(&self) -> i64 {
        self.result
    }
}

/// `struct aio_ring`, which the events follow.
#[repr(C)]
struct RingHeader {
    id: u32,
    entries: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible: u32,
    incompatible: u32,
    header_bytes: u32,
}

const _: () = assert!(size_of::<RingHeader>() == 32);

const MAGIC: u32 = 0xa10a_10a1;

/// The ring of completions that the kernel maps at the address it calls the context's id.
#[derive(Debug)]
pub(super) struct RingView {
    header: *const RingHeader,
    entries: u32,
}

impl RingView {
    /// The ring of context `id`, where it has the form known here. It is valid until the context is destroyed.
    pub fn of(id: libc::c_ulong) -> Option<RingView> {
        let header: *const RingHeader = std::ptr::with_exposed_provenance(id as usize);
        // SAFETY: `io_setup` maps the ring at the address it returns as the id.
        let read =
            unsafe { ((*header).magic, (*header).incompatible, (*header).header_bytes, (*header).entries) };
        match read {
            (MAGIC, 0, 32, entries) if entries > 0 => Some(RingView { header, entries }),
            _ => None,
        }
    }

    /// Takes the oldest completion. Only the context's owner takes completions, so no one else moves the head.
    #[inline]
    pub fn next(&mut self) -> Option<IoEvent> {
        // SAFETY: the mapping lives as long as the context, which owns this view.
        let header = unsafe { &*self.header };
        let head = header.head.load(Ordering::Relaxed);
        // The tail is published after the event it covers.
        if head == header.tail.load(Ordering::Acquire) || head >= self.entries {
            return None;
        }
        // SAFETY: the events follow the header, and `head` is below their number.
        let event = unsafe { self.header.add(1).cast::<IoEvent>().add(head as usize).read() };
        header.head.store((head + 1) % self.entries, Ordering::Release);
        Some(event)
    }
}
