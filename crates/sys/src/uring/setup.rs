//! Making a ring: asking for the most, and taking what the kernel grants.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use io_uring::{Builder, EnterFlags, IoUring, Probe, cqueue, opcode, squeue};

use super::locked::Locked;
use super::{FLAG_FIXED_FILE, Ring};
use crate::buffer::{BufferPool, LentBuffers};
use crate::transfer::TransferFlags;
use crate::{SetupError, SetupStep};

/// Most slots a ring can have (the kernel's IORING_MAX_ENTRIES).
pub const MAX_DEPTH: u32 = 32_768;

/// Largest registered buffer the kernel takes.
const MAX_REGISTERED: usize = 1 << 30;

/// How much something is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// Not at all.
    Never,
    /// Where the kernel grants it.
    #[default]
    IfGranted,
    /// Setting up fails without it.
    Always,
}

/// A kernel thread that submits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqThread {
    /// The CPU it is bound to.
    pub cpu: Option<u32>,
}

/// The options of a ring. The default suits most uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingOptions {
    /// Slots.
    pub depth: u32,
    /// Bytes of each slot's buffer.
    pub block: usize,
    /// Register the buffers (READ_FIXED, WRITE_FIXED).
    pub fixed_buffers: Wish,
    /// Register the files.
    pub fixed_files: Wish,
    /// Poll for completions (IORING_SETUP_IOPOLL); needs O_DIRECT and a driver with poll queues.
    pub polled: bool,
    /// Let a kernel thread submit (IORING_SETUP_SQPOLL).
    pub sq_thread: Option<SqThread>,
    /// READV and WRITEV in place of READ and WRITE, where buffers are not registered.
    pub vectored: bool,
    /// Per-request flags; `poll` has no place here.
    pub transfer: TransferFlags,
    /// Pass every Nth request to a kernel worker immediately; 0 = none.
    pub force_async: u32,
}

/// The features that the kernel granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingFeatures {
    /// Buffers are registered.
    pub fixed_buffers: bool,
    /// Files are registered.
    pub fixed_files: bool,
    /// Completion work runs only when the ring is entered for it.
    pub deferred_task_work: bool,
    /// Waits take a time limit.
    pub timed_waits: bool,
    /// Completions are polled for.
    pub polled: bool,
    /// A kernel thread submits.
    pub sq_thread: bool,
    /// The ring's own descriptor is registered.
    pub registered_ring: bool,
}

impl Ring {
    /// Makes a ring on `files`. Must be called on the thread that will use it.
    pub fn new(files: Vec<Arc<File>>, options: RingOptions) -> Result<Ring, SetupError> {
        let depth = options.depth.max(1);
        if depth > MAX_DEPTH {
            let attempted =
                format!("create a ring for queue depth {depth} (the kernel's limit is {MAX_DEPTH})");
            return Err(SetupError::new(
                SetupStep::Depth,
                attempted,
                io::Error::from_raw_os_error(libc::EINVAL),
            ));
        }
        let (ring, deferred) = build_patiently(depth, &options).map_err(|source| {
            let attempted = format!("create a ring for queue depth {depth}");
            SetupError::new(SetupStep::Kernel, attempted, source)
        })?;
        let pool = BufferPool::new(depth, options.block).map_err(|source| {
            let attempted = format!("allocate {depth} buffers of {} bytes", options.block);
            SetupError::new(SetupStep::Buffers, attempted, source)
        })?;
        let fixed_files = register_files(&ring, &files, options.fixed_files)?;
        let locked = register_buffers(&ring, &pool, options.fixed_buffers)?;
        let fixed_buffers = locked.is_some();
        let vectored = !fixed_buffers && (options.vectored || !has_plain_transfers(&ring));
        let features = RingFeatures {
            fixed_buffers,
            fixed_files,
            deferred_task_work: deferred,
            timed_waits: ring.params().is_feature_ext_arg(),
            polled: options.polled,
            sq_thread: options.sq_thread.is_some(),
            registered_ring: false,
        };
        let mut ring = assemble(ring, pool, files, features, vectored);
        ring.locked = locked;
        ring.read_flags = options.transfer.of_reads().bits();
        ring.write_flags = options.transfer.bits();
        ring.force_async = options.force_async;
        ring.until_async = options.force_async;
        ring.register_ring();
        Ok(ring)
    }

