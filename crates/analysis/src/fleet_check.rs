//! What stands in the way of a run on many hosts: facts of this host and of the others, judged before anything is started.
//!
//! Pure, as the checks of [`doctor`](crate::doctor), whose words for a result it uses: a fact that is missing makes a check
//! unknown, never good.

use fathom_model::text::listed;
use fathom_model::units::{self, grouped};
use fathom_record::ClockState;
use serde::Serialize;

use crate::doctor::{CheckStatus, Judgement, LockedMemory};

/// Descriptors that a launcher takes for each host, and for itself.
const FILES_OF_HOST: u64 = 8;
const FILES_OF_LAUNCHER: u64 = 64;
/// Open files with which every job of the usual size runs.
const MIN_FILES: u64 = 1024;
/// Registered buffers of the usual tests fit into this.
const MIN_LOCKED: u64 = 8 << 20;
/// Clock error from which on a start by the clock is refused, ns.
const CLOSE_CLOCKS_NS: u64 = 1_000_000;
/// Wall clocks that are further apart were set wrongly, ns.
const WRONG_CLOCK_NS: i64 = 1_000_000_000;
/// Hosts that are named in a result.
const MAX_NAMED: usize = 5;

/// A launcher that is here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LauncherFacts {
    /// As it is called.
    pub program: String,
    /// Whose it is (`MPICH hydra`).
    pub family: String,
    /// Its version.
    pub version: String,
    /// Whether its ranks find each other by PMIx, a library that they load.
    pub needs_library: bool,
    /// Why its ranks cannot find each other, if so.
    pub obstacle: Option<String>,
}

/// What a host says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FleetHostFacts {
    /// Its version of fathom.
    pub version: String,
    /// How well its clock is known; `None` where the kernel does not say.
    pub clock: Option<ClockState>,
    /// How far its clock is ahead of the one here, and how well that is known, ns; `None` for this host.
    pub clock_offset_ns: Option<(i64, u64)>,
    /// Most open files of a process; `None` where there is no limit.
    pub open_files: Option<u64>,
    /// Memory that may be registered for I/O; `None` where that is unknown.
    #[serde(skip)]
    pub locked_memory: Option<LockedMemory>,
}

/// Why a host said nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostFailure {
    /// The reason.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

/// What the checks rest on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetCheckFacts {
    /// The launchers that are here, the one that starts a job first.
    pub launchers: Vec<LauncherFacts>,
    /// Why a launcher cannot be used that is here, or was named.
    pub launcher_problems: Vec<String>,
    /// Whether the library of PMIx can be loaded; `None` where that was not tried.
    pub pmix_library: Option<Result<(), String>>,
    /// This host.
    pub here: FleetHostFacts,
    /// The others, in the order of their list.
    pub hosts: Vec<(String, Result<FleetHostFacts, HostFailure>)>,
}

/// A check with its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FleetCheckResult {
    /// Its name in JSON.
    pub id: &'static str,
    /// Its name in reports.
    pub title: &'static str,
    /// The result.
    pub status: CheckStatus,
    /// The result in a sentence.
    pub result: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

type Judge = fn(&FleetCheckFacts) -> Judgement;

/// The checks in the order of reports; the last ones are of other hosts, where there are any.
const CHECKS: [(&str, &str, Judge); 9] = [
    ("launcher", "Launcher", launcher),
    ("process-manager", "Process manager", process_manager),
    ("clock", "Clock", clock),
    ("open-files", "Open files", open_files),
    ("locked-memory", "Locked memory", locked_memory),
    ("ssh", "Hosts over ssh", reachable),
    ("version", "Versions of fathom", versions),
    ("clocks", "Clocks of the hosts", clocks),
    ("limits", "Limits of the hosts", limits),
];
/// Checks of this host.
const CHECKS_HERE: usize = 5;

/// The results of all checks, in the order of reports.
pub fn check_fleet(facts: &FleetCheckFacts) -> Vec<FleetCheckResult> {
    let count = if facts.hosts.is_empty() { CHECKS_HERE } else { CHECKS.len() };
    let result = |(id, title, judge): (&'static str, &'static str, Judge)| {
        let Judgement { status, result, remedy } = judge(facts);
        FleetCheckResult { id, title, status, result, remedy }
    };
    CHECKS.into_iter().take(count).map(result).collect()
}

