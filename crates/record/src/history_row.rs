//! One line of the list of past runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ActivityKind, TestStatus};

/// A past run as the history lists it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryRow {
    /// Number in the history.
    pub id: u64,
    /// Start, RFC 3339 with an offset; empty for simulated runs.
    pub started: String,
    /// Start, ms since the epoch; 0 for simulated runs.
    pub started_unix_ms: u64,
    /// When it was stored, ms since the epoch, which also dates simulated runs; 0 where that is unknown.
    pub stored_unix_ms: u64,
    /// The target as the user named it.
    pub target: String,
    /// The command that made it.
    pub kind: ActivityKind,
    /// The command line, one string.
    pub command: String,
    /// How it ended; a run that was killed stays `incomplete`.
    pub status: TestStatus,
    /// Number of finished tests in it.
    pub tests: u64,
    /// Best figures of its tests.
    pub best: BestFigures,
    /// The result of its expectations or objectives; `None` where nothing was checked, or the run did not come to its end.
    pub verdict: Option<String>,
    /// Number of findings.
    pub findings: u64,
    /// Host it ran on.
    pub hostname: String,
    /// The device that it measured, by a name that is the same in other runs.
    pub device: String,
    /// The type of the volume, where it is known.
    pub volume_type: Option<String>,
    /// The tags that the user gave it, sorted.
    pub tags: Vec<String>,
    /// The notes that the user made on it, oldest first.
    pub notes: Vec<String>,
    /// The labels of the user.
    pub labels: BTreeMap<String, String>,
    /// Version of the program that made it.
    pub tool_version: String,
}

/// The best figures of a run over its tests; `None` where no test has such a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BestFigures {
    /// Highest rate of reads.
    pub read_iops: Option<f64>,
    /// Highest rate of writes.
    pub write_iops: Option<f64>,
    /// Highest bandwidth.
    pub bytes_per_second: Option<f64>,
    /// Lowest median latency, ns.
    pub lat_p50_ns: Option<f64>,
}

impl HistoryRow {
    /// When it ran, ms since the epoch; of a simulated run when it was stored, and 0 where that is unknown.
    pub const fn dated_unix_ms(&self) -> u64 {
        if self.started_unix_ms > 0 { self.started_unix_ms } else { self.stored_unix_ms }
    }
}
