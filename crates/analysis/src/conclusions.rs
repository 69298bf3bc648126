//! What a bench says of the uses a volume is bought for, in plain words.
//!
//! Rules over the rows by what they did, not by their names, so that any suite with such rows gets its conclusions. A
//! finding that may have caused a verdict makes it inconclusive.

mod profiles;

use fathom_model::units;
use fathom_record::{ActivityKind, Finding, FindingId, LatencySummary, RunRecord, TestStatus};
use serde::Serialize;

use crate::rows::{RecordRow, RowKind, rows};
use crate::say::{count, mebibytes};
pub use profiles::{MARGINAL, YES};

/// Whether a volume serves a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Suitability {
    /// With room to spare for an ordinary installation.
    Yes,
    /// For a small one.
    Marginal,
    /// Not for any.
    No,
    /// Its measurements are in doubt or missing.
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

    fn of(value: f64, (yes, marginal): (f64, f64)) -> Suitability {
        match value {
            value if value >= yes => Suitability::Yes,
            value if value >= marginal => Suitability::Marginal,
            _ => Suitability::No,
        }
    }
}

/// What a bench says of one use.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Conclusion {
    /// The use (`OLTP`).
    #[serde(rename = "use")]
    pub purpose: String,
    /// Whether the volume serves it.
    pub verdict: Suitability,
    /// Why, without the use and the verdict.
    pub reason: String,
    /// The tests it rests on, by id.
    pub tests: Vec<String>,
}

/// A request of a transaction is one of several that a user waits for.
const OLTP_P99_NS: u64 = 5_000_000;
const OLTP_IOPS: (f64, f64) = (1000.0, 200.0);
/// A user waits for a page that needs a few files.
const WEB_P99_NS: u64 = 20_000_000;
const WEB_IOPS: (f64, f64) = (500.0, 100.0);
/// A guest's page faults and its logs share the disk with a dozen others'.
const GUESTS_P99_NS: u64 = 50_000_000;
const GUESTS_IOPS: (f64, f64) = (500.0, 100.0);
/// Every transaction waits for one commit: 500 a second one after another, or 100.
const LOG_P99_NS: (u64, u64) = (2_000_000, 10_000_000);
/// A network of one gigabit carries 118 MB/s; a third of that is what a drive for archives gives.
const STREAM_BYTES: (f64, f64) = (118e6, 40e6);
/// Blocks of databases, and those that make bandwidth.
const SMALL_BLOCK: u64 = 16 << 10;
const LARGE_BLOCK: u64 = 64 << 10;
/// Findings after which the volume may be slower than its figures: they disprove a yes and leave a no.
const FLATTERING: [FindingId; 6] = [
    FindingId::MemoryBacked,
    FindingId::Unwritten,
    FindingId::CacheServed,
    FindingId::HostCache,
    FindingId::Buffered,
    FindingId::FlushSuspicious,
];
/// Findings after which the volume may be faster than its figures: they disprove a no and leave a yes.
const IMPEDING: [FindingId; 5] = [
    FindingId::CgroupThrottled,
    FindingId::CpuSteal,
    FindingId::ClientCpuBound,
    FindingId::ForeignIo,
    FindingId::FirstTouch,
];
/// Findings after which the figures prove neither.
const DISTORTING: [FindingId; 3] = [FindingId::Errors, FindingId::Stalled, FindingId::CpuWait];

/// Findings that limit what a verdict covers.
const CONDITIONS: [(FindingId, &str); 2] = [
    (FindingId::BurstSuspected, "partly on burst credits"),
    (FindingId::SmallWorkingSet, "over a small working set"),
];

/// What a bench says of each use that its rows tell of; nothing for records of other commands.
pub fn conclusions(record: &RunRecord) -> Vec<Conclusion> {
    if record.header.activity.kind() != ActivityKind::Bench || !crate::together::together(record).is_empty() {
        // Of several volumes there is nothing to say as of one.
        return Vec::new();
    }
    let mut rows = rows(record);
    rows.retain(|row| row.test.status == TestStatus::Complete);
    // A profile is judged by what its use needs, and not taken for a row of a suite.
    let profiles = record.tests.iter().filter_map(profiles::of_profile);
    rows.retain(|row| row.test.purpose.is_empty());
    let small = |row: &&RecordRow<'_>, kind| {
        row.kind() == Some(kind)
            && row.block_bytes().is_some_and(|block| block <= SMALL_BLOCK)
            && row.is_random()
            && !row.is_synced()
    };
    let reads: Vec<&RecordRow<'_>> = rows.iter().filter(|row| small(row, RowKind::Read)).collect();
    let mixed: Vec<&RecordRow<'_>> = rows.iter().filter(|row| small(row, RowKind::Mixed)).collect();
    let uses = [
        within("OLTP", &reads, "reads", OLTP_P99_NS, OLTP_IOPS),
        log(&rows),
        within("web server", &reads, "reads", WEB_P99_NS, WEB_IOPS),
        within("virtual machines", &mixed, "reads and writes", GUESTS_P99_NS, GUESTS_IOPS),
        stream(&rows),
    ];
    uses.into_iter().flatten().chain(profiles).map(|conclusion| doubted(conclusion, record)).collect()
}

