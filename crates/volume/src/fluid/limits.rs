//! A limit under sums of I/Os: its rule, its state and what it did.

use super::{FluidLane, FluidStep, FluidSum, WHOLE};
use crate::latency::VolumeLatency;
use crate::limit::Limit;
use crate::model::VolumeModel;
use crate::rate::{TokenRate, least_common_multiple};
use crate::stage::LimitStage;
use crate::unit::Accounting;

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FluidUnit {
    /// I/Os.
    Ios,
    /// Bytes.
    Bytes,
    /// Time of the servers, where a volume serves so many requests in parallel.
    Servers,
}

/// A limit and what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FluidReport {
    /// The owner of the limit: `volume`, `instance`.
    pub stage: String,
    /// What it counts.
    pub unit: FluidUnit,
    /// Time for which it held requests back, ns.
    pub throttled_ns: u64,
    /// The part of it at the baseline of a burst rule.
    pub throttled_at_baseline_ns: u64,
    /// Credits at the end and when full, whole tokens; `None` without a bucket.
    pub credits: Option<(u64, u64)>,
    /// The lowest level of the credits, millionths, and when it was reached first.
    pub lowest: Option<(u32, u64)>,
    /// When the credits, or a burst of fixed length, were exhausted first, ns.
    pub exhausted_ns: Option<u64>,
    /// More than its baseline was used, where that is billed.
    pub is_billed: bool,
}

/// A limit and its state.
#[derive(Clone, Debug)]
pub(super) struct FluidLimit {
    pub(super) report: FluidReport,
    counted: CountedDirections,
    accounting: Accounting,
    pub(super) rule: FluidRule,
    /// Scaled tokens of a token.
    pub(super) scale: u64,
}

/// The directions that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedDirections {
    Both,
    Reads,
    Writes,
}

/// Rates in scaled tokens per ns.
#[derive(Clone, Debug)]
pub(super) enum FluidRule {
    Rate { most: i128, base: Option<i128> },
    Credit { base: i128, burst: Option<i128>, capacity: i128, level: i128 },
    Window { base: i128, burst: i128, burst_ns: u64, rest_ns: u64, began: Option<u64> },
    Servers { count: i128, read_ns: u64, write_ns: u64 },
}

/// `part` of `amount`.
pub(super) fn part_of(amount: u64, part: u64) -> u64 {
    (u128::from(amount) * u128::from(part) / u128::from(WHOLE)) as u64
}

/// `part` of scaled tokens.
pub(super) fn scaled_part(amount: i128, part: u64) -> i128 {
    amount.saturating_mul(i128::from(part)) / i128::from(WHOLE)
}

/// The quotient, rounded up.
pub(super) fn div_up(dividend: i128, divisor: i128) -> u64 {
    if divisor <= 0 {
        return u64::MAX;
    }
    u64::try_from(dividend.max(0).saturating_add(divisor - 1) / divisor).unwrap_or(u64::MAX)
}

impl FluidLimit {
    pub(super) fn of_stage(
        stage: &LimitStage,
        counted: CountedDirections,
    ) -> impl Iterator<Item = FluidLimit> {
        let of = |limit: Option<Limit>, unit: FluidUnit| {
            let (rule, scale) = rule(limit?)?;
            let report = FluidReport {
                stage: stage.name.clone(),
                unit,
                throttled_ns: 0,
                throttled_at_baseline_ns: 0,
                credits: None,
                lowest: None,
                exhausted_ns: None,
                is_billed: false,
            };
            let mut limit = FluidLimit { report, counted, accounting: stage.accounting, rule, scale };
            limit.note_level(0);
            Some(limit)
        };
        [of(stage.ios, FluidUnit::Ios), of(stage.bytes, FluidUnit::Bytes)].into_iter().flatten()
    }

