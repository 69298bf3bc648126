//! Volumes of several parts: separate directions, servers, caches, faults and clients.

use fathom_model::Op;
use fathom_volume::{
    Cache, Client as Machine, Fault, FaultKind, Limit, LimitStage, RequestOutcome, TokenRate, Volume,
    VolumeLatency, VolumeModel, VolumeRequest,
};

use crate::closed_loop::{Client, GIB, KIB, Order, SECOND, rate, run, run_one};

fn iops(limit: u64) -> LimitStage {
    LimitStage { ios: Some(Limit::Rate(rate(limit))), ..LimitStage::default() }
}

fn with_latency(ns: u64) -> VolumeModel {
    let latency = VolumeLatency::fixed(ns);
    let write_latency = latency.clone();
    VolumeModel { read_latency: latency, write_latency, ..VolumeModel::unlimited(100 * GIB) }
}

fn means(model: &VolumeModel, clients: &[Client]) -> Vec<u64> {
    let mut volume = Volume::new(model, 1).expect("a valid model");
    run(&mut volume, clients, 0, 11).iter().map(|seen| seen.mean(1, 11).round() as u64).collect()
}

const READS: Client = Client { op: Op::Read, block: 4 * KIB, depth: 32, order: Order::Random };
const WRITES: Client = Client { op: Op::Write, ..READS };

#[test]
fn limits_are_shared_or_per_direction() {
    let shared = VolumeModel { shared: vec![iops(3000)], ..with_latency(500_000) };
    let seen = means(&shared, &[READS, WRITES]);
    assert!(seen[0] + seen[1] == 3000 && seen[0].abs_diff(seen[1]) <= 2, "{seen:?}");
    let apart = VolumeModel { reads: vec![iops(3000)], writes: vec![iops(1000)], ..with_latency(500_000) };
    assert_eq!(means(&apart, &[READS, WRITES]), [3000, 1000]);
    assert_eq!(means(&apart, &[WRITES]), [1000]);
    // Both kinds: the tighter limit applies to requests that passed the shared one.
    let both = VolumeModel { shared: vec![iops(3500)], ..apart.clone() };
    let seen = means(&both, &[READS, WRITES]);
    assert_eq!((seen[0] + seen[1], seen[1]), (3500, 1000));
    // The servers of one direction are independent of the other's queue.
    let few = VolumeModel { parallelism: Some(4), ..apart };
    assert_eq!(means(&few, &[READS, WRITES]), [3000, 1000]);
}

#[test]
fn mixed_sizes_reach_both_limits_with_and_without_slack() {
    // One 252 KiB request per 4 KiB request: 250 of each reach both limits.
    let limits = LimitStage { bytes: Some(Limit::Rate(rate(64_000 * KIB))), ..iops(500) };
    let clients = [Client { depth: 1, ..READS }, Client { depth: 1, block: 252 * KIB, ..READS }];
    for slack_ns in [0, 10_000_000] {
        let stage = LimitStage { slack_ns, ..limits.clone() };
        let model = VolumeModel { shared: vec![stage], ..with_latency(1000) };
        assert_eq!(means(&model, &clients), [250, 250], "{slack_ns}");
    }
}

#[test]
fn parallelism_limits_the_rate_without_other_limits() {
    let model = VolumeModel { parallelism: Some(4), ..with_latency(1_000_000) };
    for (depth, expected) in [(1, 1000), (4, 4000), (32, 4000)] {
        assert_eq!(means(&model, &[Client { depth, ..READS }]), [expected]);
    }
    // Both directions share the servers.
    assert_eq!(means(&model, &[READS, WRITES]), [2000, 2000]);
}

#[test]
fn cache_hits_exceed_the_limit() {
    let cache = Cache::read_only(GIB, 100_000);
    let size_bytes = 256 << 20;
    let model =
        VolumeModel { size_bytes, cache: Some(cache), shared: vec![iops(20_000)], ..with_latency(500_000) };
    let mut volume = Volume::new(&model, 1).unwrap();
    let client = Client { order: Order::Sequential, ..READS };
    // 65,536 blocks at 20,000 IOPS, then 32 at a time in 0.1 ms.
    let seen = run_one(&mut volume, client, 6);
    assert_eq!(seen.per_second[1..3], [20_000, 20_000]);
    assert_eq!(seen.per_second[5], 320_000);
    assert!(volume.counters().cache_hits > 320_000);
}

#[test]
fn writes_are_acknowledged_early_until_the_cache_is_full() {
    let cache = Cache { dirty_bytes: 40_000 * 4096, ..Cache::read_only(GIB, 100_000) };
    let model = VolumeModel { cache: Some(cache), shared: vec![iops(1000)], ..with_latency(500_000) };
    let mut volume = Volume::new(&model, 1).unwrap();
    let seen = run_one(&mut volume, Client { depth: 2, ..WRITES }, 11);
    // 20,000 writes per second fill 40,000 blocks, of which 1,000 per second become free: 2.1 s.
    assert_eq!(seen.per_second[0..2], [20_000 - 2, 20_000]);
    assert_eq!(seen.per_second[4..11], [1000; 7]);
    // Acknowledged writes are on the volume when a sync completes.
    let sync = VolumeRequest { op: Op::Sync, offset: 0, bytes: 0 };
    let completion = volume.submit(11 * SECOND, &sync);
    assert!(
        (40 * SECOND..52 * SECOND).contains(&(completion.at_ns - 11 * SECOND + SECOND)),
        "{completion:?}"
    );
}

