//! The course of one host in a test, without latencies: few slices, so that those of thousands of hosts fit in memory until the
//! time that they have in common is known.

use std::collections::BTreeMap;

use crate::stability::merged_series;
use crate::{Interval, JobRecord};

/// Counts of all workers of a host over a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CourseSlice {
    phase: u32,
    start_ns: u64,
    end_ns: u64,
    ios: [u64; 3],
    bytes: [u64; 3],
}

/// The slices of a host in order of time, on its own clock.
#[derive(Clone, Debug, Default)]
pub(super) struct HostCourse {
    slices: Vec<CourseSlice>,
}

/// The part of a phase in which every worker of a host was measuring, on its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PhaseSpan {
    pub(super) phase: u32,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

impl HostCourse {
    /// The course of these workers in `most` slices or fewer.
    pub(super) fn of(jobs: &[JobRecord], most: usize) -> HostCourse {
        let mut phases: BTreeMap<u32, Vec<&JobRecord>> = BTreeMap::new();
        for job in jobs.iter().filter(|job| !job.measured.series.is_empty()) {
            phases.entry(job.phase).or_default().push(job);
        }
        let mut slices: Vec<CourseSlice> = Vec::new();
        for (phase, jobs) in phases {
            let series = merged_series(&jobs).unwrap_or_default();
            slices.extend(series.iter().map(|interval| CourseSlice::of(phase, interval)));
        }
        slices.retain(|slice| slice.end_ns > slice.start_ns);
        while slices.len() > most.max(1) {
            let before = slices.len();
            slices = halved(&slices);
            if slices.len() == before {
                break;
            }
        }
        slices.shrink_to_fit();
        HostCourse { slices }
    }

    /// I/Os and bytes of each operation in a phase between two times; slices at the edges count in proportion.
    pub(super) fn within(&self, phase: u32, from_ns: u64, to_ns: u64) -> ([f64; 3], [f64; 3]) {
        let (mut ios, mut bytes) = ([0.0; 3], [0.0; 3]);
        for slice in self.slices.iter().filter(|slice| slice.phase == phase) {
            let (from, to) = (slice.start_ns.max(from_ns), slice.end_ns.min(to_ns));
            if from < to {
                let share = (to - from) as f64 / (slice.end_ns - slice.start_ns) as f64;
                for op in 0..3 {
                    ios[op] += slice.ios[op] as f64 * share;
                    bytes[op] += slice.bytes[op] as f64 * share;
                }
            }
        }
        (ios, bytes)
    }

    /// Completed I/Os in each of `count` cells, of which the first begins `offset_ns` before the host's own time 0. No I/O is lost.
    pub(super) fn cells(&self, offset_ns: u64, cell_ns: u64, count: usize) -> Vec<u64> {
        let mut cells = vec![0; count];
        let Some(last) = count.checked_sub(1).filter(|_| cell_ns > 0) else { return Vec::new() };
        for slice in &self.slices {
            let (start, end) = (slice.start_ns + offset_ns, slice.end_ns + offset_ns);
            let ios: u64 = slice.ios.iter().sum();
            let mut given = 0;
            // What lies beyond the last cell counts in it.
            let cell_at = |at: u64| usize::try_from(at / cell_ns).unwrap_or(last).min(last);
            let (first, until_cell) = (cell_at(start), cell_at(end - 1));
            for (cell, count) in cells.iter_mut().enumerate().take(until_cell + 1).skip(first) {
                let until = if cell == last { end } else { ((cell as u64 + 1) * cell_ns).min(end) };
                let due = (u128::from(ios) * u128::from(until - start) / u128::from(end - start)) as u64;
                *count += due - given;
                given = due;
            }
        }
        cells
    }

    /// True where nothing was recorded over time.
    pub(super) fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }
}

