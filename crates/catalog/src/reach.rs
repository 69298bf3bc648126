//! The rates that a simulated volume reaches under a load: sustained, and in a burst with its duration.

use fathom_volume::{Distribution, Limit, LimitStage, VolumeLatency, VolumeModel};
use serde::Serialize;

use crate::load::OfferedLoad;

/// The unit of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitUnit {
    /// I/Os.
    Ios,
    /// Bytes.
    Bytes,
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

/// A limit under a load: the mean tokens per request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadLimit {
    pub(crate) limit: Limit,
    pub(crate) counted: LimitUnit,
    pub(crate) tokens: f64,
}

/// The limits that apply to `load` at a share of `reads`.
pub(crate) fn met(model: &VolumeModel, load: &OfferedLoad, reads: f64) -> Vec<LoadLimit> {
    let parts = [(&model.shared, 1.0), (&model.reads, reads), (&model.writes, 1.0 - reads)];
    let of_stage = |stage: &LimitStage, share: f64| {
        let cost = load.cost(stage.accounting);
        let ios =
            stage.ios.map(|limit| LoadLimit { limit, counted: LimitUnit::Ios, tokens: cost.ios * share });
        let bytes = stage.bytes.map(|limit| LoadLimit {
            limit,
            counted: LimitUnit::Bytes,
            tokens: cost.bytes * share,
        });
        [ios, bytes]
    };
    let all = parts.into_iter().flat_map(|(stages, share)| stages.iter().map(move |stage| (stage, share)));
    all.flat_map(|(stage, share)| of_stage(stage, share)).flatten().filter(|met| met.tokens > 0.0).collect()
}

/// The rate that `model` reaches under `load`, the lowest over all shares of reads if that is open.
pub fn reach(model: &VolumeModel, load: &OfferedLoad) -> ReachedRate {
    let of = |reads: f64| within(of_mix(&met(model, load, reads)), served(model, reads));
    let mixes = load.mixes().into_iter().map(of);
    let worst = mixes.reduce(|one, other| if lower(&other, &one) { other } else { one });
    worst.unwrap_or(ReachedRate { iops: None, limited_by: None, burst: None })
}

/// Time for which full credits of `model` allow `rate` requests per second of `load`, ns; `None` if they are not needed, or
/// bursts are billed instead.
pub fn burst_lasts_ns(model: &VolumeModel, load: &OfferedLoad, rate: f64) -> Option<u64> {
    let of_mix = |reads| spent(&met(model, load, reads), rate).filter_map(|met| lasts_ns(met, rate)).min();
    load.mixes().into_iter().filter_map(of_mix).min()
}

/// The rates that the limits with bursts leave of `load` when these are over, requests per second: of each by itself.
pub fn exhausted_rates(model: &VolumeModel, load: &OfferedLoad) -> Vec<f64> {
    let exceeds = |met: &LoadLimit| met.limit.peak().is_none_or(|peak| peak > met.limit.baseline());
    let of_mix = |reads| met(model, load, reads).into_iter().filter(exceeds).collect::<Vec<_>>();
    let all = load.mixes().into_iter().flat_map(of_mix);
    all.map(|met| met.limit.baseline().as_f64() / met.tokens).collect()
}

/// The limits whose credits a rate uses.
fn spent(met: &[LoadLimit], rate: f64) -> impl Iterator<Item = &LoadLimit> + Clone {
    met.iter().filter(move |met| rate * met.tokens > met.limit.baseline().as_f64())
}

/// Requests per second that the parallelism of a volume serves at a share of `reads`.
fn served(model: &VolumeModel, reads: f64) -> f64 {
    let Some(parallelism) = model.parallelism.map(f64::from) else { return f64::INFINITY };
    let read_ns = reads * mean_ns(&model.read_latency);
    let write_ns = (1.0 - reads) * mean_ns(&model.write_latency);
    // With limits of its own, each direction has servers of its own.
    let is_apart = !(model.reads.is_empty() && model.writes.is_empty());
    parallelism * 1e9 / if is_apart { read_ns.max(write_ns) } else { read_ns + write_ns }
}

/// A rate of which no more than `most` are served.
fn within(rate: ReachedRate, most: f64) -> ReachedRate {
    let is_served = |rate: f64| rate <= most;
    match rate.iops {
        Some(iops) if is_served(iops) => {
            let burst = rate.burst.map(|burst| BurstReach { iops: burst.iops.min(most), ..burst });
            ReachedRate { burst: burst.filter(|burst| burst.iops > iops * (1.0 + 1e-9)), ..rate }
        }
        None if most.is_infinite() => rate,
        _ => ReachedRate { iops: Some(most), limited_by: None, burst: None },
    }
}

