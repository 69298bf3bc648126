//! `RunRecord`: the account of one invocation, complete enough to make every report and finding again.
//!
//! Wire types and pure functions on them. Nothing here runs, opens or prints anything; the kernel's facts are copied
//! in by `fathom-assess`; the counts are those of `fathom-stats`, stored as they are.

#![forbid(unsafe_code)]

mod activity;
pub mod conditions;
pub mod confidence;
mod error;
mod expectation;
mod finding;
mod finding_id;
pub mod fleet;
mod flush;
mod history_row;
mod identity;
mod inspection;
mod interleaved;
mod job;
mod made;
pub mod merge;
mod metric;
mod observed;
mod plan;
mod plausible;
mod precision;
mod prepare_stage;
mod published;
mod rounds;
mod run;
mod schedule;
mod shape;
pub mod stability;
mod summary;
mod surface;
mod test;
mod wire;

pub use activity::{
    Activity, ActivityKind, BenchActivity, IdentifyActivity, ImportActivity, ImportFormat, PingActivity,
    PrepareActivity, Recommendation, SimulateActivity, SweepActivity,
};
pub use conditions::{
    CgroupRecord, Conditions, DeviceRecord, DmiRecord, FilesystemRecord, HostRecord, ProviderRecord,
    TargetRecord,
};
pub use error::RecordError;
pub use expectation::{CreditRecord, ExpectationConditions, ExpectationRecord, ShareRecord};
pub use finding::{Finding, Severity};
pub use finding_id::FindingId;
pub use fleet::{
    ClockAgreement, ClockState, CommonWindow, FleetMember, FleetMerger, FleetRecord, FleetTest, HostFinding,
    HostOutcome, LaunchRecord, LeftOutRecord, MergeRefusal, MergeRules, RankNumbers,
};
pub use flush::{FlushRecord, RepeatedRecord};
pub use history_row::{BestFigures, HistoryRow};
pub use identity::TYPE_LABEL;
pub use inspection::{BlockRecord, BurstRecord, InspectionRecord, PassRecord, ShapeRecord};
pub use interleaved::InterleavedRecord;
pub use job::JobRecord;
pub use made::{TestMeta, test_record};
pub use merge::{EntryOp, ReportEntry, Windows, WorkerSums, entries, merge_jobs};
pub use metric::{Comparison, LatencySpan, Metric, MetricDirection, MetricKind, Statistic};
pub use observed::{Observed, forecast, import, load, monitor, ping};
pub use plan::{CloneRecord, PlanRecord};
pub use precision::{PRECISION_LOOKS, PrecisionRecord};
pub use prepare_stage::PrepareStage;
pub use published::{BurstRate, InstanceReach, KnownBy, OwnRates, PublishedRates, RateMatch};
pub use rounds::{RoundsRecord, merge_rounds};
pub use run::{RunHeader, RunRecord, SCHEMA, SCHEMA_VERSION};
pub use schedule::{MissedReason, MissedSlots, RunSchedule, SCHEDULE_LABEL, ScheduledSlot};
pub use stability::{Second, Stability};
pub use summary::{CpuSummary, DeviceSummary, OpSummary, ScheduleSummary, SyncSummary, TestSummary};
pub use surface::{ContentRecord, ScanRecord, SlowBlockRecord, UnreadableRecord};
pub use test::{TestRecord, TestStatus};

pub use fathom_stats::histogram::{
    FIO_BINS as FIO_LATENCY_BINS, bin as latency_bin, lower_edge as latency_bin_lower_edge,
    midpoint as latency_bin_midpoint,
};
pub use fathom_stats::mean as mean_of_samples;
pub use fathom_stats::{
    BadBlock, BatchCounts, CpuUsage, DepthCounts, DeviceTick, DiskCounters, DiskInterval, DiskOutcome,
    ErrorCount, FailedRequest, FailureCause, Histogram, HostCounters, HostInterval, Interval, IntervalOp,
    KernelThreads, Latency, LatencyClasses, LatencyOutcome, LatencySummary, LoggedIo, Moments, OpOutcome,
    OpenLoop, PhaseOutcome, PriorityLatency, Silence, Silences, SlowRequest, Snapshot, Stall, SteadyOutcome,
    ThinPercentiles, VerifyOutcome, WorkerFailure,
};
