//! `fathom fleet run`: the launcher's command for a job of many ranks, run and reported.

use std::path::{Path, PathBuf};

use clap::Args;
use fathom_assess::launcher::{JobHosts, LaunchPlan, Launcher, ScaleStep, is_in_slurm, scale_steps};
use fathom_model::text::shell_quoted;
use fathom_report::formats::Format;
use fathom_runner::StopHandle;
use jiff::Timestamp;

use super::hosts::{HostArguments, program, read, variable};
use super::launched::{LaunchEnd, RankOutput, launch};
use super::ranks::{RankFiles, Remainder, of_run, of_series, remainder};
use super::scaling::{self, LoadedRun};
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
#[command(after_help = EXAMPLES)]
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
Rank 0 prints the report. Where it is lost, the records in --fleet-out are merged here.

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
            number.ok_or_else(|| format!("'{part}' is no number of ranks: write --fleet-scale=1,2,8"))
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
}
