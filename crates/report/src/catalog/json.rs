//! The documents of `catalog list`, `show` and `fit`: `fathom.catalog-list/1`, `fathom.catalog-show/1`, `fathom.catalog-fit/1`.
//! Pure.

use std::collections::BTreeMap;
use std::io::{self, Write};

use fathom_catalog::{
    CatalogEntry, ComparedFigure, Confidence, Fit, Lifecycle, Published, PublishedArticle, PublishedRun,
    Sheet, VolumeNeed,
};
use fathom_model::Price;
use serde::Serialize;

use crate::catalog::show::Shown;
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

/// Writes the document of one type; `shown` as for the text.
///
/// # Errors
/// Those of `out`.
pub fn show(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct CatalogShowDocument<'a> {
        schema: &'static str,
        #[serde(flatten)]
        kind: TypeDocument<'a>,
        sources: Vec<&'a str>,
        notes: Option<&'a str>,
        published_rate_fraction: Option<f64>,
        published_time_fraction: Option<f64>,
        facts: BTreeMap<&'a str, String>,
        explanation: Vec<String>,
        volumes: &'a [Sheet],
    }
    let entry = shown.entry;
    let (published_rate_fraction, published_time_fraction) = entry.published_shares();
    let document = CatalogShowDocument {
        schema: "fathom.catalog-show/1",
        kind: TypeDocument::of(entry),
        sources: entry.sources().collect(),
        notes: entry.notes(),
        published_rate_fraction,
        published_time_fraction,
        facts: entry.facts().collect(),
        explanation: shown.explained.map(|sheet| entry.explanation(sheet)).unwrap_or_default(),
        volumes: shown.sheets,
    };
    write(&document, out)
}

/// Writes the document of what serves a need, which `text` tells in words.
///
/// # Errors
/// Those of `out`.
pub fn fit(fit: &Fit, need: &VolumeNeed, text: &str, out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct CatalogFitDocument<'a> {
        schema: &'static str,
        need: NeedDocument<'a>,
        #[serde(flatten)]
        fit: &'a Fit,
    }
    #[derive(Serialize)]
    struct NeedDocument<'a> {
        text: &'a str,
        /// Mean size of a request.
        block_size_bytes: f64,
        bytes_per_second: f64,
        #[serde(flatten)]
        need: &'a VolumeNeed,
    }
    let block_size_bytes = need.load.mean_bytes();
    let need = NeedDocument { text, block_size_bytes, bytes_per_second: need.iops * block_size_bytes, need };
    write(&CatalogFitDocument { schema: "fathom.catalog-fit/1", need, fit }, out)
}

/// Writes the document of published figures.
///
/// # Errors
/// Those of `out`.
pub fn published(runs: &[&PublishedRun], compared: &[ComparedFigure], out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct CatalogPublishedDocument<'a> {
        schema: &'static str,
        runs: Vec<RunDocument<'a>>,
    }
    #[derive(Serialize)]
    struct RunDocument<'a> {
        id: &'a str,
        types: &'a [String],
        volume: &'a str,
        tool: &'a str,
        workload: &'a str,
        source: Option<&'a PublishedArticle>,
        figures: Vec<&'a ComparedFigure>,
    }
    let of = |run: &&'_ PublishedRun| -> Vec<&ComparedFigure> {
        compared.iter().filter(|one| one.run == run.id).collect()
    };
    let runs = runs.iter().map(|run| RunDocument {
        id: &run.id,
        types: &run.types,
        volume: &run.volume,
        tool: &run.tool,
        workload: &run.workload,
        source: Published::shipped().article_of(run),
        figures: of(run),
    });
    write(&CatalogPublishedDocument { schema: "fathom.catalog-published/1", runs: runs.collect() }, out)
}

#[derive(Serialize)]
struct TypeDocument<'a> {
    id: &'a str,
    provider: &'a str,
    type_name: &'a str,
    api_name: Option<&'a str>,
    media: &'a str,
    persistent: bool,
    lifecycle: Lifecycle,
    as_of: &'a str,
    confidence: Confidence,
    source: &'a str,
    size_min_bytes: Option<u64>,
    size_max_bytes: Option<u64>,
    /// The model repeats published measurements, because no rule is published.
    as_measured: bool,
    /// Why there is no model; null where there is one.
    unmodelled: Option<&'static str>,
    /// Sustained, on the largest volume: 4 KiB in random order.
    iops_max: Option<f64>,
    /// The same in sequential requests of 1 MiB; null where bandwidth is not published.
    bytes_per_second_max: Option<f64>,
    /// `credit`, `window`, `billed` or null.
    burst: Option<&'static str>,
    price: Option<Price>,
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
            lifecycle: entry.lifecycle(),
            as_of: entry.as_of(),
            confidence: entry.confidence(),
            source: entry.sources().next().unwrap_or_default(),
            size_min_bytes,
            size_max_bytes,
            as_measured: entry.is_as_measured(),
            unmodelled: entry.unmodelled(),
            iops_max,
            bytes_per_second_max,
            burst: entry.burst_rule(),
            price: entry.price(),
        }
    }
}
