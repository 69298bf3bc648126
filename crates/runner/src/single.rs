//! The loop of single requests: one at a time, each prepared, waited for and looked at before the next.
//!
//! The loop of `drive` answers for rates and knows no single request. Here a [`SingleFeed`] decides what is requested next and
//! when, and takes each completion; this loop keeps the session's time, the waits, the engine and the stop, and marks in the
//! [`RunControl`] what is in flight, so that whoever controls the run sees how long it has taken.

use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_engine::sim::SimEngine;
use fathom_engine::{Completion, Engine, EngineEntry, EngineError, EngineSetup, Queued, Reaped};
use fathom_model::{Nanos, Op, Request};

use crate::control::{InFlight, RunControl};
use crate::session::{Session, Time};

/// How long an engine waits at a time.
const WAIT: Nanos = Nanos::from_millis(500);
/// The only slot.
const SLOT: u32 = 0;

/// A request, and when it is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleRequest {
    /// The request.
    pub request: Request,
    /// It is not issued before this instant, session ns.
    pub not_before_ns: u64,
    /// The wait for that instant ends so long before it on real time, ns; the rest is spent spinning, for waking takes longer
    /// than many a device.
    pub spin_ns: u64,
    /// A data sync of the file follows where the request succeeds, and counts as a part of it.
    pub syncs: bool,
}

/// A request that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleCompletion {
    /// The request.
    pub request: Request,
    /// When its preparation began, session ns.
    pub prepared_from_ns: u64,
    /// When it was issued, session ns.
    pub start_ns: u64,
    /// When it completed, session ns.
    pub end_ns: u64,
    /// Bytes moved, or a negative errno; `None` where a simulated volume never completes it.
    pub result: Option<i64>,
}

/// Decides what is requested next, and takes completions.
pub trait SingleFeed {
    /// The next request, at `now` of the session's clock; `None` where the work is done.
    fn next(&mut self, now: u64) -> Option<SingleRequest>;

    /// Prepares a request that is due. `payload` is filled here for writes; it is empty on virtual time.
    fn prepare(&mut self, _request: &Request, _payload: &mut [u8]) {}

    /// Takes a completion; the bytes that a read brought are at the beginning of `payload`.
    fn completed(&mut self, completion: &SingleCompletion, payload: &[u8]);
}

/// A feed that others look at while its requests are made. They wait while one is prepared.
impl<F: SingleFeed> SingleFeed for Arc<Mutex<F>> {
    fn next(&mut self, now: u64) -> Option<SingleRequest> {
        lock(self).next(now)
    }

    fn prepare(&mut self, request: &Request, payload: &mut [u8]) {
        lock(self).prepare(request, payload);
    }

    fn completed(&mut self, completion: &SingleCompletion, payload: &[u8]) {
        lock(self).completed(completion, payload);
    }
}

fn lock<F>(feed: &Mutex<F>) -> MutexGuard<'_, F> {
    feed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes single requests of one target.
pub struct Requester {
    time: Time,
    control: RunControl,
    engine: Box<dyn Engine>,
    done: Vec<Completion>,
}

impl Session {
    /// Opens `entry` with one slot; on virtual time the simulated volumes answer instead.
    ///
    /// # Errors
    /// The engine cannot be opened.
    pub fn requester(&self, entry: &EngineEntry, setup: EngineSetup) -> Result<Requester, EngineError> {
        let engine: Box<dyn Engine> = match &self.time {
            Time::Real(_) => (entry.open)(setup)?,
            Time::Virtual { world, .. } => {
                let volumes = setup.files.iter().map(|file| file.volume).collect();
                Box::new(SimEngine::new(Rc::clone(world), volumes, false))
            }
        };
        let (time, control) = (self.time.clone(), self.control.clone());
        Ok(Requester { time, control, engine, done: Vec::with_capacity(1) })
    }
}

impl Requester {
    /// Makes the requests of `feed` until it has no more or the run is asked to stop. A request in flight is waited for, however
    /// long it takes.
    ///
    /// # Errors
    /// The engine itself failed.
    pub fn run(&mut self, feed: &mut impl SingleFeed) -> Result<(), EngineError> {
        let stop = self.control.stop_handle();
        while let Some(single) = feed.next(self.time.now()) {
            self.wait(&single);
            if stop.is_requested() {
                break;
            }
            let completion = self.make(&single, feed)?;
            feed.completed(&completion, self.engine.payload(SLOT));
        }
        Ok(())
    }

    /// Waits until the request is due, or until a stop is asked for.
    fn wait(&self, single: &SingleRequest) {
        let (at_ns, stop) = (single.not_before_ns, self.control.stop_handle());
        match &self.time {
            Time::Real(clock) => {
                self.time.wait_until(at_ns.saturating_sub(single.spin_ns), || !stop.is_requested());
                while clock.now() < at_ns && !stop.is_requested() {
                    std::hint::spin_loop();
                }
            }
            Time::Virtual { .. } => self.time.wait_until(at_ns, || true),
        }
    }

    /// Prepares and issues a request and waits for its completion. It is marked as in flight from its preparation on: a device
    /// that does not respond holds that up as well.
    fn make(
        &mut self,
        single: &SingleRequest,
        feed: &mut impl SingleFeed,
    ) -> Result<SingleCompletion, EngineError> {
        let request = single.request;
        let prepared_from_ns = self.mark(&request);
        feed.prepare(&request, self.engine.payload(SLOT));
        let start_ns = self.mark(&request);
        let mut result = self.complete(request)?;
        if single.syncs && result.is_some_and(|result| result >= 0) {
            let sync = Request { op: Op::Datasync, file: request.file, len: 0, offset: 0 };
            let synced = self.complete(sync)?;
            result = if synced.is_some_and(|synced| synced >= 0) { result } else { synced };
        }
        let end_ns = self.time.now();
        self.control.set_in_flight(None);
        Ok(SingleCompletion { request, prepared_from_ns, start_ns, end_ns, result })
    }

