//! Closed form, sums and replay give one answer for the loads and volumes to which all apply.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "an error fails the test")]

use fathom_model::Op;
use fathom_observed::{ObservedRequest, RequestPoint, RequestTrace};
use fathom_predict::forecast::forecast_trace;
use fathom_predict::{
    Arrivals, CreditBucket, LoadDemand, LoadLimit, OfferedLoad, Prediction, RecurringBurst, Replay,
    ReplayPace, ReplaySettings, SumsSettings, load_limits, predict_sums, rate_course, reach, serves,
};
use fathom_volume::{Accounting, Limit, LimitStage, TokenRate, VolumeLatency, VolumeModel};
use proptest::prelude::*;

const SECOND: f64 = 1e9;
/// Requests that a replay makes, as far as they take long enough for a unit of merged ones to be a small part.
const REPLAYED: f64 = 3_000.0;
const MIN_REPLAYED_S: f64 = 4.0;
const MAX_REPLAYED: f64 = 20_000.0;

fn rate(tokens: f64) -> TokenRate {
    TokenRate::per_second(tokens as u64).unwrap()
}

/// A limit of about `base` tokens per second; bursts last for seconds, so that a replay sees their end.
fn limit(base: f64) -> impl Strategy<Value = Limit> {
    let credit = move |(factor, seconds): (f64, f64)| {
        let capacity = (base * (factor - 1.0) * seconds) as u64 + 1;
        Limit::Credit { base: rate(base), burst: Some(rate(base * factor)), capacity, initial: capacity }
    };
    prop_oneof![
        Just(Limit::Rate(rate(base))),
        (1.2..8.0, 1.0..20.0).prop_map(credit),
        (1.2..3.0).prop_map(move |factor| Limit::OnDemand { base: rate(base), burst: rate(base * factor) }),
    ]
}

fn accounting() -> impl Strategy<Value = Accounting> {
    let unit = |kib: u32, merges_sequential, whole_units| Accounting {
        unit_bytes: Some(kib << 10),
        merges_sequential,
        whole_units,
    };
    prop_oneof![
        Just(Accounting::default()),
        Just(unit(16, false, false)),
        Just(unit(256, true, false)),
        Just(unit(1024, true, true)),
    ]
}

/// Limits on I/Os, bytes or both.
fn stage(name: &'static str, accounting: Accounting) -> impl Strategy<Value = LimitStage> {
    let (ios, bytes) = (50.0..2_000.0, 1e6..2e8);
    (prop::option::of(ios.prop_flat_map(limit)), prop::option::of(bytes.prop_flat_map(limit))).prop_map(
        move |(ios, bytes)| LimitStage {
            name: name.to_owned(),
            accounting,
            ios,
            bytes,
            ..LimitStage::default()
        },
    )
}

/// A volume on an instance, with limits on both directions together or on each.
fn volume() -> impl Strategy<Value = VolumeModel> {
    let own = accounting().prop_flat_map(|accounting| stage("volume", accounting));
    let instance = prop::option::of(stage("instance", Accounting::default()));
    (own, instance, any::<bool>(), prop::option::of(1_u32..8)).prop_map(
        |(own, instance, is_apart, parallelism)| {
            let (shared, each) = if is_apart { (vec![], vec![own]) } else { (vec![own], vec![]) };
            VolumeModel {
                shared: instance.into_iter().chain(shared).collect(),
                reads: each.clone(),
                writes: each,
                parallelism,
                read_latency: VolumeLatency::fixed(2_000_000),
                write_latency: VolumeLatency::fixed(3_000_000),
                ..VolumeModel::unlimited(1 << 40)
            }
        },
    )
}

fn load() -> impl Strategy<Value = OfferedLoad> {
    let blocks = prop::sample::select(vec![4.0, 16.0, 64.0, 256.0]);
    let shares = prop::sample::select(vec![0.0, 0.5, 1.0]);
    (blocks, any::<bool>(), shares).prop_map(|(kib, is_sequential, share)| OfferedLoad {
        read_fraction: Some(share),
        ..OfferedLoad::of(kib * 1024.0, is_sequential)
    })
}

fn stages(model: &VolumeModel) -> impl Iterator<Item = &LimitStage> {
    model.shared.iter().chain(&model.reads).chain(&model.writes)
}

fn is_billed(model: &VolumeModel) -> bool {
    let mut limits = stages(model).flat_map(|stage| [stage.ios, stage.bytes]).flatten();
    limits.any(|limit| matches!(limit, Limit::OnDemand { .. }))
}

