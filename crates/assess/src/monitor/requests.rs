//! Hands each traced request to the device it belongs to, in the order of time.

use fathom_analysis::monitor_load::LoadWatch;
use fathom_model::Op;
use fathom_sys::clock::monotonic_ns;
use fathom_sys::device::block_trace::{BlockEvent, BlockOp, BlockStage};
use fathom_sys::device::{BlockTrace, SysRoot, TraceError};

use super::devices::Watch;

/// A CPU may still be writing an event that is so young, while a later one of another CPU is already there.
const YOUNG_NS: u64 = 1_000_000;

/// The trace of the devices that were there at the start, the first of the watches.
pub(super) struct Requests {
    trace: BlockTrace,
    names: Vec<String>,
    /// Read, but not yet handed on.
    events: Vec<BlockEvent>,
    lost: u64,
}

impl Requests {
    pub fn start(root: &SysRoot, watches: &[Watch]) -> Result<Requests, TraceError> {
        let names: Vec<String> =
            watches.iter().filter(|watch| watch.is_there()).map(|watch| watch.device.name.clone()).collect();
        Ok(Requests { trace: BlockTrace::open(root, &names)?, names, events: Vec::new(), lost: 0 })
    }

    /// Hands on what has happened.
    pub fn read(&mut self, watches: &mut [Watch]) {
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
            if let Some(load) = places[event.device].and_then(|place| watches[place].load.as_mut()) {
                hand_on(load, &event);
            }
        }
    }
}

fn hand_on(load: &mut LoadWatch, event: &BlockEvent) {
    let op = match event.op {
        BlockOp::Read => Op::Read,
        BlockOp::Write => Op::Write,
        BlockOp::Discard => Op::Trim,
        BlockOp::Flush => Op::Sync,
        BlockOp::Other => return,
    };
    let at = event.sector.saturating_mul(fathom_sys::device::diskstats::SECTOR_BYTES);
    match event.stage {
        BlockStage::Entered => load.entered(op, at, event.bytes),
        BlockStage::Issued => load.issued(op, at, event.bytes, event.time_ns),
        BlockStage::Completed => load.completed(op, at, event.time_ns),
    }
}
