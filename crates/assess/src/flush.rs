//! Flushes the target after a test that wrote: what a cache has acknowledged but not written yet would hold up the tests after it,
//! and be taken for the volume's own rate there.

use std::path::Path;

use fathom_model::{Nanos, units};
use fathom_record::{TestRecord, TestStatus};
use fathom_runner::Session;

use crate::target::BenchTarget;

/// A flush that takes longer is worth a word: so much was still to be written.
const WORTH_A_WORD: Nanos = Nanos::from_secs(1);

/// Flushes the targets of `test`, each with the path that its jobs name, where it wrote and they may hold writes back.
pub(crate) fn flush_writes<'a>(
    test: &mut TestRecord,
    targets: impl IntoIterator<Item = (&'a BenchTarget, &'a Path)>,
    session: &Session,
) {
    let has_written = test.jobs.iter().any(|job| job.plan.io.pattern.writes());
    // A target that fails or does not answer may never complete a flush.
    if !has_written || test.status != TestStatus::Complete {
        return;
    }
    for (target, path) in targets {
        let keeps_writes = match target {
            BenchTarget::Simulated(volume) => {
                volume.model.cache.as_ref().is_some_and(|cache| cache.dirty_bytes > 0)
            }
            BenchTarget::Directory { .. } | BenchTarget::File { .. } | BenchTarget::BlockDevice { .. } => {
                true
            }
        };
        if !keeps_writes {
            continue;
        }
        match session.flush(path) {
            Ok(took) if took > WORTH_A_WORD => test.notes.push(format!(
                "flushing its writes took another {}: a cache had acknowledged them before they were written",
                units::duration(took)
            )),
            Ok(_) => {}
            Err(error) => test.notes.push(format!("its writes were not flushed: {error}")),
        }
    }
}
