//! The gate's step on real devices: all tests at once, and what failed once more with the machine to itself.
//!
//! A test that measures can be disturbed by its neighbours or by the machine; code that is wrong fails alone as well. A
//! second try is told, never silent, and more than a few failures get none.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// More failures than this are no disturbance.
const AT_MOST: usize = 3;

/// Runs `all`, then each test that failed in it with `alone(name)`; says which held only alone. What they print goes to
/// `out` as it comes.
///
/// # Errors
/// Tests failed twice, too many failed, or the run ended without naming any.
pub fn run(
    all: &mut Command,
    alone: impl Fn(&str) -> Command,
    out: &mut dyn Write,
) -> anyhow::Result<String> {
    let (ok, said) = passed_on(all, out)?;
    if ok {
        return Ok(String::new());
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
    Ok(format!("held only alone: {}", failed.join(", ")))
}

/// Whether the command ended well, and what it wrote to stdout.
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

/// Passes on what comes as it comes: the harness writes a dot per test.
fn copy(mut from: impl Read, said: &mut String, out: &mut dyn Write) -> std::io::Result<()> {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let count = from.read(&mut part)?;
        if count == 0 {
            said.push_str(&String::from_utf8_lossy(&all));
            return Ok(());
        }
        out.write_all(&part[..count])?;
        out.flush()?;
        all.extend_from_slice(&part[..count]);
    }
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
    fn the_names_are_those_of_the_last_list() {
        assert_eq!(failures(TWO), ["a::one", "b::two"]);
        assert!(failures("error: could not compile").is_empty());
    }

    #[test]
    fn what_fails_once_is_told_and_what_fails_twice_stops() {
        let passes = "test result: ok. 1 passed; 0 failed";
        let check = |all: &str, ok, again: &str, again_ok, expected: Result<&str, &str>| {
            let result = run(&mut told(all, ok), |_| told(again, again_ok), &mut Vec::new());
            match expected {
                Ok(note) => assert_eq!(result.expect("it holds"), note),
                Err(part) => assert!(result.expect_err("it stops").to_string().contains(part)),
            }
        };
        check("fine", true, "", false, Ok(""));
        check(TWO, false, passes, true, Ok("held only alone: a::one, b::two"));
        check(TWO, false, TWO, false, Err("again alone"));
        check(TWO, false, "test result: ok. 0 passed; 0 failed", true, Err("again alone"));
        check("error: could not compile", false, passes, true, Err("0 device tests failed"));
        let many = TWO.replace("    a::one\n", "    a::one\n    a::three\n    a::four\n");
        check(&many, false, passes, true, Err("4 device tests failed"));
    }
}
