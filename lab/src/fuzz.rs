//! `fuzz`: runs the fuzz targets of `fuzz/`, built with the stable toolchain, for as long as one likes, over several calls. Their known
//! inputs are tests of the workspace (`fuzz/tests/replay.rs`).
//!
//! The time of a target is cut into slices, each a case that belongs to the program that was built: a change of anything that a
//! target reaches starts its time anew. LLVM's SanitizerCoverage is a pass of the stable compiler too, so no nightly toolchain is
//! needed. There is no AddressSanitizer: what the targets reach forbids unsafe code.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, ensure};
use fathom_tests::{Need, fuzz_seeds};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use xtask::instructions::{Compiler, changes_code};
use xtask::process::{cargo_command, root, sha256, target_directory, watch};

use crate::driver::{Asked, Campaign, Case, CaseResult, Plan};

pub const CAMPAIGN: Campaign = Campaign {
    jobs: 2,
    options: &[("minutes", Some("30"), "CPU time of each target")],
    // libFuzzer is C++.
    needs: &[Need::Tool("g++")],
    resumes: true,
    ..Campaign::new("fuzz", "Run the fuzz targets, and continue where an earlier call ended", plan)
};

/// CPU time of a slice, minutes: a call that is killed loses so much of a target's time at the most.
const SLICE_MINUTES: u64 = 5;
/// Longest that one input may take.
const TIMEOUT_SECONDS: u32 = 10;
/// Most memory of the process; what the target itself may allocate is half of it (`fuzz/src/lib.rs`).
const MEMORY_MIB: u32 = 1024;
const MANIFEST: &str = "fuzz/targets/Cargo.toml";
/// The flags for edge coverage, as in cargo-fuzz. Branches that are folded into one are edges no longer.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0 \
    -Ccodegen-units=1 --cfg=fuzzing";
/// Numbers at which types end.
const EXTREMES: &str = "0 -1 255 65536 4294967295 4294967296 9223372036854775807 9223372036854775808 \
    18446744073709551615 18446744073709551616 1e308 5e-324 nan inf";
/// Words of a dictionary at most, each so long.
const MAX_WORDS: usize = 2_000;
const WORD: std::ops::RangeInclusive<usize> = 2..=40;
/// Largest input that is shown.
const SHOWN_BYTES: usize = 256;

/// First the inputs that made each target fail before, then slices of all targets in turn.
fn plan(asked: &Asked) -> anyhow::Result<Plan> {
    let minutes = asked.number("minutes")?;
    let slice = minutes.clamp(1, SLICE_MINUTES);
    let mut targets = targets(&fs::read_to_string(root().join(MANIFEST))?)?;
    targets.retain(|target| asked.includes(target));
    let programs = if asked.list { root() } else { build(&targets)? };
    let mut cases = Vec::new();
    let mut slices = Vec::new();
    for target in targets {
        let fuzzer = Fuzzer { program: programs.join(&target), target };
        let bytes = fs::read(&fuzzer.program).unwrap_or_default();
        let name = format!("{} of {}", fuzzer.target, &sha256(&bytes)[..8]);
        let again = fuzzer.clone();
        cases.push(Case::new(format!("{name}, regressions"), move || again.regressions()));
        slices.extend((0..minutes.div_ceil(slice)).map(|number| {
            let fuzzer = fuzzer.clone();
            let name = format!("{name}, {slice} min, {number:03}");
            (number, Case::new(name, move || fuzzer.slice(60.0 * slice as f64)))
        }));
    }
    slices.sort_by_key(|(number, _)| *number);
    cases.extend(slices.into_iter().map(|(_, case)| case));
    Ok(Plan::new(cases))
}

/// The targets, as the manifest names them.
fn targets(manifest: &str) -> anyhow::Result<Vec<String>> {
    let manifest: toml::Table = manifest.parse()?;
    let name = |bin: &toml::Value| Some(bin.get("name")?.as_str()?.to_owned());
    let bins = manifest.get("bin").and_then(toml::Value::as_array).into_iter().flatten();
    bins.map(name).collect::<Option<Vec<_>>>().with_context(|| format!("a target of {MANIFEST} has no name"))
}

/// Where builds, seeds, dictionaries and logs lie.
fn fuzz_directory() -> PathBuf {
    target_directory().join("fuzz")
}

