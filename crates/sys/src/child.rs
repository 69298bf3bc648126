//! Other programs: each takes the signals that end it, and those that a run waits for end with it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::clock::monotonic_ns;
use crate::signals;

/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// A command that is nearly done may end by itself after the run was asked to end.
const GRACE: Duration = Duration::from_millis(700);
/// From SIGTERM to SIGKILL, and from there to giving up: a process in the kernel cannot be ended.
const STEP: Duration = Duration::from_millis(300);

/// A command that takes all signals. The threads of this program leave those that end it to one of them, and a program that is
/// started inherits that: it would be deaf to whoever ends it.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    // SAFETY: what runs between fork and exec calls only sigemptyset and sigprocmask, which are async-signal-safe.
    unsafe { command.pre_exec(signals::take_all) };
    command
}

/// Runs `command` to its end, in a process group of its own: once `is_over`, it has 0.7 s left, and then all that it has started is
/// ended with it. `None` where it was.
///
/// # Errors
/// It cannot be started.
pub fn run_until(command: &mut Command, is_over: impl Fn() -> bool) -> io::Result<Option<ExitStatus>> {
    let mut child = command.process_group(0).spawn()?;
    if let Some(status) = ended(&mut child, is_over)? {
        return Ok(Some(status));
    }
    if let Some(status) = ended_within(&mut child, GRACE)? {
        return Ok(Some(status));
    }
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    for signal in [Signal::TERM, Signal::KILL] {
        // All may just have ended; what the shell had started may outlive it.
        group.map(|group| kill_process_group(group, signal));
        ended_within(&mut child, STEP)?;
    }
    Ok(None)
}

/// How `child` ended, unless `is_over` comes first.
fn ended(child: &mut Child, is_over: impl Fn() -> bool) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if is_over() {
            return Ok(None);
        }
        // After an early wake-up it looks early.
        std::thread::park_timeout(LOOK);
    }
}

/// How `child` ended; `None` where it runs on after `limit`.
///
/// # Errors
/// It cannot be waited for.
pub fn ended_within(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let until_ns = monotonic_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
    ended(child, || monotonic_ns() >= until_ns)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use super::*;

    fn shell(script: &str) -> Command {
        let mut shell = command("sh");
        shell.args(["-c", script]);
        shell
    }

    #[test]
    fn a_command_runs_to_its_end() {
        assert_eq!(run_until(&mut shell("exit 3"), || false).unwrap().unwrap().code(), Some(3));
        assert!(run_until(&mut Command::new("/nonexistent"), || false).is_err());
        // What is done soon is not ended.
        assert_eq!(run_until(&mut shell("sleep 0.1; exit 4"), || true).unwrap().unwrap().code(), Some(4));
    }

    #[test]
    fn a_command_takes_the_signals_that_this_thread_does_not() {
        let mut file = tempfile::tempfile().unwrap();
        signals::block(&[libc::SIGTERM, libc::SIGHUP]).unwrap();
        let mut cat = command("cat");
        run_until(cat.arg("/proc/self/status").stdout(file.try_clone().unwrap()), || false).unwrap().unwrap();
        signals::unblock(&[libc::SIGTERM, libc::SIGHUP]).unwrap();
        let mut status = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut status).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        assert_eq!(u64::from_str_radix(mask.trim(), 16).unwrap(), 0);
    }

    #[test]
    fn a_command_and_what_it_started_end_with_the_run() {
        let directory = tempfile::tempdir().unwrap();
        let list = directory.path().join("started");
        // One that heeds no SIGTERM, and a child of its own that outlives the shell.
        let script = format!(
            "sleep 9999 & echo $! >>'{0}'; trap '' TERM; sleep 9998 & echo $! >>'{0}'; wait; wait",
            list.display()
        );
        assert!(run_until(&mut shell(&script), || list.exists()).unwrap().is_none());
        let is_gone = |id: &str| {
            let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            // Reaped, or about to be by whoever inherited it.
            state.is_empty() || state.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
        };
        // What was killed ends as soon as it has a processor.
        for id in std::fs::read_to_string(&list).unwrap().lines() {
            let gone_by_ns = monotonic_ns() + 20_000_000_000;
            while !is_gone(id) {
                assert!(monotonic_ns() < gone_by_ns, "{id} runs on");
                std::thread::park_timeout(LOOK);
            }
        }
    }
}
