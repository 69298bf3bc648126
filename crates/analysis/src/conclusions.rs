//! The suitability of a volume for the uses it is bought for.
//!
//! Each use is defined once, in [`uses`], and every run answers from that definition: a suite, some of its tests, a profile. A
//! verdict holds for the volume, not for the depth of a test: it is yes or no where the rows prove it, and inconclusive otherwise.

mod disproof;
mod measured;
mod proof;
mod uses;

use fathom_model::{Nanos, units};
use fathom_record::{ActivityKind, RunRecord};
use serde::Serialize;

use crate::doubt::FindingDoubt;
use crate::say::{block, count};
use crate::steady::rate_duration::{Lasting, RateDuration};
use measured::{MeasuredOp, MeasuredRow, doubt_name, measured};
use proof::{Case, Proof, Stream, streams};
pub use uses::{NeededRate, USES, Use, UseNeed};

/// Whether a volume serves a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Suitability {
    /// An ordinary installation.
    Yes,
    /// A small installation, and no more.
    Marginal,
    /// Not even a small one.
    No,
    /// Not proven.
    Inconclusive,
}

impl Suitability {
    /// The word used in JSON and text.
    pub const fn name(self) -> &'static str {
        match self {
            Suitability::Yes => "yes",
            Suitability::Marginal => "marginal",
            Suitability::No => "no",
            Suitability::Inconclusive => "inconclusive",
        }
    }
}

/// A rate and latency that a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OperatingPoint {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// 99th percentile of the slowest operation, ns.
    pub p99_ns: Option<u64>,
    /// Mean number of outstanding I/Os.
    pub queue_depth: f64,
    /// It follows from several tests, and was not measured as such.
    pub computed: bool,
}

/// The verdict on one use.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Conclusion {
    /// The use, by the name of its profile.
    pub id: &'static str,
    /// The same for people (`OLTP`).
    #[serde(rename = "use")]
    pub purpose: &'static str,
    /// Whether the volume serves it.
    pub verdict: Suitability,
    /// Why, without the use and the verdict.
    pub reason: String,
    /// The rate and latency that prove the verdict; `None` where it is inconclusive.
    pub point: Option<OperatingPoint>,
    /// What serves the use.
    pub full: UseNeed,
    /// What serves a small installation of it.
    pub small: UseNeed,
    /// The tests it rests on, by id.
    pub tests: Vec<String>,
    /// The verdict on rates that can be held indefinitely.
    pub sustained: Suitability,
    /// The rate that can be held after the burst that the verdict rests on, IOPS.
    pub sustained_iops: Option<f64>,
    /// Time for which the burst lasts that the verdict rests on, ns.
    pub burst_ns: Option<u64>,
    /// Time for which the tests ran that the verdict rests on, ns: the shortest.
    pub measured_ns: u64,
}

impl Conclusion {
    /// The verdict with its duration: `yes for 31 min 35 s, then no (150 IOPS)`, `yes (measured for 10 s)`.
    pub fn verdict_text(&self) -> String {
        let (now, later) = (self.verdict.name(), self.sustained.name());
        let after = self.sustained_iops.map(|iops| format!(" ({} IOPS)", count(iops))).unwrap_or_default();
        let duration = |ns: u64| units::duration(Nanos(ns));
        match (self.burst_ns, self.verdict) {
            _ if self.verdict == self.sustained => now.to_owned(),
            (Some(ns), Suitability::Inconclusive) => {
                format!("inconclusive for {}, then {later}{after}", duration(ns))
            }
            (Some(ns), _) => format!("{now} for {}, then {later}{after}", duration(ns)),
            (None, Suitability::Inconclusive) => format!("inconclusive, sustained {later}{after}"),
            (None, _) => format!("{now} (measured for {})", duration(self.measured_ns)),
        }
    }
}

