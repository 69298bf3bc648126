//! CPU time of a worker per phase.

use fathom_stats::CpuUsage;

/// CPU usage of a worker's thread, read at the start and end of a phase.
#[derive(Debug)]
pub(crate) struct Usage {
    read: fn() -> CpuUsage,
    /// The reading at which the phase began.
    since: CpuUsage,
    ramp: CpuUsage,
}

impl Usage {
    /// Usage that `read` returns.
    pub fn new(read: fn() -> CpuUsage) -> Self {
        Usage { read, since: CpuUsage::default(), ramp: CpuUsage::default() }
    }

    /// Begins the first phase; earlier usage is excluded.
    pub fn begin(&mut self) {
        self.since = (self.read)();
    }

    /// The ramp ends, and the measured part begins.
    pub fn end_ramp(&mut self) {
        let now = (self.read)();
        self.ramp = now.since(&self.since);
        self.since = now;
    }

    /// The usage of the ramp, if it has ended, and since the phase began.
    pub fn end(&self) -> (CpuUsage, CpuUsage) {
        (self.ramp, (self.read)().since(&self.since))
    }
}
