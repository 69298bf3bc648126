//! The process of a launcher: its standard output is passed on, signals reach it, and it is waited for.
//!
//! The launcher stays in the process group of this program, so that ssh can ask for what it needs at the terminal. Ctrl-C there
//! reaches it directly; what else asks this program to end is passed on.

use std::fs::File;
use std::io::{self, Read};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use fathom_assess::launcher::LauncherFamily;
use fathom_sys::child;
use fathom_sys::clock::monotonic_ns;
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::SIGINT;

use crate::output;
use crate::signals::SignalWatch;

/// How often the launcher is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long a launcher that was asked to end may take: ranks write what they have first.
const END_PATIENCE_NS: u64 = 60_000_000_000;
/// Time for the rest of the output of a launcher that has ended.
const REST: Duration = Duration::from_secs(2);
const PIECE: usize = 1 << 14;
/// What the reports of many ranks have: fio's text, fathom's text and Markdown, JSON, CSV, and lines of JSON.
const MARKS: [&[u8]; 5] = [b"All clients", b" merged", b"\"fleet\"", b"test,host,rank", b"\"host\""];

/// How a launcher ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchEnd {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// A rank has printed its report.
    pub has_report: bool,
    /// A signal asked for the end.
    pub is_interrupted: bool,
}

/// What becomes of the standard output of the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankOutput {
    /// It is this program's.
    PassedOn,
    /// Nobody reads it.
    Dropped,
}

/// Runs `words` and waits for the end.
///
/// # Errors
/// The launcher cannot be started.
pub fn launch(
    words: &[String],
    family: LauncherFamily,
    shown: RankOutput,
    watch: &SignalWatch,
) -> io::Result<LaunchEnd> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut command = child::command(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let passing = child.stdout.take().map(|pipe| passed_on(pipe, shown));
    let status = wait(&mut child, family, watch)?;
    let has_report = passing.is_some_and(|passing| passing.finish(REST));
    Ok(LaunchEnd { code: status.code(), has_report, is_interrupted: watch.number().is_some() })
}

/// An output that is passed on.
struct Passing {
    /// Ends with the output.
    end: Receiver<()>,
    state: Arc<PassingState>,
}

#[derive(Default)]
struct PassingState {
    /// A piece is being written, which takes as long as its reader likes.
    is_writing: AtomicBool,
    /// There was a report in it so far.
    has_report: AtomicBool,
}

impl Passing {
    /// Waits for the end of the output, or until nothing comes for `rest`; true where there was a report in it.
    fn finish(&self, rest: Duration) -> bool {
        while self.end.recv_timeout(rest) == Err(RecvTimeoutError::Timeout)
            && self.state.is_writing.load(Ordering::Acquire)
        {}
        self.state.has_report.load(Ordering::Acquire)
    }
}

/// Passes the output on.
fn passed_on(mut pipe: impl Read + Send + 'static, shown: RankOutput) -> Passing {
    let (sender, end) = channel();
    let state = Arc::new(PassingState::default());
    let own = state.clone();
    std::thread::spawn(move || {
        // It goes with this thread.
        let _sender: Sender<()> = sender;
        let mut seen = ReportSeen::default();
        let mut piece = vec![0; PIECE];
        loop {
            let count = match pipe.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            seen.add(&piece[..count]);
            own.has_report.store(seen.is_there, Ordering::Release);
            // Whoever read it has gone: the ranks are to go on.
            if shown == RankOutput::PassedOn {
                own.is_writing.store(true, Ordering::Release);
                let _ = output::print_whole(&piece[..count]);
                own.is_writing.store(false, Ordering::Release);
            }
        }
    });
    Passing { end, state }
}

/// Whether an output has the report of many ranks. Before it rank 0 may say what it is about to run, and hydra prints what it does about
/// signals and ranks that died.
#[derive(Debug, Default)]
struct ReportSeen {
    /// The end of what was read so far.
    tail: Vec<u8>,
    is_there: bool,
}

impl ReportSeen {
    fn add(&mut self, bytes: &[u8]) {
        if self.is_there {
            return;
        }
        self.tail.extend_from_slice(bytes);
        let has = |mark: &&[u8]| self.tail.windows(mark.len()).any(|part| part == *mark);
        self.is_there = MARKS.iter().any(has);
        let longest = MARKS.iter().map(|mark| mark.len()).max().unwrap_or(0);
        self.tail.drain(..self.tail.len().saturating_sub(longest));
    }
}

/// Waits for the launcher, and passes on a signal that asks for the end.
fn wait(child: &mut Child, family: LauncherFamily, watch: &SignalWatch) -> io::Result<ExitStatus> {
    // Nobody sends: this waits for the time alone.
    let (_sender, never) = channel::<()>();
    let mut asked_ns = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        match (watch.number(), asked_ns) {
            (Some(number), None) => {
                asked_ns = Some(monotonic_ns());
                ask_to_end(child, family, number);
            }
            (_, Some(since)) if monotonic_ns().saturating_sub(since) > END_PATIENCE_NS => {
                // It may have ended in the meantime.
                let _ = child.kill();
            }
            _ => {}
        }
        let _ = never.recv_timeout(LOOK);
    }
}

/// Asks the launcher to end the ranks, which then write what they have.
fn ask_to_end(child: &Child, family: LauncherFamily, number: i32) {
    let is_from_terminal = number == SIGINT && is_in_foreground();
    let signal = match family {
        // One interrupt makes `srun` tell the state of its tasks; it hands SIGTERM on to them.
        LauncherFamily::Slurm => Signal::TERM,
        _ if is_from_terminal => return,
        _ if number == SIGINT => Signal::INT,
        _ => Signal::TERM,
    };
    if let Ok(pid) = i32::try_from(child.id())
        && let Some(pid) = Pid::from_raw(pid)
    {
        let _ = kill_process(pid, signal);
    }
}

/// True where what is typed at the terminal reaches this program and the launcher.
fn is_in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_reader_gets_the_whole_report() {
        let (sender, end) = channel();
        let state = Arc::new(PassingState::default());
        state.is_writing.store(true, Ordering::Release);
        let passing = Passing { end, state: state.clone() };
        let writer = std::thread::spawn(move || {
            let _sender: Sender<()> = sender;
            std::thread::park_timeout(Duration::from_millis(50));
            state.has_report.store(true, Ordering::Release);
        });
        assert!(passing.finish(Duration::from_millis(1)));
        writer.join().unwrap();
        // A process that outlives the launcher keeps the pipe open: what was seen counts.
        let (_open, end) = channel();
        let state = PassingState { has_report: AtomicBool::new(true), ..PassingState::default() };
        assert!(Passing { end, state: Arc::new(state) }.finish(Duration::from_millis(1)));
    }

    #[test]
    fn what_stands_before_a_report_is_none() {
        let seen = |pieces: &[&str]| {
            let mut seen = ReportSeen::default();
            pieces.iter().for_each(|piece| seen.add(piece.as_bytes()));
            seen.is_there
        };
        let begun = "a: (g=0): rw=randread\nfio-3.42\nStarting 1 process\n";
        let banner = "\n====\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n";
        let interrupted = "[mpiexec@vm] Sending Ctrl-C to processes as requested\n";
        assert!(!seen(&[]) && !seen(&[begun, banner]) && !seen(&[interrupted]));
        assert!(seen(&[begun, "All cli", "ents: (groupid=0, jobs=3)\n", banner]));
        assert!(seen(&["Fleet\n  Ranks         2 of 3 merged\n"]));
        assert!(seen(&["  \"fleet\": {\n"]) && seen(&["test,host,rank,status,iops\n"]));
    }
}
