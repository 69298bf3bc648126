//! The programs that cargo builds of the tests: built once, in the profile of the release, and run two at a time.
//!
//! Cargo itself would run one after the other, and keep one processor busy at the end of each.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::process::cargo_command;

/// Programs at a time, each on so many threads: some tests wait, for other programs or for time to pass.
const AT_A_TIME: usize = 2;
const THREADS: &str = "--test-threads=4";

/// A program of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestProgram {
    /// Its package's directory.
    directory: PathBuf,
    /// Its package.
    package: String,
    /// Its name in the package.
    name: String,
    executable: PathBuf,
}

impl TestProgram {
    /// True for the program `name` of `package`.
    pub fn is(&self, (package, name): (&str, &str)) -> bool {
        self.package == package && self.name == name
    }
}

/// A test, and how long it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestTime {
    /// With its module.
    pub name: String,
    /// From its start to its end.
    pub took: Duration,
}

/// All that the build makes for the tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TestPrograms {
    /// In the order of cargo's messages.
    pub tests: Vec<TestProgram>,
    /// The program under test.
    binary: PathBuf,
    /// Programs that tests start.
    examples: PathBuf,
}

impl TestPrograms {
    /// Builds the workspace's programs, tests and examples.
    pub fn build() -> anyhow::Result<TestPrograms> {
        let mut command = cargo_command(&["test", "--quiet", "--release", "--workspace", "--no-run"]);
        command
            .arg("--all-features")
            .arg("--message-format=json-render-diagnostics")
            .stderr(Stdio::inherit());
        let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
        ensure!(output.status.success(), "the tests do not build: cargo's messages are above");
        let programs = TestPrograms::parse(&String::from_utf8_lossy(&output.stdout));
        let is_whole = !programs.tests.is_empty() && programs.binary.is_file();
        ensure!(is_whole, "cargo has built no tests, or no program to test");
        Ok(programs)
    }

    /// Reads cargo's messages.
    fn parse(messages: &str) -> TestPrograms {
        let mut programs = TestPrograms::default();
        for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let Some(executable) = message["executable"].as_str().map(PathBuf::from) else { continue };
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (name, kind) = (text(&message["target"]["name"]), text(&message["target"]["kind"][0]));
            if message["profile"]["test"] == true {
                let directory = Path::new(&text(&message["manifest_path"])).parent().map(Path::to_owned);
                let package = package_name(&text(&message["package_id"])).to_owned();
                let directory = directory.unwrap_or_default();
                programs.tests.push(TestProgram { directory, package, name, executable });
            } else if kind == "bin" && name == "fathom" {
                programs.binary = executable;
            } else if kind == "example" {
                programs.examples = executable.parent().unwrap_or(Path::new("")).to_owned();
            }
        }
        programs
    }

    /// The one that `which` names.
    pub fn find(&self, which: (&str, &str)) -> anyhow::Result<&TestProgram> {
        let found = self.tests.iter().find(|test| test.is(which));
        found.with_context(|| format!("{} has no test program {}", which.0, which.1))
    }

    /// A command that runs `test` as cargo does: in its package's directory.
    pub fn command(&self, test: &TestProgram) -> Command {
        let mut command = Command::new(&test.executable);
        command.current_dir(&test.directory).stdin(Stdio::null());
        command.env("CARGO_MANIFEST_DIR", &test.directory);
        command.env("FATHOM_BIN", &self.binary).env("FATHOM_TEST_PROGRAMS", &self.examples);
        command
    }

    /// Runs `tests`, each changed by `prepare`. Returns the times of all, and their number.
    ///
    /// # Errors
    /// One fails: its messages are printed.
    pub fn run_all(
        &self,
        tests: Vec<&TestProgram>,
        prepare: impl Fn(&mut Command) + Sync,
    ) -> anyhow::Result<(Vec<TestTime>, usize)> {
        let queue = Mutex::new(VecDeque::from(tests));
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let work = || -> anyhow::Result<Vec<TestTime>> {
            let mut times = Vec::new();
            while let Some(test) = next() {
                let mut command = self.command(test);
                prepare(&mut command);
                times.extend(run_one(test, &mut command)?);
            }
            Ok(times)
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(work)).collect();
            let mut times = Vec::new();
            for worker in workers {
                times.extend(worker.join().expect("no thread panics")?);
            }
            let count = times.len();
            Ok((times, count))
        })
    }
}

