//! Latencies as they were measured on a real volume, by direction, block size and I/Os in flight. They replace the latency
//! distribution of a model and the delays of its limits, whose rates and credits remain.
//!
//! A request that finds no limit reached takes a latency that was measured at rest with as many requests in flight. One that
//! finds a limit reached takes the time in which the limit serves what is in flight (Little's law), times a factor from the
//! latencies that were measured at that limit. So rates are those of the limits, and latencies have the measured distribution,
//! whatever the limiter does to single requests: release them in turns, one by one, or several at once.

mod draw;
mod gauge;

use fathom_model::Op;

use crate::latency::{Distribution, Quantile, VolumeLatency};
use crate::model::VolumeModel;
use crate::rng::VolumeRng;
use crate::stage::{LimitStage, Passage, StageRequest};
use draw::{DrawnLatency, MeasuredDraw};
use gauge::{Gauge, InFlight, LimitBacklog, MAX_OWED_NS};

/// The measured latencies of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredLatency {
    /// Of reads.
    pub reads: MeasuredLane,
    /// Of everything else.
    pub writes: MeasuredLane,
    /// Time whose I/Os a limit admits at once after idle time, ns.
    pub turn_ns: u64,
}

/// The measured latencies of one direction. Tables are sorted by block size and depth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredLane {
    /// While no limit was reached; at least one.
    pub at_rest: Vec<LatencyTable>,
    /// While a limit was reached.
    pub limited: Vec<LatencyTable>,
}

/// The latencies of one block size and queue depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyTable {
    /// Bytes per request.
    pub block_bytes: u32,
    /// I/Os in flight.
    pub depth: u32,
    /// As in [`crate::Distribution::Quantiles`].
    pub quantiles: Vec<Quantile>,
}

/// Longest turn.
const MAX_TURN_NS: u64 = 10_000_000_000;

impl LatencyTable {
    fn latency(&self) -> VolumeLatency {
        let distribution = Distribution::Quantiles(self.quantiles.clone());
        VolumeLatency { distribution, transfer: None }
    }
}

impl MeasuredLatency {
    /// The first invalid field, and the reason.
    pub(crate) fn invalid_field(&self) -> Option<(String, String)> {
        if !(1..=MAX_TURN_NS).contains(&self.turn_ns) {
            return Some(("turn_ns".to_owned(), format!("{} is not between 1 ns and 10 s", self.turn_ns)));
        }
        let lanes = [("reads", &self.reads), ("writes", &self.writes)];
        lanes.into_iter().find_map(|(name, lane)| {
            let (field, reason) = lane.invalid_field()?;
            Some((format!("{name}.{field}"), reason))
        })
    }
}

impl MeasuredLane {
    fn invalid_field(&self) -> Option<(String, String)> {
        if self.at_rest.is_empty() {
            return Some(("at_rest".to_owned(), "is empty".to_owned()));
        }
        let tables = [("at_rest", &self.at_rest), ("limited", &self.limited)];
        tables.into_iter().find_map(|(name, tables)| {
            let key = |table: &LatencyTable| (table.block_bytes, table.depth);
            if tables.windows(2).any(|pair| key(&pair[0]) >= key(&pair[1])) {
                return Some((name.to_owned(), "must rise by block size and depth".to_owned()));
            }
            tables.iter().enumerate().find_map(|(index, table)| {
                let at = |field: &str| format!("{name}[{index}].{field}");
                if table.block_bytes == 0 || table.depth == 0 {
                    return Some((at("depth"), "and block_bytes must be above 0".to_owned()));
                }
                let latency = table.latency();
                let reason = match latency.invalid_field() {
                    Some((_, reason)) => reason,
                    None if latency.mean_ns() == 0 => "are 0".to_owned(),
                    None => return None,
                };
                Some((at("quantiles"), reason))
            })
        })
    }
}

/// The gauges of the limits of one stage: I/Os, bytes.
#[derive(Clone, Debug)]
struct StageGauges([Option<Gauge>; 2]);

impl StageGauges {
    fn new(stage: &LimitStage, turn_ns: u64) -> Self {
        StageGauges([stage.ios, stage.bytes].map(|limit| Some(Gauge::new(limit?, turn_ns))))
    }
}

/// The state of a volume whose latencies were measured.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    reads: MeasuredDraw,
    writes: MeasuredDraw,
    in_flight: InFlight,
    /// The gauges of the shared stages, of those of reads and of those of writes.
    gauges: [Vec<StageGauges>; 3],
}

