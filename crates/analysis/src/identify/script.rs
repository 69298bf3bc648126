//! What to measure next, and what has been found so far. Pure: the measurements so far in, the next one out.
//!
//! The method is written down once, as one goes about it. It is gone through from its beginning each time: what was measured
//! answers its questions, and the first that has no answer is what to measure next. So a stored record tells the same again.

use fathom_record::{Activity, IdentifyActivity, RunRecord};

use super::probe::{IdentifyProbe, IoDirection, Seen};
use super::series::is_apart;
use super::state::{Findings, ObservedUnit};
use crate::findings::caps::group_limits;
use crate::identified::{BucketUnit, Confounder, Identified, OtherCause, Spent};
use crate::plateau::AGREE;
use crate::rows::RowKind;

/// The range and the limits of an identification.
#[derive(Clone, Debug, PartialEq)]
pub struct IdentifySpec {
    /// Bytes of the target that are used.
    pub size: u64,
    /// What may be done and spent; bytes are those read and written together.
    pub limits: IdentifyActivity,
}

impl IdentifySpec {
    /// That of a stored run; `None` where it did not identify.
    pub fn of(run: &RunRecord) -> Option<IdentifySpec> {
        let Activity::Identify(limits) = &run.header.activity else { return None };
        let limits = IdentifyActivity { unit_bytes: limits.unit_bytes.max(1), ..limits.clone() };
        Some(IdentifySpec { size: run.header.size_bytes, limits })
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentifyStep {
    /// Measure this; its rest comes first.
    Run(IdentifyProbe),
    /// There is nothing left to find.
    Done,
    /// There would be more, and the budget does not hold it.
    OutOfBudget,
}

/// The next step.
pub fn next(spec: &IdentifySpec, seen: &[Seen]) -> IdentifyStep {
    let mut script = Script::new(spec, seen);
    match script.run() {
        Ok(()) => IdentifyStep::Done,
        Err(Halt::Ask(probe)) => IdentifyStep::Run(probe),
        Err(Halt::OutOfBudget | Halt::Useless | Halt::Fell) => IdentifyStep::OutOfBudget,
    }
}

/// What the measurements tell.
pub fn identified(spec: &IdentifySpec, seen: &[Seen]) -> Identified {
    let mut script = Script::new(spec, seen);
    let ended = script.run();
    script.conclude(ended.is_err())
}

/// What a stored run tells; `None` where it did not identify.
pub fn identified_of(run: &RunRecord) -> Option<Identified> {
    let spec = IdentifySpec::of(run)?;
    let target = &run.header.conditions.target;
    let seen: Vec<Seen> = run.tests.iter().filter_map(|test| Seen::of(test, target)).collect();
    let mut found = identified(&spec, &seen);
    found.confounders.extend(control_group(run, &found));
    Some(found)
}

/// That the control group sets the limits that were found, if it does.
fn control_group(run: &RunRecord, found: &Identified) -> Option<OtherCause> {
    let of_unit = [(&found.iops, "iops"), (&found.bytes_per_second, "bytes_per_second")];
    let figures = of_unit.into_iter().flat_map(|(limits, unit)| {
        let each = [(RowKind::Read, &limits.read), (RowKind::Write, &limits.write)];
        each.into_iter().filter_map(move |(kind, figure)| Some((kind, unit, figure.as_ref()?.value()?)))
    });
    let is_set = |(kind, unit, value): &(RowKind, &str, f64)| {
        let set = group_limits(run, *kind, unit);
        set.iter().any(|limit| (value / *limit as f64 - 1.0).abs() <= AGREE)
    };
    figures.into_iter().any(|figure| is_set(&figure)).then(|| {
        let group = run.header.host().cgroup.io_group.as_ref();
        let name = group.map(|group| format!(" {group}")).unwrap_or_default();
        let text = format!(
            "the control group{name} sets the limits that were found: measure outside it to know the volume's"
        );
        OtherCause { id: Confounder::ControlGroup, text }
    })
}

/// Where measurements are shorter, credit does not run dry unnoticed, and rests cost nothing: what matters is measured again.
const LONG_NS: u64 = 1_000_000_000;
/// What beginning and ending a measurement may take on a device, ns.
const LAST_NS: u64 = 700_000_000;
/// Nothing is begun that has less time, ns.
const MIN_NS: u64 = 200_000_000;

/// Why the script cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    Ask(IdentifyProbe),
    OutOfBudget,
    /// The target answers nothing that could be gone by.
    Useless,
    /// A rate fell meanwhile.
    Fell,
}

/// The method on its way through the answers.
pub(crate) struct Script<'a> {
    pub(crate) spec: &'a IdentifyActivity,
    /// Bytes of the target that are used.
    pub(crate) size: u64,
    seen: &'a [Seen],
    /// What was asked, each with when it began, ns.
    pub(crate) asked: Vec<(IdentifyProbe, u64)>,
    pub(crate) spent: Spent,
    pub(crate) found: Findings,
}

