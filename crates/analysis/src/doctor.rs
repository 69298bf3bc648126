//! What a machine allows, and what would distort results measured on it: checks of facts gathered before any run.
//!
//! Each check is a row of [`CHECKS`] with a pure function of the facts. What the findings of a run judge as well is judged here by
//! their thresholds and with their remedies, so that both agree. A fact that is missing makes a check unknown, never good.

mod engines;
mod facts;
mod machine;
mod target;

pub use facts::{DoctorFacts, LockedMemory, Refusal, SwapActivity, TargetLimit};

use CheckGroup::{Engines, Machine, Permissions, Target};
use fathom_record::FindingId;
use serde::Serialize;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// Nothing stands in the way.
    Ok,
    /// Good to know: figures hold, within what is said.
    Note,
    /// It would distort results, or prevent a measurement.
    Problem,
    /// The facts are missing.
    Unknown,
}

impl CheckStatus {
    /// The word used in JSON and reports.
    pub const fn name(self) -> &'static str {
        match self {
            CheckStatus::Ok => "ok",
            CheckStatus::Note => "note",
            CheckStatus::Problem => "problem",
            CheckStatus::Unknown => "unknown",
        }
    }
}

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckGroup {
    /// The ways to issue I/O.
    Engines,
    /// The target and the devices under it.
    Target,
    /// CPUs, clock and memory.
    Machine,
    /// What this user may do.
    Permissions,
}

impl CheckGroup {
    /// All of them, in the order of reports.
    pub const ALL: [CheckGroup; 4] =
        [CheckGroup::Engines, CheckGroup::Target, CheckGroup::Machine, CheckGroup::Permissions];

    /// The word used in JSON and CSV.
    pub const fn name(self) -> &'static str {
        match self {
            CheckGroup::Engines => "engines",
            CheckGroup::Target => "target",
            CheckGroup::Machine => "machine",
            CheckGroup::Permissions => "permissions",
        }
    }

    /// The heading in reports.
    pub const fn title(self) -> &'static str {
        match self {
            CheckGroup::Engines => "Engines",
            CheckGroup::Target => "Target",
            CheckGroup::Machine => "Machine",
            CheckGroup::Permissions => "Permissions",
        }
    }
}

/// A check: what it looks at, why that matters, and how facts are judged.
pub struct DoctorCheck {
    /// Its name in JSON and documentation.
    pub id: &'static str,
    /// Its name in reports.
    pub title: &'static str,
    /// What it is about.
    pub group: CheckGroup,
    /// Why it matters, one sentence.
    pub matters: &'static str,
    /// The finding that a run reports of the same condition.
    pub finding: Option<FindingId>,
    judge: fn(&DoctorFacts) -> Judgement,
}

const fn check(
    group: CheckGroup,
    id: &'static str,
    title: &'static str,
    matters: &'static str,
    finding: Option<FindingId>,
    judge: fn(&DoctorFacts) -> Judgement,
) -> DoctorCheck {
    DoctorCheck { id, title, group, matters, finding, judge }
}

/// A status with its reason, a sentence, and what to do about it.
pub(crate) struct Judgement {
    pub(crate) status: CheckStatus,
    pub(crate) result: String,
    pub(crate) remedy: Option<String>,
}

impl Judgement {
    pub(crate) fn ok(result: impl Into<String>) -> Judgement {
        Judgement { status: CheckStatus::Ok, result: result.into(), remedy: None }
    }

    pub(crate) fn unknown(result: impl Into<String>) -> Judgement {
        Judgement { status: CheckStatus::Unknown, ..Judgement::ok(result) }
    }

    pub(crate) fn note(result: impl Into<String>, remedy: impl Into<String>) -> Judgement {
        Judgement { status: CheckStatus::Note, ..Judgement::ok(result) }.with_remedy(remedy)
    }

    pub(crate) fn problem(result: impl Into<String>, remedy: impl Into<String>) -> Judgement {
        Judgement { status: CheckStatus::Problem, ..Judgement::ok(result) }.with_remedy(remedy)
    }

    fn with_remedy(self, remedy: impl Into<String>) -> Judgement {
        Judgement { remedy: Some(remedy.into()), ..self }
    }
}

/// A check of one machine with its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckResult {
    /// The check.
    pub id: &'static str,
    /// Its name in reports.
    pub title: &'static str,
    /// What it is about.
    pub group: CheckGroup,
    /// The result.
    pub status: CheckStatus,
    /// The result in a sentence.
    pub result: String,
    /// Why it matters.
    pub matters: &'static str,
    /// What to do about it.
    pub remedy: Option<String>,
    /// The finding that a run reports of the same condition.
    pub finding: Option<FindingId>,
}

