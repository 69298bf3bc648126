//! The model of a volume as plain data, and its validation.

use thiserror::Error;

use crate::cache::Cache;
use crate::client::Client;
use crate::fault::{Fault, invalid_fault};
use crate::first_touch::FirstTouch;
use crate::latency::VolumeLatency;
use crate::limit::Limit;
use crate::measured::MeasuredLatency;
use crate::stage::LimitStage;

/// A volume: the parts that a request passes, in this order, from the client to the medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeModel {
    /// Size.
    pub size_bytes: u64,
    /// The client machine; `None` = its CPU time is unlimited.
    pub client: Option<Client>,
    /// The host cache.
    pub cache: Option<Cache>,
    /// Limits on reads and writes together, in series.
    pub shared: Vec<LimitStage>,
    /// Limits on reads alone, behind those.
    pub reads: Vec<LimitStage>,
    /// Limits on everything but reads, behind those.
    pub writes: Vec<LimitStage>,
    /// Requests served in parallel; `None` = any number. If one direction has limits of its own, each direction has
    /// this many servers.
    pub parallelism: Option<u32>,
    /// Service time of a read.
    pub read_latency: VolumeLatency,
    /// Service time of a write or trim.
    pub write_latency: VolumeLatency,
    /// Service time of a flush. No limit counts flushes.
    pub sync_latency: VolumeLatency,
    /// Latencies as they were measured, which replace those of reads and writes, and the delays of the limits.
    pub measured: Option<Box<MeasuredLatency>>,
    /// Minimum time of a trim, ns. No bandwidth limit counts trims, so this may be their whole time.
    pub least_trim_ns: u64,
    /// The first-touch penalty.
    pub first_touch: Option<FirstTouch>,
    /// Injected faults, by start time.
    pub faults: Vec<Fault>,
}

/// An invalid model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} {reason}")]
pub struct ModelError {
    /// Path of the invalid field: `shared[0].ios.capacity`.
    pub field: String,
    /// The reason.
    pub reason: String,
}

impl ModelError {
    /// The remedy.
    pub fn hint(&self) -> Option<&str> {
        Some("use whole numbers above 0; omit limits that do not exist")
    }
}

/// Upper bound of the parallelism.
const MAX_PARALLEL: u32 = 1 << 20;
/// Upper bound of the slack of a rate; a longer one should be a burst bucket.
const MAX_SLACK_NS: u64 = 10_000_000_000;

impl VolumeModel {
    /// A volume without limits and latency, as a base for other models.
    pub fn unlimited(size_bytes: u64) -> Self {
        VolumeModel {
            size_bytes,
            client: None,
            cache: None,
            shared: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            parallelism: None,
            read_latency: VolumeLatency::fixed(0),
            write_latency: VolumeLatency::fixed(0),
            sync_latency: VolumeLatency::fixed(0),
            measured: None,
            least_trim_ns: 0,
            first_touch: None,
            faults: Vec::new(),
        }
    }

    /// Lets every burst bucket begin at `percent` of its capacity, at most 100; false where there is none.
    pub fn begin_with_credits(&mut self, percent: u64) -> bool {
        let mut has_bucket = false;
        let share = |capacity: u64| (u128::from(capacity) * u128::from(percent.min(100)) / 100) as u64;
        for stage in self.shared.iter_mut().chain(&mut self.reads).chain(&mut self.writes) {
            for limit in [&mut stage.ios, &mut stage.bytes].into_iter().flatten() {
                if let Limit::Credit { capacity, initial, .. } = limit {
                    *initial = share(*capacity);
                    has_bucket = true;
                }
            }
        }
        has_bucket
    }

    /// Lets requests be `slack_ns` ahead of the limits of the volume and its instance. False without limits.
    pub fn set_slack(&mut self, slack_ns: u64) -> bool {
        let stages = self.shared.iter_mut().chain(&mut self.reads).chain(&mut self.writes);
        stages.map(|stage| stage.slack_ns = slack_ns).count() > 0
    }

    /// Refuses invalid numbers, naming the field.
    pub fn validate(&self) -> Result<(), ModelError> {
        let parts: [Option<(String, String)>; 6] = [
            self.invalid_size(),
            self.invalid_service(),
            self.invalid_stage(),
            self.invalid_latency(),
            self.invalid_measurement(),
            invalid_fault(&self.faults)
                .map(|(index, field, reason)| (format!("faults[{index}].{field}"), reason)),
        ];
        match parts.into_iter().flatten().next() {
            Some((field, reason)) => Err(ModelError { field, reason }),
            None => Ok(()),
        }
    }

    fn invalid_size(&self) -> Option<(String, String)> {
        let reason = match self.size_bytes {
            0 => "is 0",
            1..=0x0fff_ffff_ffff_ffff => return None,
            _ => "is above 2^60 - 1",
        };
        Some(("size_bytes".to_owned(), reason.to_owned()))
    }

    fn invalid_service(&self) -> Option<(String, String)> {
        let at = |part: &str, (field, reason): (&str, String)| (format!("{part}.{field}"), reason);
        let client = self.client.and_then(|client| client.limit().err()).map(|fault| at("client", fault));
        let cache = self.cache.as_ref().and_then(Cache::invalid_field);
        let cache = cache.map(|(field, reason)| (format!("cache.{field}"), reason));
        let parallelism = self
            .parallelism
            .filter(|count| !(1..=MAX_PARALLEL).contains(count))
            .map(|count| ("parallelism".to_owned(), format!("{count} is not between 1 and {MAX_PARALLEL}")));
        let first_touch = self.first_touch.and_then(|touch| match touch {
            FirstTouch { chunk_bytes: 0..512, .. } => Some(("chunk_bytes", "is below 512".to_owned())),
            FirstTouch { counts_as: 0, .. } => Some(("counts_as", "is 0".to_owned())),
            _ => None,
        });
        client.or(cache).or(parallelism).or(first_touch.map(|fault| at("first_touch", fault)))
    }

