//! `--idle-prof`: how idle the CPUs are during a run.

use fathom_options::{CommandOptions, IdleProfile};
use fathom_report::fio::idleness::CpuIdleness;
use fathom_sys::device::SysRoot;
use fathom_sys::idle::{CpuTimes, unit_work_us};

/// The idle time of the CPUs since some moment.
pub(super) struct IdleWatch {
    kind: IdleProfile,
    since: CpuTimes,
    unit: (f64, f64),
}

impl IdleWatch {
    /// Begins to watch, if the command asks for it.
    pub fn new(command: &CommandOptions) -> Option<IdleWatch> {
        let kind = command.idle_profile?;
        Some(IdleWatch { kind, unit: unit_work_us(), since: CpuTimes::read(&SysRoot::real()) })
    }

    /// Begins anew, because files were laid out until now.
    pub fn restart(&mut self) {
        self.since = CpuTimes::read(&SysRoot::real());
    }

    /// The idle time until now.
    pub fn end(&self) -> CpuIdleness {
        let cpus = CpuTimes::read(&SysRoot::real()).idle_since(&self.since);
        let mean = cpus.iter().map(|(_, idle)| idle).sum::<f64>() / cpus.len().max(1) as f64;
        let is_run = self.kind != IdleProfile::Calibrate;
        CpuIdleness {
            system: Some(mean).filter(|_| is_run),
            cpus: if self.kind == IdleProfile::PerCpu { cpus } else { Vec::new() },
            unit_mean_us: self.unit.0,
            unit_stddev_us: self.unit.1,
        }
    }
}
