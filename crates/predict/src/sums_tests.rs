//! Predictions from sums, beside figures that are worked out by hand.

use fathom_volume::{Limit, LimitStage, TokenRate};

use super::*;

const SECOND: u64 = 1_000_000_000;

fn limited(iops: u64) -> VolumeModel {
    let ios = TokenRate::per_second(iops).map(Limit::Rate);
    VolumeModel {
        shared: vec![LimitStage { name: "volume".to_owned(), ios, ..LimitStage::default() }],
        read_latency: VolumeLatency::around(1_000_000),
        write_latency: VolumeLatency::fixed(500_000),
        ..VolumeModel::unlimited(1 << 40)
    }
}

fn demand(sums: &[u64], seconds: u64) -> LoadDemand {
    let length_ns = seconds * SECOND;
    let step = |(index, &ops): (usize, &u64)| DemandStep {
        start_ns: index as u64 * length_ns,
        length_ns,
        reads: FluidSum { ops, bytes: ops * 4096 },
        ..DemandStep::default()
    };
    let steps: Vec<DemandStep> = sums.iter().enumerate().map(step).collect();
    let length_ns = length_ns * sums.len() as u64;
    LoadDemand { steps, length_ns, has_directions: true, ..LoadDemand::default() }
}

fn predicted(
    model: &VolumeModel,
    demand: &LoadDemand,
    arrivals: Arrivals<'_>,
    growth_milli: u64,
) -> Prediction {
    let settings =
        SumsSettings { arrivals, is_sequential: false, all_reads: false, growth_milli, limits: &[] };
    predict_sums(model, demand, &settings).unwrap()
}

#[test]
fn the_parts_of_a_distribution_end_at_a_million() {
    assert_eq!(
        (PARTS[0], PARTS[9], PARTS[18], PARTS[27], PARTS[37]),
        (0, 900_000, 990_000, 999_000, 1_000_000)
    );
}

#[test]
fn a_load_below_the_limit_has_the_latency_of_the_volume() {
    let found = predicted(&limited(1000), &demand(&[90_000; 12], 300), Arrivals::Evenly, 1000);
    let read = found.summary.read.unwrap();
    assert_eq!((read.ios, read.iops, found.served_share), (12 * 90_000, 300.0, 1.0));
    let latency = VolumeLatency::around(1_000_000);
    for (found, per_million) in
        [(read.lat_ns.p50, 500_000), (read.lat_ns.p99, 990_000), (read.lat_ns.p999, 999_000)]
    {
        let (found, expected) = (found.unwrap() as f64, latency.quantile_ns(per_million) as f64);
        assert!((found / expected - 1.0).abs() < 0.02, "{found} {expected}");
    }
    assert!((read.lat_ns.mean.unwrap() / 1e6 - 1.0).abs() < 0.01, "{:?}", read.lat_ns.mean);
    assert_eq!((found.throttled_share, found.causes.len(), found.backlog_ns), (0.0, 0, 0));
}

#[test]
fn arrivals_at_once_wait_and_even_ones_do_not() {
    let load = demand(&[5_000, 5_000], 10);
    let even = predicted(&limited(1000), &load, Arrivals::Evenly, 1000);
    let burst = predicted(&limited(1000), &load, Arrivals::AtOnce, 1000);
    // Both sums arrive at 10 s: 10,000 take 10 s.
    let p99 = burst.summary.read.as_ref().unwrap().lat_ns.p99.unwrap() as f64 / 1e9;
    assert!((9.7..10.1).contains(&p99), "{p99}");
    assert_eq!((even.throttled_share, burst.longest_queue), (0.0, 10_000));
    assert_eq!((burst.causes[0].limit, burst.backlog_ns), ("IOPS", 0));
    let shaped = predicted(&limited(1000), &load, Arrivals::Shaped(&[3, 1, 1, 0, 0]), 1000);
    // 3,000 at the beginning of 10 s take 3 s.
    assert!((shaped.longest_queue, shaped.served_share) == (3_000, 1.0), "{shaped:?}");
    let known = LoadDemand {
        steps: load
            .steps
            .iter()
            .map(|step| DemandStep { peak_ops_per_second: Some(1250), ..*step })
            .collect(),
        ..load.clone()
    };
    // Both bursts together: 8 s at 1,250 on 1,000.
    let bounded = predicted(&limited(1000), &known, Arrivals::AtOnce, 1000);
    assert!(bounded.longest_queue.abs_diff(2000) <= 1, "{}", bounded.longest_queue);
}

