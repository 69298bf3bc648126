//! A device for the tests of the method: a limiter that releases reads in turns, at a rate that may change with time, beside the
//! I/O of other processes.

use std::cell::Cell;
use std::collections::VecDeque;

use fathom_record::IdentifyActivity;

use super::probe::{Cpu, Floor, IdentifyProbe, OtherIo, ProbeCounts, ProbeSlice, Seen};
use super::script::{IdentifySpec, IdentifyStep, identified, next};
use crate::identified::{Confounder, Identified};

const TICK_NS: u64 = 500_000_000;
const SECOND: f64 = 1e9;

/// See the module. Rates are functions of the time since the beginning, s.
pub(crate) struct PlayedDevice {
    pub(crate) iops: Box<dyn Fn(f64) -> f64>,
    pub(crate) bytes_per_second: f64,
    /// Requests of others a second, which come out of the same limit.
    pub(crate) others: Box<dyn Fn(f64) -> f64>,
    /// The counters of the device show the others.
    pub(crate) shows_others: bool,
    /// Shares of the CPU time that anybody used, and that was withheld.
    pub(crate) cpu: (f64, f64),
    /// Shares of its time for which the worker was on a CPU, and was runnable.
    pub(crate) client: (f64, f64),
    pub(crate) turn_s: f64,
    pub(crate) latency_ns: u64,
    /// Credit beyond a baseline.
    pub(crate) credit: Option<PlayedCredit>,
    /// A burst of fixed length beyond a baseline.
    pub(crate) window: Option<PlayedWindow>,
}

/// The rate lasts for `burst_s` from the first request on, then is `base` for `rest_s`, and then the next request begins a burst.
pub(crate) struct PlayedWindow {
    pub(crate) base: f64,
    pub(crate) burst_s: f64,
    pub(crate) rest_s: f64,
    /// When the last burst began, s.
    pub(crate) began_s: Cell<f64>,
}

impl PlayedWindow {
    /// The rate of a turn at `now_s`.
    fn rate(&self, now_s: f64, high: f64) -> f64 {
        if now_s >= self.began_s.get() + self.burst_s + self.rest_s {
            self.began_s.set(now_s);
        }
        if now_s < self.began_s.get() + self.burst_s { high } else { self.base }
    }
}

/// I/Os beyond `base` a second that the device may make.
pub(crate) struct PlayedCredit {
    pub(crate) base: f64,
    pub(crate) capacity: f64,
    /// What is left of it, and when that was, s.
    pub(crate) left: Cell<(f64, f64)>,
}

impl PlayedCredit {
    /// The rate of a turn at `now_s`, of which `used` requests were made before.
    fn rate(&self, now_s: f64, used: f64, high: f64, turn_s: f64) -> f64 {
        let (left, at_s) = self.left.get();
        let left = (left + self.base * (now_s - at_s) - used).clamp(0.0, self.capacity);
        self.left.set((left, now_s));
        if left >= high * turn_s { high } else { self.base }
    }
}

impl PlayedDevice {
    pub(crate) fn with_iops(iops: impl Fn(f64) -> f64 + 'static) -> PlayedDevice {
        PlayedDevice {
            iops: Box::new(iops),
            bytes_per_second: 1e12,
            others: Box::new(|_| 0.0),
            shows_others: true,
            cpu: (0.0, 0.0),
            client: (0.0, 0.0),
            turn_s: 0.001,
            latency_ns: 60_000,
            credit: None,
            window: None,
        }
    }

