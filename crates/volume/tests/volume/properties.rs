//! Invariants of any volume under any requests.

use fathom_model::Op;
use fathom_volume::{
    Accounting, Distribution, Fault, FaultKind, FirstTouch, Limit, LimitStage, LimitState, TokenRate, Volume,
    VolumeLatency, VolumeModel, VolumeRequest,
};
use proptest::prelude::*;

use crate::closed_loop::{GIB, SECOND, rate};

/// ns since the previous request, and the request.
type Asked = (u64, VolumeRequest);

fn any_rate() -> impl Strategy<Value = TokenRate> {
    (1u64..100_000, 1u64..10 * SECOND)
        .prop_filter_map("a rate", |(tokens, per_ns)| TokenRate::ratio(tokens, per_ns))
}

/// A baseline and a burst that is no slower.
fn rates() -> impl Strategy<Value = (TokenRate, TokenRate)> {
    (any_rate(), any_rate()).prop_map(|(one, other)| (one.min(other), one.max(other)))
}

/// Spans from ns to minutes.
fn a_while() -> impl Strategy<Value = u64> {
    prop_oneof![1u64..1000, 1u64..SECOND, 1u64..100 * SECOND]
}

fn any_limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        any_rate().prop_map(Limit::Rate),
        (rates(), 1u64..1_000_000, 0u64..1_000_000, any::<bool>()).prop_map(
            |((base, burst), capacity, initial, is_limited)| Limit::Credit {
                base,
                burst: is_limited.then_some(burst),
                capacity,
                initial: initial.min(capacity),
            }
        ),
        ((1u64..1000, 1u64..1000), a_while(), a_while()).prop_map(|((one, other), burst_ns, rest_ns)| {
            Limit::Window { base: rate(one.min(other)), burst: rate(one.max(other)), burst_ns, rest_ns }
        }),
        rates().prop_map(|(base, burst)| Limit::OnDemand { base, burst }),
    ]
}

fn any_stage() -> impl Strategy<Value = LimitStage> {
    let unit = prop_oneof![Just(None), Just(Some(16 << 10)), Just(Some(256 << 10))];
    let slack = prop_oneof![Just(0), 0u64..SECOND];
    (prop::option::of(any_limit()), prop::option::of(any_limit()), unit, any::<bool>(), slack).prop_map(
        |(ios, bytes, unit_bytes, merges, slack_ns)| {
            let merges_sequential = merges && unit_bytes.is_some();
            let accounting = Accounting { unit_bytes, merges_sequential, whole_units: false };
            LimitStage { accounting, ios, bytes, slack_ns, ..LimitStage::default() }
        },
    )
}

fn any_latency() -> impl Strategy<Value = VolumeLatency> {
    let transfer = prop::option::of((1u64 << 20..1 << 30).prop_map(rate));
    (0u64..10_000_000, any::<bool>(), transfer).prop_map(|(ns, is_fixed, transfer)| {
        let distribution =
            if is_fixed { Distribution::Fixed(ns) } else { VolumeLatency::around(ns).distribution };
        VolumeLatency { distribution, transfer }
    })
}

fn any_faults() -> impl Strategy<Value = Vec<Fault>> {
    let kind = prop_oneof![
        Just(FaultKind::Stall),
        Just(FaultKind::Error { per_million: 300_000, errno: 5 }),
        Just(FaultKind::Slow { percent: 250 }),
    ];
    // One in eight has no end; faults after it never occur.
    let length = prop_oneof![7 => 1u64..5 * SECOND, 1 => Just(u64::MAX)];
    prop::collection::vec((0u64..5 * SECOND, length, kind), 0..4).prop_map(|spells| {
        let mut at: u64 = 0;
        spells
            .into_iter()
            .map_while(|(gap, length_ns, kind)| {
                let fault = Fault { at_ns: at.checked_add(gap)?, length_ns, kind };
                at = fault.at_ns.saturating_add(length_ns);
                Some(fault)
            })
            .collect()
    })
}

