//! Reading back what a job has written: at the end of each pass, and during it with a backlog.
//!
//! Blocks are found by repeating the order of the writes, which takes no memory. Where a block may be written more than
//! once before it is read back, a list holds the last write of each. Nothing is in flight when the worker changes from
//! writing to reading or back, so every completion belongs to the current stage.

mod trims;
mod written;

use fathom_model::plan::VerifyBacklog;
use fathom_model::{Op, Request};
use fathom_workload::Source;
use fathom_workload::verify::Generation;

use super::{Arrival, Next};
use crate::worker::WorkerSpec;
use trims::Trims;
use written::{Overlap, Written};

/// What the worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It writes.
    Writing,
    /// It reads back this many blocks, of a backlog or of the whole pass.
    Reading { left: u64, whole: bool },
    /// It trims blocks that it has written.
    Trimming,
    /// It waits until nothing is in flight.
    Waiting(Then),
}

/// What follows a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The write that was held.
    HeldWrite,
    /// Further writes after blocks of the backlog or trims.
    Write,
    /// Trims.
    Trim,
    /// Reading blocks of the backlog.
    ReadBacklog,
    /// Reading all blocks of the pass.
    ReadPass,
    /// The next pass.
    NextPass,
}

/// A change that the worker notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    /// Nothing that concerns the files.
    Nothing,
    /// All blocks of a pass are read back next.
    ToReading,
    /// As `ToReading`, of writes of an earlier run.
    ToReadingEarlier {
        /// Writes.
        writes: u64,
        /// Bytes that they wrote.
        bytes: u64,
    },
    /// The next pass begins.
    ToWriting,
}

/// Decides when blocks are read back, and which.
pub(crate) struct ReadBack {
    stage: Stage,
    written: Written,
    /// Writes of this pass that were not read back.
    unread: u64,
    backlog: Option<VerifyBacklog>,
    /// Writes since the last read-back.
    since: u64,
    /// Writes so far.
    number: u64,
    /// Passes that follow; `None` = until the driver stops.
    passes_left: Option<u32>,
    pass: u64,
    /// Writes are counted and not issued.
    only: bool,
    /// Writes to check at most.
    limit: u64,
    /// A write that overlaps one in flight.
    held: Option<Arrival>,
    trims: Option<Trims>,
    /// Blocks are read back at the end of a pass.
    reads_passes: bool,
    generation: Option<Generation>,
}

impl ReadBack {
    /// For the worker of `spec`, whose source is `source`; `None` if it reads nothing back.
    pub fn new(spec: &WorkerSpec, source: &Source) -> Option<Self> {
        let verify = spec.verify.as_ref()?;
        let plan = &verify.plan;
        if !spec.source.pattern.writes() {
            return None;
        }
        let passes = verify.passes;
        // An endless pass is never read back at its end.
        let never = !plan.only && (!plan.reads_back || passes.is_none() && plan.backlog.is_none());
        let written = match () {
            () if never && plan.trims.is_none() => Written::Nothing,
            () if spec.numbers_writes() && !(plan.only && passes.is_none()) => Written::list(),
            () => Written::Order { rewound: Box::new(source.clone()), failed: Default::default() },
        };
        // Which write came last is unknown where others write, and after an endless pass. The numbers of a list go on
        // from pass to pass, so that they are known only where there is one.
        let is_known = plan.checks_generation
            && !verify.shares_files
            && !(plan.only && (passes.is_none() || written.is_list() && passes != Some(1)));
        let last = passes.map_or(0, |passes| u64::from(passes.saturating_sub(1)));
        Some(ReadBack {
            stage: Stage::Writing,
            written,
            unread: 0,
            backlog: plan.backlog.filter(|_| !plan.only && plan.reads_back),
            since: 0,
            number: 0,
            passes_left: if plan.only { Some(1) } else { passes }.map(|passes| passes.saturating_sub(1)),
            pass: if plan.only { last } else { 0 },
            only: plan.only,
            limit: verify.limit.unwrap_or(u64::MAX),
            held: None,
            trims: plan.trims.map(|plan| Trims::new(plan, spec.source.seed)),
            reads_passes: !never,
            generation: is_known.then(|| Generation::new(spec.source.seed)),
        })
    }

    /// Whether completed reads are those of blocks that were read back.
    #[inline]
    pub fn is_reading(&self) -> bool {
        matches!(self.stage, Stage::Reading { .. } | Stage::Waiting(Then::Write | Then::NextPass))
    }

    /// Whether the blocks of a whole pass are read back.
    pub fn is_reading_a_pass(&self) -> bool {
        matches!(self.stage, Stage::Reading { whole: true, .. } | Stage::Waiting(Then::NextPass))
    }

    /// The pass that writes belong to.
    pub fn pass(&self) -> u64 {
        self.pass
    }

    /// The seed of the data that was last written to the block of `read`, if it is known.
    pub fn seed_of(&self, read: &Request) -> Option<u64> {
        let generation = self.generation?;
        let number = match &self.written {
            Written::Order { .. } => self.pass,
            Written::List { .. } => self.written.number_of(read)?,
            Written::Nothing => return None,
        };
        Some(generation.seed(read.file, read.offset, number))
    }

    /// The seed of the data of a further pass, where the writes of an earlier run are those of whole passes.
    pub fn later_seed_of(&self, read: &Request) -> Option<u64> {
        let by_pass = self.only && matches!(self.written, Written::Order { .. });
        let generation = self.generation.filter(|_| by_pass)?;
        Some(generation.seed(read.file, read.offset, self.pass + 1))
    }