/// True if bytes are limited, directly or by the I/O unit; otherwise the rate of large requests is unknown.
pub(crate) fn limits_bytes(model: &VolumeModel) -> bool {
    let mut stages = model.shared.iter().chain(&model.reads).chain(&model.writes);
    stages.any(|stage| stage.bytes.is_some() || stage.accounting.unit_bytes.is_some())
}

fn lower(one: &ReachedRate, other: &ReachedRate) -> bool {
    let level = |reach: &ReachedRate| {
        let sustained = reach.iops.unwrap_or(f64::INFINITY);
        (sustained, reach.burst.map_or(sustained, |burst| burst.iops))
    };
    level(one) < level(other)
}

fn of_mix(met: &[LoadLimit]) -> ReachedRate {
    let least = |level: &dyn Fn(&LoadLimit) -> Option<f64>| {
        let all = met.iter().filter_map(|met| Some((level(met)? / met.tokens, met.counted)));
        all.min_by(|one, other| one.0.total_cmp(&other.0))
    };
    let sustained = least(&|met| Some(met.limit.baseline().as_f64()));
    let peak = least(&|met| met.limit.peak().map(|peak| peak.as_f64()));
    let rate = peak.map_or(f64::INFINITY, |(rate, _)| rate);
    let burst = sustained.filter(|(sustained, _)| rate > sustained * (1.0 + 1e-9)).map(|_| {
        let spent = spent(met, rate);
        let lasts = spent.clone().filter_map(|met| lasts_ns(met, rate)).min();
        let refill = spent.filter_map(|met| met.limit.time_to_refill_ns()).max();
        BurstReach {
            iops: rate,
            limited_by: peak.map(|(_, counted)| counted),
            lasts_ns: lasts,
            refill_ns: refill,
        }
    });
    ReachedRate {
        iops: sustained.map(|(rate, _)| rate),
        limited_by: sustained.map(|(_, counted)| counted),
        burst,
    }
}

/// Time until full credits are exhausted at a rate above the baseline.
fn lasts_ns(met: &LoadLimit, rate: f64) -> Option<u64> {
    match met.limit {
        Limit::Credit { base, capacity, .. } => {
            let seconds = capacity as f64 / (rate * met.tokens - base.as_f64());
            Some((seconds * 1e9).round() as u64)
        }
        Limit::Window { burst_ns, .. } => Some(burst_ns),
        Limit::Rate(_) | Limit::OnDemand { .. } => None,
    }
}

/// Mean latency, ns.
pub(crate) fn mean_ns(latency: &VolumeLatency) -> f64 {
    match &latency.distribution {
        Distribution::Fixed(ns) => *ns as f64,
        Distribution::Quantiles(quantiles) => quantiles
            .windows(2)
            .map(|pair| {
                let share = f64::from(pair[1].per_million - pair[0].per_million) / 1e6;
                share * (pair[0].ns as f64 + pair[1].ns as f64) / 2.0
            })
            .sum(),
    }
}

