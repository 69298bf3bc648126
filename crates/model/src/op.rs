//! Operations and requests, the input of an engine.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One kind of request. `Sync` stands for fsync, `Datasync` for fdatasync; neither moves data. The default is fio's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Op {
    /// Read data from the target.
    #[default]
    Read = 0,
    /// Write data to the target.
    Write = 1,
    /// Discard a range (BLKDISCARD on devices, a punched hole in files).
    Trim = 2,
    /// fsync.
    Sync = 3,
    /// fdatasync.
    Datasync = 4,
}

impl Op {
    /// Number of kinds.
    pub const COUNT: usize = 5;

    /// The operations that address a range of the target, in the order reports show them.
    pub const DATA: [Op; 3] = [Op::Read, Op::Write, Op::Trim];

    /// True for fsync and fdatasync, which address no range.
    pub const fn is_sync(self) -> bool {
        matches!(self, Op::Sync | Op::Datasync)
    }

    /// Lower-case name as used in reports and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Sync => "sync",
            Op::Datasync => "datasync",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One request: an operation on `offset..offset + len` of the job's `file`-th open file. Bytes throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operation.
    pub op: Op,
    /// Index into the worker's open files.
    pub file: u32,
    /// Length in bytes; 0 for sync operations.
    pub len: u32,
    /// Offset in bytes from the start of the file or device.
    pub offset: u64,
}
