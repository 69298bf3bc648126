//! One running target: first the inputs that made it fail before, then libFuzzer's until the time is over.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::progress::{FuzzProgress, FuzzTime};
use super::{Places, corpus, finding};
use crate::gate::now;

/// Longest that one input may take.
const TIMEOUT_SECONDS: u32 = 10;
/// Most memory of the process, and most that the target may allocate (enforced by `fuzz/src/lib.rs`).
const MEMORY_MIB: u32 = 1024;
/// How often the time of a running target is stored.
const STORED_EVERY: Duration = Duration::from_secs(10);

/// A target about to run.
pub struct FuzzSession<'a> {
    pub places: &'a Places,
    pub name: &'a str,
    pub program: &'a Path,
    /// How long it runs; where the time of earlier calls counts, the CPU time of all.
    pub seconds: u64,
    /// The time of earlier calls, if any counts.
    pub progress: Option<FuzzProgress>,
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
    /// The time without a finding, with that of earlier calls.
    pub time: FuzzTime,
    /// The finding, and the command that reproduces it.
    pub finding: Option<String>,
}

impl FuzzTally {
    pub const HEAD: &str = "target                runs   edges          corpus    wall s     CPU s  finding";
}

impl fmt::Display for FuzzTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FuzzTally { name, runs, edges, kept, time: FuzzTime { wall, cpu }, finding } = self;
        let found = finding.as_deref().and_then(|text| text.lines().next()).unwrap_or("none");
        write!(f, "{name:<14} {runs:>11} {edges:>7} {kept:>15} {wall:>9.0} {cpu:>9.1}  {found}")
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
            let tally = self.ended(self.command(&past), "regressions", None)?;
            if tally.finding.is_some() {
                self.progress.as_ref().map_or(Ok(()), FuzzProgress::forget)?;
                return Ok(tally);
            }
        }
        let earlier = self.progress.as_ref().map(|progress| progress.earlier).unwrap_or_default();
        let left = self.seconds as f64 - earlier.cpu;
        if self.is_over(earlier) {
            return Ok(FuzzTally { name: self.name.to_owned(), time: earlier, ..FuzzTally::default() });
        }
        let mut command = self.command(&[&corpus, &seeds].map(PathBuf::from));
        command.arg(format!("-max_total_time={left:.0}")).arg("-print_final_stats=1");
        command.arg(format!("-dict={}", dictionary.display()));
        let tally = self.ended(command, "run", self.progress.as_ref())?;
        if tally.finding.is_none() && tally.runs == 0 {
            bail!("{} ended without having tried an input", self.name);
        }
        Ok(FuzzTally { time: earlier.plus(tally.time), ..tally })
    }

    /// Whether the CPU time of all calls is as long as it should be, to a second.
    pub fn is_over(&self, time: FuzzTime) -> bool {
        self.seconds as f64 - time.cpu < 1.0
    }

    /// Regression inputs, and in a session whose time counts what an earlier one found: libFuzzer may not find it again.
    fn past(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut past = files(&self.places.regressions(self.name));
        if self.progress.is_some() {
            past.extend(files(&self.places.findings(self.name)).into_iter().filter(|path| !is_slow(path)));
        }
        Ok(past)
    }

    fn command(&self, inputs: &[PathBuf]) -> Command {
        let mut command = Command::new(self.program);
        command.args(inputs).stdin(Stdio::null()).stdout(Stdio::null());
        command.arg(format!("-timeout={TIMEOUT_SECONDS}"));
        command.arg(format!("-rss_limit_mb={MEMORY_MIB}"));
        command.arg(format!("-artifact_prefix={}/", self.places.findings(self.name).display()));
        command
    }

    /// Waits for its end and reads its output. Stores its time in `progress`, or none after a finding.
    fn ended(
        &self,
        mut command: Command,
        part: &str,
        progress: Option<&FuzzProgress>,
    ) -> anyhow::Result<FuzzTally> {
        let log = self.places.build().join(format!("{}-{part}.log", self.name));
        let file = File::create(&log).with_context(|| format!("cannot make {}", log.display()))?;
        let begin = now();
        let mut child =
            command.stderr(file).spawn().with_context(|| format!("cannot run {}", self.program.display()))?;
        let time = time_at_end(&child, begin, progress);
        let status = child.wait().with_context(|| format!("cannot wait for {}", self.name))?;
        let text = std::fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
        let tally = tally(&String::from_utf8_lossy(&text));
        let finding = self.finding(status, &String::from_utf8_lossy(&text), &log);
        match progress {
            Some(progress) if finding.is_some() => progress.forget()?,
            Some(progress) => progress.store(time)?,
            None => {}
        }
        Ok(FuzzTally { name: self.name.to_owned(), time, finding, ..tally })
    }

    fn finding(&self, status: ExitStatus, text: &str, log: &Path) -> Option<String> {
        (!status.success()).then(|| finding::told(self.name, self.program, text, log))
    }
}

