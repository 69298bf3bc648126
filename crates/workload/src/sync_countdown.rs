//! Number of writes until the next sync is due.

use fathom_model::Op;

/// Counts writes down to the next sync.
#[derive(Clone, Debug)]
pub(crate) struct SyncCountdown {
    /// The sync operation.
    pub(crate) op: Op,
    every: u64,
    left: u64,
}

impl SyncCountdown {
    /// A sync after `every` writes; 0 = never.
    pub(crate) fn new(op: Op, every: u32) -> Self {
        let every = if every == 0 { u64::MAX } else { u64::from(every) };
        SyncCountdown { op, every, left: every }
    }

    /// Counts a write; true if a sync is due after it.
    #[inline(always)]
    pub(crate) fn count(&mut self) -> bool {
        self.left -= 1;
        let due = self.left == 0;
        if due {
            self.left = self.every;
        }
        due
    }
}
