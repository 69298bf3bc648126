//! `fathom fio …`: fio's command line, fio's outputs, fio's exit codes.
//!
//! Everything a script sees is fio's. What fio has no words for stands in the JSON, at the end of a text that a person reads, and
//! on standard error only if that is a terminal.

mod advice;
mod aggregate_log;
mod debug;
mod directories;
mod failures;
mod idleness;
mod keeper;
mod live;
mod logs;
mod measured;
mod observer;
mod ranks;
mod requests;
mod sink;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use clap::{Arg, ArgAction, ValueHint};
use fathom_assess::{PlanTargets, VolumeTypes, engine_rows, host_facts};
use fathom_model::RunPlan;
use fathom_options::{
    CommandOptions, DebugClass, EngineRow, Invocation, MachineNumbers, OptionError, OptionSummary,
    ParseEnvironment, command_help, command_summaries, engine_help, job_summaries, parse_command_line,
    show_command, usage,
};
use fathom_report::{FIO_VERSION, TextWriter};
use fathom_runner::load_recordings;
use fathom_sys::files::{COMPRESSED_LOG, InputError, JOB_FILE, Lines};
use flate2::read::ZlibDecoder;

use crate::exit::{Complaint, Exit};
use crate::output;
use debug::DebugTrace;
use idleness::IdleWatch;
use measured::measure;
use ranks::{FioRank, Joined};
use sink::Sink;

/// The options of fio's command line and of jobs, as clap describes arguments.
pub fn arguments() -> Vec<Arg> {
    let argument = |row: OptionSummary| {
        let default = match row.default {
            "" => String::new(),
            default => format!(" [default: {default}]"),
        };
        let arg = Arg::new(row.name).long(row.name).help(format!("{}{default}", row.doc));
        match (row.value, row.words) {
            ("", _) => arg.action(ArgAction::SetTrue),
            (value, []) => arg.value_name(value).require_equals(true),
            (value, words) => arg.value_name(value).require_equals(true).value_parser(words.to_vec()),
        }
    };
    let files = Arg::new("job files").value_name("JOB FILE").num_args(0..).value_hint(ValueHint::FilePath);
    let of_jobs = job_summaries()
        .flat_map(|(category, rows)| rows.map(move |row| argument(row).help_heading(category)));
    [files.help("Files of jobs")]
        .into_iter()
        .chain(command_summaries().map(argument))
        .chain(of_jobs)
        .collect()
}

/// Does what fio does with these words.
pub fn run(args: &[OsString]) -> Exit {
    let words: Result<Vec<String>, _> = args.iter().map(|word| word.clone().into_string()).collect();
    let words = match words {
        Ok(words) => words,
        Err(word) => {
            output::warn(&format!("fio: '{}' is not valid UTF-8", word.display()));
            return Exit::FioSetup;
        }
    };
    match start(&words) {
        Ok(exit) => exit,
        Err(Complaint { message, excerpt, hint, .. }) => {
            output::warn(&message);
            if let Some(excerpt) = excerpt {
                let _ = output::warn_by(|out| out.own_lines(&excerpt));
            }
            if let Some(hint) = hint {
                output::warn(&hint);
            }
            Exit::FioSetup
        }
    }
}

fn start(words: &[String]) -> Result<Exit, Complaint> {
    let rank = match ranks::join(words)? {
        Joined::Alone => None,
        Joined::Rank(rank) => Some(*rank),
        Joined::Parted(exit) => return Ok(exit),
    };
    let words = &ranks::expanded(words, rank.as_ref());
    match prepare(words, rank.as_ref()) {
        Ok(Prepared::Exit(exit)) => Ok(exit),
        Ok(Prepared::Run(run)) => {
            let PreparedRun { invocation, plan, targets } = *run;
            measure(words, &invocation, Arc::new(plan), targets, rank)
        }
        Err(refusal) => {
            if let Some(rank) = rank {
                rank.fail(&refusal.message);
            }
            Err(refusal)
        }
    }
}

/// Why nothing is run, in fio's words.
fn refusal(message: String, hint: Option<String>) -> Complaint {
    Complaint { exit: Exit::FioSetup, ..Complaint::failed(message, hint) }
}

/// The same of what has no words of fio's.
fn named(error: impl Into<Complaint>) -> Complaint {
    let complaint = error.into();
    Complaint { message: format!("fio: {}", complaint.message), ..complaint }
}

/// Prints an answer to standard output.
fn print(write: impl FnOnce(&mut TextWriter) -> io::Result<()>) -> Result<(), Complaint> {
    output::print(write).map_err(named)
}

/// What a command line leads to.
enum Prepared {
    /// Nothing is measured.
    Exit(Exit),
    Run(Box<PreparedRun>),
}

struct PreparedRun {
    invocation: Invocation,
    plan: RunPlan,
    targets: PlanTargets,
}

