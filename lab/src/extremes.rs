//! `extremes`: extreme numbers in every option of every command, on simulated volumes and the null engine.
//!
//! No run may abort, use more than a gigabyte, or be deaf: one that goes on for five seconds is asked to end, and has two for it.
//! Options are read from the help, so that a new one is tried as well. Beyond single options, pairs of them are drawn.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use fathom_tests::{fathom_path, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tempfile::TempDir;
use xtask::process::output;

use crate::driver::{Asked, Campaign, Case, CaseResult, Plan};

/// Single options are all tried, whatever the number of cases.
pub const CAMPAIGN: Campaign = Campaign {
    cases: 10_000,
    jobs: 2,
    ..Campaign::new("extremes", "Try extreme numbers in every option of every command", |asked| {
        let home = Arc::new(tempfile::tempdir()?);
        let commands = command_lines(&home, asked)?;
        Ok(Plan::new(commands.into_iter().enumerate().map(|(number, words)| {
            let home = home.clone();
            let shown: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            let name = format!("{number}: fathom {}", shown.join(" "));
            Case::new(name, move || tried(&home.path().join(number.to_string()), &words))
        })))
    })
};

/// Most memory of a run, KiB.
const MAX_RESIDENT_KIB: u64 = 1 << 20;
/// Time after which a run is asked to end, and the time that it has for it.
const PATIENCE: Duration = Duration::from_secs(5);
const GRACE: Duration = Duration::from_secs(2);

/// What command lines are made of (`extremes.toml`).
#[derive(Deserialize)]
struct Extremes {
    values: Vec<String>,
    not_run: Vec<String>,
    fio_not_run: Vec<String>,
    keys: Vec<String>,
    bases: std::collections::BTreeMap<String, Vec<String>>,
}

/// The command lines: each option with each value, and pairs of options until there are as many as asked for.
fn command_lines(home: &TempDir, asked: &Asked) -> anyhow::Result<Vec<Vec<String>>> {
    let extremes: Extremes = toml::from_str(include_str!("extremes.toml"))?;
    make_inputs(home.path(), &extremes.bases["bench"])?;
    let mut lines = own_lines(&extremes, &[])?;
    for key in &extremes.keys {
        let base = ["bench", "--quick", "--only=rand-read", "--runtime=20ms"];
        let volumes = extremes.values.iter().map(|value| format!("sim:custom?{key}={value}"));
        lines.extend(volumes.map(|volume| [owned(&base), vec![volume]].concat()));
    }
    let options = fio_options(&extremes.fio_not_run)?;
    ensure!(options.len() > 200, "the help of fio's options names {}", options.len());
    for option in &options {
        lines.extend(extremes.values.iter().flat_map(|value| fio_lines(&[(option, value)])));
    }
    let mut random = 1_u64 + asked.from;
    let mut below = |limit: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % limit
    };
    let values = &extremes.values;
    while (lines.len() as u64) < asked.cases {
        let mut pair = || (options[below(options.len())].as_str(), values[below(values.len())].as_str());
        lines.extend(fio_lines(&[pair(), pair()]));
    }
    Ok(lines)
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A word as one may type it.
fn quoted(word: &str) -> String {
    if word.contains([' ', '&', '?']) || word.is_empty() { format!("'{word}'") } else { word.to_owned() }
}

fn printed(words: &[&str]) -> anyhow::Result<String> {
    output(Command::new(fathom_path()).args(words))
}

/// Two records and an iolog, which commands read.
fn make_inputs(directory: &Path, bench: &[String]) -> anyhow::Result<()> {
    let history = format!("--history={}", directory.join("inputs.db").display());
    for (number, name) in [("1", "one.json"), ("2", "two.json")] {
        let bench: Vec<&str> = bench.iter().map(String::as_str).collect();
        printed(&[&["bench"], &bench[..], &["--keep", &history]].concat())?;
        let path = directory.join(name).display().to_string();
        printed(&["history", "export", number, &history, "-o", &path])?;
    }
    let iolog = "fio version 3 iolog\n0 f add\n1 f open\n2 f read 0 4096\n3 f close\n";
    Ok(fs::write(directory.join("load.iolog"), iolog)?)
}

/// The options that take a value, of the command at `path` and of those below it, with each value.
fn own_lines(extremes: &Extremes, path: &[&str]) -> anyhow::Result<Vec<Vec<String>>> {
    let help = printed(&[path, &["--help"]].concat())?;
    let mut lines = Vec::new();
    let name = path.join(" ");
    if extremes.not_run.contains(&name) || name == "fio" {
        return Ok(lines);
    }
    let base = extremes.bases.get(&name).map_or(&[][..], Vec::as_slice);
    for option in help.lines().filter_map(option_with_value) {
        // What the base says of the option gives way.
        let kept = base.iter().filter(|word| !word.starts_with(&format!("--{option}=")));
        let kept: Vec<String> = kept.cloned().collect();
        let with = |value: &String| [owned(path), vec![format!("--{option}={value}")], kept.clone()].concat();
        lines.extend(extremes.values.iter().map(with));
    }
    let list =
        help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest.split("\n\n").next().unwrap_or(""));
    for line in list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        if let Some(below) = line.split_whitespace().next().filter(|below| *below != "help") {
            lines.extend(own_lines(extremes, &[path, &[below]].concat())?);
        }
    }
    Ok(lines)
}

