//! The state of the run and all who read it: changes come from the thread that follows the run, and no reader holds it up.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_history::{HistoryPath, Kept, RunId};
use fathom_report::live::LiveState;
use fathom_report::live::json::LiveLine;
use fathom_report::live::metrics;

use super::followers::Followers;
use super::lines::LineStream;

/// A run that other processes can follow, until this is dropped.
pub struct OpenToFollowers {
    hub: Arc<Hub>,
    run: RunId,
}

impl Drop for OpenToFollowers {
    fn drop(&mut self) {
        self.hub.followers.close(self.run);
    }
}

/// The state, and the streams that receive each change.
pub struct Hub {
    state: Mutex<LiveState>,
    streams: Vec<LineStream>,
    /// Other processes that read it.
    followers: Followers,
    /// Somebody reads what the tests tell as soon as they end.
    pub wants_findings: bool,
    /// Changes with the state, to be asked without holding it up.
    version: AtomicU64,
    metrics: Mutex<RenderedMetrics>,
}

/// The text of the metrics, made once for all who ask before the next change.
#[derive(Default)]
struct RenderedMetrics {
    version: Option<u64>,
    text: Arc<Vec<u8>>,
}

impl Hub {
    /// A run in `state`, told to `streams`.
    pub fn new(state: LiveState, streams: Vec<LineStream>) -> Hub {
        let (version, metrics) = (AtomicU64::new(0), Mutex::default());
        let followers = Followers::default();
        Hub { state: Mutex::new(state), streams, followers, wants_findings: true, version, metrics }
    }

    /// A run that nobody reads here, which others may follow.
    pub fn for_followers(state: LiveState) -> Hub {
        Hub { wants_findings: false, ..Hub::new(state, Vec::new()) }
    }

    /// From now on other processes can follow the run, where it is kept in a history.
    pub fn open_to_followers(self: &Arc<Self>, place: &HistoryPath, kept: &Kept) -> Option<OpenToFollowers> {
        let (history, Kept::Run(run)) = (place.history.as_ref()?, kept) else { return None };
        // Whoever has taken its place keeps the run from being followed, not from being measured.
        self.followers.open(history, *run).ok()?;
        Some(OpenToFollowers { hub: self.clone(), run: *run })
    }

    /// Changes the state, and tells the streams.
    pub fn change(&self, line: Option<LiveLine<'_>>, change: impl FnOnce(&mut LiveState)) {
        let mut state = self.state();
        change(&mut state);
        self.version.fetch_add(1, Ordering::AcqRel);
        if let Some(line) = line {
            self.streams.iter().for_each(|stream| stream.send(line, &state));
        }
        self.followers.tell(line, &state);
    }

    /// The state as it is now. Whoever reads it lets go of it before it writes anything anywhere.
    pub fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The metrics of the latest state. However many ask, the state is read once for each change: the run does not wait for
    /// those who read it.
    ///
    /// # Errors
    /// They cannot be written, which does not happen.
    pub fn metrics(&self) -> io::Result<Arc<Vec<u8>>> {
        let mut rendered = self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        let version = Some(self.version.load(Ordering::Acquire));
        if rendered.version != version {
            let mut text = Vec::new();
            metrics::render(&self.state(), &mut text)?;
            *rendered = RenderedMetrics { version, text: Arc::new(text) };
        }
        Ok(rendered.text.clone())
    }

    /// Ends the streams: waits a limited time for their readers.
    pub fn finish(&self) {
        self.streams.iter().for_each(LineStream::finish);
    }
}
