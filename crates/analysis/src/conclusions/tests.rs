use fathom_model::plan::Mix;
use fathom_model::{BlockSize, PerOp};
use fathom_record::{BurstRate, Finding, FindingId, HostRecord, OwnRates, PublishedRates, RunRecord};

use super::*;
use crate::fixture::{self, TestLoad, record};

fn load(id: &'static str, rw: &'static str, (bs, depth): (u64, u32), iops: f64) -> TestLoad {
    TestLoad { id, rw, bs, depth, iops, ..TestLoad::default() }
}

fn of(run: &RunRecord, id: &str) -> Conclusion {
    let all = Analysis::of(run).conclusions().to_vec();
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
                "inconclusive: writes not measured (needs 112.5 MiB/s); run --profile streaming-write",
            ),
            ("etcd", "inconclusive: commits not measured (needs 50 IOPS at p99 <= 10.0 ms)"),
            ("oltp", "inconclusive: writes not measured (needs 1,000 IOPS at p99 <= 5.00 ms)"),
        ],
    );
    let mut other = record(&[one]);
    other.header.activity = fathom_record::Activity::Fio;
    assert_eq!(Analysis::of(&other).conclusions(), []);
    assert_eq!(Analysis::of(&record(&[])).conclusions(), []);
}

#[test]
fn what_would_decide_is_named() {
    let stream = |iops| load("seq-read", "read", (1 << 20, 32), iops);
    // 200 MiB/s of 209.8.
    let close = "inconclusive: 200 MiB/s at p99 160 ms, QD 32, for a small installation (needs 209.8 MiB/s at p99 <= 200 ms); \
                 the rate is too close to the need";
    check(&[stream(200.0)], &[("video", close)]);
    // Sequential writes show nothing of random ones.
    let loads = [load("rand-read", "randread", (4096, 1), 4000.0), load("bw", "write", (4096, 1), 4000.0)];
    check(&loads, &[("oltp", "inconclusive: random writes not measured (needs")]);
}

#[test]
fn latency_in_a_deep_queue_disproves_nothing_at_a_sufficient_rate() {
    let deep = load("rand-read", "randread", (4096, 64), 3000.0);
    check(std::slice::from_ref(&deep), &[("workstation", "inconclusive"), ("web-server", "inconclusive")]);
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
    // Nor at one that is less by no more than a limit may be measured wrong, or than its interval.
    check(
        &[TestLoad { iops: 480.0, ..deep.clone() }],
        &[("web-server", "inconclusive: p99 133 ms at 480 IOPS")],
    );
    let seconds = [vec![0.9; 3], vec![1.1; 3]].concat().repeat(2);
    check(
        &[TestLoad { iops: 470.0, seconds, ..deep }],
        &[("web-server", "inconclusive: p99 136 ms at 470 IOPS")],
    );
}

#[test]
fn a_shallower_queue_bounds_the_bandwidth_of_a_deeper_one() {
    // 32 I/Os outstanding give at most four times as much as 8.
    let reads = |iops| load("seq-read", "read", (1 << 20, 8), iops);
    check(&[reads(6.0)], &[("streaming-read", "no: 6 MiB/s, QD 8 (needs >= 38.1 MiB/s)")]);
    check(&[reads(10.0)], &[("streaming-read", "inconclusive: 10 MiB/s, QD 8 (needs >= 112.5 MiB/s)")]);
    check(&[reads(30.0)], &[("streaming-read", "inconclusive")]);
    // Smaller blocks: I/Os count, not bytes.
    let small = load("seq-jobs", "read", (128 << 10, 8), 20.0);
    check(&[small], &[("streaming-read", "inconclusive: 2.5 MiB/s, QD 8 (needs >= 112.5 MiB/s)")]);
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
        let rows = measured(&Analysis::of(&run));
        let purpose = Use::named("oltp").unwrap();
        let kind = ActivityKind::Bench;
        Case { purpose, rows: &rows, pauses: None, kind, ignores_doubt: false }
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
    let rows = measured(&Analysis::of(&run));
    let need = UseNeed { rate: NeededRate::Iops(100.0), ..purpose.full };
    let case = Case { purpose, rows: &rows, pauses: None, kind: ActivityKind::Bench, ignores_doubt: false };
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
        let mut run =
            record(&[TestLoad { seconds: vec![1.0; seconds], ..load("commit", "write", (4096, 1), iops) }]);
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
            assert!(one.reason.ends_with(&format!("; in doubt: {} ({})", doubt.reason, doubt.id)), "{one:?}");
        }
    }
}

#[test]
fn stolen_time_excuses_no_more_than_it_took() {
    let with = |(iops, sync_ns): (f64, u64), stolen: f64| {
        let mut run = commits(iops, sync_ns);
        run.header.hosts = vec![HostRecord { cpus_online: 2, ..HostRecord::default() }];
        let finding =
            Finding { id: FindingId::CpuSteal, tests: vec!["commit".to_owned()], ..Finding::default() };
        run.findings = vec![finding.with("steal_fraction", stolen)];
        of(&run, "etcd").verdict
    };
    // A small etcd needs 20 IOPS within 50 ms.
    let (slow, just_slow) = ((15.0, 65_000_000), (18.0, 55_000_000));
    assert_eq!((with(slow, 0.04), with(just_slow, 0.0)), (Suitability::No, Suitability::No));
    assert_eq!(with(just_slow, 0.04), Suitability::Inconclusive);
    assert_eq!(with(slow, 0.45), Suitability::Inconclusive);
    assert_eq!(with((900.0, 1_000_000), 0.45), Suitability::Yes);
}

#[test]
fn a_load_of_mixed_sizes_counts_as_its_shares_not_as_what_was_drawn() {
    let web_server = Use::named("web-server").unwrap();
    let with = |iops: f64, drawn: f64| {
        let mut run = record(&[load("web-server", "randread", (4096, 1), iops)]);
        let split = BlockSize::of_shares(web_server.blocks).unwrap();
        fixture::plan(&mut run, |plan| plan.io.block_size = PerOp::splat(split.clone()));
        let read = &mut run.tests[0].jobs[0].measured.read;
        read.bytes = (read.ios as f64 * web_server.mean_block() * drawn) as u64;
        of(&run, "web-server").verdict
    };
    assert_eq!(with(495.0, 1.0), Suitability::Yes);
    assert_eq!(with(495.0, 1.03), Suitability::Yes);
    assert_eq!(with(495.0, 0.97), Suitability::Inconclusive);
}

#[test]
fn a_mixed_load_of_which_one_operation_never_completed_shows_nothing() {
    let mut run = record(&[load("backup", "randread", (1 << 20, 32), 0.5)]);
    let no = of(&run, "web-server");
    fixture::plan(&mut run, |plan| plan.io.pattern.mix = Mix::ReadWrite { read_percent: 50 });
    assert_eq!((no.verdict, Analysis::of(&run).conclusions()), (Suitability::No, [].as_slice()));
}

#[test]
fn a_fixed_rate_shows_and_refutes_nothing() {
    // 20 I/Os a second of 64 in flight: too slow for a web server, unless the rate is the client's choice.
    let run = |is_paced: bool| {
        let mut run = record(&[load("reads", "randread", (4096, 64), 20.0)]);
        if is_paced {
            run.tests[0].jobs[0].plan.time.think_time.pause = fathom_model::Nanos::from_millis(1);
        }
        of(&run, "web-server").verdict
    };
    assert_eq!((run(false), run(true)), (Suitability::No, Suitability::Inconclusive));
}
