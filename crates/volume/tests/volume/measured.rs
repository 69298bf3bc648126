//! Volumes whose latencies were measured: rates are those of the limits, latencies have the distribution that was measured.

use fathom_model::Op;
use fathom_volume::{
    LatencyTable, Limit, LimitStage, LimitState, MeasuredLane, MeasuredLatency, Quantile, Volume,
    VolumeModel, VolumeRequest,
};

use crate::closed_loop::{Client, GIB, KIB, MIB, Order, SECOND, rate, run, run_one};

const TURN_NS: u64 = 100_000_000;

fn table(block_bytes: u32, depth: u32, points: &[(u32, u64)]) -> LatencyTable {
    let quantiles = points.iter().map(|&(per_million, ns)| Quantile { per_million, ns }).collect();
    LatencyTable { block_bytes, depth, quantiles }
}

/// Latencies behind a limit of 1,000 IOPS that releases 100 requests in each 0.1 s: all but as many as are in flight take
/// microseconds, the others nearly a turn.
fn lane() -> MeasuredLane {
    let quick = 50_000;
    let limited = [1, 8, 64].map(|depth| {
        let slow = 10_000 * depth;
        table(
            4096,
            depth,
            &[
                (0, quick),
                (1_000_000 - slow, 2 * quick),
                (1_000_001 - slow, 94_000_000),
                (1_000_000, 99_000_000),
            ],
        )
    });
    let at_rest = vec![
        table(4096, 1, &[(0, quick), (1_000_000, 2 * quick)]),
        table(1 << 20, 1, &[(0, 10 * quick), (1_000_000, 20 * quick)]),
    ];
    MeasuredLane { at_rest, limited: limited.to_vec() }
}

fn measured(stage: LimitStage) -> VolumeModel {
    let measured = Some(Box::new(MeasuredLatency { reads: lane(), writes: lane(), turn_ns: TURN_NS }));
    VolumeModel { shared: vec![stage], measured, ..VolumeModel::unlimited(100 * GIB) }
}

fn limits(iops: u64, bytes: u64) -> LimitStage {
    let [ios, bytes] = [iops, bytes].map(|tokens| Some(Limit::Rate(rate(tokens))));
    LimitStage { ios, bytes, ..LimitStage::default() }
}

#[test]
fn limits_are_kept_at_every_depth() {
    for depth in [1, 2, 8, 20, 64, 300] {
        for (block, expected) in [(4 * KIB, 1000.0), (MIB, 50.0)] {
            let mut volume = Volume::new(&measured(limits(1000, 50 * MIB)), 1).unwrap();
            let seen = run_one(&mut volume, Client::random_read(block, depth), 41);
            let found = seen.mean(1, 41);
            assert!((found / expected - 1.0).abs() < 0.03, "{found} of {expected}: {block} at {depth}");
        }
    }
}

#[test]
fn both_directions_draw_on_a_shared_limit() {
    let mut volume = Volume::new(&measured(limits(1000, 50 * MIB)), 1).unwrap();
    let clients =
        [Op::Read, Op::Write].map(|op| Client { op, block: 4 * KIB, depth: 16, order: Order::Random });
    let total: f64 = run(&mut volume, &clients, 0, 41).iter().map(|seen| seen.mean(1, 41)).sum();
    assert!((total / 1000.0 - 1.0).abs() < 0.01, "{total}");
}

/// Latencies of requests at even distances.
fn paced(volume: &mut Volume, iops: u64, seconds: u64) -> Vec<u64> {
    let request = |index: u64| {
        let now = index * SECOND / iops;
        let asked = VolumeRequest { op: Op::Read, offset: index % 1000 * 4096, bytes: 4096 };
        volume.submit(now, &asked).at_ns - now
    };
    (0..iops * seconds).map(request).collect()
}

#[test]
fn a_load_below_the_limit_is_at_rest_and_one_above_it_waits() {
    let model = measured(limits(1000, 50 * MIB));
    let below = paced(&mut Volume::new(&model, 1).unwrap(), 500, 20);
    assert!(below.iter().all(|ns| (50_000..=100_000).contains(ns)));
    // In the last second 850 to 950 requests wait, but for those that a limiter with turns serves out of order at first.
    let above = paced(&mut Volume::new(&model, 1).unwrap(), 1100, 10);
    let last = &above[above.len() - 1100..];
    let mean = last.iter().sum::<u64>() as f64 / last.len() as f64;
    assert!((mean / 0.85e9 - 1.0).abs() < 0.15, "{mean}");
    // Idle time ends it.
    let mut volume = Volume::new(&model, 1).unwrap();
    let mut ask =
        |now| volume.submit(now, &VolumeRequest { op: Op::Read, offset: 0, bytes: 4096 }).at_ns - now;
    let burst: Vec<u64> = (0..300).map(|_| ask(0)).collect();
    assert!(burst[..90].iter().all(|ns| *ns <= 100_000) && burst[150..].iter().any(|ns| *ns > 90_000_000));
    assert!(ask(5 * SECOND) <= 100_000);
}

#[test]
fn credits_are_used_up_in_their_time_and_then_the_baseline_holds() {
    let (base, burst) = (rate(200), Some(rate(1000)));
    let ios = Some(Limit::Credit { base, burst, capacity: 16_000, initial: 16_000 });
    let model = measured(LimitStage { ios, ..LimitStage::default() });
    for depth in [1, 8, 64] {
        let mut volume = Volume::new(&model, 1).unwrap();
        let seen = run_one(&mut volume, Client::random_read(4 * KIB, depth), 60);
        let (before, after) = (seen.mean(1, 18), seen.mean(23, 60));
        assert!((before / 1000.0 - 1.0).abs() < 0.01, "{depth}: {before}");
        assert!((after / 200.0 - 1.0).abs() < 0.03, "{depth}: {after}");
        // 16,000 beyond the baseline last for 20 s.
        let total = seen.count as f64;
        assert!((total / 28_000.0 - 1.0).abs() < 0.02, "{depth}: {total}");
        let state = volume.stage_states(60 * SECOND).next().unwrap();
        assert!(matches!(state.ios, Some(LimitState::Credit { left: 0..=300, .. })), "{state:?}");
    }
}
