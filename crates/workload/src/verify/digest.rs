//! The checksums of blocks as fio stores them.

use std::fmt;

use fathom_model::plan::VerifyMethod;
use md5::Md5;
use sha1::Sha1;
use sha2::block_api::compress256;
use sha3::{Digest as _, Sha3_224, Sha3_256, Sha3_384, Sha3_512};

use super::crc::{crc7, crc16, crc32, crc64};
use super::xxhash::xxhash32;

/// Longest stored checksum, bytes.
const LONGEST: usize = 128;
/// The seed that fio gives to xxHash.
const XXHASH_SEED: u32 = 1;
/// The initial state of SHA-256.
const SHA256_START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The bytes of a checksum, as stored after the header.
#[derive(Clone, Copy)]
pub struct Digest {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Digest {
    fn of(bytes: &[u8]) -> Digest {
        let mut digest = Digest { bytes: [0; LONGEST], len: bytes.len() };
        digest.bytes[..bytes.len()].copy_from_slice(bytes);
        digest
    }

    /// The checksum of `data` by `method`; empty for methods without one.
    pub fn new(method: VerifyMethod, data: &[u8]) -> Digest {
        match method {
            VerifyMethod::Meta | VerifyMethod::Pattern | VerifyMethod::PatternHeader | VerifyMethod::Null => {
                Digest::of(&[])
            }
            VerifyMethod::Crc7 => Digest::of(&[crc7(data)]),
            VerifyMethod::Crc16 => Digest::of(&crc16(data).to_le_bytes()),
            VerifyMethod::Crc32 => Digest::of(&crc32(data).to_le_bytes()),
            VerifyMethod::Crc32c => Digest::of(&crc32c_register(data).to_le_bytes()),
            VerifyMethod::Crc64 => Digest::of(&crc64(data).to_le_bytes()),
            VerifyMethod::Xxhash => Digest::of(&xxhash32(data, XXHASH_SEED).to_le_bytes()),
            VerifyMethod::Md5 => Digest::of(&Md5::digest(data)),
            VerifyMethod::Sha1 => {
                // As words of the processor.
                let mut digest = Digest::of(&Sha1::digest(data));
                digest.bytes[..20].as_chunks_mut::<4>().0.iter_mut().for_each(|word| word.reverse());
                digest
            }
            VerifyMethod::Sha256 => sha256(data),
            VerifyMethod::Sha512 => sha512(data),
            VerifyMethod::Sha3With224 => Digest::of(&Sha3_224::digest(data)),
            VerifyMethod::Sha3With256 => Digest::of(&Sha3_256::digest(data)),
            VerifyMethod::Sha3With384 => Digest::of(&Sha3_384::digest(data)),
            VerifyMethod::Sha3With512 => Digest::of(&Sha3_512::digest(data)),
        }
    }

