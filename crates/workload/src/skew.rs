//! Random numbers below a bound from a distribution that is not uniform: zipf, pareto, normal, or zones.

mod ranks;

use std::sync::Arc;

use fathom_model::plan::Distribution;

use crate::Permutation;
use crate::rng::Rng;
pub(crate) use ranks::RankTable;

/// Draws block numbers.
#[derive(Clone, Debug)]
pub(crate) struct Skew {
    blocks: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Ranks by frequency, in their own order.
    Ordered(Arc<RankTable>),
    /// Ranks by frequency, scattered over the range; rank 0 has block `first`.
    Scattered { ranks: Arc<RankTable>, order: Box<Permutation>, shift: u64 },
    /// Normal, with a second number that the last draw also gave.
    Normal { mean: f64, deviation: f64, spare: Option<f64> },
    /// First block and blocks of the zone of each percent of the requests.
    Zones(Arc<[(u64, u64)]>),
}

impl Skew {
    /// Blocks below `blocks`, the frequent ones scattered over the range; `unit` is the size of a block, in bytes. `None`
    /// for the uniform distribution. `like` has the tables of another range of as many blocks.
    pub(crate) fn scattered(
        distribution: &Distribution,
        (blocks, unit): (u64, u64),
        like: Option<&Skew>,
        rng: &mut Rng,
    ) -> Option<Skew> {
        let center = match distribution {
            Distribution::Zipf { center, .. } | Distribution::Pareto { center, .. } => *center,
            _ => None,
        };
        let known = like.filter(|like| like.blocks == blocks).and_then(|like| like.kind.ranks());
        let kind = match Skew::kind(distribution, (blocks, unit), known)? {
            Kind::Ordered(ranks) => {
                let order = Box::new(Permutation::new(blocks, rng));
                let first = match center {
                    Some(share) => ((share * blocks as f64) as u64).min(blocks - 1),
                    None => rng.below(blocks),
                };
                let shift = (first + blocks - order.at(0)) % blocks;
                Kind::Scattered { ranks, order, shift }
            }
            other => other,
        };
        Some(Skew { blocks, kind })
    }

    /// Numbers below `count`, the first ones being the most frequent. `None` for the uniform distribution.
    pub(crate) fn ordered(distribution: &Distribution, count: u64, _: &mut Rng) -> Option<Skew> {
        Some(Skew { blocks: count, kind: Skew::kind(distribution, (count, 1), None)? })
    }

    fn kind(
        distribution: &Distribution,
        (blocks, unit): (u64, u64),
        known: Option<Arc<RankTable>>,
    ) -> Option<Kind> {
        let ranks =
            |make: &dyn Fn() -> RankTable| Kind::Ordered(known.clone().unwrap_or_else(|| Arc::new(make())));
        Some(match distribution {
            Distribution::Random => return None,
            Distribution::Zipf { theta, .. } => ranks(&|| RankTable::zipf(blocks, *theta)),
            Distribution::Pareto { h, .. } => ranks(&|| RankTable::pareto(blocks, *h)),
            Distribution::Normal { deviation, center } => Kind::Normal {
                mean: center.unwrap_or(0.5) * blocks as f64,
                deviation: deviation / 100.0 * blocks as f64,
                spare: None,
            },
            Distribution::Zoned(zones) => {
                let part = |percent: u64| (u128::from(blocks) * u128::from(percent) / 100) as u64;
                let ends = zones.iter().scan(0, |end, &(share, span)| {
                    *end += u64::from(span);
                    Some((share, part((*end).min(100))))
                });
                Kind::Zones(zones_of(ends, blocks))
            }
            Distribution::ZonedAbs(zones) => {
                let ends = zones.iter().scan(0_u64, |end, &(share, bytes)| {
                    *end = end.saturating_add(if bytes == 0 { u64::MAX } else { bytes });
                    Some((share, (*end / unit.max(1)).min(blocks)))
                });
                Kind::Zones(zones_of(ends, blocks))
            }
        })
    }

    /// The next number.
    #[inline]
    pub(crate) fn next(&mut self, rng: &mut Rng) -> u64 {
        match &mut self.kind {
            Kind::Scattered { ranks, order, shift } => {
                let block = order.at(ranks.draw(rng)) + *shift;
                if block >= self.blocks { block - self.blocks } else { block }
            }
            Kind::Ordered(ranks) => ranks.draw(rng),
            Kind::Normal { mean, deviation, spare } => loop {
                let standard = match spare.take() {
                    Some(standard) => standard,
                    None => {
                        let (first, second) = two_normal(rng);
                        *spare = Some(second);
                        first
                    }
                };
                let drawn = (*mean + *deviation * standard).floor();
                // A mean at an end, or a deviation of 0 there, still leaves half of the numbers.
                if drawn >= 0.0 && drawn < self.blocks as f64 {
                    return drawn as u64;
                }
                if *deviation == 0.0 {
                    return self.blocks - 1;
                }
            },
            Kind::Zones(zones) => {
                let (first, blocks) = zones[rng.below(zones.len() as u64) as usize];
                first + rng.below(blocks)
            }
        }
    }
}

impl Kind {
    fn ranks(&self) -> Option<Arc<RankTable>> {
        match self {
            Kind::Ordered(ranks) | Kind::Scattered { ranks, .. } => Some(ranks.clone()),
            Kind::Normal { .. } | Kind::Zones(_) => None,
        }
    }
}

/// The zone of each percent of the requests, from the percentages and the ends of the zones. A zone has at least one
/// block.
fn zones_of(ends: impl Iterator<Item = (u8, u64)>, blocks: u64) -> Arc<[(u64, u64)]> {
    let (mut all, mut start) = (Vec::with_capacity(100), 0);
    for (share, end) in ends {
        let first = start.min(blocks - 1);
        let zone = (first, end.saturating_sub(first).max(1));
        all.extend(std::iter::repeat_n(zone, share.into()));
        start = end.max(start);
    }
    if all.is_empty() {
        all.push((0, blocks));
    }
    all.into()
}

/// Two independent numbers of the standard normal distribution (Marsaglia's polar method).
fn two_normal(rng: &mut Rng) -> (f64, f64) {
    let mut uniform = || (rng.next_u64() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
    loop {
        let (x, y) = (uniform(), uniform());
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            let factor = (-2.0 * square.ln() / square).sqrt();
            return (x * factor, y * factor);
        }
    }
}

#[cfg(test)]
#[path = "skew_tests.rs"]
mod tests;
