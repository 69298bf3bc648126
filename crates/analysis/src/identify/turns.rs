//! Limiters that release requests in turns: how long a turn is, and what follows for a rate.
//!
//! The kernel's throttle admits the whole requests that a slice of 20 or 100 ms allows, and nothing until the next slice. A rate
//! counted between two arbitrary instants is off by up to a turn's requests, and the last turn counts in full although only the
//! requests that were waiting complete in it. Requests that begin at rest begin a turn, and the last ones end with one: between
//! those instants there are whole turns only. What remains is the fraction of a request that no turn admits: the limit is up to
//! one request per turn higher than the rate.

use super::probe::{IdentifyProbe, ProbeCounts};

/// Shorter turns make no difference to a rate that takes seconds, s.
const SHORTEST: f64 = 0.004;
/// Longer ones are no limiter's: the target stood still, s.
const LONGEST: f64 = 0.25;
/// Latencies of requests that wait for turns vary by more than this share of their mean, and are so many times as long as
/// without load.
const VARIED: f64 = 0.5;
const WAITED: f64 = 2.0;
/// The slices of the kernel's throttle, on disks and on others, s, and how near to one an estimate of a turn is that one.
const KERNEL_SLICES: [f64; 2] = [0.1, 0.02];
const NEAR: f64 = 0.15;
/// Turns of rest after which a limiter begins anew, and the fewest turns that a rate is counted over.
const REST_TURNS: f64 = 3.0;
const FEWEST: f64 = 8.0;
const TICK_SECONDS: f64 = 0.004;

/// The length of a turn, s; 0 where requests are not released in turns. Of `q` requests in flight and `n` per turn, `q` wait for
/// the next one, and the others complete immediately: the mean square of the latencies over their mean is the turn.
pub(super) fn turn_s(done: &ProbeCounts, floor_ns: f64) -> f64 {
    let (mean, deviation, _) = done.lat;
    length_s((mean, deviation), floor_ns)
}

/// The same of the mean and standard deviation of latencies, ns.
pub(crate) fn length_s((mean, deviation): (f64, f64), floor_ns: f64) -> f64 {
    let turn = (mean + deviation * deviation / mean.max(1.0)) / 1e9;
    let is_released = deviation > VARIED * mean && mean > WAITED * floor_ns;
    if !is_released || !(SHORTEST..=LONGEST).contains(&turn) {
        return 0.0;
    }
    let is_near = |slice: &f64| (turn / slice - 1.0).abs() < NEAR;
    KERNEL_SLICES.into_iter().find(is_near).unwrap_or(turn)
}

/// The time nearest to `ns` that ends in the middle of a turn: at its beginning it is a matter of chance how many of its requests
/// count.
pub(super) fn runtime_ns(ns: f64, turn_s: f64) -> f64 {
    let turn_ns = turn_s * 1e9;
    ((ns / turn_ns).floor() + 0.5) * turn_ns
}

/// By how many s a rate over whole turns may be wrong: the kernel ends a turn with one of its ticks; where the length of a turn
/// is not known for sure, the last one may have been counted or not.
pub(super) fn uncertain_s(turn_s: f64) -> f64 {
    if KERNEL_SLICES.contains(&turn_s) { TICK_SECONDS } else { TICK_SECONDS + turn_s }
}

/// Rest that ends the turn of requests before, ns.
pub(super) fn rest_ns(turn_s: f64) -> u64 {
    (turn_s * REST_TURNS * 1e3).ceil() as u64 * 1_000_000
}

/// Requests a second over whole turns, where `probe` began at rest and ended with its time; `None` where it did not. The requests
/// that waited at the end complete in a turn of which the others are missing.
pub(super) fn rate_of_turns(
    probe: &IdentifyProbe,
    depth: u32,
    done: &ProbeCounts,
    turn_s: f64,
) -> Option<f64> {
    let seconds = done.seconds() - done.lat.2 / 1e9;
    let has_ended_with_its_time = done.ios < probe.ios;
    let is_long = turn_s > 0.0 && seconds > FEWEST * turn_s;
    let ios = done.ios.saturating_sub(u64::from(depth)) as f64;
    (probe.counts && has_ended_with_its_time && is_long).then(|| ios / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identify::played::{PlayedDevice, probe_of};

    #[test]
    fn turns_are_recognised_by_the_latencies_of_what_waits_for_them() {
        let check = |turn_s: f64, iops: f64, depth: u32, expected: f64| {
            let device = PlayedDevice { turn_s, ..PlayedDevice::with_iops(move |_| iops) };
            let mut probe = probe_of(4096, depth, 5.0);
            probe.counts = true;
            let seen = device.play(&probe, 0, 0);
            let found = turn_s_of(&seen.read);
            assert!((found - expected).abs() <= 0.1 * expected, "{turn_s} {iops} {depth}: {found}");
            if expected > 0.0 {
                let rate = rate_of_turns(&probe, depth, &seen.read, found).unwrap();
                let released = (iops * turn_s).floor() / turn_s;
                assert!((rate / released - 1.0).abs() < 0.003, "{rate} of {released}");
            }
        };
        check(0.1, 1000.0, 5, 0.1);
        check(0.02, 1000.0, 5, 0.02);
        check(0.1, 1477.0, 8, 0.1);
        check(0.02, 317.0, 1, 0.02);
        // One by one, and a device that answers at once.
        check(0.001, 1000.0, 5, 0.0);
        check(0.1, 1e6, 4, 0.0);
    }

    fn turn_s_of(done: &ProbeCounts) -> f64 {
        turn_s(done, 60_000.0)
    }
}