/// The verdict on every use, from the tests of a bench or the points of a sweep; nothing for records of other commands, of several
/// targets, and of no measurement.
pub fn conclusions(record: &RunRecord) -> Vec<Conclusion> {
    let kind = record.header.activity.kind();
    let has_verdicts = matches!(kind, ActivityKind::Bench | ActivityKind::Sweep);
    let rows = measured(record);
    if !has_verdicts || rows.is_empty() || !crate::together::together(record).is_empty() {
        return Vec::new();
    }
    let sustained: Vec<MeasuredRow> = rows.iter().map(MeasuredRow::sustained).collect();
    let rows: Vec<MeasuredRow> = rows.iter().map(MeasuredRow::with_full_credits).collect();
    let of_use = |purpose: &'static Use| {
        let verdict = |rows: &[MeasuredRow]| conclusion(&Case { purpose, rows, kind, ignores_doubt: false });
        with_duration(verdict(&rows), verdict(&sustained), &rows)
    };
    USES.iter().map(of_use).collect()
}

/// What is proven of a need.
#[derive(Debug)]
struct NeedProof {
    shown: Option<Proof>,
    disproved: Option<Proof>,
}

impl NeedProof {
    fn of(case: &Case<'_>, need: &UseNeed) -> NeedProof {
        NeedProof { shown: case.shown(need), disproved: case.disproved(need) }
    }

    fn is_met(&self) -> Option<bool> {
        match (&self.shown, &self.disproved) {
            (Some(_), None) => Some(true),
            (None, Some(_)) => Some(false),
            _ => None,
        }
    }
}

fn conclusion(case: &Case<'_>) -> Conclusion {
    let purpose = case.purpose;
    let [full, small] = [purpose.full, purpose.small].map(|need| NeedProof::of(case, &need));
    let (verdict, proof, reason) = match (full.is_met(), small.is_met()) {
        (Some(true), _) => (Suitability::Yes, full.shown, None),
        (_, Some(false)) => (Suitability::No, small.disproved, None),
        (Some(false), Some(true)) => {
            let reason = |proof: &Option<Proof>| proof.as_ref().map(|proof| proof.reason.clone());
            let parts = reason(&small.shown).zip(reason(&full.disproved));
            let text = parts.map(|(shown, missed)| format!("{shown}, for a small installation; {missed}"));
            (Suitability::Marginal, small.shown, text)
        }
        _ => (Suitability::Inconclusive, None, Some(inconclusive(case, &full, &small))),
    };
    let (point, known, tests) = match proof {
        Some(proof) => (Some(proof.point), proof.reason, proof.tests),
        None => (None, String::new(), Vec::new()),
    };
    Conclusion {
        id: purpose.name,
        purpose: purpose.title,
        verdict,
        reason: reason.unwrap_or(known),
        point,
        full: purpose.full,
        small: purpose.small,
        tests,
        sustained: verdict,
        sustained_iops: None,
        burst_ns: None,
        measured_ns: 0,
    }
}

/// Adds the verdict on the rates that the volume sustains, `later`, and how long the burst before them lasts.
fn with_duration(now: Conclusion, later: Conclusion, rows: &[MeasuredRow]) -> Conclusion {
    // The tests of either verdict: where nothing is proven during the burst, those of what remains.
    let tests = if now.tests.is_empty() { &later.tests } else { &now.tests };
    let of_tests = || rows.iter().filter(|row| tests.contains(&row.test)).map(|row| &row.duration);
    let bursts = || of_tests().filter(|duration| duration.label == Lasting::Burst);
    Conclusion {
        sustained: later.verdict,
        sustained_iops: bursts().filter_map(RateDuration::after_burst).reduce(f64::min),
        burst_ns: bursts().filter_map(|duration| duration.lasts_ns).min(),
        measured_ns: of_tests().map(|duration| duration.measured_ns).min().unwrap_or_default(),
        ..now
    }
}

