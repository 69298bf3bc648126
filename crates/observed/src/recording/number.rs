//! Whole numbers of variable length: seven bits in a byte, the lowest first, the highest bit set where another byte follows.

/// Bytes of the largest number.
const MAX_BYTES: usize = 10;

/// Appends `value`.
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number at `*at`, which moves behind it; `None` where it is cut off or has more than 64 bits.
#[inline]
pub(super) fn get(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let rest = bytes.get(*at..)?;
    let mut value = 0_u64;
    for (place, byte) in rest.iter().enumerate().take(MAX_BYTES) {
        let bits = u64::from(byte & 0x7f);
        // The last byte has room for one bit.
        if place == MAX_BYTES - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * place);
        if *byte < 0x80 {
            *at += place + 1;
            return Some(value);
        }
    }
    None
}

/// A signed number as an unsigned one that is small where it is near 0.
pub(super) fn folded(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The reverse of [`folded`].
#[inline]
pub(super) fn unfolded(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let values = [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX];
        let mut bytes = Vec::new();
        values.iter().for_each(|value| put(&mut bytes, *value));
        let mut at = 0;
        for value in values {
            assert_eq!(get(&bytes, &mut at), Some(value));
        }
        assert_eq!((at, get(&bytes, &mut at)), (bytes.len(), None));
        for value in [0, -1, 1, i64::MIN, i64::MAX, -4096] {
            assert_eq!(unfolded(folded(value)), value);
        }
        assert!(folded(-1) < 2 && folded(1) < 3);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for bytes in [
            &[][..],
            &[0x80],
            &[0xff; 10],
            &[0x80; 12],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        ] {
            assert_eq!(get(bytes, &mut 0), None, "{bytes:?}");
        }
    }
}
