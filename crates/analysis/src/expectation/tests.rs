use fathom_model::Nanos;
use fathom_record::{
    BurstRate, CreditRecord, ExpectationConditions, ExpectationRecord, Finding, FindingId, HostRecord,
    OwnRates, PublishedRates, RunRecord, ShareRecord,
};

use crate::Analysis;
use crate::expectation::ExpectationResult;
use crate::fixture::{TestLoad, plan, record};

fn expectation(metric: &str, is: &str, value: f64, tolerance_percent: f64) -> ExpectationRecord {
    ExpectationRecord {
        test: "t".to_owned(),
        metric: metric.to_owned(),
        is: is.to_owned(),
        value,
        tolerance_percent,
        ..ExpectationRecord::default()
    }
}

/// With many in flight most of the latency is queueing delay, except for the first.
fn begin_without_queue(run: &mut RunRecord) {
    for job in run.tests.iter_mut().flat_map(|test| &mut test.jobs).filter(|job| job.iodepth() > 8) {
        job.measured.read.lat.moments.min = 100_000;
    }
}

fn judged(run: &mut RunRecord, expectation: ExpectationRecord) -> ExpectationResult {
    begin_without_queue(run);
    run.header.expectations = vec![expectation];
    Analysis::of(run).expectations()[0].clone()
}

/// The verdict on a expectation of a run at depth 64, and a part of the reason.
fn check(run: &mut RunRecord, expectation: ExpectationRecord, expected: &str, why: &str) {
    let judged = judged(run, expectation);
    assert_eq!(judged.verdict.name(), expected, "{judged:?}");
    assert!(because(&judged).contains(why), "{judged:?}\nand not {why}");
}

fn because(result: &ExpectationResult) -> &str {
    let reason = result.verdict.reason().map(|(reason, _)| reason);
    reason.or(result.lasting.as_deref()).or(result.basis.as_deref()).unwrap_or_default()
}

fn deep(iops: f64) -> TestLoad {
    TestLoad { depth: 64, iops, ..TestLoad::default() }
}

#[test]
fn three_verdicts_on_a_rate() {
    for (metric, is, value, tolerance, expected) in [
        ("iops", ">=", 5000.0, 5.0, "met"),
        ("read.iops", ">=", 4950.0, 0.0, "met"),
        // Twelve seconds leave a slice of a limiter, 0.8 %, at either side.
        ("read.iops", ">=", 5000.0, 0.0, "inconclusive"),
        ("iops", ">=", 4990.0, 0.0, "inconclusive"),
        ("iops", ">=", 5200.0, 5.0, "met"),
        ("iops", ">=", 5400.0, 5.0, "missed"),
        ("iops", ">", 5100.0, 0.0, "missed"),
        ("iops", ">", 5000.0, 1.0, "met"),
        ("iops", "<=", 4900.0, 5.0, "met"),
        ("iops", "<=", 4700.0, 5.0, "missed"),
        ("bytes_per_second", ">=", 20.2e6, 0.0, "met"),
        ("lat_ns.mean", "<", 13e6, 0.0, "met"),
        ("lat_ns.mean", "<", 12e6, 5.0, "missed"),
        ("lat_ns.p99", "<", 13e6, 0.0, "met"),
        ("lat_ns.p99", "<=", 10e6, 5.0, "missed"),
        ("lat_ns.max", "<", 13e6, 0.0, "met"),
        ("write.iops", ">=", 1.0, 5.0, "inconclusive"),
        ("sync.iops", ">=", 1.0, 5.0, "inconclusive"),
    ] {
        let judged = judged(&mut record(&[deep(5000.0)]), expectation(metric, is, value, tolerance));
        assert_eq!(judged.verdict.name(), expected, "{metric} {is} {value}: {judged:?}");
    }
}

#[test]
fn a_rate_that_fell_below_the_expectation_misses_it() {
    let fell = [vec![1.0; 60], vec![0.05; 60]].concat();
    let run = || record(&[TestLoad { seconds: fell.clone(), ..deep(3000.0) }]);
    check(&mut run(), expectation("iops", ">=", 3000.0, 5.0), "missed", "the rate fell to 150 after 60 s");
    check(&mut run(), expectation("iops", ">=", 1500.0, 5.0), "missed", "the rate fell to 150");
    check(&mut run(), expectation("iops", ">=", 100.0, 5.0), "met", "");
}

