//! The check of data that a job reads back, and patterns that fill its writes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Bytes of the header of a block, without the checksum of its data.
pub const VERIFY_HEADER_LEN: usize = 40;

/// How the data of a block is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerifyMethod {
    /// Header with the MD5 of the data.
    Md5,
    /// Header with a CRC-7.
    Crc7,
    /// Header with a CRC-16.
    Crc16,
    /// Header with a CRC-32.
    Crc32,
    /// Header with a CRC-32C.
    Crc32c,
    /// Header with a CRC-64.
    Crc64,
    /// Header with the 32-bit xxHash.
    Xxhash,
    /// Header with the SHA-1.
    Sha1,
    /// Header with fio's form of SHA-256.
    Sha256,
    /// Header with fio's form of SHA-512.
    Sha512,
    /// Header with the SHA3-224.
    #[serde(rename = "sha3-224")]
    Sha3With224,
    /// Header with the SHA3-256.
    #[serde(rename = "sha3-256")]
    Sha3With256,
    /// Header with the SHA3-384.
    #[serde(rename = "sha3-384")]
    Sha3With384,
    /// Header with the SHA3-512.
    #[serde(rename = "sha3-512")]
    Sha3With512,
    /// Header alone, and the pattern if there is one.
    Meta,
    /// The pattern in the whole block, without a header.
    Pattern,
    /// Header, and the pattern after it.
    #[serde(rename = "pattern_hdr")]
    PatternHeader,
    /// Data is read back and not checked.
    Null,
}

impl VerifyMethod {
    /// All methods by fio's names.
    pub const NAMED: [(&'static str, VerifyMethod); 19] = [
        ("md5", VerifyMethod::Md5),
        ("crc7", VerifyMethod::Crc7),
        ("crc16", VerifyMethod::Crc16),
        ("crc32", VerifyMethod::Crc32),
        ("crc32c", VerifyMethod::Crc32c),
        ("crc32c-intel", VerifyMethod::Crc32c),
        ("crc64", VerifyMethod::Crc64),
        ("xxhash", VerifyMethod::Xxhash),
        ("sha1", VerifyMethod::Sha1),
        ("sha256", VerifyMethod::Sha256),
        ("sha512", VerifyMethod::Sha512),
        ("sha3-224", VerifyMethod::Sha3With224),
        ("sha3-256", VerifyMethod::Sha3With256),
        ("sha3-384", VerifyMethod::Sha3With384),
        ("sha3-512", VerifyMethod::Sha3With512),
        ("meta", VerifyMethod::Meta),
        ("pattern", VerifyMethod::Pattern),
        ("pattern_hdr", VerifyMethod::PatternHeader),
        ("null", VerifyMethod::Null),
    ];

    /// fio's name.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, method)| *method == self).map_or("", |(name, _)| name)
    }

    /// Whether blocks begin with a header.
    pub fn has_header(self) -> bool {
        !matches!(self, VerifyMethod::Pattern | VerifyMethod::Null)
    }

    /// Bytes of the checksum after the header.
    pub fn digest_len(self) -> usize {
        match self {
            VerifyMethod::Meta | VerifyMethod::Pattern | VerifyMethod::PatternHeader | VerifyMethod::Null => {
                0
            }
            VerifyMethod::Crc7 => 1,
            VerifyMethod::Crc16 => 2,
            VerifyMethod::Crc32 | VerifyMethod::Crc32c | VerifyMethod::Xxhash => 4,
            VerifyMethod::Crc64 => 8,
            VerifyMethod::Md5 => 16,
            VerifyMethod::Sha1 => 20,
            VerifyMethod::Sha3With224 => 28,
            VerifyMethod::Sha3With256 => 32,
            VerifyMethod::Sha3With384 => 48,
            VerifyMethod::Sha256 | VerifyMethod::Sha3With512 => 64,
            VerifyMethod::Sha512 => 128,
        }
    }

    /// Bytes of a header with its checksum.
    pub fn header_len(self) -> usize {
        VERIFY_HEADER_LEN + self.digest_len()
    }

    /// Whether the pattern itself is compared.
    pub fn compares_pattern(self) -> bool {
        matches!(self, VerifyMethod::Meta | VerifyMethod::Pattern | VerifyMethod::PatternHeader)
    }
}

/// Bytes that are repeated from the start of each block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FillPattern {
    /// One repetition; never empty.
    pub bytes: Vec<u8>,
    /// Positions in `bytes` of eight bytes each that are replaced by the block's offset, little-endian.
    pub offsets: Vec<usize>,
    /// Bytes after which the pattern begins anew, with the offset of that place; 0 = once per block.
    pub interval: u32,
}

/// When data is read back during the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyBacklog {
    /// Writes after which blocks are read back; never 0.
    pub blocks: u64,
    /// Blocks to read back at a time; never 0.
    pub batch: u64,
}

/// Trims of blocks that were written, which are read back later like the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyTrim {
    /// Share of the blocks, percent.
    pub percent: u8,
    /// Writes between two batches of trims; never 0.
    pub backlog: u64,
    /// Trims of a batch; never 0.
    pub batch: u64,
    /// Trimmed blocks must be zeroes; else they are not checked.
    pub are_zeroes: bool,
}

/// Stamping of writes and the check of what is read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyPlan {
    /// How data is checked.
    pub method: VerifyMethod,
    /// Fills the data after the header; `None` = data that the header's seed generates.
    pub pattern: Option<FillPattern>,
    /// Bytes between two headers of a block; 0 = one header per block.
    pub interval: u32,
    /// Position of the header in its interval.
    pub offset: u32,
    /// Read back what the job has written.
    pub reads_back: bool,
    /// Write nothing: check what an earlier run of the job has written.
    pub only: bool,
    /// Read back during the writes.
    pub backlog: Option<VerifyBacklog>,
    /// Trim some of the written blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trims: Option<VerifyTrim>,
    /// End the job at the first bad block.
    pub fatal: bool,
    /// Write bad blocks and what they should contain to files.
    pub dump: bool,
    /// Check that a block has the data of its last write, and not of an earlier one.
    pub checks_generation: bool,
    /// Save at the end how much was written.
    #[serde(rename = "verify_state_save")]
    pub saves_state: bool,
    /// Where that is saved; `None` = in the working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_directory: Option<PathBuf>,
    /// Check as many blocks as the saved state says.
    #[serde(rename = "verify_state_load")]
    pub loads_state: bool,
}

impl VerifyPlan {
    /// Checks whole blocks at the end of each pass, with the data that their seeds generate; saves and dumps nothing.
    pub fn new(method: VerifyMethod) -> VerifyPlan {
        VerifyPlan {
            method,
            pattern: None,
            interval: 0,
            offset: 0,
            reads_back: true,
            only: false,
            backlog: None,
            trims: None,
            fatal: false,
            dump: false,
            checks_generation: true,
            saves_state: false,
            state_directory: None,
            loads_state: false,
        }
    }
}
