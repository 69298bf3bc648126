use fathom_model::Op;
use fathom_stats::live::{LiveOp, LivePhase, LiveWorker, Recorded};

use super::{PlannedWork, ReadsBack};

const S: u64 = 1_000_000_000;
const BEGIN: u64 = 100 * S;

fn worker(has_ramp: bool) -> LiveWorker {
    let recorded = Recorded { clat: true, ..Recorded::default() };
    LiveWorker::new(recorded, [true; 3], has_ramp)
}

/// A worker that has begun to measure.
fn begun() -> LiveWorker {
    let live = worker(false);
    live.measured.start_ns.set(BEGIN);
    live
}

fn op(phase: &LivePhase, op: Op) -> &LiveOp {
    &phase.ops[op as usize]
}

fn planned(bytes: u64, reads_back: ReadsBack) -> PlannedWork {
    PlannedWork { end: None, bytes: Some(bytes), reads_back, iodepth: 1 }
}

/// Seconds left, `seconds` after the begin.
fn left(work: PlannedWork, live: &LiveWorker, seconds: u64) -> Option<u64> {
    work.left(live, BEGIN + seconds * S).map(|ns| ns / S)
}

#[test]
fn the_rest_takes_as_long_per_byte_as_what_was_done() {
    let live = worker(false);
    let work = planned(1000, ReadsBack::Never);
    assert_eq!(left(work, &live, 1), None, "not begun");
    live.measured.start_ns.set(BEGIN);
    assert_eq!(left(work, &live, 1), None, "nothing done");
    op(&live.measured, Op::Read).bytes.set(150);
    op(&live.measured, Op::Write).bytes.set(100);
    assert_eq!(left(work, &live, 5), Some(15));
    let until = |seconds| PlannedWork { end: Some(BEGIN + seconds * S), ..work };
    assert_eq!(left(until(11), &live, 5), Some(6), "its runtime ends first");
    assert_eq!(left(until(90), &live, 5), Some(15));
    let endless = PlannedWork { bytes: None, ..until(90) };
    assert_eq!(left(endless, &live, 5), Some(85));
}

#[test]
fn bytes_of_the_ramp_are_part_of_the_size() {
    let live = worker(true);
    let ramp = live.ramp.as_ref().unwrap();
    ramp.start_ns.set(BEGIN);
    op(ramp, Op::Read).bytes.set(200);
    let work = planned(1000, ReadsBack::Never);
    assert_eq!(left(work, &live, 2), Some(8));
    live.measured.start_ns.set(BEGIN + 4 * S);
    op(&live.measured, Op::Read).bytes.set(300);
    assert_eq!(left(work, &live, 5), Some(5));
}

#[test]
fn reading_back_is_expected_to_be_as_fast_as_the_writes_until_it_has_a_rate_of_its_own() {
    let live = begun();
    let write = op(&live.measured, Op::Write);
    write.bytes.set(400);
    let work = planned(1000, ReadsBack::AfterPasses(100));
    assert_eq!(left(work, &live, 4), Some(6 + 10), "without latencies");
    write.clat.as_ref().unwrap().record(S);
    assert_eq!(left(work, &live, 4), Some(6 + 2), "writes that waited for a rate");
    assert_eq!(left(PlannedWork { iodepth: 2, ..work }, &live, 4), Some(6 + 1));
    write.clat.as_ref().unwrap().record(99 * S);
    assert_eq!(left(work, &live, 4), Some(6 + 10), "more than the time that passed");

    // 500 of 1000 bytes in two passes.
    write.bytes.set(500);
    live.measured.begin_read_back(BEGIN + 5 * S);
    op(&live.measured, Op::Read).bytes.set(250);
    assert_eq!(left(work, &live, 6), Some(5 + 3));
    op(&live.measured, Op::Read).bytes.set(500);
    assert!(live.measured.end_read_back(BEGIN + 7 * S));
    assert!(!live.measured.end_read_back(BEGIN + 7 * S));
    assert_eq!(left(work, &live, 7), Some(5 + 2));
    write.bytes.set(1000);
    assert_eq!(left(work, &live, 12), Some(2));
    live.measured.begin_read_back(BEGIN + 12 * S);
    op(&live.measured, Op::Read).bytes.set(1000);
    assert_eq!(left(work, &live, 14), Some(0));
}

#[test]
fn the_writes_of_a_mixed_job_alone_are_read_back() {
    let live = begun();
    op(&live.measured, Op::Write).bytes.set(300);
    op(&live.measured, Op::Read).bytes.set(700);
    live.measured.begin_read_back(BEGIN + 10 * S);
    op(&live.measured, Op::Read).bytes.set(800);
    assert_eq!(left(planned(1000, ReadsBack::AfterPasses(30)), &live, 11), Some(2));
}

#[test]
fn what_is_read_back_among_the_writes_has_their_rate() {
    let live = begun();
    op(&live.measured, Op::Write).bytes.set(500);
    op(&live.measured, Op::Read).bytes.set(300);
    assert_eq!(left(planned(1000, ReadsBack::AmongWrites(100)), &live, 8), Some(12));
}