/// The mean over burst and remainder is 1,575, which no second had.
#[test]
fn value_interval_and_deviation_of_a_fallen_rate_are_those_of_what_remained() {
    let fell = [vec![1.0; 60], vec![0.05; 60]].concat();
    let run = &mut record(&[TestLoad { seconds: fell, ..deep(3000.0) }]);
    let found = judged(run, expectation("iops", ">=", 2000.0, 5.0));
    let interval = found.interval.unwrap();
    assert!(interval.low <= 150.0 && 150.0 <= interval.high && interval.high < 160.0, "{interval:?}");
    assert_eq!(found.measured.map(f64::round), Some(150.0));
    assert!(found.basis.as_ref().is_some_and(|basis| basis.contains("92 % below")), "{found:?}");
}

#[test]
fn verdicts_do_not_depend_on_the_unit_of_things() {
    let seconds: Vec<f64> = (0..20).map(|second| [0.97, 1.0, 1.02, 0.99, 1.02][second * 3 % 5]).collect();
    for share in [0.9, 0.99, 1.0, 1.02, 1.1] {
        let verdict = |scale: f64| {
            let run = &mut record(&[TestLoad { seconds: seconds.clone(), ..deep(1000.0 * scale) }]);
            judged(run, expectation("iops", ">=", 1000.0 * scale * share, 1.0)).verdict.name()
        };
        let all: Vec<&str> = [1.0, 3.0, 100.0].map(verdict).to_vec();
        assert!(all.iter().all(|one| *one == all[0]), "{share}: {all:?}");
    }
}

#[test]
fn what_straddles_the_bound_is_too_close() {
    let restless = TestLoad { seconds: [0.8, 1.2, 1.1, 0.9].repeat(5), ..deep(1000.0) };
    let run = &mut record(std::slice::from_ref(&restless));
    check(run, expectation("iops", ">=", 1000.0, 0.0), "inconclusive", "too close to call");
    assert!(
        Analysis::of(run).expectations()[0]
            .verdict
            .reason()
            .and_then(|(_, remedy)| remedy)
            .is_some_and(|remedy| remedy.contains("--runtime"))
    );
    check(run, expectation("iops", ">=", 800.0, 0.0), "met", "");
    check(run, expectation("iops", ">=", 1300.0, 0.0), "missed", "23 % below");
    // Each second was enough, whatever their mean.
    let fallen = TestLoad { seconds: [vec![3.0; 10], vec![1.0; 20]].concat(), ..deep(1000.0) };
    check(&mut record(&[fallen]), expectation("iops", ">=", 990.0, 0.0), "met", "");
    // As even as a limiter is, and nearer to the bound than one of its slices.
    let close = TestLoad { seconds: vec![1.0; 10], ..deep(1053.0) };
    check(&mut record(&[close]), expectation("iops", ">=", 1108.0, 5.0), "inconclusive", "includes 1,053");
}

#[test]
fn a_shortfall_is_judged_where_nothing_else_explains_it() {
    let wanted = || expectation("iops", ">=", 5000.0, 5.0);
    check(&mut record(&[deep(1000.0)]), wanted(), "missed", "80 % below");
    check(
        &mut record(&[TestLoad { seconds: vec![1.0; 2], ..deep(1000.0) }]),
        wanted(),
        "inconclusive",
        "too short",
    );
    // 1 ms each: five must be in flight, and two were.
    let shallow = TestLoad { depth: 2, iops: 2000.0, ..TestLoad::default() };
    check(
        &mut record(std::slice::from_ref(&shallow)),
        wanted(),
        "inconclusive",
        "needs queue depth 5; this test had 2",
    );
    let alone = TestLoad { id: "alone", iops: 8000.0, ..TestLoad::default() };
    check(
        &mut record(&[TestLoad { iops: 2000.0, ..shallow }, alone]),
        wanted(),
        "inconclusive",
        "needs queue depth",
    );
    let mut paced = record(&[deep(1000.0)]);
    plan(&mut paced, |plan| plan.time.think_time.pause = Nanos(1000));
    check(&mut paced, wanted(), "inconclusive", "settings of the test");
    let mut run = record(&[deep(1000.0)]);
    run.header.labels.insert("instance_iops".to_owned(), "3000".to_owned());
    check(&mut run, wanted(), "inconclusive", "lower: 3,000 IOPS");
    // What was reached needs no excuse.
    check(&mut run, expectation("iops", ">=", 1000.0, 5.0), "met", "");
    check(&mut RunRecord::default(), wanted(), "inconclusive", "did not run");
    check(
        &mut record(&[deep(1000.0)]),
        ExpectationRecord { cannot: Some("no rule".to_owned()), ..wanted() },
        "inconclusive",
        "no rule",
    );
}

