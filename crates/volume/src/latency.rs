//! Service time of a request after the limits: drawn from a seeded distribution, plus the transfer time.
//!
//! All arithmetic is in integers, so that a seed gives the same latencies on every machine.

use crate::rate::TokenRate;
use crate::rng::VolumeRng;

/// Service time inside the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeLatency {
    /// The part that is independent of the size.
    pub distribution: Distribution,
    /// Transfer rate of a single request; `None` = no transfer time.
    pub transfer: Option<TokenRate>,
}

/// The distribution of latencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Constant, ns.
    Fixed(u64),
    /// Linear between quantiles, from 0 to 1,000,000 per million.
    Quantiles(Vec<Quantile>),
}

/// One quantile: `per_million` of a million requests take at most `ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantile {
    /// Requests of a million.
    pub per_million: u32,
    /// Their largest latency, ns.
    pub ns: u64,
}

const MILLION: u32 = 1_000_000;
/// Upper bound of a latency: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

impl VolumeLatency {
    /// A constant latency of `ns`.
    pub fn fixed(ns: u64) -> Self {
        VolumeLatency { distribution: Distribution::Fixed(ns), transfer: None }
    }

    /// An assumed distribution for volumes of which only the mean is known, not a provider's: p50 slightly below the
    /// mean, p99 twice p50, p99.9 four times and the maximum ten times p50.
    pub fn around(mean_ns: u64) -> Self {
        // In hundredths of p50; the straight lines between them have a mean of 108.025.
        let points =
            [(0, 80), (500_000, 100), (900_000, 125), (990_000, 200), (999_000, 400), (MILLION, 1000)];
        let quantiles = points.map(|(per_million, hundredths)| Quantile {
            per_million,
            ns: (u128::from(mean_ns) * hundredths * 1000 / 108_025) as u64,
        });
        VolumeLatency { distribution: Distribution::Quantiles(quantiles.to_vec()), transfer: None }
    }

    /// True if a request without bytes always takes no time.
    pub fn is_none(&self) -> bool {
        match &self.distribution {
            Distribution::Fixed(ns) => *ns == 0,
            Distribution::Quantiles(quantiles) => quantiles.iter().all(|quantile| quantile.ns == 0),
        }
    }

    /// The latency that so many of a million requests do not exceed, without transfer time, ns.
    pub fn quantile_ns(&self, per_million: u32) -> u64 {
        match &self.distribution {
            Distribution::Fixed(ns) => *ns,
            Distribution::Quantiles(quantiles) => {
                quantile_at(quantiles, u128::from(per_million.min(MILLION)), u128::from(MILLION))
            }
        }
    }

    /// The mean latency without transfer time, ns.
    pub fn mean_ns(&self) -> u64 {
        match &self.distribution {
            Distribution::Fixed(ns) => *ns,
            Distribution::Quantiles(quantiles) => {
                let area = |pair: &[Quantile]| {
                    let width = u128::from(pair[1].per_million - pair[0].per_million);
                    width * (u128::from(pair[0].ns) + u128::from(pair[1].ns))
                };
                (quantiles.windows(2).map(area).sum::<u128>() / (2 * u128::from(MILLION))) as u64
            }
        }
    }

    /// The first invalid field, and the reason.
    pub(crate) fn invalid_field(&self) -> Option<(&'static str, String)> {
        let too_long = |ns: u64| (ns > LONGEST_NS).then(|| format!("{ns} ns are more than an hour"));
        match &self.distribution {
            Distribution::Fixed(ns) => too_long(*ns).map(|reason| ("distribution", reason)),
            Distribution::Quantiles(quantiles) => {
                let ends = (quantiles.first().map(|first| first.per_million), quantiles.last());
                let reason = match ends {
                    (Some(0), Some(last)) if last.per_million == MILLION => too_long(last.ns),
                    _ => Some("must begin at 0 and end at a million".to_owned()),
                };
                let falls = quantiles
                    .windows(2)
                    .any(|pair| pair[0].per_million >= pair[1].per_million || pair[0].ns > pair[1].ns);
                reason
                    .or_else(|| falls.then(|| "must rise from one to the next".to_owned()))
                    .map(|reason| ("distribution", reason))
            }
        }
    }
}

/// Cells of the lookup table over all requests, and of the one over the slowest cell.
const CELLS: usize = 1024;

/// Draws latencies.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    draw: LatencyDraw,
    transfer: Option<TokenRate>,
    /// The last block size and its transfer time, because sizes repeat.
    last: (u32, u64),
    rng: VolumeRng,
}

#[derive(Clone, Debug)]
enum LatencyDraw {
    Fixed(u64),
    /// Edges of the cells over all requests, and over the slowest 1/1024 of them.
    Table {
        all: Box<[u64]>,
        slowest: Box<[u64]>,
    },
}

