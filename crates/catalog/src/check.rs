//! Validation of an entry: a source, a date and plausible numbers.

use fathom_model::IopsPrice;
use toml::Table;

use crate::amount;
use crate::entry::CatalogEntry;
use crate::levels::iops_range;
use crate::resolve::Parameters;
use crate::wire::{BurstModel, IopsModel, ProvisionedStep, Wire};

const MEDIA: [&str; 8] = ["hdd", "ssd", "nvme", "hybrid", "local", "local_ssd", "local_nvme", "unknown"];

/// Sizes that a volume can have.
const SIZES_GIB: std::ops::RangeInclusive<f64> = 0.001..=1e9;

/// Fields whose number may be 0.
const MAY_BE_ZERO: [&str; 4] =
    ["iops_intercept", "throughput_intercept", "burst_initial_ios", "burst_initial_fill_fraction"];

/// The first invalid field of an entry, which `table` holds as written, and the reason.
pub(crate) fn problem<'a>(entry: &CatalogEntry, table: &'a Table) -> Option<(&'a str, String)> {
    let wire = &entry.wire;
    text_fields(wire)
        .or_else(|| invalid_number(table))
        .or_else(|| tiers(wire))
        .or_else(|| ordered(wire))
        .or_else(|| missing(wire, table))
        .or_else(|| priced(wire))
        .or_else(|| measured(wire))
        .or_else(|| invalid_volumes(entry))
}

/// Names, source and date.
fn text_fields(wire: &Wire) -> Option<(&'static str, String)> {
    let texts = [("provider", &wire.provider), ("type_name", &wire.type_name), ("source", &wire.source)];
    if let Some((field, _)) = texts.into_iter().find(|(_, text)| text.trim().is_empty()) {
        return Some((field, "is empty".to_owned()));
    }
    let year = wire.as_of.get(..4).and_then(|year| year.parse::<u16>().ok());
    if !year.is_some_and(|year| (2006..2100).contains(&year)) {
        return Some(("as_of", format!("{:?} does not begin with a year", wire.as_of)));
    }
    let is_known = MEDIA.contains(&wire.media.as_str());
    (!is_known).then(|| ("media", format!("{:?} is not one of {}", wire.media, MEDIA.join(", "))))
}

/// The numbers of an entry and their fields.
fn numbers(table: &Table) -> impl Iterator<Item = (&str, f64)> {
    table.iter().filter_map(|(field, value)| {
        let whole = value.as_integer().map(|whole| whole as f64);
        Some((field.as_str(), value.as_float().or(whole)?))
    })
}

/// No number is negative, no share above 1.
fn invalid_number(table: &Table) -> Option<(&str, String)> {
    numbers(table).find_map(|(field, number)| {
        let reason = match number {
            _ if !number.is_finite() => format!("{number} is not a number"),
            _ if number < 0.0 => format!("{number} is below 0"),
            _ if number > 1e12 => format!("{number} is too large"),
            _ if field.starts_with("size_") && !SIZES_GIB.contains(&number) => {
                format!("{number} is not between {} and {}", SIZES_GIB.start(), SIZES_GIB.end())
            }
            _ if field.ends_with("_fraction") && number > 1.0 => format!("{number} is above 1"),
            1.0 if field == "first_touch_penalty_fraction" => "must be below 1".to_owned(),
            0.0 if !MAY_BE_ZERO.contains(&field) => "is 0: omit it instead".to_owned(),
            _ => return None,
        };
        Some((field, reason))
    })
}

