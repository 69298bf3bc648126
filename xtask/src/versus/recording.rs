//! A recording of every request of a device, beside a run that is observed.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use fathom_tests::{LoopDevice, Program, wait_for};
use rustix::process::Signal;

use super::lab::children_ns;

/// A recorder has begun after this time.
const PATIENCE: Duration = Duration::from_secs(20);

/// `fathom monitor --record`, while it runs.
#[derive(Debug)]
pub struct Recording {
    program: Program,
}

/// What a recording took and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordingCost {
    /// CPU time of the recorder, ns.
    pub cpu_ns: f64,
    /// Events that the kernel had no room for.
    pub lost: u64,
}

impl Recording {
    /// Records the requests of `device` into `directory`.
    pub fn start(fathom: &Path, device: &LoopDevice, directory: &Path) -> anyhow::Result<Recording> {
        let file = directory.join("q.load");
        if file.exists() {
            std::fs::remove_file(&file).context("cannot remove the last recording")?;
        }
        let mut command = Command::new(fathom);
        command.args(["monitor", "--no-owners", "--record"]).arg(&file).arg(device.name());
        let program = Program::start(&mut command);
        let has_begun = wait_for(PATIENCE, || program.stderr().contains("recording every I/O"));
        if !has_begun {
            bail!("requests cannot be recorded: {}", program.stderr().trim());
        }
        Ok(Recording { program })
    }

    /// Ends it.
    pub fn finish(self) -> anyhow::Result<RecordingCost> {
        let before_ns = children_ns()?;
        self.program.signal(Signal::INT);
        let ended = self.program.finish();
        let lost = lost(&ended.stderr)
            .with_context(|| format!("the recorder does not say what it lost: {}", ended.stderr))?;
        Ok(RecordingCost { cpu_ns: children_ns()? - before_ns, lost })
    }
}

/// From `recorded 7 entries in 1 file, 1.2 kB; 1,200 events lost`, or `no event lost`.
fn lost(messages: &str) -> Option<u64> {
    let last = messages.lines().rfind(|line| line.contains("monitor: recorded "))?;
    let (_, what) = last.rsplit_once("; ")?;
    match what.strip_suffix(" events lost") {
        Some(count) => count.replace(',', "").parse().ok(),
        None => (what == "no event lost").then_some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_read_from_the_last_line() {
        let check = |messages: &str, expected| assert_eq!(lost(messages), expected, "{messages}");
        check(
            "monitor: recording every I/O\nmonitor: recorded 7 entries in 1 file, 1 kB; no event lost\n",
            Some(0),
        );
        check("monitor: recorded 7 entries in 2 files, 1 kB; 1,200 events lost", Some(1200));
        check("monitor: recorded 7 entries", None);
        check("", None);
    }
}
