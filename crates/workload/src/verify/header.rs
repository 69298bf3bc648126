//! The header of a block: 40 bytes, little-endian, then the checksum.

use fathom_model::plan::{VERIFY_HEADER_LEN, VerifyMethod};

use super::digest::crc32c_register;

/// Marks a header.
const MAGIC: u16 = 0xacca;
/// Bytes that the header's own checksum covers.
const COVERED: usize = 36;
/// The same in the longer headers of fio 3.41, which have a version in front of the method.
const COVERED_LATER: usize = 44;
/// That version.
const LATER_VERSION: u8 = 0x81;

/// What a header says of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// fio's number of the method.
    pub method: u16,
    /// Bytes of the block, or of the interval.
    pub len: u32,
    /// Seed of the data.
    pub seed: u64,
    /// Position in the file.
    pub offset: u64,
    /// Time of the write: s.
    pub seconds: u32,
    /// Time of the write: ns.
    pub nanoseconds: u32,
    /// Number of the worker, from 1.
    pub worker: u16,
    /// Number of the write, modulo 65536.
    pub number: u16,
}

/// Why bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// There are too few bytes.
    Short,
    /// They do not begin with the mark of a header.
    Magic(u16),
    /// The header's own checksum is wrong.
    Checksum {
        /// As stored.
        stored: u32,
        /// Of the bytes.
        calculated: u32,
    },
}

impl Header {
    /// Bytes of a header without its checksum of the data.
    pub const LEN: usize = VERIFY_HEADER_LEN;

    /// The header's bytes.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0..2].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.method.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.seed.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.seconds.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.nanoseconds.to_le_bytes());
        bytes[32..34].copy_from_slice(&self.worker.to_le_bytes());
        bytes[34..36].copy_from_slice(&self.number.to_le_bytes());
        let checksum = crc32c_register(&bytes[..COVERED]);
        bytes[COVERED..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The fields of a header that begins with its mark, whether or not its own checksum is right.
    ///
    /// # Errors
    /// There are too few bytes, or they do not begin with the mark.
    pub fn fields(bytes: &[u8]) -> Result<Header, HeaderError> {
        let Some(bytes) = bytes.first_chunk::<{ Self::LEN }>() else { return Err(HeaderError::Short) };
        let magic = u16::from_le_bytes(part(bytes, 0));
        if magic != MAGIC {
            return Err(HeaderError::Magic(magic));
        }
        Ok(Header {
            method: u16::from_le_bytes(part(bytes, 2)),
            len: u32::from_le_bytes(part(bytes, 4)),
            seed: u64::from_le_bytes(part(bytes, 8)),
            offset: u64::from_le_bytes(part(bytes, 16)),
            seconds: u32::from_le_bytes(part(bytes, 24)),
            nanoseconds: u32::from_le_bytes(part(bytes, 28)),
            worker: u16::from_le_bytes(part(bytes, 32)),
            number: u16::from_le_bytes(part(bytes, 34)),
        })
    }

    /// The version of the header if it is one of later versions of fio than 3.33, which differ.
    pub fn later_version(bytes: &[u8]) -> Option<u8> {
        let (covered, rest) = bytes.split_at_checked(COVERED_LATER)?;
        let stored = u32::from_le_bytes(*rest.first_chunk()?);
        let is_later = covered[..2] == MAGIC.to_le_bytes() && covered[2] == LATER_VERSION;
        (is_later && stored == crc32c_register(covered)).then_some(LATER_VERSION)
    }

    /// Checks the header's own checksum.
    ///
    /// # Errors
    /// It is wrong, or there are too few bytes.
    pub fn check(bytes: &[u8]) -> Result<(), HeaderError> {
        let Some(bytes) = bytes.first_chunk::<{ Self::LEN }>() else { return Err(HeaderError::Short) };
        let stored = u32::from_le_bytes(part(bytes, COVERED));
        let calculated = crc32c_register(&bytes[..COVERED]);
        if stored == calculated { Ok(()) } else { Err(HeaderError::Checksum { stored, calculated }) }
    }
}

/// The bytes of a field at `from`.
fn part<const N: usize>(bytes: &[u8; Header::LEN], from: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[from + i])
}

