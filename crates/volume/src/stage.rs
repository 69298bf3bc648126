//! One limit among several in series: I/Os and bytes counted by one rule, a request going when both allow it.
//!
//! Requests pass a stage in the order in which they come to it, and each is answered at once. That is exact because nothing
//! that comes later can overtake: what is limited for both directions therefore stands before what is limited for one.

use fathom_model::Op;

use crate::billing::{Billing, Meter};
use crate::fault::FaultSchedule;
use crate::limit::{Limit, Limiter, Standing};
use crate::unit::{Accounting, Counter, RequestCharge};

/// A limit on I/Os, bytes, or both together, of a volume or of what it is attached to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitStage {
    /// Whose limit it is, for reports: `volume`, `instance`.
    pub name: String,
    /// How requests are counted.
    pub accounting: Accounting,
    /// I/Os; `None` = no limit.
    pub ios: Option<Limit>,
    /// Bytes; `None` = no limit.
    pub bytes: Option<Limit>,
    /// How far ahead of a rate requests may be, ns. With 0 each waits for its own turn, so that among requests of many
    /// sizes now one limit and now the other holds them up and neither is reached.
    pub slack_ns: u64,
    /// What is billed beyond the baseline, where a limit is on demand.
    pub billing: Option<Billing>,
}

impl LimitStage {
    /// The block size in bytes at which both baselines hold at once: below it I/Os limit, above it bytes. `None` where
    /// one of them does not.
    pub fn crossover_bytes(&self) -> Option<f64> {
        Some(self.bytes?.baseline().as_f64() / self.ios?.baseline().as_f64())
    }
}

/// A stage at work.
#[derive(Clone, Debug)]
pub(crate) struct Passage {
    ios: Option<Limiter>,
    bytes: Option<Limiter>,
    reads: Counter,
    writes: Counter,
    meter: Option<Meter>,
    /// When the last request went.
    last: u64,
}

impl Passage {
    pub(crate) fn new(stage: &LimitStage) -> Self {
        Passage {
            ios: stage.ios.map(|limit| Limiter::new(limit, stage.slack_ns)),
            bytes: stage.bytes.map(|limit| Limiter::new(limit, stage.slack_ns)),
            reads: Counter::new(stage.accounting),
            writes: Counter::new(stage.accounting),
            meter: stage.billing.map(|billing| Meter::new(billing, stage)),
            last: 0,
        }
    }

    /// When a request that comes at `arrival` goes. It counts `weight` times.
    #[inline(always)]
    pub(crate) fn pass(&mut self, arrival: u64, request: &StageRequest, faults: &FaultSchedule) -> u64 {
        let counter = if request.op == Op::Read { &mut self.reads } else { &mut self.writes };
        let cost = counter.cost(request.offset, request.bytes);
        let cost = RequestCharge { ios: cost.ios * request.weight, bytes: cost.bytes };
        let mut at = arrival.max(self.last);
        if let Some(ios) = &mut self.ios {
            at = ios.earliest(at, cost.ios);
        }
        if let Some(bytes) = &mut self.bytes {
            at = bytes.earliest(at, cost.bytes);
        }
        at = faults.resumed(at);
        if let Some(ios) = &mut self.ios {
            ios.take(at, cost.ios);
        }
        if let Some(bytes) = &mut self.bytes {
            bytes.take(at, cost.bytes);
        }
        if let Some(meter) = &mut self.meter {
            meter.count(at, cost);
        }
        self.last = at;
        at
    }

    /// What its limits stand at: I/Os, bytes.
    pub(crate) fn standing(&self, stage: &LimitStage, at: u64) -> (Option<Standing>, Option<Standing>) {
        let of = |limiter: &Option<Limiter>, limit: &Option<Limit>| {
            Some(limiter.as_ref()?.standing(limit.as_ref()?, at))
        };
        (of(&self.ios, &stage.ios), of(&self.bytes, &stage.bytes))
    }

    /// What is to be paid for bursts so far.
    pub(crate) fn billed(&self) -> u64 {
        self.meter.as_ref().map_or(0, Meter::billed)
    }
}

/// What a stage sees of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StageRequest {
    pub(crate) op: Op,
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    /// How many times its I/Os count.
    pub(crate) weight: u64,
}