    /// The checksum that a block stores in `bytes`.
    pub(super) fn stored(method: VerifyMethod, bytes: &[u8]) -> Digest {
        Digest::of(&bytes[..bytes.len().min(method.digest_len())])
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Digest) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Digest {}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// CRC-32C without the final inversion.
pub(super) fn crc32c_register(data: &[u8]) -> u32 {
    !crc32c::crc32c(data)
}

/// fio stores the last block of the message, with the length little-endian and the lowest byte of each word of the state
/// in place of its first eight bytes.
fn sha256(data: &[u8]) -> Digest {
    let mut state = SHA256_START;
    let (blocks, rest) = data.as_chunks::<64>();
    compress256(&mut state, blocks);
    let mut last = [[0; 64]; 2];
    let end = last.as_flattened_mut();
    end[..rest.len()].copy_from_slice(rest);
    end[rest.len()] = 0x80;
    let count = if rest.len() < 56 { 1 } else { 2 };
    last[count - 1][56..].copy_from_slice(&(data.len() as u64 * 8).to_le_bytes());
    compress256(&mut state, &last[..count]);
    let mut digest = Digest::of(&last[count - 1]);
    digest.bytes.iter_mut().zip(state).for_each(|(byte, word)| *byte = word as u8);
    digest
}

/// fio stores the buffer of the hash, and not the hash: the first block of the message, and over it the rest behind the
/// last whole block.
fn sha512(data: &[u8]) -> Digest {
    let mut buffer = [0; LONGEST];
    let (blocks, rest) = data.as_chunks::<LONGEST>();
    if let Some(first) = blocks.first() {
        buffer = *first;
    }
    buffer[..rest.len()].copy_from_slice(rest);
    Digest::of(&buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: VerifyMethod, data: &[u8], expected: &str) {
        let digest = Digest::new(method, data);
        assert_eq!(digest.to_string(), expected, "{}", method.name());
        assert_eq!(digest.bytes().len(), method.digest_len(), "{}", method.name());
    }

    #[test]
    fn published_values() {
        check(VerifyMethod::Md5, b"abc", "900150983cd24fb0d6963f7d28e17f72");
        // a9993e36 4706816a ba3e2571 7850c26c 9cd0d89d, each word little-endian.
        check(VerifyMethod::Sha1, b"abc", "363e99a96a81064771253eba6cc250789dd8d09c");
        check(VerifyMethod::Sha3With224, b"abc", "e642824c3f8cf24ad09234ee7d3c766fc9a3a5168d0c94ad73b46fdf");
        check(
            VerifyMethod::Sha3With256,
            b"abc",
            "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532",
        );
        check(
            VerifyMethod::Sha3With384,
            b"abc",
            "ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c2596da7cf0e49be4b298d88cea927ac7f539f1edf228376d25",
        );
        check(
            VerifyMethod::Sha3With512,
            b"abc",
            "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e\
             10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0",
        );
        // CRC-32C of the standard, inverted.
        check(VerifyMethod::Crc32c, b"123456789", "7c6df91c");
        for method in [VerifyMethod::Meta, VerifyMethod::Pattern, VerifyMethod::PatternHeader] {
            check(method, b"abc", "");
        }
    }

    #[test]
    fn sha256_is_compressed_by_the_standard() {
        // One block of the standard's message "abc" with its own length gives the published hash.
        let mut block = [0; 64];
        block[..4].copy_from_slice(b"abc\x80");
        block[63] = 24;
        let mut state = SHA256_START;
        compress256(&mut state, &[block]);
        assert_eq!((state[0], state[7]), (0xba78_16bf, 0xf200_15ad));
    }

    #[test]
    fn digests_are_those_of_fio() {
        // Debian's fio 3.33 stored these for the data that seed 0xa4cc01c509543c generates, after the header.
        for (method, from, len, expected) in [
            (VerifyMethod::Crc64, 48, 64, "1cae35e906b532f0"),
            (VerifyMethod::Crc32, 44, 64, "f15d7f9c"),
            (VerifyMethod::Xxhash, 44, 64, "1d186d63"),
            (VerifyMethod::Crc32c, 44, 1003, "a6f109d4"),
            (VerifyMethod::Crc16, 42, 1003, "8916"),
            (VerifyMethod::Crc7, 41, 1003, "41"),
            (VerifyMethod::Md5, 56, 1003, "d8fc56e42f543c6775b05b9a44cb514e"),
            (VerifyMethod::Sha1, 60, 64, "0d6d7182aa56d25af693db3e8d5d9ab6688abe9e"),
            (
                VerifyMethod::Sha256,
                104,
                112,
                "d95e73c9980053f280000000000000000000000000000000000000000000000000000000000000000000000000000000\
                 00000000000000004000000000000000",
            ),
            (
                VerifyMethod::Sha256,
                104,
                168,
                "72b6d8f0e6c7162300000000000000000000000000000000000000000000000000000000000000000000000000000000\
                 00000000000000000002000000000000",
            ),
            (
                VerifyMethod::Sha512,
                168,
                4096,
                "a892adf26f23f5affc5b04ec27b5ef07a4eeb1de97d8e4b71ccc14a4779c10b838982948ef38217054643eec66d53128\
                 8cfc6734560e5398b4b1559334bb58bc6863ab266976b1781c1501ba9d310a358478ace006a8bbadbc4ad519e68284f5\
                 7895aa33cc0509eb34e07f4db2888de0ac752a817e8e96cb94cef5b205a98b1d",
            ),
        ] {
            let mut block = vec![0; len];
            super::super::fill_seeded(&mut block, 0x00a4_cc01_c509_543c);
            check(method, &block[from..], expected);
        }
    }
}
