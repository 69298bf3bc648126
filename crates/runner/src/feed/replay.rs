//! RecordedLoad requests, at their times or as soon as slots are free.

use std::sync::Arc;

use fathom_model::Request;
use fathom_model::plan::RecordedLoad;

use super::Next;
use super::open_loop::spin_ns_for;
use crate::worker::WorkerSpec;

/// The requests of a recording, in order.
#[derive(Debug)]
pub(super) struct Replay {
    recorded: Arc<RecordedLoad>,
    next: usize,
    /// When the recording begins, session ns; `None` if its times are not kept.
    begins: Option<u64>,
    spin_ns: u64,
}

impl Replay {
    /// The replay of `spec`; `None` for jobs with a source.
    pub fn new(spec: &WorkerSpec) -> Option<Box<Replay>> {
        let replay = spec.replay.as_ref()?;
        let requests = &replay.recorded.requests;
        let length = requests.last().map_or(0, |last| last.at_ns);
        let spin_ns = if replay.keeps_times { spin_ns_for(length as f64 / requests.len() as f64) } else { 0 };
        let begins = replay.keeps_times.then_some(0);
        Some(Box::new(Replay { recorded: Arc::clone(&replay.recorded), next: 0, begins, spin_ns }))
    }

    /// Begins at `now`.
    pub fn begin(&mut self, now: u64) {
        if let Some(begins) = &mut self.begins {
            *begins = now;
        }
    }

    /// Time by which a wait for a due request ends early, ns.
    pub fn spin_ns(&self) -> u64 {
        self.spin_ns
    }

    /// Whether a request may be issued at `now`.
    #[inline]
    pub fn peek(&self, now: u64) -> Next<()> {
        match (self.recorded.requests.get(self.next), self.begins) {
            (Some(next), Some(begins)) if begins.saturating_add(next.at_ns) > now => {
                Next::NotBefore(begins.saturating_add(next.at_ns))
            }
            (Some(_), _) => Next::Issue(()),
            // The next attempt to draw notices the end.
            (None, _) => Next::Issue(()),
        }
    }

    /// The next request; `None` at the end.
    #[inline]
    pub fn take(&mut self) -> Option<Request> {
        let next = self.recorded.requests.get(self.next)?;
        self.next += 1;
        Some(next.request)
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::Op;
    use fathom_model::plan::{Mix, RecordedRequest};

    use super::*;
    use crate::drive::tests::spec as spec_of;
    use crate::worker::ReplaySpec;

    fn replay(keeps_times: bool) -> Box<Replay> {
        let request = |at_ns, offset| RecordedRequest {
            at_ns,
            request: Request { op: Op::Write, file: 0, len: 512, offset },
        };
        let requests = vec![request(0, 1), request(500_000, 2), request(500_000, 3)];
        let recorded = Arc::new(RecordedLoad { requests, ..RecordedLoad::default() });
        let mut spec = spec_of(Mix::Write, 1, 10);
        spec.replay = Some(ReplaySpec { recorded, keeps_times });
        Replay::new(&spec).expect("it is a replay")
    }

    #[test]
    fn requests_are_due_at_their_times() {
        let mut replay = replay(true);
        replay.begin(1_000);
        assert_eq!(replay.peek(1_000), Next::Issue(()));
        assert_eq!(replay.take().map(|request| request.offset), Some(1));
        assert_eq!(replay.peek(1_000), Next::NotBefore(501_000));
        assert_eq!(replay.peek(501_000), Next::Issue(()));
        assert_eq!(replay.take().map(|request| request.offset), Some(2));
        assert_eq!(replay.peek(501_000), Next::Issue(()));
        assert_eq!(replay.take().map(|request| request.offset), Some(3));
        assert_eq!((replay.peek(501_000), replay.take()), (Next::Issue(()), None));
    }

    #[test]
    fn without_times_nothing_waits() {
        let mut replay = replay(false);
        replay.begin(1_000);
        for _ in 0..3 {
            assert_eq!(replay.peek(1_000), Next::Issue(()));
            assert!(replay.take().is_some());
        }
        assert_eq!(replay.take(), None);
        assert_eq!(replay.spin_ns(), 0);
    }

    #[test]
    fn other_jobs_replay_nothing() {
        assert!(Replay::new(&spec_of(Mix::Read, 1, 10)).is_none());
    }
}
