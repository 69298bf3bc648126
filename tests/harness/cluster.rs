//! A cluster of four hosts on this machine, with ssh and Slurm, for the launchers of parallel jobs.
//!
//! Hosts are namespaces: each has its own network behind a bridge, host name and sshd; they share the kernel, the clock and the
//! files. One more namespace holds all their processes: it ends with the test process, however that ends, and takes the
//! processes, networks and mounts with it; nothing of the machine outside is changed.

mod settings;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::shell::{must_run, scratch, try_run};
use crate::skip::{Need, missing, skip};
use crate::wait::wait_patiently;

/// The hosts; launchers run on the first, and start processes on the others.
const HOSTS: [&str; 4] = ["h0", "h1", "h2", "h3"];
/// How long the processes of a job that has ended may go on, and Slurm's hosts may be busy.
const SETTLING: Duration = Duration::from_secs(4);

/// How processes of a job are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// MPICH's hydra over ssh, with PMI-1.
    Mpiexec,
    /// Slurm with PMI-2.
    SrunPmi2,
    /// Slurm with PMIx.
    SrunPmix,
    /// Open MPI over ssh, with PMIx.
    Mpirun,
    /// Slurm without any interface.
    Srun,
}

impl Launcher {
    /// Those that let the processes of a job meet.
    pub const MEETING: [Launcher; 4] =
        [Launcher::Mpiexec, Launcher::SrunPmi2, Launcher::SrunPmix, Launcher::Mpirun];

    /// A word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Launcher::Mpiexec => "mpiexec",
            Launcher::SrunPmi2 => "srun-pmi2",
            Launcher::SrunPmix => "srun-pmix",
            Launcher::Mpirun => "mpirun",
            Launcher::Srun => "srun",
        }
    }
}

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    directory: PathBuf,
    /// The first process of the namespaces.
    first_process: u32,
    /// The processes on its hosts before any job.
    services: Vec<Pid>,
    /// Removes the directory at the end; its standard input ends with this process.
    undertaker: Child,
}

impl Cluster {
    /// What a cluster consists of.
    pub const NEEDS: &[Need] = &[
        Need::Root,
        Need::Tool("ip"),
        Need::Tool("mpiexec.mpich"),
        Need::Tool("mpirun.openmpi"),
        Need::Tool("munged"),
        Need::Tool("nsenter"),
        Need::Tool("slurmctld"),
        Need::Tool("slurmd"),
        Need::Tool("srun"),
        Need::Tool("ssh"),
        Need::Tool("sshd"),
        Need::Tool("unshare"),
    ];

