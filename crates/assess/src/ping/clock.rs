//! The time of a ping: that of this machine, or a number that goes on with the answers of a modelled volume.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fathom_sys::clock::RealClock;

/// ns since the ping was asked for.
pub(super) enum PingClock {
    Real(RealClock),
    Virtual(AtomicU64),
}

/// Longest sleep before it is looked whether to stop.
const SLEEP_PIECE: Duration = Duration::from_millis(50);

impl PingClock {
    pub fn real() -> PingClock {
        PingClock::Real(RealClock::start())
    }

    pub fn beginning_at_zero() -> PingClock {
        PingClock::Virtual(AtomicU64::new(0))
    }

    pub fn is_virtual(&self) -> bool {
        matches!(self, PingClock::Virtual(_))
    }

    pub fn now(&self) -> u64 {
        match self {
            PingClock::Real(clock) => clock.now(),
            PingClock::Virtual(now) => now.load(Ordering::Acquire),
        }
    }

    /// Sleeps while `go_on` agrees; virtual time is just there, and never before where it was.
    pub fn sleep_until(&self, due: u64, go_on: impl FnMut() -> bool) {
        match self {
            PingClock::Real(clock) => clock.sleep_until(due, SLEEP_PIECE, go_on),
            PingClock::Virtual(now) => {
                now.fetch_max(due, Ordering::AcqRel);
            }
        }
    }
}
