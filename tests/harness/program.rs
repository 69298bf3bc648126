//! A running program: signals, time limits, and its results.
//!
//! Its output goes to files, so nothing a test forgets to read can hold it up; a program that does not end in time is
//! ended and fails the test.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::shell::scratch;
use crate::wait::wait_for;

/// How long a program may take that is not meant to hang: many times what a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(90);

/// A program that runs; ended on drop.
#[derive(Debug)]
pub struct Program {
    child: Child,
    shown: String,
    directory: TempDir,
}

impl Program {
    /// Starts `command` with its output kept in files. Standard input is empty by default.
    pub fn start(command: &mut Command) -> Program {
        let directory = scratch();
        let file =
            |name: &str| File::create(directory.path().join(name)).expect("the directory is new and ours");
        command.stdout(file("stdout")).stderr(file("stderr"));
        Program::spawn(command, directory)
    }

    /// Starts `command` with its standard output in a pipe without a reader; its standard error is kept.
    pub fn start_unread(command: &mut Command) -> Program {
        let directory = scratch();
        let file = File::create(directory.path().join("stderr")).expect("the directory is new and ours");
        command.stdout(Stdio::piped()).stderr(file);
        Program::spawn(command, directory)
    }

    /// Starts `command` on its own terminal, which disappears when the returned other end is dropped.
    pub fn start_on_terminal(command: &mut Command) -> (Program, OwnedFd) {
        use rustix::fs::{Mode, OFlags, open};
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("the terminal is ours");
        let name = ptsname(&ours, Vec::new()).expect("a terminal has a name");
        let end = || open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("it can be opened");
        command.stdout(end()).stderr(end());
        let program = Program::spawn(command, scratch());
        // The command holds its ends as long as it lives.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        (program, ours)
    }

    /// Starts `command`, whose output is set up.
    fn spawn(command: &mut Command, directory: TempDir) -> Program {
        heed_signals();
        let shown = format!("{command:?}");
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot run {shown}: {error}"));
        Program { child, shown, directory }
    }

    /// Sends `signal`, unless it has ended already.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).ok();
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Its standard output so far.
    pub fn stdout(&self) -> String {
        self.text("stdout")
    }

    /// Its standard error so far.
    pub fn stderr(&self) -> String {
        self.text("stderr")
    }

    /// True once it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until `is_there` holds, which must be before it ends.
    #[track_caller]
    pub fn run_until(&mut self, limit: Duration, is_there: impl Fn(&Program) -> bool) {
        let came = wait_for(limit, || self.has_ended() || is_there(self));
        assert!(came && !self.has_ended(), "{}\n{}", self.stdout(), self.stderr());
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end within 90 s.
    pub fn finish(self) -> Ended {
        self.finish_within(PATIENCE)
    }

    /// Waits for its end.
    pub fn finish_within(mut self, limit: Duration) -> Ended {
        let has_ended = wait_for(limit, || self.has_ended());
        let (stdout, stderr) = (self.stdout(), self.stderr());
        assert!(has_ended, "{} has not ended within {limit:?}:\n{stdout}\n{stderr}", self.shown);
        let status = self.child.wait().expect("it is our child");
        let ended = Ended { shown: self.shown.clone(), stdout, stderr, status };
        ended.assert_no_panic();
        ended
    }

    /// Waits for its end, of any kind; `None` where it has not ended within `limit`.
    pub(crate) fn ended_within(&mut self, limit: Duration) -> Option<Ended> {
        wait_for(limit, || self.has_ended()).then(|| {
            let status = self.child.wait().expect("it is our child");
            Ended { shown: self.shown.clone(), stdout: self.stdout(), stderr: self.stderr(), status }
        })
    }

    fn text(&self, name: &str) -> String {
        let bytes = std::fs::read(self.directory.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        // One that is stuck in the kernel is left to it.
        wait_for(Duration::from_secs(5), || self.has_ended());
    }
}

/// Children inherit ignored signals, and a shell makes its background jobs ignore SIGINT. Handlers are not inherited.
fn heed_signals() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP] {
            let always = Arc::new(AtomicBool::new(true));
            let installed = signal_hook::flag::register_conditional_shutdown(signal, 130, always);
            installed.unwrap_or_else(|error| panic!("cannot handle signal {signal}: {error}"));
        }
    });
}

/// Runs `command` to its end, with any status.
///
/// # Panics
/// When it cannot be run, does not end within 90 s, or panics.
pub fn run(command: &mut Command) -> Ended {
    Program::start(command).finish()
}

/// The results of a program.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Everything it wrote to stdout.
    pub stdout: String,
    /// Everything it wrote to stderr.
    pub stderr: String,
    /// How it ended.
    pub status: ExitStatus,
    shown: String,
}

impl Ended {
    /// Asserts that it ended by itself with `code`.
    #[track_caller]
    pub fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.status.code(), Some(code), "{self}");
        self
    }

    /// Asserts that each of `parts` stands on stderr.
    #[track_caller]
    pub fn assert_told(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.stderr.contains(part), "\"{part}\" is not on stderr:\n{self}");
        }
        self
    }

    /// Asserts that each of `parts` stands on stdout.
    #[track_caller]
    pub fn assert_shown(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.stdout.contains(part), "\"{part}\" is not on stdout:\n{self}");
        }
        self
    }

    /// Asserts that stdout is one JSON document and nothing else, and returns it.
    #[track_caller]
    pub fn document(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON document ({error}):\n{self}"))
    }

    fn assert_no_panic(&self) {
        for trace in ["panicked", "internal error", "RUST_BACKTRACE", "stack backtrace"] {
            let found = self.stdout.contains(trace) || self.stderr.contains(trace);
            assert!(!found, "\"{trace}\":\n{self}");
        }
        let died = self.status.signal().filter(|signal| ![1, 2, 9, 13, 15].contains(signal));
        assert_eq!(died, None, "{self}");
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} ended with {}", self.shown, self.status)?;
        write!(f, "-- stdout\n{}\n-- stderr\n{}", self.stdout, self.stderr)
    }
}
