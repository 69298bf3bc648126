//! Twins of simulated volumes, whose truth is known: they have the rates of the volume and its distribution of latencies.

use std::path::Path;

use fathom_analysis::identify::script::identified_of;
use fathom_analysis::twin::agreement::{LoadAgreement, TwinAgreement};
use fathom_analysis::twin::{Twin, TwinOp};
use fathom_assess::identify::{IdentifyPlan, IdentifySettings, identify};
use fathom_assess::{BenchPlan, BenchSettings, BenchTarget, Effort, RunSettings, VolumeTypes};
use fathom_model::Nanos;
use fathom_record::RunRecord;

fn identified(target: &str, minutes: u64, read_only: bool) -> RunRecord {
    let settings = IdentifySettings {
        run: RunSettings { target: target.into(), seed: Some(1), ..RunSettings::default() },
        budget: Some(Nanos::from_secs(60 * minutes)),
        read_only,
        measures_latencies: true,
    };
    let plan = IdentifyPlan::make(settings).expect("it can be simulated");
    identify(&plan, &mut plan.site.session(), &mut ()).expect("it can be simulated").0
}

fn checked(target: BenchTarget) -> RunRecord {
    let settings = BenchSettings {
        run: RunSettings { target: "volume".into(), seed: Some(7), ..RunSettings::default() },
        suite: "twin-check".to_owned(),
        effort: Effort::Default,
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
    run.tests.retain(|test| !test.id.starts_with("twin-"));
    assert_eq!(Twin::of(&run), Err("no latency was measured at rest".to_owned()));
}
