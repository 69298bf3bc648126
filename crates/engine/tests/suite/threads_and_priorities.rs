//! Requests that threads execute, and requests with priorities of their own.

use std::sync::Arc;

use fathom_engine::{Completion, Engine, EngineSetup, OpenFile, Queued, RawEngineOptions, Reaped, registry};
use fathom_model::plan::{IoPriority, PriorityShare, RequestPriorities};
use fathom_model::{Op, PerOp, Request};

const DEPTH: u32 = 4;
const BLOCK: u32 = 4096;

fn setup(priorities: RequestPriorities) -> EngineSetup {
    let file = tempfile::tempfile().expect("a temporary file");
    file.set_len(u64::from(DEPTH * BLOCK)).expect("there is room");
    EngineSetup {
        depth: DEPTH,
        max_block: BLOCK as usize,
        files: vec![OpenFile {
            file: Some(Arc::new(file)),
            size: u64::from(DEPTH * BLOCK),
            is_block_device: false,
            volume: 0,
        }],
        paths: Vec::new(),
        direct: false,
        writes: true,
        random: true,
        options: RawEngineOptions::default(),
        priorities,
    }
}

/// One request per slot, each to its own block.
fn requests(op: Op) -> Vec<Request> {
    (0..DEPTH).map(|slot| Request { op, file: 0, len: BLOCK, offset: u64::from(slot * BLOCK) }).collect()
}

/// Offers all requests, and returns their results by slot.
fn run(engine: &mut dyn Engine, requests: &[Request]) -> Vec<i64> {
    let slots: Vec<u32> = (0..DEPTH).collect();
    let mut done: Vec<Completion> = Vec::new();
    let mut offered = 0;
    while offered < slots.len() {
        match engine.queue(&slots[offered..], requests) {
            Queued::Accepted(count) => offered += count as usize,
            Queued::Done(result) => {
                done.push(Completion { slot: slots[offered], result });
                offered += 1;
            }
        }
    }
    engine.submit().expect("the engine runs");
    while done.len() < slots.len() {
        let reaped = engine.reap(1, DEPTH, None, &mut done).expect("the engine runs");
        assert_ne!(reaped, Reaped::Some(0));
    }
    done.sort_by_key(|done| done.slot);
    done.iter().map(|done| done.result).collect()
}

#[test]
fn threads_execute_the_requests_of_synchronous_engines() {
    let find = |name: &str| registry::find(name).expect("it is registered");
    for name in ["psync", "sync", "vsync", "pvsync", "pvsync2"] {
        let entry = registry::offloaded(find(name)).expect("it is synchronous");
        assert!(!entry.traits.synchronous, "{name}");
        let mut engine = (entry.open)(setup(RequestPriorities::default())).expect("it can be opened");
        for slot in 0..DEPTH {
            engine.payload(slot).fill(slot as u8 + 1);
        }
        let full = vec![i64::from(BLOCK); DEPTH as usize];
        assert_eq!(run(engine.as_mut(), &requests(Op::Write)), full);
        for slot in 0..DEPTH {
            engine.payload(slot).fill(0);
        }
        assert_eq!(run(engine.as_mut(), &requests(Op::Read)), full);
        for slot in 0..DEPTH {
            assert!(engine.payload(slot).iter().all(|&byte| byte == slot as u8 + 1), "{name} {slot}");
        }
        assert_eq!(run(engine.as_mut(), &requests(Op::Sync)), [0; DEPTH as usize]);
    }
    for name in ["libaio", "posixaio", "null"] {
        assert_eq!(registry::offloaded(find(name)).map(|entry| entry.name), Some(name));
    }
    for name in ["io_uring", "mmap"] {
        assert!(registry::offloaded(find(name)).is_none(), "{name}");
    }
}

#[test]
fn requests_have_the_priorities_that_were_planned() {
    let share =
        |percent| PriorityShare { size: None, percent, priority: IoPriority { class: 2, level: 1, hint: 0 } };
    let shares = PerOp { read: vec![share(100)], write: Vec::new(), trim: Vec::new() };
    for name in ["io_uring", "libaio"] {
        let entry = registry::find(name).expect("it is registered");
        let Ok(mut engine) = (entry.open)(setup(RequestPriorities { shares: shares.clone() })) else {
            println!("skipped: this machine has no {name}");
            continue;
        };
        let full = vec![i64::from(BLOCK); DEPTH as usize];
        for (op, expected) in [(Op::Read, Some(0x4001)), (Op::Write, None), (Op::Read, Some(0x4001))] {
            assert_eq!(run(engine.as_mut(), &requests(op)), full, "{name}");
            assert!((0..DEPTH).all(|slot| engine.priority(slot) == expected), "{name} {op:?}");
        }
        let plain = (entry.open)(setup(RequestPriorities::default())).expect("it was opened before");
        assert_eq!(plain.priority(0), None);
    }
}