impl<'a> Script<'a> {
    pub(crate) fn new(spec: &'a IdentifySpec, seen: &'a [Seen]) -> Self {
        let is_long = spec.limits.probe_ns >= LONG_NS;
        let found = Findings { is_long, ..Default::default() };
        Script {
            spec: &spec.limits,
            size: spec.size,
            seen,
            asked: Vec::new(),
            spent: Spent::default(),
            found,
        }
    }

    /// What `probe` shows, if it has been measured.
    pub(crate) fn ask(&mut self, mut probe: IdentifyProbe) -> Result<&'a Seen, Halt> {
        if probe.counts {
            // It ends with its requests; its time is no more than a precaution.
            let left = self.left_ns().saturating_sub(probe.rest_ns);
            probe.runtime_ns = probe.runtime_ns.min(left / 1_000_000 * 1_000_000);
            if probe.runtime_ns < MIN_NS {
                return Err(Halt::OutOfBudget);
            }
        }
        let index = self.asked.len();
        let Some(seen) = self.seen.get(index).filter(|seen| seen.is_of(&probe, index)) else {
            return Err(if self.fits(&probe) { Halt::Ask(probe) } else { Halt::OutOfBudget });
        };
        self.asked.push((probe, self.spent.time_ns));
        self.spent.time_ns += seen.elapsed_ns;
        for way in [IoDirection::Read, IoDirection::Write] {
            let ios = seen.done(way).all_ios();
            self.spent.ios += ios;
            match way {
                IoDirection::Read => self.spent.read_bytes += ios * probe.block,
                IoDirection::Write => self.spent.written_bytes += ios * probe.block,
            }
        }
        if !seen.is_whole {
            return Err(Halt::Useless);
        }
        Ok(seen)
    }

    /// The answers so far, each with its probe and when it began.
    pub(crate) fn answers(&self) -> impl DoubleEndedIterator<Item = (&IdentifyProbe, u64, &'a Seen)> {
        self.asked.iter().zip(self.seen).map(|((probe, began), seen)| (probe, *began, seen))
    }

    /// Time left, ns.
    pub(crate) fn left_ns(&self) -> u64 {
        let last = if self.found.is_long { LAST_NS } else { 0 };
        self.spec.budget_ns.saturating_sub(self.spent.time_ns + last)
    }

    /// Requests left, at `block` bytes each.
    pub(crate) fn left_ios(&self, block: u64) -> u64 {
        let by_bytes = self.left_bytes() / block.max(1);
        self.spec.budget_ios.saturating_sub(self.spent.ios).min(by_bytes)
    }

    /// Bytes left.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.spec.budget_bytes.saturating_sub(self.spent.read_bytes + self.spent.written_bytes)
    }

    /// A probe never begins that would break the budget. Its limit is a number of requests.
    fn fits(&self, probe: &IdentifyProbe) -> bool {
        let most = probe.ios.saturating_mul(probe.ways().count() as u64);
        probe.max_ns() <= self.left_ns() && most > 0 && most <= self.left_ios(probe.block)
    }
}

/// A bucket that holds less than this many times what finding the limits took may have run dry meanwhile: where it is known
/// what each request cost, and where it is not.
const SMALL: (f64, f64) = (1.1, 1.5);