/// Builds these targets. Returns the directory of the programs.
fn build(targets: &[String]) -> anyhow::Result<PathBuf> {
    // With a machine named, build scripts and procedural macros are built without the flags.
    let host = Compiler::in_use()?.host;
    let mut command =
        cargo_command(&["build", "--quiet", "--release", "--locked", "--manifest-path", MANIFEST]);
    command.args(["--target", &host, "--target-dir"]).arg(fuzz_directory());
    command.args(targets.iter().flat_map(|target| ["--bin", target]));
    for (name, _) in std::env::vars_os().filter(|(name, _)| changes_code(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    watch(command.env("RUSTFLAGS", FLAGS))?;
    Ok(fuzz_directory().join(host).join("release"))
}

/// A target and its program.
#[derive(Clone)]
struct Fuzzer {
    target: String,
    program: PathBuf,
}

impl Fuzzer {
    /// Inputs that made a target fail, in this and earlier campaigns: libFuzzer may not find them again. Not those that it keeps
    /// for their duration, which was within the limit.
    fn regressions(&self) -> anyhow::Result<CaseResult> {
        let mut inputs = files(&root().join("fuzz/regressions").join(&self.target));
        let is_slow = |path: &PathBuf| path.display().to_string().contains("/slow-unit-");
        inputs.extend(files(&self.findings()?).into_iter().filter(|path| !is_slow(path)));
        if inputs.is_empty() {
            return Ok(CaseResult::new("no inputs"));
        }
        let session = self.run(&inputs, "regressions", &[])?;
        let line = format!("{} inputs", inputs.len());
        Ok(CaseResult::new(line).faults(session.finding))
    }

    /// Runs libFuzzer for so much CPU time: on a busy machine that takes several sessions.
    fn slice(&self, seconds: f64) -> anyhow::Result<CaseResult> {
        let corpus = made(target_directory().join("fuzz-corpus").join(&self.target))?;
        let inputs = [corpus, self.write_seeds()?];
        let dictionary = format!("-dict={}", self.write_dictionary()?.display());
        let (mut runs, mut cpu_s) = (0, 0.0);
        loop {
            let time = format!("-max_total_time={:.0}", (seconds - cpu_s).ceil());
            let session = self.run(&inputs, "run", &[&time, &dictionary, "-print_final_stats=1"])?;
            let word = |name: &str| last_word(&session.log, name).unwrap_or_default();
            let session_runs: usize = word("stat::number_of_executed_units:").parse().unwrap_or(0);
            ensure!(session.finding.is_some() || session_runs > 0, "{} tried no input", self.target);
            runs += session_runs;
            cpu_s += session.cpu_s;
            if session.finding.is_some() || seconds - cpu_s < 1.0 {
                let line = format!(
                    "{runs} runs, {} edges, corpus {}, {cpu_s:.0} s of CPU",
                    word(" cov: "),
                    word(" corp: ")
                );
                let result = CaseResult::new(line).count_in(&self.target, "runs", runs);
                return Ok(result.count_in(&self.target, "CPU s", cpu_s as usize).faults(session.finding));
            }
        }
    }

    /// Runs the program to its end.
    fn run(&self, inputs: &[PathBuf], part: &str, more: &[&str]) -> anyhow::Result<Session> {
        let path = made(fuzz_directory())?.join(format!("{}-{part}.log", self.target));
        let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let mut command = Command::new(&self.program);
        command.args(inputs).args(more).arg(format!("-timeout={TIMEOUT_SECONDS}"));
        command.arg(format!("-rss_limit_mb={MEMORY_MIB}"));
        command.arg(format!("-artifact_prefix={}/", self.findings()?.display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let mut child = command.spawn().with_context(|| format!("cannot run {}", self.program.display()))?;
        // Its time can be read from its end until it is waited for.
        let _ = waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        let cpu_s = cpu_seconds(child.id());
        let status = child.wait().with_context(|| format!("cannot wait for {}", self.target))?;
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let log = String::from_utf8_lossy(&bytes).into_owned();
        let finding = self.finding(status, &log, &path);
        Ok(Session { log, cpu_s, finding })
    }

    /// What went wrong, and the command that reproduces it.
    fn finding(&self, status: ExitStatus, log: &str, path: &Path) -> Option<String> {
        if status.success() {
            return None;
        }
        let shown = match failed_input(log) {
            Some(input) => {
                let bytes = fs::read(input).unwrap_or_default();
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                let hex = if bytes.len() <= SHOWN_BYTES { format!("\n  hex: {hex}") } else { String::new() };
                format!(
                    "\n  input: {input} ({} bytes){hex}\n  to see it again: {} {input}\n  once it is fixed: keep it, as small as \
                     it gets, in fuzz/regressions/{}/",
                    bytes.len(),
                    self.program.display(),
                    self.target
                )
            }
            None => "\n  it left no input: see the messages".to_owned(),
        };
        Some(format!("fuzz target {}: {}{shown}\n  messages: {}", self.target, cause(log), path.display()))
    }

    fn findings(&self) -> anyhow::Result<PathBuf> {
        made(fuzz_directory().join("findings").join(&self.target))
    }

    /// Writes the inputs that the target begins with: files of the repository.
    fn write_seeds(&self) -> anyhow::Result<PathBuf> {
        let directory = made(fuzz_directory().join("seeds").join(&self.target))?;
        for (index, seed) in fuzz_seeds(&self.target).iter().enumerate() {
            let path = directory.join(format!("seed-{index:03}"));
            fs::write(&path, seed).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(directory)
    }

    /// Writes the words that the target may meet.
    fn write_dictionary(&self) -> anyhow::Result<PathBuf> {
        let seeds = fuzz_seeds(&self.target);
        let texts: Vec<_> = seeds.iter().map(|seed| String::from_utf8_lossy(seed)).collect();
        let words: BTreeSet<&str> = texts.iter().flat_map(|text| words(text)).collect();
        let words = words.into_iter().take(MAX_WORDS).chain(EXTREMES.split(' '));
        let words = words.map(str::to_owned).chain(option_words(&self.target));
        let lines: String = words.map(|word| format!("\"{}\"\n", escaped(&word))).collect();
        let path = fuzz_directory().join(format!("{}.dict", self.target));
        fs::write(&path, lines).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

/// A run of a program.
struct Session {
    log: String,
    cpu_s: f64,
    finding: Option<String>,
}

fn made(directory: PathBuf) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    Ok(directory)
}

/// The files of a directory, by name; none if there is no such directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn cpu_seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    crate::versus::stat_ticks(&stat, 11).unwrap_or(0) as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// The word behind the last `name` in libFuzzer's messages.
fn last_word<'a>(log: &'a str, name: &str) -> Option<&'a str> {
    log.lines().rev().find_map(|line| line.split_once(name))?.1.split_whitespace().next()
}

/// The first line that says what happened.
fn cause(log: &str) -> String {
    let mut lines = log.lines();
    while let Some(line) = lines.next() {
        if let Some((_, place)) = line.split_once("panicked at ") {
            let message = lines.next().unwrap_or_default();
            return format!("panicked at {place} {message}").chars().take(300).collect();
        }
        if line.contains("memory allocation of") || line.contains("ERROR: libFuzzer:") {
            return line.trim_start_matches('=').to_owned();
        }
    }
    "ended without a message, as by a signal".to_owned()
}

/// The input that did it: where libFuzzer kept it, or the last one of those that were replayed.
fn failed_input(log: &str) -> Option<&str> {
    let last = |before: &str| log.lines().rev().find_map(|line| Some(line.split_once(before)?.1.trim()));
    last("Test unit written to ").or_else(|| last("Running: "))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c));
    words.filter(|word| WORD.contains(&word.len()) && !word.starts_with(|c: char| c.is_ascii_digit()))
}

/// The names of fio's options and the words that they take, as `target` writes them.
fn option_words(target: &str) -> Vec<String> {
    let dashes = match target {
        "job_file" => "",
        "command_line" => "--",
        _ => return Vec::new(),
    };
    let mut words = Vec::new();
    for row in fathom_options::OPTION_TABLE.iter().flat_map(|(_, rows)| *rows) {
        words.push(format!("{dashes}{}=", row.name));
        if let fathom_options::OptionValueKind::Choice(choices) = row.kind {
            words.extend(choices.iter().map(|choice| format!("{dashes}{}={choice}", row.name)));
        }
    }
    words.extend(fathom_options::UNSUPPORTED.iter().map(|option| format!("{dashes}{}", option.name)));
    words
}

/// A word in libFuzzer's syntax: special bytes in hexadecimal.
fn escaped(word: &str) -> String {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        0x20..=0x7e => char::from(byte).to_string(),
        _ => format!("\\x{byte:02X}"),
    };
    word.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_those_of_the_manifest() {
        let manifest = "[package]\nname = 'f'\n[[bin]]\nname = 'a'\n[[bin]]\nname = 'b'\n";
        assert_eq!(targets(manifest).unwrap(), ["a", "b"]);
        assert!(targets("[[bin]]\npath = 'a.rs'\n").is_err());
        assert!(!targets(&fs::read_to_string(root().join(MANIFEST)).unwrap()).unwrap().is_empty());
    }

    #[test]
    fn dictionaries_have_words_of_seeds_and_options() {
        assert_eq!(words("[a]\niops = 5000 # x_y").collect::<Vec<_>>(), ["iops", "x_y"]);
        let words = option_words("command_line");
        assert!(
            ["--rw=", "--rw=randread", "--verify="].iter().all(|word| words.iter().any(|has| has == word))
        );
        assert!(option_words("trace").is_empty());
        assert_eq!(escaped("a\"b\\\nµ"), "a\\\"b\\\\\\x0A\\xC2\\xB5");
    }

    #[test]
    fn every_exit_status_has_a_cause() {
        let check = |log: &str, expected: &str| assert_eq!(cause(log), expected);
        check(
            "==3== ERROR: libFuzzer: timeout after 11 seconds\n",
            "3== ERROR: libFuzzer: timeout after 11 seconds",
        );
        check("memory allocation of 68 bytes failed\n", "memory allocation of 68 bytes failed");
        check(
            "thread 'x' panicked at src/a.rs:5:9:\nattempt to add\n",
            "panicked at src/a.rs:5:9: attempt to add",
        );
        check("", "ended without a message, as by a signal");
        assert_eq!(failed_input("Running: /r/1\nRunning: /r/2\n"), Some("/r/2"));
    }

    /// A program in place of a target, with `files` as what it kept of an earlier campaign.
    fn fuzzer(directory: &Path, script: &str) -> Fuzzer {
        use std::os::unix::fs::PermissionsExt as _;
        let program = directory.join("program");
        // Written by another process, so that no child of this one inherits it open for writing.
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf '%s' \"$1\" > \"$0\""]).arg(&program).arg(script);
        assert!(shell.status().unwrap().success());
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Fuzzer { target: "no-such-target".to_owned(), program }
    }

    #[test]
    fn a_finding_has_a_command_that_reproduces_it() {
        let directory = tempfile::tempdir().unwrap();
        let input = directory.path().join("crash-1");
        fs::write(&input, b"a\n").unwrap();
        let input = input.display();
        let script = format!("#!/bin/sh\necho 'Test unit written to {input}' >&2\nexit 77\n");
        let fuzzer = fuzzer(directory.path(), &script);
        let finding = fuzzer.run(&[], "test", &[]).unwrap().finding.unwrap();
        let lines: Vec<&str> = finding.lines().collect();
        assert_eq!(lines[0], "fuzz target no-such-target: ended without a message, as by a signal");
        assert_eq!(lines[1..3], [format!("  input: {input} (2 bytes)"), "  hex: 610a".to_owned()]);
        assert_eq!(lines[3], format!("  to see it again: {} {input}", fuzzer.program.display()));
        assert!(fuzzer.regressions().unwrap().line == "no inputs");
    }

    #[test]
    fn a_slice_counts_what_it_tried() {
        let directory = tempfile::tempdir().unwrap();
        let log = "#99 DONE cov: 2868 ft: 3793 corp: 39/1441b lim: 223\nstat::number_of_executed_units: 4268";
        let script = format!("#!/bin/sh\necho '{log}' >&2\n");
        let result = fuzzer(directory.path(), &script).slice(0.5).unwrap();
        assert!(result.line.starts_with("4268 runs, 2868 edges, corpus 39/1441b, "), "{result:?}");
        assert!(fuzzer(directory.path(), "#!/bin/sh\n").slice(0.5).is_err(), "nothing was tried");
    }
}
