//! The rules of a type and the limits of one volume in sentences.

use fathom_model::LimitUnit;
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped, latency};
use fathom_volume::TokenRate;

use crate::entry::CatalogEntry;
use crate::levels::{chooses_bytes, chooses_iops};
use crate::sheet::{LimitDirection, Rule, Sheet, SheetLimit};
use crate::wire::{IopsModel, SharedBudget, ThroughputUnit, Wire};

impl CatalogEntry {
    /// What its rules are, how burst credits work, what counts as an I/O and what it costs, for the volume of `sheet`.
    pub fn explanation(&self, sheet: &Sheet) -> Vec<String> {
        let wire = &self.wire;
        let mut text: Vec<String> = match &wire.measured {
            Some(measured) => measured.explanation(),
            None => [iops_rule(wire), bandwidth_rule(wire)].into_iter().flatten().collect(),
        };
        text.extend(crossover(wire, sheet));
        text.extend(sheet.limits.iter().filter_map(burst));
        text.push(unit(wire, sheet));
        text.extend(sharing(wire).filter(|_| wire.measured.is_none()).map(str::to_owned));
        text.extend(wire.limits_scope.map(|scope| format!("The limits are {} (shared_by=4).", scope.text())));
        text.extend(wire.limits_window_ms.map(|window| {
            format!(
                "The limits are dealt out every {window} ms: requests beyond a window wait for the next one."
            )
        }));
        text.push(latency_text(sheet));
        text.extend(first_touch(wire));
        text.extend(self.initialization_text(sheet.size_bytes));
        text.extend(caching(wire));
        text.extend(cost(sheet));
        text
    }

    fn initialization_text(&self, size_bytes: u64) -> Option<String> {
        let (Some(least), Some(most)) = self.initialization_range() else { return None };
        let takes =
            |rate: u64| TokenRate::per_second(rate).map(|rate| duration(Nanos(rate.time_for(size_bytes))));
        Some(format!(
            "A volume from a snapshot is initialized at a rate that you choose, {}/s ({}) to {}/s ({}): \
             initialization={}. Until then a first access waits for its block.",
            bytes(least),
            takes(least)?,
            bytes(most),
            takes(most)?,
            bytes(least).replace(' ', "")
        ))
    }
}

/// `3,000`, and decimals where there are any.
fn figure(value: f64) -> String {
    if value.fract() == 0.0 { grouped(value as u64) } else { format!("{value}") }
}

/// `, at least 100, at most 10,000`.
fn bounds(least: Option<f64>, most: Option<f64>) -> String {
    let least = least.map(|least| format!(", at least {}", figure(least))).unwrap_or_default();
    let most = most.map(|most| format!(", at most {}", figure(most))).unwrap_or_default();
    format!("{least}{most}")
}

/// `120 + 0.2` or `3`.
fn line(intercept: Option<f64>, slope: f64) -> String {
    match intercept.filter(|intercept| *intercept > 0.0) {
        Some(intercept) => format!("{} + {}", figure(intercept), figure(slope)),
        None => figure(slope),
    }
}

fn iops_rule(wire: &Wire) -> Option<String> {
    let by_size = |name: &str, slope: Option<f64>, most: Option<f64>| {
        let rate = line(wire.iops_intercept, slope?);
        Some(format!("{name} follow from the size: {rate} per GiB{}.", bounds(wire.iops_min, most)))
    };
    match wire.iops_model {
        IopsModel::Fixed => wire.iops_max.map(|most| format!("Every size has {} IOPS.", figure(most))),
        IopsModel::LinearClamped | IopsModel::AffineClamped => {
            let both = by_size("IOPS", wire.iops_per_gib, wire.iops_max);
            let read = by_size("Read IOPS", wire.iops_read_per_gib, wire.iops_read_max);
            let write = by_size("Write IOPS", wire.iops_write_per_gib, wire.iops_write_max);
            let units = wire.allocation_unit_gib;
            let units = units.map(|unit| format!("Only whole units of {} GiB count.", figure(unit)));
            let extra = wire.iops_extra_max.map(|most| {
                let from = wire.iops_extra_from_gib;
                let from = from.map(|gib| format!(" from {} GiB on", figure(gib))).unwrap_or_default();
                format!("Up to {} more can be bought{from}.", figure(most))
            });
            let all: Vec<String> = [both, read, write, units, extra].into_iter().flatten().collect();
            (!all.is_empty()).then(|| all.join(" "))
        }
        IopsModel::Provisioned => {
            if let Some(ratio) = wire.iops_per_provisioned_throughput {
                return Some(format!("IOPS follow from the chosen bandwidth: {} per unit.", figure(ratio)));
            }
            if !wire.iops_provisioned_by_size.is_empty() {
                let steps = wire.iops_provisioned_by_size.iter().map(|step| {
                    let (from, range) = (figure(step.from_gib), [step.least, step.most].map(figure));
                    format!("{} to {} from {from} GiB on", range[0], range[1])
                });
                return Some(format!("IOPS are chosen: {}.", steps.collect::<Vec<_>>().join(", ")));
            }
            let range = bounds(wire.iops_provisioned_min, wire.iops_provisioned_max);
            let ratio = wire.iops_provisioned_per_gib_max;
            let ratio = ratio.map(|ratio| format!(" and {} per GiB", figure(ratio))).unwrap_or_default();
            let included = wire.iops_included;
            let included = included
                .map(|included| format!("; {} are included in the price of the size", figure(included)));
            Some(format!("IOPS are chosen{range}{ratio}{}.", included.unwrap_or_default()))
        }
        IopsModel::TieredBySize => Some(
            "The size decides the tier, and each tier has its own limits; a tier is sold as a whole."
                .to_owned(),
        ),
        IopsModel::TieredByInstance => Some("The instance type decides the limits.".to_owned()),
        IopsModel::TieredByCount => Some("The number of disks decides the limits.".to_owned()),
        IopsModel::DerivedFromThroughput => {
            let most = wire.iops_max.map(|most| format!("At most {} I/Os per second, ", figure(most)));
            Some(format!("{}limited by bandwidth otherwise.", most.unwrap_or_default()))
        }
        IopsModel::Range | IopsModel::MeasuredOnly | IopsModel::Unspecified => None,
    }
}

