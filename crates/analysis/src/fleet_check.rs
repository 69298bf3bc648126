//! What stands in the way of a run on many hosts: facts of this host and of the others, judged before anything is started.
//!
//! Pure, as the checks of [`doctor`](crate::doctor), whose words for a result it uses: a fact that is missing makes a check
//! unknown, never good.

use fathom_model::text::listed;
use fathom_model::units;
use fathom_record::ClockState;
use serde::Serialize;

use crate::doctor::{CheckStatus, LockedMemory};

/// Descriptors that a launcher takes for each host, and for itself.
const FILES_OF_HOST: u64 = 8;
const FILES_OF_LAUNCHER: u64 = 64;
/// Open files with which every job of the usual size runs.
const ENOUGH_FILES: u64 = 1024;
/// Registered buffers of the usual tests fit into this.
const ENOUGH_LOCKED: u64 = 8 << 20;
/// Clock error from which on a start by the clock is refused, ns.
const CLOSE_CLOCKS_NS: u64 = 1_000_000;
/// Wall clocks that are further apart were set wrongly, ns.
const WRONG_CLOCK_NS: i64 = 1_000_000_000;
/// Hosts that are named in a result.
const MOST_NAMED: usize = 5;

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

impl FleetCheckResult {
    fn new(id: &'static str, title: &'static str, status: CheckStatus, result: String) -> FleetCheckResult {
        FleetCheckResult { id, title, status, result, remedy: None }
    }

    fn with_remedy(self, remedy: impl Into<String>) -> FleetCheckResult {
        FleetCheckResult { remedy: Some(remedy.into()), ..self }
    }
}

/// The results of all checks, in the order of reports.
pub fn check_fleet(facts: &FleetCheckFacts) -> Vec<FleetCheckResult> {
    let mut results = vec![launcher(facts), process_manager(facts), clock(&facts.here)];
    results.extend([open_files(facts), locked_memory(&facts.here)]);
    if !facts.hosts.is_empty() {
        results.extend([reachable(facts), versions(facts), clocks(facts), limits(facts)]);
    }
    results
}

/// True where something would stop a run.
pub fn stops_a_run(results: &[FleetCheckResult]) -> bool {
    results.iter().any(|result| result.status == CheckStatus::Problem)
}

fn launcher(facts: &FleetCheckFacts) -> FleetCheckResult {
    let result = |status, text: String| FleetCheckResult::new("launcher", "Launcher", status, text);
    let name = |launcher: &LauncherFacts| {
        let LauncherFacts { program, family, version, .. } = launcher;
        format!("{program} ({family} {version})").replace(" )", ")")
    };
    let problems = facts.launcher_problems.join("; ");
    match facts.launchers.as_slice() {
        [] if problems.is_empty() => {
            result(CheckStatus::Problem, "neither mpiexec nor mpirun nor srun is here.".to_owned())
                .with_remedy("Install MPICH or Open MPI, or work on a host of the cluster that has srun.")
        }
        [] => result(CheckStatus::Problem, format!("{problems}."))
            .with_remedy("Name a launcher that works: --launcher PROGRAM."),
        [first, others @ ..] => {
            let others: Vec<String> = others.iter().map(name).collect();
            let others =
                if others.is_empty() { String::new() } else { format!("; also {}", others.join(", ")) };
            let problems = if problems.is_empty() { problems } else { format!("; {problems}") };
            result(CheckStatus::Ok, format!("{} starts the ranks{others}{problems}.", name(first)))
        }
    }
}

fn process_manager(facts: &FleetCheckFacts) -> FleetCheckResult {
    let result =
        |status, text: String| FleetCheckResult::new("process-manager", "Process manager", status, text);
    let Some(launcher) = facts.launchers.first() else {
        return result(CheckStatus::Unknown, "depends on the launcher.".to_owned());
    };
    if let Some(obstacle) = &launcher.obstacle {
        return result(CheckStatus::Problem, format!("{obstacle}."))
            .with_remedy("Use another launcher: --launcher mpiexec.");
    }
    if !launcher.needs_library {
        return result(CheckStatus::Ok, format!("{} offers PMI, which needs no library.", launcher.program));
    }
    match &facts.pmix_library {
        Some(Ok(())) => result(CheckStatus::Ok, "PMIx, whose library is here.".to_owned()),
        Some(Err(cause)) => {
            result(CheckStatus::Problem, format!("PMIx, whose library cannot be loaded: {cause}."))
                .with_remedy("Install libpmix2, use a dynamically linked fathom, or mpiexec of MPICH.")
        }
        None => result(CheckStatus::Unknown, "PMIx; its library was not looked for.".to_owned()),
    }
}

