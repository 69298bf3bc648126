//! One worker of one job: its plan and its outcome.

use fathom_model::plan::OnError;
use fathom_model::{BlockSize, Op, PerOp};
use serde::{Deserialize, Serialize};

use crate::merge::WorkerSums;
use crate::wire::is_default;
use crate::{
    CloneRecord, ErrorCount, LatencyOutcome, PhaseOutcome, PlanRecord, Silences, SlowRequest, Stall,
    SteadyOutcome, VerifyOutcome, WorkerFailure,
};

/// One worker (a clone of a job).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobRecord {
    /// Reported name.
    pub name: String,
    /// Free text shown with the result.
    #[serde(skip_serializing_if = "is_default")]
    pub description: Option<String>,
    /// Reporting group.
    pub group: u32,
    /// Phase of the run it belonged to.
    pub phase: u32,
    /// All workers of the group are reported as one.
    pub group_reporting: bool,
    /// Index of its host in the header.
    #[serde(skip_serializing_if = "is_default")]
    pub host: u32,
    /// Index of the job in the plan.
    pub job: u32,
    /// Clone number within the job, from 0.
    pub clone: u32,
    /// Kernel thread id; 0 in virtual time.
    pub thread_id: u32,
    /// Called a thread, not a process, in fio's wording.
    pub thread_wording: bool,
    /// When it began, ms since the epoch, or of the clock of `job_start_clock_id`; 0 in virtual time.
    pub started_unix_ms: u64,
    /// The global options as given, canonical names, in order.
    #[serde(skip_serializing_if = "is_default")]
    pub global_options: Vec<(String, String)>,
    /// The job's own options as given, canonical names, in order.
    pub options: Vec<(String, String)>,
    /// The plan that all clones of the job share.
    pub plan: PlanRecord,
    /// What this clone has for itself.
    pub worker: CloneRecord,
    /// Why it ended early.
    #[serde(skip_serializing_if = "is_default")]
    pub error: Option<WorkerFailure>,
    /// The check of its data, where there was one.
    #[serde(skip_serializing_if = "is_default")]
    pub verified: Option<VerifyOutcome>,
    /// The steady state that was to end it, where there was one.
    #[serde(skip_serializing_if = "is_default")]
    pub steady: Option<SteadyOutcome>,
    /// The queue depth for a latency, where one was searched for.
    #[serde(skip_serializing_if = "is_default")]
    pub latency: Option<LatencyOutcome>,
    /// It was still inside the kernel when the run was given up.
    #[serde(skip_serializing_if = "is_default")]
    pub stuck: bool,
    /// The ramp, where there was one.
    #[serde(skip_serializing_if = "is_default")]
    pub ramp: Option<PhaseOutcome>,
    /// The measured part.
    pub measured: PhaseOutcome,
    /// Failed requests per operation and errno, over both phases.
    #[serde(skip_serializing_if = "is_default")]
    pub errors: Vec<ErrorCount>,
    /// The slowest requests of the measured part, slowest first.
    #[serde(skip_serializing_if = "is_default")]
    pub slowest: Vec<SlowRequest>,
    /// Times without a completion in the measured part, of each worker by itself.
    #[serde(skip_serializing_if = "is_default")]
    pub silences: Silences,
    /// Times in which nothing completed although requests were in flight, over both phases.
    #[serde(skip_serializing_if = "is_default")]
    pub stalls: Vec<Stall>,
    /// What the workers of several hosts have in sum that were added up in this entry; `None` for a worker of its own.
    #[serde(skip_serializing_if = "is_default")]
    pub workers: Option<Box<WorkerSums>>,
}

impl JobRecord {
    /// The engine.
    pub fn engine(&self) -> &str {
        &self.plan.engine.name
    }

    /// Requests kept in flight.
    pub fn iodepth(&self) -> u32 {
        self.plan.depth.iodepth
    }

    /// fio's word for the pattern (`randrw`).
    pub fn rw(&self) -> &'static str {
        self.plan.io.pattern.name()
    }

    /// Bytes of the largest request of each operation.
    pub fn largest_blocks(&self) -> PerOp<u64> {
        self.plan.io.block_size.as_ref().map(BlockSize::largest)
    }

    /// Bytes of the smallest request of each operation.
    pub fn smallest_blocks(&self) -> PerOp<u64> {
        self.plan.io.block_size.as_ref().map(BlockSize::smallest)
    }

    /// Failed requests did not end the worker.
    pub fn continues_on_error(&self) -> bool {
        let OnError { continue_read, continue_write, continue_verify } = self.plan.on_error;
        continue_read || continue_write || continue_verify
    }

    /// Parts of blocks with wrong data.
    pub fn bad_blocks(&self) -> u64 {
        self.verified.as_ref().map_or(0, |verified| verified.bad)
    }

    /// Requests of `op` are those of an earlier run, counted without being made (`verify_only`).
    pub fn is_of_earlier_run(&self, op: Op) -> bool {
        op == Op::Write && self.plan.io.verify.as_ref().is_some_and(|verify| verify.only)
    }

    /// Time of the measured part in which `op` was issued, ns: what is read back after the writes has its own.
    pub fn runtime_ns(&self, op: Op) -> u64 {
        let (whole, read_back) = (self.measured.elapsed_ns(), self.measured.read_back_ns);
        let io = &self.plan.io;
        let reads_all_along =
            io.pattern.reads() || io.verify.as_ref().is_some_and(|verify| verify.backlog.is_some());
        match op {
            _ if self.is_of_earlier_run(op) => 0,
            _ if read_back == 0 => whole,
            Op::Read if reads_all_along => whole,
            Op::Read => read_back,
            _ => whole.saturating_sub(read_back),
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::plan::{VerifyMethod, VerifyPlan};

    use super::*;

    #[test]
    fn writes_of_an_earlier_run_take_no_time() {
        let mut job = JobRecord::default();
        job.measured.end_ns = 9_000_000;
        job.measured.read_back_ns = 8_000_000;
        job.plan.io.pattern.mix = fathom_model::plan::Mix::Write;
        job.plan.io.verify = Some(VerifyPlan { only: true, ..VerifyPlan::new(VerifyMethod::Crc32c) });
        assert_eq!((job.runtime_ns(Op::Read), job.runtime_ns(Op::Write)), (8_000_000, 0));
        job.plan.io.verify = Some(VerifyPlan::new(VerifyMethod::Crc32c));
        assert_eq!((job.runtime_ns(Op::Read), job.runtime_ns(Op::Write)), (8_000_000, 1_000_000));
    }
}
