//! io_uring. Uses by default what the kernel supports: registered files, buffers and ring, deferred task work, one
//! system call per batch.

use fathom_model::{EngineOption, Nanos, Op, Request};
use fathom_sys::transfer::TransferFlags;
use fathom_sys::uring::{MAX_DEPTH, Ring, RingOptions, SqThread, Wish};
use fathom_sys::{SetupError, SetupStep};

use crate::prioritized::{Prioritized, TakesPriority};
use crate::private::{ATOMIC, count, flag, switch, with_priorities};
use crate::targets::{self, Targets};
use crate::{Completion, Engine, EngineEntry, EngineError, EngineSetup, EngineTraits, Queued, Reaped};

/// The engine's entry.
pub const ENTRY: EngineEntry = EngineEntry {
    name: "io_uring",
    aliases: &["uring"],
    doc: "Linux's asynchronous rings: registered files and buffers, one system call per batch.",
    traits: EngineTraits::ASYNCHRONOUS,
    options: OPTIONS,
    open,
};

const OPTIONS: &[EngineOption] = &with_priorities::<14>(&[
    flag("fixedbufs", "1", "Register the buffers with the ring; if given, fail where the kernel refuses."),
    flag("registerfiles", "1", "Register the files with the ring; if given, fail where the kernel refuses."),
    flag("hipri", "0", "Poll for completions (IORING_SETUP_IOPOLL); needs direct=1 and a driver that can."),
    flag("sqthread_poll", "0", "Let a kernel thread submit (IORING_SETUP_SQPOLL)."),
    count("sqthread_poll_cpu", "", "The CPU that the submitting kernel thread is bound to."),
    switch("nonvectored", "1", "READ and WRITE; 0 means READV and WRITEV, without registered buffers."),
    count("force_async", "0", "Pass every Nth request to a kernel worker immediately; 0 means none."),
    switch("nowait", "0", "Fail with EAGAIN if a request would block (RWF_NOWAIT)."),
    switch("uncached", "0", "Buffered requests that leave nothing in the page cache (RWF_DONTCACHE)."),
]);

struct Uring {
    ring: Ring,
    targets: Targets,
    /// A polled ring takes reads and writes only; plain system calls execute the rest.
    polled: bool,
}

fn open(setup: EngineSetup) -> Result<Box<dyn Engine>, EngineError> {
    let targets = Targets::new(ENTRY.name, &setup)?;
    let options = ring_options(&setup);
    let ring = Ring::new(targets.files(), options).map_err(|error| {
        let hint = hint(&error, setup.depth);
        targets::setup_failed(ENTRY.name, error, hint)
    })?;
    let engine = Uring { ring, targets, polled: options.polled };
    Ok(Prioritized::over(engine, &setup))
}

fn ring_options(setup: &EngineSetup) -> RingOptions {
    let given = &setup.options;
    let wish = |name| match (given.0.contains_key(name), given.flag(name, true)) {
        (false, _) => Wish::IfGranted,
        (true, true) => Wish::Always,
        (true, false) => Wish::Never,
    };
    let vectored = !given.flag("nonvectored", true);
    let fixed_buffers = match wish("fixedbufs") {
        // Registered buffers have no vectored form, so the vectored form turns the default off.
        Wish::IfGranted if vectored => Wish::Never,
        other => other,
    };
    let cpu = given.0.contains_key("sqthread_poll_cpu").then(|| given.int("sqthread_poll_cpu", 0) as u32);
    RingOptions {
        depth: setup.depth,
        block: setup.max_block,
        fixed_buffers,
        fixed_files: wish("registerfiles"),
        polled: given.flag("hipri", false),
        sq_thread: given.flag("sqthread_poll", false).then_some(SqThread { cpu }),
        vectored,
        transfer: TransferFlags {
            poll: false,
            no_wait: given.flag("nowait", false),
            uncached: given.flag("uncached", false),
            atomic: given.flag(ATOMIC, false),
        },
        force_async: given.int("force_async", 0) as u32,
    }
}

