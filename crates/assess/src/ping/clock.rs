//! The time of a ping: that of this machine, or a number that goes on with the answers of a modelled volume.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fathom_sys::clock::RealClock;

/// ns since the ping was asked for.
pub(super) enum Clock {
    Real(RealClock),
    Virtual(AtomicU64),
}

/// Longest sleep before it is looked whether to stop.
const SLEEP_PIECE: Duration = Duration::from_millis(50);

impl Clock {
    pub fn real() -> Clock {
        Clock::Real(RealClock::start())
    }

    pub fn beginning_at_zero() -> Clock {
        Clock::Virtual(AtomicU64::new(0))
    }

    pub fn is_virtual(&self) -> bool {
        matches!(self, Clock::Virtual(_))
    }

    pub fn now(&self) -> u64 {
        match self {
            Clock::Real(clock) => clock.now(),
            Clock::Virtual(now) => now.load(Ordering::Acquire),
        }
    }

    /// Sleeps while `go_on` agrees; virtual time is just there, and never before where it was.
    pub fn sleep_until(&self, due: u64, go_on: impl FnMut() -> bool) {
        match self {
            Clock::Real(clock) => clock.sleep_until(due, SLEEP_PIECE, go_on),
            Clock::Virtual(now) => {
                now.fetch_max(due, Ordering::AcqRel);
            }
        }
    }
}