impl Sampler {
    pub(crate) fn new(latency: &VolumeLatency, rng: VolumeRng) -> Self {
        let draw = match &latency.distribution {
            Distribution::Fixed(ns) => LatencyDraw::Fixed(*ns),
            Distribution::Quantiles(quantiles) => {
                let cells = CELLS as u128;
                let edges = |first: u128, parts: u128| -> Box<[u64]> {
                    (0..=cells).map(|cell| quantile_at(quantiles, first + cell, parts)).collect()
                };
                LatencyDraw::Table {
                    all: edges(0, cells),
                    slowest: edges(cells * (cells - 1), cells * cells),
                }
            }
        };
        Sampler { draw, transfer: latency.transfer, last: (0, 0), rng }
    }

    /// Draws the service time of a request of `bytes`, ns.
    #[inline(always)]
    pub(crate) fn sample(&mut self, bytes: u32) -> u64 {
        let base = match &self.draw {
            LatencyDraw::Fixed(ns) => *ns,
            LatencyDraw::Table { all, slowest } => {
                let bits = self.rng.next_u64();
                let cell = (bits >> 54) as usize;
                if cell < CELLS - 1 {
                    between(all, cell, bits >> 22)
                } else {
                    between(slowest, (bits >> 44) as usize % CELLS, bits >> 12)
                }
            }
        };
        base.saturating_add(self.transfer_ns(bytes))
    }

    #[inline(always)]
    fn transfer_ns(&mut self, bytes: u32) -> u64 {
        let Some(transfer) = self.transfer else { return 0 };
        if self.last.0 != bytes {
            self.last = (bytes, transfer.time_for(u64::from(bytes)));
        }
        self.last.1
    }
}

/// A point of `cell`, selected by the low 32 bits of `bits`.
#[inline(always)]
fn between(edges: &[u64], cell: usize, bits: u64) -> u64 {
    let (low, high) = (edges[cell], edges[cell + 1]);
    let share = bits & 0xffff_ffff;
    low + ((u128::from(high - low) * u128::from(share)) >> 32) as u64
}

/// The latency at quantile `part / parts`.
fn quantile_at(quantiles: &[Quantile], part: u128, parts: u128) -> u64 {
    let share = part * u128::from(MILLION);
    let upper = quantiles
        .iter()
        .position(|quantile| u128::from(quantile.per_million) * parts >= share)
        .unwrap_or(quantiles.len() - 1)
        .max(1);
    let (from, to) = (quantiles[upper - 1], quantiles[upper]);
    let width = u128::from(to.per_million - from.per_million) * parts;
    let into = share - u128::from(from.per_million) * parts;
    from.ns + (u128::from(to.ns - from.ns) * into / width) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_latencies_have_the_configured_quantiles() {
        let mut sampler = Sampler::new(&VolumeLatency::around(540_125), VolumeRng::stream(1, 2));
        let drawn: Vec<u64> = (0..200_000).map(|_| sampler.sample(4096)).collect();
        for (within, per_million, spread) in [
            (399_999, 0, 0),
            (500_000, 500_000, 5000),
            (625_000, 900_000, 3000),
            (1_000_000, 990_000, 1000),
            (2_000_000, 999_000, 400),
            (5_000_000, 1_000_000, 0),
        ] {
            let count = drawn.iter().filter(|&&ns| ns <= within).count() as u64 * 5;
            assert!(count.abs_diff(per_million) <= spread, "{count} of a million within {within} ns");
        }
        assert!(drawn.iter().any(|&ns| ns > 3_000_000), "the tail is drawn from");
        let mean = drawn.iter().sum::<u64>() / drawn.len() as u64;
        assert!(mean.abs_diff(540_125) < 1500, "{mean}");
    }

    #[test]
    fn transfer_time_is_proportional_to_the_size() {
        let transfer = TokenRate::per_second(100_000_000);
        let latency = VolumeLatency { transfer, ..VolumeLatency::fixed(1000) };
        let mut sampler = Sampler::new(&latency, VolumeRng::stream(0, 0));
        let times = [0, 1, 4096, 4096, 1 << 20].map(|bytes| sampler.sample(bytes));
        assert_eq!(times, [1000, 1010, 41_960, 41_960, 10_486_760]);
    }

    #[test]
    fn quantiles_must_ascend_from_zero_to_a_million() {
        let of = |points: &[(u32, u64)]| {
            let quantiles = points.iter().map(|&(per_million, ns)| Quantile { per_million, ns }).collect();
            VolumeLatency { distribution: Distribution::Quantiles(quantiles), transfer: None }
                .invalid_field()
                .is_some()
        };
        for (points, refused) in [
            (&[(0, 1), (MILLION, 2)][..], false),
            (&[(0, 1), (MILLION, 1)], false),
            (&[], true),
            (&[(0, 1)], true),
            (&[(1, 1), (MILLION, 2)], true),
            (&[(0, 1), (999_999, 2)], true),
            (&[(0, 2), (500, 1), (MILLION, 3)], true),
            (&[(0, 1), (500, 1), (500, 2), (MILLION, 3)], true),
            (&[(0, 1), (MILLION, LONGEST_NS + 1)], true),
        ] {
            assert_eq!(of(points), refused, "{points:?}");
        }
        assert!(
            VolumeLatency::fixed(u64::MAX).invalid_field().is_some()
                && VolumeLatency::fixed(0).invalid_field().is_none()
        );
    }
}
