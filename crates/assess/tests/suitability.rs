//! Suitability of simulated volumes: no two selections of tests contradict each other, and known volumes get their verdicts.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use fathom_analysis::conclusions::{Conclusion, Suitability, USES, conclusions};
use fathom_assess::{BenchPlan, BenchSettings, Effort, RunSettings, run};
use fathom_model::Nanos;
use fathom_record::RunRecord;

fn bench(target: &str, suite: &str, profiles: &str, (effort, seconds): (Effort, Option<u64>)) -> RunRecord {
    let settings = BenchSettings {
        run: RunSettings { target: target.into(), seed: Some(7), ..RunSettings::default() },
        suite: suite.to_owned(),
        profiles: profiles.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        effort,
        runtime: seconds.map(Nanos::from_secs),
        ..BenchSettings::default()
    };
    let plan = BenchPlan::make(settings).unwrap();
    run(&plan, &mut plan.session(), &mut ()).unwrap()
}

/// A run of only these tests of `record`.
fn only(record: &RunRecord, keep: &dyn Fn(usize, &str) -> bool) -> RunRecord {
    let mut part = record.clone();
    let mut at = 0;
    part.tests.retain(|test| {
        at += 1;
        keep(at - 1, &test.id)
    });
    part.findings = fathom_analysis::findings(&part);
    part
}

/// The standard suite and every profile of one volume, as one run.
fn everything(target: &str, seconds: u64) -> RunRecord {
    let time = (Effort::Quick, Some(seconds));
    let mut record = bench(target, "standard", "", time);
    record.tests.extend(bench(target, "", "all", time).tests);
    record
}

fn contradict(one: Suitability, other: Suitability) -> bool {
    one != other && one != Suitability::Inconclusive && other != Suitability::Inconclusive
}

/// Every use has at most one verdict over many selections of the tests of one volume.
fn contradictions(target: &str, seconds: u64, selections: u64) -> Vec<String> {
    let record = everything(target, seconds);
    let mut known: BTreeMap<&str, (Conclusion, u64)> = BTreeMap::new();
    let mut found = Vec::new();
    for selection in 0..selections {
        // All of them, each by itself, then by chance.
        let tests = record.tests.len() as u64;
        let chosen = |at: usize| match selection {
            0 => true,
            one if one <= tests => at as u64 == one - 1,
            many => mixed(many * 1009 + at as u64) % 100 < 10 + mixed(many) % 60,
        };
        let part = only(&record, &|at, _| chosen(at));
        let all = conclusions(&part);
        assert!(all.is_empty() || all.len() == USES.len(), "{target}");
        for conclusion in all {
            let tests = format!("{:?}", part.tests.iter().map(|test| &test.id).collect::<Vec<_>>());
            match known.get(conclusion.id) {
                Some((before, _)) if contradict(before.verdict, conclusion.verdict) => {
                    found.push(format!(
                        "{target}: {}: {:?} {}\n   but {:?} {}\n   of {tests}",
                        conclusion.id, before.verdict, before.reason, conclusion.verdict, conclusion.reason
                    ));
                }
                Some((before, _)) if before.verdict != Suitability::Inconclusive => {}
                _ => drop(known.insert(conclusion.id, (conclusion, selection))),
            }
        }
    }
    found
}

fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A volume without bursts, drawn from a seed.
fn drawn(seed: u64) -> String {
    let draw = |at: u64| mixed(seed * 64 + at + 1);
    let share = |at: u64| (draw(at) >> 11) as f64 / (1u64 << 53) as f64;
    let between = |at: u64, low: f64, high: f64| (low.ln() + share(at) * (high / low).ln()).exp() as u64;
    let mut parts = vec!["size=64GiB".to_owned()];
    let prefixes: &[&str] = if share(0) < 0.6 { &[""] } else { &["read_", "write_"] };
    for (at, prefix) in prefixes.iter().enumerate() {
        let at = 10 * at as u64;
        if share(at + 1) < 0.85 {
            parts.push(format!("{prefix}iops={}", between(at + 2, 60.0, 20_000.0)));
        }
        if share(at + 3) < 0.85 {
            parts.push(format!("{prefix}bandwidth={}", between(at + 4, 5e6, 1e9)));
        }
        parts.push(format!("{prefix}latency={}us", between(at + 5, 50.0, 30_000.0)));
    }
    if share(30) < 0.5 {
        parts.push("latency_spread=1".to_owned());
    }
    if share(31) < 0.4 {
        parts.push(format!("io_unit={}", 4096 << (draw(32) % 9)));
    }
    if share(33) < 0.3 {
        parts.push(format!("parallelism={}", between(34, 1.0, 65.0)));
    }
    format!("sim:custom?{}", parts.join("&"))
}

