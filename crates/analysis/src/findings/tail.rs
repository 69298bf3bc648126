//! Single requests that take far longer than others while those complete: what a percentile of 99 does not show and a user of many requests
//! meets.

use fathom_model::units;
use fathom_record::{Finding, FindingId, Latency, RunRecord};
use fathom_stats::MIN_SILENCE_NS;

use crate::findings::client::run_queue_wait_share;
use crate::findings::pauses::DevicePauses;
use crate::findings::{passes, stalled};
use crate::rows::RecordRow;
use crate::say::{count, finding, percent};

/// A request is slow from 10 ms and this many medians on.
const MEDIANS: u64 = 10;
/// Fewest slow requests, and the shares of all in which they are a tail: with more of them p99 shows it.
const MIN_SLOW: u64 = 5;
const MIN_SHARE: f64 = 0.0005;
const MAX_SHARE: f64 = 0.01;
/// A limit makes requests slow where the others alone would be this many times as fast as it permits.
const FASTER: f64 = 1.1;
/// Pauses explain slow requests where they delayed this share of them.
const EXPLAINED: f64 = 0.5;

pub(crate) struct Tail {
    slow: u64,
    all: u64,
    /// Medians of the slow ones and of all, ns.
    slow_ns: u64,
    median_ns: u64,
    /// Latencies of the slow ones, and of all, added up, ns.
    total_ns: f64,
    all_ns: f64,
}

impl Tail {
    fn share(&self) -> f64 {
        self.slow as f64 / self.all as f64
    }

    fn of(row: &RecordRow<'_>) -> Option<Tail> {
        let mut latency = Latency::default();
        let phases = row.jobs().iter().map(|job| &job.measured);
        phases.flat_map(|phase| [&phase.read, &phase.write]).for_each(|op| latency.merge(&op.lat));
        let median_ns = latency.percentile(50.0)?;
        let from_ns = MIN_SILENCE_NS.max(MEDIANS * median_ns);
        let bins = latency.fio_bins();
        let slow: Vec<(u64, u64)> = bins.iter().copied().filter(|(ns, _)| *ns > from_ns).collect();
        let number: u64 = slow.iter().map(|(_, count)| count).sum();
        let mut before = 0;
        let middle = slow.iter().find(|(_, count)| {
            before += count;
            2 * before >= number
        });
        let slow_ns = middle?.0;
        let sum = |bins: &[(u64, u64)]| bins.iter().map(|&(ns, count)| ns as f64 * count as f64).sum();
        let (total_ns, all_ns) = (sum(&slow), sum(&bins));
        let tail = Tail { slow: number, all: latency.samples(), slow_ns, median_ns, total_ns, all_ns };
        (number >= MIN_SLOW && (MIN_SHARE..=MAX_SHARE).contains(&tail.share())).then_some(tail)
    }
}

impl Tail {
    /// True where the rate would be higher without what the slow requests wait: they wait for the limit that holds it.
    fn holds_rate(&self) -> bool {
        let waits_ns = self.total_ns - self.slow as f64 * self.median_ns as f64;
        self.all_ns > FASTER * (self.all_ns - waits_ns)
    }

    /// `0.7 % of I/Os wait for it for about 82 ms`.
    pub(crate) fn waits(&self) -> String {
        format!("{} of I/Os wait for it for about {}", percent(self.share()), units::latency(self.slow_ns))
    }
}

/// The few requests of a row at a limit that wait for it, while the others do not wait at all.
pub(crate) fn at_limit(row: &RecordRow<'_>) -> Option<Tail> {
    Tail::of(row).filter(Tail::holds_rate)
}

