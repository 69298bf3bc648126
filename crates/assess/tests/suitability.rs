//! Suitability of simulated volumes: verdicts of single volumes, and of some of their tests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod benches;

use benches::{BenchTests, RunLength, bench, part};
use fathom_analysis::conclusions::{USES, conclusions};
use fathom_assess::Effort;
use fathom_record::RunRecord;

const QUICK: RunLength = (Effort::Quick, None);
const DEFAULT: RunLength = (Effort::Default, None);

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
    let suite = bench(target, BenchTests::Suite(&[]), DEFAULT);
    let yes =
        ["oltp", "web-server", "virtual-machines", "file-server", "etcd", "postgresql", "streaming-read"];
    check(target, &suite, &yes.map(|id| (id, "yes")));
    // A deep queue alone says nothing of the latency at a lower rate.
    let deep = part(&suite, &|_, id| id == "rand-read");
    check(target, &deep, &[("web-server", "inconclusive"), ("oltp", "inconclusive")]);
    let both = part(&suite, &|_, id| ["rand-read", "lat-read"].contains(&id));
    check(target, &both, &[("web-server", "yes"), ("oltp", "inconclusive")]);
    for name in ["oltp", "virtual-machines", "postgresql", "backup"] {
        let profile = bench(target, BenchTests::Profiles(&[name]), QUICK);
        check(target, &profile, &[(name, "yes")]);
    }
}

#[test]
fn slow_volumes_get_a_no_from_a_quick_run() {
    let target = "sim:custom?iops=4000&bandwidth=200MB&read_latency=1ms&write_latency=30ms&size=100GiB";
    let quick = bench(target, BenchTests::Suite(&[]), QUICK);
    check(target, &quick, &[("database-log", "no"), ("etcd", "no"), ("web-server", "yes"), ("oltp", "no")]);
    let target = "sim:custom?iops=90&bandwidth=30MB&latency=1ms&size=100GiB";
    let quick = bench(target, BenchTests::Suite(&[]), QUICK);
    let none = ["oltp", "web-server", "virtual-machines", "streaming-read", "video", "elasticsearch"];
    check(target, &quick, &none.map(|id| (id, "no")));
}

#[test]
fn reads_and_writes_with_limits_of_their_own_share_the_time() {
    // 150 reads and 300 writes per second, 24 MiB/s of either.
    let suite = bench("sim:gcp-pd-standard?size=200GiB", BenchTests::Suite(&[]), DEFAULT);
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
    let suite = bench(target, BenchTests::Suite(&[]), DEFAULT);
    check(target, &suite, &[("virtual-machines", "yes"), ("oltp", "marginal")]);
}
