//! Instruction counts of one operation of the loop, the recorder and the generators, compared with stored values.
//!
//! Counts do not depend on how busy the machine is, so they can fail the gate where times could not. The cases are the
//! bench targets called `instructions`; the values stand in `benches/instructions.toml` and change by a reviewed commit.
//! Each case runs under callgrind with N and with 2N operations, and what N more cost is divided by N. So start-up, the
//! preparation of a case and its end do not count; but as start-up varies by some hundred instructions, a count may differ
//! by 0.01 from run to run. It says nothing of caches or of branches that are guessed wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::process::{cargo_command, output, target_directory};

const STORE: &str = "benches/instructions.toml";
const HEAD: &str = "\
# Instructions per operation, counted by `cargo xtask instructions`. The gate fails where one is off by more than 3 %.
# Renewed by `cargo xtask instructions --write`, in the commit that changes the code and says why.
";
const WRITE: &str = "`cargo xtask instructions --write`";
/// Packages with a bench target called `instructions`.
const PACKAGES: [&str; 4] = ["fathom-workload", "fathom-stats", "fathom-runner", "fathom-volume"];
const VALGRIND: &str = "valgrind";
/// Keeps the C library to the copying and clearing that every x86-64 has; elsewhere it says nothing.
const SAME_ON_EVERY_CPU: (&str, &str) = ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX2,-SSSE3,-ERMS,-FSRM");

/// The arguments: store the counts instead of comparing them, and take only cases whose names contain a text.
#[derive(Debug, Default, PartialEq, Eq)]
struct InstructionArguments {
    write: bool,
    only: Option<String>,
}

impl InstructionArguments {
    /// Reads the arguments; `None` where they make no sense.
    fn parse(arguments: &[&str]) -> Option<Self> {
        let mut asked = InstructionArguments::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match *argument {
                "--write" => asked.write = true,
                "--only" => asked.only = Some((*arguments.next()?).to_owned()),
                _ => return None,
            }
        }
        Some(asked)
    }
}

/// Whether the counts could be compared on this machine.
pub enum Compared {
    /// They hold; with a note on how many and how closely.
    Holds(String),
    /// They could not be compared, and why.
    Skipped(String),
}

/// The command: counts, shows every case, and stores or compares.
pub fn run(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let asked =
        InstructionArguments::parse(arguments).context("instructions takes [--write] [--only NAME]")?;
    if let Some(why) = missing() {
        bail!("{why}");
    }
    let (now, lines) = compare(root, &asked)?;
    println!("instructions per operation, rustc {}", now.compiler.rustc);
    lines.iter().for_each(|line| println!("  {line}"));
    if asked.write {
        return write(root, &asked, now);
    }
    match judge(root, &now.compiler, &lines)? {
        Compared::Holds(note) => println!("{note}"),
        Compared::Skipped(why) => bail!("{why}"),
    }
    Ok(())
}

/// The step of the gate: counts and compares, and shows only what does not hold.
pub fn check(root: &Path) -> anyhow::Result<Compared> {
    if let Some(why) = missing() {
        return Ok(Compared::Skipped(why));
    }
    let (now, lines) = compare(root, &InstructionArguments::default())?;
    judge(root, &now.compiler, &lines)
}

/// Why nothing can be counted on this machine; `None` where it can.
fn missing() -> Option<String> {
    let mut probe = Command::new(VALGRIND);
    let there = probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    (!there.is_ok_and(|status| status.success()))
        .then(|| format!("{VALGRIND} is missing (as root on Debian: apt-get install {VALGRIND})"))
}

/// Counts the requested cases, with their stored values.
fn compare(root: &Path, asked: &InstructionArguments) -> anyhow::Result<(StoredCounts, Vec<CountLine>)> {
    let compiler = Compiler::in_use()?;
    let only = asked.only.as_deref().unwrap_or_default();
    let mut cases = cases()?;
    let names: Vec<String> = cases.iter().map(|case| case.name.clone()).collect();
    cases.retain(|case| case.name.contains(only));
    ensure!(!cases.is_empty(), "no case has \"{only}\" in its name; there are {}", names.join(", "));
    let counts = count_all(&cases, &target_directory().join("instructions"))?;
    let mut stored =
        StoredCounts::read(&root.join(STORE))?.map_or_else(BTreeMap::new, |stored| stored.counts);
    stored.retain(|name, _| name.contains(only));
    let lines = count_lines(&stored, &counts);
    Ok((StoredCounts { compiler, counts }, lines))
}

