//! What a run writes and moves at most, and how much of the burst credits it uses, where the type of the volume is known before
//! the run.

use fathom_catalog::INSTANCE_STAGE;
use fathom_model::units::{bytes, duration, grouped};
use fathom_model::{LimitUnit, Nanos, RunPlan};
use fathom_record::ExpectationRecord;
use fathom_volume::{Limit, LimitStage, TokenRate, VolumeModel};
use serde::Serialize;

use crate::identify::KnownVolume;
use crate::plan::BenchPlan;
use crate::planned::PlannedTest;
use crate::site::RunSettings;
use crate::target::BenchTarget;
use crate::together::PlannedTarget;

/// What is moved in the order of what people rent, where no limit is known, bytes per second.
const USUAL_RATE: u64 = 100 << 20;

/// What a run moves, whatever the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OfferedTraffic {
    /// Bytes of the tests that end with their size.
    pub sized_bytes: u64,
    /// Those of them that are written.
    pub sized_written_bytes: u64,
    /// I/Os of the tests that end with their size, at most.
    pub sized_ios: u64,
    /// Time in which the other tests move as much as the volume gives, ns.
    pub timed_ns: u64,
    /// The part of it in which they write, ns.
    pub writing_ns: u64,
    /// Some tests read.
    pub reads: bool,
}

/// What a run moves.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlannedTraffic {
    /// By the tests alone.
    #[serde(flatten)]
    pub offered: OfferedTraffic,
    /// The type of the volume; `None` where it is unknown.
    pub volume_type: Option<String>,
    /// The bandwidth that the type permits, bursts included; `None` where it is unknown.
    pub most_bytes_per_second: Option<u64>,
    /// The burst credits that the run uses.
    pub credits: Vec<CreditUse>,
}

/// A test file that is written before the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestFile {
    /// Its size, bytes.
    pub bytes: u64,
    /// Longest time for it; `None` = as long as it takes.
    pub limit: Option<Nanos>,
}

/// How much a run uses of a burst bucket at most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CreditUse {
    /// What is counted.
    pub unit: LimitUnit,
    /// They are those of the instance in front of the volume.
    pub is_of_instance: bool,
    /// Credits that the run uses at most.
    pub planned: u64,
    /// Credits that the bucket has at first.
    pub available: u64,
    /// Most credits that the bucket holds.
    pub capacity: u64,
    /// Time until they are exhausted at full rate, ns.
    pub lasts_ns: Option<u64>,
    /// The rate from then on, per second.
    pub baseline: f64,
    /// The run is long enough to exhaust them.
    pub may_exhaust: bool,
}

/// The traffic of `plan`, whose tests have the plans `plans`.
pub(crate) fn of_plan(
    plan: &BenchPlan,
    plans: &[RunPlan],
    expectations: &[ExpectationRecord],
) -> PlannedTraffic {
    let offered = of_tests(&plan.tests, plans);
    match plan.targets.as_slice() {
        [PlannedTarget { target, .. }] => {
            PlannedTraffic::on(target, &plan.settings.run, expectations, offered)
        }
        _ => PlannedTraffic { offered, ..PlannedTraffic::default() },
    }
}

/// What `tests` with these plans move.
fn of_tests(tests: &[PlannedTest], plans: &[RunPlan]) -> OfferedTraffic {
    let mut offered = OfferedTraffic::default();
    for (test, plan) in tests.iter().zip(plans).filter(|(test, _)| test.skip.is_none()) {
        offered.reads |= test.reads();
        match test.most_bytes() {
            Some(most) => {
                offered.sized_bytes += most;
                offered.sized_written_bytes += if test.writes { most } else { 0 };
                offered.sized_ios += most / least_block(plan);
            }
            None => {
                let time = test.most_time().map_or(0, |time| time.0);
                offered.timed_ns += time;
                offered.writing_ns += if test.writes { time } else { 0 };
            }
        }
    }
    offered
}

