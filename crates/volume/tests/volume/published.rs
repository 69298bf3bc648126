//! Models reproduce the providers' published figures and measurements of their volumes.

use fathom_model::Op;
use fathom_volume::{
    Accounting, Limit, LimitStage, LimitState, TokenRate, Volume, VolumeLatency, VolumeModel,
};

use crate::closed_loop::{Client, GIB, KIB, MIB, Order, SECOND, rate, run, run_one};

const GP2_CREDIT: u64 = 5_400_000;

fn merged(unit: u64) -> Accounting {
    Accounting { unit_bytes: Some(unit as u32), merges_sequential: true, whole_units: false }
}

fn volume(stage: LimitStage, latency_ns: u64) -> Volume {
    let latency = VolumeLatency::fixed(latency_ns);
    let model = VolumeModel {
        shared: vec![stage],
        read_latency: latency.clone(),
        write_latency: latency,
        ..VolumeModel::unlimited(1024 * GIB)
    };
    Volume::new(&model, 1).expect("a valid model")
}

/// gp2 as of 2016, up to 170 GiB.
fn gp2(base: u64, initial: u64) -> Volume {
    let ios = Limit::Credit { base: rate(base), burst: Some(rate(3000)), capacity: GP2_CREDIT, initial };
    let bytes = Limit::Rate(rate(128 * MIB));
    let stage = LimitStage {
        accounting: merged(256 * KIB),
        ios: Some(ios),
        bytes: Some(bytes),
        ..LimitStage::default()
    };
    volume(stage, 500_000)
}

fn caps(iops: u64, bytes: u64) -> LimitStage {
    let (ios, bytes) = (Some(Limit::Rate(rate(iops))), Some(Limit::Rate(rate(bytes))));
    LimitStage { ios, bytes, ..LimitStage::default() }
}

fn close(seen: f64, expected: f64, within: f64) {
    assert!((seen / expected - 1.0).abs() <= within, "{seen} is not {expected}");
}

#[test]
fn gp2_falls_to_its_baseline_when_burst_credits_are_exhausted() {
    // 285,000 credits at 3,000 - 150 IOPS: 100 s.
    let mut volume = gp2(150, 285_000);
    let seen = run_one(&mut volume, Client::random_read(4 * KIB, 64), 200);
    close(seen.mean(1, 100), 3000.0, 1e-9);
    close(seen.mean(101, 200), 150.0, 1e-9);
    // Then the credits are exhausted; after 90 minutes idle there are 150 x 5,400.
    let left = |volume: &Volume, second: u64| match volume.stage_states(second * SECOND).next().unwrap().ios {
        Some(LimitState::Credit { left, .. }) => left,
        other => panic!("{other:?}"),
    };
    assert!(left(&volume, 200) == 0);
    assert!((809_900..810_000).contains(&left(&volume, 5600)), "{}", left(&volume, 5600));
    assert_eq!(left(&volume, 40_000), GP2_CREDIT);
}

#[test]
fn three_runs_of_4_gib_on_gp2_do_not_exhaust_its_credits() {
    // Article 0: 3 x 1,048,576 requests of 4 KiB at QD 64, measured at 3,009, 3,016 and 2,943 IOPS.
    let mut volume = gp2(150, GP2_CREDIT);
    let seen = run_one(&mut volume, Client::random_read(4 * KIB, 64), 1049);
    close(seen.mean(0, 1049), 3000.0, 1e-3);
    let state = volume.stage_states(1049 * SECOND).next().unwrap().ios;
    let Some(LimitState::Credit { left, .. }) = state else { panic!("{state:?}") };
    // 2,850 credits per second of 5.4 M: 55 % are spent.
    close((GP2_CREDIT - left) as f64, 1049.0 * 2850.0, 1e-3);
}

#[test]
fn an_empty_gp2_bucket_limits_bytes_by_its_units() {
    // 100 GiB: 300 units of 256 KiB are 75 MiB/s, whatever the block size beyond a unit.
    for block in [256 * KIB, MIB] {
        let seen = run_one(&mut gp2(300, 0), Client::random_read(block, 16), 60);
        close(seen.mean(1, 60) * block as f64, (75 * MIB) as f64, 2e-3);
    }
}

#[test]
fn sequential_requests_share_units_and_random_ones_do_not() {
    // 4 KiB sequential: 128 MiB/s, which is 32,768 IOPS and needs 512 units.
    let sequential = Client { order: Order::Sequential, ..Client::random_read(4 * KIB, 32) };
    close(run_one(&mut gp2(150, GP2_CREDIT), sequential, 3).mean(1, 3), 32_768.0, 1e-3);
    close(run_one(&mut gp2(150, GP2_CREDIT), Client::random_read(4 * KIB, 32), 3).mean(1, 3), 3000.0, 1e-3);
}

