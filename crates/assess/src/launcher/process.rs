//! Other programs that are run for their output, for a limited time.

use std::io::{ErrorKind, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use fathom_sys::child::ended_within;

/// Most bytes of an output that are kept.
const MAX_BYTES: u64 = 1 << 20;
/// Time for the rest of an output of a program that has ended: a process that it left behind may keep the pipe open.
const REST: Duration = Duration::from_millis(500);

/// What a program printed, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgramOutput {
    /// Its exit code; `None` where a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Why there is no output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProgramFailure {
    /// There is no such program.
    Absent,
    /// It cannot be started.
    NotStarted(String),
    /// It did not end in time, and was ended.
    TimedOut,
}

/// Runs `command` with no input for at most `limit`.
pub(crate) fn output_of(command: &mut Command, limit: Duration) -> Result<ProgramOutput, ProgramFailure> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => ProgramFailure::Absent,
        _ => ProgramFailure::NotStarted(error.to_string()),
    })?;
    let stdout = child.stdout.take().map(collected);
    let stderr = child.stderr.take().map(collected);
    let Ok(Some(status)) = ended_within(&mut child, limit) else {
        // It may have ended in the meantime.
        let _ = child.kill();
        let _ = child.wait();
        return Err(ProgramFailure::TimedOut);
    };
    let text = |output: Option<Receiver<String>>| {
        output.and_then(|output| output.recv_timeout(REST).ok()).unwrap_or_default()
    };
    Ok(ProgramOutput { code: status.code(), stdout: text(stdout), stderr: text(stderr) })
}

/// Reads a pipe to its end on a thread of its own.
fn collected(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut pipe = pipe.take(MAX_BYTES);
        // What was read before an error counts.
        let _ = pipe.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit_ms: u64) -> Result<ProgramOutput, ProgramFailure> {
        output_of(Command::new("/bin/sh").args(["-c", script]), Duration::from_millis(limit_ms))
    }

    #[test]
    fn output_and_code_are_kept() {
        let output = shell("echo out; echo err >&2; exit 3", 60_000).unwrap();
        assert_eq!(
            (output.code, output.stdout.as_str(), output.stderr.as_str()),
            (Some(3), "out\n", "err\n")
        );
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        assert_eq!(shell("sleep 600", 50), Err(ProgramFailure::TimedOut));
        let absent = output_of(&mut Command::new("/nonexistent/program"), Duration::from_secs(1));
        assert_eq!(absent, Err(ProgramFailure::Absent));
    }
}
