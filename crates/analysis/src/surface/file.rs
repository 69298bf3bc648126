//! The file benchmark of a surface: its rows, and what was measured in each. Read back from stored tests.

use fathom_record::{LatencySummary, TestRecord, TestStatus, TestSummary};
use serde::Serialize;

use crate::pattern::{AccessPattern, block_name};
use crate::surface::point::longest_stall;

/// What a row tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileRowKind {
    /// The rate of large blocks in order.
    Sequential,
    /// Small random blocks one at a time.
    Single,
    /// Small random blocks, many at a time.
    Multi,
    /// One block size of the ladder.
    Block,
}

/// One row as it is to be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileTest {
    /// The test's name.
    pub id: String,
    /// The same for people.
    pub title: String,
    /// What it tells.
    pub kind: FileRowKind,
    /// What it does.
    pub rw: AccessPattern,
    /// Bytes per request.
    pub block_size_bytes: u64,
    /// Requests in flight.
    pub iodepth: u32,
    /// Measured time, ns.
    pub runtime_ns: u64,
}

/// Block of the sequential rows.
const SEQUENTIAL: u64 = 1 << 20;
/// Block of the random rows.
const RANDOM: u64 = 4096;
/// The ladder goes from this to that by doubling.
const LADDER: (u64, u64) = (512, 8 << 20);
/// Range of the ladder: a small file of its own.
pub const LADDER_RANGE: u64 = 64 << 20;
/// Weight in time of a row of each kind beside one of the ladder.
const WEIGHT: u64 = 5;
/// A row that takes less tells nothing.
const MIN_NS: u64 = 100_000_000;
/// Longest useful time of a row.
const LONGEST_NS: u64 = 10_000_000_000;

/// What every id begins with.
pub const FILE: &str = "file-";

/// The rows in the order they are measured, writes before reads, in `time_ns` altogether; `depth` is that of the rows
/// with many requests.
pub fn file_tests(time_ns: u64, depth: u32) -> Vec<FileTest> {
    let test = |id: &str, kind, rw: AccessPattern, (block, depth): (u64, u32)| FileTest {
        id: format!("{FILE}{id}-{}", if rw.writes() { "write" } else { "read" }),
        title: format!("{} {}, QD {depth}", rw.title(), block_name(block)),
        kind,
        rw,
        block_size_bytes: block,
        iodepth: depth,
        runtime_ns: 0,
    };
    let mut tests = Vec::new();
    for rw in [AccessPattern::Write, AccessPattern::Read] {
        tests.push(test("sequential", FileRowKind::Sequential, rw, (SEQUENTIAL, 1)));
    }
    for (id, kind, depth) in [("single", FileRowKind::Single, 1), ("multi", FileRowKind::Multi, depth)] {
        for rw in [AccessPattern::RandWrite, AccessPattern::RandRead] {
            tests.push(test(id, kind, rw, (RANDOM, depth)));
        }
    }
    let mut block = LADDER.0;
    while block <= LADDER.1 {
        for rw in [AccessPattern::Write, AccessPattern::Read] {
            tests.push(test(&block_name(block), FileRowKind::Block, rw, (block, 1)));
        }
        block *= 2;
    }
    let weight = |kind: FileRowKind| if kind == FileRowKind::Block { 1 } else { WEIGHT };
    let whole: u64 = tests.iter().map(|test| weight(test.kind)).sum();
    for test in &mut tests {
        test.runtime_ns = (time_ns / whole * weight(test.kind)).clamp(MIN_NS, LONGEST_NS);
    }
    tests
}

/// One row as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileRow {
    /// What was measured.
    #[serde(flatten)]
    pub test: FileTest,
    /// How it ended.
    pub status: TestStatus,
    /// Why it has no numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Requests per second; `None` where nothing completed or a stall is part of it.
    pub iops: Option<f64>,
    /// Bytes per second, likewise.
    pub bytes_per_second: Option<f64>,
    /// Start to completed.
    pub lat_ns: LatencySummary,
    /// Nothing completed for so many ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalled_ns: Option<u64>,
}

