//! `fathom fleet run`: the launcher's command for a job of many ranks, run and reported; what its ranks left in a directory is
//! merged when rank 0 could not report.
//!
//! The launcher stays in the process group of this program, so that ssh can ask for what it needs at the terminal. Ctrl-C there
//! reaches it directly; what else asks this program to end is passed on.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use clap::Args;
use fathom_analysis::fleet::rank_ranges;
use fathom_assess::launcher::{
    JobHosts, LaunchPlan, Launcher, LauncherFamily, ScaleStep, is_in_slurm, scale_steps,
};
use fathom_model::text::shell_quoted;
use fathom_record::{MergeRules, RunRecord, TestStatus};
use fathom_report::formats::Format;
use fathom_runner::StopHandle;
use fathom_sys::child;
use fathom_sys::clock::monotonic_ns;
use jiff::Timestamp;
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::SIGINT;

use super::scaling::{self, LoadedRun};
use super::{HostArguments, program, read, variable};
use crate::commands::merge::Merging;
use crate::commands::merge::read_files;
use crate::commands::shown;
use crate::exit::{Complaint, Exit};
use crate::output;
use crate::signals::{self, SignalWatch};

/// Commands that take `--fleet`.
const COMMANDS: [&str; 4] = ["bench", "fio", "sweep", "ping"];
/// What variables of the environment begin with that every rank is to have.
const OWN_VARIABLES: &str = "FATHOM_";

/// What `fathom fleet run` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct RunFleetArguments {
    #[command(flatten)]
    hosts: HostArguments,
    /// Ranks on each host
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    per_host: u32,
    /// Launcher: srun, mpiexec, mpirun or a path of one [default: srun in an allocation of Slurm, else mpiexec, else mpirun]
    #[arg(long, value_name = "PROGRAM")]
    launcher: Option<String>,
    /// fathom on the hosts [default: the path of this one]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Directory for the record of each rank, which all hosts should share [default: fathom-fleet-TIME here]
    #[arg(long, value_name = "DIR")]
    fleet_out: Option<PathBuf>,
    /// Run with 1, 2, 4, ... ranks one after the other and report how the total grows; or with these numbers of ranks
    #[arg(long, value_name = "COUNT,...", num_args = 0..=1, require_equals = true, default_missing_value = DOUBLING,
          value_parser = ScaleRequest::parse)]
    fleet_scale: Option<ScaleRequest>,
    /// Print the commands and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Command with its options, which every rank runs: bench, fio, sweep or ping
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Examples of `fleet run`.
const EXAMPLES: &str = "\
Rank 0 prints the report. If it is lost, the records in --fleet-out are merged here.

Examples:
  fathom fleet run --hosts=h[1-64] bench /mnt/shared
  fathom fleet run --hosts=h[1-4] --fleet-out=/mnt/shared/out fio job.fio
  fathom fleet run --hosts-file hosts --per-host 4 --launcher mpirun bench --quick /mnt/shared
  fathom fleet run --hosts=h[1-64] --fleet-scale bench --only rand-read --runtime 30s /mnt/shared
  fathom fleet run --hosts=h[1-64] --dry-run bench /mnt/shared
  salloc -N64 fathom fleet run bench /mnt/shared       the hosts of the allocation

Exit status: that of the ranks; 75 ranks are missing, 130 interrupted.";

const DOUBLING: &str = "doubling";

/// Numbers of ranks of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ScaleRequest {
    Doubling,
    Counts(Vec<u32>),
}

impl ScaleRequest {
    fn parse(text: &str) -> Result<ScaleRequest, String> {
        if text == DOUBLING {
            return Ok(ScaleRequest::Doubling);
        }
        let number = |part: &str| {
            let number = part.trim().parse::<u32>().ok().filter(|number| *number > 0);
            number.ok_or_else(|| {
                format!("cannot read '{part}' as a number of ranks: write --fleet-scale=1,2,8")
            })
        };
        let counts = text.split(',').map(number).collect::<Result<Vec<u32>, String>>()?;
        let counts = crate::commands::words::sorted_once(counts);
        match counts.len() {
            0 | 1 => Err("a curve needs two numbers of ranks or more".to_owned()),
            _ => Ok(ScaleRequest::Counts(counts)),
        }
    }

