//! A job of `fathom fio --fleet` on the hosts of a cluster whose ranks can be held at each stage, so that something can be done to
//! them there for sure.
//!
//! What the launcher starts is a script that becomes the rank, and the job runs the same script before and after its I/O
//! (`exec_prerun`, `exec_postrun`): a file with the number of the rank holds it there until it is removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::cluster::{Cluster, Launcher};
use crate::fathom::fathom_path;
use crate::program::{Ended, Program};
use crate::shell::scratch;

/// Processes on each host.
const PER_HOST: usize = 2;

/// Where a rank can be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Before the program begins, so that it has not joined the job.
    Begin,
    /// Before its first I/O, as if it took long to prepare.
    Prepare,
    /// After its last I/O, before it writes its record.
    End,
}

impl Stage {
    const fn name(self) -> &'static str {
        match self {
            Stage::Begin => "begin",
            Stage::Prepare => "prepare",
            Stage::End => "end",
        }
    }
}

/// The job.
pub(crate) struct StagedJob<'a> {
    cluster: &'a Cluster,
    launcher: Launcher,
    directory: TempDir,
    /// Where ranks write their records.
    out: PathBuf,
    program: Option<Program>,
}

impl<'a> StagedJob<'a> {
    /// Processes of a job.
    pub const RANKS: usize = 3 * PER_HOST;

    pub fn new(cluster: &'a Cluster, launcher: Launcher) -> StagedJob<'a> {
        let directory = scratch();
        for (name, text) in
            [("rank.sh", include_str!("staged_job/rank.sh")), ("hold.sh", include_str!("staged_job/hold.sh"))]
        {
            fs::write(directory.path().join(name), text).expect("the directory is new and ours");
        }
        let out = directory.path().join("out");
        StagedJob { cluster, launcher, directory, out, program: None }
    }

    /// Has the ranks keep their records in the small directory of the cluster, which has `room` bytes left for them.
    pub fn keep_in_small_directory(&mut self, room: usize) {
        let name = self.directory.path().file_name().expect("it has a name");
        self.out = self.cluster.small_directory().join(name);
        let out = self.seen_out();
        fs::create_dir(&out).expect("no other job uses it");
        // The file system itself says how much there is.
        let filler = out.join("filler");
        let mut text = vec![0_u8; 4096];
        while fs::write(&filler, &text).is_ok() {
            text.resize(text.len() + 4096, 0);
        }
        text.truncate(text.len().saturating_sub(room + 4096));
        fs::write(&filler, &text).expect("there was more room before");
    }

    /// Has `rank` wait at a stage.
    pub fn hold(&self, stage: Stage, rank: usize) {
        fs::write(self.file("hold", stage, rank), "").expect("own directory");
    }

    /// Lets `rank` go on.
    pub fn release(&self, stage: Stage, rank: usize) {
        let _ = fs::remove_file(self.file("hold", stage, rank));
    }

    /// True once `rank` has come to a stage.
    pub fn is_at(&self, stage: Stage, rank: usize) -> bool {
        self.file("at", stage, rank).exists()
    }

    fn file(&self, what: &str, stage: Stage, rank: usize) -> PathBuf {
        self.directory.path().join(format!("{what}-{}-{rank}", stage.name()))
    }

    /// Has `rank` be `program`.
    pub fn replace(&self, rank: usize, program: &Path, argument: &str) {
        let line = format!("exec '{}' '{argument}'\n", program.display());
        fs::write(self.directory.path().join(format!("instead-{rank}")), line).expect("own directory");
    }

    /// Starts the ranks: each reads a file of its own with these options.
    pub fn start(&mut self, options: &[String]) {
        let at = self.directory.path();
        let mut command = self.cluster.launch(self.launcher, self.cluster.hosts(), PER_HOST);
        command.env("HOME", at).env_remove("XDG_DATA_HOME").env("NO_COLOR", "1");
        command.arg("sh").arg(at.join("rank.sh")).arg(at);
        command.arg(fathom_path()).args(["fio", "--name=a", "--ioengine=sync", "--rw=read", "--bs=64k"]);
        command.args(["--size=4m", "--time_based", "--rate_iops=100", "--output-format=json", "--fleet"]);
        command.arg(format!("--directory={}", at.display())).arg("--filename=data-${fathom_RANK}");
        command.arg(format!("--fleet-out={}", self.out.display()));
        for (option, stage) in [("exec_prerun", Stage::Prepare), ("exec_postrun", Stage::End)] {
            let hold = at.join("hold.sh");
            command.arg(format!("--{option}=sh {} {} {}", hold.display(), at.display(), stage.name()));
        }
        self.program = Some(Program::start(command.args(options)));
    }

    /// Waits for the end of the launcher; `None` where it has not ended within `limit`.
    pub fn ended_within(&mut self, limit: Duration) -> Option<Ended> {
        self.program.as_mut()?.ended_within(limit)
    }

    /// What the launcher has printed so far.
    pub fn printed(&self) -> String {
        self.program.as_ref().map_or_else(String::new, |program| program.stdout() + &program.stderr())
    }

    /// The host of a rank.
    pub fn host_of(&self, rank: usize) -> &'static str {
        self.cluster.hosts()[rank / PER_HOST]
    }

