//! Rows as evidence: what each operation of a row reached, with bounds, and how far findings let it count.

use fathom_model::plan::{Mix, OpenSync};
use fathom_record::{FindingId, Latency, PhaseOutcome, RunRecord, TestStatus};

use super::uses::Use;
use crate::Analysis;
use crate::doubt::{FigureEffect, FindingDoubt, doubts_of, stolen_at_most};
use crate::estimate::binomial_at_most;
use crate::findings::pauses::DevicePauses;
use crate::rows::{RecordRow, RowKind};
use crate::steady::levels::before_fall;
use crate::steady::rate_duration::{Lasting, RateDuration};

/// Share of the I/Os that may be slower than a 99th percentile.
pub(super) const BEYOND_P99: f64 = 0.01;
/// Samples of which a 99th percentile is taken as it is.
const CARRY_P99: u64 = 1000;
/// Probability below which fewer samples show that a percentile is met.
const IMPROBABLE: f64 = 0.025;
/// Probability below which samples show that a percentile is missed.
const VERY_IMPROBABLE: f64 = 0.001;
/// Mean number of outstanding I/Os up to which none waits for another.
pub(super) const SINGLE: f64 = 1.1;
/// Latencies of a queue in front of a limiter differ by at most this share.
const ALIKE: f64 = 0.10;

/// Whether a sync follows a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncPattern {
    None,
    Each,
    Some,
}

/// Latencies, and how many there are of each.
#[derive(Clone, Debug)]
pub(super) struct LatencySamples {
    all: Latency,
    bins: Vec<(u64, u64)>,
}

impl LatencySamples {
    fn of(all: Latency) -> LatencySamples {
        LatencySamples { bins: all.fio_bins(), all }
    }

    /// Share of the samples beyond `limit_ns`.
    fn share_beyond(&self, limit_ns: f64) -> f64 {
        let beyond = self.bins.iter().rev().take_while(|(ns, _)| *ns as f64 > limit_ns);
        beyond.map(|(_, count)| count).sum::<u64>() as f64 / self.all.samples().max(1) as f64
    }
}

/// One operation of a row.
#[derive(Clone, Debug)]
pub(super) struct MeasuredOp {
    pub(super) is_read: bool,
    /// I/Os per second: at least, at most. They differ where the rate varied.
    pub(super) low: f64,
    pub(super) high: f64,
    /// Block sizes and their shares.
    pub(super) blocks: Vec<(u64, f64)>,
    /// Mean block of the I/Os as they were drawn, as a share of the mean by `blocks`.
    pub(super) drawn: f64,
    pub(super) latency: LatencySamples,
    /// Of the syncs that follow writes.
    pub(super) sync: Option<LatencySamples>,
    /// The least latency, ns, also in the ramp, when the queue is still empty.
    pub(super) least_ns: f64,
}

impl MeasuredOp {
    pub(super) fn smallest(&self) -> u64 {
        self.blocks.iter().map(|(bytes, _)| *bytes).min().unwrap_or(0)
    }

