//! The documents of `catalog list`, `show` and `fit`: `fathom.catalog-list/1`, `fathom.catalog-show/1`, `fathom.catalog-fit/1`.
//! Pure.

use std::collections::BTreeMap;
use std::io::{self, Write};

use fathom_catalog::{CatalogEntry, ComparedFigure, Fit, Published, PublishedRun, VolumeNeed};
use serde_json::{Value, json};

use crate::catalog::show::{Shown, details};
use crate::document::{object, write};

/// Writes the document of a list.
///
/// # Errors
/// Those of `out`.
pub fn list(entries: &[&CatalogEntry], out: &mut dyn Write) -> io::Result<()> {
    let types: Vec<Value> = entries.iter().map(|entry| volume_type(entry)).collect();
    write(&json!({ "schema": "fathom.catalog-list/1", "types": types }), out)
}

/// Writes the document of one type; `shown` as for the text.
///
/// # Errors
/// Those of `out`.
pub fn show(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    let entry = shown.entry;
    let rest = json!({
        "facts": entry.facts().collect::<BTreeMap<_, _>>(),
        "explanation": shown.explained.map(|sheet| entry.explanation(sheet)).unwrap_or_default(),
        "volumes": shown.sheets,
    });
    let verdict = json!({ "rules": super::show::rules(shown), "unmodelled": entry.unmodelled() });
    let head = [json!({ "schema": "fathom.catalog-show/1", "verdict": verdict }), volume_type(entry)];
    write(&object(head.into_iter().chain(details(entry)).chain([rest])), out)
}

/// Writes the document of what serves a need, which `text` tells in words.
///
/// # Errors
/// Those of `out`.
pub fn fit(fit: &Fit, need: &VolumeNeed, text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mean_bytes = need.load.mean_bytes();
    let rates = json!({
        "text": text,
        "block_size_bytes": mean_bytes,
        "bytes_per_second": need.iops * mean_bytes,
    });
    let cheapest = fit.priced.iter().filter_map(|priced| {
        let offer = priced.offers.first()?;
        Some(json!({ "id": offer.id, "month": offer.month, "currency": priced.currency }))
    });
    let verdict = json!({ "cheapest": cheapest.collect::<Vec<Value>>() });
    let need = object([rates, json!(need)]);
    let head = json!({ "schema": "fathom.catalog-fit/1", "verdict": verdict, "need": need });
    write(&object([head, json!(fit)]), out)
}

/// Writes the document of published figures.
///
/// # Errors
/// Those of `out`.
pub fn published(runs: &[&PublishedRun], compared: &[ComparedFigure], out: &mut dyn Write) -> io::Result<()> {
    let run = |run: &&PublishedRun| {
        json!({
            "id": run.id,
            "types": run.types,
            "volume": run.volume,
            "tool": run.tool,
            "workload": run.workload,
            "source": Published::shipped().article_of(run),
            "figures": compared.iter().filter(|one| one.run == run.id).collect::<Vec<_>>(),
        })
    };
    let runs: Vec<Value> = runs.iter().map(run).collect();
    write(&json!({ "schema": "fathom.catalog-published/1", "runs": runs }), out)
}

/// A type. `as_measured`: its model repeats published measurements, because no rule is published. `unmodelled` says why there is no
/// model. The maxima are sustained, on the largest volume: 4 KiB in random order, and sequential requests of 1 MiB. `burst` is
/// `credit`, `window`, `billed` or null.
pub(super) fn volume_type(entry: &CatalogEntry) -> Value {
    let (size_min_bytes, size_max_bytes) = entry.size_range();
    let (iops_max, bytes_per_second_max) = entry.most();
    json!({
        "id": entry.id(),
        "provider": entry.provider(),
        "type_name": entry.type_name(),
        "api_name": entry.api_name(),
        "media": entry.media(),
        "persistent": entry.is_persistent(),
        "lifecycle": entry.lifecycle(),
        "as_of": entry.as_of(),
        "confidence": entry.confidence(),
        "source": entry.sources().next().unwrap_or_default(),
        "size_min_bytes": size_min_bytes,
        "size_max_bytes": size_max_bytes,
        "as_measured": entry.is_as_measured(),
        "unmodelled": entry.unmodelled(),
        "iops_max": iops_max,
        "bytes_per_second_max": bytes_per_second_max,
        "burst": entry.burst_rule(),
        "price": entry.price(),
    })
}
