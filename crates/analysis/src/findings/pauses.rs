//! Pauses: times in which the device completes nothing at all, again and again; and tails: single requests that take far longer than
//! others while those complete.
//!
//! A closed loop hides both: in a pause only as many requests are late as are in flight, and an arrival would meet it as often as it
//! takes time. Which of them it was shows where several requests are in flight: a pause delays all of them. One request at a time
//! cannot tell (coordinated omission: Tene, "How NOT to Measure Latency", 2015).

use fathom_model::units;
use fathom_record::{Finding, FindingId, JobRecord, Severity, Silence};
use fathom_stats::MIN_SILENCE_NS;
use fathom_stats::sample::median;

use crate::findings::client::run_queue_wait_share;
use crate::rows::RecordRow;
use crate::say::{finding, percent};

/// Requests in flight from which on a silence of all of them is the device's.
const DEEP: f64 = 4.0;
/// A silence of fewer mean intervals between completions is chance: of completions at random it would be one in 10^8.
const INTERVALS: f64 = 20.0;
/// Silences that take more of the time are how the device serves: in slices.
const MAX_SHARE: f64 = 0.5;
/// Fewest pauses, and share of the time, that are more than an event.
const MIN_PAUSES: usize = 3;
const MIN_SHARE: f64 = 0.001;
/// From this share of the time on pauses decide a 99th percentile.
const BEYOND_P99: f64 = 0.01;
/// Pauses are regular where this share of the times from one to the next is within `ALIKE` of the median.
const REGULAR: f64 = 0.8;
const ALIKE: f64 = 0.1;

/// A time in which nothing of a row completed, ns since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start_ns: u64,
    end_ns: u64,
}

