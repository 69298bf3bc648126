//! What each operation does to a file, and what its result says.

use std::fs::File;
use std::sync::Arc;

use fathom_engine::registry::ENGINES;
use fathom_engine::{EngineSetup, OpenFile, RawEngineOptions};
use fathom_model::{Op, Request};

use super::fixture::*;

#[test]
fn written_data_is_read_back() {
    for entry in real_engines() {
        for test_file in test_files(entry, 64 * BLOCK as u64) {
            let Some(mut engine) = open(entry, test_file.setup(entry, true)) else { continue };
            let width = width(entry);
            for first in (0..64).step_by(width as usize) {
                for slot in 0..width {
                    engine.payload(slot).fill((first + slot) as u8 ^ 0xA5);
                }
                let writes: Vec<_> = (first..first + width)
                    .map(|block| request(Op::Write, u64::from(block) * BLOCK as u64, BLOCK))
                    .collect();
                assert!(
                    run(&mut *engine, &writes).iter().all(|&result| result == BLOCK as i64),
                    "{}",
                    entry.name
                );
            }
            let bytes = std::fs::read(test_file.path()).unwrap();
            for (block, bytes) in bytes.chunks(BLOCK).enumerate() {
                assert!(
                    bytes.iter().all(|&byte| byte == block as u8 ^ 0xA5),
                    "{}: block {block}",
                    entry.name
                );
            }
            for first in (0..64).step_by(width as usize) {
                // Backwards, so that slot and offset do not rise together.
                let blocks: Vec<u32> = (first..first + width).rev().collect();
                let reads: Vec<_> = blocks
                    .iter()
                    .map(|&block| request(Op::Read, u64::from(block) * BLOCK as u64, BLOCK))
                    .collect();
                assert!(
                    run(&mut *engine, &reads).iter().all(|&result| result == BLOCK as i64),
                    "{}",
                    entry.name
                );
                for (slot, &block) in blocks.iter().enumerate() {
                    let payload = engine.payload(slot as u32);
                    assert_eq!(payload.len(), BLOCK);
                    assert!(
                        payload.iter().all(|&byte| byte == block as u8 ^ 0xA5),
                        "{}: block {block}",
                        entry.name
                    );
                }
            }
        }
    }
}

#[test]
fn reads_past_the_end_are_short() {
    let size = 3 * BLOCK as u64 + 4096;
    for entry in real_engines() {
        for test_file in test_files(entry, size) {
            let Some(mut engine) = open(entry, test_file.setup(entry, false)) else { continue };
            let table = [
                (0, BLOCK, BLOCK as i64),
                (3 * BLOCK as u64, BLOCK, 4096),
                (size, BLOCK, 0),
                (size + (1 << 40), 4096, 0),
            ];
            for (offset, len, expected) in table {
                assert_eq!(one(&mut *engine, Op::Read, offset, len), expected, "{} at {offset}", entry.name);
                let read = &engine.payload(0)[..expected as usize];
                assert!(
                    read.iter().zip(offset..).all(|(&byte, at)| byte == content(at)),
                    "{} at {offset}",
                    entry.name
                );
            }
            if !test_file.direct {
                assert_eq!(one(&mut *engine, Op::Read, size - 1, 3), 1, "{}", entry.name);
                assert_eq!(engine.payload(0)[0], content(size - 1));
                assert_eq!(
                    one(&mut *engine, Op::Read, 5, 3),
                    3,
                    "{}: odd sizes are fine buffered",
                    entry.name
                );
            }
        }
    }
}

#[test]
fn failed_requests_carry_their_errno() {
    for entry in real_engines() {
        for test_file in test_files(entry, 4 * BLOCK as u64) {
            let Some(mut engine) = open(entry, test_file.setup(entry, false)) else { continue };
            let results = [
                one(&mut *engine, Op::Write, 0, BLOCK),
                one(&mut *engine, Op::Read, 0, BLOCK + 1),
                one(&mut *engine, Op::Read, u64::MAX, 4096),
                one(&mut *engine, Op::Write, u64::MAX - 4095, 4096),
                run(&mut *engine, &[Request { file: 1, ..request(Op::Read, 0, 4096) }])[0],
                one(&mut *engine, Op::Trim, 0, 4096),
                one(&mut *engine, Op::Read, 0, BLOCK),
            ];
            let expected = [EBADF, EINVAL, EINVAL, EINVAL, EBADF, EBADF, BLOCK as i64];
            assert_eq!(results, expected, "{}", entry.name);
            if test_file.direct {
                assert_eq!(one(&mut *engine, Op::Read, 0, 100), EINVAL, "{}", entry.name);
                assert_eq!(one(&mut *engine, Op::Read, 100, 4096), EINVAL, "{}", entry.name);
            }
        }
    }
}

