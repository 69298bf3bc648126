//! CPU time of a worker, phase by phase.

use fathom_stats::CpuUsage;

/// What a worker's thread has used, read where a phase begins and ends.
#[derive(Debug)]
pub(crate) struct Usage {
    read: fn() -> CpuUsage,
    /// The reading at which the phase began.
    since: CpuUsage,
    ramp: CpuUsage,
}

impl Usage {
    /// An account that is kept by `read`.
    pub fn new(read: fn() -> CpuUsage) -> Self {
        Usage { read, since: CpuUsage::default(), ramp: CpuUsage::default() }
    }

    /// The first phase begins: what was used before belongs to none.
    pub fn begin(&mut self) {
        self.since = (self.read)();
    }

    /// The ramp ends, and the measured part begins.
    pub fn end_ramp(&mut self) {
        let now = (self.read)();
        self.ramp = now.since(&self.since);
        self.since = now;
    }

    /// What was used in the ramp, where it has ended, and since the phase began.
    pub fn end(&self) -> (CpuUsage, CpuUsage) {
        (self.ramp, (self.read)().since(&self.since))
    }
}
