//! What a load gets of a simulated volume: slices of time, the burst credits over them, the totals and the monthly cost.

use fathom_model::{LimitUnit, MonthlyCost, Op, PerOp};
use fathom_stats::{DATA_OPS, Latency};
use serde::{Deserialize, Serialize};

use crate::{OpSummary, SyncSummary, TestSummary};

/// What a load gets of a volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Forecast {
    /// The volume as it was named.
    pub target: String,
    /// Its size.
    pub size_bytes: u64,
    /// How long the load was put on it, ns.
    pub elapsed_ns: u64,
    /// Length of a row of the table, ns: one slice or several.
    pub row_ns: u64,
    /// What happened when.
    pub slices: Vec<ForecastSlice>,
    /// The burst credits of the volume, in the order of its limits.
    pub credits: Vec<CreditCourse>,
    /// The whole of each operation.
    pub ops: PerOp<ForecastOp>,
    /// Requests to make sure that what was written is durable.
    pub syncs: Latency,
    /// Times of a second or more in which nothing completed of a job that had requests in flight, in their order.
    pub stalls: Vec<ForecastStall>,
    /// What an open-loop load adds; `None` where the volume sets the pace.
    pub own_pace: Option<OwnPace>,
    /// What the volume costs in a month of that load; `None` where no price is sourced.
    pub monthly_cost: Option<MonthlyCost>,
}

/// A time in which nothing completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForecastStall {
    /// When it began, ns since the load did.
    pub start_ns: u64,
    /// How long it was.
    pub length_ns: u64,
}

/// One operation over the whole span.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForecastOp {
    /// Requests that completed.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Start to completion.
    pub lat: Latency,
}

/// A load whose requests are due at times of its own, whether the volume keeps up or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnPace {
    /// From when a request was due to its completion.
    pub response: Latency,
    /// Requests that were due and had not been made when the time was over.
    pub backlog: u64,
    /// Most requests in flight, where that is known.
    pub most_in_flight: Option<u64>,
    /// How long after the end the last request completed, ns, where that is known.
    pub late_ns: Option<u64>,
}

/// What completed between two instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompletedRequests {
    /// Requests: read, write, trim.
    pub ios: [u64; DATA_OPS],
    /// Their bytes.
    pub bytes: [u64; DATA_OPS],
}

/// A part of the span.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForecastSlice {
    /// Where it begins, ns since the load began.
    pub start_ns: u64,
    /// Where it ends.
    pub end_ns: u64,
    /// What completed in it.
    pub counted: CompletedRequests,
    /// Latencies of that, without squares; least and greatest are those of the whole span.
    pub lat: Latency,
    /// What is left of each credit at its end, tokens; `None` for a window.
    pub credits_left: Vec<Option<u64>>,
    /// For how long each credit was exhausted, ns.
    pub credits_exhausted_ns: Vec<u64>,
}

/// One credit and its course. A window that bursts and rests is one as well: its credit is the burst that is left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CreditCourse {
    /// Which limit: `volume`, or with its direction, `volume reads`.
    pub of: String,
    /// What it counts.
    pub unit: LimitUnit,
    /// The most that is kept, tokens; `None` for a window.
    pub capacity: Option<u64>,
    /// The rate it lets a load have, a second; `None` = no limit.
    pub burst_rate: Option<f64>,
    /// The rate without it.
    pub baseline_rate: f64,
    /// What was left at the end, tokens; `None` for a window.
    pub left: Option<u64>,
    /// The least that was left.
    pub least: Option<u64>,
    /// When it was first exhausted, ns since the load began; `None` = never.
    pub first_exhausted_ns: Option<u64>,
    /// For how long it was exhausted, ns.
    pub exhausted_ns: u64,
    /// It was exhausted at the end.
    pub is_exhausted: bool,
}

impl CreditCourse {
    /// The credit as a share of the most that is kept.
    pub fn share(&self, left: Option<u64>) -> Option<f64> {
        Some(left? as f64 / self.capacity? as f64)
    }
}