/// Reads the command line; answers one that only prints.
fn prepare(words: &[String], rank: Option<&FioRank>) -> Result<Prepared, Complaint> {
    let engines = engine_rows();
    let host = host_facts();
    let parsed = parse_command_line(
        words,
        &ParseEnvironment {
            engines: &engines,
            read_file: &|path| ranks::read_job_file(path, rank),
            variable: &|name| ranks::variable(name, rank),
            machine: machine_numbers(host.cpus),
        },
    );
    if parsed.as_ref().is_err_and(OptionError::is_no_jobs) {
        print(|out| out.own_lines(&format!("{FIO_VERSION}\n{}", usage())))?;
    }
    let mut invocation = parsed?;
    if invocation.command.only_prints() {
        return answer(&invocation.command, &engines).map(Prepared::Exit);
    }
    if let Some(rank) = rank {
        rank.take_role(&mut invocation, &engines)?;
    }
    invocation.list_directories(&directories::files_below)?;
    let mut plan = invocation.plan(&host)?;
    if let Some(rank) = rank {
        rank.fit(&mut plan)?;
    }
    if invocation.command.showcmd {
        print(|out| writeln!(out.verbatim(), "{}", show_command(&invocation)))?;
        return Ok(Prepared::Exit(Exit::Done));
    }
    if invocation.command.parse_only {
        // The file of --output stays as it is unless there is anything to write.
        if !invocation.command.debug.is_empty() {
            let trace = DebugTrace::new(&invocation.command.debug);
            trace.begin(&invocation, &plan, &mut Sink::open(&invocation.command)?)?;
        }
        return Ok(Prepared::Exit(Exit::Done));
    }
    let shows_issued = invocation.command.debug.contains(&DebugClass::Io);
    plan.jobs.iter_mut().for_each(|job| job.measure.logs.shows_issued = shows_issued);
    load_recordings(&mut plan).map_err(named)?;
    let targets = PlanTargets::of(&plan, &VolumeTypes::default()).map_err(named)?;
    if rank.is_none_or(FioRank::reports) {
        advice::give(&invocation.command, &plan);
    }
    Ok(Prepared::Run(Box::new(PreparedRun { invocation, plan, targets })))
}

/// `--version`, `--help` and the like.
fn answer(command: &CommandOptions, engines: &[EngineRow]) -> Result<Exit, Complaint> {
    let text = if command.version {
        format!("{FIO_VERSION}\n")
    } else if command.help {
        format!("{FIO_VERSION}\n{}", usage())
    } else if let Some(watch) = IdleWatch::new(command) {
        watch.end().to_string()
    } else if let Some(path) = &command.inflate_log {
        return inflate(path);
    } else if let Some(topic) = &command.cmdhelp {
        command_help(topic.as_deref()).map_err(|nearest| {
            let message = format!("No such command: {}", topic.as_deref().unwrap_or_default());
            refusal(message, nearest.map(|name| format!("Did you mean {name}?")))
        })?
    } else {
        let topic = command.enghelp.as_ref().and_then(|topic| topic.as_deref());
        engine_help(engines, topic, output::stdout_is_seen()).map_err(|message| refusal(message, None))?
    };
    print(|out| out.own_lines(&text))?;
    Ok(Exit::Done)
}

/// Prints a compressed log.
fn inflate(path: &Path) -> Result<Exit, Complaint> {
    let refused = |error: &InputError| {
        let hint = "name a log file that log_store_compressed=1 has made".to_owned();
        refusal(format!("fio: {error}"), Some(hint))
    };
    let (name, file) = COMPRESSED_LOG.reader(path).map_err(|error| refused(&error))?;
    let mut lines = Lines::new(&COMPRESSED_LOG, name, ZlibDecoder::new(file));
    let mut failure = None;
    print(|out| {
        loop {
            match lines.next_line() {
                Ok(Some(line)) => writeln!(out.verbatim(), "{line}")?,
                Ok(None) => return Ok(()),
                Err(error) => {
                    failure = Some(refused(&error));
                    return Ok(());
                }
            }
        }
    })?;
    failure.map_or(Ok(Exit::Done), Err)
}

/// Reads a job file; `-` is standard input.
pub(super) fn read_job_file(path: &Path) -> io::Result<Vec<u8>> {
    JOB_FILE.read(path).map_err(InputError::into_io).map_err(|error| match path.is_dir() {
        true => io::Error::new(io::ErrorKind::IsADirectory, error),
        false => error,
    })
}

/// The numbers that job files can name.
pub(super) fn machine_numbers(cpus: usize) -> MachineNumbers {
    let memory = fathom_sys::device::SysRoot::real().text("/proc/meminfo").unwrap_or_default();
    let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|text| text.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    MachineNumbers {
        cpus: cpus as u64,
        page_size: rustix::param::page_size() as u64,
        memory_mib: kib.unwrap_or(0) / 1024,
    }
}