#[test]
fn conditions_of_the_expectation_itself() {
    let with = |metric: &str, value: f64, conditions: ExpectationConditions| ExpectationRecord {
        conditions,
        ..expectation(metric, ">=", value, 5.0)
    };
    let blocks = |bytes: u64| ExpectationConditions {
        block_size_bytes: Some(bytes),
        ..ExpectationConditions::default()
    };
    let large = || record(&[TestLoad { bs: 32 << 10, ..deep(500.0) }]);
    check(
        &mut large(),
        with("iops", 1000.0, blocks(16 << 10)),
        "inconclusive",
        "up to 16k; this test issues 32k",
    );
    check(&mut large(), with("iops", 1000.0, blocks(32 << 10)), "missed", "50 %");
    check(&mut large(), with("bytes_per_second", 200e6, blocks(1 << 20)), "inconclusive", "at least 1m");
    check(
        &mut large(),
        with("bytes_per_second", 200e6, ExpectationConditions::default()),
        "inconclusive",
        "measure IOPS",
    );
    check(&mut large(), with("bytes_per_second", 200e6, blocks(32 << 10)), "missed", "below");
    let depth = ExpectationConditions { depth: Some(100.0), ..ExpectationConditions::default() };
    check(&mut large(), with("iops", 1000.0, depth), "inconclusive", "needs queue depth 100");
    let instance = || ExpectationConditions {
        instance: Some("m1.large".to_owned()),
        ..ExpectationConditions::default()
    };
    check(&mut large(), with("iops", 400.0, instance()), "inconclusive", "is unknown");
    for (label, verdict) in [("m1.large", "met"), ("m1.small", "inconclusive")] {
        let mut run = large();
        run.header.labels.insert("instance".to_owned(), label.to_owned());
        check(&mut run, with("iops", 400.0, instance()), verdict, "");
    }
    let limit = ExpectationConditions { instance_limit: Some(400.0), ..ExpectationConditions::default() };
    check(&mut large(), with("iops", 1000.0, limit.clone()), "inconclusive", "lower: 400 IOPS");
    // 500 IOPS are above the baseline of the machine, so its burst was the limit.
    for (most, expected) in [(2000.0, "missed"), (800.0, "inconclusive")] {
        let burst = ExpectationConditions { instance_maximum: Some(most), ..limit.clone() };
        check(&mut large(), with("iops", 1000.0, burst), expected, "");
    }
    // 31.25 MB/s are fewer I/Os of 32 KiB than expected.
    for (label, value, found) in [
        ("instance_bandwidth", "31.25MB", "lower: 954 IOPS"),
        ("instance_iops", "60", "lower: 60 IOPS"),
        ("instance_bandwidth", "2GB", ""),
    ] {
        let mut run = large();
        run.header.labels.insert(label.to_owned(), value.to_owned());
        let expected = if found.is_empty() { "missed" } else { "inconclusive" };
        check(&mut run, with("iops", 1200.0, ExpectationConditions::default()), expected, found);
    }
}

#[test]
fn findings_count_against_the_verdict_that_they_would_spoil() {
    let check = |id: &str, value: f64, expected: &str| {
        let mut run = record(&[deep(1000.0)]);
        run.findings =
            vec![Finding { id: id.to_owned().into(), tests: vec!["t".to_owned()], ..Finding::default() }];
        check(
            &mut run,
            expectation("iops", ">=", value, 5.0),
            expected,
            if expected == "inconclusive" { id } else { "" },
        );
        // Of another test it says nothing.
        run.findings[0].tests = vec!["other".to_owned()];
        assert_ne!(Analysis::of(&run).expectations()[0].verdict.name(), "inconclusive");
    };
    for doubt in crate::doubt::DOUBTS {
        let verdict = |is_in_doubt: bool, other| if is_in_doubt { "inconclusive" } else { other };
        check(doubt.id.name(), 500.0, verdict(doubt.effect.flatters(), "met"));
        check(doubt.id.name(), 5000.0, verdict(doubt.effect.impedes(), "missed"));
    }
    check("instance-cap", 500.0, "met");
    check("instance-cap", 5000.0, "inconclusive");
    check("queueing", 5000.0, "missed");
}