    pub(super) fn of_servers(model: &VolumeModel, lane: FluidLane, count: u32) -> FluidLimit {
        let mean = |latency: &VolumeLatency| latency.mean_ns().max(1);
        FluidLimit {
            report: FluidReport {
                stage: "volume".to_owned(),
                unit: FluidUnit::Servers,
                throttled_ns: 0,
                throttled_at_baseline_ns: 0,
                credits: None,
                lowest: None,
                exhausted_ns: None,
                is_billed: false,
            },
            counted: match lane {
                FluidLane::Both => CountedDirections::Both,
                FluidLane::Reads => CountedDirections::Reads,
                FluidLane::Writes => CountedDirections::Writes,
            },
            accounting: Accounting::default(),
            rule: FluidRule::Servers {
                count: i128::from(count),
                read_ns: mean(&model.read_latency),
                write_ns: mean(&model.write_latency),
            },
            scale: 1,
        }
    }

    /// The scaled tokens of a step.
    pub(super) fn cost(&self, step: &FluidStep) -> i128 {
        let directions = [
            (step.reads, self.counted != CountedDirections::Writes),
            (step.writes, self.counted != CountedDirections::Reads),
        ];
        if let FluidRule::Servers { read_ns, write_ns, .. } = self.rule {
            let of = |index: usize, ns: u64| match directions[index] {
                (sum, true) => i128::from(sum.ops) * i128::from(ns),
                (_, false) => 0,
            };
            return of(0, read_ns) + of(1, write_ns);
        }
        let tokens: u64 = directions
            .into_iter()
            .filter(|(sum, is_counted)| *is_counted && sum.ops > 0)
            .map(|(sum, _)| charge(self.accounting, sum, step.is_sequential))
            .map(|(ios, bytes)| if self.report.unit == FluidUnit::Bytes { bytes } else { ios })
            .sum();
        i128::from(tokens) * i128::from(self.scale)
    }

    /// Scaled tokens per ns that it permits now; `None` = any.
    pub(super) fn rate(&self, now: u64, is_held: bool) -> Option<i128> {
        match self.rule {
            FluidRule::Rate { most, .. } => Some(most),
            FluidRule::Credit { base, level: 0, .. } => Some(base),
            FluidRule::Credit { burst, .. } => burst,
            FluidRule::Window { base, burst, burst_ns, rest_ns, began } => Some(match began {
                Some(at) if now < at.saturating_add(burst_ns) => burst,
                Some(at) if now < at.saturating_add(burst_ns).saturating_add(rest_ns) => base,
                _ if is_held => base,
                _ => burst,
            }),
            FluidRule::Servers { count, .. } => Some(count),
        }
    }

    /// Begins the burst of a window that permits one at `now`; true where it began.
    pub(super) fn begin_burst(&mut self, now: u64) -> bool {
        let FluidRule::Window { burst_ns, rest_ns, began, .. } = &mut self.rule else { return false };
        let is_ready = began.is_none_or(|at| now >= at.saturating_add(*burst_ns).saturating_add(*rest_ns));
        if is_ready {
            *began = Some(now);
        }
        is_ready
    }

    /// The part of `rest`, which costs `used`, that credits without a burst rate permit immediately.
    pub(super) fn prepaid(&self, rest: u64, used: i128) -> u64 {
        match self.rule {
            FluidRule::Credit { level, burst: None, .. } if used > level => {
                div_up(level.saturating_mul(i128::from(rest)), used).min(rest)
            }
            _ => rest,
        }
    }

    pub(super) fn is_at_baseline(&self, now: u64) -> bool {
        match self.rule {
            FluidRule::Credit { level, .. } => level == 0,
            FluidRule::Window { burst_ns, began, .. } => {
                began.is_some_and(|at| now >= at.saturating_add(burst_ns))
            }
            FluidRule::Rate { .. } | FluidRule::Servers { .. } => false,
        }
    }

