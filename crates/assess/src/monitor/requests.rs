//! Hands each traced request to the device it belongs to, in the order of time.

use fathom_analysis::monitor::load::LoadWatch;
use fathom_model::Op;
use fathom_sys::clock::monotonic_ns;
use fathom_sys::device::block_trace::{BlockEvent, BlockOp, BlockStage};
use fathom_sys::device::{BlockTrace, SysRoot, TraceError};

use super::devices::DeviceWatch;

/// A CPU may still be writing an event that is so young, while a later one of another CPU is already there: a virtual CPU
/// may be taken away in between.
pub(super) const YOUNG_NS: u64 = 20_000_000;

/// The trace of the devices that were there at the start, the first of the watches.
pub(super) struct Requests {
    trace: BlockTrace,
    names: Vec<String>,
    /// Read, but not yet handed on.
    events: Vec<BlockEvent>,
    lost: u64,
}

impl Requests {
    pub fn start(root: &SysRoot, watches: &[DeviceWatch]) -> Result<Requests, TraceError> {
        let names: Vec<String> =
            watches.iter().filter(|watch| watch.is_there()).map(|watch| watch.device.name.clone()).collect();
        Ok(Requests { trace: BlockTrace::open(root, &names)?, names, events: Vec::new(), lost: 0 })
    }

    /// Hands on what has happened.
    pub fn read(&mut self, watches: &mut [DeviceWatch]) {
        let until = monotonic_ns().saturating_sub(YOUNG_NS);
        self.trace.read(&mut self.events);
        self.events.sort_by_key(|event| event.time_ns);
        let lost = self.trace.lost() - self.lost;
        self.lost += lost;
        let places: Vec<Option<usize>> = self
            .names
            .iter()
            .map(|name| watches.iter().position(|watch| watch.device.name == *name))
            .collect();
        for place in places.iter().flatten() {
            let load = watches[*place].load.get_or_insert_default();
            if lost > 0 {
                load.missed(lost);
            }
        }
        let ripe = self.events.partition_point(|event| event.time_ns <= until);
        for event in self.events.drain(..ripe) {
            if let Some(place) = places[event.device] {
                settle(&mut watches[place], event.time_ns);
                if let Some(load) = &mut watches[place].load {
                    hand_on(load, &event);
                }
            }
        }
        for place in places.into_iter().flatten() {
            settle(&mut watches[place], until);
        }
    }
}

/// Holds what is waited for against what was in flight when the device was looked at, up to `until`.
fn settle(watch: &mut DeviceWatch, until: u64) {
    /// Between reading the clock and the counters.
    const SLACK_NS: u64 = 5_000_000;
    while let Some((at_ns, in_flight)) = watch.looks.pop_front() {
        if at_ns > until {
            watch.looks.push_front((at_ns, in_flight));
            return;
        }
        if let Some(load) = &mut watch.load {
            load.settle(in_flight, at_ns.saturating_sub(SLACK_NS));
        }
    }
}

/// The operation that is counted; `None` for commands that move no data.
pub(super) fn op_of(op: BlockOp) -> Option<Op> {
    match op {
        BlockOp::Read => Some(Op::Read),
        BlockOp::Write => Some(Op::Write),
        BlockOp::Discard => Some(Op::Trim),
        BlockOp::Flush => Some(Op::Sync),
        BlockOp::Other => None,
    }
}

fn hand_on(load: &mut LoadWatch, event: &BlockEvent) {
    let Some(op) = op_of(event.op) else { return };
    let at = event.sector.saturating_mul(fathom_sys::device::diskstats::SECTOR_BYTES);
    match event.stage {
        BlockStage::Entered => load.entered(op, at, event.bytes),
        BlockStage::Issued => load.issued(op, at, event.bytes, event.time_ns),
        BlockStage::Completed => load.completed(op, at, event.time_ns),
        // It stays in flight: a second issue counts as the same request.
        BlockStage::Requeued => {}
    }
}
