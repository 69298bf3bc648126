//! Partition tables and disk labels whose marks need more than a comparison.

use std::io;

use super::SignatureClass::PartitionTable;
use super::view::{View, be16, be32, le16, le32};
use super::{Found, add, file_systems};

const SECTOR_SIZES: [u64; 4] = [512, 1024, 2048, 4096];

/// All of them.
pub(super) fn probe(view: &View, found: &mut Found) -> io::Result<()> {
    gpt(view, found)?;
    amiga(view, found)?;
    let Some(first) = view.bytes::<512>(0)? else { return Ok(()) };
    dos(&first, found);
    sun(&first, found);
    apple(view, &first, found)?;
    atari(view, &first, found);
    Ok(())
}

fn gpt(view: &View, found: &mut Found) -> io::Result<()> {
    for sector in SECTOR_SIZES {
        // The backup header ends the device; the primary one follows the first sector.
        for offset in [sector, view.size.saturating_sub(sector)] {
            if view.has(offset, b"EFI PART")? {
                add(found, "GPT", PartitionTable, offset);
            }
        }
    }
    Ok(())
}

/// Also the tables of Minix, which differ in the types of their partitions only.
fn dos(first: &[u8; 512], found: &mut Found) {
    let has_gpt = found.iter().any(|signature| signature.name == "GPT");
    if has_gpt || first[510..] != [0x55, 0xaa] || !has_mbr_entries(first) {
        return;
    }
    // A file system's boot sector ends alike, with code or zeros in place of the entries.
    if has_used_mbr_entry(first) || !file_systems::is_boot_sector(first) {
        add(found, "DOS", PartitionTable, 510);
    }
}

/// The four entries of a DOS partition table.
fn mbr_entries(first: &[u8; 512]) -> impl Iterator<Item = &[u8]> {
    first[446..510].chunks_exact(16)
}

/// Each entry begins with a flag that is 0 or 0x80.
fn has_mbr_entries(first: &[u8; 512]) -> bool {
    mbr_entries(first).all(|entry| entry[0] & 0x7f == 0)
}

/// A partition of some type that begins and ends within what an entry can say.
fn has_used_mbr_entry(first: &[u8; 512]) -> bool {
    mbr_entries(first).any(|entry| {
        let (kind, start, sectors) = (entry[4], le32(entry, 8), le32(entry, 12));
        kind != 0 && sectors != 0 && start.checked_add(sectors).is_some()
    })
}

fn sun(first: &[u8; 512], found: &mut Found) {
    // Two bytes, and a checksum that makes the sector's words cancel out.
    let checksum = first.chunks_exact(2).fold(0, |sum, word| sum ^ le16(word, 0));
    if first[508..510] == [0xda, 0xbe] && checksum == 0 {
        add(found, "Sun disk label", PartitionTable, 508);
    }
}

/// A driver descriptor in the first block, and in the second the first entry of the map.
fn apple(view: &View, first: &[u8; 512], found: &mut Found) -> io::Result<()> {
    let block = u64::from(be16(first, 2));
    if first[..2] == *b"ER" && SECTOR_SIZES.contains(&block) {
        let entry = view.bytes::<2>(block)?;
        if entry.is_some_and(|mark| [*b"PM", *b"TS"].contains(&mark)) {
            add(found, "Apple partition map", PartitionTable, 0);
        }
    }
    Ok(())
}

/// One of the first 16 sectors holds the rigid disk block, whose length in words precedes its checksum.
fn amiga(view: &View, found: &mut Found) -> io::Result<()> {
    for offset in (0..16).map(|sector| sector * 512) {
        let Some(block) = view.bytes::<8>(offset)? else { break };
        if block[..4] == *b"RDSK" && (16..=128).contains(&be32(&block, 4)) {
            add(found, "Amiga disk label", PartitionTable, offset);
        }
    }
    Ok(())
}

/// There is no mark at all: four entries of a flag, a type of three letters, a start and a length. libblkid takes any
/// three letters, and with them one disk in a hundred that holds random data; here only types that are in use count.
fn atari(view: &View, first: &[u8; 512], found: &mut Found) {
    const TYPES: [&[u8]; 10] =
        [b"GEM", b"BGM", b"XGM", b"LNX", b"SWP", b"RAW", b"MIX", b"MNX", b"UNX", b"F32"];
    let sectors = view.size / 512;
    let is_valid = |entry: &[u8]| {
        let (start, length) = (u64::from(be32(entry, 4)), u64::from(be32(entry, 8)));
        TYPES.contains(&&entry[1..4]) && start > 0 && length > 0 && start + length <= sectors
    };
    let entries = first[0x1c6..0x1f6].chunks_exact(12);
    let mut active = entries.enumerate().filter(|(_, entry)| entry[0] & 1 != 0).peekable();
    if let Some((index, _)) = active.peek().copied()
        && active.all(|(_, entry)| is_valid(entry))
    {
        add(found, "Atari disk label", PartitionTable, 0x1c6 + 12 * index as u64);
    }
}