#[test]
fn the_crossover_block_size_matches_digitaloceans_table() {
    // "5000 IOPS for 4, 16 and 32 KiB, 3200 for 64, 800 for 256" holds with MiB; in MB the last two would be lower.
    for (bytes_per_second, expected) in [
        (200 * MIB, [5000.0, 5000.0, 5000.0, 3200.0, 800.0]),
        (200_000_000, [5000.0, 5000.0, 5000.0, 3051.8, 762.9]),
    ] {
        for (kib, expected) in [4, 16, 32, 64, 256].into_iter().zip(expected) {
            let mut volume = volume(caps(5000, bytes_per_second), 500_000);
            let seen = run_one(&mut volume, Client::random_read(kib * KIB, 64), 11);
            close(seen.mean(1, 11), expected, 2e-4);
        }
    }
}

#[test]
fn latency_at_a_limit_is_queue_depth_over_rate() {
    // 1 MiB at QD 32 under the measured 200,159,232 B/s: 167.64 ms; 167.62 were measured.
    let mut volume = volume(caps(5000, 200_159_232), 500_000);
    let client = Client::random_read(MIB, 32);
    // After one second, so that all requests have queued.
    run(&mut volume, &[client], 0, 10);
    let seen = run(&mut volume, &[client], 20 * SECOND, 120).remove(0);
    close(seen.mean_latency_ns(), 167.64e6, 2e-3);
    close(seen.mean(10, 120) * 1048576.0 / 1e6, 200.159, 1e-3);
}

#[test]
fn littles_law_holds() {
    let latency = VolumeLatency::around(700_000);
    let stage = LimitStage { ios: Some(Limit::Rate(rate(20_000))), ..LimitStage::default() };
    for (parallelism, depth) in [(None, 1), (None, 8), (None, 64), (Some(4), 2), (Some(4), 64)] {
        let model = VolumeModel {
            shared: vec![stage.clone()],
            parallelism,
            read_latency: latency.clone(),
            ..VolumeModel::unlimited(GIB)
        };
        let mut volume = Volume::new(&model, 1).unwrap();
        let seen = run_one(&mut volume, Client::random_read(4 * KIB, depth), 60);
        close(seen.count as f64 / 60.0 * seen.mean_latency_ns() / 1e9, depth as f64, 1e-3);
    }
}

#[test]
fn a_day_of_credit_loses_nothing() {
    // 3 in 2 s and 5,400 credits under full load: 129,600 + 5,400 per day.
    let base = TokenRate::ratio(3, 2 * SECOND).unwrap();
    let ios = Limit::Credit { base, burst: Some(rate(30)), capacity: 5400, initial: 5400 };
    let mut volume = volume(LimitStage { ios: Some(ios), ..LimitStage::default() }, 1000);
    let seen = run_one(&mut volume, Client::random_read(4 * KIB, 4), 86_400);
    assert!((134_999..=135_000).contains(&seen.count), "{}", seen.count);
}

#[test]
fn depth_limits_what_latency_allows() {
    // io1 of 2012 recommended QD 1 per 200 IOPS: 5 ms each.
    for (depth, expected) in [(1, 200.0), (4, 800.0), (5, 1000.0), (16, 1000.0)] {
        let mut volume = volume(caps(1000, 62_500_000), 5_000_000);
        close(run_one(&mut volume, Client::random_read(16 * KIB, depth), 11).mean(1, 11), expected, 1e-3);
    }
}

#[test]
fn io1_of_2012_counts_in_units_of_16_kib() {
    let accounting = Accounting { unit_bytes: Some(16 << 10), ..Accounting::default() };
    for (kib, expected) in [(4, 1000.0), (16, 1000.0), (32, 500.0), (64, 250.0)] {
        let stage = LimitStage { accounting, ios: Some(Limit::Rate(rate(1000))), ..LimitStage::default() };
        let mut volume = volume(stage, 1_000_000);
        close(run_one(&mut volume, Client::random_read(kib * KIB, 32), 11).mean(1, 11), expected, 1e-3);
    }
}