/// Why nothing is proven, and what would decide.
fn inconclusive(case: &Case<'_>, full: &NeedProof, small: &NeedProof) -> String {
    let purpose = case.purpose;
    for need in [full, small] {
        if let (Some(shown), Some(disproved)) = (&need.shown, &need.disproved) {
            return format!("tests disagree: {}; {}", shown.reason, disproved.reason);
        }
    }
    if let Some(doubt) = doubt(case) {
        return doubt;
    }
    let (missing, needs) = (missing(case), purpose.full.text());
    let known = match (&small.shown, &full.disproved) {
        (Some(proof), _) => format!("{}, for a small installation (needs {needs})", proof.reason),
        (None, Some(proof)) => {
            format!("{}; a small installation needs {}", proof.reason, purpose.small.text())
        }
        _ if !missing.is_empty() => format!("{} not measured (needs {needs})", missing.join(" and ")),
        (None, None) => format!("{} (needs {needs})", nearest(case)),
    };
    let is_measured = case.rows.iter().any(|row| row.is_load_of(purpose));
    let remedy = match (is_measured, case.kind) {
        (true, ActivityKind::Sweep) => "use a longer --budget, or run `fathom bench`".to_owned(),
        (true, _) => "use a longer --runtime, or run the standard suite".to_owned(),
        (false, ActivityKind::Sweep) => format!("run `fathom bench --profile {}`", purpose.name),
        (false, _) => format!("run --profile {}", purpose.name),
    };
    format!("{known}; {remedy}")
}

/// The operations of the use that no row has.
fn missing(case: &Case<'_>) -> Vec<&'static str> {
    let is_missing = |stream: &Stream| {
        let alike = |row: &&MeasuredRow| !stream.is_commit || row.sync == measured::SyncPattern::Each;
        !case.rows.iter().filter(alike).any(|row| row.op(stream.is_read).is_some())
    };
    let name = |stream: Stream| match stream {
        Stream { is_read: true, .. } => "reads",
        Stream { is_commit: true, .. } => "commits",
        Stream { .. } => "writes",
    };
    streams(case.purpose).into_iter().filter(is_missing).map(name).collect()
}

/// The verdict that rows in doubt would give, and the doubt.
fn doubt(case: &Case<'_>) -> Option<String> {
    let all = Case { ignores_doubt: true, ..*case };
    let [full, small] = [case.purpose.full, case.purpose.small].map(|need| NeedProof::of(&all, &need));
    let in_doubt = |proof: Option<Proof>, of: fn(&MeasuredRow) -> Option<&'static FindingDoubt>| {
        let proof = proof?;
        let mut rows = case.rows.iter().filter(|row| proof.tests.contains(&row.test));
        let doubt = rows.find_map(of)?;
        Some(format!("{}; in doubt: {}", proof.reason, doubt_name(doubt)))
    };
    // Figures that may be too good show nothing, and those that may be too bad disprove nothing.
    [full, small].into_iter().find_map(|need| {
        in_doubt(need.shown, |row| row.flattered).or_else(|| in_doubt(need.disproved, |row| row.impeded))
    })
}

/// The row nearest to the use: that of the lowest latency, or of the highest bandwidth where no latency is needed.
fn nearest(case: &Case<'_>) -> String {
    let streams = streams(case.purpose);
    let ops = case.rows.iter().flat_map(|row| row.ops.iter().map(move |op| (row, op)));
    let ops: Vec<_> =
        ops.filter(|(_, op)| streams.iter().any(|stream| stream.is_read == op.is_read)).collect();
    let Some(limit_ns) = case.purpose.full.p99_ns else {
        let bytes = |op: &MeasuredOp| op.low * op.largest() as f64;
        let best = ops.iter().max_by(|one, other| bytes(one.1).total_cmp(&bytes(other.1)));
        return best.map_or_else(String::new, |(row, op)| {
            let rate = NeededRate::Bytes(bytes(op)).text();
            format!("{rate} in blocks of {}, QD {}", block(op.largest()), count(row.depth))
        });
    };
    let best = ops.iter().filter(|(_, op)| op.p99_ns().is_some()).min_by_key(|(_, op)| op.p99_ns());
    best.map_or_else(String::new, |(row, op)| {
        let found = op.p99_ns().unwrap_or_default();
        let queue = if found > limit_ns && row.is_queue { ", mostly queueing delay" } else { "" };
        let (latency, iops) = (units::latency(found), count(row.iops()));
        format!("p99 {latency} at {iops} IOPS, QD {}{queue}", count(row.depth))
    })
}

#[cfg(test)]
mod tests {
    use fathom_record::{BurstRate, Finding, FindingId, OwnRates, PublishedRates};

    use super::*;
    use crate::fixture::{self, TestLoad, record};

    fn load(id: &'static str, rw: &'static str, (bs, depth): (u64, u32), iops: f64) -> TestLoad {
        TestLoad { id, rw, bs, depth, iops, ..TestLoad::default() }
    }

