//! The clock that slots are instants of: the wall clock, or the virtual time of simulated volumes.

use std::time::Duration;

use fathom_record::RunSchedule;
use fathom_runner::{Session, StopHandle};
use fathom_sys::clock::{RealClock, boottime_ns, monotonic_ns, unix_ms};

const MS: u64 = 1_000_000;
/// The wall clock is read again after this time, ms: it may be set, and the machine may be suspended.
const LOOK_MS: u64 = 500;
/// Longest sleep between two checks for a stop request.
const PIECE: Duration = Duration::from_millis(50);

/// The clock of a schedule.
pub(super) enum ScheduleClock {
    Wall,
    /// Virtual time, in which the first slot has this instant of the session.
    Volumes {
        origin_ns: u64,
        begins_unix_ms: u64,
    },
}

/// Measures how long the machine is suspended.
pub(super) struct Suspension {
    /// Boot time less monotonic time when it was last asked for, ns; `None` in virtual time.
    last_ns: Option<u64>,
}

fn suspended_ns() -> u64 {
    let monotonic_ns = monotonic_ns();
    boottime_ns().saturating_sub(monotonic_ns)
}

impl Suspension {
    /// Time for which the machine was suspended since this was last asked for, ms.
    pub(super) fn take_ms(&mut self) -> u64 {
        let Some(last_ns) = &mut self.last_ns else { return 0 };
        let now_ns = suspended_ns();
        let passed_ns = now_ns.saturating_sub(*last_ns);
        *last_ns = now_ns;
        passed_ns / MS
    }
}

impl ScheduleClock {
    pub(super) const fn wall() -> ScheduleClock {
        ScheduleClock::Wall
    }

    /// The virtual time of `session`: it is the instant of the first slot now.
    pub(super) fn of_volumes(session: &Session, schedule: &RunSchedule) -> ScheduleClock {
        ScheduleClock::Volumes { origin_ns: session.now(), begins_unix_ms: schedule.begins_unix_ms }
    }

    /// ms since the epoch.
    pub(super) fn unix_ms(&self, session: Option<&Session>) -> u64 {
        match (self, session) {
            (ScheduleClock::Volumes { origin_ns, begins_unix_ms }, Some(session)) => {
                begins_unix_ms + session.now().saturating_sub(*origin_ns) / MS
            }
            _ => unix_ms(),
        }
    }

    /// Measures suspensions from now on.
    pub(super) fn suspension(&self) -> Suspension {
        Suspension { last_ns: matches!(self, ScheduleClock::Wall).then(suspended_ns) }
    }

    /// Waits until `until_unix_ms` or a stop request. The wall clock may have passed that by more than a look when this returns:
    /// it was set, or the machine was suspended.
    pub(super) fn wait_until(&self, until_unix_ms: u64, session: Option<&Session>, stop: &StopHandle) {
        if let (ScheduleClock::Volumes { origin_ns, begins_unix_ms }, Some(session)) = (self, session) {
            session.wait_until(origin_ns + until_unix_ms.saturating_sub(*begins_unix_ms) * MS);
            return;
        }
        let clock = RealClock::start();
        loop {
            let left_ms = until_unix_ms.saturating_sub(unix_ms()).min(LOOK_MS);
            if left_ms == 0 || stop.is_requested() {
                return;
            }
            clock.sleep_until(clock.now() + left_ms * MS, PIECE, || !stop.is_requested());
        }
    }
}
