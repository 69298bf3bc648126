//! One test of a run: the jobs that ran together, and the kernel's view of them.

use serde::{Deserialize, Serialize};

use crate::wire::is_default;
use crate::{
    ContentRecord, DiskOutcome, FleetTest, FlushRecord, HostInterval, JobRecord, Observed, PRECISION_LOOKS,
    PrecisionRecord, PublishedRates, RecordError, RoundsRecord, ScanRecord,
};

/// How a test or a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TestStatus {
    /// As planned.
    Complete,
    /// Broken off; what is there was measured.
    #[default]
    Incomplete,
    /// A worker failed; what is there was measured before.
    Failed,
    /// Not run.
    Skipped,
}

impl TestStatus {
    /// The word used in JSON and tables.
    pub const fn name(self) -> &'static str {
        match self {
            TestStatus::Complete => "complete",
            TestStatus::Incomplete => "incomplete",
            TestStatus::Failed => "failed",
            TestStatus::Skipped => "skipped",
        }
    }
}

impl TestRecord {
    /// Reads a test of a record of this version.
    ///
    /// # Errors
    /// The text is not a test.
    pub fn from_json(text: &str) -> Result<TestRecord, RecordError> {
        serde_json::from_str(text).map_err(RecordError::Malformed)
    }
}

/// One test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestRecord {
    /// Name of the test, unique within the run (`rand-read`).
    pub id: String,
    /// The same for people (`random read`).
    pub title: String,
    /// How it ended.
    pub status: TestStatus,
    /// Why it was skipped, failed or interrupted.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: Option<String>,
    /// The fio command line that does the same.
    pub fio: String,
    /// Wall clock at the start, ms since the epoch; 0 in virtual time.
    pub started_unix_ms: u64,
    /// From the start gate to the end of the last worker, ns; 0 without jobs.
    pub elapsed_ns: u64,
    /// One entry per worker, in plan order.
    pub jobs: Vec<JobRecord>,
    /// The devices under the target, uppermost first.
    #[serde(skip_serializing_if = "is_default")]
    pub disks: Vec<DiskOutcome>,
    /// What the machine did over the measured part, interval by interval.
    #[serde(skip_serializing_if = "is_default")]
    pub host_load: Vec<HostInterval>,
    /// The rounds it was repeated in, where it was.
    #[serde(skip_serializing_if = "is_default")]
    pub rounds: Option<RoundsRecord>,
    /// The precision that was to end it, where one was.
    #[serde(skip_serializing_if = "is_default")]
    pub precision: Option<PrecisionRecord>,
    /// The flushes after it, if it wrote.
    #[serde(skip_serializing_if = "is_default")]
    pub flush: Option<FlushRecord>,
    /// What was found at the place of a surface's point, where it was looked at.
    #[serde(skip_serializing_if = "is_default")]
    pub content: Option<ContentRecord>,
    /// What a scan found in the range of this test.
    #[serde(skip_serializing_if = "is_default")]
    pub scan: Option<ScanRecord>,
    /// The results of a command that runs no jobs of fio.
    #[serde(skip_serializing_if = "is_default")]
    pub observed: Option<Observed>,
    /// What providers publish of the rate it reached; `None` where that was not looked up.
    #[serde(skip_serializing_if = "is_default")]
    pub published: Option<PublishedRates>,
    /// What each host did, where the records of several were merged.
    #[serde(skip_serializing_if = "is_default")]
    pub fleet: Option<FleetTest>,
    /// Things a reader should know, in order.
    #[serde(skip_serializing_if = "is_default")]
    pub notes: Vec<String>,
    /// The signal or other reason that ended it before its time.
    #[serde(skip_serializing_if = "is_default")]
    pub interrupted: Option<String>,
}

impl TestRecord {
    /// Intervals of its rate of which each might have ended it.
    pub fn looks(&self) -> u32 {
        if self.precision.is_some() { PRECISION_LOOKS } else { 1 }
    }
}
