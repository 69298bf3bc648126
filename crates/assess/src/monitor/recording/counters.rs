//! Records the kernel's counters of each second, where requests may not be traced.

use fathom_model::PerOp;
use fathom_observed::recording::interval_block;
use fathom_observed::{ObservedInterval, ServedIo};
use fathom_sys::device::{DiskSampler, DiskStats};

use super::RecorderWork;

/// Length of an interval, ns.
const SECOND_NS: u64 = 1_000_000_000;
/// A last interval shorter than this is left out, ns.
const SHORT_NS: u64 = 100_000_000;

/// Records until the recording is over, or cannot be written. A device that goes away leaves a gap.
pub(super) fn record(work: &mut RecorderWork, name: &str) {
    let mut sampler = None;
    let mut before: Option<(u64, DiskStats)> = None;
    let mut turn = 0;
    loop {
        let is_last = work.is_over();
        sampler = sampler.or_else(|| DiskSampler::open(&[name]).ok());
        let stats = sampler.as_ref().and_then(|sampler| sampler.first().ok());
        let now_ns = work.now_ns();
        match (before, stats) {
            (Some((from_ns, earlier)), Some(stats)) if now_ns - from_ns >= SHORT_NS => {
                let interval = interval(from_ns, now_ns - from_ns, &stats.since(&earlier));
                if !work.write(&[interval_block(&interval)], 1, 0, now_ns) {
                    return;
                }
                before = Some((now_ns, stats));
            }
            (Some(_), Some(_)) => {}
            (None, Some(stats)) => before = Some((now_ns, stats)),
            (_, None) => (sampler, before) = (None, None),
        }
        if is_last {
            return work.end(0);
        }
        turn += 1;
        work.wait((turn * SECOND_NS).saturating_sub(work.now_ns()));
    }
}

/// What the counters grew by within an interval.
fn interval(start_ns: u64, length_ns: u64, grown: &DiskStats) -> ObservedInterval {
    let served = |ops: u64, bytes: u64, ticks_ms: u64| ServedIo {
        ops: Some(ops),
        bytes: Some(bytes),
        latency_sum_ns: Some(ticks_ms.saturating_mul(1_000_000)),
    };
    let share = |ms: u64, of: u64| {
        (u128::from(ms) * 1_000_000 * u128::from(of) / u128::from(length_ns.max(1))) as u64
    };
    ObservedInterval {
        start_ns,
        length_ns,
        by_op: PerOp {
            read: served(grown.read_ios, grown.read_bytes(), grown.read_ticks_ms),
            write: served(grown.write_ios, grown.write_bytes(), grown.write_ticks_ms),
            trim: served(grown.discard_ios, grown.discard_bytes(), grown.discard_ticks_ms),
        },
        queue_depth_milli: Some(share(grown.queue_ms, 1_000)),
        utilization_ppm: Some(share(grown.busy_ms, 1_000_000).min(1_000_000) as u32),
        ..ObservedInterval::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_become_sums() {
        let grown = DiskStats {
            read_ios: 100,
            read_sectors: 800,
            read_ticks_ms: 250,
            busy_ms: 300,
            queue_ms: 1_500,
            ..DiskStats::default()
        };
        let found = interval(7, 2 * SECOND_NS, &grown);
        let reads = ServedIo { ops: Some(100), bytes: Some(409_600), latency_sum_ns: Some(250_000_000) };
        assert_eq!((found.by_op.read, found.by_op.write.ops), (reads, Some(0)));
        assert_eq!((found.queue_depth_milli, found.utilization_ppm), (Some(750), Some(150_000)));
    }
}
