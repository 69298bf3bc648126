//! Fleets of made-up hosts, spoilt in one respect.

use fathom_record::{FleetMerger, MergeRules, RunRecord, Stall};

use super::*;
use crate::fixture::{SECOND_NS, TestLoad, ids, record};

const SECONDS: usize = 40;

/// A small number that depends on host and second, and looks random: -1 to 1.
fn noise(host: usize, second: usize) -> f64 {
    let mut state = (host as u64) << 32 | second as u64;
    for _ in 0..3 {
        state = (state ^ state >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
    }
    (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

fn host(name: &str, iops: f64, seconds: Vec<f64>) -> RunRecord {
    let mut run = record(&[TestLoad { iops, seconds, depth: 8, ..TestLoad::default() }]);
    run.header.hosts[0].hostname = name.to_owned();
    run
}

fn merge(runs: Vec<RunRecord>) -> RunRecord {
    let mut merger = FleetMerger::new(MergeRules { records: runs.len(), ..MergeRules::default() });
    for (place, run) in runs.into_iter().enumerate() {
        merger.add(&format!("{place}.json"), run).unwrap();
    }
    let mut merged = merger.finish().unwrap();
    merged.findings = crate::Analysis::of(&merged).findings();
    merged
}

/// Hosts with noise of 2 % each, whose rates `change` alters.
fn fleet(count: usize, change: impl Fn(usize, usize, f64) -> f64) -> RunRecord {
    let of_host = |place: usize| {
        let seconds = (0..SECONDS).map(|second| change(place, second, 1.0 + 0.02 * noise(place, second)));
        host(&format!("h{place}"), 1000.0, seconds.collect())
    };
    merge((0..count).map(of_host).collect())
}

fn only(record: &RunRecord) -> FleetTestAssessment {
    assess(record).unwrap().tests.remove(0)
}

#[test]
fn hosts_that_are_alike_have_no_findings() {
    for count in [2, 3, 7, 40] {
        let run = fleet(count, |_, _, rate| rate);
        assert_eq!(ids(&run.findings), [] as [&str; 0], "{count}");
        let test = only(&run);
        assert!((test.iops.unwrap() / (1000.0 * count as f64) - 1.0).abs() < 0.01);
        let iops = test.variation.iops.unwrap();
        assert!(iops.cv < 0.01 && iops.count == count && iops.min < iops.max);
    }
}

#[test]
fn a_single_record_is_no_fleet() {
    assert_eq!(assess(&host("a", 1000.0, vec![1.0; 12])), None);
}

#[test]
fn one_slow_host_is_an_outlier_and_a_straggler() {
    for count in [3, 8, 40] {
        let run = fleet(count, |place, _, rate| if place == 1 { rate * 0.5 } else { rate });
        let test = only(&run);
        let straggler = &test.stragglers.hosts[0];
        assert!(straggler.host == "h1" && straggler.throughout && straggler.p_value < 0.01, "{count}");
        assert!((straggler.iops / straggler.median_iops - 0.5).abs() < 0.02);
        let outliers: Vec<(&str, HostMetric)> =
            test.outliers.hosts.iter().map(|outlier| (outlier.host.as_str(), outlier.metric)).collect();
        // The fixture's latency is that of the whole load, so only the rate differs.
        let expected: &[(&str, HostMetric)] = if count < 5 { &[] } else { &[("h1", HostMetric::Iops)] };
        assert_eq!(outliers, expected, "{count}");
        assert_eq!(test.outliers.reason.is_some(), count < 5);
        let names = ids(&run.findings);
        assert!(names.contains(&"straggler") && names.contains(&"host-outlier") == (count >= 5), "{names:?}");
    }
}

#[test]
fn a_host_that_is_slow_for_a_time_is_a_straggler_then() {
    let slow = |second: usize| (10..30).contains(&second);
    let run = fleet(6, |place, second, rate| if place == 4 && slow(second) { rate * 0.6 } else { rate });
    let test = only(&run);
    let [straggler] = test.stragglers.hosts.as_slice() else { panic!("{:?}", test.stragglers) };
    assert_eq!((straggler.host.as_str(), straggler.throughout), ("h4", false));
    assert_eq!((straggler.from_ns, straggler.to_ns), (10 * SECOND_NS, 30 * SECOND_NS));
    let finding = run.findings.iter().find(|finding| finding.id.name() == "straggler").unwrap();
    assert!(finding.claim.contains("h4 (10 s to 30 s: "), "{}", finding.claim);
}

/// A difference that comparisons call equivalent makes no outlier, however regular it is.
#[test]
fn a_tiny_difference_is_none() {
    let run = fleet(20, |place, _, _| if place == 3 { 0.98 } else { 1.0 });
    let test = only(&run);
    assert!(test.outliers.hosts.is_empty() && test.stragglers.hosts.is_empty());
}

#[test]
fn hosts_that_exchange_shares_of_a_constant_total_share_a_limit() {
    for count in [2, 3, 10] {
        let share = |place: usize, second: usize| 1.0 + 0.3 * noise(place, second);
        let run = fleet(count, |place, second, _| {
            let all: f64 = (0..count).map(|other| share(other, second)).sum();
            share(place, second) / all * count as f64
        });
        let limit = only(&run).shared_limit;
        assert_eq!(limit.verdict, SharedLimitVerdict::Shown, "{count}: {limit:?}");
        assert!((limit.iops.unwrap() / (1000.0 * count as f64) - 1.0).abs() < 0.01);
        assert!(ids(&run.findings).contains(&"shared-limit"));
    }
}

#[test]
fn limits_of_their_own_and_independent_hosts_are_not_shared() {
    let verdict = |run: RunRecord| only(&run).shared_limit.verdict;
    assert_eq!(verdict(fleet(5, |_, _, _| 1.0)), SharedLimitVerdict::Inconclusive);
    let apart = fleet(5, |place, second, _| 1.0 + 0.05 * noise(place, second));
    assert_eq!(verdict(apart), SharedLimitVerdict::NotShown);
    let common = |second: usize| 1.0 + 0.3 * noise(99, second);
    assert_eq!(verdict(fleet(5, |_, second, _| common(second))), SharedLimitVerdict::NotShown);
    // In so short a time the bound cannot be reached, however they exchange.
    let exchange = |place: usize| {
        let step = |second: usize| if (second + place).is_multiple_of(2) { 1.3 } else { 0.7 };
        host(&format!("h{place}"), 1000.0, (0..10).map(step).collect())
    };
    assert_eq!(verdict(merge((0..4).map(exchange).collect())), SharedLimitVerdict::Inconclusive);
    // Two hosts that drift apart slowly: the total is constant, and they exchange nothing.
    let drift = |place: usize, second: usize| (if place == 0 { 1.0 } else { -1.0 }) * second as f64 / 200.0;
    let drifting = fleet(2, |place, second, _| 1.0 + drift(place, second) + 0.01 * noise(place, second));
    assert_eq!(verdict(drifting), SharedLimitVerdict::NotShown);
}

/// Of independent hosts one fleet in a hundred may seem to share a limit or to have a straggler.
#[test]
fn chance_makes_no_claims() {
    let mut claims = 0;
    for fleet_number in 0..60 {
        let run = fleet(4, |place, second, _| 1.0 + 0.05 * noise(1000 + fleet_number * 10 + place, second));
        let names: Vec<&str> = ids(&run.findings);
        claims += usize::from(!names.is_empty());
    }
    assert!(claims <= 2, "{claims}");
}

#[test]
fn hosts_an_hour_apart_are_named_and_have_no_total() {
    let mut runs = vec![host("a", 1000.0, vec![1.0; 20]), host("b", 1000.0, vec![1.0; 20])];
    runs[0].tests[0].started_unix_ms = 1_700_000_000_000;
    runs[1].tests[0].started_unix_ms = 1_700_003_600_000;
    let run = merge(runs);
    let test = only(&run);
    assert_eq!((test.iops, test.window_ns, test.start_spread_ns), (None, 0, 3600 * SECOND_NS));
    assert!(test.variation.iops.is_some());
    let found = run.findings.iter().find(|finding| finding.id.name() == "hosts-apart").unwrap();
    assert!(found.claim.contains("no measured time in common"), "{}", found.claim);
    assert!(
        test.shared_limit.verdict == SharedLimitVerdict::Inconclusive && test.stragglers.reason.is_some()
    );
}

#[test]
fn stalls_name_hosts_and_times() {
    let mut runs: Vec<RunRecord> =
        ["a", "b", "c"].map(|name| host(name, 1000.0, vec![1.0; 20])).into_iter().collect();
    for (run, start_s) in runs.iter_mut().zip([5, 6]) {
        let (start_ns, length_ns) = (start_s * SECOND_NS, 3 * SECOND_NS);
        run.tests[0].jobs[0].stalls = vec![Stall { start_ns, length_ns, ..Stall::default() }];
    }
    let run = merge(runs);
    let found = run.findings.iter().find(|finding| finding.id.name() == "host-stalled").unwrap();
    assert_eq!(
        found.claim,
        "2 of 3 hosts stalled: a at 5 s for 3 s, b at 6 s for 3 s; 2 of them at the same time."
    );
}

#[test]
fn missing_ranks_and_failed_hosts_are_named() {
    let ranked = |rank: u32| {
        let mut run = host(&format!("h{rank}"), 1000.0, vec![1.0; 12]);
        let launcher = "slurm".to_owned();
        let ranks = Some(5);
        run.header.launch = Some(fathom_record::LaunchRecord { launcher, rank, ranks, ..Default::default() });
        run
    };
    let mut runs: Vec<RunRecord> = [0, 2, 3].map(ranked).into();
    runs[1].tests[0].status = TestStatus::Failed;
    runs[1].tests[0].reason = Some("write failed".to_owned());
    let run = merge(runs);
    let claims: Vec<&str> = run.findings.iter().map(|finding| finding.claim.as_str()).collect();
    assert_eq!(
        claims,
        [
            "3 of 5 ranks were merged; missing: 1, 4.",
            "the test did not complete on 1 of 3 hosts: h2 (failed: write failed)."
        ]
    );
}

#[test]
fn ranks_in_a_row_are_a_range() {
    assert_eq!(rank_ranges(&[3, 17, 18, 19, 40], 5), "3, 17-19, 40");
    assert_eq!(rank_ranges(&[1, 3, 5, 7, 9, 11, 13], 5), "1, 3, 5, 7, 9 and 2 more");
}
