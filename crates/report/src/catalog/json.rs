//! The documents of `catalog list` and `show`: `fathom.catalog-list/1`, `fathom.catalog-show/1`. Pure.

use std::io::{self, Write};

use fathom_catalog::{
    BlockRow, BurstReach, CatalogEntry, LimitUnit, MonthlyCost, Price, ReachedRate, Rule, Sheet, SheetLimit,
};
use serde::Serialize;

use crate::document::write;

/// Writes the document of a list.
///
/// # Errors
/// Those of `out`.
pub fn list(entries: &[&CatalogEntry], out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct CatalogListDocument<'a> {
        schema: &'static str,
        types: Vec<TypeDocument<'a>>,
    }
    let types = entries.iter().map(|entry| TypeDocument::of(entry)).collect();
    write(&CatalogListDocument { schema: "fathom.catalog-list/1", types }, out)
}

/// Writes the document of one type; `sheets` as for the text.
///
/// # Errors
/// Those of `out`.
pub fn show(entry: &CatalogEntry, sheets: &[Sheet], out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct CatalogShowDocument<'a> {
        schema: &'static str,
        #[serde(flatten)]
        kind: TypeDocument<'a>,
        sources: Vec<&'a str>,
        notes: Option<&'a str>,
        promise_rate_fraction: Option<f64>,
        promise_time_fraction: Option<f64>,
        facts: std::collections::BTreeMap<&'a str, String>,
        volumes: Vec<CatalogVolumeDocument<'a>>,
    }
    let (promise_rate_fraction, promise_time_fraction) = entry.promise();
    let document = CatalogShowDocument {
        schema: "fathom.catalog-show/1",
        kind: TypeDocument::of(entry),
        sources: entry.sources().collect(),
        notes: entry.notes(),
        promise_rate_fraction,
        promise_time_fraction,
        facts: entry.facts().collect(),
        volumes: sheets.iter().map(CatalogVolumeDocument::of).collect(),
    };
    write(&document, out)
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
    fn of(entry: &'a CatalogEntry) -> Self {
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
    iops_up_to: Option<f64>,
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
            iops_up_to: price.iops_up_to,
            per_throughput_month: price.per_throughput_month,
            per_million_ios: price.per_million_ios,
        }
    }
}

#[derive(Serialize)]
struct CatalogVolumeDocument<'a> {
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
    blocks: Vec<CatalogBlockDocument>,
    month: Option<MonthDocument<'a>>,
    assumptions: &'a [String],
}

impl<'a> CatalogVolumeDocument<'a> {
    fn of(sheet: &'a Sheet) -> Self {
        CatalogVolumeDocument {
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
            blocks: sheet.blocks.iter().map(CatalogBlockDocument::of).collect(),
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
    fn of(level: &SheetLimit) -> Self {
        let (burst, capacity) = match level.rule {
            Rule::None => (None, None),
            Rule::Credit { capacity } => (Some("credit"), Some(capacity)),
            Rule::Window => (Some("window"), None),
            Rule::Billed => (Some("billed"), None),
        };
        LevelDocument {
            direction: level.direction.name(),
            unit: if level.counted == LimitUnit::Ios { "ios" } else { "bytes" },
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
struct CatalogBlockDocument {
    block_bytes: u64,
    direction: &'static str,
    depth: Option<u64>,
    random: ReachDocument,
    sequential: ReachDocument,
}

impl CatalogBlockDocument {
    fn of(row: &BlockRow) -> Self {
        CatalogBlockDocument {
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
    fn of(reach: &ReachedRate, block: f64) -> Self {
        let burst = |burst: BurstReach| BurstDocument {
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
pub(crate) struct MonthDocument<'a> {
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
    pub(crate) fn of(bill: &'a MonthlyCost) -> Self {
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