impl Script<'_> {
    /// From the beginning to the end, or to what has not been measured yet.
    pub(crate) fn run(&mut self) -> Result<(), Halt> {
        self.first_touch_latency()?;
        self.floor(IoDirection::Read)?;
        if self.spec.writes {
            self.floor(IoDirection::Write)?;
        }
        self.limits()?;
        self.found.limits_ns = self.spent.time_ns;
        self.drain()?;
        if self.is_suspect() {
            let full: Vec<_> = self.found.buckets.iter().map(|bucket| self.capacity(bucket)).collect();
            for (bucket, full) in self.found.buckets.iter_mut().zip(full) {
                bucket.full = full.map(|full| full.0);
            }
            self.found.is_resting = true;
            let ways = [true, self.spec.writes];
            self.found.is_doubtful = ways;
            self.limits()?;
        }
        Ok(())
    }

    /// Credit may have run dry while the limits were measured: a bucket was dry before it was emptied, or nearly so.
    pub(crate) fn is_suspect(&self) -> bool {
        if self.found.is_long {
            return false;
        }
        self.found.buckets.iter().filter(|bucket| !bucket.is_early).any(|bucket| {
            let account = &bucket.account;
            let Some((capacity, _)) = self.capacity(bucket) else { return true };
            let way = account.way();
            let level = self.found.curves[way as usize].as_ref().and_then(|curve| match account.kind {
                BucketUnit::Ios => Some(curve.top.rate),
                BucketUnit::Bytes => curve.bulk.map(|bulk| bulk.bytes()),
            });
            let is_dry = level.is_some_and(|level| !is_apart(level, account.base));
            let missing = self.missing(account);
            let before = missing.iter().filter(|one| one.0 <= self.found.limits_ns);
            let before = before.map(|one| one.1).fold(0.0, f64::max);
            let is_priced = account.kind == BucketUnit::Bytes
                || matches!(self.found.unit(way), Some(ObservedUnit::Exactly(_)));
            let (surely, maybe) = SMALL;
            is_dry || capacity < before * if is_priced { surely } else { maybe }
        })
    }

    /// The limits in each direction and whether they are shared.
    fn limits(&mut self) -> Result<(), Halt> {
        let explored = self.explore_all();
        explored.and(self.join())
    }

    fn explore_all(&mut self) -> Result<(), Halt> {
        let read = self.explore(IoDirection::Read)?;
        if self.found.touch.is_some_and(|touch| touch.share.is_nan()) {
            self.first_touch_rate(read.top.depth, read.top.rate)?;
            if self.found.touch.is_some_and(|touch| touch.share < 1.0) {
                self.explore(IoDirection::Read)?;
            }
        }
        if self.spec.writes {
            self.explore(IoDirection::Write)?;
            self.sharing()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::{Account, EmptiedBucket, ProbeLoad, RestlessRate};
    use crate::estimate::Estimate;
    use crate::identified::{EachWay, Figure, IoScope};

    use super::*;

    #[test]
    fn limits_that_were_not_established_are_bounded_by_the_highest_rates_measured() {
        let limits = IdentifyActivity {
            unit_bytes: 4096,
            most_block_bytes: 1 << 20,
            most_depth: 64,
            most_in_flight_bytes: 64 << 20,
            writes: true,
            probe_ns: 1_000_000_000,
            ..IdentifyActivity::default()
        };
        let spec = IdentifySpec { size: 1 << 30, limits };
        let mut script = Script::new(&spec, &[]);
        script.found.max_rate = [100.0, 0.0];
        script.found.max_bytes = [10e6, 0.0];
        let result = script.conclude(true);
        let why = "the time budget ended before the limit was established";
        let reads = |least| EachWay { read: Some(Figure::bound(Estimate::AtLeast(least), why)), write: None };
        assert_eq!((result.iops, result.bytes_per_second), (reads(95.0), reads(9.5e6)));
    }

    #[test]
    fn the_rate_of_one_direction_is_no_bound_on_the_other() {
        let spec = IdentifySpec { size: 1 << 30, limits: IdentifyActivity::default() };
        let mut script = Script::new(&spec, &[]);
        let account = Account { kind: BucketUnit::Bytes, scope: IoScope::Both, base: 2_681e6 };
        let load = ProbeLoad::of("drain", IoDirection::Read, 1 << 19, 8);
        let (error, high, dry, recovery) = (0.0, 3_252e6, (0, 1), None);
        let bucket = EmptiedBucket { account, error, high, dry, load, recovery, is_early: false, full: None };
        script.found.buckets.push(bucket);
        script.found.restless =
            Some(RestlessRate { ways: IoScope::Reads, block: 1 << 19, high: 6_000.0, low: 5_000.0 });
        assert!(script.by_itself(IoDirection::Read, BucketUnit::Bytes).is_some());
        assert_eq!(script.by_itself(IoDirection::Write, BucketUnit::Bytes), None);
    }
}