/// Fails with a message for each case that does not hold.
fn judge(root: &Path, compiler: &Compiler, lines: &[CountLine]) -> anyhow::Result<Compared> {
    let path = root.join(STORE);
    let Some(stored) = StoredCounts::read(&path)? else {
        bail!("{STORE} is not there: {WRITE} makes it");
    };
    if stored.compiler.host != compiler.host {
        return Ok(Compared::Skipped(format!(
            "{STORE} holds counts of {}, this is {}",
            stored.compiler.host, compiler.host
        )));
    }
    let ratio =
        if stored.compiler == *compiler { CountRatio::SAME_COMPILER } else { CountRatio::OTHER_COMPILER };
    let mut note = format!("{} cases within {}", lines.len(), ratio.name());
    if stored.compiler != *compiler {
        note += &format!(
            ", for the stored counts are of rustc {} and this is {}; store anew with {WRITE}",
            stored.compiler.rustc, compiler.rustc
        );
    }
    let wrong: Vec<String> = lines.iter().filter_map(|line| line.complaint(ratio)).collect();
    if wrong.is_empty() {
        return Ok(Compared::Holds(note));
    }
    let profiles = target_directory().join("instructions");
    bail!(
        "{}\nwhere the instructions are: callgrind_annotate {}/CASE.out",
        wrong.join("\n"),
        profiles.display()
    )
}

/// Stores the counts; other cases keep their values.
fn write(root: &Path, asked: &InstructionArguments, now: StoredCounts) -> anyhow::Result<()> {
    let path = root.join(STORE);
    let mut new = now;
    if asked.only.is_some()
        && let Some(old) = StoredCounts::read(&path)?
    {
        if old.compiler != new.compiler {
            bail!(
                "the other values of {STORE} are of rustc {} on {}: store all anew, without --only",
                old.compiler.rustc,
                old.compiler.host
            );
        }
        for (name, count) in old.counts {
            new.counts.entry(name).or_insert(count);
        }
    }
    std::fs::create_dir_all(path.parent().unwrap_or(root)).context("cannot make the directory benches")?;
    std::fs::write(&path, new.text()).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {STORE}: say in the commit why the values have changed");
    Ok(())
}

/// The compiler and the target machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// Version and commit, as rustc shows them.
    pub rustc: String,
    /// The machine's triple.
    pub host: String,
}

impl Compiler {
    /// The compiler that cargo uses here.
    pub fn in_use() -> anyhow::Result<Self> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(rustc).arg("-vV").output().context("cannot run rustc")?;
        let text = String::from_utf8_lossy(&output.stdout);
        Self::parse(&text).with_context(|| format!("rustc -vV says neither version nor host: {text}"))
    }

    /// Reads the answer to `rustc -vV`.
    fn parse(text: &str) -> Option<Self> {
        let rustc = text.lines().find_map(|line| line.strip_prefix("rustc "))?;
        let host = text.lines().find_map(|line| line.strip_prefix("host: "))?;
        Some(Compiler { rustc: rustc.to_owned(), host: host.to_owned() })
    }
}

/// A case of one of the programs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BenchCase {
    /// `CRATE/CASE`, without the prefix that all crates share.
    name: String,
    /// The program that runs it.
    program: PathBuf,
    /// Its name there.
    argument: String,
    /// How many operations are counted; never 0.
    operations: u64,
}