#[test]
fn a_window_alternates_between_burst_and_baseline() {
    // DigitalOcean since 2018-05: 60 s each; a run of 120 s measures the mean, one of less than 60 s only the burst.
    for (base, burst, mean) in [(5000, 7500, 6250.0), (7500, 10_000, 8750.0)] {
        let (burst_ns, rest_ns) = (60 * SECOND, 60 * SECOND);
        let ios = Limit::Window { base: rate(base), burst: rate(burst), burst_ns, rest_ns };
        let mut volume = volume(LimitStage { ios: Some(ios), ..LimitStage::default() }, 500_000);
        let seen = run_one(&mut volume, Client::random_read(4 * KIB, 64), 121);
        close(seen.mean(0, 120), mean, 1e-3);
        close(seen.mean(1, 59), burst as f64, 1e-9);
        close(seen.mean(61, 119), base as f64, 1e-9);
    }
}

#[test]
fn random_reads_cost_an_hdd_volume_whole_units() {
    // st1 of 1 TiB: a burst of 250 MiB/s is 250 random reads per second, of 4 KiB as of 1 MiB.
    let accounting = Accounting { whole_units: true, ..merged(MIB) };
    for (order, block, expected) in
        [(Order::Random, 4 * KIB, 250.0), (Order::Random, MIB, 250.0), (Order::Sequential, 64 * KIB, 4000.0)]
    {
        let (base, burst) = (rate(40 * MIB), Some(rate(250 * MIB)));
        let bytes = Limit::Credit { base, burst, capacity: 1 << 40, initial: 1 << 40 };
        let stage = LimitStage {
            accounting,
            ios: Some(Limit::Rate(rate(500))),
            bytes: Some(bytes),
            ..LimitStage::default()
        };
        let client = Client { order, ..Client::random_read(block, 32) };
        close(run_one(&mut volume(stage, 1_000_000), client, 5).mean(1, 5), expected, 4e-3);
    }
}

#[test]
fn the_instance_limit_caps_a_faster_volume() {
    // An m1.large has 500 Mbps to its volumes; 2,000 IOPS of 256 KiB would be 500 MB/s.
    let model = VolumeModel {
        shared: vec![
            LimitStage { name: "instance".to_owned(), ..caps(4000, 62_500_000) },
            LimitStage { name: "volume".to_owned(), ..caps(2000, 500 * MIB) },
        ],
        read_latency: VolumeLatency::fixed(1_000_000),
        ..VolumeModel::unlimited(100 * GIB)
    };
    for (block, expected) in [(4 * KIB, 2000.0), (64 * KIB, 62_500_000.0 / 65536.0)] {
        let mut volume = Volume::new(&model, 1).unwrap();
        close(run_one(&mut volume, Client::random_read(block, 32), 11).mean(1, 11), expected, 1e-3);
    }
}

#[test]
fn clients_on_one_volume_share_exactly_its_rate() {
    let mut volume =
        volume(LimitStage { ios: Some(Limit::Rate(rate(3000))), ..LimitStage::default() }, 100_000);
    let clients = [1, 4, 16].map(|depth| Client::random_read(4 * KIB, depth));
    run(&mut volume, &clients, 0, 1);
    let seen = run(&mut volume, &clients, 2 * SECOND, 60);
    let total: f64 = seen.iter().map(|seen| seen.mean(1, 60)).sum();
    close(total, 3000.0, 1e-4);
    for seen in &seen {
        // Each has 21 requests in the queue at 3,000 IOPS in total.
        close(seen.mean_latency_ns(), 7e6, 5e-3);
    }
}

#[test]
fn first_accesses_of_2012_halve_the_rate() {
    let first_touch = Some(fathom_volume::FirstTouch {
        chunk_bytes: 64 << 10,
        counts_as: 2,
        extra_ns: 2_000_000,
        initialization: None,
    });
    let shared = vec![LimitStage { ios: Some(Limit::Rate(rate(1000))), ..LimitStage::default() }];
    let model = VolumeModel { first_touch, shared, ..VolumeModel::unlimited(GIB) };
    let mut volume = Volume::new(&model, 1).unwrap();
    // Sequentially, the first block of each chunk pays the penalty: 16 blocks cost 17.
    let client = Client { op: Op::Write, block: 4 * KIB, depth: 8, order: Order::Sequential };
    close(run_one(&mut volume, client, 11).mean(1, 11), 1000.0 * 16.0 / 17.0, 2e-3);
    let model = VolumeModel { size_bytes: 1000 * GIB, ..model };
    let mut volume = Volume::new(&model, 1).unwrap();
    close(run_one(&mut volume, Client::random_read(64 * KIB, 8), 11).mean(1, 11), 500.0, 2e-3);
}