#[test]
fn selections_of_tests_never_contradict_each_other() {
    let (volumes, selections) = if cfg!(debug_assertions) { (6, 40) } else { (60, 200) };
    let half = |part: u64| {
        std::thread::spawn(move || {
            let seeds = (part..volumes).step_by(2);
            seeds.flat_map(|seed| contradictions(&drawn(seed), 10, selections)).collect::<Vec<_>>()
        })
    };
    let found: Vec<String> = [half(0), half(1)].into_iter().flat_map(|half| half.join().unwrap()).collect();
    assert!(found.is_empty(), "{} contradictions:\n{}", found.len(), found[..found.len().min(12)].join("\n"));
}

/// The verdicts of a run, and the reason where one differs.
fn check(target: &str, record: &RunRecord, expected: &[(&str, &str)]) {
    let all = conclusions(record);
    assert_eq!(all.len(), USES.len(), "{target}");
    let amiss: Vec<String> = expected
        .iter()
        .filter_map(|(id, verdict)| {
            let found = all.iter().find(|one| one.id == *id).unwrap();
            (found.verdict.name() != *verdict)
                .then(|| format!("{id}: {} {}, not {verdict}", found.verdict.name(), found.reason))
        })
        .collect();
    assert!(amiss.is_empty(), "{target}:\n{}", amiss.join("\n"));
}

#[test]
fn a_limit_is_judged_at_the_rate_that_a_use_needs() {
    let target = "sim:aws-gp3?size=100GiB";
    let suite = bench(target, "standard", "", (Effort::Default, None));
    let yes =
        ["oltp", "web-server", "virtual-machines", "file-server", "etcd", "postgresql", "streaming-read"];
    check(target, &suite, &yes.map(|id| (id, "yes")));
    // A deep queue alone says nothing of the latency at a lower rate.
    let deep = only(&suite, &|_, id| id == "rand-read");
    check(target, &deep, &[("web-server", "inconclusive"), ("oltp", "inconclusive")]);
    let both = only(&suite, &|_, id| ["rand-read", "lat-read"].contains(&id));
    check(target, &both, &[("web-server", "yes"), ("oltp", "inconclusive")]);
    for name in ["oltp", "virtual-machines", "postgresql", "backup"] {
        let profile = bench(target, "", name, (Effort::Quick, None));
        check(target, &profile, &[(name, "yes")]);
    }
}

#[test]
fn slow_volumes_get_a_no_from_a_quick_run() {
    let target = "sim:custom?iops=4000&bandwidth=200MB&read_latency=1ms&write_latency=30ms&size=100GiB";
    let quick = bench(target, "standard", "", (Effort::Quick, None));
    check(target, &quick, &[("database-log", "no"), ("etcd", "no"), ("web-server", "yes"), ("oltp", "no")]);
    let target = "sim:custom?iops=90&bandwidth=30MB&latency=1ms&size=100GiB";
    let quick = bench(target, "standard", "", (Effort::Quick, None));
    let none = ["oltp", "web-server", "virtual-machines", "streaming-read", "video", "elasticsearch"];
    check(target, &quick, &none.map(|id| (id, "no")));
}

#[test]
fn reads_and_writes_with_limits_of_their_own_share_the_time() {
    // 150 reads and 300 writes per second, 24 MiB/s of either.
    let suite = bench("sim:gcp-pd-standard?size=200GiB", "standard", "", (Effort::Default, None));
    let expected = [
        ("workstation", "marginal"),
        ("virtual-machines", "marginal"),
        ("streaming-read", "no"),
        ("streaming-write", "no"),
        ("postgresql", "no"),
    ];
    check("gcp-pd-standard", &suite, &expected);
}

#[test]
fn a_slow_volume_serves_virtual_machines_at_a_depth_of_its_own() {
    // At depth 64 each I/O waits for 91 ms, which is the queue's time and not the volume's.
    let target = "sim:custom?iops=700&bandwidth=100MB&latency=1ms&size=100GiB";
    let suite = bench(target, "standard", "", (Effort::Default, None));
    check(target, &suite, &[("virtual-machines", "yes"), ("oltp", "marginal")]);
}