fn clock(here: &FleetHostFacts) -> FleetCheckResult {
    let result = |status, text: String| FleetCheckResult::new("clock", "Clock", status, text);
    const REMEDY: &str =
        "Run chrony or systemd-timesyncd; a start at a barrier (--fleet-start=barrier) needs no clock.";
    match here.clock {
        None => result(CheckStatus::Unknown, "the kernel does not say how well it is known.".to_owned()),
        Some(ClockState { synchronized: false, .. }) => result(
            CheckStatus::Note,
            "not synchronized: records of separate runs cannot be aligned.".to_owned(),
        )
        .with_remedy(REMEDY),
        Some(state) if state.max_error_ns > CLOSE_CLOCKS_NS => {
            let error = units::latency(state.max_error_ns);
            result(CheckStatus::Note, format!("known to {error}; a start by the clock needs 1 ms."))
                .with_remedy(REMEDY)
        }
        Some(state) => result(CheckStatus::Ok, format!("known to {}.", units::latency(state.max_error_ns))),
    }
}

fn open_files(facts: &FleetCheckFacts) -> FleetCheckResult {
    let result = |status, text: String| FleetCheckResult::new("open-files", "Open files", status, text);
    let needed = (FILES_OF_LAUNCHER + FILES_OF_HOST * facts.hosts.len() as u64).max(ENOUGH_FILES);
    match facts.here.open_files {
        Some(limit) if limit < needed => {
            let text = format!("{} per process; the launcher needs {}.", grouped(limit), grouped(needed));
            result(CheckStatus::Problem, text).with_remedy(format!("Raise the limit: ulimit -n {needed}."))
        }
        Some(limit) => result(CheckStatus::Ok, format!("{} per process.", grouped(limit))),
        None => result(CheckStatus::Ok, "no limit.".to_owned()),
    }
}

fn locked_memory(here: &FleetHostFacts) -> FleetCheckResult {
    let result = |status, text: String| FleetCheckResult::new("locked-memory", "Locked memory", status, text);
    match here.locked_memory {
        None => result(CheckStatus::Unknown, "not known.".to_owned()),
        Some(LockedMemory::Unlimited) => result(CheckStatus::Ok, "no limit.".to_owned()),
        Some(LockedMemory::Bytes(bytes)) if bytes < ENOUGH_LOCKED => {
            let text = format!("{}: io_uring may not register its buffers.", units::bytes(bytes));
            result(CheckStatus::Note, text)
                .with_remedy("Raise it where the ranks start (ulimit -l; PropagateResourceLimits of Slurm).")
        }
        Some(LockedMemory::Bytes(bytes)) => {
            result(CheckStatus::Ok, format!("{} may be registered.", units::bytes(bytes)))
        }
    }
}

/// The hosts that answered.
fn answered(facts: &FleetCheckFacts) -> impl Iterator<Item = (&str, &FleetHostFacts)> {
    facts.hosts.iter().filter_map(|(name, host)| Some((name.as_str(), host.as_ref().ok()?)))
}

fn reachable(facts: &FleetCheckFacts) -> FleetCheckResult {
    let result = |status, text: String| FleetCheckResult::new("ssh", "Hosts over ssh", status, text);
    let silent: Vec<(&str, &HostFailure)> =
        facts.hosts.iter().filter_map(|(name, host)| Some((name.as_str(), host.as_ref().err()?))).collect();
    let all = facts.hosts.len();
    let Some((_, first)) = silent.first() else {
        let text = if all == 1 { "the host answers.".to_owned() } else { format!("all {all} hosts answer.") };
        return result(CheckStatus::Ok, text);
    };
    let texts: Vec<String> =
        silent.iter().map(|(name, failure)| format!("{name}: {}", failure.reason)).collect();
    let text = format!("{} of {all} hosts answer. {}.", all - silent.len(), listed(&texts, MOST_NAMED));
    result(CheckStatus::Problem, text).with_remedy(first.remedy.clone())
}

