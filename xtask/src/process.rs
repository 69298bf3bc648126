//! Programs that are run to their end, and where the workspace and its build are.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};

/// The workspace's directory.
pub fn root() -> PathBuf {
    let manifest_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_directory.parent().expect("xtask lies in the workspace").to_owned()
}

/// Cargo's build directory.
pub fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |target| root().join(target))
}

/// Cargo in the workspace.
pub fn cargo_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments).stdin(Stdio::null());
    command
}

/// Runs `command` and returns what it printed, trimmed. Fails with its messages if it does.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
    let messages = [&stderr, &stdout].into_iter().find(|text| !text.is_empty());
    let messages = messages.map_or("it printed nothing", String::as_str);
    ensure!(output.status.success(), "{command:?} failed ({}):\n{messages}", output.status);
    Ok(stdout)
}

/// Runs `command` with its messages on the terminal.
pub fn watch(command: &mut Command) -> anyhow::Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} failed ({status}): its messages are above");
    Ok(())
}

/// Runs the tests that `which` names to cargo, in the profile of the release and with a variable set, with their messages on the
/// terminal. Fails if one of them does, or if there are none: a filter that matches nothing is no success.
pub fn run_tests(which: &[&str], (variable, value): (&str, &str)) -> anyhow::Result<()> {
    let command = |argument: &str| {
        let mut command = cargo_command(&["test", "--release"]);
        command.args(which).args(["--", argument]).env(variable, value);
        command
    };
    let list = output(&mut command("--list"))?;
    let names_some = list.lines().any(|line| line.ends_with(": test"));
    ensure!(names_some, "`cargo test {}` names no test", which.join(" "));
    watch(&mut command("--nocapture"))
}

/// The time, for how long a step or a campaign took: for the developer, not for a record.
#[allow(clippy::disallowed_methods, reason = "no session runs here")]
pub fn now() -> Instant {
    Instant::now()
}

/// A time in seconds, or in minutes from one on.
pub fn shown_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{:.1} s", duration.as_secs_f64()),
        _ => format!("{}m{:02}s", seconds / 60, seconds % 60),
    }
}

/// The SHA-256 of `bytes` in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_the_messages() {
        let run = |script: &str| output(Command::new("sh").args(["-c", script]));
        assert_eq!(run("echo ' a '").unwrap(), "a");
        let error = run("echo why >&2; echo x; exit 3").unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.ends_with("\nwhy"), "{error}");
        assert!(run("exit 1").unwrap_err().to_string().ends_with("it printed nothing"));
    }

    #[test]
    fn durations_are_short() {
        let check = |ms: u64, expected: &str| assert_eq!(shown_duration(Duration::from_millis(ms)), expected);
        check(1_240, "1.2 s");
        check(59_940, "59.9 s");
        check(61_000, "1m01s");
    }
}