#[test]
fn a_failed_request_does_not_affect_its_batch() {
    for entry in real_engines().filter(|entry| !entry.traits.synchronous) {
        for test_file in test_files(entry, 16 * BLOCK as u64) {
            let Some(mut engine) = open(entry, test_file.setup(entry, false)) else { continue };
            let batch: Vec<_> = (0..DEPTH)
                .map(|slot| match slot % 4 {
                    1 => request(Op::Write, 0, BLOCK),
                    3 => request(Op::Sync, 0, 0),
                    _ => request(Op::Read, u64::from(slot) * BLOCK as u64, BLOCK),
                })
                .collect();
            for (slot, result) in run(&mut *engine, &batch).into_iter().enumerate() {
                let expected = [BLOCK as i64, EBADF, BLOCK as i64, 0][slot % 4];
                assert_eq!(result, expected, "{} slot {slot}", entry.name);
            }
        }
    }
}

#[test]
fn syncs_and_trims_take_effect() {
    for entry in real_engines() {
        for test_file in test_files(entry, 16 * BLOCK as u64) {
            let Some(mut engine) = open(entry, test_file.setup(entry, true)) else { continue };
            assert_eq!(one(&mut *engine, Op::Sync, 0, 0), 0, "{}", entry.name);
            assert_eq!(one(&mut *engine, Op::Datasync, 0, 0), 0, "{}", entry.name);
            assert_eq!(one(&mut *engine, Op::Trim, BLOCK as u64, BLOCK), BLOCK as i64, "{}", entry.name);
            let bytes = std::fs::read(test_file.path()).unwrap();
            let trimmed = BLOCK as u64..2 * BLOCK as u64;
            assert_eq!(bytes.len() as u64, test_file.size, "a trim keeps the size");
            for (at, byte) in (0..).zip(bytes) {
                assert_eq!(
                    byte,
                    if trimmed.contains(&at) { 0 } else { content(at) },
                    "{} at {at}",
                    entry.name
                );
            }
        }
    }
}

#[test]
fn files_are_distinct_and_shared_ones_keep_their_positions() {
    for entry in real_engines() {
        let test_file = TestFile::on(&std::env::temp_dir(), 4 * BLOCK as u64, false).unwrap();
        let mut setup = test_file.setup(entry, false);
        let other = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(other.path(), vec![0xEE; BLOCK]).unwrap();
        let second = Arc::new(File::open(other.path()).unwrap());
        setup.files.push(OpenFile {
            file: Some(second),
            size: BLOCK as u64,
            is_block_device: false,
            volume: 0,
        });
        let shared = EngineSetup {
            files: setup.files.clone(),
            paths: Vec::new(),
            options: RawEngineOptions::default(),
            ..setup.clone()
        };
        let (Some(mut first), Some(mut second)) = (open(entry, setup), open(entry, shared)) else { continue };
        for offset in [0, 512, 1024, 4096] {
            assert_eq!(one(&mut *first, Op::Read, offset, 512), 512, "{}", entry.name);
            assert_eq!(one(&mut *second, Op::Read, offset + 1, 512), 512, "{}", entry.name);
            assert_eq!(first.payload(0)[0], content(offset), "{}", entry.name);
            assert_eq!(second.payload(0)[0], content(offset + 1), "{}", entry.name);
        }
        assert_eq!(
            run(&mut *first, &[Request { file: 1, ..request(Op::Read, 9, 512) }]),
            [512],
            "{}",
            entry.name
        );
        assert!(first.payload(0)[..512].iter().all(|&byte| byte == 0xEE), "{}", entry.name);
    }
}

#[test]
fn allocating_engines_change_the_file_and_move_nothing() {
    let entry = |name: &str| ENGINES.iter().find(|entry| entry.name == name).unwrap();
    let test_file = TestFile::on(&std::env::temp_dir(), 4 * BLOCK as u64, false).unwrap();
    let size = || std::fs::metadata(test_file.path()).unwrap().len();
    let run_on = |name: &str, requests: &[Request]| {
        let mut engine = open(entry(name), test_file.setup(entry(name), true)).unwrap();
        run(engine.as_mut(), requests)
    };
    let whole = BLOCK as i64;
    assert_eq!(run_on("falloc", &[request(Op::Write, 8 * BLOCK as u64, BLOCK)]), [whole]);
    assert_eq!(size(), 9 * BLOCK as u64);
    assert_eq!(run_on("falloc", &[request(Op::Read, 20 * BLOCK as u64, BLOCK)]), [whole]);
    assert_eq!(size(), 9 * BLOCK as u64);
    assert_eq!(run_on("falloc", &[request(Op::Trim, 0, BLOCK)]), [whole]);
    assert_eq!(std::fs::read(test_file.path()).unwrap()[..BLOCK], [0; BLOCK]);
    assert_eq!(run_on("ftruncate", &[request(Op::Write, 3 * BLOCK as u64, BLOCK)]), [whole]);
    assert_eq!(size(), 3 * BLOCK as u64);
    assert_eq!(run_on("ftruncate", &[request(Op::Read, 0, BLOCK)]), [EINVAL]);
}
