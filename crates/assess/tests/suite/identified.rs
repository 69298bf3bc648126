//! Volumes with limits drawn at random, and what `identify` tells of them from outside: what it claims is true, what it
//! leaves open is bounded, and what can be seen is seen.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a failure is shown by the results of the volumes"
)]

use std::path::Path;

use fathom_analysis::estimate::Estimate;
use fathom_analysis::identified::{BucketUnit, Burst, Figure, Identified, IoScope};
use fathom_assess::identify::{IdentifyPlan, IdentifySettings, identify};
use fathom_assess::{BenchTarget, RunSettings, VolumeTypes};
use fathom_model::Nanos;
use fathom_record::IdentifyActivity;
use fathom_volume::{Limit, LimitStage, TokenRate, VolumeLatency, VolumeModel};

use crate::drawn::{Drawn, Way};

/// What became of one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    /// Judged, within its tolerance; whether the interval holds the truth.
    Found { covered: bool },
    /// No value, but a bound that holds, where the limit is not visible.
    Open,
    /// No value although the limit is visible.
    Missed,
    /// Not so.
    Wrong,
}

fn judge(figure: &Figure, truth: Option<f64>, tolerance: f64, is_visible: bool) -> Verdict {
    match (figure.estimate, truth) {
        (Some(Estimate::Known { value, low, high }), Some(truth)) => {
            if (value / truth - 1.0).abs() > tolerance {
                return Verdict::Wrong;
            }
            Verdict::Found { covered: low <= truth && truth <= high }
        }
        (Some(Estimate::Known { .. }), None) => Verdict::Wrong,
        (Some(Estimate::AtLeast(least)), Some(truth)) if least > truth * 1.01 => Verdict::Wrong,
        (Some(Estimate::AtMost(most)), Some(truth)) if most < truth * 0.99 => Verdict::Wrong,
        (Some(Estimate::AtMost(_)), None) => Verdict::Wrong,
        _ if is_visible => Verdict::Missed,
        _ => Verdict::Open,
    }
}

/// Everything that is judged of one volume.
fn judged(volume: &Drawn, found: &Identified) -> Vec<(String, Verdict, String)> {
    let mut all = Vec::new();
    let mut add = |name: &str, verdict, shown: String| all.push((name.to_owned(), verdict, shown));
    for (way, iops, bytes, lat) in [
        (Way::Read, &found.iops.read, &found.bytes_per_second.read, &found.lat_ns.read),
        (Way::Write, &found.iops.write, &found.bytes_per_second.write, &found.lat_ns.write),
    ] {
        let (Some(iops), Some(bytes), Some(lat)) = (iops, bytes, lat) else {
            add("cut short", Verdict::Missed, format!("{:?}", found.spent));
            continue;
        };
        let (truth, is_visible) = volume.iops(way);
        add("iops", judge(iops, truth, 0.03, is_visible), format!("{iops:?}, is {truth:?}"));
        let (truth, is_visible) = volume.bytes(way);
        add("bytes", judge(bytes, truth, 0.03, is_visible), format!("{bytes:?}, is {truth:?}"));
        let truth = volume.latency_ns;
        let is_none = truth == 0.0 && lat.value().is_some_and(|value| value < 2000.0);
        let verdict = if is_none { Verdict::Open } else { judge(lat, Some(truth + 1e-9), 0.15, true) };
        add("latency", verdict, format!("{lat:?}, is {truth}"));
    }
    let (truth, is_visible) = volume.unit();
    let unit = &found.io_unit_bytes;
    add("unit", judge(unit, truth, 0.0, is_visible), format!("{unit:?}, is {truth:?}"));
    let shared = match (found.shares_limits, volume.is_shared()) {
        (Some(found), Some(truth)) if found != truth => Verdict::Wrong,
        (Some(_), Some(_)) => Verdict::Found { covered: true },
        (None, Some(_)) if volume.shows_sharing() => Verdict::Missed,
        _ => Verdict::Open,
    };
    add(
        "shared",
        shared,
        format!("{:?} {:?}, is {:?}", found.shares_limits, found.shares_limits_why, volume.is_shared()),
    );
    if let Some(width) = volume.width {
        let figure = &found.parallelism;
        add("width", judge(figure, Some(width as f64), 0.02, false), format!("{figure:?}, is {width}"));
    } else if found.parallelism.value().is_some() {
        add("width", Verdict::Wrong, format!("{:?}", found.parallelism));
    }
    buckets(volume, found, &mut all);
    all
}

