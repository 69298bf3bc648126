//! Rates that changed while they were measured: once and for good, as when a burst credit is spent, or up and down.

use fathom_record::stability::Second;
use fathom_record::{Finding, Severity};

use crate::client;
use crate::rows::{Kind, Row};
use crate::say::{count, finding, of, percent, seconds};
use crate::segments::{Segment, segments};

/// Windows that a run is cut into, and what they may differ by: range, and drift over all, as shares of their mean.
const WINDOWS: usize = 5;
const RANGE: f64 = 0.20;
const DRIFT: f64 = 0.10;
/// Full seconds below which windows are too short.
const LEAST_SECONDS: usize = 10;
/// Requests in a window below which their number is a matter of chance.
const LEAST_REQUESTS: f64 = 100.0;
/// Spread of the rate that a limit leaves, after the fall.
const EVEN: f64 = 0.05;

/// What there is to say of one row.
pub(crate) fn findings(row: &Row<'_>) -> Option<Finding> {
    let rates: Vec<f64> = row.seconds.iter().map(Second::iops).collect();
    let per_window = (rates.len() / WINDOWS).max(1);
    let too_few = mean(&rates) * per_window as f64 <= LEAST_REQUESTS;
    if rates.len() < LEAST_SECONDS || row.is_paced() || too_few {
        return None;
    }
    burst(row, &rates).or_else(|| not_steady(row, &rates))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Means of equal windows; seconds that are left over are those at the start.
fn windows(rates: &[f64]) -> Vec<f64> {
    let length = rates.len() / WINDOWS;
    rates[rates.len() - length * WINDOWS..].chunks(length).map(mean).collect()
}

/// Range of the windows, and their drift by least squares from the first to the last, as shares of their mean.
fn range_and_drift(windows: &[f64]) -> (f64, f64) {
    let (average, middle) = (mean(windows), (windows.len() as f64 - 1.0) / 2.0);
    let (least, most) =
        windows.iter().fold((f64::MAX, 0.0_f64), |(least, most), &y| (least.min(y), most.max(y)));
    let at = || windows.iter().enumerate().map(|(x, y)| (x as f64 - middle, y - average));
    let slope = at().map(|(x, y)| x * y).sum::<f64>() / at().map(|(x, _)| x * x).sum::<f64>().max(1e-9);
    let share = |value: f64| if average > 0.0 { value / average } else { 0.0 };
    (share(most - least), share(slope * (windows.len() as f64 - 1.0)))
}

/// True where neither the range nor the drift of equal windows is too large; false below ten samples.
pub(crate) fn is_steady(rates: &[f64]) -> bool {
    let (range, drift) =
        if rates.len() < LEAST_SECONDS { (1.0, 1.0) } else { range_and_drift(&windows(rates)) };
    range <= RANGE && drift.abs() <= DRIFT
}

fn not_steady(row: &Row<'_>, rates: &[f64]) -> Option<Finding> {
    let windows = windows(rates);
    let (range, drift) = range_and_drift(&windows);
    if is_steady(rates) {
        return None;
    }
    let course = match drift {
        DRIFT.. => format!("it rose by {} on the whole", percent(drift)),
        drift if drift < -DRIFT => format!("it fell by {} on the whole", percent(-drift)),
        _ => "it went up and down".to_owned(),
    };
    let least = windows.iter().copied().fold(f64::MAX, f64::min);
    let most = windows.iter().copied().fold(0.0, f64::max);
    let claim = format!(
        "the rate was not steady: between {} and {} a second over spans of {}; {course}.",
        count(least),
        count(most),
        seconds((rates.len() / WINDOWS) as u64 * 1_000_000_000),
    );
    let remedy = "Look for another load (a snapshot, a scrub, a neighbour), or run until it settles.";
    let found = finding("not-steady", Severity::Warning, claim, Some(remedy.to_owned()));
    Some(
        of(found, [row])
            .with("range_fraction", range)
            .with("drift_fraction", drift)
            .with("windows_iops", windows),
    )
}

fn burst(row: &Row<'_>, rates: &[f64]) -> Option<Finding> {
    let found = segments(rates);
    let [high, low]: &[Segment; 2] = found.as_slice().try_into().ok()?;
    let held_back = row.test.host_load.iter().any(|load| load.throttled_ns > 0) || client::is_bound(row);
    if high.median <= low.median || low.cv > EVEN || held_back {
        return None;
    }
    let used: f64 = rates[..high.length].iter().map(|rate| (rate - low.median).max(0.0)).sum();
    let cache = if row.kind() == Some(Kind::Read) { "" } else { ", or a full write cache," };
    let claim = format!(
        "the rate fell once, from {} to {} a second after {}, and stayed there: a spent burst credit{cache} looks like this.",
        count(high.median),
        count(low.median),
        seconds(high.length as u64 * 1_000_000_000),
    );
    let remedy = "Let the volume rest and run again: credit falls at the same sum of requests, a neighbour's load does not.";
    let found = finding("burst-suspected", Severity::Warning, claim, Some(remedy.to_owned()));
    Some(
        of(found, [row])
            .with("burst_iops", high.median)
            .with("baseline_iops", low.median)
            .with("credit_used_requests", used)
            .with("burst_ns", high.length as u64 * 1_000_000_000),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Load, plan, record};
    use crate::rows::rows;

    fn told(seconds: Vec<f64>, iops: f64) -> Option<String> {
        let run = record(&[Load { seconds, iops, ..Load::default() }]);
        findings(&rows(&run)[0]).map(|finding| finding.id)
    }

    fn fall(high: usize, low: usize, to: f64) -> Vec<f64> {
        [vec![1.0; high], vec![to; low]].concat()
    }

    #[test]
    fn rates_that_change() {
        let check = |seconds: Vec<f64>, expected: Option<&str>| {
            assert_eq!(told(seconds.clone(), 3000.0).as_deref(), expected, "{seconds:?}");
        };
        check(vec![1.0; 60], None);
        check([0.95, 1.05].repeat(6), None);
        check(fall(30, 30, 0.1), Some("burst-suspected"));
        check(fall(6, 6, 0.5), Some("burst-suspected"));
        check(fall(5, 4, 0.5), None);
        // Up, or down and up again, is no credit; nor is a slow decline.
        check(fall(30, 30, 3.0), Some("not-steady"));
        check([fall(12, 12, 0.5), vec![1.0; 12]].concat(), Some("not-steady"));
        check((0..30).map(|second| 1.0 - f64::from(second) * 0.01).collect(), Some("not-steady"));
        check([vec![1.0; 12], vec![0.0; 3], vec![1.0; 5]].concat(), Some("not-steady"));
        // Ten requests a second vary by chance.
        assert_eq!(told(vec![0.7, 1.2], 10.0), None);
    }

    #[test]
    fn a_job_that_holds_itself_back_is_not_judged() {
        let mut run = record(&[Load { seconds: fall(10, 10, 0.5), ..Load::default() }]);
        plan(&mut run, "thinktime_ns", "1000");
        assert_eq!(findings(&rows(&run)[0]), None);
    }

    #[test]
    fn the_credit_that_was_used() {
        let run = record(&[Load { seconds: fall(20, 40, 0.1), iops: 3000.0, ..Load::default() }]);
        let found = findings(&rows(&run)[0]).unwrap();
        let number = |name: &str| found.evidence[name].as_f64().unwrap();
        assert_eq!((number("burst_iops"), number("baseline_iops")), (3000.0, 300.0));
        assert_eq!((number("credit_used_requests"), number("burst_ns")), (54_000.0, 20e9));
    }
}