    fn steps(&self, hosts: u32, per_host: u32) -> Result<Vec<ScaleStep>, String> {
        match self {
            ScaleRequest::Doubling => match scale_steps(hosts, per_host) {
                steps if steps.len() > 1 => Ok(steps),
                _ => Err("a curve needs two ranks or more".to_owned()),
            },
            ScaleRequest::Counts(counts) => {
                counts.iter().map(|&ranks| ScaleStep::of(ranks, hosts, per_host)).collect()
            }
        }
    }
}

/// Runs the job, or a series of it.
///
/// # Errors
/// There is no launcher, or it cannot be started; a list of hosts has a mistake; the directory cannot be used.
pub fn run(arguments: &RunFleetArguments) -> Result<Exit, Complaint> {
    check_command(&arguments.command)?;
    let hosts = JobHosts::of(arguments.hosts.named()?, &variable, &read)?;
    let steps = match &arguments.fleet_scale {
        Some(request) => Some(request.steps(hosts.count(), arguments.per_host).map_err(|message| {
            let hint = "name more hosts (--hosts), or more ranks on each (--per-host)".to_owned();
            Complaint::usage(format!("--fleet-scale: {message}"), Some(hint))
        })?),
        None => None,
    };
    let launcher = Launcher::chosen(arguments.launcher.as_deref(), is_in_slurm(&variable))?;
    let job = Job {
        launcher,
        hosts,
        per_host: arguments.per_host,
        program: program(arguments.program.as_deref())?,
        out: out(arguments.fleet_out.as_deref())?,
        command: &arguments.command,
    };
    if arguments.dry_run {
        return job.print(steps.as_deref());
    }
    let watch =
        signals::watch_patiently(StopHandle::default(), "stopped immediately; the records of ranks are kept")
            .map_err(signals::unwatched)?;
    match steps {
        Some(steps) => job.run_series(&steps, watch),
        None => job.run_once(watch),
    }
}

/// Whether the ranks can run the command.
fn check_command(command: &[String]) -> Result<(), Complaint> {
    let first = command.first().map_or("", String::as_str);
    if !COMMANDS.contains(&first) {
        let message = format!("ranks cannot run '{first}'");
        let hint = format!("begin with one of {}: fathom fleet run ... fio job.fio", COMMANDS.join(", "));
        return Err(Complaint::usage(message, Some(hint)));
    }
    if command.iter().any(|word| word == "--fleet-out" || word.starts_with("--fleet-out=")) {
        let hint = format!("fathom fleet run --fleet-out=DIR {first} ...");
        return Err(Complaint::usage(format!("--fleet-out belongs before {first}"), Some(hint)));
    }
    Ok(())
}

/// The directory of the records, as every host sees it.
fn out(named: Option<&Path>) -> Result<PathBuf, Complaint> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => {
            let now = i64::try_from(fathom_sys::clock::unix_ms()).ok();
            let now =
                now.and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(Timestamp::UNIX_EPOCH);
            PathBuf::from(format!("fathom-fleet-{}", now.strftime("%Y%m%dT%H%M%SZ")))
        }
    };
    std::path::absolute(&path).map_err(|error| {
        let message = format!("cannot use {}: {}", path.display(), output::plain(&error));
        Complaint::usage(message, None)
    })
}

/// A job of many ranks.
struct Job<'a> {
    launcher: Launcher,
    hosts: JobHosts,
    per_host: u32,
    program: String,
    out: PathBuf,
    command: &'a [String],
}