#[test]
fn the_instant_in_which_a_bucket_runs_dry_is_no_cause() {
    // 1,000 IOPS of a gp2 volume with 100 GiB: 5.4 million credits end after 7,714 s, and the rest is served in 270,000 s.
    let mut model = limited(1);
    let rate = |rate| TokenRate::per_second(rate).unwrap();
    let bucket =
        Limit::Credit { base: rate(300), burst: Some(rate(3_000)), capacity: 5_400_000, initial: 5_400_000 };
    model.shared[0].ios = Some(bucket);
    let found = predicted(&model, &demand(&[300_000; 288], 300), Arrivals::Evenly, 1000);
    let causes: Vec<(bool, f64)> =
        found.causes.iter().map(|cause| (cause.is_at_baseline, (cause.share * 1e4).round())).collect();
    assert_eq!(causes, [(true, 9_714.0)]);
    assert!((found.exhausted_ns.unwrap() as f64 / 7.714_285_7e12 - 1.0).abs() < 1e-6);
}

#[test]
fn growth_scales_the_load_until_the_volume_falls_behind() {
    let load = demand(&[8_000; 10], 10);
    assert_eq!(predicted(&limited(1000), &load, Arrivals::Evenly, 1250).backlog_ns, 0);
    let behind = predicted(&limited(1000), &load, Arrivals::Evenly, 2500);
    assert!((behind.served_share - 0.5).abs() < 0.001, "{}", behind.served_share);
    assert!((behind.summary.read.unwrap().iops - 1000.0).abs() < 1.0);
    assert!((behind.throttled_share - 1.0).abs() < 0.001);
}

#[test]
fn a_month_far_beyond_a_volume_can_be_counted() {
    let found = predicted(&limited(1000), &demand(&[1 << 38; 48], 55_800), Arrivals::Evenly, 1000);
    assert!(found.served_share < 1e-3 && found.summary.read.unwrap().ios == 48 << 38);
}

#[test]
fn the_course_shows_what_arrived_even_where_it_is_served_later() {
    let behind = predicted(&limited(1000), &demand(&[20_000; 10], 10), Arrivals::Evenly, 1000);
    let found: Vec<f64> = behind.slices.iter().map(|slice| slice.iops).collect();
    assert_eq!((found, behind.summary.read.unwrap().ios), (vec![2000.0; 10], 200_000));
}

#[test]
fn short_intervals_grow_as_long_ones_do() {
    let mut load = demand(&[4; 1000], 1);
    for (index, step) in load.steps.iter_mut().enumerate() {
        (step.start_ns, step.length_ns) = (index as u64 * SECOND / 100, SECOND / 100);
    }
    load.length_ns = 10 * SECOND;
    let read = predicted(&limited(1000), &load, Arrivals::Evenly, 1200).summary.read.unwrap();
    assert_eq!((read.ios, read.bytes), (4800, 4800 * 4096));
}

#[test]
fn where_a_limit_was_reached_bytes_double_as_ios_do() {
    let mut load = demand(&[1000; 4], 10);
    load.steps[2].limit_reached = true;
    for (arrivals, ios) in [(Arrivals::Evenly, 4000), (Arrivals::AtOnce, 5000)] {
        let found = predicted(&limited(1000), &load, arrivals, 1000);
        let read = found.summary.read.unwrap();
        assert_eq!((read.ios, read.bytes), (ios, ios * 4096), "{arrivals:?}");
    }
}
