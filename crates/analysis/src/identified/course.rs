//! The rates of a workload one after the other: from full buckets on, until none is left that would be exhausted.

use fathom_model::Nanos;
use fathom_model::units::duration;

use crate::estimate::Estimate;
use crate::identified::prediction::{LastPhase, PhaseSeconds, RatePhase, RequestUnits, UncertainRate};
use crate::identified::{Burst, Figure};
use crate::say;

/// A time that is known less precisely than this share is reported as an interval.
const SURE: f64 = 0.9;

/// Rates one after the other.
pub(super) struct RateCourse {
    pub(super) phases: Vec<RatePhase>,
    /// Rest after which it is as at first, s.
    pub(super) refill_s: Option<f64>,
    pub(super) last: LastPhase,
}

impl RateCourse {
    /// The rates of `load` from full `buckets` on, the highest of which is known to last for `known_s`.
    pub(super) fn of(
        full: UncertainRate,
        buckets: &[&Burst],
        load: &RequestUnits,
        known_s: f64,
    ) -> RateCourse {
        let mut course = RateCourse { phases: Vec::new(), refill_s: None, last: LastPhase::Sustained };
        course.run(full, buckets, load);
        course.limit_to(known_s);
        course
    }

    /// From full buckets on, until none is left that would run dry.
    fn run(&mut self, (full, error): UncertainRate, buckets: &[&Burst], load: &RequestUnits) {
        let mut rate = full;
        let mut left: Vec<(&Burst, f64)> = Vec::new();
        for burst in buckets {
            let may_run_dry = match (burst.capacity.value(), burst.baseline_rate.value()) {
                (_, Some(base)) if load.may_drain(rate, base, burst.unit) => true,
                (Some(capacity), Some(_)) => {
                    left.push((burst, capacity));
                    false
                }
                // It is not known how long it lasts, or what comes then.
                (_, base) => base.is_none_or(|base| drain(rate, base, burst, load) > 0.0),
            };
            if may_run_dry {
                self.last = LastPhase::WhileCredit;
            }
        }
        loop {
            let base = |burst: &Burst| burst.baseline_rate.value().unwrap_or_default();
            let draining = left.iter().enumerate().filter_map(|(index, (burst, credit))| {
                let drain = drain(rate, base(burst), burst, load);
                (drain > 0.0).then(|| (index, credit / drain))
            });
            let Some((first, seconds)) = draining.min_by(|one, other| one.1.total_cmp(&other.1)) else {
                break;
            };
            let lasts = lasts(left[first].0, seconds, rate * error, load);
            self.phases.push(RatePhase {
                iops: rate,
                bytes_per_second: rate * load.bytes,
                seconds: Some(lasts),
            });
            for (burst, credit) in &mut left {
                let spent = drain(rate, base(burst), burst, load) * seconds;
                *credit = (*credit - spent).min(burst.capacity.value().unwrap_or_default());
            }
            let (burst, _) = left.remove(first);
            if let Some(refill) = burst.seconds_to_refill.value() {
                self.refill_s = Some(self.refill_s.unwrap_or(0.0).max(refill));
            }
            rate = rate.min(base(burst) / load.of(burst.unit));
        }
        self.phases.push(RatePhase { iops: rate, bytes_per_second: rate * load.bytes, seconds: None });
    }

    /// The highest rate is known to last for `known_s`, whatever else is exhausted.
    fn limit_to(&mut self, known_s: f64) {
        let known = (known_s > 0.0).then_some(known_s);
        match self.phases.first_mut().and_then(|phase| phase.seconds.as_mut()) {
            Some(lasts) if known_s < lasts.value => lasts.low = known,
            Some(_) => {}
            None if self.last == LastPhase::Sustained && known_s.is_finite() => {
                self.last = known.map_or(LastPhase::Unknown, LastPhase::AtLeastSeconds);
            }
            None => {}
        }
    }

    /// The rates in words.
    pub(super) fn text(&self, block: u64) -> String {
        let rate = |phase: &RatePhase| match block {
            0..=65_535 => format!("{} IOPS", say::count(phase.iops)),
            _ => say::mebibytes(phase.iops * block as f64),
        };
        let time = |seconds: f64| duration(Nanos((seconds * 1e9) as u64));
        let mut text = String::new();
        for (index, phase) in self.phases.iter().enumerate() {
            if index > 0 {
                text.push_str(", then ");
            }
            text.push_str(&rate(phase));
            match phase.seconds {
                Some(PhaseSeconds { value: seconds, low: None, .. }) => {
                    text.push_str(&format!(" for at most {}", time(seconds)));
                }
                Some(PhaseSeconds { value: seconds, low: Some(low), .. }) if low < seconds * SURE => {
                    text.push_str(&format!(" for {} to {}", time(low), time(seconds)));
                }
                Some(PhaseSeconds { value: seconds, .. }) => {
                    text.push_str(&format!(" for {}", time(seconds)))
                }
                None => {}
            }
        }
        match self.last {
            LastPhase::Sustained => {}
            LastPhase::AtLeastSeconds(seconds) => text.push_str(&format!(" for at least {}", time(seconds))),
            LastPhase::WhileCredit => text.push_str(" while burst credits remain (duration unknown)"),
            LastPhase::Unknown => text.push_str(" initially (duration unknown)"),
        }
        if let Some(refill) = self.refill_s {
            text.push_str(&format!("; refills in {} when idle", time(refill)));
        }
        text
    }
}

/// The time that a bucket lasts, which is `seconds` as far as known, at a rate that may be wrong by so much.
fn lasts(burst: &Burst, seconds: f64, error: f64, load: &RequestUnits) -> PhaseSeconds {
    let half = |figure: &Figure| match figure.estimate {
        Some(Estimate::Known { low, high, .. }) => (high - low) / 2.0,
        _ => 0.0,
    };
    let credit = burst.capacity.value().unwrap_or_default();
    let drain = credit / seconds;
    let amiss = half(&burst.baseline_rate) + error * load.of(burst.unit);
    let share = half(&burst.capacity) / credit + amiss / drain;
    // A rate hardly above the baseline uses up credit so slowly that its duration is unknown.
    let high = if share < 1.0 { seconds / (1.0 - share) } else { f64::INFINITY };
    PhaseSeconds { value: seconds, low: Some(seconds / (1.0 + share)), high }
}

/// Credit that is used a second; below 0 where it is gained.
fn drain(rate: f64, base: f64, burst: &Burst, load: &RequestUnits) -> f64 {
    // A drain of less than 0.1 % of the baseline lies within the confidence interval of a rate, and is treated as zero.
    let drain = rate * load.of(burst.unit) - base;
    if drain > base * 1e-3 { drain } else { drain.min(0.0) }
}
