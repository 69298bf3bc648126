//! Starting the ranks of a job by a launcher that is there: which hosts, which launcher, and its command line.

mod check;

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use fathom_sys::child::{self, ended_within};
use serde::Serialize;

use crate::AssessError;
pub use check::{FACTS_ARGUMENTS, check_facts, host_facts_text};

/// Variables whose value is the file of the hosts that a scheduler gave to a job; in each line the first word is a host.
const HOST_FILES: [(&str, &str); 4] = [
    ("PBS_NODEFILE", "PBS"),
    ("LSB_DJOB_HOSTFILE", "LSF"),
    ("PE_HOSTFILE", "Grid Engine"),
    // Also that of Kubeflow's MPI operator.
    ("HYDRA_HOST_FILE", "hydra"),
];
/// The hosts that Slurm gave to a job, in bracket notation.
const SLURM_HOSTS: &str = "SLURM_JOB_NODELIST";
/// The job of Slurm that a process belongs to.
const SLURM_JOB: &str = "SLURM_JOB_ID";

/// Who says which hosts take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOrigin {
    /// The user.
    Named,
    /// A scheduler, by its name.
    Scheduler(&'static str),
    /// Nobody: the ranks are on this host.
    Local,
}

/// The hosts of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobHosts {
    /// Their names; none for this host.
    pub names: Vec<String>,
    /// Who says so.
    pub origin: HostOrigin,
}

impl JobHosts {
    /// The hosts that are named, else those of the scheduler's job, else this one. `variable` looks up the environment, `read` reads
    /// a file.
    ///
    /// # Errors
    /// The list of the scheduler cannot be read.
    pub fn of(
        named: Vec<String>,
        variable: &dyn Fn(&str) -> Option<String>,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<JobHosts, AssessError> {
        if !named.is_empty() {
            return Ok(JobHosts { names: named, origin: HostOrigin::Named });
        }
        if let Some(list) = variable(SLURM_HOSTS).filter(|_| is_in_slurm(variable)) {
            return Ok(JobHosts { names: hosts(&list)?, origin: HostOrigin::Scheduler("Slurm") });
        }
        for (name, scheduler) in HOST_FILES {
            let Some(path) = variable(name).filter(|path| !path.is_empty()) else { continue };
            let text = read(&path).map_err(|cause| {
                let message = format!("cannot read {path}, the hosts of this job of {scheduler}: {cause}");
                AssessError::usage(message, "name them: --hosts LIST")
            })?;
            let names = hosts_of_file(&first_words(&text), &path)?;
            return Ok(JobHosts { names, origin: HostOrigin::Scheduler(scheduler) });
        }
        Ok(JobHosts { names: Vec::new(), origin: HostOrigin::Local })
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX).max(1)
    }

    /// The first `count` of them.
    pub fn first(&self, count: u32) -> JobHosts {
        let names = self.names.iter().take(count as usize).cloned().collect();
        JobHosts { names, origin: self.origin.clone() }
    }
}

/// True in an allocation of Slurm.
pub fn is_in_slurm(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    variable(SLURM_JOB).is_some_and(|job| !job.is_empty())
}

/// Each host once, in the order of a scheduler's file, which has a line for each slot or the slots behind the name (`h1 4`, `h1:4`).
fn first_words(text: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in text.lines().filter_map(|line| line.split([' ', '\t', ':']).find(|word| !word.is_empty())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("\n")
}

/// Ranks to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchPlan {
    /// What starts them.
    pub launcher: Launcher,
    /// Where.
    pub hosts: JobHosts,
    /// Ranks on each host.
    pub per_host: u32,
    /// Variables of the environment that every rank is to have, where the launcher does not pass on all: `NAME`, `NAME=VALUE`.
    pub exported: Vec<String>,
    /// This user is root, as whom Open MPI starts nothing unless told to.
    pub is_root: bool,
    /// What each rank runs.
    pub command: Vec<String>,
}

impl LaunchPlan {
    /// Ranks in all.
    pub fn ranks(&self) -> u32 {
        self.hosts.count().saturating_mul(self.per_host)
    }

    /// The command line.
    ///
    /// # Errors
    /// `srun` has no plugin by which the ranks would find each other.
    pub fn words(&self) -> Result<Vec<String>, AssessError> {
        let mut words = vec![self.launcher.program.clone()];
        match self.launcher.family {
            LauncherFamily::Slurm => words.extend(self.of_slurm()?),
            LauncherFamily::Hydra => words.extend(self.of_hydra()),
            LauncherFamily::OpenMpi => words.extend(self.of_open_mpi()),
        }
        words.extend(self.command.iter().cloned());
        Ok(words)
    }

