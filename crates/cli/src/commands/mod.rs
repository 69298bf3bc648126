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
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
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
  fathom doctor /mnt/data             what would distort results on this machine
  fathom bench /mnt/data              assess the volume under /mnt/data in about three minutes
  fathom bench --quick /mnt/data      the same in under a minute
  fathom fio --name=test --filename=/mnt/data/test --size=1g --rw=randread --direct=1
  fathom history list                 what was measured before
  fathom report last -o run.html      the newest run as a page with charts";

/// The commands in groups, in the order of help.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Measure", &["bench", "sweep", "identify", "ping", "surface", "prepare", "monitor", "fio"]),
    ("Choose", &["advise", "simulate", "catalog", "trace", "twin"]),
    ("Results", &["compare", "report", "history", "serve"]),
    ("Many hosts", &["fleet"]),
    ("Setup", &["doctor", "demo", "completions", "man"]),
];

/// The help of the whole program: clap lists commands under one heading.
fn grouped_help(command: &clap::Command) -> String {
    let about = |name: &str| {
        let found = command.find_subcommand(name).and_then(clap::Command::get_about);
        found.map(ToString::to_string).unwrap_or_default()
    };
    let mut text = "{about}\n\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        text += &format!("\n{title}:\n");
        for name in names {
            text += &format!("  {name:<11}  {}\n", about(name));
        }
    }
    text + "\nOptions:\n{options}{after-help}"
}

/// For the manual page: `fathom fio --help` is that of fio.
const FIO_EXAMPLES: &str = "\
Examples:
  fathom fio --name=test --filename=/mnt/data/test --size=1g --rw=randread --direct=1
  fathom fio jobs.fio --output-format=json --output=result.json
  fathom fio --name=test --filename='sim\\:aws-gp3?size=50GiB' --rw=randread --runtime=1h
  fathom fio --cmdhelp=iodepth";

#[derive(Subcommand)]
enum Command {
    /// Assess a directory, file, device or simulated volume with a suite of tests
    Bench(Box<bench::BenchArguments>),
    /// Run fio's command line and job files (also if invoked as `fio`)
    #[command(after_long_help = FIO_EXAMPLES)]
    Fio {
        /// fio's options; see `fathom fio --help`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FIO OPTIONS")]
        options: Vec<OsString>,
    },
    /// Find limits, knees and the best queue depth over block sizes and depths
    Sweep(Box<sweep::SweepArguments>),
    /// Find out limits, burst credits and type of a volume
    Identify(Box<identify::IdentifyArguments>),
    /// Map transfer rate and access time over a device; scan for unreadable blocks
    Surface(Box<surface::SurfaceArguments>),
    /// Measure the latency of single I/Os, like ioping (also if invoked as `ioping`)
    #[command(after_long_help = format!("Examples:\n  {}", ping::EXAMPLES.join("\n  ")))]
    Ping {
        /// ioping's options and more; see `fathom ping --help`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PING OPTIONS")]
        options: Vec<OsString>,
    },
    /// Fill, precondition, touch or trim a target before a measurement
    Prepare(Box<prepare::PrepareArguments>),
    /// Predict rates, latency, burst credits and cost of a load on volumes
    Simulate(Box<simulate::SimulateArguments>),
    /// Watch live I/O of devices and the processes behind it
    Monitor(Box<monitor::MonitorArguments>),
    /// List, show and check twins: models of real volumes
    Twin(twin::TwinCommand),
    /// Analyze recorded loads: traces of I/Os, metrics of systems and clouds
    Trace(trace::TraceCommand),
    /// Find the cheapest volume for a recorded load or a need
    Advise(Box<advise::AdviseArguments>),
    /// Look up volume types: limits, prices, published figures
    Catalog(catalog::CatalogCommand),
    /// Compare past runs, files of other tools and simulated volumes
    Compare(Box<compare::CompareArguments>),
    /// Show a past run, or write it as a page, Markdown, CSV, JSON or a chart
    Report(Box<report::ReportArguments>),
    /// Merge the records of many hosts into one report
    #[command(hide = true)]
    Merge(Box<merge::MergeArguments>),
    /// Measure from many hosts at once, and merge their records
    Fleet(fleet::FleetArguments),
    /// List, search, label, export and remove past runs
    History(history::HistoryArguments),
    /// Serve the history to browsers: reports, comparisons, trends, running tests
    Serve(serve::ServeArguments),
    /// Check this machine for what would distort results
    Doctor(doctor::DoctorArguments),
    /// Demonstrate the commands on simulated volumes
    Demo(demo::DemoArguments),
    /// Print the script that completes command lines in a shell
    Completions(completions::CompletionsArguments),
    /// Print or write manual pages
    Man(man::ManArguments),
}

