//! The cause of a rate that fell: burst credits, where every other explanation is excluded (confounders): a limit by the
//! clock, a drift, a cache that was full, throttling, other processes, and a machine whose processors others had.

use super::drain::SETTLED_NS;
use super::probe::{Cpu, IdentifyProbe, IoDirection, OtherIo, ProbeSlice, Seen};
use super::script::Script;
use super::series::{LONG_SPAN, Trend, spans};
use super::state::{Account, DISTURBED, EmptiedBucket, ProbeLoad, RateDrift};
use crate::identified::{BucketUnit, Confounder, IoScope, OtherCause};
use crate::pattern::block_name;
use crate::say::mebibytes;

/// Least time at the rate before a fall that a rest restores where measurements take seconds, s.
const MIN_RESTORED: f64 = 0.3;
/// Share of the CPU time that was withheld from this machine or process at the least where that explains a low rate, and how
/// many times what was withheld before.
const WITHHELD: f64 = 0.1;
const MORE_THAN_BEFORE: f64 = 3.0;
/// A machine whose processors are busy for this share of the time may lack them for the device, whose work others share: that takes
/// at most so much of a rate, and more of one at which they were busy too and which may have been theirs.
const BUSY: f64 = 0.9;
const LOST_TO_BUSY: f64 = 0.35;
const LOST_WHILE_BUSY: f64 = 0.75;
/// From this share of busy processors on, before and after, a rate that takes much of the worker's time is not told from one that
/// the processors limit, however much it lost: others may take any part of them.
const NEARLY_BUSY: f64 = 0.75;
/// The rate is the client's, not the device's, where the worker is runnable for the first of these shares of its time and on a CPU
/// for the second. A worker whose device limits the rate waits for the device; it uses little CPU time even where it waits for CPUs.
const RUNNABLE: f64 = 0.9;
const ON_CPU: f64 = 0.1;
/// Share of a fall that other processes explain, from which on it is theirs.
const OTHERS_EXPLAIN: f64 = 0.25;
/// A rate is still that before a fall until it is lower by this share of the fall.
const STILL_HIGH: f64 = 0.25;

