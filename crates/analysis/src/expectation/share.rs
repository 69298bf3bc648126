//! Expectations for a share of the time: how many of the measured seconds met the value.
//!
//! The verdict is about these seconds. Minutes cannot decide about a year, unless more seconds missed the value than a whole
//! year allows.

use fathom_model::{Nanos, units};
use fathom_record::ShareRecord;

use super::interval::ConfidenceInterval;
use super::{ExpectationResult, longer_run};
use crate::criterion::CriterionVerdict::{self, Met, Missed};
use crate::estimate::binomial_at_most;

/// ns of a year.
pub(super) const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;
/// What an interval leaves out at either end.
const TAIL: f64 = 0.025;

/// How much of a year so many seconds are: `0.0038 % of a year`.
pub fn of_year(seconds: u64) -> String {
    format!("{} of a year", small_share((seconds as f64 * 1e9 / YEAR_NS as f64).min(1.0)))
}

/// Judges the seconds of a run, whether each met the value: `result` with the share of those that did.
pub(super) fn judge(good: &[bool], expected: ShareRecord, result: ExpectationResult) -> ExpectationResult {
    let seconds = good.len();
    if seconds == 0 {
        let verdict = CriterionVerdict::inconclusive("no full second was measured", Some(longer_run()));
        return ExpectationResult { measured: None, interval: None, verdict, basis: None, ..result };
    }
    let met = good.iter().filter(|&&good| good).count();
    let interval = exact(seconds - met, seconds);
    let (verdict, basis) = verdict(met, seconds, interval, expected);
    let measured = Some(met as f64 / seconds as f64);
    ExpectationResult { measured, interval: Some(interval), verdict, basis, ..result }
}

fn verdict(
    met: usize,
    seconds: usize,
    interval: ConfidenceInterval,
    expected: ShareRecord,
) -> (CriterionVerdict, Option<String>) {
    let counted =
        format!("{} of {} seconds met it", units::grouped(met as u64), units::grouped(seconds as u64));
    let coverage = format!("the run covers {}", of_year(seconds as u64));
    let decided = |verdict: CriterionVerdict| (verdict, Some(format!("{counted}; {coverage}")));
    let inconclusive =
        |reason: String, remedy: String| (CriterionVerdict::inconclusive(reason, Some(remedy)), None);
    if let Some(period_ns) = expected.period_ns {
        let period = period_ns as f64 / 1e9;
        let may_miss = period * (1.0 - expected.fraction);
        let allowed = units::duration(Nanos((may_miss * 1e9) as u64));
        let over = if period_ns == YEAR_NS { "a year".to_owned() } else { units::duration(Nanos(period_ns)) };
        let missed = seconds - met;
        return match () {
            () if missed as f64 > may_miss => {
                (Missed, Some(format!("{missed} seconds missed it; {over} allows {allowed}")))
            }
            () if seconds as f64 >= period => decided(Met),
            () => inconclusive(
                format!("{counted}; {over} allows {allowed} of misses, and {coverage}"),
                format!("only a run of {over} can decide"),
            ),
        };
    }
    let least = least_seconds(expected.fraction);
    match () {
        // More misses than the shortest run that can decide allows: no longer run makes up for that.
        () if interval.high < expected.fraction => decided(Missed),
        () if (seconds as u64) < least => {
            let share = percent(expected.fraction);
            let reason =
                format!("{share} of the time needs {} s; measured {seconds} s", units::grouped(least));
            inconclusive(reason, format!("use --runtime {} or more", least + least / 20 + 2))
        }
        () if met as f64 / seconds as f64 >= expected.fraction => decided(Met),
        () => {
            let (low, high) = (percent(interval.low), percent(interval.high));
            let reason = format!("too close to call: {counted} (95 % confidence interval {low} to {high})");
            inconclusive(reason, format!("use --runtime {} or more", seconds as u64 * 4))
        }
    }
}

/// Seconds of which a single miss is exactly the share that is allowed.
fn least_seconds(fraction: f64) -> u64 {
    (1.0 / (1.0 - fraction).max(1e-9)).round() as u64
}

