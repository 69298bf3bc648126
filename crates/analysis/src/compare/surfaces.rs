//! The surfaces of sources in figures: a surface has a test for each place, which is no figure to compare with another source's.

use fathom_model::units::bytes;
use fathom_record::{ActivityKind, LatencySummary, RunRecord};
use serde::Serialize;

use super::curves::SourceSurface;
use super::source::{ComparedSource, LABELS};
use super::work::Work;
use crate::surface::file::FILE;
use crate::surface::point::{SurfacePoint, TRANSFER, job};
use crate::surface::{RateSpread, SaturatedRate};

/// Parts of the area whose rates are compared.
const PLACES: usize = 10;

/// The surface of one source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SurfaceSummary {
    /// The letter of the source.
    pub source: &'static str,
    /// The run that it is of.
    pub run: String,
    /// What the transfers did (`read 64k QD 1`).
    pub work: String,
    /// Bytes of the area.
    pub area_bytes: u64,
    /// The rates of the places that have one, bytes per second.
    pub transfer_rate: Option<RateSpread>,
    /// Places where I/Os stalled or failed.
    pub failed_points: usize,
    /// Latency of single I/Os all over the area.
    pub access_lat_ns: LatencySummary,
    /// A limit held the single I/Os up: the access time includes the wait for it.
    pub is_access_limited: bool,
    /// Mean rate with many outstanding I/Os, bytes per second.
    pub saturated_bytes_per_second: Option<f64>,
    /// Best half second, bytes per second.
    pub burst_bytes_per_second: Option<f64>,
    /// The mean rate of each tenth of the area; none of it where the source has too few places.
    pub places: Vec<PlaceRate>,
}

/// The rate of a part of the area.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlaceRate {
    /// Where it begins, as a share of the area.
    pub from_fraction: f64,
    /// Where it ends.
    pub to_fraction: f64,
    /// Mean over its places, bytes per second; `None` where none has a rate.
    pub bytes_per_second: Option<f64>,
}

/// True of the tests of a surface that are places of it: they are summarised, and only its file benchmark has tests of its own.
pub fn is_place(record: &RunRecord, test: &str) -> bool {
    record.header.activity.kind() == ActivityKind::Surface && !test.starts_with(FILE)
}

/// The surfaces in figures.
pub(super) fn surface_summaries(
    sources: &[ComparedSource],
    surfaces: &[SourceSurface],
) -> Vec<SurfaceSummary> {
    surfaces.iter().filter_map(|one| summary(one, sources.get(one.source)?)).collect()
}

fn summary(one: &SourceSurface, source: &ComparedSource) -> Option<SurfaceSummary> {
    let SourceSurface { surface, area, .. } = one;
    let run = source.runs.first()?;
    let transfers = run.record.tests.iter().filter(|test| job(test, TRANSFER).is_some());
    let work = transfers.take(1).map(|test| {
        let mut alone = test.clone();
        alone.jobs.retain(|job| job.name == TRANSFER);
        Work::of(&alone).text()
    });
    let measured = surface.points.iter().filter(|point| point.rate().is_some()).count();
    Some(SurfaceSummary {
        source: LABELS[one.source],
        run: run.origin.clone(),
        work: work.collect(),
        area_bytes: *area,
        transfer_rate: surface.transfer_rate,
        failed_points: surface.points.len() - measured,
        access_lat_ns: surface.access_lat_ns.clone(),
        is_access_limited: surface.is_access_limited,
        saturated_bytes_per_second: surface
            .saturated_rate
            .as_ref()
            .and_then(|SaturatedRate { mean, .. }| *mean),
        burst_bytes_per_second: surface.burst_rate.as_ref().and_then(|burst| burst.bytes_per_second),
        places: places(&surface.points, *area),
    })
}

