//! The rates that a volume reaches under a load without end, in closed form: sustained, and in a burst with its duration.

use fathom_model::LimitUnit;
use fathom_volume::{Accounting, Limit, LimitStage, VolumeModel};
use serde::Serialize;

/// Rates with a smaller relative difference are equal.
const SAME: f64 = 1e-9;

/// The requests of a use: sizes, order and share of reads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfferedLoad {
    /// Sizes in bytes with their shares, which add up to 1.
    pub blocks: Vec<(f64, f64)>,
    /// Sequential offsets.
    pub sequential: bool,
    /// Writes after which the client waits for a sync, so that only these can be merged with each other; `None` = it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synced_after: Option<u32>,
    /// The share of reads; `None` = any, so that results apply to all reads and to all writes.
    pub read_fraction: Option<f64>,
}

/// The mean charge of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MeanCharge {
    ios: f64,
    bytes: f64,
}

impl OfferedLoad {
    /// Requests of one size, reads or writes.
    pub fn of(block_bytes: f64, is_sequential: bool) -> Self {
        OfferedLoad {
            blocks: vec![(block_bytes, 1.0)],
            sequential: is_sequential,
            synced_after: None,
            read_fraction: None,
        }
    }

    /// Mean bytes of a request.
    pub fn mean_bytes(&self) -> f64 {
        self.blocks.iter().map(|(bytes, share)| bytes * share).sum()
    }

    /// The shares of reads to check; all rules are linear between them.
    fn mixes(&self) -> Vec<f64> {
        self.read_fraction.map_or(vec![1.0, 0.0], |share| vec![share])
    }

    /// Requests that can be merged with each other: in order, and between two syncs.
    fn merged(&self) -> f64 {
        match (self.sequential, self.synced_after) {
            (false, _) => 1.0,
            (true, Some(writes)) if self.read_fraction != Some(1.0) => f64::from(writes.max(1)),
            (true, _) => f64::INFINITY,
        }
    }

    fn cost(&self, accounting: Accounting) -> MeanCharge {
        let merged = self.merged();
        let costs = self.blocks.iter().map(|(bytes, share)| (cost(accounting, *bytes, merged), share));
        costs.fold(MeanCharge { ios: 0.0, bytes: 0.0 }, |sum, (cost, share)| MeanCharge {
            ios: sum.ios + cost.ios * share,
            bytes: sum.bytes + cost.bytes * share,
        })
    }
}

/// The mean charge of a request of `bytes` that can be merged with others, `merged` of them in all.
fn cost(accounting: Accounting, bytes: f64, merged: f64) -> MeanCharge {
    let Some(unit) = accounting.unit_bytes.map(f64::from) else { return MeanCharge { ios: 1.0, bytes } };
    let together = if accounting.merges_sequential { merged } else { 1.0 };
    if together.is_infinite() {
        return MeanCharge { ios: bytes / unit, bytes };
    }
    let ios = (bytes * together / unit).ceil().max(1.0) / together;
    MeanCharge { ios, bytes: if accounting.whole_units { ios * unit } else { bytes } }
}

/// The rate that a volume reaches under a load, and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReachedRate {
    /// Sustained requests per second, without burst credits or billed bursts; `None` = no known limit.
    pub iops: Option<f64>,
    /// The limiting unit.
    pub limited_by: Option<LimitUnit>,
    /// The burst, if it is faster.
    pub burst: Option<BurstReach>,
}

/// A burst above the sustained rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BurstReach {
    /// Requests a second.
    pub iops: f64,
    /// The limiting unit.
    pub limited_by: Option<LimitUnit>,
    /// Duration from full credits, ns; `None` = unlimited, but billed.
    pub lasts_ns: Option<u64>,
    /// Time to refill the credits when idle, ns.
    pub refill_ns: Option<u64>,
}

/// A load that recurs, and another rate between.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RecurringBurst {
    /// Length of a burst.
    pub length_ns: u64,
    /// From the start of one burst to the start of the next.
    pub period_ns: u64,
    /// Requests per second between bursts, like those of the load.
    pub iops_between: f64,
}

/// A limit under a load.
#[derive(Clone, Copy, Debug)]
pub struct LoadLimit<'a> {
    /// The stage that it is a part of.
    pub stage: &'a LimitStage,
    /// The limit.
    pub limit: Limit,
    /// Its unit.
    pub unit: LimitUnit,
    /// Mean tokens per request.
    pub tokens: f64,
}