    fn of(run: &RunRecord, id: &str) -> Conclusion {
        let all = conclusions(run);
        assert_eq!(all.len(), USES.len());
        all.into_iter().find(|one| one.id == id).unwrap()
    }

    fn check(loads: &[TestLoad], expected: &[(&str, &str)]) {
        let run = record(loads);
        for (id, text) in expected {
            let found = of(&run, id);
            let line = format!("{}: {}", found.verdict.name(), found.reason);
            assert!(line.starts_with(text), "{id}: {line}");
            let is_known = found.verdict != Suitability::Inconclusive;
            assert_eq!(found.point.is_some(), is_known, "{found:?}");
        }
    }

    #[test]
    fn every_use_is_listed_for_any_measurement() {
        let one = load("lat-read", "randread", (4096, 1), 1000.0);
        check(
            std::slice::from_ref(&one),
            &[
                (
                    "streaming-write",
                    "inconclusive: writes not measured (needs 118 MB/s); run --profile streaming-write",
                ),
                ("etcd", "inconclusive: commits not measured (needs 50 IOPS at p99 <= 10.0 ms)"),
                ("oltp", "inconclusive: writes not measured (needs 1,000 IOPS at p99 <= 5.00 ms)"),
            ],
        );
        let mut other = record(&[one]);
        other.header.activity = fathom_record::Activity::Fio;
        assert_eq!(conclusions(&other), []);
        assert_eq!(conclusions(&record(&[])), []);
    }

    #[test]
    fn latency_in_a_deep_queue_disproves_nothing_at_a_sufficient_rate() {
        let deep = load("rand-read", "randread", (4096, 64), 3000.0);
        check(
            std::slice::from_ref(&deep),
            &[("workstation", "inconclusive"), ("web-server", "inconclusive")],
        );
        // At a lower rate than needed it does, and so does the rate itself.
        check(
            &[TestLoad { iops: 60.0, ..deep.clone() }],
            &[("web-server", "no: 60 IOPS, QD 64 (needs >= 100 IOPS)")],
        );
        let slow = load("lat-read", "randread", (4096, 1), 10.0);
        check(&[slow], &[("web-server", "no: median 100 ms at 10 IOPS, QD 1 (needs p99 <= 50.0 ms)")]);
    }

    #[test]
    fn latency_in_a_queue_disproves_nothing_at_a_rate_that_meets_the_need() {
        // 1 % below the need, and 129 ms at that depth.
        let deep = load("rand-read", "randread", (4096, 64), 495.0);
        check(std::slice::from_ref(&deep), &[("web-server", "inconclusive")]);
        check(
            &[TestLoad { iops: 470.0, ..deep.clone() }],
            &[("web-server", "inconclusive: 470 IOPS, QD 64 (needs")],
        );
        // Nor at one that may meet it, as far as its interval tells.
        let below = TestLoad { iops: 480.0, ..deep };
        check(std::slice::from_ref(&below), &[("web-server", "inconclusive: median 133 ms at 480 IOPS")]);
        let uneven = TestLoad { seconds: [vec![0.9; 3], vec![1.1; 3]].concat().repeat(2), ..below };
        check(&[uneven], &[("web-server", "inconclusive: p99 133 ms at 480 IOPS")]);
    }

    #[test]
    fn a_shallower_queue_bounds_the_bandwidth_of_a_deeper_one() {
        // 32 I/Os outstanding give at most four times as much as 8.
        let reads = |iops| load("seq-read", "read", (1 << 20, 8), iops);
        check(&[reads(6.0)], &[("streaming-read", "no: 6.3 MB/s, QD 8 (needs >= 40 MB/s)")]);
        check(&[reads(10.0)], &[("streaming-read", "inconclusive: 11 MB/s, QD 8 (needs >= 118 MB/s)")]);
        check(&[reads(30.0)], &[("streaming-read", "inconclusive")]);
        // Smaller blocks: I/Os count, not bytes.
        let small = load("seq-jobs", "read", (128 << 10, 8), 20.0);
        check(&[small], &[("streaming-read", "inconclusive: 2.6 MB/s, QD 8 (needs >= 118 MB/s)")]);
    }

