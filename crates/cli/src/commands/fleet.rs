//! `fathom fleet`: what concerns runs of many hosts besides merging them.

mod check;
mod hosts;
mod launched;
mod ranks;
mod run;
mod scaling;

use std::ffi::OsString;

use clap::{Args, Subcommand};

use crate::exit::{Complaint, Exit};

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
  fathom fleet scaling results/                    where more ranks stop helping

`fathom merge` makes one report from the records of many hosts.";

#[derive(Subcommand)]
enum Action {
    /// Start a command on many hosts by srun, mpiexec or mpirun, as one measurement
    Run(run::RunFleetArguments),
    /// Check launchers, hosts, clocks and limits before a run
    Check(check::CheckArguments),
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
        Action::Check(arguments) => check::run(&arguments),
        Action::Scaling(arguments) => scaling::run(&arguments, command),
    }
}

/// The files of `packaging/fleet` run commands that this program reads.
#[cfg(test)]
mod tests {
    use std::process::Command;

    use saphyr_parser::{Event, Parser};

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