/// The description of the whole command line, for manual pages and completion; of the commands that read other programs'
/// command lines it has the options of their tables.
pub fn command() -> clap::Command {
    with_groups(Arguments::command())
        .mut_subcommand("fio", |fio| with_arguments(fio, "fio", fio::arguments()))
        .mut_subcommand("ping", |ping| with_arguments(ping, "ping", ping::arguments()))
}

fn with_groups(command: clap::Command) -> clap::Command {
    let help = grouped_help(&command);
    command.help_template(help).mut_subcommands(with_short_help)
}

/// Options under headings that are in the short help as well.
const SHORT: [&str; 3] = ["json", "full", "report"];

/// `-h` has the options of the command alone; those under headings, which it shares with others, are in `--help`.
fn with_short_help(command: clap::Command) -> clap::Command {
    let is_shared = |arg: &Arg| arg.get_help_heading().is_some() && !SHORT.contains(&arg.get_id().as_str());
    let command = command.mut_args(|arg| if is_shared(&arg) { arg.hide_short_help(true) } else { arg });
    command.mut_subcommands(with_short_help)
}

/// `command` with other arguments.
fn with_arguments(command: clap::Command, name: &'static str, arguments: Vec<Arg>) -> clap::Command {
    let text = |text: Option<&StyledStr>| text.cloned().unwrap_or_default();
    let (about, end) = (text(command.get_about()), text(command.get_after_long_help()));
    clap::Command::new(name).about(about).after_help(end).disable_help_flag(true).args(arguments)
}