fn buckets(volume: &Drawn, found: &Identified, all: &mut Vec<(String, Verdict, String)>) {
    let mut add = |name: &str, verdict, shown: String| all.push((name.to_owned(), verdict, shown));
    let mut left = found.bursts.clone();
    for bucket in volume.buckets() {
        let of_way = |draws: IoScope| match bucket.way {
            None => draws == IoScope::Both || found.shares_limits.is_none(),
            Some(Way::Read) => draws == IoScope::Reads,
            Some(Way::Write) => draws == IoScope::Writes,
        };
        let unit = if bucket.is_ios { BucketUnit::Ios } else { BucketUnit::Bytes };
        let Some(index) = left.iter().position(|burst| burst.unit == unit && of_way(burst.scope)) else {
            let verdict = if volume.can_empty(&bucket) { Verdict::Missed } else { Verdict::Open };
            add(
                "bucket",
                verdict,
                format!("not found: {bucket:?}; {:?} {:?}", found.burst_why, found.confounders),
            );
            continue;
        };
        let burst = left.remove(index);
        for (name, figure, truth) in [
            ("baseline", &burst.baseline_rate, bucket.base),
            ("capacity", &burst.capacity, bucket.capacity),
            ("refill", &burst.refill_rate, bucket.base),
            ("refill time", &burst.seconds_to_refill, bucket.capacity / bucket.base),
        ] {
            let shown = format!("{figure:?}, is {truth}");
            add(name, judge(figure, Some(truth), 0.05, true), shown);
        }
        let figure = &burst.burst_rate;
        add("burst", judge(figure, bucket.burst, 0.03, false), format!("{figure:?}, is {:?}", bucket.burst));
    }
    for burst in left {
        add("bucket", Verdict::Wrong, format!("there is none: {burst:?}"));
    }
}

/// One verdict: of what, and the result.
type Judged = (String, Verdict, String);

fn identified(seed: u64) -> (String, Vec<Judged>) {
    judged_of(&Drawn::of(seed), |_| {})
}

/// As on a device, where each rate takes seconds and requests are no larger than the kernel leaves them.
fn identified_slowly(seed: u64) -> (String, Vec<Judged>) {
    judged_of(&Drawn::device(seed), |spec| {
        spec.probe_ns = (spec.budget_ns / 40).clamp(4_000_000_000, 6_000_000_000);
        (spec.most_block_bytes, spec.most_depth, spec.most_in_flight_bytes) = (512 << 10, 256, 128 << 20);
    })
}

fn judged_of(volume: &Drawn, limited: impl Fn(&mut IdentifyActivity)) -> (String, Vec<Judged>) {
    let seed = volume.seed;
    let settings = IdentifySettings {
        run: RunSettings { target: volume.target().into(), ..RunSettings::default() },
        budget: Some(Nanos::from_secs(volume.budget_s)),
        ..IdentifySettings::default()
    };
    let mut plan = IdentifyPlan::make(settings).unwrap();
    limited(&mut plan.spec.limits);
    let (record, found) = identify(&plan, &mut plan.site.session(), &mut ()).unwrap();
    let (limits, spent) = (&plan.spec.limits, found.spent);
    let (time_s, ios) = (spent.time_ns as f64 / 1e9, spent.ios);
    let (probes, target) = (record.tests.len(), volume.target());
    let head = format!("{target} --budget {}: {probes} probes, {time_s:.0} s, {ios} I/Os\n", volume.budget_s);
    let mut verdicts = judged(volume, &found);
    let is_kept = spent.time_ns <= limits.budget_ns + KEPT_NS && spent.ios <= limits.budget_ios;
    if !is_kept {
        verdicts.push(("budget".to_owned(), Verdict::Wrong, format!("{limits:?} {spent:?}")));
    }
    if std::env::var_os("SEEDS").is_some() {
        eprintln!("{seed} {head}");
        let amiss = verdicts.iter().filter(|one| matches!(one.1, Verdict::Wrong | Verdict::Missed));
        amiss.for_each(|(name, verdict, shown)| eprintln!("   {verdict:?} {name}: {shown}"));
    }
    (head, verdicts)
}

