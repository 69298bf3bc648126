//! The campaign's part in the guest: builds each stack and checks fathom on it: every command that does I/O on a device that nothing
//! uses, and the guard: each use of a stack, each command that writes, and the bytes before and after.

use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Output;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::stacks::{
    Against, READY, STACKS, Stack, USES, UseCase, WriteAccess, bytes_of, clear, ensure_unchanged,
    kernel_name, output, sh,
};
use super::{CHECK, COMMAND, CheckLine, END, REFUSAL, WRITE};

/// Commands and the names of fields of which one must be the device: its node or the kernel's name. `@` stands for the device.
const READING: &[(&str, &str)] = &[
    ("doctor --json @", "name"),
    ("monitor --json -c 2 -i 300ms @", "name"),
    ("bench --json --no-history --only=rand-read,seq-read --runtime=200ms @", "name"),
    ("sweep --json --no-history --bs=4k,16k --iodepth=1,4 --budget=10s @", "name"),
    ("surface --json --no-history --points=10 --budget=3s @", "name"),
    ("surface --json --no-history --scan @", "name"),
    ("prepare --json --no-history --touch @", "name"),
    ("ping --json -c 3 -i 10ms @", "device"),
    ("fio --name=t --rw=randread --bs=4k --size=1m --direct=1 --output-format=json --filename=@", "name"),
];
const WRITING: &[(&str, &str)] = &[
    ("bench --json --no-history --only=rand-write --runtime=200ms --size=16m --destroy-data=@ @", "name"),
    (
        "sweep --json --no-history --rw=randwrite --bs=4k --iodepth=1,4 --budget=10s --destroy-data=@ @",
        "name",
    ),
    ("surface --json --no-history --write --points=10 --budget=3s --destroy-data=@ @", "name"),
    ("identify --json --no-history --budget=30s --destroy-data=@ @", "name"),
    ("prepare --json --no-history --fill --destroy-data=@ @", "name"),
    ("ping --json -c 3 -i 10ms -WWW --destroy-data=@ @", "device"),
    ("fio --name=t --rw=randrw --bs=4k --size=1m --direct=1 --output-format=json --filename=@", "name"),
];
/// Commands that measure nothing; of the others one of these figures must be above 0.
const WITHOUT_FIGURES: [&str; 2] = ["doctor", "monitor"];
const FIGURES: [&str; 2] = ["iops", "bytes_per_second"];

/// Commands that write with the consent of the user. The first are fio's.
const CONSENTED: &[&str] = &[
    "fio --name=t --bs=4k --size=64k --rw=write --filename=@ --destroy-data=@",
    "fio --name=t --bs=4k --size=64k --rw=randrw --direct=1 --ioengine=io_uring --filename=@ --destroy-data=@",
    "fio --name=t --bs=4k --size=64k --rw=randtrim --filename=@ --destroy-data=@",
    "bench --no-history --only=rand-write --runtime=10ms --size=4m --destroy-data=@ @",
    "sweep --no-history --rw=randwrite --budget=10s --destroy-data=@ @",
    "surface --no-history --write --budget=10s --destroy-data=@ @",
    "identify --no-history --budget=30s --destroy-data=@ @",
    "prepare --no-history --fill --destroy-data=@ @",
    "prepare --no-history --trim --destroy-data=@ @",
    "ping -c 1 -WWW --destroy-data=@ @",
];
/// The beginnings of those that every use is tried with; all of them ask the guard in the same way.
const FEW: &[&str] =
    &["fio --name=t --bs=4k --size=64k --rw=write", "bench", "prepare --no-history --fill", "ping"];
/// The same without. fathom's own commands then look no further, so the first alone is tried on what is in use.
const NOT_CONSENTED: &[&str] = &[
    "fio --name=t --bs=4k --size=64k --rw=write --filename=@",
    "sweep --no-history --rw=randwrite --budget=10s @",
    "surface --no-history --write --budget=10s @",
    "prepare --no-history --fill @",
    "prepare --no-history --trim @",
    "ping -c 1 -WWW @",
];
/// Writes in zones of 4 MiB that are not conventional: from the write pointer on, and beyond it. Not in the same one: since
/// Linux 6.10 a zone whose write failed refuses others until the kernel has asked for its state.
const IN_ORDER: &str = "fio --name=t --bs=4k --size=64k --rw=write --direct=1 --offset=24m --filename=@";
const OUT_OF_ORDER: &str =
    "fio --name=t --bs=4k --size=64k --rw=write --direct=1 --offset=20488k --filename=@";
