//! How even the rate was: from the intervals of all workers together, second by second.

use fathom_model::Nanos;
use fathom_stats::sample::{mean, upper_median, variance};
use fathom_stats::series;
use serde::{Deserialize, Serialize};

use crate::confidence::{MIN_SAMPLES, half_width_of, slice_fraction};
use crate::{Interval, IntervalOp, JobRecord};

/// One full second (or one interval, where those are longer) of all workers together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Second {
    /// Start, ns since the start of the run.
    pub start_ns: u64,
    /// Length, ns.
    pub elapsed_ns: u64,
    /// Requests completed.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
}

impl Second {
    /// Requests per second.
    pub fn iops(&self) -> f64 {
        self.ios as f64 * 1e9 / self.elapsed_ns as f64
    }
}

/// How even the rate was over the full seconds of the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stability {
    /// Coefficient of variation of the rate per second (0.01 = 1 %).
    pub cv: f64,
    /// Half of the 95 % confidence interval of the mean rate, as a share of it.
    pub mean_ci95_fraction: f64,
    /// The rate of the slowest second.
    pub worst_second_iops: f64,
    /// Share of the seconds whose rate is within 10 % of the mean, 0 to 1.
    pub within_10_percent: f64,
    /// Time that it rests on, ns: the full intervals, of a second or more each.
    pub measured_ns: u64,
}

/// A bin is closed once it is this long, so that two ticks of slightly less than 500 ms make a second.
const FULL_NS: u64 = 950_000_000;

/// The full seconds in which every worker was measuring, each from the last completion before it to its own last one: where I/Os
/// complete in groups, a second holds whole groups. A second in which nothing completed counts, with rate zero; the cut intervals
/// at the start and the end do not.
pub fn seconds(jobs: &[&JobRecord]) -> Vec<Second> {
    let Some(merged) = merged_series(jobs) else { return Vec::new() };
    let Some(usual) = upper_median(merged.iter().map(Interval::elapsed_ns)) else { return Vec::new() };
    // Where workers start apart, the first common moment is the latest start, the last the earliest end.
    let from =
        jobs.iter().filter_map(|job| job.measured.series.first()).map(|i| i.start_ns).max().unwrap_or(0);
    let to = jobs.iter().filter_map(|job| job.measured.series.last()).map(|i| i.end_ns).min().unwrap_or(0);
    let is_full = |interval: &Interval| {
        interval.start_ns >= from && interval.end_ns <= to && interval.elapsed_ns() >= usual - usual / 10
    };
    let mut seconds: Vec<OpenSecond> = Vec::new();
    let mut open: Option<OpenSecond> = None;
    for interval in &merged {
        if !is_full(interval) {
            open = None;
            continue;
        }
        let ops = interval.ops();
        let mut next = OpenSecond {
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            last_ns: interval.last_ns(),
            tick: interval.tick,
            ios: ops.iter().map(|op| op.ios).sum(),
            bytes: ops.iter().map(|op| op.bytes).sum(),
        };
        if let Some(before) = open.take().filter(|before| before.tick.checked_add(1) == Some(next.tick)) {
            next.start_ns = before.start_ns;
            next.last_ns = if next.last_ns > interval.start_ns { next.last_ns } else { before.last_ns };
            next.ios += before.ios;
            next.bytes += before.bytes;
        }
        if next.end_ns - next.start_ns >= FULL_NS {
            seconds.push(next);
        } else {
            open = Some(next);
        }
    }
    let begins = seconds.first().is_some_and(|first| first.start_ns == from);
    between_completions(seconds, if begins { quiet_before_ns(jobs) } else { 0 })
}

/// A second as the clock cuts it.
#[derive(Clone, Copy)]
struct OpenSecond {
    start_ns: u64,
    end_ns: u64,
    /// The last completion; the start if nothing completed.
    last_ns: u64,
    /// The number of its last interval.
    tick: u32,
    ios: u64,
    bytes: u64,
}

