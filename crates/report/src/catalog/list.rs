//! What `catalog list` shows: a row for each volume type. Pure.

use fathom_catalog::{CatalogEntry, Confidence, Lifecycle};
use fathom_model::Price;
use fathom_model::units::grouped;
use serde_json::json;

use crate::catalog::json::volume_type;
use crate::catalog::show::{mark_note, marked};
use crate::document::object;
use crate::view::{Block, Cell, Column, Table, Tone, View};

/// The types with the most that each gives.
pub fn view(entries: &[&CatalogEntry]) -> View {
    let mut view = View { data: data(entries), ..View::default() };
    view.push("", [Block::Table(table(entries))]);
    if entries.is_empty() {
        view.push("", [Block::note("No type matches.")]);
    }
    let legend = "Rates are the most that the largest volume sustains, where its provider publishes a rule, or \"as measured\": random IOPS of \
                  4 KiB, sequential MiB/s of 1 MiB I/Os. Prices are per GiB and month, or of the smallest tier, where a \
                  source states them. `fathom catalog show TYPE` shows the details of one.";
    view.push("", [Block::note(legend)]);
    let prices: Vec<Price> = entries.iter().filter_map(|entry| entry.price()).collect();
    view.push("", mark_note(prices.iter()).map(Block::note));
    view
}

fn table(entries: &[&CatalogEntry]) -> Table {
    let price = |price: Price| {
        let tier = || price.tiers.first().map(|tier| (tier.month, format!(" ({})", tier.tier)));
        let (each, unit) = price.per_gib_month.map(|each| (each, String::new())).or_else(tier)?;
        Some(marked(Cell::real(each, format!("{each} {}{unit}", price.currency)), &price))
    };
    let table = Table::of::<&CatalogEntry>(
        &[
            (Column::left("type"), &|entry| entry.id().into()),
            (Column::left("kind").dispensable(3), &|entry| entry.media().into()),
            (Column::left("sizes").dispensable(1), &|entry| sizes(entry).into()),
            (Column::right("IOPS"), &|entry| match entry.unmodelled() {
                Some(_) => "no rule".into(),
                None => entry.most().0.map(whole_iops).into(),
            }),
            (Column::right("MiB/s"), &|entry| entry.most().1.map(Cell::mebibytes).into()),
            (Column::left("burst").dispensable(2), &|entry| entry.burst_rule().into()),
            (Column::right("price"), &|entry| entry.price().and_then(price).into()),
            (Column::left("as of").dispensable(0), &|entry| entry.as_of().split(['.', ' ']).next().into()),
            (Column::left("state"), &|entry| state(entry).into()),
        ],
        entries,
    );
    let tone = |entry: &&CatalogEntry| match entry.lifecycle() {
        Lifecycle::Historical => Tone::Dim,
        _ => Tone::Normal,
    };
    table.toned(entries.iter().map(tone))
}

/// A limit in whole IOPS, rounded down: no more than that is allowed.
pub(super) fn whole_iops(rate: f64) -> Cell {
    Cell::real(rate, grouped(rate as u64))
}

/// `historical`, `from memory`; nothing where it is sold and its rules were looked up.
fn state(entry: &CatalogEntry) -> String {
    let lifecycle = Some(entry.lifecycle()).filter(|lifecycle| *lifecycle != Lifecycle::Current);
    let confidence = Some(entry.confidence()).filter(|confidence| *confidence == Confidence::FromMemory);
    let local = (!entry.is_persistent()).then(|| "not persistent".to_owned());
    let measured = entry.is_as_measured().then(|| "as measured".to_owned());
    let words =
        [measured, lifecycle.map(|word| word.to_string()), confidence.map(|word| word.to_string()), local];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `1 GiB to 16 TiB`, as far as it is known.
pub(crate) fn sizes(entry: &CatalogEntry) -> String {
    match entry.size_range() {
        (None, None) => String::new(),
        (Some(least), None) => format!("from {}", size(least)),
        (None, Some(most)) => format!("to {}", size(most)),
        (Some(least), Some(most)) => format!("{} to {}", size(least), size(most)),
    }
}

/// A size that is sold: whole TiB or GiB as such.
pub(crate) fn size(bytes: u64) -> String {
    const GIB: u64 = 1 << 30;
    match bytes {
        _ if bytes.is_multiple_of(1024 * GIB) => format!("{} TiB", bytes / (1024 * GIB)),
        _ if bytes.is_multiple_of(GIB) => format!("{} GiB", grouped(bytes / GIB)),
        _ => fathom_model::units::bytes(bytes),
    }
}

/// What is known of each type.
fn data(entries: &[&CatalogEntry]) -> Table {
    const COLUMNS: &str = "\
        id,provider,type_name,api_name,media,persistent,lifecycle,as_of,confidence,source,\
        size_min_bytes,size_max_bytes,as_measured,unmodelled,iops_max,bytes_per_second_max,burst,\
        currency=price.currency,region=price.region,per_gib_month=price.per_gib_month,\
        per_iops_month=price.per_iops_month,per_throughput_month=price.per_throughput_month,\
        per_million_ios=price.per_million_ios,price_as_of=price.as_of,price_is_stale,\
        price_confidence=price.confidence,price_source=price.source";
    let document = |entry: &&CatalogEntry| {
        let stale = entry.price().map(|price| price.is_stale);
        let words = json!({ "confidence": entry.confidence().to_string(), "price_is_stale": stale });
        object([volume_type(entry), words])
    };
    Table::of_documents(&[COLUMNS], entries.iter().map(document))
}