/// The name and the limits of the volume that is `target`, where its type is known: of a simulated one, from the label `type=`, and
/// from a published specification among `expectations`.
fn known_volume(
    target: &BenchTarget,
    settings: &RunSettings,
    expectations: &[ExpectationRecord],
) -> Option<(String, VolumeModel)> {
    let size = match target {
        BenchTarget::Simulated(volume) => {
            let name = volume.chosen.as_ref().map_or("the volume", |(id, _)| id);
            return Some((name.to_owned(), volume.model.clone()));
        }
        BenchTarget::Directory { filesystem, .. } => Some(filesystem.total_bytes),
        target => target.size(),
    };
    let catalog = settings.types.catalogue().ok()?;
    let volume = KnownVolume::named_by(catalog, &settings.labels, expectations, size)?;
    Some((volume.type_name().to_owned(), volume.model))
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
fn credit_use(limit: Limit, unit: LimitUnit, sized: u64, timed_ns: u64) -> Option<CreditUse> {
    let Limit::Credit { base, burst, capacity, initial } = limit else { return None };
    let seconds = timed_ns as f64 / 1e9;
    let timed = burst.map(|burst| burst.as_f64() * seconds);
    // Where the burst rate is unlimited, any time may be enough.
    let planned = timed.map_or(initial, |timed| timed as u64).saturating_add(sized);
    let refilled = (base.as_f64() * seconds) as u64;
    Some(CreditUse {
        unit,
        is_of_instance: false,
        planned,
        available: initial,
        capacity,
        lasts_ns: limit.time_to_empty_ns(initial),
        baseline: base.as_f64(),
        may_exhaust: planned.saturating_sub(refilled) >= initial,
    })
}

impl PlannedTraffic {
    /// What a run moves on `target`.
    pub(crate) fn on(
        target: &BenchTarget,
        settings: &RunSettings,
        expectations: &[ExpectationRecord],
        offered: OfferedTraffic,
    ) -> PlannedTraffic {
        match known_volume(target, settings, expectations) {
            Some((name, model)) => PlannedTraffic::of_type(name, &model, offered),
            None => PlannedTraffic { offered, ..PlannedTraffic::default() },
        }
    }

    fn of_type(name: String, model: &VolumeModel, offered: OfferedTraffic) -> PlannedTraffic {
        let stages = || model.shared.iter().chain(&model.reads).chain(&model.writes);
        let used = |limit: &Option<Limit>, unit: LimitUnit, sized: u64| {
            credit_use((*limit)?, unit, sized, offered.timed_ns)
        };
        let of_stage = |stage: &LimitStage| {
            let is_of_instance = stage.name == INSTANCE_STAGE;
            [
                used(&stage.ios, LimitUnit::Ios, offered.sized_ios),
                used(&stage.bytes, LimitUnit::Bytes, offered.sized_bytes),
            ]
            .map(|used| used.map(|used| CreditUse { is_of_instance, ..used }))
        };
        let peak = |stage: &LimitStage| stage.bytes.and_then(|limit| limit.peak()).map(TokenRate::as_f64);
        let of_all = |stages: &[LimitStage]| stages.iter().filter_map(peak).reduce(f64::min);
        let apart = [of_all(&model.reads), of_all(&model.writes)];
        let apart = apart.into_iter().flatten().reduce(|reads, writes| reads + writes);
        let most = of_all(&model.shared).into_iter().chain(apart).reduce(f64::min);
        PlannedTraffic {
            offered,
            volume_type: Some(name),
            most_bytes_per_second: most.map(|most| most as u64),
            credits: stages().flat_map(of_stage).flatten().collect(),
        }
    }

    /// What the run writes before the tests, moves in them, and uses of the burst credits, a sentence each.
    pub fn text(&self, file: Option<TestFile>) -> String {
        let is_silent = file.is_none() && !self.writes();
        let layout = file.map(|TestFile { bytes: size, limit }| {
            let limit = limit.map(|time| format!(" (time limit {})", duration(time))).unwrap_or_default();
            format!("Writes a {} test file{limit}.", bytes(size))
        });
        let nothing = is_silent.then(|| "Writes nothing.".to_owned());
        let sentences = layout.into_iter().chain(nothing).chain(self.amount_text());
        sentences.chain(self.credit_texts()).collect::<Vec<_>>().join(" ")
    }

    fn writes(&self) -> bool {
        self.offered.sized_written_bytes > 0 || self.offered.writing_ns > 0
    }

    /// `Moves at most 22.5 GiB (3 min at 128 MiB/s, the limit of aws-gp2-2016), writes at most 7.5 GiB of it.`; `None` where
    /// nothing is moved.
    pub fn amount_text(&self) -> Option<String> {
        let OfferedTraffic { sized_bytes, sized_written_bytes, timed_ns, writing_ns, reads, .. } =
            self.offered;
        let bytes_at = |rate: u64, sized: u64, ns: u64| bytes(sized + (rate as f64 * ns as f64 / 1e9) as u64);
        let at = |rate: u64| bytes_at(rate, sized_bytes, timed_ns);
        let time = |ns: u64| duration(Nanos(ns));
        let verb = match (reads, self.writes()) {
            (true, true) => "Moves",
            (true, false) => "Reads",
            (false, _) => "Writes",
        };
        let writes_part = verb == "Moves";
        let known = self.most_bytes_per_second.zip(self.volume_type.as_ref());
        let (amount, rate) = match (timed_ns, known) {
            (0, _) if sized_bytes == 0 => return None,
            (0, _) => (format!("{verb} at most {}", at(0)), 0),
            (_, Some((rate, name))) => {
                let limit = format!("{} at {}/s, the limit of {name}", time(timed_ns), bytes(rate));
                (format!("{verb} at most {} ({limit})", at(rate)), rate)
            }
            (_, None) => {
                let usual = format!("{} at {}/s", at(USUAL_RATE), bytes(USUAL_RATE));
                let amount = format!("{verb} {usual}, {} at 1 GiB/s", at(1 << 30));
                let written = (sized_written_bytes > 0).then(|| bytes(sized_written_bytes));
                let during = (writing_ns > 0)
                    .then(|| format!("for up to {} of the {}", time(writing_ns), time(timed_ns)));
                let parts: Vec<String> = written.into_iter().chain(during).collect();
                return Some(match writes_part {
                    true => format!("{amount}; writes {}.", parts.join(" and ")),
                    false => format!("{amount}."),
                });
            }
        };
        let written = bytes_at(rate, sized_written_bytes, writing_ns);
        Some(match writes_part {
            true => format!("{amount}, writes at most {written} of it."),
            false => format!("{amount}."),
        })
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
        let kind = self.kind();
        let name = if self.is_of_instance { "the instance" } else { name };
        if !self.may_exhaust {
            return format!("This run uses up to {planned} of {available} {kind} of {name}.");
        }
        let lasts = self.lasts_ns.map(|ns| format!(" after {} at full rate", duration(Nanos(ns))));
        format!(
            "This run may exhaust the burst credits of {name}: it uses up to {planned} of {available} {kind}; they end{}, and {} remain.",
            lasts.unwrap_or_default(),
            self.baseline_text()
        )
    }

    /// The rate without credits: `150 IOPS`, `64 MiB/s`.
    pub(crate) fn baseline_text(&self) -> String {
        self.unit.rate_text(self.baseline)
    }

    /// What the credits are.
    pub(crate) const fn kind(&self) -> &'static str {
        match self.unit {
            LimitUnit::Ios => "I/O credits",
            LimitUnit::Bytes => "of byte credits",
        }
    }

    /// `540,000`, `5.4 M`, `1.5 GiB`.
    pub(crate) fn amount(&self, credits: u64) -> String {
        match (self.unit, credits) {
            (LimitUnit::Bytes, credits) => bytes(credits),
            (LimitUnit::Ios, 1_000_000..) => {
                let text = format!("{:.2}", credits as f64 / 1e6);
                format!("{} M", text.trim_end_matches('0').trim_end_matches('.'))
            }
            (LimitUnit::Ios, credits) => grouped(credits),
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
        credit_use(limit, LimitUnit::Ios, sized, timed_s * 1_000_000_000).unwrap()
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
        assert_eq!(credit_use(plain, LimitUnit::Ios, 1, 1), None);
    }

    #[test]
    fn credits_of_an_instance_are_not_those_of_the_volume() {
        let name = "sim:aws-gp3?size=500GiB&iops=16000&instance=m6i.large";
        let volume = crate::SimulatedVolume::named(name.as_ref(), &crate::VolumeTypes::default()).unwrap();
        let minute = OfferedTraffic { timed_ns: 60_000_000_000, reads: true, ..OfferedTraffic::default() };
        assert_eq!(
            PlannedTraffic::of_type("aws-gp3".to_owned(), &volume.model, minute).credit_texts()[0],
            "This run uses up to 2.4 M of 65.52 M I/O credits of the instance."
        );
    }

    #[test]
    fn amounts_are_those_of_the_limit_or_of_usual_rates() {
        let minutes = |minutes: u64| minutes * 60_000_000_000;
        let check = |offered: OfferedTraffic, expected: [&str; 2]| {
            let unknown = PlannedTraffic { offered, ..PlannedTraffic::default() };
            let known = PlannedTraffic {
                volume_type: Some("aws-gp2".to_owned()),
                most_bytes_per_second: Some(128 << 20),
                ..unknown.clone()
            };
            assert_eq!([unknown, known].map(|traffic| traffic.text(None)), expected);
        };
        let reading = OfferedTraffic { timed_ns: minutes(3), reads: true, ..OfferedTraffic::default() };
        check(
            reading,
            [
                "Writes nothing. Reads 17.6 GiB at 100 MiB/s, 180 GiB at 1 GiB/s.",
                "Writes nothing. Reads at most 22.5 GiB (3 min at 128 MiB/s, the limit of aws-gp2).",
            ],
        );
        check(
            OfferedTraffic { writing_ns: minutes(1), ..reading },
            [
                "Moves 17.6 GiB at 100 MiB/s, 180 GiB at 1 GiB/s; writes for up to 1 min of the 3 min.",
                "Moves at most 22.5 GiB (3 min at 128 MiB/s, the limit of aws-gp2), writes at most 7.5 GiB of it.",
            ],
        );
        check(
            OfferedTraffic { writing_ns: minutes(3), reads: false, ..reading },
            [
                "Writes 17.6 GiB at 100 MiB/s, 180 GiB at 1 GiB/s.",
                "Writes at most 22.5 GiB (3 min at 128 MiB/s, the limit of aws-gp2).",
            ],
        );
        let sized = OfferedTraffic { sized_bytes: 3 << 30, reads: true, ..OfferedTraffic::default() };
        check(sized, ["Writes nothing. Reads at most 3.0 GiB."; 2]);
        check(
            OfferedTraffic { sized_written_bytes: 1 << 30, ..sized },
            ["Moves at most 3.0 GiB, writes at most 1.0 GiB of it."; 2],
        );
        check(OfferedTraffic::default(), ["Writes nothing."; 2]);
        let file = TestFile { bytes: 1 << 30, limit: Some(Nanos(minutes(1))) };
        let unknown = PlannedTraffic { offered: sized, ..PlannedTraffic::default() };
        assert_eq!(
            unknown.text(Some(file)),
            "Writes a 1.0 GiB test file (time limit 1 min). Reads at most 3.0 GiB."
        );
    }
}
