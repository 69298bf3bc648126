//! Promises for a share of the time: how many of the seconds that were watched were as good as promised.
//!
//! What is told is told of these seconds. A year cannot be judged by minutes, unless more has gone wrong in them than in
//! all of it may.

use fathom_model::{Nanos, units};
use fathom_record::ShareRecord;

use super::interval::ConfidenceInterval;
use super::words::{share as percent, small_share};
use crate::criterion::CriterionVerdict::{self, Inconclusive, Met, Missed};

/// ns of a year.
pub(super) const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;
/// What an interval leaves out at either end.
const TAIL: f64 = 0.025;

/// How much of a year so many seconds are: `0.0038 % of a year`.
pub fn of_year(seconds: u64) -> String {
    format!("{} of a year", small_share((seconds as f64 * 1e9 / YEAR_NS as f64).min(1.0)))
}

/// What is to be said of a share.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Share {
    pub(super) measured: Option<f64>,
    pub(super) interval: Option<ConfidenceInterval>,
    pub(super) verdict: CriterionVerdict,
    pub(super) why: String,
    pub(super) remedy: Option<String>,
}

/// Judges the seconds of a run: whether each was as good as promised.
pub(super) fn of(good: &[bool], promised: ShareRecord) -> Share {
    let seconds = good.len();
    if seconds == 0 {
        let remedy = Some("--runtime makes it longer".to_owned());
        let why = "no full second was measured".to_owned();
        return Share { measured: None, interval: None, verdict: Inconclusive, why, remedy };
    }
    let held = good.iter().filter(|&&good| good).count();
    let missed = seconds - held;
    let measured = held as f64 / seconds as f64;
    let interval = exact(missed, seconds);
    let spoken = format!("{} of {} seconds", units::grouped(held as u64), units::grouped(seconds as u64));
    let of_year = format!("a run this long speaks for {}", of_year(seconds as u64));
    let told = |verdict: CriterionVerdict, why: String, remedy: Option<String>| Share {
        measured: Some(measured),
        interval: Some(interval),
        verdict,
        why,
        remedy,
    };
    if let Some(period_ns) = promised.period_ns {
        let period = period_ns as f64 / 1e9;
        let may_miss = period * (1.0 - promised.fraction);
        let allowed = units::duration(Nanos((may_miss * 1e9) as u64));
        let over = if period_ns == YEAR_NS { "a year".to_owned() } else { units::duration(Nanos(period_ns)) };
        return match () {
            () if missed as f64 > may_miss => {
                let why = format!("{missed} seconds fell short, and {over} may hold {allowed} of them");
                told(Missed, why, None)
            }
            () if seconds as f64 >= period => told(Met, format!("{spoken}; {of_year}"), None),
            () => {
                let why = format!(
                    "{spoken} were as promised; {over} may hold {allowed} that are not, and {of_year}"
                );
                told(Inconclusive, why, Some("only watching all that time can tell".to_owned()))
            }
        };
    }
    let least = least_seconds(promised.fraction);
    let longer = |seconds: u64| Some(format!("--runtime {seconds} or more"));
    match () {
        // As many as may fall short of the shortest run that can speak of it, and more: no longer run makes up for that.
        () if interval.high < promised.fraction => {
            told(Missed, format!("{spoken} were as promised; {of_year}"), None)
        }
        () if (seconds as u64) < least => {
            let why = format!(
                "{} of the time takes {} s to speak of, and {seconds} were watched",
                percent(promised.fraction),
                units::grouped(least)
            );
            told(Inconclusive, why, longer(least + least / 20 + 2))
        }
        () if measured >= promised.fraction => {
            told(Met, format!("{spoken} were as promised; {of_year}"), None)
        }
        () => {
            let why = format!(
                "too close to call: {spoken} were as promised, between {} and {} of the time",
                percent(interval.low),
                percent(interval.high)
            );
            told(Inconclusive, why, longer(seconds as u64 * 4))
        }
    }
}

/// Seconds of which one that falls short is just as much as promised.
fn least_seconds(fraction: f64) -> u64 {
    (1.0 / (1.0 - fraction).max(1e-9)).round() as u64
}

