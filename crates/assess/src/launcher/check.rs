//! What the checks of a run on many hosts rest on: this host, its launchers, and what the other hosts say over ssh.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fathom_analysis::doctor::LockedMemory;
use fathom_analysis::fleet_check::{FleetCheckFacts, FleetHostFacts, HostFailure, LauncherFacts};
use fathom_model::text::shell_quoted;
use fathom_record::ClockState;
use fathom_sys::child;
use fathom_sys::clock::{monotonic_ns, unix_us, wall_clock_state};
use fathom_sys::library::find_library;
use fathom_sys::open_files::open_files_limit;
use fathom_sys::uring::registered_memory_limit;

use super::{LAUNCHERS, Launcher, LauncherFamily};
use super::{ProgramFailure, ProgramOutput, output_of};

/// Hosts that are asked at a time.
const AT_A_TIME: usize = 32;
/// What a host is asked, behind the name of the program there.
pub const FACTS_ARGUMENTS: [&str; 3] = ["fleet", "check", "--facts"];
/// The exit code of a shell that finds no such program, and of ssh that gets no connection.
const NO_PROGRAM: i32 = 127;
const NO_CONNECTION: i32 = 255;

/// The facts of this host, of its launchers, and of `hosts`, each of which has `limit` to answer and runs `program`.
pub fn check_facts(
    named: Option<&str>,
    is_in_slurm: bool,
    hosts: &[String],
    program: &str,
    limit: Duration,
) -> FleetCheckFacts {
    let mut facts = FleetCheckFacts { here: here(), ..FleetCheckFacts::default() };
    enter_launchers(&mut facts, named, is_in_slurm);
    facts.pmix_library = Some(find_library(c"libpmix.so.2").map_err(|error| error.to_string()));
    facts.hosts = ask_all(hosts, program, limit);
    facts
}

fn enter_launchers(facts: &mut FleetCheckFacts, named: Option<&str>, is_in_slurm: bool) {
    let mut first = Vec::new();
    match Launcher::chosen(named, is_in_slurm) {
        Ok(launcher) => first.push(launcher),
        // That there is none is a result of its own.
        Err(error) if named.is_some() => facts.launcher_problems.push(error.message),
        Err(_) => {}
    }
    for program in LAUNCHERS.into_iter().filter(|_| named.is_none()) {
        match Launcher::find(program) {
            Ok(Some(launcher)) if first.iter().all(|known| known.program != program) => first.push(launcher),
            Ok(_) => {}
            Err(error) => facts.launcher_problems.push(error.message),
        }
    }
    facts.launchers = first.iter().map(launcher_facts).collect();
}

fn launcher_facts(launcher: &Launcher) -> LauncherFacts {
    let is_slurm = launcher.family == LauncherFamily::Slurm;
    let plugin = launcher.plugin();
    let known = launcher.plugins.join(", ");
    let obstacle = (is_slurm && plugin.is_none()).then(|| match known.as_str() {
        "" => "srun has no plugin of PMI".to_owned(),
        known => format!("srun has neither pmi2 nor pmix, only {known}"),
    });
    LauncherFacts {
        program: launcher.program.clone(),
        family: launcher.family.name().to_owned(),
        version: launcher.version.clone(),
        needs_library: launcher.family == LauncherFamily::OpenMpi || is_slurm && plugin == Some("pmix"),
        obstacle,
    }
}

/// The facts of this host.
fn here() -> FleetHostFacts {
    let clock = wall_clock_state().map(|state| ClockState {
        synchronized: state.synchronized,
        max_error_ns: state.max_error_ns,
        estimated_error_ns: state.estimated_error_ns,
    });
    FleetHostFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        clock,
        clock_offset_ns: None,
        open_files: open_files_limit(),
        locked_memory: Some(registered_memory_limit().map_or(LockedMemory::Unlimited, LockedMemory::Bytes)),
    }
}

/// The facts of this host as `NAME=VALUE` lines, which the check on another host reads.
pub fn host_facts_text() -> String {
    let facts = here();
    let mut lines = vec![format!("version={}", facts.version), format!("unix_us={}", unix_us())];
    if let Some(clock) = facts.clock {
        lines.push(format!("clock_synchronized={}", u8::from(clock.synchronized)));
        lines.push(format!("clock_max_error_ns={}", clock.max_error_ns));
        lines.push(format!("clock_estimated_error_ns={}", clock.estimated_error_ns));
    }
    lines.extend(facts.open_files.map(|limit| format!("open_files={limit}")));
    lines.push(match facts.locked_memory {
        Some(LockedMemory::Bytes(bytes)) => format!("locked_memory={bytes}"),
        Some(LockedMemory::Unlimited) | None => "locked_memory=unlimited".to_owned(),
    });
    lines.join("\n") + "\n"
}

