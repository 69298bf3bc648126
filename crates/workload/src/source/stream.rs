//! The accounts of a request stream: which operation is next, what is due after it, and when a loop or the work ends.

use std::ops::RangeInclusive;

use fathom_model::plan::Mix;
use fathom_model::{Op, Request};

use super::SourcePlan;
use crate::mix::ReadShare;
use crate::rng::Rng;
use crate::sync_countdown::SyncCountdown;

/// File, offset and size of the requests of a stream.
pub(super) trait Placement {
    /// A request for `op`.
    fn place(&mut self, op: Op) -> Option<Request>;

    /// A request where [`Placement::place`] has none: of a rarer kind, or the first of a new pass if one is allowed.
    fn place_otherwise(&mut self, op: Op, wraps: bool) -> Option<Request>;

    /// Whether no request may follow in this loop, whatever bytes are left.
    #[inline(always)]
    fn is_over(&self) -> bool {
        false
    }

    /// Counts the end of a pass.
    fn end_pass(&mut self);

    /// Begins a new pass with these entries of every file's offsets.
    fn restart(&mut self, entries: RangeInclusive<usize>);
}

/// A request stream whose requests `P` places.
#[derive(Clone, Debug)]
pub(super) struct Stream<P> {
    pub(super) mix: Mix,
    pub(super) share: ReadShare,
    pub(super) placement: P,
    pub(super) wraps: bool,
    bytes_per_loop: u64,
    pub(super) bytes_left: u64,
    loops_left: Option<u32>,
    /// A request that is due before any new one: the write after a trim, or a sync.
    due: Option<Request>,
    syncs: [SyncCountdown; 2],
    pub(super) op_rng: Rng,
}

impl<P: Placement> Stream<P> {
    /// The stream of `plan`, with the requests that `placement` places.
    pub(super) fn new(plan: &SourcePlan, placement: P) -> Self {
        let range: u64 = plan.extents.iter().map(|extent| extent.len).sum();
        // Endless work has no loops: each operation wraps after a pass, as in fio.
        let bytes_per_loop = if plan.loops.is_none() { u64::MAX } else { plan.bytes_per_loop };
        Stream {
            mix: plan.pattern.mix,
            share: ReadShare::new(match plan.pattern.mix {
                Mix::ReadWrite { read_percent } => read_percent,
                _ => 0,
            }),
            placement,
            wraps: bytes_per_loop > range,
            bytes_per_loop,
            bytes_left: bytes_per_loop,
            loops_left: plan.loops,
            due: None,
            syncs: [
                SyncCountdown::new(Op::Sync, plan.fsync_every),
                SyncCountdown::new(Op::Datasync, plan.fdatasync_every),
            ],
            op_rng: Rng::stream(plan.seed, 2),
        }
    }

    /// The next request, or `None` when the work is done.
    #[inline]
    pub(super) fn next_request(&mut self) -> Option<Request> {
        self.next_drawn(None)
    }

    /// As [`Stream::next_request`], but of operation `op` of the job, whatever the mix says; only a sync that is due
    /// comes before it.
    pub(super) fn next_request_of(&mut self, op: Op) -> Option<Request> {
        self.next_drawn(Some(op))
    }

    /// True if the next request is a sync that earlier writes made due.
    #[inline]
    pub(super) fn sync_is_due(&self) -> bool {
        self.due.is_some_and(|request| request.op.is_sync())
    }

    #[inline(always)]
    fn next_drawn(&mut self, wanted: Option<Op>) -> Option<Request> {
        if let Some(request) = self.due.take()
            && !(request.op.is_sync() && self.is_spent())
        {
            self.count_write(&request);
            return Some(request);
        }
        loop {
            if self.bytes_left == 0 && !self.next_loop() {
                return None;
            }
            let op = match self.mix {
                Mix::Read => Op::Read,
                Mix::Write => Op::Write,
                Mix::Trim | Mix::TrimWrite => Op::Trim,
                Mix::ReadWrite { .. } if wanted.is_some() => wanted.unwrap_or(Op::Read),
                Mix::ReadWrite { .. } if self.share.next_is_read(&mut self.op_rng) => Op::Read,
                Mix::ReadWrite { .. } => Op::Write,
                // Recorded: a source decides nothing.
                Mix::ReadWriteTrim => Op::Read,
            };
            // After its pass has ended in every file, the operation wraps; if it may not, the loop ends.
            if let Some(request) =
                self.placement.place(op).or_else(|| self.placement.place_otherwise(op, self.wraps))
            {
                self.account(&request);
                return Some(request);
            }
            if !self.next_loop() {
                return None;
            }
        }
    }

    /// True if no further request follows: a due sync is then omitted, as fio only issues one before a further request.
    fn is_spent(&self) -> bool {
        (self.bytes_left == 0 || self.placement.is_over()) && self.loops_left.is_some_and(|left| left <= 1)
    }

    #[inline]
    fn account(&mut self, request: &Request) {
        if self.mix == Mix::TrimWrite {
            self.due = Some(Request { op: Op::Write, ..*request });
        }
        self.bytes_left = self.bytes_left.saturating_sub(u64::from(request.len));
        self.count_write(request);
    }

    /// Makes a sync due after the write that completes its count. If both kinds are due, one fsync serves both.
    #[inline]
    fn count_write(&mut self, request: &Request) {
        if request.op == Op::Write {
            for sync in self.syncs.iter_mut().rev() {
                if sync.count() {
                    self.due = Some(Request { op: sync.op, file: request.file, len: 0, offset: 0 });
                }
            }
        }
    }

    /// Begins a further loop after the last one.
    pub(super) fn begin_loop(&mut self) {
        self.due = None;
        self.loops_left = self.loops_left.map(|_| 1);
        self.bytes_left = self.bytes_per_loop;
        self.placement.end_pass();
        self.placement.restart(0..=2);
    }

    /// Begins the next loop; false after the last one.
    fn next_loop(&mut self) -> bool {
        match &mut self.loops_left {
            Some(left) if *left <= 1 => {
                self.loops_left = Some(0);
                self.bytes_left = 0;
                return false;
            }
            Some(left) => *left -= 1,
            None => {}
        }
        self.bytes_left = self.bytes_per_loop;
        self.placement.end_pass();
        self.placement.restart(0..=2);
        true
    }
}