#[test]
fn a_cache_has_limits_and_a_hit_ratio_of_its_own() {
    let size_bytes = 64 << 20;
    let with = |change: &dyn Fn(&mut Cache)| {
        let mut cache = Cache { is_warm: true, ..Cache::read_only(GIB, 100_000) };
        change(&mut cache);
        let model =
            VolumeModel { size_bytes, cache: Some(cache), shared: vec![iops(1000)], ..with_latency(500_000) };
        let mut volume = Volume::new(&model, 1).unwrap();
        run_one(&mut volume, READS, 4).per_second[1..4].to_vec()
    };
    // Warm from the beginning: 32 at a time in 0.1 ms; at most 5,000 a second; half of them from the volume, 1,000 a second.
    assert_eq!(with(&|_| {}), [320_000; 3]);
    assert_eq!(with(&|cache| cache.reads = Some(iops(5000))), [5000; 3]);
    for rate in with(&|cache| cache.hits_per_million = 500_000) {
        assert!((1900..2100).contains(&rate), "{rate}");
    }
    // Cold: a first pass over 16,384 blocks at 1,000 a second.
    assert_eq!(with(&|cache| cache.is_warm = false), [1000; 3]);
}

#[test]
fn sequential_reads_are_read_ahead_within_the_limits_of_the_volume() {
    let model = |rate: u64, shared: Vec<LimitStage>| {
        let read_ahead = TokenRate::per_second(rate * 4096);
        let cache = Cache { read_ahead, ..Cache::read_only(1 << 20, 100_000) };
        VolumeModel { cache: Some(cache), shared, ..with_latency(8_000_000) }
    };
    let of = |model: &VolumeModel, client: Client| {
        let mut volume = Volume::new(model, 1).unwrap();
        run_one(&mut volume, Client { depth: 1, ..client }, 4).per_second[2]
    };
    let sequential = Client { order: Order::Sequential, ..READS };
    // One at a time: 8 ms each at random, 1 ms in sequence; behind a limit of 400 IOPS no more than that.
    assert_eq!((of(&model(1000, vec![]), READS), of(&model(1000, vec![]), sequential)), (125, 1000));
    assert_eq!(of(&model(1000, vec![iops(400)]), sequential), 400);
}

#[test]
fn a_stall_only_delays_requests() {
    let stall = Fault { at_ns: 2 * SECOND, length_ns: 3 * SECOND, kind: FaultKind::Stall };
    let model = VolumeModel { faults: vec![stall], shared: vec![iops(100)], ..with_latency(1_000_000) };
    let mut volume = Volume::new(&model, 1).unwrap();
    let seen = run_one(&mut volume, Client { depth: 4, ..READS }, 8);
    assert_eq!(seen.per_second, [100, 100, 0, 0, 0, 100, 100, 100]);
}

#[test]
fn requests_of_an_endless_stall_never_complete() {
    let stall = Fault { at_ns: SECOND, length_ns: u64::MAX, kind: FaultKind::Stall };
    let model = VolumeModel { faults: vec![stall], ..with_latency(1_000_000) };
    let mut volume = Volume::new(&model, 1).unwrap();
    let request = VolumeRequest { op: Op::Read, offset: 0, bytes: 4096 };
    let ends = [0, SECOND - 1_000_001, SECOND - 1_000_000, SECOND - 999_999, 2 * SECOND]
        .map(|now| volume.submit(now, &request).outcome);
    assert_eq!(
        ends,
        [
            RequestOutcome::Done,
            RequestOutcome::Done,
            RequestOutcome::Done,
            RequestOutcome::Never,
            RequestOutcome::Never
        ]
    );
    assert_eq!(volume.counters().never, 2);
}

#[test]
fn requests_past_the_end_fail_without_a_charge() {
    let model = VolumeModel { size_bytes: 8192, shared: vec![iops(1)], ..with_latency(0) };
    let mut volume = Volume::new(&model, 1).unwrap();
    for (offset, bytes, at_ns, outcome) in [
        (4096, 8192, 0, RequestOutcome::Failed(5)),
        (u64::MAX, 4096, 0, RequestOutcome::Failed(5)),
        (4096, 4096, 0, RequestOutcome::Done),
        (0, 8192, SECOND, RequestOutcome::Done),
    ] {
        let completion = volume.submit(0, &VolumeRequest { op: Op::Read, offset, bytes });
        assert_eq!((completion.at_ns, completion.outcome), (at_ns, outcome), "{offset}+{bytes}");
    }
}

#[test]
fn a_slow_client_limits_the_rate() {
    let machine = Machine { cpus: 1, request_ns: 20_000, kib_ns: 0, steal_per_mille: 500, credit: None };
    let model = VolumeModel { client: Some(machine), shared: vec![iops(100_000)], ..with_latency(100_000) };
    // 20 us of half a CPU: 25,000 IOPS.
    assert_eq!(means(&model, &[READS]), [25_000]);
}

#[test]
fn trims_count_as_one_and_move_nothing() {
    let bytes = Some(Limit::Rate(rate(1 << 20)));
    let model = VolumeModel { shared: vec![LimitStage { bytes, ..iops(500) }], ..with_latency(1000) };
    assert_eq!(means(&model, &[Client { op: Op::Trim, block: 1 << 20, ..READS }]), [500]);
}
