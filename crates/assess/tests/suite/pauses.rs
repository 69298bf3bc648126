//! A volume that pauses is said to, and serves no use that its pauses are too long for, though a closed loop hides them.

use std::collections::BTreeMap;

use fathom_analysis::Analysis;
use fathom_analysis::conclusions::Suitability;
use fathom_assess::{BenchPlan, BenchSettings, BenchTarget, Effort, RunSettings, run};
use fathom_record::{Finding, FindingId, RunRecord};
use fathom_volume::{Fault, FaultKind, VolumeLatency, VolumeModel};

const MS: u64 = 1_000_000;

/// A quick run on a volume of 400 µs, in which nothing is served for `length_ms` of each second; of some tests, or all.
fn paused(length_ms: u64, only: &[&str]) -> RunRecord {
    let faults = (0..200).map(|second| Fault {
        at_ns: second * 1000 * MS,
        length_ns: length_ms.max(1) * MS,
        kind: FaultKind::Stall,
    });
    let model = VolumeModel {
        parallelism: Some(64),
        read_latency: VolumeLatency::fixed(400_000),
        write_latency: VolumeLatency::fixed(400_000),
        sync_latency: VolumeLatency::fixed(100_000),
        faults: faults.filter(|_| length_ms > 0).collect(),
        ..VolumeModel::unlimited(64 << 30)
    };
    let settings = BenchSettings {
        run: RunSettings { seed: Some(1), ..RunSettings::default() },
        suite: "standard".to_owned(),
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        effort: Effort::Quick,
        ..BenchSettings::default()
    };
    let plan = BenchPlan::on(vec![BenchTarget::simulated("unknown", model)], settings).unwrap();
    run(&plan, &mut plan.session(), &mut ()).unwrap()
}

fn verdicts(record: &RunRecord) -> BTreeMap<&'static str, (Suitability, String)> {
    let all = Analysis::of(record).conclusions().to_vec();
    all.into_iter().map(|one| (one.id, (one.verdict, one.reason))).collect()
}

fn pauses(record: &RunRecord) -> Vec<&Finding> {
    record.findings.iter().filter(|found| found.id == FindingId::Pauses).collect()
}

#[test]
fn a_volume_that_pauses_is_said_to_and_serves_no_use_that_cannot_wait() {
    let calm = paused(0, &[]);
    assert_eq!(pauses(&calm), Vec::<&Finding>::new());
    assert_eq!(verdicts(&calm)["etcd"].0, Suitability::Yes);
    // A small installation of etcd may wait for 30 ms.
    for (length_ms, expected) in [(30, Suitability::Marginal), (100, Suitability::No), (200, Suitability::No)]
    {
        let record = paused(length_ms, &[]);
        let found = pauses(&record);
        let [found] = found.as_slice() else { panic!("{:#?}", record.findings) };
        let evidence = |name: &str| found.evidence[name].as_f64().unwrap();
        assert!((evidence("length_ns") / (length_ms * MS) as f64 - 1.0).abs() < 0.05, "{found:?}");
        assert!((evidence("period_ns") / 1e9 - 1.0).abs() < 0.01, "{found:?}");
        let (verdict, reason) = &verdicts(&record)["etcd"];
        assert_eq!(*verdict, expected, "{length_ms}: {reason}");
        assert!(reason.contains("of arrivals wait for longer than"), "{reason}");
    }
    // A pause of 5 ms is within every need.
    assert_eq!(verdicts(&paused(5, &[]))["etcd"].0, Suitability::Yes);
}

#[test]
fn single_requests_cannot_tell_a_pause_and_decide_nothing_that_hangs_on_it() {
    let (verdict, reason) = &verdicts(&paused(100, &["commit"]))["etcd"];
    assert_eq!(*verdict, Suitability::Inconclusive, "{reason}");
    assert_eq!(verdicts(&paused(0, &["commit"]))["etcd"].0, Suitability::Yes);
}