    fn of_slurm(&self) -> Result<Vec<String>, AssessError> {
        let plugin = self.launcher.plugin().ok_or_else(|| {
            let message = format!("{} has neither the plugin pmi2 nor pmix", self.launcher.program);
            AssessError::usage(message, "use mpiexec in the allocation: --launcher mpiexec")
        })?;
        let mut words = vec![
            format!("--mpi={plugin}"),
            format!("--nodes={}", self.hosts.count()),
            format!("--ntasks={}", self.ranks()),
            format!("--ntasks-per-node={}", self.per_host),
        ];
        if !self.hosts.names.is_empty() {
            words.push(format!("--nodelist={}", folded(&self.hosts.names)));
        }
        // A rank may use all CPUs that it was given; the ranks that are left report when one dies.
        words.extend(["--cpu-bind=none", "--kill-on-bad-exit=0", "--wait=0"].map(str::to_owned));
        Ok(words)
    }

    fn of_hydra(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.hosts.origin == HostOrigin::Named {
            words.extend(["-launcher", "ssh"].map(str::to_owned));
        }
        if !self.hosts.names.is_empty() {
            words.extend(["-hosts".to_owned(), self.hosts.names.join(",")]);
            words.extend(["-ppn".to_owned(), self.per_host.to_string()]);
        }
        words.extend(["-n".to_owned(), self.ranks().to_string()]);
        words
    }

    fn of_open_mpi(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.is_root {
            words.push("--allow-run-as-root".to_owned());
        }
        // It would bind each rank to a core, and with it all of its workers.
        words.extend(["--bind-to", "none", "-n"].map(str::to_owned));
        words.push(self.ranks().to_string());
        let slots = |host: &str| format!("{host}:{}", self.per_host);
        let hosts: Vec<String> = match self.hosts.names.as_slice() {
            [] => vec![slots("localhost")],
            names => names.iter().map(|name| slots(name)).collect(),
        };
        words.extend(["--host".to_owned(), hosts.join(",")]);
        words.extend(self.exported.iter().flat_map(|name| ["-x".to_owned(), name.clone()]));
        words
    }
}

/// How many ranks a series of runs has: on 1, 2, 4, ... hosts, then 2, 4, ... on each, and at last on all that there are.
pub fn scale_steps(hosts: u32, per_host: u32) -> Vec<ScaleStep> {
    let mut steps: Vec<ScaleStep> =
        doublings(hosts).into_iter().map(|hosts| ScaleStep { hosts, per_host: 1 }).collect();
    steps.extend(doublings(per_host).into_iter().skip(1).map(|per_host| ScaleStep { hosts, per_host }));
    steps
}

/// 1, 2, 4, ... up to `most`, which is the last.
fn doublings(most: u32) -> Vec<u32> {
    let mut counts: Vec<u32> =
        (0..u32::BITS).map(|power| 1 << power).take_while(|count| *count < most).collect();
    counts.push(most.max(1));
    counts
}

/// A run of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleStep {
    /// Hosts that take part: the first ones.
    pub hosts: u32,
    /// Ranks on each.
    pub per_host: u32,
}

impl ScaleStep {
    /// Ranks in all.
    pub const fn ranks(self) -> u32 {
        self.hosts.saturating_mul(self.per_host)
    }

    /// The run that has so many ranks on up to `hosts` hosts.
    ///
    /// # Errors
    /// They cannot be divided among the hosts, or are more than these take.
    pub fn of(ranks: u32, hosts: u32, per_host: u32) -> Result<ScaleStep, String> {
        let most = hosts.saturating_mul(per_host);
        match ranks {
            0 => Err("0 ranks measure nothing".to_owned()),
            ranks if ranks > most => Err(format!("{ranks} ranks are more than the {most} of all hosts")),
            ranks if ranks <= hosts => Ok(ScaleStep { hosts: ranks, per_host: 1 }),
            ranks if ranks.is_multiple_of(hosts) => Ok(ScaleStep { hosts, per_host: ranks / hosts }),
            ranks => Err(format!("{ranks} ranks cannot be divided among {hosts} hosts")),
        }
    }
}

/// How long a launcher may take to say its version: `srun` asks its controller.
const PATIENCE: Duration = Duration::from_secs(10);