fn bandwidth_rule(wire: &Wire) -> Option<String> {
    let unit = match wire.throughput_unit? {
        ThroughputUnit::Mebibytes => "MiB/s",
        ThroughputUnit::Megabytes => "MB/s",
    };
    if chooses_bytes(wire) {
        let range = bounds(wire.throughput_provisioned_min, wire.throughput_provisioned_max);
        let included = wire.throughput_included;
        let included = included.map(|included| format!("; {} {unit} are included", figure(included)));
        return Some(format!("Bandwidth is chosen{range} {unit}{}.", included.unwrap_or_default()));
    }
    if !wire.throughput_by_iops.is_empty() && chooses_iops(wire) {
        return Some("Bandwidth follows from the chosen IOPS.".to_owned());
    }
    if let Some(last) = wire.throughput_by_size.last() {
        let steps = wire.throughput_by_size.iter().map(|step| match step.above_gib {
            0.0 => format!("{} {unit}", figure(step.throughput)),
            above => format!("{} {unit} above {} GiB", figure(step.throughput), figure(above)),
        });
        let text = steps.collect::<Vec<_>>().join(", ");
        return (last.throughput > 0.0).then(|| format!("Bandwidth is {text}."));
    }
    if let (Some(read), Some(write)) = (wire.throughput_read_per_gib, wire.throughput_write_per_gib) {
        let (read, write) = (figure(read), figure(write));
        let most = bounds(None, wire.throughput_max);
        return Some(format!(
            "Bandwidth follows from the size: {read} {unit} per GiB for reads, {write} for writes{most}."
        ));
    }
    let each = [("reads", wire.throughput_read_max), ("writes", wire.throughput_write_max)];
    let each: Vec<String> = each
        .iter()
        .filter_map(|(name, most)| Some(format!("{} {unit} for {name}", figure((*most)?))))
        .collect();
    let slope = wire.throughput_per_gib.map(|slope| (slope, "GiB"));
    if let Some((slope, per)) = slope.or(wire.throughput_per_tib.map(|slope| (slope, "TiB"))) {
        let rate = line(wire.throughput_intercept, slope);
        let range = bounds(wire.throughput_min, wire.throughput_max);
        let each = match each.is_empty() {
            true => String::new(),
            false => format!(", at most {}", each.join(" and ")),
        };
        return Some(format!("Bandwidth follows from the size: {rate} {unit} per {per}{range}{each}."));
    }
    match wire.throughput_max {
        _ if !each.is_empty() => Some(format!("Bandwidth is {}.", each.join(" and "))),
        Some(most) => Some(format!("Bandwidth is {} {unit}.", figure(most))),
        None => None,
    }
}

/// Where one limit takes over from the other.
fn crossover(wire: &Wire, sheet: &Sheet) -> Option<String> {
    let of = |unit: LimitUnit| {
        let own = |limit: &&SheetLimit| limit.unit == unit && limit.direction == LimitDirection::Total;
        sheet.limits.iter().find(own).map(|limit| limit.baseline_rate)
    };
    let (ios, rate) = (of(LimitUnit::Ios)?, of(LimitUnit::Bytes)?);
    let size = rate.checked_div(ios)?;
    match sheet.io_unit_bytes {
        Some(_) if wire.io_whole_units => return None,
        Some(unit) if size > unit => {
            return Some(format!(
                "The IOPS limit applies to every block size: {} I/Os of {} are {}/s, below the bandwidth limit of {}/s.",
                grouped(ios),
                bytes(unit),
                bytes(ios.saturating_mul(unit)),
                bytes(rate)
            ));
        }
        _ => {}
    }
    Some(format!(
        "Both limits apply at once: small I/Os reach the IOPS limit of {}, I/Os larger than {} the bandwidth limit of {}/s.",
        grouped(ios),
        bytes(size),
        bytes(rate)
    ))
}

