//! The gate's step on real devices: all tests at once, each of which waits for its turn.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// Runs `tests`. What they print goes to `out` as it comes.
///
/// # Errors
/// Tests failed, or could not be run.
pub fn run(tests: &mut Command, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut child = tests.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {tests:?}"))?;
    if let Some(stdout) = child.stdout.take() {
        copy(stdout, out).context("cannot read what the tests say")?;
    }
    let status = child.wait().context("cannot wait for the tests")?;
    if !status.success() {
        bail!("device tests failed: their messages are above");
    }
    Ok(())
}

/// Passes on what comes as it comes: a dot for a test that holds, nothing for one that waits for its turn, and every
/// other line as it is.
fn copy(from: impl Read, out: &mut dyn Write) -> std::io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_tests_print_a_dot_and_waiting_ones_nothing() {
        let check = |from: &str, expected: &str| {
            let mut out = Vec::new();
            copy(from.as_bytes(), &mut out).expect("memory can be read and written");
            assert_eq!(String::from_utf8_lossy(&out), expected);
        };
        check(
            "running 3 tests\ntest a ... ok\ntest b ... ok\n\ntest result: ok.\n",
            "running 3 tests\n..\n\ntest result: ok.\n",
        );
        check("test a has been running for over 60 seconds\ntest a ... FAILED\n", "test a ... FAILED\n");
    }

    #[test]
    fn tests_that_fail_stop_the_gate_with_their_messages() {
        let check = |exit: i32, expected| {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("echo why; exit {exit}")]);
            let mut out = Vec::new();
            let result = run(&mut shell, &mut out).map_err(|error| error.to_string());
            assert_eq!((result, String::from_utf8_lossy(&out).as_ref()), (expected, "why\n"));
        };
        check(0, Ok(()));
        check(101, Err("device tests failed: their messages are above".to_owned()));
    }
}