/// The launchers that are looked for, in the order of preference outside of an allocation of Slurm.
pub const LAUNCHERS: [&str; 3] = ["mpiexec", "mpirun", "srun"];
/// Plugins of `srun` by which ranks find each other, in the order of preference.
const PLUGINS: [&str; 2] = ["pmi2", "pmix"];

/// Launchers that take the same options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LauncherFamily {
    /// `srun` of Slurm.
    Slurm,
    /// `mpiexec` of MPICH, Intel MPI and MVAPICH.
    Hydra,
    /// `mpirun` and `mpiexec` of Open MPI.
    OpenMpi,
}

impl LauncherFamily {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            LauncherFamily::Slurm => "Slurm",
            LauncherFamily::Hydra => "MPICH hydra",
            LauncherFamily::OpenMpi => "Open MPI",
        }
    }
}

/// A launcher of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Launcher {
    /// As it is called.
    pub program: String,
    /// Whose options it takes.
    pub family: LauncherFamily,
    /// Its version; empty where it does not say.
    pub version: String,
    /// Plugins of `srun` by which ranks can find each other.
    pub plugins: Vec<String>,
}

const INSTALL: &str = "install MPICH (mpiexec) or Open MPI (mpirun), or use srun in an allocation of Slurm";

impl Launcher {
    /// The launcher of this name or path; `None` where there is none.
    ///
    /// # Errors
    /// There is a program of this name that does not say which launcher it is.
    pub fn find(program: &str) -> Result<Option<Launcher>, AssessError> {
        let error = |message: String| AssessError::usage(message, INSTALL);
        let output = match output_of(child::command(program).arg("--version"), PATIENCE) {
            Ok(output) => output,
            Err(ProgramFailure::Absent) => return Ok(None),
            Err(ProgramFailure::NotStarted(cause)) => {
                return Err(error(format!("cannot start {program}: {cause}")));
            }
            Err(ProgramFailure::TimedOut) => {
                return Err(error(format!("{program} --version did not end in {} s", PATIENCE.as_secs())));
            }
        };
        let text = format!("{}\n{}", output.stdout, output.stderr);
        let Some((family, version)) = identified(&text) else {
            let last = output.stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
            return Err(error(match last.filter(|_| output.code != Some(0)) {
                Some(said) => format!("{program} --version fails ({said})"),
                None => format!("unknown launcher {program}: not of Slurm, MPICH, Intel MPI or Open MPI"),
            }));
        };
        let plugins = if family == LauncherFamily::Slurm { plugins(program) } else { Vec::new() };
        Ok(Some(Launcher { program: program.to_owned(), family, version, plugins }))
    }