/// Builds the programs and asks each for its cases.
fn cases() -> anyhow::Result<Vec<BenchCase>> {
    let mut cases = Vec::new();
    let programs = programs()?;
    for package in PACKAGES {
        let Some((_, program)) = programs.iter().find(|(built, _)| built == package) else {
            bail!("{package} has no bench target called instructions");
        };
        let list = output(&mut Command::new(program))?;
        let crate_name = package.trim_start_matches("fathom-");
        cases.extend(listed(crate_name, program, &list).with_context(|| {
            format!("{} does not list its cases as \"NAME OPERATIONS\":\n{list}", program.display())
        })?);
    }
    Ok(cases)
}

/// The cases in a program's list, one on each line; `None` if it is empty or has another line.
fn listed(crate_name: &str, program: &Path, list: &str) -> Option<Vec<BenchCase>> {
    let case = |line: &str| {
        let (name, operations) = line.split_once(' ')?;
        let operations = operations.parse().ok().filter(|&operations| operations > 0)?;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        (!name.is_empty() && name.chars().all(plain)).then(|| BenchCase {
            name: format!("{crate_name}/{name}"),
            program: program.to_owned(),
            argument: name.to_owned(),
            operations,
        })
    };
    let cases = list.lines().map(case).collect::<Option<Vec<_>>>()?;
    (!cases.is_empty()).then_some(cases)
}

/// The programs with the packages they belong to: built as the release binary is, with nothing from the developer's environment that
/// would change their code, and of the whole workspace, so that cargo chooses the features that the tests were built with.
fn programs() -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut command = cargo_command(&[
        "build", "--quiet", "--release", "--workspace", "--all-features", "--bench", "instructions",
    ]);
    command.arg("--message-format=json-render-diagnostics");
    for (name, _) in std::env::vars_os().filter(|(name, _)| changes_code(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    Ok(output(&mut command)?.lines().filter_map(program).collect())
}

/// True for variables of the environment that make rustc write other code.
pub fn changes_code(name: &str) -> bool {
    const NAMES: [&str; 6] = [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "CARGO_INCREMENTAL",
        "CARGO_BUILD_INCREMENTAL",
    ];
    NAMES.contains(&name)
        || name.starts_with("CARGO_PROFILE_")
        || (name.starts_with("CARGO_TARGET_") && name.ends_with("_RUSTFLAGS"))
}

/// The package and path of the bench target in a message of cargo.
fn program(message: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let target = &message["target"];
    if message["reason"] != "compiler-artifact" || target["kind"][0] != "bench" {
        return None;
    }
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let directory = manifest.parent()?.file_name()?.to_str()?;
    Some((format!("fathom-{directory}"), message["executable"].as_str()?.into()))
}

/// Instructions per operation of every case, by name, to two decimals as they are stored. Leaves callgrind's account of
/// the longer run of each in `directory` as `CRATE-CASE.out`.
fn count_all(cases: &[BenchCase], directory: &Path) -> anyhow::Result<BTreeMap<String, f64>> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(cases.len());
    let (next, counts) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let count = per_operation(case, directory).map(|count| (case.name.clone(), count));
                    counts.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(count);
                }
            });
        }
    });
    counts.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).into_iter().collect()
}

fn per_operation(case: &BenchCase, directory: &Path) -> anyhow::Result<f64> {
    // The longer run last, so that its account is the one that stays.
    let once = total(case, case.operations, directory)?;
    let twice = total(case, case.operations * 2, directory)?;
    let more = twice.checked_sub(once).filter(|&more| more > 0).with_context(|| {
        format!("{}: {once} instructions for N operations and {twice} for 2N: it does nothing", case.name)
    })?;
    Ok((more as f64 * 100.0 / case.operations as f64).round() / 100.0)
}

/// All instructions of one run of a case.
fn total(case: &BenchCase, operations: u64, directory: &Path) -> anyhow::Result<u64> {
    let account = directory.join(format!("{}.out", case.name.replace('/', "-")));
    let mut command = Command::new(VALGRIND);
    command.current_dir(directory).stdin(Stdio::null());
    // Neither options for valgrind or the C library, nor the length of the environment, may move a count.
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).envs([SAME_ON_EVERY_CPU]);
    command.args(["--tool=callgrind", "--vgdb=no", "--quiet"]);
    command.arg(format!("--callgrind-out-file={}", account.display()));
    command.arg(&case.program).args([&case.argument, &operations.to_string()]);
    output(&mut command).with_context(|| format!("{} fails under {VALGRIND}", case.name))?;
    let text =
        std::fs::read_to_string(&account).with_context(|| format!("cannot read {}", account.display()))?;
    sum_of(&text).with_context(|| format!("{} has no total", account.display()))
}

