//! Models of types whose provider publishes no rule, built from published measurements: "as measured". They repeat what a
//! volume gave once, and promise nothing.

use fathom_model::units::{bytes, grouped, latency};
use fathom_volume::{Accounting, Cache, Limit, TokenRate, VolumeLatency, VolumeModel};
use serde::Deserialize;

use crate::amount::{self, GIB};
use crate::entry::CatalogEntry;
use crate::host_cache::limited;
use crate::resolve::{Parameters, is_limited, stage, with_slack};

/// The measurements of a volume. Throughputs are in the unit of the entry.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Measured {
    /// The published figures that the numbers are taken from, `run/metric`.
    #[serde(default)]
    pub(crate) inputs: Vec<String>,
    /// Limits on reads and writes together.
    iops: Option<f64>,
    throughput: Option<f64>,
    /// Limits on one direction.
    read_iops: Option<f64>,
    write_iops: Option<f64>,
    read_throughput: Option<f64>,
    write_throughput: Option<f64>,
    read_latency_ms: Option<f64>,
    write_latency_ms: Option<f64>,
    /// I/Os in service at once.
    parallelism: Option<u32>,
    /// The host cache.
    cache: Option<MeasuredCache>,
}

/// The measurements of what a cache serves.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct MeasuredCache {
    size_gib: f64,
    latency_ms: f64,
    write_latency_ms: Option<f64>,
    read_iops: Option<f64>,
    write_iops: Option<f64>,
    read_throughput: Option<f64>,
    write_throughput: Option<f64>,
    /// Rate of sequential reads that miss it, one at a time.
    read_ahead_throughput: Option<f64>,
    /// Writes are acknowledged by the cache.
    #[serde(default)]
    keeps_writes: bool,
    #[serde(default)]
    is_warm: bool,
    /// It is there unless `cache=None` is chosen; else only if a mode is chosen.
    #[serde(default)]
    is_usual: bool,
}

impl Measured {
    /// What it is built from, in sentences.
    pub(crate) fn explanation(&self) -> Vec<String> {
        let inputs = self.inputs.len();
        let mut text = vec![format!(
            "No limits are published: the model is as measured, built from {inputs} published figures of one volume \
             (`fathom catalog published`), and promises nothing."
        )];
        let rate = |figure: f64| grouped(figure as u64);
        text.extend(self.iops.map(|iops| format!("It reached {} IOPS.", rate(iops))));
        if let (Some(read), Some(write)) = (self.read_iops, self.write_iops) {
            text.push(format!("It reached {} read IOPS and {} write IOPS.", rate(read), rate(write)));
        }
        text.extend(self.parallelism.map(|count| match count {
            1 => "It serves one I/O at a time; others queue.".to_owned(),
            count => format!("It serves {count} I/Os at once; others queue."),
        }));
        text.extend(self.cache.as_ref().map(|cache| {
            let (size, time) = (amount::of(cache.size_gib, GIB), amount::milliseconds(cache.latency_ms));
            let usual = if cache.is_usual { "" } else { ", if caching is chosen" };
            let served = if cache.keeps_writes { "reads and writes" } else { "reads" };
            format!("A host cache of {} serves {served}; a read takes {}{usual}.", bytes(size), latency(time))
        }));
        text
    }

    /// The first field whose number makes no sense.
    pub(crate) fn problem(&self) -> Option<String> {
        let cache = self.cache.as_ref();
        let of_cache = cache.map(|cache| {
            let rest = [cache.write_latency_ms, cache.read_iops, cache.write_iops, cache.read_throughput];
            let last = [cache.write_throughput, cache.read_ahead_throughput];
            let first = [Some(cache.size_gib), Some(cache.latency_ms)];
            first.into_iter().chain(rest).chain(last).flatten().collect::<Vec<f64>>()
        });
        let own = [self.iops, self.throughput, self.read_iops, self.write_iops, self.read_throughput];
        let rest = [self.write_throughput, self.read_latency_ms, self.write_latency_ms];
        let all = own.into_iter().chain(rest).flatten().chain(of_cache.unwrap_or_default());
        let bad = all.into_iter().find(|figure| !(*figure > 0.0 && *figure <= 1e12));
        bad.map(|figure| format!("contains {figure}, which is not above 0"))
    }
}

