//! What a bench moves at most, and how much of the burst credits it uses, where the type of the volume is known before the run.

use fathom_model::units::{bytes, duration, grouped};
use fathom_model::{Nanos, RunPlan};
use fathom_record::ExpectationRecord;
use fathom_volume::{Limit, LimitStage, TokenRate, VolumeModel};
use serde::Serialize;

use crate::known_volume::KnownVolume;
use crate::plan::BenchPlan;
use crate::planned::PlannedTest;
use crate::target::BenchTarget;
use crate::together::PlannedTarget;

/// What is moved in the order of what people rent, where no limit is known, bytes per second.
const USUAL_RATE: u64 = 100 << 20;

/// What a bench moves.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlannedTraffic {
    /// Bytes of the tests that end with their size.
    pub sized_bytes: u64,
    /// Time in which the other tests move as much as the volume gives, ns.
    pub timed_ns: u64,
    /// The type of the volume; `None` where it is unknown.
    pub volume_type: Option<String>,
    /// The bandwidth that the type permits, bursts included; `None` where it is unknown.
    pub most_bytes_per_second: Option<u64>,
    /// The burst credits that the run uses.
    pub credits: Vec<CreditUse>,
}

/// What the credits of a bucket are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CreditUnit {
    /// I/Os.
    Ios,
    /// Bytes.
    Bytes,
}

/// How much a run uses of a burst bucket at most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CreditUse {
    /// What is counted.
    pub unit: CreditUnit,
    /// Credits that the run uses at most.
    pub planned: u64,
    /// Credits that the bucket has at first.
    pub available: u64,
    /// Time until they are exhausted at full rate, ns.
    pub lasts_ns: Option<u64>,
    /// The rate from then on, per second.
    pub baseline: f64,
    /// The run is long enough to exhaust them.
    pub may_exhaust: bool,
}

/// The traffic of `plan`, whose tests have the plans `plans`. The type of the volume is known of a simulated one, from the label
/// `type=`, and from a published specification among `expectations`.
pub(crate) fn of_plan(
    plan: &BenchPlan,
    plans: &[RunPlan],
    expectations: &[ExpectationRecord],
) -> PlannedTraffic {
    let model = match plan.targets.as_slice() {
        [PlannedTarget { target: BenchTarget::Simulated(volume), .. }] => {
            let name = volume.chosen.as_ref().map_or("the volume", |(id, _)| id);
            Some((name.to_owned(), volume.model.clone()))
        }
        [PlannedTarget { target, .. }] => {
            let size = match target {
                BenchTarget::Directory { filesystem, .. } => Some(filesystem.total_bytes),
                target => target.size(),
            };
            let settings = &plan.settings.run;
            let catalog = settings.types.catalogue().ok();
            let known =
                catalog.and_then(|all| KnownVolume::named_by(all, &settings.labels, expectations, size));
            known.map(|volume| (volume.type_name().to_owned(), volume.model))
        }
        _ => None,
    };
    traffic(&plan.tests, plans, model.as_ref().map(|(name, model)| (name.as_str(), model)))
}

