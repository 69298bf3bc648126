//! How long the highest rate of a volume that was identified is known to last.
//!
//! Where no bucket was seen, a rate holds for as long as it was watched; beyond that nothing is known of it.

use crate::estimate::Estimate;
use crate::identified::{BucketUnit, Burst, Figure, Identified};

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
    use crate::identified::{Confounder, OtherCause};
    use crate::identified::{EachWay, IoScope};

    fn exactly(value: f64) -> Figure {
        Figure::known(value, value, value)
    }

    fn both(value: f64) -> EachWay {
        EachWay { read: Some(exactly(value)), write: Some(exactly(value)) }
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

    fn burst(unit: BucketUnit, base: f64) -> Burst {
        Burst {
            unit,
            scope: IoScope::Reads,
            burst_rate: exactly(1e9),
            baseline_rate: exactly(base),
            capacity: exactly(1e9),
            refill_rate: exactly(base),
            seconds_to_empty: Figure::known(100.0, 95.0, 105.0),
            seconds_to_refill: exactly(1e3),
        }
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
        let slow = found(vec![burst(ios, 150.0)]);
        check(&slow, bytes, false, Some(85.5));
        check(&slow, bytes, true, Some(900.0));
        check(&slow, ios, false, None);
        check(&found(vec![burst(ios, 1700.0)]), bytes, false, Some(900.0));
        // 25 MB/s are 6,100 of 4 KiB, 10 MB/s 2,440.
        check(&found(vec![burst(bytes, 25e6)]), ios, false, Some(900.0));
        check(&found(vec![burst(bytes, 10e6)]), ios, false, Some(85.5));
        let mut fell = found(vec![]);
        fell.confounders.push(OtherCause { id: Confounder::Throttling, text: String::new() });
        check(&fell, ios, false, None);
        check(&Identified { longest_peak_ns: None, ..found(vec![]) }, ios, false, None);
    }
}