    /// The processes that are ranks, in the order of their numbers.
    pub fn ranks(&self) -> Vec<(usize, Pid)> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let mut found: Vec<(usize, Pid)> =
            numbers.filter_map(|number| Some((self.rank_of(number)?, Pid::from_raw(number)?))).collect();
        found.sort_by_key(|(rank, process)| (*rank, process.as_raw_nonzero()));
        found
    }

    /// The number of the rank that a process is: the launcher tells it, and the shells that hold it have it as well.
    fn rank_of(&self, process: i32) -> Option<usize> {
        let words = |name: &str| {
            let text = fs::read(format!("/proc/{process}/{name}")).unwrap_or_default();
            text.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
        };
        let arguments: Vec<String> = words("cmdline");
        let at = self.directory.path();
        let is_program = arguments.first().is_some_and(|first| Path::new(first) == fathom_path());
        let is_script = arguments.get(1).is_some_and(|second| Path::new(second) == at.join("rank.sh"));
        let at = at.display().to_string();
        if !(is_script || is_program && arguments.iter().any(|word| word.contains(&at))) {
            return None;
        }
        let environment: Vec<String> = words("environ");
        let rank = |name: &str| environment.iter().find_map(|word| word.strip_prefix(name)?.parse().ok());
        rank("PMI_RANK=").or_else(|| rank("PMIX_RANK="))
    }

    /// The process of `rank`, once it runs the program or is held before that.
    pub fn process(&self, rank: usize) -> Option<Pid> {
        self.ranks().into_iter().find_map(|(number, process)| (number == rank).then_some(process))
    }

    /// True once `rank` runs the program.
    pub fn has_begun(&self, rank: usize) -> bool {
        let program = |process: Pid| fs::read_link(format!("/proc/{}/exe", process.as_raw_nonzero()));
        self.process(rank).is_some_and(|process| program(process).is_ok_and(|path| path == fathom_path()))
    }

    /// The last meeting that a rank came to.
    pub fn mark(&self, rank: usize) -> Option<Value> {
        let text = fs::read_to_string(self.seen_out().join(format!(".rank-{rank:05}.mark"))).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// The record of a rank, or what it has so far.
    pub fn record(&self, rank: usize) -> Option<PathBuf> {
        let out = self.seen_out();
        let files = ["json", "partial"].map(|end| out.join(format!("rank-{rank:05}.{end}")));
        files.into_iter().find(|file| file.exists())
    }

    /// The directory of the records, by its name outside.
    fn seen_out(&self) -> PathBuf {
        if self.out.starts_with(self.directory.path()) {
            self.out.clone()
        } else {
            self.cluster.seen_from_outside(&self.out)
        }
    }

    /// A directory for the user's own files.
    pub fn home(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for StagedJob<'_> {
    fn drop(&mut self) {
        if self.seen_out() != self.out {
            let _ = fs::remove_dir_all(self.seen_out());
        }
    }
}

/// True where a process has read more than it reads before it measures.
pub fn is_measuring(process: Pid) -> bool {
    let counters = fs::read_to_string(format!("/proc/{}/io", process.as_raw_nonzero())).unwrap_or_default();
    let bytes = counters.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse::<u64>().ok());
    bytes.is_some_and(|bytes| bytes > 2 << 20)
}
