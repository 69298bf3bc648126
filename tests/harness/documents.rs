//! What programs print and keep: JSON documents, and the records of a history.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::fathom::fathom;
use crate::program::run;
use crate::shell::must_run;

/// Runs `command`, which must succeed, and reads the one document that it prints.
pub fn document(command: &mut Command) -> Value {
    serde_json::from_str(&must_run(command)).unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// The number at `pointer`.
#[track_caller]
pub fn number(value: &Value, pointer: &str) -> f64 {
    find_number(value, pointer).unwrap_or_else(|error| panic!("{error}"))
}

/// As [`number`], of a document that leaves it out where a measurement was disturbed.
pub fn find_number(value: &Value, pointer: &str) -> Result<f64, String> {
    let number = value.pointer(pointer).and_then(Value::as_f64);
    number.ok_or_else(|| format!("no number at {pointer} in {value:#}"))
}

/// The record of the newest run in the history of `home`.
pub fn newest_record(home: &Path) -> Value {
    let lines = must_run(fathom(home).args(["history", "export"]));
    let newest = lines.lines().last().expect("the run was kept");
    serde_json::from_str(newest).expect("an exported record is one line of JSON")
}

/// The rows of `history list`, oldest first; none before there is a history.
pub fn kept_runs(home: &Path) -> Vec<Value> {
    let ended = run(fathom(home).args(["history", "list", "--json"]));
    let rows = if ended.status.success() { ended.document() } else { Value::Null };
    rows.as_array().cloned().unwrap_or_default()
}

/// Tests, points or pieces that the newest run has stored.
pub fn kept_tests(home: &Path) -> u64 {
    kept_runs(home).last().and_then(|row| row["tests"].as_u64()).unwrap_or(0)
}

/// `command` with the environment of `other`.
pub fn with_environment(mut command: Command, other: &Command) -> Command {
    for (name, value) in other.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}
