//! A latency in classes with round bounds, for a picture that people read. Pure.

use fathom_record::Latency;
use fathom_stats::histogram;
use serde::Serialize;

/// Samples between round bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LatencyClass {
    /// The least that falls into it, ns.
    pub from_ns: u64,
    /// What is above all of it, ns.
    pub below_ns: u64,
    /// How many there are.
    pub samples: u64,
}

/// The samples in classes bounded by 1, 2 and 5 in each power of ten, without the empty ones.
pub fn classes(latency: &Latency) -> Vec<LatencyClass> {
    let mut classes: Vec<LatencyClass> = Vec::new();
    for (bin, count) in latency.histogram.sparse() {
        let ns = histogram::midpoint(bin).max(1);
        let power = 10_u64.pow(ns.ilog10());
        let (from_ns, below_ns) = match ns / power {
            1 => (power, power * 2),
            2..5 => (power * 2, power * 5),
            _ => (power * 5, power * 10),
        };
        match classes.last_mut() {
            Some(last) if last.from_ns == from_ns => last.samples += count,
            _ => classes.push(LatencyClass { from_ns, below_ns, samples: count }),
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_bounded_by_round_numbers() {
        let mut latency = Latency::default();
        [1, 5, 1_200, 1_900, 2_100, 60_000, 99_000, 1_000_000_001].iter().for_each(|&ns| latency.record(ns));
        let found: Vec<_> = classes(&latency)
            .into_iter()
            .map(|class| (class.from_ns, class.below_ns, class.samples))
            .collect();
        assert_eq!(
            found,
            [
                (1, 2, 1),
                (5, 10, 1),
                (1_000, 2_000, 2),
                (2_000, 5_000, 1),
                (50_000, 100_000, 2),
                (1_000_000_000, 2_000_000_000, 1)
            ]
        );
    }
}
