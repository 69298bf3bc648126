//! Twins of simulated volumes, whose truth is known: they have the rates of the volume and its distribution of latencies.

use std::path::Path;

use fathom_analysis::identify::script::identified_of;
use fathom_analysis::twin::agreement::{LoadAgreement, TwinAgreement};
use fathom_analysis::twin::{Twin, TwinOp};
use fathom_assess::identify::{IdentifyPlan, IdentifySettings, identify};
use fathom_assess::{
    BenchPlan, BenchSettings, BenchTarget, Effort, RunSettings, VolumeTypes, twin_differences,
};
use fathom_model::Nanos;
use fathom_record::{Latency, RunRecord};
use fathom_volume::{
    Accounting, Distribution, Limit, LimitStage, Quantile, TokenRate, VolumeLatency, VolumeModel,
};

fn identified(target: &str, minutes: u64, read_only: bool) -> RunRecord {
    let volume = BenchTarget::inspect(Path::new(target), &[], &VolumeTypes::default());
    identified_on(target, volume.expect("it can be simulated"), minutes, read_only)
}

fn identified_on(name: &str, target: BenchTarget, minutes: u64, read_only: bool) -> RunRecord {
    let settings = IdentifySettings {
        run: RunSettings { target: name.into(), seed: Some(1), ..RunSettings::default() },
        budget: Some(Nanos::from_secs(60 * minutes)),
        read_only,
        measures_latencies: true,
    };
    let plan = IdentifyPlan::on(target, settings).expect("it can be simulated");
    identify(&plan, &mut plan.site.session(), &mut ()).expect("it can be simulated").0
}

fn checked(target: BenchTarget) -> RunRecord {
    checked_with(target, Effort::Default, &[])
}

fn checked_with(target: BenchTarget, effort: Effort, only: &[&str]) -> RunRecord {
    let settings = BenchSettings {
        run: RunSettings { target: "volume".into(), seed: Some(7), ..RunSettings::default() },
        suite: "twin-check".to_owned(),
        effort,
        only: only.iter().map(|id| (*id).to_owned()).collect(),
        ..BenchSettings::default()
    };
    let plan = BenchPlan::on(vec![target], settings).expect("it can be simulated");
    fathom_assess::run(&plan, &mut plan.session(), &mut ()).expect("it can be simulated")
}

fn agreement(target: &str, twin: &Twin) -> TwinAgreement {
    // What is drawn at random is not the same as in the identification.
    let volume = BenchTarget::inspect(Path::new(&format!("{target}&seed=9")), &[], &VolumeTypes::default());
    let twin = BenchTarget::simulated("twin", twin.model().expect("it can be simulated"));
    TwinAgreement::of(&checked(volume.expect("it can be simulated")), &checked(twin))
}

#[test]
fn a_twin_has_the_rates_and_latencies_of_its_volume() {
    for limits in [
        "iops=1000&bandwidth=50MiB&latency=300us",
        "iops=3000&bandwidth=100MiB&latency=800us",
        "shared=0&read_iops=2200&write_iops=600&bandwidth=30MiB&latency=500us",
        "bandwidth=9MiB&latency=200us",
        "iops=240&io_unit=16KiB&latency=2ms",
        // No limit at all: the medium serves four at once.
        "latency=1ms&parallelism=4",
    ] {
        let target = format!("sim:custom?{limits}&latency_spread=1&size=10GiB");
        let record = identified(&target, 10, false);
        let twin = Twin::of(&record).unwrap();
        // Every size and depth is there, and nothing was left out.
        let tables = |op: TwinOp| twin.latencies.iter().filter(|one| one.op == op).count();
        assert!(tables(TwinOp::Read) >= 13 && tables(TwinOp::Write) >= 13, "{target}: {:#?}", twin.notes);
        assert!(
            !twin.notes.iter().any(|note| note.contains("not known") && !note.contains("1m")),
            "{target}: {:#?}",
            twin.notes
        );
        let found = agreement(&target, &twin);
        let is_apart = |load: &&LoadAgreement| load.agrees != Some(true);
        let apart: Vec<_> = found.loads.iter().filter(is_apart).collect();
        assert!(found.loads.len() == 6 && apart.is_empty(), "{target}: {apart:#?}");
        // Its file is all of it.
        let text = serde_json::to_string(&twin).unwrap();
        assert_eq!(serde_json::from_str::<Twin>(&text).unwrap(), twin);
        // Its latencies are no measurements of the identification.
        let found = identified_of(&record).unwrap();
        assert_eq!(found.bursts, [], "{target}");
    }
}

