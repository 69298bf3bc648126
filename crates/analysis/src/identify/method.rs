//! The method: what is looked at, in which order.

use super::curve::Curve;
use super::probe::Way;
use super::script::{Halt, Script};

/// A bucket that holds less than this many times what finding the limits took may have run dry meanwhile.
const SMALL: f64 = 3.0;

impl Script<'_> {
    /// From the beginning to the end, or to what has not been measured yet.
    pub(crate) fn run(&mut self) -> Result<(), Halt> {
        self.first_touch_latency()?;
        self.floor(Way::Read)?;
        if self.spec.writes {
            self.floor(Way::Write)?;
        }
        self.limits()?;
        let limits_ns = self.spent.time_ns;
        self.drain()?;
        let is_small = self.found.buckets.iter().any(|bucket| {
            let used = self.missing(&bucket.account);
            let before = used.iter().filter(|one| one.0 <= limits_ns).map(|one| one.1).fold(0.0, f64::max);
            self.capacity(bucket).is_some_and(|(capacity, _)| capacity < SMALL * before)
        });
        if is_small {
            self.found.is_resting = true;
            self.limits()?;
        }
        Ok(())
    }

    /// The limits in each direction and whether they are shared.
    fn limits(&mut self) -> Result<(), Halt> {
        let read = self.explore(Way::Read)?;
        if self.found.touch.is_some_and(|touch| touch.share.is_nan()) {
            self.first_touch_rate(read.top.depth, read.top.rate)?;
            if self.found.touch.is_some_and(|touch| touch.share < 1.0) {
                self.explore(Way::Read)?;
            }
        }
        if self.spec.writes {
            self.explore(Way::Write)?;
            self.sharing()?;
        }
        Ok(())
    }

    fn explore(&mut self, way: Way) -> Result<Curve, Halt> {
        let mut curve = self.curve(way)?;
        self.width(&mut curve)?;
        self.found.curves[way as usize] = Some(curve.clone());
        Ok(curve)
    }
}
