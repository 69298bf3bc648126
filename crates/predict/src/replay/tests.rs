//! Loads that are recorded on one simulated volume, predicted for others, and then run on those.

use std::num::NonZeroU64;

use fathom_volume::{Limit, LimitStage, TokenRate, VolumeLatency};

use super::*;
use crate::clients::LoadArrivals;
use crate::{ArrivalCounter, LoadPace};

const SECOND: u64 = 1_000_000_000;

/// Numbers between 0 and 1 from a seed.
pub(super) struct Draws(pub(super) u64);

impl Draws {
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as f64 + 0.5) / f64::from(1_u32 << 31)
    }
}

/// The load of a client: open arrivals, or clients that wait for their requests and then think.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Constant(f64),
    /// A day in the length of the load.
    Diurnal(f64),
    /// A fifth of every third of the time at the rate, a tenth of it otherwise.
    Batch(f64),
    /// Exponential pauses and heavy-tailed bursts.
    Bursty(f64),
    /// Independent requests.
    Poisson(f64),
    /// Eight requests at a time, independent of others.
    Eights(f64),
    /// Clients, and their mean pause in ns.
    Clients(usize, f64),
    /// The same with pauses that hardly vary.
    Thinking(usize, f64),
    /// Such clients beside independent requests.
    Beside(usize, f64, f64),
}

const LENGTH: u64 = 120 * SECOND;

fn arrivals(shape: Shape, seed: u64, length: u64) -> Vec<u64> {
    let mut draws = Draws(seed);
    let (mut at, mut all) = (0.0, Vec::new());
    loop {
        let part = at / length as f64;
        let rate = match shape {
            Shape::Constant(rate) => rate,
            Shape::Diurnal(rate) => rate * (1.0 + 0.8 * (part * std::f64::consts::TAU).sin()),
            Shape::Batch(rate) => {
                if part * 3.0 % 1.0 < 0.2 {
                    rate
                } else {
                    rate / 10.0
                }
            }
            Shape::Bursty(rate) | Shape::Eights(rate) => rate / 8.0,
            Shape::Poisson(rate) | Shape::Beside(_, _, rate) => rate,
            Shape::Clients(..) | Shape::Thinking(..) => return all,
        };
        let gap = match shape {
            Shape::Constant(rate) => 1e9 / rate,
            _ => -draws.next().ln() * 1e9 / rate,
        };
        at += gap;
        if at >= length as f64 {
            return all;
        }
        let burst = match shape {
            // Pareto with a mean of about 8, at most 400.
            Shape::Bursty(_) => (2.6 * draws.next().powf(-1.0 / 1.4)).min(400.0) as usize,
            Shape::Eights(_) => 8,
            _ => 1,
        };
        all.extend(std::iter::repeat_n(at as u64, burst.max(1)));
    }
}

fn request(at_ns: u64, draws: &mut Draws) -> ObservedRequest {
    let offset = (draws.next() * 1e6) as u64 * 4096;
    let op = if draws.next() < 0.7 { Op::Read } else { Op::Write };
    ObservedRequest { at_ns, offset, latency_ns: None, bytes: 8192, file: 0, thread: 0, op }
}

/// The thread of requests that come by themselves.
const OTHERS: u8 = 200;

