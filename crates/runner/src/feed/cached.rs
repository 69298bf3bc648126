//! What a pass leaves in the page cache is dropped before the next one reads it.

use std::fs::File;
use std::sync::Arc;

use fathom_sys::io::fadvise_dontneed;
use fathom_workload::{Extent, Source};

use crate::worker::WorkerSpec;

/// The files of a worker whose requests go through the page cache, if it is to be dropped (`invalidate`).
pub(super) struct CachedPasses {
    /// Each with the range that the worker uses.
    files: Vec<(Arc<File>, Extent)>,
    /// Passes for which it was dropped.
    dropped: u64,
}

impl CachedPasses {
    /// `None` where nothing is to be dropped.
    pub fn new(spec: &WorkerSpec) -> Option<Box<CachedPasses>> {
        let used = spec.setup.files.iter().zip(&spec.source.extents);
        let files: Vec<_> =
            used.filter_map(|(open, extent)| Some((Arc::clone(open.file.as_ref()?), *extent))).collect();
        let drops = spec.invalidate && !spec.usage.pre_read && !spec.setup.direct && !files.is_empty();
        drops.then(|| Box::new(CachedPasses { files, dropped: 0 }))
    }

    /// Drops the cached pages if `source` has ended a pass since this was last asked. Requests of one draw belong to both
    /// passes: those of the earlier one stay in the cache.
    pub fn drop_ended(&mut self, source: &Source) {
        if source.passes() != self.dropped {
            self.dropped = source.passes();
            // Advice only, and without effect on targets without a page cache.
            for (file, extent) in &self.files {
                let _ = fadvise_dontneed(file, extent.offset, extent.len);
            }
        }
    }
}