    /// What identifying it within `seconds` finds.
    pub(crate) fn identified(&self, seconds: u64) -> Identified {
        let probe_ns = (seconds * 1_000_000_000 / 40).clamp(4_000_000_000, 6_000_000_000);
        let limits = IdentifyActivity {
            unit_bytes: 4096,
            most_block_bytes: 512 << 10,
            most_depth: 256,
            most_in_flight_bytes: 128 << 20,
            writes: false,
            probe_ns,
            budget_ns: seconds * 1_000_000_000,
            budget_ios: 250_000 * seconds,
            budget_bytes: (8 << 30) * seconds,
        };
        let spec = IdentifySpec { size: 1 << 30, limits };
        let (mut seen, mut now_ns) = (Vec::new(), 0);
        while let IdentifyStep::Run(probe) = next(&spec, &seen) {
            let one = self.play(&probe, seen.len(), now_ns);
            now_ns += one.elapsed_ns;
            seen.push(one);
        }
        identified(&spec, &seen)
    }

    /// One probe that begins at `began_ns`. Turns begin with its first request.
    pub(crate) fn play(&self, probe: &IdentifyProbe, index: usize, began_ns: u64) -> Seen {
        let begin = probe.rest_ns;
        let (counts_from, ends) = (begin + probe.ramp_ns, begin + probe.ramp_ns + probe.runtime_ns);
        let depth = probe.reads as usize;
        let pace_ns = probe.rate.map_or(0, |rate| 1_000_000_000 / rate);
        let mut waiting: VecDeque<u64> = (0..depth).map(|_| begin).collect();
        let (mut issued, mut all, mut others) = (depth as u64, Vec::new(), 0.0);
        let (mut turn, mut left_bytes, turn_ns) = (0u64, 0.0, (self.turn_s * SECOND) as u64);
        let (mut allowed, mut before) = (0.0, 0);
        while let Some(&first) = waiting.front() {
            let released = begin + turn * turn_ns;
            let now_s = (began_ns + released) as f64 / SECOND;
            let limit = (self.iops)(now_s);
            let used = (all.len() - before) as f64;
            before = all.len();
            let limit =
                self.credit.as_ref().map_or(limit, |credit| credit.rate(now_s, used, limit, self.turn_s));
            let limit = self.window.as_ref().map_or(limit, |window| window.rate(now_s, limit));
            let foreign = (self.others)(now_s).min(limit);
            others += foreign * self.turn_s;
            // A limiter with turns loses the fraction of a request.
            allowed = (limit - foreign) * self.turn_s
                + if self.turn_s < 0.002 { f64::min(allowed, 2.0) } else { 0.0 };
            let mut count = allowed as u64;
            left_bytes = (left_bytes + self.bytes_per_second * self.turn_s)
                .min(self.bytes_per_second * self.turn_s * 2.0 + probe.block as f64);
            let until = released + turn_ns;
            turn += 1;
            if first >= until {
                continue;
            }
            let mut at = released;
            while count > 0 && left_bytes >= probe.block as f64 {
                let Some(&begun) = waiting.front() else { break };
                let done = at.max(begun) + self.latency_ns / depth as u64;
                if done.max(begun + self.latency_ns) >= until {
                    break;
                }
                at = done;
                waiting.pop_front();
                let completed = done.max(begun + self.latency_ns);
                all.push((begun, completed));
                (count, left_bytes) = (count - 1, left_bytes - probe.block as f64);
                allowed -= 1.0;
                let next = completed.max(begin + issued * pace_ns);
                if next < ends && issued < probe.ios {
                    waiting.push_back(next);
                    issued += 1;
                }
            }
        }
        let read = counted(probe, &all, counts_from);
        let elapsed_ns = read.end_ns.max(begin);
        let seconds = elapsed_ns.saturating_sub(begin) as f64 / SECOND;
        let ios = if self.shows_others && seconds >= 1.0 { others / seconds } else { 0.0 };
        let share = ios * seconds / (all.len() as f64).max(1.0);
        let others = OtherIo { ios, bytes: ios * 4096.0, share };
        let all_ns = elapsed_ns.saturating_sub(begin) as f64;
        let cpu = Cpu::of_shares(all_ns, self.cpu, self.client);
        Seen::played(probe.id(index), read, elapsed_ns, (others, cpu))
    }
}

