//! `sim:custom`: a volume defined by its limits. An omitted limit is unlimited.

use fathom_volume::{Accounting, FirstTouch, Limit, LimitStage, TokenRate, VolumeLatency, VolumeModel};

use crate::host_cache;
use crate::parts::UnusedParts;
use crate::resolve::first_touch;
use crate::resolve::{USUAL_SIZE, is_limited, stage};
use crate::target::SimulatedTarget;

/// Parses the parameters of `sim:custom`.
pub(crate) fn read(parts: &mut UnusedParts<'_>) -> Result<SimulatedTarget, String> {
    let size_bytes = parts.capacity("size")?.unwrap_or(USUAL_SIZE);
    let unit =
        parts.bytes("io_unit")?.map(|bytes| u32::try_from(bytes).map_err(|_| "io_unit is 4 GiB or more"));
    let unit_bytes = unit.transpose()?;
    let merges_sequential = parts.switch("io_merge")?.unwrap_or(false);
    let accounting = Accounting { unit_bytes, merges_sequential, whole_units: false };
    let is_shared = parts.switch("shared")?.unwrap_or(true);
    let both = limits(parts, "", accounting)?;
    let mut reads = limits(parts, "read_", accounting)?;
    let mut writes = limits(parts, "write_", accounting)?;
    let mut shared = vec![both];
    if !is_shared {
        // The shared value for each direction, unless it has its own.
        for one in [&mut reads, &mut writes] {
            let both = &shared[0];
            *one = stage("volume", accounting, one.ios.or(both.ios), one.bytes.or(both.bytes));
        }
        shared.clear();
    }
    let limited = |stages: Vec<LimitStage>| stages.into_iter().filter(is_limited).collect::<Vec<_>>();
    let (read_latency, write_latency) = latencies(parts)?;
    let mut assumptions = Vec::new();
    let cache = match host_cache::read(parts)? {
        Some(caching) => caching.model(None, &mut assumptions)?,
        None => None,
    };
    let model = VolumeModel {
        shared: limited(shared),
        reads: limited(vec![reads]),
        writes: limited(vec![writes]),
        read_latency,
        write_latency,
        first_touch: penalty(parts)?,
        cache,
        ..VolumeModel::unlimited(size_bytes)
    };
    Ok(SimulatedTarget { id: "custom".to_owned(), chosen: None, model, seed: 0, tier: None, assumptions })
}

/// The limits whose names begin with `prefix`.
fn limits(parts: &mut UnusedParts<'_>, prefix: &str, accounting: Accounting) -> Result<LimitStage, String> {
    let key = |name: &str| format!("{prefix}{name}");
    let base = parts.number(&key("iops"))?;
    let (burst, bucket) = (parts.number(&key("burst_iops"))?, parts.number(&key("bucket_ios"))?);
    let ios = limit((base, burst, bucket), &[key("iops"), key("burst_iops"), key("bucket_ios")])?;
    let base = parts.bytes(&key("bandwidth"))?;
    let (burst, bucket) = (parts.bytes(&key("burst_bandwidth"))?, parts.bytes(&key("bucket_bytes"))?);
    let bytes =
        limit((base, burst, bucket), &[key("bandwidth"), key("burst_bandwidth"), key("bucket_bytes")])?;
    Ok(stage("volume", accounting, ios, bytes))
}

/// A baseline, optionally with a burst bucket; an omitted burst rate is unlimited.
fn limit(
    (base, burst, bucket): (Option<u64>, Option<u64>, Option<u64>),
    [base_key, burst_key, bucket_key]: &[String; 3],
) -> Result<Option<Limit>, String> {
    let rate = |key: &str, level: u64| {
        TokenRate::per_second(level).ok_or_else(|| format!("{key}={level} is too large"))
    };
    match (base, burst, bucket) {
        (None, None, None) => Ok(None),
        (Some(base), None, None) => Ok(Some(Limit::Rate(rate(base_key, base)?))),
        (Some(base), Some(burst), _) if burst < base => {
            Err(format!("{burst_key}={burst} is below the baseline {base_key}={base}"))
        }
        (Some(base), burst, Some(capacity)) => {
            let burst = burst.map(|burst| rate(burst_key, burst)).transpose()?;
            Ok(Some(Limit::Credit { base: rate(base_key, base)?, burst, capacity, initial: capacity }))
        }
        (None, _, _) => Err(format!("a burst rate needs a baseline: add {base_key}")),
        (Some(_), Some(_), None) => Err(format!("{burst_key} needs a burst bucket: add {bucket_key}")),
    }
}

fn latencies(parts: &mut UnusedParts<'_>) -> Result<(VolumeLatency, VolumeLatency), String> {
    let both = parts.duration("latency")?.unwrap_or(0);
    let read = parts.duration("read_latency")?.unwrap_or(both);
    let write = parts.duration("write_latency")?.unwrap_or(both);
    let is_spread = parts.switch("latency_spread")?.unwrap_or(false);
    let of = |ns| if is_spread { VolumeLatency::around(ns) } else { VolumeLatency::fixed(ns) };
    Ok((of(read), of(write)))
}

/// `first_touch=1`: a first access counts twice; `first_touch=5ms`: it takes 5 ms longer; `initialization=200MiB`: it waits until its
/// block is initialized, which the whole volume is at this rate.
fn penalty(parts: &mut UnusedParts<'_>) -> Result<Option<FirstTouch>, String> {
    let penalty = match parts.text("first_touch") {
        None | Some("0") => None,
        Some("1") => Some(FirstTouch { counts_as: 2, ..first_touch() }),
        Some(text) => match fathom_model::units::parse_duration(text) {
            Ok(extra) => Some(FirstTouch { extra_ns: extra.0, ..first_touch() }),
            Err(_) => return Err(format!("first_touch={text} is not 0, 1 or a time, as in 5ms")),
        },
    };
    let Some(bytes) = parts.bytes("initialization")? else { return Ok(penalty) };
    let rate = TokenRate::per_second(bytes).ok_or_else(|| format!("initialization={bytes} is too large"))?;
    Ok(Some(FirstTouch { initialization: Some(rate), ..penalty.unwrap_or_else(first_touch) }))
}