impl CatalogEntry {
    /// True if its model repeats published measurements because its provider publishes no limits.
    pub fn is_as_measured(&self) -> bool {
        self.wire.measured.is_some()
    }

    /// The published figures that its model is built from or fitted to, `run/metric`.
    pub fn fitted_figures(&self) -> impl Iterator<Item = &str> {
        let measured = self.wire.measured.iter().flat_map(|measured| &measured.inputs);
        self.wire.fitted_to.iter().chain(measured).map(String::as_str)
    }

    /// The model of a volume as measured.
    pub(crate) fn measured_model(
        &self,
        measured: &Measured,
        parameters: &Parameters,
        size_bytes: u64,
        assumptions: &mut Vec<String>,
    ) -> Result<VolumeModel, String> {
        if parameters.iops.is_some() || parameters.bytes_per_second.is_some() {
            return Err("its rates are as measured: omit the IOPS and the bandwidth".to_owned());
        }
        if parameters.tier.is_some() || parameters.on_demand {
            return Err("it is known as measured alone: omit tier and on_demand".to_owned());
        }
        assumptions.insert(0, AS_MEASURED.to_owned());
        let unit = self.wire.unit_bytes();
        let whole = |figure: Option<f64>| figure.map(|figure| amount::of(figure, 1));
        let throughput = |figure: Option<f64>| figure.map(|figure| amount::of(figure, unit));
        let limits = |ios: Option<f64>, most: Option<f64>| {
            let rate = |level: Option<u64>| level.and_then(TokenRate::per_second).map(Limit::Rate);
            let stage = stage("volume", Accounting::default(), rate(whole(ios)), rate(throughput(most)));
            let stage = with_slack(stage);
            Some(stage).filter(is_limited).into_iter().collect::<Vec<_>>()
        };
        let around = |figure: f64| VolumeLatency::around(amount::milliseconds(figure));
        let (read_latency, write_latency) = match measured.read_latency_ms {
            Some(read) => (around(read), around(measured.write_latency_ms.unwrap_or(read))),
            None => self.latencies(assumptions),
        };
        let known = measured.cache.as_ref().map(|cache| cache.model(unit)).transpose()?;
        let is_usual = measured.cache.as_ref().is_some_and(|cache| cache.is_usual);
        let cache = match &parameters.cache {
            Some(chosen) => self.cache(Some(chosen), known.as_ref(), assumptions)?,
            None => known.filter(|_| is_usual),
        };
        Ok(VolumeModel {
            cache,
            shared: limits(measured.iops, measured.throughput),
            reads: limits(measured.read_iops, measured.read_throughput),
            writes: limits(measured.write_iops, measured.write_throughput),
            parallelism: measured.parallelism,
            read_latency,
            write_latency,
            first_touch: self.first_touch(parameters, assumptions)?,
            ..VolumeModel::unlimited(size_bytes)
        })
    }
}

/// The statement that labels a model as measured.
const AS_MEASURED: &str = "as measured: its provider publishes no limits, and the model repeats published measurements of \
                           one volume; others may differ";

impl MeasuredCache {
    fn model(&self, unit: u64) -> Result<Cache, String> {
        let whole = |figure: Option<f64>| figure.map(|figure| amount::of(figure, 1));
        let throughput = |figure: Option<f64>| figure.map(|figure| amount::of(figure, unit));
        let size = amount::of(self.size_gib, GIB);
        let cache = Cache::read_only(size, amount::milliseconds(self.latency_ms));
        Ok(Cache {
            write_latency_ns: self.write_latency_ms.map_or(cache.latency_ns, amount::milliseconds),
            dirty_bytes: if self.keeps_writes { size } else { 0 },
            is_warm: self.is_warm,
            read_ahead: throughput(self.read_ahead_throughput).and_then(TokenRate::per_second),
            reads: limited(whole(self.read_iops), throughput(self.read_throughput))?.map(with_slack),
            writes: limited(whole(self.write_iops), throughput(self.write_throughput))?.map(with_slack),
            ..cache
        })
    }
}