/// Within what the share lies that misses so many of so many (Clopper and Pearson: exact, and rather too wide).
fn exact(missed: usize, seconds: usize) -> ConfidenceInterval {
    let most = solve(|share| at_most(missed, seconds, share) > TAIL);
    let least = match missed {
        0 => 0.0,
        missed => solve(|share| 1.0 - at_most(missed - 1, seconds, share) < TAIL),
    };
    ConfidenceInterval { low: if missed == seconds { 0.0 } else { 1.0 - most }, high: 1.0 - least }
}

/// Up to which share something that ceases with it is so.
fn solve(is_so: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if is_so(middle) { low = middle } else { high = middle }
    }
    low
}

/// How likely it is that at most `missed` of `seconds` fall short where `share` of all do. In logarithms, so that many
/// seconds come to something.
fn at_most(missed: usize, seconds: usize, share: f64) -> f64 {
    let (seconds, odds) = (seconds as f64, share.ln() - (1.0 - share).ln());
    let mut term = seconds * (1.0 - share).ln();
    let mut sum = term;
    for count in 0..missed {
        let count = count as f64;
        term += ((seconds - count) / (count + 1.0)).ln() + odds;
        sum = sum.max(term) + (-(sum - term).abs()).exp().ln_1p();
    }
    sum.exp().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(seconds: usize, missed: usize, fraction: f64, period_ns: Option<u64>) -> Share {
        let good: Vec<bool> = (0..seconds).map(|second| second >= missed).collect();
        of(&good, ShareRecord { fraction, period_ns })
    }

    #[test]
    fn as_long_as_one_second_is_the_share_that_may_be_missed() {
        for (seconds, missed, fraction, expected) in [
            (999, 0, 0.999, CriterionVerdict::Inconclusive),
            (1000, 0, 0.999, CriterionVerdict::Met),
            (1000, 1, 0.999, CriterionVerdict::Met),
            (1000, 2, 0.999, CriterionVerdict::Inconclusive),
            (1000, 20, 0.999, CriterionVerdict::Missed),
            (100, 1, 0.99, CriterionVerdict::Met),
            (100, 3, 0.99, CriterionVerdict::Inconclusive),
            (100, 20, 0.99, CriterionVerdict::Missed),
            // So bad that no longer run makes up for it.
            (60, 30, 0.999, CriterionVerdict::Missed),
            (0, 0, 0.99, CriterionVerdict::Inconclusive),
        ] {
            let share = told(seconds, missed, fraction, None);
            assert_eq!(share.verdict, expected, "{missed} of {seconds} at {fraction}: {share:?}");
        }
        let held = told(1200, 1, 0.999, None);
        assert_eq!(
            held.why,
            "1,199 of 1,200 seconds were as promised; a run this long speaks for 0.0038 % of a year"
        );
        let short = told(12, 0, 0.999, None);
        assert_eq!(short.why, "99.9 % of the time takes 1,000 s to speak of, and 12 were watched");
    }

    #[test]
    fn a_year_is_not_judged_by_minutes() {
        let year = Some(YEAR_NS);
        let share = told(1200, 1, 0.999, year);
        assert_eq!(share.verdict, CriterionVerdict::Inconclusive);
        assert!(share.why.contains("a year may hold 8 h 46 min"), "{}", share.why);
        assert!(share.why.contains("0.0038 % of a year"), "{}", share.why);
        assert_eq!(told(1200, 600, 0.999, year).verdict, CriterionVerdict::Inconclusive);
        // An hour, on the other hand, can be watched.
        let hour = Some(3_600_000_000_000);
        assert_eq!(told(3600, 3, 0.999, hour).verdict, CriterionVerdict::Met);
        assert_eq!(told(60, 4, 0.999, hour).verdict, CriterionVerdict::Missed);
        assert_eq!(told(60, 3, 0.999, hour).verdict, CriterionVerdict::Inconclusive);
    }

    #[test]
    fn intervals_of_shares() {
        // As tables of the binomial distribution have them.
        for (missed, seconds, low, high) in
            [(0, 10, 0.6915, 1.0), (50, 100, 0.3983, 0.6017), (3, 100, 0.9148, 0.9938), (10, 10, 0.0, 0.3085)]
        {
            let found = exact(missed, seconds);
            assert!(
                (found.low - low).abs() < 1e-4 && (found.high - high).abs() < 1e-4,
                "{missed}: {found:?}"
            );
        }
        let many = exact(30_000, 100_000);
        assert!(many.low > 0.697 && many.high < 0.703, "{many:?}");
    }
}
