//! The load of the machine and of the devices under a target while nothing is measured.
//!
//! The same counters as those of a run, by the same readers, so that both are judged alike.

use std::path::Path;
use std::time::Duration;

use fathom_model::Nanos;
use fathom_stats::{DeviceTick, DiskOutcome, HostInterval};
use fathom_sys::clock::RealClock;

use crate::disks::Disks;
use crate::host_watch::HostWatch;
use crate::stop::StopHandle;

/// How soon a stop ends the observation.
const PIECE: Duration = Duration::from_millis(50);

/// The load of others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackgroundLoad {
    /// Length of the observation, ns.
    pub elapsed_ns: u64,
    /// CPU time and pressure of the machine; empty where the kernel does not report CPU times.
    pub host: Vec<HostInterval>,
    /// The devices under the target, topmost first.
    pub disks: Vec<DiskOutcome>,
}

/// Observes the machine and the devices under `target` for `length` by `clock`, or until `stop`. Issues no I/O.
pub fn observe_background(
    target: &Path,
    length: Nanos,
    clock: &RealClock,
    stop: &StopHandle,
) -> BackgroundLoad {
    let (mut host, mut disks) = (HostWatch::real(), Disks::under([target].into_iter()));
    let begun = clock.now();
    host.begin(begun);
    disks.begin(begun);
    clock.sleep_until(begun.saturating_add(length.0), PIECE, || !stop.is_requested());
    let ended = clock.now();
    BackgroundLoad { elapsed_ns: ended - begun, host: host.end(ended), disks: disks.end(1, ended) }
}

/// Reads the counters of the machine, and of the devices under a target, tick by tick, for who shows a run that has no observer.
pub struct MachineTicks {
    host: HostWatch,
    disks: Disks,
    ticks: u32,
}

/// What was counted in one tick.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineTick {
    /// The devices under the target, topmost first.
    pub devices: Vec<DeviceTick>,
    /// The machine; `None` where the kernel does not report CPU times.
    pub host: Option<HostInterval>,
}

impl MachineTicks {
    /// From `now` on, ns of any clock; of the machine alone without a target. Asks the file system of the target.
    pub fn begin(target: Option<&Path>, now: u64) -> MachineTicks {
        let (mut host, mut disks) = (HostWatch::real(), Disks::under(target.into_iter()));
        host.begin(now);
        disks.begin(now);
        MachineTicks { host, disks, ticks: 0 }
    }

    /// Since the tick before.
    pub fn tick(&mut self, now: u64) -> MachineTick {
        self.ticks += 1;
        MachineTick { devices: self.disks.tick(self.ticks, now), host: self.host.tick(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_follow_each_other() {
        let mut ticks = MachineTicks::begin(Some(Path::new("/")), 10);
        let spans = [15, 40].map(|now| {
            let tick = ticks.tick(now);
            assert!(tick.devices.iter().all(|device| device.span_ns > 0), "{tick:?}");
            tick.host.map(|host| (host.start_ns, host.end_ns))
        });
        assert!(spans == [Some((10, 15)), Some((15, 40))] || spans == [None; 2], "{spans:?}");
    }

    #[test]
    fn an_observation_covers_its_length_or_ends_with_the_stop() {
        let clock = RealClock::start();
        let length = Nanos::from_millis(20);
        let seen = observe_background(Path::new("/"), length, &clock, &StopHandle::default());
        assert!(seen.elapsed_ns >= length.0, "{seen:?}");
        assert!(seen.host.iter().all(|interval| interval.end_ns - interval.start_ns == seen.elapsed_ns));
        assert!(seen.disks.iter().all(|disk| disk.elapsed_ns == seen.elapsed_ns));
        let stop = StopHandle::default();
        stop.request("test");
        let seen = observe_background(Path::new("/"), Nanos::from_secs(3600), &clock, &stop);
        assert!(seen.elapsed_ns < Nanos::from_secs(3600).0);
    }
}
