//! What a pass leaves in the page cache is dropped before the next one reads it.

use std::fs::File;
use std::sync::Arc;

use fathom_sys::io::fadvise_dontneed;
use fathom_workload::Source;

use crate::worker::WorkerSpec;

/// The files of a worker whose requests go through the page cache, if it is to be dropped (`invalidate`).
pub(super) struct CachedPasses {
    files: Vec<Arc<File>>,
    /// Passes for which it was dropped.
    dropped: u64,
}

impl CachedPasses {
    /// `None` where nothing is to be dropped.
    pub fn new(spec: &WorkerSpec) -> Option<Box<CachedPasses>> {
        let files: Vec<Arc<File>> = spec.setup.files.iter().filter_map(|open| open.file.clone()).collect();
        let drops = spec.invalidate && !spec.usage.pre_read && !spec.setup.direct && !files.is_empty();
        drops.then(|| Box::new(CachedPasses { files, dropped: 0 }))
    }

    /// Drops the cached pages if `source` has ended a pass since this was last asked. Requests of one draw belong to both
    /// passes: those of the earlier one stay in the cache.
    pub fn drop_ended(&mut self, source: &Source) {
        if source.passes() != self.dropped {
            self.dropped = source.passes();
            // Advice only, and without effect on targets without a page cache.
            self.files.iter().for_each(|file| _ = fadvise_dontneed(file, 0, 0));
        }
    }
}
