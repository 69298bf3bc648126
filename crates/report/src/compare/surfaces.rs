//! The surfaces of the sources beside each other: rates, access time, and the rate of each part of the area.

use fathom_analysis::compare::VolumeComparison;
use fathom_analysis::compare::figure::ratio_text;
use fathom_analysis::compare::surfaces::{PlaceRate, SurfaceSummary};

use crate::view::{Block, Cell, Column, Row, Table};

/// Surfaces beside each other in one table of text.
const ABREAST: usize = 4;

/// A figure of a surface: its name and value, and how the value looks.
type SurfaceFigure = (&'static str, fn(&SurfaceSummary) -> Option<f64>, fn(f64) -> Cell);

/// The figures, in reading order.
const FIGURES: [SurfaceFigure; 9] = [
    ("lowest rate", |one| Some(one.transfer_rate?.min), Cell::rate),
    ("mean rate", |one| Some(one.transfer_rate?.mean), Cell::rate),
    ("highest rate", |one| Some(one.transfer_rate?.max), Cell::rate),
    ("CV", |one| Some(one.transfer_rate?.cv), Cell::percent),
    ("access time, mean", |one| one.access_lat_ns.mean, Cell::mean_latency),
    ("access time, p99", |one| one.access_lat_ns.p99.map(|ns| ns as f64), Cell::mean_latency),
    ("saturated rate", |one| one.saturated_bytes_per_second, Cell::rate),
    ("burst rate", |one| one.burst_bytes_per_second, Cell::rate),
    (
        "failed places",
        |one| (one.failed_points > 0).then_some(one.failed_points as f64),
        |count| Cell::count(count as u64),
    ),
];

/// The section; empty without a surface.
pub(super) fn blocks(comparison: &VolumeComparison) -> Vec<Block> {
    let surfaces = &comparison.surfaces;
    let tables = surfaces.chunks(ABREAST).map(|few| Block::Table(table(few)));
    tables.chain([Block::Notes(notes(surfaces))]).collect()
}

fn table(surfaces: &[SurfaceSummary]) -> Table {
    let heads = surfaces.iter().map(|one| Column::right(one.source));
    let compared = comparable(surfaces);
    let ratio = compared.map(|[one, other]| match (one.source, other.source) {
        ("A", "B") => Column::right("B/A"),
        _ => Column::right("ratio"),
    });
    let columns: Vec<Column> = std::iter::once(Column::left("figure")).chain(heads).chain(ratio).collect();
    let row = |name: String, values: Vec<Option<f64>>, shown: fn(f64) -> Cell| {
        let cells = values.iter().map(|value| value.map_or_else(|| "not measured".into(), shown));
        let ratio = compared.map(|_| match values.as_slice() {
            [Some(one), Some(other)] if *one > 0.0 => Cell::real(other / one, ratio_text(other / one)),
            _ => Cell::default(),
        });
        let is_known = values.iter().any(Option::is_some);
        is_known.then(|| Row::new(std::iter::once(name.into()).chain(cells).chain(ratio)))
    };
    let figures = FIGURES
        .iter()
        .filter_map(|(name, of, shown)| row((*name).to_owned(), surfaces.iter().map(of).collect(), *shown));
    let most = surfaces.iter().map(|one| one.places.len()).max().unwrap_or(0);
    let places = (0..most).filter_map(|at| {
        let place = surfaces.iter().find_map(|one| one.places.get(at))?;
        let of = |one: &SurfaceSummary| one.places.get(at)?.bytes_per_second;
        row(place_name(place), surfaces.iter().map(of).collect(), Cell::rate)
    });
    Table::new(columns, figures.chain(places))
}

/// Two surfaces whose transfers did the same.
fn comparable(surfaces: &[SurfaceSummary]) -> Option<[&SurfaceSummary; 2]> {
    match surfaces {
        [one, other] if one.work == other.work => Some([one, other]),
        _ => None,
    }
}

/// `rate at 10-20 %`.
fn place_name(place: &PlaceRate) -> String {
    format!("rate at {:.0}-{:.0} %", place.from_fraction * 100.0, place.to_fraction * 100.0)
}

fn notes(surfaces: &[SurfaceSummary]) -> Vec<String> {
    let mut works: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in surfaces {
        match works.iter_mut().find(|(work, _)| *work == one.work) {
            Some((_, sources)) => sources.push(one.source),
            None => works.push((&one.work, vec![one.source])),
        }
    }
    let work = |(work, sources): &(&str, Vec<&str>)| format!("{work} ({})", sources.join(", "));
    let works: Vec<String> = works.iter().map(work).collect();
    let all = (!works.is_empty()).then(|| {
        let differ = if works.len() > 1 { "; different work, no ratio" } else { "" };
        format!("Transfers: {}{differ}. Places are parts of the area.", works.join("; "))
    });
    let limited: Vec<&str> =
        surfaces.iter().filter(|one| one.is_access_limited).map(|one| one.source).collect();
    let limited = (!limited.is_empty())
        .then(|| format!("The access time of {} includes the wait for a limit.", limited.join(", ")));
    all.into_iter().chain(limited).collect()
}
