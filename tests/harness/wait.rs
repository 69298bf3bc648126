//! Waiting for something another process does.

use std::time::Duration;

/// How often it is looked for.
const PERIOD: Duration = Duration::from_millis(5);

/// Waits until `is_there` answers true, asking every 5 ms; false when it has not after `limit` spent waiting.
pub fn wait_for(limit: Duration, is_there: impl FnMut() -> bool) -> bool {
    wait_by(PERIOD, limit, is_there)
}

/// As [`wait_for`], asking less often, for questions that take the processor some time.
pub(crate) fn wait_patiently(limit: Duration, is_there: impl FnMut() -> bool) -> bool {
    wait_by(10 * PERIOD, limit, is_there)
}

fn wait_by(period: Duration, limit: Duration, mut is_there: impl FnMut() -> bool) -> bool {
    // Sleeps are counted instead of reading a clock: this is a patience, not a measurement.
    for _ in 0..limit.as_millis() / period.as_millis() {
        if is_there() {
            return true;
        }
        pause(period);
    }
    is_there()
}

/// Lets some time pass.
pub(crate) fn pause(time: Duration) {
    #[allow(clippy::disallowed_methods)] // No session here whose clock could wait.
    std::thread::sleep(time);
}
