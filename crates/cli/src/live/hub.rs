//! The state of the run and all who read it: changes come from the thread that follows the run, and no reader holds it up.

use std::sync::{Mutex, MutexGuard, PoisonError};

use fathom_report::live::LiveState;
use fathom_report::live::json::LiveLine;

use super::lines::LineStream;

/// The state, and the streams that are told of each change.
pub struct Hub {
    state: Mutex<LiveState>,
    streams: Vec<LineStream>,
}

impl Hub {
    /// A run in `state`, told to `streams`.
    pub fn new(state: LiveState, streams: Vec<LineStream>) -> Hub {
        Hub { state: Mutex::new(state), streams }
    }

    /// Changes the state, and tells the streams.
    pub fn change(&self, line: Option<LiveLine<'_>>, change: impl FnOnce(&mut LiveState)) {
        let mut state = self.state();
        change(&mut state);
        if let Some(line) = line {
            self.streams.iter().for_each(|stream| stream.send(line, &state));
        }
    }

    /// The state as it is now. Whoever reads it lets go of it before it writes anything anywhere.
    pub fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the streams: waits a limited time for their readers.
    pub fn finish(&self) {
        self.streams.iter().for_each(LineStream::finish);
    }
}
