//! AWS's offer file of AmazonEC2: products by SKU with their usage types, then terms with prices.

use std::collections::HashMap;

use serde_json::Value;

use super::{PriceLine, PricedPart};

/// The list's name.
pub(super) const TITLE: &str = "AWS price list of AmazonEC2";

/// Usage types behind `EBS:`, the volume, what is priced, its unit, and the price of the catalogue's unit in prices of that one.
const USAGES: &[(&str, &str, PricedPart, &str, f64)] = &[
    ("VolumeUsage", "aws-ebs-standard", PricedPart::Capacity, "GB-Mo", 1.0),
    ("VolumeIOUsage", "aws-ebs-standard", PricedPart::MillionIos, "IOs", 1e6),
    ("VolumeUsage.gp2", "aws-gp2", PricedPart::Capacity, "GB-Mo", 1.0),
    ("VolumeUsage.gp3", "aws-gp3", PricedPart::Capacity, "GB-Mo", 1.0),
    ("VolumeP-IOPS.gp3", "aws-gp3", PricedPart::Iops { above: 0.0 }, "IOPS-Mo", 1.0),
    ("VolumeP-Throughput.gp3", "aws-gp3", PricedPart::Throughput, "GiBps-mo", 1.0 / 1024.0),
    ("VolumeP-Throughput.gp3", "aws-gp3", PricedPart::Throughput, "MiBps-mo", 1.0),
    ("VolumeUsage.piops", "aws-io1", PricedPart::Capacity, "GB-Mo", 1.0),
    ("VolumeP-IOPS.piops", "aws-io1", PricedPart::Iops { above: 0.0 }, "IOPS-Mo", 1.0),
    ("VolumeUsage.io2", "aws-io2-block-express", PricedPart::Capacity, "GB-Mo", 1.0),
    ("VolumeP-IOPS.io2", "aws-io2-block-express", PricedPart::Iops { above: 0.0 }, "IOPS-Mo", 1.0),
    ("VolumeP-IOPS.io2.tier2", "aws-io2-block-express", PricedPart::Iops { above: 32_000.0 }, "IOPS-Mo", 1.0),
    ("VolumeP-IOPS.io2.tier3", "aws-io2-block-express", PricedPart::Iops { above: 64_000.0 }, "IOPS-Mo", 1.0),
    ("VolumeUsage.st1", "aws-st1", PricedPart::Capacity, "GB-Mo", 1.0),
    ("VolumeUsage.sc1", "aws-sc1", PricedPart::Capacity, "GB-Mo", 1.0),
];

/// Other spellings of units.
const SPELLINGS: &[(&str, &str)] = &[("GB-month", "GB-Mo"), ("IOPS-month", "IOPS-Mo")];

/// Products that are priced volumes: usage type and region by SKU.
#[derive(Debug, Default)]
pub(super) struct AwsProducts {
    known: HashMap<String, (&'static str, String)>,
}

impl AwsProducts {
    /// Keeps a product that the catalogue prices. Local zones and outposts have regions of their own.
    pub fn take_product(&mut self, sku: &str, product: &Value) {
        let attribute = |name: &str| product.get("attributes")?.get(name)?.as_str();
        let Some(usage) = attribute("usagetype").and_then(|usage| usage.rsplit_once("EBS:")) else { return };
        let Some(&(usage, ..)) = USAGES.iter().find(|known| known.0 == usage.1) else { return };
        let is_region = attribute("locationType").is_none_or(|kind| kind == "AWS Region");
        if let Some(region) = attribute("regionCode").filter(|_| is_region) {
            self.known.insert(sku.to_owned(), (usage, region.to_owned()));
        }
    }

    /// Adds the prices of a product's terms; else the field that is wrong.
    pub fn take_terms(&self, sku: &str, terms: &Value, lines: &mut Vec<PriceLine>) -> Result<(), String> {
        let Some((usage, region)) = self.known.get(sku) else { return Ok(()) };
        for (code, term) in terms.as_object().ok_or("it is not an object")? {
            let dimensions = term.get("priceDimensions").and_then(Value::as_object);
            let dimensions = dimensions.ok_or_else(|| format!("{code}.priceDimensions is missing"))?;
            for (rate, dimension) in dimensions {
                let taken = dimension_of(usage, region, dimension, lines);
                taken.map_err(|reason| format!("{code}.priceDimensions.{rate}.{reason}"))?;
            }
        }
        Ok(())
    }
}

fn dimension_of(
    usage: &str,
    region: &str,
    dimension: &Value,
    lines: &mut Vec<PriceLine>,
) -> Result<(), String> {
    let unit = dimension.get("unit").and_then(Value::as_str).ok_or("unit: it is missing")?;
    let spelt = SPELLINGS.iter().find(|(other, _)| unit.eq_ignore_ascii_case(other));
    let known = spelt.map_or(unit, |(_, known)| known);
    let &(_, id, ref part, _, factor) = USAGES
        .iter()
        .find(|(name, _, _, unit, _)| *name == usage && unit.eq_ignore_ascii_case(known))
        .ok_or_else(|| format!("unit: '{unit}' is not a unit of EBS:{usage}"))?;
    let prices =
        dimension.get("pricePerUnit").and_then(Value::as_object).ok_or("pricePerUnit: it is missing")?;
    for (currency, price) in prices {
        let text = price.as_str().unwrap_or_default();
        let amount = text.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount >= 0.0);
        let amount = amount.ok_or_else(|| format!("pricePerUnit.{currency}: '{text}' is not a price"))?;
        lines.push(PriceLine {
            id,
            region: region.to_owned(),
            currency: currency.clone(),
            part: part.clone(),
            amount: amount * factor,
        });
    }
    Ok(())
}
