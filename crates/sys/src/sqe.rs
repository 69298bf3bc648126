//! The submission queue entry as the kernel lays it out (`struct io_uring_sqe`).
//!
//! Filled in one go per request: the crate's builders choose fields at run time that are the same for a ring's whole
//! life.

use io_uring::squeue;

/// Where a request names its file.
pub(crate) const FLAG_FIXED_FILE: u8 = 1 << 0;
/// Pass the request to a kernel worker immediately.
pub(crate) const FLAG_ASYNC: u8 = 1 << 4;

/// IORING_FSYNC_DATASYNC.
pub(crate) const FSYNC_DATASYNC: u32 = 1;

/// One 64-byte entry; unused fields stay zero.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sqe {
    pub opcode: u8,
    pub flags: u8,
    pub ioprio: u16,
    pub fd: i32,
    pub offset: u64,
    pub address: u64,
    pub len: u32,
    /// rw_flags, fsync_flags and the like.
    pub op_flags: u32,
    pub user_data: u64,
    pub buffer_index: u16,
    pub personality: u16,
    pub splice_fd: i32,
    pub address3: u64,
    pub padding: u64,
}

const _: () = assert!(size_of::<Sqe>() == 64 && size_of::<squeue::Entry>() == 64);
const _: () = assert!(align_of::<Sqe>() >= align_of::<squeue::Entry>());
const _: () = assert!(std::mem::offset_of!(Sqe, offset) == 8 && std::mem::offset_of!(Sqe, address) == 16);
const _: () = assert!(std::mem::offset_of!(Sqe, len) == 24 && std::mem::offset_of!(Sqe, user_data) == 32);
const _: () = assert!(std::mem::offset_of!(Sqe, buffer_index) == 40);

impl Sqe {
    /// The same bytes as the ring crate's opaque entry.
    #[inline(always)]
    pub fn as_entry(&self) -> &squeue::Entry {
        // SAFETY: both are the kernel's `struct io_uring_sqe`: 64 plain bytes of the same layout (asserted above).
        unsafe { &*std::ptr::from_ref(self).cast() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io_uring::{opcode, types};

    #[test]
    fn entries_agree_with_the_crates_builders() {
        let bytes = |entry: &squeue::Entry| -> [u8; 64] {
            // SAFETY: an entry is 64 plain, initialised bytes.
            unsafe { std::ptr::from_ref(entry).cast::<[u8; 64]>().read() }
        };
        let target = std::ptr::without_provenance_mut(0x1234_5000);
        let read = Sqe {
            opcode: opcode::ReadFixed::CODE,
            flags: FLAG_FIXED_FILE,
            fd: 3,
            offset: 1 << 40,
            address: 0x1234_5000,
            len: 4096,
            op_flags: 8,
            user_data: 77,
            buffer_index: 5,
            ..Sqe::default()
        };
        let built = opcode::ReadFixed::new(types::Fixed(3), target, 4096, 5).offset(1 << 40).rw_flags(8);
        assert_eq!(bytes(read.as_entry()), bytes(&built.build().user_data(77)));

        let sync = Sqe {
            opcode: opcode::Fsync::CODE,
            fd: 9,
            op_flags: FSYNC_DATASYNC,
            user_data: 1,
            ..Sqe::default()
        };
        let built = opcode::Fsync::new(types::Fd(9)).flags(types::FsyncFlags::DATASYNC);
        assert_eq!(bytes(sync.as_entry()), bytes(&built.build().user_data(1)));

        let flags = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let punch = Sqe {
            opcode: opcode::Fallocate::CODE,
            flags: FLAG_ASYNC,
            fd: 9,
            offset: 8192,
            address: 4096,
            len: flags as u32,
            ..Sqe::default()
        };
        let built = opcode::Fallocate::new(types::Fd(9), 4096).offset(8192).mode(flags).build();
        assert_eq!(bytes(punch.as_entry()), bytes(&built.flags(squeue::Flags::ASYNC)));
    }
}
