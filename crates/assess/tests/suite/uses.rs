//! The suitability of every volume of the catalogue that has a model, at three sizes, against verdicts worked out by hand from the
//! published rules and needs (`verdicts/uses.csv`: a row for each volume, a column for each use).
//!
//! A verdict is worked out so. The use's own I/Os (sizes, share of reads, order: suites-and-profiles.md) cost each limit of the volume
//! tokens: one for an I/O, or one for each begun unit (`io_unit_kib_max`; a part of a unit where sequential I/Os are merged: not those
//! of a log, where each waits for the sync of the one before), and
//! its bytes (whole units with `io_whole_units`). The rate is the least of limit / tokens, with bursts first, then with baselines;
//! a log issues one I/O after another, at most 1 / (latency of the write + latency of the sync), and at most 32 MiB are
//! outstanding where no latency is needed. A latency is the published typical one, else that of the medium (5 ms for disks, 0.2
//! ms for local flash, else 0.5 ms); the 99th percentile is 1.85 times as much (a published queue depth per IOPS is a constant
//! latency), and a sync takes as long as a write. Commits of databases are appended to a log. Provisioned volumes have 1,000 IOPS
//! and 100 MB/s or what is included. Yes: rate and latency of the need; marginal: of the need of a small installation; else no.
//!
//! `yes 1895-6353 no` is yes from full credits, no afterwards; the burst lasts from 1,895 s at full rate to 6,353 s at the rate
//! that the use needs. `yes?REASON` may also be inconclusive, and `?REASON` any verdict:
//!
//! - `margin`: the rate is from 95 to 98 % of the need, which is neither met nor missed;
//! - `latency`: the assumed 99th percentile is within a tenth of the needed one;
//! - `arrivals`: it is met only if I/Os that arrive together do not wait for the limit, or it takes all that the limit gives;
//! - `cache`: it depends on the share of the data that is in a cache.

use fathom_analysis::Analysis;
use fathom_analysis::conclusions::{Conclusion, Suitability};
use fathom_assess::Effort;
use fathom_model::Nanos;
use fathom_record::RunRecord;

use crate::benches::{BenchTests, bench, part};

const ORACLE: &str = include_str!("../verdicts/uses.csv");
/// Measured time of the tests of uses that a quick run of the suite leaves inconclusive, s.
const LONGER: [u64; 2] = [12, 60];

/// The worked-out verdict of a use.
#[derive(Debug)]
struct Expected<'a> {
    purpose: &'a str,
    now: &'a str,
    /// Of the sustained rate.
    later: &'a str,
    /// Least and greatest duration of the burst, s.
    lasts: Option<[f64; 2]>,
}

impl<'a> Expected<'a> {
    fn parse(purpose: &'a str, cell: &'a str) -> Expected<'a> {
        let parts: Vec<&str> = cell.split(' ').collect();
        let [now, lasts, later] = parts[..] else {
            return Expected { purpose, now: cell, later: cell, lasts: None };
        };
        let lasts =
            lasts.split_once('-').map(|(least, most)| [least.parse().unwrap(), most.parse().unwrap()]);
        Expected { purpose, now, later, lasts }
    }

    /// What is wrong with a verdict.
    fn fault(&self, found: &Conclusion) -> Option<String> {
        let is_wrong = |expected: &str, found: Suitability| {
            let verdict = expected.split('?').next().unwrap_or_default();
            !verdict.is_empty() && found != Suitability::Inconclusive && found.name() != verdict
        };
        let is_known = ![found.verdict, found.sustained].contains(&Suitability::Inconclusive);
        let lasts = self.lasts.filter(|_| is_known && found.verdict != found.sustained);
        let seconds = found.burst_ns.map(|ns| ns as f64 / 1e9);
        let is_off = |[least, most]: [f64; 2]| {
            seconds.is_none_or(|seconds| seconds < least * 0.99 - 1.0 || seconds > most * 1.01 + 1.0)
        };
        let is_amiss = is_wrong(self.now, found.verdict)
            || is_wrong(self.later, found.sustained)
            || lasts.is_some_and(is_off);
        is_amiss.then(|| format!("{self:?}: {} ({})", found.verdict_text(), found.reason))
    }

    /// The verdicts that `found` leaves open although they follow from the rules.
    fn is_open(&self, found: [Suitability; 2]) -> bool {
        let is_open = |(expected, found): (&str, Suitability)| {
            !expected.contains('?') && found == Suitability::Inconclusive
        };
        [self.now, self.later].into_iter().zip(found).any(is_open)
    }
}

/// The suite and the profiles of these uses, as one run.
fn longer(target: &str, uses: &[&str], seconds: u64) -> RunRecord {
    let length = (Effort::Quick, Some(Nanos::from_secs(seconds)));
    let mut record = bench(target, BenchTests::Suite(&[]), length);
    record.tests.extend(bench(target, BenchTests::Profiles(uses), length).tests);
    part(&record, &|_, _| true)
}

/// The faults of all verdicts on a volume.
fn faults(line: &str, header: &str) -> Vec<String> {
    let cells: Vec<&str> = line.split(',').collect();
    let target = format!("sim:{}?{}", cells[0], cells[1]);
    let uses = header.split(',').skip(2).zip(&cells[2..]);
    let mut open: Vec<Expected<'_>> = uses.map(|(purpose, cell)| Expected::parse(purpose, cell)).collect();
    let mut decided = vec![[Suitability::Inconclusive; 2]; open.len()];
    let mut faults = Vec::new();
    for seconds in [None].into_iter().chain(LONGER.map(Some)) {
        let names: Vec<&str> = open.iter().map(|one| one.purpose).collect();
        let record = match seconds {
            None => bench(&target, BenchTests::Suite(&[]), (Effort::Quick, None)),
            Some(seconds) => longer(&target, &names, seconds),
        };
        let all = Analysis::of(&record).conclusions().to_vec();
        for (expected, decided) in open.iter().zip(&mut decided) {
            let found = all.iter().find(|one| one.id == expected.purpose).unwrap();
            faults.extend(expected.fault(found).map(|fault| format!("{target} {fault}")));
            for (known, found) in decided.iter_mut().zip([found.verdict, found.sustained]) {
                *known = if *known == Suitability::Inconclusive { found } else { *known };
            }
        }
        let mut at = 0;
        open.retain(|expected| {
            at += 1;
            expected.is_open(decided[at - 1])
        });
        if open.is_empty() {
            return faults;
        }
        decided = vec![[Suitability::Inconclusive; 2]; open.len()];
    }
    faults.extend(open.iter().map(|expected| format!("{target} {expected:?}: inconclusive")));
    faults
}

#[test]
fn suitability_follows_from_the_published_rules() {
    let half = |part: usize| {
        std::thread::spawn(move || {
            let (header, lines) = ORACLE.split_once('\n').unwrap();
            lines.lines().skip(part).step_by(2).flat_map(|line| faults(line, header)).collect::<Vec<_>>()
        })
    };
    let found: Vec<String> = [half(0), half(1)].into_iter().flat_map(|half| half.join().unwrap()).collect();
    assert!(found.is_empty(), "{} wrong:\n{}", found.len(), found.join("\n"));
}
