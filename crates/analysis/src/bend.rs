//! Where a curve of rate over queue depth bends, for the points of a sweep as for the rows of any other run.

use crate::plateau::{RunRate, at_the_top, mean};

/// Gain per doubling of the depth below which a point lies on the plateau.
pub(crate) const FLAT: f64 = 0.05;
/// Share of the plateau that the depth for throughput reaches.
const MOST: f64 = 0.95;

/// One depth of a curve, whatever it was measured for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DepthRate {
    /// Requests in flight.
    pub(crate) depth: f64,
    /// Requests per second.
    pub(crate) iops: f64,
    /// Mean latency, ns.
    pub(crate) lat_ns: Option<f64>,
    /// Share of the rate that one more or one less round of requests would make.
    pub(crate) resolution: f64,
}

impl DepthRate {
    fn power(&self) -> f64 {
        self.iops * self.iops / self.depth
    }

    /// Gain in rate and growth of latency from here to `to`, per doubling of the depth.
    pub(crate) fn step(&self, to: &DepthRate) -> (f64, Option<f64>) {
        let doublings = (to.depth / self.depth).log2();
        let per_doubling = |ratio: f64| ratio.powf(1.0 / doublings);
        let growth = to.lat_ns.zip(self.lat_ns).map(|(to, from)| per_doubling(to / from));
        (per_doubling(to.iops / self.iops) - 1.0, growth)
    }
}

/// Where a curve bends, by the places of its points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bend {
    /// The point of most power.
    pub(crate) latency: usize,
    /// The plateau, requests per second, and the first point that gives nearly all of it.
    pub(crate) throughput: Option<(usize, f64)>,
}

/// The bend of a curve, shallowest point first; `None` below two points.
pub(crate) fn bend(curve: &[DepthRate]) -> Option<Bend> {
    if curve.len() < 2 {
        return None;
    }
    // Of points that are alike the shallowest.
    let more_power = |best: usize, at: usize| if curve[at].power() > curve[best].power() { at } else { best };
    let latency = (1..curve.len()).fold(0, more_power);
    let enough = |level: f64| curve.iter().position(|at| at.iops >= MOST * level).zip(Some(level));
    Some(Bend { latency, throughput: plateau(curve).and_then(enough) })
}

/// Rate on the plateau: there is one where the deepest point gains less than 5 % per doubling, or loses.
fn plateau(curve: &[DepthRate]) -> Option<f64> {
    let [.., before, last] = curve else { return None };
    let top = at_the_top(curve.iter().map(|at| at.iops));
    let rate = |&place: &usize| RunRate { rate: curve[place].iops, resolution: curve[place].resolution };
    (before.step(last).0 < FLAT).then(|| mean(top.iter().map(rate)))
}
