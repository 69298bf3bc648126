//! Scaling curves over generated fleets whose limits are known.

use fathom_analysis::scaling::{ScalingOutcome, ScalingRun, ScalingTest, scaling};
use fathom_model::PerOp;
use fathom_model::plan::{DepthPlan, IoPlan, Pattern, TimePlan};
use fathom_record::{
    Activity, FleetMerger, HostRecord, Interval, IntervalOp, JobRecord, Latency, LaunchRecord, MergeRules,
    OpOutcome, PhaseOutcome, PlanRecord, RunHeader, RunRecord, TestRecord, TestStatus,
};

/// What a rank reaches alone.
const ALONE: f64 = 1000.0;
const TICK_NS: u64 = 500_000_000;
const BLOCK_BYTES: u64 = 4096;
const LATENCY_NS: u64 = 300_000;

/// A number from -1 to 1 that depends on rank and tick and looks random.
fn noise(rank: u32, tick: u64) -> f64 {
    let mut state = u64::from(rank) << 32 ^ tick;
    for _ in 0..3 {
        state = (state ^ state >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
    }
    (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// The record of a rank that reads at random: `iops` with 2 % of noise in every half second, and 1 % between ranks.
fn record(rank: u32, ranks: u32, seconds: u64, iops: f64) -> RunRecord {
    let mut read = OpOutcome::default();
    let own_iops = iops * (1.0 + 0.01 * noise(rank, 0));
    let series = (0..2 * seconds).map(|tick| {
        let ios = (own_iops * (1.0 + 0.02 * noise(rank, tick + 1)) / 2.0) as u64;
        let (bytes, clat_sum_ns) = (ios * BLOCK_BYTES, ios * LATENCY_NS);
        read.lat.merge(&Latency::repeated(ios, LATENCY_NS));
        read.ios += ios;
        read.bytes += bytes;
        let op = IntervalOp { ios, bytes, clat_sum_ns, ..IntervalOp::default() };
        let (start_ns, end_ns) = (tick * TICK_NS, (tick + 1) * TICK_NS);
        Interval { tick: tick as u32, start_ns, end_ns, read: op, ..Interval::default() }
    });
    let series = series.collect();
    read.clat = read.lat.clone();
    let job = JobRecord {
        name: "randread".to_owned(),
        plan: PlanRecord {
            io: IoPlan {
                pattern: Pattern::named("randread").unwrap(),
                block_size: PerOp::splat(BLOCK_BYTES.into()),
                ..IoPlan::default()
            },
            depth: DepthPlan::new(8),
            time: TimePlan { time_based: true, ..TimePlan::default() },
            ..PlanRecord::default()
        },
        measured: PhaseOutcome { end_ns: 2 * seconds * TICK_NS, read, series, ..PhaseOutcome::default() },
        ..JobRecord::default()
    };
    let (launcher, hostname) = ("generated".to_owned(), format!("h{rank}"));
    let header = RunHeader {
        activity: Activity::Fio,
        hosts: vec![HostRecord { boot_id: hostname.clone(), hostname, ..HostRecord::default() }],
        launch: Some(LaunchRecord { launcher, rank, ranks: Some(ranks), ..LaunchRecord::default() }),
        ..RunHeader::default()
    };
    let status = TestStatus::Complete;
    let test = TestRecord { id: "fio".to_owned(), status, jobs: vec![job], ..TestRecord::default() };
    RunRecord { status, header, tests: vec![test], ..RunRecord::default() }
}

/// The merged record of so many ranks, of which each reaches `iops`.
fn merged(ranks: u32, seconds: u64, iops: f64) -> RunRecord {
    let mut merger = FleetMerger::new(MergeRules::default());
    for rank in 0..ranks {
        merger.add(&format!("rank-{rank}.json"), record(rank, ranks, seconds, iops)).unwrap();
    }
    let mut record = merger.finish().unwrap();
    record.findings = fathom_analysis::Analysis::of(&record).findings();
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