/// Reads our own command line and does what it says.
///
/// # Errors
/// What went wrong, with the exit it leads to.
pub fn run(args: &[OsString]) -> Result<Exit, Complaint> {
    let arguments = match parsed(args) {
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

fn parsed<I: Into<OsString> + Clone>(args: impl IntoIterator<Item = I>) -> Result<Arguments, clap::Error> {
    let mut command = with_groups(Arguments::command());
    let mut matches = command.try_get_matches_from_mut(args)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Options of other commands and tools, and what does the same here: the first that the command has.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("--runtime", &["budget", "for"]),
    ("--time", &["runtime", "budget", "for"]),
    ("--duration", &["runtime", "budget", "for"]),
    ("--timeout", &["budget", "runtime"]),
    ("--output-format", &["format"]),
    ("--verbose", &["full"]),
    ("--details", &["full"]),
    ("--throughput", &["bandwidth", "expect"]),
    ("--bw", &["bandwidth", "expect"]),
    ("--slo", &["expect", "fail-if"]),
    ("--reach", &["expect", "fail-if"]),
    ("--latency", &["expect", "fail-if"]),
    ("--expect", &["fail-if"]),
    ("--blocksize", &["bs"]),
    ("--block-size", &["bs"]),
    ("--depth", &["iodepth"]),
    ("--qd", &["iodepth"]),
    ("--jobs", &["numjobs"]),
];

/// The complaint about an option that goes by another name here.
fn synonym(error: &clap::Error, args: &[OsString]) -> Option<Complaint> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    let (_, names) = SYNONYMS.iter().find(|(word, _)| word == typed)?;
    let mut command = &command();
    for word in args.iter().skip(1) {
        let Some(next) = word.to_str().and_then(|word| command.find_subcommand(word)) else { break };
        command = next;
    }
    let has = |name: &&&str| command.get_arguments().any(|arg| arg.get_long() == Some(name));
    let name = names.iter().find(has).filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let message = format!("`fathom {}` has no option {typed}", command.get_name());
    Some(Complaint::usage(message, Some(format!("use --{name}"))))
}

/// The complaint about a target that became the value of `--destroy-data`.
fn swallowed(error: &clap::Error, args: &[OsString]) -> Option<Complaint> {
    let place = args.iter().position(|word| word == "--destroy-data")?;
    let target = args.get(place + 1)?.to_string_lossy();
    let is_missing = error.kind() == clap::error::ErrorKind::MissingRequiredArgument;
    let command = args.get(1).filter(|_| is_missing)?.to_string_lossy();
    let hint = format!("name it twice: `fathom {command} --destroy-data={target} {target}`");
    Some(Complaint::usage("no target is given: --destroy-data took it", Some(hint)))
}

/// Help and version are answers; everything else is a mistake.
fn explain(error: &clap::Error, args: &[OsString]) -> Result<Exit, Complaint> {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    if matches!(error.kind(), DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand) {
        output::print_rendered(error)?;
        return Ok(if error.exit_code() == 0 { Exit::Done } else { Exit::Usage });
    }
    if let Some(complaint) = synonym(error, args).or_else(|| swallowed(error, args)) {
        return Err(complaint);
    }
    let is_hidden = |word: &OsString| word.to_string_lossy().chars().any(text::is_hidden);
    if !args.iter().any(is_hidden) {
        let _ = output::print_rendered(error);
        return Ok(Exit::Usage);
    }
    // The message quotes what was typed in lines and colours of its own, so what it quotes is cleaned before it is made.
    let cleaned = args.iter().map(|word| OsString::from(text::shown(&word.to_string_lossy()).as_ref()));
    match parsed(cleaned) {
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

    #[test]
    fn options_of_other_commands_lead_to_those_of_this_one() {
        let told = |line: &[&str]| {
            let args: Vec<OsString> = ["fathom"].iter().chain(line).map(OsString::from).collect();
            let error = parsed(&args).err().unwrap();
            synonym(&error, &args).and_then(|complaint| complaint.hint)
        };
        assert_eq!(told(&["identify", "--runtime=30s", "x"]).as_deref(), Some("use --budget"));
        assert_eq!(told(&["bench", "--duration", "30s"]).as_deref(), Some("use --runtime"));
        assert_eq!(told(&["compare", "--expect=iops>1", "x"]).as_deref(), Some("use --fail-if"));
        assert_eq!(told(&["bench", "--no-such-option"]), None);
    }

    #[test]
    fn a_target_that_became_a_value_is_told() {
        let args = ["fathom", "identify", "--destroy-data", "/dev/sdz"].map(OsString::from);
        let complaint = swallowed(&parsed(&args).err().unwrap(), &args).unwrap();
        let hint = "name it twice: `fathom identify --destroy-data=/dev/sdz /dev/sdz`";
        assert_eq!(complaint.hint.as_deref(), Some(hint));
    }

    #[test]
    fn short_help_fits_a_screen() {
        fn check(command: &mut clap::Command, name: &str) {
            let help = command.clone().term_width(100).render_help().to_string();
            // The list of what a command has several of stands with its examples.
            let lines = if command.has_subcommands() { 0 } else { help.lines().count() };
            assert!(lines <= 30, "{name} -h has {lines} lines:\n{help}");
            let names: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
            for sub in names {
                let name = format!("{name} {sub}");
                command.find_subcommand_mut(&sub).into_iter().for_each(|sub| check(sub, &name));
            }
        }
        for name in GROUPS.iter().flat_map(|(_, names)| *names).filter(|name| !["fio", "ping"].contains(name))
        {
            let mut command = command();
            command.find_subcommand_mut(name).into_iter().for_each(|sub| check(sub, name));
        }
    }

    #[test]
    fn each_command_is_in_one_group_of_the_help() {
        let command = command();
        let mut shown: Vec<&str> =
            command.get_subcommands().filter(|one| !one.is_hide_set()).map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped);
    }
}
