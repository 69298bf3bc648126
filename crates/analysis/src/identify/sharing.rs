//! Whether reads and writes draw on the same limits: both at once against each alone.

use super::curve::{Curve, SmallIoLimit};
use super::level::{Care, ProbeLoad, RateLevel};
use super::probe::IoDirection;
use super::script::{Halt, Script};
use crate::identified::BucketUnit;

/// The result of both at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DirectionSharing {
    /// Nothing was held by a limit in both directions, or nothing was looked at.
    #[default]
    Unknown,
    Shared,
    Apart,
    /// Each has limits of its own, and there is one on both together.
    ApartUnderOne,
}

/// How even rates have to be, to tell that limits are shared or apart, and that they are something in between.
const EVEN: f64 = 0.1;
const VERY_EVEN: f64 = 0.03;

/// Part of the second direction's rate that comes on top where limits are shared, at the most, and where they are not, at the least.
const NONE: f64 = 0.12;
const ALL: f64 = 0.88;

impl Script<'_> {
    /// Small requests, then large ones.
    pub(crate) fn sharing(&mut self) -> Result<(), Halt> {
        let [Some(read), Some(write)] = self.found.curves.clone() else { return Ok(()) };
        let small = (self.spec.unit_bytes, read.top, write.top);
        let is_held = |curve: &Curve| matches!(curve.small_limit, SmallIoLimit::Count | SmallIoLimit::Bytes);
        self.use_up(BucketUnit::Ios, self.spec.unit_bytes)?;
        if is_held(&read) || is_held(&write) {
            self.found.shares_ios = self.both(small, is_held(&read) && is_held(&write))?;
        }
        let large = match (read.bulk, write.bulk) {
            (Some(one), Some(other)) => one.block.max(other.block),
            (Some(one), None) | (None, Some(one)) => one.block,
            (None, None) => return Ok(()),
        };
        let aim = "large I/Os at full rate";
        let guess = |curve: &Curve| curve.bulk.map_or(curve.top.rate, |bulk| bulk.bytes() / large as f64);
        self.use_up(BucketUnit::Bytes, large)?;
        let one = self.at(aim, read.way, large, guess(&read), Care::Fine)?;
        let other = self.at(aim, write.way, large, guess(&write), Care::Fine)?;
        self.found.shares_bytes =
            self.both((large, one, other), read.bulk.is_some() && write.bulk.is_some())?;
        Ok(())
    }

    /// Both at once with requests of `block`, which came to `read` and `write` alone. Where limits hold both
    /// directions, each may be held by its own; where they hold one, only that there is something on top tells anything.
    fn both(
        &mut self,
        (block, read, write): (u64, RateLevel, RateLevel),
        holds_both: bool,
    ) -> Result<DirectionSharing, Halt> {
        let depth = read.depth.max(write.depth);
        let guess = Some(read.rate.min(write.rate) / 2.0);
        let load = ProbeLoad { guess, ..ProbeLoad::both("reads and writes together", block, depth) };
        let [one, other] = self.level(load, Care::Fine)?;
        let total = one.rate + other.rate;
        let (most, least) = (read.rate.max(write.rate), read.rate.min(write.rate));
        let on_top = (total - most) / least;
        let uneven = [one, other, read, write].iter().map(|level| level.uneven).fold(0.0, f64::max);
        let is_dry = self.is_early(IoDirection::Read) || self.is_early(IoDirection::Write);
        self.found.has_changed |= on_top < -NONE && !is_dry;
        Ok(match () {
            () if uneven > EVEN => DirectionSharing::Unknown,
            () if on_top > ALL => DirectionSharing::Apart,
            () if !holds_both => DirectionSharing::Unknown,
            () if on_top < NONE => DirectionSharing::Shared,
            () if uneven > VERY_EVEN => DirectionSharing::Unknown,
            () => DirectionSharing::ApartUnderOne,
        })
    }
}