/// True where something would stop a run.
pub fn stops_a_run(results: &[FleetCheckResult]) -> bool {
    results.iter().any(|result| result.status == CheckStatus::Problem)
}

fn launcher(facts: &FleetCheckFacts) -> Judgement {
    let name = |launcher: &LauncherFacts| {
        let LauncherFacts { program, family, version, .. } = launcher;
        format!("{program} ({family} {version})").replace(" )", ")")
    };
    let problems = facts.launcher_problems.join("; ");
    match facts.launchers.as_slice() {
        [] if problems.is_empty() => Judgement::problem(
            "neither mpiexec nor mpirun nor srun is here.",
            "Install MPICH or Open MPI, or work on a host of the cluster that has srun.",
        ),
        [] => Judgement::problem(format!("{problems}."), "Name a launcher that works: --launcher PROGRAM."),
        [first, others @ ..] => {
            let others: Vec<String> = others.iter().map(name).collect();
            let others =
                if others.is_empty() { String::new() } else { format!("; also {}", others.join(", ")) };
            let problems = if problems.is_empty() { problems } else { format!("; {problems}") };
            Judgement::ok(format!("{} starts the ranks{others}{problems}.", name(first)))
        }
    }
}

fn process_manager(facts: &FleetCheckFacts) -> Judgement {
    let Some(launcher) = facts.launchers.first() else {
        return Judgement::unknown("depends on the launcher.");
    };
    if let Some(obstacle) = &launcher.obstacle {
        return Judgement::problem(format!("{obstacle}."), "Use another launcher: --launcher mpiexec.");
    }
    if !launcher.needs_library {
        return Judgement::ok(format!("{} offers PMI, which needs no library.", launcher.program));
    }
    match &facts.pmix_library {
        Some(Ok(())) => Judgement::ok("PMIx, whose library is here."),
        Some(Err(cause)) => Judgement::problem(
            format!("PMIx, whose library cannot be loaded: {cause}."),
            "Install libpmix2, use a dynamically linked fathom, or mpiexec of MPICH.",
        ),
        None => Judgement::unknown("PMIx; its library was not looked for."),
    }
}

fn clock(facts: &FleetCheckFacts) -> Judgement {
    const REMEDY: &str =
        "Run chrony or systemd-timesyncd; a start at a barrier (--fleet-start=barrier) needs no clock.";
    match facts.here.clock {
        None => Judgement::unknown("the kernel does not say how well it is known."),
        Some(ClockState { synchronized: false, .. }) => {
            Judgement::note("not synchronized: records of separate runs cannot be aligned.", REMEDY)
        }
        Some(state) => {
            let error = units::latency(state.max_error_ns);
            match state.max_error_ns > CLOSE_CLOCKS_NS {
                true => {
                    Judgement::note(format!("known to {error}; a start by the clock needs 1 ms."), REMEDY)
                }
                false => Judgement::ok(format!("known to {error}.")),
            }
        }
    }
}

fn open_files(facts: &FleetCheckFacts) -> Judgement {
    let needed = (FILES_OF_LAUNCHER + FILES_OF_HOST * facts.hosts.len() as u64).max(MIN_FILES);
    match facts.here.open_files {
        Some(limit) if limit < needed => Judgement::problem(
            format!("{} per process; the launcher needs {}.", grouped(limit), grouped(needed)),
            format!("Raise the limit: ulimit -n {needed}."),
        ),
        Some(limit) => Judgement::ok(format!("{} per process.", grouped(limit))),
        None => Judgement::ok("no limit."),
    }
}

fn locked_memory(facts: &FleetCheckFacts) -> Judgement {
    match facts.here.locked_memory {
        None => Judgement::unknown("not known."),
        Some(LockedMemory::Unlimited) => Judgement::ok("no limit."),
        Some(LockedMemory::Bytes(bytes)) if bytes < MIN_LOCKED => Judgement::note(
            format!("{}: io_uring may not register its buffers.", units::bytes(bytes)),
            "Raise it where the ranks start (ulimit -l; PropagateResourceLimits of Slurm).",
        ),
        Some(LockedMemory::Bytes(bytes)) => {
            Judgement::ok(format!("{} may be registered.", units::bytes(bytes)))
        }
    }
}