/// How its bursts work.
fn burst(limit: &SheetLimit) -> Option<String> {
    let rate = |level: u64| limit.unit.rate_text(level as f64);
    let time = |ns: Option<u64>| ns.map(|ns| duration(Nanos(ns)));
    let (base, peak) = (rate(limit.baseline_rate), rate(limit.burst_rate?));
    Some(match limit.rule {
        Rule::None => return None,
        Rule::Credit { capacity } => {
            let (credits, each, spends) = match limit.unit {
                LimitUnit::Ios => (grouped(capacity), grouped(limit.baseline_rate), "each I/O spends one"),
                LimitUnit::Bytes => {
                    (bytes(capacity), bytes(limit.baseline_rate), "each byte is spent from them")
                }
            };
            let lasts = time(limit.empty_ns).map(|time| format!(" A full bucket lasts {time} at this rate"));
            let refill = time(limit.refill_ns).map(|time| format!(" and refills in {time} when idle"));
            format!(
                "Burst credits: the bucket holds {credits}; every second adds {each}, which is the baseline, and {spends}. While \
                 credits remain, the limit is {peak}, afterwards {base}.{}{}.",
                lasts.unwrap_or_default(),
                refill.unwrap_or_default()
            )
        }
        Rule::Window => {
            let lasts = time(limit.empty_ns).map(|time| format!(" for {time}")).unwrap_or_default();
            format!("Burst window: {peak}{lasts}, then {base} for a pause before the next burst.")
        }
        Rule::Billed => {
            format!("On-demand bursts: up to {peak}; I/O above the baseline of {base} is billed.")
        }
    })
}

/// What counts as an I/O.
fn unit(wire: &Wire, sheet: &Sheet) -> String {
    let Some(unit_bytes) = sheet.io_unit_bytes else {
        return "Each I/O counts as one, whatever its size.".to_owned();
    };
    let unit = bytes(unit_bytes);
    let mut text = format!("An I/O of up to {unit} counts as one, a larger one as several.");
    if wire.io_whole_units {
        text.push_str(&format!(" A smaller random I/O is charged all of {unit}."));
    }
    if sheet.merges_sequential {
        let count = unit_bytes / 4096;
        text.push_str(&format!(
            " Adjacent sequential I/Os count together: {} of 4 KiB are one, unless the client waits for a sync between them.",
            grouped(count.max(1))
        ));
    }
    text
}

fn sharing(wire: &Wire) -> Option<&'static str> {
    match wire.limits_shared_read_write {
        SharedBudget::Known(true) => Some("Reads and writes share the limits."),
        SharedBudget::Known(false) => Some("Reads and writes have limits of their own."),
        SharedBudget::Unknown(_) => None,
    }
}

fn latency_text(sheet: &Sheet) -> String {
    let (read, write) = (latency(sheet.read_lat_mean_ns), latency(sheet.write_lat_mean_ns));
    let times = if read == write {
        format!("An I/O takes {read}")
    } else {
        format!("A read takes {read} and a write {write}")
    };
    let how = if sheet.is_latency_assumed { " (assumed, not published)" } else { " on average" };
    let depth = sheet.blocks.first().and_then(|block| Some((block.iodepth?, block.random)));
    let depth = depth.and_then(|(depth, rate)| {
        let most = rate.burst.map(|burst| burst.iops).or(rate.iops)?;
        Some(format!("; {} IOPS need queue depth {}", grouped(most as u64), grouped(depth)))
    });
    format!("{times} without queueing delay{how}{}.", depth.unwrap_or_default())
}

fn first_touch(wire: &Wire) -> Option<String> {
    let lost = wire.first_touch_penalty_fraction?;
    Some(format!(
        "First accesses to the blocks of a new or restored volume lose {} % of the rate (first_touch=1).",
        figure((lost * 100.0).round())
    ))
}

fn caching(wire: &Wire) -> Option<String> {
    let modes: Vec<&str> = wire.caching_modes.iter().map(|mode| mode.name()).collect();
    (modes.len() > 1).then(|| {
        format!("Host caching is {} (cache=); requests that the cache serves do not count.", modes.join(", "))
    })
}

/// What the volume costs, part by part.
fn cost(sheet: &Sheet) -> Option<String> {
    let month = sheet.month.as_ref()?;
    let currency = &month.price.currency;
    let size = bytes(sheet.size_bytes);
    let paid = month.parts.iter().filter(|part| part.cost > 0.0);
    let parts: Vec<String> = paid.map(|part| format!("{:.2} for {}", part.cost, part.what)).collect();
    let known = format!("{size} cost {:.2} {currency} per month ({})", month.total, parts.join(", "));
    let unknown = format!("the price of its {} is unknown", month.unknown.join(" and its "));
    Some(match (parts.is_empty(), month.is_whole()) {
        (false, true) => format!("{known}."),
        (false, false) => format!("{known}; {unknown}."),
        (true, false) => format!("The price of {size} is unknown: {unknown}."),
        (true, true) => return None,
    })
}