    /// How long its rate stays as it is while `used` tokens are taken in `total_ns`, ns.
    pub(super) fn next_change(&self, now: u64, used: i128, total_ns: u64) -> u64 {
        match self.rule {
            FluidRule::Credit { base, level, .. } if level > 0 => {
                let total = i128::from(total_ns);
                let loss = used - base.saturating_mul(total);
                if loss <= level {
                    return u64::MAX;
                }
                div_up(level.saturating_mul(total), loss).max(1)
            }
            FluidRule::Window { burst_ns, rest_ns, began: Some(at), .. } => {
                let ends = [at.saturating_add(burst_ns), at.saturating_add(burst_ns).saturating_add(rest_ns)];
                ends.into_iter().find(|end| *end > now).map_or(u64::MAX, |end| end - now)
            }
            _ => u64::MAX,
        }
    }

    /// Takes `used` tokens in `length` ns that end at `until`.
    pub(super) fn settle(&mut self, length: u64, used: i128, until: u64) {
        match &mut self.rule {
            FluidRule::Credit { base, capacity, level, .. } => {
                *level = (*level + base.saturating_mul(i128::from(length)) - used).clamp(0, *capacity);
                self.note_level(until);
            }
            FluidRule::Window { burst_ns, began: Some(at), .. } => {
                let end = at.saturating_add(*burst_ns);
                if until >= end && self.report.exhausted_ns.is_none() {
                    self.report.exhausted_ns = Some(end);
                }
            }
            FluidRule::Rate { base: Some(base), .. } => {
                self.report.is_billed |= used > base.saturating_mul(i128::from(length));
            }
            _ => {}
        }
    }

    pub(super) fn level_ppm(&self) -> Option<u32> {
        match self.rule {
            FluidRule::Credit { level, capacity, .. } => {
                Some((level.saturating_mul(1_000_000) / capacity.max(1)) as u32)
            }
            _ => None,
        }
    }

    fn note_level(&mut self, at: u64) {
        let Some(ppm) = self.level_ppm() else { return };
        if self.report.lowest.is_none_or(|(lowest, _)| ppm < lowest) {
            self.report.lowest = Some((ppm, at));
        }
        let is_empty = matches!(self.rule, FluidRule::Credit { level: 0, .. });
        if is_empty && self.report.exhausted_ns.is_none() {
            self.report.exhausted_ns = Some(at);
        }
    }
}

/// I/Os and bytes that are charged.
pub(super) fn charge(accounting: Accounting, sum: FluidSum, is_sequential: bool) -> (u64, u64) {
    let Some(unit) = accounting.unit_bytes.map(u64::from) else { return (sum.ops, sum.bytes) };
    let ios = match is_sequential && accounting.merges_sequential {
        true => sum.bytes.div_ceil(unit).max(1),
        false => sum.ops.saturating_mul(sum.bytes.div_ceil(sum.ops).div_ceil(unit).max(1)),
    };
    (ios, if accounting.whole_units { ios.saturating_mul(unit) } else { sum.bytes })
}

/// The rule of a limit, and its scale.
fn rule(limit: Limit) -> Option<(FluidRule, u64)> {
    let (base, peak) = (limit.baseline(), limit.peak());
    let scale = match peak {
        Some(peak) => least_common_multiple(base.per_ns(), peak.per_ns())?,
        None => base.per_ns(),
    };
    let gain = |rate: TokenRate| i128::from(rate.tokens()) * i128::from(scale / rate.per_ns());
    let scaled = |tokens: u64| i128::from(tokens) * i128::from(scale);
    let rule = match limit {
        Limit::Rate(rate) => FluidRule::Rate { most: gain(rate), base: None },
        Limit::OnDemand { base, burst } => FluidRule::Rate { most: gain(burst), base: Some(gain(base)) },
        Limit::Credit { base, burst, capacity, initial } => FluidRule::Credit {
            base: gain(base),
            burst: burst.map(gain),
            capacity: scaled(capacity),
            level: scaled(initial),
        },
        Limit::Window { base, burst, burst_ns, rest_ns } => {
            FluidRule::Window { base: gain(base), burst: gain(burst), burst_ns, rest_ns, began: None }
        }
    };
    Some((rule, scale))
}
