//! Data that a seed generates.

const FACTOR: u64 = 0x61c8_8646_80b5_83eb;

/// Bytes of a group: a word and its multiples.
const GROUP: usize = 32;

/// Fills `buffer` with the data of `seed`. Each 32 bytes are a word times 1, 2, 3 and 5, and the next word is the
/// product with a constant; in a last group that is not whole every word is such a product.
pub fn fill_seeded(buffer: &mut [u8], seed: u64) {
    let (groups, rest) = buffer.as_chunks_mut::<GROUP>();
    let mut word = seed;
    for group in groups {
        *group = group_of(word);
        word = word.wrapping_mul(FACTOR);
    }
    fill_rest(rest, word);
}

/// Whether `data`, which begins at `from` of its block, holds data of `seed` that was changed: most groups are the
/// seed's, and one of the others is not a repeated byte, which a payload that compresses would have.
pub(super) fn is_changed(data: &[u8], from: usize, seed: u64) -> bool {
    let skipped = from.div_ceil(GROUP);
    let Some(data) = data.get(skipped * GROUP - from..) else { return false };
    let mut word = (0..skipped).fold(seed, |word, _| word.wrapping_mul(FACTOR));
    let (groups, rest) = data.as_chunks::<GROUP>();
    let (mut same, mut changed) = (0, 0);
    for group in groups {
        if *group == group_of(word) {
            same += 1;
        } else if group.iter().any(|&byte| byte != group[0]) {
            changed += 1;
        }
        word = word.wrapping_mul(FACTOR);
    }
    // The last bytes end the block, or an interval that ends within a group.
    let mut end = [0; GROUP];
    fill_rest(&mut end[..rest.len()], word);
    let differs = *rest != end[..rest.len()]
        && *rest != group_of(word)[..rest.len()]
        && rest.iter().any(|&byte| byte != rest[0]);
    same > groups.len() / 2 && (changed > 0 || differs)
}

#[inline(always)]
fn group_of(word: u64) -> [u8; GROUP] {
    let mut group = [0; GROUP];
    for (bytes, factor) in group.as_chunks_mut::<8>().0.iter_mut().zip([1, 2, 3, 5]) {
        *bytes = word.wrapping_mul(factor).to_le_bytes();
    }
    group
}

fn fill_rest(rest: &mut [u8], mut word: u64) {
    for bytes in rest.chunks_mut(8) {
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        word = word.wrapping_mul(FACTOR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn data_is_that_of_fio() {
        // What Debian's fio 3.33 wrote under the seed in its header.
        let mut block = [0; 1023];
        fill_seeded(&mut block, 0x00a4_cc01_c509_543c);
        assert_eq!(hex(&block[40..72]), "280e2e68242febb13c15459cb6c6e00a64237304dbf5cbbc5cbbe69a27b30c02");
        assert_eq!(hex(&block[992..]), "b4e7aed4928d2c0e3cce638f5a7f3b40140593839854a0095ce5b29a491892");
    }

    #[test]
    fn changes_are_found_and_compressible_data_is_none() {
        let mut block = vec![0; 4096];
        fill_seeded(&mut block, 77);
        assert!(!is_changed(&block[168..], 168, 77));
        let mut flipped = block.clone();
        flipped[2000] ^= 1;
        assert!(is_changed(&flipped[168..], 168, 77));
        flipped = block.clone();
        flipped[1024..1536].fill(0);
        assert!(!is_changed(&flipped[168..], 168, 77), "a chunk of zeroes");
        assert!(!is_changed(&block[168..], 168, 78), "data of another kind");
    }
}
