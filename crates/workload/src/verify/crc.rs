//! Cyclic redundancy checks with tables that the compiler makes.

/// Table of a check whose bits are processed from the lowest on; `polynomial` is reversed.
const fn reflected(polynomial: u64) -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { rest >> 1 ^ polynomial } else { rest >> 1 };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

/// Table of a check whose bits are processed from the highest on, in the high bits of 32.
const fn direct(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest >> 31 == 1 { rest << 1 ^ polynomial } else { rest << 1 };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

static CRC64: [u64; 256] = reflected(0x95ac_9329_ac4b_c9b5);
static CRC16: [u64; 256] = reflected(0xa001);
static CRC32: [u32; 256] = direct(0x04c1_1db7);
static CRC7: [u32; 256] = direct(0x09 << 25);

fn run_reflected(table: &[u64; 256], data: &[u8]) -> u64 {
    data.iter().fold(0, |crc, &byte| crc >> 8 ^ table[usize::from(crc as u8 ^ byte)])
}

fn run_direct(table: &[u32; 256], data: &[u8]) -> u32 {
    data.iter().fold(0, |crc, &byte| crc << 8 ^ table[usize::from((crc >> 24) as u8 ^ byte)])
}

/// CRC-64 with the polynomial of Jones, from 0.
pub fn crc64(data: &[u8]) -> u64 {
    run_reflected(&CRC64, data)
}

/// CRC-32 with the polynomial 0x04c11db7, highest bit first, from 0 and without inversion.
pub fn crc32(data: &[u8]) -> u32 {
    run_direct(&CRC32, data)
}

/// CRC-16/ARC.
pub fn crc16(data: &[u8]) -> u16 {
    run_reflected(&CRC16, data) as u16
}

/// CRC-7/MMC.
pub fn crc7(data: &[u8]) -> u8 {
    (run_direct(&CRC7, data) >> 25) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_check_values() {
        let check = b"123456789";
        assert_eq!(crc64(check), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc16(check), 0xbb3d);
        assert_eq!(crc7(check), 0x75);
        // CRC-32/CKSUM is this one over the data and its length, inverted.
        assert_eq!(!crc32(b"123456789\x09"), 0x377a_6011);
    }
}