/// The name of a line such as `  -o, --output <FILE>`.
fn option_with_value(line: &str) -> Option<String> {
    let (before, rest) = line.split_once("--")?;
    let is_head = before.chars().all(|c| c == ' ' || c == '-' || c == ',' || c.is_alphabetic());
    let (name, _) = rest.split_once([' ', '['])?;
    (is_head && rest.contains('<') && name != "history").then(|| name.to_owned())
}

fn fio_options(not_run: &[String]) -> anyhow::Result<Vec<String>> {
    let help = printed(&["fio", "--cmdhelp=all"])?;
    let names = help.lines().filter_map(|line| line.trim_start().split_once(": ").map(|(name, _)| name));
    let is_name =
        |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c));
    let is_head = |name: &&str| !["type", "default", "alias", "valid", "example", "aliases"].contains(name);
    let is_run = |name: &&str| !not_run.iter().any(|not_run| not_run == name);
    let mut options: Vec<String> =
        names.filter(is_name).filter(is_head).filter(is_run).map(str::to_owned).collect();
    options.dedup();
    Ok(options)
}

/// A job with these options, on the null engine and on a simulated volume.
fn fio_lines(options: &[(&str, &str)]) -> [Vec<String>; 2] {
    ["--ioengine=null", "--filename=sim:custom?iops=1000&size=1GiB"].map(|target| {
        let mut words =
            owned(&["fio", "--name=a", target, "--rw=randrw", "--bs=4k", "--size=1m", "--runtime=1"]);
        words.extend(options.iter().map(|(name, value)| format!("--{name}={value}")));
        words
    })
}

/// Runs a command line in a directory of its own, beside the inputs.
fn tried(place: &Path, words: &[String]) -> anyhow::Result<CaseResult> {
    fs::create_dir(place)?;
    let printed = place.with_extension("out");
    let file = File::create(&printed)?;
    let mut command = Command::new(fathom_path());
    command.args(words).current_dir(place);
    command.env("FATHOM_HISTORY", place.join("history.db")).env("FATHOM_CATALOG", "");
    let mut child = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()?;
    let mut resident_kib = 0;
    let mut end = "ended by itself";
    let mut status = wait(&mut child, PATIENCE, &mut resident_kib)?;
    if status.is_none() {
        end = "asked to end";
        kill_process(Pid::from_child(&child), Signal::TERM)?;
        status = wait(&mut child, GRACE, &mut resident_kib)?;
    }
    let fault = match status {
        Some(status) => fault(status, resident_kib, &printed),
        None => {
            child.kill()?;
            child.wait()?;
            Some(format!("does not end {} s after a signal", GRACE.as_secs()))
        }
    };
    fs::remove_dir_all(place)?;
    fs::remove_file(&printed)?;
    Ok(CaseResult::new(end).count(end, 1).faults(fault))
}

/// Waits for `patience`, and reads how much memory the run uses at most; `None` if it goes on.
fn wait(child: &mut Child, patience: Duration, resident_kib: &mut u64) -> anyhow::Result<Option<ExitStatus>> {
    let mut ended = Ok(None);
    wait_for(patience, || {
        ended = child.try_wait();
        let peak = crate::versus::resident::peak_bytes(child.id()).unwrap_or(0) >> 10;
        *resident_kib = peak.max(*resident_kib);
        !matches!(ended, Ok(None)) || *resident_kib > 2 * MAX_RESIDENT_KIB
    });
    Ok(ended?)
}

/// What is wrong with a run that ended.
fn fault(status: ExitStatus, resident_kib: u64, printed: &Path) -> Option<String> {
    let text = String::from_utf8_lossy(&fs::read(printed).unwrap_or_default()).into_owned();
    let is_internal = |line: &&str| line.contains("internal error at") || line.contains("panicked at");
    match (status.signal(), text.lines().find(is_internal)) {
        (Some(signal), _) => Some(format!("ends by signal {signal}")),
        (None, Some(line)) => Some(format!("has an internal error ({line})")),
        (None, None) if status.code() == Some(101) => Some("has an internal error".to_owned()),
        _ => (resident_kib > MAX_RESIDENT_KIB).then(|| format!("uses {} MiB", resident_kib >> 10)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_with_values_are_read_from_the_help() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(option_with_value(line).as_deref(), expected, "{line}");
        };
        check("  -o, --output <FILE>  Write it there", Some("output"));
        check("      --runtime[=<TIME>]", Some("runtime"));
        check("      --quick  Run briefly", None);
        check("      --history <URI>", None);
        let extremes: Extremes = toml::from_str(include_str!("extremes.toml")).unwrap();
        assert!(extremes.bases.contains_key("bench") && extremes.values.contains(&String::new()));
        assert_eq!(
            (quoted("a&b"), quoted(""), quoted("--a=1")),
            ("'a&b'".into(), "''".into(), "--a=1".into())
        );
    }
}
