//! Where a curve of rate over depth bends. Two rules: the depth of most power (rate over latency), which is the place to
//! be for latency, and the least depth that gives 95 % of the plateau, which is the place to be for throughput.

use serde::Serialize;

use crate::bend::{DepthRate, bend};
use crate::pattern::AccessPattern;
use crate::sweep::point::SweepPoint;

/// Gain per doubling of the depth below which a curve ends: two such doublings in turn, with latency growing as the depth does.
const ENDED: f64 = 0.03;
const QUEUEING: f64 = 1.8;
/// What latency may cost beside that of one request at a time.
const LOW_LATENCY: f64 = 1.10;

/// The bend of one curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Knee {
    /// The pattern.
    pub rw: AccessPattern,
    /// Bytes per request.
    pub block_size_bytes: u64,
    /// Jobs.
    pub numjobs: u32,
    /// Depth of most power, per job.
    pub iodepth_latency: u32,
    /// Least depth that gives 95 % of the plateau, per job; `None` where no plateau was reached.
    pub iodepth_throughput: Option<u32>,
    /// Rate on the plateau, requests per second.
    pub plateau_iops: Option<f64>,
    /// The two rules are more than one doubling apart.
    pub rules_differ: bool,
    /// The best rate at no more than 1.10 times the latency of one request at a time.
    pub low_latency: Option<LowLatencyRate>,
}

/// A rate at hardly more than the latency of one request at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LowLatencyRate {
    /// Requests in flight per job.
    pub iodepth: u32,
    /// Requests per second.
    pub iops: f64,
}

/// The sound points of one curve by depth.
pub fn curve(points: &[SweepPoint], (rw, block, jobs): (AccessPattern, u64, u32)) -> Vec<&SweepPoint> {
    let on_it = |point: &&SweepPoint| {
        let spot = point.spot;
        (spot.rw, spot.block_size_bytes, spot.numjobs) == (rw, block, jobs) && point.is_sound()
    };
    // Of a spot that was measured twice, the later counts.
    let mut curve: Vec<&SweepPoint> = points.iter().rev().filter(on_it).collect();
    curve.sort_by_key(|point| point.spot.iodepth);
    curve.dedup_by_key(|point| point.spot.iodepth);
    curve
}

fn at(point: &SweepPoint) -> DepthRate {
    DepthRate {
        depth: f64::from(point.spot.in_flight()),
        iops: point.iops,
        lat_ns: point.lat_ns.mean,
        resolution: point.resolution(),
    }
}

/// True where more depth only makes requests wait: two steps in turn of no gain, with latency growing as the depth.
pub fn has_ended(curve: &[&SweepPoint]) -> bool {
    let is_queueing = |from: &SweepPoint, to: &SweepPoint| {
        let (gain, growth) = at(from).step(&at(to));
        gain < ENDED && growth.is_some_and(|growth| growth >= QUEUEING)
    };
    matches!(curve, [.., a, b, c] if is_queueing(a, b) && is_queueing(b, c))
}

/// The knee of a curve; `None` without at least two points that begin at `least`, the least depth of the sweep.
pub fn knee(curve: &[&SweepPoint], least: u32) -> Option<Knee> {
    let first = curve.first().filter(|first| first.spot.iodepth == least)?;
    let bend = bend(&curve.iter().map(|point| at(point)).collect::<Vec<_>>())?;
    let latency = curve[bend.latency].spot.iodepth;
    let throughput = bend.throughput.map(|(place, _)| curve[place].spot.iodepth);
    let apart = throughput.map_or(1.0, |depth| f64::from(depth.max(latency)) / f64::from(depth.min(latency)));
    Some(Knee {
        rw: first.spot.rw,
        block_size_bytes: first.spot.block_size_bytes,
        numjobs: first.spot.numjobs,
        iodepth_latency: latency,
        iodepth_throughput: throughput,
        plateau_iops: bend.throughput.map(|(_, plateau)| plateau),
        rules_differ: apart > 2.0,
        low_latency: low_latency(curve),
    })
}

/// The best rate at little more than the latency of one request at a time.
fn low_latency(curve: &[&SweepPoint]) -> Option<LowLatencyRate> {
    let alone = curve.first().filter(|point| point.spot.in_flight() == 1)?.lat_ns.mean?;
    let within =
        curve.iter().filter(|point| point.lat_ns.mean.is_some_and(|mean| mean <= LOW_LATENCY * alone));
    within
        .max_by(|a, b| a.iops.total_cmp(&b.iops))
        .map(|point| LowLatencyRate { iodepth: point.spot.iodepth, iops: point.iops })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::point::SweepSpot;
    use crate::sweep::point::model::Model;

    fn measured(model: &Model, depths: &[u32]) -> Vec<SweepPoint> {
        let spot = |depth| SweepSpot {
            rw: AccessPattern::RandRead,
            block_size_bytes: 4096,
            iodepth: depth,
            numjobs: 1,
        };
        depths.iter().map(|&depth| model.measure(spot(depth), 2_000_000_000, 0.004)).collect()
    }

    #[test]
    fn the_knee_lies_where_the_cap_begins() {
        // 500 us at rest: a cap of 2000 IOPS a depth of 1, of 20,000 one of 10.
        for (iops, latency, throughput, low_latency) in [
            (1_000.0, 1, Some(1), 1),
            (2_000.0, 1, Some(1), 1),
            (8_000.0, 4, Some(4), 4),
            (20_000.0, 8, Some(16), 8),
        ] {
            let model = Model { rest_ns: 500_000.0, ..Model::limited(iops, 1e12) };
            let points = measured(&model, &[1, 2, 4, 8, 16, 32, 64]);
            let curve = curve(&points, (AccessPattern::RandRead, 4096, 1));
            let knee = knee(&curve, 1).unwrap();
            assert_eq!((knee.iodepth_latency, knee.iodepth_throughput), (latency, throughput), "{iops}");
            assert_eq!(knee.low_latency.map(|rate| rate.iodepth), Some(low_latency), "{iops}");
            assert!(!knee.rules_differ && has_ended(&curve), "{iops}");
        }
    }

    #[test]
    fn the_plateau_of_a_curve_that_falls_again_is_its_peak() {
        let model = Model::unlimited(500_000.0);
        let mut points = measured(&model, &[1, 2, 4, 8]);
        let peak = points[2].iops;
        points[3].iops = 0.7 * peak;
        points[3].lat_ns.mean = Some(8e9 / points[3].iops);
        let knee = knee(&curve(&points, (AccessPattern::RandRead, 4096, 1)), 1).unwrap();
        assert_eq!(knee.iodepth_throughput, Some(4));
        assert!(knee.plateau_iops.is_some_and(|plateau| (plateau / peak - 1.0).abs() < 1e-9));
    }

    #[test]
    fn a_curve_that_rises_has_no_plateau() {
        let model = Model::unlimited(500_000.0);
        let points = measured(&model, &[1, 2, 4, 8]);
        let curve = curve(&points, (AccessPattern::RandRead, 4096, 1));
        assert!(!has_ended(&curve));
        let knee = knee(&curve, 1).unwrap();
        assert_eq!((knee.iodepth_latency, knee.iodepth_throughput), (8, None));
    }

    #[test]
    fn one_point_or_a_later_beginning_is_no_curve() {
        let model = Model { rest_ns: 500_000.0, ..Model::limited(1e3, 1e12) };
        for depths in [&[1][..], &[2, 4], &[]] {
            let points = measured(&model, depths);
            assert_eq!(knee(&curve(&points, (AccessPattern::RandRead, 4096, 1)), 1), None, "{depths:?}");
        }
    }
}
