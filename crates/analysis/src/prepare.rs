//! What `prepare` does next: a stage after the other, each in pieces from the start of the target to its end, so that one that
//! was killed goes on with the next piece.
//!
//! Pure: the pieces that are done say everything, in whatever order they were done.

use fathom_record::{
    Activity, Finding, FindingId, PrepareStage, RoundsRecord, RunRecord, TestRecord, TestStatus, TestSummary,
};
use serde::Serialize;

use crate::findings::{samples, stalled};
use crate::rows::rows;

/// A part of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparePiece {
    /// The pass.
    pub stage: PrepareStage,
    /// Where it begins, bytes.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

impl PreparePiece {
    /// The id of its test.
    pub fn id(&self) -> String {
        format!("{}-{}", self.stage.id(), self.offset)
    }

    /// Bytes per request.
    pub fn block(&self) -> u64 {
        self.stage.block().min(self.length)
    }
}

/// A piece that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedPiece {
    /// Which.
    pub piece: PreparePiece,
    /// How long it took, ns.
    pub elapsed_ns: u64,
}

impl CompletedPiece {
    /// What `test` did, where it is a piece that came to its end. Requests that failed count as done: they would again.
    pub fn of(test: &TestRecord) -> Option<CompletedPiece> {
        if test.status != TestStatus::Complete {
            return None;
        }
        let (stage, offset) = place(&test.id)?;
        let planned = test.jobs.first().and_then(|job| job.plan.io.size?.bytes());
        let moved = test.jobs.iter().flat_map(|job| job.measured.ops()).map(|op| op.bytes).sum();
        let length = planned.unwrap_or(moved).max(moved);
        let elapsed_ns = test.jobs.iter().map(|job| job.measured.elapsed_ns()).max().unwrap_or(0);
        Some(CompletedPiece { piece: PreparePiece { stage, offset, length }, elapsed_ns })
    }
}

/// The pass and offset that the id of a piece tells.
pub fn place(id: &str) -> Option<(PrepareStage, u64)> {
    let (stage, offset) = id.rsplit_once('-')?;
    let stage = PrepareStage::ALL
        .into_iter()
        .find(|known| known.id() == stage && *known != PrepareStage::Workload)?;
    Some((stage, offset.parse().ok()?))
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextPiece {
    /// This piece.
    Piece(PreparePiece),
    /// The workload until it is steady.
    Workload,
    /// Nothing more.
    Done,
}

/// The first piece of a pass, by which its pace is known.
const FIRST_BYTES: u64 = 64 << 20;
/// A piece shall take this long, or a twentieth of what its pass has taken: what a kill loses stays small, and so does the
/// number of pieces.
const PIECE_NS: u64 = 30_000_000_000;
const SHARE: u64 = 20;
/// A piece is at most so many times as long as the one before: the first may have gone into a cache.
const GROWTH: u64 = 8;

/// The next step of `stages` over a target of `size` bytes. A workload that has ended is not repeated.
pub fn next(
    stages: &[PrepareStage],
    size: u64,
    done: &[CompletedPiece],
    workload_has_ended: bool,
) -> NextPiece {
    for &stage in stages {
        if stage == PrepareStage::Workload {
            if workload_has_ended {
                continue;
            }
            return NextPiece::Workload;
        }
        let offset = covered(stage, done);
        if offset < size {
            let length = length(stage, size - offset, done);
            return NextPiece::Piece(PreparePiece { stage, offset, length });
        }
    }
    NextPiece::Done
}

/// Bytes from the start of the target that a pass is through with.
pub fn covered(stage: PrepareStage, done: &[CompletedPiece]) -> u64 {
    let mut pieces: Vec<PreparePiece> =
        done.iter().map(|done| done.piece).filter(|piece| piece.stage == stage).collect();
    pieces.sort_by_key(|piece| piece.offset);
    pieces.iter().fold(0, |covered, piece| match piece.offset <= covered {
        true => covered.max(piece.offset + piece.length),
        false => covered,
    })
}

/// Bytes of the next piece of a pass of which `rest` bytes are left: whole requests, or the last one.
fn length(stage: PrepareStage, rest: u64, done: &[CompletedPiece]) -> u64 {
    let of_stage: Vec<&CompletedPiece> = done.iter().filter(|done| done.piece.stage == stage).collect();
    let wanted = match of_stage.last() {
        None => FIRST_BYTES,
        Some(last) => {
            let spent_ns: u64 = of_stage.iter().map(|done| done.elapsed_ns).sum();
            let time_ns = PIECE_NS.max(spent_ns / SHARE);
            let paced =
                u128::from(last.piece.length) * u128::from(time_ns) / u128::from(last.elapsed_ns.max(1));
            let most = last.piece.length.saturating_mul(GROWTH);
            u64::try_from(paced).unwrap_or(u64::MAX).clamp(FIRST_BYTES, most.max(FIRST_BYTES))
        }
    };
    let block = stage.block();
    if rest < block {
        return rest;
    }
    // The last block of a write is a piece of its own: a file has its full length only once all before it is written.
    let last = if stage.rw() == "write" && rest > block { block } else { 0 };
    let whole = match rest % block {
        0 => rest - last,
        part => rest - part,
    };
    (wanted - wanted % block).clamp(block, whole)
}

/// What the record of a run of `prepare` tells: requests that failed, and stalls. A pass is no measurement, so nothing else.
pub fn findings(record: &RunRecord) -> Vec<Finding> {
    let rows = rows(record);
    let of_row = |row| samples::findings(row).into_iter().chain(stalled::findings(record, row));
    rows.iter()
        .flat_map(of_row)
        .filter(|found| matches!(found.id, FindingId::Errors | FindingId::Stalled))
        .collect()
}

/// What became of a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageResult {
    /// Which.
    pub stage: PrepareStage,
    /// It is through with all of it, or the workload has ended.
    pub complete: bool,
    /// Bytes from the start of the target that it is through with; `None` for the workload, which goes anywhere.
    pub covered_bytes: Option<u64>,
    /// Bytes that requests moved.
    pub moved_bytes: u64,
    /// Time its pieces took, ns.
    pub elapsed_ns: u64,
    /// Requests that failed.
    pub errors: u64,
    /// `None` where nothing was moved.
    pub bytes_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadResult>,
    pub pieces: Vec<PieceResult>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadResult {
    pub rw: String,
    pub block_size_bytes: u64,
    pub iodepth: u32,
    /// Over the rounds that count; `None` if no I/O completed.
    pub iops: Option<f64>,
    pub rounds: Option<RoundsRecord>,
}

/// A piece of a stage, or all rounds of the workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PieceResult {
    /// `None` for the workload.
    pub offset_bytes: Option<u64>,
    /// Bytes of the piece; `None` where it did not come to its end.
    pub bytes: Option<u64>,
    pub elapsed_ns: u64,
    pub bytes_per_second: Option<f64>,
    pub status: TestStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub fio: String,
}