/// What a refusal to overwrite a free device names.
const CONSENT: &str = "--destroy-data";

/// Checks fathom on the stacks with `only` in their names.
pub fn run(only: &str) -> anyhow::Result<()> {
    sh("modprobe nvme")?;
    sh("modprobe loop")?;
    for (name, build) in STACKS.iter().filter(|(name, _)| name.contains(only)) {
        let reporter = Reporter { stack: name };
        match build() {
            Err(error) => reporter.report(COMMAND, "building the stack", Err(error)),
            Ok(built) => {
                check_commands(&built, &reporter);
                check_refusals(&built, &reporter);
            }
        }
    }
    println!("{END}");
    Ok(())
}

/// Keeps a device or file `exclusive`, `locked` or open for `writing` until standard input ends.
pub fn hold(how: &str, path: &Path) -> anyhow::Result<()> {
    let exclusive = rustix::fs::OFlags::EXCL.bits().cast_signed();
    let mut options = std::fs::File::options();
    match how {
        "exclusive" => options.read(true).custom_flags(exclusive),
        "locked" | "writing" => options.read(true).write(true),
        _ => bail!("cannot hold {how}"),
    };
    let file = options.open(path).with_context(|| format!("cannot open {}", path.display()))?;
    if how == "locked" {
        rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::LockExclusive)?;
    }
    println!("{READY}");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Writes a line for each check of one stack.
struct Reporter {
    stack: &'static str,
}

impl Reporter {
    /// Reports a check; the error is why it failed.
    fn report(&self, kind: &str, name: &str, result: anyhow::Result<()>) {
        let failure = result.err().map(|error| format!("{error:#}"));
        let line =
            CheckLine { stack: self.stack.to_owned(), kind: kind.to_owned(), name: name.to_owned(), failure };
        println!("{CHECK}{}", serde_json::to_string(&line).expect("texts are JSON"));
    }
}

/// Runs every command; a write that a device refuses or answers for its own reason is among the refusals.
fn check_commands(stack: &Stack, reporter: &Reporter) {
    for (words, field) in READING {
        let result = bytes_of(&stack.device).and_then(|before| {
            check_document(stack, words, field)?;
            ensure_unchanged(&stack.device, &before)
        });
        reporter.report(COMMAND, words, result);
    }
    for (words, field) in WRITING.iter().filter(|_| stack.access == WriteAccess::Free) {
        let result = clear(&stack.device).and_then(|()| bytes_of(&stack.device)).and_then(|before| {
            check_document(stack, words, field)?;
            ensure!(bytes_of(&stack.device)? != before, "no byte of the device has changed");
            Ok(())
        });
        reporter.report(WRITE, words, result);
    }
}

/// Runs a command, and fails if its document does not name the device or has no figures.
fn check_document(stack: &Stack, words: &str, field: &str) -> anyhow::Result<()> {
    let ended = fathom(words, &stack.device)?;
    // The doctor's code says that it found something.
    let code = ended.status.code();
    ensure!(code == Some(0) || words.starts_with("doctor") && code == Some(3), "{}", shown(&ended));
    ensure!(!String::from_utf8_lossy(&ended.stderr).contains("panicked"), "{}", shown(&ended));
    let documents = serde_json::Deserializer::from_slice(&ended.stdout).into_iter::<Value>();
    let document = Value::Array(documents.collect::<Result<_, _>>().context("its output is not JSON")?);
    let kernel_name = kernel_name(&stack.device)?;
    let names = [stack.device.to_string_lossy().into_owned(), format!("/dev/{kernel_name}"), kernel_name];
    let is_named = |value: &&Value| value.as_str().is_some_and(|text| names.iter().any(|name| name == text));
    ensure!(values(&document, field).iter().any(is_named), "its document does not name {}", names[0]);
    let kinds = values(&document, "kind");
    let has = |wanted: &str| kinds.iter().any(|kind| **kind == *wanted);
    ensure!(!has("block_device") || has(stack.kind), "its document lacks the kind {}: {kinds:?}", stack.kind);
    let is_above_0 = |name: &&str| values(&document, name).into_iter().any(has_number_above_0);
    let measures = !WITHOUT_FIGURES.iter().any(|command| words.starts_with(command));
    ensure!(!measures || FIGURES.iter().any(is_above_0), "none of its figures is above 0");
    Ok(())
}