/// The total in callgrind's account.
fn sum_of(account: &str) -> Option<u64> {
    account.lines().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}

/// Counts, and their compiler and machine.
#[derive(Clone, Debug, PartialEq)]
struct StoredCounts {
    /// The compiler.
    compiler: Compiler,
    /// Instructions per operation by `CRATE/CASE`.
    counts: BTreeMap<String, f64>,
}

impl StoredCounts {
    /// Reads the file at `path`; `None` if it does not exist.
    fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                Self::parse(&text).map(Some).with_context(|| format!("cannot use {}", path.display()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut words = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for (key, value) in text.parse::<toml::Table>()? {
            match value {
                toml::Value::String(word) => _ = words.insert(key, word),
                toml::Value::Table(cases) => {
                    for (case, count) in cases {
                        let name = format!("{key}/{case}");
                        let count = count.as_float().filter(|count| count.is_finite() && *count > 0.0);
                        let count =
                            count.with_context(|| format!("{name} is no number above 0 with decimals"))?;
                        counts.insert(name, count);
                    }
                }
                other => bail!("{key} = {other} is neither a word nor a table"),
            }
        }
        let mut take = |key: &str| words.remove(key).with_context(|| format!("{key} is not there"));
        let compiler = Compiler { rustc: take("rustc")?, host: take("host")? };
        Ok(StoredCounts { compiler, counts })
    }

    /// The file.
    fn text(&self) -> String {
        let mut text =
            format!("{HEAD}rustc = \"{}\"\nhost = \"{}\"\n", self.compiler.rustc, self.compiler.host);
        let mut table = "";
        for (name, count) in &self.counts {
            let (crate_name, case) = name.split_once('/').unwrap_or(("", name));
            if crate_name != table {
                _ = write!(text, "\n[{crate_name}]\n");
                table = crate_name;
            }
            _ = writeln!(text, "{case} = {count:.2}");
        }
        text
    }
}

/// By how much a count may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CountRatio {
    growth: f64,
    /// A stored value that is too high would hide growth that comes later.
    fall: f64,
}

impl CountRatio {
    /// Where the same compiler made the stored counts.
    const SAME_COMPILER: CountRatio = CountRatio { growth: 0.03, fall: 0.03 };
    /// With another compiler: it changes counts by itself, and a lower count is not an improvement.
    const OTHER_COMPILER: CountRatio = CountRatio { growth: 0.10, fall: 1.0 };

    /// In words.
    fn name(self) -> String {
        format!("{:.0} %", self.growth * 100.0)
    }
}

/// One case: stored and counted. One of the two may be missing, never both.
#[derive(Clone, Debug, PartialEq)]
struct CountLine {
    name: String,
    stored: Option<f64>,
    now: Option<f64>,
}

/// The cases of both, by name.
fn count_lines(stored: &BTreeMap<String, f64>, now: &BTreeMap<String, f64>) -> Vec<CountLine> {
    let names: BTreeSet<&String> = stored.keys().chain(now.keys()).collect();
    let line = |name: &String| CountLine {
        name: name.clone(),
        stored: stored.get(name).copied(),
        now: now.get(name).copied(),
    };
    names.into_iter().map(line).collect()
}