impl Job<'_> {
    fn whole(&self) -> ScaleStep {
        ScaleStep { hosts: self.hosts.count(), per_host: self.per_host }
    }

    /// The directory of a run of a series.
    fn directory(&self, step: ScaleStep) -> PathBuf {
        self.out.join(format!("ranks-{:05}", step.ranks()))
    }

    /// The launcher's command for so many ranks with their records in `out`.
    fn words(&self, step: ScaleStep, out: &Path) -> Result<Vec<String>, Complaint> {
        let (name, rest) = self.command.split_first().unwrap_or((&self.program, &[]));
        let is_asked = rest.iter().any(|word| word == "--fleet");
        let fleet = ["--fleet".to_owned()].into_iter().filter(|_| !is_asked);
        let mut command = vec![self.program.clone(), name.clone()];
        command.extend(fleet.chain([format!("--fleet-out={}", out.display())]));
        command.extend(rest.iter().cloned());
        let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let mut exported: Vec<String> = variables.filter(|name| name.starts_with(OWN_VARIABLES)).collect();
        exported.sort();
        // Open MPI gives each rank a terminal of its own.
        exported.extend((!output::stdout_is_seen()).then(|| "NO_COLOR=1".to_owned()));
        let plan = LaunchPlan {
            launcher: self.launcher.clone(),
            hosts: self.hosts.first(step.hosts),
            per_host: step.per_host,
            exported,
            is_root: rustix::process::geteuid().is_root(),
            command,
        };
        Ok(plan.words()?)
    }

    /// Prints the commands.
    fn print(&self, steps: Option<&[ScaleStep]>) -> Result<Exit, Complaint> {
        let runs: Vec<(ScaleStep, PathBuf)> = match steps {
            Some(steps) => steps.iter().map(|&step| (step, self.directory(step))).collect(),
            None => vec![(self.whole(), self.out.clone())],
        };
        let lines = runs.iter().map(|(step, out)| self.words(*step, out).map(|words| line(&words)));
        let lines = lines.collect::<Result<Vec<String>, Complaint>>()?;
        output::print(|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
        Ok(Exit::Done)
    }

    /// Runs all ranks once.
    fn run_once(&self, watch: &SignalWatch) -> Result<Exit, Complaint> {
        let end = self.launch(self.whole(), &self.out, RankOutput::PassedOn, watch)?;
        let ranks = self.whole().ranks();
        let files = RankFiles::of(&self.out);
        let record = if end.has_report && end.code == Some(0) { None } else { files.merged(Some(ranks))? };
        let whole = record.as_ref().map(|record| files.are_whole_as_seen(record));
        match (remainder(&end, whole), record) {
            (Remainder::Nothing(exit), _) => Ok(exit),
            (Remainder::Report(exit), Some(record)) => {
                output::warn(&format!("{}: reporting the records in {}", ended(&end), self.out.display()));
                let style = output::style();
                output::print(|out| shown::show(&record, &style, Format::Text, out))?;
                Ok(exit)
            }
            (Remainder::Report(exit) | Remainder::NoRecord(exit), _) => Err(self.without_record(&end, exit)),
        }
    }

    /// That no rank left anything.
    fn without_record(&self, end: &LaunchEnd, exit: Exit) -> Complaint {
        let message = format!("{}, and no record is in {}", ended(end), self.out.display());
        let hint = match exit {
            Exit::Interrupted => None,
            _ => Some("fathom fleet check --hosts LIST names what stops a run".to_owned()),
        };
        Complaint { exit, ..Complaint::failed(message, hint) }
    }

    /// Runs so many ranks, whose records go to `out`.
    fn launch(
        &self,
        step: ScaleStep,
        out: &Path,
        shown: RankOutput,
        watch: &SignalWatch,
    ) -> Result<LaunchEnd, Complaint> {
        let words = self.words(step, out)?;
        prepare(out)?;
        output::warn(&line(&words));
        launch(&words, self.launcher.family, shown, watch).map_err(|error| {
            let message = format!("cannot start {}: {}", self.launcher.program, output::plain(&error));
            Complaint::failed(message, None)
        })
    }

    /// Runs more and more ranks, and reports how the total grows.
    fn run_series(&self, steps: &[ScaleStep], watch: &SignalWatch) -> Result<Exit, Complaint> {
        let mut runs = Vec::new();
        let mut exit = Exit::Done;
        for (place, &step) in steps.iter().enumerate() {
            let out = self.directory(step);
            let ranks = if step.ranks() == 1 { "rank" } else { "ranks" };
            output::warn(&format!("Run {} of {}: {} {ranks}", place + 1, steps.len(), step.ranks()));
            let end = self.launch(step, &out, RankOutput::Dropped, watch)?;
            let files = RankFiles::of(&out);
            match files.merged(Some(step.ranks()))? {
                Some(record) => {
                    let is_whole = files.are_whole(&record);
                    if !is_whole {
                        output::warn(&format!("warning: ranks are missing of {}", step.ranks()));
                    }
                    exit = of_series(exit, of_run(&end, is_whole));
                    runs.push(LoadedRun { source: out.display().to_string(), record });
                }
                None if end.is_interrupted => {}
                None => {
                    let message = format!("{}, and no record is in {}", ended(&end), out.display());
                    let hint = "use a directory that all hosts share: --fleet-out DIR".to_owned();
                    return Err(Complaint::failed(message, Some(hint)));
                }
            }
            if end.is_interrupted {
                exit = Exit::Interrupted;
                break;
            }
        }
        if runs.len() < 2 && exit == Exit::Interrupted {
            return Ok(exit);
        }
        scaling::print(runs)?;
        output::warn(&format!(
            "Records: {0}; fathom fleet scaling {0} reports them again",
            self.out.display()
        ));
        Ok(exit)
    }
}