fn any_model() -> impl Strategy<Value = VolumeModel> {
    let stages = || prop::collection::vec(any_stage(), 0..2);
    let first_touch = prop::option::of(prop::option::of(1u64..1 << 30).prop_map(|per_second| FirstTouch {
        chunk_bytes: 1 << 20,
        counts_as: 2,
        extra_ns: 5000,
        initialization: per_second.and_then(TokenRate::per_second),
    }));
    let parts = (stages(), stages(), stages(), prop::option::of(1u32..9), any_latency(), any_latency());
    (parts, first_touch, any_faults()).prop_map(
        |((shared, reads, writes, parallelism, read_latency, write_latency), first_touch, faults)| {
            VolumeModel {
                shared,
                reads,
                writes,
                parallelism,
                read_latency,
                write_latency,
                first_touch,
                faults,
                ..VolumeModel::unlimited(GIB)
            }
        },
    )
}

fn any_requests() -> impl Strategy<Value = Vec<Asked>> {
    let op = prop_oneof![4 => Just(Op::Read), 4 => Just(Op::Write), 1 => Just(Op::Trim), 1 => Just(Op::Sync)];
    let gap = prop_oneof![3 => Just(0), 2 => 0u64..1_000_000, 1 => 0u64..5 * SECOND];
    let request = (op, 0u64..(1 << 18) - 256, 1u32..257).prop_map(|(op, block, blocks)| match op {
        Op::Sync => VolumeRequest { op, offset: 0, bytes: 0 },
        _ => VolumeRequest { op, offset: block * 4096, bytes: blocks * 4096 },
    });
    prop::collection::vec((gap, request), 1..120)
}

/// Start and completion of each request.
fn play(volume: &mut Volume, asked: &[Asked], begin_ns: u64) -> Vec<(u64, u64)> {
    let mut now = begin_ns;
    asked
        .iter()
        .map(|(gap, request)| {
            now += gap;
            (now, volume.submit(now, request).at_ns)
        })
        .collect()
}

/// Most tokens that `limit` permits in `span_ns`, if no request costs more than `most`.
fn allowance(limit: &Limit, span_ns: u64, slack_ns: u64, most: u64) -> u128 {
    // A rate permits one request before it is paid for, and times are whole ns.
    let paced = |rate: TokenRate| rate.in_ns(span_ns + slack_ns + 1) + 1 + u128::from(most);
    match *limit {
        Limit::Rate(rate) | Limit::OnDemand { burst: rate, .. } => paced(rate),
        Limit::Credit { base, burst, capacity, .. } => {
            let credit = u128::from(capacity.max(most)) + base.in_ns(span_ns + 1) + 1;
            burst.map_or(credit, |burst| credit.min(paced(burst)))
        }
        Limit::Window { base, burst, burst_ns, rest_ns } => {
            let bursts = span_ns / (burst_ns + rest_ns) + 2;
            let beyond = burst.minus(base).map_or(0, |beyond| beyond.in_ns(burst_ns) + 1);
            paced(burst).min(paced(base) + u128::from(bursts) * beyond)
        }
    }
}

