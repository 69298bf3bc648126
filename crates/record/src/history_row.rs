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
    /// Host it ran on.
    pub hostname: String,
    /// The labels of the user.
    pub labels: BTreeMap<String, String>,
    /// Version of the program that made it.
    pub tool_version: String,
}
