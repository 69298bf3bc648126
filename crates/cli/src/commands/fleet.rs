//! `fathom fleet`: what concerns runs of many hosts besides merging them.

mod run;
mod scaling;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use fathom_analysis::fleet_check::{check_fleet, stops_a_run};
use fathom_assess::AssessError;
use fathom_assess::launcher::{check_facts, host_facts_text, hosts, hosts_of_file, is_in_slurm};
use fathom_model::Nanos;
use fathom_report::fleet_check::{render, view};
use fathom_sys::files::HOST_LIST;

use super::format_arguments::FormatArguments;
use super::words::positive_duration;
use crate::exit::{Complaint, Exit};
use crate::output;

/// What `fathom fleet` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct FleetArguments {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  fathom fleet check --hosts=h[1-64]               what would stop a run on these hosts
  fathom fleet run --hosts=h[1-64] bench /mnt/shared
  fathom fleet run --hosts=h[1-64] --fleet-scale bench --only rand-read /mnt/shared
  fathom fleet merge results/                      one report from the records of many hosts
  fathom fleet scaling results/                    where more ranks stop helping";

#[derive(Subcommand)]
enum Action {
    /// Start a command on many hosts by srun, mpiexec or mpirun, as one measurement
    Run(run::RunFleetArguments),
    /// Check launchers, hosts, clocks and limits before a run
    Check(CheckArguments),
    /// Merge the records of many hosts into one report: totals, variation, outliers, stragglers, shared limits
    Merge(Box<super::merge::MergeArguments>),
    /// Report how the total grows over runs with different numbers of ranks, and where more stop helping
    Scaling(scaling::ScalingArguments),
}

/// Does what was asked.
///
/// # Errors
/// Those of the action.
pub fn run(arguments: FleetArguments, command: &[OsString]) -> Result<Exit, Complaint> {
    match arguments.action {
        Action::Run(arguments) => run::run(&arguments),
        Action::Check(arguments) => check(&arguments),
        Action::Merge(arguments) => super::merge::run(*arguments, command),
        Action::Scaling(arguments) => scaling::run(&arguments, command),
    }
}

/// What `fathom fleet check` takes.
#[derive(Args)]
#[command(after_long_help = CHECK_EXAMPLES)]
pub struct CheckArguments {
    #[command(flatten)]
    hosts: HostArguments,
    /// Launcher that is to start the ranks [default: srun in an allocation of Slurm, else mpiexec, else mpirun]
    #[arg(long, value_name = "PROGRAM")]
    launcher: Option<String>,
    /// fathom on the hosts [default: the path of this one]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Longest wait for the answer of a host
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = positive_duration)]
    timeout: Nanos,
    /// Print the facts of this host as NAME=VALUE lines, which the check on another host reads over ssh
    #[arg(long, conflicts_with_all = ["hosts", "hosts_file", "launcher", "program", "timeout", "format", "json", "units"])]
    facts: bool,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
}

/// Examples of `fleet check`.
const CHECK_EXAMPLES: &str = "\
Asks each host over ssh, without a password, and starts nothing there but fathom itself.

Examples:
  fathom fleet check                              launchers, libraries and limits of this host
  fathom fleet check --hosts=h[1-64]              and each host: ssh, version, clock, limits
  fathom fleet check --hosts-file hosts --json
  fathom fleet check --hosts=h[1-4] --program /opt/fathom/fathom

Exit status: 0 nothing would stop a run, 1 failed, 2 usage, 3 something would.";

/// Examines this host and the others.
///
/// # Errors
/// The list of hosts cannot be read, or standard output not be written.
pub fn check(arguments: &CheckArguments) -> Result<Exit, Complaint> {
    if arguments.facts {
        let text = host_facts_text();
        output::print(|out| out.own_lines(&text))?;
        return Ok(Exit::Done);
    }
    let hosts = arguments.hosts.named()?;
    let program = program(arguments.program.as_deref())?;
    let limit = Duration::from_nanos(arguments.timeout.0);
    let in_slurm = is_in_slurm(&variable);
    let facts = check_facts(arguments.launcher.as_deref(), in_slurm, &hosts, &program, limit);
    let results = check_fleet(&facts);
    arguments.form.print(|| view(&results), |out| render(&facts, &results, out))?;
    Ok(if stops_a_run(&results) { Exit::Missed } else { Exit::Done })
}

/// The hosts of a job.
#[derive(Args, Clone, Debug)]
pub struct HostArguments {
    /// Hosts in bracket notation: h[1-64], r[1-2]n[01-16], h1,h2
    #[arg(long, value_name = "LIST", conflicts_with = "hosts_file")]
    hosts: Option<String>,
    /// File of hosts, a name or list a line; - is standard input
    #[arg(long, value_name = "FILE")]
    hosts_file: Option<PathBuf>,
}

