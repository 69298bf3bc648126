//! The specification of a worker, and its results.

use std::collections::BTreeMap;
use std::sync::Arc;

use fathom_engine::{EngineEntry, EngineSetup};
use fathom_model::Op;
use fathom_model::plan::{
    DepthPlan, EndPlan, FileUsage, IoPriority, Mix, OnError, Payload, RecordedLoad, ThreadPlan, TimePlan,
    VerifyPlan,
};
use fathom_stats::live::{LiveWorker, Recorded};
use fathom_stats::{CpuUsage, DATA_OPS, LatencyOutcome, Silences, SlowRequest, VerifyOutcome, WorkerFailure};
use fathom_workload::{Rng, SourcePlan};

use crate::exits::ExitRule;
use crate::feed::FlowShare;
use crate::logging::LogPort;
use crate::schedule::RampEnd;

/// The specification of a worker. Plain data, so that it can be built on one thread and run on another.
pub(crate) struct WorkerSpec {
    pub job: usize,
    pub clone: usize,
    pub name: String,
    pub entry: &'static EngineEntry,
    pub setup: EngineSetup,
    pub source: SourcePlan,
    pub payload: Payload,
    pub verify: Option<VerifySpec>,
    pub depth: DepthPlan,
    /// Its files are opened with O_SYNC or O_DSYNC.
    pub writes_through: bool,
    pub time: TimePlan,
    /// Requests that overlap wait for each other.
    pub serialize_overlap: bool,
    pub on_error: OnError,
    pub cpus: Vec<usize>,
    pub recorded: Recorded,
    /// Latencies by priority are total latencies.
    pub priorities_are_of_lat: bool,
    pub used: [bool; DATA_OPS],
    /// Drop the files' cached pages before the start.
    pub invalidate: bool,
    pub end_fsync: bool,
    /// The way to the log of the run, if completed requests are logged.
    pub log: Option<LogPort>,
    /// The same for issued requests.
    pub issue_log: Option<LogPort>,
    /// The requests, if they were recorded.
    pub replay: Option<ReplaySpec>,
    pub exit: ExitRule,
    pub threads: ThreadPlan,
    pub usage: FileUsage,
    /// Errors after which the worker continues, and what ends it early.
    pub end: EndPlan,
    /// Time in which the CPU is busy after each request, ns.
    pub cycles_ns: u64,
    /// Its part in a flow.
    pub flow: Option<FlowShare>,
}

/// The recorded requests of a worker.
#[derive(Clone)]
pub(crate) struct ReplaySpec {
    pub recorded: Arc<RecordedLoad>,
    /// Requests are issued at their times.
    pub keeps_times: bool,
}

/// The check of the data of a worker.
pub(crate) struct VerifySpec {
    pub plan: VerifyPlan,
    /// The path of each file.
    pub names: Vec<String>,
    /// Passes, after each of which blocks are read back; `None` = one that ends with the runtime.
    pub passes: Option<u32>,
    /// Other workers of the run write to the same files, or the worker names a file twice.
    pub shares_files: bool,
    /// Number of the worker in the run, from 1.
    pub worker: u16,
    /// Name of the job, and number of the worker, over all jobs of the run.
    pub job: (String, u64),
    /// Writes to check; `None` = all.
    pub limit: Option<u64>,
}

impl WorkerSpec {
    /// Whether the job issues requests of `op`.
    pub fn mixes(&self, op: Op) -> bool {
        match (self.source.pattern.mix, op) {
            (Mix::ReadWrite { read_percent }, Op::Read) => read_percent > 0,
            (Mix::ReadWrite { read_percent }, Op::Write) => read_percent < 100,
            _ => false,
        }
    }

    /// The operations that the job issues, without the reads that read back what it wrote.
    pub fn issued(&self) -> [bool; DATA_OPS] {
        let pattern = self.source.pattern;
        let reads_back_alone = self.verify.is_some() && pattern.writes() && !pattern.reads();
        let [read, write, trim] = self.used;
        [read && !reads_back_alone, write, trim]
    }

    /// Whether a block may be written more than once before it is read back, so that writes are told apart by their
    /// numbers, and not by passes.
    pub fn numbers_writes(&self) -> bool {
        let Some(verify) = &self.verify else { return false };
        let is_mixed = matches!(self.source.pattern.mix, Mix::ReadWrite { .. });
        self.source.pattern.random && !self.source.random_map
            || verify.passes.is_none()
            || verify.plan.trims.is_some()
            || verify.shares_files
            || is_mixed && (self.recorded.scheduled || self.source.tiles_anew())
    }

    /// The counters of this worker.
    pub fn live(&self) -> Arc<LiveWorker> {
        let live = LiveWorker::new(self.recorded, self.used, self.ramp_end() != RampEnd::None);
        Arc::new(match self.records_priorities() {
            true => live.with_priorities(&Op::DATA.map(|op| self.priorities_of(op))),
            false => live,
        })
    }

    /// The priority of the requests that have none of their own.
    pub fn job_priority(&self) -> u16 {
        self.threads.io_priority.map_or(0, IoPriority::value)
    }

    /// Whether latencies are recorded by priority: completion latencies, or total ones where their percentiles are reported.
    pub fn records_priorities(&self) -> bool {
        !self.threads.request_priorities.is_empty()
            && if self.priorities_are_of_lat { self.recorded.lat } else { self.recorded.clat }
    }

    fn priorities_of(&self, op: Op) -> Vec<u16> {
        self.threads.request_priorities.values(op, self.job_priority())
    }

    /// What ends the ramp.
    pub fn ramp_end(&self) -> RampEnd {
        match () {
            () if self.end.latency_target.target.0 > 0 && !self.end.latency_target.run => RampEnd::Search,
            () if self.time.ramp_bytes > 0 => RampEnd::Bytes,
            () if self.time.ramp.0 > 0 => RampEnd::Time,
            () => RampEnd::None,
        }
    }

    /// Whether it issues requests from the start of its phase.
    pub fn starts_at_once(&self) -> bool {
        self.threads.wait_for.is_none() && self.start_delay_ns() == 0
    }

    /// Delay before the first request, ns, drawn uniformly from the planned range by the worker's seed.
    pub fn start_delay_ns(&self) -> u64 {
        let (low, high) = self.time.start_delay;
        let span = high.0.saturating_sub(low.0);
        low.0 + if span == 0 { 0 } else { Rng::stream(self.source.seed, 3).below(span.saturating_add(1)) }
    }
}

/// The results of a worker besides its counters.
#[derive(Clone, Default)]
pub(crate) struct WorkerEnd {
    pub errors: BTreeMap<(Op, i32), u64>,
    pub slowest: Vec<SlowRequest>,
    pub silences: Silences,
    pub failure: Option<WorkerFailure>,
    pub verified: Option<VerifyOutcome>,
    pub latency: Option<LatencyOutcome>,
    pub usage_of_ramp: CpuUsage,
    pub usage: CpuUsage,
}
