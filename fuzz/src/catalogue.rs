//! A catalogue of volume types.

use std::io;

use fathom_catalog::{
    Catalog, CatalogEntry, MonthlyUse, OfferedLoad, Parameters, SimulatedTarget, VolumeNeed,
};
use fathom_report::{Style, TextWriter, catalog::fit as catalog_fit, catalog::json as catalog_json, catalog::list as catalog_list, catalog::show as catalog_show};

use crate::{messages, serving};

/// Most entries of one input that are followed to the end.
const MOST_ENTRIES: usize = 4;

/// Reads the catalogue and does with its entries what the commands do: lists, sheets, prices, models, fits.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let catalog = match Catalog::parse("fuzz.toml", text) {
        Ok(catalog) => catalog,
        Err(error) => return messages::check(&error, error.hint()),
    };
    let entries: Vec<&CatalogEntry> = catalog.entries().take(MOST_ENTRIES).collect();
    let style = Style::default();
    catalog_list::render(&entries, &style, &mut TextWriter::new(&mut io::sink()))
        .expect("a sink takes everything");
    catalog_json::list(&entries, &mut io::sink()).expect("a sink takes everything");
    for entry in entries {
        check_entry(&catalog, entry, &style);
    }
}

fn check_entry(catalog: &Catalog, entry: &CatalogEntry, style: &Style) {
    let mut sheets = Vec::new();
    for size_gib in entry.sizes_gib().into_iter().take(6) {
        let size_bytes = size_gib.checked_mul(1 << 30);
        let parameters = Parameters { size_bytes, ..Parameters::default() };
        match entry.sheet(&parameters) {
            Ok(sheet) => sheets.push(sheet),
            Err(refusal) => messages::check(&refusal.reason, refusal.hint()),
        }
        let month = MonthlyUse { ios: 1e9, billed_transactions: 1e6 };
        if let Err(refusal) = entry.cost_of_month(&parameters, month) {
            messages::check(&refusal.reason, refusal.hint());
        }
    }
    let told = sheets.first();
    let shown = catalog_show::Shown { entry, sheets: &sheets, is_asked: false, told, facts: true };
    catalog_show::render(&shown, style, &mut TextWriter::new(&mut io::sink()))
        .expect("a sink takes everything");
    catalog_json::show(entry, &sheets, &mut io::sink()).expect("a sink takes everything");
    for name in [format!("sim:{}", entry.id()), format!("sim:{}?size=100GiB", entry.id())] {
        match SimulatedTarget::parse(catalog, &name) {
            Ok(target) => serving::check(&target.model, 1, 50),
            Err(error) => messages::check(&error, error.hint().as_deref()),
        }
    }
    check_fit(catalog, entry, style);
}

fn check_fit(catalog: &Catalog, entry: &CatalogEntry, style: &Style) {
    let need = need();
    let fit = catalog.fit(&need, Some(entry.provider()));
    catalog_fit::render(&fit, "a need", style, &mut TextWriter::new(&mut io::sink()))
        .expect("a sink takes everything");
    catalog.lifts(entry, &Parameters::default(), &need);
}

/// 500 requests a second of 16 KiB, any of them.
fn need() -> VolumeNeed {
    VolumeNeed {
        size_bytes: 100 << 30,
        load: OfferedLoad::of(16_384.0, false),
        rate: 500.0,
        in_ios: true,
        in_bytes: false,
        spell: None,
        latency: Vec::new(),
        persistent: false,
    }
}