/// The traffic of `tests` with these plans on a volume of `model`, where that is known.
fn traffic(tests: &[PlannedTest], plans: &[RunPlan], model: Option<(&str, &VolumeModel)>) -> PlannedTraffic {
    let running = || tests.iter().zip(plans).filter(|(test, _)| test.skip.is_none());
    let sized = || running().filter(|(test, _)| test.io_bytes.is_some());
    let sized_bytes = sized().filter_map(|(test, _)| test.io_bytes).sum();
    let sized_ios: u64 = sized().map(|(test, plan)| test.io_bytes.unwrap_or(0) / least_block(plan)).sum();
    let timed = running().filter(|(test, _)| test.io_bytes.is_none());
    let timed_ns: u64 = timed.filter_map(|(test, _)| test.most_time()).map(|time| time.0).sum();
    let planned = PlannedTraffic { sized_bytes, timed_ns, ..PlannedTraffic::default() };
    let Some((name, model)) = model else { return planned };
    let stages = || model.shared.iter().chain(&model.reads).chain(&model.writes);
    let used =
        |limit: &Option<Limit>, unit: CreditUnit, sized: u64| credit_use((*limit)?, unit, sized, timed_ns);
    let of_stage = |stage: &LimitStage| {
        [used(&stage.ios, CreditUnit::Ios, sized_ios), used(&stage.bytes, CreditUnit::Bytes, sized_bytes)]
    };
    let peak = |stage: &LimitStage| stage.bytes.and_then(|limit| limit.peak()).map(TokenRate::as_f64);
    let of_all = |stages: &[LimitStage]| stages.iter().filter_map(peak).reduce(f64::min);
    let apart = [of_all(&model.reads), of_all(&model.writes)];
    let apart = apart.into_iter().flatten().reduce(|reads, writes| reads + writes);
    let most = of_all(&model.shared).into_iter().chain(apart).reduce(f64::min);
    PlannedTraffic {
        volume_type: Some(name.to_owned()),
        most_bytes_per_second: most.map(|most| most as u64),
        credits: stages().flat_map(of_stage).flatten().collect(),
        ..planned
    }
}

/// The smallest I/O of a test, bytes: the most I/Os for its size.
fn least_block(plan: &RunPlan) -> u64 {
    let sizes = plan.jobs.iter().map(|job| {
        let least = job.io.block_size.as_ref().map(fathom_model::BlockSize::smallest);
        least.read.min(least.write)
    });
    sizes.min().unwrap_or(0).max(512)
}

/// What `sized` credits and `timed_ns` at full rate use of `limit`; `None` where it has no bucket.
fn credit_use(limit: Limit, unit: CreditUnit, sized: u64, timed_ns: u64) -> Option<CreditUse> {
    let Limit::Credit { base, burst, initial, .. } = limit else { return None };
    let seconds = timed_ns as f64 / 1e9;
    let timed = burst.map(|burst| burst.as_f64() * seconds);
    // Where the burst rate is unlimited, any time may be enough.
    let planned = timed.map_or(initial, |timed| timed as u64).saturating_add(sized);
    let refilled = (base.as_f64() * seconds) as u64;
    Some(CreditUse {
        unit,
        planned,
        available: initial,
        lasts_ns: limit.time_to_empty_ns(initial),
        baseline: base.as_f64(),
        may_exhaust: planned.saturating_sub(refilled) >= initial,
    })
}

impl PlannedTraffic {
    /// `Moves at most 22.5 GiB (3 min at 128 MiB/s, the limit of aws-gp2-2016).`; `None` where nothing is moved.
    pub fn amount_text(&self) -> Option<String> {
        let at = |rate: u64| bytes(self.sized_bytes + (rate as f64 * self.timed_ns as f64 / 1e9) as u64);
        let time = duration(Nanos(self.timed_ns));
        match (self.sized_bytes, self.timed_ns, self.most_bytes_per_second.zip(self.volume_type.as_ref())) {
            (0, 0, _) => None,
            (_, 0, _) => Some(format!("Moves at most {}.", at(0))),
            (_, _, Some((rate, name))) => Some(format!(
                "Moves at most {} ({time} at {}/s, the limit of {name}).",
                at(rate),
                bytes(rate)
            )),
            _ => Some(format!(
                "Moves {} at {}/s, {} at 1 GiB/s.",
                at(USUAL_RATE),
                bytes(USUAL_RATE),
                at(1 << 30)
            )),
        }
    }

    /// `This run uses up to 540,000 of 5.4 M I/O credits of aws-gp2-2016.`, a sentence for each bucket.
    pub fn credit_texts(&self) -> Vec<String> {
        let name = self.volume_type.as_deref().unwrap_or("the volume");
        self.credits.iter().map(|used| used.text(name)).collect()
    }
}

