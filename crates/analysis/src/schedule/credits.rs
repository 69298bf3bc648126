//! The burst credits over a whole schedule: each run uses some, and some return between two runs.

use serde::Serialize;

/// What the runs of a schedule leave in a burst bucket.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CreditCourse {
    /// Credits that return between two runs at most.
    pub refilled_between: u64,
    /// The lowest number of credits before a run.
    pub least_before_run: u64,
    /// The first run, from 1, that begins with fewer credits than it may use; `None` where each has enough.
    pub first_short_run: Option<u64>,
}

/// The bucket of a volume.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CreditBucket {
    /// Most credits.
    pub capacity: f64,
    /// Credits at first.
    pub initial: f64,
    /// Credits that return per second.
    pub refill_per_second: f64,
}

/// The course of the credits over `runs` runs that each use up to `used` and take `run_s` seconds, one every `every_s` seconds.
pub fn credit_course(bucket: CreditBucket, used: f64, run_s: f64, every_s: f64, runs: u64) -> CreditCourse {
    let CreditBucket { capacity, initial, refill_per_second } = bucket;
    let refilled = refill_per_second * (every_s - run_s).max(0.0);
    let after_run = |level: f64| (level - used + refill_per_second * run_s).clamp(0.0, capacity);
    let (mut level, mut least, mut first_short_run) = (initial, initial, None);
    for run in 1..=runs {
        least = level.min(least);
        if level + refill_per_second * run_s < used {
            first_short_run.get_or_insert(run);
        }
        let next = (after_run(level) + refilled).min(capacity);
        if next == level {
            break;
        }
        level = next;
    }
    CreditCourse {
        refilled_between: refilled.min(capacity) as u64,
        least_before_run: least as u64,
        first_short_run,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// gp2 of 100 GiB: 300 I/Os per second return, and 3,000 are used.
    const BUCKET: CreditBucket =
        CreditBucket { capacity: 5_400_000.0, initial: 5_400_000.0, refill_per_second: 300.0 };

    #[test]
    fn credits_return_between_runs_or_end() {
        let hourly = credit_course(BUCKET, 180.0 * 3000.0, 180.0, 3600.0, 168);
        assert_eq!(
            (hourly.refilled_between, hourly.least_before_run, hourly.first_short_run),
            (1_026_000, 5_400_000, None)
        );
        // Every four minutes 540,000 are used and 72,000 return.
        let often = credit_course(BUCKET, 180.0 * 3000.0, 180.0, 240.0, 168);
        assert_eq!(often.refilled_between, 18_000);
        assert_eq!(often.first_short_run, Some(12));
        assert!(often.least_before_run < 540_000);
        let single = credit_course(BUCKET, 180.0 * 3000.0, 180.0, 240.0, 1);
        assert_eq!((single.first_short_run, single.least_before_run), (None, 5_400_000));
    }
}
