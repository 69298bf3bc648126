//! One stage of limits in series: I/Os and bytes counted by one rule; a request proceeds when both limits permit.
//!
//! Requests pass a stage in the order of their arrival, and the completion time of each is computed immediately. That
//! is exact because no later request can overtake; therefore the limits on both directions precede those on one
//! direction.

use fathom_model::Op;

use crate::billing::{Billing, Meter};
use crate::fault::FaultSchedule;
use crate::limit::{Limit, LimitState, Limiter};
use crate::unit::{Accounting, Counter, RequestCharge};

/// A limit on I/Os, bytes or both, of a volume or of the instance that it is attached to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitStage {
    /// Owner of the limit, for reports: `volume`, `instance`.
    pub name: String,
    /// The counting rule.
    pub accounting: Accounting,
    /// Limit on I/Os; `None` = unlimited.
    pub ios: Option<Limit>,
    /// Limit on bytes; `None` = unlimited.
    pub bytes: Option<Limit>,
    /// Time by which requests may be ahead of a rate after an idle time, ns. With 0, each request waits until it is due.
    pub slack_ns: u64,
    /// Billing of I/O beyond the baseline, for limits with on-demand bursts.
    pub billing: Option<Billing>,
}

/// Time by which requests may be ahead of one limit, ns, after they waited for the other one of the stage. Without it, the two would
/// delay requests of mixed sizes in turn, and neither would be reached.
const CATCH_UP_NS: u64 = 10_000_000;

/// The state of a stage.
#[derive(Clone, Debug)]
pub(crate) struct Passage {
    ios: Option<Limiter>,
    bytes: Option<Limiter>,
    reads: Counter,
    writes: Counter,
    meter: Option<Meter>,
    /// The slack after an idle time, where requests may be further ahead while others wait.
    idle_slack_ns: Option<u64>,
    /// When the last request left the stage.
    last: u64,
}

impl Passage {
    pub(crate) fn new(stage: &LimitStage) -> Self {
        let catches_up = stage.ios.is_some() && stage.bytes.is_some() && stage.slack_ns < CATCH_UP_NS;
        let slack_ns = if catches_up { CATCH_UP_NS } else { stage.slack_ns };
        Passage {
            ios: stage.ios.map(|limit| Limiter::new(limit, slack_ns)),
            bytes: stage.bytes.map(|limit| Limiter::new(limit, slack_ns)),
            reads: Counter::new(stage.accounting),
            writes: Counter::new(stage.accounting),
            meter: stage.billing.map(|billing| Meter::new(billing, stage)),
            idle_slack_ns: catches_up.then_some(stage.slack_ns),
            last: 0,
        }
    }

    /// When a request that arrives at `arrival` leaves the stage.
    #[inline(always)]
    pub(crate) fn pass(&mut self, arrival: u64, request: &StageRequest, faults: &FaultSchedule) -> u64 {
        let cost = self.cost(request);
        if let Some(slack_ns) = self.idle_slack_ns.filter(|_| arrival > self.last) {
            let limits = [&mut self.ios, &mut self.bytes].into_iter().flatten();
            limits.for_each(|limit| limit.limit_credit(arrival, slack_ns));
        }
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

    /// What a request counts as.
    #[inline(always)]
    fn cost(&mut self, request: &StageRequest) -> RequestCharge {
        let counter = if request.op == Op::Read { &mut self.reads } else { &mut self.writes };
        let cost = counter.cost(request.offset, request.bytes);
        RequestCharge { ios: cost.ios * request.weight, bytes: cost.bytes }
    }

    /// Ends the units of writes, see [`Counter::flushed`].
    pub(crate) fn flushed(&mut self) {
        self.writes.flushed();
    }

    /// Counts a request at `arrival` without holding it up; its latency is a measured one.
    pub(crate) fn count(&mut self, arrival: u64, request: &StageRequest) -> RequestCharge {
        let cost = self.cost(request);
        if let Some(ios) = &mut self.ios {
            ios.take(arrival, cost.ios);
        }
        if let Some(bytes) = &mut self.bytes {
            bytes.take(arrival, cost.bytes);
        }
        if let Some(meter) = &mut self.meter {
            meter.count(arrival, cost);
        }
        cost
    }

    /// Lets no more burst credits be owed at `at` than `requests` of this `cost` use, which are charged as they arrive, and `owed_ns` of
    /// the baseline provide.
    pub(crate) fn limit_debt(&mut self, at: u64, requests: u64, cost: RequestCharge, owed_ns: u64) {
        for (limiter, cost) in [(&mut self.ios, cost.ios), (&mut self.bytes, cost.bytes)] {
            if let Some(limiter) = limiter {
                limiter.limit_debt(at, cost.saturating_mul(requests), owed_ns);
            }
        }
    }

    /// Its limits held a request back until `end`.
    pub(crate) fn held(&mut self, end: u64) {
        self.last = self.last.max(end);
    }

    /// Its limiters of I/Os and of bytes.
    pub(crate) fn limiters(&self) -> [Option<&Limiter>; 2] {
        [self.ios.as_ref(), self.bytes.as_ref()]
    }

    /// The states of its limits: I/Os, bytes.
    pub(crate) fn state(&self, stage: &LimitStage, at: u64) -> (Option<LimitState>, Option<LimitState>) {
        let of = |limiter: &Option<Limiter>, limit: &Option<Limit>| {
            Some(limiter.as_ref()?.state(limit.as_ref()?, at))
        };
        (of(&self.ios, &stage.ios), of(&self.bytes, &stage.bytes))
    }

    /// When the last request left it.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Transactions billed for bursts so far.
    pub(crate) fn billed(&self) -> u64 {
        self.meter.as_ref().map_or(0, Meter::billed)
    }
}

/// The properties of a request that a stage needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StageRequest {
    pub(crate) op: Op,
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    /// Factor on its I/Os.
    pub(crate) weight: u64,
}
