//! What `catalog fit` answers: what serves a need, the cheapest first, and why the others do not. Pure.

use fathom_catalog::{Fit, Parameters, PricedOffers, VolumeOffer};
use fathom_model::units::grouped;
use serde_json::json;

use crate::catalog::list::whole_iops;
use crate::catalog::show::{mark_note, marked, month};
use crate::document::object;
use crate::view::{Block, Cell, Column, KeyFigure, Table, View};

/// The answer to a need given as text.
pub fn view(fit: &Fit, need: &str) -> View {
    let mut view = View { data: data(fit), ..View::default() };
    let first = |priced: &PricedOffers| {
        let offer = priced.offers.first()?;
        let bill = offer.month.as_ref()?;
        let size = offer.size_bytes.map(|size| format!(", {} GiB", grouped(size.div_ceil(1 << 30))));
        let chosen = chosen(offer.tier.as_deref(), &offer.parameters);
        let chosen = if chosen.is_empty() { String::new() } else { format!(", {chosen}") };
        Some(format!(
            "{}{}{chosen}: {} {} per month",
            offer.id,
            size.unwrap_or_default(),
            Cell::money(bill.total).text,
            priced.currency
        ))
    };
    match fit.offers().next() {
        None => view.warn("Answer", "no volume type meets this requirement".to_owned()),
        Some(_) if fit.priced.is_empty() => {
            let types = match fit.unpriced.len() {
                1 => "one type meets this requirement; no source states its price".to_owned(),
                count => format!("{count} types meet this requirement; no source states their prices"),
            };
            view.say("Answer", types);
        }
        Some(_) => fit.priced.iter().for_each(|priced| view.say("Cheapest", first(priced))),
    }
    view.say("Need", need.to_owned());
    for (place, PricedOffers { currency, offers }) in fit.priced.iter().enumerate() {
        let mut regions: Vec<&str> = Vec::new();
        for bill in offers.iter().filter_map(|offer| offer.month.as_ref()) {
            if !regions.contains(&bill.price.region.as_str()) {
                regions.push(&bill.price.region);
            }
        }
        let title = format!("Volumes with prices in {currency} per month");
        let stale = mark_note(offers.iter().filter_map(|offer| Some(&offer.month.as_ref()?.price)));
        // The first lines have the cheapest in each other currency.
        if place == 0 {
            view.push_brief(
                title.clone(),
                [Block::Table(offer_table(offers)), Block::Notes(stale.into_iter().collect())],
            );
        }
        view.push_full(format!("{title} ({})", regions.join(", ")), [Block::Table(offer_table(offers))]);
    }
    let unpriced = offer_table(&fit.unpriced).without(&PRICES);
    let unpriced_title = "Volumes without a sourced price";
    match fit.priced.is_empty() {
        true => view.push(unpriced_title, [Block::Table(unpriced)]),
        false => view.push_full(unpriced_title, [Block::Table(unpriced)]),
    }
    view.push_full("Notes", [Block::Notes(notes(fit))]);
    let others = fit.others.iter().map(|other| KeyFigure::new(&other.id, other.why.as_str()));
    let others = [Block::KeyFigures(others.collect())];
    match fit.offers().next() {
        Some(_) => view.push_full("Not suitable", others),
        None => view.push("Not suitable", others),
    }
    view
}

const PRICES: [&str; 3] = ["per month", "/1,000 IOPS", "/100 MiB/s"];

fn offer_table(offers: &[VolumeOffer]) -> Table {
    let size = |size: u64| -> Cell { Cell::integer(size, grouped(size.div_ceil(1 << 30))) };
    let priced = |offer: &VolumeOffer, amount: Option<f64>| -> Cell {
        let mark = |cell: Cell| offer.month.as_ref().map_or(cell.clone(), |bill| marked(cell, &bill.price));
        amount.map(Cell::money).map(mark).into()
    };
    let table = Table::of::<VolumeOffer>(
        &[
            (Column::left("type"), &|offer| offer.id.as_str().into()),
            (Column::right("GiB"), &|offer| offer.size_bytes.map_or_else(|| "?".into(), size)),
            (Column::left("chosen"), &|offer| chosen(offer.tier.as_deref(), &offer.parameters).into()),
            (Column::right("IOPS"), &|offer| offer.iops.map(whole_iops).into()),
            (Column::right("MiB/s").dispensable(2), &|offer| {
                offer.bytes_per_second.map(Cell::mebibytes).into()
            }),
            (Column::right(PRICES[0]), &|offer| offer.month.as_ref().map(month).into()),
            (Column::right(PRICES[1]).dispensable(1), &|offer| priced(offer, offer.month_per_1000_iops)),
            (Column::right(PRICES[2]).dispensable(0), &|offer| {
                priced(offer, offer.month_per_100_mib_per_second)
            }),
        ],
        offers,
    );
    match table.rows.iter().all(|row| row.cells[2].text.is_empty()) {
        true => table.without(&["chosen"]),
        false => table,
    }
}

/// What is chosen of a volume: tier, IOPS and bandwidth.
pub(super) fn chosen(tier: Option<&str>, parameters: &Parameters) -> String {
    let chosen = [
        tier.map(str::to_owned),
        parameters.iops.map(|iops| format!("{} IOPS", grouped(iops))),
        parameters.bytes_per_second.map(|rate| format!("{} MiB/s", Cell::mebibytes(rate as f64).text)),
    ];
    chosen.into_iter().flatten().collect::<Vec<_>>().join(", ")
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
    const COLUMNS: &str = "\
        id,provider,serves,reason,why,size_bytes,tier,iops_chosen=parameters.iops,\
        bytes_per_second_chosen=parameters.bytes_per_second,iops,bytes_per_second,\
        monthly_cost=month.total,cost_unknown=month.unknown,currency=month.currency,price_is_stale,\
        region=month.region,month_per_1000_iops,month_per_100_mib_per_second,notes";
    let offers = fit.offers().map(|offer| {
        let stale = offer.month.as_ref().map(|bill| bill.price.is_stale);
        object([json!(offer), json!({ "serves": true, "price_is_stale": stale })])
    });
    let others = fit.others.iter().map(
        |other| json!({ "id": other.id, "serves": false, "reason": other.reason.name(), "why": other.why }),
    );
    Table::of_documents(&[COLUMNS], offers.chain(others))
}
