//! The command line that starts the ranks of a job, in the options of each launcher.

use std::io::{ErrorKind, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use fathom_sys::child::{self, ended_within};
use serde::Serialize;

use super::hosts::{folded, hosts, hosts_of_file};
use crate::AssessError;

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
                None => format!("{program} is no launcher of Slurm, MPICH, Intel MPI or Open MPI"),
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
}
