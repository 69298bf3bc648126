//! The gate: everything that must hold before a change lands, in one command.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::instructions::Compared;
use crate::process::{cargo_command, now, shown_duration};
use crate::test_programs::{TestPrograms, TestTime};
use crate::{device_tests, instructions, packages, readers, tidy};

/// A thread for every device test; turns decide which run concurrently (`tests/harness/turn.rs`).
const ALL_AT_ONCE: &str = "--test-threads=1000";
/// The device tests: a program of this package, and its name.
const DEVICE_TESTS: (&str, &str) = ("fathom-tests", "suite");
/// Those of the command line, likewise.
const COMMAND_LINE_TESTS: (&str, &str) = ("fathom", "cli");

/// What a run of the gate has to tell at its end.
struct Gate {
    started: Instant,
    took: Vec<(&'static str, Duration)>,
    not_tried: Vec<String>,
    retried: Vec<String>,
}

/// Runs every step, stopping at the first that fails.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let notes = NoteFiles::in_directory(&root.join("target"))?;
    let mut gate = Gate { started: now(), took: Vec::new(), not_tried: Vec::new(), retried: Vec::new() };
    let mut times = Vec::new();
    // The network and the disk install while the processors compile.
    std::thread::scope(|scope| {
        let installed = scope.spawn(|| {
            let packages = packages::install_missing()?;
            Ok::<_, anyhow::Error>(format!("{packages}; Python packages: {}", readers::install(root)?))
        });
        gate.check_source(root)?;
        let programs = gate.step("release build of programs and tests", || {
            let programs = TestPrograms::build()?;
            Ok((format!("{} test programs", programs.tests.len()), programs))
        })?;
        gate.step("packages", || Ok((installed.join().expect("no thread panics")?, ())))?;
        gate.count_instructions(root)?;
        times = gate.step("unit and crate tests", || {
            let mut tests: Vec<_> = programs.tests.iter().filter(|test| !test.is(DEVICE_TESTS)).collect();
            // The longest first: at the end nothing would run beside it.
            tests.sort_by_key(|test| !test.is(COMMAND_LINE_TESTS));
            let (times, count) = programs.run_all(tests, |command| _ = notes.tell(command))?;
            Ok((format!("{count} tests"), times))
        })?;
        gate.test_devices(&programs, &notes)
    })?;
    times.extend(test_times(&notes.times));
    gate.not_tried.extend(lines(&notes.skips));
    gate.retried.extend(lines(&notes.retries));
    print!("{}", gate.summary(times));
    Ok(())
}

impl Gate {
    /// Runs a step; what it returns beside its result is printed with its time.
    fn step<T>(
        &mut self,
        name: &'static str,
        run: impl FnOnce() -> anyhow::Result<(String, T)>,
    ) -> anyhow::Result<T> {
        println!("{name} ...");
        let started = now();
        let (note, result) = run().with_context(|| format!("the gate stops at \"{name}\""))?;
        let took = started.elapsed();
        println!("      {}{}{note}", shown_duration(took), if note.is_empty() { "" } else { ": " });
        self.took.push((name, took));
        Ok(result)
    }

    /// A step that may be impossible on this machine: `run` says why.
    fn step_if_possible(
        &mut self,
        name: &'static str,
        run: impl FnOnce() -> anyhow::Result<StepResult>,
    ) -> anyhow::Result<()> {
        let result = self.step(name, || {
            let result = run()?;
            let note = match &result {
                StepResult::Held(note) => note.clone(),
                StepResult::Skipped(why) => format!("SKIPPED: {why}"),
            };
            Ok((note, result))
        })?;
        if let StepResult::Skipped(why) = result {
            self.not_tried.push(format!("{name}: {why}"));
        }
        Ok(())
    }

