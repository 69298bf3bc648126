//! A volume whose burst credits end within a run or between its tests: the burst is no limit, and no use rests on it.

use fathom_analysis::Analysis;
use fathom_analysis::conclusions::Suitability;
use fathom_assess::{BenchPlan, BenchSettings, BenchTarget, Effort, RunSettings, run};
use fathom_record::{Finding, FindingId, RunRecord};
use fathom_volume::{Cache, Limit, LimitStage, TokenRate, VolumeLatency, VolumeModel};

/// A volume of 300 µs that nobody has published, behind this limit of I/Os or of bytes.
fn volume(ios: Option<Limit>, bytes: Option<Limit>) -> VolumeModel {
    VolumeModel {
        parallelism: Some(64),
        read_latency: VolumeLatency::fixed(300_000),
        write_latency: VolumeLatency::fixed(300_000),
        sync_latency: VolumeLatency::fixed(100_000),
        shared: vec![LimitStage { ios, bytes, ..LimitStage::default() }],
        ..VolumeModel::unlimited(64 << 30)
    }
}

fn bucket(burst: u64, base: u64, capacity: u64) -> Option<Limit> {
    let rate = |tokens| TokenRate::per_second(tokens).unwrap();
    Some(Limit::Credit { base: rate(base), burst: Some(rate(burst)), capacity, initial: capacity })
}

fn measured(model: VolumeModel, effort: Effort, only: &[&str]) -> RunRecord {
    let settings = BenchSettings {
        run: RunSettings { seed: Some(1), ..RunSettings::default() },
        suite: "standard".to_owned(),
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        effort,
        ..BenchSettings::default()
    };
    let plan = BenchPlan::on(vec![BenchTarget::simulated("unknown", model)], settings).unwrap();
    run(&plan, &mut plan.session(), &mut ()).unwrap()
}

fn number(found: &Finding, name: &str) -> f64 {
    found.evidence.get(name).and_then(|value| value.as_f64()).unwrap_or_else(|| panic!("{name}: {found:#?}"))
}

fn of<'a>(record: &'a RunRecord, id: &FindingId) -> Vec<&'a Finding> {
    record.findings.iter().filter(|found| found.id == *id).collect()
}

fn oltp(record: &RunRecord) -> Suitability {
    let all = Analysis::of(record).conclusions().to_vec();
    all.iter().find(|one| one.id == "oltp").unwrap().verdict
}

/// No limit and no advice rests on the rate of the burst.
fn rests_on_what_is_left(record: &RunRecord, burst: f64, context: &str) {
    for id in [FindingId::IopsCap, FindingId::UnknownLimit] {
        for found in of(record, &id) {
            assert!(number(found, "iops") < burst * 0.9, "{context}: {found:#?}");
        }
    }
    let advice = [FindingId::QueueTooShallow, FindingId::NotSaturated, FindingId::Knee];
    assert!(advice.iter().all(|id| of(record, id).is_empty()), "{context}: {:#?}", record.findings);
}

#[test]
fn credits_that_end_anywhere_in_a_run_are_named_with_both_rates() {
    for (burst, base, effort) in [
        (3153, 1000, Effort::Quick),
        (2500, 100, Effort::Quick),
        (3153, 1000, Effort::Default),
        (4170, 310, Effort::Default),
    ] {
        // From a fall in the first test that exceeds the baseline to one near the end of the run.
        let length_s = if effort == Effort::Quick { 4 } else { 14 };
        for tests in [3, 9, 16, 18] {
            let capacity = (burst - base) * length_s * tests / 2 + 700;
            let record = measured(volume(bucket(burst, base, capacity), None), effort, &[]);
            let context = format!("{burst} to {base}, {capacity} credits");
            let found = of(&record, &FindingId::BurstSuspected);
            let [found] = found.as_slice() else { panic!("{context}: {:#?}", record.findings) };
            assert!(
                (number(found, "baseline_iops") / base as f64 - 1.0).abs() < 0.03,
                "{context}: {found:#?}"
            );
            // One at a time are 3,333.
            let reached = number(found, "burst_iops");
            assert!(
                reached > 3150.0_f64.min(burst as f64 * 0.95) && reached < burst as f64 * 1.05,
                "{context}: {found:#?}"
            );
            rests_on_what_is_left(&record, burst as f64, &context);
            assert_eq!(of(&record, &FindingId::NotSteady), Vec::<&Finding>::new(), "{context}");
            // 1,000 IOPS are enough.
            let expected = if base < 1000 {
                [Suitability::No, Suitability::Marginal]
            } else {
                [Suitability::Yes, Suitability::Inconclusive]
            };
            let verdict = oltp(&record);
            assert!(expected.contains(&verdict), "{context}: {verdict:?}");
        }
    }
}

#[test]
fn a_bucket_of_bytes_is_named_in_bytes() {
    let mib = 1 << 20;
    let model = volume(None, bucket(90 * mib, 20 * mib, 70 * mib * 14 * 5));
    let record = measured(model, Effort::Default, &[]);
    let found = of(&record, &FindingId::BurstSuspected);
    let [found] = found.as_slice() else { panic!("{:#?}", record.findings) };
    assert!(
        (number(found, "baseline_bytes_per_second") / (20 * mib) as f64 - 1.0).abs() < 0.03,
        "{found:#?}"
    );
    for cap in of(&record, &FindingId::BandwidthCap) {
        assert!(number(cap, "bytes_per_second") < (30 * mib) as f64, "{cap:#?}");
    }
}

