//! Scaling curves over generated fleets whose limits are known.

use fathom_analysis::scaling::{ScalingOutcome, ScalingRun, ScalingTest, scaling};
use fathom_assess::generated_fleet::GeneratedFleet;
use fathom_model::Nanos;
use fathom_record::{FleetMerger, MergeRules, RunRecord};

/// What a rank reaches alone.
const ALONE: f64 = 1000.0;

/// The merged record of so many ranks, of which each reaches `iops`.
fn merged(ranks: u32, seconds: u64, iops: f64) -> RunRecord {
    let fleet = GeneratedFleet { ranks, runtime: Nanos::from_secs(seconds) };
    let mut merger = FleetMerger::new(MergeRules::default());
    for rank in 0..ranks {
        merger.add(&format!("rank-{rank}.json"), fleet.record_at(rank, iops)).unwrap();
    }
    let mut record = merger.finish().unwrap();
    record.findings = fathom_analysis::findings(&record);
    record
}

/// The curve over these numbers of ranks, of which `total` says what they reach together.
fn curve(counts: &[u32], seconds: u64, total: impl Fn(u32) -> f64) -> ScalingTest {
    let records: Vec<RunRecord> =
        counts.iter().map(|&ranks| merged(ranks, seconds, total(ranks) / f64::from(ranks))).collect();
    let runs: Vec<ScalingRun<'_>> =
        records.iter().map(|record| ScalingRun { source: "generated", record }).collect();
    scaling(&runs).unwrap().tests.remove(0)
}

#[test]
fn what_grows_in_proportion_has_no_limit() {
    let test = curve(&[1, 2, 4, 8], 30, |ranks| ALONE * f64::from(ranks));
    assert_eq!(test.verdict.outcome, ScalingOutcome::Growing, "{:?}", test.verdict);
    for point in &test.points {
        let efficiency = point.efficiency.unwrap();
        assert!((efficiency - 1.0).abs() < 0.02, "{point:?}");
        let (interval, iops) = (point.iops_interval.unwrap(), point.iops.unwrap());
        assert!(interval.low < iops && iops < interval.high, "{point:?}");
    }
    assert_eq!(test.points.iter().map(|point| point.hosts).collect::<Vec<_>>(), [1, 2, 4, 8]);
    assert!(test.work.starts_with("randread 4k, QD 8"), "{}", test.work);
}

#[test]
fn a_cap_is_found_at_the_ranks_that_reach_it() {
    for (cap, expected) in [(4000.0, 4), (3000.0, 4), (1000.0, 1), (2000.0, 2)] {
        let test = curve(&[1, 2, 4, 8, 16], 30, |ranks| (ALONE * f64::from(ranks)).min(cap));
        let verdict = &test.verdict;
        assert_eq!(
            (verdict.outcome, verdict.ranks),
            (ScalingOutcome::Limited, Some(expected)),
            "{verdict:?}"
        );
        assert!((verdict.iops.unwrap() / cap - 1.0).abs() < 0.02, "{verdict:?}");
        assert!(verdict.fallen.is_none(), "{verdict:?}");
        assert!((verdict.bytes_per_second.unwrap() / verdict.iops.unwrap() - 4096.0).abs() < 1.0);
    }
}

#[test]
fn a_total_that_falls_is_said_to() {
    let totals = |ranks: u32| match ranks {
        1 => 1000.0,
        2 => 1900.0,
        4 => 3000.0,
        8 => 2700.0,
        _ => 1800.0,
    };
    let verdict = curve(&[1, 2, 4, 8, 16], 30, totals).verdict;
    assert_eq!((verdict.outcome, verdict.ranks), (ScalingOutcome::Limited, Some(4)), "{verdict:?}");
    let fallen = verdict.fallen.unwrap();
    assert!(fallen.ranks == 16 && (fallen.fraction - 0.6).abs() < 0.03, "{fallen:?}");
    assert!(verdict.text.contains("with 16 ranks it falls to"), "{}", verdict.text);
}

#[test]
fn what_the_intervals_do_not_show_is_inconclusive() {
    // A gain of 5 % per doubling is neither a gain nor none.
    let verdict = curve(&[1, 2], 10, |ranks| if ranks == 1 { 1000.0 } else { 1050.0 }).verdict;
    assert_eq!(verdict.outcome, ScalingOutcome::Inconclusive, "{verdict:?}");
    // Two seconds have no interval.
    let verdict = curve(&[1, 2, 4], 2, |ranks| ALONE * f64::from(ranks)).verdict;
    assert_eq!(verdict.outcome, ScalingOutcome::Inconclusive, "{verdict:?}");
    assert!(verdict.text.contains("--runtime"), "{}", verdict.text);
}

#[test]
fn repeated_runs_make_one_point() {
    let records: Vec<RunRecord> = [(1, 1000.0), (1, 1000.0), (2, 1000.0), (2, 990.0)]
        .map(|(ranks, each)| merged(ranks, 30, each))
        .into();
    let runs: Vec<ScalingRun<'_>> = records.iter().map(|record| ScalingRun { source: "x", record }).collect();
    let test = scaling(&runs).unwrap().tests.remove(0);
    assert_eq!(
        test.points.iter().map(|point| (point.ranks, point.runs)).collect::<Vec<_>>(),
        [(1, 2), (2, 2)]
    );
}

#[test]
fn runs_that_make_no_curve_are_refused() {
    let record = merged(2, 10, ALONE);
    let run = |record| ScalingRun { source: "x", record };
    assert!(scaling(&[run(&record), run(&record)]).unwrap_err().reason.contains("same number of ranks (2)"));
    let mut other = merged(4, 10, ALONE);
    for job in other.tests.iter_mut().flat_map(|test| &mut test.jobs) {
        job.plan.depth.iodepth = 32;
    }
    let reason = scaling(&[run(&record), run(&other)]).unwrap_err().reason;
    assert!(reason.contains("QD 8 in x") && reason.contains("QD 32 in x"), "{reason}");
}