    pub(super) fn largest(&self) -> u64 {
        self.blocks.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0)
    }

    /// Mean latency, ns; a write's includes its sync.
    pub(super) fn mean_ns(&self) -> f64 {
        self.parts().map(|part| part.all.moments.mean()).sum()
    }

    fn parts(&self) -> impl Iterator<Item = &LatencySamples> {
        [&self.latency].into_iter().chain(&self.sync)
    }

    /// The 99th percentile, ns; the greater of those of a write and its sync.
    pub(super) fn p99_ns(&self) -> Option<u64> {
        self.parts().filter_map(|part| part.all.percentile(99.0)).max()
    }

    /// The median, ns; the greater of those of a write and its sync.
    pub(super) fn median_ns(&self) -> Option<u64> {
        self.parts().filter_map(|part| part.all.percentile(50.0)).max()
    }

    /// Share of the operations that took longer than `limit_ns`; of writes or of their syncs, the greater.
    fn share_beyond(&self, limit_ns: f64) -> f64 {
        self.parts().map(|part| part.share_beyond(limit_ns)).fold(0.0, f64::max)
    }

    fn samples(&self) -> u64 {
        self.parts().map(|part| part.all.samples()).min().unwrap_or(0)
    }

    /// Whether the samples show that the 99th percentile of I/Os is within `limit_ns`, where an I/O of each of `sizes` takes
    /// so much longer than one of the row, and `late` is the share of arrivals that a pause makes later.
    pub(super) fn shows_p99(&self, limit_ns: f64, sizes: &[(f64, f64)], late: f64) -> bool {
        let (samples, all) = (self.samples(), self.samples() as f64);
        let beyond: f64 = sizes
            .iter()
            .map(|&(extra_ns, share)| {
                share * if extra_ns >= limit_ns { 1.0 } else { self.share_beyond(limit_ns - extra_ns) }
            })
            .sum::<f64>()
            + late;
        if samples >= CARRY_P99 {
            return beyond <= BEYOND_P99;
        }
        samples > 0 && binomial_at_most((beyond * all).ceil() as u64, samples, BEYOND_P99) < IMPROBABLE
    }

    /// Whether the samples disprove that the 99th percentile is within `limit_ns`, where `withheld`, a share of the time, may have
    /// delayed I/Os: on average it took that share of a latency, and from few of them a multiple of it (Markov's inequality).
    pub(super) fn disproves_p99(&self, limit_ns: f64, withheld: f64) -> bool {
        let late_by_it = withheld * self.mean_ns() / limit_ns;
        let limit_ns = if withheld > 0.0 { 2.0 * limit_ns } else { limit_ns };
        let (samples, share) = (self.samples(), self.share_beyond(limit_ns) - late_by_it);
        let beyond = (share * samples as f64).floor() as u64;
        if share <= BEYOND_P99 || beyond == 0 {
            return false;
        }
        1.0 - binomial_at_most(beyond - 1, samples, BEYOND_P99) < VERY_IMPROBABLE
    }
}

/// A row as evidence.
#[derive(Clone, Debug)]
pub(super) struct MeasuredRow {
    /// The test, by id.
    pub(super) test: String,
    pub(super) ops: Vec<MeasuredOp>,
    pub(super) is_random: bool,
    pub(super) sync: SyncPattern,
    /// Mean number of outstanding I/Os.
    pub(super) depth: f64,
    pub(super) is_paced: bool,
    /// Times in which nothing of it completed.
    pub(super) silent: DevicePauses,
    /// Latencies are those of a queue in front of a limiter.
    pub(super) is_queue: bool,
    /// The latency of all but a few I/Os, ns, where they have one.
    common_ns: Option<f64>,
    /// Why its figures may be better, or worse, than the volume.
    pub(super) flattered: Option<&'static FindingDoubt>,
    pub(super) impeded: Option<&'static FindingDoubt>,
    /// Share of the time that this took at most; `None` where nothing bounds it.
    pub(super) withheld: Option<f64>,
    /// Half of the 95 % interval of the mean rate, as a share of it.
    pub(super) interval: f64,
    /// Percent of reads, as planned.
    read_percent: u8,
    /// How long its rate lasts.
    pub(super) duration: RateDuration,
    /// The highest rate of its load by the published rule, IOPS, where burst credits were exhausted while it was measured.
    burst_iops: Option<f64>,
    /// The row until its rate fell, if it did.
    before_fall: Option<Box<MeasuredRow>>,
}

/// Doubt about a rate that may be a burst.
const MAY_BE_BURST: FindingDoubt = FindingDoubt {
    id: FindingId::BurstPossible,
    effect: FigureEffect::Flatters,
    reason: "burst is not ruled out",
    remedy: "name the volume type (--label type=ID), or find its burst bucket with `fathom identify`",
};

/// Doubt about a rate that the volume cannot give by itself.
const BEYOND_RULE: FindingDoubt = FindingDoubt {
    id: FindingId::HostCache,
    effect: FigureEffect::Flatters,
    reason: "faster than the published rule allows: a cache may have served I/Os",
    remedy: "use a larger --size, or a target without a cache in front of it",
};

