//! The gate: everything that must hold before a change lands, in one command.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::instructions::Compared;
use crate::{device_tests, fuzz, instructions, packages, readers, tidy};

/// A thread for every device test; turns decide which run concurrently (`tests/harness/turn.rs`).
const ALL_AT_ONCE: &str = "--test-threads=1000";

/// The result of a step.
enum StepResult {
    /// It holds; with something to add, or empty.
    Held(String),
    /// It holds, but these tests failed first and passed alone.
    HeldAlone(Vec<String>),
    /// It could not be tried on this machine, and why.
    Skipped(String),
}

/// A step: its title and its action.
struct GateStep<'a> {
    name: &'static str,
    run: Box<dyn Fn() -> anyhow::Result<StepResult> + 'a>,
}

/// Runs every step, stopping at the first that fails.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let notes = NoteFiles::in_directory(&root.join("target"))?;
    let started = now();
    let steps = steps(root, &notes);
    let (mut not_tried, mut retried) = (Vec::new(), Vec::new());
    for (index, step) in steps.iter().enumerate() {
        println!("[{}/{}] {} ...", index + 1, steps.len(), step.name);
        let step_started = now();
        let done = (step.run)().with_context(|| format!("the gate stops at \"{}\"", step.name))?;
        let took = shown(step_started.elapsed());
        match done {
            StepResult::Held(note) if note.is_empty() => println!("      {} took {took}", step.name),
            StepResult::Held(note) => println!("      {} took {took}: {note}", step.name),
            StepResult::HeldAlone(names) => {
                println!("      {} took {took}", step.name);
                retried
                    .extend(names.iter().map(|name| format!("{name}: failed beside others, passed alone")));
            }
            StepResult::Skipped(why) => {
                println!("      {} SKIPPED: {why}", step.name);
                not_tried.push(format!("{}: {why}", step.name));
            }
        }
    }
    not_tried.extend(lines(&notes.skips));
    retried.extend(lines(&notes.retries));
    for line in &not_tried {
        println!("not tried: {line}");
    }
    for line in &retried {
        println!("retried: {line}");
    }
    println!("{}", summary(steps.len(), not_tried.len(), retried.len(), started.elapsed()));
    Ok(())
}

/// Files to which tests add a line for what the summary repeats.
struct NoteFiles {
    /// Tests that could not run, and why.
    skips: PathBuf,
    /// Measurements that passed only after one or two retries, with the deviations.
    retries: PathBuf,
}

impl NoteFiles {
    /// Both in `directory`, and empty.
    fn in_directory(directory: &Path) -> anyhow::Result<NoteFiles> {
        std::fs::create_dir_all(directory).context("cannot make the target directory")?;
        let [skips, retries] = ["test-skips.txt", "test-retries.txt"].map(|name| directory.join(name));
        for file in [&skips, &retries] {
            std::fs::write(file, "").with_context(|| format!("cannot empty {}", file.display()))?;
        }
        Ok(NoteFiles { skips, retries })
    }

    /// Tells a test run where they are.
    fn tell<'a>(&self, tests: &'a mut Command) -> &'a mut Command {
        tests.env("FATHOM_TEST_SKIPS", &self.skips).env("FATHOM_TEST_RETRIES", &self.retries)
    }
}

/// The lines of a file of notes, without the word that begins each.
fn lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| line.split_once(' ').map_or(line, |(_, rest)| rest).to_owned()).collect()
}

fn summary(steps: usize, not_tried: usize, retried: usize, took: Duration) -> String {
    let counted = |count, what: &str| match count {
        0 => format!("nothing {what}"),
        n => format!("{n} {what} (listed above)"),
    };
    let (skipped, retried) = (counted(not_tried, "skipped"), counted(retried, "retried"));
    format!("all {steps} steps hold, {skipped}, {retried}, in {}", shown(took))
}

fn steps<'a>(root: &'a Path, notes: &'a NoteFiles) -> Vec<GateStep<'a>> {
    fn step<'a>(name: &'static str, run: impl Fn() -> anyhow::Result<StepResult> + 'a) -> GateStep<'a> {
        GateStep { name, run: Box::new(run) }
    }
    vec![
        step("Debian packages", || packages::install_missing().map(StepResult::Held)),
        step("Python readers of exports", || readers::install(root).map(StepResult::Held)),
        step("format", || component(root, "rustfmt", &["fmt", "--all", "--check"])),
        step("format of the fuzz targets", || {
            component(root, "rustfmt", &["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"])
        }),
        step("tidy", || tidy::run(root).map(|()| StepResult::Held(String::new()))),
        step("lints", || {
            component(root, "clippy", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
        }),
        step("release binary and fuzz targets", || built(root)),
        step("instruction counts", || match instructions::check(root)? {
            Compared::Holds(note) => Ok(StepResult::Held(note)),
            Compared::Skipped(why) => skipped(why),
        }),
        step("unit and crate tests", move || {
            let arguments =
                ["test", "--quiet", "--workspace", "--exclude", "fathom-tests", "--lib", "--bins", "--tests"];
            run_cargo(notes.tell(&mut cargo_command(root, &arguments)))
        }),
        // As users run it: with optimisation these tests do 10^8 requests, without it a fraction.
        step("nothing lost in 10^8", move || {
            optimized(root, &["--package", "fathom-runner", "--lib", "truth"])
        }),
        // Volumes drawn at random and of the catalogue, found out from outside: millions of simulated requests each.
        step("volumes found out", move || {
            optimized(root, &["--package", "fathom-assess", "--test", "identified", "--test", "catalogued"])
        }),
        // Parsers of untrusted input, for seconds each; `cargo xtask campaign fuzz` takes its time.
        step("fuzz", || match fuzz::check(root)? {
            fuzz::FuzzOutcome::Held(note) => Ok(StepResult::Held(note)),
            fuzz::FuzzOutcome::Skipped(why) => skipped(why),
        }),
        step("doc tests", || cargo(root, &["test", "--quiet", "--workspace", "--doc"])),
        step("device tests", move || {
            let command = |arguments: &[&str]| {
                let arguments = [&["test", "--quiet", "--package", "fathom-tests"], arguments].concat();
                let mut command = cargo_command(root, &arguments);
                notes.tell(&mut command).env("FATHOM_BIN", release_binary(root));
                command
            };
            let alone = |name: &str| command(&["--", "--format=pretty", "--exact", name]);
            let mut all = command(&["--", "--format=pretty", ALL_AT_ONCE]);
            #[expect(clippy::disallowed_methods, reason = "the rule is for what users run")]
            let out = std::io::stdout();
            device_tests::run(&mut all, alone, &mut out.lock()).map(StepResult::HeldAlone)
        }),
    ]
}

/// Cargo's build directory.
pub fn target_directory(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target))
}