    fn invalid_stage(&self) -> Option<(String, String)> {
        let all = [("shared", &self.shared), ("reads", &self.reads), ("writes", &self.writes)];
        all.into_iter().find_map(|(part, stages)| {
            stages.iter().enumerate().find_map(|(index, stage)| {
                let (field, reason) = stage.invalid_field()?;
                Some((format!("{part}[{index}].{field}"), reason))
            })
        })
    }

    fn invalid_measurement(&self) -> Option<(String, String)> {
        let measured = self.measured.as_ref()?;
        let mut stages = self.shared.iter().chain(&self.reads).chain(&self.writes);
        let is_window = |limit: Option<Limit>| matches!(limit, Some(Limit::Window { .. }));
        if stages.any(|stage| is_window(stage.ios) || is_window(stage.bytes)) {
            return Some(("measured".to_owned(), "does not apply to limits with windows".to_owned()));
        }
        measured.invalid_field().map(|(field, reason)| (format!("measured.{field}"), reason))
    }

    fn invalid_latency(&self) -> Option<(String, String)> {
        let all = [
            ("read_latency", &self.read_latency),
            ("write_latency", &self.write_latency),
            ("sync_latency", &self.sync_latency),
        ];
        all.into_iter().find_map(|(part, latency)| {
            let (field, reason) = latency.invalid_field()?;
            Some((format!("{part}.{field}"), reason))
        })
    }
}

impl LimitStage {
    pub(crate) fn invalid_field(&self) -> Option<(String, String)> {
        let limit = |name: &str, limit: Option<Limit>| {
            let (field, reason) = limit?.invalid_field()?;
            Some((format!("{name}.{field}"), reason))
        };
        let accounting = match self.accounting.unit_bytes {
            Some(0) => Some(("accounting.unit_bytes", "is 0")),
            None if self.accounting.merges_sequential => {
                Some(("accounting.merges_sequential", "needs a unit to merge into"))
            }
            None if self.accounting.whole_units => Some(("accounting.whole_units", "needs a unit")),
            _ => None,
        };
        let slack = (self.slack_ns > MAX_SLACK_NS).then(|| format!("{} is more than 10 s", self.slack_ns));
        let billing = self.billing.filter(|billing| billing.transaction_bytes == 0);
        accounting
            .map(|(field, reason)| (field.to_owned(), reason.to_owned()))
            .or_else(|| limit("ios", self.ios))
            .or_else(|| limit("bytes", self.bytes))
            .or_else(|| slack.map(|reason| ("slack_ns".to_owned(), reason)))
            .or_else(|| billing.map(|_| ("billing.transaction_bytes".to_owned(), "is 0".to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Accounting, Billing, TokenRate};

    #[test]
    fn invalid_models_are_refused_by_field() {
        let rate = |tokens| TokenRate::per_second(tokens).unwrap();
        let check = |change: &dyn Fn(&mut VolumeModel), expected: Option<&str>| {
            let mut model = VolumeModel::unlimited(1 << 30);
            model.shared.push(LimitStage { ios: Some(Limit::Rate(rate(5000))), ..LimitStage::default() });
            change(&mut model);
            let found = model.validate().err();
            assert_eq!(found.as_ref().map(|error| error.field.as_str()), expected, "{found:?}");
        };
        check(&|_| {}, None);
        check(&|model| model.size_bytes = 0, Some("size_bytes"));
        check(&|model| model.size_bytes = u64::MAX, Some("size_bytes"));
        check(&|model| model.parallelism = Some(0), Some("parallelism"));
        check(
            &|model| {
                let (base, burst) = (rate(100), Some(rate(50)));
                let bytes = Some(Limit::Credit { base, burst, capacity: 1, initial: 1 });
                model.reads = vec![LimitStage::default(), LimitStage { bytes, ..LimitStage::default() }];
            },
            Some("reads[1].bytes.burst"),
        );
        check(
            &|model| model.shared[0].accounting.unit_bytes = Some(0),
            Some("shared[0].accounting.unit_bytes"),
        );
        check(
            &|model| {
                let accounting = Accounting { merges_sequential: true, ..Accounting::default() };
                model.writes.push(LimitStage { accounting, ..LimitStage::default() });
            },
            Some("writes[0].accounting.merges_sequential"),
        );
        check(
            &|model| model.shared[0].billing = Some(Billing { transaction_bytes: 0 }),
            Some("shared[0].billing.transaction_bytes"),
        );
        check(&|model| model.shared[0].slack_ns = u64::MAX, Some("shared[0].slack_ns"));
        check(
            &|model| model.write_latency = VolumeLatency::fixed(u64::MAX),
            Some("write_latency.distribution"),
        );
        check(
            &|model| {
                model.first_touch =
                    Some(FirstTouch { chunk_bytes: 4096, counts_as: 0, extra_ns: 0, initialization: None })
            },
            Some("first_touch.counts_as"),
        );
        check(
            &|model| {
                let kind = crate::FaultKind::Slow { percent: 0 };
                model.faults.push(Fault { at_ns: 0, length_ns: 1, kind });
            },
            Some("faults[0].percent"),
        );
        check(
            &|model| {
                model.cache = Some(Cache { line_bytes: 0, ..Cache::read_only(1 << 20, 0) });
            },
            Some("cache.line_bytes"),
        );
    }
}