impl MeasuredRow {
    /// The row as evidence of what the volume gives from full credits: a rate that was measured without credits shows no more than
    /// itself, and disproves no rate up to that of the burst. Of a rate that fell it is what was measured before the fall.
    pub(super) fn with_full_credits(&self) -> MeasuredRow {
        // Of a burst of unknown rule that ended, what was left.
        if let Some(iops) = self.duration.left_iops {
            return self.clone().limited_to(iops);
        }
        let mut row = match &self.before_fall {
            Some(before) => MeasuredRow {
                duration: self.duration.clone(),
                burst_iops: self.burst_iops,
                ..(**before).clone()
            },
            None => self.clone(),
        };
        let reached: f64 = row.ops.iter().map(|op| op.high).sum();
        if let Some(burst) = self.burst_iops.filter(|burst| *burst > reached) {
            row.ops.iter_mut().for_each(|op| op.high *= burst / reached);
        }
        row
    }

    /// Its I/Os waited for credits.
    pub(super) fn is_exhausted(&self) -> bool {
        self.burst_iops.is_some()
    }

    /// The row as evidence of what the volume sustains: a burst is scaled to the rate that remains, at which a limit holds it. A
    /// rate that may be a burst bounds what is sustained, and shows nothing.
    pub(super) fn sustained(&self) -> MeasuredRow {
        let mut row = self.clone();
        match (self.duration.label, self.duration.after_burst()) {
            (Lasting::Sustained, _) => {}
            (Lasting::Burst, Some(iops)) => row = row.limited_to(iops),
            (Lasting::Burst, None) => {
                if let Some(iops) = self.duration.left_iops {
                    row = row.limited_to(iops);
                }
                row.flattered = Some(&MAY_BE_BURST);
            }
            (Lasting::Inconclusive, _) => row.flattered = Some(&MAY_BE_BURST),
        }
        row
    }

    /// The row as it would be under a limit of so many I/Os per second.
    fn limited_to(mut self, iops: f64) -> MeasuredRow {
        let share = iops / self.ops.iter().map(|op| op.high).sum::<f64>().max(f64::MIN_POSITIVE);
        for op in &mut self.ops {
            (op.low, op.high) = (op.high * share, op.high * share);
        }
        (self.is_queue, self.interval) = (true, 0.0);
        self
    }

    pub(super) fn op(&self, is_read: bool) -> Option<&MeasuredOp> {
        self.ops.iter().find(|op| op.is_read == is_read)
    }

    /// All operations together, I/Os per second.
    pub(super) fn iops(&self) -> f64 {
        self.ops.iter().map(|op| op.low).sum()
    }

    /// Mean block of all I/Os, bytes.
    pub(super) fn mean_block(&self) -> f64 {
        let bytes = |op: &MeasuredOp| {
            op.low * op.blocks.iter().map(|&(block, share)| block as f64 * share).sum::<f64>()
        };
        self.ops.iter().map(bytes).sum::<f64>() / self.iops().max(f64::MIN_POSITIVE)
    }

    pub(super) fn bytes_in_flight(&self) -> f64 {
        let most = self.ops.iter().map(MeasuredOp::largest).max().unwrap_or(0);
        self.depth * most as f64
    }

    /// The row issues the very load of the use.
    pub(super) fn is_load_of(&self, purpose: &Use) -> bool {
        let is_synced = self.sync == SyncPattern::Each;
        let blocks: Vec<(u64, f64)> =
            purpose.blocks.iter().map(|&(bytes, percent)| (bytes, f64::from(percent) / 100.0)).collect();
        self.read_percent == purpose.read_percent
            && self.is_random != purpose.sequential
            && is_synced == purpose.synced
            && self.ops.iter().all(|op| op.blocks == blocks)
    }
}

/// The share of the time that findings took at most from a test whose figures they impede; `None` where nothing bounds it.
fn withheld(record: &RunRecord, test: &str) -> Option<f64> {
    let impeding = |effect: FigureEffect| effect.impedes() || effect == FigureEffect::Interrupts;
    doubts_of(record, test, impeding)
        .try_fold(0.0, |most: f64, (_, found)| Some(most.max(stolen_at_most(record, found)?)))
}

