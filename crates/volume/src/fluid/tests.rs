//! Balances, waiting times and windows that follow from published rules by hand.

use super::limits::charge;
use super::*;
use crate::{Accounting, Limit, LimitStage, TokenRate, VolumeLatency};

const SECOND: u64 = 1_000_000_000;
const FIVE_MINUTES: u64 = 300 * SECOND;

fn rate(tokens: u64) -> TokenRate {
    TokenRate::per_second(tokens).unwrap()
}

fn model(ios: Option<Limit>, bytes: Option<Limit>) -> VolumeModel {
    let stage = LimitStage { name: "volume".to_owned(), ios, bytes, ..LimitStage::default() };
    VolumeModel { shared: vec![stage], ..VolumeModel::unlimited(1 << 40) }
}

fn gp2(base: u64, initial: u64) -> Limit {
    Limit::Credit { base: rate(base), burst: Some(rate(3000)), capacity: 5_400_000, initial }
}

fn reads(length_ns: u64, ops: u64) -> FluidStep {
    FluidStep { length_ns, reads: FluidSum { ops, bytes: ops * 4096 }, ..FluidStep::default() }
}

/// The credits at the end of each stretch, and what was served in all.
fn balances(volume: &mut FluidVolume, steps: &[FluidStep]) -> (Vec<u64>, u64) {
    let mut served = 0;
    let mut balance = |step: &FluidStep| {
        volume.pass(step, &mut |part| served += part.reads + part.writes);
        volume.reports()[0].credits.unwrap().0
    };
    let all = steps.iter().map(&mut balance).collect();
    (all, served)
}

#[test]
fn the_balance_of_gp2_is_that_of_a_spreadsheet() {
    // 100 GiB: 300 IOPS, 5.4 M credits. Sums of five minutes, folded by hand: balance + 300 × 300 - I/Os, at most 5.4 M.
    let mut volume = FluidVolume::new(&model(Some(gp2(300, 5_400_000)), None), FluidLane::Both).unwrap();
    let sums = [30_000, 450_000, 900_000, 0, 600_000, 90_000, 60_000];
    let expected = [5_400_000, 5_040_000, 4_230_000, 4_320_000, 3_810_000, 3_810_000, 3_840_000];
    let (found, served) = balances(&mut volume, &sums.map(|ops| reads(FIVE_MINUTES, ops)));
    assert_eq!(found, expected);
    assert_eq!((served, volume.throttled_ns()), (sums.iter().sum(), 0));
    let report = &volume.reports()[0];
    assert_eq!((report.lowest, report.exhausted_ns), (Some((705_555, 5 * FIVE_MINUTES)), None));
}

#[test]
fn the_balance_of_an_instance_is_that_of_a_spreadsheet() {
    // 650 Mbit/s of 4,750: 81.25 of 593.75 MB/s, with credits for half an hour at the maximum.
    let (base, burst) = (81_250_000, 593_750_000);
    let capacity = (burst - base) * 1800;
    let limit = Limit::Credit { base: rate(base), burst: Some(rate(burst)), capacity, initial: capacity };
    let mut volume = FluidVolume::new(&model(None, Some(limit)), FluidLane::Both).unwrap();
    let step = |bytes: u64| FluidStep {
        length_ns: FIVE_MINUTES,
        writes: FluidSum { ops: bytes / 65_536, bytes },
        ..FluidStep::default()
    };
    // 300 MB/s, 593.75 MB/s, 50 MB/s and nothing for five minutes each.
    let steps = [300_000_000, burst, 50_000_000, 0].map(|rate| step(rate * 300));
    let mut expected = Vec::new();
    let mut balance = capacity;
    for rate in [300_000_000, burst, 50_000_000, 0] {
        balance = (balance + base * 300 - rate * 300).min(capacity);
        expected.push(balance);
    }
    assert_eq!(balances(&mut volume, &steps).0, expected);
}

#[test]
fn exhaustion_is_found_within_a_stretch() {
    // 3,000 IOPS on 100: 5.4 M / 2,900 = 1,862.07 s; then the baseline, so I/Os wait.
    let mut volume = FluidVolume::new(&model(Some(gp2(100, 5_400_000)), None), FluidLane::Both).unwrap();
    let mut longest = 0;
    volume.pass(&reads(3600 * SECOND, 3000 * 3600), &mut |part| longest = longest.max(part.last_wait_ns));
    let report = &volume.reports()[0];
    assert_eq!(report.exhausted_ns.unwrap() / 1_000_000, 1_862_068);
    let served = 5_400_000 + 100 * 3600;
    let waiting = 3000 * 3600 - served;
    assert!(volume.waiting().abs_diff(waiting) <= 2, "{} {waiting}", volume.waiting());
    // The last that was served arrived when so many had.
    let expected = 3600 * SECOND - served * SECOND / 3000;
    assert!(longest.abs_diff(expected) < SECOND / 1000, "{longest} {expected}");
    assert!(volume.throttled_ns().abs_diff(3600 * SECOND - 1_862_068_965_518) < 1000);
    assert_eq!(report.throttled_ns, report.throttled_at_baseline_ns);
    let mut rest = 0;
    volume.drain(u64::MAX, &mut |part| rest += part.reads);
    assert!(rest.abs_diff(waiting) <= 2 && volume.waiting() == 0);
    assert!(volume.now_ns().abs_diff(3600 * SECOND + waiting * SECOND / 100) < SECOND);
}

