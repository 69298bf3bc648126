//! Scheduling priority over other programs.

use std::process::Command;

use crate::shell::{must_run, try_run};

/// While this exists, programs started by its thread have priority over all ordinary programs; as root only.
///
/// For both ends of a comparison: a program that is woken late and one that measures badly look alike. Not for a
/// program that computes for long, which would keep the others out.
#[derive(Debug)]
pub struct GoingFirst {
    thread: String,
}

impl GoingFirst {
    /// From here on.
    pub fn new() -> Self {
        // A niceness would not do: it counts only among the programs of one session.
        let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
        must_run(Command::new("chrt").args(["--rr", "--pid", "1", &thread]));
        GoingFirst { thread }
    }
}

impl Default for GoingFirst {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for GoingFirst {
    fn drop(&mut self) {
        try_run(Command::new("chrt").args(["--other", "--pid", "0", &self.thread]));
    }
}