fn counted(probe: &IdentifyProbe, all: &[(u64, u64)], counts_from: u64) -> ProbeCounts {
    let end_ns = all.iter().map(|one| one.1).max().unwrap_or(counts_from);
    let measured: Vec<f64> =
        all.iter().filter(|one| one.1 >= counts_from).map(|one| (one.1 - one.0) as f64).collect();
    let count = (measured.len() as f64).max(1.0);
    let mean = measured.iter().sum::<f64>() / count;
    let deviation = (measured.iter().map(|lat| (lat - mean).powi(2)).sum::<f64>() / count).sqrt();
    let least = measured.iter().copied().fold(f64::INFINITY, f64::min);
    let mut edges = vec![probe.rest_ns.min(counts_from), counts_from];
    edges.extend(
        (1..)
            .map(|tick| tick * TICK_NS)
            .take_while(|edge| *edge < end_ns)
            .filter(|edge| *edge > probe.rest_ns),
    );
    edges.push(end_ns);
    edges.sort_unstable();
    edges.dedup();
    let slice = |pair: &[u64]| {
        let is_last = pair[1] == end_ns;
        let is_in = |one: &&(u64, u64)| one.1 >= pair[0] && (one.1 < pair[1] || is_last && one.1 == end_ns);
        ProbeSlice { start_ns: pair[0], end_ns: pair[1], ios: all.iter().filter(is_in).count() as u64 }
    };
    ProbeCounts {
        block: probe.block,
        ios: measured.len() as u64,
        start_ns: counts_from,
        end_ns,
        lat: Floor {
            mean,
            deviation,
            count: measured.len() as f64,
            least: if least.is_finite() { least } else { 0.0 },
        },
        slices: edges.windows(2).map(slice).collect(),
        busy: 0.1,
    }
}

/// Reads of `block` bytes for `seconds`.
pub(crate) fn probe_of(block: u64, reads: u32, seconds: f64) -> IdentifyProbe {
    IdentifyProbe {
        aim: "test",
        rest_ns: 0,
        block,
        reads,
        writes: 0,
        rate: None,
        ramp_ns: 0,
        runtime_ns: (seconds * SECOND) as u64,
        ios: u64::MAX,
        counts: false,
        range: 1 << 30,
        turn: 1,
    }
}

/// Within `low` and `high` of the truth.
fn holds(figure: &crate::identified::Figure, truth: f64) -> bool {
    match figure.estimate {
        Some(crate::estimate::Estimate::Known { low, high, .. }) => low <= truth && truth <= high,
        _ => false,
    }
}

#[test]
fn intervals_hold_the_limits_of_a_throttle() {
    for (iops, turn_s) in [
        (1477.0, 0.1),
        (333.0, 0.1),
        (37.0, 0.1),
        (711.0, 0.02),
        (1477.0, 0.05),
        (615.0, 0.137),
        (2310.0, 0.073),
        (333.0, 0.2),
        (1130.0, 0.19),
        (171.0, 0.061),
    ] {
        let device = PlayedDevice { turn_s, ..PlayedDevice::with_iops(move |_| iops) };
        let found = device.identified(180);
        let figure = found.iops.read.clone().unwrap_or_default();
        assert!(holds(&figure, iops), "{iops} in turns of {turn_s}: {figure:?}");
        assert!(found.bursts.is_empty() && found.confounders.is_empty(), "{found:?}");
    }
    for bytes_per_second in [20e6, 77_777_777.0] {
        let device = PlayedDevice { turn_s: 0.1, bytes_per_second, ..PlayedDevice::with_iops(|_| 100_000.0) };
        let found = device.identified(180);
        let figure = found.bytes_per_second.read.clone().unwrap_or_default();
        assert!(holds(&figure, bytes_per_second), "{bytes_per_second}: {figure:?}");
    }
}

