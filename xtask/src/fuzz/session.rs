//! One running target: first the regression inputs, then libFuzzer's inputs until the time is over.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::{Places, corpus, finding};

/// Longest that one input may take.
const TIMEOUT_SECONDS: u32 = 10;
/// Most memory of the process, and most that the target may allocate (enforced by `fuzz/src/lib.rs`).
const MEMORY_MIB: u32 = 1024;

/// A target about to run.
pub struct FuzzSession<'a> {
    pub places: &'a Places,
    pub name: &'a str,
    pub program: &'a Path,
    pub seconds: u64,
}

/// The result.
#[derive(Debug, Default)]
pub struct FuzzTally {
    pub name: String,
    /// Inputs that were tried.
    pub runs: u64,
    /// Edges of the code that some input took.
    pub edges: u64,
    /// Inputs worth keeping, and their bytes as libFuzzer shows them.
    pub kept: String,
    pub cpu_seconds: f64,
    /// The finding, and the command that reproduces it.
    pub finding: Option<String>,
}

impl FuzzTally {
    pub const HEAD: &str = "target                runs   edges          corpus     CPU s  finding";
}

impl fmt::Display for FuzzTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FuzzTally { name, runs, edges, kept, cpu_seconds, finding } = self;
        let found = finding.as_deref().and_then(|text| text.lines().next()).unwrap_or("none");
        write!(f, "{name:<14} {runs:>11} {edges:>7} {kept:>15} {cpu_seconds:>9.1}  {found}")
    }
}

impl FuzzSession<'_> {
    /// Runs it.
    pub fn run(&self) -> anyhow::Result<FuzzTally> {
        let seeds = corpus::write_seeds(self.places, self.name)?;
        let dictionary = corpus::write_dictionary(self.places, self.name)?;
        let corpus = self.places.corpus(self.name);
        let findings = self.places.findings(self.name);
        for directory in [&corpus, &findings] {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("cannot make {}", directory.display()))?;
        }
        let past = self.past()?;
        if !past.is_empty() {
            let tally = self.ended(self.command(&past), "regressions")?;
            if tally.finding.is_some() {
                return Ok(tally);
            }
        }
        let mut command = self.command(&[&corpus, &seeds].map(PathBuf::from));
        command.arg(format!("-max_total_time={}", self.seconds)).arg("-print_final_stats=1");
        command.arg(format!("-dict={}", dictionary.display()));
        let tally = self.ended(command, "run")?;
        if tally.finding.is_none() && tally.runs == 0 {
            bail!("{} ended without having tried an input", self.name);
        }
        Ok(tally)
    }

    /// Regression inputs.
    fn past(&self) -> anyhow::Result<Vec<PathBuf>> {
        let Ok(entries) = std::fs::read_dir(self.places.regressions(self.name)) else {
            return Ok(Vec::new());
        };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        Ok(paths)
    }

    fn command(&self, inputs: &[PathBuf]) -> Command {
        let mut command = Command::new(self.program);
        command.args(inputs).stdin(Stdio::null()).stdout(Stdio::null());
        command.arg(format!("-timeout={TIMEOUT_SECONDS}"));
        command.arg(format!("-rss_limit_mb={MEMORY_MIB}"));
        command.arg(format!("-artifact_prefix={}/", self.places.findings(self.name).display()));
        command
    }

    /// Waits for its end and reads its output.
    fn ended(&self, mut command: Command, part: &str) -> anyhow::Result<FuzzTally> {
        let log = self.places.build().join(format!("{}-{part}.log", self.name));
        let file = File::create(&log).with_context(|| format!("cannot make {}", log.display()))?;
        let mut child =
            command.stderr(file).spawn().with_context(|| format!("cannot run {}", self.program.display()))?;
        let cpu_seconds = cpu_seconds_at_end(&child);
        let status = child.wait().with_context(|| format!("cannot wait for {}", self.name))?;
        let text = std::fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
        let tally = tally(&String::from_utf8_lossy(&text));
        let finding = self.finding(status, &String::from_utf8_lossy(&text), &log);
        Ok(FuzzTally { name: self.name.to_owned(), cpu_seconds, finding, ..tally })
    }

    fn finding(&self, status: ExitStatus, text: &str, log: &Path) -> Option<String> {
        (!status.success()).then(|| finding::told(self.name, self.program, text, log))
    }
}

/// CPU time of a process that has ended and is not yet waited for.
fn cpu_seconds_at_end(child: &Child) -> f64 {
    let pid = Pid::from_child(child);
    let ended = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()));
    let ticks = ended.ok().and_then(|_| ticks(&stat.ok()?));
    ticks.unwrap_or(0) as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// User and system time of a line of `/proc/PID/stat`.
fn ticks(stat: &str) -> Option<u64> {
    // The program's name stands in parentheses and may hold anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

/// libFuzzer's progress.
fn tally(log: &str) -> FuzzTally {
    let last =
        |name: &str| log.lines().rev().find_map(|line| line.split_once(name)).map(|(_, rest)| rest.trim());
    let word = |name: &str| last(name).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    FuzzTally {
        runs: word("stat::number_of_executed_units:").parse().unwrap_or(0),
        edges: word(" cov: ").parse().unwrap_or(0),
        kept: word(" corp: ").to_owned(),
        ..FuzzTally::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libfuzzer_progress_is_parsed() {
        let log = "#55\tINITED cov: 28 ft: 37 corp: 38/1406b exec/s: 0 rss: 33Mb\n\
            #99\tDONE   cov: 2868 ft: 3793 corp: 39/1441b lim: 223 exec/s: 474 rss: 33Mb\n\
            stat::number_of_executed_units: 4268\n";
        let tally = tally(log);
        assert_eq!((tally.runs, tally.edges, tally.kept.as_str()), (4268, 2868, "39/1441b"));
        assert_eq!(super::tally("").runs, 0);
    }

    #[test]
    fn a_target_with_a_regression_is_not_fuzzed() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let program = root.join("suite");
        let script = "#!/bin/sh\necho \"Running: $1\" >&2\ncase $* in\n*regressions*) exit ${CODE:-77};;\nesac\n\
            echo stat::number_of_executed_units: 5 >&2\n";
        std::fs::create_dir_all(root.join("fuzz/regressions/suite")).unwrap();
        let places = Places { root: root.to_owned(), target: root.join("target") };
        let session = FuzzSession { places: &places, name: "suite", program: &program, seconds: 1 };
        // The script is written by another process, so that no child of this process inherits it open for writing.
        let write = |text: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "printf %s \"$1\" > \"$0\""]).arg(&program).arg(text);
            assert!(shell.status().unwrap().success());
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        write(script);
        let tally = session.run().unwrap();
        assert_eq!((tally.runs, tally.finding), (5, None));
        let old = root.join("fuzz/regressions/suite/long-list");
        std::fs::write(&old, "x").unwrap();
        let finding = session.run().unwrap().finding.unwrap();
        assert!(finding.contains(&format!("{} {}", program.display(), old.display())), "{finding}");
        write(&script.replace("77", "0"));
        assert_eq!(session.run().unwrap().finding, None);
        write("#!/bin/sh\n");
        assert!(session.run().is_err(), "nothing was tried");
    }

    #[test]
    fn cpu_times_are_parsed_after_the_process_name() {
        let stat = "17 (a) b) Z 1 17 17 0 -1 4228100 5 6 7 8 150 25 0 0 20 0 1 0 1";
        assert_eq!(ticks(stat), Some(175));
        assert_eq!(ticks("17"), None);
    }
}