impl Forecast {
    /// True where nothing completed in `row` although requests were in flight.
    pub fn is_stalled(&self, row: &ForecastSlice) -> bool {
        let is_in = |stall: &ForecastStall| {
            stall.start_ns < row.end_ns && row.start_ns < stall.start_ns.saturating_add(stall.length_ns)
        };
        row.counted.ios == [0; DATA_OPS] && self.stalls.iter().any(is_in)
    }

    /// The slices in a few rows for a table.
    pub fn rows(&self) -> Vec<ForecastSlice> {
        let mut rows: Vec<ForecastSlice> = Vec::new();
        for slice in &self.slices {
            let row = |at: &ForecastSlice| (at.start_ns + 500_000_000) / self.row_ns.max(1);
            match rows.last_mut() {
                Some(last) if row(last) == row(slice) => last.absorb(slice),
                _ => rows.push(slice.clone()),
            }
        }
        rows
    }

    /// All operations together.
    pub fn total(&self) -> ForecastOp {
        let mut total = ForecastOp::default();
        for (_, op) in self.ops.iter() {
            total.ios += op.ios;
            total.bytes += op.bytes;
            total.failed += op.failed;
            total.lat.merge(&op.lat);
        }
        total
    }

    /// `count` of the whole span, a second.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { count as f64 * 1e9 / self.elapsed_ns as f64 }
    }

    /// The headline numbers.
    pub(crate) fn summary(&self) -> TestSummary {
        let summary = |op: &ForecastOp| {
            (op.ios > 0).then(|| OpSummary {
                ios: op.ios,
                bytes: op.bytes,
                iops: self.per_second(op.ios),
                bytes_per_second: self.per_second(op.bytes),
                lat_ns: op.lat.summary(),
                ..OpSummary::default()
            })
        };
        let syncs = self.syncs.samples();
        TestSummary {
            read: summary(&self.ops[Op::Read]),
            write: summary(&self.ops[Op::Write]),
            trim: summary(&self.ops[Op::Trim]),
            total: summary(&self.total()),
            sync: (syncs > 0).then(|| SyncSummary {
                ios: syncs,
                iops: self.per_second(syncs),
                lat_ns: self.syncs.summary(),
            }),
            elapsed_ns: self.elapsed_ns,
            measured_ns: self.elapsed_ns,
            ..TestSummary::default()
        }
    }
}

impl ForecastSlice {
    /// Requests a second.
    pub fn iops(&self) -> f64 {
        self.per_second(self.counted.ios.iter().sum())
    }

    /// Bytes a second.
    pub fn bytes_per_second(&self) -> f64 {
        self.per_second(self.counted.bytes.iter().sum())
    }

    fn per_second(&self, count: u64) -> f64 {
        let span = self.end_ns.saturating_sub(self.start_ns);
        if span == 0 { 0.0 } else { count as f64 * 1e9 / span as f64 }
    }

    /// The longest time that a credit was exhausted in it, ns.
    pub fn longest_exhausted_ns(&self) -> u64 {
        self.credits_exhausted_ns.iter().max().copied().unwrap_or(0)
    }

    /// Takes in the slice that follows.
    fn absorb(&mut self, next: &ForecastSlice) {
        self.end_ns = next.end_ns;
        self.counted.add(&next.counted);
        self.lat.merge(&next.lat);
        self.credits_left.clone_from(&next.credits_left);
        for (mine, theirs) in self.credits_exhausted_ns.iter_mut().zip(&next.credits_exhausted_ns) {
            *mine = mine.saturating_add(*theirs);
        }
    }
}

impl CompletedRequests {
    /// Adds what completed later.
    pub fn add(&mut self, other: &CompletedRequests) {
        self.ios.iter_mut().zip(other.ios).for_each(|(mine, theirs)| *mine += theirs);
        self.bytes.iter_mut().zip(other.bytes).for_each(|(mine, theirs)| *mine += theirs);
    }
}