/// How the launcher ended, in words.
fn ended(end: &LaunchEnd) -> String {
    match end.code {
        Some(code) => format!("the launcher ended with {code}"),
        None => "a signal ended the launcher".to_owned(),
    }
}

/// Makes the directory of a run, which has no records yet.
fn prepare(out: &Path) -> Result<(), Complaint> {
    if !RankFiles::of(out).is_empty() {
        let message = format!("{} has the records of another run", out.display());
        return Err(Complaint::usage(message, Some("use another --fleet-out".to_owned())));
    }
    std::fs::create_dir_all(out).map_err(|error| {
        let message = format!("cannot make the directory {}: {}", out.display(), output::plain(&error));
        Complaint::failed(message, Some("use another --fleet-out".to_owned()))
    })
}

/// A command line to copy.
fn line(words: &[String]) -> String {
    words.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Endings of the record of a rank, and of what a rank that did not come to its end has so far.
const RECORD: &str = "json";
const PARTIAL: &str = "partial";
/// How the names of both begin.
const RANK: &str = "rank-";
/// How the names of marks begin and end, which ranks leave where the job did not end well.
const MARK: (&str, &str) = (".rank-", ".mark");
/// Ranges of ranks that are named.
const MAX_RANGES: usize = 12;

/// The records of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankFiles {
    /// Of ranks that came to their end, by name.
    pub complete: Vec<PathBuf>,
    /// Of ranks that did not.
    pub partial: Vec<PathBuf>,
    /// A rank left its mark: the ranks have lost each other, or still run.
    pub has_marks: bool,
}

