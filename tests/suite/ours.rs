//! Runs of the built binary whose reports the tests read: the command line, the JSON document, the stored record.
//!
//! Nothing here judges a number.

use std::path::Path;
use std::process::{Command, Output};

use fathom_tests::{
    FioReport, Throttle, fathom, fathom_under, newest_record, retried, scratch, test_name, with_environment,
};
use serde_json::Value;
use tempfile::TempDir;

/// `fathom` with its own home, so that its history has only the runs of the test.
pub struct Ours {
    home: TempDir,
}

impl Ours {
    pub fn new() -> Self {
        Ours { home: scratch() }
    }

    /// A command that runs `fathom`, without arguments yet.
    pub fn command(&self) -> Command {
        fathom(self.home.path())
    }

    /// Runs `fathom fio` and reads its JSON; the run must end well and say nothing else.
    pub fn fio<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> FioReport {
        well(run_fio(&mut self.command(), arguments))
    }

    /// As [`Ours::fio`], inside `throttle`'s group.
    pub fn fio_under<'a>(
        &self,
        throttle: &Throttle,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> FioReport {
        well(run_fio(&mut fathom_under(throttle, self.home.path()), arguments))
    }

    /// As [`Ours::fio`], through `strace` with `options`: the report and the trace.
    pub fn fio_traced<'a>(
        &self,
        options: &[&str],
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> (FioReport, String) {
        let trace = self.home.path().join("trace");
        let plain = self.command();
        let mut strace = with_environment(Command::new("strace"), &plain);
        strace.arg("-f").arg("-o").arg(&trace).args(options).arg(plain.get_program());
        let report = well(run_fio(&mut strace, arguments));
        (report, std::fs::read_to_string(trace).expect("strace wrote its trace"))
    }

    /// The record of a run of `fathom fio`, as `history export` gives it.
    pub fn record<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> (FioReport, Value) {
        let report = self.fio(arguments.into_iter().chain(["--keep"]));
        (report, self.newest_record())
    }

    /// The record of its newest run.
    pub fn newest_record(&self) -> Value {
        newest_record(self.home.path())
    }
}

/// `--filename=PATH`.
pub fn filename(path: &Path) -> String {
    format!("--filename={}", path.display())
}

/// `measured` lies within `percent` of `expected`; else a sentence that says how far off it is.
pub fn within(what: &str, measured: f64, expected: f64, percent: f64) -> Result<(), String> {
    let off = (measured / expected - 1.0) * 100.0;
    if off.abs() <= percent {
        return Ok(());
    }
    Err(format!("{what}: {measured:.2} is {off:+.2} % off {expected:.2}"))
}

/// Tries `attempt` three times at most: a machine that stood still for a moment gives another rate the next time, a
/// program that counts wrongly gives the same. The gate lists each retry in its last lines.
pub fn steadily(attempt: impl Fn() -> Result<(), String>) {
    steadily_as(&test_name(), attempt);
}

/// As [`steadily`], for a thread that `test` started.
pub fn steadily_as(test: &str, attempt: impl Fn() -> Result<(), String>) {
    let mut failures = Vec::new();
    while let Err(failure) = attempt() {
        failures.push(failure.clone());
        assert!(failures.len() < 3, "{failures:#?}");
        retried(test, &failure);
    }
}

fn run_fio<'a>(command: &mut Command, arguments: impl IntoIterator<Item = &'a str>) -> Output {
    command.args(["fio", "--output-format=json", "--eta=never"]).args(arguments);
    command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}

fn well(output: Output) -> FioReport {
    let report = FioReport::read(&output);
    assert_eq!((report.status, report.said.as_str()), (Some(0), ""), "{:#}", report.document);
    report
}
