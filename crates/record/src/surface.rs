//! What `surface` found at a place beside its rate: whether anything was ever written there, and what could not be read.

use serde::{Deserialize, Serialize};

use crate::wire::is_default;

/// What was found where a test read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContentRecord {
    /// Bytes whose content was looked at.
    pub looked_bytes: u64,
    /// Those of them that are zero in whole blocks.
    pub zero_bytes: u64,
    /// All that was read is a hole of the file: never written, and read from no device.
    #[serde(skip_serializing_if = "is_default")]
    pub is_hole: bool,
}

/// What a scan found in the range of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScanRecord {
    /// Ranges that cannot be read, ascending.
    #[serde(skip_serializing_if = "is_default")]
    pub unreadable: Vec<UnreadableRecord>,
    /// Bytes that were read beside the jobs of the test, to look closer at what they could not read.
    #[serde(skip_serializing_if = "is_default")]
    pub closer_bytes: u64,
    /// Blocks that took much longer than the others, and how long they took once more.
    #[serde(skip_serializing_if = "is_default")]
    pub slow: Vec<SlowBlockRecord>,
}

/// A range that cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnreadableRecord {
    /// Where it begins, bytes.
    pub offset_bytes: u64,
    /// Its length, bytes.
    pub length_bytes: u64,
    /// Positive errno.
    pub errno: i32,
    /// Every sector of it was tried by itself.
    pub is_exact: bool,
}

/// A block that took much longer than the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowBlockRecord {
    /// Where it begins, bytes.
    pub offset_bytes: u64,
    /// Its length, bytes.
    pub length_bytes: u64,
    /// How long it took, ns.
    pub lat_ns: u64,
    /// How long it took at the end of the scan, ns; `None` where that was not tried or failed.
    pub repeated_lat_ns: Option<u64>,
}