impl RankFiles {
    /// What is in `dir`; nothing where it cannot be read, as where the hosts do not share it.
    pub fn of(dir: &Path) -> RankFiles {
        let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
        let mut files = RankFiles::default();
        for path in entries.map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.has_marks |= name.starts_with(MARK.0) && name.ends_with(MARK.1);
            let is_of_rank = name.starts_with(RANK);
            match path.extension().and_then(|ending| ending.to_str()) {
                Some(RECORD) if is_of_rank => files.complete.push(path),
                Some(PARTIAL) if is_of_rank => files.partial.push(path),
                _ => {}
            }
        }
        let RankFiles { complete, partial, .. } = &mut files;
        complete.sort();
        partial.sort();
        // A rank that has both died between writing the one and removing the other.
        partial.retain(|path| complete.binary_search(&path.with_extension(RECORD)).is_err());
        files
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.complete.is_empty() && self.partial.is_empty()
    }

    /// The merged record of a job of `ranks`, or of as many as its records say; `None` where no rank has one that can be merged.
    ///
    /// # Errors
    /// The records are of different jobs.
    pub fn merged(&self, ranks: Option<u32>) -> Result<Option<RunRecord>, Complaint> {
        if self.is_empty() {
            return Ok(None);
        }
        let records = self.complete.len() + self.partial.len();
        let mut merging = Merging::new(MergeRules { ranks, records, ..MergeRules::default() });
        let complete: Vec<&Path> = self.complete.iter().map(PathBuf::as_path).collect();
        read_files(&complete, |read| merging.add(read))?;
        let partial: Vec<&Path> = self.partial.iter().map(PathBuf::as_path).collect();
        read_files(&partial, |read| {
            // A rank that died before it measured has nothing to merge; it is missing.
            if read.record.as_ref().is_ok_and(|record| !record.tests.is_empty())
                && let Err(complaint) = merging.add(read)
            {
                output::warn(&format!("warning: {}", complaint.message));
            }
            Ok(())
        })?;
        if merging.is_empty() {
            return Ok(None);
        }
        let mut record = merging.finish()?;
        record.header.notes.extend(self.ended_early(&record));
        Ok(Some(record))
    }

    /// That ranks whose records so far are counted did not come to their end.
    fn ended_early(&self, record: &RunRecord) -> Option<String> {
        let missing = record.header.fleet.iter().flat_map(|fleet| &fleet.missing);
        let missing: Vec<u32> = missing.copied().collect();
        let number = |path: &PathBuf| path.file_stem()?.to_str()?.strip_prefix(RANK)?.parse::<u32>().ok();
        let ranks = self.partial.iter().filter_map(number).filter(|rank| !missing.contains(rank));
        let ranks: Vec<u32> = ranks.collect();
        let named = rank_ranges(&ranks, MAX_RANGES);
        (!ranks.is_empty())
            .then(|| format!("these ranks did not finish; their partial results count: {named}"))
    }

    /// True where every rank has a record of all that it was to measure.
    pub fn are_whole(&self, record: &RunRecord) -> bool {
        let has_all = record.header.fleet.as_ref().is_some_and(|fleet| fleet.is_complete());
        has_all && self.ended_well(record)
    }

    /// The same where the other hosts may keep their records in directories that are not seen here: ranks that met at the end took
    /// their marks away. Rank 0, which reports, has a record where it is seen at all.
    pub fn are_whole_as_seen(&self, record: &RunRecord) -> bool {
        let has_first = record.header.fleet.as_ref().is_none_or(|fleet| !fleet.missing.contains(&0));
        self.are_whole(record) || has_first && !self.has_marks && self.ended_well(record)
    }

    fn ended_well(&self, record: &RunRecord) -> bool {
        self.partial.is_empty() && record.status != TestStatus::Incomplete
    }
}

/// What is left to do when a launcher has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remainder {
    /// Nothing: this is the exit.
    Nothing(Exit),
    /// The merged record is to be reported before.
    Report(Exit),
    /// No rank left a record, and none reported.
    NoRecord(Exit),
}

/// What is left to do after a launcher that ended so, where the records are `whole`, not whole, or not here.
pub fn remainder(end: &LaunchEnd, whole: Option<bool>) -> Remainder {
    let of_code = match end.code {
        _ if end.is_interrupted => Exit::Interrupted,
        Some(0) => Exit::Done,
        Some(75) => Exit::Partial,
        // What a shell and a launcher say of a signal is no answer of the ranks.
        Some(code @ 1..=127) => Exit::Ranks(code as u8),
        _ => Exit::Failed,
    };
    let exit = match (of_code, whole) {
        (Exit::Ranks(_) | Exit::Failed, Some(false)) => Exit::Partial,
        (exit, _) => exit,
    };
    match whole {
        _ if end.has_report || of_code == Exit::Done => Remainder::Nothing(exit),
        // Rank 0 has come to its end and says the same, in whatever form.
        Some(true) if matches!(of_code, Exit::Ranks(_)) => Remainder::Nothing(exit),
        Some(_) => Remainder::Report(exit),
        None => Remainder::NoRecord(exit),
    }
}

