//! The curves of a comparison: rates by block size and by queue depth, latencies by percentile, rates over a day, surfaces. Only tests
//! that otherwise did the same work share a curve.

use fathom_model::units;
use fathom_record::{LatencySummary, OpSummary, TestSummary};

use super::rows::{ComparedRow, RunTest};
use super::source::ComparedSource;
use super::work::Work;
use crate::steady::rate_duration::{DurationBasis, Lasting};
use crate::surface::{self, Surface};

/// All curves.
#[derive(Clone, Debug, Default)]
pub struct Curves {
    /// Rates by block size.
    pub ladders: Vec<CurveSet>,
    /// Rates by the number of outstanding I/Os.
    pub depths: Vec<CurveSet>,
    /// Latencies by percentile.
    pub latencies: Vec<LatencyCurves>,
    /// Rates over a day at full load, those first that fall most.
    pub days: Vec<DayCurves>,
    /// Surfaces.
    pub surfaces: Vec<SourceSurface>,
}

/// Curves over one axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CurveSet {
    /// What the tests have in common (`randread QD 64`).
    pub work: String,
    /// The curves; sources without points have none.
    pub curves: Vec<RateCurve>,
}

/// The rates of one source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateCurve {
    /// The place of the source.
    pub source: usize,
    /// Its points, ascending.
    pub points: Vec<RatePoint>,
    /// The published sustained rate that holds at the last point, IOPS.
    pub limit_iops: Option<f64>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RatePoint {
    /// Block size in bytes, or outstanding I/Os.
    pub x: f64,
    /// IOPS; `None` where the source does not state them.
    pub iops: Option<f64>,
    /// Bytes per second; `None` where the source does not state them.
    pub bytes_per_second: Option<f64>,
}

/// The latencies of one direction of a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyCurves {
    /// The test.
    pub test: String,
    /// `read`, `write` or `trim`.
    pub direction: &'static str,
    /// The curves.
    pub curves: Vec<LatencyCurve>,
}

/// The latencies of one source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyCurve {
    /// The place of the source.
    pub source: usize,
    /// Percent and ns, ascending.
    pub points: Vec<(f64, f64)>,
}

/// The rates of one test over a day.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DayCurves {
    /// The test.
    pub test: String,
    /// The curves.
    pub curves: Vec<DayCurve>,
}

/// A rate as it is held from full credits on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DayCurve {
    /// The place of the source.
    pub source: usize,
    /// Stretches: beginning and end in ns, and IOPS. What is unknown is left out.
    pub stretches: Vec<(u64, u64, f64)>,
    /// When burst credits are exhausted, ns; `None` where there are none.
    pub exhausted_ns: Option<u64>,
}

/// The surface of a source.
#[derive(Clone, Debug, Default)]
pub struct SourceSurface {
    /// The place of the source.
    pub source: usize,
    /// Its surface.
    pub surface: Surface,
    /// Bytes of the area.
    pub area: u64,
}

/// Length of a day, ns.
pub const DAY_NS: u64 = 86_400_000_000_000;

/// The curves of all rows.
pub fn curves(sources: &[ComparedSource], rows: &[ComparedRow]) -> Curves {
    let block = |work: &Work| units::parse_bytes(work.block_size.as_deref()?).ok().map(|bytes| bytes as f64);
    let depth = |work: &Work| Some(f64::from(work.iodepth?) * f64::from(work.jobs.unwrap_or(1)));
    Curves {
        ladders: rate_curves(rows, block, |work| Work { block_size: None, ..work.clone() }),
        depths: rate_curves(rows, depth, |work| Work { iodepth: None, jobs: None, ..work.clone() }),
        latencies: rows.iter().flat_map(latencies).collect(),
        days: days(rows),
        surfaces: sources
            .iter()
            .enumerate()
            .filter_map(|(place, source)| surface_of(place, source))
            .collect(),
    }
}

