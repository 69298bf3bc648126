//! Records requests: events of the kernel in batches, joined, encoded and written.

use std::time::Duration;

use fathom_observed::ObservedRequest;
use fathom_observed::recording::{RequestBlock, RequestJoiner};
use fathom_sys::clock::monotonic_ns;
use fathom_sys::device::block_trace::{BlockEvent, BlockStage};
use fathom_sys::device::diskstats::{DiskSampler, SECTOR_BYTES};
use fathom_sys::device::tuning::counts_io;
use fathom_sys::device::{BlockTrace, SysRoot};

use super::RecorderWork;
use crate::monitor::requests::{YOUNG_NS, op_of};

/// The rings are read this often.
const TURN_NS: u64 = 20_000_000;
/// What there is is written after this time at the latest.
const WRITE_NS: u64 = 1_000_000_000;
/// A block is written this often where nothing happens.
const IDLE_NS: u64 = 10_000_000_000;
/// Most bytes of a request: what 32 bits hold of whole sectors.
const MAX_BYTES: u64 = u32::MAX as u64 / SECTOR_BYTES * SECTOR_BYTES;

/// Where a request is in flight for longer, the kernel's count of them is read this often.
const LOOK_NS: u64 = 100_000_000;

/// Longest wait for completion events at the end.
const SETTLE_NS: u64 = LOOK_NS + 3 * TURN_NS;

/// Records until the recording is over, or cannot be written.
pub(super) fn record(work: &mut RecorderWork, trace: BlockTrace, device: &str) {
    let is_counted = counts_io(&SysRoot::real(), device) == Some(true);
    let mut recording = TracedRecording {
        trace,
        counters: is_counted.then(|| DiskSampler::open(&[device]).ok()).flatten(),
        looked_ns: 0,
        look: None,
        events: Vec::new(),
        joiner: RequestJoiner::default(),
        blocks: RequestBlocks::default(),
        lost_before: 0,
        written_ns: work.now_ns(),
    };
    while !work.is_over() {
        work.wait(TURN_NS);
        if !recording.next_turn(work) {
            return;
        }
    }
    if recording.settle(work) {
        recording.finish(work);
    }
}

struct TracedRecording {
    trace: BlockTrace,
    /// Read, but not yet passed on.
    events: Vec<BlockEvent>,
    joiner: RequestJoiner,
    /// The kernel's counters of the device, where it counts.
    counters: Option<DiskSampler>,
    /// When they were last read, and what they said of the requests in flight: events up to then are still to be given.
    looked_ns: u64,
    look: Option<u64>,
    blocks: RequestBlocks,
    /// Events that were lost up to the last turn.
    lost_before: u64,
    /// When the last block was written.
    written_ns: u64,
}

/// Blocks that are full, and the next one.
#[derive(Default)]
struct RequestBlocks {
    full: Vec<Vec<u8>>,
    next: RequestBlock,
    /// Requests of all of them.
    entries: u64,
    /// Events and latencies that were lost since the last block.
    lost: u64,
    overdue: u64,
}

impl RequestBlocks {
    fn push(&mut self, request: &ObservedRequest) {
        self.next.push(request);
        self.entries += 1;
        if self.next.bytes() >= RequestBlock::ENOUGH_BYTES {
            self.full.push(self.next.take(request.at_ns, 0, 0));
        }
    }

    /// Ends the next block too: it is known what happened until `now_ns`.
    fn end_block(&mut self, now_ns: u64) {
        let (lost, overdue) = (std::mem::take(&mut self.lost), std::mem::take(&mut self.overdue));
        self.full.push(self.next.take(now_ns, lost, overdue));
    }
}

impl TracedRecording {
    /// Takes the events up to now, but for those that may not be complete.
    fn next_turn(&mut self, work: &mut RecorderWork) -> bool {
        let until_ns = monotonic_ns().saturating_sub(YOUNG_NS);
        self.turn(work, until_ns, until_ns.saturating_sub(work.started_ns))
    }

    /// Takes the events up to `until_ns` of the kernel's clock, which is `now_ns` of the recording. False at the end.
    fn turn(&mut self, work: &mut RecorderWork, until_ns: u64, now_ns: u64) -> bool {
        self.trace.read(&mut self.events);
        // Of each CPU they are in order already.
        self.events.sort_by_key(|event| event.time_ns);
        let ripe = self.events.partition_point(|event| event.time_ns <= until_ns);
        for event in self.events.drain(..ripe) {
            pass_on(&event, work.started_ns, &mut self.joiner);
        }
        let lost = self.trace.lost() - self.lost_before;
        self.lost_before += lost;
        if lost > 0 {
            self.blocks.lost += lost;
            // Just now, not at the time up to which events are complete.
            self.joiner.lost(work.now_ns());
        }
        if now_ns >= self.looked_ns
            && let Some(in_flight) = self.look.take()
        {
            self.joiner.counted(in_flight, self.looked_ns);
        }
        let joined = self.joiner.ready(now_ns, |request| self.blocks.push(request));
        self.look_again(work.now_ns());
        self.blocks.overdue += joined.without_latency;
        let since_ns = now_ns.saturating_sub(self.written_ns);
        let is_due = since_ns >= if self.blocks.next.is_empty() { IDLE_NS } else { WRITE_NS };
        match is_due || lost > 0 || !self.blocks.full.is_empty() {
            true => self.write(work, now_ns),
            false => true,
        }
    }