/// How a run of a series ends whose records are whole, or not.
pub fn of_run(end: &LaunchEnd, is_whole: bool) -> Exit {
    match remainder(end, Some(is_whole)) {
        _ if !is_whole => Exit::Partial,
        Remainder::Nothing(exit) | Remainder::Report(exit) | Remainder::NoRecord(exit) => exit,
    }
}

/// How a series ends that would have ended with `before`, and has another run: missing ranks come first, then the earliest that failed.
pub fn of_series(before: Exit, run: Exit) -> Exit {
    if before == Exit::Done || run == Exit::Partial { run } else { before }
}

/// How often the launcher is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long a launcher that was asked to end may take: ranks write what they have first.
const END_PATIENCE_NS: u64 = 60_000_000_000;
/// Time for the rest of the output of a launcher that has ended.
const REST: Duration = Duration::from_secs(2);
const PIECE: usize = 1 << 14;
/// What the reports of many ranks have: fio's text, fathom's text and Markdown, JSON, CSV, and lines of JSON.
const MARKS: [&[u8]; 5] = [b"All clients", b" merged", b"\"fleet\"", b"test,host,rank", b"\"host\""];

/// How a launcher ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchEnd {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// A rank has printed its report.
    pub has_report: bool,
    /// A signal asked for the end.
    pub is_interrupted: bool,
}

/// What becomes of the standard output of the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankOutput {
    /// It is this program's.
    PassedOn,
    /// Nobody reads it.
    Dropped,
}

/// Runs `words` and waits for the end.
///
/// # Errors
/// The launcher cannot be started.
pub fn launch(
    words: &[String],
    family: LauncherFamily,
    shown: RankOutput,
    watch: &SignalWatch,
) -> io::Result<LaunchEnd> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut command = child::command(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let passing = child.stdout.take().map(|pipe| passed_on(pipe, shown));
    let status = wait(&mut child, family, watch)?;
    let has_report = passing.is_some_and(|passing| passing.finish(REST));
    Ok(LaunchEnd { code: status.code(), has_report, is_interrupted: watch.number().is_some() })
}

/// An output that is passed on.
struct Passing {
    /// Ends with the output.
    end: Receiver<()>,
    state: Arc<PassingState>,
}

#[derive(Default)]
struct PassingState {
    /// A piece is being written, which takes as long as its reader likes.
    is_writing: AtomicBool,
    /// There was a report in it so far.
    has_report: AtomicBool,
}

impl Passing {
    /// Waits for the end of the output, or until nothing comes for `rest`; true where there was a report in it.
    fn finish(&self, rest: Duration) -> bool {
        while self.end.recv_timeout(rest) == Err(RecvTimeoutError::Timeout)
            && self.state.is_writing.load(Ordering::Acquire)
        {}
        self.state.has_report.load(Ordering::Acquire)
    }
}

/// Passes the output on.
fn passed_on(mut pipe: impl Read + Send + 'static, shown: RankOutput) -> Passing {
    let (sender, end) = channel();
    let state = Arc::new(PassingState::default());
    let own = state.clone();
    std::thread::spawn(move || {
        // It goes with this thread.
        let _sender: Sender<()> = sender;
        let mut seen = ReportSeen::default();
        let mut piece = vec![0; PIECE];
        loop {
            let count = match pipe.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            seen.add(&piece[..count]);
            own.has_report.store(seen.is_there, Ordering::Release);
            // Whoever read it has gone: the ranks are to go on.
            if shown == RankOutput::PassedOn {
                own.is_writing.store(true, Ordering::Release);
                let _ = output::print_whole(&piece[..count]);
                own.is_writing.store(false, Ordering::Release);
            }
        }
    });
    Passing { end, state }
}

/// Whether an output has the report of many ranks. Before it rank 0 may say what it is about to run, and hydra prints what it does about
/// signals and ranks that died.
#[derive(Debug, Default)]
struct ReportSeen {
    /// The end of what was read so far.
    tail: Vec<u8>,
    is_there: bool,
}