/// Checks every time span that begins and ends with a request.
fn check_windows(limit: &Limit, slack_ns: u64, went: &[(u64, u64)]) -> Result<(), TestCaseError> {
    let most = went.iter().map(|&(_, cost)| cost).max().unwrap_or_default();
    for first in 0..went.len() {
        let mut sum = 0u128;
        for &(at, cost) in &went[first..] {
            sum += u128::from(cost);
            let span = at - went[first].0;
            let allowed = allowance(limit, span, slack_ns, most);
            prop_assert!(sum <= allowed, "{sum} in {span} ns, allowed are {allowed} by {limit:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_window_exceeds_its_budget(
        ios in prop::option::of(any_limit()),
        bytes in prop::option::of(any_limit()),
        slack_ns in prop_oneof![Just(0), 0u64..SECOND],
        asked in any_requests(),
    ) {
        // Without latency a request completes when it passes the limits; trims and syncs are omitted, because they move
        // no bytes.
        let stage = LimitStage { ios, bytes, slack_ns, ..LimitStage::default() };
        let model = VolumeModel { shared: vec![stage], ..VolumeModel::unlimited(GIB) };
        let asked: Vec<Asked> = asked.into_iter().filter(|(_, it)| matches!(it.op, Op::Read | Op::Write)).collect();
        let mut volume = Volume::new(&model, 0).unwrap();
        let went = play(&mut volume, &asked, 0);
        let went_with = |cost: &dyn Fn(&VolumeRequest) -> u64| -> Vec<(u64, u64)> {
            went.iter().zip(&asked).map(|(&(_, at), (_, request))| (at, cost(request))).collect()
        };
        // While requests wait for one limit, they may get as far ahead of the other one.
        let slack_ns = if ios.is_some() && bytes.is_some() { slack_ns.max(10_000_000) } else { slack_ns };
        if let Some(limit) = ios {
            check_windows(&limit, slack_ns, &went_with(&|_| 1))?;
        }
        if let Some(limit) = bytes {
            check_windows(&limit, slack_ns, &went_with(&|request| u64::from(request.bytes)))?;
        }
    }

    #[test]
    fn requests_end_after_their_start_and_all_are_counted(
        model in any_model(), asked in any_requests(), seed: u64,
    ) {
        let mut volume = Volume::new(&model, seed).unwrap();
        for (made, ends) in play(&mut volume, &asked, 0) {
            prop_assert!(ends >= made, "{ends} < {made}");
            for stage in volume.stage_states(made) {
                for state in stage.ios.iter().chain(&stage.bytes) {
                    let LimitState::Credit { left, capacity } = state else { continue };
                    prop_assert!(left <= capacity);
                }
            }
        }
        let counters = volume.counters();
        prop_assert_eq!(counters.issued, asked.len() as u64);
        prop_assert_eq!(counters.issued, counters.done + counters.failed + counters.never);
    }

    #[test]
    fn the_same_seed_gives_the_same_completions(model in any_model(), asked in any_requests(), seed: u64) {
        let answers = || {
            let mut volume = Volume::new(&model, seed).unwrap();
            (play(&mut volume, &asked, 0), volume.counters())
        };
        prop_assert_eq!(answers(), answers());
    }

    #[test]
    fn results_depend_only_on_the_time_since_the_beginning(
        model in any_model(), asked in any_requests(), seed: u64, origin in 0..u64::MAX / 4,
    ) {
        let mut here = Volume::new(&model, seed).unwrap();
        let mut there = Volume::beginning_at(&model, seed, origin).unwrap();
        let shifted: Vec<(u64, u64)> = play(&mut here, &asked, 0)
            .into_iter()
            .map(|(made, ends)| (made + origin, ends.saturating_add(origin)))
            .collect();
        prop_assert_eq!(shifted, play(&mut there, &asked, origin));
    }

    #[test]
    fn requests_with_equal_service_times_end_in_order(
        shared in prop::collection::vec(any_stage(), 0..3),
        parallelism in prop::option::of(1u32..9),
        faults in any_faults(),
        ns in 0u64..10_000_000,
        asked in any_requests(),
    ) {
        let faults = faults.into_iter().filter(|fault| !matches!(fault.kind, FaultKind::Slow { .. })).collect();
        let latency = VolumeLatency::fixed(ns);
        let model = VolumeModel {
            shared,
            parallelism,
            faults,
            read_latency: latency.clone(),
            write_latency: latency,
            ..VolumeModel::unlimited(GIB)
        };
        let asked: Vec<Asked> = asked.into_iter().filter(|(_, request)| !request.op.is_sync()).collect();
        let mut volume = Volume::new(&model, 0).unwrap();
        let ends: Vec<u64> = play(&mut volume, &asked, 0).into_iter().map(|(_, ends)| ends).collect();
        prop_assert!(ends.is_sorted(), "{ends:?}");
    }

    #[test]
    fn with_separate_limits_writes_do_not_affect_reads(
        reads in any_stage(), writes in any_stage(), model in any_model(), asked in any_requests(), seed: u64,
    ) {
        // Errors are drawn in the order of all requests, and both operations touch blocks.
        let model = VolumeModel {
            shared: Vec::new(), reads: vec![reads], writes: vec![writes], first_touch: None, ..model
        };
        let mut together = Volume::new(&model, seed).unwrap();
        let both = play(&mut together, &asked, 0);
        let ends_of_reads: Vec<u64> = both
            .iter()
            .zip(&asked)
            .filter(|(_, (_, request))| request.op == Op::Read)
            .map(|(&(_, ends), _)| ends)
            .collect();
        let mut alone = Volume::new(&model, seed).unwrap();
        let mut now = 0;
        let mut ends_alone = Vec::new();
        for (gap, request) in &asked {
            now += gap;
            if request.op == Op::Read {
                ends_alone.push(alone.submit(now, request).at_ns);
            }
        }
        prop_assert_eq!(ends_of_reads, ends_alone);
    }
}
