//! `fathom fio …`: fio's command line, fio's outputs, fio's exit codes.
//!
//! Everything a script sees is fio's. What fio has no words for stands in the JSON, at the end of a text that a person reads, and
//! on standard error only if that is a terminal.

mod debug;
mod measured;
mod ranks;
mod requests;
mod sink;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use clap::{Arg, ArgAction, ValueHint};
use fathom_analysis::{AdviceDevice, AdviceFacts, advice};
use fathom_assess::{PlanTargets, VolumeTypes, engine_rows, host_facts};
use fathom_model::RunPlan;
use fathom_options::{
    CommandOptions, DebugClass, EngineRow, IdleProfile, Invocation, MachineNumbers, OptionError,
    OptionSummary, ParseEnvironment, command_help, command_summaries, engine_help, job_summaries,
    parse_command_line, show_command, usage,
};
use fathom_report::fio::idleness::CpuIdleness;
use fathom_report::{FIO_VERSION, TextWriter};
use fathom_runner::load_recordings;
use fathom_sys::device::{HostFacts, Locality, SysRoot, TargetStack};
use fathom_sys::files::{COMPRESSED_LOG, InputError, JOB_FILE, Lines};
use fathom_sys::idle::{CpuTimes, unit_work_us};
use flate2::read::ZlibDecoder;

use crate::exit::{Complaint, Exit};
use crate::output;
use debug::DebugTrace;
use measured::{Measured, measure};
use ranks::FioRank;
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
        Ok(rank) => rank,
        Err(exit) => return Ok(exit),
    };
    let words = &ranks::expanded(words, rank.as_ref());
    let measured = prepare(words, rank.as_ref()).and_then(|prepared| match prepared {
        Ok(PreparedRun { invocation, plan, targets }) => {
            measure(words, &invocation, Arc::new(plan), targets, rank.as_ref())
        }
        Err(exit) => Ok(Measured::Alone(exit)),
    });
    match (measured, rank) {
        (Ok(Measured::Alone(exit)), _) => Ok(exit),
        (Ok(Measured::OfRank(run)), Some(rank)) => rank.leave(*run),
        (Ok(Measured::OfRank(_)), None) => Ok(Exit::FioSetup),
        (Err(refusal), rank) => {
            rank.into_iter().for_each(|rank| rank.fail(&refusal.message));
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

/// What is to be measured.
struct PreparedRun {
    invocation: Invocation,
    plan: RunPlan,
    targets: PlanTargets,
}

/// Reads the command line; the inner error is how one ends that only prints.
fn prepare(words: &[String], rank: Option<&FioRank>) -> Result<Result<PreparedRun, Exit>, Complaint> {
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
        return answer(&invocation.command, &engines).map(Err);
    }
    if let Some(rank) = rank {
        rank.take_role(&mut invocation, &engines)?;
    }
    invocation.list_directories(&files_below)?;
    let mut plan = invocation.plan(&host)?;
    if let Some(rank) = rank {
        rank.fit(&mut plan)?;
    }
    if invocation.command.showcmd {
        print(|out| writeln!(out.verbatim(), "{}", show_command(&invocation)))?;
        return Ok(Err(Exit::Done));
    }
    if invocation.command.parse_only {
        // The file of --output stays as it is unless there is anything to write.
        if !invocation.command.debug.is_empty() {
            let trace = DebugTrace::new(&invocation.command.debug);
            trace.begin(&invocation, &plan, &mut Sink::open(&invocation.command)?)?;
        }
        return Ok(Err(Exit::Done));
    }
    let shows_issued = invocation.command.debug.contains(&DebugClass::Io);
    plan.jobs.iter_mut().for_each(|job| job.measure.logs.shows_issued = shows_issued);
    load_recordings(&mut plan).map_err(named)?;
    let targets = PlanTargets::of(&plan, &VolumeTypes::default()).map_err(named)?;
    if rank.is_none_or(FioRank::reports) {
        give(&invocation.command, &plan);
    }
    Ok(Ok(PreparedRun { invocation, plan, targets }))
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

/// Most paths that are looked at: the others of a job are like them.
const LOOKED_AT: usize = 32;

/// Writes advice on `plan` to standard error: on a terminal that shows both streams, or where it was asked for.
fn give(command: &CommandOptions, plan: &RunPlan) {
    if command.advise || output::stdout_is_seen() && output::stderr_is_seen() {
        advice(plan, &facts(plan)).iter().for_each(|text| output::warn(&format!("advice: {text}")));
    }
}

fn facts(plan: &RunPlan) -> AdviceFacts {
    let paths = plan.jobs.iter().flat_map(|job| &job.clones).flat_map(|clone| &clone.paths);
    let mut devices = BTreeMap::new();
    for path in paths {
        if devices.len() == LOOKED_AT {
            break;
        }
        if devices.contains_key(path) {
            continue;
        }
        let Ok(stack) = TargetStack::of(path) else { continue };
        let Some(device) = stack.devices.first() else { continue };
        let is_network = stack.devices.iter().any(|device| matches!(device.locality, Locality::Network(_)));
        let largest_request = device.max_sectors_kb.map(|kib| kib * 1024);
        devices.insert(path.clone(), AdviceDevice { name: device.name.clone(), is_network, largest_request });
    }
    AdviceFacts { memory: HostFacts::read().memory_bytes, devices }
}

/// The idle time of the CPUs since some moment.
struct IdleWatch {
    kind: IdleProfile,
    since: CpuTimes,
    unit: (f64, f64),
}

impl IdleWatch {
    /// Begins to watch, if the command asks for it.
    pub fn new(command: &CommandOptions) -> Option<IdleWatch> {
        let kind = command.idle_profile?;
        Some(IdleWatch { kind, unit: unit_work_us(), since: CpuTimes::read(&SysRoot::real()) })
    }

    /// Begins anew, because files were laid out until now.
    pub fn restart(&mut self) {
        self.since = CpuTimes::read(&SysRoot::real());
    }

    /// The idle time until now.
    pub fn end(&self) -> CpuIdleness {
        let cpus = CpuTimes::read(&SysRoot::real()).idle_since(&self.since);
        let mean = cpus.iter().map(|(_, idle)| idle).sum::<f64>() / cpus.len().max(1) as f64;
        let is_run = self.kind != IdleProfile::Calibrate;
        CpuIdleness {
            system: Some(mean).filter(|_| is_run),
            cpus: if self.kind == IdleProfile::PerCpu { cpus } else { Vec::new() },
            unit_mean_us: self.unit.0,
            unit_stddev_us: self.unit.1,
        }
    }
}

/// The regular files in `directory` and below it, in the order of their names. Links are not followed.
fn files_below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_below_and_links_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("b/c")).unwrap();
        for name in ["z", "b/c/y", "b/x"] {
            fs::write(at(name), "1").unwrap();
        }
        std::os::unix::fs::symlink(at("z"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("b"), at("loop")).unwrap();
        assert_eq!(files_below(dir.path()).unwrap(), [at("b/c/y"), at("b/x"), at("z")]);
        assert!(files_below(&at("none")).is_err());
    }
}