/// All checks, in the order of reports.
pub const CHECKS: &[DoctorCheck] = &[
    check(
        Engines,
        "io-uring",
        "io_uring",
        "io_uring reaches high queue depths with the least CPU time per I/O; fathom's own tests use it.",
        None,
        engines::io_uring,
    ),
    check(
        Engines,
        "libaio",
        "libaio",
        "libaio serves jobs that name it, and fathom's own tests where io_uring is not available.",
        None,
        engines::libaio,
    ),
    check(
        Engines,
        "locked-memory",
        "Locked memory",
        "io_uring registers its buffers within this limit; unregistered ones cost CPU time per I/O.",
        None,
        engines::locked_memory,
    ),
    check(
        Target,
        "access",
        "Access",
        "A target that cannot be opened, or holds no test file, cannot be measured.",
        None,
        target::access,
    ),
    check(
        Target,
        "direct-io",
        "Direct I/O",
        "Without O_DIRECT the page cache serves I/O, and figures are those of memory.",
        Some(FindingId::Buffered),
        target::direct_io,
    ),
    check(
        Target,
        "storage",
        "Storage",
        "Figures of a target that keeps its data in memory are those of memory.",
        Some(FindingId::MemoryBacked),
        target::storage,
    ),
    check(
        Target,
        "background-io",
        "Background I/O",
        "I/O of other processes shares the limits of the device and adds queueing delay.",
        Some(FindingId::ForeignIo),
        target::background_io,
    ),
    check(
        Target,
        "io-limits",
        "I/O limits",
        "A limit of the control group (io.max, blkio.throttle) is measured instead of that of the device.",
        Some(FindingId::IopsCap),
        target::io_limits,
    ),
    check(
        Target,
        "scheduler",
        "I/O scheduler",
        "A scheduler that reorders I/O or shares it fairly costs rate and CPU time on fast devices.",
        None,
        target::scheduler,
    ),
    check(
        Target,
        "numa",
        "NUMA",
        "I/O from CPUs of another node than the device's crosses the interconnect, which adds latency.",
        None,
        target::numa,
    ),
    check(
        Machine,
        "cpus",
        "CPUs",
        "A CPU quota of the control group (cpu.max) pauses the client, and its rate is measured.",
        Some(FindingId::CgroupThrottled),
        machine::cpus,
    ),
    check(
        Machine,
        "cpu-load",
        "CPU load",
        "If other processes use the CPUs, rates and latencies include the waits for one.",
        Some(FindingId::CpuWait),
        machine::cpu_load,
    ),
    check(
        Machine,
        "cpu-steal",
        "CPU steal",
        "CPU time that the hypervisor gives to other guests pauses the client.",
        Some(FindingId::CpuSteal),
        machine::cpu_steal,
    ),
    check(
        Machine,
        "cpu-governor",
        "CPU governor",
        "At low load a governor that saves power lowers the frequency, which adds to latencies.",
        None,
        machine::cpu_governor,
    ),
    check(
        Machine,
        "clock",
        "Clock",
        "Latencies are differences of clock readings: a slow clock adds to them and costs CPU time.",
        None,
        machine::clock,
    ),
    check(Machine, "swap", "Swap", "Swapping delays the client and is I/O of its own.", None, machine::swap),
    check(
        Permissions,
        "privileges",
        "User",
        "Block devices, dropping caches and tracing need root or capabilities.",
        None,
        machine::privileges,
    ),
    check(
        Permissions,
        "tracing",
        "Tracing",
        "`fathom monitor --trace` reads exact sizes, order and latencies from the kernel's tracepoints.",
        None,
        machine::tracing,
    ),
];

/// The results of all checks, in the order of reports.
pub fn examine(facts: &DoctorFacts) -> Vec<CheckResult> {
    let result = |check: &DoctorCheck| {
        let judged = (check.judge)(facts);
        CheckResult {
            id: check.id,
            title: check.title,
            group: check.group,
            status: judged.status,
            result: judged.result,
            matters: check.matters,
            remedy: judged.remedy,
            finding: check.finding.clone(),
        }
    };
    CHECKS.iter().map(result).collect()
}

/// True where something would distort results.
pub fn has_problem(results: &[CheckResult]) -> bool {
    results.iter().any(|result| result.status == CheckStatus::Problem)
}

#[cfg(test)]
mod tests {
    use super::facts::fixture::good;
    use super::*;

    const PAGE: &str = include_str!("../../../docs/src/reference/doctor-checks.md");

    #[test]
    fn every_check_is_documented_once_and_explains_itself() {
        for (index, check) in CHECKS.iter().enumerate() {
            assert!(CHECKS[..index].iter().all(|other| other.id != check.id), "{} twice", check.id);
            assert!(
                PAGE.contains(&format!("| `{}` |", check.id)),
                "doctor-checks.md has no row for {}",
                check.id
            );
            assert!(check.matters.ends_with('.'), "{}", check.matters);
            let group = |check: &DoctorCheck| CheckGroup::ALL.iter().position(|group| *group == check.group);
            assert!(index == 0 || group(&CHECKS[index - 1]) <= group(check), "{} is out of order", check.id);
        }
    }

    #[test]
    fn a_good_machine_has_nothing_but_good_results() {
        let results = examine(&good());
        for result in &results {
            assert_eq!(result.status, CheckStatus::Ok, "{result:?}");
            assert!(result.remedy.is_none() && result.result.ends_with('.'), "{result:?}");
        }
        assert_eq!(results.len(), CHECKS.len());
        assert!(!has_problem(&results));
    }

    #[test]
    fn a_machine_of_which_nothing_is_known_has_no_good_result_that_needs_facts() {
        let results = examine(&DoctorFacts::default());
        let unknown =
            ["background-io", "scheduler", "cpus", "cpu-load", "cpu-steal", "cpu-governor", "clock", "swap"];
        for result in &results {
            let is_unknown = result.status == CheckStatus::Unknown;
            assert!(is_unknown || !unknown.contains(&result.id), "{result:?}");
            assert!(!result.result.is_empty());
        }
        assert!(!has_problem(&results), "what is unknown is no problem: {results:?}");
    }
}