impl CreditUse {
    fn text(&self, name: &str) -> String {
        let (planned, available) = (self.amount(self.planned), self.amount(self.available));
        let kind = match self.unit {
            CreditUnit::Ios => "I/O credits",
            CreditUnit::Bytes => "of byte credits",
        };
        if !self.may_exhaust {
            return format!("This run uses up to {planned} of {available} {kind} of {name}.");
        }
        let lasts = self.lasts_ns.map(|ns| format!(" after {} at full rate", duration(Nanos(ns))));
        let baseline = match self.unit {
            CreditUnit::Ios => format!("{} IOPS", grouped(self.baseline.round() as u64)),
            CreditUnit::Bytes => format!("{}/s", bytes(self.baseline.round() as u64)),
        };
        format!(
            "This run may exhaust the burst credits of {name}: it uses up to {planned} of {available} {kind}; they end{}, and {baseline} remain.",
            lasts.unwrap_or_default()
        )
    }

    /// `540,000`, `5.4 M`, `1.5 GiB`.
    fn amount(&self, credits: u64) -> String {
        match (self.unit, credits) {
            (CreditUnit::Bytes, credits) => bytes(credits),
            (CreditUnit::Ios, 1_000_000..) => {
                let text = format!("{:.2}", credits as f64 / 1e6);
                format!("{} M", text.trim_end_matches('0').trim_end_matches('.'))
            }
            (CreditUnit::Ios, credits) => grouped(credits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(timed_s: u64, sized: u64) -> CreditUse {
        let rate = |per_second| TokenRate::per_second(per_second).unwrap();
        let limit = Limit::Credit {
            base: rate(150),
            burst: Some(rate(3000)),
            capacity: 5_400_000,
            initial: 5_400_000,
        };
        credit_use(limit, CreditUnit::Ios, sized, timed_s * 1_000_000_000).unwrap()
    }

    #[test]
    fn planned_ios_are_compared_with_the_credits() {
        assert_eq!(
            used(180, 0).text("aws-gp2"),
            "This run uses up to 540,000 of 5.4 M I/O credits of aws-gp2."
        );
        assert_eq!(
            used(0, 3 << 20).text("aws-gp2"),
            "This run uses up to 3.15 M of 5.4 M I/O credits of aws-gp2."
        );
        let long = used(1895, 0);
        assert!(long.may_exhaust && !used(1890, 0).may_exhaust);
        assert_eq!(
            long.text("aws-gp2"),
            "This run may exhaust the burst credits of aws-gp2: it uses up to 5.68 M of 5.4 M I/O credits; they end after 31 min 35 s at \
             full rate, and 150 IOPS remain."
        );
        let plain = Limit::Rate(TokenRate::per_second(9).unwrap());
        assert_eq!(credit_use(plain, CreditUnit::Ios, 1, 1), None);
    }

    #[test]
    fn amounts_are_those_of_the_limit_or_of_usual_rates() {
        let unknown = PlannedTraffic { timed_ns: 180_000_000_000, ..PlannedTraffic::default() };
        assert_eq!(
            unknown.amount_text().as_deref(),
            Some("Moves 17.6 GiB at 100 MiB/s, 180 GiB at 1 GiB/s.")
        );
        let known = PlannedTraffic {
            volume_type: Some("aws-gp2".to_owned()),
            most_bytes_per_second: Some(128 << 20),
            ..unknown
        };
        assert_eq!(
            known.amount_text().as_deref(),
            Some("Moves at most 22.5 GiB (3 min at 128 MiB/s, the limit of aws-gp2).")
        );
        let sized = PlannedTraffic { sized_bytes: 3 << 30, ..PlannedTraffic::default() };
        assert_eq!(sized.amount_text().as_deref(), Some("Moves at most 3.0 GiB."));
        assert_eq!(PlannedTraffic::default().amount_text(), None);
    }
}