/// The limits of `model` that apply to requests of which `share` are reads: `all` of them, those that are reads, and the others.
pub fn load_limits<'a>(
    model: &'a VolumeModel,
    [all, reads, others]: [&OfferedLoad; 3],
    share: f64,
) -> Vec<LoadLimit<'a>> {
    let mut found = Vec::new();
    let parts =
        [(&model.shared, all, 1.0), (&model.reads, reads, share), (&model.writes, others, 1.0 - share)];
    for (stages, load, share) in parts {
        for stage in stages {
            let cost = load.cost(stage.accounting);
            let each = [(stage.ios, LimitUnit::Ios, cost.ios), (stage.bytes, LimitUnit::Bytes, cost.bytes)];
            found.extend(each.into_iter().filter_map(|(limit, unit, cost)| {
                let tokens = cost * share;
                (tokens > 0.0).then_some(LoadLimit { stage, limit: limit?, unit, tokens })
            }));
        }
    }
    found
}

/// The limits that apply to `load` at a share of `reads`.
fn limits_of<'a>(model: &'a VolumeModel, load: &OfferedLoad, reads: f64) -> Vec<LoadLimit<'a>> {
    load_limits(model, [load; 3], reads)
}

/// The rate that `model` reaches under `load`, the lowest over all shares of reads if that is open.
pub fn reach(model: &VolumeModel, load: &OfferedLoad) -> ReachedRate {
    let of = |reads: f64| reach_of_limits(&limits_of(model, load, reads), parallel_rate(model, reads));
    let level = |reach: &ReachedRate| {
        let sustained = reach.iops.unwrap_or(f64::INFINITY);
        (sustained, reach.burst.map_or(sustained, |burst| burst.iops))
    };
    let mixes = load.mixes().into_iter().map(of);
    let worst = mixes.reduce(|one, other| if level(&other) < level(&one) { other } else { one });
    worst.unwrap_or(ReachedRate { iops: None, limited_by: None, burst: None })
}

/// Time for which full credits of `model` allow `rate` requests per second of `load`, ns; `None` if they are not needed, or
/// bursts are billed instead.
pub fn burst_lasts_ns(model: &VolumeModel, load: &OfferedLoad, rate: f64) -> Option<u64> {
    let all = load.mixes().into_iter().flat_map(|reads| limits_of(model, load, reads));
    all.filter_map(|limit| limit.lasts_ns(rate)).min()
}

/// The rates that the limits with bursts leave of `load` when these are over, requests per second: of each by itself.
pub fn exhausted_rates(model: &VolumeModel, load: &OfferedLoad) -> Vec<f64> {
    let has_burst = |met: &LoadLimit<'_>| met.limit.peak().is_none_or(|peak| peak > met.limit.baseline());
    let all = load.mixes().into_iter().flat_map(|reads| limits_of(model, load, reads));
    all.filter(has_burst).map(|met| met.limit.baseline().as_f64() / met.tokens).collect()
}

/// True if `model` serves `rate` requests per second of `load` for good, or in recurring bursts alone, for any share of reads if that
/// is open.
pub fn serves(model: &VolumeModel, load: &OfferedLoad, rate: f64, burst: Option<RecurringBurst>) -> bool {
    load.mixes().into_iter().all(|reads| {
        is_at_most(rate, parallel_rate(model, reads))
            && limits_of(model, load, reads).iter().all(|limit| limit.permits(rate, burst))
    })
}

/// True if I/Os or bytes of `load` are limited, in each direction that it may have.
pub fn is_limited(model: &VolumeModel, load: &OfferedLoad, unit: LimitUnit) -> bool {
    let share = load.read_fraction;
    let asked = [(1.0, share != Some(0.0)), (0.0, share != Some(1.0))];
    let mut directions = asked.into_iter().filter(|(_, is_asked)| *is_asked);
    directions.all(|(reads, _)| limits_of(model, load, reads).iter().any(|limit| limit.unit == unit))
}

/// True if bytes are limited, directly or by the I/O unit; otherwise the rate of large requests is unknown.
pub fn limits_bytes(model: &VolumeModel) -> bool {
    let mut stages = model.shared.iter().chain(&model.reads).chain(&model.writes);
    stages.any(|stage| stage.bytes.is_some() || stage.accounting.unit_bytes.is_some())
}

fn is_at_most(rate: f64, limit: f64) -> bool {
    rate <= limit * (1.0 + SAME)
}

/// Requests per second that the parallelism of a volume serves at a share of `reads`.
fn parallel_rate(model: &VolumeModel, reads: f64) -> f64 {
    let Some(parallelism) = model.parallelism.map(f64::from) else { return f64::INFINITY };
    let read_ns = reads * model.read_latency.mean_ns() as f64;
    let write_ns = (1.0 - reads) * model.write_latency.mean_ns() as f64;
    // With limits of its own, each direction has servers of its own.
    let is_apart = !(model.reads.is_empty() && model.writes.is_empty());
    parallelism * 1e9 / if is_apart { read_ns.max(write_ns) } else { read_ns + write_ns }
}

