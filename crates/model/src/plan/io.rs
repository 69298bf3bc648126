//! The I/O of a job: operations, sizes, offsets and payload.

use serde::{Deserialize, Serialize};

use super::{AccessPlan, FillPattern, VerifyPlan};
use crate::{BlockSize, PerOp, is_default};

/// Operations and their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pattern {
    /// Operations of the job.
    pub mix: Mix,
    /// Random or sequential offsets.
    pub random: bool,
}

/// The operations of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// Reads only.
    #[default]
    Read,
    /// Writes only.
    Write,
    /// Trims only.
    Trim,
    /// Reads and writes; the share of reads is in percent.
    ReadWrite {
        /// 0 to 100.
        #[serde(rename = "rwmixread")]
        read_percent: u8,
    },
    /// Each range is trimmed, then written.
    TrimWrite,
    /// Reads, writes and trims of a recording.
    ReadWriteTrim,
}

impl Pattern {
    /// True where the job writes or trims.
    pub fn modifies(self) -> bool {
        self.mix != Mix::Read
    }

    /// True where the job reads.
    pub fn reads(self) -> bool {
        matches!(self.mix, Mix::Read | Mix::ReadWrite { .. } | Mix::ReadWriteTrim)
    }

    /// True where the job writes data.
    pub fn writes(self) -> bool {
        !matches!(self.mix, Mix::Read | Mix::Trim)
    }

    /// True where the job trims.
    pub fn trims(self) -> bool {
        matches!(self.mix, Mix::Trim | Mix::TrimWrite | Mix::ReadWriteTrim)
    }

    /// The pattern of fio's `rw` value `name`; mixed patterns have 50 % reads.
    pub fn named(name: &str) -> Option<Pattern> {
        let mixes = [Mix::Read, Mix::Write, Mix::Trim, Mix::ReadWrite { read_percent: 50 }, Mix::TrimWrite];
        let patterns = mixes.into_iter().flat_map(|mix| [false, true].map(|random| Pattern { mix, random }));
        patterns.into_iter().find(|pattern| pattern.name() == name)
    }

    /// fio's `rw` value for the pattern.
    pub fn name(self) -> &'static str {
        match (self.random, self.mix) {
            (false, Mix::Read) => "read",
            (false, Mix::Write) => "write",
            (false, Mix::Trim) => "trim",
            (false, Mix::ReadWrite { .. } | Mix::ReadWriteTrim) => "rw",
            (false, Mix::TrimWrite) => "trimwrite",
            (true, Mix::Read) => "randread",
            (true, Mix::Write) => "randwrite",
            (true, Mix::Trim) => "randtrim",
            (true, Mix::ReadWrite { .. } | Mix::ReadWriteTrim) => "randrw",
            (true, Mix::TrimWrite) => "randtrimwrite",
        }
    }
}

/// A size that may depend on the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SizeSpec {
    /// Bytes.
    Bytes(u64),
    /// A share of the file or device, 1 to 100.
    Percent(u8),
}

impl Default for SizeSpec {
    fn default() -> Self {
        SizeSpec::Bytes(0)
    }
}

impl SizeSpec {
    /// The bytes, if the size does not depend on the target.
    pub fn bytes(self) -> Option<u64> {
        match self {
            SizeSpec::Bytes(bytes) => Some(bytes),
            SizeSpec::Percent(_) => None,
        }
    }
}