/// Runs a load on a volume, and records it as a tracer would, with its threads.
pub(super) fn run(shape: Shape, model: &VolumeModel, seed: u64, length: u64) -> Vec<ObservedRequest> {
    let mut volume = Volume::new(model, seed).unwrap();
    let mut draws = Draws(seed ^ 0x5eed);
    let mut submit = |at: u64, thread: u8, draws: &mut Draws| {
        let mut made = ObservedRequest { thread, ..request(at, draws) };
        let asked = VolumeRequest { op: made.op, offset: made.offset, bytes: made.bytes };
        let end = volume.submit(at, &asked).at_ns;
        made.latency_ns = NonZeroU64::new(end - at);
        (made, end)
    };
    let (clients, pause) = match shape {
        Shape::Clients(clients, pause)
        | Shape::Thinking(clients, pause)
        | Shape::Beside(clients, pause, _) => (clients as u64, pause),
        _ => (0, 0.0),
    };
    let others = arrivals(shape, seed, length).into_iter().map(|at| (at, OTHERS));
    let mut ready: BinaryHeap<Reverse<(u64, u8)>> =
        (0..clients).map(|client| (client * 1000, 1 + client as u8)).chain(others).map(Reverse).collect();
    let mut all = Vec::new();
    while let Some(Reverse((at, thread))) = ready.pop().filter(|next| next.0.0 < length) {
        let (made, end) = submit(at, thread, &mut draws);
        all.push(made);
        let think = match shape {
            Shape::Clients(..) if pause > 0.0 => -draws.next().ln() * pause,
            Shape::Clients(..) => 0.0,
            _ => pause * (0.98 + 0.04 * draws.next()),
        };
        if thread != OTHERS {
            ready.push(Reverse((end + think as u64, thread)));
        }
    }
    all
}

pub(super) fn rate(tokens: u64) -> TokenRate {
    TokenRate::per_second(tokens).unwrap()
}

pub(super) fn model(ios: Limit, latency_us: u64) -> VolumeModel {
    let stage = LimitStage {
        name: "volume".to_owned(),
        ios: Some(ios),
        bytes: Some(Limit::Rate(rate(200 << 20))),
        ..LimitStage::default()
    };
    VolumeModel {
        shared: vec![stage],
        read_latency: VolumeLatency::around(latency_us * 1000),
        write_latency: VolumeLatency::around(latency_us * 1200),
        ..VolumeModel::unlimited(1 << 34)
    }
}

pub(super) fn bucket(base: u64, burst: u64, capacity: u64) -> Limit {
    Limit::Credit { base: rate(base), burst: Some(rate(burst)), capacity, initial: capacity }
}

/// The volumes that a load is predicted for, and then run on.
fn others() -> [VolumeModel; 3] {
    [
        model(Limit::Rate(rate(4_000)), 400),
        model(Limit::Rate(rate(1_400)), 900),
        model(bucket(600, 3_000, 60_000), 700),
    ]
}

fn predicted(requests: &[ObservedRequest], model: &VolumeModel, pace: ReplayPace) -> Prediction {
    let settings = ReplaySettings { seed: 99, pace, growth_milli: 1000, length_ns: LENGTH, limits: &[] };
    let mut replay = Replay::new(model, &settings).unwrap();
    // In chunks, as they are read.
    requests.chunks(777).for_each(|chunk| replay.take(chunk));
    replay.prediction()
}

/// What a run really gave: the same figures from its own record.
pub(super) fn measured(requests: &[ObservedRequest], model: &VolumeModel, length_ns: u64) -> Prediction {
    let mut run = ReplayRun::new(
        model,
        &ReplaySettings { seed: 7, pace: ReplayPace::Open, growth_milli: 1000, length_ns, limits: &[] },
    )
    .unwrap();
    for request in requests {
        run.make(request.at_ns, request);
    }
    run.prediction()
}

pub(super) fn figures(prediction: &Prediction) -> [f64; 3] {
    let total = prediction.summary.total.as_ref().unwrap();
    [total.iops, total.lat_ns.p50.unwrap() as f64, total.lat_ns.p99.unwrap() as f64]
}

/// The figures of a run from its own record.
fn recorded_figures(requests: &[ObservedRequest]) -> [f64; 3] {
    let mut latencies: Vec<u64> =
        requests.iter().filter_map(|request| Some(request.latency_ns?.get())).collect();
    latencies.sort_unstable();
    let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize] as f64;
    let end = requests.iter().map(|request| request.at_ns).max().unwrap();
    [requests.len() as f64 * 1e9 / end as f64, at(0.5), at(0.99)]
}

fn check_near(name: &str, predicted: &Prediction, run: &Prediction) {
    check_figures(name, figures(predicted), figures(run));
    match (predicted.exhausted_ns, run.exhausted_ns) {
        (Some(found), Some(expected)) => {
            assert!((found as f64 / expected as f64 - 1.0).abs() <= 0.05, "{name}: {found} {expected}");
        }
        (found, expected) => assert_eq!(found, expected, "{name}"),
    }
}

