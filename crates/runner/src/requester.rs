//! One request at a time, for those who look at each: what it took, what it brought, where it goes next.
//!
//! The loop of `drive` answers for rates and knows no single request. Here each is made on the session's time by the same engines,
//! and whoever controls the run sees how long the one in flight has taken.

use std::rc::Rc;

use fathom_engine::sim::SimEngine;
use fathom_engine::{Completion, Engine, EngineEntry, EngineError, EngineSetup, Queued, Reaped};
use fathom_model::{Nanos, Request};

use crate::control::RunControl;
use crate::session::{Session, Time};

/// How long an engine waits at a time.
const WAIT: Nanos = Nanos::from_millis(500);
/// The only slot.
const SLOT: u32 = 0;

/// Makes single requests of one target.
pub struct Requester {
    time: Time,
    control: RunControl,
    engine: Box<dyn Engine>,
    done: Vec<Completion>,
}

impl Session {
    /// Opens `entry` with one slot; on virtual time the modelled volumes answer instead.
    ///
    /// # Errors
    /// The engine cannot be opened.
    pub fn requester(&self, entry: &EngineEntry, setup: EngineSetup) -> Result<Requester, EngineError> {
        let engine: Box<dyn Engine> = match &self.time {
            Time::Real(_) => (entry.open)(setup)?,
            Time::Virtual { world, .. } => {
                let volumes = setup.files.iter().map(|file| file.volume).collect();
                Box::new(SimEngine::new(Rc::clone(world), volumes))
            }
        };
        let (time, control) = (self.time.clone(), self.control.clone());
        Ok(Requester { time, control, engine, done: Vec::with_capacity(1) })
    }
}

impl Requester {
    /// ns of the session's clock.
    pub fn now(&self) -> u64 {
        self.time.now()
    }

    /// The bytes that the next write will carry, and those that the last read brought; empty on virtual time.
    pub fn payload(&mut self) -> &mut [u8] {
        self.engine.payload(SLOT)
    }

    /// Waits until the instant `at_ns`, or until a stop was asked for. The last `spin_ns` on real time are spent spinning: waking
    /// takes longer than many a device.
    pub fn wait_until(&self, at_ns: u64, spin_ns: u64) {
        let stop = self.control.stop_handle();
        self.time.wait_until(at_ns.saturating_sub(spin_ns), || !stop.is_requested());
        match &self.time {
            Time::Real(clock) => {
                while clock.now() < at_ns && !stop.is_requested() {
                    std::hint::spin_loop();
                }
            }
            Time::Virtual { .. } => self.time.wait_until(at_ns, || true),
        }
    }

    /// Bytes moved, or a negative errno, however long that takes; `None` where a modelled volume never answers.
    ///
    /// # Errors
    /// The engine itself failed.
    pub fn request(&mut self, request: Request) -> Result<Option<i64>, EngineError> {
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
    use fathom_engine::sim::{self, BEGIN_NS, FixedLatency};
    use fathom_engine::{OpenFile, RawEngineOptions, registry};
    use fathom_model::Op;

    use super::*;

    fn setup() -> EngineSetup {
        EngineSetup {
            depth: 1,
            max_block: 4096,
            files: vec![OpenFile { file: None, size: 1 << 20, is_block_device: true, volume: 0 }],
            direct: false,
            writes: true,
            random: true,
            options: RawEngineOptions::default(),
        }
    }

    #[test]
    fn a_request_takes_the_time_of_the_volume() {
        let millis = Nanos::from_millis;
        let model = FixedLatency { read: millis(1), write: millis(2), flush: millis(3), parallelism: 1 };
        let session = Session::simulated(model, 1 << 20);
        let mut requester = session.requester(&sim::ENTRY, setup()).expect("volumes need no engine");
        let request = |op, len| Request { op, file: 0, len, offset: 0 };
        assert_eq!(requester.request(request(Op::Write, 4096)).ok(), Some(Some(4096)));
        assert_eq!(requester.request(request(Op::Datasync, 0)).ok(), Some(Some(0)));
        assert_eq!(requester.now(), BEGIN_NS + 5_000_000);
        requester.wait_until(BEGIN_NS + 9_000_000, 60_000);
        requester.wait_until(BEGIN_NS, 0);
        assert_eq!((requester.now(), session.now()), (BEGIN_NS + 9_000_000, BEGIN_NS + 9_000_000));
    }

    #[test]
    fn any_engine_answers_one_request_after_the_other() {
        let session = Session::real();
        let entry = registry::find("null").expect("it is registered");
        let mut requester = session.requester(entry, setup()).expect("it needs nothing");
        for _ in 0..3 {
            let request = Request { op: Op::Read, file: 0, len: 4096, offset: 0 };
            assert_eq!(requester.request(request).ok(), Some(Some(4096)));
        }
    }
}
