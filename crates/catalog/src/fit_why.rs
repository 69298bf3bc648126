//! Why the best volume of a type does not meet a need; and notes on a volume that does.

use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped};
use fathom_predict::{LimitUnit, ReachedRate, is_limited, limits_bytes, reach, serves};
use fathom_volume::VolumeModel;

use crate::amount::GIB;
use crate::entry::{CatalogEntry, Lifecycle};
use crate::fit::{UnsuitableReason, VolumeNeed};
use crate::most::volumes;
use crate::resolve::{Parameters, Resolved};
use crate::sheet::ASSUMED_LATENCY;

/// Published IOPS apply to requests of at most about this many bytes.
const SMALL: f64 = 16_384.0;

/// The reason, and its text.
pub(crate) fn why_not(entry: &CatalogEntry, need: &VolumeNeed) -> (UnsuitableReason, String) {
    let best = volumes(entry, need.size_bytes.div_ceil(GIB)).into_iter().filter_map(|parameters| {
        let parameters = Parameters { instance: need.instance.clone(), ..parameters };
        let resolved = entry.resolve(&parameters).ok()?;
        Some((reach(&resolved.model, &need.load), resolved))
    });
    let level = |reach: &ReachedRate| reach.iops.unwrap_or(f64::INFINITY);
    let peak = |reach: &ReachedRate| reach.burst.map_or(level(reach), |burst| burst.iops);
    // A burst may meet a recurring need, but not a permanent one.
    let merit = |reach: &ReachedRate| if need.burst.is_some() { peak(reach) } else { level(reach) };
    let Some((best, resolved)) = best.max_by(|one, other| merit(&one.0).total_cmp(&merit(&other.0))) else {
        return (UnsuitableReason::Size, "not available in that size".to_owned());
    };
    let sustained = level(&best);
    let lasting = rate_text(best.limited_by, sustained, need);
    if let Some(burst) = best.burst.filter(|burst| burst.iops >= need.iops * (1.0 - 1e-9)) {
        let lasts = match burst.lasts_ns {
            Some(ns) => format!("for {} at most", duration(Nanos(ns))),
            None => "at extra cost".to_owned(),
        };
        let why = match need.burst {
            None => format!("{lasting} sustained; {} {lasts}", rate_text(burst.limited_by, burst.iops, need)),
            Some(_) => format!(
                "{} {lasts}, {lasting} at baseline: not enough for each burst, or refills too slowly",
                rate_text(burst.limited_by, burst.iops, need)
            ),
        };
        return (UnsuitableReason::Burst, why);
    }
    let (limited_by, rate) = match best.burst.filter(|_| need.burst.is_some()) {
        Some(burst) => (burst.limited_by, burst.iops),
        None => (best.limited_by, sustained),
    };
    let reason = if limited_by == Some(LimitUnit::Bytes) {
        UnsuitableReason::Throughput
    } else {
        UnsuitableReason::Iops
    };
    let of = match (&resolved.tier, entry.size_range_gib().1) {
        (Some(tier), _) => format!(" with {tier}"),
        (None, Some(_)) => format!(" at {}", bytes(resolved.model.size_bytes)),
        (None, None) => String::new(),
    };
    let on = need.instance.as_ref().map(|instance| format!(" on {instance}")).unwrap_or_default();
    (reason, format!("at most {}{of}{on}", rate_text(limited_by, rate, need)))
}

/// The rate of requests like those of the need, in the unit of its limit.
fn rate_text(limited_by: Option<LimitUnit>, rate: f64, need: &VolumeNeed) -> String {
    let mean = need.load.mean_bytes();
    match limited_by {
        Some(LimitUnit::Bytes) => format!("{} MiB/s", decimal(rate * mean / f64::from(1 << 20))),
        _ => {
            let size = match need.load.blocks.as_slice() {
                [(block, _)] => bytes(*block as u64),
                _ => format!("{} on average", bytes(mean as u64)),
            };
            format!("{} IOPS of {size}", grouped(rate as u64))
        }
    }
}

fn decimal(figure: f64) -> String {
    if figure >= 100.0 { grouped(figure.round() as u64) } else { format!("{figure:.1}") }
}

/// A required figure that is not published, so that a volume cannot be shown to meet it.
pub(crate) fn unpublished(model: &VolumeModel, need: &VolumeNeed) -> Option<String> {
    let is_large = need.load.mean_bytes() > SMALL;
    match () {
        () if (need.in_bytes || is_large) && !limits_bytes(model) => {
            Some("its bandwidth is not published".to_owned())
        }
        () if need.in_bytes && !is_limited(model, &need.load, LimitUnit::Bytes) => {
            Some("its bandwidth is not published".to_owned())
        }
        () if need.in_ios && !is_limited(model, &need.load, LimitUnit::Ios) => {
            Some("its IOPS are not published".to_owned())
        }
        () => None,
    }
}

/// Notes on a volume that meets the need.
pub(crate) fn notes(entry: &CatalogEntry, need: &VolumeNeed, resolved: &Resolved) -> Vec<String> {
    let mut notes = Vec::new();
    match entry.lifecycle() {
        Lifecycle::Current => {}
        Lifecycle::Previous => notes.push("its provider recommends another type".to_owned()),
        Lifecycle::Historical => notes.push("no longer sold with these rules".to_owned()),
    }
    if !entry.is_persistent() {
        notes.push("its data are lost with the instance".to_owned());
    }
    if !entry.named_tiers().is_empty() {
        notes.push("its size depends on the instance and is not in the catalogue".to_owned());
    }
    let leans = !serves(&resolved.model, &need.load, need.iops, None);
    if leans && let Some(burst) = reach(&resolved.model, &need.load).burst {
        let lasts =
            burst.lasts_ns.map(|ns| format!("; the burst lasts {} at full rate", duration(Nanos(ns))));
        notes.push(format!("by burst{}", lasts.unwrap_or_default()));
    }
    let reported = |text: &&String| !text.starts_with(ASSUMED_LATENCY) || !need.latency.is_empty();
    notes.extend(resolved.assumptions.iter().filter(reported).cloned());
    notes.extend(
        entry.facts().find(|(name, _)| *name == "limits_scope").map(|(_, text)| format!("limits {text}")),
    );
    notes
}
