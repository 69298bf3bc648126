//! A catalogue of volume types.

use std::io;

use fathom_catalog::{
    Catalog, CatalogEntry, ImportedPrices, MonthlyUse, Parameters, PriceListChoice, SearchScope,
    SimulatedTarget, VolumeNeed, read_price_list,
};
use fathom_predict::OfferedLoad;
use fathom_report::catalog::{
    fit as catalog_fit, json as catalog_json, list as catalog_list, show as catalog_show,
};
use fathom_report::formats::Format;
use fathom_report::view::View;
use fathom_report::{JsonWriter, Style, TextWriter};

use crate::{messages, serving};

/// Most entries of one input that are followed to the end.
const MAX_ENTRIES: usize = 4;

/// Reads the text as a price list, and its prices from the file that they are kept in.
fn check_price_list(text: &str) {
    let choice = PriceListChoice { region: None, date: "2026-11-23", file: "fuzz.json" };
    match read_price_list(text.as_bytes(), choice, Catalog::shipped()) {
        Ok(list) => {
            let mut prices = ImportedPrices::default();
            prices.take(list);
            assert!(ImportedPrices::parse(&prices.text()).is_ok(), "{prices:?}");
        }
        Err(error) => messages::check(&error, Some(&error.hint)),
    }
}

/// Reads the catalogue and does with its entries what the commands do: lists, sheets, prices, models, fits.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    check_price_list(text);
    let catalog = match Catalog::parse("fuzz.toml", text) {
        Ok(catalog) => catalog,
        Err(error) => return messages::check(&error, error.hint()),
    };
    let entries: Vec<&CatalogEntry> = catalog.entries().take(MAX_ENTRIES).collect();
    write(|| catalog_list::view(&entries), |out| catalog_json::list(&entries, out));
    for entry in entries {
        check_entry(&catalog, entry);
    }
}

/// Renders in every format.
fn write(view: impl Fn() -> View, document: impl Fn(&mut JsonWriter<'_>) -> io::Result<()>) {
    for format in Format::ALL {
        format
            .write(&Style::default(), &mut TextWriter::new(&mut io::sink()), &view, &document)
            .expect("a sink takes everything");
    }
}

fn check_entry(catalog: &Catalog, entry: &CatalogEntry) {
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
    let explained = sheets.first();
    let shown = catalog_show::Shown { entry, sheets: &sheets, is_asked: false, explained, facts: true };
    write(|| catalog_show::view(&shown), |out| catalog_json::show(&shown, out));
    for name in [format!("sim:{}", entry.id()), format!("sim:{}?size=100GiB", entry.id())] {
        match SimulatedTarget::parse(catalog, &name) {
            Ok(target) => serving::check(&target.model, 1, 50),
            Err(error) => messages::check(&error, error.hint().as_deref()),
        }
    }
    check_fit(catalog, entry);
}

fn check_fit(catalog: &Catalog, entry: &CatalogEntry) {
    let need = need();
    let fit = catalog.fit(
        &need,
        SearchScope { historical: true, provider: Some(entry.provider()), ..SearchScope::default() },
    );
    write(|| catalog_fit::view(&fit, "a need"), |out| catalog_json::fit(&fit, &need, "a need", out));
    catalog.lifts(entry, &Parameters::default(), &need);
}

/// 500 requests a second of 16 KiB, any of them.
fn need() -> VolumeNeed {
    VolumeNeed {
        size_bytes: 100 << 30,
        load: OfferedLoad::of(16_384.0, false),
        iops: 500.0,
        in_ios: true,
        in_bytes: false,
        burst: None,
        besides: Vec::new(),
        latency: Vec::new(),
        persistent: false,
        instance: None,
    }
}