/// Moves the start of each second to the last completion before it, and its end to its own last one, if the next one follows without a
/// gap, both have completions, and both keep their length. A second that follows no known completion stays as the clock cuts it.
/// `quiet_before_ns`: from the last completion before the first second to its start, 0 if unknown.
fn between_completions(mut seconds: Vec<OpenSecond>, quiet_before_ns: u64) -> Vec<Second> {
    let mut follows_completion = quiet_before_ns > 0;
    if let Some(first) = seconds.first_mut() {
        first.start_ns = first.start_ns.saturating_sub(quiet_before_ns);
    }
    for at in 0..seconds.len() {
        let OpenSecond { start_ns, end_ns, last_ns, ios, .. } = seconds[at];
        let next = seconds.get(at + 1).copied().filter(|next| next.start_ns == end_ns);
        let is_cut = ios > 0
            && last_ns.saturating_sub(start_ns) >= FULL_NS / 2
            && next.is_none_or(|next| next.ios > 0);
        if is_cut && follows_completion {
            seconds[at].end_ns = last_ns;
        }
        follows_completion = is_cut && next.is_some();
        if follows_completion {
            seconds[at + 1].start_ns = last_ns;
        }
    }
    let second = |open: OpenSecond| Second {
        start_ns: open.start_ns,
        elapsed_ns: open.end_ns - open.start_ns,
        ios: open.ios,
        bytes: open.bytes,
    };
    seconds.into_iter().map(second).collect()
}

/// From the last completion of a ramp to its end, ns: the first I/Os of the measured part took this time as well, so that a rate without
/// it has a group of I/Os too many. 0 if jobs make pauses of their own, or wait for others.
pub fn quiet_before_ns(workers: &[&JobRecord]) -> u64 {
    let is_closed = |job: &&JobRecord| {
        !job.plan.time.rate.is_limited() && job.plan.time.think_time.pause == Nanos::ZERO && job.phase == 0
    };
    let quiet = |job: &&JobRecord| {
        let last = job.ramp.as_ref()?.series.last()?;
        Some(last.end_ns - last.last_ns())
    };
    let each: Option<Vec<u64>> = workers.iter().map(quiet).collect();
    each.filter(|_| workers.iter().all(is_closed)).and_then(|each| each.into_iter().min()).unwrap_or(0)
}

/// The stability of the rate of all workers together; `None` below three full seconds or where nothing completed. The interval
/// is one of `looks` that might each have ended the test.
pub fn stability(jobs: &[&JobRecord], looks: u32) -> Option<Stability> {
    let seconds = seconds(jobs);
    if seconds.len() < MIN_SAMPLES {
        return None;
    }
    let rates: Vec<f64> = seconds.iter().map(Second::iops).collect();
    let count = rates.len() as f64;
    let mean = mean(&rates);
    if mean <= 0.0 {
        return None;
    }
    let measured_ns = seconds.iter().map(|second| second.elapsed_ns).sum();
    let near = rates.iter().filter(|&&rate| (rate - mean).abs() <= 0.1 * mean).count();
    Some(Stability {
        cv: variance(&rates).sqrt() / mean,
        mean_ci95_fraction: half_width_of(&rates, looks) / mean + slice_fraction(measured_ns as f64),
        worst_second_iops: rates.iter().copied().fold(f64::INFINITY, f64::min),
        within_10_percent: near as f64 / count,
        measured_ns,
    })
}

