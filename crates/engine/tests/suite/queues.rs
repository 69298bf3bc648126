//! Depth, order, waiting and the end of an engine.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fathom_engine::registry::ENGINES;
use fathom_engine::{Completion, EngineSetup, Queued, RawEngineOptions, Reaped};
use fathom_model::{Nanos, Op};

use super::fixture::*;

#[test]
fn the_whole_depth_can_be_queued_before_anything_is_submitted() {
    for entry in ENGINES.iter().filter(|entry| !entry.traits.synchronous) {
        let test_file = TestFile::on(&std::env::temp_dir(), 64 * BLOCK as u64, false).unwrap();
        let Some(mut engine) = open(entry, test_file.setup(entry, false)) else { continue };
        for round in 0..3 {
            for slot in 0..DEPTH {
                let read = request(Op::Read, u64::from(slot) * BLOCK as u64, BLOCK);
                assert_eq!(
                    offer(&mut *engine, slot, &read),
                    Queued::Accepted(1),
                    "{} round {round}",
                    entry.name
                );
            }
            let mut done = Vec::new();
            assert_eq!(
                engine.reap(5, 100, None, &mut done).unwrap(),
                Reaped::Some(0),
                "{}: none submitted",
                entry.name
            );
            let mut submitted = 0;
            while submitted < DEPTH {
                submitted += engine.submit().unwrap();
            }
            assert_eq!((submitted, engine.submit().unwrap()), (DEPTH, 0), "{}", entry.name);
            let mut slots: Vec<u32> = Vec::new();
            while slots.len() < DEPTH as usize {
                done.clear();
                let Reaped::Some(count) = engine.reap(3, 5, None, &mut done).unwrap() else {
                    panic!("real time")
                };
                assert!(count as usize == done.len() && (1..=5).contains(&count), "{}: {count}", entry.name);
                slots.extend(done.iter().map(|completion| completion.slot));
            }
            slots.sort_unstable();
            assert!(slots.iter().copied().eq(0..DEPTH), "{}: {slots:?}", entry.name);
            done.clear();
            assert_eq!(
                engine.reap(1, 100, None, &mut done).unwrap(),
                Reaped::Some(0),
                "{}: none left",
                entry.name
            );
            assert_eq!(
                engine.reap(0, 100, Some(Nanos::ZERO), &mut done).unwrap(),
                Reaped::Some(0),
                "{}",
                entry.name
            );
        }
    }
}

#[test]
fn a_batch_ends_before_a_request_that_needs_a_plain_call() {
    for entry in real_engines().filter(|entry| !entry.traits.synchronous) {
        let test_file = TestFile::on(&std::env::temp_dir(), 16 * BLOCK as u64, false).unwrap();
        let Some(mut engine) = open(entry, test_file.setup(entry, true)) else { continue };
        let read = |block: u64| request(Op::Read, block * BLOCK as u64, BLOCK);
        // Longer than a buffer: refused alone, and only once it is the first of a batch.
        let odd = request(Op::Read, 0, BLOCK + 1);
        let requests = [read(0), read(1), odd, read(3)];
        assert_eq!(engine.queue(&[0, 1, 2, 3], &requests), Queued::Accepted(2), "{}", entry.name);
        assert_eq!(engine.queue(&[2, 3], &requests), Queued::Done(-22), "{}", entry.name);
        assert_eq!(engine.queue(&[3], &requests), Queued::Accepted(1), "{}", entry.name);
        assert_eq!(engine.submit().unwrap(), 3, "{}", entry.name);
        let mut done = reap(&mut *engine, 3);
        done.sort_unstable();
        assert_eq!(done, [0, 1, 3].map(|slot| (slot, BLOCK as i64)), "{}", entry.name);
    }
}

#[test]
fn polling_finds_completions_without_waiting() {
    for entry in real_engines().filter(|entry| !entry.traits.synchronous) {
        for test_file in test_files(entry, 16 * BLOCK as u64) {
            let Some(mut engine) = open(entry, test_file.setup(entry, false)) else { continue };
            assert_eq!(offer(&mut *engine, 3, &request(Op::Read, 0, BLOCK)), Queued::Accepted(1));
            assert_eq!(engine.submit().unwrap(), 1);
            let mut done = Vec::new();
            while engine.reap(0, 1, None, &mut done).unwrap() == Reaped::Some(0) {
                std::thread::yield_now();
            }
            assert_eq!(done, [Completion { slot: 3, result: BLOCK as i64 }], "{}", entry.name);
        }
    }
}