fn hint(error: &SetupError, depth: u32) -> Option<String> {
    use std::io::ErrorKind;
    let memlock = "raise RLIMIT_MEMLOCK (ulimit -l)";
    Some(match (error.step, error.source.kind()) {
        (SetupStep::Depth, _) => format!("lower iodepth={depth} to at most {MAX_DEPTH}, or use more jobs"),
        (SetupStep::Kernel, ErrorKind::PermissionDenied) => {
            "io_uring is forbidden here: sysctl kernel.io_uring_disabled=0 (or the container's seccomp profile), \
             or use ioengine=libaio"
                .to_owned()
        }
        (SetupStep::Kernel, ErrorKind::Unsupported) => {
            "use ioengine=libaio: this kernel has no io_uring, or a container's seccomp profile blocks it".to_owned()
        }
        // ENFILE and EMFILE: a ring is a descriptor.
        (SetupStep::Kernel, _) if matches!(error.source.raw_os_error(), Some(23 | 24)) => {
            "raise RLIMIT_NOFILE (ulimit -n), or lower numjobs".to_owned()
        }
        (SetupStep::Kernel, ErrorKind::OutOfMemory) => format!("{memlock}, or lower iodepth"),
        (SetupStep::Kernel, ErrorKind::InvalidInput) => {
            "omit hipri, sqthread_poll and sqthread_poll_cpu, which this kernel does not support"
                .to_owned()
        }
        (SetupStep::RegisterBuffers, _) => format!("{memlock}, or omit fixedbufs"),
        (SetupStep::RegisterFiles, _) => "raise RLIMIT_NOFILE (ulimit -n), or omit registerfiles".to_owned(),
        _ => return None,
    })
}

impl Uring {
    /// Prepares a request, with a priority of its own unless that is 0; false if it needs a plain system call, or is invalid.
    #[inline(always)]
    fn prepare_at(&mut self, slot: u32, request: &Request, priority: u16) -> bool {
        let Ok(target) = self.targets.check(request) else { return false };
        let Request { op, file, len, offset } = *request;
        match op {
            Op::Read => self.ring.read(slot, file, offset, len, priority),
            Op::Write => self.ring.write(slot, file, offset, len, priority),
            // Not all supported kernels have BLKDISCARD in a ring.
            Op::Trim if target.is_block_device || self.polled => return false,
            Op::Sync | Op::Datasync if self.polled => return false,
            Op::Trim => self.ring.punch_hole(slot, file, offset, len),
            Op::Sync => self.ring.sync(slot, file, false),
            Op::Datasync => self.ring.sync(slot, file, true),
        }
        true
    }
}

impl TakesPriority for Uring {
    fn prepare(&mut self, slot: u32, request: &Request, priority: u16) -> bool {
        self.prepare_at(slot, request, priority)
    }

    fn execute(&self, request: &Request) -> i64 {
        self.targets.execute(request)
    }
}

impl Engine for Uring {
    #[inline]
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        let prepared =
            slots.iter().take_while(|&&slot| self.prepare_at(slot, &requests[slot as usize], 0)).count();
        match slots.first() {
            Some(&first) if prepared == 0 => Queued::Done(self.targets.execute(&requests[first as usize])),
            _ => Queued::Accepted(prepared as u32),
        }
    }

    #[inline]
    fn submit(&mut self) -> Result<u32, EngineError> {
        self.ring.submit().map_err(|error| targets::run_failed(ENTRY.name, "submit to the ring", error))
    }

    #[inline]
    fn reap(
        &mut self,
        min: u32,
        max: u32,
        wait: Option<Nanos>,
        done: &mut Vec<Completion>,
    ) -> Result<Reaped, EngineError> {
        let wait = wait.map(|span| span.0);
        self.ring
            .reap(min, max, wait, |slot, result| done.push(Completion { slot, result }))
            .map(Reaped::Some)
            .map_err(|error| targets::run_failed(ENTRY.name, "wait for completions", error))
    }

    fn payload(&mut self, slot: u32) -> &mut [u8] {
        self.ring.bytes(slot)
    }
}
