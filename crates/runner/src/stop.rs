//! Stop requests: by a signal, by another job, or by the caller.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Requests a run to stop. Clones refer to the same run.
#[derive(Clone, Debug, Default)]
pub struct StopHandle {
    asked: Arc<AtomicBool>,
    reason: Arc<Mutex<Option<String>>>,
    parts: Arc<Mutex<Vec<StopHandle>>>,
}

impl StopHandle {
    /// A handle for a part: a stop of the whole stops the part, but not the reverse.
    pub fn part(&self) -> StopHandle {
        let part = StopHandle::default();
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).push(part.clone());
        // Requested before or meanwhile.
        if let Some(reason) = self.reason() {
            part.request(&reason);
        }
        part
    }

    /// Requests every worker to stop issuing, drain and report. The first reason is the one reported.
    pub fn request(&self, reason: &str) {
        let mut slot = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert_with(|| reason.to_owned());
        self.asked.store(true, Ordering::Release);
        drop(slot);
        for part in self.parts.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            part.request(reason);
        }
    }

    /// True after a stop request.
    pub fn is_requested(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// The reason of the stop request, if there was one.
    pub fn reason(&self) -> Option<String> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The stop requests for a worker: of the run, and of its phase (`exitall`).
#[derive(Clone, Debug)]
pub(crate) struct StopSignal {
    pub run: StopHandle,
    pub phase: StopHandle,
}

impl StopSignal {
    /// The requests for one worker of those that `self` is for.
    pub fn of_one(&self) -> StopSignal {
        StopSignal { run: self.run.clone(), phase: self.phase.part() }
    }

    #[inline(always)]
    pub fn is_set(&self) -> bool {
        self.run.asked.load(Ordering::Relaxed) || self.phase.asked.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopping_the_whole_stops_its_parts_but_not_the_reverse() {
        let whole = StopHandle::default();
        let (first, second) = (whole.part(), whole.part());
        first.request("the time limit");
        assert!(first.is_requested() && !second.is_requested() && !whole.is_requested());
        whole.request("signal 2");
        let reasons = [&first, &second, &whole.part()].map(StopHandle::reason);
        assert_eq!(reasons, ["the time limit", "signal 2", "signal 2"].map(|it| Some(it.to_owned())));
    }
}
