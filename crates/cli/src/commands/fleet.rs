//! `fathom fleet`: what concerns runs of many hosts besides merging them.

mod simulate;

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
  fathom fleet simulate --ranks 10000   time and memory of merging so many records

`fathom merge` makes one report from the records of many hosts.";

#[derive(Subcommand)]
enum Action {
    /// Merge and report generated records of many ranks; show time and memory
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(simulate::SimulateFleetArguments),
}

/// Does what was asked.
///
/// # Errors
/// Those of the action.
pub fn run(arguments: FleetArguments) -> Result<Exit, Complaint> {
    match arguments.action {
        Action::Simulate(arguments) => simulate::run(&arguments),
    }
}