#[test]
fn an_even_limit_has_a_narrow_interval() {
    let found = PlayedDevice::with_iops(|_| 1477.0).identified(180);
    let figure = found.iops.read.unwrap_or_default();
    assert!(
        holds(&figure, 1477.0) && figure.value().is_some_and(|value| (value / 1477.0 - 1.0).abs() < 0.005),
        "{figure:?}"
    );
}

#[test]
fn a_decaying_rate_is_no_bucket_and_no_limit() {
    let declines =
        [(0.1f64, 0.1), (0.3, 0.1), (0.05, 0.1), (0.5, 0.001), (0.15, 0.02), (0.22, 0.02), (0.27, 0.1)];
    for (a_minute, turn_s) in declines {
        let device = PlayedDevice {
            turn_s,
            ..PlayedDevice::with_iops(move |seconds| 1000.0 * (1.0 - a_minute).powf(seconds / 60.0))
        };
        let found = device.identified(240);
        assert!(found.bursts.is_empty(), "{a_minute} {turn_s}: {:#?}", found.bursts);
        let figure = found.iops.read.clone().unwrap_or_default();
        assert!(figure.value().is_none(), "{a_minute} {turn_s}: {figure:?} {:?}", found.burst_why);
        let is_drift = found.confounders.iter().any(|cause| cause.id == Confounder::Drift);
        assert!(is_drift, "{a_minute} {turn_s}: {:?} {:?}", found.confounders, found.burst_why);
    }
}

#[test]
fn a_bucket_is_one_also_behind_turns() {
    for turn_s in [0.001, 0.1] {
        let credit = PlayedCredit { base: 200.0, capacity: 16_000.0, left: Cell::new((16_000.0, 0.0)) };
        let device = PlayedDevice { turn_s, credit: Some(credit), ..PlayedDevice::with_iops(|_| 1000.0) };
        let found = device.identified(240);
        assert_eq!(found.bursts.len(), 1, "{turn_s}: {:#?} {:?}", found.confounders, found.burst_why);
        let capacity = found.bursts[0].capacity.value().unwrap_or_default();
        assert!((capacity / 16_000.0 - 1.0).abs() < 0.1, "{capacity}");
    }
}

#[test]
fn a_fall_that_a_lack_of_processors_explains_is_no_bucket() {
    for (base, cpu, client, is_bucket) in [
        (300.0, (0.97, 0.0), (0.0, 0.0), false),
        (300.0, (0.6, 0.0), (0.0, 0.0), true),
        (800.0, (0.6, 0.3), (0.0, 0.0), false),
        (800.0, (0.6, 0.15), (0.0, 0.0), true),
        (200.0, (0.97, 0.3), (0.0, 0.0), true),
        (200.0, (0.97, 0.3), (0.3, 0.97), false),
        (200.0, (0.97, 0.3), (0.03, 0.97), true),
        (200.0, (0.8, 0.2), (0.2, 0.4), false),
        (200.0, (0.7, 0.2), (0.3, 0.97), true),
    ] {
        let credit = Some(PlayedCredit { base, capacity: 8_000.0, left: Cell::new((8_000.0, 0.0)) });
        let device = PlayedDevice { cpu, client, credit, ..PlayedDevice::with_iops(|_| 1000.0) };
        let found = device.identified(300);
        assert_eq!(found.bursts.len(), usize::from(is_bucket), "{base} {cpu:?} {client:?}");
        let is_short = found.confounders.iter().any(|cause| cause.id == Confounder::CpuSteal);
        assert_eq!(is_short, !is_bucket, "{base} {cpu:?} {client:?}");
    }
}

#[test]
fn a_burst_of_fixed_length_is_no_bucket() {
    for (burst_s, rest_s) in [(60.0, 60.0), (60.0, 20.0), (30.0, 300.0), (15.0, 30.0), (90.0, 45.0)] {
        for base in [500.0, 800.0] {
            let window = PlayedWindow { base, burst_s, rest_s, began_s: Cell::new(f64::NEG_INFINITY) };
            let device = PlayedDevice { window: Some(window), ..PlayedDevice::with_iops(|_| 1000.0) };
            let found = device.identified(600);
            assert!(found.bursts.is_empty(), "{burst_s} {rest_s} {base}: {:#?}", found.bursts);
        }
    }
}

