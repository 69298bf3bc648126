//! Series of counts: stretches of one rate each, trends of a rate, and the turns in which a limiter releases requests.
//!
//! The kernel's throttle admits the whole requests that a slice of 20 or 100 ms allows, and nothing until the next slice. A rate
//! counted between two arbitrary instants is off by up to a turn's requests, and the last turn counts in full although only the
//! requests that were waiting complete in it. Requests that begin at rest begin a turn, and the last ones end with one: between
//! those instants there are whole turns only. What remains is the fraction of a request that no turn admits: the limit is up to
//! one request per turn higher than the rate.

use fathom_stats::sample::level_bounds;

use super::probe::{IdentifyProbe, ProbeCounts, ProbeSlice};

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
const MIN_STRETCH_IOS: u64 = 24;
const MIN_STRETCH_SECONDS: f64 = 0.9;
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
        ios >= MIN_STRETCH_IOS && seconds >= MIN_STRETCH_SECONDS
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

/// Fewest rates that show a trend.
const MIN_RATES: usize = 6;
/// Shorter slices carry no rate, s.
pub(super) const MIN_RATE_SECONDS: f64 = 0.3;
/// Standard errors of a slope that are no chance, and the change from the first rate to the last that matters, as a share.
const SURE: f64 = 4.0;
const DRIFTED: f64 = 0.04;
/// The same of a slope that only confirms a fall, and the share of a fall that a drift explains at the least.
const LIKELY: f64 = 2.5;
const EXPLAINED: f64 = 0.5;

/// A straight line through rates over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    /// Middle of the rates, s, and their mean.
    middle_s: f64,
    mean: f64,
    /// Change a second, and its standard error.
    slope: f64,
    error: f64,
    /// From the first rate to the last, s.
    seconds: f64,
}

impl Trend {
    /// The trend of `(s, rate)` by least squares; `None` for too few.
    pub(super) fn of(points: &[(f64, f64)]) -> Option<Trend> {
        let count = points.len() as f64;
        if points.len() < MIN_RATES {
            return None;
        }
        let middle_s = points.iter().map(|point| point.0).sum::<f64>() / count;
        let mean = points.iter().map(|point| point.1).sum::<f64>() / count;
        let squares: f64 = points.iter().map(|point| (point.0 - middle_s).powi(2)).sum();
        let slope = points.iter().map(|point| (point.0 - middle_s) * (point.1 - mean)).sum::<f64>() / squares;
        let left: f64 =
            points.iter().map(|point| (point.1 - mean - slope * (point.0 - middle_s)).powi(2)).sum();
        let seconds = points[points.len() - 1].0 - points[0].0;
        Some(Trend { middle_s, mean, slope, error: (left / (count - 2.0) / squares).sqrt(), seconds })
    }

    /// The trend of the rates of `slices`.
    pub(super) fn of_slices(slices: &[ProbeSlice]) -> Option<Trend> {
        let long = slices.iter().filter(|slice| slice.seconds() > MIN_RATE_SECONDS);
        let points: Vec<(f64, f64)> =
            long.map(|slice| ((slice.start_ns + slice.end_ns) as f64 / 2e9, slice.rate())).collect();
        Trend::of(&points)
    }

    /// It falls by more than chance.
    pub(super) fn surely_falls(&self) -> bool {
        -self.slope > LIKELY * self.error
    }

    /// Continued back to `since_s`, it makes a considerable part of a `fall` since then.
    pub(super) fn explains(&self, fall: f64, since_s: f64) -> bool {
        -self.slope * (self.middle_s - since_s) > EXPLAINED * fall
    }

    /// The rates at its beginning and at its end where they differ by more than chance, and by enough to matter.
    pub(super) fn drift(&self) -> Option<(f64, f64)> {
        let change = self.slope * self.seconds;
        let is_drift = self.slope.abs() > SURE * self.error && change.abs() > DRIFTED * self.mean;
        is_drift.then_some((self.mean - change / 2.0, self.mean + change / 2.0))
    }
}

/// Shorter turns make no difference to a rate that takes seconds, s.
const SHORTEST: f64 = 0.004;
/// Longer ones are no limiter's: the target stood still, s.
const LONGEST: f64 = 0.25;
/// Latencies of requests that wait for turns vary by more than this share of their mean, and are so many times as long as
/// without load.
const VARIED: f64 = 0.5;
const WAITED: f64 = 2.0;
/// The slices of the kernel's throttle, on disks and on others, s, and how near to one an estimate of a turn is that one.
const KERNEL_SLICES: [f64; 2] = [0.1, 0.02];
const NEAR: f64 = 0.15;
/// Turns of rest after which a limiter begins anew, and the fewest turns that a rate is counted over.
const REST_TURNS: f64 = 3.0;
const FEWEST: f64 = 8.0;
const TICK_SECONDS: f64 = 0.004;

