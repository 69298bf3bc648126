//! Debian's fio, with which fathom's numbers are compared.

use std::process::Command;

use serde_json::Value;

use crate::Throttle;

/// The JSON document fio printed.
#[derive(Clone, Debug)]
pub struct FioReport {
    /// Everything.
    pub document: Value,
    /// Everything it wrote to stderr, and to stdout before the document.
    pub said: String,
    /// Its exit status; `None` when a signal ended it.
    pub status: Option<i32>,
}

impl FioReport {
    /// The document in what a program that speaks fio's JSON wrote.
    pub fn read(output: &std::process::Output) -> Self {
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let (before, document) = stdout.split_at(stdout.find("{\n").unwrap_or(stdout.len()));
        let document = serde_json::from_str(document)
            .unwrap_or_else(|error| panic!("no JSON document ({error}) in:\n{stdout}\n{stderr}"));
        FioReport { document, said: format!("{before}{stderr}"), status: output.status.code() }
    }

    /// The value at `path` of the first job, a JSON pointer such as `/read/iops`.
    pub fn job(&self, path: &str) -> &Value {
        self.document
            .pointer(&format!("/jobs/0{path}"))
            .unwrap_or_else(|| panic!("no {path} in the first job of {:#}", self.document))
    }

    /// The number at `path` of the first job.
    pub fn number(&self, path: &str) -> f64 {
        self.job(path).as_f64().unwrap_or_else(|| panic!("{path} of the first job is no number"))
    }

    /// Completions per second of `op` (`read`, `write`, `trim`).
    pub fn iops(&self, op: &str) -> f64 {
        self.number(&format!("/{op}/iops"))
    }

    /// Bytes per second of `op`, from exact bytes and ms rather than from the rounded rate.
    pub fn bytes_per_second(&self, op: &str) -> f64 {
        self.number(&format!("/{op}/io_bytes")) * 1e3 / self.number(&format!("/{op}/runtime"))
    }

    /// The errno of the first job, 0 where it ended well.
    pub fn error(&self) -> u64 {
        self.job("/error").as_u64().expect("fio's error is an integer")
    }
}

/// Runs Debian's fio with `arguments` and reads its JSON, ignoring its exit status.
pub fn fio<'a>(arguments: impl IntoIterator<Item = &'a str>) -> FioReport {
    run(&mut Command::new("fio"), arguments)
}

/// As [`fio`], inside `throttle`'s group.
pub fn fio_under<'a>(throttle: &Throttle, arguments: impl IntoIterator<Item = &'a str>) -> FioReport {
    run(&mut throttle.command("fio"), arguments)
}

fn run<'a>(command: &mut Command, arguments: impl IntoIterator<Item = &'a str>) -> FioReport {
    command.args(["--output-format=json", "--eta=never"]).args(arguments);
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    FioReport::read(&output)
}