/// fio's number of `method`.
pub(super) fn number_of(method: VerifyMethod) -> u16 {
    match method {
        VerifyMethod::Meta => 1,
        VerifyMethod::Md5 => 2,
        VerifyMethod::Crc64 => 3,
        VerifyMethod::Crc32 => 4,
        VerifyMethod::Crc32c => 5,
        VerifyMethod::Crc16 => 7,
        VerifyMethod::Crc7 => 8,
        VerifyMethod::Sha256 => 9,
        VerifyMethod::Sha512 => 10,
        VerifyMethod::Sha3With224 => 11,
        VerifyMethod::Sha3With256 => 12,
        VerifyMethod::Sha3With384 => 13,
        VerifyMethod::Sha3With512 => 14,
        VerifyMethod::Xxhash => 15,
        VerifyMethod::Sha1 => 16,
        VerifyMethod::PatternHeader => 17,
        VerifyMethod::Pattern => 18,
        VerifyMethod::Null => 19,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_are_those_of_fio() {
        // The header of a block that Debian's fio 3.33 wrote with verify=md5.
        let fio = [
            0xca, 0xac, 0x02, 0x00, 0x00, 0x10, 0x00, 0x00, 0x2e, 0x56, 0xdb, 0xf6, 0x8c, 0x0a, 0xbb, 0x88,
            0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xde, 0x17, 0xab, 0x08,
            0x01, 0x00, 0x01, 0x00, 0xa1, 0x7c, 0xfc, 0x2d,
        ];
        let header = Header {
            method: number_of(VerifyMethod::Md5),
            len: 4096,
            seed: 0x88bb_0a8c_f6db_562e,
            offset: 4096,
            seconds: 0,
            nanoseconds: 145_430_494,
            worker: 1,
            number: 1,
        };
        assert_eq!(header.to_bytes(), fio);
        assert_eq!(Header::fields(&fio), Ok(header));
        assert_eq!(Header::check(&fio), Ok(()));
    }

    #[test]
    fn headers_of_later_versions_are_known() {
        // The header of a block that fio 3.41 wrote with verify=crc64.
        let mut later = [
            0xca, 0xac, 0x81, 0x03, 0x00, 0x10, 0x00, 0x00, 0x3c, 0x54, 0x09, 0xc5, 0x01, 0xcc, 0xa4, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xa1, 0xd8, 0x73, 0x07,
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x2e, 0x68, 0xf6, 0x37, 0xd5, 0x3e,
            0xad, 0x2f,
        ];
        assert_eq!(Header::later_version(&later), Some(0x81));
        assert_eq!(Header::later_version(&later[..47]), None);
        later[9] ^= 1;
        assert_eq!(Header::later_version(&later), None);
        assert_eq!(Header::later_version(&Header::fields(&later).unwrap().to_bytes()), None);
    }

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(
            (method, len, seed, offset) in any::<(u16, u32, u64, u64)>(),
            (seconds, nanoseconds, worker, number) in any::<(u32, u32, u16, u16)>(),
        ) {
            let header = Header { method, len, seed, offset, seconds, nanoseconds, worker, number };
            let bytes = header.to_bytes();
            prop_assert_eq!(Header::fields(&bytes), Ok(header));
            prop_assert_eq!(Header::check(&bytes), Ok(()));
        }

        #[test]
        fn a_flipped_bit_is_found(seed in any::<u64>(), at in 0..40usize, bit in 0..8u8) {
            let header = Header {
                method: 5, len: 4096, seed, offset: 8192, seconds: 0, nanoseconds: 0, worker: 1, number: 9,
            };
            let mut bytes = header.to_bytes();
            bytes[at] ^= 1 << bit;
            prop_assert!(Header::fields(&bytes).is_err() || Header::check(&bytes).is_err());
        }
    }
}