/// Where the step "release binary and fuzz targets" leaves it.
fn release_binary(root: &Path) -> PathBuf {
    target_directory(root).join("release/fathom")
}

/// Runs a cargo command of a toolchain component; reports how to add a missing one.
fn component(root: &Path, component: &str, arguments: &[&str]) -> anyhow::Result<StepResult> {
    let mut probe = cargo_command(root, &[arguments[0], "--version"]);
    if probe.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return cargo(root, arguments);
    }
    skipped(format!("{component} is missing: `rustup component add {component}`"))
}

/// A step that could not be tried, which is a failure where nothing may be skipped.
fn skipped(why: String) -> anyhow::Result<StepResult> {
    if let Some(name) =
        ["CI", "FATHOM_TEST_NO_SKIP"].into_iter().find(|name| std::env::var_os(name).is_some())
    {
        bail!("{why}; a skip is a failure where {name} is set");
    }
    Ok(StepResult::Skipped(why))
}

fn cargo(root: &Path, arguments: &[&str]) -> anyhow::Result<StepResult> {
    run_cargo(&mut cargo_command(root, arguments))
}

/// The release binary, and beside it the fuzz targets: to link the first as one unit keeps only one processor busy.
fn built(root: &Path) -> anyhow::Result<StepResult> {
    std::thread::scope(|scope| {
        let targets = scope.spawn(|| fuzz::build(root));
        let binary = cargo(root, &["build", "--release", "--package", "fathom"]);
        targets.join().expect("no thread panics")?;
        binary
    })
}

/// Tests of one package with optimisation. The binary's package is named too: then cargo chooses for the crates that
/// both use the features that the release binary was built with, and builds none of them again. To link a test as one
/// unit, as that step links the binary, would take a minute more each.
fn optimized(root: &Path, what: &[&str]) -> anyhow::Result<StepResult> {
    let arguments = [&["test", "--release", "--quiet", "--package", "fathom"], what].concat();
    run_cargo(cargo_command(root, &arguments).env("CARGO_PROFILE_RELEASE_LTO", "thin"))
}

fn cargo_command(root: &Path, arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).args(&arguments[..1]).args(&arguments[1..]).stdin(Stdio::null());
    command
}

fn run_cargo(command: &mut Command) -> anyhow::Result<StepResult> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        bail!("`cargo {}` failed: its messages are above", arguments.join(" "));
    }
    Ok(StepResult::Held(String::new()))
}

/// The time, for how long a step or a campaign took: for the developer, not for a record.
#[allow(clippy::disallowed_methods, reason = "no session runs here")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        format!("{:.1} s", duration.as_secs_f64())
    } else {
        format!("{}m{:02}s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_in_minutes_from_one_on() {
        let check = |milliseconds, expected| assert_eq!(shown(Duration::from_millis(milliseconds)), expected);
        check(0, "0.0 s");
        check(59_900, "59.9 s");
        check(60_000, "1m00s");
        check(754_000, "12m34s");
    }

    #[test]
    fn the_summary_counts_skips_and_retries() {
        let check = |not_tried, retried, expected| {
            assert_eq!(summary(8, not_tried, retried, Duration::from_secs(1)), expected);
        };
        check(0, 0, "all 8 steps hold, nothing skipped, nothing retried, in 1.0 s");
        check(2, 1, "all 8 steps hold, 2 skipped (listed above), 1 retried (listed above), in 1.0 s");
    }

    #[test]
    fn notes_start_empty_and_keep_each_line() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let read = |notes: &NoteFiles| (lines(&notes.skips), lines(&notes.retries));
        let notes = NoteFiles::in_directory(directory.path()).expect("files can be made");
        assert_eq!(read(&notes), (vec![], vec![]));
        let mut tests = Command::new("sh");
        tests.args(["-c", "echo SKIPPED a: needs root >>$FATHOM_TEST_SKIPS; \
                           echo RETRIED b: 5 % off >>$FATHOM_TEST_RETRIES; echo RETRIED b: 7 % off >>$FATHOM_TEST_RETRIES"]);
        assert!(notes.tell(&mut tests).status().expect("sh runs").success());
        assert_eq!(
            read(&notes),
            (vec!["a: needs root".to_owned()], ["b: 5 % off", "b: 7 % off"].map(str::to_owned).to_vec())
        );
        assert_eq!(
            read(&NoteFiles::in_directory(directory.path()).expect("files can be made")),
            (vec![], vec![])
        );
    }
}
