//! Prices from the price lists that providers publish as files: AWS's offer file of AmazonEC2, Azure's retail prices, the SKUs of
//! GCP's Cloud Billing Catalog.
//!
//! A list may have hundreds of MB: it is read as a stream, and only the lines on volumes of the catalogue are kept. A unit is never
//! guessed: a line on a known volume in another unit is refused.

mod aws;
mod azure;
mod document;
mod gcp;

use std::collections::BTreeMap;
use std::io::Read;

use fathom_model::{IopsPrice, Price, PriceConfidence, TierPrice};
use thiserror::Error;

use crate::Catalog;
use document::read_documents;

/// Hours of a month, by which hourly prices are multiplied.
pub const HOURS_OF_MONTH: f64 = 730.0;

/// A price list that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct PriceListError {
    /// The line, from 1; 0 where it is about the whole.
    pub line: usize,
    /// What is wrong, with the field.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

impl PriceListError {
    fn new(line: usize, problem: impl Into<String>, hint: impl Into<String>) -> PriceListError {
        PriceListError { line, problem: problem.into(), hint: hint.into() }
    }
}

/// What a price is for.
#[derive(Clone, Debug, PartialEq)]
enum PricedPart {
    /// A GiB.
    Capacity,
    /// An IOPS, of those above a number of them.
    Iops {
        /// The number.
        above: f64,
    },
    /// A unit of throughput.
    Throughput,
    /// A million I/Os.
    MillionIos,
    /// A volume of this tier.
    Tier(String),
}

/// A price per month of the catalogue's volumes.
#[derive(Clone, Debug, PartialEq)]
struct PriceLine {
    id: &'static str,
    region: String,
    currency: String,
    part: PricedPart,
    amount: f64,
}

/// The lines of a list on volumes of the catalogue.
#[derive(Clone, Debug, Default)]
struct PriceLines {
    /// The list's own name of itself.
    title: &'static str,
    /// The date of the list, where it has one.
    date: Option<String>,
    lines: Vec<PriceLine>,
}

/// Prices of one region, by the ids of the catalogue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriceList {
    /// The region.
    pub region: String,
    /// The prices.
    pub prices: BTreeMap<String, Price>,
}

/// Which prices of a list are wanted, and what is known of it besides.
#[derive(Clone, Copy, Debug, Default)]
pub struct PriceListChoice<'a> {
    /// The region; the only one where none is named.
    pub region: Option<&'a str>,
    /// The date of the prices where the list has none, `2026-11-23`.
    pub date: &'a str,
    /// The name of the file.
    pub file: &'a str,
}

/// Reads a price list: one document, or several pages one after the other.
///
/// # Errors
/// It is no price list, has no price of a volume of the catalogue in this region, or a price makes no sense.
pub fn read_price_list(
    input: impl Read,
    choice: PriceListChoice<'_>,
    catalog: &Catalog,
) -> Result<PriceList, PriceListError> {
    let lines = read_documents(input)?;
    let region = region_of(&lines, choice.region)?;
    let date = lines.date.as_deref().unwrap_or(choice.date);
    let source = format!("{} ({})", lines.title, choice.file);
    let mut prices: BTreeMap<String, Price> = BTreeMap::new();
    for line in lines.lines.iter().filter(|line| line.region == region) {
        let price = prices.entry(line.id.to_owned()).or_insert_with(|| Price {
            currency: line.currency.clone(),
            region: region.clone(),
            as_of: Some(date.to_owned()),
            source: source.clone(),
            confidence: Some(PriceConfidence::High),
            ..Price::default()
        });
        if price.currency != line.currency {
            let problem = format!("{} has prices in {} and {}", line.id, price.currency, line.currency);
            return Err(PriceListError::new(0, problem, "export the list in one currency"));
        }
        add(price, line).map_err(|problem| PriceListError::new(0, problem, "import a list of one date"))?;
    }
    for (id, price) in &mut prices {
        price.iops_steps.sort_by(|one, other| one.above_iops.total_cmp(&other.above_iops));
        let shipped = catalog.get(id).and_then(crate::CatalogEntry::shipped_price);
        price.are_ios_unknown =
            price.per_million_ios.is_none() && shipped.is_some_and(|price| price.are_ios_unknown);
    }
    Ok(PriceList { region, prices })
}

