//! Whether a rate is a limit's or that of a medium which serves so many requests at once.
//!
//! Both are flat over depths. But a limiter that was left alone lets a bunch of requests through at once, or one after the
//! other; a medium serves as many as it can and then the next as many.

use super::curve::{Curve, Held};
use super::level::Load;
use super::probe::Way;
use super::script::{Halt, Script};

/// Bunches of one size: more of them where each has few requests.
const REQUESTS: u64 = 64;
const MOST_BUNCHES: u64 = 6;
/// Rest before a bunch, ns: what a limiter keeps is full again.
const REST_NS: u64 = 100_000_000;

impl Script<'_> {
    /// Looks whether the small requests of `curve` wait for a place in the medium.
    pub(crate) fn width(&mut self, curve: &mut Curve) -> Result<(), Halt> {
        let floor = self.found.floor(curve.way);
        let served = curve.top.rate * floor.mean / 1e9;
        if curve.held != Held::Count || served < 0.9 || floor.mean <= 0.0 {
            return Ok(());
        }
        let width = served.round().max(1.0);
        // Of few at once the number is a whole one.
        let uncertain = 0.01 + curve.top.error + (floor.interval().1 / floor.mean - 1.0);
        if (served - width).abs() > (served * uncertain).max(0.02) {
            return Ok(());
        }
        let width = width as u64;
        if width * 2 > u64::from(self.spec.most_depth) {
            return Ok(());
        }
        let (one, two) = (self.bunch(curve.way, width)?, self.bunch(curve.way, 2 * width)?);
        let slack = 0.06 + 0.25 * floor.spread();
        let (one, two) = (one / floor.mean, two / floor.mean);
        if one < 1.0 + slack && (two - 1.5).abs() < 0.08 + 0.35 * floor.spread() {
            curve.held = Held::Width(width);
        }
        Ok(())
    }

    /// Mean latency of `count` requests that come together after a rest, ns.
    fn bunch(&mut self, way: Way, count: u64) -> Result<f64, Halt> {
        let (mut sum, mut all) = (0.0, 0.0);
        let floor = self.found.floor_ns(way);
        for _ in 0..(REQUESTS / count).clamp(1, MOST_BUNCHES) {
            let mut probe = self.plain(Load::of("a bunch after a rest", way, self.spec.unit, count as u32));
            probe.rest_ns = REST_NS.max((4.0 * floor) as u64).max(self.rest_for(&probe, count as f64));
            probe.runtime_ns = 20_000_000_000;
            (probe.ios, probe.counts) = (count.min(probe.ios), true);
            let done = self.ask(probe)?.done(way);
            sum += done.lat.0 * done.ios as f64;
            all += done.ios as f64;
        }
        Ok(sum / f64::max(all, 1.0))
    }
}
