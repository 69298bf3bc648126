//! No two runs of one volume contradict each other: any tests of a suite and any profiles, of any length from 10 s to 3 h, on
//! volumes with limits, burst buckets, I/O units, latencies and host caches drawn at random.
//!
//! The gate draws a few volumes; `cargo lab contradictions` draws as many as it is told.

use std::collections::{BTreeMap, BTreeSet};

use fathom_analysis::Analysis;
use fathom_analysis::conclusions::{Conclusion, Suitability, USES};
use fathom_assess::Effort;
use fathom_model::Nanos;
use fathom_record::{PublishedRates, RunRecord};

use crate::benches::{BenchTests, bench, part};
use crate::random::Rng;

/// I/Os that a test may issue at the most, so that virtual hours take seconds: of many tests, and of one alone.
const MAX_IOS: f64 = 30_000.0;
const MAX_IOS_ALONE: f64 = 1_000_000.0;
const SUITE: [&str; 10] = [
    "lat-read", "lat-write", "commit", "rand-read", "rand-write", "rand-mixed", "rand-read-jobs", "seq-read",
    "bw-write", "seq-write-jobs",
];

/// A volume, and the most I/Os per second that it serves.
#[derive(Debug)]
struct DrawnVolume {
    target: String,
    most_iops: f64,
}

/// A volume drawn from a seed: of low rates for long runs, of any for short ones.
fn drawn(rng: &mut Rng) -> DrawnVolume {
    let fastest = rng.between(100.0, 4_000.0);
    let mut words = vec!["size=64GiB".to_owned()];
    let is_apart = rng.chance(0.3);
    if is_apart && rng.chance(0.3) {
        words.push("shared=0".to_owned());
        words.push(format!("iops={}", rng.between(60.0, fastest) as u64));
    }
    let mut most_iops: f64 = 0.0;
    for prefix in if is_apart { &["read_", "write_"][..] } else { &[""][..] } {
        let latency_us = rng.between(50.0, 30_000.0);
        let mut rate = 64e6 / latency_us;
        let mut limit = |names: [&str; 3], low: f64, high: f64, rng: &mut Rng| {
            let base = rng.between(low, high);
            words.push(format!("{prefix}{}={}", names[0], base as u64));
            if !rng.chance(0.5) {
                return base;
            }
            let burst = base * rng.between(1.1, 20.0);
            let seconds = rng.between(10.0, 7200.0);
            words.push(format!("{prefix}{}={}", names[1], burst as u64));
            words.push(format!("{prefix}{}={}", names[2], ((burst - base) * seconds) as u64 + 1));
            burst
        };
        if rng.chance(0.85) {
            rate = rate.min(limit(["iops", "burst_iops", "bucket_ios"], 60.0, fastest, rng));
        }
        if rng.chance(0.85) {
            let most = fastest * 16_384.0;
            let names = ["bandwidth", "burst_bandwidth", "bucket_bytes"];
            rate = rate.min(limit(names, most.min(5e6) / 5.0, most.max(1e7), rng) / 4096.0);
        }
        words.push(format!("{prefix}latency={}us", latency_us as u64));
        most_iops = most_iops.max(rate);
    }
    if rng.chance(0.5) {
        words.push("latency_spread=1".to_owned());
    }
    if rng.chance(0.4) {
        words.push(format!("io_unit={}", 4096 << (rng.next() % 9)));
        if rng.chance(0.4) {
            words.push("io_merge=1".to_owned());
        }
    }
    if rng.chance(0.3) {
        words.push(format!("parallelism={}", rng.between(1.0, 65.0) as u64));
    }
    if rng.chance(0.15) {
        let mode = if rng.chance(0.5) { "ReadWrite" } else { "ReadOnly" };
        words.push(format!("cache={mode}&cache_size={}GiB", rng.between(1.0, 16.0) as u64));
    }
    DrawnVolume { target: format!("sim:custom?{}", words.join("&")), most_iops }
}

/// Runs of one volume: of several lengths, of all tests and of some.
fn runs(volume: &DrawnVolume, rng: &mut Rng) -> Vec<RunRecord> {
    let profiles: Vec<&str> = USES.iter().map(|one| one.name).collect();
    let mut all = Vec::new();
    for at in 0..8 {
        let most_ios = if at < 6 { MAX_IOS } else { MAX_IOS_ALONE };
        let longest = (most_ios / volume.most_iops).clamp(10.1, 10_800.0);
        let seconds = if at == 0 { 10.0 } else { rng.between(10.0, longest) };
        let length = (Effort::Quick, Some(Nanos::from_millis((seconds * 1e3) as u64)));
        let mut some = |names: &[&'static str]| -> Vec<&'static str> {
            let one = rng.next() as usize % names.len();
            let share = if at < 2 { 1.0 } else { 0.4 };
            let is_chosen = |place: usize, chance: bool| if at < 6 { chance } else { place == one };
            let places = names.iter().copied().enumerate();
            places.filter(|(place, _)| is_chosen(*place, rng.chance(share))).map(|(_, name)| name).collect()
        };
        let (tests, uses) = (some(&SUITE), some(&profiles));
        if at % 2 == 0 && !tests.is_empty() {
            all.push(bench(&volume.target, BenchTests::Suite(&tests), length));
        } else if !uses.is_empty() {
            all.push(bench(&volume.target, BenchTests::Profiles(&uses), length));
        }
    }
    all
}

/// A claim on a use: from full credits, or on what the volume sustains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    Now,
    Sustained,
}