    /// Forgets a request that failed, and that wrote or trimmed a block: its contents are unknown.
    pub fn forget(&mut self, request: &Request) {
        if request.op == Op::Write || self.trims.is_some() {
            self.written.forget(request);
        }
    }

    /// Whether the block of `read` was trimmed.
    pub fn is_trimmed(&self, read: &Request) -> bool {
        self.written.is_trimmed(read)
    }

    /// Whether a request may be issued, without drawing one; `None` if the source decides.
    pub fn peek(&self) -> Option<Next<()>> {
        match self.stage {
            Stage::Writing if self.backlog_is_due() || self.trims_are_due() || self.only => Some(Next::Pause),
            Stage::Writing => self.held.map(|_| Next::Issue(())),
            Stage::Reading { .. } | Stage::Trimming => Some(Next::Issue(())),
            Stage::Waiting(_) => Some(Next::Pause),
        }
    }

    fn backlog_is_due(&self) -> bool {
        self.backlog.is_some_and(|backlog| self.since >= backlog.blocks)
    }

    fn trims_are_due(&self) -> bool {
        self.trims.as_ref().is_some_and(Trims::are_due)
    }

    /// The next request. `draw` draws one of the source.
    pub fn next(&mut self, draw: impl FnOnce() -> Next<Arrival>) -> Next<Arrival> {
        match self.stage {
            Stage::Waiting(_) => Next::Pause,
            Stage::Reading { left, whole } => self.next_read(left, whole),
            Stage::Writing if self.only => self.wait(Then::ReadPass),
            Stage::Trimming => self.next_trim(),
            Stage::Writing if self.trims_are_due() => self.wait(Then::Trim),
            Stage::Writing if self.backlog_is_due() => self.wait(Then::ReadBacklog),
            Stage::Writing => match self.held.take().map_or_else(draw, Next::Issue) {
                Next::Issue(arrival) => self.take(arrival),
                Next::Done => self.wait(Then::ReadPass),
                other => other,
            },
        }
    }

    fn wait(&mut self, then: Then) -> Next<Arrival> {
        self.stage = Stage::Waiting(then);
        Next::Pause
    }

    /// Notes a request of the source; a write that overlaps one that may be in flight waits.
    fn take(&mut self, arrival: Arrival) -> Next<Arrival> {
        let request = arrival.0;
        if request.op == Op::Write {
            if self.written.note(&request, self.number) == Overlap::InFlight {
                self.held = Some(arrival);
                return self.wait(Then::HeldWrite);
            }
            if let Some(trims) = &mut self.trims {
                trims.note(&request, self.number);
            }
            self.number += 1;
            self.unread += 1;
            self.since += 1;
        }
        Next::Issue(arrival)
    }

    fn next_trim(&mut self) -> Next<Arrival> {
        match self.trims.as_mut().and_then(|trims| trims.next(&mut self.written)) {
            Some(trim) => Next::Issue((trim, None)),
            None => self.wait(Then::Write),
        }
    }

    fn next_read(&mut self, left: u64, whole: bool) -> Next<Arrival> {
        let next = if left > 0 { self.written.next_read() } else { None };
        if let Some(read) = next {
            self.stage = Stage::Reading { left: left - 1, whole };
            self.unread = self.unread.saturating_sub(1);
            return Next::Issue((read, None));
        }
        match (whole, self.passes_left) {
            (false, _) => self.wait(Then::Write),
            (true, Some(0)) => Next::Done,
            (true, _) => self.wait(Then::NextPass),
        }
    }

    /// Goes on after a wait, when nothing is in flight.
    pub fn settle(&mut self, source: &mut Source) -> Turned {
        let Stage::Waiting(then) = self.stage else { return Turned::Nothing };
        self.written.settle(self.number);
        match then {
            Then::HeldWrite | Then::Write => self.stage = Stage::Writing,
            Then::Trim => {
                self.trims.iter_mut().for_each(Trims::begin_batch);
                self.stage = Stage::Trimming;
            }
            Then::ReadBacklog => {
                let batch = self.backlog.map_or(0, |backlog| backlog.batch);
                self.since = self.since.saturating_sub(batch);
                self.stage = Stage::Reading { left: self.unread.min(batch), whole: false };
            }
            Then::ReadPass => {
                if self.only {
                    return self.count_writes(source);
                }
                if !self.reads_passes {
                    self.unread = 0;
                }
                self.stage = Stage::Reading { left: self.unread, whole: true };
                if self.unread > 0 {
                    return Turned::ToReading;
                }
            }
            Then::NextPass => {
                source.begin_loop();
                self.written.begin_pass(source);
                self.trims.iter_mut().for_each(Trims::begin_pass);
                self.passes_left = self.passes_left.map(|left| left.saturating_sub(1));
                self.pass += 1;
                (self.unread, self.since) = (0, 0);
                self.stage = Stage::Writing;
                return Turned::ToWriting;
            }
        }
        Turned::Nothing
    }

    /// Counts the writes that an earlier run has issued.
    fn count_writes(&mut self, source: &mut Source) -> Turned {
        let mut bytes = 0;
        while self.number < self.limit
            && let Some(request) = source.next_request()
        {
            if request.op == Op::Write {
                self.written.note_done(&request, self.number);
                self.number += 1;
                self.unread += 1;
                bytes += u64::from(request.len);
            }
        }
        self.stage = Stage::Reading { left: self.unread, whole: true };
        Turned::ToReadingEarlier { writes: self.number, bytes }
    }
}

#[cfg(test)]
#[path = "read_back_tests.rs"]
mod tests;