/// Runs one; fails with what it printed.
fn run_one(test: &TestProgram, command: &mut Command) -> anyhow::Result<Vec<TestTime>> {
    // The time of each test is an option that rustc's test harness has not stabilised.
    command.args([THREADS, "-Zunstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "1");
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        println!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
        bail!("{} {} failed ({}): its messages are above", test.package, test.name, output.status);
    }
    print!("{}", noted(&String::from_utf8_lossy(&output.stderr)));
    let prefix = test.package.trim_start_matches("fathom-");
    Ok(stdout
        .lines()
        .filter_map(test_time)
        .map(|time| TestTime { name: format!("{prefix} {}", time.name), ..time })
        .collect())
}

/// The lines of a program that passed that say what was skipped, retried or measured.
fn noted(stderr: &str) -> String {
    let words = ["SKIPPED ", "RETRIED ", "NOTED "];
    let lines = stderr.lines().filter(|line| words.iter().any(|word| line.starts_with(word)));
    lines.map(|line| format!("      {line}\n")).collect()
}

/// The test of a line such as `test a::b ... ok <0.012s>`.
fn test_time(line: &str) -> Option<TestTime> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ok <")?;
    let took = Duration::try_from_secs_f64(rest.strip_suffix("s>")?.parse().ok()?).ok()?;
    Some(TestTime { name: name.to_owned(), took })
}

/// The name in cargo's identifier of a package: `path+file:///a/b#name@1.0` or `path+file:///a/name#1.0`.
fn package_name(id: &str) -> &str {
    let (path, fragment) = id.rsplit_once('#').unwrap_or((id, ""));
    match fragment.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next().unwrap_or(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_read_from_the_messages_of_cargo() {
        let message = |id: &str, kind: &str, name: &str, test: bool, executable: &str| {
            serde_json::json!({
                "reason": "compiler-artifact", "package_id": id, "manifest_path": "/w/crates/a/Cargo.toml",
                "target": {"kind": [kind], "name": name}, "profile": {"test": test}, "executable": executable,
            })
            .to_string()
        };
        let library = r#"{"reason":"compiler-artifact","executable":null,"profile":{"test":false}}"#;
        let messages = [
            message("path+file:///w/crates/a#fathom-a@0.1.0", "lib", "fathom_a", true, "/t/deps/a-1"),
            message(
                "path+file:///w/tests#fathom-tests@0.1.0",
                "example",
                "other",
                false,
                "/t/examples/other",
            ),
            message("path+file:///w/crates/cli#fathom@0.1.0", "bin", "fathom", false, "/t/fathom"),
            library.to_owned(),
            "no JSON".to_owned(),
        ];
        let programs = TestPrograms::parse(&messages.join("\n"));
        let test = TestProgram {
            directory: "/w/crates/a".into(),
            package: "fathom-a".to_owned(),
            name: "fathom_a".to_owned(),
            executable: "/t/deps/a-1".into(),
        };
        assert!(test.is(("fathom-a", "fathom_a")) && !test.is(("fathom-a", "suite")));
        let expected =
            TestPrograms { tests: vec![test], binary: "/t/fathom".into(), examples: "/t/examples".into() };
        assert_eq!(programs, expected);
        assert!(programs.find(("fathom-a", "suite")).is_err());
    }

    #[test]
    fn packages_are_named_by_their_identifiers() {
        assert_eq!(package_name("path+file:///w/xtask#0.1.0"), "xtask");
        assert_eq!(package_name("path+file:///w/crates/cli#fathom@0.1.0"), "fathom");
    }

    #[test]
    fn only_passed_tests_have_times() {
        let time = |line: &str| test_time(line).map(|time| (time.name, time.took.as_millis()));
        assert_eq!(time("test a::b ... ok <0.012s>"), Some(("a::b".to_owned(), 12)));
        assert_eq!(time("test a::b ... FAILED <0.012s>"), None);
        assert_eq!(time("test a::b ... ok"), None);
        assert_eq!(time("test result: ok. 3 passed"), None);
    }

    #[test]
    fn notes_of_passed_programs_are_repeated() {
        assert_eq!(noted("anything\nSKIPPED a: needs root\n"), "      SKIPPED a: needs root\n");
    }
}
