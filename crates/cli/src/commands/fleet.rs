//! `fathom fleet`: what concerns runs of many hosts besides merging them.

mod check;
mod hosts;
mod launched;
mod ranks;
mod run;
mod scaling;
mod template;

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
  fathom fleet template sbatch > fleet.sbatch      a script for Slurm, to change and submit

`fathom merge` makes one report from the records of many hosts.";

#[derive(Subcommand)]
enum Action {
    /// Start a command on many hosts by srun, mpiexec or mpirun, as one measurement
    Run(run::RunFleetArguments),
    /// Check launchers, hosts, clocks and limits before a run
    Check(check::CheckArguments),
    /// Report how the total grows over runs with different numbers of ranks, and where more stop helping
    Scaling(scaling::ScalingArguments),
    /// Print a batch script, manifest or play to start ranks with
    Template(template::TemplateArguments),
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
        Action::Template(arguments) => template::run(&arguments),
    }
}
