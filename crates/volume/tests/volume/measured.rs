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
        // So that the mean is that of 1,000 IOPS.
        let of_quick = u64::from(1_000_000 - slow) * quick * 3 / 2;
        let turn = (u64::from(depth) * 1_000_000_000_000 - of_quick) / u64::from(slow);
        table(
            4096,
            depth,
            &[
                (0, quick),
                (1_000_000 - slow, 2 * quick),
                (1_000_001 - slow, turn - 2_000_000),
                (1_000_000, turn + 2_000_000),
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
fn a_request_that_costs_more_than_a_turn_is_at_rest_after_idle_time() {
    // 1 MiB at 5 MiB/s costs 0.2 s, two turns.
    let mut volume = Volume::new(&measured(limits(1000, 5 * MIB)), 1).unwrap();
    for second in 1..20 {
        let now = 2 * second * SECOND;
        let asked = VolumeRequest { op: Op::Read, offset: 0, bytes: 1 << 20 };
        let ns = volume.submit(now, &asked).at_ns - now;
        assert!((500_000..=1_000_000).contains(&ns), "{ns}");
    }
}

#[test]
fn an_overload_is_over_soon_after_it_ended() {
    let mut volume = Volume::new(&measured(limits(1000, 50 * MIB)), 1).unwrap();
    run(&mut volume, &[Client::random_read(4 * KIB, 8)], 0, 600);
    let begin = 601 * SECOND;
    let request = |index: u64| begin + index * SECOND / 500;
    let asked = VolumeRequest { op: Op::Read, offset: 0, bytes: 4096 };
    let times: Vec<u64> =
        (0..1000).map(|index| volume.submit(request(index), &asked).at_ns - request(index)).collect();
    assert!(times[500..].iter().all(|ns| (50_000..=100_000).contains(ns)), "{:?}", &times[500..510]);
}

#[test]
fn one_direction_at_its_limit_leaves_the_other_at_rest() {
    let at_rest = vec![
        table(4096, 1, &[(0, 50_000), (1_000_000, 60_000)]),
        table(4096, 64, &[(0, 5_000_000), (1_000_000, 6_000_000)]),
    ];
    let lane = MeasuredLane { at_rest, limited: Vec::new() };
    let measured = Some(Box::new(MeasuredLatency { reads: lane.clone(), writes: lane, turn_ns: TURN_NS }));
    let reads = vec![limits(300, 100 * MIB)];
    let mut volume = Volume::new(&VolumeModel { reads, measured, ..VolumeModel::unlimited(GIB) }, 1).unwrap();
    let clients = [(Op::Read, 64), (Op::Write, 1)].map(|(op, depth)| Client {
        op,
        block: 4 * KIB,
        depth,
        order: Order::Random,
    });
    let seen = run(&mut volume, &clients, 0, 20);
    assert!((seen[0].mean(2, 20) / 300.0 - 1.0).abs() < 0.01, "{}", seen[0].mean(2, 20));
    assert!(seen[1].mean_latency_ns() < 300_000.0, "{}", seen[1].mean_latency_ns());
}

#[test]
fn what_waits_for_a_burst_is_served_at_its_rate_when_credits_end() {
    let ios =
        Some(Limit::Credit { base: rate(300), burst: Some(rate(3000)), capacity: 27_000, initial: 27_000 });
    let mut volume = Volume::new(&measured(LimitStage { ios, ..LimitStage::default() }), 1).unwrap();
    let asked = VolumeRequest { op: Op::Read, offset: 0, bytes: 4096 };
    let mut ends: Vec<u64> =
        (0..75_000).map(|index| volume.submit(index * SECOND / 5000, &asked).at_ns).collect();
    ends.sort_unstable();
    let longest = ends.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(longest < SECOND, "{longest}");
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