/// The rates over `x` of the tests that are alike in what `rest` leaves; those with one value of it make no curve.
fn rate_curves(
    rows: &[ComparedRow],
    x: impl Fn(&Work) -> Option<f64>,
    rest: impl Fn(&Work) -> Work,
) -> Vec<CurveSet> {
    let mut sets: Vec<(Work, CurveSet)> = Vec::new();
    for row in rows {
        for source in 0..row.runs.len() {
            let Some(run) = row.usable(source).next() else { continue };
            let Some((at, iops)) =
                x(&run.work).zip(run.work.operation.as_ref().map(|_| mean_rate(row, source)))
            else {
                continue;
            };
            let common = rest(&run.work);
            let set = match sets.iter_mut().position(|(known, _)| is_same(known, &common)) {
                Some(place) => &mut sets[place].1,
                None => {
                    let set = CurveSet { work: common.text(), curves: Vec::new() };
                    sets.push((common, set));
                    &mut sets.last_mut().expect("a set was just added").1
                }
            };
            let curve = match set.curves.iter_mut().position(|curve| curve.source == source) {
                Some(place) => &mut set.curves[place],
                None => {
                    set.curves.push(RateCurve { source, ..RateCurve::default() });
                    set.curves.last_mut().expect("a curve was just added")
                }
            };
            let (iops, bytes_per_second) = iops;
            curve.points.push(RatePoint { x: at, iops, bytes_per_second });
            let is_published = run.duration.basis == Some(DurationBasis::PublishedRule);
            curve.limit_iops = run.duration.sustained_iops.filter(|_| is_published).or(curve.limit_iops);
        }
    }
    let mut found: Vec<CurveSet> = sets.into_iter().map(|(_, set)| set).collect();
    for set in &mut found {
        for curve in &mut set.curves {
            curve.points.sort_by(|one, other| one.x.total_cmp(&other.x));
            curve.points.dedup_by(|one, other| one.x == other.x);
        }
        set.curves.sort_by_key(|curve| curve.source);
    }
    found.retain(|set| set.curves.iter().any(|curve| curve.points.len() > 1));
    found
}

/// What is known of both is equal, and the operation is known.
fn is_same(one: &Work, other: &Work) -> bool {
    one.has_operation_of(other) && !one.differs_from(other)
}