fn check_figures(name: &str, found: [f64; 3], expected: [f64; 3]) {
    for (index, most) in [(0, 0.03), (1, 0.10), (2, 0.10)] {
        let error = (found[index] / expected[index] - 1.0).abs();
        assert!(error <= most, "{name}: figure {index}: {found:?}, not {expected:?}");
    }
}

const SHAPES: [Shape; 4] =
    [Shape::Constant(900.0), Shape::Diurnal(1000.0), Shape::Batch(2600.0), Shape::Bursty(700.0)];

#[test]
fn open_loads_are_predicted_for_other_volumes() {
    let recorded_on = model(Limit::Rate(rate(10_000)), 300);
    for shape in SHAPES {
        let recorded = run(shape, &recorded_on, 1, LENGTH);
        for (index, other) in others().iter().enumerate() {
            let name = format!("{shape:?} on volume {index}");
            check_near(
                &name,
                &predicted(&recorded, other, ReplayPace::Open),
                &measured(&run(shape, other, 1, LENGTH), other, LENGTH),
            );
        }
    }
}

#[test]
fn closed_loads_are_predicted_for_other_volumes() {
    let recorded_on = model(Limit::Rate(rate(10_000)), 300);
    for shape in [Shape::Clients(1, 0.0), Shape::Clients(8, 0.0), Shape::Clients(16, 4e6)] {
        let recorded = run(shape, &recorded_on, 1, LENGTH);
        // The clients go on for as long as the recording lasts; the prediction is of the same requests, however long these take.
        if matches!(shape, Shape::Clients(_, 0.0)) {
            assert_eq!(inferred(&recorded).pace, LoadPace::Closed, "{shape:?}");
        }
        for (index, other) in [others()[0].clone(), others()[1].clone()].iter().enumerate() {
            let name = format!("{shape:?} on volume {index}");
            let found = figures(&predicted(&recorded, other, ReplayPace::Closed));
            check_figures(&name, found, recorded_figures(&run(shape, other, 1, LENGTH)));
        }
    }
}

#[test]
fn a_foreign_request_makes_no_second_client_of_one() {
    let shape = Shape::Clients(1, 2e6);
    let mut recorded = run(shape, &model(Limit::Rate(rate(10_000)), 300), 1, LENGTH);
    let beside = ObservedRequest { at_ns: recorded[5].at_ns + 100_000, ..recorded[5] };
    recorded.insert(6, beside);
    let other = model(Limit::Rate(rate(10_000)), 5_000);
    let found = figures(&predicted(&recorded, &other, ReplayPace::Closed));
    check_figures("one client", found, recorded_figures(&run(shape, &other, 1, LENGTH)));
}

#[test]
fn credits_last_as_long_as_in_the_run() {
    let recorded_on = model(Limit::Rate(rate(10_000)), 300);
    let recorded = run(Shape::Constant(2_000.0), &recorded_on, 3, LENGTH);
    let other = model(bucket(600, 3_000, 60_000), 700);
    let found = predicted(&recorded, &other, ReplayPace::Open);
    // 60,000 credits at 2,000 - 600 a second.
    let seconds = found.exhausted_ns.unwrap() as f64 / 1e9;
    assert!((seconds / 42.857 - 1.0).abs() < 0.01, "{seconds}");
    assert_eq!(found.lowest_credits.unwrap().share, 0.0);
    assert!(found.served_share < 0.9 && found.throttled_share > 0.6, "{found:?}");
}

