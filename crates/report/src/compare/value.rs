//! Value for money: the volumes by the price of what they sustain, and the cheapest for each use.

use fathom_analysis::compare::VolumeComparison;
use fathom_analysis::compare::source::VolumePrice;
use fathom_analysis::compare::volumes::{UseVerdict, VolumeSummary};
use fathom_analysis::conclusions::Suitability;

use crate::view::{Block, Cell, Column, Table, View};

/// What a price is put in relation to.
type Relation = fn(&VolumeSummary) -> Option<f64>;

const IOPS: Relation = |volume| volume.price_per_1000_iops;
const BANDWIDTH: Relation = |volume| volume.price_per_100_mib;

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
        let reached = all.iter().filter(|(volume, _)| volume.is_priced_by_reached());
        let reached: Vec<&str> = reached.map(|(volume, _)| volume.source).collect();
        let as_measured = match reached.len() {
            0 => String::new(),
            count if count == all.len() => " (as measured: a burst is not ruled out)".to_owned(),
            _ => format!(" ({} as measured: a burst is not ruled out)", reached.join(", ")),
        };
        (!texts.is_empty()).then(|| format!("{} per {unit} and month{as_measured}", texts.join(", ")))
    };
    let is_sustained = comparison.sources.iter().all(|volume| !volume.is_priced_by_reached());
    let by_iops = order(IOPS, if is_sustained { "1,000 sustained IOPS" } else { "1,000 IOPS" });
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
            (Column::right("sustains IOPS"), &|volume| volume.sustained_iops.map(Cell::iops).into()),
            (Column::right("reaches IOPS"), &|volume| volume.reached_iops.map(Cell::iops).into()),
            (Column::right("per 1,000 IOPS"), &|volume| volume.price_per_1000_iops.map(money).into()),
            (Column::right("interval").dispensable(1), &|volume| {
                volume.price_per_1000_iops_interval.map(|[low, high]| format!("{low:.2}-{high:.2}")).into()
            }),
            (Column::right("MiB/s"), &|volume| volume.priced_bandwidth().map(Cell::mebibytes).into()),
            (Column::right("per 100 MiB/s"), &|volume| volume.price_per_100_mib.map(money).into()),
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

/// For each use that a volume with a whole price suits lastingly, or as far as it was measured, the cheapest of them.
fn cheapest_by_use(comparison: &VolumeComparison) -> Vec<String> {
    if !are_comparable(comparison) {
        return Vec::new();
    }
    let mut of_volume: Vec<(&VolumeSummary, Vec<&str>, Vec<&str>)> = Vec::new();
    for row in &comparison.uses {
        let suits = comparison.sources.iter().zip(&row.verdicts).filter_map(|(volume, verdict)| {
            let suits = verdict.as_ref().is_some_and(|verdict| {
                let lasts = [Suitability::Yes, Suitability::Inconclusive].contains(&verdict.sustained);
                verdict.sustained == Suitability::Yes || verdict.verdict == Suitability::Yes && lasts
            });
            let is_whole = |price: &&VolumePrice| suits && price.excluded.is_empty();
            Some((volume, volume.price.as_ref().filter(is_whole)?.per_month))
        });
        let Some((cheapest, price)) = suits.min_by(|one, other| one.1.total_cmp(&other.1)) else { continue };
        let is_open = |(volume, verdict): &(&VolumeSummary, &Option<UseVerdict>)| {
            let is_cheaper = volume.price.as_ref().is_some_and(|other| other.per_month < price);
            is_cheaper && verdict.as_ref().is_some_and(|one| one.verdict == Suitability::Inconclusive)
        };
        let open = comparison.sources.iter().zip(&row.verdicts).filter(is_open);
        let open: Vec<&str> = open.map(|(volume, _)| volume.source).collect();
        match of_volume
            .iter_mut()
            .find(|(volume, others, _)| volume.source == cheapest.source && *others == open)
        {
            Some((_, _, uses)) => uses.push(row.purpose),
            None => of_volume.push((cheapest, open, vec![row.purpose])),
        }
    }
    let text = |(volume, open, uses): (&VolumeSummary, Vec<&str>, Vec<&str>)| {
        let price = volume.price.as_ref().map(|price| format!(", {:.2} {}", price.per_month, price.currency));
        let open =
            if open.is_empty() { String::new() } else { format!("; undecided on {}", open.join(", ")) };
        format!("Cheapest for {}: {}{}{open}.", uses.join(", "), volume.source, price.unwrap_or_default())
    };
    of_volume.into_iter().map(text).collect()
}
