//! Programs that the guest runs, and what undoes their effects.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use fathom_tests::wait_for;

/// What a program prints once it holds what it is started for.
pub const READY: &str = "ready";
/// How long the kernel may take to make or remove a device.
const DEVICE_LIMIT: Duration = Duration::from_secs(20);

/// Runs the words of `line`, and returns what the program printed.
///
/// # Errors
/// It fails: its messages.
pub fn sh(line: &str) -> anyhow::Result<String> {
    let output = output(line)?;
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    ensure!(output.status.success(), "`{line}` failed ({}): {stderr} {stdout}", output.status);
    Ok(stdout.into_owned())
}

/// Runs the words of `line`.
pub fn output(line: &str) -> anyhow::Result<Output> {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().context("an empty command")?);
    command.args(words).stdin(Stdio::null()).output().with_context(|| format!("cannot run `{line}`"))
}

/// Waits until `is_so`.
pub fn wait_until(what: &str, is_so: impl FnMut() -> bool) -> anyhow::Result<()> {
    ensure!(wait_for(DEVICE_LIMIT, is_so), "{what} did not happen within {} s", DEVICE_LIMIT.as_secs());
    Ok(())
}

/// Undone from the last to the first.
#[derive(Default)]
pub struct Undo(Vec<UndoStep>);

enum UndoStep {
    Command(String),
    End(Child),
}

impl Undo {
    /// Runs `line` later. The kernel may need some time until it succeeds.
    pub fn later(&mut self, line: impl Into<String>) {
        self.0.push(UndoStep::Command(line.into()));
    }

    /// Runs `line` now and `undone` later.
    pub fn now(&mut self, line: &str, undone: &str) -> anyhow::Result<()> {
        sh(line)?;
        self.later(undone);
        Ok(())
    }

    /// Starts a program that prints [`READY`] once it holds something, until its standard input ends.
    pub fn holding(&mut self, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new(program);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let out = child.stdout.as_mut().context("its output is a pipe")?;
        BufReader::new(out).read_line(&mut line)?;
        self.0.push(UndoStep::End(child));
        ensure!(line.trim_end() == READY, "{program} {} did not hold", arguments.join(" "));
        Ok(())
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        while let Some(step) = self.0.pop() {
            match step {
                UndoStep::Command(line) => {
                    if wait_until(&line, || sh(&line).is_ok()).is_err() {
                        println!("cannot undo: {:?}", sh(&line));
                    }
                }
                UndoStep::End(mut child) => {
                    drop(child.stdin.take());
                    child.wait().ok();
                }
            }
        }
    }
}
