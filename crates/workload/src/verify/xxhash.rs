//! The 32-bit xxHash.

const PRIMES: [u32; 5] = [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d, 0x27d4_eb2f, 0x1656_67b1];

/// The hash of `data` with `seed`.
pub fn xxhash32(data: &[u8], seed: u32) -> u32 {
    let [first, second, third, fourth, fifth] = PRIMES;
    let (stripes, rest) = data.as_chunks::<16>();
    let mut hash = if stripes.is_empty() {
        seed.wrapping_add(fifth)
    } else {
        let mut lanes = [
            seed.wrapping_add(first).wrapping_add(second),
            seed.wrapping_add(second),
            seed,
            seed.wrapping_sub(first),
        ];
        for stripe in stripes {
            for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<4>().0) {
                let mixed = lane.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(second));
                *lane = mixed.rotate_left(13).wrapping_mul(first);
            }
        }
        let turned = lanes.iter().zip([1, 7, 12, 18]).map(|(lane, turn)| lane.rotate_left(turn));
        turned.fold(0, u32::wrapping_add)
    };
    hash = hash.wrapping_add(data.len() as u32);
    let (words, bytes) = rest.as_chunks::<4>();
    for word in words {
        let mixed = hash.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(third));
        hash = mixed.rotate_left(17).wrapping_mul(fourth);
    }
    for &byte in bytes {
        let mixed = hash.wrapping_add(u32::from(byte).wrapping_mul(fifth));
        hash = mixed.rotate_left(11).wrapping_mul(first);
    }
    hash = (hash ^ hash >> 15).wrapping_mul(second);
    hash = (hash ^ hash >> 13).wrapping_mul(third);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        assert_eq!(xxhash32(b"", 0), 0x02cc_5d05);
        assert_eq!(xxhash32(b"a", 0), 0x550d_7456);
        assert_eq!(xxhash32(b"abc", 0), 0x32d1_53ff);
        assert_eq!(xxhash32(b"Nobody inspects the spammish repetition", 0), 0xe229_3b2f);
    }
}