impl ReportSeen {
    fn add(&mut self, bytes: &[u8]) {
        if self.is_there {
            return;
        }
        self.tail.extend_from_slice(bytes);
        let has = |mark: &&[u8]| self.tail.windows(mark.len()).any(|part| part == *mark);
        self.is_there = MARKS.iter().any(has);
        let longest = MARKS.iter().map(|mark| mark.len()).max().unwrap_or(0);
        self.tail.drain(..self.tail.len().saturating_sub(longest));
    }
}

/// Waits for the launcher, and passes on a signal that asks for the end.
fn wait(child: &mut Child, family: LauncherFamily, watch: &SignalWatch) -> io::Result<ExitStatus> {
    // Nobody sends: this waits for the time alone.
    let (_sender, never) = channel::<()>();
    let mut asked_ns = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        match (watch.number(), asked_ns) {
            (Some(number), None) => {
                asked_ns = Some(monotonic_ns());
                ask_to_end(child, family, number);
            }
            (_, Some(since)) if monotonic_ns().saturating_sub(since) > END_PATIENCE_NS => {
                // It may have ended in the meantime.
                let _ = child.kill();
            }
            _ => {}
        }
        let _ = never.recv_timeout(LOOK);
    }
}

/// Asks the launcher to end the ranks, which then write what they have.
fn ask_to_end(child: &Child, family: LauncherFamily, number: i32) {
    let is_from_terminal = number == SIGINT && is_in_foreground();
    let signal = match family {
        // One interrupt makes `srun` tell the state of its tasks; it hands SIGTERM on to them.
        LauncherFamily::Slurm => Signal::TERM,
        _ if is_from_terminal => return,
        _ if number == SIGINT => Signal::INT,
        _ => Signal::TERM,
    };
    if let Ok(pid) = i32::try_from(child.id())
        && let Some(pid) = Pid::from_raw(pid)
    {
        let _ = kill_process(pid, signal);
    }
}