#[test]
fn the_buffer_of_a_slot_in_flight_is_inaccessible() {
    for entry in real_engines().filter(|entry| !entry.traits.synchronous) {
        let test_file = TestFile::on(&std::env::temp_dir(), 16 * BLOCK as u64, false).unwrap();
        let Some(mut engine) = open(entry, test_file.setup(entry, false)) else { continue };
        let read = request(Op::Read, 0, BLOCK);
        assert_eq!(offer(&mut *engine, 2, &read), Queued::Accepted(1));
        assert!(catch_unwind(AssertUnwindSafe(|| engine.payload(2).len())).is_err(), "{}", entry.name);
        assert!(catch_unwind(AssertUnwindSafe(|| offer(&mut *engine, 2, &read))).is_err(), "{}", entry.name);
        assert!(
            catch_unwind(AssertUnwindSafe(|| offer(&mut *engine, DEPTH, &read))).is_err(),
            "{}",
            entry.name
        );
        assert_eq!(engine.payload(1).len(), BLOCK);
        assert_eq!(engine.submit().unwrap(), 1, "{}: the attempts queued nothing", entry.name);
        assert_eq!(reap(&mut *engine, 1), [(2, BLOCK as i64)], "{}", entry.name);
        assert_eq!(engine.payload(2)[0], content(0));
    }
}

#[test]
fn engines_can_be_dropped_with_requests_queued_or_in_flight() {
    for entry in real_engines().filter(|entry| !entry.traits.synchronous) {
        for test_file in test_files(entry, 16 << 20) {
            for (queued, submitted) in [(DEPTH, false), (DEPTH, true), (1, true)] {
                let mut setup = test_file.setup(entry, true);
                setup.max_block = 1 << 20;
                let Some(mut engine) = open(entry, setup) else { continue };
                for slot in 0..queued {
                    let (op, offset) =
                        if slot % 3 == 0 { (Op::Write, 0) } else { (Op::Read, u64::from(slot) << 20) };
                    assert_eq!(offer(&mut *engine, slot, &request(op, offset, 1 << 20)), Queued::Accepted(1));
                }
                if submitted {
                    engine.submit().unwrap();
                }
                drop(engine);
                let file = File::open(test_file.path()).unwrap();
                let mut byte = [0];
                file.read_exact_at(&mut byte, 1).unwrap();
                // What was submitted may have been cancelled.
                let kept = byte[0] == content(1);
                assert!(kept || submitted, "{}: an unsubmitted request was executed", entry.name);
            }
        }
    }
}

#[test]
fn waits_end_in_time_and_unfinished_reads_are_cancelled() {
    for entry in real_engines().filter(|entry| entry.name == "io_uring") {
        for options in [&[][..], &[("fixedbufs", "0")], &[("registerfiles", "0")], &[("sqthread_poll", "1")]]
        {
            let (reader, writer) = std::io::pipe().unwrap();
            let file = Arc::new(File::from(std::os::fd::OwnedFd::from(reader)));
            let mut setup = setup_on(entry, file, 1 << 20, false, false);
            setup.options = raw(options);
            let Some(mut engine) = open(entry, setup) else { continue };
            for slot in 0..3 {
                assert_eq!(offer(&mut *engine, slot, &request(Op::Read, 0, BLOCK)), Queued::Accepted(1));
            }
            assert_eq!(engine.submit().unwrap(), 3);
            let mut done = Vec::new();
            for wait in [Nanos::ZERO, Nanos(1), Nanos::from_millis(2)] {
                assert_eq!(engine.reap(1, 8, Some(wait), &mut done).unwrap(), Reaped::Some(0), "{options:?}");
            }
            std::io::Write::write_all(&mut { &writer }, b"abc").unwrap();
            assert_eq!(engine.reap(1, 8, Some(Nanos::from_secs(60)), &mut done).unwrap(), Reaped::Some(1));
            assert_eq!(done[0].result, 3);
            assert_eq!(&engine.payload(done[0].slot)[..3], b"abc");
            drop(engine);
        }
    }
}

#[test]
fn the_null_engine_accepts_no_more_than_its_depth() {
    let entry = fathom_engine::registry::find("null").unwrap();
    let setup = |depth| EngineSetup {
        depth,
        max_block: BLOCK,
        files: Vec::new(),
        paths: Vec::new(),
        direct: false,
        writes: true,
        random: false,
        options: RawEngineOptions::default(),
        priorities: Default::default(),
    };
    let mut engine = open(entry, setup(2)).unwrap();
    let write = request(Op::Write, 0, 4096);
    let answers: Vec<_> = (0..3).map(|_| engine.queue(&[0, 1, 2], &[write; 3])).collect();
    assert_eq!(answers, [Queued::Accepted(2), Queued::Accepted(0), Queued::Accepted(0)]);
    assert_eq!(engine.submit().unwrap(), 2);
    assert_eq!(reap(&mut *engine, 2), [(0, 4096), (1, 4096)]);
    assert!(engine.payload(0).is_empty());

    let mut engine = open(entry, setup(1)).unwrap();
    assert_eq!(engine.queue(&[0], &[write]), Queued::Done(4096), "at depth 1 there is nothing to wait for");
}