/// The confidence interval of the share where so many of so many miss (Clopper-Pearson: exact, and conservative).
fn exact(missed: usize, seconds: usize) -> ConfidenceInterval {
    let most = solve(|share| binomial_at_most(missed as u64, seconds as u64, share) > TAIL);
    let least = match missed {
        0 => 0.0,
        missed => solve(|share| 1.0 - binomial_at_most(missed as u64 - 1, seconds as u64, share) < TAIL),
    };
    ConfidenceInterval { low: if missed == seconds { 0.0 } else { 1.0 - most }, high: 1.0 - least }
}

/// The largest share for which a condition that ends with growing shares is true.
fn solve(is_so: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if is_so(middle) { low = middle } else { high = middle }
    }
    low
}

/// A share in percent with three decimals at most, those that it has: `99.97 %`.
fn percent(share: f64) -> String {
    let text = format!("{:.3}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A small share in percent, two digits of it: `0.0038 %`.
fn small_share(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent > 0.0 { (1.0 - percent.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };
    format!("{percent:.digits$} %")
}

#[cfg(test)]
mod tests {
    use fathom_record::ExpectationRecord;

    use super::*;

    fn reported(seconds: usize, missed: usize, fraction: f64, period_ns: Option<u64>) -> ExpectationResult {
        let good: Vec<bool> = (0..seconds).map(|second| second >= missed).collect();
        let open = ExpectationResult::new(&ExpectationRecord::default(), Met);
        judge(&good, ShareRecord { fraction, period_ns }, open)
    }

    fn because(share: &ExpectationResult) -> &str {
        share.verdict.reason().map_or("", |(reason, _)| reason)
    }

    #[test]
    fn as_long_as_one_second_is_the_share_that_may_be_missed() {
        for (seconds, missed, fraction, expected) in [
            (999, 0, 0.999, "inconclusive"),
            (1000, 0, 0.999, "met"),
            (1000, 1, 0.999, "met"),
            (1000, 2, 0.999, "inconclusive"),
            (1000, 20, 0.999, "missed"),
            (100, 1, 0.99, "met"),
            (100, 3, 0.99, "inconclusive"),
            (100, 20, 0.99, "missed"),
            // So bad that no longer run makes up for it.
            (60, 30, 0.999, "missed"),
            (0, 0, 0.99, "inconclusive"),
        ] {
            let share = reported(seconds, missed, fraction, None);
            assert_eq!(share.verdict.name(), expected, "{missed} of {seconds} at {fraction}: {share:?}");
        }
        let met = reported(1200, 1, 0.999, None);
        assert_eq!(
            met.basis.as_deref(),
            Some("1,199 of 1,200 seconds met it; the run covers 0.0038 % of a year")
        );
        let short = reported(12, 0, 0.999, None);
        assert_eq!(because(&short), "99.9 % of the time needs 1,000 s; measured 12 s");
    }

    #[test]
    fn a_year_is_not_judged_by_minutes() {
        let year = Some(YEAR_NS);
        let share = reported(1200, 1, 0.999, year);
        assert_eq!(share.verdict.name(), "inconclusive");
        assert!(because(&share).contains("a year allows 8 h 46 min"), "{share:?}");
        assert!(because(&share).contains("0.0038 % of a year"), "{share:?}");
        assert_eq!(reported(1200, 600, 0.999, year).verdict.name(), "inconclusive");
        // An hour, on the other hand, can be watched.
        let hour = Some(3_600_000_000_000);
        assert_eq!(reported(3600, 3, 0.999, hour).verdict.name(), "met");
        assert_eq!(reported(60, 4, 0.999, hour).verdict.name(), "missed");
        assert_eq!(reported(60, 3, 0.999, hour).verdict.name(), "inconclusive");
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

    #[test]
    fn small_differences_from_the_whole_are_shown() {
        for (value, expected) in
            [(1.0, "100 %"), (0.5, "50 %"), (0.953, "95.3 %"), (0.999, "99.9 %"), (0.99991, "99.991 %")]
        {
            assert_eq!(percent(value), expected);
        }
        for (value, expected) in [(0.000_038, "0.0038 %"), (0.5, "50 %"), (1.0, "100 %"), (0.0, "0 %")] {
            assert_eq!(small_share(value), expected);
        }
    }
}
