//! What a volume is made of, as it was found out from outside: its limits, the credit behind them, what its medium and a
//! first access take, and how sure each figure is.

pub mod candidate;
mod duration;
pub mod prediction;

use serde::{Deserialize, Serialize};

use crate::estimate::{self, Estimate};

/// A figure as far as it could be seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// The value with the interval that holds the truth in 95 of 100 cases, or the side on which it lies; `None` where
    /// nothing at all is known.
    #[serde(flatten, serialize_with = "estimate::serialize")]
    pub estimate: Option<Estimate>,
    /// Why there is no value, or what to keep in mind with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Figure {
    /// A value between two others.
    pub fn known(value: f64, low: f64, high: f64) -> Figure {
        Figure { estimate: Some(Estimate::Known { value, low, high }), why: None }
    }

    /// Nothing to be seen but a bound, and why.
    pub fn bound(estimate: Estimate, why: impl Into<String>) -> Figure {
        Figure { estimate: Some(estimate), why: Some(why.into()) }
    }

    /// Nothing is known, and why.
    pub fn unknown(why: impl Into<String>) -> Figure {
        Figure { estimate: None, why: Some(why.into()) }
    }

    /// The value where it is known.
    pub fn value(&self) -> Option<f64> {
        self.estimate?.value()
    }
}

/// One figure for reads and one for writes; `None` = not measured (`--read-only`, or the budget ended before).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EachWay {
    /// Of reads.
    pub read: Option<Figure>,
    /// Of writes.
    pub write: Option<Figure>,
}

impl EachWay {
    /// The figures that there are, each with the name of its direction.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &Figure)> {
        [("read", &self.read), ("write", &self.write)]
            .into_iter()
            .filter_map(|(name, figure)| Some((name, figure.as_ref()?)))
    }

    /// The figure of one direction.
    pub fn of(&self, writes: bool) -> Option<&Figure> {
        if writes { self.write.as_ref() } else { self.read.as_ref() }
    }
}

/// What a bucket counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BucketUnit {
    /// Requests, larger ones as several.
    Ios,
    /// Bytes.
    Bytes,
}

/// The direction of I/Os: of those that draw from a bucket, or of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IoScope {
    /// Reads and writes.
    Both,
    /// Reads alone.
    Reads,
    /// Writes alone.
    Writes,
}

impl IoScope {
    /// True where it covers I/Os of one direction.
    pub(crate) const fn counts(self, writes: bool) -> bool {
        match self {
            IoScope::Both => true,
            IoScope::Reads => !writes,
            IoScope::Writes => writes,
        }
    }
}

/// A rate that holds as long as there is credit, and the one after it. Rates in the unit per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Burst {
    /// What is counted.
    pub unit: BucketUnit,
    /// Whose credit it is.
    pub scope: IoScope,
    /// While there is credit.
    pub burst_rate: Figure,
    /// Once it is used up.
    pub baseline_rate: Figure,
    /// Credit when full; what was used where it was not full at first.
    pub capacity: Figure,
    /// Credit that a second of rest gives back.
    pub refill_rate: Figure,
    /// Full to empty at the burst rate, s.
    pub seconds_to_empty: Figure,
    /// Empty to full at rest, s.
    pub seconds_to_refill: Figure,
}

/// What the first access to a place costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FirstTouchCost {
    /// Mean latency of a first access, ns.
    pub first_ns: Figure,
    /// The same places once more, ns.
    pub again_ns: Figure,
    /// Rate of first accesses over that of later ones, 0 to 1.
    pub rate_fraction: Figure,
}

/// What looks like a bucket and is none, or a bucket's rival for an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confounder {
    /// Writes alone fell, and a rest brought nothing back: a flash cache that was full.
    WriteCacheFull,
    /// The rate fell, and a rest brought nothing back: throttling, or another load.
    Throttling,
    /// The rate fell and rose again without a rest: by the clock, or with another load.
    ByItself,
    /// The rate fell while others had the processors of this machine.
    CpuSteal,
    /// The rate fell gradually, and to no steady one.
    Drift,
    /// The rate fell, and no rest was measured that would have restored it.
    RecoveryNotMeasured,
    /// Other processes used the device while limits were measured.
    ForeignIo,
}

/// Another explanation of what was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OtherCause {
    /// Which.
    pub id: Confounder,
    /// What speaks for it.
    pub text: String,
}

/// What identifying cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Time, ns.
    pub time_ns: u64,
    /// Requests.
    pub ios: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// A volume as it was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Identified {
    /// The highest rate of small requests, I/Os a second: the burst where there is a bucket.
    pub iops: EachWay,
    /// The highest rate of large requests, bytes a second: the burst where there is a bucket.
    pub bytes_per_second: EachWay,
    /// Reads and writes draw on the same limits; `None` = unknown.
    pub shares_limits: Option<bool>,
    /// Why it is unknown, or the evidence for it.
    pub shares_limits_why: Option<String>,
    /// The block size at which both limits meet, bytes.
    pub crossover_block_size_bytes: Figure,
    /// The largest request that counts as one I/O, bytes, exactly.
    pub io_unit_bytes: Figure,
    /// Requests that are served at once.
    pub parallelism: Figure,
    /// Latency of a request that waits for no other, ns.
    pub lat_ns: EachWay,
    /// Rates that hold only as long as there is credit, the one that was exhausted first at the head.
    pub bursts: Vec<Burst>,
    /// Why there is none, or how far it was looked for.
    pub burst_why: Option<String>,
    /// The longest that requests went on at the highest rate of their size without a fall, ns: a bucket that would have run
    /// dry by then is not there. `None` = not looked for.
    pub longest_peak_ns: Option<u64>,
    /// What first accesses cost; `None` = nothing was seen.
    pub first_touch: Option<FirstTouchCost>,
    /// Why nothing was seen of first accesses.
    pub first_touch_why: Option<String>,
    /// First accesses were measured, and cost nothing.
    pub has_no_first_touch: bool,
    /// Other explanations of what was seen.
    pub confounders: Vec<OtherCause>,
    /// What it took.
    pub spent: Spent,
}
