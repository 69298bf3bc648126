//! A test that was repeated in rounds until its figure held still, and how the rounds that count become one test.

use serde::{Deserialize, Serialize};

use crate::merge::merge_jobs;
use crate::wire::is_default;
use crate::{DiskOutcome, HostInterval, Interval, JobRecord, PhaseOutcome, TestRecord};

/// The rounds of a test, and what they came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoundsRecord {
    /// What was watched: `iops`, `bytes_per_second`, or `lat_ns` (the mean).
    pub tracked: String,
    /// Its value in each round, first to last; 0 where nothing completed.
    pub values: Vec<f64>,
    /// What a round was to last, ns; 0 where it ended with its size.
    #[serde(skip_serializing_if = "is_default")]
    pub round_ns: u64,
    /// From the start of the first round to the end of the last, ns.
    pub elapsed_ns: u64,
    /// The figures of the test are those of so many rounds, the last ones.
    pub counted: u32,
    /// The rounds that count agree.
    pub steady: bool,
    /// Greatest less least of those, as a share of their mean; left out where there are too few.
    #[serde(skip_serializing_if = "is_default")]
    pub range_fraction: Option<f64>,
    /// What they rose (or, negative, fell) by from the first to the last, as a share of their mean.
    #[serde(skip_serializing_if = "is_default")]
    pub drift_fraction: Option<f64>,
}

/// Rounds of one test as a single one: each begins where the one before ended, whatever lay between them; counters,
/// histograms and series are added. What cannot be added is taken from the first. No rounds give an empty record.
pub fn merge_rounds(rounds: &[TestRecord]) -> TestRecord {
    let Some(first) = rounds.first() else { return TestRecord::default() };
    let mut merged = TestRecord { jobs: Vec::new(), ..first.clone() };
    let mut later: Vec<TestRecord> = Vec::new();
    let mut end = End::of(first);
    for round in &rounds[1..] {
        let moved = moved(round, end);
        end = End::of(&moved);
        merged.elapsed_ns += moved.elapsed_ns;
        merged.host_load.extend(moved.host_load.iter().copied());
        add_disks(&mut merged.disks, &moved.disks);
        for note in &moved.notes {
            if !merged.notes.contains(note) {
                merged.notes.push(note.clone());
            }
        }
        later.push(moved);
    }
    for (index, job) in first.jobs.iter().enumerate() {
        let all: Vec<&JobRecord> =
            std::iter::once(job).chain(later.iter().filter_map(|round| round.jobs.get(index))).collect();
        merged.jobs.push(merge_jobs(&all));
    }
    merged
}

/// Where a round ended: on its clock, and in its count of ticks.
#[derive(Clone, Copy, Default)]
struct End {
    at_ns: u64,
    tick: u32,
}

impl End {
    fn of(test: &TestRecord) -> End {
        let series = test.jobs.iter().flat_map(|job| &job.measured.series).map(|interval| interval.tick);
        let disks = test.disks.iter().flat_map(|disk| &disk.intervals).map(|interval| interval.tick);
        End {
            at_ns: test.jobs.iter().map(|job| job.measured.end_ns).max().unwrap_or(0),
            tick: series.chain(disks).max().map_or(0, |tick| tick + 1),
        }
    }
}

/// `round` without its ramps, on a clock and a count of ticks that go on from `end`.
fn moved(round: &TestRecord, end: End) -> TestRecord {
    let begin_ns = round.jobs.iter().map(|job| job.measured.start_ns).min().unwrap_or(0);
    let begin_tick = round.jobs.iter().filter_map(|job| job.measured.series.first()).map(|i| i.tick).min();
    let shift = Shift { end, begin_ns, begin_tick: begin_tick.unwrap_or(0) };
    let mut moved = round.clone();
    for job in &mut moved.jobs {
        job.ramp = None;
        shift.phase(&mut job.measured);
        for slow in &mut job.slowest {
            slow.start_ns = shift.time(slow.start_ns);
        }
        for silence in &mut job.silences.longest {
            silence.start_ns = shift.time(silence.start_ns);
        }
        for stall in &mut job.stalls {
            stall.start_ns = shift.time(stall.start_ns);
        }
    }
    for interval in moved.disks.iter_mut().flat_map(|disk| &mut disk.intervals) {
        (interval.start_ns, interval.end_ns) = (shift.time(interval.start_ns), shift.time(interval.end_ns));
        interval.tick = shift.tick(interval.tick);
    }
    for HostInterval { start_ns, end_ns, .. } in &mut moved.host_load {
        (*start_ns, *end_ns) = (shift.time(*start_ns), shift.time(*end_ns));
    }
    moved
}

