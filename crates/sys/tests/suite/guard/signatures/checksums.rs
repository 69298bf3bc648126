//! The checksums that `blkid` wants to be right before it believes a superblock.

/// A reflected cyclic redundancy check of 32 bits, begun with `state` and not inverted at the end.
fn crc(polynomial: u32, state: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(state, |state, byte| {
        (0..8).fold(state ^ u32::from(*byte), |state, _bit| {
            (state >> 1) ^ (polynomial & (state & 1).wrapping_neg())
        })
    })
}

/// CRC-32 as of Ethernet.
pub fn crc32(state: u32, bytes: &[u8]) -> u32 {
    crc(0xedb8_8320, state, bytes)
}

/// CRC-32C as of iSCSI.
pub fn crc32c(bytes: &[u8]) -> u32 {
    !crc(0x82f6_3b78, u32::MAX, bytes)
}

/// The sum of the words of two bytes.
pub fn sum16(bytes: &[u8]) -> u16 {
    bytes.chunks_exact(2).fold(0, |sum, word| sum.wrapping_add(u16::from_le_bytes([word[0], word[1]])))
}

#[test]
fn checksums_of_the_standard_sample() {
    assert_eq!(!crc32(u32::MAX, b"123456789"), 0xcbf4_3926);
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(sum16(&[1, 2, 3, 4]), 0x0604);
}