/// The files of a directory, by name; none if there is no such directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// Whether libFuzzer kept this input for its duration, which was within the limit.
fn is_slow(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("slow-unit-"))
}

/// The time of a process once it has ended and is not yet waited for; until then, `progress` keeps the time so far.
fn time_at_end(child: &Child, begin: Instant, progress: Option<&FuzzProgress>) -> FuzzTime {
    let time = || FuzzTime { wall: begin.elapsed().as_secs_f64(), cpu: cpu_seconds(child.id()) };
    let (ended, end) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        if let Some(progress) = progress {
            scope.spawn(move || {
                while end.recv_timeout(STORED_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                    // A time that cannot be stored now is part of the next one; the last is reported.
                    let _ = progress.store(time());
                }
            });
        }
        let _ = waitid(WaitId::Pid(Pid::from_child(child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        drop(ended);
    });
    time()
}

fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let ticks = stat.ok().and_then(|stat| ticks(&stat));
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

    /// Writes a program by another process, so that no child of this process inherits it open for writing.
    fn write_program(program: &Path, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf %s \"$1\" > \"$0\""]).arg(program).arg(text);
        assert!(shell.status().unwrap().success());
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_target_with_a_regression_is_not_fuzzed() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let program = root.join("suite");
        let script = "#!/bin/sh\necho \"Running: $1\" >&2\ncase $* in\n*regressions*) exit ${CODE:-77};;\nesac\n\
            echo stat::number_of_executed_units: 5 >&2\n";
        std::fs::create_dir_all(root.join("fuzz/regressions/suite")).unwrap();
        let places = Places { root: root.to_owned(), target: root.join("target") };
        let session =
            FuzzSession { places: &places, name: "suite", program: &program, seconds: 1, progress: None };
        let write = |text: &str| write_program(&program, text);
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
    fn sessions_continue_until_their_time_is_over() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let program = root.join("suite");
        let places = Places { root: root.to_owned(), target: root.join("target") };
        let run = |seconds: u64| {
            let progress = Some(FuzzProgress::of(&places, "suite", &program).unwrap());
            FuzzSession { places: &places, name: "suite", program: &program, seconds, progress }
                .run()
                .unwrap()
        };
        let asked_time = || {
            let log = std::fs::read_to_string(root.join("target/fuzz/suite-run.log")).unwrap();
            log.lines().find_map(|line| line.strip_prefix("asked ")?.parse::<u64>().ok()).unwrap()
        };
        write_program(
            &program,
            "#!/bin/sh\nfor word; do case $word in -max_total_time=*) echo asked ${word#*=} >&2;; esac; done\n\
             echo stat::number_of_executed_units: 5 >&2\n",
        );
        assert_eq!(run(100).runs, 5);
        assert_eq!(asked_time(), 100);
        let stored = FuzzProgress::of(&places, "suite", &program).unwrap();
        assert!(stored.earlier.wall > 0.0, "{stored:?}");
        stored.store(FuzzTime { wall: 70.0, cpu: 60.0 }).unwrap();
        let tally = run(100);
        assert_eq!(asked_time(), 40);
        assert!(tally.time.wall > 70.0 && tally.time.cpu >= 60.0, "{tally:?}");
        let over = run(60);
        assert_eq!((over.runs, over.time), (0, tally.time), "it has run long enough");
        // What an earlier call found is tried again, and leaves no time without a finding.
        std::fs::write(root.join("target/fuzz/findings/suite/crash-1"), "x").unwrap();
        std::fs::write(root.join("target/fuzz/findings/suite/slow-unit-1"), "x").unwrap();
        assert_eq!(run(60).finding, None);
        write_program(&program, "#!/bin/sh\necho \"Running: $1\" >&2\nexit 77\n");
        let stored = FuzzProgress::of(&places, "suite", &program).unwrap();
        stored.store(FuzzTime { wall: 70.0, cpu: 60.0 }).unwrap();
        let found = run(60).finding.unwrap();
        assert!(found.contains("findings/suite/crash-1 (1 bytes)"), "{found}");
        assert_eq!(FuzzProgress::of(&places, "suite", &program).unwrap().earlier, FuzzTime::default());
    }

    #[test]
    fn cpu_times_are_parsed_after_the_process_name() {
        let stat = "17 (a) b) Z 1 17 17 0 -1 4228100 5 6 7 8 150 25 0 0 20 0 1 0 1";
        assert_eq!(ticks(stat), Some(175));
        assert_eq!(ticks("17"), None);
    }
}
