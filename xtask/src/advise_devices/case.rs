//! The cases: shapes of loads, the volume on which each is recorded, and those for which it is predicted.

use std::time::Duration;

use fathom_tests::{BurstCredits, DiskLimits, RepeatableNoise};

/// How requests arrive. Rates are means, requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadShape {
    /// At equal distances.
    Constant(f64),
    /// A day in [`LENGTH_S`]: independent requests, at 0.2 to 1.8 of the mean.
    Diurnal(f64),
    /// Every third of the time a batch for a fifth of it, at ten times the rate between.
    Batch(f64),
    /// Bursts of a heavy-tailed size (Pareto, exponent 1.4), independent of each other.
    Bursty(f64),
    /// So many clients of a database, which make one request after the other.
    Database(u32),
}

/// One recording, and three volumes.
#[derive(Clone, Debug)]
pub struct AdviseCase {
    /// Unique.
    pub name: String,
    pub shape: LoadShape,
    /// Determines arrivals, offsets and operations.
    pub seed: u64,
    /// The volume that the load is recorded on.
    pub recorded_on: DiskLimits,
    /// The volumes it is predicted for: one that serves it, one that delays its peaks, one with a burst bucket.
    pub others: [(&'static str, DiskLimits); 3],
}

/// Length of an open load, s.
pub const LENGTH_S: f64 = 60.0;
/// Requests of all clients of a closed load.
pub const CLOSED_REQUESTS: u64 = 40_000;
const SHAPES: u64 = 5;
/// Credits of a bucket: of an open load, in seconds of its mean rate; of a closed one, requests.
const CREDIT_S: f64 = 3.6;
const CLOSED_CREDITS: u64 = 8_000;

impl AdviseCase {
    /// The `index`th: always the same.
    pub fn of(index: u64) -> AdviseCase {
        let mut noise = RepeatableNoise::seeded(index + 1);
        // The first numbers of neighbouring seeds are alike.
        for _ in 0..8 {
            noise.even();
        }
        let factor = if index < SHAPES { 1.0 } else { 0.8 + 0.5 * noise.even() };
        let (name, shape) = match index % SHAPES {
            0 => ("constant", LoadShape::Constant(700.0 * factor)),
            1 => ("diurnal", LoadShape::Diurnal(600.0 * factor)),
            2 => ("batch", LoadShape::Batch(500.0 * factor)),
            3 => ("bursty", LoadShape::Bursty(500.0 * factor)),
            _ => ("database", LoadShape::Database((8.0 * factor).round() as u32)),
        };
        let others = match shape {
            LoadShape::Database(_) => closed_volumes(factor),
            LoadShape::Constant(rate) => open_volumes(rate, 0.94),
            LoadShape::Diurnal(rate) => open_volumes(rate, 1.4),
            LoadShape::Batch(rate) => open_volumes(rate, 1.5),
            LoadShape::Bursty(rate) => open_volumes(rate, 1.3),
        };
        AdviseCase {
            name: format!("{index:02}-{name}"),
            shape,
            seed: index + 100,
            recorded_on: volume(8_000, 2),
            others,
        }
    }

    /// Whether requests wait for others.
    pub fn is_closed(&self) -> bool {
        matches!(self.shape, LoadShape::Database(_))
    }
}

fn volume(iops: u64, latency_ms: u64) -> DiskLimits {
    DiskLimits {
        latency: Duration::from_millis(latency_ms),
        spread_percent: 0,
        iops,
        bytes_per_second: None,
        burst: None,
    }
}

/// Volumes for a mean rate; `delayed` is the rate at which it is delayed, over the mean. Requests have 8 KiB.
fn open_volumes(rate: f64, delayed: f64) -> [(&'static str, DiskLimits); 3] {
    let of = |share: f64| (rate * share).round() as u64;
    let burst = Some(BurstCredits { iops: of(2.5), capacity: of(CREDIT_S) });
    [
        ("served", volume(of(6.0), 5)),
        ("delayed", DiskLimits { bytes_per_second: Some(of(delayed) * 8192), ..volume(20_000, 4) }),
        ("bucket", DiskLimits { burst, ..volume(of(0.8), 3) }),
    ]
}

/// Volumes for clients that wait: limited by the latency, by the rate, and by credits.
fn closed_volumes(factor: f64) -> [(&'static str, DiskLimits); 3] {
    let of = |rate: f64| (rate * factor).round() as u64;
    let burst = Some(BurstCredits { iops: of(1_400.0), capacity: CLOSED_CREDITS });
    [
        ("served", volume(of(8_000.0), 5)),
        ("delayed", volume(of(700.0), 4)),
        ("bucket", DiskLimits { burst, ..volume(of(600.0), 3) }),
    ]
}

/// The name of a volume with these limits for `fathom advise`.
pub fn candidate(limits: &DiskLimits) -> String {
    let DiskLimits { latency, iops, bytes_per_second, burst, spread_percent: _ } = limits;
    let mut name = format!("sim:custom?iops={iops}&latency={}us", latency.as_micros());
    if let Some(burst) = burst {
        name += &format!("&burst_iops={}&bucket_ios={}", burst.iops, burst.capacity);
    }
    if let Some(bytes) = bytes_per_second {
        name += &format!("&bandwidth={bytes}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_different_and_always_the_same() {
        let cases: Vec<AdviseCase> = (0..10).map(AdviseCase::of).collect();
        for (index, case) in cases.iter().enumerate() {
            let served = |case: &AdviseCase| candidate(&case.others[0].1);
            let is_other = |other: &AdviseCase| other.shape != case.shape || served(other) != served(case);
            assert!(cases[..index].iter().all(|other| other.name != case.name && is_other(other)));
            assert_eq!(AdviseCase::of(index as u64).shape, case.shape);
            assert_eq!(case.is_closed(), index % 5 == 4);
        }
    }

    #[test]
    fn volumes_have_names() {
        let [served, delayed, bucket] = open_volumes(1_000.0, 1.5).map(|(_, limits)| candidate(&limits));
        assert_eq!(served, "sim:custom?iops=6000&latency=5000us");
        assert_eq!(delayed, "sim:custom?iops=20000&latency=4000us&bandwidth=12288000");
        assert_eq!(bucket, "sim:custom?iops=800&latency=3000us&burst_iops=2500&bucket_ios=3600");
    }
}