/// The rate under limits, and no more than `most`.
fn reach_of_limits(limits: &[LoadLimit<'_>], most: f64) -> ReachedRate {
    let lowest = |level: &dyn Fn(&LoadLimit<'_>) -> Option<f64>| {
        let all = limits.iter().filter_map(|met| Some((level(met)? / met.tokens, Some(met.unit))));
        let lowest = all.min_by(|one, other| one.0.total_cmp(&other.0));
        lowest.filter(|(rate, _)| *rate <= most).unwrap_or((most, None))
    };
    let (sustained, limited_by) = lowest(&|met| Some(met.limit.baseline().as_f64()));
    let (peak, peak_limited_by) = lowest(&|met| met.limit.peak().map(|peak| peak.as_f64()));
    let spent = || limits.iter().filter(|met| met.is_spent_at(peak));
    ReachedRate {
        iops: sustained.is_finite().then_some(sustained),
        limited_by,
        burst: (peak > sustained * (1.0 + SAME)).then(|| BurstReach {
            iops: peak,
            limited_by: peak_limited_by,
            lasts_ns: spent().filter_map(|met| met.lasts_ns(peak)).min(),
            refill_ns: spent().filter_map(|met| met.limit.time_to_refill_ns()).max(),
        }),
    }
}

impl LoadLimit<'_> {
    /// True if a rate exceeds the baseline.
    fn is_spent_at(&self, rate: f64) -> bool {
        rate * self.tokens > self.limit.baseline().as_f64()
    }

    /// Time until full credits are exhausted; `None` if they are not, or bursts are billed instead.
    fn lasts_ns(&self, rate: f64) -> Option<u64> {
        match self.limit {
            Limit::Credit { base, capacity, .. } => {
                let bucket =
                    CreditBucket { baseline: base.as_f64(), capacity: capacity as f64, tokens: self.tokens };
                let drain = bucket.drain(rate, 0.0);
                (drain > 0.0).then(|| (bucket.capacity / drain * 1e9).round() as u64)
            }
            Limit::Window { burst_ns, .. } => self.is_spent_at(rate).then_some(burst_ns),
            Limit::Rate(_) | Limit::OnDemand { .. } => None,
        }
    }

    /// True if it permits `rate` for good, or in recurring bursts alone.
    fn permits(&self, rate: f64, burst: Option<RecurringBurst>) -> bool {
        let base = self.limit.baseline().as_f64();
        let demand = rate * self.tokens;
        if is_at_most(demand, base) {
            return true;
        }
        let Some(burst) = burst else { return false };
        let between = burst.iops_between * self.tokens;
        if !is_at_most(between, base)
            || !self.limit.peak().is_none_or(|peak| is_at_most(demand, peak.as_f64()))
        {
            return false;
        }
        let seconds = |ns: u64| ns as f64 / 1e9;
        let (length, rest) =
            (seconds(burst.length_ns), seconds(burst.period_ns.saturating_sub(burst.length_ns)));
        match self.limit {
            Limit::Credit { capacity, .. } => {
                let spent = (demand - base) * length;
                is_at_most(spent, capacity as f64) && is_at_most(spent, (base - between) * rest)
            }
            Limit::Window { burst_ns, rest_ns, .. } => {
                burst.length_ns <= burst_ns && is_at_most(seconds(rest_ns), rest)
            }
            Limit::Rate(_) | Limit::OnDemand { .. } => false,
        }
    }
}

/// A bucket of burst credits under a load, in tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CreditBucket {
    /// The refill rate, tokens per second.
    pub baseline: f64,
    /// Tokens when full.
    pub capacity: f64,
    /// Mean tokens per request.
    pub tokens: f64,
}

/// A rate, as long as no further bucket is exhausted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoursePhase {
    /// Requests per second.
    pub iops: f64,
    /// The place of the bucket that is exhausted then, and the length, s; `None` if the rate is sustained.
    pub until: Option<(usize, f64)>,
}

impl CreditBucket {
    /// Tokens that `rate` requests per second use up a second, below 0 if the bucket refills. A drain of less than `noise` of the baseline
    /// counts as none.
    pub fn drain(&self, rate: f64, noise: f64) -> f64 {
        let drain = rate * self.tokens - self.baseline;
        if drain > self.baseline * noise { drain } else { drain.min(0.0) }
    }
}