fn tiers(wire: &Wire) -> Option<(&'static str, String)> {
    let is_bad = |figure: Option<f64>| figure.is_some_and(|figure| !(figure > 0.0 && figure <= 1e12));
    let bad = wire.tiers.iter().find(|tier| {
        [
            tier.size_gib, tier.iops, tier.read_iops, tier.write_iops, tier.throughput, tier.burst_iops,
            tier.burst_throughput,
        ]
        .into_iter()
        .any(is_bad)
    });
    if let Some(tier) = bad {
        return Some(("tiers", format!("{} has an invalid value", tier.name)));
    }
    let falls = wire.tiers.windows(2).find(|pair| pair[0].size_gib > pair[1].size_gib);
    if let Some(pair) = falls {
        return Some(("tiers", format!("{} is smaller than the tier before it", pair[1].name)));
    }
    let steps = wire
        .throughput_by_size
        .iter()
        .map(|step| step.above_gib)
        .zip(wire.throughput_by_size.iter().map(|step| step.throughput));
    if steps.clone().any(|(above, throughput)| above < 0.0 || is_bad(Some(throughput)))
        || !steps.map(|(above, _)| above).is_sorted_by(|one, next| one < next)
    {
        return Some(("throughput_by_size", "must rise in size, and be above 0".to_owned()));
    }
    let provisioned = &wire.iops_provisioned_by_size;
    let is_range =
        |step: &ProvisionedStep| step.from_gib > 0.0 && 0.0 < step.least && step.least <= step.most;
    if !provisioned.iter().all(is_range)
        || !provisioned.is_sorted_by(|one, next| one.from_gib < next.from_gib)
    {
        return Some(("iops_provisioned_by_size", "must rise in size, each with a range".to_owned()));
    }
    let is_bad_step = |step: &crate::wire::IopsStep| {
        step.above_iops < 0.0 || is_bad(Some(step.per_iops)) || is_bad(Some(step.throughput_max))
    };
    let bad = wire.throughput_by_iops.iter().any(is_bad_step);
    bad.then(|| ("throughput_by_iops", "has an invalid value".to_owned()))
}

/// No minimum is above its maximum.
fn ordered(wire: &Wire) -> Option<(&'static str, String)> {
    let pairs = [
        ("size_min_gib", wire.size_min_gib, wire.size_max_gib),
        ("iops_min", wire.iops_min, wire.iops_max),
        ("iops_included", wire.iops_included, wire.iops_provisioned_max),
        ("iops_provisioned_min", wire.iops_provisioned_min, wire.iops_provisioned_max),
        ("throughput_min", wire.throughput_min, wire.throughput_max),
        ("initialization_min", wire.initialization_min, wire.initialization_max),
        ("throughput_included", wire.throughput_included, wire.throughput_provisioned_max),
        ("throughput_provisioned_min", wire.throughput_provisioned_min, wire.throughput_provisioned_max),
        ("burst_initial_ios", wire.burst_initial_ios, wire.burst_bucket_ios),
    ];
    let found = pairs
        .into_iter()
        .find(|(_, least, most)| matches!((least, most), (Some(least), Some(most)) if least > most));
    if let Some((field, Some(least), Some(most))) = found {
        return Some((field, format!("{least} is above the maximum of {most}")));
    }
    let is_fixed = wire.iops_model == IopsModel::Fixed && wire.burst_model == BurstModel::TimedWindow;
    let slower = |burst: Option<f64>, base: Option<f64>| {
        is_fixed && matches!((burst, base), (Some(burst), Some(base)) if burst < base)
    };
    let reason = || "is below the baseline".to_owned();
    if slower(wire.burst_iops, wire.iops_max) {
        return Some(("burst_iops", reason()));
    }
    slower(wire.burst_throughput, wire.throughput_max).then(|| ("burst_throughput", reason()))
}