    /// Spares the kernel the look-up of the ring's descriptor in every call, where it can.
    fn register_ring(&mut self) {
        let mut update = RegisteredFd { offset: u32::MAX, reserved: 0, data: self.ring.as_raw_fd() as u64 };
        if self.register_fd(REGISTER_RING_FDS, &mut update) == 1 {
            self.enter_fd = update.offset as i32;
            self.enter_flags = EnterFlags::REGISTERED_RING.bits();
            self.features.registered_ring = true;
        }
    }

    /// Undoes [`Ring::register_ring`]: the registration would keep the ring alive until its thread ends.
    pub(super) fn unregister_ring(&mut self) {
        if self.features.registered_ring {
            let mut update = RegisteredFd { offset: self.enter_fd as u32, reserved: 0, data: 0 };
            self.register_fd(UNREGISTER_RING_FDS, &mut update);
            self.enter_fd = self.ring.as_raw_fd();
            self.enter_flags = 0;
            self.features.registered_ring = false;
        }
    }

    fn register_fd(&self, code: u32, update: &mut RegisteredFd) -> i64 {
        let (fd, update) = (self.ring.as_raw_fd(), std::ptr::from_mut(update));
        // SAFETY: the kernel reads and writes the one entry, which outlives the call.
        unsafe { libc::syscall(libc::SYS_io_uring_register, fd, code, update, 1) }
    }
}

const REGISTER_RING_FDS: u32 = 20;
const UNREGISTER_RING_FDS: u32 = 21;

/// `struct io_uring_rsrc_update`.
#[repr(C)]
struct RegisteredFd {
    offset: u32,
    reserved: u32,
    data: u64,
}

const _: () = assert!(size_of::<RegisteredFd>() == 16);

/// The kernel frees a closed ring, and its charge to RLIMIT_MEMLOCK, some time after; a refusal may pass.
fn build_patiently(depth: u32, options: &RingOptions) -> io::Result<(IoUring, bool)> {
    let mut pause_ns = 1_000_000;
    loop {
        match build(depth, options) {
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) && pause_ns < 200_000_000 => {
                // An interrupted pause is only a shorter one.
                let _ = rustix::thread::nanosleep(&rustix::time::Timespec { tv_sec: 0, tv_nsec: pause_ns });
                pause_ns *= 2;
            }
            other => return other,
        }
    }
}

/// Tries the flags from the best down to none; returns whether task work is deferred.
fn build(depth: u32, options: &RingOptions) -> io::Result<(IoUring, bool)> {
    type Flags = fn(&mut Builder<squeue::Entry, cqueue::Entry>);
    const OWN: [(Flags, bool); 5] = [
        (
            |ring| {
                _ = ring.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_no_sqarray()
            },
            true,
        ),
        (|ring| _ = ring.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag(), true),
        (|ring| _ = ring.setup_single_issuer().setup_coop_taskrun().setup_taskrun_flag(), false),
        (|ring| _ = ring.setup_coop_taskrun().setup_taskrun_flag(), false),
        (|_| (), false),
    ];
    // A submission thread runs its own task work.
    const THREAD: [(Flags, bool); 3] = [
        (|ring| _ = ring.setup_single_issuer().setup_no_sqarray(), false),
        (|ring| _ = ring.setup_single_issuer(), false),
        (|_| (), false),
    ];
    let rungs: &[(Flags, bool)] = if options.sq_thread.is_some() { &THREAD } else { &OWN };
    let entries = depth.next_power_of_two();
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for (flags, deferred) in rungs {
        // Nothing is in flight beyond the depth, so a completion queue of that size never overflows.
        for exact_queue in [true, false] {
            let mut builder = IoUring::builder();
            flags(&mut builder);
            if exact_queue {
                builder.setup_cqsize(entries).setup_submit_all();
            }
            if options.polled {
                builder.setup_iopoll();
            }
            if let Some(thread) = options.sq_thread {
                builder.setup_sqpoll(0);
                thread.cpu.map(|cpu| builder.setup_sqpoll_cpu(cpu));
            }
            match builder.dontfork().build(entries) {
                Ok(ring) => return Ok((ring, *deferred)),
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
                Err(error) => return Err(error),
            }
        }
    }
    Err(refused)
}