#[test]
fn influences_excuse_no_more_than_they_can_have_caused() {
    let check =
        |id: FindingId, (name, share): (&str, f64), expectation: ExpectationRecord, expected: &str| {
            let mut run = record(&[deep(1000.0)]);
            let tests = vec!["t".to_owned()];
            let found = Finding { id: id.clone(), tests, ..Finding::default() }.with(name, share);
            run.findings = vec![found];
            run.header.hosts = vec![HostRecord { cpus_online: 2, ..HostRecord::default() }];
            let judged = judged(&mut run, expectation);
            assert_eq!(judged.verdict.name(), expected, "{id} {share}: {judged:?}");
        };
    let rate = |value: f64| expectation("iops", ">=", value, 0.0);
    let foreign = |share: f64| ("impeding_fraction", share);
    for (share, wanted, expected) in [
        (0.03, 1100.0, "missed"),
        (0.03, 1030.0, "inconclusive"),
        (0.5, 1490.0, "inconclusive"),
        (0.5, 1600.0, "missed"),
        (0.5, 900.0, "met"),
    ] {
        check(FindingId::ForeignIo, foreign(share), rate(wanted), expected);
    }
    let times = |times: f64| ("times_slower", times);
    check(FindingId::FirstTouch, times(2.0), rate(1900.0), "inconclusive");
    check(FindingId::FirstTouch, times(2.0), rate(2100.0), "missed");
    // All of the 64 ms are queueing delay: a mean cannot be halved by a tenth of foreign I/O.
    let mean = |ns: f64| expectation("lat_ns.mean", "<=", ns, 0.0);
    check(FindingId::ForeignIo, foreign(0.1), mean(30e6), "missed");
    check(FindingId::ForeignIo, foreign(0.1), mean(60e6), "inconclusive");
    // Each of 64 in flight may have waited for one of so many foreign I/Os.
    let p99 = |ns: f64| expectation("lat_ns.p99", "<=", ns, 0.0);
    check(FindingId::ForeignIo, foreign(0.03), p99(5e6), "inconclusive");
    check(FindingId::ForeignIo, foreign(0.001), p99(5e6), "missed");
    // A twentieth of the time of two CPUs may all have been that of one.
    let stolen = |share: f64| ("steal_fraction", share);
    check(FindingId::CpuSteal, stolen(0.05), rate(1100.0), "inconclusive");
    check(FindingId::CpuSteal, stolen(0.05), rate(1130.0), "missed");
    check(FindingId::CpuSteal, stolen(0.05), mean(60e6), "inconclusive");
    check(FindingId::CpuSteal, stolen(0.05), mean(50e6), "missed");
    check(FindingId::CpuSteal, stolen(0.6), rate(5000.0), "inconclusive");
    check(FindingId::CpuSteal, stolen(0.05), p99(5e6), "inconclusive");
}

#[test]
fn a_share_of_the_time_is_counted_in_seconds() {
    let share = |fraction: f64, period_ns: Option<u64>| ExpectationRecord {
        share: Some(ShareRecord { fraction, period_ns }),
        ..expectation("iops", ">=", 1000.0, 10.0)
    };
    let run = |missed: usize, seconds: usize| {
        let rates = (0..seconds).map(|second| if second < missed { 0.5 } else { 0.95 });
        record(&[TestLoad { seconds: rates.collect(), ..deep(1000.0) }])
    };
    check(&mut run(0, 100), share(0.99, None), "met", "100 of 100 seconds");
    check(&mut run(20, 100), share(0.99, None), "missed", "80 of 100 seconds");
    check(&mut run(0, 100), share(0.999, None), "inconclusive", "needs 1,000 s");
    check(
        &mut run(20, 100),
        share(0.99, Some(crate::expectation::share::YEAR_NS)),
        "inconclusive",
        "of a year",
    );
    assert_eq!(Analysis::of(&run(0, 100)).expectations().len(), 0);
    // An expectation of a share that is not judged has no rate for its figure.
    let elsewhere =
        ExpectationConditions { instance: Some("m1.large".to_owned()), ..ExpectationConditions::default() };
    let unjudged = judged(&mut run(0, 100), ExpectationRecord { conditions: elsewhere, ..share(0.99, None) });
    assert_eq!((unjudged.verdict.name(), unjudged.measured), ("inconclusive", None));
}

