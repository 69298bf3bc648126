//! Whether a rate is a limit's or that of a medium which serves so many requests at once.
//!
//! Both are flat over depths. But a limiter that was left alone lets a bunch of requests through at once, or one after the
//! other; a medium serves as many as it can and then the next as many.

use super::curve::SmallIoLimit;
use super::floor::REST_NS;
use super::level::{ProbeLoad, RateLevel};
use super::probe::IoDirection;
use super::script::{Halt, Script};

/// Requests of bunches of one size, and the most bunches: where latencies are even, and where they are spread.
const REQUESTS: (u64, u64) = (24, 600);
const MOST_BUNCHES: (u64, u64) = (6, 48);

/// A latency without load that is known no better, as a share, tells nothing of how many requests are served at once.
const FLOOR_ERROR: f64 = 0.1;
/// Standard errors of a mean that are chance.
const SIGMAS: f64 = 3.0;

impl Script<'_> {
    /// What holds the rate `top` of small requests: whether they wait for a place in the medium.
    pub(crate) fn width(
        &mut self,
        way: IoDirection,
        top: &RateLevel,
        small_limit: SmallIoLimit,
    ) -> Result<SmallIoLimit, Halt> {
        let floor = self.found.floor(way);
        let served = top.rate * floor.mean / 1e9;
        let is_known = floor.mean > 0.0 && floor.interval().1 < (1.0 + FLOOR_ERROR) * floor.mean;
        if small_limit != SmallIoLimit::Count || served < 0.9 || !is_known {
            return Ok(small_limit);
        }
        let width = served.round().max(1.0);
        // Of few at once the number is a whole one.
        let uncertain = 0.01 + top.error + (floor.interval().1 / floor.mean - 1.0);
        let is_whole = (served - width).abs() <= (served * uncertain).max(0.02);
        if !is_whole || width * 2.0 > f64::from(self.spec.most_depth) {
            return Ok(small_limit);
        }
        let width = width as u64;
        let (one, two) = (self.bunch(way, width)?, self.bunch(way, 2 * width)?);
        let (one, two) = (one / floor.mean, two / floor.mean);
        let spread = floor.spread();
        let (sure, requests) = if spread > 0.05 { (0.02, REQUESTS.1) } else { (0.06, REQUESTS.0) };
        // Both are shares of a floor that is not known exactly either.
        let floor_share = floor.interval().1 / floor.mean - 1.0;
        let off = |count: u64| sure + floor_share + SIGMAS * spread / (requests.max(count) as f64).sqrt();
        let is_medium = one < 1.0 + off(width) && (two - 1.5).abs() < 0.02 + 1.5 * off(2 * width);
        Ok(if is_medium { SmallIoLimit::Width(width) } else { small_limit })
    }

    /// Mean latency of `count` requests that come together after a rest, ns.
    fn bunch(&mut self, way: IoDirection, count: u64) -> Result<f64, Halt> {
        let (mut sum, mut all) = (0.0, 0.0);
        let floor = self.found.floor_ns(way);
        let is_spread = self.found.floor(way).spread() > 0.05;
        let of = |(even, spread): (u64, u64)| if is_spread { spread } else { even };
        let bunches = (of(REQUESTS) / count).clamp(1, of(MOST_BUNCHES));
        for _ in 0..bunches {
            let mut probe =
                self.plain(ProbeLoad::of("a batch after idling", way, self.spec.unit_bytes, count as u32));
            probe.rest_ns = REST_NS.max((4.0 * floor) as u64).max(self.rest_for(&probe, count as f64));
            probe.runtime_ns = 20_000_000_000;
            (probe.ios, probe.counts) = (count.min(probe.ios), true);
            let seen = self.ask(probe)?;
            if seen.is_stalled {
                continue;
            }
            let done = seen.done(way);
            sum += done.lat.0 * done.ios as f64;
            all += done.ios as f64;
        }
        Ok(sum / f64::max(all, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use fathom_record::IdentifyActivity;

    use super::*;
    use crate::identify::floor::Floor;
    use crate::identify::probe::OtherIo;
    use crate::identify::script::IdentifySpec;

    #[test]
    fn parallelism_needs_a_latency_that_is_known() {
        let top = RateLevel {
            block: 4096,
            depth: 8,
            rate: 1000.0,
            error: 0.002,
            varies: false,
            turn_s: 0.0,
            others: OtherIo::default(),
            lat_ns: 8e6,
            is_busy: false,
            ios: 4000,
            uneven: 0.0,
            at_ns: 0,
        };
        let limits = IdentifyActivity {
            unit_bytes: 4096,
            most_depth: 64,
            budget_ns: 60_000_000_000,
            budget_ios: 1_000_000,
            budget_bytes: 1 << 40,
            ..IdentifyActivity::default()
        };
        let spec = IdentifySpec { size: 1 << 30, limits };
        let check = |deviation: f64, is_measured: bool| {
            let mut script = Script::new(&spec, &[]);
            script.found.floors[0] = Some(Floor { mean: 1e6, deviation, count: 100.0, least: 5e4 });
            let found = script.width(IoDirection::Read, &top, SmallIoLimit::Count);
            assert_eq!(matches!(found, Err(Halt::Ask(_))), is_measured, "{deviation}: {found:?}");
            assert!(is_measured || found == Ok(SmallIoLimit::Count), "{deviation}: {found:?}");
        };
        check(1e4, true);
        check(4e6, false);
    }
}
