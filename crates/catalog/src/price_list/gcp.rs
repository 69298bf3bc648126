//! The SKUs of GCP's Cloud Billing Catalog: descriptions with regions, units and tiers of prices.

use serde_json::Value;

use super::{PriceLine, PricedPart};

/// The list's name.
pub(super) const TITLE: &str = "GCP Cloud Billing Catalog";

/// Descriptions up to ` in PLACE`, the volume, what is priced, and its unit.
const SKUS: &[(&str, &str, PricedPart, &str)] = &[
    ("Storage PD Capacity", "gcp-pd-standard", PricedPart::Capacity, "GiBy.mo"),
    ("Balanced PD Capacity", "gcp-pd-balanced", PricedPart::Capacity, "GiBy.mo"),
    ("SSD backed PD Capacity", "gcp-pd-ssd", PricedPart::Capacity, "GiBy.mo"),
    ("Extreme PD Capacity", "gcp-pd-extreme", PricedPart::Capacity, "GiBy.mo"),
    ("Extreme PD IOPS", "gcp-pd-extreme", PricedPart::Iops { above: 0.0 }, "mo"),
    ("Hyperdisk Balanced Capacity", "gcp-hyperdisk-balanced", PricedPart::Capacity, "GiBy.mo"),
    ("Hyperdisk Balanced IOPS", "gcp-hyperdisk-balanced", PricedPart::Iops { above: 0.0 }, "mo"),
    ("Hyperdisk Balanced Throughput", "gcp-hyperdisk-balanced", PricedPart::Throughput, "mo"),
    ("Hyperdisk Extreme Capacity", "gcp-hyperdisk-extreme", PricedPart::Capacity, "GiBy.mo"),
    ("Hyperdisk Extreme IOPS", "gcp-hyperdisk-extreme", PricedPart::Iops { above: 0.0 }, "mo"),
    ("Hyperdisk Throughput Capacity", "gcp-hyperdisk-throughput", PricedPart::Capacity, "GiBy.mo"),
];

/// Adds the prices of an SKU; else the field that is wrong.
pub(super) fn take(sku: &Value, lines: &mut Vec<PriceLine>) -> Result<(), String> {
    let description = sku.get("description").and_then(Value::as_str).unwrap_or_default();
    let name = description.split_once(" in ").map_or(description, |(name, _)| name);
    let Some(&(name, id, ref part, unit)) = SKUS.iter().find(|known| known.0 == name) else { return Ok(()) };
    let usage = sku.pointer("/category/usageType").and_then(Value::as_str);
    if usage.is_some_and(|usage| usage != "OnDemand") {
        return Ok(());
    }
    let expression = sku.pointer("/pricingInfo/0/pricingExpression");
    let expression = expression.ok_or("pricingInfo[0].pricingExpression: it is missing")?;
    let found = expression.get("usageUnit").and_then(Value::as_str).unwrap_or_default();
    if found != unit {
        return Err(format!("usageUnit: '{found}' is not a unit of {name}"));
    }
    let (currency, amount) = last_rate(expression)?;
    let regions = sku.get("serviceRegions").and_then(Value::as_array);
    for region in regions.ok_or("serviceRegions: it is missing")? {
        let region = region.as_str().ok_or("serviceRegions: it is not a list of texts")?.to_owned();
        lines.push(PriceLine { id, region, currency: currency.clone(), part: part.clone(), amount });
    }
    Ok(())
}

/// Currency and price of the last tier: those before it are free parts.
fn last_rate(expression: &Value) -> Result<(String, f64), String> {
    let rates = expression.get("tieredRates").and_then(Value::as_array);
    let price = rates.and_then(|rates| rates.last()?.get("unitPrice"));
    let price = price.ok_or("tieredRates: there is no unitPrice")?;
    let currency = price.get("currencyCode").and_then(Value::as_str);
    let currency = currency.ok_or("unitPrice.currencyCode: it is missing")?;
    // Whole units are a text, as all 64-bit numbers; what is 0 may be left out.
    let units = match price.get("units") {
        None => Some(0.0),
        Some(units) => units.as_str().and_then(|text| text.parse::<f64>().ok()).or(units.as_f64()),
    };
    let units = units.ok_or("unitPrice.units: it is not a number")?;
    let nanos =
        price.get("nanos").map_or(Some(0.0), Value::as_f64).ok_or("unitPrice.nanos: it is not a number")?;
    let amount = units + nanos / 1e9;
    match amount.is_finite() && amount >= 0.0 {
        true => Ok((currency.to_owned(), amount)),
        false => Err(format!("unitPrice: {amount} is not a price")),
    }
}
