//! Ranks of a monotone distribution over any number of them, without a power or logarithm per draw.
//!
//! Ranks are divided into buckets: the first ones alone, then 64 per power of two. A draw chooses a bucket by its exact
//! probability (Walker's alias method, two table entries), then a rank within it by rejection: within a bucket
//! probabilities differ by at most a few percent, so nearly every draw is accepted by a bound for the whole bucket, and
//! only the rest computes the probability of its rank.

use crate::rng::Rng;

/// Ranks that have a bucket of their own.
const ALONE: u64 = 256;
/// Buckets per power of two beyond those.
const PER_OCTAVE: u64 = 64;

/// The distribution of the ranks.
#[derive(Clone, Copy, Debug)]
enum Law {
    /// Rank k has the weight (k + 1)^-theta.
    Zipf { theta: f64 },
    /// Ranks below x have the share (x / count)^power.
    Pareto { power: f64 },
}

/// A bucket of ranks.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    first: u64,
    width: u64,
    /// Draws below this, of 2^64, are of this bucket; others of `alias`.
    threshold: u64,
    alias: u32,
    /// A rank is accepted by a draw below this, of 2^64, whichever rank it is.
    accept: u64,
    /// Largest weight of a rank.
    most: f64,
}

/// Draws ranks.
#[derive(Clone, Debug)]
pub(crate) struct RankTable {
    law: Law,
    buckets: Box<[Bucket]>,
}

impl RankTable {
    /// Zipf's distribution of `count` ranks, at least one; `theta` above 0.
    pub(crate) fn zipf(count: u64, theta: f64) -> RankTable {
        RankTable::new(count, Law::Zipf { theta })
    }

    /// Pareto's distribution of `count` ranks, at least one; `h` between 0 and 1.
    pub(crate) fn pareto(count: u64, h: f64) -> RankTable {
        RankTable::new(count, Law::Pareto { power: (1.0 - h).ln() / h.ln() })
    }

    fn new(count: u64, law: Law) -> RankTable {
        let (mut buckets, mut masses, mut first) = (Vec::new(), Vec::new(), 0_u64);
        while first < count {
            let width = if first < ALONE { 1 } else { (1 << (63 - first.leading_zeros())) / PER_OCTAVE };
            let end = first.saturating_add(width).min(count);
            let weights = [law.weight(first), law.weight(end - 1)];
            let (least, most) = (weights[0].min(weights[1]), weights[0].max(weights[1]));
            let accept = of_two_to_64(if most > 0.0 { least / most } else { 1.0 });
            let threshold = u64::MAX;
            buckets.push(Bucket { first, width: end - first, threshold, alias: 0, accept, most });
            masses.push(law.mass(first, end, count));
            first = end;
        }
        set_aliases(&mut buckets, &masses);
        RankTable { law, buckets: buckets.into() }
    }

    /// A random rank.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        let product = u128::from(rng.next_u64()) * self.buckets.len() as u128;
        let drawn = &self.buckets[(product >> 64) as usize];
        let is_own = (product as u64) < drawn.threshold;
        let bucket = if is_own { drawn } else { &self.buckets[drawn.alias as usize] };
        if bucket.width == 1 {
            return bucket.first;
        }
        loop {
            let product = u128::from(rng.next_u64()) * u128::from(bucket.width);
            let (rank, level) = (bucket.first + (product >> 64) as u64, product as u64);
            if level < bucket.accept || self.accepts(bucket, rank, level) {
                return rank;
            }
        }
    }

    #[cold]
    fn accepts(&self, bucket: &Bucket, rank: u64, level: u64) -> bool {
        level as f64 * bucket.most < self.law.weight(rank) * 2f64.powi(64)
    }
}

impl Law {
    /// The weight of one rank; the scale is the law's own.
    fn weight(self, rank: u64) -> f64 {
        match self {
            Law::Zipf { theta } => ((rank + 1) as f64).powf(-theta),
            Law::Pareto { .. } if rank == 0 => 1.0,
            // The difference of two shares, without cancellation.
            Law::Pareto { power } => {
                let below = rank as f64;
                below.powf(power) * (power * (1.0 / below).ln_1p()).exp_m1()
            }
        }
    }

    /// The weight of the ranks from `first` to before `end`; the scale may differ from that of single ranks.
    fn mass(self, first: u64, end: u64, count: u64) -> f64 {
        match self {
            Law::Pareto { power } => {
                (end as f64 / count as f64).powf(power) - (first as f64 / count as f64).powf(power)
            }
            Law::Zipf { .. } if end - first <= PER_OCTAVE => (first..end).map(|rank| self.weight(rank)).sum(),
            // Euler and Maclaurin's sum, whose next term is below 1e-11 of it at this width.
            Law::Zipf { theta } => {
                let (a, b) = ((first + 1) as f64, end as f64);
                let less = theta - 1.0;
                let integral = match less.abs() < 1e-9 {
                    true => (b / a).ln(),
                    false => (a.powf(-less) - b.powf(-less)) / less,
                };
                let slope = |x: f64| -theta * x.powf(-theta - 1.0);
                integral + (a.powf(-theta) + b.powf(-theta)) / 2.0 + (slope(b) - slope(a)) / 12.0
            }
        }
    }
}

/// Vose's construction of an alias table.
fn set_aliases(buckets: &mut [Bucket], masses: &[f64]) {
    let mean = masses.iter().sum::<f64>() / masses.len() as f64;
    let mut left: Vec<f64> = masses.iter().map(|mass| mass / mean).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..left.len()).partition(|&index| left[index] < 1.0);
    while let (Some(&more), Some(less)) = (large.last(), small.pop()) {
        buckets[less].threshold = of_two_to_64(left[less]);
        buckets[less].alias = more as u32;
        left[more] -= 1.0 - left[less];
        if left[more] < 1.0 {
            large.pop();
            small.push(more);
        }
    }
}

/// A share as a part of 2^64.
fn of_two_to_64(share: f64) -> u64 {
    (share * 2f64.powi(64)) as u64
}
