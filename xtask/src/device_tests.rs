//! The gate's step on real devices: all tests concurrently, then failed ones once more alone.
//!
//! A test that measures can be disturbed by its neighbours or by the machine; code that is wrong fails alone as well. A
//! second try is told, never silent, and more than a few failures get none.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// More failures than this are no disturbance.
const AT_MOST: usize = 3;

/// Runs `all`, then each test that failed in it with `alone(name)`; returns those that held only alone. What they print
/// goes to `out` as it comes.
///
/// # Errors
/// Tests failed twice, too many failed, or the run ended without naming any.
pub fn run(
    all: &mut Command,
    alone: impl Fn(&str) -> Command,
    out: &mut dyn Write,
) -> anyhow::Result<Vec<String>> {
    let (ok, said) = passed_on(all, out)?;
    if ok {
        return Ok(Vec::new());
    }
    let failed = failures(&said);
    if failed.is_empty() || failed.len() > AT_MOST {
        bail!("{} device tests failed: their messages are above", failed.len());
    }
    for name in &failed {
        writeln!(out, "      {name} failed; it is tried once more, alone")?;
        let (ok, said) = passed_on(&mut alone(name), out)?;
        if !ok || !ran_one(&said) {
            bail!("{name} failed, and again alone: its messages are above");
        }
    }
    Ok(failed.into_iter().map(str::to_owned).collect())
}

/// Whether the command succeeded, and its standard output.
fn passed_on(command: &mut Command, out: &mut dyn Write) -> anyhow::Result<(bool, String)> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {command:?}"))?;
    let mut said = String::new();
    if let Some(stdout) = child.stdout.take() {
        copy(stdout, &mut said, out).context("cannot read what the tests say")?;
    }
    let status = child.wait().context("cannot wait for the tests")?;
    Ok((status.success(), said))
}

/// Passes on what comes as it comes: a dot for a test that holds, nothing for one that waits for its turn, and every
/// other line as it is.
fn copy(from: impl Read, said: &mut String, out: &mut dyn Write) -> std::io::Result<()> {
    let mut after_dots = false;
    for line in BufReader::new(from).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        if holds(&line) {
            write!(out, ".")?;
            after_dots = true;
        } else if !is_waiting(&line) {
            writeln!(out, "{}{line}", if std::mem::take(&mut after_dots) { "\n" } else { "" })?;
        }
        out.flush()?;
        said.push_str(&line);
        said.push('\n');
    }
    Ok(())
}

fn holds(line: &str) -> bool {
    line.starts_with("test ") && line.ends_with(" ... ok")
}

/// Said of every test that is not over after a minute, of which most have waited for others.
fn is_waiting(line: &str) -> bool {
    line.starts_with("test ") && line.ends_with(" has been running for over 60 seconds")
}

/// The names in the last list of failures that the test harness of Rust prints.
fn failures(said: &str) -> Vec<&str> {
    let Some((_, list)) = said.rsplit_once("\nfailures:\n") else { return Vec::new() };
    let names = list.lines().take_while(|line| line.starts_with("    "));
    names.map(str::trim).filter(|name| !name.is_empty()).collect()
}

/// Whether exactly one test ran, so that a name that matched nothing is no success.
fn ran_one(said: &str) -> bool {
    said.contains("test result: ok. 1 passed;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "\n..F..F\nfailures:\n\n---- a::one stdout ----\n\nfailures:\n    a::one\n    b::two\n\n\
                       test result: FAILED. 4 passed; 2 failed; 0 ignored\n";

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn told(said: &str, ok: bool) -> Command {
        let mut command = shell(&format!("printf '%s' \"$0\"; exit {}", i32::from(!ok)));
        command.arg(said);
        command
    }

    #[test]
    fn tests_are_listed_by_name() {
        assert_eq!(failures(TWO), ["a::one", "b::two"]);
        assert!(failures("error: could not compile").is_empty());
    }

    #[test]
    fn passed_tests_print_a_dot_and_waiting_ones_nothing() {
        let check = |from: &str, expected: &str| {
            let (mut said, mut out) = (String::new(), Vec::new());
            copy(from.as_bytes(), &mut said, &mut out).expect("memory can be read and written");
            assert_eq!((said.as_str(), String::from_utf8_lossy(&out).as_ref()), (from, expected));
        };
        check(
            "running 3 tests\ntest a ... ok\ntest b ... ok\n\ntest result: ok.\n",
            "running 3 tests\n..\n\ntest result: ok.\n",
        );
        check("test a has been running for over 60 seconds\ntest a ... FAILED\n", "test a ... FAILED\n");
    }

    #[test]
    fn one_failure_is_reported_and_a_second_one_stops() {
        let passes = "test result: ok. 1 passed; 0 failed";
        let check = |all: &str, ok, again: &str, again_ok, expected: Result<&[&str], &str>| {
            let result = run(&mut told(all, ok), |_| told(again, again_ok), &mut Vec::new());
            match expected {
                Ok(names) => assert_eq!(result.expect("it holds"), names),
                Err(part) => assert!(result.expect_err("it stops").to_string().contains(part)),
            }
        };
        check("fine", true, "", false, Ok(&[]));
        check(TWO, false, passes, true, Ok(&["a::one", "b::two"]));
        check(TWO, false, TWO, false, Err("again alone"));
        check(TWO, false, "test result: ok. 0 passed; 0 failed", true, Err("again alone"));
        check("error: could not compile", false, passes, true, Err("0 device tests failed"));
        let many = TWO.replace("    a::one\n", "    a::one\n    a::three\n    a::four\n");
        check(&many, false, passes, true, Err("4 device tests failed"));
    }
}
