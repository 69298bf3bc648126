//! Twins: models of real volumes, made of what was identified (limits and burst credits) and of latencies that were measured by
//! block size and queue depth. Pure functions of the record of an identification.

pub mod agreement;
mod fit;
pub mod measured;
pub mod probe;

use fathom_volume::{
    Accounting, Distribution, LatencyTable, Limit, LimitStage, MeasuredLane, MeasuredLatency, Quantile,
    TokenRate, VolumeLatency, VolumeModel,
};
use serde::{Deserialize, Serialize};

use crate::identified::IoScope;
use crate::identify::probe::IoDirection;

/// The document's schema.
pub const SCHEMA: &str = "fathom.twin/1";

/// A twin as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Twin {
    /// [`SCHEMA`].
    pub schema: String,
    /// The volume that it is a twin of.
    pub source: TwinSource,
    /// Bytes of the volume.
    pub size_bytes: u64,
    /// Limits on I/Os and bytes.
    pub limits: Vec<TwinLimit>,
    /// Bytes that count as one I/O, where larger requests count as several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_unit_bytes: Option<u64>,
    /// I/Os that are served at once, where that is known: for loads of which only sums are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<u32>,
    /// Time whose I/Os a limit admits at once after idle time, ns.
    pub turn_ns: u64,
    /// Latencies by operation, block size and queue depth.
    pub latencies: Vec<TwinLatency>,
    /// What to know of it.
    pub notes: Vec<String>,
}

/// Where a twin comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwinSource {
    /// The target as it was named.
    pub target: String,
    /// The device at the bottom of it, and what it calls itself; empty where unknown.
    pub device: String,
    /// When it was identified, ms since the epoch; 0 for simulated volumes.
    pub identified_unix_ms: u64,
    /// The version of fathom.
    pub version: String,
}

/// The limits on I/Os of some direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwinLimit {
    /// The I/Os that draw on it.
    pub scope: IoScope,
    /// I/Os per second; `None` = no limit known.
    pub iops: Option<TwinRate>,
    /// Bytes per second; `None` = no limit known.
    pub bytes_per_second: Option<TwinRate>,
}

/// A rate that lasts, and the one before it while there are burst credits. Per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwinRate {
    /// The sustained rate.
    pub baseline: u64,
    /// The burst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<TwinBurst>,
}

/// A burst rate and its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwinBurst {
    /// Per second while there are credits; `None` = as fast as other limits allow.
    pub rate: Option<u64>,
    /// Credits of a full bucket.
    pub capacity: u64,
}

impl TwinRate {
    /// The rates that a load may reach, the highest first.
    fn rates(&self) -> impl Iterator<Item = u64> {
        self.burst.and_then(|burst| burst.rate).into_iter().chain([self.baseline])
    }

    /// The limit of the model; `field` is its name in errors.
    fn limit(&self, field: &str) -> Result<Limit, String> {
        let valid = |name: &str, rate: u64| {
            TokenRate::per_second(rate).ok_or_else(|| format!("{field}.{name} {rate} is 0 or too large"))
        };
        let base = valid("baseline", self.baseline)?;
        Ok(match self.burst {
            None => Limit::Rate(base),
            Some(TwinBurst { rate, capacity }) => {
                let burst = rate.map(|rate| valid("burst.rate", rate)).transpose()?;
                Limit::Credit { base, burst, capacity, initial: capacity }
            }
        })
    }
}

/// The latencies of one operation, block size and queue depth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwinLatency {
    /// The operation.
    pub op: TwinOp,
    /// A limit was reached.
    pub is_limited: bool,
    /// Bytes per request.
    pub block_bytes: u32,
    /// Queue depth.
    pub depth: u32,
    /// Of a million requests so many took at most so many ns, linear between.
    pub quantiles: Vec<(u32, u64)>,
}

/// An operation of a twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TwinOp {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// fdatasync after a write.
    Sync,
}

impl From<IoDirection> for TwinOp {
    fn from(way: IoDirection) -> TwinOp {
        match way {
            IoDirection::Read => TwinOp::Read,
            IoDirection::Write => TwinOp::Write,
        }
    }
}

