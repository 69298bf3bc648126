//! I/Os of a stretch of time: as they arrive, as they wait for limits together, and as they are served.

use super::WHOLE;

/// I/Os of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FluidSum {
    /// I/Os.
    pub ops: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The I/Os of a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FluidStep {
    /// Length, ns; 0 where only I/Os are added at an instant.
    pub length_ns: u64,
    /// Reads.
    pub reads: FluidSum,
    /// Everything else.
    pub writes: FluidSum,
    /// All of them arrive at the beginning, not evenly.
    pub is_at_once: bool,
    /// Requests continue each other, so that types that merge sequential ones count them by their bytes.
    pub is_sequential: bool,
}

/// I/Os that were served, in the order of their arrival. Arrivals and waiting times are linear between both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FluidServed {
    /// Arrival of the first, ns.
    pub from_ns: u64,
    /// Arrival of the last, ns.
    pub to_ns: u64,
    /// Reads.
    pub reads: u64,
    /// Everything else.
    pub writes: u64,
    /// Time that the first waited for limits, ns.
    pub first_wait_ns: u64,
    /// Time that the last waited, ns.
    pub last_wait_ns: u64,
}

/// I/Os that arrive together or evenly from `from` to `to`.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
    /// Scaled tokens of each limit.
    pub(super) costs: Vec<i128>,
    /// The part that has been served, of [`WHOLE`].
    pub(super) served: u64,
}

impl Bundle {
    /// The part that has arrived at `at`.
    pub(super) fn arrived(&self, at: u64) -> u64 {
        match at >= self.to {
            true => WHOLE,
            false => {
                (u128::from(at.saturating_sub(self.from)) * u128::from(WHOLE)
                    / u128::from(self.to - self.from)) as u64
            }
        }
    }

    /// When `part` of it has arrived.
    pub(super) fn arrival(&self, part: u64) -> u64 {
        self.from + (u128::from(self.to - self.from) * u128::from(part) / u128::from(WHOLE)) as u64
    }
}
