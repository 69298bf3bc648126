//! Every command that does I/O, on a device that nothing uses.

use std::process::Output;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::super::check_line::CheckKind;
use super::Reporter;
use super::device::{bytes_of, clear, ensure_unchanged, kernel_name};
use super::shell::output;
use super::stacks::{Stack, WriteAccess};

/// A command and what its document must have.
struct SmokeCommand {
    /// Its words after `fathom`; `@` is the device.
    words: &'static str,
    /// Names of figures of which one must be above 0; empty if it measures none.
    figures: &'static [&'static str],
    /// Names of fields of which one must be the device: its node or the kernel's name.
    device: &'static [&'static str],
    /// Whether it writes.
    writes: bool,
}

const fn reading(words: &'static str, figures: &'static [&'static str]) -> SmokeCommand {
    SmokeCommand { words, figures, device: &["name"], writes: false }
}

const fn writing(words: &'static str, figures: &'static [&'static str]) -> SmokeCommand {
    SmokeCommand { writes: true, ..reading(words, figures) }
}

const RATES: &[&str] = &["iops", "bytes_per_second"];

const COMMANDS: &[SmokeCommand] = &[
    reading("doctor --json @", &[]),
    reading("monitor --json -c 2 -i 300ms @", &[]),
    reading("bench --json --no-history --only=rand-read,seq-read --runtime=200ms @", RATES),
    reading("sweep --json --no-history --bs=4k,16k --iodepth=1,4 --budget=10s @", RATES),
    reading("surface --json --no-history --points=10 --budget=3s @", RATES),
    reading("surface --json --no-history --scan @", RATES),
    reading("prepare --json --no-history --touch @", RATES),
    SmokeCommand { device: &["device"], ..reading("ping --json -c 3 -i 10ms @", RATES) },
    reading(
        "fio --name=t --rw=randread --bs=4k --size=1m --direct=1 --output-format=json --filename=@",
        RATES,
    ),
    writing(
        "bench --json --no-history --only=rand-write --runtime=200ms --size=16m --destroy-data=@ @",
        RATES,
    ),
    writing(
        "sweep --json --no-history --rw=randwrite --bs=4k --iodepth=1,4 --budget=10s --destroy-data=@ @",
        RATES,
    ),
    writing("surface --json --no-history --write --points=10 --budget=3s --destroy-data=@ @", RATES),
    writing("identify --json --no-history --budget=30s --destroy-data=@ @", RATES),
    writing("prepare --json --no-history --fill --destroy-data=@ @", RATES),
    SmokeCommand {
        device: &["device"],
        ..writing("ping --json -c 3 -i 10ms -WWW --destroy-data=@ @", RATES)
    },
    writing("fio --name=t --rw=randrw --bs=4k --size=1m --direct=1 --output-format=json --filename=@", RATES),
];

/// Runs every command.
pub fn check(stack: &Stack, reporter: &Reporter) {
    for command in COMMANDS {
        let name = command.words;
        match (command.writes, stack.access) {
            (false, _) => reporter.report(CheckKind::Command, name, reads(stack, command)),
            (true, WriteAccess::Free) => reporter.report(CheckKind::Write, name, writes(stack, command)),
            // Refused, or answered by the device, for its own reason: `refusals` has these.
            (true, WriteAccess::Protected | WriteAccess::HostManaged) => {}
        }
    }
}

fn reads(stack: &Stack, command: &SmokeCommand) -> anyhow::Result<()> {
    let before = bytes_of(&stack.device)?;
    measures(stack, command)?;
    ensure_unchanged(&stack.device, &before)
}

fn writes(stack: &Stack, command: &SmokeCommand) -> anyhow::Result<()> {
    clear(&stack.device)?;
    let before = bytes_of(&stack.device)?;
    measures(stack, command)?;
    ensure!(bytes_of(&stack.device)? != before, "no byte of the device has changed");
    Ok(())
}

fn measures(stack: &Stack, command: &SmokeCommand) -> anyhow::Result<()> {
    let ended = fathom(command.words, &stack.device.to_string_lossy())?;
    // The doctor's code says that it found something.
    let is_doctor = command.words.starts_with("doctor");
    let code = ended.status.code();
    ensure!(code == Some(0) || is_doctor && code == Some(3), "{}", shown(&ended));
    ensure!(!String::from_utf8_lossy(&ended.stderr).contains("panicked"), "{}", shown(&ended));
    let documents = serde_json::Deserializer::from_slice(&ended.stdout).into_iter::<Value>();
    let document = Value::Array(documents.collect::<Result<_, _>>().context("its output is not JSON")?);
    let kernel_name = kernel_name(&stack.device)?;
    let names = [stack.device.to_string_lossy().into_owned(), format!("/dev/{kernel_name}"), kernel_name];
    let is_named = |field: &str| {
        let found = values(&document, field);
        found.iter().any(|value| value.as_str().is_some_and(|text| names.iter().any(|name| name == text)))
    };
    ensure!(command.device.iter().any(|field| is_named(field)), "its document does not name {}", names[0]);
    let kinds = values(&document, "kind");
    let has_kinds = kinds.iter().any(|kind| *kind == "block_device");
    let has_kind = kinds.iter().any(|kind| *kind == stack.kind);
    ensure!(!has_kinds || has_kind, "its document does not have the kind {}: {kinds:?}", stack.kind);
    let is_above_0 = |name: &&str| values(&document, name).into_iter().any(has_number_above_0);
    if !command.figures.is_empty() && !command.figures.iter().any(is_above_0) {
        bail!("none of its figures is above 0");
    }
    Ok(())
}

/// Runs `words` with `target` for each `@`.
pub fn fathom(words: &str, target: &str) -> anyhow::Result<Output> {
    output(&format!("fathom {}", words.replace('@', target)))
}

/// How a command ended.
pub fn shown(ended: &Output) -> String {
    let [stdout, stderr] = [&ended.stdout, &ended.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let start: String = stdout.chars().take(300).collect();
    format!("{}: {stderr} {start}", ended.status)
}

/// Whether a figure, or one of its parts, is above 0.
fn has_number_above_0(value: &Value) -> bool {
    match value {
        Value::Array(all) => all.iter().any(has_number_above_0),
        Value::Object(fields) => fields.values().any(has_number_above_0),
        _ => value.as_f64() > Some(0.0),
    }
}

/// All values of the fields `name` in `document`.
fn values<'a>(document: &'a Value, name: &str) -> Vec<&'a Value> {
    match document {
        Value::Array(all) => all.iter().flat_map(|one| values(one, name)).collect(),
        Value::Object(fields) => {
            let here = fields.get(name);
            here.into_iter().chain(fields.values().flat_map(|one| values(one, name))).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_at_any_depth() {
        let document = serde_json::json!([{"a": 1, "b": {"a": [{"a": 2}]}}]);
        let found: Vec<f64> = values(&document, "a").iter().filter_map(|value| value.as_f64()).collect();
        assert_eq!(found, [1.0, 2.0]);
        assert!(has_number_above_0(&document));
        assert!(!has_number_above_0(&serde_json::json!({"low": 0, "high": null})));
    }
}