fn of_sums(model: &VolumeModel, demand: &LoadDemand) -> Prediction {
    let settings = SumsSettings {
        arrivals: Arrivals::Evenly,
        is_sequential: false,
        all_reads: false,
        growth_milli: 1000,
        limits: &[],
    };
    predict_sums(model, demand, &settings).unwrap()
}

/// The sums of a load at a rate for some seconds.
fn demand(load: &OfferedLoad, iops: f64, seconds: f64) -> LoadDemand {
    let mut demand = LoadDemand::stated(load, iops, None);
    demand.length_ns = (seconds * SECOND) as u64;
    demand.steps.truncate(1);
    let share = demand.length_ns as f64 / demand.steps[0].length_ns as f64;
    let step = &mut demand.steps[0];
    step.length_ns = demand.length_ns;
    for sum in [&mut step.reads, &mut step.writes] {
        sum.ops = (sum.ops as f64 * share).round() as u64;
        sum.bytes = sum.ops * load.mean_bytes() as u64;
    }
    demand
}

/// The same load request by request, each direction in an order of its own.
fn requests(load: &OfferedLoad, iops: f64, seconds: f64) -> Vec<ObservedRequest> {
    let bytes = load.mean_bytes() as u32;
    let reads = load.read_fraction.unwrap();
    let mut made = [0_u64; 2];
    let count = (iops * seconds).round() as u64;
    let request = |index: u64| {
        let is_read = (index as f64 * reads).fract() + reads >= 1.0;
        let number = &mut made[usize::from(is_read)];
        *number += 1;
        let place = if load.sequential { *number } else { *number * 7919 % 1_000_000 };
        ObservedRequest {
            at_ns: (index as f64 / iops * SECOND) as u64,
            offset: (place + u64::from(is_read) * 2_000_000) * u64::from(bytes),
            latency_ns: None,
            bytes,
            file: 0,
            thread: 0,
            op: if is_read { Op::Read } else { Op::Write },
        }
    };
    (0..count).map(request).collect()
}

fn replayed(model: &VolumeModel, requests: &[ObservedRequest], length_ns: u64) -> Prediction {
    let settings =
        ReplaySettings { seed: 1, pace: ReplayPace::Open, growth_milli: 1000, length_ns, limits: &[] };
    let mut replay = Replay::new(model, &settings).unwrap();
    replay.take(requests);
    replay.prediction()
}

/// When the last of `count` requests at `rate` is served by a volume whose burst credits are `buckets`, s.
fn served_in(rate: f64, buckets: &[CreditBucket], mut count: f64) -> f64 {
    let mut end = 0.0;
    for phase in rate_course(rate, buckets, 0.0) {
        let served = phase.until.map_or(count, |(_, seconds)| phase.iops * seconds);
        if served >= count {
            return end + count / phase.iops;
        }
        count -= served;
        end += served / phase.iops;
    }
    end
}

/// The burst credits of a volume under a load.
fn buckets(model: &VolumeModel, load: &OfferedLoad) -> Vec<CreditBucket> {
    let limits = load_limits(model, [load; 3], load.read_fraction.unwrap());
    let of = |met: LoadLimit<'_>| match met.limit {
        Limit::Credit { base, capacity, .. } => {
            Some(CreditBucket { baseline: base.as_f64(), capacity: capacity as f64, tokens: met.tokens })
        }
        _ => None,
    };
    limits.into_iter().filter_map(of).collect()
}

