//! From baselines to limits: the burst rule of a type on top of its baselines.

use fathom_volume::{Billing, Limit, TokenRate};

use crate::amount::{self, TIB};
use crate::levels::Wanted;
use crate::wire::{BurstKind, BurstModel, Wire};

/// Assumed length of a burst if it is not published.
const USUAL_BURST_S: f64 = 60.0;

/// The limits on both directions together, and the assumptions behind them.
#[derive(Clone, Debug, Default)]
pub(crate) struct AssumedLimits {
    pub(crate) ios: Option<Limit>,
    pub(crate) bytes: Option<Limit>,
    pub(crate) billing: Option<Billing>,
    pub(crate) assumptions: Vec<String>,
}

/// A limit without a burst; `None` if there is none.
pub(crate) fn plain(level: Option<u64>) -> Result<Option<Limit>, String> {
    match level {
        None => Ok(None),
        Some(level) => rate(level).map(|rate| Some(Limit::Rate(rate))),
    }
}

fn rate(level: u64) -> Result<TokenRate, String> {
    TokenRate::per_second(level).ok_or_else(|| format!("its rules result in {level} per second"))
}

/// The limits of a volume with the baselines `ios` and `bytes`.
pub(crate) fn of(
    wire: &Wire,
    wanted: Wanted<'_>,
    ios: Option<u64>,
    bytes: Option<u64>,
    on_demand: bool,
) -> Result<AssumedLimits, String> {
    let mut limits = AssumedLimits { ios: plain(ios)?, bytes: plain(bytes)?, ..AssumedLimits::default() };
    let unit = wire.unit_bytes();
    match wire.burst_model {
        BurstModel::None => {}
        BurstModel::Unspecified => {
            limits.assumptions.push("its burst rule is not published: bursts are omitted".to_owned())
        }
        BurstModel::OnDemandBilled => {
            limits.assumptions.push("on-demand bursts, which are billed, are omitted".to_owned());
        }
        BurstModel::IoCreditBucket => {
            let ends = wire.burst_applies_below_gib.map_or(u64::MAX, amount::gib);
            if wanted.size_bytes < ends {
                let capacity = wire.burst_bucket_ios.map_or(0, |ios| amount::of(ios, 1));
                let initial = wire.burst_initial_ios.map_or(capacity, |ios| amount::of(ios, 1));
                let burst = wire.burst_iops.map(|burst| amount::of(burst, 1));
                limits.ios = credit(ios, burst, capacity, initial)?;
            }
        }
        BurstModel::ThroughputCreditBucket => {
            let slope = |per_tib: Option<f64>| (per_tib.unwrap_or_default(), TIB);
            let burst = amount::linear(0.0, slope(wire.burst_throughput_per_tib), wanted.size_bytes, unit);
            let most = wire.burst_throughput_max.map_or(u64::MAX, |most| amount::of(most, unit));
            let capacity =
                amount::linear(0.0, slope(wire.burst_bucket_mib_per_tib), wanted.size_bytes, 1 << 20);
            let initial =
                wire.burst_initial_fill_fraction.map_or(capacity, |share| amount::of(share, capacity));
            limits.bytes = credit(bytes, Some(burst.min(most)), capacity, initial)?;
        }
        BurstModel::DualCreditBucket => dual(wire, wanted, ios, bytes, on_demand, &mut limits)?,
        BurstModel::TimedWindow => windows(wire, ios, bytes, unit, &mut limits)?,
    }
    Ok(limits)
}

/// Two buckets, I/Os and bytes, each with the burst beyond the baseline for a fixed time; or on-demand bursts.
fn dual(
    wire: &Wire,
    wanted: Wanted<'_>,
    ios: Option<u64>,
    bytes: Option<u64>,
    on_demand: bool,
    limits: &mut AssumedLimits,
) -> Result<(), String> {
    let unit = wire.unit_bytes();
    let Some(tier) = wanted.tier else { return Ok(()) };
    let burst_ios = tier.burst_iops.map(|burst| amount::of(burst, 1));
    let burst_bytes = tier.burst_throughput.map(|burst| amount::of(burst, unit));
    let lasts = wire.burst_duration_s.unwrap_or_default();
    let bucket = |base: Option<u64>, burst: Option<u64>| {
        let beyond = burst.unwrap_or_default().saturating_sub(base.unwrap_or_default());
        let capacity = amount::of(lasts, beyond);
        let initial = wire.burst_initial_fill_fraction.map_or(capacity, |share| amount::of(share, capacity));
        credit(base, burst, capacity, initial)
    };
    if tier.burst_kind != Some(BurstKind::OnDemand) {
        limits.ios = bucket(ios, burst_ios)?;
        limits.bytes = bucket(bytes, burst_bytes)?;
        return Ok(());
    }
    if !on_demand {
        limits.assumptions.push("on-demand bursts, which must be ordered, are omitted".to_owned());
        return Ok(());
    }
    let billed = |base: Option<u64>, burst: Option<u64>| match (base, burst) {
        (Some(base), Some(burst)) => Ok(Some(Limit::OnDemand { base: rate(base)?, burst: rate(burst)? })),
        (base, _) => plain(base),
    };
    limits.ios = billed(ios, burst_ios)?;
    limits.bytes = billed(bytes, burst_bytes)?;
    limits.billing =
        wire.burst_transaction_bytes.map(|bytes| Billing { transaction_bytes: amount::of(bytes, 1) });
    Ok(())
}

fn windows(
    wire: &Wire,
    ios: Option<u64>,
    bytes: Option<u64>,
    unit: u64,
    limits: &mut AssumedLimits,
) -> Result<(), String> {
    if wire.burst_duration_s.is_none() {
        limits.assumptions.push("its burst duration is not published: assumed 60 s".to_owned());
    }
    let lasts = wire.burst_duration_s.unwrap_or(USUAL_BURST_S);
    if wire.burst_cooldown_s.is_none() {
        let text = format!(
            "the pause between its bursts is not published: assumed {lasts} s, the length of a burst"
        );
        limits.assumptions.push(text);
    }
    let (burst_ns, rest_ns) =
        (amount::seconds(lasts), amount::seconds(wire.burst_cooldown_s.unwrap_or(lasts)));
    let window = |base: Option<u64>, burst: Option<u64>| match (base, burst) {
        (Some(base), Some(burst)) if burst > base => {
            Ok(Some(Limit::Window { base: rate(base)?, burst: rate(burst)?, burst_ns, rest_ns }))
        }
        (base, _) => plain(base),
    };
    limits.ios = window(ios, wire.burst_iops.map(|burst| amount::of(burst, 1)))?;
    limits.bytes = window(bytes, wire.burst_throughput.map(|burst| amount::of(burst, unit)))?;
    Ok(())
}

/// A burst bucket if the burst rate is above the baseline, else the baseline alone.
pub(crate) fn credit(
    base: Option<u64>,
    burst: Option<u64>,
    capacity: u64,
    initial: u64,
) -> Result<Option<Limit>, String> {
    match (base, burst) {
        (Some(base), Some(burst)) if burst > base => {
            let (base, burst) = (rate(base)?, Some(rate(burst)?));
            Ok(Some(Limit::Credit { base, burst, capacity, initial }))
        }
        (base, _) => plain(base),
    }
}