    /// The launcher that starts a job: the one that is named, else `srun` in an allocation of Slurm, `mpiexec`, or `mpirun`.
    ///
    /// # Errors
    /// There is none.
    pub fn chosen(named: Option<&str>, is_in_slurm: bool) -> Result<Launcher, AssessError> {
        if let Some(program) = named {
            let absent = || AssessError::usage(format!("cannot find the launcher {program}"), INSTALL);
            return Launcher::find(program)?.ok_or_else(absent);
        }
        let outside = ["mpiexec", "mpirun"];
        let candidates = ["srun"].into_iter().filter(|_| is_in_slurm).chain(outside);
        let mut first_error = None;
        for program in candidates {
            match Launcher::find(program) {
                Ok(Some(launcher)) => return Ok(launcher),
                Ok(None) => {}
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        let none = || AssessError::usage("cannot find a launcher: neither mpiexec nor mpirun", INSTALL);
        Err(first_error.unwrap_or_else(none))
    }

    /// The plugin of `srun` that ranks are started with; `None` where it has neither that fathom speaks.
    pub fn plugin(&self) -> Option<&'static str> {
        PLUGINS.into_iter().find(|name| self.plugins.iter().any(|known| known == name))
    }
}

/// The family and version that a launcher says it has.
fn identified(text: &str) -> Option<(LauncherFamily, String)> {
    let first = text.lines().find(|line| !line.trim().is_empty())?.trim();
    if let Some(version) = first.strip_prefix("slurm") {
        let version = version.trim_start_matches("-wlm").trim();
        return Some((LauncherFamily::Slurm, version.to_owned()));
    }
    if text.contains("Open MPI") || text.contains("OpenRTE") || text.contains("open-mpi.org") {
        let version = first.split_whitespace().next_back().unwrap_or_default();
        return Some((LauncherFamily::OpenMpi, version.to_owned()));
    }
    if text.contains("HYDRA") || text.contains("Intel(R) MPI Library") {
        let labelled = text.lines().find_map(|line| line.trim().strip_prefix("Version:"));
        let word = |text: &str| {
            let (_, behind) = text.split_once("Version ")?;
            behind.split_whitespace().next().map(str::to_owned)
        };
        let version = labelled.map(|version| version.trim().to_owned()).or_else(|| word(text));
        return Some((LauncherFamily::Hydra, version.unwrap_or_default()));
    }
    None
}

/// The plugins that `srun --mpi=list` names.
fn plugins(program: &str) -> Vec<String> {
    match output_of(child::command(program).arg("--mpi=list"), PATIENCE) {
        Ok(output) => listed_plugins(&format!("{}\n{}", output.stdout, output.stderr)),
        Err(_) => Vec::new(),
    }
}

fn listed_plugins(text: &str) -> Vec<String> {
    let words = text.split([' ', '\t', '\n', ':', ',']).map(str::trim);
    let mut found: Vec<String> = words.filter(|word| word.starts_with("pmi")).map(str::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

/// Most bytes of an output that are kept.
const MAX_BYTES: u64 = 1 << 20;
/// Time for the rest of an output of a program that has ended: a process that it left behind may keep the pipe open.
const REST: Duration = Duration::from_millis(500);

/// What a program printed, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgramOutput {
    /// Its exit code; `None` where a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Why there is no output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProgramFailure {
    /// There is no such program.
    Absent,
    /// It cannot be started.
    NotStarted(String),
    /// It did not end in time, and was ended.
    TimedOut,
}

/// Runs `command` with no input for at most `limit`.
pub(crate) fn output_of(command: &mut Command, limit: Duration) -> Result<ProgramOutput, ProgramFailure> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => ProgramFailure::Absent,
        _ => ProgramFailure::NotStarted(error.to_string()),
    })?;
    let stdout = child.stdout.take().map(collected);
    let stderr = child.stderr.take().map(collected);
    let Ok(Some(status)) = ended_within(&mut child, limit) else {
        // It may have ended in the meantime.
        let _ = child.kill();
        let _ = child.wait();
        return Err(ProgramFailure::TimedOut);
    };
    let text = |output: Option<Receiver<String>>| {
        output.and_then(|output| output.recv_timeout(REST).ok()).unwrap_or_default()
    };
    Ok(ProgramOutput { code: status.code(), stdout: text(stdout), stderr: text(stderr) })
}

/// Reads a pipe to its end on a thread of its own.
fn collected(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut pipe = pipe.take(MAX_BYTES);
        // What was read before an error counts.
        let _ = pipe.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// Most hosts of a list.
const MAX_HOSTS: usize = 16_384;
/// Longest name of a host.
const MAX_NAME: usize = 253;
/// Most digits of a number in brackets.
const MAX_DIGITS: usize = 9;

const BRACKETS: &str = "write h[1-4], h[01-16,20] or h1,h2";
const NAMES: &str =
    "names have letters, digits, dots, hyphens and underscores, and begin with a letter or digit";

/// The hosts of a list, in its order.
///
/// # Errors
/// It has a mistake, which is named with its place, or a host twice.
pub fn hosts(list: &str) -> Result<Vec<String>, AssessError> {
    let mut found = Vec::new();
    for (from, entry) in entries(list)? {
        let at = |error: EntryError| {
            let column = list[..from + error.at].chars().count() + 1;
            AssessError::usage(format!("{} in '{list}' at character {column}", error.message), error.hint)
        };
        expand(entry, &mut found).map_err(at)?;
    }
    each_once(found, |host| format!("host {host} is twice in '{list}'"))
}

fn each_once(hosts: Vec<String>, twice: impl Fn(&str) -> String) -> Result<Vec<String>, AssessError> {
    let mut known = BTreeSet::new();
    match hosts.iter().find(|host| !known.insert(host.as_str())) {
        Some(host) => Err(AssessError::usage(twice(host), "several ranks on a host: --per-host COUNT")),
        None => Ok(hosts),
    }
}

/// The hosts of a file: a list or a name a line, `#` begins a comment.
///
/// # Errors
/// A line has a mistake, which is named with its number; there is no host, or one twice.
pub fn hosts_of_file(text: &str, name: &str) -> Result<Vec<String>, AssessError> {
    let mut found: Vec<String> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let list = line.split('#').next().unwrap_or_default().trim();
        if list.is_empty() {
            continue;
        }
        let at = |error: AssessError| AssessError {
            message: format!("{name}:{}: {}", index + 1, error.message),
            ..error
        };
        found.extend(hosts(list).map_err(at)?);
    }
    if found.is_empty() {
        return Err(AssessError::usage(format!("{name} names no host"), "write a host a line"));
    }
    each_once(found, |host| format!("{name} names host {host} twice"))
}

