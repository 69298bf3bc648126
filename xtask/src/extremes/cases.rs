//! The command lines: each option with each value, and pairs of options.

use std::fs;
use std::path::Path;

use anyhow::ensure;

use super::printed;

const VALUES: [&str; 8] = ["", "0", "1", "-1", "2147483647", "9223372036854775808", "1e308", "NaN"];

/// Arguments with which a command runs briefly. Paths are of [`inputs`]; a command that is not here gets none.
const BASES: &[(&str, &[&str])] = &[
    ("bench", &["--quick", "--only=rand-read", "--runtime=20ms", VOLUME]),
    ("sweep", &["--budget=10s", VOLUME]),
    ("identify", &["--budget=30s", VOLUME]),
    ("surface", &["--budget=10s", VOLUME]),
    ("ping", &["--count=3", VOLUME]),
    ("prepare", &["--size=1m", "new"]),
    ("simulate", &["custom?iops=1000", "--profile=oltp", "--for=10s"]),
    ("monitor", &["--count=1", "--interval=1", "."]),
    ("twin check", &["absent", VOLUME]),
    ("trace info", &["../load.iolog"]),
    ("trace convert", &["../load.iolog"]),
    ("advise", &["../load.iolog"]),
    ("catalog show", &["aws-gp2"]),
    ("catalog fit", &["--iops=1000"]),
    ("compare", &["../one.json", "../two.json"]),
    ("report", &["../one.json"]),
    ("merge", &["../one.json", "../two.json"]),
    ("fleet scaling", &["../one.json", "../two.json"]),
    ("doctor", &["."]),
];
const VOLUME: &str = "sim:custom?iops=1000&size=1GiB";

/// Commands that do not end by themselves, start processes elsewhere, or take a tour of all others.
const NOT_RUN: [&str; 6] = ["serve", "fleet run", "fleet check", "demo", "completions", "help"];
/// Options of fio that leave processes or control groups behind.
const FIO_NOT_RUN: [&str; 6] = ["daemonize", "server", "client", "cgroup", "remote-config", "cmdhelp"];
/// Keys of volumes of one's own.
const KEYS: [&str; 18] = [
    "size",
    "iops",
    "bandwidth",
    "burst_iops",
    "burst_bandwidth",
    "bucket_ios",
    "bucket_bytes",
    "io_unit",
    "io_merge",
    "latency",
    "latency_spread",
    "first_touch",
    "parallelism",
    "instance_iops",
    "instance_bandwidth",
    "cache_size",
    "cache_hit",
    "credits",
];

/// `wanted` cases; all of the single options in any case.
pub(super) fn all(program: &Path, directory: &Path, wanted: usize) -> anyhow::Result<Vec<Vec<String>>> {
    inputs(program, directory)?;
    let mut cases = own(program, &[])?;
    for key in KEYS {
        let volumes = VALUES.map(|value| format!("sim:custom?{key}={value}"));
        cases.extend(
            volumes.map(|volume| words(&["bench", "--quick", "--only=rand-read", "--runtime=20ms", &volume])),
        );
    }
    let options = fio_options(program)?;
    ensure!(options.len() > 200, "the help of fio's options names {}", options.len());
    for option in &options {
        for value in VALUES {
            cases.extend(fio(&[(option, value)]));
        }
    }
    let mut random = 1_u64;
    let mut below = |limit: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % limit
    };
    while cases.len() < wanted {
        let mut pair = || (options[below(options.len())].as_str(), VALUES[below(VALUES.len())]);
        cases.extend(fio(&[pair(), pair()]));
    }
    Ok(cases)
}

/// A command line as one may type it.
pub(super) fn shown(words: &[String]) -> String {
    let quoted = |word: &String| match word.contains([' ', '&', '?']) || word.is_empty() {
        true => format!("'{word}'"),
        false => word.clone(),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn inputs(program: &Path, directory: &Path) -> anyhow::Result<()> {
    let history = format!("--history={}", directory.join("inputs.db").display());
    for (number, name) in ["1", "2"].into_iter().zip(["one.json", "two.json"]) {
        let bench = ["bench", "--quick", "--only=rand-read", "--runtime=20ms", "--keep", &history, VOLUME];
        printed(program, &bench)?;
        let path = directory.join(name).display().to_string();
        printed(program, &["history", "export", number, &history, "-o", &path])?;
    }
    let iolog = "fio version 3 iolog\n0 f add\n1 f open\n2 f read 0 4096\n3 f close\n";
    Ok(fs::write(directory.join("load.iolog"), iolog)?)
}

/// The options that take a value, of the command at `path` and of those below it, with each value.
fn own(program: &Path, path: &[&str]) -> anyhow::Result<Vec<Vec<String>>> {
    let help = printed(program, &[path, &["--help"]].concat())?;
    let mut cases = Vec::new();
    let name = path.join(" ");
    if NOT_RUN.contains(&name.as_str()) || name == "fio" {
        return Ok(cases);
    }
    let (_, base) = BASES.iter().find(|(command, _)| *command == name).unwrap_or(&("", &[]));
    for option in help.lines().filter_map(option_with_value) {
        for value in VALUES {
            let own = format!("--{option}={value}");
            // What the base says of the option gives way.
            let kept = base.iter().filter(|word| !word.starts_with(&format!("--{option}=")));
            let mut case = words(path);
            case.extend(kept.map(|word| (*word).to_owned()));
            case.insert(path.len(), own);
            cases.push(case);
        }
    }
    let list = help
        .split_once("\nCommands:\n")
        .map_or("", |(_, rest)| rest.split("\n\n").next().unwrap_or_default());
    for line in list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        if let Some(below) = line.split_whitespace().next().filter(|below| *below != "help") {
            cases.extend(own(program, &[path, &[below]].concat())?);
        }
    }
    Ok(cases)
}

/// The name of a line such as `  -o, --output <FILE>`.
fn option_with_value(line: &str) -> Option<String> {
    let (before, rest) = line.split_once("--")?;
    let is_head = before.chars().all(|c| c == ' ' || c == '-' || c == ',' || c.is_alphabetic());
    let (name, _) = rest.split_once([' ', '['])?;
    (is_head && rest.contains('<') && name != "history").then(|| name.to_owned())
}

fn fio_options(program: &Path) -> anyhow::Result<Vec<String>> {
    let help = printed(program, &["fio", "--cmdhelp=all"])?;
    let names = help.lines().filter_map(|line| line.trim_start().split_once(": ").map(|(name, _)| name));
    let is_name =
        |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c));
    let is_head = |name: &&str| !["type", "default", "alias", "valid", "example", "aliases"].contains(name);
    let mut options: Vec<String> = names
        .filter(is_name)
        .filter(is_head)
        .filter(|name| !FIO_NOT_RUN.contains(name))
        .map(str::to_owned)
        .collect();
    options.dedup();
    Ok(options)
}

/// A job with these options, on the null engine and on a simulated volume.
fn fio(options: &[(&str, &str)]) -> [Vec<String>; 2] {
    ["--ioengine=null", "--filename=sim:custom?iops=1000&size=1GiB"].map(|target| {
        let mut words =
            words(&["fio", "--name=a", target, "--rw=randrw", "--bs=4k", "--size=1m", "--runtime=1"]);
        words.extend(options.iter().map(|(name, value)| format!("--{name}={value}")));
        words
    })
}
