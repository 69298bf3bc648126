//! The figures of one direction's curve: a value with its interval, or a bound and why.

use super::curve::{Curve, ObservedUnit, SmallIoLimit};
use super::level::{DISTURBED, RateLevel};
use crate::estimate::Estimate;
use crate::identified::Figure;

/// A limit holds a rate at least this even.
const EVEN: f64 = 0.1;
const UNEVEN: &str = "the rate varied more than it does at a limit";

/// The limit on requests of one direction.
pub(super) fn iops(curve: &Curve) -> Figure {
    let rate = curve.top.rate;
    let least = Estimate::AtLeast(rate * (0.99 - curve.top.error));
    match curve.small_limit {
        SmallIoLimit::Count if is_varied(&curve.top) => Figure::bound(least, UNEVEN),
        SmallIoLimit::Count => known(&curve.top, rate, curve.top.unreleased()),
        SmallIoLimit::Bytes => Figure::bound(least, "the bandwidth limit applies even to the smallest I/Os"),
        SmallIoLimit::Depth => Figure::bound(least, "the rate grew with the queue depth"),
        SmallIoLimit::Client => Figure::bound(least, "the client was the limit"),
        SmallIoLimit::Width(width) => Figure::bound(least, format!("{width} I/Os are served in parallel")),
    }
}

/// The limit on bytes of one direction.
pub(super) fn bytes(curve: &Curve) -> Figure {
    // The shortest measurements last for about a second, and a turn more or less counts in them.
    let least = |bytes: f64| Estimate::AtLeast(bytes * (0.99 - curve.top.turn_s));
    match curve.bulk {
        Some(bulk) if bulk.is_busy => Figure::bound(least(bulk.least_bytes()), "the client was the limit"),
        Some(bulk) if is_varied(&bulk) => Figure::bound(least(bulk.least_bytes()), UNEVEN),
        Some(bulk) => known(&bulk, bulk.bytes(), 0.0),
        None => {
            let why = match curve.unit {
                ObservedUnit::Exactly(_) => "larger I/Os count as several",
                _ => "the IOPS limit applies even to the largest I/Os",
            };
            Figure::bound(least(curve.least_bytes), why)
        }
    }
}

fn is_varied(level: &RateLevel) -> bool {
    level.uneven > EVEN || level.varies
}

/// `value` of `level` with its interval. The limit may be higher by `unreleased`, which it never admits.
fn known(level: &RateLevel, value: f64, unreleased: f64) -> Figure {
    let low = value * (1.0 - level.error);
    // Other processes share the limit, or have their own.
    let others = if level.others.share < DISTURBED { level.others.share } else { 0.0 };
    Figure::known(value, low, (value + unreleased) * (1.0 + level.error + others))
}

/// The block size at which both limits meet.
pub(super) fn crossover(iops: &Figure, bytes: &Figure) -> Figure {
    match (iops.estimate, bytes.estimate) {
        (
            Some(Estimate::Known { value: ios, low: ios_low, high: ios_high }),
            Some(Estimate::Known { value, low, high }),
        ) => Figure::known(value / ios, low / ios_high, high / ios_low),
        (Some(Estimate::Known { low, .. }), Some(Estimate::AtLeast(bytes))) => {
            Figure::bound(Estimate::AtLeast(bytes / low * 0.98), "no bandwidth limit was reached")
        }
        (Some(Estimate::AtLeast(ios)), Some(Estimate::Known { high, .. })) => {
            Figure::bound(Estimate::AtMost(high / ios), "no IOPS limit was reached")
        }
        _ => Figure::unknown("no limit was reached"),
    }
}

/// The largest request that counts as one.
pub(super) fn unit(unit: ObservedUnit) -> Figure {
    match unit {
        ObservedUnit::Exactly(bytes) => Figure::known(bytes as f64, bytes as f64, bytes as f64),
        ObservedUnit::Above(bytes) => {
            let why = "no larger I/O counted as several";
            Figure::bound(Estimate::AtLeast(bytes as f64), why)
        }
        ObservedUnit::Hidden => Figure::unknown("another limit hides how I/Os are counted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identify::probe::{IoDirection, OtherIo};

    fn level(block: u64, rate: f64, error: f64, uneven: f64) -> RateLevel {
        RateLevel {
            block,
            depth: 4,
            rate,
            error,
            varies: false,
            turn_s: 0.0,
            others: OtherIo::default(),
            lat_ns: 1e6,
            is_busy: false,
            ios: 100,
            uneven,
            at_ns: 0,
        }
    }

    /// What is certain of the bytes a second is the low end of what was measured, however high that was.
    #[test]
    fn a_bound_on_bytes_allows_for_the_error_of_its_rate() {
        let check = |bulk: Option<RateLevel>, most: RateLevel, at_most: f64| {
            let curve = Curve {
                way: IoDirection::Read,
                top: level(4096, 1000.0, 0.002, 0.0),
                small_limit: SmallIoLimit::Count,
                bulk,
                most_bytes: most.bytes(),
                least_bytes: most.least_bytes(),
                flat_to: Some(4096),
                unit: ObservedUnit::Hidden,
                both: 4096,
            };
            let figure = bytes(&curve);
            let least = figure.estimate.and_then(|estimate| estimate.low()).expect("a bound");
            assert!(figure.value().is_none() && least < at_most && least > 0.95 * at_most, "{figure:?}");
        };
        // 4 MiB/s, of which 4 % too many were counted.
        let uneven = level(1 << 20, 4.16, 0.06, 0.2);
        check(Some(uneven), uneven, 4.0 * 1048576.0);
        check(None, level(1 << 20, 4.16, 0.06, 0.0), 4.0 * 1048576.0);
    }
}
