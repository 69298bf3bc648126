//! What `catalog fit` answers: what serves a need, the cheapest first, and why the others do not. Pure.

use fathom_catalog::{Fit, PricedOffers, VolumeOffer};
use fathom_model::units::grouped;

use crate::catalog::list::whole_iops;
use crate::catalog::show::{mark_note, marked, month};
use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, View};

/// The answer to a need given as text.
pub fn view(fit: &Fit, need: &str) -> View {
    let mut view = View { data: data(fit), ..View::default() };
    view.push("", [Block::note(need)]);
    for PricedOffers { currency, offers } in &fit.priced {
        let mut regions: Vec<&str> = Vec::new();
        for bill in offers.iter().filter_map(|offer| offer.month.as_ref()) {
            if !regions.contains(&bill.price.region.as_str()) {
                regions.push(&bill.price.region);
            }
        }
        let title = format!("Volumes with prices in {currency} per month ({})", regions.join(", "));
        view.push(title, [Block::Table(offer_table(offers))]);
    }
    let unpriced = offer_table(&fit.unpriced).without(&PRICES);
    view.push("Volumes without a sourced price", [Block::Table(unpriced)]);
    if fit.offers().next().is_none() {
        view.push("", [Block::note("No volume type meets this requirement.")]);
    }
    view.push("Notes", [Block::Notes(notes(fit))]);
    let others = fit.others.iter().map(|other| KeyFigure::new(&other.id, other.why.as_str()));
    view.push("Not suitable", [Block::KeyFigures(others.collect())]);
    view
}

const PRICES: [&str; 3] = ["per month", "/1,000 IOPS", "/100 MiB/s"];

fn offer_table(offers: &[VolumeOffer]) -> Table {
    let columns = [
        Column::left("type"),
        Column::right("GiB"),
        Column::left("chosen"),
        Column::right("IOPS"),
        Column::right("MiB/s").dispensable(2),
        Column::right(PRICES[0]),
        Column::right(PRICES[1]).dispensable(1),
        Column::right(PRICES[2]).dispensable(0),
    ];
    let table = Table::new(columns, offers.iter().map(row));
    match table.rows.iter().all(|row| row.cells[2].text.is_empty()) {
        true => table.without(&["chosen"]),
        false => table,
    }
}

fn row(offer: &VolumeOffer) -> Row {
    let chosen = [
        offer.tier.clone(),
        offer.parameters.iops.map(|iops| format!("{} IOPS", grouped(iops))),
        offer.parameters.bytes_per_second.map(|rate| format!("{} MiB/s", Cell::mebibytes(rate as f64).text)),
    ];
    let chosen: Vec<String> = chosen.into_iter().flatten().collect();
    let priced = |amount| match &offer.month {
        Some(bill) => marked(Cell::money(amount), &bill.price),
        None => Cell::money(amount),
    };
    Row::new([
        offer.id.as_str().into(),
        offer
            .size_bytes
            .map_or_else(|| "?".into(), |size| Cell::integer(size, grouped(size.div_ceil(1 << 30)))),
        chosen.join(", ").into(),
        offer.iops.map(whole_iops).into(),
        offer.bytes_per_second.map(Cell::mebibytes).into(),
        offer.month.as_ref().map(month).into(),
        offer.month_per_1000_iops.map(priced).into(),
        offer.month_per_100_mib_per_second.map(priced).into(),
    ])
}

/// Each note once, with those whom it concerns.
fn notes(fit: &Fit) -> Vec<String> {
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for offer in fit.offers() {
        let unknown = offer.month.as_ref().filter(|bill| !bill.is_whole());
        let unknown =
            unknown.map(|bill| format!("+ ? is the cost of its {}", bill.unknown.join(" and its ")));
        for note in offer.notes.iter().cloned().chain(unknown) {
            match notes.iter_mut().find(|(known, _)| *known == note) {
                Some((_, ids)) => ids.push(&offer.id),
                None => notes.push((note, vec![&offer.id])),
            }
        }
    }
    let mut notes: Vec<String> =
        notes.iter().map(|(note, ids)| format!("{}: {note}", ids.join(", "))).collect();
    if !notes.is_empty() {
        notes.push("Limits of the instance are not considered.".to_owned());
    }
    notes.extend(mark_note(fit.offers().filter_map(|offer| Some(&offer.month.as_ref()?.price))));
    if !fit.left_out.is_empty() {
        let count = fit.left_out.len();
        notes
            .push(format!("{count} types that are no longer sold are left out; --historical includes them."));
    }
    notes
}

/// Every type that was looked at: what it offers, or why it does not serve.
fn data(fit: &Fit) -> Table {
    let columns = [
        Column::left("id"),
        Column::left("provider"),
        Column::left("serves"),
        Column::left("reason"),
        Column::left("why"),
        Column::right("size_bytes"),
        Column::left("tier"),
        Column::right("iops_chosen"),
        Column::right("bytes_per_second_chosen"),
        Column::right("iops"),
        Column::right("bytes_per_second"),
        Column::right("monthly_cost"),
        Column::left("cost_unknown"),
        Column::left("currency"),
        Column::left("price_is_stale"),
        Column::left("region"),
        Column::right("month_per_1000_iops"),
        Column::right("month_per_100_mib_per_second"),
        Column::left("notes"),
    ];
    let offer = |offer: &VolumeOffer| {
        let bill = offer.month.as_ref();
        Row::new([
            offer.id.as_str().into(),
            offer.provider.as_str().into(),
            "true".into(),
            Cell::default(),
            Cell::default(),
            offer.size_bytes.map(Cell::bytes).into(),
            offer.tier.as_deref().into(),
            offer.parameters.iops.map(Cell::count).into(),
            offer.parameters.bytes_per_second.map(Cell::count).into(),
            offer.iops.map(Cell::iops).into(),
            offer.bytes_per_second.map(Cell::mebibytes).into(),
            bill.map(|bill| Cell::money(bill.total)).into(),
            bill.map(|bill| bill.unknown.join("; ")).into(),
            bill.map(|bill| bill.price.currency.as_str()).into(),
            bill.map(|bill| bill.price.is_stale.to_string()).into(),
            bill.map(|bill| bill.price.region.as_str()).into(),
            offer.month_per_1000_iops.map(Cell::money).into(),
            offer.month_per_100_mib_per_second.map(Cell::money).into(),
            offer.notes.join("; ").into(),
        ])
    };
    let others = fit
        .others
        .iter()
        .map(|other| Row::new([other.id.as_str(), "", "false", other.reason.name(), other.why.as_str()]));
    Table::new(columns, fit.offers().map(offer).chain(others))
}