/// IOPS and bytes per second: the means of the runs.
fn mean_rate(row: &ComparedRow, source: usize) -> (Option<f64>, Option<f64>) {
    let mean = |of: &dyn Fn(&RunTest) -> Option<f64>| {
        let values: Vec<f64> = row.usable(source).filter_map(of).filter(|value| *value > 0.0).collect();
        (!values.is_empty())
            .then(|| (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp())
    };
    (
        mean(&|run| Some(run.summary.total.as_ref()?.iops)),
        mean(&|run| Some(run.summary.total.as_ref()?.bytes_per_second)),
    )
}

/// The summary of one direction.
type OfDirection = fn(&TestSummary) -> Option<&OpSummary>;

fn latencies(row: &ComparedRow) -> Vec<LatencyCurves> {
    const DIRECTIONS: [(&str, OfDirection); 3] = [
        ("read", |summary| summary.read.as_ref()),
        ("write", |summary| summary.write.as_ref()),
        ("trim", |summary| summary.trim.as_ref()),
    ];
    let of_direction = |(direction, of): (&'static str, OfDirection)| {
        let curve = |source: usize| {
            let run = row.usable(source).next()?;
            let points = percentiles(latency(of(&run.summary)?)?);
            (points.len() > 1).then_some(LatencyCurve { source, points })
        };
        let curves: Vec<LatencyCurve> = (0..row.runs.len()).filter_map(curve).collect();
        (!curves.is_empty()).then(|| LatencyCurves { test: row.test.clone(), direction, curves })
    };
    DIRECTIONS.into_iter().filter_map(of_direction).collect()
}

/// Total latency, else from issue to completion.
fn latency(op: &OpSummary) -> Option<&LatencySummary> {
    [&op.lat_ns, &op.clat_ns].into_iter().find(|latency| latency.p50.is_some())
}

fn percentiles(latency: &LatencySummary) -> Vec<(f64, f64)> {
    let all = [
        (50.0, latency.p50),
        (90.0, latency.p90),
        (95.0, latency.p95),
        (99.0, latency.p99),
        (99.9, latency.p999),
        (99.99, latency.p9999),
    ];
    all.into_iter().filter_map(|(percent, ns)| Some((percent, ns? as f64))).collect()
}

/// The rates of a test over a day at full load; `None` where no source runs on burst credits.
/// The rates that fall most first.
fn days(rows: &[ComparedRow]) -> Vec<DayCurves> {
    let fall = |day: &DayCurves| {
        let of_curve = |curve: &DayCurve| match (curve.stretches.first(), curve.stretches.last()) {
            (Some((_, _, first)), Some((_, _, last))) => first / last,
            _ => 1.0,
        };
        day.curves.iter().map(of_curve).fold(1.0, f64::max)
    };
    let mut days: Vec<DayCurves> = rows.iter().filter_map(day).collect();
    days.sort_by(|one, other| fall(other).total_cmp(&fall(one)));
    days
}

fn day(row: &ComparedRow) -> Option<DayCurves> {
    let curve = |source: usize| {
        let run = row.usable(source).next()?;
        let iops = run.summary.total.as_ref()?.iops;
        let duration = &run.duration;
        let (stretches, exhausted_ns) = match (duration.label, duration.lasts_ns) {
            (Lasting::Sustained, _) => (vec![(0, DAY_NS, iops)], None),
            (Lasting::Burst, Some(lasts)) => {
                let lasts = lasts.min(DAY_NS);
                let after = duration.after_burst().map(|after| (lasts, DAY_NS, after));
                (std::iter::once((0, lasts, iops)).chain(after).collect(), Some(lasts))
            }
            (Lasting::Burst, None) => (vec![(0, DAY_NS, iops)], None),
            // Nothing is known of what follows the measurement.
            (Lasting::Inconclusive, _) => (vec![(0, run.summary.measured_ns.min(DAY_NS), iops)], None),
        };
        Some(DayCurve { source, stretches, exhausted_ns })
    };
    let curves: Vec<DayCurve> = (0..row.runs.len()).filter_map(curve).collect();
    curves
        .iter()
        .any(|curve| curve.exhausted_ns.is_some())
        .then(|| DayCurves { test: row.test.clone(), curves })
}

fn surface_of(place: usize, source: &ComparedSource) -> Option<SourceSurface> {
    let run = source.runs.first()?;
    let surface = surface::assess(&run.record);
    let area = run.record.header.size_bytes;
    (surface.points.len() > 1).then_some(SourceSurface { source: place, surface, area })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::rows::matched_rows;
    use crate::fixture::{TestLoad, record};

    fn of(loads: &[TestLoad]) -> Curves {
        let sources = [ComparedSource::of_records([record(loads)])];
        curves(&sources, &matched_rows(&sources))
    }

    fn shape(sets: &[CurveSet]) -> Vec<(&str, Vec<f64>)> {
        let xs = |set: &CurveSet| set.curves[0].points.iter().map(|point| point.x).collect();
        sets.iter().map(|set| (set.work.as_str(), xs(set))).collect()
    }

    #[test]
    fn tests_that_differ_in_one_part_of_their_load_make_a_curve() {
        let load = |id, bs, depth| TestLoad { id, bs, depth, iops: 1000.0, ..TestLoad::default() };
        let found =
            of(&[load("a", 4096, 1), load("b", 4096, 64), load("c", 65_536, 64), load("d", 16_384, 64)]);
        assert_eq!(shape(&found.ladders), [("randread QD 64", vec![4096.0, 16_384.0, 65_536.0])]);
        assert_eq!(shape(&found.depths), [("randread 4k", vec![1.0, 64.0])]);
        assert!(found.days.is_empty() && found.surfaces.is_empty());
        assert_eq!(found.latencies.len(), 4);
        assert!(shape(&of(&[load("a", 4096, 1)]).ladders).is_empty());
    }
}