    fn check_source(&mut self, root: &Path) -> anyhow::Result<()> {
        self.step_if_possible("format", || component("rustfmt", &["fmt", "--all", "--check"]))?;
        self.step_if_possible("format of the fuzz targets", || {
            component("rustfmt", &["fmt", "--manifest-path", "fuzz/targets/Cargo.toml", "--check"])
        })?;
        self.step("tidy", || tidy::run(root).map(|()| (String::new(), ())))?;
        // With the profile of the build that follows: they share build scripts and procedural macros.
        self.step_if_possible("lints", || {
            let arguments =
                ["clippy", "--quiet", "--release", "--workspace", "--all-targets", "--all-features"];
            component("clippy", &[&arguments[..], &["--", "-D", "warnings"]].concat())
        })
    }

    fn count_instructions(&mut self, root: &Path) -> anyhow::Result<()> {
        self.step_if_possible("instruction counts", || match instructions::check(root)? {
            Compared::Holds(note) => Ok(StepResult::Held(note)),
            Compared::Skipped(why) => skipped(why),
        })
    }

    fn test_devices(&mut self, programs: &TestPrograms, notes: &NoteFiles) -> anyhow::Result<()> {
        let suite = programs.find(DEVICE_TESTS)?;
        let mut command = programs.command(suite);
        notes.tell(command.args(["--format=pretty", ALL_AT_ONCE]));
        self.step("device tests", || {
            #[expect(clippy::disallowed_methods, reason = "the rule is for what users run")]
            let out = std::io::stdout();
            device_tests::run(&mut command, &mut out.lock())?;
            Ok((String::new(), ()))
        })
    }

    /// The last lines: skips and retries, the time of each step, the slowest tests, and the verdict.
    fn summary(&self, mut times: Vec<TestTime>) -> String {
        let mut text = String::new();
        for (word, all) in [("not tried", &self.not_tried), ("retried", &self.retried)] {
            all.iter().for_each(|line| text.push_str(&format!("{word}: {line}\n")));
        }
        for (name, took) in &self.took {
            text.push_str(&format!("{:>8}  {name}\n", shown_duration(*took)));
        }
        times.sort_by_key(|test| std::cmp::Reverse(test.took));
        text.push_str("slowest tests:\n");
        for test in times.iter().take(SLOWEST) {
            text.push_str(&format!("{:>8}  {}\n", shown_duration(test.took), test.name));
        }
        let counted = |all: &[String], what: &str| match all.len() {
            0 => format!("nothing {what}"),
            n => format!("{n} {what} (listed above)"),
        };
        let (skipped, retried) = (counted(&self.not_tried, "skipped"), counted(&self.retried, "retried"));
        let took = shown_duration(self.started.elapsed());
        text + &format!("all {} steps hold, {skipped}, {retried}, in {took}\n", self.took.len())
    }
}

/// Tests whose times are printed at the end.
const SLOWEST: usize = 5;

/// The result of a step that a machine may be unable to run.
enum StepResult {
    /// It holds; with something to add, or empty.
    Held(String),
    /// It could not be tried on this machine, and why.
    Skipped(String),
}

/// Files to which tests add a line for what the summary repeats.
struct NoteFiles {
    /// Tests that could not run, and why.
    skips: PathBuf,
    /// Measurements that passed only after one or two retries, with the deviations.
    retries: PathBuf,
    /// Device tests, and how long each had its turn.
    times: PathBuf,
}

impl NoteFiles {
    /// All in `directory`, and empty.
    fn in_directory(directory: &Path) -> anyhow::Result<NoteFiles> {
        std::fs::create_dir_all(directory).context("cannot make the target directory")?;
        let [skips, retries, times] =
            ["test-skips.txt", "test-retries.txt", "test-times.txt"].map(|name| directory.join(name));
        for file in [&skips, &retries, &times] {
            std::fs::write(file, "").with_context(|| format!("cannot empty {}", file.display()))?;
        }
        Ok(NoteFiles { skips, retries, times })
    }

    /// Tells a test run where they are.
    fn tell<'a>(&self, tests: &'a mut Command) -> &'a mut Command {
        tests.env("FATHOM_TEST_SKIPS", &self.skips).env("FATHOM_TEST_RETRIES", &self.retries);
        tests.env("FATHOM_TEST_TIMES", &self.times)
    }
}

