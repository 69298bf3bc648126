//! `RunRecord`: the account of one invocation, complete enough to make every report and finding again.
//!
//! Wire types and pure functions on them. Nothing here runs, opens or prints anything; the kernel's facts are copied
//! in by `fathom-assess`, the counters by [`from_stats`].

#![forbid(unsafe_code)]

mod activity;
pub mod conditions;
mod disk;
mod error;
mod expectation;
mod finding;
mod finding_id;
pub mod from_stats;
mod history_row;
mod host_load;
mod job;
mod latency;
pub mod merge;
mod phase;
mod plan;
mod plausible;
mod prepare_stage;
mod rounds;
mod run;
mod series;
pub mod stability;
mod summary;
mod surface;
mod test;
mod to_stats;
mod wire;

pub use activity::{Activity, ActivityKind, BenchActivity, IdentifyActivity, PrepareActivity, SweepActivity};
pub use conditions::{
    CgroupRecord, Conditions, DeviceRecord, DmiRecord, FilesystemRecord, HostRecord, ProviderRecord,
    TargetRecord,
};
pub use disk::{DiskCountersRecord, DiskIntervalRecord, DiskRecord};
pub use error::RecordError;
pub use expectation::{CreditRecord, ExpectationConditions, ExpectationRecord, ShareRecord};
pub use finding::{Finding, Severity};
pub use finding_id::FindingId;
pub use from_stats::{TestMeta, test_record};
pub use history_row::HistoryRow;
pub use host_load::HostIntervalRecord;
pub use job::{
    BlockSizes, ErrorCountRecord, FailureRecord, JobRecord, PercentileRecord, SlowRecord, StallRecord,
};
pub use latency::{LatencyClasses, LatencySummary, ThinPercentiles};
pub use merge::{EntryOp, ReportEntry, Windows, entries, merge_jobs};
pub use phase::{
    BatchRecord, CpuRecord, DepthRecord, KernelThreadsRecord, LatencyRecord, MomentsRecord, OpRecord,
    OpenLoopRecord, PhaseRecord,
};
pub use plan::{CloneRecord, PlanRecord};
pub use prepare_stage::PrepareStage;
pub use rounds::{RoundsRecord, merge_rounds};
pub use run::{RunHeader, RunRecord, SCHEMA, SCHEMA_VERSION};
pub use series::{IntervalOpRecord, IntervalRecord};
pub use stability::{Second, Stability};
pub use summary::{CpuSummary, DeviceSummary, OpSummary, ScheduleSummary, SyncSummary, TestSummary};
pub use surface::{ContentRecord, ScanRecord, SlowBlockRecord, UnreadableRecord};
pub use test::{NeedRecord, TestRecord, TestStatus};
