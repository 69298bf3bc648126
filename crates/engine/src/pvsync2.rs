//! preadv2(2) and pwritev2(2) with one buffer, and their flags; `pvsync` is the same without flags.

use fathom_model::{EngineOption, Op, Request};
use fathom_sys::transfer::{self, TransferFlags};

use crate::draws::Draws;
use crate::immediate::{Immediate, ImmediateEngine};
use crate::private::{ATOMIC, flag, percent, switch};
use crate::targets::EngineTarget;
use crate::{Engine, EngineEntry, EngineError, EngineSetup, EngineTraits};

const TRAITS: EngineTraits = EngineTraits::SYNCHRONOUS;

/// The entry of `vsync`. fio's coalesces adjacent requests above queue depth 1.
pub const VSYNC: EngineEntry = EngineEntry {
    name: "vsync",
    aliases: &[],
    doc: "readv(2) and writev(2), by preadv(2) and pwritev(2); one request at a time, without coalescing.",
    traits: TRAITS,
    options: &[],
    open: |setup| ImmediateEngine::open(VSYNC.name, &setup, Vectored(TransferFlags::default())),
};

/// The entry of `pvsync`.
pub const PVSYNC: EngineEntry = EngineEntry {
    name: "pvsync",
    aliases: &[],
    doc: "preadv(2) and pwritev(2), one request at a time.",
    traits: TRAITS,
    options: &[],
    open: |setup| ImmediateEngine::open(PVSYNC.name, &setup, Vectored(TransferFlags::default())),
};

/// The entry of `pvsync2`.
pub const PVSYNC2: EngineEntry = EngineEntry {
    name: "pvsync2",
    aliases: &[],
    doc: "preadv2(2) and pwritev2(2) with their per-request flags, one request at a time.",
    traits: TRAITS,
    options: OPTIONS,
    open: open_with_flags,
};

const OPTIONS: &[EngineOption] = &[
    flag("hipri", "0", "Poll for completions (RWF_HIPRI); needs direct=1 and a driver that can."),
    percent(
        "hipri_percentage",
        "100",
        "Percentage of the requests that poll, with hipri=1, chosen at random.",
    ),
    switch("nowait", "0", "Fail with EAGAIN if a request would block (RWF_NOWAIT)."),
    switch("uncached", "0", "Buffered requests that leave nothing in the page cache (RWF_DONTCACHE)."),
];

struct Vectored(TransferFlags);

/// As [`Vectored`], with flags of each request.
struct Varied(RequestFlags);

fn open_with_flags(setup: EngineSetup) -> Result<Box<dyn Engine>, EngineError> {
    let flags = flags(&setup);
    match flags.of_all() {
        Some(flags) => ImmediateEngine::open(PVSYNC2.name, &setup, Vectored(flags)),
        None => ImmediateEngine::open(PVSYNC2.name, &setup, Varied(flags)),
    }
}

/// The flags of requests, of which a share may poll.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestFlags {
    flags: TransferFlags,
    /// Percentage of the requests that poll, if `flags` does.
    polled_percent: u8,
    draws: Draws,
}

impl RequestFlags {
    /// The flags of the next request.
    pub fn next(&mut self) -> TransferFlags {
        let poll = self.flags.poll && self.draws.next() < self.polled_percent;
        TransferFlags { poll, ..self.flags }
    }

    /// The flags of every request; `None` where they differ.
    fn of_all(&self) -> Option<TransferFlags> {
        match (self.flags.poll, self.polled_percent) {
            (true, 1..100) => None,
            (poll, percent) => Some(TransferFlags { poll: poll && percent > 0, ..self.flags }),
        }
    }
}

/// The flags that the options give requests.
pub(crate) fn flags(setup: &EngineSetup) -> RequestFlags {
    let flags = TransferFlags {
        poll: setup.options.flag("hipri", false),
        no_wait: setup.options.flag("nowait", false),
        uncached: setup.options.flag("uncached", false),
        atomic: setup.options.flag(ATOMIC, false),
    };
    let polled_percent = setup.options.int("hipri_percentage", 100) as u8;
    RequestFlags { flags, polled_percent, draws: Draws::default() }
}

impl Immediate for Vectored {
    #[inline]
    fn act(&mut self, target: &EngineTarget, request: &Request, bytes: &mut [u8]) -> i64 {
        match request.op {
            Op::Read => transfer::read_vectored_at(&target.file, bytes, request.offset, self.0.of_reads()),
            Op::Write => transfer::write_vectored_at(&target.file, bytes, request.offset, self.0),
            Op::Trim | Op::Sync | Op::Datasync => target.execute(request),
        }
    }
}

impl Immediate for Varied {
    fn act(&mut self, target: &EngineTarget, request: &Request, bytes: &mut [u8]) -> i64 {
        Vectored(self.0.next()).act(target, request, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_requests_polls() {
        let polled = |poll: bool, polled_percent: u8| {
            let flags = TransferFlags { poll, uncached: true, ..TransferFlags::default() };
            let mut flags = RequestFlags { flags, polled_percent, draws: Draws::default() };
            let all = flags.of_all().map(|flags| flags.poll);
            (all, (0..10_000).filter(|_| flags.next().poll).count(), flags.next().uncached)
        };
        assert_eq!(polled(true, 100), (Some(true), 10_000, true));
        assert_eq!(polled(true, 0), (Some(false), 0, true));
        assert_eq!(polled(false, 30), (Some(false), 0, true));
        let (all, some, _) = polled(true, 30);
        assert!(all.is_none() && some.abs_diff(3_000) < 250, "{some}");
    }
}
