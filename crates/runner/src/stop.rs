//! Asking a run to end: by a signal, by another job, or because the caller has seen enough.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Ends the run it belongs to. Clones ask the same run.
#[derive(Clone, Debug, Default)]
pub struct StopHandle {
    asked: Arc<AtomicBool>,
    reason: Arc<Mutex<Option<String>>>,
    parts: Arc<Mutex<Vec<StopHandle>>>,
}

impl StopHandle {
    /// A handle of a part: who asks the whole to end asks the part, and not the other way round.
    pub fn part(&self) -> StopHandle {
        let part = StopHandle::default();
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).push(part.clone());
        // Asked before or meanwhile.
        if let Some(reason) = self.reason() {
            part.request(&reason);
        }
        part
    }

    /// Asks every worker to stop issuing, drain and report. The first reason given is the one reported.
    pub fn request(&self, reason: &str) {
        let mut slot = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert_with(|| reason.to_owned());
        self.asked.store(true, Ordering::Release);
        drop(slot);
        for part in self.parts.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            part.request(reason);
        }
    }

    /// True once a stop was asked for.
    pub fn is_requested(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Why, where a stop was asked for.
    pub fn reason(&self) -> Option<String> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_with_the_whole_and_not_the_other_way_round() {
        let whole = StopHandle::default();
        let (first, second) = (whole.part(), whole.part());
        first.request("the time limit");
        assert!(first.is_requested() && !second.is_requested() && !whole.is_requested());
        whole.request("signal 2");
        let reasons = [&first, &second, &whole.part()].map(StopHandle::reason);
        assert_eq!(reasons, ["the time limit", "signal 2", "signal 2"].map(|it| Some(it.to_owned())));
    }
}