/// True where what is typed at the terminal reaches this program and the launcher.
fn is_in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_doubling_or_named() {
        let parsed = |text: &str| ScaleRequest::parse(text).ok();
        assert_eq!(parsed("doubling"), Some(ScaleRequest::Doubling));
        assert_eq!(parsed("8,1,2,8"), Some(ScaleRequest::Counts(vec![1, 2, 8])));
        for text in ["", "1", "0,1", "1,x"] {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert!(ScaleRequest::Doubling.steps(1, 1).is_err());
        assert!(ScaleRequest::Counts(vec![1, 9]).steps(4, 2).is_err());
    }

    #[test]
    fn ranks_run_commands_that_take_the_option() {
        let check =
            |words: &[&str]| check_command(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert!(check(&["bench", "/mnt"]).is_ok() && check(&["fio", "--name=x"]).is_ok());
        assert!(check(&["job.fio"]).is_err() && check(&[]).is_err());
        assert!(check(&["bench", "--fleet-out=x", "/mnt"]).is_err());
    }

    fn end(code: Option<i32>, has_report: bool) -> LaunchEnd {
        LaunchEnd { code, has_report, is_interrupted: false }
    }

    #[test]
    fn lost_ranks_are_75_whatever_the_launcher_says() {
        use Remainder::{NoRecord, Nothing, Report};
        for (code, has_report, whole, expected) in [
            (Some(0), true, Some(true), Nothing(Exit::Done)),
            (Some(0), true, None, Nothing(Exit::Done)),
            // srun with pmi2: rank 0 has reported and ended the job.
            (Some(137), true, Some(false), Nothing(Exit::Partial)),
            // Open MPI: the launcher killed rank 0 too.
            (Some(134), false, Some(false), Report(Exit::Partial)),
            (None, false, Some(false), Report(Exit::Partial)),
            (Some(75), true, Some(false), Nothing(Exit::Partial)),
            (Some(75), false, Some(false), Report(Exit::Partial)),
            (Some(3), true, Some(true), Nothing(Exit::Ranks(3))),
            (Some(3), false, Some(true), Nothing(Exit::Ranks(3))),
            (Some(2), false, None, NoRecord(Exit::Ranks(2))),
            (Some(255), false, None, NoRecord(Exit::Failed)),
            (Some(255), false, Some(true), Report(Exit::Failed)),
        ] {
            assert_eq!(remainder(&end(code, has_report), whole), expected, "{code:?} {has_report} {whole:?}");
        }
        let interrupted = LaunchEnd { is_interrupted: true, ..end(Some(1), false) };
        assert_eq!(remainder(&interrupted, Some(false)), Report(Exit::Interrupted));
    }

    #[test]
    fn a_rank_has_one_record() {
        let dir = tempfile::tempdir().unwrap();
        for name in
            ["rank-00000.json", "rank-00000.partial", "rank-00001.partial", "rank-00001.mark", "other.json"]
        {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let files = RankFiles::of(dir.path());
        assert_eq!(files.complete, [dir.path().join("rank-00000.json")]);
        assert_eq!(files.partial, [dir.path().join("rank-00001.partial")]);
        assert!(RankFiles::of(Path::new("/nonexistent")).is_empty());
        assert!(!files.has_marks);
        std::fs::write(dir.path().join(".rank-00001.mark"), "").unwrap();
        assert!(RankFiles::of(dir.path()).has_marks);
    }

    #[test]
    fn records_that_are_elsewhere_are_not_missing() {
        let fleet = fathom_record::FleetRecord { missing: vec![1], ..Default::default() };
        let mut record = RunRecord { status: TestStatus::Complete, ..RunRecord::default() };
        record.header.fleet = Some(fleet);
        let parted = RankFiles::default();
        assert!(!parted.are_whole(&record) && parted.are_whole_as_seen(&record));
        let lost = RankFiles { has_marks: true, ..RankFiles::default() };
        assert!(!lost.are_whole_as_seen(&record));
    }

    #[test]
    fn a_series_ends_as_its_ranks_do() {
        assert_eq!(of_run(&end(Some(0), true), true), Exit::Done);
        assert_eq!(of_run(&end(Some(0), true), false), Exit::Partial);
        assert_eq!(of_run(&end(Some(1), true), true), Exit::Ranks(1));
        assert_eq!(of_series(Exit::Done, Exit::Ranks(1)), Exit::Ranks(1));
        assert_eq!(of_series(Exit::Ranks(1), Exit::Done), Exit::Ranks(1));
        assert_eq!(of_series(Exit::Ranks(1), Exit::Partial), Exit::Partial);
    }

    #[test]
    fn a_slow_reader_gets_the_whole_report() {
        let (sender, end) = channel();
        let state = Arc::new(PassingState::default());
        state.is_writing.store(true, Ordering::Release);
        let passing = Passing { end, state: state.clone() };
        let writer = std::thread::spawn(move || {
            let _sender: Sender<()> = sender;
            std::thread::park_timeout(Duration::from_millis(50));
            state.has_report.store(true, Ordering::Release);
        });
        assert!(passing.finish(Duration::from_millis(1)));
        writer.join().unwrap();
        // A process that outlives the launcher keeps the pipe open: what was seen counts.
        let (_open, end) = channel();
        let state = PassingState { has_report: AtomicBool::new(true), ..PassingState::default() };
        assert!(Passing { end, state: Arc::new(state) }.finish(Duration::from_millis(1)));
    }

    #[test]
    fn what_stands_before_a_report_is_none() {
        let seen = |pieces: &[&str]| {
            let mut seen = ReportSeen::default();
            pieces.iter().for_each(|piece| seen.add(piece.as_bytes()));
            seen.is_there
        };
        let begun = "a: (g=0): rw=randread\nfio-3.42\nStarting 1 process\n";
        let banner = "\n====\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n";
        let interrupted = "[mpiexec@vm] Sending Ctrl-C to processes as requested\n";
        assert!(!seen(&[]) && !seen(&[begun, banner]) && !seen(&[interrupted]));
        assert!(seen(&[begun, "All cli", "ents: (groupid=0, jobs=3)\n", banner]));
        assert!(seen(&["Fleet\n  Ranks         2 of 3 merged\n"]));
        assert!(seen(&["  \"fleet\": {\n"]) && seen(&["test,host,rank,status,iops\n"]));
    }
}
