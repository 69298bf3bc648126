//! The output of ioping: text, raw lines and JSON. One request is in flight at a time, and sizes are powers of 1,024 whatever the
//! case of their letters.

pub(crate) mod json;
pub(crate) mod raw;
pub(crate) mod text;

use fathom_model::{Op, PerOp};
use fathom_record::import::{BlockRange, ImportedEntry, ImportedLoad, ImportedOp, ImportedTest, PacedLoad};

use crate::report::SourceTest;

/// The load of a ping: `None` is what its output does not say.
fn load(block_size: Option<u64>, op: Option<Op>, target: Option<String>) -> ImportedLoad {
    let range = block_size.map(|size| BlockRange { min: size, max: size });
    let mut sizes = PerOp::default();
    for of in Op::DATA.into_iter().filter(|of| op.is_none_or(|op| op == *of)) {
        sizes[of] = range;
    }
    ImportedLoad {
        block_size: sizes,
        queue_depth: Some(1),
        jobs: Some(1),
        target: target.filter(|target| !target.is_empty()),
        ..ImportedLoad::default()
    }
}

/// The test of a ping; without a direction its figures are of all operations.
fn test(load: ImportedLoad, op: Option<Op>, figures: ImportedOp, paced: Option<PacedLoad>) -> SourceTest {
    let mut entry = ImportedEntry { name: NAME.to_owned(), jobs: Some(1), paced, ..ImportedEntry::default() };
    match op {
        Some(op) => *entry.op_mut(op) = figures,
        None => entry.total = Some(figures),
    }
    let imported =
        ImportedTest { tool: NAME.to_owned(), load, entries: vec![entry], ..ImportedTest::default() };
    SourceTest { name: NAME.to_owned(), imported, ..SourceTest::default() }
}

const NAME: &str = "ioping";
