//! A series of counts as stretches of one rate each: where a rate falls, comes back or stays.

use fathom_stats::sample::level_bounds;

use super::probe::ProbeSlice;

/// A span of one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stretch {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// Requests.
    pub(crate) ios: u64,
    /// Time in which something completed, s: stalls are left out.
    pub(crate) seconds: f64,
}

impl Stretch {
    pub(crate) fn rate(&self) -> f64 {
        self.ios as f64 / self.seconds.max(1e-9)
    }
}

/// Rates that differ by less are one.
const APART: f64 = 0.06;
/// A stretch has this many requests and lasts this long, at the least.
const LEAST_IOS: u64 = 24;
const LEAST_SECONDS: f64 = 0.9;
/// What a limiter releases ahead of its rate after a rest, or in a turn more or less: in this time, at the rate, s.
const TURN_SECONDS: f64 = 0.13;

/// The stretches of `slices`, in order of time.
pub(crate) fn stretches(slices: &[ProbeSlice]) -> Vec<Stretch> {
    let slices = gathered(slices);
    let mut sums = vec![(0.0, 0u64, 0.0)];
    for slice in &slices {
        let (seconds, ios, squares) = sums[sums.len() - 1];
        let (length, rate) = (slice.seconds(), slice.rate());
        sums.push((seconds + length, ios + slice.ios, squares + rate * rate * length));
    }
    let cuts = Cuts { sums: &sums };
    let bounds = level_bounds(slices.len(), |span| cuts.cut(span.start, span.end));
    let mut found: Vec<Stretch> = Vec::new();
    for pair in bounds.windows(2) {
        let of = |from: usize, to: usize| Stretch {
            start_ns: slices[from].start_ns,
            end_ns: slices[to - 1].end_ns,
            ios: sums[to].1 - sums[from].1,
            seconds: sums[to].0 - sums[from].0,
        };
        let next = of(pair[0], pair[1]);
        match found.last_mut() {
            Some(last) if !is_apart(last.rate(), next.rate()) => {
                last.end_ns = next.end_ns;
                last.ios += next.ios;
                last.seconds += next.seconds;
            }
            _ => found.push(next),
        }
    }
    found
}

/// Spans that tell how even a rate is, and how long one of them is at the least, s: limits let requests through by turns,
/// which take longer where there are few.
const FEWEST_SPANS: usize = 3;
pub(crate) const SPAN: f64 = 0.9;
pub(crate) const LONG_SPAN: f64 = 1.9;

/// Slices that follow one another, put together to spans of `shortest` s and more.
pub(crate) fn spans<'a>(slices: impl Iterator<Item = &'a ProbeSlice>, shortest: f64) -> Vec<ProbeSlice> {
    let mut spans: Vec<ProbeSlice> = Vec::new();
    for slice in slices {
        match spans.last_mut() {
            Some(span) if span.seconds() < shortest => {
                span.end_ns = slice.end_ns;
                span.ios += slice.ios;
            }
            _ => spans.push(*slice),
        }
    }
    spans.retain(|span| span.seconds() >= shortest);
    spans
}

/// Spread of the rate from span to span over its mean, less what comes of counting whole requests; 0 where too little was
/// seen to tell.
pub(crate) fn unevenness<'a>(slices: impl Iterator<Item = &'a ProbeSlice>, shortest: f64) -> f64 {
    let spans = spans(slices, shortest);
    let seconds: f64 = spans.iter().map(ProbeSlice::seconds).sum();
    let ios: u64 = spans.iter().map(|span| span.ios).sum();
    if spans.len() < FEWEST_SPANS || ios == 0 {
        return 0.0;
    }
    let mean = ios as f64 / seconds;
    let squares: f64 = spans.iter().map(|span| (span.rate() - mean).powi(2) * span.seconds()).sum();
    let counting = spans.len() as f64 / ios as f64;
    ((squares / seconds).sqrt() / mean - counting).max(0.0)
}

/// Slices long enough to tell a rate, without those in which the target stood still.
fn gathered(slices: &[ProbeSlice]) -> Vec<ProbeSlice> {
    let busiest =
        slices.iter().filter(|slice| slice.seconds() > 0.1).map(ProbeSlice::rate).fold(0.0, f64::max);
    let mut gathered: Vec<ProbeSlice> = Vec::new();
    for slice in slices.iter().filter(|slice| slice.end_ns > slice.start_ns) {
        let would = busiest * slice.seconds();
        if slice.ios == 0 && would > 200.0 {
            continue;
        }
        match gathered.last_mut() {
            Some(last)
                if (last.seconds() < 0.4 || last.ios < 4)
                    && slice.start_ns.saturating_sub(last.end_ns) < 100_000_000 =>
            {
                last.end_ns = slice.end_ns;
                last.ios += slice.ios;
            }
            _ => gathered.push(*slice),
        }
    }
    // What is too short at the end belongs to what went before it.
    if let [.., before, last] = &mut gathered[..]
        && last.seconds() < 0.4
    {
        before.end_ns = last.end_ns;
        before.ios += last.ios;
        gathered.pop();
    }
    gathered
}

