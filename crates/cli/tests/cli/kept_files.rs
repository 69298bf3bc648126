//! No option of any command replaces the history in use or an input of the same command. The options are read from the help, so that
//! a new one is tried as well.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use fathom_tests::{LoopDevice, need};

use crate::{run, scratch};

/// Arguments with which a command gets to where it writes, without those that name it. Paths are of [`inputs`].
const BASES: &[(&str, &[&str])] = &[
    (
        "bench",
        &["--quick", "--only=rand-read", "--runtime=20ms", "--catalog=own.toml", "sim:custom?iops=1000"],
    ),
    ("sweep", &["--budget=10s", "--catalog=own.toml", "sim:custom?iops=1000"]),
    ("identify", &["--budget=30s", "--catalog=own.toml", "sim:custom?iops=100"]),
    ("surface", &["--budget=10s", "--catalog=own.toml", "sim:custom?iops=1000&size=1GiB"]),
    ("prepare", &["--catalog=own.toml", "--size=1m", "new"]),
    ("simulate", &["custom?iops=1000", "--job=job.fio", "--for=10s", "--catalog=own.toml", "--keep"]),
    ("monitor", &["--count=1", "--interval=1", "."]),
    ("twin check", &["absent", "sim:custom?iops=1000"]),
    ("trace convert", &["load.iolog"]),
    ("advise", &["load.iolog", "--catalog=own.toml"]),
    ("catalog list", &[]),
    ("catalog show", &["aws-gp3"]),
    ("catalog fit", &["--iops=1000"]),
    ("compare", &["one.json", "two.json"]),
    ("report", &["one.json"]),
    ("fleet merge", &["one.json", "two.json"]),
    ("fleet scaling", &["one.json", "two.json"]),
    ("history export", &[]),
    ("man", &[]),
];

/// Commands that do not end by themselves, or start processes on other hosts.
const NOT_RUN: &[&str] = &["serve", "fleet run", "fleet check"];

/// Names of inputs that must not change.
const INPUTS: [&str; 5] = ["own.toml", "one.json", "two.json", "load.iolog", "job.fio"];

/// A directory with a history of two runs and the inputs of [`BASES`].
fn inputs(dir: &Path) {
    for (number, name) in ["1", "2"].into_iter().zip(["one.json", "two.json"]) {
        let bench = ["bench", "--quick", "--only=rand-read", "--runtime=20ms", "--keep", "--history=h.db"];
        run(dir, &[&bench[..], &["sim:custom?iops=1000"]].concat()).succeeded();
        run(dir, &["history", "export", number, "--history=h.db", "-o", name]).succeeded();
    }
    fs::write(dir.join("own.toml"), "").unwrap();
    fs::write(dir.join("job.fio"), "[a]\nrw=randread\nsize=1m\n").unwrap();
    fs::write(dir.join("load.iolog"), "fio version 3 iolog\n0 f add\n1 f open\n2 f read 0 4096\n3 f close\n")
        .unwrap();
    for (number, name) in ["h.db"].iter().chain(&INPUTS).enumerate() {
        for ending in ["html", "svg", "iolog"] {
            symlink(name, dir.join(format!("link-{number}.{ending}"))).unwrap();
        }
    }
}

/// A command as its help describes it.
struct Described {
    words: String,
    /// Options that may name a file, and their placeholders.
    options: Vec<(String, String)>,
    has_history: bool,
}

/// The commands at and below `path`.
fn commands(dir: &Path, path: &[&str], found: &mut Vec<Described>) {
    let help = run(dir, &[path, &["--help"]].concat()).succeeded().stdout;
    found.push(Described {
        words: path.join(" "),
        options: help.lines().filter_map(file_option).collect(),
        has_history: help.contains("--history <"),
    });
    let list = match help.split_once("\nCommands:\n") {
        Some((_, rest)) => rest.split("\n\n").next().unwrap(),
        // The help of the program has its commands in groups.
        None if path.is_empty() => help.split("\nOptions:\n").next().unwrap(),
        None => "",
    };
    for line in list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let name = line.split_whitespace().next().unwrap();
        if name != "help" {
            commands(dir, &[path, &[name]].concat(), found);
        }
    }
}

/// The option of a line such as `  -o, --output <FILE>`, if its value may be a file.
fn file_option(line: &str) -> Option<(String, String)> {
    let (before, rest) = line.split_once("--")?;
    if !before.chars().all(|c| c == ' ' || c == '-' || c == ',' || c.is_alphabetic()) {
        return None;
    }
    let (name, rest) = rest.split_once(" <")?;
    let placeholder = rest.split_once('>')?.0;
    let names_file = ["FILE", "PATH", "DIR", "STREAM"].iter().any(|word| placeholder.contains(word));
    (names_file && name != "history").then(|| (name.to_owned(), placeholder.to_owned()))
}

