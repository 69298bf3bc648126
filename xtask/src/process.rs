//! Programs that are run to their end.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::gate::cargo_command;

/// Runs `command` and returns what it printed, trimmed. Fails with its messages if it does.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(
        output.status.success(),
        "{command:?} failed ({}):\n{}",
        output.status,
        [stderr.trim(), stdout.trim()]
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or("it printed nothing")
    );
    Ok(stdout.trim().to_owned())
}

/// Runs `command` with its messages on the terminal.
pub fn watch(command: &mut Command) -> anyhow::Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} failed ({status}): its messages are above");
    Ok(())
}

/// Runs the tests that `which` names to cargo, in the profile of the release and with a variable set, with their messages on the
/// terminal. Fails if one of them does, or if there are none: a filter that matches nothing is no success.
pub fn run_tests(root: &Path, which: &[&str], (variable, value): (&str, &str)) -> anyhow::Result<()> {
    let command = |argument: &str| {
        let mut command = cargo_command(root, &["test", "--release"]);
        command.args(which).args(["--", argument]).env(variable, value);
        command
    };
    let list = output(&mut command("--list"))?;
    let names_some = list.lines().any(|line| line.ends_with(": test"));
    ensure!(names_some, "`cargo test {}` names no test", which.join(" "));
    watch(&mut command("--nocapture"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> anyhow::Result<String> {
        output(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn failures_have_the_messages_of_the_program() {
        assert_eq!(shell("echo a; echo b").unwrap(), "a\nb");
        let message = |script| shell(script).unwrap_err().to_string();
        assert!(message("echo why >&2; false").ends_with("failed (exit status: 1):\nwhy"));
        assert!(message("echo where; exit 3").ends_with("failed (exit status: 3):\nwhere"));
        assert!(message("false").ends_with("it printed nothing"));
        assert!(output(&mut Command::new("no-such-program")).is_err());
    }
}