/// The hosts that answered.
fn answered(facts: &FleetCheckFacts) -> impl Iterator<Item = (&str, &FleetHostFacts)> {
    facts.hosts.iter().filter_map(|(name, host)| Some((name.as_str(), host.as_ref().ok()?)))
}

/// The names of those of which `is_so` holds.
fn named(facts: &FleetCheckFacts, is_so: impl Fn(&FleetHostFacts) -> bool) -> Vec<&str> {
    answered(facts).filter(|(_, host)| is_so(host)).map(|(name, _)| name).collect()
}

fn reachable(facts: &FleetCheckFacts) -> Judgement {
    let silent = facts.hosts.iter().filter_map(|(name, host)| Some((name, host.as_ref().err()?)));
    let silent: Vec<(&String, &HostFailure)> = silent.collect();
    let all = facts.hosts.len();
    let Some((_, first)) = silent.first() else {
        return Judgement::ok(match all {
            1 => "the host answers.".to_owned(),
            _ => format!("all {all} hosts answer."),
        });
    };
    let texts: Vec<String> =
        silent.iter().map(|(name, failure)| format!("{name}: {}", failure.reason)).collect();
    Judgement::problem(
        format!("{} of {all} hosts answer. {}.", all - silent.len(), listed(&texts, MAX_NAMED)),
        first.remedy.clone(),
    )
}

fn versions(facts: &FleetCheckFacts) -> Judgement {
    let here = &facts.here.version;
    let others: Vec<String> = answered(facts)
        .filter(|(_, host)| host.version != *here)
        .map(|(name, host)| format!("{name}: {}", host.version))
        .collect();
    match (others.is_empty(), answered(facts).count()) {
        (true, 0) => Judgement::unknown("no host answers."),
        (true, _) => Judgement::ok(format!("{here} on every host that answers.")),
        (false, _) => Judgement::problem(
            format!("{here} here, others on {} hosts. {}.", others.len(), listed(&others, MAX_NAMED)),
            "Install the same version on all hosts, or name it: --program PATH.",
        ),
    }
}

fn clocks(facts: &FleetCheckFacts) -> Judgement {
    const REMEDY: &str = "Run chrony or systemd-timesyncd on every host.";
    let is_wrong = |host: &FleetHostFacts| {
        let beyond = |(offset, error): (i64, u64)| {
            offset.saturating_abs().saturating_sub(error as i64) > WRONG_CLOCK_NS
        };
        host.clock_offset_ns.is_some_and(beyond)
    };
    let wrong = named(facts, is_wrong);
    if !wrong.is_empty() {
        let wrong = listed(&wrong, MAX_NAMED);
        return Judgement::note(format!("more than 1 s from the clock here: {wrong}."), REMEDY);
    }
    let free = named(facts, |host| host.clock.is_some_and(|state| !state.synchronized));
    if !free.is_empty() {
        return Judgement::note(format!("not synchronized: {}.", listed(&free, MAX_NAMED)), REMEDY);
    }
    let worst = answered(facts).filter_map(|(_, host)| host.clock).map(|state| state.max_error_ns).max();
    match worst {
        Some(ns) => Judgement::ok(format!("known to {} or better.", units::latency(ns))),
        None => Judgement::unknown("no host says how well its clock is known."),
    }
}