/// The rates that full buckets permit one after the other, from `rate` on; `noise` is that of [`CreditBucket::drain`].
pub fn rate_course(mut rate: f64, buckets: &[CreditBucket], noise: f64) -> Vec<CoursePhase> {
    let mut credits: Vec<Option<f64>> = buckets.iter().map(|bucket| Some(bucket.capacity)).collect();
    let mut phases = Vec::new();
    loop {
        let lasting = buckets.iter().zip(&credits).enumerate().filter_map(|(place, (bucket, credits))| {
            let drain = bucket.drain(rate, noise);
            Some((place, credits.filter(|_| drain > 0.0)? / drain))
        });
        let until = lasting.min_by(|one, other| one.1.total_cmp(&other.1));
        phases.push(CoursePhase { iops: rate, until });
        let Some((first, seconds)) = until else { return phases };
        for (bucket, credits) in buckets.iter().zip(&mut credits) {
            let spent = bucket.drain(rate, noise) * seconds;
            *credits = credits.map(|credits| (credits - spent).min(bucket.capacity));
        }
        credits[first] = None;
        rate = rate.min(buckets[first].baseline / buckets[first].tokens);
    }
}

#[cfg(test)]
mod tests {
    use fathom_volume::{TokenRate, VolumeLatency};

    use super::*;

    #[test]
    fn requests_count_by_units() {
        let unit = |kib: u32, merges_sequential, whole_units| Accounting {
            unit_bytes: Some(kib << 10),
            merges_sequential,
            whole_units,
        };
        let kib = 1024.0;
        for (accounting, block, is_sequential, ios, bytes) in [
            (Accounting::default(), 1024.0 * kib, false, 1.0, 1024.0 * kib),
            (unit(256, true, false), 4.0 * kib, false, 1.0, 4.0 * kib),
            (unit(256, true, false), 4.0 * kib, true, 1.0 / 64.0, 4.0 * kib),
            (unit(256, true, false), 257.0 * kib, false, 2.0, 257.0 * kib),
            (unit(256, false, false), 4.0 * kib, true, 1.0, 4.0 * kib),
            (unit(16, false, false), 64.0 * kib, false, 4.0, 64.0 * kib),
            (unit(1024, true, true), 4.0 * kib, false, 1.0, 1024.0 * kib),
            (unit(1024, true, true), 4.0 * kib, true, 1.0 / 256.0, 4.0 * kib),
        ] {
            let found = OfferedLoad::of(block, is_sequential).cost(accounting);
            assert_eq!(found, MeanCharge { ios, bytes }, "{accounting:?} {block} {is_sequential}");
        }
        // A log of 4 KiB with a sync after each write, after each hundredth, and one that is only read.
        let log = |synced_after, read_fraction| OfferedLoad {
            synced_after,
            read_fraction: Some(read_fraction),
            ..OfferedLoad::of(4.0 * kib, true)
        };
        let ios = |load: OfferedLoad| load.cost(unit(256, true, false)).ios;
        assert_eq!(ios(log(Some(1), 0.0)), 1.0);
        assert_eq!(ios(log(Some(100), 0.0)), 0.02);
        assert_eq!(ios(log(Some(1), 1.0)), 1.0 / 64.0);
        // Half of 4 KiB, half of 512 KiB: 1.5 units of 256 KiB, 258 KiB.
        let mixed =
            OfferedLoad { blocks: vec![(4.0 * kib, 0.5), (512.0 * kib, 0.5)], ..OfferedLoad::of(0.0, false) };
        assert_eq!(mixed.cost(unit(256, true, false)), MeanCharge { ios: 1.5, bytes: 258.0 * kib });
        assert_eq!(mixed.mean_bytes(), 258.0 * kib);
    }

    #[test]
    fn credits_last_longer_where_parallelism_limits_the_burst() {
        let rate = |tokens| TokenRate::per_second(tokens).unwrap();
        let ios =
            Limit::Credit { base: rate(100), burst: Some(rate(1000)), capacity: 10_000, initial: 10_000 };
        let model = VolumeModel {
            shared: vec![LimitStage { ios: Some(ios), ..LimitStage::default() }],
            read_latency: VolumeLatency::fixed(2_000_000),
            write_latency: VolumeLatency::fixed(2_000_000),
            parallelism: Some(1),
            ..VolumeModel::unlimited(1 << 30)
        };
        let found = reach(&model, &OfferedLoad::of(4096.0, false));
        assert_eq!((found.iops, found.limited_by), (Some(100.0), Some(LimitUnit::Ios)));
        let burst = found.burst.unwrap();
        // One access of 2 ms at a time: 500 per second, which use up 400 credits.
        let figures = (burst.iops, burst.limited_by, burst.lasts_ns, burst.refill_ns);
        assert_eq!(figures, (500.0, None, Some(25_000_000_000), Some(100_000_000_000)));
        // What it does not serve in parallel it does not serve in bursts either.
        let load = OfferedLoad::of(4096.0, false);
        let short = RecurringBurst { length_ns: 1_000_000_000, period_ns: 60_000_000_000, iops_between: 0.0 };
        assert!(serves(&model, &load, 500.0, Some(short)) && !serves(&model, &load, 501.0, Some(short)));
    }
}
