//! Azure's retail prices: items with product, meter, unit and price, in pages.

use serde_json::Value;

use super::{HOURS_OF_MONTH, PriceLine, PricedPart};

/// The list's name.
pub(super) const TITLE: &str = "Azure retail prices";

/// Disks that are sold by tiers: product, volume, and the letter of the tiers.
const TIERED: &[(&str, &str, char)] = &[
    ("Premium SSD Managed Disks", "azure-premium-ssd", 'P'),
    ("Standard SSD Managed Disks", "azure-standard-ssd", 'E'),
    ("Standard HDD Managed Disks", "azure-standard-hdd", 'S'),
];

/// Disks whose parts are sold by the hour: product, beginning of the meters, volume.
const HOURLY: &[(&str, &str, &str)] = &[
    ("Azure Premium SSD v2", "Premium LRS Provisioned ", "azure-premium-ssd-v2"),
    ("Ultra Disks", "Ultra LRS Provisioned ", "azure-ultra-disk"),
];

/// What such meters end with, and their units.
const METERS: &[(&str, PricedPart, &str)] = &[
    ("Capacity", PricedPart::Capacity, "1 GiB/Hour"),
    ("IOPS", PricedPart::Iops { above: 0.0 }, "1/Hour"),
    ("Throughput (MBps)", PricedPart::Throughput, "1/Hour"),
];

/// Adds the price of an item; else the field that is wrong.
pub(super) fn take(item: &Value, lines: &mut Vec<PriceLine>) -> Result<(), String> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_list_price = item.get("type").is_none_or(|kind| kind == "Consumption");
    if !is_list_price {
        return Ok(());
    }
    let Some((id, part, unit, factor)) = meter(text("productName"), text("meterName")) else { return Ok(()) };
    if text("unitOfMeasure") != unit {
        let found = text("unitOfMeasure");
        return Err(format!("unitOfMeasure: '{found}' is not a unit of {}", text("meterName")));
    }
    let price = item.get("retailPrice").ok_or("retailPrice: it is missing")?;
    let amount = price.as_f64().ok_or("retailPrice: it is not a number")?;
    if !(amount.is_finite() && amount >= 0.0) {
        return Err(format!("retailPrice: {amount} is not a price"));
    }
    let needed = |name: &str| match text(name) {
        "" => Err(format!("{name}: it is missing")),
        text => Ok(text.to_owned()),
    };
    // What is included has a price of 0.
    if amount > 0.0 {
        let (region, currency) = (needed("armRegionName")?, needed("currencyCode")?);
        lines.push(PriceLine { id, region, currency, part, amount: amount * factor });
    }
    Ok(())
}

/// Volume, priced part, unit, and the factor to a month of a meter.
fn meter(product: &str, meter: &str) -> Option<(&'static str, PricedPart, &'static str, f64)> {
    if let Some((_, id, letter)) = TIERED.iter().find(|(known, ..)| *known == product) {
        // `P10 LRS Disk`; `P10 LRS Disk Mount` is a share in a disk.
        let tier = meter.strip_suffix(" LRS Disk")?;
        let is_tier = tier.strip_prefix(*letter)?.chars().all(|digit| digit.is_ascii_digit());
        return is_tier.then(|| (*id, PricedPart::Tier(tier.to_owned()), "1/Month", 1.0));
    }
    let (_, begin, id) = HOURLY.iter().find(|(known, ..)| *known == product)?;
    let end = meter.strip_prefix(begin)?;
    let (_, part, unit) = METERS.iter().find(|(known, ..)| *known == end)?;
    Some((*id, part.clone(), *unit, HOURS_OF_MONTH))
}