    /// The run on a volume of a known type: 150 IOPS, and `burst` while credits last.
    fn known_type(mut run: RunRecord, burst: Option<f64>) -> RunRecord {
        let burst = burst.map(|iops| BurstRate { iops, lasts_ns: Some(60_000_000_000), refill_ns: None });
        let exhausted_iops = burst.iter().map(|_| 150.0).collect();
        let own = OwnRates { sustained_iops: Some(150.0), burst, exhausted_iops, ..OwnRates::default() };
        run.tests[0].published = Some(PublishedRates { own: Some(own), ..PublishedRates::default() });
        run
    }

    #[test]
    fn exhausted_credits_disprove_what_remains_and_no_burst() {
        let check = |seconds: Vec<f64>, iops: f64, expected: [Suitability; 2]| {
            let load = TestLoad { seconds, ..load("rand-read", "randread", (4096, 64), iops) };
            let found = of(&known_type(record(&[load]), Some(3000.0)), "web-server");
            assert_eq!([found.verdict, found.sustained], expected, "{iops}: {found:?}");
        };
        let (no, open) = (Suitability::No, Suitability::Inconclusive);
        check(vec![1.0; 20], 90.0, [no, no]);
        check(vec![1.0; 20], 150.0, [open, open]);
        // In a mean of both, a second of what remains is enough.
        check([vec![1.0; 10], vec![0.05; 10]].concat(), 3000.0, [open, open]);
    }

    #[test]
    fn a_rate_above_the_published_rule_shows_nothing() {
        let run = commits(900.0, 1_000_000);
        assert_eq!(of(&known_type(run.clone(), Some(900.0)), "etcd").verdict, Suitability::Yes);
        let found = of(&known_type(run, None), "etcd");
        assert_eq!(found.verdict, Suitability::Inconclusive);
        assert!(found.reason.contains("faster than the published rule allows"), "{}", found.reason);
    }

    #[test]
    fn a_latency_without_a_limit_holds_for_any_rate() {
        let single = load("lat-read", "randread", (4096, 1), 150.0);
        check(std::slice::from_ref(&single), &[("oltp", "inconclusive")]);
        // 6.7 ms each, and not because of a limit.
        let deep = load("rand-read", "randread", (4096, 8), 1200.0);
        let run = record(&[single, deep]);
        let case_of = |need: &UseNeed| {
            let rows = measured(&run);
            let purpose = Use::named("oltp").unwrap();
            let kind = ActivityKind::Bench;
            Case { purpose, rows: &rows, kind, ignores_doubt: false }
                .disproved(need)
                .map(|proof| proof.reason)
        };
        let oltp = Use::named("oltp").unwrap();
        assert_eq!(case_of(&oltp.full).unwrap(), "median 6.67 ms at 150 IOPS, QD 1 (needs p99 <= 5.00 ms)");
        assert_eq!(case_of(&oltp.small), None);
    }

    #[test]
    fn a_doubt_is_told_of_what_it_puts_in_doubt() {
        let mut run = record(&[load("rand-read", "randread", (4096, 32), 700.0)]);
        let tests = vec!["rand-read".to_owned()];
        run.findings = vec![Finding { id: FindingId::ShortRun, tests, ..Finding::default() }];
        // The rate is too low for an ordinary installation however good its figures look.
        let found = of(&run, "postgresql");
        assert_eq!(found.verdict, Suitability::Inconclusive);
        assert!(found.reason.contains("a small installation needs"), "{found:?}");
        assert!(!found.reason.contains("in doubt"), "{found:?}");
    }

    #[test]
    fn smaller_blocks_rule_out_no_bandwidth_limit() {
        // 3.75 MB/s: 16k take 4.4 ms each, and 4k are as many more.
        let loads =
            [load("large", "randread", (16 << 10, 1), 229.0), load("small", "randread", (4096, 8), 916.0)];
        let purpose: &Use = Box::leak(Box::new(Use {
            blocks: &[(16 << 10, 100)],
            full: UseNeed { p99_ns: Some(2_000_000), ..USES[7].full },
            ..USES[7]
        }));
        let run = record(&loads);
        let rows = measured(&run);
        let need = UseNeed { rate: NeededRate::Iops(100.0), ..purpose.full };
        let case = Case { purpose, rows: &rows, kind: ActivityKind::Bench, ignores_doubt: false };
        assert_eq!(case.disproved(&need), None);
    }

