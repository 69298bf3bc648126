//! Single requests all over the area: how many, how far apart so that no limit holds them up, and whether one did.

use fathom_record::confidence::LIMITER_SLICE_NS;
use fathom_record::{JobRecord, TestRecord};

use crate::surface::AGAIN_ACCESS;
use crate::surface::point::{ACCESS, TRANSFER, job, moved};

/// After which places probes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePlan {
    /// Every so many places.
    pub every: u32,
    /// So many at once.
    pub each: u32,
}

impl ProbePlan {
    /// True where probes follow the place of this number, from 0.
    pub fn is_due(&self, number: usize) -> bool {
        number % self.every as usize == self.every as usize - 1
    }

    /// Batches after so many places.
    pub fn batches(&self, places: usize) -> usize {
        places / self.every as usize
    }

    /// The idle time before a batch and that of its probes, where each place has `place_ns` for them, ns.
    pub fn times(&self, place_ns: u64) -> (u64, u64) {
        let batch_ns = place_ns * u64::from(self.every);
        let rest_ns = REST_NS.min(batch_ns / 2);
        (rest_ns, batch_ns - rest_ns)
    }
}

/// Probes wanted over the whole area: what a 99th percentile needs.
const PROBES: u32 = 1_000;
/// Most at one place.
const MAX_PROBES: u32 = 250;
/// Batches of which a record keeps every probe, as each is small.
const BATCHES: u32 = 40;
/// Idle time before a batch, ns: what a limiter grants in a slice is there again.
const REST_NS: u64 = LIMITER_SLICE_NS + 10_000_000;
/// Time between the first probes, while nothing is known, ns.
const FIRST_GAP_NS: u64 = 10_000_000;
const LONGEST_GAP_NS: u64 = 1_000_000_000;
const MAX_DOUBLINGS: usize = 8;
/// Time between probes over that of a request of the transfer, whose rate a limit may hold.
const APART: f64 = 1.25;
/// By how much the last probes of a batch exceed the first, which found a limiter rested, where it holds them up.
const HELD_UP: f64 = 1.25;
/// Fewest probes of a batch that tell.
const MIN_PROBES: usize = 5;

/// The probes of a surface of so many places.
pub fn probes(points: u32) -> ProbePlan {
    let points = points.max(1);
    let every = (points / BATCHES).max(1);
    ProbePlan { every, each: PROBES.div_ceil(points / every).clamp(1, MAX_PROBES) }
}

/// Time from the end of a probe to the next one, ns, as far as the tests so far tell of the rate that the target gives single
/// requests: twice as long for each batch that was held up all the same.
pub fn gap_ns(tests: &[TestRecord]) -> u64 {
    let of = |name: &str| {
        let jobs = tests.iter().filter_map(|test| job(test, name));
        jobs.map(moved).fold((0.0, 0), |(ns, count), op| {
            let samples = op.lat.samples();
            (ns + op.lat.summary().mean.unwrap_or(0.0) * samples as f64, count + samples)
        })
    };
    let (ns, requests) = match of(TRANSFER) {
        (_, 0) => of(ACCESS),
        transfer => transfer,
    };
    if requests == 0 {
        return FIRST_GAP_NS;
    }
    let held_up = batches(tests).filter(|job| is_held_up(job)).count().min(MAX_DOUBLINGS);
    (((ns / requests as f64 * APART) as u64) << held_up).min(LONGEST_GAP_NS)
}

/// The probes that are part of the access time.
pub(crate) fn batches(tests: &[TestRecord]) -> impl Iterator<Item = &JobRecord> {
    tests.iter().filter(|test| !test.id.starts_with(AGAIN_ACCESS)).filter_map(|test| job(test, ACCESS))
}

/// True where a limit held the probes of a batch up: after a rest the first, or the first third, are quicker than all others or
/// the last three.
pub(crate) fn is_held_up(probed: &JobRecord) -> bool {
    let mut probes: Vec<(u64, u64)> =
        probed.slowest.iter().map(|slow| (slow.start_ns, slow.lat_ns)).collect();
    if probes.len() < MIN_PROBES || probes.len() as u64 != moved(probed).lat.samples() {
        return false;
    }
    probes.sort_unstable();
    let exceed = |last: &[(u64, u64)], first: &[(u64, u64)]| {
        let least = last.iter().map(|(_, ns)| *ns).min().unwrap_or(0);
        let most = first.iter().map(|(_, ns)| *ns).max().unwrap_or(0);
        least as f64 >= most as f64 * HELD_UP
    };
    let third = probes.len() / 3;
    exceed(&probes[1..], &probes[..1]) || (third > 1 && exceed(&probes[probes.len() - 3..], &probes[..third]))
}

#[cfg(test)]
mod tests {
    use fathom_record::SlowRequest;

    use super::*;
    use crate::surface::point::tests::point;

    /// A point whose probes took these times, one after the other.
    fn batch(lat_ns: &[u64]) -> TestRecord {
        let mut test = point(0, 100);
        let probed = &mut test.jobs[1];
        probed.measured.read.lat = Default::default();
        for (at, &lat_ns) in lat_ns.iter().enumerate() {
            probed.measured.read.lat.record(lat_ns);
            probed.slowest.push(SlowRequest { start_ns: at as u64, lat_ns, ..SlowRequest::default() });
        }
        test
    }

    #[test]
    fn probes_are_enough_for_the_percentiles_and_few_enough_to_be_kept() {
        for (points, expected) in
            [(200, (5, 25)), (400, (10, 25)), (79, (1, 13)), (40, (1, 25)), (2, (1, 250))]
        {
            let plan = probes(points);
            assert_eq!((plan.every, plan.each), expected, "{points}");
        }
        for points in 1..1000 {
            let plan = probes(points);
            let batches = points / plan.every;
            assert!(points < 4 || batches * plan.each >= PROBES, "{points}: {plan:?}");
            assert!(points < 32 || plan.each <= 32, "{points}: {plan:?}");
        }
    }

    #[test]
    fn probes_stay_below_the_rate_that_a_limit_holds() {
        assert_eq!(gap_ns(&[]), FIRST_GAP_NS);
        // 64 KiB in 1 µs.
        assert_eq!(gap_ns(&[point(0, 100)]), 1_250);
        // Every probe but the first was held up: twice the time, and again.
        let held_up = || batch(&[400_000, 900_000, 1_000_000, 900_000, 1_000_000]);
        assert_eq!(gap_ns(&[held_up()]), 2_500);
        assert_eq!(gap_ns(&[held_up(), point(0, 100), held_up()]), 5_000);
        // Without a transfer the probes themselves tell.
        let mut alone = batch(&[400_000; 6]);
        alone.jobs.remove(0);
        assert_eq!(gap_ns(&[alone]), 500_000);
    }

    #[test]
    fn a_medium_whose_times_vary_is_not_held_up() {
        let check = |lat_ns: &[u64], expected: bool| {
            assert_eq!(is_held_up(&batch(lat_ns).jobs[1]), expected, "{lat_ns:?}");
        };
        check(&[400, 1000, 900, 1100, 1000], true);
        check(&[400, 1000, 450, 1100, 1000], false);
        check(&[400; 20], false);
        // The first eight had credit.
        check(&[[400; 8].as_slice(), &[1000; 12]].concat(), true);
        check(&[[400; 18].as_slice(), &[1000; 2]].concat(), false);
        check(&[400, 1000, 1000, 1000], false);
    }
}