#[test]
fn burst_credits_of_a_twin_last_as_long() {
    let target = "sim:custom?iops=300&burst_iops=3000&bucket_ios=54000&latency=500us&size=10GiB";
    let twin = Twin::of(&identified(target, 10, true)).unwrap();
    let burst = twin.limits[0].iops.unwrap().burst.unwrap();
    assert_eq!(burst.rate.map(|rate| rate / 100), Some(30), "{burst:?}");
    assert!(!twin.notes.iter().any(|note| note.contains("not known")), "{:#?}", twin.notes);
    assert!((burst.capacity as f64 / 54_000.0 - 1.0).abs() < 0.03, "{burst:?}");
    let counts = |target: BenchTarget| -> Vec<u64> {
        let settings = BenchSettings {
            run: RunSettings { target: "volume".into(), seed: Some(7), ..RunSettings::default() },
            suite: "twin-check".to_owned(),
            only: vec!["read-d64".to_owned()],
            runtime: Some(Nanos::from_secs(60)),
            ..BenchSettings::default()
        };
        let plan = BenchPlan::on(vec![target], settings).unwrap();
        let record = fathom_assess::run(&plan, &mut plan.session(), &mut ()).unwrap();
        record.tests.iter().map(|test| test.jobs[0].measured.read.ios).collect()
    };
    let volume = BenchTarget::inspect(Path::new(target), &[], &VolumeTypes::default()).unwrap();
    let (real, model) =
        (counts(volume)[0] as f64, counts(BenchTarget::simulated("twin", twin.model().unwrap()))[0] as f64);
    // The burst of 20 s ends within the run, then 300 IOPS remain.
    assert!((model / real - 1.0).abs() < 0.03, "{model} of {real}");
}

#[test]
fn what_was_not_measured_is_a_note() {
    let twin = Twin::of(&identified("sim:custom?iops=500&latency=1ms&size=1GiB", 5, true)).unwrap();
    assert!(twin.notes.iter().any(|note| note.starts_with("writes were not measured")), "{:?}", twin.notes);
    let model = twin.model().unwrap();
    assert_eq!(model.shared.len(), 1, "writes draw on the limits of reads");
    let mut run = identified("sim:custom?iops=500&latency=1ms&size=1GiB", 5, true);
    let test = run.tests.iter_mut().find(|test| test.id == "twin-read-4k-d1").expect("it was measured");
    let measured = &mut test.jobs[0].measured;
    measured.cpu.run_queue_wait_ns = measured.elapsed_ns() / 5;
    let twin = Twin::of(&run).unwrap();
    assert!(
        twin.notes.iter().any(|note| note.contains("waited for a CPU for up to 20 %")),
        "{:?}",
        twin.notes
    );
    run.tests.retain(|test| !test.id.starts_with("twin-"));
    assert_eq!(Twin::of(&run), Err("no unloaded latency was measured".to_owned()));
}

/// `fixed` us, beside which so many take a time that is distributed exponentially; a share of a million takes `tail` us more.
fn jittered(fixed: f64, exponential: f64, (per_million, tail): (u32, f64)) -> VolumeLatency {
    let slow_from = 1_000_000 - per_million;
    let parts = (0..100).map(|part| part * 10_000).chain((991..1000).map(|part| part * 1000));
    let parts = parts.chain((1..10).map(|part| 999_000 + part * 100)).filter(|part| *part < slow_from);
    let at = |part: u32, more: f64| Quantile {
        per_million: part,
        ns: ((fixed - exponential * (1.0 - f64::from(part) / 1_000_001.0).ln() + more) * 1000.0) as u64,
    };
    let mut quantiles: Vec<Quantile> = parts.map(|part| at(part, 0.0)).collect();
    quantiles.push(at(slow_from, 0.0));
    if per_million > 0 {
        quantiles.extend([at(slow_from + 1, tail), at(1_000_000, tail)]);
    }
    VolumeLatency { distribution: Distribution::Quantiles(quantiles), transfer: None }
}

fn rate(per_second: u64) -> Limit {
    Limit::Rate(TokenRate::per_second(per_second).expect("it is a rate"))
}

fn stage(ios: Option<Limit>, bytes: Option<Limit>) -> Vec<LimitStage> {
    vec![LimitStage { ios, bytes, ..LimitStage::default() }]
}

