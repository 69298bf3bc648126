//! `fathom fleet check`: what would stop a run on many hosts.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use fathom_analysis::fleet_check::{check_fleet, stops_a_run};
use fathom_assess::launcher::{check_facts, host_facts_text, is_in_slurm};
use fathom_model::Nanos;
use fathom_report::fleet_check::{render, view};

use super::hosts::HostArguments;
use crate::commands::format_arguments::FormatArguments;
use crate::commands::words::positive_duration;
use crate::exit::{Complaint, Exit};
use crate::output;

/// What `fathom fleet check` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
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
    #[command(flatten)]
    form: FormatArguments,
}

/// Examples of `fleet check`.
const EXAMPLES: &str = "\
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
pub fn run(arguments: &CheckArguments) -> Result<Exit, Complaint> {
    if arguments.facts {
        let text = host_facts_text();
        output::print(|out| out.own_lines(&text))?;
        return Ok(Exit::Done);
    }
    let hosts = arguments.hosts.named()?;
    let program = super::hosts::program(arguments.program.as_deref())?;
    let limit = Duration::from_nanos(arguments.timeout.0);
    let in_slurm = is_in_slurm(&super::hosts::variable);
    let facts = check_facts(arguments.launcher.as_deref(), in_slurm, &hosts, &program, limit);
    let results = check_fleet(&facts);
    arguments.form.print(|| view(&results), |out| render(&facts, &results, out))?;
    Ok(if stops_a_run(&results) { Exit::Missed } else { Exit::Done })
}