/// Fields that the models require.
fn missing(wire: &Wire, table: &Table) -> Option<(&'static str, String)> {
    let needed: &[(&'static str, bool)] = match wire.iops_model {
        IopsModel::Fixed => &[("iops_max", wire.iops_max.is_some())],
        IopsModel::LinearClamped | IopsModel::AffineClamped => {
            &[("iops_per_gib", wire.iops_per_gib.or(wire.iops_read_per_gib).is_some())]
        }
        IopsModel::Provisioned => &[(
            "iops_provisioned_max",
            wire.iops_provisioned_max.or(wire.iops_per_provisioned_throughput).is_some(),
        )],
        IopsModel::TieredBySize | IopsModel::TieredByInstance | IopsModel::TieredByCount => {
            &[("tiers", !wire.tiers.is_empty())]
        }
        IopsModel::DerivedFromThroughput => &[("throughput_per_tib", wire.throughput_per_tib.is_some())],
        IopsModel::Range | IopsModel::MeasuredOnly | IopsModel::Unspecified => &[],
    };
    let bursts: &[(&'static str, bool)] = match wire.burst_model {
        BurstModel::IoCreditBucket => &[
            ("burst_iops", wire.burst_iops.is_some()),
            ("burst_bucket_ios", wire.burst_bucket_ios.is_some()),
        ],
        BurstModel::ThroughputCreditBucket => &[
            ("burst_throughput_per_tib", wire.burst_throughput_per_tib.is_some()),
            ("burst_bucket_mib_per_tib", wire.burst_bucket_mib_per_tib.is_some()),
        ],
        BurstModel::DualCreditBucket => &[("burst_duration_s", wire.burst_duration_s.is_some())],
        BurstModel::TimedWindow => &[("burst_iops", wire.burst_iops.or(wire.burst_throughput).is_some())],
        BurstModel::None | BurstModel::OnDemandBilled | BurstModel::Unspecified => &[],
    };
    let has_throughput = numbers(table).any(|(field, _)| field.contains("throughput"))
        || !wire.throughput_by_size.is_empty()
        || !wire.throughput_by_iops.is_empty();
    let unit = [("throughput_unit", wire.throughput_unit.is_some() || !has_throughput)];
    let all = needed.iter().chain(bursts).chain(&unit);
    let missing = all.into_iter().find(|(_, is_there)| !is_there)?;
    Some((missing.0, "is missing".to_owned()))
}

/// A price has a currency, and steps that rise.
fn priced(wire: &Wire) -> Option<(&'static str, String)> {
    let figures = [
        wire.price_per_gib_month,
        wire.price_per_iops_month,
        wire.price_per_throughput_month,
        wire.price_per_million_ios,
    ];
    let steps = &wire.price_iops_steps;
    let tiers = wire.tiers.iter().filter_map(|tier| tier.price_month);
    if figures.iter().all(Option::is_none) && steps.is_empty() && tiers.clone().next().is_none() {
        return None;
    }
    let is_amount = |figure: f64| figure > 0.0 && figure <= 1e12;
    if !tiers.into_iter().all(is_amount) {
        return Some(("tiers", "has an invalid price".to_owned()));
    }
    let is_step = |step: &IopsPrice| is_amount(step.above_iops) && is_amount(step.per_iops_month);
    if !steps.iter().all(is_step) || !steps.is_sorted_by(|one, next| one.above_iops < next.above_iops) {
        return Some(("price_iops_steps", "must rise in IOPS, and be above 0".to_owned()));
    }
    match &wire.price_currency {
        None => Some(("price_currency", "is missing".to_owned())),
        Some(currency) if !is_currency(currency) => {
            Some(("price_currency", format!("{currency:?} is not a currency: use USD, EUR, CNY …")))
        }
        Some(_) => None,
    }
}

/// Measurements stand in for a rule that is not published, and are above 0.
fn measured(wire: &Wire) -> Option<(&'static str, String)> {
    let measured = wire.measured.as_ref()?;
    if wire.iops_model != IopsModel::MeasuredOnly {
        return Some(("measured", "needs iops_model = \"measured_only\"".to_owned()));
    }
    measured.problem().map(|reason| ("measured", reason))
}

/// Three capital letters, so that each currency has one spelling.
fn is_currency(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// The rules give a valid volume at the smallest and largest size.
fn invalid_volumes(entry: &CatalogEntry) -> Option<(&'static str, String)> {
    if entry.unmodelled().is_some() {
        return None;
    }
    let (least, most) = entry.size_range();
    let wire = &entry.wire;
    let unit = wire.unit_bytes();
    let by_name = wire.iops_model.is_tiered_by_name();
    for size in [least, most].into_iter().flatten().chain([1 << 40]) {
        let size_bytes = size.clamp(least.unwrap_or(1), most.unwrap_or(u64::MAX));
        let mut parameters = Parameters { size_bytes: Some(size_bytes), ..Parameters::default() };
        parameters.tier = wire.tiers.first().filter(|_| by_name).map(|tier| tier.name.clone());
        if wire.iops_model == IopsModel::Provisioned && wire.iops_per_provisioned_throughput.is_none() {
            parameters.iops = Some(iops_range(wire, size_bytes).0);
        }
        if wire.throughput_provisioned_max.is_some() && wire.throughput_included.is_none() {
            let slope = (wire.throughput_provisioned_per_tib_min.unwrap_or_default(), amount::TIB);
            let by_size = amount::linear(0.0, slope, size_bytes, unit);
            let least = wire.throughput_provisioned_min.map_or(1, |least| amount::of(least, unit));
            parameters.bytes_per_second = Some(least.max(by_size));
        }
        if let Err(refusal) = entry.resolve(&parameters) {
            return Some(("iops_model", format!("is invalid at {size_bytes} bytes: {}", refusal.reason)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fathom_predict::OfferedLoad;
    use proptest::prelude::*;

    use super::*;
    use crate::catalog::FILES;
    use crate::{Catalog, SearchScope, VolumeNeed};

    /// Fields that some models require.
    const NEEDED: [(&str, f64); 8] = [
        ("iops_max", 5000.0),
        ("iops_per_gib", 3.0),
        ("iops_provisioned_max", 16_000.0),
        ("throughput_per_tib", 40.0),
        ("burst_iops", 6000.0),
        ("burst_bucket_ios", 1e6),
        ("burst_throughput_per_tib", 250.0),
        ("burst_bucket_mib_per_tib", 1e6),
    ];

    /// An entry with valid first lines and arbitrary numbers.
    fn any_entry() -> impl Strategy<Value = String> {
        let tables = FILES.iter().map(|(_, text)| toml::from_str::<Table>(text).expect("it is valid"));
        let entries = tables.flat_map(|file| file["volume"].as_table().expect("entries").clone());
        let fields = entries.flat_map(|(_, entry)| {
            numbers(entry.as_table().expect("an entry"))
                .map(|(field, _)| field.to_owned())
                .collect::<Vec<_>>()
        });
        let fields: Vec<String> = fields.collect::<BTreeSet<_>>().into_iter().collect();
        let models = [
            "fixed",
            "linear_clamped",
            "affine_clamped",
            "provisioned",
            "derived_from_throughput",
            "measured_only",
        ];
        let bursts = [
            "none",
            "io_credit_bucket",
            "throughput_credit_bucket",
            "timed_window",
            "on_demand_billed",
            "unspecified",
        ];
        let number = prop::sample::select(vec![1e-9, 0.5, 1.0, 100.0, 3000.0, 50_000.0, 1e6, 1e9, 1e12]);
        let unit = prop::sample::select(vec!["MiB/s", "MB/s"]);
        let figures = prop::collection::btree_map(prop::sample::select(fields), number, 0..4);
        (prop::sample::select(models.to_vec()), prop::sample::select(bursts.to_vec()), unit, figures).prop_map(
            |(model, burst, unit, mut figures)| {
                for (field, figure) in NEEDED {
                    figures.entry(field.to_owned()).or_insert(figure);
                }
                let head = "[volume.x]\nprovider = \"x\"\ntype_name = \"x\"\nmedia = \"ssd\"\nlifecycle = \"current\"\n\
                     source = \"x\"\nas_of = \"2026\"\nconfidence = \"quoted\"\nlimits_shared_read_write = true";
                let figures: Vec<String> =
                    figures.into_iter().map(|(field, figure)| format!("{field} = {figure:?}\n")).collect();
                let models = format!("iops_model = \"{model}\"\nburst_model = \"{burst}\"\nthroughput_unit = \"{unit}\"");
                format!("{head}\n{models}\nprice_currency = \"USD\"\n{}", figures.concat())
            },
        )
    }

    proptest! {
        #[test]
        fn accepted_entries_resolve_and_refused_ones_name_their_line(
            text in any_entry(), size_gib in 1u64..100_000, iops in prop::option::of(1u64..1_000_000),
        ) {
            match Catalog::parse("x.toml", &text) {
                Err(error) => {
                    let field = error.field.unwrap_or_default();
                    let line = text.lines().nth(error.line - 1).unwrap_or_default();
                    prop_assert!(line.starts_with(&field) || error.line == 1, "{field} is not in {line}\n{text}");
                }
                Ok(catalog) => {
                    let parameters = Parameters { size_bytes: Some(size_gib << 30), iops, ..Parameters::default() };
                    if let Ok(resolved) = catalog.get("x").expect("it was read").resolve(&parameters) {
                        prop_assert!(resolved.model.validate().is_ok());
                    }
                    let entry = catalog.get("x").expect("it was read");
                    let (at_random, _) = entry.most();
                    prop_assert!(at_random.is_none_or(|rate| rate > 0.0) && entry.sizes_gib().len() < 100);
                    if let Ok(sheet) = entry.sheet(&parameters) {
                        prop_assert!(sheet.blocks.iter().all(|row| row.random.iops.is_none_or(|rate| rate > 0.0)));
                    }
                    let load = OfferedLoad::of(8192.0, false);
                    let need = VolumeNeed {
                        persistent: false,
                        ..VolumeNeed::permanent(load, iops.unwrap_or(1) as f64, size_gib << 30)
                    };
                    for offer in catalog.fit(&need, SearchScope::default()).offers() {
                        prop_assert!(offer.parameters.size_bytes >= Some(need.size_bytes));
                        prop_assert!(offer.reach.iops.is_none_or(|rate| rate >= need.iops * 0.999));
                    }
                }
            }
        }
    }
}