/// The hosts as one list: names in a row that differ by a number only share brackets.
pub fn folded(hosts: &[String]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = hosts;
    while let Some(first) = rest.first() {
        let (prefix, digits) = split_number(first);
        let alike = |host: &&String| {
            let (theirs, number) = split_number(host);
            theirs == prefix && !number.is_empty()
        };
        let count = if digits.is_empty() { 1 } else { rest.iter().take_while(alike).count() };
        let (group, others) = rest.split_at(count);
        rest = others;
        parts.push(match group {
            [alone] => alone.clone(),
            _ => format!("{prefix}[{}]", ranges(group)),
        });
    }
    parts.join(",")
}

/// `1-4,08-10` of names with one prefix.
fn ranges(group: &[String]) -> String {
    let follows = |one: &String, next: &String| {
        let (one, next) = (split_number(one).1, split_number(next).1);
        let successor = one.parse::<u64>().ok().and_then(|number| number.checked_add(1));
        successor.is_some_and(|number| format!("{number:0width$}", width = one.len()) == next)
    };
    let text = |run: &[String]| match run {
        [first, .., last] => format!("{}-{}", split_number(first).1, split_number(last).1),
        [one] => split_number(one).1.to_owned(),
        [] => String::new(),
    };
    group.chunk_by(follows).map(text).collect::<Vec<_>>().join(",")
}

/// What stands before the number at the end of a name, and the number.
fn split_number(host: &str) -> (&str, &str) {
    let prefix = host.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &host[prefix.len()..];
    // A name of digits alone, and a number too long to count with, are names.
    if prefix.is_empty() || digits.len() > MAX_DIGITS { (host, "") } else { (prefix, digits) }
}

/// A mistake, and its place within an entry.
struct EntryError {
    at: usize,
    message: String,
    hint: &'static str,
}

impl EntryError {
    fn new(at: usize, message: impl Into<String>, hint: &'static str) -> EntryError {
        EntryError { at, message: message.into(), hint }
    }
}

