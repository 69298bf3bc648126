//! The commands: their options as clap reads them, and one file for what each does.

mod advise;
pub mod bench;
mod catalog;
mod compare;
pub mod complete;
mod completions;
mod demo;
mod doctor;
pub mod fio;
mod fleet;
pub mod format_arguments;
mod history;
mod identify;
mod man;
mod measuring;
mod merge;
pub mod monitor;
mod need_arguments;
pub mod ping;
pub mod prepare;
pub mod report;
pub mod run_arguments;
mod serve;
pub mod shown;
mod simulate;
mod surface;
pub mod sweep;
mod trace;
mod twin;
pub mod words;

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::{Arg, CommandFactory, Parser, Subcommand};
use fathom_model::text;

use crate::exit::{Complaint, Exit};
use crate::output;

/// Measures what a disk or cloud volume really delivers.
#[derive(Parser)]
#[command(
    name = "fathom",
    bin_name = "fathom",
    version,
    about = "Measures the IOPS, throughput and latency that a disk or cloud volume delivers",
    after_help = EXAMPLES,
    arg_required_else_help = true,
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  fathom demo                         a tour of the commands on simulated volumes
  fathom doctor /mnt/data             what would spoil figures on this machine
  fathom bench /mnt/data              assess the volume under /mnt/data in about three minutes
  fathom bench --quick /mnt/data      the same in under a minute
  fathom fio --name=test --filename=/mnt/data/test --size=1g --rw=randread --direct=1
  fathom history list                 what was measured before
  fathom report last                  the newest run as a page with charts";

/// For the manual page: `fathom fio --help` is that of fio.
const FIO_EXAMPLES: &str = "\
Examples:
  fathom fio --name=test --filename=/mnt/data/test --size=1g --rw=randread --direct=1
  fathom fio jobs.fio --output-format=json --output=result.json
  fathom fio --name=test --filename='sim\\:aws-gp3?size=50GiB' --rw=randread --runtime=1h
  fathom fio --cmdhelp=iodepth";

#[derive(Subcommand)]
enum Command {
    /// Measure a directory, file or block device with a suite of tests
    Bench(Box<bench::BenchArguments>),
    /// Run fio's command line and job files (also when invoked as `fio`)
    #[command(after_help = FIO_EXAMPLES)]
    Fio {
        /// fio's options; see `fathom fio --help`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FIO OPTIONS")]
        options: Vec<OsString>,
    },
    /// Sweep block size, queue depth, jobs and pattern to find knees, limits and the crossover block size
    Sweep(Box<sweep::SweepArguments>),
    /// Identify a volume: limits, burst credits, type
    Identify(Box<identify::IdentifyArguments>),
    /// Map the device surface: transfer rate, access time, burst rate; file benchmark; scan for unreadable blocks
    Surface(Box<surface::SurfaceArguments>),
    /// Measure the latency of single requests, like ioping (also when invoked as `ioping`)
    #[command(after_help = format!("Examples:\n  {}", ping::EXAMPLES.join("\n  ")))]
    Ping {
        /// ioping's options and more; see `fathom ping --help`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PING OPTIONS")]
        options: Vec<OsString>,
    },
    /// Prepare a device or file for a measurement: fill, precondition, touch, trim
    Prepare(Box<prepare::PrepareArguments>),
    /// Simulate a load on volumes: rates, latency, burst credits, monthly cost
    Simulate(Box<simulate::SimulateArguments>),
    /// Monitor live I/O: rates, sizes, latency, queue depth, and the processes behind it
    Monitor(Box<monitor::MonitorArguments>),
    /// List, show and check twins: models of real volumes that `identify --save` makes
    Twin(twin::TwinCommand),
    /// Look into observed loads: traces of requests, metrics of operating systems and clouds
    Trace(trace::TraceCommand),
    /// Advise the cheapest volume for an observed load: latency, burst credits, growth
    Advise(Box<advise::AdviseArguments>),
    /// Look up volume types: limits, prices, and which meet requirements
    Catalog(catalog::CatalogCommand),
    /// Compare volumes like for like: past runs, files of runs, simulated volumes
    Compare(Box<compare::CompareArguments>),
    /// Make a report of past runs to open, share or print: HTML with charts, Jupyter, Markdown, CSV, PNG
    Report(Box<report::ReportArguments>),
    /// Merge the records of many hosts into one report: totals, variation, outliers, stragglers, shared limits
    Merge(Box<merge::MergeArguments>),
    /// Measure from many hosts at once: start ranks, check hosts, scaling
    Fleet(fleet::FleetArguments),
    /// List, show, export and remove past runs
    History(history::HistoryArguments),
    /// Serve the history to browsers: search, reports, comparisons, trends, running measurements
    Serve(serve::ServeArguments),
    /// Check what this machine allows, and what would spoil figures
    Doctor(doctor::DoctorArguments),
    /// Take a tour of the commands on simulated volumes, in some seconds
    Demo(demo::DemoArguments),
    /// Print the script that completes command lines in a shell
    Completions(completions::CompletionsArguments),
    /// Print or write manual pages
    Man(man::ManArguments),
}

