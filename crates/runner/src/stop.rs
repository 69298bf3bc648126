//! Asking a run to end: by a signal, by another job, or because the caller has seen enough.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Ends the run it belongs to. Clones ask the same run.
#[derive(Clone, Debug, Default)]
pub struct StopHandle {
    asked: Arc<AtomicBool>,
    reason: Arc<Mutex<Option<String>>>,
}

impl StopHandle {
    /// Asks every worker to stop issuing, drain and report. The first reason given is the one reported.
    pub fn request(&self, reason: &str) {
        let mut slot = self.reason.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        slot.get_or_insert_with(|| reason.to_owned());
        self.asked.store(true, Ordering::Release);
    }

    /// True once a stop was asked for.
    pub fn is_requested(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Why, where a stop was asked for.
    pub fn reason(&self) -> Option<String> {
        self.reason.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// What a worker watches: the run's stop, and that of its own phase (`exitall`).
#[derive(Clone, Debug)]
pub(crate) struct StopSignal {
    pub run: StopHandle,
    pub phase: StopHandle,
}

impl StopSignal {
    #[inline(always)]
    pub fn is_set(&self) -> bool {
        self.run.asked.load(Ordering::Relaxed) || self.phase.asked.load(Ordering::Relaxed)
    }
}
