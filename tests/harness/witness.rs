//! Requests that a server, a tracer or a trace observed, to be compared with fathom's report of the same requests.
//!
//! Nothing here comes from fathom: the times are the onlooker's, and the figures are exact ones over all of them.

/// One request, in ns of the onlooker's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it arrived.
    pub start_ns: u64,
    /// When it was answered.
    pub end_ns: u64,
}

/// All requests that an onlooker saw, each from its arrival to its answer.
#[derive(Clone, Debug)]
pub struct Seen {
    spans: Vec<Span>,
    /// In ascending order.
    latencies_ns: Vec<u64>,
}

impl Seen {
    /// Figures of these requests.
    ///
    /// # Panics
    /// Without requests, or if one was answered before it arrived.
    pub fn new(spans: Vec<Span>) -> Self {
        assert!(!spans.is_empty(), "the onlooker saw nothing");
        let took = |span: &Span| span.end_ns.checked_sub(span.start_ns).expect("answers follow requests");
        let mut latencies_ns: Vec<u64> = spans.iter().map(took).collect();
        latencies_ns.sort_unstable();
        Seen { spans, latencies_ns }
    }

    /// How many there were.
    pub fn count(&self) -> usize {
        self.spans.len()
    }

    /// Mean latency, ns.
    pub fn mean_ns(&self) -> f64 {
        self.latencies_ns.iter().sum::<u64>() as f64 / self.count() as f64
    }

    /// The smallest latency that at least `percent` of all do not exceed, ns.
    pub fn percentile_ns(&self, percent: f64) -> f64 {
        let rank = (percent * self.count() as f64 / 100.0).ceil() as usize;
        self.latencies_ns[rank.clamp(1, self.count()) - 1] as f64
    }

    /// The most that were there at one moment.
    pub fn most_at_once(&self) -> usize {
        let mut changes: Vec<(u64, i64)> =
            self.spans.iter().flat_map(|span| [(span.start_ns, 1), (span.end_ns, -1)]).collect();
        // Of one moment, what leaves goes first: the next request may arrive in the same µs.
        changes.sort_unstable();
        let mut now = 0;
        let most = changes.iter().map(|&(_, change)| {
            now += change;
            now
        });
        most.max().unwrap_or(0) as usize
    }

    /// How many were there on average, from the first arrival to the last answer.
    pub fn mean_at_once(&self) -> f64 {
        let first = self.spans.iter().map(|span| span.start_ns).min().unwrap_or(0);
        let last = self.spans.iter().map(|span| span.end_ns).max().unwrap_or(0);
        self.latencies_ns.iter().sum::<u64>() as f64 / (last - first).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(spans: &[(u64, u64)]) -> Seen {
        Seen::new(spans.iter().map(|&(start_ns, end_ns)| Span { start_ns, end_ns }).collect())
    }

    #[test]
    fn figures_of_a_known_set() {
        let seen = seen(&[(0, 10), (10, 30), (5, 35), (30, 70)]);
        assert_eq!((seen.count(), seen.mean_ns(), seen.mean_at_once()), (4, 25.0, 100.0 / 70.0));
        assert_eq!(seen.most_at_once(), 2);
        for (percent, expected) in [(1.0, 10.0), (25.0, 10.0), (25.1, 20.0), (99.0, 40.0), (100.0, 40.0)] {
            assert_eq!(seen.percentile_ns(percent), expected, "p{percent}");
        }
    }
}
