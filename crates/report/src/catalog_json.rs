//! The documents of `catalog list`, `show` and `fit`: `fathom.catalog-list/1`, `-show/1`, `-fit/1`. Pure.

use std::io::{self, Write};

use fathom_catalog::{
    BlockRow, Burst, Counted, Entry, Fit, Level, MonthlyCost, Offer, Price, Reach, Rule, Sheet,
};
use serde::Serialize;

/// Writes the document of a list.
///
/// # Errors
/// Those of `out`.
pub fn list(entries: &[&Entry], out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        types: Vec<TypeDocument<'a>>,
    }
    let types = entries.iter().map(|entry| TypeDocument::of(entry)).collect();
    write(&Document { schema: "fathom.catalog-list/1", types }, out)
}

/// Writes the document of one type; `sheets` as for the text.
///
/// # Errors
/// Those of `out`.
pub fn show(entry: &Entry, sheets: &[Sheet], out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        #[serde(flatten)]
        kind: TypeDocument<'a>,
        sources: Vec<&'a str>,
        notes: Option<&'a str>,
        promise_rate_fraction: Option<f64>,
        promise_time_fraction: Option<f64>,
        facts: std::collections::BTreeMap<&'a str, String>,
        volumes: Vec<VolumeDocument<'a>>,
    }
    let (promise_rate_fraction, promise_time_fraction) = entry.promise();
    let document = Document {
        schema: "fathom.catalog-show/1",
        kind: TypeDocument::of(entry),
        sources: entry.sources().collect(),
        notes: entry.notes(),
        promise_rate_fraction,
        promise_time_fraction,
        facts: entry.facts().collect(),
        volumes: sheets.iter().map(VolumeDocument::of).collect(),
    };
    write(&document, out)
}

/// What was asked of [`fit`].
#[derive(Serialize)]
pub struct NeedDocument {
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
}

/// Writes the document of an answer.
///
/// # Errors
/// Those of `out`.
pub fn fit(fit: &Fit, need: &NeedDocument, out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        need: &'a NeedDocument,
        priced: Vec<Group<'a>>,
        unpriced: Vec<OfferDocument<'a>>,
        others: Vec<OtherDocument<'a>>,
    }
    #[derive(Serialize)]
    struct Group<'a> {
        currency: &'a str,
        offers: Vec<OfferDocument<'a>>,
    }
    #[derive(Serialize)]
    struct OtherDocument<'a> {
        id: &'a str,
        reason: &'static str,
        why: &'a str,
    }
    let document = Document {
        schema: "fathom.catalog-fit/1",
        need,
        priced: (fit.priced.iter())
            .map(|(currency, some)| Group { currency, offers: some.iter().map(OfferDocument::of).collect() })
            .collect(),
        unpriced: fit.unpriced.iter().map(OfferDocument::of).collect(),
        others: (fit.others.iter())
            .map(|other| OtherDocument { id: &other.id, reason: other.reason.name(), why: &other.why })
            .collect(),
    };
    write(&document, out)
}

fn write(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct TypeDocument<'a> {
    id: &'a str,
    provider: &'a str,
    type_name: &'a str,
    api_name: Option<&'a str>,
    media: &'a str,
    persistent: bool,
    lifecycle: String,
    as_of: &'a str,
    confidence: String,
    source: &'a str,
    size_min_bytes: Option<u64>,
    size_max_bytes: Option<u64>,
    /// Why there is no model; null where there is one.
    unmodelled: Option<&'static str>,
    /// Of the largest volume, for ever: 4 KiB in random order.
    iops_max: Option<f64>,
    /// The same in sequential requests of 1 MiB; null where bandwidth is not published.
    bytes_per_second_max: Option<f64>,
    /// `credit`, `window`, `billed` or null.
    burst: Option<&'static str>,
    price: Option<PriceDocument>,
}

impl<'a> TypeDocument<'a> {
    fn of(entry: &'a Entry) -> Self {
        let (size_min_bytes, size_max_bytes) = entry.size_range();
        let (iops_max, bytes_per_second_max) = entry.most();
        TypeDocument {
            id: entry.id(),
            provider: entry.provider(),
            type_name: entry.type_name(),
            api_name: entry.api_name(),
            media: entry.media(),
            persistent: entry.is_persistent(),
            lifecycle: entry.lifecycle().to_string(),
            as_of: entry.as_of(),
            confidence: entry.confidence().to_string(),
            source: entry.sources().next().unwrap_or_default(),
            size_min_bytes,
            size_max_bytes,
            unmodelled: entry.unmodelled(),
            iops_max,
            bytes_per_second_max,
            burst: entry.burst_rule(),
            price: entry.price().map(PriceDocument::of),
        }
    }
}

#[derive(Serialize)]
struct PriceDocument {
    currency: String,
    region: String,
    as_of: Option<String>,
    source: String,
    per_gib_month: Option<f64>,
    per_iops_month: Option<f64>,
    per_throughput_month: Option<f64>,
    per_million_ios: Option<f64>,
}

