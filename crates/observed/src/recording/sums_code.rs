//! Intervals as bytes: the numbers that a kernel counts.

use fathom_model::PerOp;

use super::number::{get, put};
use crate::load::{ObservedInterval, ServedIo};

/// Appends an interval.
pub(super) fn encode(interval: &ObservedInterval, out: &mut Vec<u8>) {
    put(out, interval.start_ns);
    put(out, interval.length_ns);
    let PerOp { read, write, trim } = interval.by_op;
    for served in [read, write, trim] {
        for figure in [served.ops, served.bytes, served.latency_sum_ns] {
            put_known(out, figure);
        }
    }
    put_known(out, interval.queue_depth_milli);
    put_known(out, interval.utilization_ppm.map(u64::from));
}

/// The interval at `*at`, which moves behind it; `None` where the bytes are not valid.
pub(super) fn decode(bytes: &[u8], at: &mut usize) -> Option<ObservedInterval> {
    let (start_ns, length_ns) = (get(bytes, at)?, get(bytes, at)?);
    start_ns.checked_add(length_ns).filter(|_| length_ns > 0)?;
    let mut served = || -> Option<ServedIo> {
        Some(ServedIo {
            ops: get_known(bytes, at)?,
            bytes: get_known(bytes, at)?,
            latency_sum_ns: get_known(bytes, at)?,
        })
    };
    let by_op = PerOp { read: served()?, write: served()?, trim: served()? };
    let queue_depth_milli = get_known(bytes, at)?;
    let utilization = get_known(bytes, at)?;
    let utilization_ppm = utilization.map(u32::try_from).transpose().ok()?;
    let interval = ObservedInterval {
        start_ns,
        length_ns,
        by_op,
        queue_depth_milli,
        utilization_ppm,
        ..Default::default()
    };
    Some(interval.with_total())
}

/// One more than the figure; 0 where it is unknown.
fn put_known(out: &mut Vec<u8>, figure: Option<u64>) {
    put(out, figure.map_or(0, |figure| figure.saturating_add(1)));
}

fn get_known(bytes: &[u8], at: &mut usize) -> Option<Option<u64>> {
    Some(get(bytes, at)?.checked_sub(1))
}

/// Adds pairs of adjacent intervals up, so that half as many remain. Those with a gap between them stay apart.
pub(super) fn halve(intervals: &mut Vec<ObservedInterval>) {
    let mut halved: Vec<ObservedInterval> = Vec::with_capacity(intervals.len() / 2 + 1);
    let mut is_open = false;
    for interval in intervals.drain(..) {
        match halved.last_mut() {
            Some(last) if is_open && last.end_ns() == interval.start_ns => {
                *last = together(last, &interval);
                is_open = false;
            }
            _ => {
                halved.push(interval);
                is_open = true;
            }
        }
    }
    *intervals = halved;
}

fn together(one: &ObservedInterval, next: &ObservedInterval) -> ObservedInterval {
    let sum = |one: Option<u64>, next: Option<u64>| Some(one?.saturating_add(next?));
    let served = |one: ServedIo, next: ServedIo| ServedIo {
        ops: sum(one.ops, next.ops),
        bytes: sum(one.bytes, next.bytes),
        latency_sum_ns: sum(one.latency_sum_ns, next.latency_sum_ns),
    };
    let length_ns = one.length_ns.saturating_add(next.length_ns);
    let mean = |one_value: Option<u64>, next_value: Option<u64>| {
        let weighted = |value: u64, length: u64| u128::from(value) * u128::from(length);
        let sum = weighted(one_value?, one.length_ns) + weighted(next_value?, next.length_ns);
        u64::try_from(sum / u128::from(length_ns)).ok()
    };
    let ppm = mean(one.utilization_ppm.map(u64::from), next.utilization_ppm.map(u64::from));
    let peak = |interval: &ObservedInterval, of: fn(&PerOp<ServedIo>) -> ServedIo| {
        let ops = of(&interval.by_op).ops?;
        let is_second = interval.length_ns.abs_diff(1_000_000_000) < 500_000_000;
        is_second.then_some(ops)
    };
    let highest = |of: fn(&PerOp<ServedIo>) -> ServedIo, kept: fn(&PerOp<Option<u64>>) -> Option<u64>| {
        let best = |interval: &ObservedInterval| kept(&interval.peak_ops_per_second).or(peak(interval, of));
        Some(best(one)?.max(best(next)?))
    };
    ObservedInterval {
        start_ns: one.start_ns,
        length_ns,
        by_op: PerOp {
            read: served(one.by_op.read, next.by_op.read),
            write: served(one.by_op.write, next.by_op.write),
            trim: served(one.by_op.trim, next.by_op.trim),
        },
        total: served(one.total, next.total),
        queue_depth_milli: mean(one.queue_depth_milli, next.queue_depth_milli),
        utilization_ppm: ppm.and_then(|ppm| u32::try_from(ppm).ok()),
        peak_ops_per_second: PerOp {
            read: highest(|by_op| by_op.read, |peaks| peaks.read),
            write: highest(|by_op| by_op.write, |peaks| peaks.write),
            trim: highest(|by_op| by_op.trim, |peaks| peaks.trim),
        },
        ..ObservedInterval::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(start: u64, ops: u64) -> ObservedInterval {
        let mut interval = ObservedInterval {
            start_ns: start * 1_000_000_000,
            length_ns: 1_000_000_000,
            queue_depth_milli: Some(ops * 10),
            utilization_ppm: Some(500_000),
            ..ObservedInterval::default()
        };
        interval.by_op.read = ServedIo { ops: Some(ops), bytes: Some(ops * 4096), latency_sum_ns: Some(0) };
        interval.with_total()
    }

    #[test]
    fn intervals_come_back() {
        let mut bytes = Vec::new();
        encode(&second(7, 100), &mut bytes);
        assert!(bytes.len() < 40, "{}", bytes.len());
        assert_eq!(decode(&bytes, &mut 0), Some(second(7, 100)));
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length], &mut 0), None, "{length}");
        }
        assert_eq!(decode(&[0; 20], &mut 0), None, "no length");
    }

    #[test]
    fn neighbours_are_added_up_and_gaps_stay() {
        let mut intervals = vec![second(0, 10), second(1, 30), second(3, 5), second(5, 1), second(6, 1)];
        halve(&mut intervals);
        let found: Vec<_> =
            intervals.iter().map(|one| (one.start_ns / 1_000_000_000, one.total.ops.unwrap())).collect();
        assert_eq!(found, [(0, 40), (3, 5), (5, 2)]);
        assert_eq!(intervals[0].peak_ops_per_second.read, Some(30));
        assert_eq!(
            (intervals[0].queue_depth_milli, intervals[0].utilization_ppm),
            (Some(200), Some(500_000))
        );
    }
}