impl Twin {
    /// The volume that behaves like it.
    ///
    /// # Errors
    /// A field that makes no sense, and why: the file was changed.
    pub fn model(&self) -> Result<VolumeModel, String> {
        let [reads, writes] = [TwinOp::Read, TwinOp::Write].map(|op| self.lane(op));
        // What was not measured of one direction is taken from the other.
        let or = |lane: &MeasuredLane, other: &MeasuredLane| {
            if lane.at_rest.is_empty() { other.clone() } else { lane.clone() }
        };
        let (reads, writes) = (or(&reads, &writes), or(&writes, &reads));
        let unit_bytes = self.io_unit_bytes.map(u32::try_from).transpose();
        let unit_bytes = unit_bytes.map_err(|_| "io_unit_bytes is 4 GiB or more".to_owned())?;
        let stages = |scope: IoScope| -> Result<Vec<LimitStage>, String> {
            let of = |(index, limit): (usize, &TwinLimit)| -> Result<LimitStage, String> {
                let field = |name: &str| format!("limits[{index}].{name}");
                let bytes = limit.bytes_per_second.map(|rate| rate.limit(&field("bytes_per_second")));
                Ok(LimitStage {
                    name: "volume".to_owned(),
                    accounting: Accounting { unit_bytes, ..Accounting::default() },
                    ios: limit.iops.map(|rate| rate.limit(&field("iops"))).transpose()?,
                    bytes: bytes.transpose()?,
                    ..LimitStage::default()
                })
            };
            self.limits.iter().enumerate().filter(|(_, limit)| limit.scope == scope).map(of).collect()
        };
        let first = |lane: &MeasuredLane| lane.at_rest.first().map(|table| table.quantiles.clone());
        let latency = |quantiles: Option<Vec<Quantile>>| match quantiles {
            Some(quantiles) => {
                VolumeLatency { distribution: Distribution::Quantiles(quantiles), transfer: None }
            }
            None => VolumeLatency::fixed(0),
        };
        let syncs = self.tables(TwinOp::Sync, false).into_iter().next().map(|table| table.quantiles);
        let model = VolumeModel {
            shared: stages(IoScope::Both)?,
            reads: stages(IoScope::Reads)?,
            writes: stages(IoScope::Writes)?,
            parallelism: self.parallelism,
            read_latency: latency(first(&reads)),
            write_latency: latency(first(&writes)),
            sync_latency: latency(syncs.or_else(|| first(&writes))),
            measured: Some(Box::new(MeasuredLatency { reads, writes, turn_ns: self.turn_ns })),
            ..VolumeModel::unlimited(self.size_bytes)
        };
        model.validate().map_err(|error| error.to_string())?;
        Ok(model)
    }

    /// A limit has a burst bucket.
    pub fn has_bursts(&self) -> bool {
        let rates = self.limits.iter().flat_map(|limit| [limit.iops, limit.bytes_per_second]);
        rates.flatten().any(|rate| rate.burst.is_some())
    }

    fn lane(&self, op: TwinOp) -> MeasuredLane {
        MeasuredLane { at_rest: self.tables(op, false), limited: self.tables(op, true) }
    }

    fn tables(&self, op: TwinOp, is_limited: bool) -> Vec<LatencyTable> {
        let quantile = |&(per_million, ns): &(u32, u64)| Quantile { per_million, ns };
        let of = |latency: &TwinLatency| LatencyTable {
            block_bytes: latency.block_bytes,
            depth: latency.depth,
            quantiles: latency.quantiles.iter().map(quantile).collect(),
        };
        let is_it = |latency: &&TwinLatency| latency.op == op && latency.is_limited == is_limited;
        let mut tables: Vec<LatencyTable> = self.latencies.iter().filter(is_it).map(of).collect();
        tables.sort_by_key(|table| (table.block_bytes, table.depth));
        tables
    }

    /// Requests of `block` bytes a second that the limits on `way` allow: while there are burst credits, if any, and then.
    fn limits_of(&self, way: IoDirection, block: u64) -> Vec<f64> {
        let ios = block.div_ceil(self.io_unit_bytes.unwrap_or(block).max(1)).max(1);
        let mut rates: Vec<f64> = Vec::new();
        for is_burst in [true, false] {
            let one = |rate: Option<TwinRate>, cost: u64| {
                let rate = if is_burst { rate?.rates().next() } else { rate?.rates().last() };
                rate.map(|rate| rate as f64 / cost as f64)
            };
            let of = |limit: &TwinLimit| [one(limit.iops, ios), one(limit.bytes_per_second, block)];
            let scope = |limit: &&TwinLimit| way.is_in(limit.scope);
            rates.extend(self.limits.iter().filter(scope).flat_map(of).flatten().reduce(f64::min));
        }
        rates.dedup();
        rates
    }
}