    /// Marks `request` as in flight from now on.
    fn mark(&self, request: &Request) -> u64 {
        let since_ns = self.time.now();
        self.control.set_in_flight(Some(InFlight { since_ns, offset: request.offset }));
        since_ns
    }

    /// Bytes moved, or a negative errno; `None` where a simulated volume never completes it.
    fn complete(&mut self, request: Request) -> Result<Option<i64>, EngineError> {
        let requests = [request];
        self.done.clear();
        loop {
            match self.engine.queue(&[SLOT], &requests) {
                Queued::Done(result) => return Ok(Some(result)),
                Queued::Accepted(0) => _ = self.engine.reap(0, 1, None, &mut self.done)?,
                Queued::Accepted(_) => break,
            }
        }
        let mut submitted = 0;
        loop {
            if submitted == 0 {
                submitted = self.engine.submit()?;
            }
            let reaped = self.engine.reap(1, 1, Some(WAIT), &mut self.done)?;
            if let Some(completion) = self.done.first() {
                return Ok(Some(completion.result));
            }
            match reaped {
                Reaped::NothingBefore(Nanos::MAX) => return Ok(None),
                Reaped::NothingBefore(at) => self.time.wait_until(at.0, || true),
                Reaped::Some(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use fathom_engine::sim::{self, BEGIN_NS, FixedLatency};
    use fathom_engine::{OpenFile, RawEngineOptions, registry};

    use super::*;
    use crate::stop::StopHandle;

    /// Requests one after the other, and a stop after so many completions.
    #[derive(Default)]
    struct Listed {
        requests: VecDeque<SingleRequest>,
        completions: Vec<SingleCompletion>,
        in_flight: Vec<Option<u64>>,
        stop: Option<(StopHandle, usize)>,
        control: RunControl,
    }

    impl SingleFeed for Listed {
        fn next(&mut self, _now: u64) -> Option<SingleRequest> {
            self.requests.pop_front()
        }

        fn prepare(&mut self, _request: &Request, _payload: &mut [u8]) {
            self.in_flight.push(self.control.in_flight().map(|in_flight| in_flight.offset));
        }

        fn completed(&mut self, completion: &SingleCompletion, _payload: &[u8]) {
            self.completions.push(*completion);
            if let Some((stop, after)) = &self.stop
                && self.completions.len() == *after
            {
                stop.request("signal 2");
            }
        }
    }

    fn setup() -> EngineSetup {
        EngineSetup {
            depth: 1,
            max_block: 4096,
            files: vec![OpenFile { file: None, size: 1 << 20, is_block_device: true, volume: 0 }],
            paths: Vec::new(),
            direct: false,
            writes: true,
            random: true,
            options: RawEngineOptions::default(),
            priorities: Default::default(),
        }
    }

    fn single(op: Op, offset: u64, not_before_ns: u64) -> SingleRequest {
        let request = Request { op, file: 0, len: 4096, offset };
        SingleRequest { request, not_before_ns, spin_ns: 60_000, syncs: op == Op::Write }
    }

    fn simulated() -> Session {
        let millis = Nanos::from_millis;
        let model = FixedLatency { read: millis(1), write: millis(2), flush: millis(3), parallelism: 1 };
        Session::simulated(model, 1 << 20)
    }

    #[test]
    fn requests_are_issued_when_due_and_a_sync_is_part_of_its_write() {
        let session = simulated();
        let mut requester = session.requester(&sim::ENTRY, setup()).expect("volumes need no engine");
        let due = BEGIN_NS + 9_000_000;
        let requests = [single(Op::Write, 4096, 0), single(Op::Read, 8192, due), single(Op::Read, 0, 0)];
        let mut feed = Listed { requests: requests.into(), ..Listed::default() };
        feed.control = session.control.clone();
        requester.run(&mut feed).expect("a simulated volume");
        let times =
            feed.completions.iter().map(|it| (it.start_ns - BEGIN_NS, it.end_ns - BEGIN_NS, it.result));
        let expected = [(0, 5_000_000), (9_000_000, 10_000_000), (10_000_000, 11_000_000)];
        assert_eq!(times.collect::<Vec<_>>(), expected.map(|(start, end)| (start, end, Some(4096))));
        assert_eq!(feed.in_flight, [Some(4096), Some(8192), Some(0)]);
        assert_eq!((session.control.in_flight(), session.now()), (None, BEGIN_NS + 11_000_000));
    }

    #[test]
    fn a_stop_ends_the_wait_and_issues_nothing_more() {
        for session in [simulated(), Session::real()] {
            let entry = registry::find("null").expect("it is registered");
            let mut requester = session.requester(entry, setup()).expect("it needs nothing");
            let far = session.now() + 3_600_000_000_000;
            let requests = [single(Op::Read, 0, 0), single(Op::Read, 0, 0), single(Op::Read, 0, far)];
            let stop = Some((session.stop_handle(), 2));
            let mut feed = Listed { requests: requests.into(), stop, ..Listed::default() };
            requester.run(&mut feed).expect("an engine that cannot fail");
            assert_eq!(feed.completions.iter().map(|it| it.result).collect::<Vec<_>>(), [Some(4096); 2]);
        }
    }
}
