//! `fathom doctor`: what this machine allows, and what would distort results measured on it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use fathom_analysis::doctor::{examine, has_problem};
use fathom_assess::doctor_facts;
use fathom_report::doctor::{json, view};
use fathom_runner::StopHandle;

use super::format_arguments::FormatArguments;
use super::run_arguments::words;
use crate::exit::{Complaint, Exit};
use crate::signals;

/// What `fathom doctor` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct DoctorArguments {
    /// Directory, file or block device that is to be measured
    #[arg(default_value = ".", value_hint = ValueHint::AnyPath)]
    target: PathBuf,
    /// Explain every check, not only those with a problem or a note
    #[arg(long)]
    explain: bool,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
}

const EXAMPLES: &str = "\
Observes machine and device for a second; writes nothing.

Examples:
  fathom doctor                     the volume under the current directory
  fathom doctor /mnt/data
  fathom doctor /dev/nvme1n1 --explain
  fathom doctor /mnt/data && fathom bench /mnt/data

Exit status: 0 no problem, 1 failed, 2 usage, 3 something would distort results, 130 interrupted.";

/// Examines machine and target.
///
/// # Errors
/// The target does not exist, or standard output cannot be written.
pub fn run(arguments: &DoctorArguments, command: &[OsString]) -> Result<Exit, Complaint> {
    let stop = StopHandle::default();
    let caught = signals::watch_saying(stop.clone(), "stopped immediately").map_err(signals::unwatched)?;
    let facts = doctor_facts(&arguments.target, words(command), &stop)?;
    if caught.number().is_some() {
        return Ok(Exit::Interrupted);
    }
    let results = examine(&facts);
    arguments.form.print(
        || view(&facts.header, &results, arguments.explain),
        |out| json::render(&facts.header, facts.observed_ns, &results, out),
    )?;
    Ok(if has_problem(&results) { Exit::Missed } else { Exit::Done })
}