/// Runs `words` with `target` for each `@`.
fn fathom(words: &str, target: &Path) -> anyhow::Result<Output> {
    output(&format!("fathom {}", words.replace('@', &target.to_string_lossy())))
}

/// How a command ended.
fn shown(ended: &Output) -> String {
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

/// Tries each command on each use.
fn check_refusals(stack: &Stack, reporter: &Reporter) {
    if stack.access == WriteAccess::Free {
        reporter.report(WRITE, "clearing the device", clear(&stack.device));
        // A device without data is written by a job under fio's grammar; its own commands want to be told.
        let own: Vec<&str> = NOT_CONSENTED.iter().copied().filter(|words| !is_fio(words)).collect();
        refuse(reporter, "free", &own, &stack.device, CONSENT);
    }
    if stack.access == WriteAccess::HostManaged {
        refuse(reporter, "zones", &[OUT_OF_ORDER], &stack.device, "the device is host-managed zoned");
        write(reporter, "zones", IN_ORDER, &stack.device);
    }
    for case in USES.iter().filter(|case| (case.applies)(stack)) {
        match (case.arrange)(stack) {
            Err(error) => reporter.report(REFUSAL, case.name, Err(error)),
            Ok(arranged) => arranged.targets.iter().for_each(|target| try_all(reporter, case, target)),
        }
    }
}

fn is_fio(words: &str) -> bool {
    words.starts_with("fio ")
}

fn try_all(reporter: &Reporter, case: &UseCase, target: &Path) {
    let consented = CONSENTED.iter().copied();
    let words: Vec<&str> = match case.against {
        Against::All if case.is_thorough => consented.chain([NOT_CONSENTED[0]]).collect(),
        Against::All => consented.filter(|words| FEW.iter().any(|few| words.starts_with(few))).collect(),
        Against::OwnCommands => consented.filter(|words| !is_fio(words)).collect(),
        Against::WithoutConsent => vec![NOT_CONSENTED[0]],
    };
    refuse(reporter, case.name, &words, target, case.message);
    if case.against == Against::WithoutConsent {
        write(reporter, case.name, CONSENTED[0], target);
    }
}

/// Each of `commands` is refused, for the reason that `message` is a part of.
fn refuse(reporter: &Reporter, case: &str, commands: &[&str], target: &Path, message: &str) {
    let before = match bytes_of(target) {
        Ok(before) => before,
        Err(error) => return reporter.report(REFUSAL, case, Err(error)),
    };
    for words in commands {
        let result = fathom(words, target).and_then(|ended| {
            ensure_unchanged(target, &before)?;
            let code = ended.status.code();
            ensure!(code.is_some_and(|code| code != 0 && code != 101), "not refused: {}", shown(&ended));
            let is_told = String::from_utf8_lossy(&ended.stderr).contains(message);
            ensure!(is_told, "its refusal does not say {message:?}: {}", shown(&ended));
            Ok(())
        });
        reporter.report(REFUSAL, &check_name(case, words, target), result);
    }
}

fn write(reporter: &Reporter, case: &str, words: &str, target: &Path) {
    let result = bytes_of(target).and_then(|before| {
        let ended = fathom(words, target)?;
        ensure!(ended.status.success(), "{}", shown(&ended));
        ensure!(bytes_of(target)? != before, "no byte has changed");
        Ok(())
    });
    reporter.report(WRITE, &check_name(case, words, target), result);
}

fn check_name(case: &str, words: &str, target: &Path) -> String {
    format!("{case}: {}", words.replace('@', &target.to_string_lossy()))
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
