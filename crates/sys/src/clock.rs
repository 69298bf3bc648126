//! The real clocks. The only place in the project that reads one.
//!
//! [`RealClock`] answers in ns since it was made. Where the CPU has an invariant TSC and the kernel itself trusts it, a
//! reading is one `rdtsc` scaled by a calibration against `CLOCK_MONOTONIC_RAW`; elsewhere it is `clock_gettime`.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Where the time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// The CPU's invariant time stamp counter.
    Tsc,
    /// `clock_gettime(CLOCK_MONOTONIC)`.
    Monotonic,
}

impl ClockSource {
    /// Name for records and reports.
    pub const fn name(self) -> &'static str {
        match self {
            ClockSource::Tsc => "tsc",
            ClockSource::Monotonic => "clock_monotonic",
        }
    }
}

/// A monotonic clock that starts at zero when it is made. Cheap to copy; all copies agree.
#[derive(Clone, Copy, Debug)]
pub struct RealClock {
    source: ClockSource,
    /// TSC ticks or monotonic ns at zero.
    origin: u64,
    /// ns per tick as a 32.32 fixed-point number.
    scale: u64,
}

impl RealClock {
    /// Calibrates and starts the clock; takes 2 ms where there is a TSC to calibrate.
    pub fn start() -> Self {
        match tsc::calibrate() {
            Some(scale) => RealClock { source: ClockSource::Tsc, origin: tsc::read(), scale },
            None => RealClock { source: ClockSource::Monotonic, origin: monotonic_ns(), scale: 0 },
        }
    }

    /// ns since the start.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        match self.source {
            ClockSource::Tsc => {
                let ticks = tsc::read().wrapping_sub(self.origin);
                ((u128::from(ticks) * u128::from(self.scale)) >> 32) as u64
            }
            ClockSource::Monotonic => monotonic_ns() - self.origin,
        }
    }

    /// The time that `cycles` of the CPU's counter take, ns; without such a counter, as at 1 GHz.
    pub fn ns_of_cycles(&self, cycles: u64) -> u64 {
        match self.source {
            ClockSource::Tsc => ((u128::from(cycles) * u128::from(self.scale)) >> 32) as u64,
            ClockSource::Monotonic => cycles,
        }
    }

    /// The time that a reading takes, ns: the least mean of several series, so that an interruption does not count. Takes
    /// less than a millisecond where a reading takes less than 100 ns.
    pub fn reading_ns(&self) -> u64 {
        const SERIES: u64 = 16;
        const READINGS: u64 = 500;
        let series = |_| {
            let began = self.now();
            let ended = (0..READINGS).fold(began, |_, _| std::hint::black_box(self.now()));
            (ended - began).div_ceil(READINGS)
        };
        (0..SERIES).map(series).min().unwrap_or(0)
    }

    /// Where the time comes from.
    pub fn source(&self) -> ClockSource {
        self.source
    }

    /// Sleeps until `deadline` (ns since the start), in pieces of at most `piece`, while `go_on` agrees.
    pub fn sleep_until(&self, deadline: u64, piece: Duration, mut go_on: impl FnMut() -> bool) {
        while go_on() {
            let now = self.now();
            if now >= deadline {
                return;
            }
            let left = Duration::from_nanos(deadline - now).min(piece);
            #[allow(clippy::disallowed_methods)] // This is the clock.
            std::thread::sleep(left);
        }
    }
}

fn to_ns(time: rustix::time::Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// `CLOCK_MONOTONIC`, ns.
pub fn monotonic_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Monotonic))
}

/// `CLOCK_MONOTONIC_RAW`, ns: not slewed by NTP.
pub fn monotonic_raw_ns() -> u64 {
    to_ns(clock_gettime(ClockId::MonotonicRaw))
}

/// `CLOCK_BOOTTIME`, ns: it counts the time for which the machine is suspended, which `CLOCK_MONOTONIC` does not.
pub fn boottime_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Boottime))
}

/// Wall-clock time, ms since the epoch.
pub fn unix_ms() -> u64 {
    to_ns(clock_gettime(ClockId::Realtime)) / 1_000_000
}

/// Wall-clock time, us since the epoch.
pub fn unix_us() -> u64 {
    to_ns(clock_gettime(ClockId::Realtime)) / 1_000
}

/// How well the kernel knows the wall-clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClockState {
    /// A time service keeps the clock: its error is bounded.
    pub synchronized: bool,
    /// Largest error, ns.
    pub max_error_ns: u64,
    /// Estimated error, ns.
    pub estimated_error_ns: u64,
}