impl Script<'_> {
    /// A rate that fell is reported as a burst bucket.
    pub(crate) fn is_credit(&self, bucket: &EmptiedBucket) -> bool {
        self.other_cause(bucket).is_none()
    }

    /// Why a rate that fell is not attributed to a burst bucket; `None` where it is.
    pub(crate) fn other_cause(&self, bucket: &EmptiedBucket) -> Option<OtherCause> {
        let Account { scope, base, .. } = bucket.account;
        let rate = |value: f64| match bucket.account.kind {
            BucketUnit::Ios => format!("{value:.0} IOPS"),
            BucketUnit::Bytes => mebibytes(value),
        };
        let fell = format!("the rate fell from {} to {}", rate(bucket.high), rate(base));
        let cause = |id, text: String| Some(OtherCause { id, text });
        let has_risen = self.rises(bucket) || bucket.has_regained_more() || self.found.restless.is_some();
        if has_risen {
            let why = match bucket.has_regained_more() {
                true => "and an idle period was followed by more than credits regain in it",
                false => "and rose again without idling",
            };
            let text = format!("{fell} {why}: a time-based limit or other load, not burst credits");
            return cause(Confounder::ByItself, text);
        }
        let short = |shortage: String| {
            let text = format!("{fell} while {shortage}, which may be the cause instead of burst credits");
            cause(Confounder::CpuSteal, text)
        };
        if let Some(shortage) = self.held_back(bucket) {
            return short(shortage);
        }
        if let Some(others) = self.others_meanwhile(bucket) {
            let why = format!("{fell} while other processes issued {:.0} IOPS", others.ios);
            let text = format!("{why}, which may be the cause instead of burst credits");
            return cause(Confounder::ForeignIo, text);
        }
        let drift = "gradually and did not reach a steady lower rate: a drift, not burst credits";
        if self.drifts(bucket, bucket.dry.1) {
            return cause(Confounder::Drift, format!("{fell} {drift}"));
        }
        if bucket.measured_recovery(self.least_restored_s()).is_none() {
            let why =
                "and its recovery after an idle period was not measured: burst credits are not established";
            return cause(Confounder::RecoveryNotMeasured, format!("{fell}, {why}"));
        }
        if bucket.comes_back(self.least_restored_s()) {
            return self.lacks_processors(bucket).and_then(short);
        }
        // Nothing restored it, so that whatever was measured since belongs to it.
        if self.drifts(bucket, self.spent.time_ns) {
            return cause(Confounder::Drift, format!("{fell} {drift}"));
        }
        let nothing = format!("{fell}, and idling did not restore it");
        match scope {
            IoScope::Writes => cause(
                Confounder::WriteCacheFull,
                format!("{nothing}: only writes fell, as with a full write cache"),
            ),
            _ => cause(
                Confounder::Throttling,
                format!("{nothing}: throttling or other load, not burst credits"),
            ),
        }
    }

    /// The confounders of the whole run, beside those of single falls.
    pub(crate) fn other_processes(&self) -> Option<OtherCause> {
        let disturbed: Vec<_> = self.answers().filter(|answer| self.is_disturbed(answer.2.others)).collect();
        let most =
            disturbed.iter().max_by(|one, other| one.2.others.share.total_cmp(&other.2.others.share))?.2;
        let text = format!(
            "other processes issued up to {:.0} IOPS and {} on {} during {} of {} measurements: limits that were \
             measured meanwhile are bounds",
            most.others.ios,
            mebibytes(most.others.bytes),
            most.device,
            disturbed.len(),
            self.answers().count()
        );
        Some(OtherCause { id: Confounder::ForeignIo, text })
    }

    /// A rate that changed little by little while it was watched.
    pub(crate) fn drift(&self) -> Option<OtherCause> {
        let RateDrift { block, from, to, .. } = self.found.drift?;
        let text = format!(
            "the rate of {} I/Os drifted from {from:.0} to {to:.0} IOPS: neither a limit nor burst credits",
            block_name(block)
        );
        Some(OtherCause { id: Confounder::Drift, text })
    }

    /// Other processes had a considerable share of the device.
    pub(crate) fn is_disturbed(&self, others: OtherIo) -> bool {
        others.share >= DISTURBED
    }

    /// True where other processes used the device while a limit was measured.
    pub(crate) fn is_any_disturbed(&self) -> bool {
        self.answers().any(|(probe, _, seen)| probe.rate.is_none() && self.is_disturbed(seen.others))
    }

    /// The rate of one direction fell for another reason than burst credits: what it was before is not a limit that lasts.
    pub(crate) fn has_other_fall(&self, way: IoDirection) -> bool {
        let mut of_way = self.found.buckets(way);
        // Where bytes limit as well, both limits together may leave a little less than each alone.
        let has_bulk = self.found.curves[way as usize].as_ref().is_some_and(|curve| curve.bulk.is_some());
        let is_unclear =
            self.found.unclear.is_some_and(|fall| (fall.is_seen || !has_bulk) && way.is_in(fall.ways));
        let has_drifted = self.found.drift.is_some_and(|drift| way.is_in(drift.ways));
        is_unclear || has_drifted || of_way.any(|bucket| !self.is_credit(bucket))
    }

    /// The highest rate of `kind` that one direction had at the least, where it changed by itself. What the other had tells nothing of
    /// it, also where both were taken to share a limit.
    pub(crate) fn by_itself(&self, way: IoDirection, kind: BucketUnit) -> Option<f64> {
        let of_kind =
            |bucket: &&EmptiedBucket| bucket.account.kind == kind && bucket.load.ways == way.scope();
        let changes = self.found.restless.is_some();
        let has_risen = |bucket: &&EmptiedBucket| changes || self.rises(bucket) || bucket.has_regained_more();
        let rising = self.found.buckets.iter().filter(of_kind).filter(has_risen);
        let restless = self.found.restless.filter(|restless| restless.ways == way.scope());
        let watched = restless.map(|restless| match kind {
            BucketUnit::Ios => restless.high,
            BucketUnit::Bytes => restless.high * restless.block as f64,
        });
        rising.map(EmptiedBucket::least_high).chain(watched).reduce(f64::max)
    }

    /// What a rest has to restore at the least, s at the rate before the fall: more than a limiter releases in a turn.
    pub(super) fn least_restored_s(&self) -> f64 {
        let turn_s = self.found.turns_s.iter().copied().fold(0.0, f64::max);
        if self.found.is_long { (3.0 * turn_s).max(MIN_RESTORED) } else { 0.0 }
    }

    /// Processors were withheld while the rate was low, far more than before.
    fn held_back(&self, bucket: &EmptiedBucket) -> Option<String> {
        let (before, low) =
            (self.cpu(bucket, false).withheld_share(), self.cpu(bucket, true).withheld_share());
        let is_more = low > WITHHELD && low > MORE_THAN_BEFORE * before;
        is_more.then(|| format!("{:.0} % of the CPU time was withheld", low * 100.0))
    }

    /// Processors were short while the rate was low, as before perhaps, and that may explain the fall: as much was withheld as the
    /// rate lost, or nothing was left of them.
    fn lacks_processors(&self, bucket: &EmptiedBucket) -> Option<String> {
        let low = self.cpu(bucket, true);
        let lost = 1.0 - bucket.account.base / bucket.high.max(bucket.account.base);
        let withheld = low.withheld_share();
        if withheld > WITHHELD && withheld >= lost {
            return Some(format!("{:.0} % of the CPU time was withheld", withheld * 100.0));
        }
        let before = self.cpu(bucket, false);
        let is_bound = |cpu: Cpu| cpu.runnable_share() >= RUNNABLE && cpu.worker_share() >= ON_CPU;
        if low.busy_share() > BUSY && is_bound(before) && is_bound(low) {
            let runnable = low.runnable_share().min(1.0) * 100.0;
            let why = "on a busy CPU, or waiting for one";
            return Some(format!("the worker was {why}, {runnable:.0} % of the time, as before"));
        }
        let is_costly = |cpu: Cpu| cpu.busy_share() > NEARLY_BUSY && cpu.worker_share() >= ON_CPU;
        if is_costly(before) && is_costly(low) {
            let [busy, worker] = [low.busy_share(), low.worker_share()].map(|share| share * 100.0);
            return Some(format!(
                "the CPUs were {busy:.0} % busy, {worker:.0} % of one by the worker, as before"
            ));
        }
        let most_lost = if before.busy_share() > BUSY { LOST_WHILE_BUSY } else { LOST_TO_BUSY };
        let is_short = low.busy_share() > BUSY && lost <= most_lost;
        is_short.then(|| format!("the CPUs were {:.0} % busy", low.busy_share() * 100.0))
    }

    fn cpu(&self, bucket: &EmptiedBucket, is_low: bool) -> Cpu {
        self.load_around(bucket, is_low).fold(Cpu::default(), |sum, (_, seen)| sum + seen.cpu)
    }

    /// What other processes did while the rate was low, where that and not less before explains the fall.
    fn others_meanwhile(&self, bucket: &EmptiedBucket) -> Option<OtherIo> {
        let mean = |is_low: bool| {
            let (mut sum, mut seconds) = (OtherIo::default(), 0.0);
            for (length, seen) in self.load_around(bucket, is_low) {
                sum.ios += seen.others.ios * length;
                sum.bytes += seen.others.bytes * length;
                seconds += length;
            }
            OtherIo {
                ios: sum.ios / f64::max(seconds, 1e-9),
                bytes: sum.bytes / f64::max(seconds, 1e-9),
                share: 0.0,
            }
        };
        let (before, low) = (mean(false), mean(true));
        let more = match bucket.account.kind {
            BucketUnit::Ios => low.ios - before.ios,
            BucketUnit::Bytes => low.bytes - before.bytes,
        };
        (more > OTHERS_EXPLAIN * (bucket.high - bucket.account.base)).then_some(low)
    }

    /// What was measured while the rate of a bucket was low, or before: the time of each, s.
    fn load_around(&self, bucket: &EmptiedBucket, is_low: bool) -> impl Iterator<Item = (f64, &Seen)> {
        let (from, to) = bucket.dry;
        self.answers().filter_map(move |(probe, began, seen)| {
            let (start, end) = (began + probe.rest_ns, began + seen.elapsed_ns);
            let is_in = if is_low { end > from && start < to } else { end <= from };
            is_in.then_some((end.saturating_sub(start) as f64 / 1e9, seen))
        })
    }

    /// The rate went on falling after its fall, until `to_ns`, so that the fall is part of it: burst credits leave a steady rate.
    fn drifts(&self, bucket: &EmptiedBucket, to_ns: u64) -> bool {
        let Account { base, .. } = bucket.account;
        let (way, block) = (bucket.load.way(), bucket.load.block);
        let cost = bucket.account.cost(&self.found, way, block);
        let still_high = (bucket.high - STILL_HIGH * (bucket.high - base)) / cost;
        let mut high_at_s = 0.0f64;
        for (_, began, seen) in self.answers().filter(|(probe, ..)| probe.block == block) {
            let is_high =
                |span: &&ProbeSlice| began + span.end_ns <= bucket.dry.0 && span.rate() > still_high;
            let spans = spans(seen.done(way).slices.iter(), LONG_SPAN);
            let last = spans.iter().rfind(is_high);
            high_at_s = last.map_or(high_at_s, |span| (began + span.end_ns) as f64 / 1e9);
        }
        let fall = still_high - base / cost;
        let decline = self.decline(&bucket.load, (bucket.dry.0, to_ns));
        decline.is_some_and(|decline| decline.explains(fall, high_at_s))
    }

    /// The trend of the rate of `load` in `span` where it surely falls.
    pub(super) fn decline(&self, load: &ProbeLoad, span: (u64, u64)) -> Option<Trend> {
        let (from, to) = (span.0 + SETTLED_NS, span.1);
        let is_as_deep =
            |probe: &IdentifyProbe| probe.depth(load.way()) >= load.depth && probe.rate.is_none();
        let slices = self.answers().filter(|(probe, ..)| probe.block == load.block && is_as_deep(probe));
        let slices = slices.flat_map(|(_, began, seen)| {
            seen.done(load.way()).slices.iter().map(move |slice| slice.since(began))
        });
        let inside: Vec<ProbeSlice> =
            slices.filter(|slice| slice.start_ns > from && slice.end_ns <= to).collect();
        Trend::of_slices(&inside).filter(Trend::surely_falls)
    }
}