    /// The cluster for all tests of a process, which must not harm it; `None`, and says so, where the machine cannot have one.
    ///
    /// # Panics
    /// When it cannot be started, or may not be skipped.
    pub fn shared() -> Option<&'static Cluster> {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        is_possible().then(|| SHARED.get_or_init(Cluster::with_services))
    }

    /// As [`Cluster::shared`], one for the test alone.
    pub fn start() -> Option<Cluster> {
        is_possible().then(Cluster::with_services)
    }

    fn with_services() -> Cluster {
        let directory = scratch().keep();
        settings::write(&directory, &HOSTS);
        let script = directory.join("start.sh");
        fs::write(&script, include_str!("cluster/start.sh")).expect("the directory is new and ours");
        let mut undertaker = undertaker(&directory, &script);
        let said = undertaker.stdout.take().expect("its output is in a pipe");
        let first = BufReader::new(said).lines().map_while(Result::ok).next();
        let first_process = descendant(undertaker.id(), 2).unwrap_or_default();
        let mut cluster = Cluster { directory, first_process, services: Vec::new(), undertaker };
        assert!(first.as_deref() == Some("up"), "the cluster did not start:\n{}", cluster.log());
        cluster.services = cluster.on_all_hosts().collect();
        cluster
    }

    /// The names of the hosts on which launchers start processes.
    pub fn hosts(&self) -> &'static [&'static str] {
        &HOSTS[1..]
    }

    /// The command that starts `per_host` processes on each of `hosts`, to be completed by a program and its arguments.
    pub fn launch(&self, launcher: Launcher, hosts: &[&str], per_host: usize) -> Command {
        let count = (hosts.len() * per_host).to_string();
        let per_host = per_host.to_string();
        let list = hosts.join(",");
        match launcher {
            Launcher::Mpiexec => {
                let mut command = self.on(HOSTS[0], "mpiexec.mpich");
                command.args(["-launcher", "ssh", "-hosts", &list, "-ppn", &per_host, "-n", &count]);
                command
            }
            Launcher::Mpirun => {
                let mut command = self.on(HOSTS[0], "mpirun.openmpi");
                let slots: Vec<String> = hosts.iter().map(|host| format!("{host}:{per_host}")).collect();
                command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-x", "HOME"]);
                command.args(["--mca", "oob_tcp_if_include", "10.77.0.0/24"]);
                command.args(["--mca", "orte_tmpdir_base"]).arg(&self.directory);
                command.args(["--host", &slots.join(","), "-n", &count]);
                command
            }
            Launcher::SrunPmi2 => self.srun("pmi2", &list, hosts.len(), &per_host),
            Launcher::SrunPmix => self.srun("pmix", &list, hosts.len(), &per_host),
            Launcher::Srun => self.srun("none", &list, hosts.len(), &per_host),
        }
    }

    fn srun(&self, interface: &str, list: &str, nodes: usize, per_host: &str) -> Command {
        let mut command = self.on(HOSTS[0], "srun");
        command.arg(format!("--mpi={interface}")).args(["--nodelist", list]);
        command.arg(format!("--nodes={nodes}")).arg(format!("--ntasks-per-node={per_host}"));
        command
    }

    /// A command that runs `program` on a host; a signal to it is one to the program.
    pub fn on(&self, host: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        // It is mounted inside only.
        let of_host = |kind: &str| format!("--{kind}={}", self.name_space(host, kind).display());
        // The root of its mounts is not that of the hosts where the tests themselves run in a changed root.
        command.arg(format!("--target={}", self.first_process)).args(["--mount", "--root", "--wd"]);
        command.args([of_host("net"), of_host("uts")]);
        // Its process stays outside, where its parent can wait for it, and needs the list of processes that it is in.
        command.args([
            "--",
            "unshare",
            "--mount",
            "sh",
            "-c",
            "mount -t proc proc /proc && exec \"$@\"",
            "sh",
        ]);
        command.arg(program);
        command.env("SLURM_CONF", self.directory.join("slurm.conf"));
        command
    }

    /// Cuts the cable of a host.
    pub fn cut(&self, host: &str) {
        self.set_link(host, "down");
    }

    /// Mends the cable of a host.
    pub fn mend(&self, host: &str) {
        self.set_link(host, "up");
    }

    fn set_link(&self, host: &str, state: &str) {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.first_process)).arg("--net");
        must_run(command.args(["--", "ip", "link", "set", &format!("to-{host}"), state]));
    }

    /// A directory of 512 KiB that all hosts share, to be named to their processes.
    pub fn small_directory(&self) -> PathBuf {
        self.directory.join("small")
    }

    /// The name outside of a file that is mounted inside.
    pub fn seen_from_outside(&self, path: &Path) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{}", self.first_process, path.display()))
    }

    /// Ends what a job has left on the hosts; true where another one can run on them as if it were the first.
    pub fn settles(&self) -> bool {
        let left = || self.on_all_hosts().filter(|process| !self.services.contains(process));
        if !wait_patiently(SETTLING, || left().next().is_none()) {
            for process in left() {
                let _ = kill_process(process, Signal::KILL);
            }
        }
        let are_gone = wait_patiently(SETTLING, || left().next().is_none());
        are_gone && wait_patiently(SETTLING, || self.has_idle_hosts())
    }

    /// True where Slurm can start processes on all hosts.
    fn has_idle_hosts(&self) -> bool {
        let mut asked = self.on(HOSTS[0], "sinfo");
        asked.args(["--noheader", "--Node", "--states=idle", "--responding", "--format=%N"]);
        let answer = asked.output().map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&answer).lines().count() == self.hosts().len()
    }

    fn on_all_hosts(&self) -> impl Iterator<Item = Pid> {
        HOSTS.iter().flat_map(|host| self.all_processes(host))
    }

    /// The processes of `program` on a host, by their numbers outside the cluster.
    pub fn processes(&self, host: &str, program: &Path) -> Vec<Pid> {
        // By the file itself: below another root, the path of a process on a host is not ours.
        let program = identity(program);
        let runs = |pid: &Pid| identity(Path::new(&format!("/proc/{}/exe", pid.as_raw_nonzero()))) == program;
        if program.is_some() {
            self.all_processes(host).into_iter().filter(runs).collect()
        } else {
            Vec::new()
        }
    }

    fn name_space(&self, host: &str, kind: &str) -> PathBuf {
        self.seen_from_outside(&self.directory.join(format!("{host}.{kind}")))
    }

    fn all_processes(&self, host: &str) -> Vec<Pid> {
        let of_host = identity(&self.name_space(host, "uts"));
        let is_of_host = |number: &i32| identity(Path::new(&format!("/proc/{number}/ns/uts"))) == of_host;
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let found = numbers.filter(is_of_host).filter_map(Pid::from_raw);
        if of_host.is_some() { found.collect() } else { Vec::new() }
    }

    /// The messages of all services.
    pub fn log(&self) -> String {
        let inside = ["", "slurm"].map(|part| fs::read_dir(self.directory.join(part)));
        let files = inside.into_iter().flatten().flatten().flatten();
        let is_log =
            |path: &Path| path.extension().is_some_and(|end| ["log", "out"].iter().any(|name| end == *name));
        let logs = files.map(|file| file.path()).filter(|path| is_log(path));
        logs.map(|path| format!("-- {}\n{}", path.display(), fs::read_to_string(&path).unwrap_or_default()))
            .collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A launcher that was killed leaves helpers outside the namespace of processes.
        for process in self.on_all_hosts() {
            let _ = kill_process(process, Signal::KILL);
        }
        drop(self.undertaker.stdin.take());
        let _ = self.undertaker.wait();
    }
}

