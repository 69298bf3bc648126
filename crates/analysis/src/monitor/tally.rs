//! The intervals of a run, device by device: all of them as means, and the first of them one by one.

use fathom_record::{Observed, TestRecord, TestStatus};

use super::{MonitorInterval, MonitoredDevice, Presence};

/// Intervals that are kept one by one; those beyond are only in the means.
const INTERVALS_KEPT: usize = 10_000;

/// Takes the intervals of all devices one after the other.
#[derive(Clone, Debug, Default)]
pub struct MonitorTally {
    devices: Vec<MonitoredDevice>,
    keeps_intervals: bool,
    seen: usize,
}

impl MonitorTally {
    /// An empty one; one that `keeps_intervals` has them one by one as well.
    pub fn new(keeps_intervals: bool) -> MonitorTally {
        MonitorTally { keeps_intervals, ..MonitorTally::default() }
    }

    /// One more interval of each device.
    pub fn add(&mut self, intervals: &[MonitorInterval]) {
        for interval in intervals {
            self.seen += 1;
            let known =
                self.devices.iter().position(|device| device.means.device.name == interval.device.name);
            let index = known.unwrap_or_else(|| {
                let means = MonitorInterval { presence: Presence::Gone, ..interval.clone() };
                self.devices.push(MonitoredDevice { means, intervals: Vec::new() });
                self.devices.len() - 1
            });
            let MonitoredDevice { means, intervals } = &mut self.devices[index];
            if means.presence == Presence::Gone {
                means.clone_from(interval);
            } else {
                means.add(interval);
            }
            if self.keeps_intervals && self.seen <= INTERVALS_KEPT {
                intervals.push(interval.clone());
            }
        }
    }

    /// A test for each device.
    pub fn tests(self, interrupted: Option<&str>) -> Vec<TestRecord> {
        let is_cut = self.keeps_intervals && self.seen > INTERVALS_KEPT;
        let note = format!(
            "the first {INTERVALS_KEPT} intervals of all devices are kept; the means cover all of them"
        );
        let test = |device: MonitoredDevice| TestRecord {
            id: device.means.device.name.clone(),
            title: device.means.device.path.clone(),
            status: if interrupted.is_some() { TestStatus::Incomplete } else { TestStatus::Complete },
            reason: interrupted.map(str::to_owned),
            observed: Some(Observed::Monitor(Box::new(device))),
            notes: is_cut.then(|| note.clone()).into_iter().collect(),
            interrupted: interrupted.map(str::to_owned),
            ..TestRecord::default()
        };
        self.devices.into_iter().map(test).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(number: u64, presence: Presence, reads: u64) -> MonitorInterval {
        let mut interval =
            MonitorInterval { number, presence, elapsed_ns: 1_000_000_000, ..MonitorInterval::default() };
        interval.activity.ops.read.ios = reads;
        interval
    }

    #[test]
    fn intervals_of_an_absent_device_are_kept_and_count_in_no_mean() {
        let mut tally = MonitorTally::new(true);
        tally.add(&[interval(1, Presence::Gone, 7)]);
        tally.add(&[interval(2, Presence::Appeared, 100)]);
        tally.add(&[interval(3, Presence::There, 200)]);
        tally.add(&[interval(4, Presence::Gone, 9)]);
        let tests = tally.tests(None);
        let device = tests[0].monitored().unwrap();
        assert_eq!((device.intervals.len(), device.means.activity.ops.read.ios), (4, 300));
        assert_eq!((device.means.elapsed_ns, tests[0].status), (2_000_000_000, TestStatus::Complete));
    }

    #[test]
    fn intervals_beyond_the_limit_are_in_the_means_alone() {
        let mut tally = MonitorTally::new(true);
        (1..=INTERVALS_KEPT as u64 + 5).for_each(|number| tally.add(&[interval(number, Presence::There, 1)]));
        let tests = tally.tests(Some("SIGINT"));
        let device = tests[0].monitored().unwrap();
        assert_eq!((device.intervals.len(), device.means.activity.ops.read.ios), (INTERVALS_KEPT, 10_005));
        assert_eq!((tests[0].notes.len(), tests[0].status), (1, TestStatus::Incomplete));
    }
}