#[test]
fn close_to_the_refill_rate_a_closed_loop_may_never_exhaust_its_credits() {
    let recorded = run(Shape::Clients(1, 2e6), &model(Limit::Rate(rate(10_000)), 300), 1, LENGTH);
    let on = |limit: Limit| predicted(&recorded, &model(limit, 2_000), ReplayPace::Closed);
    let rate_of = |found: &Prediction| found.summary.total.as_ref().unwrap().iops;
    let unlimited = rate_of(&on(Limit::Rate(rate(10_000))));
    // About 243 IOPS, of which the credits have to bring 20, 50 and none.
    let found = [223, 193, 260].map(|base| {
        let found = on(bucket(base, 3_000, 3_000));
        let drain = unlimited - base as f64;
        let error = 0.03 * unlimited;
        let lasts = |drain: f64| 3_000.0 / drain.max(0.0);
        let range = found
            .exhaustion
            .map(|range| [Some(range.low), range.high].map(|ns| ns.map(|ns| ns as f64 / 1e9)));
        (range, [lasts(drain + error), lasts(drain - error)])
    });
    let is_near = |found: Option<f64>, expected: f64| (found.unwrap() / expected - 1.0).abs() < 0.05;
    let [(narrow, [from, _]), (wide, [first, last]), (none, _)] = found;
    let [low, high] = narrow.unwrap();
    assert!(is_near(low, from) && high.is_none(), "{low:?} for {from}, {high:?}");
    let [low, high] = wide.unwrap();
    assert!(is_near(low, first) && is_near(high, last), "{low:?} for {first}, {high:?} for {last}");
    assert_eq!(none, None);
}

#[test]
fn credits_are_exhausted_when_the_last_is_taken_not_when_its_request_arrives() {
    // 10,000 requests at once: of 2,000 credits 500 a second are missing, so the last is taken after 4 s.
    let requests: Vec<ObservedRequest> = (0..10_000).map(|_| request(0, &mut Draws(1))).collect();
    let other = model(bucket(500, 1_000, 2_000), 700);
    let seconds = predicted(&requests, &other, ReplayPace::Open).exhausted_ns.unwrap() as f64 / 1e9;
    assert!((seconds - 4.0).abs() < 0.05, "{seconds}");
}

#[test]
fn growth_makes_further_requests() {
    let mut copies = Copies::new(1500);
    let counts: Vec<u64> = (0..4).map(|_| copies.next_count()).collect();
    assert_eq!(counts, [1, 2, 1, 2]);
}

const MS: f64 = 1e6;

/// Loads, and their pace where a recording of them leaves one reading.
const RECORDED: [(Shape, Option<LoadPace>); 20] = [
    (Shape::Constant(900.0), Some(LoadPace::Open)),
    (Shape::Poisson(884.0), Some(LoadPace::Open)),
    (Shape::Poisson(300.0), Some(LoadPace::Open)),
    (Shape::Diurnal(500.0), Some(LoadPace::Open)),
    (Shape::Batch(1_000.0), Some(LoadPace::Open)),
    (Shape::Bursty(300.0), Some(LoadPace::Open)),
    (Shape::Eights(600.0), Some(LoadPace::Open)),
    (Shape::Clients(1, 0.0), Some(LoadPace::Closed)),
    (Shape::Clients(8, 0.0), Some(LoadPace::Closed)),
    (Shape::Clients(32, 0.0), Some(LoadPace::Closed)),
    (Shape::Clients(4, 2.0 * MS), Some(LoadPace::Closed)),
    (Shape::Thinking(1, MS), Some(LoadPace::Closed)),
    (Shape::Thinking(4, 2.0 * MS), Some(LoadPace::Closed)),
    (Shape::Thinking(4, 10.0 * MS), Some(LoadPace::Closed)),
    (Shape::Thinking(16, 4.0 * MS), Some(LoadPace::Closed)),
    // As far as 16 clients meet, others may be beside fewer of them; and the same the other way round.
    (Shape::Clients(16, 4.0 * MS), None),
    (Shape::Clients(32, 10.0 * MS), None),
    (Shape::Beside(4, 2.0 * MS, 300.0), None),
    (Shape::Beside(4, 0.0, 200.0), None),
    (Shape::Beside(2, 5.0 * MS, 500.0), None),
];

/// What requests wait for, by their times and threads.
fn inferred(recorded: &[ObservedRequest]) -> LoadArrivals {
    let mut counter = ArrivalCounter::default();
    counter.take_all(recorded);
    if counter.looks_again() {
        counter.take_all(recorded);
    }
    counter.arrivals()
}