/// What identifying `target` as on a device finds.
fn found_slowly(target: BenchTarget, budget_s: u64) -> Identified {
    let settings = IdentifySettings {
        run: RunSettings { target: "volume".into(), seed: Some(1), ..RunSettings::default() },
        budget: Some(Nanos::from_secs(budget_s)),
        read_only: true,
        ..IdentifySettings::default()
    };
    let mut plan = IdentifyPlan::on(target, settings).unwrap();
    let spec = &mut plan.spec.limits;
    spec.probe_ns = (spec.budget_ns / 40).clamp(4_000_000_000, 6_000_000_000);
    (spec.most_block_bytes, spec.most_depth, spec.most_in_flight_bytes) = (512 << 10, 256, 128 << 20);
    identify(&plan, &mut plan.site.session(), &mut ()).unwrap().1
}

#[test]
fn buckets_of_ios_and_of_bytes_are_both_found() {
    for ((base, burst, capacity), (base_bytes, burst_bytes, capacity_bytes)) in [
        ((313, 2010, 31_000), (5_100_000, 41_000_000, 510_000_000)),
        ((517, 1930, 52_000), (9_300_000, 33_000_000, 900_000_000)),
        ((313, 2010, 61_000), (5_100_000, 41_000_000, 610_000_000)),
    ] {
        let target = format!(
            "sim:custom?iops={base}&burst_iops={burst}&bucket_ios={capacity}&bandwidth={base_bytes}\
             &burst_bandwidth={burst_bytes}&bucket_bytes={capacity_bytes}&latency=240us&latency_spread=1&size=1GiB"
        );
        let volume = BenchTarget::inspect(Path::new(&target), &[], &VolumeTypes::default()).unwrap();
        let found = found_slowly(volume, 1200);
        let truths = [
            (BucketUnit::Ios, base, burst, capacity),
            (BucketUnit::Bytes, base_bytes, burst_bytes, capacity_bytes),
        ];
        for (unit, base, burst, capacity) in truths {
            let bucket = found.bursts.iter().find(|bucket| bucket.unit == unit);
            holds(bucket.unwrap_or_else(|| panic!("{target}: {found:#?}")), [base, burst, capacity]);
        }
    }
}

/// The figures of a bucket are right, and their intervals hold.
fn holds(bucket: &Burst, truths: [u32; 3]) {
    for (figure, truth) in
        [&bucket.baseline_rate, &bucket.burst_rate, &bucket.capacity].into_iter().zip(truths)
    {
        let verdict = judge(figure, Some(f64::from(truth)), 0.05, true);
        assert_eq!(verdict, Verdict::Found { covered: true }, "{figure:?} of {truth}");
    }
}

/// As those of an instance and of its volume. One that ends soon after the other is hidden by it.
#[test]
fn of_two_buckets_of_ios_both_are_found_or_the_lasting_one() {
    let (instance, volume) = (1000, 310);
    for (capacities, budget_s, buckets) in [
        ([40_000, 60_000], 600, 1),
        ([40_000, 60_000], 1800, 1),
        ([140_000, 160_000], 1800, 1),
        ([140_000, 360_000], 1800, 2),
    ] {
        let rate = |per_second: u32| TokenRate::per_second(per_second.into()).unwrap();
        let stage = |base: u32, burst: u32, capacity: u32| {
            let capacity = capacity.into();
            let ios =
                Limit::Credit { base: rate(base), burst: Some(rate(burst)), capacity, initial: capacity };
            LimitStage { ios: Some(ios), ..LimitStage::default() }
        };
        let latency = VolumeLatency::around(250_000);
        let model = VolumeModel {
            shared: vec![stage(instance, 3000, capacities[0]), stage(volume, 3500, capacities[1])],
            read_latency: latency.clone(),
            write_latency: latency,
            ..VolumeModel::unlimited(1 << 30)
        };
        let found = found_slowly(BenchTarget::simulated("volume", model), budget_s);
        assert_eq!(found.bursts.len(), buckets, "{capacities:?}: {found:#?}");
        holds(&found.bursts[buckets - 1], [volume, 3000, capacities[1]]);
        if buckets > 1 {
            holds(&found.bursts[0], [instance, 3000, capacities[0]]);
        }
    }
}

