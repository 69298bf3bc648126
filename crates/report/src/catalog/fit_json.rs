//! The document of `catalog fit`: `fathom.catalog-fit/1`. Pure.

use std::io::{self, Write};

use fathom_catalog::{Fit, LatencyNeed, VolumeNeed, VolumeOffer};
use serde::Serialize;

use crate::catalog::fit::size_of;
use crate::catalog::json::MonthDocument;
use crate::document::write;

/// What was asked.
#[derive(Serialize)]
pub struct VolumeNeedDocument {
    /// In words.
    pub text: String,
    /// Bytes to be kept.
    pub size_bytes: u64,
    /// Requests a second.
    pub iops: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Mean size of a request.
    pub block_bytes: f64,
    /// They are sequential.
    pub sequential: bool,
    /// The share of reads; null = any.
    pub read_fraction: Option<f64>,
    /// How long the need lasts in each period; null = for ever.
    pub spell_ns: Option<u64>,
    /// The period; null likewise.
    pub period_ns: Option<u64>,
    /// Requests a second in between; null likewise.
    pub iops_between: Option<f64>,
    /// What a request may take.
    pub latency: Vec<LatencyDocument>,
    /// Data must outlive the instance.
    pub persistent: bool,
}

/// A limit for latency.
#[derive(Serialize)]
pub struct LatencyDocument {
    /// `mean`, `p99`, ...
    pub statistic: String,
    /// The most.
    pub most_ns: u64,
}

impl VolumeNeedDocument {
    /// What is needed, and the same in words.
    pub fn of(need: &VolumeNeed, text: &str) -> Self {
        let latency =
            |asked: &LatencyNeed| LatencyDocument { statistic: asked.name.clone(), most_ns: asked.most_ns };
        VolumeNeedDocument {
            text: text.to_owned(),
            size_bytes: need.size_bytes,
            iops: need.rate,
            bytes_per_second: need.rate * need.load.mean_bytes(),
            block_bytes: need.load.mean_bytes(),
            sequential: need.load.is_sequential,
            read_fraction: need.load.reads,
            spell_ns: need.spell.map(|spell| spell.length_ns),
            period_ns: need.spell.map(|spell| spell.every_ns),
            iops_between: need.spell.map(|spell| spell.between),
            latency: need.latency.iter().map(latency).collect(),
            persistent: need.persistent,
        }
    }
}

/// Writes the document of an answer.
///
/// # Errors
/// Those of `out`.
pub fn render(fit: &Fit, need: &VolumeNeedDocument, out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct CatalogFitDocument<'a> {
        schema: &'static str,
        need: &'a VolumeNeedDocument,
        priced: Vec<FitGroupDocument<'a>>,
        unpriced: Vec<OfferDocument<'a>>,
        others: Vec<OtherDocument<'a>>,
    }
    #[derive(Serialize)]
    struct FitGroupDocument<'a> {
        currency: &'a str,
        offers: Vec<OfferDocument<'a>>,
    }
    #[derive(Serialize)]
    struct OtherDocument<'a> {
        id: &'a str,
        reason: &'static str,
        why: &'a str,
    }
    let document = CatalogFitDocument {
        schema: "fathom.catalog-fit/1",
        need,
        priced: (fit.priced.iter())
            .map(|(currency, some)| FitGroupDocument {
                currency,
                offers: some.iter().map(OfferDocument::of).collect(),
            })
            .collect(),
        unpriced: fit.unpriced.iter().map(OfferDocument::of).collect(),
        others: (fit.others.iter())
            .map(|other| OtherDocument { id: &other.id, reason: other.reason.name(), why: &other.why })
            .collect(),
    };
    write(&document, out)
}

#[derive(Serialize)]
struct OfferDocument<'a> {
    id: &'a str,
    provider: &'a str,
    size_bytes: Option<u64>,
    tier: Option<&'a str>,
    iops_chosen: Option<u64>,
    bytes_per_second_chosen: Option<u64>,
    /// 4 KiB in random order, for ever.
    iops: Option<f64>,
    /// In sequential requests of 1 MiB, for ever.
    bytes_per_second: Option<f64>,
    month: Option<MonthDocument<'a>>,
    month_per_1000_iops: Option<f64>,
    month_per_100_mib_per_second: Option<f64>,
    notes: &'a [String],
}

impl<'a> OfferDocument<'a> {
    fn of(offer: &'a VolumeOffer) -> Self {
        let (month_per_1000_iops, month_per_100_mib_per_second) = offer.unit_prices();
        OfferDocument {
            id: &offer.id,
            provider: &offer.provider,
            size_bytes: size_of(offer),
            tier: offer.tier.as_deref(),
            iops_chosen: offer.parameters.iops,
            bytes_per_second_chosen: offer.parameters.bytes_per_second,
            iops: offer.iops,
            bytes_per_second: offer.bytes_per_second,
            month: offer.bill.as_ref().map(MonthDocument::of),
            month_per_1000_iops,
            month_per_100_mib_per_second,
            notes: &offer.notes,
        }
    }
}