/// The device and the inode of a file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).map(|file| (file.dev(), file.ino())).ok()
}

fn is_possible() -> bool {
    let why = missing(Cluster::NEEDS);
    if let Some(why) = &why {
        skip(why);
    }
    why.is_none()
}

/// Runs the script in its own namespaces until the input ends, then removes `directory`; in a session of its own, so that no signal
/// for the tests ends it.
fn undertaker(directory: &Path, script: &Path) -> Child {
    const UNDERTAKER: &str = "dir=$1 script=$2; shift 2
        unshare --fork --kill-child --pid --mount-proc --mount --net --uts -- sh \"$script\" \"$dir\" \"$@\" <&0
        cd / && rm -rf --one-file-system \"$dir\"";
    let log = File::create(directory.join("start.log")).expect("the directory is new and ours");
    let mut command = Command::new("setsid");
    command.args(["sh", "-c", UNDERTAKER, "undertaker"]).arg(directory).arg(script).args(HOSTS);
    command.env("SLURM_CONF", directory.join("slurm.conf"));
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn();
    spawned.unwrap_or_else(|error| {
        try_run(Command::new("rm").arg("-rf").arg(directory));
        panic!("cannot run setsid: {error}")
    })
}

/// The only process `generations` below a process.
fn descendant(process: u32, generations: u32) -> Option<u32> {
    if generations == 0 {
        return Some(process);
    }
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    descendant(children.split_whitespace().next()?.parse().ok()?, generations - 1)
}