impl Claim {
    /// How much of the use the verdict grants; `None` of an inconclusive one.
    fn grade(self, conclusion: &Conclusion) -> Option<u8> {
        let verdict = if self == Claim::Now { conclusion.verdict } else { conclusion.sustained };
        match verdict {
            Suitability::No => Some(0),
            Suitability::Marginal => Some(1),
            Suitability::Yes => Some(2),
            Suitability::Inconclusive => None,
        }
    }
}

/// Verdicts of earlier runs, by use: the first of each claim, with its run.
#[derive(Default)]
struct Verdicts {
    of_known_type: bool,
    first: BTreeMap<(&'static str, Claim), (Conclusion, String)>,
    told: BTreeSet<&'static str>,
}

impl Verdicts {
    /// Adds the verdict of a run; the contradiction with an earlier one.
    fn add(&mut self, new: &Conclusion, context: &str) -> Option<String> {
        for claim in [Claim::Now, Claim::Sustained] {
            if claim.grade(new).is_some() {
                let of_run = || (new.clone(), context.to_owned());
                self.first.entry((new.id, claim)).or_insert_with(of_run);
            }
        }
        let earlier = [Claim::Now, Claim::Sustained].map(|claim| self.first.get(&(new.id, claim)));
        let [now, sustained] = earlier;
        let grade = |claim: Claim, of: Option<&(Conclusion, String)>| claim.grade(&of?.0);
        let differ = |claim: Claim, of| {
            grade(claim, of).zip(claim.grade(new)).is_some_and(|(one, other)| one != other)
        };
        // What is sustained is also there from full credits.
        let exceeds = |sustained: Option<u8>, now: Option<u8>| {
            sustained.zip(now).is_some_and(|(sustained, now)| sustained > now)
        };
        let other = match () {
            // Of a type that nobody names, a run that others exhausted cannot tell what full credits would give.
            () if self.of_known_type && differ(Claim::Now, now) => now,
            () if differ(Claim::Sustained, sustained) => sustained,
            () if exceeds(grade(Claim::Sustained, sustained), Claim::Now.grade(new)) => sustained,
            () if exceeds(Claim::Sustained.grade(new), grade(Claim::Now, now)) => now,
            () => return None,
        };
        let (before, its) = other.filter(|_| self.told.insert(new.id))?;
        let line = |one: &Conclusion| format!("{} | {}", one.verdict_text(), one.reason);
        Some(format!("  {}: {}\n    {its}\n  but {}\n    {context}", new.id, line(before), line(new)))
    }
}

/// The run on a volume whose type nobody names, and whose credits may last for days.
fn of_unknown_type(record: &RunRecord) -> RunRecord {
    let mut record = record.clone();
    for test in &mut record.tests {
        let longest_burst_ns = Some(u64::MAX);
        test.published = Some(PublishedRates { longest_burst_ns, ..PublishedRates::default() });
    }
    record
}

/// The contradictions among the verdicts of all runs of a volume, and of parts of these runs.
fn contradictions(seed: u64) -> Vec<String> {
    let mut rng = Rng(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let volume = drawn(&mut rng);
    let mut known = Verdicts { of_known_type: true, ..Verdicts::default() };
    let mut unknown = Verdicts::default();
    let mut found = Vec::new();
    for record in runs(&volume, &mut rng) {
        for selection in 0..12 {
            let share = if selection == 0 { 1.0 } else { rng.between(0.1, 0.9) };
            let chosen: Vec<bool> = record.tests.iter().map(|_| rng.chance(share)).collect();
            let part = part(&record, &|at, _| chosen[at]);
            let tests: Vec<&str> = part.tests.iter().map(|test| test.id.as_str()).collect();
            let jobs = part.tests.iter().flat_map(|test| &test.jobs);
            let longest_ns = jobs.map(|job| job.measured.elapsed_ns()).max().unwrap_or(0);
            let context = format!("{} s of {tests:?}", longest_ns / 1_000_000_000);
            for (verdicts, part) in [(&mut known, part.clone()), (&mut unknown, of_unknown_type(&part))] {
                let all = Analysis::of(&part).conclusions().to_vec();
                found.extend(all.iter().filter_map(|one| verdicts.add(one, &context)));
            }
        }
    }
    found.iter().map(|text| format!("seed {seed} {}\n{text}", volume.target)).collect()
}

fn check(seeds: std::ops::Range<u64>) {
    let half = |part: u64| {
        let seeds = seeds.clone();
        std::thread::spawn(move || {
            seeds.skip(part as usize).step_by(2).flat_map(contradictions).collect::<Vec<_>>()
        })
    };
    let found: Vec<String> = [half(0), half(1)].into_iter().flat_map(|half| half.join().unwrap()).collect();
    assert!(found.is_empty(), "{} contradictions:\n{}", found.len(), found.join("\n"));
}

/// `FATHOM_VOLUMES=FROM..TO` names other volumes.
#[test]
fn runs_of_one_volume_never_contradict_each_other() {
    let volumes = std::env::var("FATHOM_VOLUMES").unwrap_or_else(|_| "0..3".to_owned());
    let (from, to) = volumes.split_once("..").unwrap();
    check(from.parse().unwrap()..to.parse().unwrap());
}