/// READ and WRITE came with 5.6; before, only the vectored forms exist, and no way to ask.
fn has_plain_transfers(ring: &IoUring) -> bool {
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe).is_ok()
        && probe.is_supported(opcode::Read::CODE)
        && probe.is_supported(opcode::Write::CODE)
}

fn register_files(ring: &IoUring, files: &[Arc<File>], wish: Wish) -> Result<bool, SetupError> {
    if wish == Wish::Never || files.is_empty() {
        return Ok(false);
    }
    let descriptors: Vec<i32> = files.iter().map(|file| file.as_raw_fd()).collect();
    match ring.submitter().register_files(&descriptors) {
        Ok(()) => Ok(true),
        Err(_) if wish == Wish::IfGranted => Ok(false),
        Err(source) => {
            let attempted = format!("register {} files with the ring", files.len());
            Err(SetupError::new(SetupStep::RegisterFiles, attempted, source))
        }
    }
}

/// Slots in each registered buffer: few large buffers, so that requests share the kernel's bookkeeping of one.
fn slots_per_registered(pool: &BufferPool) -> u32 {
    (MAX_REGISTERED / pool.stride()).clamp(1, pool.slots() as usize) as u32
}

fn register_buffers(ring: &IoUring, pool: &BufferPool, wish: Wish) -> Result<Option<Locked>, SetupError> {
    let bytes = pool.stride() as u64 * u64::from(pool.slots());
    if wish == Wish::Never {
        return Ok(None);
    }
    let Some(locked) = Locked::count(bytes, wish == Wish::Always) else { return Ok(None) };
    let each = slots_per_registered(pool);
    let vectors: Vec<libc::iovec> = (0..pool.slots())
        .step_by(each as usize)
        .map(|first| libc::iovec {
            iov_base: pool.address(first).cast(),
            iov_len: each.min(pool.slots() - first) as usize * pool.stride(),
        })
        .collect();
    // SAFETY: the pool outlives the ring's use of it: `Ring` drops the ring first, or neither.
    match unsafe { ring.submitter().register_buffers(&vectors) } {
        Ok(()) => Ok(Some(locked)),
        Err(_) if wish == Wish::IfGranted => Ok(None),
        Err(source) => {
            let attempted = format!("register {bytes} bytes of buffers with the ring");
            Err(SetupError::new(SetupStep::RegisterBuffers, attempted, source))
        }
    }
}

fn assemble(
    ring: IoUring,
    pool: BufferPool,
    files: Vec<Arc<File>>,
    features: RingFeatures,
    vectored: bool,
) -> Ring {
    let each = slots_per_registered(&pool);
    let buffer_index = |slot: u32| if features.fixed_buffers { (slot / each) as u16 } else { 0 };
    let target = |(index, file): (usize, &Arc<File>)| {
        if features.fixed_files { index as i32 } else { file.as_raw_fd() }
    };
    let vector = |slot| libc::iovec { iov_base: pool.address(slot).cast(), iov_len: pool.block() };
    let (read_code, write_code) = match (features.fixed_buffers, vectored) {
        (true, _) => (opcode::ReadFixed::CODE, opcode::WriteFixed::CODE),
        (false, true) => (opcode::Readv::CODE, opcode::Writev::CODE),
        (false, false) => (opcode::Read::CODE, opcode::Write::CODE),
    };
    Ring {
        targets: files.iter().enumerate().map(target).collect(),
        buffer_indices: (0..pool.slots()).map(buffer_index).collect(),
        vectors: ManuallyDrop::new((0..if vectored { pool.slots() } else { 0 }).map(vector).collect()),
        enter_fd: ring.as_raw_fd(),
        enter_flags: 0,
        read_code,
        write_code,
        base_flags: if features.fixed_files { FLAG_FIXED_FILE } else { 0 },
        read_flags: 0,
        write_flags: 0,
        force_async: 0,
        until_async: 0,
        pending: 0,
        locked: None,
        features,
        ring: ManuallyDrop::new(ring),
        buffers: ManuallyDrop::new(LentBuffers::new(pool)),
        files: ManuallyDrop::new(files),
        one_thread: PhantomData,
    }
}