#[test]
fn no_option_of_any_command_replaces_the_history_or_an_input() {
    let dir = scratch();
    let dir = dir.path();
    inputs(dir);
    // The history, and what the command reads.
    let is_kept = |name: &str, base: &[&str]| name == "h.db" || base.iter().any(|word| word.ends_with(name));
    let (tried, refused) = try_all(dir, is_kept);
    assert!(tried > 60 && refused > 20, "{refused} of {tried} refused");
}

/// A file that a loop device uses loses nothing, whether or not anybody uses the device.
#[test]
fn no_option_of_any_command_replaces_the_file_of_a_loop_device() {
    need!(root, tool "losetup");
    let dir = scratch();
    let dir = dir.path();
    inputs(dir);
    let device = LoopDevice::over(&dir.join("load.iolog"));
    let (tried, refused) = try_all(dir, |name, _| name == "load.iolog");
    drop(device);
    assert!(tried > 30 && refused > 15, "{refused} of {tried} refused");
}

/// Tries to write to each of the files that `is_kept` names, for a command with these arguments, by every option that names a
/// file, through a link. Returns how often that was tried, and refused.
fn try_all(dir: &Path, is_kept: impl Fn(&str, &[&str]) -> bool) -> (usize, usize) {
    let contents = || INPUTS.map(|name| fs::read(dir.join(name)).unwrap());
    let before = contents();
    let mut all = Vec::new();
    commands(dir, &[], &mut all);
    let (mut tried, mut refused) = (0, 0);
    for Described { words: command, options, has_history } in &all {
        if options.is_empty() || NOT_RUN.contains(&command.as_str()) {
            continue;
        }
        let base = BASES.iter().find(|(name, _)| name == command);
        let (_, base) =
            base.unwrap_or_else(|| panic!("{command} has options for files and no arguments here"));
        let words: Vec<&str> = command.split(' ').collect();
        let keeps = if *has_history { &["--history=h.db"][..] } else { &[] };
        for (option, placeholder) in options {
            let ending = if placeholder.contains("svg") { "svg" } else { "html" };
            let kept = ["h.db"].iter().chain(&INPUTS).enumerate().filter(|(_, name)| is_kept(name, base));
            for (number, _) in kept {
                let link = format!("link-{number}.{ending}");
                let value = if placeholder == "STREAM" { format!("ndjson={link}") } else { link };
                let option = format!("--{option}={value}");
                let ended = run(dir, &[&words[..], base, keeps, &[option.as_str()]].concat());
                tried += 1;
                refused += usize::from(
                    ["belongs to the history", "that this command reads", "it holds the data of /dev/loop"]
                        .iter()
                        .any(|why| ended.stderr.contains(why)),
                );
                assert_eq!(contents(), before, "{command} {option}: {ended:?}");
            }
        }
        run(dir, &["history", "show", "1", "--history=h.db"]).succeeded();
    }
    (tried, refused)
}

#[test]
fn no_option_of_fio_replaces_the_history() {
    let dir = scratch();
    let dir = dir.path();
    inputs(dir);
    let listed = run(dir, &["fio", "--cmdhelp=all"]).succeeded().stdout
        + &run(dir, &["fio", "--help"]).succeeded().stdout;
    let mut refused = 0;
    let names: Vec<&str> = listed.lines().filter_map(fio_option).collect();
    for name in &names {
        let option = format!("--{name}=link-0.html");
        // Options of whichever kind: a value that does not fit is refused.
        let job = ["fio", "--name=a", "--ioengine=null", "--filename=data", "--size=4k", &option];
        let ended = run(dir, &job);
        refused += usize::from(ended.stderr.contains("it is a history"));
        let head = fs::read(dir.join("h.db")).unwrap();
        assert!(
            head.starts_with(b"SQLite format 3\0") && dir.join("link-0.html").is_symlink(),
            "{option}: {ended:?}"
        );
    }
    run(dir, &["history", "show", "1", "--history=h.db"]).succeeded();
    assert!(names.len() > 250 && refused >= 2, "{refused} of {}", names.len());
}

/// The name in a line of `--cmdhelp=all`, or of the options in the help of `fio`.
fn fio_option(line: &str) -> Option<&str> {
    let is_name =
        |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    match line.trim_start().strip_prefix("--") {
        Some(option) => option.split(['=', ' ', '[']).next().filter(is_name),
        // The rows of a job option have other words before their colons.
        None => line.split_once(": ").map(|(name, _)| name.trim()).filter(is_name),
    }
    .filter(|name| !["type", "default", "help", "version", "debug", "cmdhelp", "enghelp"].contains(name))
}
