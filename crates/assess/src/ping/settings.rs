//! What a ping is asked to do, in plain values: whoever reads a command line fills them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_analysis::ping::Rules;
use fathom_record::{Activity, PingActivity, RunHeader};
use fathom_runner::Session;

use crate::catalogue::VolumeTypes;
use crate::target::absolute;
use crate::{AssessError, enter_conditions};

/// What is asked of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// Reads.
    #[default]
    Read,
    /// Writes.
    Write,
    /// A write and a read in turn.
    Mixed,
}

impl Operation {
    /// True where data is written.
    pub const fn writes(self) -> bool {
        !matches!(self, Operation::Read)
    }

    /// The word used in documents.
    pub const fn word(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Mixed => "mixed",
        }
    }
}

/// What becomes of requests that are late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatePolicy {
    /// The schedule waits: after a late answer the next request is due at once, and those missed are never made.
    #[default]
    Waiting,
    /// The schedule stands: every request is due at its time, and its response time counts from there.
    Fixed,
}

/// What a ping is asked to do. Times in ns, sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PingSettings {
    /// A directory, file or block device.
    pub target: PathBuf,
    /// The volume types that names mean.
    pub types: VolumeTypes,
    /// Read or write.
    pub operation: Operation,
    /// Bytes per request.
    pub size: u64,
    /// Bytes over which requests spread; `None` = all of a file or device, 1 MiB in a directory.
    pub range: Option<u64>,
    /// Where they begin.
    pub offset: u64,
    /// One block after the other instead of in random order.
    pub linear: bool,
    /// O_DIRECT.
    pub direct: bool,
    /// Leave the cache alone: nothing dropped before a read, nothing flushed after a write.
    pub cached: bool,
    /// Drop the whole range from the cache before a read, where otherwise only the block is: large folios outlive that.
    pub drop_all: bool,
    /// O_SYNC.
    pub sync: bool,
    /// O_DSYNC.
    pub dsync: bool,
    /// Fail instead of waiting (RWF_NOWAIT).
    pub nowait: bool,
    /// Poll for the answer.
    pub poll: bool,
    /// Keep `ioping.tmp` in the directory.
    pub keep: bool,
    /// Name of the engine; `None` = the best there is for one request at a time.
    pub engine: Option<String>,
    /// What becomes of late requests.
    pub schedule: LatePolicy,
    /// From one request to the next.
    pub interval_ns: u64,
    /// So many requests at once, then the interval.
    pub burst: u64,
    /// Requests in all; `None` = no end.
    pub count: Option<u64>,
    /// Ends where the next request would be due later; `None` = no end.
    pub work_ns: Option<u64>,
    /// What counts.
    pub rules: Rules,
    /// What random offsets derive from; `None` = a new one each time.
    pub seed: Option<u64>,
    /// Tell of a period after so many requests that count; 0 = never.
    pub print_count: u64,
    /// Tell of a period each time this has passed; 0 = never.
    pub print_interval_ns: u64,
    /// Tell of each request.
    pub each: bool,
    /// Tell how it stands twice a second.
    pub progress: bool,
    /// Find out where requests are answered.
    pub label: bool,
    /// Go on after a failed request.
    pub go_on: bool,
    /// The content of a file may be overwritten, and that of a device where no name is asked for.
    pub destroy: bool,
    /// The content of this very target may be overwritten.
    pub destroy_named: Option<PathBuf>,
    /// A device is overwritten only where it was named.
    pub devices_by_name: bool,
    /// Latency objectives, as they were written.
    pub slo: Vec<String>,
    /// Labels of the run.
    pub labels: BTreeMap<String, String>,
    /// The command line, program name first.
    pub command: Vec<String>,
    /// Enter this machine and the target into the record.
    pub enter_conditions: bool,
}

impl PingSettings {
    /// One read of 4 KiB a second that waits, each of which is told, without end.
    pub fn new() -> PingSettings {
        PingSettings {
            size: 4096,
            interval_ns: 1_000_000_000,
            rules: Rules { warmup: 1, least_ns: 0, most_ns: u64::MAX, timeout_ns: u64::MAX },
            each: true,
            devices_by_name: true,
            ..PingSettings::default()
        }
    }

    /// Bytes over which requests spread, of a target that has `size`.
    pub(super) fn range_within(&self, size: u64) -> Result<u64, AssessError> {
        let too_small = || {
            AssessError::preparation(
                "target is too small for this",
                "use a smaller -S (range) or -o (offset)",
            )
        };
        let range = match self.range {
            Some(range) if self.offset.checked_add(range).is_none_or(|end| end > size) => {
                return Err(too_small());
            }
            Some(range) => range,
            None => size.checked_sub(self.offset).ok_or_else(too_small)?,
        };
        if self.size > range {
            let message = "request size is too big for this target";
            return Err(AssessError::preparation(
                message,
                "use a smaller -s (request) or a larger -S (range)",
            ));
        }
        Ok(range)
    }

    /// That consent is for something that is not the target.
    pub(super) fn other_named(&self, other: &Path) -> AssessError {
        let (path, other) = (self.target.display(), other.display());
        let message = format!("{path} is not the target named by --destroy-data={other}");
        AssessError::usage(message, "use the path of the target, or omit --destroy-data")
    }

    /// The header of the run.
    pub(super) fn header(&self, session: &Session) -> RunHeader {
        let target = if session.is_simulated() { self.target.clone() } else { absolute(&self.target) };
        let mut header = RunHeader {
            command: self.command.clone(),
            activity: Activity::Ping(PingActivity { slo: self.slo.clone() }),
            target: target.display().to_string(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            labels: self.labels.clone(),
            seed: self.seed,
            ..RunHeader::default()
        };
        if self.enter_conditions && !session.is_simulated() {
            enter_conditions(&mut header, Some(&self.target), session.clock_facts());
        }
        header
    }

    /// Writes are made durable before they count as answered.
    pub fn flushes(&self) -> bool {
        self.operation.writes() && !self.cached
    }
}
