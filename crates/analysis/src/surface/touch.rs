//! What the first access to a block costs: the same places read again, between first accesses to others, so that a rate that
//! changes with the time is no first-touch penalty.

use fathom_record::{JobRecord, TestRecord};
use fathom_stats::sample::{mean, median};
use serde::Serialize;

use crate::surface::point::{ACCESS, job, moved};
use crate::surface::{AGAIN_ACCESS, AGAIN_SATURATED, SATURATED, settled_rate};

/// What first accesses cost. At least one pair of figures is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SurfaceFirstTouch {
    /// Medians of single requests that read a place for the first time and again, ns.
    pub first_lat_ns: Option<f64>,
    /// See `first_lat_ns`.
    pub again_lat_ns: Option<f64>,
    /// Mean rates at a high queue depth, for the first time and again, bytes per second.
    pub first_bytes_per_second: Option<f64>,
    /// See `first_bytes_per_second`.
    pub again_bytes_per_second: Option<f64>,
}

/// Median of first single requests over that of the repeated ones from which on first accesses cost.
const SLOWER: f64 = 1.5;
/// Share of the pairs of which the first is the slower one.
const MOST: f64 = 0.9;
/// Fewest pairs that tell, of requests and of rates.
const MIN_PAIRS: usize = 20;
const MIN_RATES: usize = 3;
/// Every repeated rate exceeds every first one by this, which no limit grants by chance.
const FASTER: f64 = 1.15;

impl SurfaceFirstTouch {
    /// The cost that `tests` show; `None` where they show none.
    pub(crate) fn of(tests: &[TestRecord]) -> Option<SurfaceFirstTouch> {
        let (lat_ns, rates) = (latencies(tests), rates(tests));
        (lat_ns.is_some() || rates.is_some()).then(|| SurfaceFirstTouch {
            first_lat_ns: lat_ns.map(|(first, _)| first),
            again_lat_ns: lat_ns.map(|(_, again)| again),
            first_bytes_per_second: rates.map(|(first, _)| first),
            again_bytes_per_second: rates.map(|(_, again)| again),
        })
    }
}

/// Every request of a job in the order it was made: offset and latency; none where the record does not have all.
fn requests(probed: &JobRecord) -> Vec<(u64, u64)> {
    if probed.slowest.len() as u64 != moved(probed).lat.samples() {
        return Vec::new();
    }
    let mut kept: Vec<(u64, u64, u64)> =
        probed.slowest.iter().map(|slow| (slow.start_ns, slow.offset, slow.lat_ns)).collect();
    kept.sort_unstable();
    kept.into_iter().map(|(_, offset, lat_ns)| (offset, lat_ns)).collect()
}

/// Medians of the same requests the first time and again, where the first are slower.
fn latencies(tests: &[TestRecord]) -> Option<(f64, f64)> {
    let mut pairs: Vec<(f64, f64)> = Vec::new();
    for test in tests {
        let Some(of) = test.id.strip_prefix(AGAIN_ACCESS) else { continue };
        let first = tests.iter().find(|test| test.id.strip_prefix(super::point::POINT) == Some(of));
        let Some((first, again)) = first.and_then(|first| job(first, ACCESS)).zip(job(test, ACCESS)) else {
            continue;
        };
        let (first, again) = (requests(first), requests(again));
        let same = first.iter().zip(&again).filter(|((offset, _), (other, _))| offset == other);
        pairs.extend(same.map(|((_, first), (_, again))| (*first as f64, *again as f64)));
    }
    let slower = pairs.iter().filter(|(first, again)| first > again).count();
    let is_sure = pairs.len() >= MIN_PAIRS && slower as f64 >= MOST * pairs.len() as f64;
    let (first, again): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    let (first, again) = (median(&first)?, median(&again)?);
    (is_sure && first >= SLOWER * again).then_some((first, again))
}

/// Mean rates of places read for the first time and again, where all of the latter are faster.
fn rates(tests: &[TestRecord]) -> Option<(f64, f64)> {
    let rates = |prefix: &str| -> Vec<f64> {
        let of_kind = tests.iter().filter(|test| test.id.starts_with(prefix));
        of_kind.filter_map(|test| settled_rate(test.jobs.first()?)).collect()
    };
    let (first, again) = (rates(SATURATED), rates(AGAIN_SATURATED));
    let most = first.iter().copied().fold(0.0, f64::max);
    let least = again.iter().copied().fold(f64::INFINITY, f64::min);
    let is_sure = first.len().min(again.len()) >= MIN_RATES && least >= FASTER * most;
    is_sure.then(|| (mean(&first), mean(&again)))
}

#[cfg(test)]
mod tests {
    use fathom_record::SlowRequest;

    use super::*;
    use crate::surface::point::POINT;
    use crate::surface::point::tests::point;

    fn probed(id: String, lat_ns: impl Fn(u64) -> u64) -> TestRecord {
        let mut test = TestRecord { id, ..point(0, 100) };
        let probed = &mut test.jobs[1];
        probed.measured.read.lat = Default::default();
        for at in 0..25 {
            let (start_ns, offset, lat_ns) = (at, (at * 7919 % 25) << 20, lat_ns(at));
            probed.measured.read.lat.record(lat_ns);
            probed.slowest.push(SlowRequest { start_ns, offset, lat_ns, ..SlowRequest::default() });
        }
        test
    }

    #[test]
    fn places_that_are_read_faster_again_cost_at_first() {
        let check = |first: &dyn Fn(u64) -> u64, again: &dyn Fn(u64) -> u64, expected: Option<(f64, f64)>| {
            let tests = [probed(format!("{POINT}5"), first), probed(format!("{AGAIN_ACCESS}5"), again)];
            let found = SurfaceFirstTouch::of(&tests);
            let found = found.map(|found| (found.first_lat_ns.unwrap(), found.again_lat_ns.unwrap()));
            assert_eq!(found, expected);
        };
        check(&|_| 5_400, &|_| 400, Some((5_400.0, 400.0)));
        check(&|_| 400, &|_| 400, None);
        check(&|_| 500, &|_| 400, None);
        // Half of the places only.
        check(&|at| if at % 2 == 0 { 5_400 } else { 400 }, &|_| 400, None);
        check(&|_| 400, &|_| 5_400, None);
    }

    #[test]
    fn rates_have_to_lie_apart() {
        let check = |first: &[u64], again: &[u64], is_slower: bool| {
            let of = |prefix: &str, rates: &[u64]| -> Vec<TestRecord> {
                let test = |&mib: &u64| TestRecord { id: format!("{prefix}{mib}"), ..point(0, mib) };
                rates.iter().map(test).collect()
            };
            let tests = [of(SATURATED, first), of(AGAIN_SATURATED, again)].concat();
            assert_eq!(SurfaceFirstTouch::of(&tests).is_some(), is_slower, "{first:?} {again:?}");
        };
        check(&[100, 102, 98, 100], &[150, 151, 149], true);
        check(&[100, 102, 98, 140], &[150, 151, 149], false);
        check(&[100, 102, 98, 100], &[150, 151, 100], false);
        check(&[100, 102, 98, 100], &[150, 151], false);
    }
}