impl CountLine {
    /// The problem and the remedy; `None` if the case passes.
    fn complaint(&self, ratio: CountRatio) -> Option<String> {
        let name = &self.name;
        match (self.stored, self.now) {
            (Some(stored), Some(now)) if now > stored * (1.0 + ratio.growth) => Some(format!(
                "{name} has grown by {:.1} %, from {stored:.2} to {now:.2} instructions: make it cheaper, or store it with \
                 {WRITE} and say why in the commit",
                (now / stored - 1.0) * 100.0
            )),
            (Some(stored), Some(now)) if now < stored * (1.0 - ratio.fall) => Some(format!(
                "{name} has fallen by {:.1} %, from {stored:.2} to {now:.2} instructions: store the gain with {WRITE} in \
                 the same commit, or later growth would hide in it",
                (1.0 - now / stored) * 100.0
            )),
            (Some(_), None) => Some(format!("{name} is stored, but there is no such case: {WRITE} drops it")),
            (None, Some(now)) => {
                Some(format!("{name} is not stored ({now:.2} instructions): {WRITE} stores it"))
            }
            _ => None,
        }
    }
}

impl fmt::Display for CountLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |count: Option<f64>| count.map_or_else(|| "-".to_owned(), |count| format!("{count:.2}"));
        write!(f, "{:<32} {:>10} {:>10}", self.name, shown(self.stored), shown(self.now))?;
        match (self.stored, self.now) {
            (Some(stored), Some(now)) if now == stored => write!(f, "{:>8}", "="),
            (Some(stored), Some(now)) => write!(f, "{:>+8.1} %", (now / stored - 1.0) * 100.0),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed_or_refused() {
        let check = |arguments: &[&str], expected: Option<(bool, Option<&str>)>| {
            let expected =
                expected.map(|(write, only)| InstructionArguments { write, only: only.map(str::to_owned) });
            assert_eq!(InstructionArguments::parse(arguments), expected, "{arguments:?}");
        };
        check(&[], Some((false, None)));
        check(&["--write"], Some((true, None)));
        check(&["--only", "runner/", "--write"], Some((true, Some("runner/"))));
        check(&["--only"], None);
        check(&["--read"], None);
        check(&["runner"], None);
    }

    #[test]
    fn the_compiler_has_a_version_and_a_host() {
        let text = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n";
        let compiler = Compiler::parse(text).expect("both are there");
        assert_eq!(compiler.rustc, "1.95.0 (59807616e 2026-04-14)");
        assert_eq!(compiler.host, "x86_64-unknown-linux-gnu");
        assert_eq!(Compiler::parse("rustc 1.95.0\n"), None);
        assert_eq!(Compiler::parse(""), None);
    }

    #[test]
    fn an_incomplete_list_is_refused() {
        let check = |list: &str, expected: Option<&[(&str, u64)]>| {
            let cases = listed("stats", Path::new("program"), list);
            let seen = cases.as_ref().map(|cases| {
                cases.iter().map(|case| (case.name.as_str(), case.operations)).collect::<Vec<_>>()
            });
            assert_eq!(seen.as_deref(), expected, "{list:?}");
        };
        check("latency 100\nrun-4k 7\n", Some(&[("stats/latency", 100), ("stats/run-4k", 7)]));
        check("", None);
        check("latency\n", None);
        check("latency 0\n", None);
        check("latency many\n", None);
        check("a.b 1\n", None);
        check("latency 1\nwarning: something\n", None);
    }

    #[test]
    fn only_bench_targets_are_programs() {
        let message = |kind: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/a/crates/stats/Cargo.toml",
                "target":{{"kind":["{kind}"]}},"executable":"/a/target/i-1"}}"#
            )
        };
        let expected = Some(("fathom-stats".to_owned(), PathBuf::from("/a/target/i-1")));
        assert_eq!(program(&message("bench")), expected);
        assert_eq!(program(&message("lib")), None);
        assert_eq!(program(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(program("no JSON"), None);
    }

    #[test]
    fn compiler_flags_are_removed() {
        let check = |name: &str, expected| assert_eq!(changes_code(name), expected, "{name}");
        check("RUSTFLAGS", true);
        check("CARGO_PROFILE_RELEASE_LTO", true);
        check("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS", true);
        check("CARGO_TARGET_DIR", false);
        check("CARGO_HOME", false);
    }

    #[test]
    fn the_total_is_parsed_from_callgrind_output() {
        let check = |account: &str, expected| assert_eq!(sum_of(account), expected, "{account:?}");
        check("version: 1\nevents: Ir\n\nfn=(1) main\n3 5\n\ntotals: 104699464\n", Some(104_699_464));
        check("version: 1\nevents: Ir\n", None);
        check("totals: 12 13\n", None);
        check("", None);
    }

    #[test]
    fn written_counts_are_read_back() {
        let compiler = Compiler { rustc: "1.95.0 (abc)".into(), host: "x86_64-unknown-linux-gnu".into() };
        let counts = [("stats/latency", 21.0), ("runner/randread-depth-1", 214.25), ("runner/a", 0.5)];
        let counts = counts.map(|(name, count)| (name.to_owned(), count)).into();
        let stored = StoredCounts { compiler, counts };
        let text = stored.text();
        assert!(
            text.ends_with("\n[runner]\na = 0.50\nrandread-depth-1 = 214.25\n\n[stats]\nlatency = 21.00\n"),
            "{text}"
        );
        assert_eq!(StoredCounts::parse(&text).expect("it is ours"), stored);
    }

    #[test]
    fn invalid_files_are_refused_with_the_reason() {
        let check = |text: &str, expected: &str| {
            let error = StoredCounts::parse(text).expect_err(expected).to_string();
            assert!(error.contains(expected), "'{error}' does not say '{expected}'");
        };
        let head = "rustc = \"1\"\nhost = \"x\"\n";
        check("host = \"x\"\n", "rustc is not there");
        check("rustc = \"1\"\n", "host is not there");
        check(&format!("{head}[stats]\nlatency = \"21\"\n"), "stats/latency is no number");
        check(&format!("{head}[stats]\nlatency = -1.0\n"), "stats/latency is no number");
        check(&format!("{head}[stats]\nlatency = nan\n"), "stats/latency is no number");
        check(&format!("{head}latency = 21.0\n"), "latency = 21.0 is neither");
        check("rustc = ", "TOML");
    }

    #[test]
    fn counts_may_differ_within_the_tolerance() {
        let check = |stored, now, ratio, expected: Option<&str>| {
            let line = CountLine { name: "stats/latency".to_owned(), stored, now };
            let complaint = line.complaint(ratio).unwrap_or_default();
            match expected {
                Some(expected) => assert!(complaint.contains(expected), "'{complaint}' says no '{expected}'"),
                None => assert_eq!(complaint, "", "{stored:?} {now:?}"),
            }
        };
        let (same, other) = (CountRatio::SAME_COMPILER, CountRatio::OTHER_COMPILER);
        check(Some(100.0), Some(100.0), same, None);
        check(Some(100.0), Some(102.9), same, None);
        check(Some(100.0), Some(103.1), same, Some("grown by 3.1 %, from 100.00 to 103.10"));
        check(Some(100.0), Some(97.1), same, None);
        check(Some(100.0), Some(96.9), same, Some("fallen by 3.1 %, from 100.00 to 96.90"));
        check(Some(100.0), Some(103.1), other, None);
        check(Some(100.0), Some(110.1), other, Some("grown by 10.1 %"));
        check(Some(100.0), Some(1.0), other, None);
        check(None, Some(21.0), same, Some("is not stored (21.00 instructions)"));
        check(Some(21.0), None, same, Some("no such case"));
    }

    #[test]
    fn every_case_of_either_side_has_a_line() {
        let counts =
            |counts: &[(&str, f64)]| counts.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
        let stored = counts(&[("a/b", 8.0), ("a/gone", 8.0), ("a/moved", 8.0)]);
        let now = counts(&[("a/b", 8.0), ("a/moved", 8.2), ("a/new", 8.0)]);
        let lines = count_lines(&stored, &now);
        let shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let columns = |line: &String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(columns(&shown[0]), ["a/b", "8.00", "8.00", "="]);
        assert_eq!(columns(&shown[1]), ["a/gone", "8.00", "-"]);
        assert_eq!(columns(&shown[2]), ["a/moved", "8.00", "8.20", "+2.5", "%"]);
        assert_eq!(columns(&shown[3]), ["a/new", "-", "8.00"]);
        assert_eq!(shown.len(), 4);
    }
}