/// The parts between commas outside of brackets, with their places.
fn entries(list: &str) -> Result<Vec<(usize, &str)>, AssessError> {
    let mut found = Vec::new();
    let (mut from, mut is_inside) = (0, false);
    for (at, letter) in list.char_indices() {
        match letter {
            '[' => is_inside = true,
            ']' => is_inside = false,
            ',' if !is_inside => {
                found.push((from, &list[from..at]));
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push((from, &list[from..]));
    match found.iter().find(|(_, entry)| entry.trim().is_empty()) {
        Some(_) if list.trim().is_empty() => Err(AssessError::usage("the list of hosts is empty", BRACKETS)),
        Some((at, _)) => {
            let column = list[..*at].chars().count() + 1;
            Err(AssessError::usage(format!("no host in '{list}' at character {column}"), BRACKETS))
        }
        None => Ok(found),
    }
}

/// Adds the hosts of one entry.
fn expand(entry: &str, found: &mut Vec<String>) -> Result<(), EntryError> {
    let trimmed = entry.trim();
    let skipped = entry.len() - entry.trim_start().len();
    let mut names = vec![String::new()];
    let mut rest = trimmed;
    while !rest.is_empty() {
        let at = skipped + trimmed.len() - rest.len();
        let end = rest.find(['[', ']']).unwrap_or(rest.len());
        let (plain, tail) = rest.split_at(end);
        check_letters(plain, at)?;
        names.iter_mut().for_each(|name| name.push_str(plain));
        rest = tail;
        if rest.is_empty() {
            break;
        }
        let at = at + end;
        let Some(inner) = rest.strip_prefix('[') else {
            return Err(EntryError::new(at, "] without [", BRACKETS));
        };
        let Some(close) = inner.find(']') else {
            return Err(EntryError::new(at, "[ without ]", BRACKETS));
        };
        let numbers = numbers(&inner[..close], at + 1)?;
        if names.len().saturating_mul(numbers.len()).saturating_add(found.len()) > MAX_HOSTS {
            return Err(EntryError::new(at, format!("more than {MAX_HOSTS} hosts"), "name fewer hosts"));
        }
        let with = |name: &String| numbers.iter().map(|number| format!("{name}{number}")).collect::<Vec<_>>();
        names = names.iter().flat_map(with).collect();
        rest = &inner[close + 1..];
    }
    for name in &names {
        // A name that begins with a hyphen would be an option of ssh.
        let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !begins_well || name.len() > MAX_NAME {
            return Err(EntryError::new(skipped, format!("'{name}' cannot be a host name"), NAMES));
        }
    }
    found.extend(names);
    Ok(())
}

fn check_letters(plain: &str, at: usize) -> Result<(), EntryError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    match plain.char_indices().find(|(_, letter)| !is_allowed(*letter)) {
        Some((place, letter)) => Err(EntryError::new(at + place, format!("unexpected '{letter}'"), NAMES)),
        None => Ok(()),
    }
}

/// The numbers of `1-4,08`, as texts with their zeros.
fn numbers(text: &str, at: usize) -> Result<Vec<String>, EntryError> {
    let mut found = Vec::new();
    let mut from = at;
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let read = |number: &str| {
            let is_number = !number.is_empty()
                && number.len() <= MAX_DIGITS
                && number.bytes().all(|byte| byte.is_ascii_digit());
            number.parse::<u64>().ok().filter(|_| is_number)
        };
        let (Some(low), Some(high)) = (read(first), read(last)) else {
            return Err(EntryError::new(from, format!("'{part}' is neither a number nor a range"), BRACKETS));
        };
        if high < low {
            return Err(EntryError::new(from, format!("the range {part} runs backwards"), BRACKETS));
        }
        if (high - low) as usize >= MAX_HOSTS {
            return Err(EntryError::new(from, format!("more than {MAX_HOSTS} hosts"), "name fewer hosts"));
        }
        let width = if first.starts_with('0') { first.len() } else { 1 };
        found.extend((low..=high).map(|number| format!("{number:0width$}")));
        from += part.len() + 1;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(family: LauncherFamily, names: &[&str], origin: HostOrigin, per_host: u32) -> LaunchPlan {
        let program = match family {
            LauncherFamily::Slurm => "srun",
            LauncherFamily::Hydra => "mpiexec",
            LauncherFamily::OpenMpi => "mpirun",
        };
        LaunchPlan {
            launcher: Launcher {
                program: program.to_owned(),
                family,
                version: String::new(),
                plugins: vec!["pmi2".to_owned()],
            },
            hosts: JobHosts { names: names.iter().map(|name| (*name).to_owned()).collect(), origin },
            per_host,
            exported: vec!["FATHOM_HISTORY".to_owned()],
            is_root: true,
            command: ["fathom", "bench", "--fleet", "/mnt"].map(str::to_owned).to_vec(),
        }
    }

    #[test]
    fn each_launcher_has_its_options() {
        use HostOrigin::{Local, Named, Scheduler};
        use LauncherFamily::{Hydra, OpenMpi, Slurm};
        let hosts = &["h1", "h2", "h3"][..];
        for (plan, expected) in [
            (
                plan(Slurm, hosts, Scheduler("Slurm"), 2),
                "srun --mpi=pmi2 --nodes=3 --ntasks=6 --ntasks-per-node=2 --nodelist=h[1-3] --cpu-bind=none \
                 --kill-on-bad-exit=0 --wait=0",
            ),
            (plan(Hydra, hosts, Named, 1), "mpiexec -launcher ssh -hosts h1,h2,h3 -ppn 1 -n 3"),
            (plan(Hydra, hosts, Scheduler("PBS"), 2), "mpiexec -hosts h1,h2,h3 -ppn 2 -n 6"),
            (plan(Hydra, &[], Local, 4), "mpiexec -n 4"),
            (
                plan(OpenMpi, hosts, Named, 2),
                "mpirun --allow-run-as-root --bind-to none -n 6 --host h1:2,h2:2,h3:2 -x FATHOM_HISTORY",
            ),
            (
                plan(OpenMpi, &[], Local, 4),
                "mpirun --allow-run-as-root --bind-to none -n 4 --host localhost:4 -x FATHOM_HISTORY",
            ),
        ] {
            let expected = format!("{expected} fathom bench --fleet /mnt");
            assert_eq!(plan.words().map(|words| words.join(" ")), Ok(expected));
        }
        let mut without = plan(Slurm, hosts, Named, 1);
        without.launcher.plugins.clear();
        assert!(without.words().is_err());
    }

    #[test]
    fn schedulers_tell_the_hosts() {
        let found = |set: &[(&str, &str)], file: &str| {
            let variable =
                |name: &str| set.iter().find(|known| known.0 == name).map(|known| known.1.to_owned());
            JobHosts::of(Vec::new(), &variable, &|_| Ok(file.to_owned()))
        };
        let of = |names: &[&str], origin| {
            Ok(JobHosts { names: names.iter().map(|name| (*name).to_owned()).collect(), origin })
        };
        let slurm = [("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", "n[1-2]")];
        assert_eq!(found(&slurm, ""), of(&["n1", "n2"], HostOrigin::Scheduler("Slurm")));
        let pbs = [("PBS_NODEFILE", "/x")];
        assert_eq!(found(&pbs, "n1\nn1\nn2\n"), of(&["n1", "n2"], HostOrigin::Scheduler("PBS")));
        let engine = [("PE_HOSTFILE", "/x")];
        let file = "n1 4 all.q@n1 UNDEFINED\nn2 4 all.q@n2 UNDEFINED\n";
        assert_eq!(found(&engine, file), of(&["n1", "n2"], HostOrigin::Scheduler("Grid Engine")));
        let hydra = [("HYDRA_HOST_FILE", "/x")];
        let file = "fathom-worker-0.fathom:1\nfathom-worker-1.fathom:1\n";
        let pods = ["fathom-worker-0.fathom", "fathom-worker-1.fathom"];
        assert_eq!(found(&hydra, file), of(&pods, HostOrigin::Scheduler("hydra")));
        assert_eq!(found(&[], ""), of(&[], HostOrigin::Local));
    }

    #[test]
    fn series_double_the_hosts_and_then_the_ranks_on_each() {
        let ranks = |hosts, per_host| -> Vec<u32> {
            scale_steps(hosts, per_host).into_iter().map(ScaleStep::ranks).collect()
        };
        assert_eq!(ranks(64, 1), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(ranks(6, 1), [1, 2, 4, 6]);
        assert_eq!(ranks(3, 4), [1, 2, 3, 6, 12]);
        assert_eq!(ranks(1, 1), [1]);
        let step = |ranks| ScaleStep::of(ranks, 3, 4).map(|step| (step.hosts, step.per_host));
        assert_eq!((step(2), step(6)), (Ok((2, 1)), Ok((3, 2))));
        assert!(step(0).is_err() && step(7).is_err() && step(13).is_err());
    }

    #[test]
    fn launchers_are_known_by_what_they_say() {
        let hydra =
            "HYDRA build details:\n    Version:                                 4.0.2\n    Release Date: x\n";
        let intel = "Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307 (id: d82b3071db)\n";
        for (text, expected) in [
            ("slurm-wlm 22.05.8\n", Some((LauncherFamily::Slurm, "22.05.8"))),
            ("slurm 24.11.1\n", Some((LauncherFamily::Slurm, "24.11.1"))),
            (
                "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n",
                Some((LauncherFamily::OpenMpi, "4.1.4")),
            ),
            ("mpiexec (OpenRTE) 4.1.4\n", Some((LauncherFamily::OpenMpi, "4.1.4"))),
            (hydra, Some((LauncherFamily::Hydra, "4.0.2"))),
            (intel, Some((LauncherFamily::Hydra, "2021.9"))),
            ("GNU bash, version 5\n", None),
            ("", None),
        ] {
            let expected = expected.map(|(family, version)| (family, version.to_owned()));
            assert_eq!(identified(text), expected, "{text}");
        }
    }

    #[test]
    fn plugins_of_old_and_new_slurm() {
        let old = "srun: MPI types are...\nsrun: pmi2\nsrun: cray_shasta\nsrun: none\n";
        let new = "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\nspecific pmix plugin versions available: pmix_v4\n";
        assert_eq!(listed_plugins(old), ["pmi2"]);
        assert_eq!(listed_plugins(new), ["pmi2", "pmix", "pmix_v4"]);
        let launcher = |text: &str| Launcher {
            program: "srun".to_owned(),
            family: LauncherFamily::Slurm,
            version: String::new(),
            plugins: listed_plugins(text),
        };
        assert_eq!(launcher(new).plugin(), Some("pmi2"));
        assert_eq!(launcher("\tpmix\n\tpmix_v4\n").plugin(), Some("pmix"));
        assert_eq!(launcher("\tnone\n").plugin(), None);
    }

    fn shell(script: &str, limit_ms: u64) -> Result<ProgramOutput, ProgramFailure> {
        output_of(Command::new("/bin/sh").args(["-c", script]), Duration::from_millis(limit_ms))
    }

    #[test]
    fn output_and_code_are_kept() {
        let output = shell("echo out; echo err >&2; exit 3", 60_000).unwrap();
        assert_eq!(
            (output.code, output.stdout.as_str(), output.stderr.as_str()),
            (Some(3), "out\n", "err\n")
        );
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        assert_eq!(shell("sleep 600", 50), Err(ProgramFailure::TimedOut));
        let absent = output_of(&mut Command::new("/nonexistent/program"), Duration::from_secs(1));
        assert_eq!(absent, Err(ProgramFailure::Absent));
    }

    #[test]
    fn brackets_hold_ranges_and_lists() {
        for (list, expected) in [
            ("h1", &["h1"][..]),
            ("h[1-3]", &["h1", "h2", "h3"]),
            ("h[08-10]", &["h08", "h09", "h10"]),
            ("h[1,3,5-6].lan, login", &["h1.lan", "h3.lan", "h5.lan", "h6.lan", "login"]),
            ("r[1-2]n[1-2]", &["r1n1", "r1n2", "r2n1", "r2n2"]),
            ("h[001]", &["h001"]),
            ("10.0.0.[1-2]", &["10.0.0.1", "10.0.0.2"]),
        ] {
            assert_eq!(
                hosts(list).as_deref(),
                Ok(&expected.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>()[..]),
                "{list}"
            );
        }
        assert_eq!(hosts("h[1-10000]").map(|hosts| hosts.len()), Ok(10_000));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (list, expected) in [
            ("", "the list of hosts is empty"),
            ("h1,,h2", "no host in 'h1,,h2' at character 4"),
            ("h[1-3", "[ without ] in 'h[1-3' at character 2"),
            ("h1-3]", "] without [ in 'h1-3]' at character 5"),
            ("h1,h[3-1]", "the range 3-1 runs backwards in 'h1,h[3-1]' at character 6"),
            ("h[1,x]", "'x' is neither a number nor a range in 'h[1,x]' at character 5"),
            ("h[1-]", "'1-' is neither a number nor a range in 'h[1-]' at character 3"),
            ("h[]", "'' is neither a number nor a range in 'h[]' at character 3"),
            ("root@h1", "unexpected '@' in 'root@h1' at character 5"),
            (
                "h1,-oProxyCommand",
                "'-oProxyCommand' cannot be a host name in 'h1,-oProxyCommand' at character 4",
            ),
            ("h[1-3],h2", "host h2 is twice in 'h[1-3],h2'"),
            ("h[0-99999999]", "more than 16384 hosts in 'h[0-99999999]' at character 3"),
        ] {
            assert_eq!(hosts(list).map_err(|error| error.message), Err(expected.to_owned()), "{list}");
        }
    }

    #[test]
    fn files_have_a_list_a_line() {
        let text = "# racks\nh[1-2]\n\nh3 # the third\n";
        assert_eq!(hosts_of_file(text, "hosts").map(|hosts| hosts.join(" ")), Ok("h1 h2 h3".to_owned()));
        let message = |text: &str| hosts_of_file(text, "hosts").unwrap_err().message;
        assert_eq!(message("h1\nh[2\n"), "hosts:2: [ without ] in 'h[2' at character 2");
        assert_eq!(message("h1\nh1\n"), "hosts names host h1 twice");
        assert_eq!(message("# none\n"), "hosts names no host");
    }

    #[test]
    fn lists_are_folded_and_read_again() {
        for (list, expected) in [
            ("h1,h2,h3", "h[1-3]"),
            ("h08,h09,h10", "h[08-10]"),
            ("h9,h10,h12", "h[9-10,12]"),
            ("a,b", "a,b"),
            ("h1,x,h2", "h1,x,h2"),
            ("h1.lan,h2.lan", "h1.lan,h2.lan"),
        ] {
            let named = hosts(list).unwrap();
            assert_eq!(folded(&named), expected, "{list}");
            assert_eq!(hosts(expected).unwrap(), named, "{list}");
        }
    }
}
