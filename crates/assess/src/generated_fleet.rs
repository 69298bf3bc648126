//! Records of many ranks without any measurement: what merging and reporting take is measured with them.

use fathom_model::Nanos;
use fathom_model::PerOp;
use fathom_model::plan::{DepthPlan, EnginePlan, IoPlan, Pattern, TimePlan};
use fathom_record::{
    Activity, HostRecord, Interval, IntervalOp, JobRecord, Latency, LaunchRecord, OpOutcome, PhaseOutcome,
    PlanRecord, RunHeader, RunRecord, Stall, TestRecord, TestStatus, latency_bin, latency_bin_midpoint,
};

const TICK_NS: u64 = 500_000_000;
/// Start of the first rank, ms since the epoch; the others follow within some ms.
const STARTED_UNIX_MS: u64 = 1_700_000_000_000;
const IOPS: f64 = 3000.0;
const BLOCK_BYTES: u64 = 4096;
/// Latencies of an interval: so many bins with their shares.
const BINS: usize = 24;
/// One rank in so many is slow, and one stalls.
const SLOW_EVERY: u32 = 997;
const STALLED_EVERY: u32 = 1499;

/// A fleet that was never measured: every rank reads at random from a volume of 3,000 IOPS.
#[derive(Clone, Copy, Debug)]
pub struct GeneratedFleet {
    /// Ranks.
    pub ranks: u32,
    /// Measured time of each.
    pub runtime: Nanos,
}

impl GeneratedFleet {
    /// The record of a rank, always the same.
    pub fn record(&self, rank: u32) -> RunRecord {
        self.record_at(rank, IOPS)
    }

    /// The same of a rank that reaches so many I/Os per second.
    pub fn record_at(&self, rank: u32, iops: f64) -> RunRecord {
        let started_unix_ms = STARTED_UNIX_MS + u64::from(rank % 7);
        let header = RunHeader {
            activity: Activity::Fio,
            target: "/dev/generated".to_owned(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ms,
            hosts: vec![HostRecord {
                hostname: format!("h{rank:05}"),
                boot_id: format!("{rank:032x}"),
                cpus_online: 4,
                cpus_allowed: 4,
                ..HostRecord::default()
            }],
            launch: Some(LaunchRecord {
                launcher: "generated".to_owned(),
                rank,
                ranks: Some(self.ranks),
                ..LaunchRecord::default()
            }),
            ..RunHeader::default()
        };
        let measured = self.measured(rank, iops);
        let test = TestRecord {
            id: "fio".to_owned(),
            status: TestStatus::Complete,
            started_unix_ms,
            elapsed_ns: measured.end_ns,
            jobs: vec![job(rank, measured, started_unix_ms)],
            ..TestRecord::default()
        };
        RunRecord { status: TestStatus::Complete, header, tests: vec![test], ..RunRecord::default() }
    }

    fn measured(&self, rank: u32, iops: f64) -> PhaseOutcome {
        let ticks = (self.runtime.0 / TICK_NS).max(1);
        // As the observer does, at most 2,400 intervals.
        let wide = ticks.div_ceil(2400).next_power_of_two();
        let speed = if rank % SLOW_EVERY == SLOW_EVERY - 1 { 0.6 } else { 1.0 + 0.01 * unit(rank, 0) };
        let mut read = OpOutcome::default();
        let series: Vec<Interval> = (0..ticks.div_ceil(wide))
            .map(|tick| {
                let span = wide.min(ticks - tick * wide);
                let ios = iops * speed * (1.0 + 0.02 * unit(rank, tick + 1)) * span as f64 / 2.0;
                let op = interval(ios as u64, rank, tick, &mut read.lat);
                read.ios += op.ios;
                read.bytes += op.bytes;
                let start_ns = tick * wide * TICK_NS;
                let end_ns = start_ns + span * TICK_NS;
                Interval { tick: tick as u32, start_ns, end_ns, read: op, ..Interval::default() }
            })
            .collect();
        read.issued = read.ios;
        read.clat = read.lat.clone();
        PhaseOutcome { end_ns: ticks * TICK_NS, read, series, ..PhaseOutcome::default() }
    }
}

/// The I/Os of an interval with latencies around 300 us.
fn interval(ios: u64, rank: u32, tick: u64, lat: &mut Latency) -> IntervalOp {
    let first = latency_bin(200_000) + (unit(rank, tick) * 8.0 + 8.0) as usize;
    let mut op = IntervalOp { ios, bytes: ios * BLOCK_BYTES, ..IntervalOp::default() };
    let mut left = ios;
    for place in 0..BINS {
        let count = if place + 1 == BINS { left } else { left / 6 };
        left -= count;
        if count > 0 {
            let bin = first + place * 4;
            let ns = latency_bin_midpoint(bin);
            lat.merge(&Latency::repeated(count, ns));
            op.clat_sum_ns += count * ns;
            op.clat_bins.push((bin as u16, count));
        }
    }
    op
}

fn job(rank: u32, measured: PhaseOutcome, started_unix_ms: u64) -> JobRecord {
    let stalls = match rank % STALLED_EVERY == STALLED_EVERY - 1 {
        true => vec![Stall {
            start_ns: measured.end_ns / 2,
            length_ns: 2 * TICK_NS,
            depth: 8,
            over: true,
            ..Stall::default()
        }],
        false => Vec::new(),
    };
    let io = IoPlan {
        pattern: Pattern::named("randread").unwrap_or_default(),
        block_size: PerOp::splat(BLOCK_BYTES.into()),
        direct: true,
        ..IoPlan::default()
    };
    JobRecord {
        name: "randread".to_owned(),
        thread_id: rank + 1,
        started_unix_ms,
        options: [("rw", "randread"), ("iodepth", "8")].map(|(a, b)| (a.to_owned(), b.to_owned())).into(),
        plan: PlanRecord {
            engine: EnginePlan { name: "io_uring".to_owned(), ..EnginePlan::default() },
            io,
            depth: DepthPlan::new(8),
            time: TimePlan { time_based: true, ..TimePlan::default() },
            ..PlanRecord::default()
        },
        measured,
        stalls,
        ..JobRecord::default()
    }
}

/// A number from -1 to 1 that depends on rank and tick and looks random.
fn unit(rank: u32, tick: u64) -> f64 {
    let mut state = u64::from(rank) << 32 ^ tick;
    for _ in 0..3 {
        state = (state ^ state >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
    }
    (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_consistent_and_always_the_same() {
        let fleet = GeneratedFleet { ranks: 4, runtime: Nanos::from_secs(3) };
        let record = fleet.record(2);
        assert_eq!(record, fleet.record(2));
        let measured = &record.tests[0].jobs[0].measured;
        assert_eq!((measured.series.len(), measured.end_ns), (6, 3_000_000_000));
        assert_eq!(measured.read.lat.samples(), measured.read.ios);
        assert_eq!(measured.read.lat.histogram.samples(), measured.read.ios);
        let series: u64 = measured.series.iter().map(|interval| interval.read.ios).sum();
        assert_eq!(series, measured.read.ios);
        assert_eq!(RunRecord::from_json(&record.to_json()).unwrap(), record);
        let day = GeneratedFleet { ranks: 1, runtime: Nanos::from_secs(86_400) }.measured(0, IOPS);
        assert!(day.series.len() <= 2400 && day.end_ns == 86_400_000_000_000);
    }
}