/// The lines of a file of notes, without the word that begins each.
fn lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| line.split_once(' ').map_or(line, |(_, rest)| rest).to_owned()).collect()
}

/// What device tests wrote of their times: seconds and a name on each line.
fn test_times(file: &Path) -> Vec<TestTime> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let time = |line: &str| {
        let (seconds, name) = line.split_once(' ')?;
        Some(TestTime {
            name: name.to_owned(),
            took: Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?,
        })
    };
    text.lines().filter_map(time).collect()
}

/// Runs a cargo command of a toolchain component; reports how to add a missing one.
fn component(component: &str, arguments: &[&str]) -> anyhow::Result<StepResult> {
    let mut probe = cargo_command(&[arguments[0], "--version"]);
    if probe.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return cargo(arguments);
    }
    skipped(format!("{component} is missing: `rustup component add {component}`"))
}

/// A step that could not be tried, which is a failure where nothing may be skipped.
fn skipped(why: String) -> anyhow::Result<StepResult> {
    if let Some(name) =
        ["CI", "FATHOM_TEST_NO_SKIP"].into_iter().find(|name| std::env::var_os(name).is_some())
    {
        bail!("{why}; a skip is a failure where {name} is set");
    }
    Ok(StepResult::Skipped(why))
}

fn cargo(arguments: &[&str]) -> anyhow::Result<StepResult> {
    run_cargo(&mut cargo_command(arguments))
}

fn run_cargo(command: &mut Command) -> anyhow::Result<StepResult> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        bail!("`cargo {}` failed: its messages are above", arguments.join(" "));
    }
    Ok(StepResult::Held(String::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_skips_times_and_the_slowest_tests() {
        let time = |seconds| TestTime { name: format!("test-{seconds}"), took: Duration::from_secs(seconds) };
        let gate = Gate {
            started: now(),
            took: vec![("build", Duration::from_secs(61))],
            not_tried: vec!["a: needs root".to_owned()],
            retried: Vec::new(),
        };
        let text = gate.summary((1..=6).map(time).collect());
        let lines: Vec<&str> = text.lines().collect();
        let slowest = [
            "   6.0 s  test-6", "   5.0 s  test-5", "   4.0 s  test-4", "   3.0 s  test-3",
            "   2.0 s  test-2",
        ];
        assert_eq!(lines[..3], ["not tried: a: needs root", "   1m01s  build", "slowest tests:"]);
        assert_eq!(lines[3..8], slowest);
        assert_eq!(lines[8], "all 1 steps hold, 1 skipped (listed above), nothing retried, in 0.0 s");
    }

    #[test]
    fn times_of_device_tests_are_read_and_other_lines_are_left_out() {
        let file = tempfile::NamedTempFile::new().expect("a file can be made");
        std::fs::write(file.path(), "1.5 a::b\nnonsense\n-1 c\n").expect("it can be written");
        let times = test_times(file.path());
        assert_eq!(times, [TestTime { name: "a::b".to_owned(), took: Duration::from_millis(1500) }]);
    }

    #[test]
    fn notes_start_empty_and_keep_each_line() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let read = |notes: &NoteFiles| (lines(&notes.skips), lines(&notes.retries));
        let notes = NoteFiles::in_directory(directory.path()).expect("files can be made");
        assert_eq!(read(&notes), (vec![], vec![]));
        let mut tests = Command::new("sh");
        tests.args(["-c", "echo SKIPPED a: needs root >>$FATHOM_TEST_SKIPS; \
                           echo RETRIED b: 5 % off >>$FATHOM_TEST_RETRIES; echo RETRIED b: 7 % off >>$FATHOM_TEST_RETRIES"]);
        assert!(notes.tell(&mut tests).status().expect("sh runs").success());
        assert_eq!(
            read(&notes),
            (vec!["a: needs root".to_owned()], ["b: 5 % off", "b: 7 % off"].map(str::to_owned).to_vec())
        );
        assert_eq!(
            read(&NoteFiles::in_directory(directory.path()).expect("files can be made")),
            (vec![], vec![])
        );
    }
}
