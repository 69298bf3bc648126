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
        if small_limit != SmallIoLimit::Count || served < 0.9 || floor.mean <= 0.0 {
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