impl HostArguments {
    /// The hosts that are named; none where neither option is there.
    ///
    /// # Errors
    /// A list has a mistake, or the file cannot be read.
    pub fn named(&self) -> Result<Vec<String>, Complaint> {
        match (&self.hosts, &self.hosts_file) {
            (Some(list), _) => Ok(hosts(list)?),
            (None, Some(path)) => {
                let text = HOST_LIST.read_text(path).map_err(AssessError::from)?;
                Ok(hosts_of_file(&text, &path.display().to_string())?)
            }
            (None, None) => Ok(Vec::new()),
        }
    }
}

/// The text of a list of hosts that a scheduler wrote.
///
/// # Errors
/// It cannot be read.
pub fn read(name: &str) -> Result<String, String> {
    HOST_LIST.read_text(Path::new(name)).map_err(|error| error.to_string())
}

/// A variable of the environment, unless it is empty.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The program on the hosts: the one that is named, else the path of this one.
///
/// # Errors
/// The path of this one is unknown.
pub fn program(named: Option<&Path>) -> Result<String, Complaint> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::current_exe().map_err(|error| {
            let hint = Some("name it: --program PATH".to_owned());
            Complaint::failed(format!("cannot find the path of fathom: {}", output::plain(&error)), hint)
        })?,
    };
    Ok(path.display().to_string())
}

/// The files of `packaging/fleet` run commands that this program reads.
#[cfg(test)]
mod tests {
    use saphyr_parser::{Event, Parser};
    use std::process::Command;

    const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/fleet");

    /// Asserts that the command line is one of this program.
    fn is_read(words: &[String]) {
        let line = [&["fathom".to_owned()], words].concat();
        assert!(crate::commands::command().try_get_matches_from(&line).is_ok(), "{line:?}");
    }

    fn text(name: &str) -> String {
        let text = std::fs::read_to_string(format!("{FILES}/{name}")).unwrap();
        // What lies there under a fixed name may be another user's.
        assert!(!text.contains("/tmp/") && text.lines().all(|line| line.len() <= 160), "{name}");
        text
    }

    /// All lists of texts in a file of YAML.
    fn lists(name: &str) -> Vec<Vec<String>> {
        let (mut open, mut found) = (Vec::new(), Vec::new());
        for event in Parser::new_from_str(&text(name)) {
            match event.unwrap().0 {
                Event::SequenceStart(..) | Event::MappingStart(..) => open.push(Vec::new()),
                Event::Scalar(text, ..) => open.last_mut().unwrap().push(text.into_owned()),
                Event::SequenceEnd => found.push(open.pop().unwrap()),
                Event::MappingEnd => drop(open.pop()),
                _ => {}
            }
        }
        found
    }

    #[test]
    fn manifests_run_commands_of_this_version() {
        let indexed = lists("indexed-job.yaml");
        assert_eq!(indexed.iter().filter(|list| !list.is_empty()).map(|list| is_read(list)).count(), 3);
        let mpi = lists("mpijob.yaml");
        let launcher = mpi.iter().position(|list| list.first().is_some_and(|word| word == "fathom")).unwrap();
        is_read(&[&mpi[launcher][1..], &mpi[launcher + 1]].concat());
        for name in ["indexed-job.yaml", "mpijob.yaml"] {
            let text = text(name);
            let images: Vec<&str> = text.lines().filter(|line| line.contains(" image: ")).collect();
            let own = concat!("/fathom:", env!("CARGO_PKG_VERSION"), " # change: ");
            assert!(images.len() >= 2 && images.iter().all(|line| line.contains(own)), "{images:?}");
        }
    }

    #[test]
    fn the_play_runs_commands_of_this_version() {
        let program = |word: &String| word == "{{ fathom }}";
        let commands = lists("play.yaml").into_iter().filter_map(|list| {
            let at = list.iter().position(program)?;
            Some(list[at + 1..].to_vec())
        });
        let commands: Vec<_> = commands.filter(|words| words[0] != "--version").collect();
        commands.iter().for_each(|words| is_read(words));
        assert_eq!(
            commands.iter().map(|words| words[0].as_str()).collect::<Vec<_>>(),
            ["bench", "history", "merge"]
        );
    }

    #[test]
    fn the_batch_script_runs_a_command_of_this_version() {
        let text = text("fleet.sbatch");
        let ended = Command::new("bash").args(["-n", &format!("{FILES}/fleet.sbatch")]).status().unwrap();
        assert!(ended.success() && text.starts_with("#!/bin/bash\n"));
        // Slurm reads options up to the first command.
        let (_, script) = text.rsplit_once("#SBATCH ").unwrap();
        let usual = script.split_once("set -- ").unwrap().1.lines().next().unwrap();
        let command = script.split_once("exec fathom ").unwrap().1.replace("\\\n", "");
        let command = command.replace("\"$SLURM_NTASKS_PER_NODE\"", "1").replace("\"$@\"", usual);
        is_read(&command.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    }
}