#[test]
fn a_burst_is_judged_while_its_credit_lasts() {
    let of = |full: f64, is_rested: bool| ExpectationRecord {
        conditions: ExpectationConditions {
            credit: Some(CreditRecord {
                base: 100.0,
                burst: 1000.0,
                full,
                is_rested,
                ..CreditRecord::default()
            }),
            ..ExpectationConditions::default()
        },
        ..expectation("iops", ">=", 1000.0, 5.0)
    };
    let run = |high: usize, low: usize| {
        record(&[TestLoad { seconds: [vec![1.0; high], vec![0.1; low]].concat(), ..deep(1000.0) }])
    };
    check(&mut run(20, 0), of(9_000.0, false), "met", "");
    check(&mut run(10, 20), of(9_000.0, false), "inconclusive", "unknown");
    check(&mut run(10, 20), of(9_000.0, true), "met", "");
    check(&mut run(1, 29), of(9_000.0, true), "missed", "below");
    check(&mut run(0, 30), of(1_000.0, true), "inconclusive", "exhausted");
    // What the test before it used is gone: 900 of the credit a second.
    let before = TestLoad { id: "before", seconds: vec![1.0; 8], ..deep(1000.0) };
    let mut both = run(0, 30);
    both.tests.insert(0, record(&[before]).tests.remove(0));
    check(&mut both, of(9_000.0, true), "inconclusive", "exhausted");
    check(&mut both, of(27_000.0, true), "missed", "below");
}

#[test]
fn a_rate_that_a_known_rule_ends_misses_what_has_to_last() {
    let own = OwnRates {
        volume: "some-type".to_owned(),
        sustained_iops: Some(150.0),
        burst: Some(BurstRate { iops: 3000.0, lasts_ns: Some(60_000_000_000), refill_ns: None }),
        ..OwnRates::default()
    };
    let mut run = record(&[deep(3000.0)]);
    run.tests[0].published = Some(PublishedRates { own: Some(own), ..PublishedRates::default() });
    let of = |metric: &str, value: f64, sustained: bool| ExpectationRecord {
        conditions: ExpectationConditions { sustained, ..ExpectationConditions::default() },
        ..expectation(metric, ">=", value, 5.0)
    };
    let then = "burst for 1 min from full credits, then 150 IOPS (some-type)";
    check(&mut run, of("iops", 3000.0, true), "missed", then);
    check(&mut run, of("iops", 3000.0, false), "met", then);
    check(&mut run, of("iops", 150.0, true), "met", "");
    // 150 I/Os of 4 KiB.
    check(&mut run, of("bytes_per_second", 12e6, true), "missed", "then 0.6 MB/s");
    run.tests[0].published = None;
    check(&mut run, of("iops", 3000.0, true), "met", "");
}

#[test]
fn classes_are_alternatives() {
    let run = |expectations: &[(&str, f64)]| {
        let mut run = record(&[deep(5000.0)]);
        let of = |&(class, value): &(&str, f64)| ExpectationRecord {
            class: class.to_owned(),
            ..expectation("iops", ">=", value, 2.0)
        };
        begin_without_queue(&mut run);
        run.header.expectations = expectations.iter().map(of).collect();
        Analysis::of(&run).is_missed()
    };
    for (expectations, missed) in [
        (&[][..], false),
        (&[("", 5000.0)], false),
        (&[("", 6000.0)], true),
        (&[("standard", 5000.0), ("high-cpu", 6000.0)], false),
        (&[("standard", 5500.0), ("high-cpu", 6000.0)], true),
        (&[("high-cpu", 6000.0)], true),
        (&[("standard", 5000.0), ("high-cpu", 6000.0), ("", 6000.0)], true),
    ] {
        assert_eq!(run(expectations), missed, "{expectations:?}");
    }
}