#[test]
fn first_accesses_cost_nothing_while_a_bucket_moves() {
    for capacity in [2_000.0, 5_000.0, 8_000.0, 12_000.0, 16_000.0, 24_000.0] {
        let credit = PlayedCredit { base: 700.0, capacity, left: Cell::new((capacity, 0.0)) };
        let device =
            PlayedDevice { turn_s: 0.1, credit: Some(credit), ..PlayedDevice::with_iops(|_| 1000.0) };
        let found = device.identified(240);
        assert!(found.first_touch.is_none(), "{capacity}: {:#?}", found.first_touch);
    }
}

#[test]
fn limits_beside_other_processes_are_bounds() {
    for period in [f64::INFINITY, 120.0] {
        let device = PlayedDevice {
            others: Box::new(move |seconds| if seconds % period < 60.0 { 750.0 } else { 0.0 }),
            ..PlayedDevice::with_iops(|_| 1500.0)
        };
        let always = PlayedDevice { others: Box::new(|_| 750.0), ..PlayedDevice::with_iops(|_| 1500.0) };
        let found = if period.is_finite() { device.identified(300) } else { always.identified(300) };
        let figure = found.iops.read.clone().unwrap_or_default();
        let is_right = match figure.estimate {
            Some(crate::estimate::Estimate::AtLeast(low)) => low <= 1500.0 && low > 700.0,
            _ => holds(&figure, 1500.0),
        };
        assert!(is_right, "{period}: {figure:?}");
        assert!(found.bursts.is_empty(), "{period}: {:#?}", found.bursts);
        let ids: Vec<Confounder> = found.confounders.iter().map(|cause| cause.id).collect();
        assert!(ids.contains(&Confounder::ForeignIo), "{period}: {ids:?}");
    }
}

#[test]
fn a_neighbour_that_comes_and_goes_is_no_bucket_whenever_it_begins() {
    for (from, turn_s) in (0..120).step_by(24).flat_map(|from| [(from, 0.001), (from, 0.1)]) {
        let device = PlayedDevice {
            others: Box::new(
                move |seconds| {
                    if (seconds + f64::from(from)) % 120.0 < 60.0 { 250.0 } else { 0.0 }
                },
            ),
            turn_s,
            ..PlayedDevice::with_iops(|_| 500.0)
        };
        let found = device.identified(300);
        assert!(found.bursts.is_empty(), "{from}, {turn_s}: {:#?}", found.bursts);
    }
}

#[test]
fn a_neighbour_that_no_counter_shows_changes_the_rate_by_itself() {
    let device = PlayedDevice {
        others: Box::new(|seconds| if seconds % 120.0 < 60.0 { 750.0 } else { 0.0 }),
        shows_others: false,
        ..PlayedDevice::with_iops(|_| 1500.0)
    };
    let found = device.identified(400);
    assert!(found.bursts.is_empty(), "{:#?}", found.bursts);
    let figure = found.iops.read.clone().unwrap_or_default();
    assert!(figure.value().is_none_or(|value| (value / 1500.0 - 1.0).abs() < 0.02), "{figure:?}");
}

#[test]
fn a_limit_that_rises_while_first_accesses_are_compared_is_no_cost_of_them() {
    for rises_at in [30.0, 38.0, 40.0, 42.0] {
        let device = PlayedDevice {
            turn_s: 0.1,
            ..PlayedDevice::with_iops(move |seconds| if seconds < rises_at { 700.0 } else { 1000.0 })
        };
        let found = device.identified(180);
        assert!(found.first_touch.is_none(), "{rises_at}: {:#?}", found.first_touch);
    }
}