/// The description of the whole command line, for manual pages and completion; of the commands that read other programs'
/// command lines it has the options of their tables.
pub fn command() -> clap::Command {
    Arguments::command()
        .mut_subcommand("fio", |fio| with_arguments(fio, "fio", fio::arguments()))
        .mut_subcommand("ping", |ping| with_arguments(ping, "ping", ping::arguments()))
}

/// `command` with other arguments.
fn with_arguments(command: clap::Command, name: &'static str, arguments: Vec<Arg>) -> clap::Command {
    let text = |text: Option<&StyledStr>| text.cloned().unwrap_or_default();
    let (about, end) = (text(command.get_about()), text(command.get_after_help()));
    clap::Command::new(name).about(about).after_help(end).disable_help_flag(true).args(arguments)
}

/// Reads our own command line and does what it says.
///
/// # Errors
/// What went wrong, with the exit it leads to.
pub fn run(args: &[OsString]) -> Result<Exit, Complaint> {
    let arguments = match Arguments::try_parse_from(args) {
        Ok(arguments) => arguments,
        Err(error) => return explain(&error, args),
    };
    match arguments.command {
        Command::Bench(arguments) => bench::run(*arguments, args),
        Command::Fio { options } => Ok(fio::run(&options)),
        Command::Sweep(arguments) => sweep::run(*arguments, args),
        Command::Identify(arguments) => identify::run(*arguments, args),
        Command::Surface(arguments) => surface::run(*arguments, args),
        Command::Ping { options } => Ok(ping::run(&options)),
        Command::Prepare(arguments) => prepare::run(*arguments, args),
        Command::Simulate(arguments) => simulate::run(*arguments, args),
        Command::Monitor(arguments) => monitor::run(*arguments, args),
        Command::Twin(command) => twin::run(command, args),
        Command::Trace(command) => trace::run(command),
        Command::Advise(arguments) => advise::run(&arguments),
        Command::Catalog(command) => catalog::run(command),
        Command::Compare(arguments) => compare::run(*arguments, args),
        Command::Report(arguments) => report::run(*arguments, args),
        Command::Merge(arguments) => merge::run(*arguments, args),
        Command::Fleet(arguments) => fleet::run(arguments, args),
        Command::History(arguments) => history::run(arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::Doctor(arguments) => doctor::run(&arguments, args),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}

/// Help and version are answers; everything else is a mistake.
fn explain(error: &clap::Error, args: &[OsString]) -> Result<Exit, Complaint> {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    if matches!(error.kind(), DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand) {
        output::print_rendered(error)?;
        return Ok(if error.exit_code() == 0 { Exit::Done } else { Exit::Usage });
    }
    let is_hidden = |word: &OsString| word.to_string_lossy().chars().any(text::is_hidden);
    if !args.iter().any(is_hidden) {
        let _ = output::print_rendered(error);
        return Ok(Exit::Usage);
    }
    // The message quotes what was typed in lines and colours of its own, so what it quotes is cleaned before it is made.
    let cleaned = args.iter().map(|word| OsString::from(text::shown(&word.to_string_lossy()).as_ref()));
    match Arguments::try_parse_from(cleaned) {
        Err(error) if error.use_stderr() => {
            let _ = output::print_rendered(&error);
            Ok(Exit::Usage)
        }
        _ => Err(Complaint::usage(error.to_string().trim_end().trim_start_matches("error: "), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