/// The intervals of all workers, added tick by tick, without their latencies; `None` where a worker has none to add.
pub fn merged_series(jobs: &[&JobRecord]) -> Option<Vec<Interval>> {
    let series_of = |job: &JobRecord| {
        let bare = |interval: &Interval| {
            let op = |op: &IntervalOp| IntervalOp { clat_bins: Vec::new(), ..*op };
            let Interval { tick, start_ns, end_ns, quiet_ns, ref read, ref write, ref trim } = *interval;
            Interval { tick, start_ns, end_ns, quiet_ns, read: op(read), write: op(write), trim: op(trim) }
        };
        job.measured.series.iter().map(bare).collect::<Vec<Interval>>()
    };
    if jobs.iter().any(|job| job.measured.series.is_empty()) {
        return None;
    }
    let mut merged = series_of(jobs.first()?);
    for job in &jobs[1..] {
        series::merge(&mut merged, &series_of(job));
    }
    Some(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IntervalOp, PhaseOutcome};

    const TICK: u64 = 500_000_000;

    /// A worker whose intervals end at these times (ns) with these counts, the first starting at `start`.
    fn worker(start: u64, intervals: &[(u32, u64, u64)]) -> JobRecord {
        let mut from = start;
        let mut series = Vec::new();
        for &(tick, end_ns, ios) in intervals {
            let read = IntervalOp { ios, bytes: ios * 4096, ..Default::default() };
            series.push(Interval { tick, start_ns: from, end_ns, read, ..Default::default() });
            from = end_ns;
        }
        JobRecord { measured: PhaseOutcome { series, ..Default::default() }, ..Default::default() }
    }

    fn even(ticks: u32, ios: &[u64]) -> Vec<(u32, u64, u64)> {
        (0..ticks).map(|tick| (tick, u64::from(tick + 1) * TICK, ios[tick as usize % ios.len()])).collect()
    }

    fn rates(jobs: &[&JobRecord]) -> Vec<f64> {
        seconds(jobs).iter().map(Second::iops).collect()
    }

    #[test]
    fn two_ticks_make_a_second() {
        assert_eq!(rates(&[&worker(0, &even(7, &[10, 20]))]), [30.0, 30.0, 30.0]);
        assert!(rates(&[&worker(0, &[])]).is_empty());
        assert!(rates(&[]).is_empty());
    }

    #[test]
    fn seconds_hold_whole_groups_of_completions() {
        // A group of 40 at the end of every 0.8 s, seen by a clock of half seconds.
        let mut job = worker(0, &even(16, &[0]));
        for (at, interval) in job.measured.series.iter_mut().enumerate() {
            let (from, to) = (at as u64 * 500, at as u64 * 500 + 500);
            let groups = to / 800 - from / 800;
            interval.read.ios = 40 * groups;
            interval.quiet_ns = if groups == 0 { TICK } else { (to - to / 800 * 800) * 1_000_000 };
        }
        let later = [50.0; 7];
        assert_eq!(rates(&[&job]), [&[40.0], &later[..]].concat());
        // The first second of it as a ramp, whose last group completed 200 ms before its end.
        let mut behind = job.clone();
        let ramp = behind.measured.series.drain(..2).collect();
        behind.ramp = Some(PhaseOutcome { series: ramp, ..Default::default() });
        assert_eq!(rates(&[&behind]), later);
        // Nothing for two seconds, which begin and end as the clock says.
        for interval in &mut job.measured.series[6..10] {
            (interval.read.ios, interval.quiet_ns) = (0, TICK);
        }
        let seconds = rates(&[&job]);
        assert_eq!((seconds.len(), seconds[3], seconds[4]), (8, 0.0, 0.0));
    }

    #[test]
    fn cut_intervals_at_both_ends_do_not_count() {
        let mut intervals = even(8, &[10]);
        intervals[7].1 = 7 * TICK + 1_000;
        assert_eq!(rates(&[&worker(TICK / 2, &intervals)]), [20.0, 20.0, 20.0]);
    }

    #[test]
    fn only_seconds_in_which_every_worker_ran_count() {
        let early = worker(0, &even(10, &[10]));
        let late = worker(TICK + 7, &even(12, &[100])[1..]);
        assert_eq!(rates(&[&early, &late]), [220.0, 220.0, 220.0, 220.0]);
    }

    #[test]
    fn longer_intervals_are_taken_as_they_are() {
        let intervals: Vec<_> = (0..4).map(|i| (i, u64::from(i + 1) * 4 * TICK, 200)).collect();
        assert_eq!(rates(&[&worker(0, &intervals)]), [100.0; 4]);
    }

    #[test]
    fn a_stalled_second_is_the_worst() {
        let mut intervals = even(10, &[50]);
        intervals[4].2 = 0;
        intervals[5].2 = 0;
        let measured = stability(&[&worker(0, &intervals)], 1).expect("five full seconds");
        assert_eq!(
            (measured.worst_second_iops, measured.within_10_percent, measured.measured_ns),
            (0.0, 0.0, 10 * TICK)
        );
        assert!((measured.cv - 0.559_016_994).abs() < 1e-9, "{}", measured.cv);
    }

    #[test]
    fn too_little_says_nothing() {
        for (ticks, ios, expected) in [(5, 10, false), (6, 10, true), (20, 0, false)] {
            assert_eq!(
                stability(&[&worker(0, &even(ticks, &[ios]))], 1).is_some(),
                expected,
                "{ticks} {ios}"
            );
        }
        let steady = stability(&[&worker(0, &even(20, &[10]))], 1).expect("ten full seconds");
        assert_eq!(
            steady,
            Stability {
                cv: 0.0,
                mean_ci95_fraction: 0.01,
                worst_second_iops: 20.0,
                within_10_percent: 1.0,
                measured_ns: 20 * TICK
            }
        );
    }
}
