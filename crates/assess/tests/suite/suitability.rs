//! Suitability of simulated volumes: verdicts of single volumes, and of some of their tests.

use fathom_analysis::Analysis;
use fathom_analysis::conclusions::{Suitability, USES};
use fathom_assess::Effort;
use fathom_model::Nanos;
use fathom_record::RunRecord;

use crate::benches::{BenchTests, RunLength, bench, part};

const QUICK: RunLength = (Effort::Quick, None);
const DEFAULT: RunLength = (Effort::Default, None);

/// The verdicts of a run, and the reason where one differs.
fn check(target: &str, record: &RunRecord, expected: &[(&str, &str)]) {
    let all = Analysis::of(record).conclusions().to_vec();
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

/// A run that is longer than the burst has the answers of a short one: what holds before the rate fell, and what remains.
#[test]
fn a_run_that_outlasts_the_burst_has_both_answers() {
    let target = "sim:custom?iops=150&burst_iops=3000&bucket_ios=57000&latency=500us&size=100GiB";
    for seconds in [10, 30, 60, 200] {
        let length = (Effort::Quick, Some(Nanos::from_millis(seconds * 1000)));
        for (name, expected) in [
            ("oltp", "yes for 20 s, then no (150 IOPS)"),
            ("postgresql", "yes for 20 s, then no (150 IOPS)"),
            ("workstation", "yes for 20 s, then marginal (150 IOPS)"),
        ] {
            let record = bench(target, BenchTests::Profiles(&[name]), length);
            let all = Analysis::of(&record).conclusions().to_vec();
            let found = all.iter().find(|one| one.id == name).unwrap();
            assert_eq!(found.verdict_text(), expected, "{name}, {seconds} s: {found:?}");
            let told: Vec<&str> = record.findings.iter().map(|found| found.claim.as_str()).collect();
            let is_told = |claim: &&str| claim.contains("a burst lasts 20 s");
            assert_eq!(told.iter().any(is_told), seconds > 20, "{name}, {seconds} s: {told:#?}");
        }
    }
}

/// A verdict on large I/Os rests on the test of large I/Os too, and lasts no longer than that.
#[test]
fn a_computed_rate_lasts_as_long_as_every_test_that_it_rests_on() {
    let target =
        "sim:custom?iops=3000&bandwidth=50MiB&burst_bandwidth=200MiB&bucket_bytes=10GiB&latency=500us";
    let record = bench(target, BenchTests::Suite(&[]), DEFAULT);
    let all = Analysis::of(&record).conclusions().to_vec();
    let text = |id: &str| {
        let one = all.iter().find(|one| one.id == id).unwrap();
        format!("{}: {}", one.verdict_text(), one.reason)
    };
    let lasts = "yes for 1 min 08 s, then marginal (50 MiB/s): ";
    assert!(text("streaming-read").starts_with(lasts), "{}", text("streaming-read"));
    let backup = text("backup");
    assert!(backup.starts_with(lasts) && backup.contains("(computed from "), "{backup}");
    // Small I/Os have no credits.
    assert!(text("workstation").starts_with("yes: "), "{}", text("workstation"));
}

/// What holds after a burst holds during it.
#[test]
fn a_burst_is_no_worse_than_what_remains() {
    let target = "sim:do-volume-standard?size=100GiB";
    let length = (Effort::Quick, Some(Nanos::from_millis(200_000)));
    let record =
        bench(target, BenchTests::Suite(&["rand-read", "rand-mixed", "lat-read", "lat-write"]), length);
    for one in Analysis::of(&record).conclusions() {
        let is_worse = one.sustained == Suitability::Yes && one.verdict != Suitability::Yes;
        assert!(!is_worse, "{}: {}", one.purpose, one.verdict_text());
    }
}
