//! Counters, latencies and series of one worker in one phase; they merge by addition and are stored unchanged.

use fathom_model::Op;
use serde::{Deserialize, Serialize};

use crate::{
    BatchCounts, DATA_OPS, DepthCounts, Interval, Latency, Moments, OpenLoop, PriorityLatency,
    priority_latency, series,
};
use fathom_model::is_default;

/// One operation of one worker over one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpOutcome {
    /// Requests handed to the engine.
    pub issued: u64,
    /// Requests that completed without error.
    pub ios: u64,
    /// Bytes that completed.
    pub bytes: u64,
    /// Requests that were cut short by the device and continued.
    pub short: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Start to issued.
    #[serde(skip_serializing_if = "is_default")]
    pub slat: Latency,
    /// Issued to completed.
    #[serde(skip_serializing_if = "is_default")]
    pub clat: Latency,
    /// Start to completed.
    #[serde(skip_serializing_if = "is_default")]
    pub lat: Latency,
    /// Bandwidth per full 500 ms window, KiB/s.
    #[serde(skip_serializing_if = "is_default")]
    pub bandwidth_windows: Moments,
    /// IOPS per full 500 ms window.
    #[serde(skip_serializing_if = "is_default")]
    pub iops_windows: Moments,
    /// Response times under a rate; empty without one.
    #[serde(skip_serializing_if = "is_default")]
    pub open_loop: OpenLoop,
    /// Latencies by the priority of the requests; empty if they all have the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<PriorityLatency>,
}

/// CPU time and scheduling counters of one worker, or of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuUsage {
    /// User time, ns.
    pub user_ns: u64,
    /// System time, ns.
    pub system_ns: u64,
    /// Context switches because the thread blocked.
    pub voluntary_switches: u64,
    /// Context switches by preemption.
    pub involuntary_switches: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Time for which the thread could run and waited for a CPU, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub run_queue_wait_ns: u64,
}

impl CpuUsage {
    /// The usage since `earlier`.
    pub fn since(&self, earlier: &CpuUsage) -> CpuUsage {
        CpuUsage {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            run_queue_wait_ns: self.run_queue_wait_ns.saturating_sub(earlier.run_queue_wait_ns),
        }
    }

    /// Adds the usage of another worker.
    pub fn merge(&mut self, other: &CpuUsage) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.major_faults += other.major_faults;
        self.minor_faults += other.minor_faults;
        self.run_queue_wait_ns += other.run_queue_wait_ns;
    }
}

/// Kernel threads that served one worker. The worker's [`CpuUsage`] does not include their CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelThreads {
    /// Most threads seen at once that executed requests which would have blocked the submitter.
    pub workers: u32,
    /// CPU time of these threads, ns.
    pub workers_ns: u64,
    /// CPU time of the kernel thread that submits for the worker, ns; 0 without one.
    pub submitter_ns: u64,
}

impl KernelThreads {
    /// Adds the kernel threads of another worker.
    pub fn merge(&mut self, other: &KernelThreads) {
        self.workers += other.workers;
        self.workers_ns += other.workers_ns;
        self.submitter_ns += other.submitter_ns;
    }
}

/// One phase (ramp or measured) of one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseOutcome {
    /// Start, ns on the session's clock since the start of the run.
    pub start_ns: u64,
    /// End, ns on the session's clock since the start of the run; includes draining requests in flight.
    pub end_ns: u64,
    /// End of the schedule of a rate, after which requests in flight only completed, ns since the start of the run; 0
    /// without a rate.
    #[serde(skip_serializing_if = "is_default")]
    pub schedule_end_ns: u64,
    /// Time of reading back what was written, after the writes, ns; 0 without it.
    #[serde(skip_serializing_if = "is_default")]
    pub read_back_ns: u64,
    /// Reads.
    #[serde(skip_serializing_if = "is_default")]
    pub read: OpOutcome,
    /// Writes.
    #[serde(skip_serializing_if = "is_default")]
    pub write: OpOutcome,
    /// Trims.
    #[serde(skip_serializing_if = "is_default")]
    pub trim: OpOutcome,
    /// fsync and fdatasync: count and latency.
    #[serde(skip_serializing_if = "is_default")]
    pub syncs: u64,
    /// Latency of fsync and fdatasync.
    #[serde(skip_serializing_if = "is_default")]
    pub sync_lat: Latency,
    /// fsync and fdatasync that failed.
    #[serde(skip_serializing_if = "is_default")]
    pub syncs_failed: u64,
    /// Queue depth at which requests were issued, syncs included.
    pub depth: DepthCounts,
    /// Batch sizes of submissions.
    pub submit: BatchCounts,
    /// Batch sizes of completions.
    pub complete: BatchCounts,
    /// CPU usage.
    pub cpu: CpuUsage,
    /// Kernel threads that served the worker.
    #[serde(skip_serializing_if = "is_default")]
    pub kernel_threads: KernelThreads,
    /// Counts per interval, ascending; intervals without completions are included.
    #[serde(skip_serializing_if = "is_default")]
    pub series: Vec<Interval>,
}

impl OpOutcome {
    /// Adds the counts of another worker, or of another operation.
    pub fn merge(&mut self, other: &OpOutcome) {
        self.issued += other.issued;
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.short += other.short;
        self.failed += other.failed;
        self.slat.merge(&other.slat);
        self.clat.merge(&other.clat);
        self.lat.merge(&other.lat);
        self.bandwidth_windows.merge(&other.bandwidth_windows);
        self.iops_windows.merge(&other.iops_windows);
        self.open_loop.merge(&other.open_loop);
        priority_latency::merge(&mut self.priorities, &other.priorities);
    }
}

impl PhaseOutcome {
    /// Read, write, trim.
    pub fn ops(&self) -> [&OpOutcome; DATA_OPS] {
        [&self.read, &self.write, &self.trim]
    }

    /// Read, write, trim, mutable.
    pub fn ops_mut(&mut self) -> [&mut OpOutcome; DATA_OPS] {
        [&mut self.read, &mut self.write, &mut self.trim]
    }

    /// One data operation. Panics for a sync operation.
    pub fn op(&self, op: Op) -> &OpOutcome {
        self.ops()[op as usize]
    }

    /// Length of the phase, ns.
    pub fn elapsed_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Adds the phase of another worker: from the first start to the last end, counters added.
    pub fn merge(&mut self, other: &PhaseOutcome) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.schedule_end_ns = self.schedule_end_ns.max(other.schedule_end_ns);
        self.read_back_ns = self.read_back_ns.max(other.read_back_ns);
        for (mine, theirs) in self.ops_mut().into_iter().zip(other.ops()) {
            mine.merge(theirs);
        }
        self.syncs += other.syncs;
        self.sync_lat.merge(&other.sync_lat);
        self.syncs_failed += other.syncs_failed;
        self.depth.merge(&other.depth);
        self.submit.merge(&other.submit);
        self.complete.merge(&other.complete);
        self.cpu.merge(&other.cpu);
        self.kernel_threads.merge(&other.kernel_threads);
        series::merge(&mut self.series, &other.series);
    }
}
