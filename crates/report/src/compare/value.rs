//! Value for money: the volumes by the price of what they sustain, and the cheapest for each use.

use fathom_analysis::compare::VolumeComparison;
use fathom_analysis::compare::source::VolumePrice;
use fathom_analysis::compare::volumes::VolumeSummary;
use fathom_analysis::conclusions::Suitability;

use crate::view::{Block, Cell, Column, Table, View};

/// What a price is put in relation to.
type Relation = fn(&VolumeSummary) -> Option<f64>;

const IOPS: Relation = |volume| volume.price_per_1000_iops;
/// The bandwidth of small I/Os says nothing of the bandwidth limit.
const BANDWIDTH: Relation = |volume| {
    let mean_bytes = volume.sustained_bytes_per_second? / volume.sustained_iops?;
    volume.price_per_100_mib.filter(|_| mean_bytes >= SMALL)
};
/// Bytes of an I/O that is small.
const SMALL: f64 = 16.0 * 1024.0;

/// The volumes whose price is known, the cheapest in this relation first. Prices in several currencies have no order.
fn ranked(comparison: &VolumeComparison, of: Relation) -> Vec<(&VolumeSummary, f64)> {
    let priced = comparison.sources.iter().filter_map(|volume| Some((volume, of(volume)?)));
    let mut all: Vec<(&VolumeSummary, f64)> = priced.collect();
    if !are_comparable(comparison) {
        return Vec::new();
    }
    all.sort_by(|one, other| one.1.total_cmp(&other.1));
    all
}

pub(super) fn push_verdict(comparison: &VolumeComparison, view: &mut View) {
    let order = |of: Relation, unit: &str| {
        let all = ranked(comparison, of);
        let mut texts = Vec::new();
        for (volume, price) in &all {
            let currency = volume.price.as_ref().map(|price| price.currency.as_str()).unwrap_or_default();
            texts.push(match texts.len() {
                0 => format!("{} {price:.2} {currency}", volume.source),
                _ => format!("{} {price:.2}", volume.source),
            });
        }
        (!texts.is_empty()).then(|| format!("{} per {unit} and month", texts.join(", ")))
    };
    let by_iops = order(IOPS, "1,000 sustained IOPS");
    let by_bandwidth = order(BANDWIDTH, "100 MiB/s");
    let is_known = by_iops.is_some() || by_bandwidth.is_some();
    view.say("Value", by_iops);
    view.say("Value", by_bandwidth);
    let has_no_price = |volume: &&VolumeSummary| volume.price.is_none();
    let without: Vec<&str> =
        comparison.sources.iter().filter(has_no_price).map(|volume| volume.source).collect();
    if !without.is_empty() {
        let first = without[0];
        view.say("No price", format!("{}: add --price {first}=12USD/month", without.join(", ")));
    } else if !is_known {
        view.say(
            "Value",
            "prices in several currencies, or without a sustained rate, have no order".to_owned(),
        );
    }
}

pub(super) fn blocks(comparison: &VolumeComparison) -> Vec<Block> {
    let mut volumes: Vec<&VolumeSummary> = comparison.sources.iter().collect();
    let order = |volume: &VolumeSummary| volume.price_per_1000_iops.unwrap_or(f64::INFINITY);
    volumes.sort_by(|one, other| order(one).total_cmp(&order(other)));
    let money = |amount: f64| Cell::real(amount, format!("{amount:.2}"));
    let table = Table::of::<&VolumeSummary>(
        &[
            (Column::left("source"), &|volume| volume.source.into()),
            (Column::left("named").dispensable(0), &|volume| volume.name.trim_start_matches("sim:").into()),
            (Column::right("per month"), &|volume| {
                let price = volume.price.as_ref();
                price.map(|price| format!("{:.2} {}", price.per_month, price.currency)).into()
            }),
            (Column::right("sustains IOPS"), &|volume| Cell::from(volume.sustained_iops.map(Cell::iops))),
            (Column::right("per 1,000 IOPS"), &|volume| volume.price_per_1000_iops.map(money).into()),
            (Column::right("interval").dispensable(1), &|volume| {
                volume.price_per_1000_iops_interval.map(|[low, high]| format!("{low:.2}-{high:.2}")).into()
            }),
            (Column::right("MiB/s"), &|volume| {
                Cell::from(volume.sustained_bytes_per_second.map(Cell::mebibytes))
            }),
            (Column::right("per 100 MiB/s"), &|volume| BANDWIDTH(volume).map(money).into()),
        ],
        &volumes,
    );
    let mut blocks = vec![Block::Table(table.without_empty())];
    let uses = cheapest_by_use(comparison);
    if !uses.is_empty() {
        blocks.push(Block::Notes(uses));
    }
    blocks
}

/// True where all known prices are in one currency.
fn are_comparable(comparison: &VolumeComparison) -> bool {
    let prices = comparison.sources.iter().filter_map(|volume| volume.price.as_ref());
    let mut currencies: Vec<&str> = prices.map(|price| price.currency.as_str()).collect();
    currencies.sort_unstable();
    currencies.dedup();
    currencies.len() <= 1
}

/// For each use that a volume with a whole price suits lastingly, the cheapest of them.
fn cheapest_by_use(comparison: &VolumeComparison) -> Vec<String> {
    if !are_comparable(comparison) {
        return Vec::new();
    }
    let mut of_volume: Vec<(&VolumeSummary, Vec<&str>)> = Vec::new();
    for row in &comparison.uses {
        let suits = comparison.sources.iter().zip(&row.verdicts).filter_map(|(volume, verdict)| {
            let suits = verdict.as_ref().is_some_and(|verdict| verdict.sustained == Suitability::Yes);
            let is_whole = |price: &&VolumePrice| suits && price.excluded.is_empty();
            Some((volume, volume.price.as_ref().filter(is_whole)?.per_month))
        });
        let Some((cheapest, _)) = suits.min_by(|one, other| one.1.total_cmp(&other.1)) else { continue };
        match of_volume.iter_mut().find(|(volume, _)| volume.source == cheapest.source) {
            Some((_, uses)) => uses.push(row.purpose),
            None => of_volume.push((cheapest, vec![row.purpose])),
        }
    }
    let text = |(volume, uses): (&VolumeSummary, Vec<&str>)| {
        let price = volume.price.as_ref().map(|price| format!(", {:.2} {}", price.per_month, price.currency));
        format!("Cheapest for {}: {}{}.", uses.join(", "), volume.source, price.unwrap_or_default())
    };
    of_volume.into_iter().map(text).collect()
}
