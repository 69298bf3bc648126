//! Linux's native asynchronous I/O. It is asynchronous only with O_DIRECT: buffered requests are executed during their
//! submission.

use std::io::ErrorKind;

use fathom_model::{EngineOption, Nanos, Op, Request};
use fathom_sys::aio::{Context, ContextOptions};
use fathom_sys::transfer::TransferFlags;
use fathom_sys::{SetupError, SetupStep};

use crate::prioritized::{Prioritized, TakesPriority};
use crate::private::{ATOMIC, flag, switch, with_priorities};
use crate::targets::{self, Targets};
use crate::{Completion, Engine, EngineEntry, EngineError, EngineSetup, EngineTraits, Queued, Reaped};

/// The engine's entry.
pub const ENTRY: EngineEntry = EngineEntry {
    name: "libaio",
    aliases: &["linuxaio"],
    doc: "Linux's native asynchronous I/O (io_submit); asynchronous only with direct=1.",
    traits: EngineTraits::ASYNCHRONOUS,
    options: OPTIONS,
    open,
};

const OPTIONS: &[EngineOption] = &with_priorities::<7>(&[
    flag("userspace_reap", "1", "Read completions from the mapped ring; 0 asks the kernel each time."),
    switch("nowait", "0", "Fail with EAGAIN if a request would block (RWF_NOWAIT)."),
]);

struct Libaio {
    context: Context,
    targets: Targets,
}

fn open(setup: EngineSetup) -> Result<Box<dyn Engine>, EngineError> {
    let targets = Targets::new(ENTRY.name, &setup)?;
    let options = ContextOptions {
        depth: setup.depth,
        block: setup.max_block,
        transfer: TransferFlags {
            no_wait: setup.options.flag("nowait", false),
            atomic: setup.options.flag(ATOMIC, false),
            ..TransferFlags::default()
        },
        reap_by_call: !setup.options.flag("userspace_reap", true),
    };
    let context = Context::new(targets.files(), options).map_err(|error| {
        let hint = hint(&error, setup.depth);
        targets::setup_failed(ENTRY.name, error, hint)
    })?;
    Ok(Prioritized::over(Libaio { context, targets }, &setup))
}

fn hint(error: &SetupError, depth: u32) -> Option<String> {
    if error.step != SetupStep::Kernel {
        return None;
    }
    let limit = |name: &str| {
        std::fs::read_to_string(format!("/proc/sys/fs/{name}"))
            .map_or("unknown".to_owned(), |text| text.trim().to_owned())
    };
    Some(match error.source.kind() {
        ErrorKind::WouldBlock => format!(
            "fs.aio-max-nr is {} and {} are in use: raise it (sysctl fs.aio-max-nr=1048576), or lower iodepth={depth} \
             or numjobs",
            limit("aio-max-nr"),
            limit("aio-nr")
        ),
        ErrorKind::InvalidInput | ErrorKind::OutOfMemory => {
            format!("lower iodepth={depth}, which the kernel does not support, or use more jobs")
        }
        ErrorKind::Unsupported => {
            "use ioengine=io_uring or ioengine=psync: this kernel has no AIO".to_owned()
        }
        _ => return None,
    })
}

impl Libaio {
    /// Prepares a request; false if it needs a plain system call, or is invalid.
    #[inline(always)]
    fn prepare_plain(&mut self, slot: u32, request: &Request) -> bool {
        if self.targets.check(request).is_err() {
            return false;
        }
        let Request { op, file, len, offset } = *request;
        match op {
            Op::Read => self.context.read(slot, file, offset, len),
            Op::Write => self.context.write(slot, file, offset, len),
            Op::Sync => self.context.sync(slot, file, false),
            Op::Datasync => self.context.sync(slot, file, true),
            Op::Trim => return false,
        }
        true
    }
}

impl TakesPriority for Libaio {
    fn prepare(&mut self, slot: u32, request: &Request, priority: u16) -> bool {
        self.context.set_priority(slot, if request.op.is_sync() { 0 } else { priority });
        self.prepare_plain(slot, request)
    }

    fn execute(&self, request: &Request) -> i64 {
        self.targets.execute(request)
    }
}

impl Engine for Libaio {
    #[inline]
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        let prepared =
            slots.iter().take_while(|&&slot| self.prepare_plain(slot, &requests[slot as usize])).count();
        match slots.first() {
            Some(&first) if prepared == 0 => Queued::Done(self.targets.execute(&requests[first as usize])),
            _ => Queued::Accepted(prepared as u32),
        }
    }

    #[inline]
    fn submit(&mut self) -> Result<u32, EngineError> {
        self.context.submit().map_err(|error| targets::run_failed(ENTRY.name, "io_submit", error))
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
        self.context
            .reap(min, max, wait, |slot, result| done.push(Completion { slot, result }))
            .map(Reaped::Some)
            .map_err(|error| targets::run_failed(ENTRY.name, "io_getevents", error))
    }

    fn payload(&mut self, slot: u32) -> &mut [u8] {
        self.context.bytes(slot)
    }
}