/// Operations, offsets and data of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IoPlan {
    /// Operations and order.
    pub pattern: Pattern,
    /// Bytes per request.
    #[serde(rename = "bs")]
    pub block_size: PerOp<BlockSize>,
    /// Bytes of the target to use, over all files; `None` = all of it.
    pub size: Option<SizeSpec>,
    /// Bytes to move per loop; `None` = once over `size`.
    pub io_size: Option<SizeSpec>,
    /// Size of each file, or the least of sizes that are drawn, if it differs from `size` divided by the number of files.
    #[serde(rename = "filesize")]
    pub file_size: Option<u64>,
    /// The largest of sizes that are drawn.
    #[serde(rename = "filesize_most", default, skip_serializing_if = "Option::is_none")]
    pub file_size_most: Option<u64>,
    /// Start of the range to use.
    pub offset: SizeSpec,
    /// An offset in percent is a multiple of this; 0 = of the smallest block.
    #[serde(skip_serializing_if = "is_default")]
    pub offset_align: u64,
    /// Added to `offset` once per clone index.
    pub offset_increment: SizeSpec,
    /// Access every block once per pass; false = draw each offset independently (`norandommap`).
    pub random_map: bool,
    /// Deviations from sequential or uniformly random access.
    #[serde(skip_serializing_if = "AccessPlan::is_uniform")]
    pub access: AccessPlan,
    /// Requests that overlap one in flight, of which one writes, wait for it.
    #[serde(skip_serializing_if = "is_default")]
    pub serialize_overlap: bool,
    /// Repetitions of the whole job.
    pub loops: u32,
    /// fsync after this many writes; 0 = never.
    #[serde(rename = "fsync")]
    pub fsync_every: u32,
    /// fdatasync after this many writes; 0 = never.
    #[serde(rename = "fdatasync")]
    pub fdatasync_every: u32,
    /// fsync every file after the last write.
    pub end_fsync: bool,
    /// O_SYNC or O_DSYNC on open.
    #[serde(rename = "sync")]
    pub open_sync: OpenSync,
    /// O_DIRECT.
    pub direct: bool,
    /// Drop the page cache of the range before the start.
    pub invalidate: bool,
    /// Contents of writes.
    pub payload: Payload,
    /// The check of data that is read back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifyPlan>,
}

impl Default for IoPlan {
    fn default() -> Self {
        IoPlan {
            pattern: Pattern::default(),
            block_size: PerOp::default(),
            size: None,
            io_size: None,
            file_size: None,
            file_size_most: None,
            offset: SizeSpec::default(),
            offset_align: 0,
            offset_increment: SizeSpec::default(),
            random_map: true,
            access: AccessPlan::default(),
            serialize_overlap: false,
            loops: 1,
            fsync_every: 0,
            fdatasync_every: 0,
            end_fsync: false,
            open_sync: OpenSync::None,
            direct: false,
            invalidate: true,
            payload: Payload::Stamped,
            verify: None,
        }
    }
}

impl IoPlan {
    /// True where the job writes or trims: what it only checks is not changed.
    pub fn modifies(&self) -> bool {
        self.pattern.modifies() && !self.verify.as_ref().is_some_and(|verify| verify.only)
    }

    /// Writes after which the job waits until they are on the medium; `None` = it does not.
    pub fn synced_after(&self) -> Option<u32> {
        let through = (self.open_sync != OpenSync::None).then_some(1);
        let synced = [self.fsync_every, self.fdatasync_every].into_iter().filter(|&writes| writes > 0);
        synced.chain(through).min()
    }
}

/// The sync mode that files are opened with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OpenSync {
    /// Neither flag.
    #[default]
    None,
    /// O_SYNC.
    Sync,
    /// O_DSYNC.
    Dsync,
}

/// Contents of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// Incompressible data prepared once, stamped per block so that no two blocks are equal.
    #[default]
    Stamped,
    /// The same prepared data, not stamped (`scramble_buffers=0`).
    Fixed,
    /// Fresh random data for every write.
    Refill,
    /// Zeroes.
    Zero,
    /// The same pattern in every write.
    Pattern(FillPattern),
    /// Data of a given compressibility, or of which a share repeats.
    Shaped(ShapedPayload),
}

/// Random data of which a part can be compressed or deduplicated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShapedPayload {
    /// The compressible part.
    pub compressible: Option<Compressible>,
    /// The repeating part.
    pub dedupe: Option<Dedupe>,
}

/// The part of each chunk that compresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compressible {
    /// Share of each chunk, 1 to 100.
    pub percent: u8,
    /// Bytes of a chunk; never 0.
    pub chunk: u32,
    /// Fills the compressible part; `None` = zeroes.
    pub pattern: Option<FillPattern>,
}

/// Writes that repeat earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dedupe {
    /// Share of the writes that repeat, 1 to 100.
    pub percent: u8,
    /// What they repeat.
    pub mode: DedupeMode,
}

/// What a repeating write repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DedupeMode {
    /// The write before it.
    #[default]
    Repeat,
    /// One of a fixed set of blocks.
    WorkingSet {
        /// Size of the set in percent of the range that the job uses.
        percent: u8,
        /// All clones and jobs use the same set.
        is_global: bool,
    },
}
