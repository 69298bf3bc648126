//! The registry, private options and setups that an engine refuses.

use fathom_engine::registry::ENGINES;
use fathom_engine::{EngineError, EngineSetup};
use fathom_model::{Op, OptionValueKind};

use super::fixture::*;

#[test]
fn every_private_option_is_taken_and_checked() {
    for entry in ENGINES {
        for row in entry.options {
            let other = match row.kind {
                OptionValueKind::Choice(words) => words.iter().find(|word| **word != row.default).unwrap(),
                _ if row.default == "1" => "0",
                _ => "1",
            };
            assert_eq!((row.check)(other), Ok(()), "{} {}", entry.name, row.name);
            // Lists by operation are read with the plan, which knows the operations.
            let wrong: &[&str] =
                if row.name.starts_with("cmdprio") { &[] } else { &["-1", "x", "0x", "4294967296"] };
            for wrong in wrong {
                assert!((row.check)(wrong).is_err(), "{} {}={wrong}", entry.name, row.name);
            }
            assert!(row.doc.ends_with('.') && !row.doc.contains('\n'), "{} {}", entry.name, row.name);
        }
    }
}

#[test]
fn private_options_do_not_corrupt_data() {
    // Options whose requests may fail because the device or kernel does not support them.
    const MAY_FAIL: [&str; 3] = ["hipri", "nowait", "uncached"];
    for entry in real_engines() {
        for row in entry.options.iter().filter(|row| row.name != "sqthread_poll_cpu") {
            for test_file in test_files(entry, 16 * BLOCK as u64) {
                let mut setup = test_file.setup(entry, true);
                setup.options = raw(&[(row.name, if row.default == "1" { "0" } else { "1" })]);
                let Some(mut engine) = open(entry, setup) else { continue };
                let width = width(entry);
                for slot in 0..width {
                    engine.payload(slot).fill(slot as u8 + 1);
                }
                let mut written = vec![false; width as usize];
                for op in [Op::Write, Op::Sync, Op::Read] {
                    let len = if op == Op::Sync { 0 } else { BLOCK };
                    let batch: Vec<_> =
                        (0..width).map(|slot| request(op, u64::from(slot) * BLOCK as u64, len)).collect();
                    for (slot, result) in run(&mut *engine, &batch).into_iter().enumerate() {
                        let refused = MAY_FAIL.contains(&row.name) && matches!(-result, EAGAIN | EOPNOTSUPP);
                        assert!(
                            refused || result == len as i64,
                            "{} {}: {op} {result}",
                            entry.name,
                            row.name
                        );
                        written[slot] |= op == Op::Write && !refused;
                        if op == Op::Read && !refused && written[slot] {
                            let payload = engine.payload(slot as u32);
                            assert!(
                                payload.iter().all(|&byte| byte == slot as u8 + 1),
                                "{} {}",
                                entry.name,
                                row.name
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn impossible_setups_are_refused_with_a_remedy() {
    let test_file = TestFile::on(&std::env::temp_dir(), BLOCK as u64, false).unwrap();
    let refused = |name: &str, change: &dyn Fn(&mut EngineSetup)| -> Option<EngineError> {
        let entry = fathom_engine::registry::find(name).unwrap();
        open(entry, test_file.setup(entry, false))?;
        let mut setup = test_file.setup(entry, false);
        change(&mut setup);
        Some((entry.open)(setup).err().unwrap_or_else(|| panic!("{name} opened")))
    };
    type Change = &'static dyn Fn(&mut EngineSetup);
    let table: [(&str, Change, &str, &str); 6] = [
        ("io_uring", &|setup| setup.depth = 100_000, "100000", "iodepth=100000"),
        ("libaio", &|setup| setup.depth = 400_000_000, "queue depth 400000000", "iodepth=400000000"),
        ("psync", &|setup| setup.max_block = 1 << 47, "140737488355328", "bs"),
        ("mmap", &|setup| setup.direct = true, "direct", "direct=0"),
        ("mmap", &|setup| setup.files[0].size = 1 << 20, "8192", "create the file"),
        ("mmap", &|setup| setup.files[0].size = 0, "0 bytes", "create the file"),
    ];
    for (name, change, message, hint) in table {
        let Some(error) = refused(name, change) else { continue };
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.hint().is_some_and(|text| text.contains(hint)), "{error}: {:?}", error.hint());
    }
    for entry in real_engines() {
        if let Some(error) = refused(entry.name, &|setup| setup.files[0].file = None) {
            assert!(error.to_string().contains("file 0"), "{error}");
        }
    }
}

#[test]
fn engine_names_are_unique_and_documented() {
    let mut names: Vec<&str> =
        ENGINES.iter().flat_map(|entry| entry.aliases.iter().copied().chain([entry.name])).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for entry in ENGINES {
        assert!(entry.doc.ends_with('.') && entry.doc.is_ascii(), "{}", entry.name);
        assert_eq!(fathom_engine::registry::find(entry.name).map(|found| found.name), Some(entry.name));
    }
    assert!(fathom_engine::registry::find("nothing").is_none());
}