/// The complete rows of a record that moved data.
pub(super) fn measured(analysis: &Analysis<'_>) -> Vec<MeasuredRow> {
    let is_whole = |row: &&RecordRow<'_>| row.test.status == TestStatus::Complete && row.is_uniform();
    let whole = analysis.rows().iter().filter(is_whole);
    let mut all: Vec<MeasuredRow> = whole.filter_map(|row| measured_row(analysis.record, row)).collect();
    let queues: Vec<bool> = all.iter().map(|row| is_queue(row, &all)).collect();
    let before = |row: &MeasuredRow| row.before_fall.as_ref().is_some_and(|before| is_queue(before, &all));
    let before: Vec<bool> = all.iter().map(before).collect();
    for ((row, is_queue), was_queue) in all.iter_mut().zip(queues).zip(before) {
        row.is_queue = is_queue;
        if let Some(before) = &mut row.before_fall {
            before.is_queue = was_queue;
        }
    }
    all
}

/// True where the common latency of a row is that of a queue: an I/O no smaller, in any row, took much less.
fn is_queue(row: &MeasuredRow, all: &[MeasuredRow]) -> bool {
    let least = |op: &MeasuredOp| {
        let others = all.iter().filter_map(|other| other.op(op.is_read));
        let others = others.filter(|other| other.smallest() >= op.largest());
        others.chain([op]).map(|other| other.least_ns).fold(f64::INFINITY, f64::min)
    };
    let least_ns = row.ops.iter().map(least).fold(f64::INFINITY, f64::min);
    row.common_ns.is_some_and(|common_ns| least_ns * 2.0 <= common_ns)
}

fn measured_row(record: &RunRecord, row: &RecordRow<'_>) -> Option<MeasuredRow> {
    let kind = row.kind()?;
    let doubt =
        |has: fn(FigureEffect) -> bool| doubts_of(record, &row.test.id, has).next().map(|(doubt, _)| doubt);
    let duration = row.duration().clone();
    let before = before_fall(&row.test);
    let varies = before.is_some() || doubt(|effect| effect == FigureEffect::Varies).is_some();
    let io = &row.jobs().first()?.plan.io;
    if !io.access.is_uniform() {
        return None;
    }
    let every = [io.fsync_every, io.fdatasync_every];
    let sync = match () {
        () if kind == RowKind::Read => SyncPattern::None,
        () if every.contains(&1) || io.open_sync != OpenSync::None => SyncPattern::Each,
        () if row.is_synced() => SyncPattern::Some,
        () => SyncPattern::None,
    };
    let read_percent = match io.pattern.mix {
        Mix::ReadWrite { read_percent } => read_percent,
        _ if kind == RowKind::Read => 100,
        _ => 0,
    };
    let mut ops = Vec::new();
    // Where none of one operation completed, the others are not those of the test.
    for is_read in [true, false].into_iter().filter(|&is_read| read_percent != if is_read { 0 } else { 100 })
    {
        ops.push(measured_op(row, is_read, sync, varies)?);
    }
    let configured: f64 = row.jobs().iter().map(|job| f64::from(job.iodepth())).sum();
    // Syncs and pauses are not outstanding I/Os, but only a pause leaves the device without one.
    let least = if row.is_paced() { 0.0 } else { 1.0 };
    let depth = row.mean_queue_depth().max(least);
    Some(MeasuredRow {
        test: row.test.id.clone(),
        is_random: io.pattern.random,
        sync,
        depth: if row.mean_queue_depth() > 0.0 { depth.min(configured) } else { configured },
        is_paced: row.is_paced(),
        silent: DevicePauses::own(row),
        common_ns: common_ns(row),
        is_queue: false,
        flattered: doubt(|effect| effect.flatters() || effect == FigureEffect::Interrupts)
            .or_else(|| exceeds_rule(row).then_some(&BEYOND_RULE)),
        impeded: doubt(|effect| effect.impedes() || effect == FigureEffect::Interrupts),
        withheld: withheld(record, &row.test.id),
        interval: row.summary.stability.map_or(0.0, |stability| stability.mean_ci95_fraction),
        read_percent,
        ops,
        duration,
        burst_iops: row.exhausted(),
        before_fall: before.and_then(|part| Some(Box::new(measured_row(record, &RecordRow::of(&part))?))),
    })
}