/// The region that is wanted.
fn region_of(lines: &PriceLines, wanted: Option<&str>) -> Result<String, PriceListError> {
    let mut regions: Vec<&str> = lines.lines.iter().map(|line| line.region.as_str()).collect();
    regions.sort_unstable();
    regions.dedup();
    let listed = match regions.len() {
        0 => {
            let hint = "export the list of AmazonEC2, of Azure's storage or of GCP's Compute Engine";
            return Err(PriceListError::new(0, "it has no price of a volume of the catalogue", hint));
        }
        1..=40 => regions.join(", "),
        count => format!("{count} regions, {} among them", regions[0]),
    };
    match wanted {
        Some(wanted) if regions.contains(&wanted) => Ok(wanted.to_owned()),
        Some(wanted) => {
            let problem = format!("it has no price of a volume in the region '{wanted}'");
            Err(PriceListError::new(0, problem, format!("it has {listed}")))
        }
        None if regions.len() == 1 => Ok(regions[0].to_owned()),
        None => {
            let problem = format!("it has several regions: {listed}");
            Err(PriceListError::new(0, problem, "choose one with --region"))
        }
    }
}

/// Adds a line to the price of its volume. The same price may be there twice, another one may not.
fn add(price: &mut Price, line: &PriceLine) -> Result<(), String> {
    let amount = line.amount;
    if !amount.is_finite() {
        return Err(format!("{} has an impossible price", line.id));
    }
    let differs =
        |before: f64, what: &str| Err(format!("{} has two prices {what}: {before} and {amount}", line.id));
    let set = |place: &mut Option<f64>, what: &str| match *place {
        Some(before) if before != amount => differs(before, what),
        _ => {
            *place = Some(amount);
            Ok(())
        }
    };
    match &line.part {
        PricedPart::Capacity => set(&mut price.per_gib_month, "per GiB"),
        PricedPart::Throughput => set(&mut price.per_throughput_month, "per unit of throughput"),
        PricedPart::MillionIos => set(&mut price.per_million_ios, "per million I/Os"),
        PricedPart::Iops { above } if *above == 0.0 => set(&mut price.per_iops_month, "per IOPS"),
        PricedPart::Iops { above } => match price.iops_steps.iter().find(|step| step.above_iops == *above) {
            Some(step) if step.per_iops_month != amount => differs(step.per_iops_month, "per IOPS"),
            Some(_) => Ok(()),
            None => {
                price.iops_steps.push(IopsPrice { above_iops: *above, per_iops_month: amount });
                Ok(())
            }
        },
        PricedPart::Tier(tier) => match price.tiers.iter().find(|known| known.tier == *tier) {
            Some(known) if known.month != amount => differs(known.month, &format!("of tier {tier}")),
            Some(_) => Ok(()),
            None => {
                price.tiers.push(TierPrice { tier: tier.clone(), month: amount });
                Ok(())
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AWS: &str = include_str!("../tests/prices/aws.json");
    const AZURE: &str = include_str!("../tests/prices/azure.json");
    const GCP: &str = include_str!("../tests/prices/gcp.json");

    fn read(text: &str, region: Option<&str>) -> Result<PriceList, PriceListError> {
        let choice = PriceListChoice { region, date: "2026-11-23", file: "list.json" };
        read_price_list(text.as_bytes(), choice, Catalog::shipped())
    }

    fn rounded(value: Option<f64>) -> Option<f64> {
        value.map(|value| (value * 1e8).round() / 1e8)
    }

    #[test]
    fn prices_of_aws_are_in_the_units_of_the_catalogue() {
        let list = read(AWS, Some("us-east-1")).unwrap();
        let gp3 = &list.prices["aws-gp3"];
        // 40.96 per GiB/s and month.
        assert_eq!(
            (gp3.per_gib_month, gp3.per_iops_month, gp3.per_throughput_month),
            (Some(0.08), Some(0.005), Some(0.04))
        );
        assert_eq!((gp3.currency.as_str(), gp3.as_of.as_deref()), ("USD", Some("2026-09-30")));
        assert_eq!(gp3.source, "AWS price list of AmazonEC2 (list.json)");
        let io2 = &list.prices["aws-io2-block-express"];
        let steps: Vec<_> =
            io2.iops_steps.iter().map(|step| (step.above_iops, step.per_iops_month)).collect();
        assert_eq!((io2.per_iops_month, steps), (Some(0.065), vec![(32_000.0, 0.0455), (64_000.0, 0.03185)]));
        assert_eq!(rounded(list.prices["aws-ebs-standard"].per_million_ios), Some(0.05));
        assert_eq!(read(AWS, Some("eu-central-1")).unwrap().prices["aws-gp3"].per_gib_month, Some(0.0952));
        let error = read(AWS, None).unwrap_err();
        assert_eq!(error.problem, "it has several regions: eu-central-1, us-east-1");
        assert_eq!(error.hint, "choose one with --region");
        assert!(read(AWS, Some("mars")).unwrap_err().problem.ends_with("in the region 'mars'"));
    }

    #[test]
    fn prices_of_azure_are_those_of_tiers_and_of_months() {
        let list = read(AZURE, None).unwrap();
        assert_eq!(list.region, "eastus");
        let premium = &list.prices["azure-premium-ssd"];
        assert_eq!(
            premium.tiers,
            [TierPrice { tier: "P10".to_owned(), month: 19.71 }],
            "no mounts of shared disks"
        );
        let second = &list.prices["azure-premium-ssd-v2"];
        assert_eq!(
            [second.per_gib_month, second.per_iops_month, second.per_throughput_month].map(rounded),
            [Some(0.0803), Some(0.00511), Some(0.04015)],
            "the free part has no price"
        );
        assert_eq!(second.as_of.as_deref(), Some("2026-11-23"));
        let standard = &list.prices["azure-standard-ssd"];
        assert!(standard.are_ios_unknown && !premium.are_ios_unknown);
        // The pages of an answer one after the other.
        let pages = format!("{AZURE}\n{AZURE}");
        assert_eq!(read(&pages, None).unwrap(), list);
    }

    #[test]
    fn prices_of_gcp_are_found_by_their_descriptions() {
        let list = read(GCP, Some("us-central1")).unwrap();
        assert_eq!(list.prices["gcp-pd-standard"].per_gib_month, Some(0.04), "the first 30 GiB are free");
        assert_eq!(list.prices["gcp-pd-balanced"].per_gib_month, Some(0.1));
        let extreme = &list.prices["gcp-hyperdisk-extreme"];
        assert_eq!((extreme.per_gib_month, extreme.per_iops_month), (Some(0.125), Some(0.032)));
        assert_eq!(list.prices.len(), 3, "{:?}", list.prices.keys());
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_line_and_field() {
        for (text, from, to, expected) in [
            (AWS, "\"0.0800000000\"", "\"cheap\"", "pricePerUnit.USD: 'cheap' is not a price"),
            (AWS, "GiBps-mo", "parsecs", "unit: 'parsecs' is not a unit of EBS:VolumeP-Throughput.gp3"),
            (
                AWS,
                "\"publicationDate\": \"2026-09-30T20:12:00Z\"",
                "\"publicationDate\": 5",
                "publicationDate",
            ),
            (AZURE, "19.71", "\"many\"", "retailPrice: it is not a number"),
            (AZURE, "19.71", "-1", "retailPrice: -1 is not a price"),
            (AZURE, "\"1/Month\"", "\"1/Year\"", "unitOfMeasure: '1/Year' is not a unit of P10 LRS Disk"),
            (GCP, "GiBy.mo", "GiBy.h", "usageUnit: 'GiBy.h' is not a unit of "),
            (GCP, "\"nanos\": 100000000", "\"nanos\": \"x\"", "unitPrice.nanos"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = read(&text.replace(from, to), None).unwrap_err();
            assert!(error.problem.contains(expected) && error.line > 0, "{error:?} lacks {expected}");
        }
        assert_eq!(read("", None).unwrap_err().problem, "it is empty");
        assert!(read("{\"a\": 1}", None).unwrap_err().problem.contains("no price of a volume"));
        assert!(read("[1]", None).unwrap_err().problem.contains("expected the object of a price list"));
        assert!(read(&AWS[..AWS.len() / 2], None).unwrap_err().problem.contains("EOF"));
        let twice = AZURE.replace("\"retailPrice\": 9.6,", "\"retailPrice\": 9.7,");
        let error = read(&format!("{AZURE}{twice}"), None).unwrap_err();
        assert_eq!(error.problem, "azure-standard-ssd has two prices of tier E10: 9.6 and 9.7");
    }
}