#[cfg(test)]
mod tests {
    use crate::device::signature::fixture::{BOOT, MIB, check};

    /// A partition entry: flag, type, first sector, sectors.
    fn entry(flag: u8, kind: u8, first: u32, sectors: u32) -> [u8; 16] {
        let mut entry = [0; 16];
        (entry[0], entry[4]) = (flag, kind);
        entry[8..12].copy_from_slice(&first.to_le_bytes());
        entry[12..].copy_from_slice(&sectors.to_le_bytes());
        entry
    }

    #[test]
    fn dos_and_gpt() {
        let linux = entry(0x80, 0x83, 2048, 4096);
        check(&[BOOT, (446, &linux)], &["DOS"]);
        check(&[BOOT, (462, &linux)], &["DOS"]);
        check(&[BOOT], &["DOS"]);
        check(&[BOOT, (446, &entry(0x17, 0x83, 2048, 4096))], &[]);
        check(&[(446, &linux)], &[]);
        check(&[BOOT, (446, &entry(0, 0xee, 1, 8191)), (512, b"EFI PART")], &["GPT"]);
        check(&[BOOT, (446, &entry(0, 0xee, 1, 8191)), (4096, b"EFI PART")], &["GPT"]);
        check(&[(4 * MIB - 512, b"EFI PART")], &["GPT"]);
        check(&[(4 * MIB - 4096, b"EFI PART")], &["GPT"]);
        check(&[BOOT, (446, &entry(0, 0xee, 1, 8191))], &["DOS"]);
        // Minix divides its partition by a table of the same form.
        check(&[BOOT, (446, &entry(0x80, 0x81, 2048, 4096))], &["DOS"]);
    }

    #[test]
    fn boot_sectors_are_no_tables_unless_they_hold_one() {
        let linux = entry(0, 0x83, 2048, 100);
        check(&[BOOT, (0x36, b"FAT16   ")], &["FAT"]);
        check(&[BOOT, (0x36, b"FAT16   "), (446, &linux)], &["DOS", "FAT"]);
        check(&[BOOT, (3, b"NTFS    ")], &["NTFS"]);
        check(&[BOOT, (3, b"EXFAT   ")], &["exFAT"]);
        // Boot code that jumps, and a table: GRUB's.
        check(&[BOOT, (0, &[0xeb, 0x63, 0x90]), (446, &linux)], &["DOS"]);
    }

    #[test]
    fn sun_label_needs_its_checksum() {
        check(&[(508, &[0xda, 0xbe, 0xda, 0xbe])], &["Sun disk label"]);
        check(&[(508, &[0xda, 0xbe, 0xda, 0xbf])], &[]);
    }

    #[test]
    fn apple_map_needs_its_first_entry() {
        check(&[(0, b"ER\x02\0"), (512, b"PM")], &["Apple partition map"]);
        check(&[(0, b"ER\x08\0"), (2048, b"PM")], &["Apple partition map"]);
        check(&[(0, b"ER\x02\0"), (512, b"TS")], &["Apple partition map"]);
        check(&[(0, b"ER\x02\0"), (1024, b"PM")], &[]);
        check(&[(0, b"ER\x02\x01"), (513, b"PM")], &[]);
    }

    #[test]
    fn amiga_block_in_any_of_the_first_sectors() {
        check(&[(0, b"RDSK\0\0\0\x40")], &["Amiga disk label"]);
        check(&[(15 * 512, b"RDSK\0\0\0\x40")], &["Amiga disk label"]);
        check(&[(16 * 512, b"RDSK\0\0\0\x40")], &[]);
        check(&[(0, b"RDSK\x10\0\0\x40")], &[]);
    }

    #[test]
    fn atari_entries_must_lie_within_the_device() {
        let entry = |flag, kind: &[u8; 3], start: u32, length: u32| {
            [&[flag], &kind[..], &start.to_be_bytes(), &length.to_be_bytes()].concat()
        };
        let last = (4 * MIB / 512) as u32;
        check(&[(0x1c6, &entry(1, b"GEM", 2, last - 2))], &["Atari disk label"]);
        check(&[(0x1ea, &entry(0x81, b"LNX", 2, 100))], &["Atari disk label"]);
        check(&[(0x1c6, &entry(1, b"GEM", 2, last - 1))], &[]);
        check(&[(0x1c6, &entry(0, b"GEM", 2, 100))], &[]);
        check(&[(0x1c6, &entry(1, b"abc", 2, 100))], &[]);
        check(&[(0x1c6, &entry(1, b"GEM", 2, 100)), (0x1d2, &entry(1, b"abc", 200, 100))], &[]);
    }
}