/// One finding for all rows that have a tail, with the figures of the one with the most slow requests.
pub(crate) fn findings(
    record: &RunRecord,
    rows: &[RecordRow<'_>],
    pauses: Option<&DevicePauses>,
    is_limited: &dyn Fn(&RecordRow<'_>) -> bool,
) -> Option<Finding> {
    if pauses.is_some_and(DevicePauses::has_any) {
        return None;
    }
    let tails = rows
        .iter()
        .filter(|row| row.is_direct() && !row.is_synced())
        .filter_map(|row| Some((row, Tail::of(row)?)))
        .filter(|(row, tail)| !(tail.holds_rate() && is_limited(row)));
    let tails: Vec<(&RecordRow<'_>, Tail)> =
        tails.filter(|(row, tail)| !is_explained(record, row, tail, pauses.is_some())).collect();
    let (_, most) = tails.iter().max_by_key(|(_, tail)| tail.slow)?;
    let claim = format!(
        "{} of I/Os take about {} ({} of {}), where half take at most {}.",
        percent(most.share()),
        units::latency(most.slow_ns),
        count(most.slow as f64),
        count(most.all as f64),
        units::latency(most.median_ns),
    );
    let remedy = "Look for retries on the way to the medium (network, media errors); judge uses by p99.9 with a longer --runtime.";
    Some(
        finding(FindingId::Tail, tails.iter().map(|(row, _)| *row), claim, remedy)
            .with("slow_fraction", most.share())
            .with("slow_requests", most.slow)
            .with("slow_lat_ns", most.slow_ns)
            .with("median_lat_ns", most.median_ns),
    )
}

/// `has_none`: the device is known to have no pauses. True where first accesses, a stall, silences of the row, or a client without its CPU made them slow.
fn is_explained(record: &RunRecord, row: &RecordRow<'_>, tail: &Tail, has_none: bool) -> bool {
    let depth = row.mean_queue_depth().max(1.0);
    // One request at a time cannot tell whether others would have completed, unless other rows do.
    let tells = depth < 2.0 && has_none;
    let by_silence = DevicePauses::own(row).count() as f64 * depth >= EXPLAINED * tail.slow as f64;
    let waited = row.jobs().iter().map(run_queue_wait_share).fold(0.0, f64::max);
    // Without its CPU a client receives no completion either, so that there are silences as long as what it makes slow.
    let silences = row.jobs().iter().flat_map(|job| &job.silences.longest);
    let long = silences.filter(|silence| 2 * silence.length_ns >= tail.slow_ns).count();
    let is_silent = depth < 2.0 || long as f64 * depth >= EXPLAINED * tail.slow as f64;
    let by_client = is_silent && waited * row.summary.measured_ns as f64 >= EXPLAINED * tail.total_ns / depth;
    passes::findings(record, row).is_some()
        || stalled::findings(record, row).is_some()
        || !tells && by_silence
        || by_client
}

#[cfg(test)]
mod tests {
    use fathom_record::{Silence, Silences};

    use super::*;
    use crate::fixture::{TestLoad, record};
    use crate::rows::rows;

    /// A run of 24,000 reads of which `slow` took 60 ms.
    fn run(slow: u64) -> RunRecord {
        let mut run = record(&[TestLoad { depth: 8, iops: 13_000.0, ..TestLoad::default() }]);
        let op = &mut run.tests[0].jobs[0].measured.read;
        op.lat = Latency::repeated(24_000 - slow, 500_000);
        op.lat.merge(&Latency::repeated(slow, 60_000_000));
        run
    }

    fn claim(run: &RunRecord) -> Option<String> {
        findings(run, &rows(run), None, &|_| false).map(|found| found.claim)
    }

    #[test]
    fn a_few_requests_that_take_long_are_a_tail() {
        let text = claim(&run(48)).unwrap();
        assert!(text.starts_with("0.2 % of I/Os take about 60"), "{text}");
        assert!(text.contains("(48 of 24,000), where half take at most 50"), "{text}");
        assert_eq!((claim(&run(4)), claim(&run(0)), claim(&run(2400))), (None, None, None));
    }

    /// A limit of 1,500 IOPS that deals out 150 I/Os every 100 ms, and one that delays each I/O.
    #[test]
    fn requests_that_wait_for_a_limit_are_no_tail() {
        let mut run = record(&[TestLoad { depth: 1, iops: 1500.0, ..TestLoad::default() }]);
        let sliced = |slow: u64, median_ns: u64| {
            let mut lat = Latency::repeated(18_000 - slow, median_ns);
            lat.merge(&Latency::repeated(slow, 89_000_000));
            lat
        };
        run.tests[0].jobs[0].measured.read.lat = sliced(120, 74_000);
        let found = |run: &RunRecord, limited: bool| findings(run, &rows(run), None, &|_| limited).is_some();
        assert!(found(&run, false) && !found(&run, true));
        let text = at_limit(&rows(&run)[0]).unwrap().waits();
        assert!(text.starts_with("0.7 % of I/Os wait for it for about 8"), "{text}");
        // The rate is the limit's without them.
        run.tests[0].jobs[0].measured.read.lat = sliced(12, 660_000);
        assert!(found(&run, true));
        assert!(at_limit(&rows(&run)[0]).is_none());
    }

    #[test]
    fn what_else_makes_requests_slow_is_no_tail() {
        let mut paused = run(48);
        let mut silences = Silences::default();
        (0..6).for_each(|second| {
            silences.add(Silence { start_ns: second << 30, length_ns: 60_000_000, depth: 8 })
        });
        paused.tests[0].jobs[0].silences = silences;
        assert_eq!(claim(&paused), None);
        let mut starved = run(48);
        starved.tests[0].jobs[0].measured.cpu.run_queue_wait_ns = 300_000_000;
        // Others completed all the time.
        assert!(claim(&starved).is_some());
        (1..4).for_each(|at| {
            let silence = Silence { start_ns: at << 30, length_ns: 60_000_000, depth: 8 };
            starved.tests[0].jobs[0].silences.add(silence);
        });
        assert_eq!(claim(&starved), None);
    }
}