fn limits(facts: &FleetCheckFacts) -> Judgement {
    let few = named(facts, |host| host.open_files.is_some_and(|limit| limit < MIN_FILES));
    let is_little = |memory: &LockedMemory| matches!(memory, LockedMemory::Bytes(..MIN_LOCKED));
    let little = named(facts, |host| host.locked_memory.as_ref().is_some_and(is_little));
    let texts = [("fewer than 1,024 open files", few), ("less than 8 MiB of locked memory", little)];
    let texts = texts.into_iter().filter(|(_, names)| !names.is_empty());
    let texts = texts.map(|(text, names)| format!("{text}: {}", listed(&names, MAX_NAMED)));
    let texts: Vec<String> = texts.collect();
    match (texts.is_empty(), answered(facts).count()) {
        (true, 0) => Judgement::unknown("no host answers."),
        (true, _) => Judgement::ok("open files and locked memory suffice."),
        (false, _) => Judgement::note(
            format!("{}.", texts.join("; ")),
            "Raise nofile and memlock in /etc/security/limits.conf, or in the unit that starts ranks.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(version: &str) -> FleetHostFacts {
        let clock = ClockState { synchronized: true, max_error_ns: 400_000, ..ClockState::default() };
        FleetHostFacts {
            version: version.to_owned(),
            clock: Some(clock),
            clock_offset_ns: Some((20_000_000, 90_000_000)),
            open_files: Some(1 << 20),
            locked_memory: Some(LockedMemory::Unlimited),
        }
    }

    fn facts() -> FleetCheckFacts {
        let launcher = LauncherFacts {
            program: "mpiexec".to_owned(),
            family: "MPICH hydra".to_owned(),
            version: "4.0.2".to_owned(),
            ..LauncherFacts::default()
        };
        FleetCheckFacts {
            launchers: vec![launcher],
            here: host("0.1.0"),
            hosts: ["h1", "h2"].map(|name| (name.to_owned(), Ok(host("0.1.0")))).into(),
            ..FleetCheckFacts::default()
        }
    }

    fn of<'a>(results: &'a [FleetCheckResult], id: &str) -> &'a FleetCheckResult {
        results.iter().find(|result| result.id == id).unwrap()
    }

    #[test]
    fn a_good_cluster_has_nothing_but_good_results() {
        let results = check_fleet(&facts());
        assert_eq!(results.len(), 9);
        for result in &results {
            assert_eq!(result.status, CheckStatus::Ok, "{result:?}");
            assert!(result.remedy.is_none() && result.result.ends_with('.'), "{result:?}");
        }
        assert!(!stops_a_run(&results));
        assert_eq!(of(&results, "launcher").result, "mpiexec (MPICH hydra 4.0.2) starts the ranks.");
    }

    #[test]
    fn what_stops_a_run_is_a_problem_with_a_remedy() {
        let check = |change: &dyn Fn(&mut FleetCheckFacts), id: &str, said: &str| {
            let mut facts = facts();
            change(&mut facts);
            let results = check_fleet(&facts);
            let result = of(&results, id);
            assert!(stops_a_run(&results) && result.status == CheckStatus::Problem, "{result:?}");
            assert!(result.result.contains(said) && result.remedy.is_some(), "{result:?}");
        };
        check(&|facts| facts.launchers.clear(), "launcher", "neither mpiexec nor mpirun nor srun");
        check(
            &|facts| {
                facts.launchers[0].needs_library = true;
                facts.pmix_library = Some(Err("no such file".to_owned()));
            },
            "process-manager",
            "no such file",
        );
        check(&|facts| facts.here.open_files = Some(256), "open-files", "256 per process");
        let refused =
            HostFailure { reason: "Permission denied".to_owned(), remedy: "Copy a key.".to_owned() };
        check(
            &|facts| facts.hosts[1].1 = Err(refused.clone()),
            "ssh",
            "1 of 2 hosts answer. h2: Permission denied.",
        );
        check(&|facts| facts.hosts[0].1 = Ok(host("0.0.9")), "version", "h1: 0.0.9");
    }

    #[test]
    fn clocks_and_limits_are_notes() {
        let mut facts = facts();
        facts.here.clock = Some(ClockState::default());
        facts.hosts[0].1 =
            Ok(FleetHostFacts { clock_offset_ns: Some((5_000_000_000, 90_000_000)), ..host("0.1.0") });
        facts.hosts[1].1 = Ok(FleetHostFacts { open_files: Some(256), ..host("0.1.0") });
        let results = check_fleet(&facts);
        assert!(!stops_a_run(&results));
        for (id, said) in [
            ("clock", "not synchronized"),
            ("clocks", "more than 1 s from the clock here: h1."),
            ("limits", "fewer than 1,024 open files: h2."),
        ] {
            let result = of(&results, id);
            assert!(result.status == CheckStatus::Note && result.result.contains(said), "{result:?}");
        }
    }

    #[test]
    fn unknown_facts_are_never_good() {
        let results = check_fleet(&FleetCheckFacts::default());
        for id in ["process-manager", "clock", "locked-memory"] {
            assert_eq!(of(&results, id).status, CheckStatus::Unknown, "{id}");
        }
    }
}