/// Records loads on a volume, and checks what is predicted of others by what their own times, and their threads where these are known,
/// say of their pace.
fn check_recorded(
    recorded_on: &VolumeModel,
    has_threads: bool,
    loads: &[(Shape, Option<LoadPace>)],
    others: &[VolumeModel],
) {
    let length = 40 * SECOND;
    for &(shape, expected) in loads {
        let mut recorded = run(shape, recorded_on, 1, length);
        if !has_threads {
            recorded.iter_mut().for_each(|request| request.thread = 0);
        }
        let arrivals = inferred(&recorded);
        let pace = arrivals.pace;
        assert!(expected.is_none_or(|expected| pace == expected), "{shape:?}: {pace:?}");
        for (index, other) in others.iter().enumerate() {
            let found: Vec<Prediction> = (arrivals.readings().into_iter())
                .map(|pace| {
                    let (growth_milli, limits) = (1000, &[][..]);
                    let settings = ReplaySettings { seed: 99, pace, growth_milli, length_ns: length, limits };
                    let mut replay = Replay::new(other, &settings).unwrap();
                    replay.take(&recorded);
                    replay.prediction()
                })
                .collect();
            let actual = recorded_figures(&run(shape, other, 1, length));
            // What comes by itself has no bound where the volume falls behind.
            let is_bounded = found.iter().all(|one| one.is_closed || one.served_share > 0.99);
            for (figure, most) in [(0, 0.03), (1, 0.10), (2, 0.20)] {
                let values = || found.iter().map(|one| figures(one)[figure]);
                let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
                let holds = low <= actual[figure] * (1.0 + most) && high >= actual[figure] * (1.0 - most);
                let is_narrow = high < low * 3.0 || !is_bounded;
                let name = format!("{shape:?} ({pace:?}) on volume {index}, figure {figure}");
                assert!(holds && is_narrow, "{name}: {low} to {high}, not {}", actual[figure]);
            }
        }
    }
}

#[test]
fn loads_recorded_below_a_limit_are_predicted_as_a_figure_or_a_range() {
    let slower = [model(Limit::Rate(rate(1_400)), 900), model(Limit::Rate(rate(1_200)), 500)];
    check_recorded(&model(Limit::Rate(rate(5_000)), 400), false, &RECORDED, &slower);
}

#[test]
fn loads_recorded_at_a_limit_are_predicted_for_faster_volumes() {
    // Those beside clients would come at the recorded rate still, and clients faster: no reading has both.
    let recorded_on = model(Limit::Rate(rate(1_200)), 500);
    check_recorded(&recorded_on, false, &RECORDED[..17], &[model(Limit::Rate(rate(4_000)), 400)]);
}

#[test]
fn threads_that_hand_on_requests_of_clients_are_no_others() {
    let mut recorded =
        run(Shape::Thinking(4, 2.0 * MS), &model(Limit::Rate(rate(4_000)), 400), 1, 40 * SECOND);
    let mut draws = Draws(5);
    recorded.iter_mut().filter(|_| draws.next() < 0.2).for_each(|request| request.thread = 9);
    let arrivals = inferred(&recorded);
    assert_eq!(arrivals.readings(), [ReplayPace::Closed], "{arrivals:?}");
}

#[test]
fn clients_that_are_known_by_their_threads_are_predicted_beside_others() {
    const SPLIT: Option<LoadPace> = Some(LoadPace::Split);
    let loads = [
        (Shape::Beside(4, 2.0 * MS, 300.0), SPLIT),
        (Shape::Beside(4, 0.0, 200.0), SPLIT),
        (Shape::Beside(2, 5.0 * MS, 500.0), SPLIT),
        (Shape::Beside(6, 2.0 * MS, 300.0), SPLIT),
        (Shape::Clients(8, 0.0), Some(LoadPace::Closed)),
        (Shape::Thinking(4, 2.0 * MS), Some(LoadPace::Closed)),
    ];
    let (slow, fast) = (model(Limit::Rate(rate(1_200)), 500), model(Limit::Rate(rate(4_000)), 400));
    check_recorded(&slow, true, &loads, std::slice::from_ref(&fast));
    check_recorded(&fast, true, &loads, &[slow, model(Limit::Rate(rate(1_400)), 900)]);
}