/// What became of each stage that was to be done.
pub fn results(record: &RunRecord) -> Vec<StageResult> {
    let Activity::Prepare(activity) = &record.header.activity else { return Vec::new() };
    activity.stages.iter().map(|stage| result(record, *stage)).collect()
}

/// The stage that a test is of.
pub fn stage_of(test: &TestRecord) -> Option<PrepareStage> {
    if test.id == PrepareStage::Workload.id() {
        return Some(PrepareStage::Workload);
    }
    place(&test.id).map(|(stage, _)| stage)
}

fn result(record: &RunRecord, stage: PrepareStage) -> StageResult {
    let tests: Vec<&TestRecord> = record.tests.iter().filter(|test| stage_of(test) == Some(stage)).collect();
    let done: Vec<CompletedPiece> = tests.iter().filter_map(|test| CompletedPiece::of(test)).collect();
    let covered_bytes = (stage != PrepareStage::Workload).then(|| covered(stage, &done));
    let (mut elapsed_ns, mut moved_bytes, mut errors) = (0, 0, 0);
    let (mut workload, mut pieces) = (None, Vec::new());
    for test in &tests {
        let summary = TestSummary::new(test);
        elapsed_ns += summary.measured_ns;
        moved_bytes += summary.total.as_ref().map_or(0, |total| total.bytes);
        errors += summary.errors.iter().map(|error| error.count).sum::<u64>();
        if covered_bytes.is_none() && workload.is_none() {
            let job = test.jobs.first();
            workload = Some(WorkloadResult {
                rw: job.map_or("", |job| job.rw()).to_owned(),
                block_size_bytes: job.map_or(0, |job| job.largest_blocks().write),
                iodepth: job.map_or(0, |job| job.iodepth()),
                iops: summary.total.as_ref().map(|total| total.iops),
                rounds: test.rounds.clone(),
            });
        }
        pieces.push(PieceResult {
            offset_bytes: place(&test.id).map(|(_, offset)| offset),
            bytes: CompletedPiece::of(test).map(|done| done.piece.length),
            elapsed_ns: summary.measured_ns,
            bytes_per_second: summary.total.map(|total| total.bytes_per_second),
            status: test.status,
            reason: test.reason.clone(),
            fio: test.fio.clone(),
        });
    }
    let complete = match covered_bytes {
        None => tests.iter().any(|test| test.status == TestStatus::Complete),
        Some(covered) => record.header.size_bytes > 0 && covered >= record.header.size_bytes,
    };
    let bytes_per_second =
        (elapsed_ns > 0 && moved_bytes > 0).then(|| moved_bytes as f64 * 1e9 / elapsed_ns as f64);
    StageResult {
        stage,
        complete,
        covered_bytes,
        moved_bytes,
        elapsed_ns,
        errors,
        bytes_per_second,
        workload,
        pieces,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    fn done(stage: PrepareStage, offset: u64, length: u64, seconds: u64) -> CompletedPiece {
        CompletedPiece { piece: PreparePiece { stage, offset, length }, elapsed_ns: seconds * 1_000_000_000 }
    }

    #[test]
    fn pieces_follow_each_other_at_the_pace_of_the_device() {
        let check = |size: u64, done: &[CompletedPiece], expected: Option<(u64, u64)>| {
            let found = match next(&[PrepareStage::Fill], size, done, false) {
                NextPiece::Piece(piece) => Some((piece.offset, piece.length)),
                _ => None,
            };
            assert_eq!(found, expected, "{size} {done:?}");
        };
        let fill = |offset, length, seconds| done(PrepareStage::Fill, offset, length, seconds);
        check(GIB, &[], Some((0, 64 * MIB)));
        check(10 * MIB, &[], Some((0, 9 * MIB)));
        check(10 * MIB, &[fill(0, 9 * MIB, 1)], Some((9 * MIB, MIB)));
        check(10 * MIB + 512, &[], Some((0, 10 * MIB)));
        check(10 * MIB + 512, &[fill(0, 10 * MIB, 1)], Some((10 * MIB, 512)));
        check(10 * MIB + 512, &[fill(0, 10 * MIB, 1), fill(10 * MIB, 512, 0)], None);
        check(512, &[], Some((0, 512)));
        // 64 MiB/s makes 30 s 1,920 MiB, and a piece at most eight times the one before.
        check(1000 * GIB, &[fill(0, 64 * MIB, 1)], Some((64 * MIB, 512 * MIB)));
        check(1000 * GIB, &[fill(0, 512 * MIB, 8)], Some((512 * MIB, 1920 * MIB)));
        // After 20 minutes a minute is a twentieth.
        check(1000 * GIB, &[fill(0, 1200 * 64 * MIB, 1200)], Some((1200 * 64 * MIB, 3840 * MIB)));
        // As slow as it may be, no piece is shorter than the first.
        check(GIB, &[fill(0, 64 * MIB, 1000)], Some((64 * MIB, 64 * MIB)));
        // A hole in what is done is not passed over.
        check(GIB, &[fill(128 * MIB, 64 * MIB, 1)], Some((0, 64 * MIB * 8)));
    }

    #[test]
    fn stages_come_one_after_the_other() {
        let stages = [
            PrepareStage::Trim,
            PrepareStage::Sequential { pass: 1 },
            PrepareStage::Sequential { pass: 2 },
            PrepareStage::Workload,
            PrepareStage::Touch,
        ];
        let all = |stage| done(stage, 0, GIB, 1);
        let mut passed: Vec<CompletedPiece> = Vec::new();
        for expected in
            [PrepareStage::Trim, PrepareStage::Sequential { pass: 1 }, PrepareStage::Sequential { pass: 2 }]
        {
            let NextPiece::Piece(piece) = next(&stages, GIB, &passed, false) else { panic!("no piece") };
            assert_eq!((piece.stage, piece.offset), (expected, 0));
            passed.push(all(expected));
        }
        assert_eq!(next(&stages, GIB, &passed, false), NextPiece::Workload);
        assert!(matches!(
            next(&stages, GIB, &passed, true),
            NextPiece::Piece(PreparePiece { stage: PrepareStage::Touch, .. })
        ));
        passed.push(all(PrepareStage::Touch));
        assert_eq!(next(&stages, GIB, &passed, true), NextPiece::Done);
    }

    #[test]
    fn ids_tell_stage_and_offset() {
        for stage in PrepareStage::ALL.into_iter().filter(|stage| *stage != PrepareStage::Workload) {
            let piece = PreparePiece { stage, offset: 7 * GIB, length: 1 };
            assert_eq!(place(&piece.id()), Some((stage, 7 * GIB)));
        }
        for other in ["precondition-workload", "rand-read", "fill", "fill-x", "seq-read-4"] {
            assert_eq!(place(other), None, "{other}");
        }
    }
}