impl FileRow {
    /// The row that `test` measured; `None` where it is none of the file benchmark.
    pub fn of(test: &TestRecord) -> Option<FileRow> {
        if !test.id.starts_with(FILE) {
            return None;
        }
        let depth = test.jobs.first().map_or(0, |job| job.iodepth());
        let mut row = file_tests(0, depth).into_iter().find(|row| row.id == test.id)?;
        row.title.clone_from(&test.title);
        let summary = TestSummary::new(test);
        let stalled_ns = test.jobs.iter().filter_map(longest_stall).max();
        let total = summary.total.filter(|_| stalled_ns.is_none());
        // Jobs of a row follow each other, so their times add up.
        row.runtime_ns = test.jobs.iter().map(|job| job.measured.elapsed_ns()).sum();
        let rate = |count: u64| count as f64 * 1e9 / row.runtime_ns.max(1) as f64;
        Some(FileRow {
            status: test.status,
            reason: test.reason.clone(),
            iops: total.as_ref().map(|total| rate(total.ios)),
            bytes_per_second: total.as_ref().map(|total| rate(total.bytes)),
            lat_ns: total.map(|total| total.lat_ns).unwrap_or_default(),
            stalled_ns,
            test: row,
        })
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::plan::DepthPlan;
    use fathom_record::{JobRecord, OpOutcome, PhaseOutcome, PlanRecord, Stall};

    use super::*;
    use crate::fixture::latency;

    #[test]
    fn the_rows() {
        let tests = file_tests(60_000_000_000, 32);
        let ids: Vec<&str> = tests.iter().map(|test| test.id.as_str()).collect();
        assert_eq!(
            &ids[..4],
            ["file-sequential-write", "file-sequential-read", "file-single-write", "file-single-read"]
        );
        assert_eq!(&ids[4..8], ["file-multi-write", "file-multi-read", "file-512-write", "file-512-read"]);
        assert_eq!((ids.len(), ids[35]), (36, "file-8m-read"));
        let time: u64 = tests.iter().map(|test| test.runtime_ns).sum();
        assert!(time <= 60_000_000_000 && time > 59_000_000_000, "{time}");
        assert_eq!((tests[4].iodepth, tests[4].title.as_str()), (32, "random write 4k, QD 32"));
        for (index, id) in ids.iter().enumerate() {
            assert!(!ids[..index].contains(id), "{id}");
        }
    }

    #[test]
    fn a_row_comes_back_from_its_test_and_a_stall_is_no_number() {
        let job = JobRecord {
            plan: PlanRecord { depth: DepthPlan::new(32), ..PlanRecord::default() },
            measured: PhaseOutcome {
                end_ns: 2_000_000_000,
                read: OpOutcome {
                    ios: 2_000,
                    bytes: 2_000 * 4096,
                    lat: latency(2_000, 9),
                    ..OpOutcome::default()
                },
                ..PhaseOutcome::default()
            },
            ..JobRecord::default()
        };
        let mut test = TestRecord {
            id: "file-multi-read".to_owned(),
            status: TestStatus::Complete,
            jobs: vec![job],
            ..TestRecord::default()
        };
        let row = FileRow::of(&test).unwrap();
        assert_eq!((row.test.kind, row.test.iodepth, row.iops), (FileRowKind::Multi, 32, Some(1000.0)));
        test.jobs.push(test.jobs[0].clone());
        assert_eq!(FileRow::of(&test).unwrap().iops, Some(1000.0));
        test.jobs[0].stalls = vec![Stall { length_ns: 20_000_000_000, ..Stall::default() }];
        let row = FileRow::of(&test).unwrap();
        assert_eq!((row.iops, row.stalled_ns, row.lat_ns.samples), (None, Some(20_000_000_000), 0));
        test.id = "file-odd".to_owned();
        assert_eq!(FileRow::of(&test), None);
    }
}
