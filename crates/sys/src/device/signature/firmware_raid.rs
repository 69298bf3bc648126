//! The metadata that the firmware of RAID controllers and mainboards leaves at the end of each disk.

use std::io;

use super::SignatureClass::Member;
use super::view::{View, le16};
use super::{Found, add};

/// Distances from the end, in sectors, at which Promise's controllers have been seen to write.
const PROMISE: [u64; 13] = [63, 255, 256, 16, 399, 591, 675, 735, 911, 974, 991, 951, 3087];

/// All of them.
pub(super) fn probe(view: &View, found: &mut Found) -> io::Result<()> {
    for (name, distance, bytes) in marks() {
        if let Some(offset) = view.sector_from_end(distance)
            && view.has(offset, bytes)?
        {
            add(found, name, Member, offset);
        }
    }
    let Some(offset) = view.sector_from_end(1) else { return Ok(()) };
    let Some(last) = view.bytes::<512>(offset)? else { return Ok(()) };
    for (name, is_there) in [
        ("Silicon Image RAID", is_silicon_image(&last)),
        ("VIA RAID", is_via(&last)),
        ("JMicron RAID", is_jmicron(&last)),
    ] {
        if is_there {
            add(found, name, Member, offset);
        }
    }
    Ok(())
}

/// A name, a distance from the end in sectors of 512 bytes, and the bytes that stand there.
type RaidMark = (&'static str, u64, &'static [u8]);

/// Those that need but a comparison. Where sectors have 4096 bytes, the distances grow with them.
fn marks() -> impl Iterator<Item = RaidMark> {
    const FIXED: &[RaidMark] = &[
        ("Intel RAID", 2, b"Intel Raid ISM Cfg Sig. "),
        ("Intel RAID", 16, b"Intel Raid ISM Cfg Sig. "),
        ("DDF RAID", 1, &[0xde, 0x11, 0xde, 0x11]),
        ("DDF RAID", 1, &[0x11, 0xde, 0x11, 0xde]),
        ("DDF RAID", 8, &[0xde, 0x11, 0xde, 0x11]),
        ("DDF RAID", 8, &[0x11, 0xde, 0x11, 0xde]),
        ("DDF RAID", 257, &[0xde, 0x11, 0xde, 0x11]),
        ("DDF RAID", 257, &[0x11, 0xde, 0x11, 0xde]),
        ("LSI MegaRAID", 1, b"$XIDE$"),
        ("NVIDIA RAID", 2, b"NVIDIA"),
        ("Adaptec RAID", 1, &[0x37, 0xfc, 0x4d, 0x1e]),
        ("HighPoint RAID", 11, &[0xf3, 0x16, 0x78, 0x5a]),
        ("HighPoint RAID", 11, &[0xfd, 0x16, 0x78, 0x5a]),
    ];
    let promise =
        PROMISE.iter().map(|&distance| ("Promise RAID", distance, &b"Promise Technology, Inc."[..]));
    FIXED.iter().copied().chain(promise)
}

fn is_silicon_image(last: &[u8; 512]) -> bool {
    const MAX_DISKS: u8 = 8;
    last[0x60..0x64] == [0, 0, 0, 0x2f] && last[0x116] < MAX_DISKS
}

/// Two bytes, one of three versions, and a sum of the first 50 bytes.
fn is_via(last: &[u8; 512]) -> bool {
    let sum = last[..50].iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    last[..2] == [0x55, 0xaa] && last[2] <= 2 && sum == last[50]
}

/// Two bytes, a RAID level, and words that sum up to nothing, give or take one.
fn is_jmicron(last: &[u8; 512]) -> bool {
    const MAX_LEVEL: u8 = 5;
    let sum = last[..128].chunks_exact(2).fold(0u16, |sum, word| sum.wrapping_add(le16(word, 0)));
    last[..2] == *b"JM" && last[0x30] <= MAX_LEVEL && sum <= 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::signature::fixture::{MIB, check, image, names};

    #[test]
    fn every_mark_at_its_distance_from_the_end() {
        for (name, distance, bytes) in marks() {
            check(&[(4 * MIB - 512 * distance as usize, bytes)], &[name]);
            // A size that is no multiple of a sector is rounded down.
            let odd = image(4 * MIB + 100, &[(4 * MIB - 512 * distance as usize, bytes)]);
            assert_eq!(names(&odd), [name]);
        }
    }

    #[test]
    fn short_marks_need_their_checksums() {
        let last = 4 * MIB - 512;
        check(&[(last + 0x60, &[0, 0, 0, 0x2f])], &["Silicon Image RAID"]);
        check(&[(last + 0x60, &[0, 0, 0, 0x2f]), (last + 0x116, &[8])], &[]);
        check(&[(last, &[0x55, 0xaa, 1]), (last + 50, &[0])], &["VIA RAID"]);
        check(&[(last, &[0x55, 0xaa, 1]), (last + 50, &[1])], &[]);
        check(&[(last, &[0x55, 0xaa, 3]), (last + 50, &[2])], &[]);
        check(&[(last, b"JM"), (last + 4, &[0xb6, 0xb2])], &["JMicron RAID"]);
        check(&[(last, b"JM"), (last + 4, &[0xb6, 0xb3])], &[]);
        check(&[(last, b"JM"), (last + 4, &[0xb0, 0xb2]), (last + 0x30, &[6])], &[]);
    }
}