impl Measured {
    pub(crate) fn new(latency: &MeasuredLatency, model: &VolumeModel, rng: &mut VolumeRng) -> Self {
        let gauges = [&model.shared, &model.reads, &model.writes]
            .map(|stages| stages.iter().map(|stage| StageGauges::new(stage, latency.turn_ns)).collect());
        let mut share = || (rng.next_u64() >> 32) as u32;
        Measured {
            reads: MeasuredDraw::new(&latency.reads, share()),
            writes: MeasuredDraw::new(&latency.writes, share()),
            in_flight: InFlight::default(),
            gauges,
        }
    }

    /// The latency of `request`, which arrives at `arrival` and is counted by the stages `shared` and `own`, ns; and whether a
    /// limit decided it.
    pub(crate) fn latency(
        &mut self,
        arrival: u64,
        request: &StageRequest,
        shared: &mut [Passage],
        own: &mut [Passage],
    ) -> (u64, bool) {
        let is_read = request.op == Op::Read;
        let [of_shared, of_reads, of_writes] = &mut self.gauges;
        let of_own = if is_read { of_reads } else { of_writes };
        let mut backlog: Option<LimitBacklog> = None;
        let shared = shared.iter_mut().zip(of_shared.iter_mut());
        for (passage, gauges) in shared.chain(own.iter_mut().zip(of_own.iter_mut())) {
            let cost = passage.count(arrival, request);
            let limiters = passage.limiters();
            for ((gauge, cost), limiter) in gauges.0.iter_mut().zip([cost.ios, cost.bytes]).zip(limiters) {
                let both = gauge.as_mut().zip(limiter);
                let reached = both.and_then(|(gauge, limiter)| gauge.charge(arrival, cost, limiter));
                backlog = [backlog, reached].into_iter().flatten().max_by_key(|backlog| backlog.ns);
            }
            let waiting = gauges.0.iter().flatten().map(Gauge::requests).max().unwrap_or(0);
            passage.limit_debt(arrival, waiting + 1, cost, MAX_OWED_NS);
        }
        self.in_flight.retire(arrival);
        let depth = self.in_flight.requests() + 1;
        let draw = if is_read { &mut self.reads } else { &mut self.writes };
        let DrawnLatency { ns, is_limited, lost_ns } = draw.sample(request.bytes.into(), depth, backlog);
        if lost_ns > 0 {
            let gauges = of_shared.iter_mut().chain(of_own).flat_map(|gauges| &mut gauges.0);
            gauges.flatten().for_each(|gauge| gauge.lose(lost_ns));
        }
        (ns, is_limited)
    }

    /// Keeps the request that was answered last in flight until `end`: at the medium, unless it `waits` for a limit.
    pub(crate) fn keep(&mut self, end: u64, is_read: bool, waits: bool) {
        let [of_shared, of_reads, of_writes] = &mut self.gauges;
        let of_own = if is_read { of_reads } else { of_writes };
        let gauges = of_shared.iter_mut().chain(of_own).flat_map(|gauges| &mut gauges.0);
        gauges.flatten().for_each(|gauge| gauge.keep(end));
        if !waits {
            self.in_flight.add(end, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn table(block_bytes: u32, depth: u32, points: &[(u32, u64)]) -> LatencyTable {
        let quantiles = points.iter().map(|&(per_million, ns)| Quantile { per_million, ns }).collect();
        LatencyTable { block_bytes, depth, quantiles }
    }

    pub(super) fn flat(block_bytes: u32, depth: u32, ns: u64) -> LatencyTable {
        table(block_bytes, depth, &[(0, ns), (1_000_000, ns)])
    }

    #[test]
    fn invalid_tables_are_refused_by_field() {
        let check = |at_rest: Vec<LatencyTable>, turn_ns: u64, expected: Option<&str>| {
            let lane = MeasuredLane { at_rest, limited: Vec::new() };
            let measured =
                MeasuredLatency { reads: lane, writes: MeasuredLane::default(), turn_ns }.invalid_field();
            assert_eq!(measured.map(|(field, _)| field).as_deref(), expected);
        };
        check(vec![flat(4096, 1, 5)], 1, Some("writes.at_rest"));
        check(vec![flat(4096, 1, 5)], 0, Some("turn_ns"));
        check(Vec::new(), 1, Some("reads.at_rest"));
        check(vec![flat(4096, 1, 5), flat(4096, 1, 5)], 1, Some("reads.at_rest"));
        check(vec![flat(4096, 0, 5)], 1, Some("reads.at_rest[0].depth"));
        check(vec![flat(4096, 1, 0)], 1, Some("reads.at_rest[0].quantiles"));
        check(vec![table(4096, 1, &[(0, 5)])], 1, Some("reads.at_rest[0].quantiles"));
        check(vec![table(4096, 1, &[(0, 5), (9, 6), (1, 7)])], 1, Some("reads.at_rest[0].quantiles"));
    }
}