/// How well the kernel knows the wall-clock time (`adjtimex`); `None` where it does not say.
pub fn wall_clock_state() -> Option<WallClockState> {
    // SAFETY: `timex` is plain numbers, for which zeros are valid; without modes the call only reads.
    let (state, result) = unsafe {
        let mut state: libc::timex = std::mem::zeroed();
        let result = libc::adjtimex(&raw mut state);
        (state, result)
    };
    let ns = |us: libc::c_long| u64::try_from(us).unwrap_or(0).saturating_mul(1_000);
    (result >= 0).then(|| WallClockState {
        synchronized: result != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0,
        max_error_ns: ns(state.maxerror),
        estimated_error_ns: ns(state.esterror),
    })
}

/// The kernel's clock of this number, ms; 0 if there is none.
pub fn clock_ms(id: u32) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; a number that is no clock is answered with an error.
    let result = unsafe { libc::clock_gettime(id as libc::clockid_t, &raw mut time) };
    if result == 0 { time.tv_sec as u64 * 1_000 + time.tv_nsec as u64 / 1_000_000 } else { 0 }
}

#[cfg(target_arch = "x86_64")]
mod tsc {
    use super::monotonic_raw_ns;

    /// How long the TSC is compared with the kernel's clock: an error of 30 ns in either reading is then 15 ppm. The first
    /// request waits for it.
    const CALIBRATION_NS: u64 = 2_000_000;

    /// Reads the counter. Not serialised: a reading may move by a few ns against neighbouring instructions.
    #[inline(always)]
    pub fn read() -> u64 {
        // SAFETY: rdtsc has no preconditions on x86_64.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    /// ns per tick in 32.32 fixed point, or `None` where the counter cannot be trusted.
    pub fn calibrate() -> Option<u64> {
        if !is_invariant() || !kernel_trusts_tsc() {
            return None;
        }
        let (tick0, ns0) = paired();
        let mut end = paired();
        while end.1 - ns0 < CALIBRATION_NS {
            end = paired();
        }
        let (ticks, ns) = (end.0.checked_sub(tick0)?, end.1 - ns0);
        if ticks == 0 {
            return None;
        }
        u64::try_from((u128::from(ns) << 32) / u128::from(ticks)).ok()
    }

    /// Ticks between which a reading of the kernel's clock is as close as it gets: some 60 ns of a processor.
    const CLOSE: u64 = 200;
    /// Attempts where a hypervisor or an interrupt comes between, or the clock takes longer to read.
    const ATTEMPTS: u32 = 32;

    /// A tick and a clock reading as close together as some attempts give.
    fn paired() -> (u64, u64) {
        let mut best = (u64::MAX, 0, 0);
        for attempt in 0..ATTEMPTS {
            if attempt >= 8 && best.0 <= CLOSE {
                break;
            }
            let before = read();
            let ns = monotonic_raw_ns();
            let after = read();
            let width = after.wrapping_sub(before);
            if width < best.0 {
                best = (width, before + width / 2, ns);
            }
        }
        (best.1, best.2)
    }

    fn is_invariant() -> bool {
        let leaf = 0x8000_0007;
        let highest = core::arch::x86_64::__cpuid(0x8000_0000).eax;
        highest >= leaf && core::arch::x86_64::__cpuid(leaf).edx & (1 << 8) != 0
    }

    fn kernel_trusts_tsc() -> bool {
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .is_ok_and(|name| matches!(name.trim(), "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page"))
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod tsc {
    pub fn read() -> u64 {
        0
    }

    pub fn calibrate() -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_agrees_with_the_kernel() {
        let clock = RealClock::start();
        let (ours, kernel) = (clock.now(), monotonic_raw_ns());
        while monotonic_raw_ns() - kernel < 20_000_000 {
            std::hint::spin_loop();
        }
        let (ours, kernel) = (clock.now() - ours, monotonic_raw_ns() - kernel);
        let error = ours.abs_diff(kernel) as f64 / kernel as f64;
        assert!(error < 0.01, "ours {ours} ns, kernel {kernel} ns");
    }

    #[test]
    fn the_state_of_the_wall_clock_is_plausible() {
        let Some(state) = wall_clock_state() else { return };
        assert!(state.max_error_ns < 1 << 60 && state.estimated_error_ns < 1 << 60, "{state:?}");
        assert!(state.synchronized || state.max_error_ns > 0, "{state:?}");
    }

    #[test]
    fn a_reading_takes_some_time() {
        let ns = RealClock::start().reading_ns();
        assert!(ns > 0 && ns < 100_000, "{ns}");
    }

    #[test]
    fn the_clock_never_goes_back() {
        let clock = RealClock::start();
        let mut last = 0;
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}