fn versions(facts: &FleetCheckFacts) -> FleetCheckResult {
    let result = |status, text: String| FleetCheckResult::new("version", "Versions of fathom", status, text);
    let here = &facts.here.version;
    let others: Vec<String> = answered(facts)
        .filter(|(_, host)| host.version != *here)
        .map(|(name, host)| format!("{name}: {}", host.version))
        .collect();
    match (others.is_empty(), answered(facts).count()) {
        (true, 0) => result(CheckStatus::Unknown, "no host answers.".to_owned()),
        (true, _) => result(CheckStatus::Ok, format!("{here} on every host that answers.")),
        (false, _) => {
            let text =
                format!("{here} here, others on {} hosts. {}.", others.len(), listed(&others, MOST_NAMED));
            result(CheckStatus::Problem, text)
                .with_remedy("Install the same version on all hosts, or name it: --program PATH.")
        }
    }
}

fn clocks(facts: &FleetCheckFacts) -> FleetCheckResult {
    let result = |status, text: String| FleetCheckResult::new("clocks", "Clocks of the hosts", status, text);
    let names = |of: &dyn Fn(&FleetHostFacts) -> bool| -> Vec<&str> {
        answered(facts).filter(|(_, host)| of(host)).map(|(name, _)| name).collect()
    };
    let is_wrong = |host: &FleetHostFacts| {
        let beyond = |(offset, error): (i64, u64)| {
            offset.saturating_abs().saturating_sub(error as i64) > WRONG_CLOCK_NS
        };
        host.clock_offset_ns.is_some_and(beyond)
    };
    const REMEDY: &str = "Run chrony or systemd-timesyncd on every host.";
    let wrong = names(&is_wrong);
    if !wrong.is_empty() {
        let text = format!("more than 1 s from the clock here: {}.", listed(&wrong, MOST_NAMED));
        return result(CheckStatus::Note, text).with_remedy(REMEDY);
    }
    let free = names(&|host| host.clock.is_some_and(|state| !state.synchronized));
    if !free.is_empty() {
        let text = format!("not synchronized: {}.", listed(&free, MOST_NAMED));
        return result(CheckStatus::Note, text).with_remedy(REMEDY);
    }
    let worst = answered(facts).filter_map(|(_, host)| host.clock).map(|state| state.max_error_ns).max();
    match worst {
        Some(ns) => result(CheckStatus::Ok, format!("known to {} or better.", units::latency(ns))),
        None => result(CheckStatus::Unknown, "no host says how well its clock is known.".to_owned()),
    }
}

fn limits(facts: &FleetCheckFacts) -> FleetCheckResult {
    let result = |status, text: String| FleetCheckResult::new("limits", "Limits of the hosts", status, text);
    let files = |host: &FleetHostFacts| host.open_files.is_some_and(|limit| limit < ENOUGH_FILES);
    let memory = |host: &FleetHostFacts| matches!(host.locked_memory, Some(LockedMemory::Bytes(bytes)) if bytes < ENOUGH_LOCKED);
    let names = |of: &dyn Fn(&FleetHostFacts) -> bool| -> Vec<&str> {
        answered(facts).filter(|(_, host)| of(host)).map(|(name, _)| name).collect()
    };
    let (few, little) = (names(&files), names(&memory));
    let mut texts = Vec::new();
    if !few.is_empty() {
        texts.push(format!("fewer than 1,024 open files: {}", listed(&few, MOST_NAMED)));
    }
    if !little.is_empty() {
        texts.push(format!("less than 8 MiB of locked memory: {}", listed(&little, MOST_NAMED)));
    }
    match (texts.is_empty(), answered(facts).count()) {
        (true, 0) => result(CheckStatus::Unknown, "no host answers.".to_owned()),
        (true, _) => result(CheckStatus::Ok, "open files and locked memory suffice.".to_owned()),
        (false, _) => result(CheckStatus::Note, format!("{}.", texts.join("; "))).with_remedy(
            "Raise nofile and memlock in /etc/security/limits.conf, or in the unit that starts ranks.",
        ),
    }
}

fn grouped(value: u64) -> String {
    units::grouped(value)
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