/// Latencies of all requests of a row, of the sync where each write has one.
fn latency(row: &RecordRow<'_>) -> LatencySummary {
    let total = row.summary.total.clone().unwrap_or_default();
    if total.lat_ns.samples > 0 { total.lat_ns } else { total.clat_ns }
}

/// The greatest rate at which p99 stays within `limit_ns`.
fn within(
    purpose: &'static str,
    rows: &[&RecordRow<'_>],
    what: &str,
    limit_ns: u64,
    wanted: (f64, f64),
) -> Option<Conclusion> {
    let known: Vec<(&RecordRow<'_>, u64)> =
        rows.iter().filter_map(|&row| Some((row, latency(row).p99?))).collect();
    let quick = known.iter().filter(|(_, p99)| *p99 <= limit_ns);
    let best = quick.max_by(|one, other| one.0.iops().total_cmp(&other.0.iops()));
    let (row, verdict, reason) = match best {
        Some((row, p99)) => {
            let reason = format!("{} IOPS ({what}) at p99 {}", count(row.iops()), units::latency(*p99));
            (row, Suitability::of(row.iops(), wanted), reason)
        }
        None => {
            let (row, p99) = known.iter().min_by_key(|(_, p99)| *p99)?;
            let limit = units::latency(limit_ns);
            (row, Suitability::No, format!("lowest p99 was {} (needs <= {limit})", units::latency(*p99)))
        }
    };
    Some(Conclusion { purpose: purpose.to_owned(), verdict, reason, tests: vec![row.test.id.clone()] })
}

fn log(rows: &[RecordRow<'_>]) -> Option<Conclusion> {
    let commits =
        rows.iter().filter(|row| row.kind() == Some(RowKind::Write) && row.mean_queue_depth() <= 1.5);
    let (row, p99) = commits
        .filter_map(|row| Some((row, row.summary.sync.as_ref()?.lat_ns.p99?)))
        .min_by_key(|(_, p99)| *p99)?;
    let verdict = match p99 {
        p99 if p99 <= LOG_P99_NS.0 => Suitability::Yes,
        p99 if p99 <= LOG_P99_NS.1 => Suitability::Marginal,
        _ => Suitability::No,
    };
    let reason = format!("commit p99 {} at {} IOPS, QD 1", units::latency(p99), count(row.iops()));
    Some(Conclusion { purpose: "database log".to_owned(), verdict, reason, tests: vec![row.test.id.clone()] })
}

/// Streams in both directions, as far as both were measured.
fn stream(rows: &[RecordRow<'_>]) -> Option<Conclusion> {
    let best = |kind| {
        let large = rows.iter().filter(|row| {
            row.kind() == Some(kind)
                && row.block_bytes().is_some_and(|block| block >= LARGE_BLOCK)
                && !row.is_synced()
        });
        large.max_by(|one, other| one.bytes_per_second().total_cmp(&other.bytes_per_second()))
    };
    let found = [(best(RowKind::Read), "reads"), (best(RowKind::Write), "writes")];
    let found: Vec<(&RecordRow<'_>, &str)> =
        found.into_iter().filter_map(|(row, what)| Some((row?, what))).collect();
    let least = found.iter().map(|(row, _)| row.bytes_per_second()).reduce(f64::min)?;
    let parts: Vec<String> =
        found.iter().map(|(row, what)| format!("{what} {}", mebibytes(row.bytes_per_second()))).collect();
    let tests = found.iter().map(|(row, _)| row.test.id.clone()).collect();
    let verdict = Suitability::of(least, STREAM_BYTES);
    Some(Conclusion { purpose: "file server, backups".to_owned(), verdict, reason: parts.join(", "), tests })
}

/// A verdict that a finding on its tests may have changed is inconclusive; one from a burst holds while burst credits remain.
fn doubted(conclusion: Conclusion, record: &RunRecord) -> Conclusion {
    let concerns = |found: &&Finding| found.tests.iter().any(|test| conclusion.tests.contains(test));
    let findings: Vec<&Finding> = record.findings.iter().filter(concerns).collect();
    let doubts = |id: &FindingId| {
        FLATTERING.contains(id) && conclusion.verdict != Suitability::No
            || IMPEDING.contains(id) && conclusion.verdict != Suitability::Yes
            || DISTORTING.contains(id)
    };
    if let Some(doubt) = findings.iter().find(|found| doubts(&found.id)) {
        let reason = format!("{}; in doubt because of {}", conclusion.reason, doubt.id);
        return Conclusion { verdict: Suitability::Inconclusive, reason, ..conclusion };
    }
    let mut reason = conclusion.reason.clone();
    for (_, condition) in CONDITIONS.iter().filter(|(id, _)| findings.iter().any(|found| found.id == *id)) {
        reason = format!("{reason}, {condition}");
    }
    Conclusion { reason, ..conclusion }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, TestLoad, record};

    fn said(run: &RunRecord) -> Vec<String> {
        let line = |c: Conclusion| format!("{}: {}, {}", c.purpose, c.verdict.name(), c.reason);
        conclusions(run).into_iter().map(line).collect()
    }

    fn load(id: &'static str, rw: &'static str, (bs, depth): (u64, u32), iops: f64) -> TestLoad {
        TestLoad { id, rw, bs, depth, iops, ..TestLoad::default() }
    }

    #[test]
    fn each_use_in_a_sentence() {
        let shallow = load("lat-read", "randread", (4096, 1), 1000.0);
        let deep = load("rand-read", "randread", (4096, 64), 5000.0);
        let stream = load("seq-read", "read", (1 << 20, 32), 128.0);
        let check = |loads: &[TestLoad], expected: &[&str]| assert_eq!(said(&record(loads)), expected);
        check(
            &[shallow.clone(), deep.clone(), stream.clone()],
            &[
                "OLTP: yes, 1,000 IOPS (reads) at p99 1.00 ms",
                "web server: yes, 5,000 IOPS (reads) at p99 12.8 ms",
                "file server, backups: yes, reads 128 MiB/s",
            ],
        );
        check(
            &[deep, load("bw-write", "randwrite", (1 << 20, 32), 30.0), stream],
            &[
                "OLTP: no, lowest p99 was 12.8 ms (needs <= 5.00 ms)",
                "web server: yes, 5,000 IOPS (reads) at p99 12.8 ms",
                "file server, backups: no, reads 128 MiB/s, writes 30 MiB/s",
            ],
        );
        check(
            &[TestLoad { iops: 300.0, ..shallow }],
            &[
                "OLTP: marginal, 300 IOPS (reads) at p99 3.33 ms",
                "web server: marginal, 300 IOPS (reads) at p99 3.33 ms",
            ],
        );
        let mut other = record(&[TestLoad::default()]);
        other.header.activity = fathom_record::Activity::Fio;
        assert_eq!(conclusions(&other), []);
    }

    #[test]
    fn a_log_waits_for_its_commits() {
        let check = |sync_ns: u64, expected: &str| {
            let mut run = record(&[load("commit", "write", (4096, 1), 400.0)]);
            fixture::plan(&mut run, |plan| plan.io.fdatasync_every = 1);
            let measured = &mut run.tests[0].jobs[0].measured;
            (measured.syncs, measured.sync_lat) = (4800, fixture::latency(4800, sync_ns));
            assert_eq!(said(&run), [expected]);
        };
        check(500_000, "database log: yes, commit p99 500 µs at 400 IOPS, QD 1");
        check(5_000_000, "database log: marginal, commit p99 5.00 ms at 400 IOPS, QD 1");
        check(11_000_000, "database log: no, commit p99 11.0 ms at 400 IOPS, QD 1");
    }

    #[test]
    fn a_finding_disproves_only_the_verdict_that_it_may_have_caused() {
        let with = |iops: f64, id: FindingId, test: &str| {
            let mut run = record(&[load("lat-read", "randread", (4096, 1), iops)]);
            run.findings = vec![Finding { id, tests: vec![test.to_owned()], ..Finding::default() }];
            conclusions(&run).remove(0)
        };
        let verdict = |iops: f64, id: FindingId| with(iops, id, "lat-read").verdict;
        let (fast, slow) = (1000.0, 150.0);
        for id in FLATTERING {
            assert_eq!(verdict(fast, id.clone()), Suitability::Inconclusive, "{id}");
            assert_eq!(verdict(slow, id.clone()), Suitability::No, "{id}");
        }
        for id in IMPEDING {
            assert_eq!(verdict(fast, id.clone()), Suitability::Yes, "{id}");
            assert_eq!(verdict(slow, id.clone()), Suitability::Inconclusive, "{id}");
        }
        for id in DISTORTING {
            assert_eq!(verdict(fast, id.clone()), Suitability::Inconclusive, "{id}");
            assert_eq!(verdict(slow, id.clone()), Suitability::Inconclusive, "{id}");
        }
        let doubted = with(fast, FindingId::CacheServed, "lat-read").reason;
        assert!(doubted.ends_with("; in doubt because of cache-served"), "{doubted}");
        assert_eq!(with(fast, FindingId::CacheServed, "other").verdict, Suitability::Yes);
        for (id, condition) in CONDITIONS {
            let found = with(fast, id, "lat-read");
            assert!(found.verdict == Suitability::Yes && found.reason.ends_with(condition), "{found:?}");
        }
    }
}