#[test]
fn limits_that_stay_are_no_fall() {
    let rate = |tokens| Some(Limit::Rate(TokenRate::per_second(tokens).unwrap()));
    let mib = 1 << 20;
    let stage = |ios, bytes| LimitStage { ios, bytes, ..LimitStage::default() };
    let models = [
        volume(rate(1000), None),
        volume(None, rate(40 * mib)),
        volume(rate(3000), rate(125 * mib)),
        VolumeModel {
            reads: vec![stage(rate(4000), rate(200 * mib))],
            writes: vec![stage(rate(900), rate(50 * mib))],
            ..volume(None, None)
        },
        VolumeModel { shared: Vec::new(), parallelism: Some(2), ..volume(None, None) },
    ];
    for (at, model) in models.into_iter().enumerate() {
        let record = measured(model, Effort::Quick, &[]);
        assert_eq!(of(&record, &FindingId::BurstSuspected), Vec::<&Finding>::new(), "{at}");
        // At most one test is measured again, and only if directions differ.
        assert!(record.tests.len() <= if at == 3 { 11 } else { 10 }, "{at}: {}", record.tests.len());
    }
}

/// A cache of `cache` bytes in front of a medium that writes `rate` bytes per second.
fn behind_cache(cache: u64, rate: u64) -> VolumeModel {
    let stage = |rate| LimitStage {
        bytes: Some(Limit::Rate(TokenRate::per_second(rate).unwrap())),
        ..LimitStage::default()
    };
    let cache = Cache {
        dirty_bytes: cache,
        write_latency_ns: 100_000,
        writes: Some(stage(400 << 20)),
        ..Cache::read_only(cache, 300_000)
    };
    VolumeModel { cache: Some(cache), writes: vec![stage(rate)], ..volume(None, None) }
}

#[test]
fn a_write_cache_that_fills_is_named_with_its_size() {
    let mib = 1 << 20;
    for (size, rate, effort) in [
        (200 * mib, 10 * mib, Effort::Quick),
        (1024 * mib, 31 * mib, Effort::Default),
        (57 * mib, 6 * mib, Effort::Quick),
        (310 * mib, 38 * mib, Effort::Default),
    ] {
        let record = measured(behind_cache(size, rate), effort, &[]);
        let context = format!("{size} at {rate}");
        let found = of(&record, &FindingId::WriteCache);
        let [found] = found.as_slice() else { panic!("{context}: {:#?}", record.findings) };
        let (low, high) = (number(found, "capacity_bytes_low"), number(found, "capacity_bytes_high"));
        assert!((low..=high).contains(&(size as f64)) && high < 1.2 * low, "{context}: {found:#?}");
        assert!(
            (number(found, "bytes_per_second") / rate as f64 - 1.0).abs() < 0.03,
            "{context}: {found:#?}"
        );
        assert_eq!(of(&record, &FindingId::BurstSuspected), Vec::<&Finding>::new(), "{context}");
        for cap in of(&record, &FindingId::BandwidthCap) {
            let bytes = number(cap, "bytes_per_second");
            assert!(
                cap.evidence["direction"] != "write" || bytes < rate as f64 * 1.05,
                "{context}: {cap:#?}"
            );
        }
    }
}

#[test]
fn a_write_cache_that_does_not_fill_has_no_size() {
    let record = measured(behind_cache(40 << 30, 50 << 20), Effort::Quick, &[]);
    let found = of(&record, &FindingId::WriteCache);
    let [found] = found.as_slice() else { panic!("{:#?}", record.findings) };
    assert!(
        !found.evidence.contains_key("capacity_bytes") && number(found, "capacity_bytes_low") > 1e8,
        "{found:#?}"
    );
    assert!((number(found, "bytes_per_second") / f64::from(50 << 20) - 1.0).abs() < 0.05, "{found:#?}");
}

#[test]
fn a_bucket_of_writes_alone_is_no_cache() {
    let model = VolumeModel {
        shared: Vec::new(),
        writes: vec![LimitStage { ios: bucket(2600, 200, 2400 * 30), ..LimitStage::default() }],
        ..volume(None, None)
    };
    let record = measured(model, Effort::Default, &[]);
    assert_eq!(of(&record, &FindingId::WriteCache), Vec::<&Finding>::new());
    let found = of(&record, &FindingId::BurstSuspected);
    let [found] = found.as_slice() else { panic!("{:#?}", record.findings) };
    assert!((number(found, "baseline_iops") / 200.0 - 1.0).abs() < 0.03, "{found:#?}");
}

#[test]
fn a_step_before_the_rounds_that_count_is_named() {
    let settings = BenchSettings {
        run: RunSettings { seed: Some(1), ..RunSettings::default() },
        suite: "standard".to_owned(),
        only: vec!["rand-read".to_owned()],
        until_steady: true,
        ..BenchSettings::default()
    };
    let steady = |capacity| {
        let model = volume(bucket(2000, 500, capacity), None);
        let plan = BenchPlan::on(vec![BenchTarget::simulated("unknown", model)], settings.clone()).unwrap();
        run(&plan, &mut plan.session(), &mut ()).unwrap()
    };
    // Credits for 100 s: the second round is a mean.
    let record = steady(1500 * 100);
    let found = of(&record, &FindingId::BurstSuspected);
    let [found] = found.as_slice() else { panic!("{:#?}", record.findings) };
    assert!((number(found, "burst_iops") / 2000.0 - 1.0).abs() < 0.02, "{found:#?}");
    assert!((number(found, "baseline_iops") / 500.0 - 1.0).abs() < 0.02, "{found:#?}");
    assert!(found.claim.contains("in round 2, before the 5 rounds that count"), "{}", found.claim);
    assert_eq!(of(&steady(1), &FindingId::BurstSuspected), Vec::<&Finding>::new());
}
