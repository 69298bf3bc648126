//! Due times of requests under a rate. The schedule is independent of the device.

use fathom_model::{Op, Rate, RatePlan, RateProcess};
use fathom_workload::Rng;

/// The due times of one operation.
#[derive(Debug)]
struct Stream {
    op: Op,
    rate: Rate,
    /// Whole ns from one request to the next, and the remainder in parts of the rate's requests; a division, and so kept.
    gap: (u64, u64),
    /// When the next request is due, session ns.
    next: u64,
    /// Accumulated remainder of whole ns, in parts of the rate's requests.
    carried: u64,
    /// Draws the gaps; `None` for even ones.
    random: Option<Rng>,
}

impl Stream {
    fn advance(&mut self) {
        let gap = match &mut self.random {
            None => self.even_gap(),
            Some(rng) => {
                // 53 bits, shifted so that neither 0 nor 1 is among them.
                let share = ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
                (-share.ln() * self.rate.mean_gap_ns()).round() as u64
            }
        };
        self.next = self.next.saturating_add(gap);
    }

    fn even_gap(&mut self) -> u64 {
        let (whole, rest) = self.gap;
        self.carried += rest;
        let more = u64::from(self.carried >= self.rate.requests());
        self.carried -= more * self.rate.requests();
        whole + more
    }

    /// Requests that are due by `now` and not taken; the expected number for random gaps.
    fn overdue(&self, now: u64) -> u64 {
        if self.next > now { 0 } else { 1 + self.rate.requests_in(now - self.next) }
    }
}

/// The due times of all operations of a worker that have a rate.
#[derive(Debug)]
pub(crate) struct Arrivals {
    streams: Vec<Stream>,
    /// The stream with the earliest request, and when that is due; `u64::MAX` before the beginning.
    first: usize,
    due: u64,
}

impl Arrivals {
    /// The schedule of `plan`, drawn from `seed`; `None` without a rate.
    pub fn new(plan: &RatePlan, seed: u64) -> Option<Arrivals> {
        let stream = |(op, rate): (Op, &Option<Rate>)| {
            let random = (plan.process == RateProcess::Poisson).then(|| Rng::stream(seed, 7 + op as u64));
            let rate = (*rate)?;
            Some(Stream { op, rate, gap: rate.gap(), next: u64::MAX, carried: 0, random })
        };
        let streams: Vec<Stream> = plan.rates.iter().filter_map(stream).collect();
        (!streams.is_empty()).then_some(Arrivals { streams, first: 0, due: u64::MAX })
    }

    /// Finds the earliest request; of two at the same time, that of the first stream.
    #[inline]
    fn find_first(&mut self) {
        (self.first, self.due) = (0, u64::MAX);
        for (index, stream) in self.streams.iter().enumerate() {
            if stream.next < self.due {
                (self.first, self.due) = (index, stream.next);
            }
        }
    }

    /// Begins at `now`: the first request of each even stream is due immediately.
    pub fn begin(&mut self, now: u64) {
        for stream in &mut self.streams {
            stream.next = now;
            if stream.random.is_some() {
                stream.advance();
            }
        }
        self.find_first();
    }

    /// Delays all requests that are not taken.
    pub fn delay(&mut self, delay_ns: u64) {
        for stream in &mut self.streams {
            stream.next = stream.next.saturating_add(delay_ns);
        }
        self.find_first();
    }

    /// Whether requests of `op` have a rate.
    pub fn has(&self, op: Op) -> bool {
        self.streams.iter().any(|stream| stream.op == op)
    }

    /// When the next request is due, session ns; `u64::MAX` before the beginning.
    #[inline]
    pub fn next_due(&self) -> u64 {
        self.due
    }

    /// Takes the earliest request that is due by `now`: its operation and due time.
    #[inline]
    pub fn take(&mut self, now: u64) -> Option<(Op, u64)> {
        let due = self.due;
        if due > now {
            return None;
        }
        let first = &mut self.streams[self.first];
        let op = first.op;
        first.advance();
        self.find_first();
        Some((op, due))
    }

    /// Requests of each operation that are due by `now` and not taken.
    pub fn overdue(&self, now: u64) -> impl Iterator<Item = (Op, u64)> + '_ {
        self.streams.iter().map(move |stream| (stream.op, stream.overdue(now)))
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::PerOp;

    use super::*;

    fn arrivals(rates: [Option<Rate>; 3], process: RateProcess, seed: u64) -> Arrivals {
        let [read, write, trim] = rates;
        let plan = RatePlan { rates: PerOp { read, write, trim }, process, ..RatePlan::default() };
        let mut arrivals = Arrivals::new(&plan, seed).unwrap();
        assert_eq!(arrivals.next_due(), u64::MAX);
        arrivals.begin(1_000);
        arrivals
    }

    fn all(arrivals: &mut Arrivals, until: u64) -> Vec<(Op, u64)> {
        std::iter::from_fn(|| arrivals.take(until)).collect()
    }

    #[test]
    fn an_even_rate_never_drifts() {
        let mut thirds = arrivals([Rate::iops(3), None, None], RateProcess::Linear, 1);
        let due = all(&mut thirds, 1_000 + 3_000_000_000);
        assert_eq!(due.len(), 10);
        for (k, (op, at)) in due.into_iter().enumerate() {
            let exact = 1_000 + k as u64 * 1_000_000_000 / 3;
            assert!(op == Op::Read && at.abs_diff(exact) <= 1, "{k}: {at} and {exact}");
        }
    }

    #[test]
    fn streams_are_merged_by_their_due_times() {
        let mut both = arrivals([Rate::iops(1_000), Rate::iops(500), None], RateProcess::Linear, 1);
        let due = all(&mut both, 1_000 + 3_000_000);
        let expected = [
            (Op::Read, 1_000),
            (Op::Write, 1_000),
            (Op::Read, 1_001_000),
            (Op::Read, 2_001_000),
            (Op::Write, 2_001_000),
            (Op::Read, 3_001_000),
        ];
        assert_eq!(due, expected);
        assert_eq!(both.next_due(), 4_001_000);
        assert!(both.has(Op::Write) && !both.has(Op::Trim));
    }

    #[test]
    fn overdue_requests_are_those_that_can_be_taken() {
        for rate in [3, 200, 1_000_000] {
            let mut even = arrivals([Rate::iops(rate), None, None], RateProcess::Linear, 1);
            even.take(1_000);
            let overdue: Vec<_> = even.overdue(1_000 + 5_000_000_000).collect();
            let taken = all(&mut even, 1_000 + 5_000_000_000).len() as u64;
            assert_eq!((overdue, taken), (vec![(Op::Read, taken)], rate * 5));
            assert_eq!(even.overdue(1_000 + 5_000_000_000).map(|(_, n)| n).sum::<u64>(), 0);
        }
    }

    #[test]
    fn random_gaps_have_the_mean_and_the_spread_of_their_process() {
        let mut random = arrivals([None, Rate::iops(1_000), None], RateProcess::Poisson, 42);
        let due: Vec<f64> = all(&mut random, 100_000_000_000).into_iter().map(|(_, at)| at as f64).collect();
        let gaps: Vec<f64> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let spread = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        // 100,000 gaps: three standard errors of both are about 1 %.
        assert!((mean / 1e6 - 1.0).abs() < 0.015 && (spread / mean - 1.0).abs() < 0.015, "{mean} {spread}");
        let mut again = arrivals([None, Rate::iops(1_000), None], RateProcess::Poisson, 42);
        assert_eq!(all(&mut again, 1_000_000_000).len(), due.iter().filter(|&&at| at <= 1e9).count());
    }
}