    fn commits(iops: f64, sync_ns: u64) -> RunRecord {
        let mut run = record(&[load("commit", "write", (4096, 1), iops)]);
        fixture::plan(&mut run, |plan| plan.io.fdatasync_every = 1);
        let measured = &mut run.tests[0].jobs[0].measured;
        let (ios, write_ns) = (measured.write.ios, 100_000);
        (measured.syncs, measured.sync_lat) = (ios, fixture::latency(ios, sync_ns));
        measured.write.lat = fixture::latency(ios, write_ns);
        run
    }

    #[test]
    fn a_log_waits_for_write_and_sync() {
        let verdict = |iops, sync_ns| of(&commits(iops, sync_ns), "etcd").verdict;
        assert_eq!(verdict(900.0, 1_000_000), Suitability::Yes);
        assert_eq!(verdict(40.0, 25_000_000), Suitability::Marginal);
        assert_eq!(verdict(15.0, 65_000_000), Suitability::No);
        let log = of(&commits(33.0, 30_000_000), "database-log");
        assert_eq!((log.verdict, log.tests.as_slice()), (Suitability::No, &["commit".to_owned()][..]));
        assert!(log.reason.starts_with("33 IOPS, QD 1 (needs >= 100 IOPS)"), "{}", log.reason);
        // A device without a cache is as slow in its writes.
        let mut through = commits(15.0, 1000);
        let write = &mut through.tests[0].jobs[0].measured.write;
        write.lat = fixture::latency(write.ios, 65_000_000);
        assert_eq!(of(&through, "etcd").verdict, Suitability::No);
    }

    #[test]
    fn few_samples_prove_what_is_clear() {
        let with = |iops: f64, sync_ns: u64, seconds: usize| {
            let mut run = record(&[TestLoad {
                seconds: vec![1.0; seconds],
                ..load("commit", "write", (4096, 1), iops)
            }]);
            fixture::plan(&mut run, |plan| plan.io.fdatasync_every = 1);
            let measured = &mut run.tests[0].jobs[0].measured;
            let ios = measured.write.ios;
            (measured.syncs, measured.sync_lat) = (ios, fixture::latency(ios, sync_ns));
            measured.write.lat = fixture::latency(ios, 10_000);
            of(&run, "etcd").verdict
        };
        assert_eq!(with(100.0, 9_000_000, 3), Suitability::Inconclusive);
        assert_eq!(with(100.0, 9_000_000, 4), Suitability::Yes);
        assert_eq!(with(16.0, 60_000_000, 3), Suitability::No);
    }

    #[test]
    fn a_finding_weakens_only_the_verdict_that_it_would_falsify() {
        let with = |iops: f64, sync_ns: u64, id: FindingId| {
            let mut run = commits(iops, sync_ns);
            run.findings = vec![Finding { id, tests: vec!["commit".to_owned()], ..Finding::default() }];
            of(&run, "etcd")
        };
        for doubt in crate::doubt::DOUBTS {
            use crate::doubt::FigureEffect::{Distorts, Flatters, Impedes, Interrupts, Varies};
            let (good, bad) = match doubt.effect {
                Flatters => (Suitability::Inconclusive, Suitability::No),
                Impedes => (Suitability::Yes, Suitability::Inconclusive),
                Distorts | Interrupts => (Suitability::Inconclusive, Suitability::Inconclusive),
                Varies => (Suitability::Yes, Suitability::No),
            };
            let id = || doubt.id.clone();
            let (quick, slow) = (with(900.0, 1_000_000, id()), with(15.0, 65_000_000, id()));
            assert_eq!((quick.verdict, slow.verdict), (good, bad), "{}", doubt.id);
            for one in [quick, slow].iter().filter(|one| one.verdict == Suitability::Inconclusive) {
                assert!(
                    one.reason.ends_with(&format!("; in doubt: {} ({})", doubt.reason, doubt.id)),
                    "{one:?}"
                );
            }
        }
    }
}
