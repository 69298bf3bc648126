//! What a volume is made of, as it was found out from outside: its limits, the credit behind them, what its medium and a first access take,
//! how sure each figure is, and how long its highest rate is known to last.

pub mod candidate;
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
    /// The limits are those that the control group of this process sets.
    ControlGroup,
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

/// What comes this near to the highest rate is that.
const HIGHEST: f64 = 0.95;
/// Share of a bucket that is emptied in one go: the limits were found at the expense of the rest.
const EMPTIED: f64 = 0.9;
/// A request that is small for every limit, bytes.
const SMALL: f64 = 4096.0;

/// How long the highest rate of what `unit` counts is known to last in one direction where no bucket of that unit was seen, s;
/// `None` where it was not watched, or fell for another reason.
pub(crate) fn held_s(found: &Identified, unit: BucketUnit, writes: bool) -> Option<f64> {
    if !found.confounders.is_empty() {
        return None;
    }
    let watched = found.longest_peak_ns.map(|ns| ns as f64 / 1e9);
    let Some(first) = found.bursts.iter().find(|burst| burst.scope.counts(writes)) else { return watched };
    if first.unit == unit {
        return None;
    }
    // What was exhausted first was emptied by requests that use up both kinds at their fastest.
    let until_dry = match first.seconds_to_empty.estimate {
        Some(Estimate::Known { low, .. }) => Some(low * EMPTIED),
        _ => None,
    };
    let beside = watched.filter(|_| is_reached_beside(found, first, unit, writes).unwrap_or(false));
    until_dry.into_iter().chain(beside).reduce(f64::max)
}

/// Whether the highest rate of `unit` is reached at the baseline of the other.
fn is_reached_beside(found: &Identified, dry: &Burst, unit: BucketUnit, writes: bool) -> Option<bool> {
    let base = dry.baseline_rate.value()?;
    let beside = match unit {
        BucketUnit::Ios => base / SMALL,
        BucketUnit::Bytes => base * known_at_least(&found.io_unit_bytes)?,
    };
    Some(beside >= HIGHEST * highest(found, unit, writes)?)
}

/// The highest rate of what `unit` counts, or the least that it may be.
pub(crate) fn highest(found: &Identified, unit: BucketUnit, writes: bool) -> Option<f64> {
    let each = match unit {
        BucketUnit::Ios => &found.iops,
        BucketUnit::Bytes => &found.bytes_per_second,
    };
    known_at_least(each.of(writes)?)
}

fn known_at_least(figure: &Figure) -> Option<f64> {
    match figure.estimate? {
        Estimate::Known { value, .. } => Some(value),
        Estimate::AtLeast(low) => Some(low),
        Estimate::AtMost(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn exactly(value: f64) -> Figure {
        Figure::known(value, value, value)
    }

    pub(super) fn both(value: f64) -> EachWay {
        EachWay { read: Some(exactly(value)), write: Some(exactly(value)) }
    }

    pub(super) fn burst(unit: BucketUnit, burst: f64, base: f64, capacity: f64) -> Burst {
        Burst {
            unit,
            scope: IoScope::Both,
            burst_rate: exactly(burst),
            baseline_rate: exactly(base),
            capacity: exactly(capacity),
            refill_rate: exactly(base),
            seconds_to_empty: exactly(capacity / (burst - base)),
            seconds_to_refill: exactly(capacity / base),
        }
    }

    /// 3,000 IOPS and 134 MB/s, watched for 900 s in the end.
    fn found(bursts: Vec<Burst>) -> Identified {
        Identified {
            iops: both(3000.0),
            bytes_per_second: both(134e6),
            io_unit_bytes: Figure::bound(Estimate::AtLeast(80_384.0), ""),
            longest_peak_ns: Some(900_000_000_000),
            bursts,
            ..Identified::default()
        }
    }

    /// A bucket of reads that was emptied in 100 s.
    fn emptied(unit: BucketUnit, base: f64) -> Burst {
        let seconds_to_empty = Figure::known(100.0, 95.0, 105.0);
        Burst { scope: IoScope::Reads, seconds_to_empty, ..burst(unit, 1e9, base, 1e9) }
    }

    #[test]
    fn a_rate_is_known_to_last_as_long_as_it_was_watched() {
        let check = |found: &Identified, unit: BucketUnit, writes: bool, expected: Option<f64>| {
            assert_eq!(held_s(found, unit, writes), expected, "{unit:?} {writes}");
        };
        let (ios, bytes) = (BucketUnit::Ios, BucketUnit::Bytes);
        check(&found(vec![]), ios, false, Some(900.0));
        check(&found(vec![]), bytes, true, Some(900.0));
        // 150 requests of 80,384 bytes are far from 134 MB/s: bytes were used up until I/Os were exhausted, and then no more.
        let slow = found(vec![emptied(ios, 150.0)]);
        check(&slow, bytes, false, Some(85.5));
        check(&slow, bytes, true, Some(900.0));
        check(&slow, ios, false, None);
        check(&found(vec![emptied(ios, 1700.0)]), bytes, false, Some(900.0));
        // 25 MB/s are 6,100 of 4 KiB, 10 MB/s 2,440.
        check(&found(vec![emptied(bytes, 25e6)]), ios, false, Some(900.0));
        check(&found(vec![emptied(bytes, 10e6)]), ios, false, Some(85.5));
        let mut fell = found(vec![]);
        fell.confounders.push(OtherCause { id: Confounder::Throttling, text: String::new() });
        check(&fell, ios, false, None);
        check(&Identified { longest_peak_ns: None, ..found(vec![]) }, ios, false, None);
    }
}
