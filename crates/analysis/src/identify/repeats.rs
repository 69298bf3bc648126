//! The rates that are limits, measured again: the spread between repeats is what they may be wrong by.

use super::curve::{Curve, SmallIoLimit};
use super::early::Fell;
use super::fall::FALLEN;
use super::level::{Care, DISTURBED, ProbeLoad, RateLevel, pooled};
use super::probe::IoDirection;
use super::script::{Halt, Script};

/// Repeats of a rate, and the share of the budget that those of all rates take.
const REPEATS: usize = 2;
const SHARE: f64 = 0.08;
/// A rate whose interval is wider than this on either side is held by no limit.
const REPEATABLE: f64 = 0.05;
/// Time of a repeat over that of its measured part, ns.
const AROUND_NS: u64 = 1_000_000_000;

impl Script<'_> {
    /// `curve` with its limits measured again. Where measurements are short, what they are wrong by follows from their counts; where
    /// credits are exhausted, other measurements have restored some of them.
    pub(crate) fn confirmed(&mut self, curve: Curve) -> Result<Curve, Halt> {
        if !self.found.is_long || self.is_early(curve.way) {
            return Ok(curve);
        }
        let top = match curve.small_limit {
            SmallIoLimit::Count => self.repeated(curve.way, curve.top)?,
            _ => curve.top,
        };
        let bulk = match curve.bulk {
            Some(bulk) => Some(self.repeated(curve.way, bulk)?),
            None => None,
        };
        Ok(Curve { top, bulk, ..curve })
    }

    fn repeated(&mut self, way: IoDirection, level: RateLevel) -> Result<RateLevel, Halt> {
        let mut levels = vec![level];
        if !self.holds_repeats() {
            return Ok(level);
        }
        while levels.len() <= REPEATS {
            let began = self.spent.time_ns;
            let again = match self.at("the same again", way, level.block, level.rate, Care::Fine) {
                Err(Halt::OutOfBudget) => break,
                again => again?,
            };
            self.found.repeats_ns += self.spent.time_ns - began;
            if self.found.is_watching && !self.is_early(way) && again.rate < FALLEN * level.rate {
                let load =
                    ProbeLoad { guess: Some(again.rate), ..ProbeLoad::of("", way, level.block, again.depth) };
                self.found.fell = Some(Fell { load, high: level.rate, peak: level.rate });
                return Err(Halt::Fell);
            }
            levels.push(again);
        }
        Ok(as_one(&levels))
    }

    fn holds_repeats(&self) -> bool {
        let repeats = REPEATS as u64 * (self.spec.probe_ns + AROUND_NS);
        let most = (self.spec.budget_ns as f64 * SHARE) as u64;
        self.found.repeats_ns + repeats <= most && repeats < self.left_ns()
    }
}

/// The rate of `levels`, of which there is one at least: those beside other processes count where there are no others. Where they
/// differ by more than a limit's do, it is the highest.
fn as_one(levels: &[RateLevel]) -> RateLevel {
    let alone: Vec<RateLevel> =
        levels.iter().filter(|level| level.others.share < DISTURBED).copied().collect();
    let levels = if alone.is_empty() { levels } else { &alone };
    let highest =
        levels[1..].iter().fold(levels[0], |one, other| if other.rate > one.rate { *other } else { one });
    match pooled(levels) {
        (_, error) if error > REPEATABLE => RateLevel { varies: true, ..highest },
        (rate, error) => RateLevel { rate, error, ..highest },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identify::probe::OtherIo;

    #[test]
    fn repeats_are_one_rate_or_vary() {
        let level = |rate: f64, share: f64| RateLevel {
            block: 4096,
            depth: 4,
            rate,
            error: 0.002,
            varies: false,
            turn_s: 0.0,
            others: OtherIo { share, ..OtherIo::default() },
            lat_ns: 1e6,
            is_busy: false,
            ios: 1000,
            uneven: 0.0,
            at_ns: 0,
        };
        let check = |rates: &[(f64, f64)], rate: f64, varies: bool| {
            let levels: Vec<RateLevel> = rates.iter().map(|(rate, share)| level(*rate, *share)).collect();
            let one = as_one(&levels);
            assert_eq!((one.rate, one.varies), (rate, varies), "{rates:?}");
        };
        check(&[(1000.0, 0.0)], 1000.0, false);
        check(&[(999.0, 0.0), (1001.0, 0.0), (1000.0, 0.0)], 1000.0, false);
        check(&[(1000.0, 0.0), (930.0, 0.0), (860.0, 0.0)], 1000.0, true);
        // What others left of a limit is not the limit.
        check(&[(500.0, 1.0), (1001.0, 0.0), (999.0, 0.0)], 1000.0, false);
        let spread = as_one(&[level(990.0, 0.0), level(1010.0, 0.0), level(1000.0, 0.0)]).error;
        assert!((spread - 4.30 * 0.01 / 3f64.sqrt()).abs() < 1e-3, "{spread}");
    }
}
