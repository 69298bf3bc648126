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
        let on_top = RateOnTop::of([read.rate, write.rate], [one.rate, other.rate]);
        let uneven = [one, other, read, write].iter().map(|level| level.uneven).fold(0.0, f64::max);
        let is_dry = self.is_early(IoDirection::Read) || self.is_early(IoDirection::Write);
        self.found.has_changed |= on_top.share < -NONE && !is_dry;
        Ok(on_top.sharing(uneven, holds_both))
    }
}

/// What both directions came to together, beyond one of them alone.
#[derive(Clone, Copy, Debug)]
struct RateOnTop {
    /// Shares of their rates alone that the directions kept, less 1: 0 where they draw on one limit, whatever each costs of it.
    share: f64,
    /// The same of the lower of the two rates alone, where the other lost nothing: less where a limit on both is met.
    of_least: f64,
    /// The lower rate alone of the higher one.
    ratio: f64,
}

impl RateOnTop {
    /// From the rates alone and together.
    fn of(alone: [f64; 2], together: [f64; 2]) -> RateOnTop {
        let [most, least] = [alone[0].max(alone[1]), alone[0].min(alone[1])];
        let share = together[0] / alone[0] + together[1] / alone[1] - 1.0;
        RateOnTop { share, of_least: (together[0] + together[1] - most) / least, ratio: least / most }
    }

    fn sharing(&self, uneven: f64, holds_both: bool) -> DirectionSharing {
        match () {
            () if uneven > EVEN || !self.share.is_finite() => DirectionSharing::Unknown,
            // A little of the higher rate is many times the lower one, so that only the shares tell.
            () if self.ratio < NONE && holds_both && self.share > ALL => DirectionSharing::Apart,
            () if self.of_least > ALL && self.share > ALL => DirectionSharing::Apart,
            () if !holds_both => DirectionSharing::Unknown,
            () if self.share < NONE => DirectionSharing::Shared,
            () if uneven > VERY_EVEN || self.share > ALL => DirectionSharing::Unknown,
            () => DirectionSharing::ApartUnderOne,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_share_a_limit_where_both_have_a_part_of_their_rates() {
        use DirectionSharing::{Apart, ApartUnderOne, Shared, Unknown};
        let check = |alone, together, uneven, holds_both, expected| {
            let found = RateOnTop::of(alone, together).sharing(uneven, holds_both);
            assert_eq!(found, expected, "{alone:?} {together:?} {uneven}");
        };
        check([1000.0, 1000.0], [500.0, 500.0], 0.01, true, Shared);
        check([1000.0, 1000.0], [990.0, 1000.0], 0.01, true, Apart);
        check([1000.0, 1000.0], [750.0, 750.0], 0.01, true, ApartUnderOne);
        check([1000.0, 1000.0], [750.0, 750.0], 0.05, true, Unknown);
        check([1000.0, 1000.0], [500.0, 500.0], 0.01, false, Unknown);
        // A write costs twice as much of the one limit.
        check([1000.0, 500.0], [333.0, 333.0], 0.01, true, Shared);
        // Writes have a limit of their own below that of both together.
        check([1000.0, 600.0], [500.0, 500.0], 0.01, true, ApartUnderOne);
        // Reads vary by many times the rate of writes, which has a limit of its own.
        check([355_700.0, 1850.0], [331_000.0, 1850.0], 0.05, true, Apart);
        check([355_700.0, 1850.0], [400_000.0, 1850.0], 0.05, true, Apart);
        // What the writes do comes out of what holds the reads.
        check([1000.0, 100.0], [900.0, 100.0], 0.01, false, Unknown);
    }
}
