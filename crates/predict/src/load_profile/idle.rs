//! The longest time without a request.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_observed::LoadGap;

use super::gap_ns;

/// Idle times that are kept until the gaps are known, in which nothing is known of requests.
const KEPT: usize = 1024;

/// The longest times between requests, in bounded memory.
#[derive(Debug, Default)]
pub(super) struct IdleTally {
    /// When the last request was issued.
    last_ns: u64,
    /// Length and start of the longest ones, ns; the shortest of them first.
    longest: BinaryHeap<Reverse<(u64, u64)>>,
}

impl IdleTally {
    /// A request is issued; times never fall.
    pub(super) fn take(&mut self, at_ns: u64) {
        let length_ns = at_ns.saturating_sub(self.last_ns);
        let is_long =
            self.longest.len() < KEPT || self.longest.peek().is_some_and(|least| length_ns > least.0.0);
        if is_long {
            if self.longest.len() == KEPT {
                self.longest.pop();
            }
            self.longest.push(Reverse((length_ns, self.last_ns)));
        }
        self.last_ns = at_ns;
    }

    /// The longest, from the beginning of a load of this length to its end; what lies in a gap does not count.
    pub(super) fn longest_ns(mut self, length_ns: u64, gaps: &[LoadGap]) -> u64 {
        self.take(length_ns.max(self.last_ns));
        let known_ns = |&Reverse((length_ns, start_ns)): &Reverse<(u64, u64)>| {
            length_ns.saturating_sub(gap_ns(gaps, start_ns, start_ns + length_ns))
        };
        self.longest.iter().map(known_ns).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use fathom_observed::GapReason;

    use super::*;

    fn longest_ns(times: &[u64], length_ns: u64, gaps: &[LoadGap]) -> u64 {
        let mut tally = IdleTally::default();
        times.iter().for_each(|&at_ns| tally.take(at_ns));
        tally.longest_ns(length_ns, gaps)
    }

    #[test]
    fn a_load_may_be_idle_at_its_ends() {
        assert_eq!(longest_ns(&[10, 20, 50], 60, &[]), 30);
        assert_eq!(longest_ns(&[10, 20, 50], 600, &[]), 550);
        assert_eq!(longest_ns(&[100, 110], 120, &[]), 100);
        assert_eq!(longest_ns(&[], 120, &[]), 120);
    }

    #[test]
    fn a_gap_is_not_idle() {
        let gap = LoadGap { start_ns: 20, length_ns: 1_000, reason: GapReason::Missing };
        assert_eq!(longest_ns(&[10, 20, 1_025, 1_065], 1_070, &[gap]), 40);
    }

    #[test]
    fn memory_is_bounded() {
        let mut tally = IdleTally::default();
        (1..=10_000).for_each(|at| tally.take(at * at));
        assert_eq!(tally.longest.len(), KEPT);
        assert_eq!(tally.longest_ns(100_000_000, &[]), 19_999);
    }
}