/// With so little time that limits are bounded by what was measured of them.
fn identified_in_haste(seed: u64) -> (String, Vec<Judged>) {
    let mut volume = Drawn::device(seed);
    volume.budget_s = [30, 60, 120][seed as usize % 3];
    let (head, mut verdicts) = judged_of(&volume, |spec| spec.probe_ns = 6_000_000_000);
    verdicts.retain(|(_, _, shown)| shown.contains("before the limit was established"));
    (head, verdicts)
}

/// What is in flight when a probe ends takes its time.
const KEPT_NS: u64 = 1_000_000_000;

fn on_two_threads(
    seeds: &[u64],
    identified: fn(u64) -> (String, Vec<Judged>),
) -> Vec<(u64, (String, Vec<Judged>))> {
    let half = |part: usize| {
        let seeds: Vec<u64> = seeds.iter().skip(part).step_by(2).copied().collect();
        std::thread::spawn(move || seeds.into_iter().map(|seed| (seed, identified(seed))).collect::<Vec<_>>())
    };
    let mut all: Vec<_> = [half(0), half(1)].into_iter().flat_map(|half| half.join().unwrap()).collect();
    all.sort_by_key(|one| one.0);
    all
}

/// Seeds without optimisation, which makes them slow, in the gate, and in the campaign of long tests.
fn count(unoptimised: u64, gate: u64, long: u64) -> u64 {
    match std::env::var_os("FATHOM_LONG_TESTS") {
        Some(_) => long,
        None if cfg!(debug_assertions) => unoptimised,
        None => gate,
    }
}

#[test]
fn truth_of_volumes_drawn_at_random() {
    let seeds = std::env::var("SEEDS").ok();
    let seeds: Vec<u64> = match &seeds {
        Some(seeds) => seeds.split(',').map(|seed| seed.parse().unwrap()).collect(),
        None => (0..count(4, 24, 200)).collect(),
    };
    hold(&seeds, identified);
}

#[test]
fn truth_of_devices_that_take_seconds_for_a_rate() {
    let seeds = std::env::var("DEVICES").ok();
    let seeds: Vec<u64> = match &seeds {
        Some(seeds) => seeds.split(',').map(|seed| seed.parse().unwrap()).collect(),
        None => (0..count(30, 30, 100)).collect(),
    };
    hold(&seeds, identified_slowly);
}

#[test]
fn bounds_from_a_budget_that_ended_early_hold() {
    let seeds: Vec<u64> = (0..count(6, 40, 300)).collect();
    let verdicts: Vec<Judged> = on_two_threads(&seeds, identified_in_haste)
        .into_iter()
        .flat_map(|(_, (_, verdicts))| verdicts)
        .collect();
    assert!(verdicts.len() > seeds.len() / 4, "{} bounds", verdicts.len());
    let wrong: Vec<&Judged> = verdicts.iter().filter(|one| one.1 == Verdict::Wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn hold(seeds: &[u64], identified: fn(u64) -> (String, Vec<Judged>)) {
    let (mut counts, mut covered, mut known) = (std::collections::BTreeMap::new(), 0, 0);
    for (seed, (head, verdicts)) in on_two_threads(seeds, identified) {
        print!("{seed} {head}");
        for (name, verdict, shown) in verdicts {
            let word = match verdict {
                Verdict::Found { covered: is_covered } => {
                    known += 1;
                    covered += u64::from(is_covered);
                    if is_covered { "found" } else { "found, not covered" }
                }
                Verdict::Open => "open",
                Verdict::Missed => "missed",
                Verdict::Wrong => "WRONG",
            };
            if !matches!(verdict, Verdict::Found { covered: true } | Verdict::Open) {
                println!("    {word} {name}: {shown}");
            }
            *counts.entry((name, word)).or_insert(0) += 1;
        }
    }
    for ((name, word), count) in &counts {
        println!("{name:12} {word:20} {count}");
    }
    println!("{covered} of {known} covered");
    let wrong: u64 = counts.iter().filter(|((_, word), _)| *word == "WRONG").map(|one| one.1).sum();
    let all: u64 = counts.values().sum();
    // One volume that fools it is a large part of a few.
    let allowed = all / 200 + if seeds.len() < 100 { 2 } else { 0 };
    assert!(wrong <= allowed, "{wrong} of {all} are wrong");
    assert!(covered * 100 >= known * 95);
}