/// Reads such lines; `here_us` is the wall clock here in the middle of the question, known to `error_us`.
fn parse_facts(text: &str, here_us: u64, error_us: u64) -> Option<FleetHostFacts> {
    let values: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.trim().split_once('=')).collect();
    let number = |name: &str| values.get(name)?.parse::<u64>().ok();
    let clock = number("clock_synchronized").map(|synchronized| ClockState {
        synchronized: synchronized == 1,
        max_error_ns: number("clock_max_error_ns").unwrap_or(0),
        estimated_error_ns: number("clock_estimated_error_ns").unwrap_or(0),
    });
    let offset = |there_us: u64| {
        let us = i64::try_from(i128::from(there_us) - i128::from(here_us)).unwrap_or(i64::MAX);
        (us.saturating_mul(1_000), error_us.saturating_mul(1_000))
    };
    Some(FleetHostFacts {
        version: (*values.get("version")?).to_owned(),
        clock,
        clock_offset_ns: number("unix_us").map(offset),
        open_files: number("open_files"),
        locked_memory: values.get("locked_memory").map(|value| match value.parse() {
            Ok(bytes) => LockedMemory::Bytes(bytes),
            Err(_) => LockedMemory::Unlimited,
        }),
    })
}

/// What all hosts say, several of them at a time.
fn ask_all(
    hosts: &[String],
    program: &str,
    limit: Duration,
) -> Vec<(String, Result<FleetHostFacts, HostFailure>)> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(BTreeMap::new());
    let take = || {
        let place = next.fetch_add(1, Ordering::Relaxed);
        hosts.get(place).map(|host| (place, host))
    };
    std::thread::scope(|scope| {
        for _ in 0..hosts.len().min(AT_A_TIME) {
            scope.spawn(|| {
                while let Some((place, host)) = take() {
                    let answer = ask(host, program, limit);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.insert(place, (host.clone(), answer));
                }
            });
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.into_values().collect()
}

/// What `host` says over ssh.
fn ask(host: &str, program: &str, limit: Duration) -> Result<FleetHostFacts, HostFailure> {
    let mut command = child::command("ssh");
    command.args(["-o", "BatchMode=yes", "-o"]);
    command.arg(format!("ConnectTimeout={}", limit.as_secs().max(1)));
    command.args(["--", host]);
    command.arg(&*shell_quoted(program)).args(FACTS_ARGUMENTS);
    let (began_ns, began_us) = (monotonic_ns(), unix_us());
    let output = output_of(&mut command, limit);
    let took_us = (monotonic_ns() - began_ns) / 1_000;
    match output {
        Ok(output) if output.code == Some(0) => {
            let facts = parse_facts(&output.stdout, began_us + took_us / 2, took_us / 2);
            facts.ok_or_else(|| failure(host, program, &output))
        }
        Ok(output) => Err(failure(host, program, &output)),
        Err(ProgramFailure::Absent) => Err(HostFailure {
            reason: "ssh is not installed here".to_owned(),
            remedy: "Install an OpenSSH client, or start the ranks by srun.".to_owned(),
        }),
        Err(ProgramFailure::NotStarted(cause)) => Err(HostFailure {
            reason: format!("ssh cannot be started: {cause}"),
            remedy: "Look at the limits of this host.".to_owned(),
        }),
        Err(ProgramFailure::TimedOut) => Err(HostFailure {
            reason: format!("no answer in {} s", limit.as_secs()),
            remedy: format!("Try `ssh {host} true`; a longer limit: --timeout 60s."),
        }),
    }
}

/// Why an answer has no facts.
fn failure(host: &str, program: &str, output: &ProgramOutput) -> HostFailure {
    let last = output.stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
    let said = last.unwrap_or("no message").trim_end_matches('.').to_owned();
    match output.code {
        Some(NO_CONNECTION) => HostFailure {
            reason: said,
            remedy: format!(
                "`ssh -o BatchMode=yes {host} true` must work: copy a key (ssh-copy-id), and accept the host's."
            ),
        },
        Some(NO_PROGRAM) => HostFailure {
            reason: format!("no program {program} there"),
            remedy: "Install fathom on every host, or name its path there: --program PATH.".to_owned(),
        },
        _ => HostFailure {
            reason: format!("{program} does not say its facts ({said})"),
            remedy: "Install the version of this host on every host.".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_as_they_are_written() {
        let facts = parse_facts(&host_facts_text(), unix_us(), 0).unwrap();
        assert_eq!(FleetHostFacts { clock_offset_ns: None, ..facts }, here());
        assert_eq!(parse_facts("error: unrecognized subcommand 'check'\n", 0, 0), None);
        let ahead = parse_facts("version=1\nunix_us=2000010\n", 2_000_000, 5).unwrap();
        assert_eq!(ahead.clock_offset_ns, Some((10_000, 5_000)));
        let behind = parse_facts("version=1\nunix_us=1\n", 2_000_001, 5).unwrap();
        assert_eq!(behind.clock_offset_ns, Some((-2_000_000_000, 5_000)));
    }

    #[test]
    fn failures_name_their_cause() {
        let output = |code, stderr: &str| ProgramOutput {
            code: Some(code),
            stderr: stderr.to_owned(),
            ..ProgramOutput::default()
        };
        let reason = |code, stderr| failure("h1", "/opt/fathom", &output(code, stderr)).reason;
        assert_eq!(reason(255, "h1: Permission denied (publickey).\n"), "h1: Permission denied (publickey)");
        assert_eq!(reason(127, "sh: 1: /opt/fathom: not found\n"), "no program /opt/fathom there");
        assert_eq!(reason(2, "error: x\n"), "/opt/fathom does not say its facts (error: x)");
    }
}
