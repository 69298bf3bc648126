//! The time that a worker still needs, from what it has to do and how fast it was so far.

use std::iter::Sum;

use fathom_model::plan::Mix;
use fathom_stats::live::{LivePhase, LiveWorker};

use crate::worker::WorkerSpec;

/// What a worker has to do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlannedWork {
    /// When its runtime ends, session ns, if it has one.
    pub end: Option<u64>,
    /// Bytes of all passes, without those that are read back; `None` = as many as the runtime permits.
    pub bytes: Option<u64>,
    pub reads_back: ReadsBack,
    pub iodepth: u32,
}

/// When a worker reads back what it wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReadsBack {
    #[default]
    Never,
    /// After each pass; percent of the bytes of a pass.
    AfterPasses(u64),
    /// Among the writes; percent of the bytes of a pass.
    AmongWrites(u64),
}

/// Work that has a rate of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    bytes: u64,
    ns: u64,
}

impl PlannedWork {
    /// The work of `spec`, whose runtime ends at `end`.
    pub fn new(spec: &WorkerSpec, end: Option<u64>) -> PlannedWork {
        let passes = spec.verify.as_ref().and_then(|verify| verify.passes).map_or(1, u64::from);
        let loops = spec.source.loops.map(|loops| passes.saturating_mul(u64::from(loops)));
        // Each range is trimmed and written.
        let times = if spec.source.pattern.mix == Mix::TrimWrite { 2 } else { 1 };
        PlannedWork {
            end,
            bytes: loops.map(|loops| spec.source.bytes_per_loop.saturating_mul(loops).saturating_mul(times)),
            reads_back: ReadsBack::new(spec),
            iodepth: spec.depth.iodepth,
        }
    }

    /// ns until the worker is expected to end.
    pub fn left(&self, live: &LiveWorker, now: u64) -> Option<u64> {
        let by_time = self.end.map(|end| end.saturating_sub(now));
        match (by_time, self.left_by_bytes(live, now)) {
            (Some(time), Some(bytes)) => Some(time.min(bytes)),
            (time, bytes) => time.or(bytes),
        }
    }

    fn left_by_bytes(&self, live: &LiveWorker, now: u64) -> Option<u64> {
        let planned = self.bytes?;
        let phases = || live.ramp.iter().chain([&live.measured]).filter(|phase| phase.start_ns.get() != 0);
        let begun = phases().map(|phase| phase.start_ns.get()).min()?;
        let all = Part { bytes: phases().map(LivePhase::bytes).sum(), ns: now.saturating_sub(begun) };
        match self.reads_back {
            ReadsBack::Never => all.time_of(planned.saturating_sub(all.bytes)),
            ReadsBack::AmongWrites(percent) => {
                let planned = planned.saturating_add(share(planned, percent));
                all.time_of(planned.saturating_sub(all.bytes))
            }
            ReadsBack::AfterPasses(percent) => {
                let back: Part = phases().map(|phase| phase.read_back_so_far(now).into()).sum();
                let main =
                    Part { bytes: all.bytes.saturating_sub(back.bytes), ns: all.ns.saturating_sub(back.ns) };
                let main_left = main.time_of(planned.saturating_sub(main.bytes))?;
                let busy_ns: u64 = phases().map(busy_ns).sum::<u64>() / u64::from(self.iodepth.max(1));
                // What was not begun is expected to be as fast as the rest, without the gaps that a rate leaves.
                let like = match back.bytes {
                    0 if busy_ns > 0 => Part { ns: main.ns.min(busy_ns), ..main },
                    0 => main,
                    _ => back,
                };
                let back_left = like.time_of(share(planned, percent).saturating_sub(back.bytes))?;
                Some(main_left.saturating_add(back_left))
            }
        }
    }
}

impl ReadsBack {
    fn new(spec: &WorkerSpec) -> ReadsBack {
        let written = match spec.source.pattern.mix {
            Mix::Write => 100,
            Mix::ReadWrite { read_percent } => 100 - u64::from(read_percent.min(100)),
            Mix::TrimWrite => 50,
            Mix::Read | Mix::Trim | Mix::ReadWriteTrim => 0,
        };
        match &spec.verify {
            Some(verify) if verify.plan.reads_back && verify.plan.backlog.is_some() => {
                ReadsBack::AmongWrites(written)
            }
            Some(verify) if verify.plan.reads_back || verify.plan.only => ReadsBack::AfterPasses(written),
            _ => ReadsBack::Never,
        }
    }
}

impl Part {
    /// ns of `bytes` at the same rate; `None` before the first byte.
    fn time_of(self, bytes: u64) -> Option<u64> {
        let ns = u128::from(bytes) * u128::from(self.ns);
        ns.checked_div(self.bytes.into()).map(|ns| u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

impl From<(u64, u64)> for Part {
    fn from((ns, bytes): (u64, u64)) -> Part {
        Part { bytes, ns }
    }
}

impl Sum for Part {
    fn sum<I: Iterator<Item = Part>>(parts: I) -> Part {
        parts.fold(Part::default(), |sum, part| Part { bytes: sum.bytes + part.bytes, ns: sum.ns + part.ns })
    }
}

/// Sum of the latencies, ns; 0 where none are recorded.
fn busy_ns(phase: &LivePhase) -> u64 {
    phase.ops.iter().flat_map(|op| &op.clat).map(|clat| clat.sum()).sum()
}

fn share(bytes: u64, percent: u64) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64
}

#[cfg(test)]
#[path = "time_left_tests.rs"]
mod tests;
