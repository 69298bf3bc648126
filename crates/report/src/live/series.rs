//! Rates and latencies over the time of one test, in a bounded number of points that hide no extreme.

use fathom_record::{Histogram, Snapshot};
use serde::{Deserialize, Serialize};

/// Most points of a series; beyond them adjacent points are joined.
pub const MOST_POINTS: usize = 512;

/// One point: a tick, or several joined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LivePoint {
    /// Length, ns.
    pub span_ns: u64,
    /// Requests completed: read, write, trim.
    pub ios: [u64; 3],
    /// Bytes completed: read, write, trim.
    pub bytes: [u64; 3],
    /// Lowest and highest IOPS of a tick.
    pub iops_range: (f64, f64),
    /// Latencies of measured parts and ramps: bins and their counts, in ascending order; empty where only their sum is known.
    pub latency_bins: Vec<(u16, u64)>,
    /// Their sum, ns.
    pub latency_sum_ns: u64,
    /// Most requests in flight at the end of a tick.
    pub in_flight: u64,
    /// All of it belongs to a ramp.
    pub is_ramp: bool,
}

impl LivePoint {
    /// The tick that `snapshot` ends.
    pub fn of(snapshot: &Snapshot) -> LivePoint {
        let iops = snapshot.iops.iter().sum();
        LivePoint {
            span_ns: snapshot.tick_ns,
            ios: snapshot.ios,
            bytes: snapshot.bytes,
            iops_range: (iops, iops),
            latency_bins: joined(&snapshot.clat_bins, &snapshot.ramp_clat_bins),
            latency_sum_ns: snapshot.clat_sum_ns,
            in_flight: snapshot.in_flight,
            is_ramp: snapshot.ramping,
        }
    }

    /// Adds the point that follows.
    pub fn join(&mut self, next: &LivePoint) {
        self.span_ns += next.span_ns;
        for (mine, more) in self.ios.iter_mut().chain(&mut self.bytes).zip(next.ios.iter().chain(&next.bytes))
        {
            *mine += more;
        }
        let (low, high) = self.iops_range;
        self.iops_range = (low.min(next.iops_range.0), high.max(next.iops_range.1));
        self.latency_bins = joined(&self.latency_bins, &next.latency_bins);
        self.latency_sum_ns = self.latency_sum_ns.saturating_add(next.latency_sum_ns);
        self.in_flight = self.in_flight.max(next.in_flight);
        self.is_ramp &= next.is_ramp;
    }

    /// Mean IOPS.
    pub fn iops(&self) -> f64 {
        self.ios.iter().sum::<u64>() as f64 * 1e9 / self.span_ns.max(1) as f64
    }

    /// Its latencies.
    pub fn latencies(&self) -> Histogram {
        histogram(&self.latency_bins)
    }

    /// Mean latency, ns; `None` where nothing completed.
    pub fn latency_mean_ns(&self) -> Option<u64> {
        self.latency_sum_ns.checked_div(self.ios.iter().sum())
    }
}

/// Latencies from their bins.
pub(crate) fn histogram(bins: &[(u16, u64)]) -> Histogram {
    Histogram::from_sparse(bins.iter().map(|&(bin, count)| (usize::from(bin), count)))
}

/// The sums of two lists of bins.
fn joined(one: &[(u16, u64)], other: &[(u16, u64)]) -> Vec<(u16, u64)> {
    if one.is_empty() || other.is_empty() {
        return [one, other].concat();
    }
    let mut both = histogram(one);
    both.merge(&histogram(other));
    both.sparse().map(|(bin, count)| (bin as u16, count)).collect()
}

/// The points of one test.
#[derive(Clone, Debug, Default)]
pub struct LiveSeries {
    points: Vec<LivePoint>,
    /// A point is as many ticks as two to this power.
    coarser: u32,
    ticks: u64,
}

impl LiveSeries {
    /// Adds a tick.
    pub fn push(&mut self, tick: LivePoint) {
        let joins = !self.ticks.is_multiple_of(1 << self.coarser);
        match self.points.last_mut().filter(|_| joins) {
            Some(last) => last.join(&tick),
            None => self.points.push(tick),
        }
        self.ticks += 1;
        if self.points.len() >= MOST_POINTS && self.ticks.is_multiple_of(1 << self.coarser) {
            self.points = by_twos(&self.points);
            self.coarser += 1;
        }
    }

    /// The points so far, oldest first.
    pub fn points(&self) -> &[LivePoint] {
        &self.points
    }

    /// The same joined to at most `most` columns: each has as many points, but for the last.
    pub fn columns(&self, most: usize) -> Vec<LivePoint> {
        let each = self.points.len().div_ceil(most.max(1)).max(1).next_power_of_two();
        self.points.chunks(each).map(whole).collect()
    }

    /// How many columns of a chart of `most` one of `columns` takes, so that a test of `planned_ns` fills the chart as it ends.
    pub fn columns_each(columns: &[LivePoint], planned_ns: u64, most: usize) -> usize {
        let span_ns = columns.first().map_or(0, |point| point.span_ns).max(1);
        let planned = (planned_ns / span_ns).max(columns.len() as u64).max(1);
        (most as u64 / planned).max(1) as usize
    }
}

fn by_twos(points: &[LivePoint]) -> Vec<LivePoint> {
    points.chunks(2).map(whole).collect()
}

/// Adjacent points as one.
fn whole(points: &[LivePoint]) -> LivePoint {
    let mut joined = points[0].clone();
    points[1..].iter().for_each(|next| joined.join(next));
    joined
}
