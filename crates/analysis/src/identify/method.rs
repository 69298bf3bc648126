//! The method: what is looked at, in which order.

use super::probe::IoDirection;
use super::script::{Halt, Script};
use super::stretches::is_apart;
use crate::identified::BucketUnit;

/// A bucket that holds less than this many times what finding the limits took may have run dry meanwhile: where it is known
/// what each request cost, and where it is not.
const SMALL: (f64, f64) = (1.1, 1.5);

impl Script<'_> {
    /// From the beginning to the end, or to what has not been measured yet.
    pub(crate) fn run(&mut self) -> Result<(), Halt> {
        self.first_touch_latency()?;
        self.floor(IoDirection::Read)?;
        if self.spec.writes {
            self.floor(IoDirection::Write)?;
        }
        self.limits()?;
        self.found.limits_ns = self.spent.time_ns;
        self.drain()?;
        if self.is_suspect() {
            let full: Vec<_> = self.found.buckets.iter().map(|bucket| self.capacity(bucket)).collect();
            for (bucket, full) in self.found.buckets.iter_mut().zip(full) {
                bucket.full = full.map(|full| full.0);
            }
            self.found.is_resting = true;
            let ways = [true, self.spec.writes];
            self.found.is_doubtful = ways;
            self.limits()?;
        }
        Ok(())
    }

    /// Credit may have run dry while the limits were measured: a bucket was dry before it was emptied, or nearly so.
    pub(crate) fn is_suspect(&self) -> bool {
        if self.found.is_long {
            return false;
        }
        self.found.buckets.iter().filter(|bucket| !bucket.is_early).any(|bucket| {
            let account = &bucket.account;
            let Some((capacity, _)) = self.capacity(bucket) else { return true };
            let way = account.way();
            let level = self.found.curves[way as usize].as_ref().and_then(|curve| match account.kind {
                BucketUnit::Ios => Some(curve.top.rate),
                BucketUnit::Bytes => curve.bulk.map(|bulk| bulk.bytes()),
            });
            let is_dry = level.is_some_and(|level| !is_apart(level, account.base));
            let missing = self.missing(account);
            let before = missing.iter().filter(|one| one.0 <= self.found.limits_ns);
            let before = before.map(|one| one.1).fold(0.0, f64::max);
            let is_priced = account.kind == BucketUnit::Bytes
                || matches!(self.found.unit(way), Some(super::curve::ObservedUnit::Exactly(_)));
            let (surely, maybe) = SMALL;
            is_dry || capacity < before * if is_priced { surely } else { maybe }
        })
    }

    /// The limits in each direction and whether they are shared.
    fn limits(&mut self) -> Result<(), Halt> {
        let explored = self.explore_all();
        explored.and(self.join())
    }

    fn explore_all(&mut self) -> Result<(), Halt> {
        let read = self.explore(IoDirection::Read)?;
        if self.found.touch.is_some_and(|touch| touch.share.is_nan()) {
            self.first_touch_rate(read.top.depth, read.top.rate)?;
            if self.found.touch.is_some_and(|touch| touch.share < 1.0) {
                self.explore(IoDirection::Read)?;
            }
        }
        if self.spec.writes {
            self.explore(IoDirection::Write)?;
            self.sharing()?;
        }
        Ok(())
    }
}
