//! What each finding can do to the figures of the tests that it concerns. Suitability and expectations read the same table.
//!
//! A finding only puts a verdict in doubt that it would falsify: figures that may be too good prove no suitability, and
//! figures that may be too bad do not disprove it.

use fathom_record::{Finding, FindingId, RunRecord};

/// What a finding can do to figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FigureEffect {
    /// The volume may be slower than its figures.
    Flatters,
    /// The volume may be faster than its figures.
    Impedes,
    /// Either.
    Distorts,
    /// The figures are those of a time with failures, and say little of another. An expectation is about the time that was
    /// measured; a suitability is not.
    Interrupts,
    /// The figures are a mean of different rates.
    Varies,
}

impl FigureEffect {
    /// Figures with it may be better than the volume.
    pub(crate) const fn flatters(self) -> bool {
        matches!(self, FigureEffect::Flatters | FigureEffect::Distorts)
    }

    /// Figures with it may be worse than the volume.
    pub(crate) const fn impedes(self) -> bool {
        matches!(self, FigureEffect::Impedes | FigureEffect::Distorts)
    }
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct FindingDoubt {
    pub(crate) id: FindingId,
    pub(crate) effect: FigureEffect,
    /// Why the figures are in doubt.
    pub(crate) reason: &'static str,
    pub(crate) remedy: &'static str,
}

const CACHE: (&str, &str) =
    ("a cache may have served I/Os", "use a larger --size, or a target without a cache in front of it");
const CLIENT: (&str, &str) = ("the client may be the limit", "use a machine with spare CPU time");

const fn row(
    id: FindingId,
    effect: FigureEffect,
    (reason, remedy): (&'static str, &'static str),
) -> FindingDoubt {
    FindingDoubt { id, effect, reason, remedy }
}

/// Every finding that puts figures in doubt, the gravest first.
pub(crate) const DOUBTS: &[FindingDoubt] = &[
    row(
        FindingId::MemoryBacked,
        FigureEffect::Flatters,
        ("no storage device was measured", "measure a directory, file or device on the storage in question"),
    ),
    row(
        FindingId::Unwritten,
        FigureEffect::Flatters,
        ("blocks were never written", "write the target first: `fathom prepare`"),
    ),
    row(FindingId::CacheServed, FigureEffect::Flatters, CACHE),
    row(FindingId::HostCache, FigureEffect::Flatters, CACHE),
    row(
        FindingId::Buffered,
        FigureEffect::Distorts,
        ("a cache may have served I/Os", "use direct I/O (omit --buffered)"),
    ),
    row(
        FindingId::FlushSuspicious,
        FigureEffect::Flatters,
        ("syncs may not have reached stable storage", "check the layers in between, and ask the provider"),
    ),
    row(FindingId::SmallWorkingSet, FigureEffect::Flatters, CACHE),
    row(FindingId::ShortRun, FigureEffect::Flatters, ("the test is too short", "use a longer --runtime")),
    row(FindingId::ClientCpuBound, FigureEffect::Impedes, CLIENT),
    row(FindingId::CgroupThrottled, FigureEffect::Impedes, CLIENT),
    row(FindingId::CpuSteal, FigureEffect::Impedes, CLIENT),
    row(FindingId::CpuWait, FigureEffect::Distorts, CLIENT),
    row(FindingId::CpuCreditSuspected, FigureEffect::Impedes, CLIENT),
    row(
        FindingId::ForeignIo,
        FigureEffect::Impedes,
        ("other processes used the device", "stop the other load, or measure while it is idle"),
    ),
    row(
        FindingId::FirstTouch,
        FigureEffect::Impedes,
        (
            "blocks were accessed for the first time",
            "access every block once first: `fathom prepare --touch`",
        ),
    ),
    row(FindingId::Errors, FigureEffect::Interrupts, ("I/Os failed", "check the kernel log (dmesg)")),
    row(FindingId::Stalled, FigureEffect::Interrupts, ("the device stalled", "measure again")),
    row(
        FindingId::NotSteady,
        FigureEffect::Varies,
        ("the rate is not in steady state", "use --until-steady"),
    ),
    row(FindingId::BurstSuspected, FigureEffect::Varies, ("the rate fell", "use --until-steady")),
    row(
        FindingId::WriteCache,
        FigureEffect::Varies,
        ("a write cache took in writes", "use a longer --runtime"),
    ),
];

/// True of a finding that puts figures in doubt.
pub(crate) fn is_doubt(id: &FindingId) -> bool {
    DOUBTS.iter().any(|doubt| doubt.id == *id)
}

/// The doubts with such an effect on the figures of a test, and the findings that give rise to them.
pub(crate) fn doubts_of<'a>(
    record: &'a RunRecord,
    test: &str,
    has_effect: impl Fn(FigureEffect) -> bool,
) -> impl Iterator<Item = (&'static FindingDoubt, &'a Finding)> {
    DOUBTS.iter().filter(move |doubt| has_effect(doubt.effect)).filter_map(move |doubt| {
        let concerns = |found: &&Finding| found.id == doubt.id && found.tests.iter().any(|one| one == test);
        Some((doubt, record.findings.iter().find(concerns)?))
    })
}

/// The share of the time that CPU steal took from a test at most: it is counted over all CPUs, and may all have been that of one.
/// `None` of other findings, and where it may have been all of the time.
pub(crate) fn stolen_at_most(record: &RunRecord, found: &Finding) -> Option<f64> {
    let stolen = found.evidence.get("steal_fraction")?.as_f64()?;
    let cpus: u32 = record.header.hosts.iter().map(|host| host.cpus_online).sum();
    let share = stolen * f64::from(cpus);
    (found.id == FindingId::CpuSteal && cpus > 0 && share < 1.0).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_has_one_effect() {
        for (at, doubt) in DOUBTS.iter().enumerate() {
            assert!(DOUBTS[..at].iter().all(|other| other.id != doubt.id), "{}", doubt.id);
            assert!(!doubt.reason.is_empty() && !doubt.remedy.is_empty(), "{}", doubt.id);
        }
    }

    #[test]
    fn a_doubt_concerns_the_tests_of_its_finding() {
        let found = |id| Finding { id, tests: vec!["a".to_owned()], ..Finding::default() };
        let findings = vec![found(FindingId::CacheServed), found(FindingId::MemoryBacked)];
        let run = RunRecord { findings, ..RunRecord::default() };
        let id = |test: &str, has: fn(FigureEffect) -> bool| {
            doubts_of(&run, test, has).next().map(|(doubt, _)| doubt.id.clone())
        };
        assert_eq!(id("a", FigureEffect::flatters), Some(FindingId::MemoryBacked));
        assert_eq!(id("a", FigureEffect::impedes), None);
        assert_eq!(id("b", FigureEffect::flatters), None);
    }
}