/// From a round's own clock to that of all.
struct Shift {
    end: End,
    begin_ns: u64,
    begin_tick: u32,
}

impl Shift {
    fn time(&self, ns: u64) -> u64 {
        (self.end.at_ns + ns).saturating_sub(self.begin_ns)
    }

    fn tick(&self, tick: u32) -> u32 {
        self.end.tick + tick.saturating_sub(self.begin_tick)
    }

    fn phase(&self, phase: &mut PhaseOutcome) {
        (phase.start_ns, phase.end_ns) = (self.time(phase.start_ns), self.time(phase.end_ns));
        if phase.schedule_end_ns > 0 {
            phase.schedule_end_ns = self.time(phase.schedule_end_ns);
        }
        for interval in &mut phase.series {
            let Interval { tick, start_ns, end_ns, .. } = interval;
            (*start_ns, *end_ns) = (self.time(*start_ns), self.time(*end_ns));
            *tick = self.tick(*tick);
        }
    }
}

fn add_disks(sum: &mut [DiskOutcome], disks: &[DiskOutcome]) {
    for disk in disks {
        let Some(mine) = sum.iter_mut().find(|mine| mine.name == disk.name && mine.under == disk.under)
        else {
            continue;
        };
        mine.counters = mine.counters.plus(&disk.counters);
        mine.elapsed_ns += disk.elapsed_ns;
        mine.intervals.extend(disk.intervals.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stability::seconds;
    use crate::{DiskCounters, IntervalOp, OpOutcome, Stall, TestSummary};

    const SECOND: u64 = 1_000_000_000;

    /// A round of `ticks` halves of a second with these requests each, after a ramp of one second.
    fn round(ticks: u32, ios: u64) -> TestRecord {
        let at = |tick: u32| SECOND + u64::from(tick) * SECOND / 2;
        let interval = |tick: u32| Interval {
            tick: tick + 2,
            start_ns: at(tick),
            end_ns: at(tick + 1),
            read: IntervalOp { ios, bytes: ios * 4096, ..Default::default() },
            ..Default::default()
        };
        let all = ios * u64::from(ticks);
        let measured = PhaseOutcome {
            start_ns: at(0),
            end_ns: at(ticks),
            read: OpOutcome { issued: all, ios: all, bytes: all * 4096, ..Default::default() },
            series: (0..ticks).map(interval).collect(),
            ..Default::default()
        };
        let stall = Stall { start_ns: at(1), length_ns: 5, ..Default::default() };
        let counters = DiskCounters { read_ios: all, ..Default::default() };
        TestRecord {
            id: "t".to_owned(),
            elapsed_ns: at(ticks),
            jobs: vec![JobRecord {
                ramp: Some(PhaseOutcome { end_ns: SECOND, ..Default::default() }),
                measured,
                stalls: vec![stall],
                ..Default::default()
            }],
            disks: vec![DiskOutcome {
                name: "sdx".to_owned(),
                counters,
                elapsed_ns: at(ticks) - at(0),
                ..Default::default()
            }],
            notes: vec!["a note".to_owned()],
            ..Default::default()
        }
    }

    #[test]
    fn rounds_follow_each_other_without_a_gap() {
        let merged = merge_rounds(&[round(4, 10), round(4, 20), round(2, 30)]);
        let job = &merged.jobs[0];
        assert_eq!((job.measured.start_ns, job.measured.end_ns), (SECOND, 6 * SECOND));
        assert_eq!(job.measured.read.ios, 40 + 80 + 60);
        let rates: Vec<f64> = seconds(&[job]).iter().map(|second| second.iops()).collect();
        assert_eq!(rates, [20.0, 20.0, 40.0, 40.0, 60.0]);
        let stalls: Vec<u64> = job.stalls.iter().map(|stall| stall.start_ns / (SECOND / 2)).collect();
        assert_eq!(stalls, [3, 7, 11]);
        assert!(job.ramp.is_some());
        assert_eq!((merged.disks[0].counters.read_ios, merged.disks[0].elapsed_ns), (180, 5 * SECOND));
        assert_eq!(merged.notes, ["a note"]);
        assert_eq!(TestSummary::new(&merged).read.map(|read| read.iops), Some(36.0));
    }

    #[test]
    fn one_round_is_itself_and_none_is_nothing() {
        assert_eq!(merge_rounds(&[round(4, 10)]), round(4, 10));
        assert_eq!(merge_rounds(&[]), TestRecord::default());
    }
}