impl CourseSlice {
    fn of(phase: u32, interval: &Interval) -> CourseSlice {
        CourseSlice {
            phase,
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            ios: interval.ops().map(|op| op.ios),
            bytes: interval.ops().map(|op| op.bytes),
        }
    }
}

/// Neighbouring slices of one phase added in pairs.
fn halved(slices: &[CourseSlice]) -> Vec<CourseSlice> {
    let mut halved: Vec<CourseSlice> = Vec::with_capacity(slices.len() / 2 + 1);
    let mut is_open = false;
    for slice in slices {
        match halved.last_mut() {
            Some(last) if is_open && last.phase == slice.phase => {
                last.end_ns = last.end_ns.max(slice.end_ns);
                for op in 0..3 {
                    last.ios[op] += slice.ios[op];
                    last.bytes[op] += slice.bytes[op];
                }
                is_open = false;
            }
            _ => {
                halved.push(*slice);
                is_open = true;
            }
        }
    }
    halved
}

/// The span of each phase of a host: from the latest start of a worker to the earliest end.
pub(super) fn spans(jobs: &[JobRecord]) -> Vec<PhaseSpan> {
    let mut spans: BTreeMap<u32, PhaseSpan> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.measured.end_ns > job.measured.start_ns) {
        let (phase, start_ns, end_ns) = (job.phase, job.measured.start_ns, job.measured.end_ns);
        let span = spans.entry(phase).or_insert(PhaseSpan { phase, start_ns, end_ns });
        span.start_ns = span.start_ns.max(start_ns);
        span.end_ns = span.end_ns.min(end_ns);
    }
    spans.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IntervalOp, PhaseOutcome};

    const SECOND: u64 = 1_000_000_000;

    fn worker(phase: u32, start_s: u64, seconds: u64) -> JobRecord {
        let interval = |at: u64| {
            let read = IntervalOp { ios: 7, bytes: 70, ..IntervalOp::default() };
            let start_ns = at * SECOND;
            Interval { tick: at as u32, start_ns, end_ns: start_ns + SECOND, read, ..Interval::default() }
        };
        let series: Vec<Interval> = (start_s..start_s + seconds).map(interval).collect();
        let (start_ns, end_ns) = (start_s * SECOND, (start_s + seconds) * SECOND);
        let measured = PhaseOutcome { start_ns, end_ns, series, ..PhaseOutcome::default() };
        JobRecord { phase, measured, ..JobRecord::default() }
    }

    #[test]
    fn cells_keep_every_io() {
        for (most, offset, cell) in [(100, 0, SECOND), (3, 300_000_000, SECOND / 3), (1, 1, 7 * SECOND)] {
            let course = HostCourse::of(&[worker(0, 2, 9)], most);
            let cells = course.cells(offset, cell, 40);
            assert_eq!(cells.iter().sum::<u64>(), 63, "{most} {offset} {cell}");
        }
        assert!(HostCourse::default().cells(0, SECOND, 0).is_empty());
    }

    #[test]
    fn a_window_counts_its_edges_in_proportion() {
        let course = HostCourse::of(&[worker(0, 0, 4), worker(0, 0, 4), worker(1, 4, 4)], 100);
        let (ios, bytes) = course.within(0, SECOND / 2, 3 * SECOND);
        assert_eq!((ios[0], bytes[0]), (35.0, 350.0));
        assert_eq!(course.within(1, 0, 4 * SECOND).0[0], 0.0);
        assert_eq!(course.within(1, 0, 99 * SECOND).0[0], 28.0);
    }

    #[test]
    fn a_phase_spans_what_its_workers_have_in_common() {
        let spans = spans(&[worker(0, 0, 5), worker(0, 1, 5), worker(2, 6, 1), JobRecord::default()]);
        let expected = [(0, 1, 5), (2, 6, 7)].map(|(phase, from, to)| PhaseSpan {
            phase,
            start_ns: from * SECOND,
            end_ns: to * SECOND,
        });
        assert_eq!(spans, expected);
    }
}