/// Faster than the published rule of the volume's type allows.
fn exceeds_rule(row: &RecordRow<'_>) -> bool {
    let own = row.test.published.as_ref().and_then(|published| published.own.as_ref());
    let most = own.and_then(|own| own.burst.map(|burst| burst.iops).or(own.sustained_iops));
    most.is_some_and(|most| row.iops() > most * (1.0 + ALIKE))
}

fn measured_op(row: &RecordRow<'_>, is_read: bool, sync: SyncPattern, varies: bool) -> Option<MeasuredOp> {
    let summary = if is_read { row.summary.read.as_ref() } else { row.summary.write.as_ref() };
    let summary = summary.filter(|op| op.ios > 0)?;
    let rate = summary.iops;
    let (mut latency, mut syncs) = (Latency::default(), Latency::default());
    for job in row.jobs() {
        latency.merge(latency_of(&job.measured, is_read));
        syncs.merge(&job.measured.sync_lat);
    }
    let phases = row.jobs().iter().flat_map(|job| job.ramp.iter().chain([&job.measured]));
    let measured = phases.map(|phase| latency_of(phase, is_read)).filter(|latency| latency.samples() > 0);
    let least_ns = measured.map(|latency| latency.moments.min as f64).fold(f64::INFINITY, f64::min);
    let sizes = &row.jobs().first()?.plan.io.block_size;
    let size = if is_read { &sizes.read } else { &sizes.write };
    let blocks = size.shares();
    let mean_block: f64 = blocks.iter().map(|&(bytes, share)| bytes as f64 * share).sum();
    // Of a rate that varies, the slowest second and the quickest bound what holds.
    let shares = row.settled().iter().map(|second| second.iops() / row.iops().max(f64::MIN_POSITIVE));
    let (low, high) = match varies {
        true => shares.fold((1.0, 1.0), |(low, high): (f64, f64), share| (low.min(share), high.max(share))),
        false => (1.0, 1.0),
    };
    let is_followed = !is_read && sync == SyncPattern::Each && syncs.samples() > 0;
    Some(MeasuredOp {
        is_read,
        low: rate * low,
        high: rate * high,
        drawn: if blocks.len() > 1 { summary.bytes_per_second / (rate * mean_block) } else { 1.0 },
        blocks,
        latency: LatencySamples::of(latency),
        sync: is_followed.then(|| LatencySamples::of(syncs)),
        least_ns,
    })
}

fn latency_of(phase: &PhaseOutcome, is_read: bool) -> &Latency {
    let op = if is_read { &phase.read } else { &phase.write };
    if op.lat.samples() > 0 { &op.lat } else { &op.clat }
}

/// The latency that all but a few I/Os have in common, ns, where it is that of a queue: the depth over the rate.
fn common_ns(row: &RecordRow<'_>) -> Option<f64> {
    let total = row.summary.total.as_ref()?;
    let latency = if total.lat_ns.samples > 0 { &total.lat_ns } else { &total.clat_ns };
    let (p50, p90) = (latency.p50? as f64, latency.p90? as f64);
    let waiting_ns = row.mean_queue_depth() * 1e9 / row.iops().max(1.0);
    let is_common = row.mean_queue_depth() > SINGLE
        && !row.is_paced()
        && p90 <= p50 * (1.0 + ALIKE)
        && (p50 / waiting_ns - 1.0).abs() <= ALIKE;
    is_common.then_some(p50)
}

/// The finding that a doubt comes from, for a sentence.
pub(super) fn doubt_name(doubt: &FindingDoubt) -> String {
    format!("{} ({})", doubt.reason, doubt.id)
}