struct Cuts<'a> {
    /// Seconds, requests and squared rates times seconds up to each slice.
    sums: &'a [(f64, u64, f64)],
}

impl Cuts<'_> {
    fn span(&self, from: usize, to: usize) -> (f64, u64, f64) {
        let (start, end) = (self.sums[from], self.sums[to]);
        (end.0 - start.0, end.1 - start.1, end.2 - start.2)
    }

    /// What is left of squares around the mean.
    fn cost(&self, from: usize, to: usize) -> f64 {
        let (seconds, ios, squares) = self.span(from, to);
        squares - (ios as f64).powi(2) / seconds.max(1e-9)
    }

    fn rate(&self, from: usize, to: usize) -> f64 {
        let (seconds, ios, _) = self.span(from, to);
        ios as f64 / seconds.max(1e-9)
    }

    fn is_long(&self, from: usize, to: usize) -> bool {
        let (seconds, ios, _) = self.span(from, to);
        ios >= LEAST_IOS && seconds >= LEAST_SECONDS
    }

    /// The shorter of both parts has more requests too many, or too few, than one turn of a limiter makes.
    fn is_beyond_a_turn(&self, from: usize, cut: usize, to: usize) -> bool {
        let (before, after) = (self.rate(from, cut), self.rate(cut, to));
        let seconds = self.span(from, cut).0.min(self.span(cut, to).0);
        (before - after).abs() * seconds > TURN_SECONDS * before.max(after)
    }

    /// Where a span is divided into two rates; `None` of one rate.
    fn cut(&self, from: usize, to: usize) -> Option<usize> {
        let left = |cut: usize| self.cost(from, cut) + self.cost(cut, to);
        let cuts = (from + 1..to).filter(|&cut| self.is_long(from, cut) && self.is_long(cut, to));
        let cut = cuts.max_by(|&one, &other| (-left(one)).total_cmp(&-left(other)))?;
        let is_better = left(cut) < 0.8 * self.cost(from, to);
        let rates = [self.rate(from, cut), self.rate(cut, to)];
        let is_cut = is_better && is_apart(rates[0], rates[1]) && self.is_beyond_a_turn(from, cut, to);
        is_cut.then_some(cut)
    }
}

pub(crate) fn is_apart(one: f64, other: f64) -> bool {
    (one - other).abs() > APART * one.max(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half seconds of these rates.
    fn series(rates: &[(f64, usize)]) -> Vec<ProbeSlice> {
        let rates: Vec<f64> = rates.iter().flat_map(|&(rate, count)| vec![rate; count]).collect();
        let slice = |(at, rate): (usize, &f64)| ProbeSlice {
            start_ns: at as u64 * 500_000_000,
            end_ns: (at + 1) as u64 * 500_000_000,
            ios: (rate * 0.5) as u64,
        };
        rates.iter().enumerate().map(slice).collect()
    }

    #[test]
    fn rates_are_separated() {
        let check = |rates: &[(f64, usize)], expected: &[f64]| {
            let found: Vec<f64> = stretches(&series(rates)).iter().map(|it| it.rate().round()).collect();
            assert_eq!(found, expected, "{rates:?}");
        };
        check(&[], &[]);
        check(&[(3000.0, 100)], &[3000.0]);
        check(&[(3000.0, 100), (150.0, 60)], &[3000.0, 150.0]);
        check(&[(3000.0, 100), (2900.0, 60)], &[2963.0]);
        check(&[(100.0, 20), (50.0, 20), (100.0, 20)], &[100.0, 50.0, 100.0]);
        // A stall is no rate.
        check(&[(3000.0, 20), (0.0, 40), (3000.0, 20)], &[3000.0]);
        // Too short to tell.
        check(&[(3000.0, 20), (1500.0, 1), (3000.0, 20)], &[2963.0]);
        // What a limiter released ahead of its rate after a rest.
        check(&[(546.0, 2), (500.0, 60)], &[501.0]);
        check(&[(546.0, 8), (500.0, 60)], &[546.0, 500.0]);
    }

    #[test]
    fn unevenness_is_what_counting_does_not_explain() {
        let of = |rates: &[(f64, usize)]| unevenness(series(rates).iter(), SPAN);
        assert_eq!(of(&[(3000.0, 10)]), 0.0);
        assert_eq!(of(&[(3000.0, 2), (100.0, 2)]), 0.0, "too little to tell");
        // A whole request more or less in a second.
        assert!(of(&[(10.0, 6), (11.0, 6)]) < 0.01);
        assert!((of(&[(3000.0, 6), (2400.0, 6)]) - 0.111).abs() < 0.01);
        // What comes by turns is even over a second.
        assert_eq!(of(&[(3000.0, 1), (1000.0, 1)].repeat(6)), 0.0);
        let by_turns = series(&[(70.0, 1), (64.0, 1), (50.0, 1), (62.0, 1)].repeat(4));
        assert!(unevenness(by_turns.iter(), SPAN) > 0.05);
        assert_eq!(unevenness(by_turns.iter(), LONG_SPAN), 0.0);
    }
}