/// Ten volumes over all mechanisms, whose latencies vary.
fn mechanisms() -> [(&'static str, VolumeModel); 10] {
    const NO_TAIL: (u32, f64) = (0, 0.0);
    let base = |latency: VolumeLatency| VolumeModel {
        write_latency: latency.clone(),
        sync_latency: latency.clone(),
        read_latency: latency,
        ..VolumeModel::unlimited(1 << 30)
    };
    let limited =
        |latency: VolumeLatency, stages: Vec<LimitStage>| VolumeModel { shared: stages, ..base(latency) };
    let even = jittered(310.0, 90.0, NO_TAIL);
    let credit = Limit::Credit {
        base: TokenRate::per_second(313).expect("it is a rate"),
        burst: TokenRate::per_second(3153),
        capacity: 61_700,
        initial: 61_700,
    };
    let mut units = stage(Some(rate(943)), None);
    units[0].accounting = Accounting { unit_bytes: Some(16_384), ..Accounting::default() };
    [
        (
            "QD 1 is nearly held by its limit",
            limited(jittered(250.0, 250.0, NO_TAIL), stage(Some(rate(1213)), None)),
        ),
        ("servers", VolumeModel { parallelism: Some(6), ..base(jittered(170.0, 530.0, NO_TAIL)) }),
        (
            "servers and a limit",
            VolumeModel {
                parallelism: Some(4),
                ..limited(jittered(350.0, 350.0, NO_TAIL), stage(Some(rate(3719)), None))
            },
        ),
        ("tail", base(jittered(290.0, 110.0, (2_300, 37_000.0)))),
        (
            "tail and a limit",
            limited(jittered(380.0, 60.0, (3_100, 23_000.0)), stage(Some(rate(2311)), None)),
        ),
        ("bytes", limited(jittered(700.0, 200.0, NO_TAIL), stage(None, Some(rate(17_300_000))))),
        ("both", limited(even.clone(), stage(Some(rate(1733)), Some(rate(31_100_000))))),
        (
            "apart",
            VolumeModel {
                reads: stage(Some(rate(2917)), None),
                writes: stage(Some(rate(613)), None),
                ..base(even.clone())
            },
        ),
        ("bucket", limited(even.clone(), stage(Some(credit), None))),
        ("units", limited(even, units)),
    ]
}

#[test]
fn rates_and_slow_percentiles_of_a_twin_are_those_of_any_mechanism() {
    for (name, model) in mechanisms() {
        let record = identified_on("volume", BenchTarget::simulated("volume", model.clone()), 10, false);
        let twin = Twin::of(&record).unwrap_or_else(|reason| panic!("{name}: {reason}"));
        // Slow requests that are rare take many to have a mean.
        let (effort, only) = match name.starts_with("tail") {
            true => (Effort::Thorough, &["read-d1", "write-d1"][..]),
            false => (Effort::Default, &[][..]),
        };
        let on = |model: VolumeModel| checked_with(BenchTarget::simulated("volume", model), effort, only);
        let found = TwinAgreement::of(&on(model), &on(twin.model().expect("it can be simulated")));
        assert_eq!(found.loads.len(), if only.is_empty() { 6 } else { 2 }, "{name}");
        for load in &found.loads {
            let [rate, p99] =
                [load.rate_difference, load.p99_difference].map(|share| share.expect("it was measured"));
            assert!(rate.abs() <= 0.03 && p99.abs() <= 0.1, "{name}: {rate:+.3} {p99:+.3}: {load:#?}");
        }
        let differences = twin_differences(&twin, &record);
        assert!(differences.is_empty(), "{name}: {differences:?}");
    }
}

/// A client that was held up while a load was measured is not the volume: the load is measured again, and its twin is as fast as that.
#[test]
fn a_measurement_that_was_held_up_makes_no_twin() {
    let target = "sim:custom?iops=3000&latency=300us&latency_spread=1&size=1GiB";
    let mut record = identified(target, 5, true);
    let rate = |record: &RunRecord| {
        let twin = Twin::of(record).expect("it can be simulated");
        let run = checked_with(
            BenchTarget::simulated("twin", twin.model().expect("it can be simulated")),
            Effort::Quick,
            &["read-d1"],
        );
        run.tests[0].jobs[0].measured.read.ios as f64
    };
    let before = rate(&record);
    let first = record.tests.iter_mut().find(|test| test.id == "twin-read-4k-d1").expect("it was measured");
    let measured = &mut first.jobs[0].measured.read;
    measured.ios = measured.ios * 4 / 5;
    measured.lat = Latency::repeated(measured.ios, measured.lat.moments.mean() as u64 * 5 / 4);
    // Two measurements do not tell which was held up; a third does.
    let mut third = record
        .tests
        .iter()
        .find(|test| test.id == "twin-read-4k-d1-again1")
        .expect("every load is repeated")
        .clone();
    third.id = "twin-read-4k-d1-again2".to_owned();
    record.tests.push(third);
    let after = rate(&record);
    assert!((after / before - 1.0).abs() < 0.01, "{after} of {before}");
}