fn places(points: &[SurfacePoint], area: u64) -> Vec<PlaceRate> {
    if area == 0 || points.len() < PLACES {
        return Vec::new();
    }
    let of = |place: usize| {
        let at = |point: &&SurfacePoint| {
            (u128::from(point.offset_bytes) * PLACES as u128 / u128::from(area)) as usize == place
        };
        let rates: Vec<f64> = points.iter().filter(at).filter_map(SurfacePoint::rate).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        PlaceRate {
            from_fraction: place as f64 / PLACES as f64,
            to_fraction: (place + 1) as f64 / PLACES as f64,
            bytes_per_second: (!rates.is_empty()).then_some(mean),
        }
    };
    (0..PLACES).map(of).collect()
}

/// The mean transfer rates beside each other, where the transfers did the same.
pub(super) fn surface_sentence(surfaces: &[SurfaceSummary]) -> Option<String> {
    const MOST: usize = 4;
    let rated: Vec<(&SurfaceSummary, f64)> =
        surfaces.iter().filter_map(|one| Some((one, one.transfer_rate?.mean))).collect();
    let [(first, _), .., (last, _)] = rated.as_slice() else { return None };
    if rated.iter().any(|(one, _)| one.work != first.work) {
        return Some("The transfer rates of the surfaces have no order: their transfers differ.".to_owned());
    }
    let named = |(one, rate): &(&SurfaceSummary, f64)| format!("{} {}/s", one.source, bytes(*rate as u64));
    let mut by_rate = rated.clone();
    by_rate.sort_by(|one, other| other.1.total_cmp(&one.1));
    let rest = match rated.len() - by_rate.len().min(MOST) {
        0 => String::new(),
        more => format!(", {more} more"),
    };
    let rates: Vec<String> = by_rate.iter().take(MOST).map(named).collect();
    let place = if rated.len() == 2 {
        format!("{} and {}", first.source, last.source)
    } else {
        "the sources".to_owned()
    };
    Some(format!(
        "Mean transfer rate over the surfaces of {place} ({}): {}{rest}.",
        first.work,
        rates.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{CompareSettings, compare};
    use crate::surface::point::tests::point;
    use fathom_record::{Activity, RunHeader};

    const MIB: u64 = 1 << 20;

    fn surface(rates_mib: &[u64]) -> ComparedSource {
        let tests = rates_mib.iter().zip(0..).map(|(mib, at)| point(at * 100 * MIB, *mib));
        let activity = Activity::Surface;
        let header =
            RunHeader { activity, size_bytes: rates_mib.len() as u64 * 100 * MIB, ..RunHeader::default() };
        let record = RunRecord { header, tests: tests.collect(), ..RunRecord::default() };
        ComparedSource::of_records([record])
    }

    #[test]
    fn a_surface_is_a_summary_and_no_test_for_each_place() {
        let rates: Vec<u64> = (0..20).map(|at| 100 - at).collect();
        let sources = [surface(&rates), surface(&[50; 20])];
        let found = compare(&sources, &CompareSettings::default()).unwrap();
        assert!(found.tests.is_empty() && found.pairs.is_empty());
        let [fast, slow] = found.surfaces.as_slice() else { panic!("{:?}", found.surfaces) };
        let spread = fast.transfer_rate.unwrap();
        let in_mib = |rate: f64| (rate / MIB as f64).round();
        assert_eq!([spread.min, spread.mean, spread.max].map(in_mib), [81.0, 91.0, 100.0]);
        assert_eq!(fast.places.len(), 10);
        let ends = [fast.places[0], fast.places[9]].map(|place| place.bytes_per_second.map(in_mib));
        assert_eq!(ends, [Some(100.0), Some(82.0)], "of two places each");
        assert_eq!((fast.failed_points, fast.access_lat_ns.mean), (0, Some(200_000.0)));
        assert_eq!(slow.source, "B");
        assert_eq!(found.conclusion.len(), 1, "{:?}", found.conclusion);
        assert!(found.conclusion[0].contains("A 90.5 MiB/s, B 50.0 MiB/s"), "{:?}", found.conclusion);
    }
}