    /// Asks how many requests are in flight, where one has been for long: some kernels do not report every completion.
    fn look_again(&mut self, now_ns: u64) {
        let waited_ns = now_ns.saturating_sub(self.joiner.next_ns(now_ns).max(self.looked_ns));
        if self.look.is_none() && waited_ns >= LOOK_NS {
            self.looked_ns = now_ns;
            self.look =
                self.counters.as_ref().and_then(|counters| counters.first().ok()).map(|now| now.in_flight);
        }
    }

    fn write(&mut self, work: &mut RecorderWork, now_ns: u64) -> bool {
        let lost = self.blocks.lost;
        self.blocks.end_block(now_ns);
        self.written_ns = now_ns;
        let entries = std::mem::take(&mut self.blocks.entries);
        let blocks = std::mem::take(&mut self.blocks.full);
        work.write(&blocks, entries, lost, self.joiner.next_ns(now_ns))
    }

    /// Takes turns until all that began before is complete, or may be in flight. False where the file cannot be written.
    fn settle(&mut self, work: &mut RecorderWork) -> bool {
        let over_ns = work.now_ns();
        loop {
            work.clock.sleep_until(work.clock.now().saturating_add(YOUNG_NS), Duration::MAX, || true);
            if !self.next_turn(work) {
                return false;
            }
            let is_late = work.now_ns() >= over_ns + SETTLE_NS;
            if is_late || self.joiner.next_ns(u64::MAX) > over_ns {
                return true;
            }
        }
    }

    /// Takes the rest, and ends the file.
    fn finish(&mut self, work: &mut RecorderWork) {
        let now_ns = work.now_ns();
        if !self.turn(work, u64::MAX, now_ns) {
            return;
        }
        let joined = self.joiner.finish(|request| self.blocks.push(request));
        if self.write(work, now_ns) {
            work.end(joined.without_latency);
        }
    }
}

/// Gives an event to `joiner`, by the time of the recording. What happened before that began is left out.
fn pass_on(event: &BlockEvent, started_ns: u64, joiner: &mut RequestJoiner) {
    let (Some(op), Some(at_ns)) = (op_of(event.op), event.time_ns.checked_sub(started_ns)) else { return };
    // Flushes have no place, whatever the kernel says.
    let offset = if op.is_sync() { 0 } else { event.sector.saturating_mul(SECTOR_BYTES) };
    let bytes = if op.is_sync() { 0 } else { event.bytes.min(MAX_BYTES) as u32 };
    let request = ObservedRequest { at_ns, offset, latency_ns: None, bytes, file: 0, op };
    match event.stage {
        BlockStage::Entered => joiner.entered(request),
        BlockStage::Issued => joiner.issued(request),
        BlockStage::Requeued => joiner.requeued(op, offset),
        BlockStage::Completed => joiner.completed(op, offset, at_ns),
    }
}

#[cfg(test)]
mod tests {
    use fathom_sys::device::block_trace::BlockOp;

    use super::*;

    #[test]
    fn events_become_requests_of_the_recording() {
        let event =
            |time_ns, stage, op, sector, bytes| BlockEvent { time_ns, device: 0, stage, op, sector, bytes };
        let mut joiner = RequestJoiner::default();
        for event in [
            event(50, BlockStage::Issued, BlockOp::Read, 8, 4096),
            event(110, BlockStage::Issued, BlockOp::Write, 16, 8192),
            event(115, BlockStage::Requeued, BlockOp::Write, 16, 8192),
            event(120, BlockStage::Issued, BlockOp::Write, 16, 8192),
            event(121, BlockStage::Issued, BlockOp::Flush, 77, 0),
            event(122, BlockStage::Issued, BlockOp::Other, 0, 0),
            event(123, BlockStage::Issued, BlockOp::Discard, 8, 1 << 33),
            event(130, BlockStage::Completed, BlockOp::Read, 8, 4096),
            event(140, BlockStage::Completed, BlockOp::Flush, 0, 0),
            event(150, BlockStage::Completed, BlockOp::Write, 16, 8192),
        ] {
            pass_on(&event, 100, &mut joiner);
        }
        let mut found = Vec::new();
        let joined = joiner.finish(|one| {
            found.push((one.at_ns, one.op.name(), one.offset, one.bytes, one.latency_ns.is_some()))
        });
        assert_eq!(
            found,
            [
                (20, "write", 8192, 8192, true),
                (21, "sync", 0, 0, true),
                (23, "trim", 4096, u32::MAX - 511, false)
            ]
        );
        assert_eq!(joined.without_latency, 1);
    }

    #[test]
    fn blocks_stay_small_however_many_requests_waited() {
        let mut blocks = RequestBlocks::default();
        for at_ns in 0..100_000 {
            blocks.push(&ObservedRequest {
                at_ns,
                offset: at_ns * 1_000_003 % 4096 * 512,
                latency_ns: None,
                bytes: 512,
                file: 0,
                op: fathom_model::Op::Read,
            });
        }
        blocks.end_block(100_000);
        assert!(blocks.full.len() > 3 && blocks.full.iter().all(|block| block.len() < 70 << 10));
    }
}