/// The length of a turn, s; 0 where requests are not released in turns. Of `q` requests in flight and `n` per turn, `q` wait for
/// the next one, and the others complete immediately: the mean square of the latencies over their mean is the turn.
pub(super) fn turn_s(done: &ProbeCounts, floor_ns: f64) -> f64 {
    length_s((done.lat.mean, done.lat.deviation), floor_ns)
}

/// The same of the mean and standard deviation of latencies, ns.
pub(crate) fn length_s((mean, deviation): (f64, f64), floor_ns: f64) -> f64 {
    let turn = (mean + deviation * deviation / mean.max(1.0)) / 1e9;
    let is_released = deviation > VARIED * mean && mean > WAITED * floor_ns;
    if !is_released || !(SHORTEST..=LONGEST).contains(&turn) {
        return 0.0;
    }
    let is_near = |slice: &f64| (turn / slice - 1.0).abs() < NEAR;
    KERNEL_SLICES.into_iter().find(is_near).unwrap_or(turn)
}

/// The time nearest to `ns` that ends in the middle of a turn: at its beginning it is a matter of chance how many of its requests
/// count.
pub(super) fn runtime_of_turns_ns(ns: f64, turn_s: f64) -> f64 {
    let turn_ns = turn_s * 1e9;
    ((ns / turn_ns).floor() + 0.5) * turn_ns
}

/// By how many s a rate over whole turns may be wrong: the kernel ends a turn with one of its ticks; where the length of a turn
/// is not known for sure, the last one may have been counted or not.
pub(super) fn uncertain_s(turn_s: f64) -> f64 {
    if KERNEL_SLICES.contains(&turn_s) { TICK_SECONDS } else { TICK_SECONDS + turn_s }
}

/// Rest that ends the turn of requests before, ns.
pub(super) fn rest_of_turns_ns(turn_s: f64) -> u64 {
    (turn_s * REST_TURNS * 1e3).ceil() as u64 * 1_000_000
}

/// Requests a second over whole turns, where `probe` began at rest and ended with its time; `None` where it did not. The requests
/// that waited at the end complete in a turn of which the others are missing.
pub(super) fn rate_of_turns(
    probe: &IdentifyProbe,
    depth: u32,
    done: &ProbeCounts,
    turn_s: f64,
) -> Option<f64> {
    let seconds = done.seconds() - done.lat.least / 1e9;
    let has_ended_with_its_time = done.ios < probe.ios;
    let is_long = turn_s > 0.0 && seconds > FEWEST * turn_s;
    let ios = done.ios.saturating_sub(u64::from(depth)) as f64;
    (probe.counts && has_ended_with_its_time && is_long).then(|| ios / seconds)
}

#[cfg(test)]
mod tests {
    use crate::identify::played::{PlayedDevice, probe_of};

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

    #[test]
    fn a_drift_differs_from_noise() {
        let check = |rate: fn(usize) -> f64, expected: Option<(f64, f64)>| {
            let points: Vec<(f64, f64)> = (0..101).map(|at| (at as f64, rate(at))).collect();
            let found = Trend::of(&points).and_then(|trend| trend.drift());
            assert_eq!(found.map(|(from, to)| (from.round(), to.round())), expected);
        };
        check(|_| 1000.0, None);
        check(|at| 1000.0 + if at % 2 == 0 { 80.0 } else { -80.0 }, None);
        check(|at| 1000.0 - 0.2 * at as f64, None);
        check(|at| 1000.0 - at as f64, Some((1000.0, 900.0)));
        check(|at| 1000.0 + at as f64, Some((1000.0, 1100.0)));
        assert_eq!(Trend::of(&[(0.0, 1.0), (1.0, 2.0)]), None);
    }

    #[test]
    fn turns_are_recognised_by_the_latencies_of_what_waits_for_them() {
        let check = |turn_s: f64, iops: f64, depth: u32, expected: f64| {
            let device = PlayedDevice { turn_s, ..PlayedDevice::with_iops(move |_| iops) };
            let mut probe = probe_of(4096, depth, 5.0);
            probe.counts = true;
            let seen = device.play(&probe, 0, 0);
            let found = turn_s_of(&seen.read);
            assert!((found - expected).abs() <= 0.1 * expected, "{turn_s} {iops} {depth}: {found}");
            if expected > 0.0 {
                let rate = rate_of_turns(&probe, depth, &seen.read, found).unwrap();
                let released = (iops * turn_s).floor() / turn_s;
                assert!((rate / released - 1.0).abs() < 0.003, "{rate} of {released}");
            }
        };
        check(0.1, 1000.0, 5, 0.1);
        check(0.02, 1000.0, 5, 0.02);
        check(0.1, 1477.0, 8, 0.1);
        check(0.02, 317.0, 1, 0.02);
        // One by one, and a device that answers at once.
        check(0.001, 1000.0, 5, 0.0);
        check(0.1, 1e6, 4, 0.0);
    }

    fn turn_s_of(done: &ProbeCounts) -> f64 {
        turn_s(done, 60_000.0)
    }
}