impl PriceDocument {
    fn of(price: Price) -> Self {
        PriceDocument {
            currency: price.currency,
            region: price.region,
            as_of: price.as_of,
            source: price.source,
            per_gib_month: price.per_gib_month,
            per_iops_month: price.per_iops_month,
            per_throughput_month: price.per_throughput_month,
            per_million_ios: price.per_million_ios,
        }
    }
}

#[derive(Serialize)]
struct VolumeDocument<'a> {
    size_bytes: u64,
    tier: Option<&'a str>,
    iops_chosen: Option<u64>,
    bytes_per_second_chosen: Option<u64>,
    io_unit_bytes: Option<u64>,
    merges_sequential: bool,
    read_latency_mean_ns: f64,
    write_latency_mean_ns: f64,
    latency_published: bool,
    limits: Vec<LevelDocument>,
    blocks: Vec<BlockDocument>,
    month: Option<MonthDocument<'a>>,
    assumptions: &'a [String],
}

impl<'a> VolumeDocument<'a> {
    fn of(sheet: &'a Sheet) -> Self {
        VolumeDocument {
            size_bytes: sheet.size_bytes,
            tier: sheet.tier.as_deref(),
            iops_chosen: sheet.parameters.iops,
            bytes_per_second_chosen: sheet.parameters.bytes_per_second,
            io_unit_bytes: sheet.io_unit_bytes,
            merges_sequential: sheet.merges_sequential,
            read_latency_mean_ns: sheet.latency_ns.0,
            write_latency_mean_ns: sheet.latency_ns.1,
            latency_published: !sheet.is_latency_assumed,
            limits: sheet.levels.iter().map(LevelDocument::of).collect(),
            blocks: sheet.blocks.iter().map(BlockDocument::of).collect(),
            month: sheet.bill.as_ref().map(MonthDocument::of),
            assumptions: &sheet.assumptions,
        }
    }
}

#[derive(Serialize)]
struct LevelDocument {
    direction: &'static str,
    /// `ios` or `bytes`; the rates are of these a second.
    unit: &'static str,
    base_rate: u64,
    burst_rate: Option<u64>,
    burst: Option<&'static str>,
    capacity: Option<u64>,
    empty_ns: Option<u64>,
    refill_ns: Option<u64>,
}

impl LevelDocument {
    fn of(level: &Level) -> Self {
        let (burst, capacity) = match level.rule {
            Rule::None => (None, None),
            Rule::Credit { capacity } => (Some("credit"), Some(capacity)),
            Rule::Window => (Some("window"), None),
            Rule::Billed => (Some("billed"), None),
        };
        LevelDocument {
            direction: level.direction.name(),
            unit: if level.counted == Counted::Ios { "ios" } else { "bytes" },
            base_rate: level.base,
            burst_rate: level.burst,
            burst,
            capacity,
            empty_ns: level.empty_ns,
            refill_ns: level.refill_ns,
        }
    }
}

#[derive(Serialize)]
struct BlockDocument {
    block_bytes: u64,
    direction: &'static str,
    depth: Option<u64>,
    random: ReachDocument,
    sequential: ReachDocument,
}

impl BlockDocument {
    fn of(row: &BlockRow) -> Self {
        BlockDocument {
            block_bytes: row.block_bytes,
            direction: row.direction.name(),
            depth: row.depth,
            random: ReachDocument::of(&row.random, row.block_bytes as f64),
            sequential: ReachDocument::of(&row.sequential, row.block_bytes as f64),
        }
    }
}

#[derive(Serialize)]
struct ReachDocument {
    /// For ever; null where no limit is known.
    iops: Option<f64>,
    bytes_per_second: Option<f64>,
    burst: Option<BurstDocument>,
}

#[derive(Serialize)]
struct BurstDocument {
    iops: f64,
    bytes_per_second: f64,
    /// Null where it is paid for.
    lasts_ns: Option<u64>,
    refill_ns: Option<u64>,
}

impl ReachDocument {
    fn of(reach: &Reach, block: f64) -> Self {
        let burst = |burst: Burst| BurstDocument {
            iops: burst.rate,
            bytes_per_second: burst.rate * block,
            lasts_ns: burst.lasts_ns,
            refill_ns: burst.refill_ns,
        };
        ReachDocument {
            iops: reach.sustained,
            bytes_per_second: reach.sustained.map(|rate| rate * block),
            burst: reach.burst.map(burst),
        }
    }
}

#[derive(Serialize)]
struct MonthDocument<'a> {
    currency: &'a str,
    region: &'a str,
    as_of: Option<&'a str>,
    source: &'a str,
    /// Of what is known.
    cost: f64,
    /// What is paid for besides, at a price that no source tells.
    unknown: &'a [&'static str],
}

impl<'a> MonthDocument<'a> {
    fn of(bill: &'a MonthlyCost) -> Self {
        MonthDocument {
            currency: &bill.price.currency,
            region: &bill.price.region,
            as_of: bill.price.as_of.as_deref(),
            source: &bill.price.source,
            cost: bill.total(),
            unknown: &bill.unknown,
        }
    }
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
    fn of(offer: &'a Offer) -> Self {
        let (month_per_1000_iops, month_per_100_mib_per_second) = offer.unit_prices();
        OfferDocument {
            id: &offer.id,
            provider: &offer.provider,
            size_bytes: offer.parameters.size_bytes,
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