/// The latency quantile at `per_million`, ns.
pub(crate) fn quantile_ns(latency: &VolumeLatency, per_million: u32) -> f64 {
    match &latency.distribution {
        Distribution::Fixed(ns) => *ns as f64,
        Distribution::Quantiles(quantiles) => {
            let above = quantiles.windows(2).find(|pair| per_million <= pair[1].per_million);
            let on_the_line = |pair: &[fathom_volume::Quantile]| {
                let width = f64::from(pair[1].per_million - pair[0].per_million);
                let share = f64::from(per_million.saturating_sub(pair[0].per_million)) / width;
                pair[0].ns as f64 + (pair[1].ns as f64 - pair[0].ns as f64) * share
            };
            above.map_or(quantiles.last().map_or(0.0, |last| last.ns as f64), on_the_line)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalog, Parameters};

    const KIB: f64 = 1024.0;

    fn model(id: &str, gib: u64) -> VolumeModel {
        let parameters = Parameters { size_bytes: Some(gib << 30), ..Parameters::default() };
        Catalog::shipped().get(id).unwrap().resolve(&parameters).unwrap().model
    }

    /// Checks the sustained rate, the burst rate, and the seconds of the burst.
    fn check(id: &str, gib: u64, load: OfferedLoad, sustained: f64, burst: Option<(f64, f64)>) {
        let found = reach(&model(id, gib), &load);
        let near = |one: f64, other: f64| (one - other).abs() <= other * 1e-5;
        assert!(near(found.iops.unwrap(), sustained), "{id} {gib} {load:?}: {found:?}");
        let seconds = |burst: BurstReach| burst.lasts_ns.map_or(0.0, |ns| ns as f64 / 1e9);
        match (found.burst, burst) {
            (None, None) => {}
            (Some(found), Some((rate, lasts))) => {
                assert!(
                    near(found.iops, rate) && near(seconds(found), lasts),
                    "{id} {gib} {load:?}: {found:?}"
                );
            }
            _ => panic!("{id} {gib} {load:?}: {found:?}"),
        }
    }

    #[test]
    fn rates_follow_from_limits_and_block_sizes() {
        let random = |kib: f64| OfferedLoad::of(kib * KIB, false);
        let sequential = |kib: f64| OfferedLoad::of(kib * KIB, true);
        // 50 GiB of gp2: 150 sustained, 3,000 for 5,400,000 / 2,850 s.
        check("aws-gp2-2016", 50, random(4.0), 150.0, Some((3000.0, 5_400_000.0 / 2850.0)));
        // 128 MiB/s are 2,048 of 64 KiB, which spend 1,898 credits per second.
        check("aws-gp2-2016", 50, random(64.0), 150.0, Some((2048.0, 5_400_000.0 / 1898.0)));
        // Merged into units of 256 KiB: 150 of those sustained are 9,600 of 4 KiB, and 128 MiB/s are 32,768.
        check("aws-gp2-2016", 50, sequential(4.0), 9600.0, Some((32_768.0, 5_400_000.0 / (512.0 - 150.0))));
        // 1 MiB at random is four units: 37.5 sustained, 128 by bandwidth, which are 512 units.
        check("aws-gp2-2016", 50, random(1024.0), 37.5, Some((128.0, 5_400_000.0 / (512.0 - 150.0))));
        check("aws-gp2-2016", 1000, random(4.0), 3000.0, None);
        check("aws-gp2-2016", 16_384, random(4.0), 10_000.0, None);
        // A whole MiB for each random request: 40 MiB/s sustained, 250 with burst credits: 1 TiB at 210 MiB/s.
        check("aws-st1", 1024, random(4.0), 40.0, Some((250.0, 1_048_576.0 / 210.0)));
        check("aws-st1", 1024, sequential(1024.0), 40.0, Some((250.0, 1_048_576.0 / 210.0)));
        check("do-volume-standard", 100, random(4.0), 5000.0, Some((7500.0, 60.0)));
        check("do-volume-standard-2018-04", 100, random(64.0), 200e6 / 65_536.0, None);
        // Separate directions: any mix reaches at least the slower one.
        check("gcp-pd-standard", 1000, random(4.0), 750.0, None);
        // One access of 8 ms at a time; eight of 2.36 ms.
        check("aws-ebs-standard-2012", 100, random(4.0), 125.0, None);
        let writes = OfferedLoad { read_fraction: Some(0.0), ..random(4.0) };
        check("qingcloud-capacity", 100, writes, 8.0 / 2.36e-3, None);
        check("gcp-pd-standard", 1000, OfferedLoad { read_fraction: Some(0.0), ..random(4.0) }, 1500.0, None);
        check(
            "gcp-pd-standard",
            1000,
            OfferedLoad { read_fraction: Some(0.25), ..random(4.0) },
            2000.0,
            None,
        );
    }

    #[test]
    fn each_limit_with_credits_leaves_a_rate_of_its_own() {
        let reads = |kib: f64| OfferedLoad { read_fraction: Some(1.0), ..OfferedLoad::of(kib * KIB, false) };
        let check = |id: &str, gib: u64, kib: f64, expected: &[f64]| {
            assert_eq!(exhausted_rates(&model(id, gib), &reads(kib)), expected, "{id}");
        };
        check("aws-gp2", 50, 4.0, &[150.0]);
        check("aws-gp3", 50, 4.0, &[]);
        // P4: 120 IOPS, and 25 MB/s.
        check("azure-premium-ssd", 32, 62.5, &[120.0, 25e6 / 64_000.0]);
    }

    #[test]
    fn mean_and_quantiles_of_latencies() {
        let around = VolumeLatency::around(1_000_000);
        assert!((mean_ns(&around) - 1e6).abs() < 1e3, "{}", mean_ns(&around));
        let p50 = quantile_ns(&around, 500_000);
        assert!((quantile_ns(&around, 990_000) / p50 - 2.0).abs() < 1e-3);
        assert!((quantile_ns(&around, 1_000_000) / p50 - 10.0).abs() < 1e-3);
        assert_eq!((mean_ns(&VolumeLatency::fixed(7)), quantile_ns(&VolumeLatency::fixed(7), 1)), (7.0, 7.0));
    }
}
