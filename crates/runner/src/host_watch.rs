//! CPU and pressure counters of the machine during a run, tick by tick.
//!
//! Read by the session's own thread, so that it costs the workers nothing.

use fathom_stats::{HostCounters, HostInterval, halve_host, series};
use fathom_sys::device::SysRoot;
use fathom_sys::device::host_load::{HostLoad, HostLoadSampler};

/// The intervals of a run so far; none in virtual time.
#[derive(Default)]
pub(crate) struct HostWatch {
    sampler: Option<HostLoadSampler>,
    before: Option<(u64, HostCounters)>,
    intervals: Vec<HostInterval>,
    /// An interval is as many ticks as two to this power.
    coarser: u32,
    ticks: u32,
}

impl HostWatch {
    /// Watches the local machine.
    pub fn real() -> Self {
        HostWatch { sampler: Some(HostLoadSampler::open(SysRoot::real())), ..HostWatch::default() }
    }

    fn sample(&self) -> Option<HostCounters> {
        self.sampler.as_ref()?.sample().map(counters)
    }

    /// The start of the measured part; earlier counts are excluded.
    pub fn begin(&mut self, now: u64) {
        self.before = self.sample().map(|counters| (now, counters));
        self.intervals.clear();
        (self.coarser, self.ticks) = (0, 0);
    }

    /// The end of an interval; returns its counts. Times are relative to the start of the run.
    pub fn tick(&mut self, now: u64) -> Option<HostInterval> {
        let sample = self.sample();
        self.add(now, sample)
    }

    fn add(&mut self, now: u64, sample: Option<HostCounters>) -> Option<HostInterval> {
        let ((start_ns, before), sample) = (self.before?, sample?);
        let interval = HostInterval { host: 0, start_ns, end_ns: now, counters: sample.since(&before) };
        let joins = !self.ticks.is_multiple_of(1 << self.coarser);
        match self.intervals.last_mut().filter(|_| joins) {
            Some(last) => (last.end_ns, last.counters) = (now, last.counters.plus(&interval.counters)),
            None => self.intervals.push(interval),
        }
        self.ticks += 1;
        if self.intervals.len() >= series::MAX && self.ticks.is_multiple_of(1 << self.coarser) {
            halve_host(&mut self.intervals);
            self.coarser += 1;
        }
        self.before = Some((now, sample));
        Some(interval)
    }

    /// The end of the measured part.
    pub fn end(mut self, now: u64) -> Vec<HostInterval> {
        self.tick(now);
        self.intervals
    }
}

fn counters(load: HostLoad) -> HostCounters {
    HostCounters {
        cpu_ns: load.cpu_ns,
        busy_ns: load.busy_ns,
        steal_ns: load.steal_ns,
        iowait_ns: load.iowait_ns,
        throttled_ns: load.throttled_ns,
        throttled_periods: load.throttled_periods,
        cpu_pressure_ns: load.cpu_pressure_ns,
        io_pressure_ns: load.io_pressure_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_in_exactly_one_interval_of_a_long_run() {
        for ticks in [0u64, 1, 2399, 2400, 2401, 4800, 10_001] {
            let mut watch = HostWatch { before: Some((0, HostCounters::default())), ..HostWatch::default() };
            for at in 1..=ticks {
                watch.add(at * 10, Some(HostCounters { cpu_ns: at * at, ..HostCounters::default() }));
            }
            let sum: u64 = watch.intervals.iter().map(|interval| interval.counters.cpu_ns).sum();
            assert_eq!(sum, ticks * ticks, "{ticks} ticks");
            assert!(watch.intervals.len() <= series::MAX, "{}", watch.intervals.len());
            let joined = watch.intervals.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns);
            assert!(joined && watch.intervals.last().map_or(0, |last| last.end_ns) == ticks * 10);
        }
    }

    #[test]
    fn unreadable_counters_give_no_intervals() {
        let mut watch = HostWatch::default();
        watch.begin(5);
        watch.tick(10);
        assert_eq!(watch.end(20), []);
    }
}
