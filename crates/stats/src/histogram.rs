//! Log-linear latency histogram with fio's bin geometry, extended from 17 seconds to more than an hour.
//!
//! Values below 128 ns have a bin each; above, every power of two is divided into 64 equal bins, so a bin is at most
//! 1/64 of its lower edge wide, and its midpoint is within 1/128 of every value in it. fio's histogram ends at group 29
//! (bin 1855, 2^34 ns); fio's outputs count later bins as that one.

/// Bins per power of two.
pub const BINS_PER_OCTAVE: usize = 64;
const BITS: u32 = 6;
/// Highest representable power of two: 2^43 ns is 2.4 hours.
const TOP_BIT: u32 = 43;
/// Number of bins.
pub const BINS: usize = BINS_PER_OCTAVE * (TOP_BIT - BITS + 2) as usize;
/// Number of bins in fio's own histogram.
pub const FIO_BINS: usize = 1856;

/// The bin that counts `ns`. Values past the end fall into the last bin.
#[inline]
pub const fn bin(ns: u64) -> usize {
    if ns < (2 * BINS_PER_OCTAVE) as u64 {
        return ns as usize;
    }
    let top = 63 - ns.leading_zeros();
    let shift = top - BITS;
    let index = ((shift as usize) << BITS) + (ns >> shift) as usize;
    if index < BINS { index } else { BINS - 1 }
}

/// The smallest value that `bin` counts, in ns.
pub const fn lower_edge(bin: usize) -> u64 {
    if bin < 2 * BINS_PER_OCTAVE {
        return bin as u64;
    }
    let shift = (bin >> BITS) as u32 - 1;
    (BINS_PER_OCTAVE as u64 + (bin as u64 & (BINS_PER_OCTAVE as u64 - 1))) << shift
}

/// The value that reports print for `bin`, in ns: its middle, as in fio.
pub const fn midpoint(bin: usize) -> u64 {
    if bin < 2 * BINS_PER_OCTAVE {
        return bin as u64;
    }
    let shift = (bin >> BITS) as u32 - 1;
    lower_edge(bin) + (1 << shift) / 2
}

/// Counts per bin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Up to the last non-empty bin: most histograms of a run stay empty, and thousands of jobs have thousands of them.
    counts: Vec<u64>,
}

impl Histogram {
    /// A histogram from `(bin, count)` pairs. Bins past the end are added to the last one.
    pub fn from_sparse(pairs: impl IntoIterator<Item = (usize, u64)>) -> Self {
        let mut histogram = Histogram::default();
        for (bin, count) in pairs {
            histogram.add(bin, count);
        }
        histogram
    }

    /// The non-empty bins in ascending order.
    pub fn sparse(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts.iter().copied().enumerate().filter(|&(_, count)| count > 0)
    }

    /// Counts one value, in ns.
    pub fn record(&mut self, ns: u64) {
        self.add(bin(ns), 1);
    }

    /// Adds `count` to one bin.
    pub fn add(&mut self, bin: usize, count: u64) {
        let bin = bin.min(BINS - 1);
        if count > 0 {
            self.reach(bin + 1);
            self.counts[bin] += count;
        }
    }

    /// Adds every count of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        self.reach(other.counts.len());
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }

    /// Extends the counts to at least this many bins.
    fn reach(&mut self, bins: usize) {
        if bins > self.counts.len() {
            self.counts.resize(bins, 0);
        }
    }

    /// Number of values counted.
    pub fn samples(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The first bin at which the cumulative count reaches `percent * samples / 100`, as in fio. `None` without
    /// samples.
    pub fn percentile_bin(&self, percent: f64) -> Option<usize> {
        let samples = self.samples();
        let mut cumulative = 0u64;
        let mut reached = self.sparse().skip_while(|&(_, count)| {
            cumulative += count;
            // Round only once: 99.95 is stored slightly too large, so that 5,997 of 6,000 would not reach it.
            percent.mul_add(samples as f64, -100.0 * cumulative as f64) > 0.0
        });
        reached.next().or_else(|| self.sparse().last()).map(|(bin, _)| bin)
    }

    /// The percentile as the midpoint of its bin, ns. `None` without samples.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        self.percentile_bin(percent).map(midpoint)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn geometry_matches_fio() {
        // The 29 groups end at 2^34 ns; fio's midpoint for a value of 87,500 ns is 87,552.
        assert_eq!(lower_edge(FIO_BINS), 1 << 34);
        assert_eq!(bin((1 << 34) - 1), FIO_BINS - 1);
        assert_eq!(midpoint(bin(87_500)), 87_552);
        for ns in 0..128 {
            assert_eq!((bin(ns), midpoint(ns as usize)), (ns as usize, ns));
        }
        assert!(lower_edge(BINS - 1) > 3_600_000_000_000, "an hour has a bin of its own");
        assert_eq!(bin(u64::MAX), BINS - 1);
    }

    #[test]
    fn edges_are_contiguous() {
        for index in 1..BINS {
            assert!(lower_edge(index) > lower_edge(index - 1));
            assert_eq!(bin(lower_edge(index)), index);
            assert_eq!(bin(lower_edge(index) - 1), index - 1);
        }
    }

    #[test]
    fn percentiles_of_a_known_set() {
        let mut histogram = Histogram::default();
        for ns in 1..=100 {
            histogram.record(ns);
        }
        assert_eq!(histogram.percentile(50.0), Some(50));
        assert_eq!(histogram.percentile(99.0), Some(99));
        assert_eq!(histogram.percentile(100.0), Some(100));
        assert_eq!(Histogram::default().percentile(50.0), None);
    }

    proptest! {
        #[test]
        fn midpoint_is_within_one_part_in_128(ns in 0u64..(1 << 43)) {
            let middle = midpoint(bin(ns));
            prop_assert!(middle.abs_diff(ns) as f64 <= ns as f64 / 128.0);
        }

        #[test]
        fn merging_equals_recording_together(a in proptest::collection::vec(0u64..1 << 40, 0..200),
                                             b in proptest::collection::vec(0u64..1 << 40, 0..200)) {
            let fill = |values: &[u64]| {
                let mut h = Histogram::default();
                values.iter().for_each(|&v| h.record(v));
                h
            };
            let mut ab = fill(&a);
            ab.merge(&fill(&b));
            let mut ba = fill(&b);
            ba.merge(&fill(&a));
            let both: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(&ab, &ba);
            prop_assert_eq!(&ab, &fill(&both));
            prop_assert_eq!(&Histogram::from_sparse(ab.sparse()), &ab);
        }

        #[test]
        fn percentiles_agree_with_hdrhistogram(values in proptest::collection::vec(1u64..1 << 34, 1..500),
                                               percent in 0.5f64..100.0) {
            let mut ours = Histogram::default();
            let mut oracle = hdrhistogram::Histogram::<u64>::new(3).expect("three digits are allowed");
            for &v in &values {
                ours.record(v);
                oracle.record(v).expect("auto-resizing");
            }
            let ours = ours.percentile(percent).expect("has samples") as f64;
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let rank = ((percent * values.len() as f64 / 100.0).ceil() as usize).clamp(1, values.len());
            let exact = sorted[rank - 1] as f64;
            let hdr = oracle.value_at_quantile(percent / 100.0) as f64;
            prop_assert!((ours - exact).abs() <= exact / 100.0 + 1.0, "ours {ours}, exact {exact}, hdr {hdr}");
        }
    }
}