fn is_near(one: f64, other: f64, share: f64) -> bool {
    (one - other).abs() <= other.abs() * share
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn what_is_sustained_in_closed_form_is_served_for_a_month(model in volume(), load in load(), share in 0.5..0.999) {
        let Some(sustained) = reach(&model, &load).iops else { return Ok(()) };
        let below = sustained * share;
        prop_assert!(serves(&model, &load, below, None));
        let found = of_sums(&model, &LoadDemand::stated(&load, below, None));
        prop_assert!(found.served_share == 1.0 && found.exhausted_ns.is_none(), "{below} of {sustained}: {found:?}");
        let above = sustained * (1.5 + share);
        prop_assert!(!serves(&model, &load, above, None));
        // Bursts that are billed do not end, so that sums serve what is not sustained without them.
        if !is_billed(&model) {
            let found = of_sums(&model, &LoadDemand::stated(&load, above, None));
            prop_assert!(found.served_share < 0.999, "{above} of {sustained}: {found:?}");
        }
    }

    #[test]
    fn bursts_that_recur_are_served_as_long_as_they_refill(
        model in volume(), load in load(), share in 0.2..1.0, length_s in 1_u64..20, rest in 1_u64..30,
    ) {
        let Some(burst) = reach(&model, &load).burst else { return Ok(()) };
        let (length_ns, period_ns) = (length_s * 1_000_000_000, (length_s + length_s * rest) * 1_000_000_000);
        let iops = burst.iops * share;
        let burst = RecurringBurst { length_ns, period_ns, iops_between: 0.0 };
        if serves(&model, &load, iops, Some(burst)) {
            let found = of_sums(&model, &LoadDemand::stated(&load, iops, Some(burst)));
            prop_assert!(found.longest_queue <= 2, "{iops}: {found:?}");
        }
    }

    #[test]
    fn a_burst_lasts_as_long_as_its_credits(model in volume(), load in load(), times in 0.5..4.0) {
        let Some(burst) = reach(&model, &load).burst else { return Ok(()) };
        let Some(lasts_ns) = burst.lasts_ns else { return Ok(()) };
        let (iops, lasts) = (burst.iops, lasts_ns as f64 / SECOND);
        let seconds = lasts * times;
        prop_assume!(iops * lasts >= 1_000.0);
        let found = of_sums(&model, &demand(&load, iops, seconds));
        let exhausted = found.exhausted_ns.map(|ns| ns as f64 / SECOND);
        if times < 0.99 {
            prop_assert!(exhausted.is_none(), "{lasts} s: {found:?}");
        } else if times > 1.01 {
            prop_assert!(is_near(exhausted.unwrap(), lasts, 0.01), "{lasts} s: {found:?}");
        }
        let end = found.summary.elapsed_ns as f64 / SECOND;
        let expected = served_in(iops, &buckets(&model, &load), iops * seconds);
        prop_assert!(is_near(end, expected, 0.01), "{end} s, not {expected}: {found:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn requests_get_what_their_sums_get(model in volume(), load in load(), share in 0.3_f64..2.0) {
        let reached = reach(&model, &load);
        let full: Option<f64> = reached.burst.map(|burst| burst.iops).or(reached.iops);
        let Some(iops) = full.map(|full| full * share) else { return Ok(()) };
        let seconds = (REPLAYED / iops).max(MIN_REPLAYED_S);
        prop_assume!(iops * seconds <= MAX_REPLAYED);
        let sums = of_sums(&model, &demand(&load, iops, seconds));
        let requests: Vec<ObservedRequest> = requests(&load, iops, seconds);
        let length_ns = (seconds * SECOND) as u64;
        let found = replayed(&model, &requests, length_ns);
        let rate = |prediction: &Prediction| prediction.summary.total.as_ref().unwrap().iops;
        prop_assert!(is_near(rate(&found), rate(&sums), 0.03), "{iops}: {found:?}, {sums:?}");
        // Limits precede the servers: requests that wait for a server have used their credits.
        let has_waited = model.parallelism.is_some() && share > 1.0;
        match (found.exhausted_ns, sums.exhausted_ns) {
            _ if has_waited => {}
            (Some(one), Some(other)) => {
                prop_assert!(is_near(one as f64, other as f64, 0.05), "{iops}: {found:?}, {sums:?}");
            }
            (None, None) => {}
            // At the very end.
            (one, other) => {
                let at = one.or(other).unwrap() as f64 / SECOND;
                prop_assert!(at >= seconds * 0.9, "{iops}: {found:?}, {sums:?}");
            }
        }
        // What completes is the same, whether it is counted by its arrival or by its completion.
        let trace =
            RequestTrace { files: Vec::new(), requests, has_times: true, point: RequestPoint::Driver };
        let forecast = forecast_trace(&model, 1, (&trace, length_ns), None, &|| None, &mut |_, _| {}).unwrap().forecast;
        let (lat, total) = (forecast.total().lat, found.summary.total.unwrap());
        prop_assert_eq!((lat.moments.count, lat.summary().p99), (total.ios, total.lat_ns.p99));
        prop_assert_eq!(forecast.elapsed_ns.max(length_ns), found.summary.elapsed_ns);
        let most_in_flight = forecast.own_pace.unwrap().most_in_flight;
        prop_assert_eq!(most_in_flight, Some(found.longest_queue));
    }
}