#[test]
fn what_arrives_at_once_waits_for_its_turn() {
    let mut volume = FluidVolume::new(&model(Some(Limit::Rate(rate(1000))), None), FluidLane::Both).unwrap();
    let step = FluidStep { is_at_once: true, ..reads(10 * SECOND, 5000) };
    let mut waits = Vec::new();
    volume.pass(&step, &mut |part| waits.push((part.reads, part.first_wait_ns, part.last_wait_ns)));
    assert_eq!(waits, [(5000, 0, 5 * SECOND)]);
    assert_eq!((volume.most_waiting(), volume.waiting()), (5000, 0));
    assert_eq!((volume.throttled_ns(), volume.now_ns()), (5 * SECOND, 10 * SECOND));
}

#[test]
fn a_queue_is_worked_off_beside_what_arrives() {
    // 2,000 for 1 s on 1,000, then 500 for 4 s: 1,000 wait, and 500 a second of them are served.
    let mut volume = FluidVolume::new(&model(Some(Limit::Rate(rate(1000))), None), FluidLane::Both).unwrap();
    let mut served = 0;
    let mut longest = 0;
    for (seconds, ops) in [(1, 2000), (4, 2000), (1, 500)] {
        volume.pass(&reads(seconds * SECOND, ops), &mut |part| {
            served += part.reads;
            longest = longest.max(part.last_wait_ns);
        });
    }
    assert_eq!((served, volume.waiting()), (4500, 0));
    assert!(volume.throttled_ns().abs_diff(3 * SECOND) < 1000, "{}", volume.throttled_ns());
    assert!(longest.abs_diff(SECOND) < 1000 && volume.most_waiting().abs_diff(1000) <= 1, "{longest}");
}

#[test]
fn windows_burst_once_and_rest() {
    let limit =
        Limit::Window { base: rate(100), burst: rate(200), burst_ns: 60 * SECOND, rest_ns: 60 * SECOND };
    let mut volume = FluidVolume::new(&model(Some(limit), None), FluidLane::Both).unwrap();
    let mut served = 0;
    volume.pass(&reads(240 * SECOND, 300 * 240), &mut |part| served += part.reads);
    assert!(served.abs_diff(2 * 60 * 300) <= 2, "{served}");
    assert_eq!(volume.reports()[0].exhausted_ns, Some(60 * SECOND));
    let mut idle = FluidVolume::new(&model(Some(limit), None), FluidLane::Both).unwrap();
    idle.pass(&reads(60 * SECOND, 60 * 90), &mut |_| ());
    assert_eq!((idle.reports()[0].exhausted_ns, idle.throttled_ns()), (None, 0));
}

#[test]
fn units_directions_and_servers_are_limits() {
    let unit = Accounting { unit_bytes: Some(262_144), merges_sequential: true, whole_units: false };
    let large = FluidSum { ops: 100, bytes: 100 << 20 };
    assert_eq!(charge(unit, large, false), (400, 100 << 20));
    assert_eq!(charge(unit, FluidSum { ops: 6400, bytes: 100 << 20 }, true), (400, 100 << 20));
    let stage = LimitStage { ios: Some(Limit::Rate(rate(10))), ..LimitStage::default() };
    let apart = VolumeModel { reads: vec![stage], ..VolumeModel::unlimited(1 << 30) };
    assert_eq!(FluidLane::of(&apart), [FluidLane::Reads, FluidLane::Writes]);
    let step = FluidStep { writes: FluidSum { ops: 900, bytes: 900 }, ..reads(SECOND, 20) };
    let waiting = |lane| {
        let mut volume = FluidVolume::new(&apart, lane).unwrap();
        volume.pass(&step, &mut |_| ());
        volume.waiting()
    };
    assert_eq!((waiting(FluidLane::Reads), waiting(FluidLane::Writes)), (10, 0));
    let slow = VolumeModel {
        parallelism: Some(2),
        read_latency: VolumeLatency::fixed(10_000_000),
        ..VolumeModel::unlimited(1 << 30)
    };
    let mut volume = FluidVolume::new(&slow, FluidLane::Both).unwrap();
    volume.pass(&reads(SECOND, 300), &mut |_| ());
    assert!(volume.waiting().abs_diff(100) <= 1, "{}", volume.waiting());
}

#[test]
fn gaps_change_nothing() {
    let mut volume = FluidVolume::new(&model(Some(gp2(300, 1_000_000)), None), FluidLane::Both).unwrap();
    volume.pass(&reads(FIVE_MINUTES, 300_000), &mut |_| ());
    let before = volume.reports()[0].credits;
    volume.skip(FIVE_MINUTES);
    assert_eq!((volume.reports()[0].credits, volume.now_ns()), (before, 2 * FIVE_MINUTES));
    assert_eq!(before, Some((790_000, 5_400_000)));
}

#[test]
fn what_waits_is_counted_however_long_the_queue() {
    let mut volume = FluidVolume::new(&model(Some(Limit::Rate(rate(1000))), None), FluidLane::Both).unwrap();
    let (mut asked, mut served, mut longest) = (0, 0, 0);
    // The queue grows for half of the time, and is worked off in the other.
    for second in 0..400 {
        let ops = if second < 200 { 1200 + second % 7 } else { second % 5 * 100 };
        let step = FluidStep { is_at_once: second % 3 == 0, ..reads(SECOND, ops) };
        volume.pass(&step, &mut |part| served += part.reads);
        asked += ops;
        longest = longest.max(volume.queue.len());
        assert_eq!(volume.waiting(), asked - served, "{second}");
        let between = volume.queue.iter().skip(1).rev().skip(1).map(|bundle| bundle.reads).sum::<u64>();
        assert_eq!(volume.between, between, "{second}");
        if second % 50 == 0 {
            volume.skip(SECOND);
        }
    }
    assert!(longest > 20, "{longest}");
    volume.drain(u64::MAX, &mut |part| served += part.reads);
    assert_eq!((volume.waiting(), volume.between, served), (0, 0, asked));
}