impl Span {
    fn length_ns(self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// The times in which nothing completed although requests were in flight, of rows that show whether it was the device.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DevicePauses {
    /// Lengths, ns; empty where rows show that there are none.
    lengths_ns: Vec<u64>,
    /// From the start of one to that of the next in the same row, ns.
    periods_ns: Vec<u64>,
    measured_ns: u64,
    depth: f64,
    tests: Vec<String>,
}

impl DevicePauses {
    /// What the rows with several requests in flight show; `None` where there is none.
    pub(crate) fn of(rows: &[RecordRow<'_>]) -> Option<DevicePauses> {
        let mut all = DevicePauses::default();
        let mut tells = false;
        for row in rows.iter().filter(|row| is_deep(row)) {
            let Some(spans) = without_client(row, rows) else { continue };
            tells = true;
            all.measured_ns += row.summary.measured_ns;
            if spans.is_empty() || total_ns(&spans) as f64 > MAX_SHARE * row.summary.measured_ns as f64 {
                continue;
            }
            all.periods_ns.extend(spans.windows(2).map(|pair| pair[1].start_ns - pair[0].start_ns));
            all.lengths_ns.extend(spans.iter().map(|span| span.length_ns()));
            all.depth = all.depth.max(row.mean_queue_depth());
            all.tests.push(row.test.id.clone());
        }
        if all.lengths_ns.len() < MIN_PAUSES || all.share() < MIN_SHARE {
            (all.lengths_ns, all.periods_ns, all.tests) = Default::default();
        }
        tells.then_some(all)
    }

    /// The silences of one row, of which one request at a time cannot tell whether they are the device's.
    pub(crate) fn own(row: &RecordRow<'_>) -> DevicePauses {
        let spans = device_spans(row);
        DevicePauses {
            lengths_ns: spans.iter().map(|span| span.length_ns()).collect(),
            measured_ns: row.summary.measured_ns,
            ..DevicePauses::default()
        }
    }

    pub(crate) fn has_any(&self) -> bool {
        self.count() > 0
    }

    pub(crate) fn count(&self) -> usize {
        self.lengths_ns.len()
    }

    /// Share of the time.
    fn share(&self) -> f64 {
        self.lengths_ns.iter().sum::<u64>() as f64 / self.measured_ns.max(1) as f64
    }

    /// Share of arrivals at random times that wait in a pause for longer than `ns`.
    pub(crate) fn arrivals_beyond(&self, ns: f64) -> f64 {
        let beyond: f64 = self.lengths_ns.iter().map(|length| (*length as f64 - ns).max(0.0)).sum();
        beyond / self.measured_ns.max(1) as f64
    }

    /// `nothing completes for 100 ms every 1.00 s (10 % of the time)`; `None` without pauses.
    pub(crate) fn text(&self) -> Option<String> {
        let (least, most) = (*self.lengths_ns.iter().min()?, *self.lengths_ns.iter().max()?);
        let length = match units::latency(least) == units::latency(most) || self.is_alike() {
            true => units::latency(self.median_ns()),
            false => format!("{} to {}", units::latency(least), units::latency(most)),
        };
        let (count, share) = (self.lengths_ns.len(), percent(self.share()));
        let measured = units::duration(fathom_model::Nanos(self.measured_ns));
        Some(match self.period_ns() {
            Some(period) => {
                format!(
                    "nothing completes for {length} every {} ({share} of the time)",
                    units::latency(period)
                )
            }
            None => {
                format!("nothing completed for {length}, {count} times in {measured} ({share} of the time)")
            }
        })
    }

    fn median_ns(&self) -> u64 {
        typical(&self.lengths_ns)
    }

    fn is_alike(&self) -> bool {
        is_regular(&self.lengths_ns)
    }

    /// The time from one pause to the next, where it is always the same.
    fn period_ns(&self) -> Option<u64> {
        let is_known = self.periods_ns.len() + 1 >= MIN_PAUSES && is_regular(&self.periods_ns);
        is_known.then(|| typical(&self.periods_ns))
    }
}

fn is_regular(all: &[u64]) -> bool {
    let typical = typical(all) as f64;
    let alike = all.iter().filter(|one| (**one as f64 / typical - 1.0).abs() <= ALIKE).count();
    alike as f64 >= REGULAR * all.len() as f64
}

fn typical(all: &[u64]) -> u64 {
    median(&all.iter().map(|one| *one as f64).collect::<Vec<_>>()).unwrap_or(0.0) as u64
}

/// One finding for the device, if it pauses.
pub(crate) fn findings(rows: &[RecordRow<'_>], pauses: Option<&DevicePauses>) -> Option<Finding> {
    let pauses = pauses?;
    let text = pauses.text()?;
    let of_pauses: Vec<&RecordRow<'_>> =
        rows.iter().filter(|row| pauses.tests.contains(&row.test.id)).collect();
    let claim = format!(
        "{text}, with {} requests in flight. An arrival in a pause waits for its end: percentiles of a closed loop do not show it.",
        crate::say::count(pauses.depth)
    );
    let remedy = "Measure latencies under a fixed rate (`fathom fio --rate_iops=N`), and ask what stops the device: \
                  snapshots, garbage collection, a throttle with long slices.";
    let severity = if pauses.share() > BEYOND_P99 { Severity::Warning } else { Severity::Info };
    let found = Finding { severity, ..finding(FindingId::Pauses, of_pauses, claim, remedy) };
    Some(
        found
            .with("pauses", pauses.count())
            .with("length_ns", pauses.median_ns())
            .with("period_ns", pauses.period_ns())
            .with("time_fraction", pauses.share())
            .with("depth", pauses.depth),
    )
}

/// True where several requests were always in flight, so that a silence concerned all of them.
fn is_deep(row: &RecordRow<'_>) -> bool {
    row.mean_queue_depth() >= DEEP
        && row.is_direct()
        && !row.is_paced()
        && !row.is_synced()
        && row.iops() > 0.0
}

/// The silences that all workers of a row had in common, in order.
fn device_spans(row: &RecordRow<'_>) -> Vec<Span> {
    let spans = |job: &JobRecord| {
        let mut spans: Vec<Span> = job.silences.longest.iter().map(span).collect();
        spans.sort_unstable_by_key(|span| span.start_ns);
        spans
    };
    let mut each = row.jobs().iter().map(spans);
    let first = each.next().unwrap_or_default();
    let common = each.fold(first, |common, other| intersection(&common, &other));
    let least_ns = (INTERVALS * 1e9 / row.iops()).max(MIN_SILENCE_NS as f64);
    common.into_iter().filter(|span| span.length_ns() as f64 >= least_ns).collect()
}

fn span(silence: &Silence) -> Span {
    Span { start_ns: silence.start_ns, end_ns: silence.end_ns() }
}

/// What two lists of spans in order, each without overlaps, have in common.
fn intersection(one: &[Span], other: &[Span]) -> Vec<Span> {
    let (mut at, mut common) = (0, Vec::new());
    for span in one {
        while other.get(at).is_some_and(|theirs| theirs.end_ns <= span.start_ns) {
            at += 1;
        }
        let overlapping = other[at..].iter().take_while(|theirs| theirs.start_ns < span.end_ns);
        common.extend(overlapping.map(|theirs| Span {
            start_ns: span.start_ns.max(theirs.start_ns),
            end_ns: span.end_ns.min(theirs.end_ns),
        }));
    }
    common
}

fn total_ns(spans: &[Span]) -> u64 {
    spans.iter().map(|span| span.length_ns()).sum()
}

/// The spans that this machine did not make, where nothing completes while the client, or a server of the device (FUSE, nbd, loop),
/// waits for a CPU: all where such waits took less than half of their time, else the long ones where they are regular in each row, as no
/// scheduler is; `None` where neither is known.
fn without_client(row: &RecordRow<'_>, rows: &[RecordRow<'_>]) -> Option<Vec<Span>> {
    let spans = device_spans(row);
    if spans.is_empty() || waited_ns(row) * 2.0 < total_ns(&spans) as f64 {
        return Some(spans);
    }
    let longest = spans.iter().map(|span| span.length_ns()).max().unwrap_or(0);
    let long: Vec<Span> = spans.into_iter().filter(|span| span.length_ns() * 2 >= longest).collect();
    let lengths: Vec<u64> = long.iter().map(|span| span.length_ns()).collect();
    let periods: Vec<u64> = long.windows(2).map(|pair| pair[1].start_ns - pair[0].start_ns).collect();
    let is_regular = long.len() >= MIN_PAUSES && is_regular(&lengths) && is_regular(&periods);
    (is_regular && is_everywhere(typical(&lengths), typical(&periods), rows)).then_some(long)
}

/// Whether each row in which several such pauses would have been shows at least half of them.
fn is_everywhere(length_ns: u64, period_ns: u64, rows: &[RecordRow<'_>]) -> bool {
    rows.iter().filter(|row| is_deep(row)).all(|row| {
        let due = row.summary.measured_ns / period_ns.max(1);
        let shown = device_spans(row).iter().filter(|span| span.length_ns() * 2 >= length_ns).count() as u64;
        due < MIN_PAUSES as u64 || shown * 2 >= due
    })
}

/// How long the client waited for its CPU, or any thread of the machine did, where the kernel measures that.
pub(crate) fn waited_ns(row: &RecordRow<'_>) -> f64 {
    let of_client = row.jobs().iter().map(run_queue_wait_share).fold(f64::INFINITY, f64::min);
    let of_any: u64 = row.test.host_load.iter().map(|interval| interval.counters.cpu_pressure_ns).sum();
    (of_client * row.summary.measured_ns as f64).max(of_any as f64)
}

#[cfg(test)]
mod tests {
    use fathom_record::{HostInterval, RunRecord, Silences};

    use super::*;
    use crate::fixture::{SECOND_NS, TestLoad, record};
    use crate::rows::rows;

    const MS: u64 = 1_000_000;

    /// A run of 12 s whose jobs have these silences: start and length, ms.
    fn run(load: TestLoad, silences: &[(u64, u64)]) -> RunRecord {
        let mut run = record(&[load]);
        for job in &mut run.tests[0].jobs {
            let mut all = Silences::default();
            for &(start, length) in silences {
                all.add(Silence { start_ns: start * MS, length_ns: length * MS, depth: 8 });
            }
            job.silences = all;
        }
        run
    }

    fn deep() -> TestLoad {
        TestLoad { depth: 32, iops: 20_000.0, ..TestLoad::default() }
    }

    fn every_second(length: u64) -> Vec<(u64, u64)> {
        (0..12).map(|second| (second * 1000, length)).collect()
    }

    fn found(run: &RunRecord) -> Option<Finding> {
        findings(&rows(run), DevicePauses::of(&rows(run)).as_ref())
    }

    fn claim(run: &RunRecord) -> Option<String> {
        found(run).map(|found| found.claim.split(", with").next().unwrap_or_default().to_owned())
    }

    #[test]
    fn regular_and_irregular_pauses_have_their_length_and_share() {
        let regular = run(deep(), &every_second(100));
        assert_eq!(claim(&regular).unwrap(), "nothing completes for 100 ms every 1.00 s (10 % of the time)");
        let found = found(&regular).unwrap();
        assert_eq!((found.severity, &found.evidence["pauses"]), (Severity::Warning, &12.into()));
        let irregular = run(deep(), &[(100, 40), (1300, 80), (9000, 60)]);
        assert_eq!(
            claim(&irregular).unwrap(),
            "nothing completed for 40.0 ms to 80.0 ms, 3 times in 12 s (1.5 % of the time)"
        );
    }

    #[test]
    fn what_is_no_pause_of_the_device_is_none() {
        let shallow = TestLoad { depth: 1, iops: 2000.0, ..TestLoad::default() };
        assert_eq!(DevicePauses::of(&rows(&run(shallow, &every_second(100)))), None);
        // A limiter that grants requests in slices, an event, what the rate explains, and a client without its CPU.
        let slices: Vec<(u64, u64)> = (0..120).map(|tenth| (tenth * 100, 80)).collect();
        assert_eq!(claim(&run(deep(), &slices)), None);
        assert_eq!(claim(&run(deep(), &[(100, 40), (9000, 40)])), None);
        assert_eq!(
            claim(&run(TestLoad { depth: 32, iops: 150.0, ..TestLoad::default() }, &every_second(100))),
            None
        );
        // A client without its CPU cannot tell, unless they are regular.
        let mut starved = run(deep(), &[(100, 100), (1300, 40), (9000, 80)]);
        starved.tests[0].jobs[0].measured.cpu.run_queue_wait_ns = SECOND_NS;
        assert_eq!(DevicePauses::of(&rows(&starved)), None);
        let mut starved = run(deep(), &[&every_second(100)[..], &[(500, 12), (2700, 20)]].concat());
        starved.tests[0].jobs[0].measured.cpu.run_queue_wait_ns = SECOND_NS;
        assert_eq!(claim(&starved).unwrap(), "nothing completes for 100 ms every 1.00 s (10 % of the time)");
        // Others of its rows do not show them.
        let mut once = record(&[deep(), TestLoad { id: "other", ..deep() }]);
        once.tests[0] = starved.tests[0].clone();
        assert_eq!(claim(&once), None);
        // Nor can one whose machine lacked CPU time: the device's server may be on it.
        let mut pressed = run(deep(), &[(100, 100), (1300, 40), (9000, 80)]);
        let mut interval = HostInterval { end_ns: SECOND_NS, ..HostInterval::default() };
        interval.counters.cpu_pressure_ns = SECOND_NS / 5;
        pressed.tests[0].host_load = vec![interval];
        assert_eq!(DevicePauses::of(&rows(&pressed)), None);
        pressed.tests[0].host_load[0].counters.cpu_pressure_ns = SECOND_NS / 20;
        assert!(claim(&pressed).is_some());
        // One of two workers went on.
        let mut apart = run(TestLoad { jobs: 2, ..deep() }, &every_second(100));
        apart.tests[0].jobs[1].silences = Silences::default();
        assert_eq!(claim(&apart), None);
        apart.tests[0].jobs[1].silences = apart.tests[0].jobs[0].silences.clone();
        assert!(claim(&apart).is_some());
    }

    #[test]
    fn arrivals_wait_as_often_as_pauses_take_time() {
        let run = run(deep(), &every_second(100));
        let pauses = DevicePauses::of(&rows(&run)).unwrap();
        // Those of the first 90 ms of a pause wait for more than 10 ms.
        assert!((pauses.arrivals_beyond(10e6) - 0.09).abs() < 1e-9);
        assert_eq!(pauses.arrivals_beyond(100e6), 0.0);
    }
}
