//! Finds out what a device or image already holds, from the marks that on-disk formats leave.
//!
//! It reads a few hundred KiB at the start and the end and never writes. It would rather name something that is only a
//! remnant than miss something alive: the answer guards data. Fixed marks are in [`super::magic`].

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::magic::MAGICS;

/// Something with bytes at offsets: a device, an image, a buffer.
pub trait ReadAt {
    /// Fill the start of `buffer` from `offset`; how much was there, 0 at the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|start| self.get(start..)).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

impl<R: ReadAt + ?Sized> ReadAt for &R {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, buffer)
    }
}

/// What sort of use a signature stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// A table of partitions.
    PartitionTable,
    /// A file system.
    FileSystem,
    /// Swap space or a hibernation image.
    Swap,
    /// A part of a volume group, RAID, pool or cache.
    Member,
    /// An encrypted container.
    Encrypted,
}

/// One format found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The format: `ext4`, `GPT`, `LVM2`, `MD RAID 1.2` …
    pub name: &'static str,
    /// What it is for.
    pub class: Class,
    /// Where its mark stands, in bytes.
    pub offset: u64,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = match self.class {
            Class::PartitionTable if self.name.ends_with("label") => "",
            Class::PartitionTable => " partition table",
            Class::FileSystem => " file system",
            Class::Swap if self.name == "swap" => " space",
            Class::Swap => "",
            Class::Member => " member",
            Class::Encrypted => " encrypted volume",
        };
        let noun = if self.name.ends_with(noun) { "" } else { noun };
        write!(f, "{}{noun}", self.name)
    }
}

/// Everything recognised on a device of `size` bytes; the same format at several places (copies of a superblock) is
/// named once. Fails when the device cannot be read where a mark would be.
pub fn probe(reader: impl ReadAt, size: u64) -> io::Result<Vec<Signature>> {
    let view = View { reader: &reader, size };
    let mut found = Vec::new();
    partition_tables(&view, &mut found)?;
    for magic in MAGICS {
        if view.has(magic.offset, magic.bytes)? {
            found.push(Signature { name: magic.name, class: magic.class, offset: magic.offset });
        }
    }
    boot_sector_file_systems(&view, &mut found)?;
    ext(&view, &mut found)?;
    hfs_plus(&view, &mut found)?;
    lvm(&view, &mut found)?;
    luks(&view, &mut found)?;
    md(&view, &mut found)?;
    firmware_raid(&view, &mut found)?;
    zfs(&view, &mut found)?;
    drbd(&view, &mut found)?;
    let mut names = Vec::new();
    found.retain(|signature: &Signature| {
        let new = !names.contains(&signature.name);
        names.push(signature.name);
        new
    });
    Ok(found)
}

struct View<'a> {
    reader: &'a dyn ReadAt,
    size: u64,
}

impl View<'_> {
    /// The bytes at `offset`, or `None` when the device ends before.
    fn bytes<const N: usize>(&self, offset: u64) -> io::Result<Option<[u8; N]>> {
        let mut buffer = [0u8; N];
        Ok(self.fill(offset, &mut buffer)?.then_some(buffer))
    }

    fn fill(&self, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > self.size) {
            return Ok(false);
        }
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read_at(offset + filled as u64, &mut buffer[filled..]) {
                Ok(0) => return Ok(false),
                Ok(length) => filled += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn has(&self, offset: u64, expected: &[u8]) -> io::Result<bool> {
        let mut buffer = [0u8; 32];
        let buffer = &mut buffer[..expected.len()];
        Ok(self.fill(offset, buffer)? && buffer == expected)
    }
}

type Found = Vec<Signature>;

fn add(found: &mut Found, name: &'static str, class: Class, offset: u64) {
    found.push(Signature { name, class, offset });
}

fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from(le32(bytes, at)) | u64::from(le32(bytes, at + 4)) << 32
}

const SECTOR_SIZES: [u64; 4] = [512, 1024, 2048, 4096];

fn partition_tables(view: &View, found: &mut Found) -> io::Result<()> {
    for sector in SECTOR_SIZES {
        // The backup header ends the device; the primary one follows the first sector.
        for offset in [sector, view.size.saturating_sub(sector)] {
            if view.has(offset, b"EFI PART")? {
                add(found, "GPT", Class::PartitionTable, offset);
            }
        }
    }
    let Some(first) = view.bytes::<512>(0)? else { return Ok(()) };
    let ends_as_boot_sector = first[510..] == [0x55, 0xaa];
    if found.is_empty()
        && ends_as_boot_sector
        && !is_file_system_boot_sector(&first)
        && has_mbr_entries(&first)
    {
        add(found, "DOS", Class::PartitionTable, 510);
    }
    // Two bytes, and a checksum that makes the sector's words cancel out.
    let checksum = first.chunks_exact(2).fold(0, |sum, word| sum ^ le16(word, 0));
    if first[508..510] == [0xda, 0xbe] && checksum == 0 {
        add(found, "Sun disk label", Class::PartitionTable, 508);
    }
    Ok(())
}

/// Four entries of 16 bytes from 446 on, each beginning with a flag that is 0 or 0x80.
fn has_mbr_entries(first: &[u8; 512]) -> bool {
    first[446..510].chunks_exact(16).all(|entry| entry[0] & 0x7f == 0)
}

/// FAT, NTFS and exFAT end their first sector with the same two bytes but hold parameters instead of a table.
fn is_file_system_boot_sector(first: &[u8; 512]) -> bool {
    let names = [&first[3..11], &first[0x36..0x3e], &first[0x52..0x5a]];
    let known: [&[u8]; 7] =
        [b"NTFS    ", b"EXFAT   ", b"-FVE-FS-", b"FAT12   ", b"FAT16   ", b"FAT     ", b"FAT32   "];
    names.iter().any(|name| known.contains(name)) || has_fat_parameters(first)
}

/// A jump, a plausible parameter block, and a media byte: a FAT whose maker wrote no type name.
fn has_fat_parameters(first: &[u8; 512]) -> bool {
    let jump = first[0] == 0xe9 || (first[0] == 0xeb && first[2] == 0x90);
    let sector = le16(first, 11);
    let cluster = first[13];
    let (reserved, fats, media) = (le16(first, 14), first[16], first[21]);
    jump && (512..=4096).contains(&sector)
        && sector.is_power_of_two()
        && cluster.is_power_of_two()
        && reserved > 0
        && (1..=2).contains(&fats)
        && (media == 0xf0 || media >= 0xf8)
}

fn boot_sector_file_systems(view: &View, found: &mut Found) -> io::Result<()> {
    let Some(first) = view.bytes::<512>(0)? else { return Ok(()) };
    let others = [&b"NTFS    "[..], b"EXFAT   ", b"-FVE-FS-"].contains(&&first[3..11]);
    if first[510..] == [0x55, 0xaa] && !others && is_file_system_boot_sector(&first) {
        add(found, "FAT", Class::FileSystem, 510);
    }
    Ok(())
}

fn ext(view: &View, found: &mut Found) -> io::Result<()> {
    const OFFSET: u64 = 1024;
    let Some(block) = view.bytes::<128>(OFFSET)? else { return Ok(()) };
    // Two bytes alone are found in random data: the geometry must make sense as well.
    let (inodes, blocks, log_block_size, revision) =
        (le32(&block, 0), le32(&block, 4), le32(&block, 0x18), le32(&block, 0x4c));
    if le16(&block, 0x38) != 0xef53 || log_block_size > 6 || revision > 1 || (inodes == 0 && blocks == 0) {
        return Ok(());
    }
    let (compatible, incompatible, read_only) = (le32(&block, 0x5c), le32(&block, 0x60), le32(&block, 0x64));
    const HAS_JOURNAL: u32 = 0x4;
    const JOURNAL_DEVICE: u32 = 0x8;
    // Everything that ext3 does not know: extents, 64bit, flex_bg and later; huge_file, metadata_csum and later.
    const BEYOND_EXT3: (u32, u32) = (!0x1f, !0x7);
    let name = if incompatible & JOURNAL_DEVICE != 0 {
        "ext journal"
    } else if incompatible & BEYOND_EXT3.0 != 0 || read_only & BEYOND_EXT3.1 != 0 {
        "ext4"
    } else if compatible & HAS_JOURNAL != 0 {
        "ext3"
    } else {
        "ext2"
    };
    add(found, name, Class::FileSystem, OFFSET + 0x38);
    Ok(())
}

fn hfs_plus(view: &View, found: &mut Found) -> io::Result<()> {
    for (magic, version) in [(b"H+", 4u8), (b"HX", 5)] {
        if view.has(1024, &[magic[0], magic[1], 0, version])? {
            add(found, "HFS+", Class::FileSystem, 1024);
        }
    }
    Ok(())
}

fn lvm(view: &View, found: &mut Found) -> io::Result<()> {
    for offset in (0..4).map(|sector| sector * 512) {
        if view.has(offset, b"LABELONE")? && view.has(offset + 24, b"LVM2 001")? {
            add(found, "LVM2", Class::Member, offset);
        }
    }
    Ok(())
}

fn luks(view: &View, found: &mut Found) -> io::Result<()> {
    if view.has(0, b"LUKS\xba\xbe\x00\x01")? {
        add(found, "LUKS1", Class::Encrypted, 0);
    } else if view.has(0, b"LUKS\xba\xbe")? {
        add(found, "LUKS2", Class::Encrypted, 0);
    }
    // The second header of LUKS2 follows the first one's area of 16 KiB to 4 MiB.
    for offset in (0..9).map(|step| 0x4000u64 << step) {
        if view.has(offset, b"SKUL\xba\xbe")? {
            add(found, "LUKS2", Class::Encrypted, offset);
        }
    }
    Ok(())
}

fn md(view: &View, found: &mut Found) -> io::Result<()> {
    const MAGIC: u32 = 0xa92b_4efc;
    let old = (view.size & !0xffff).checked_sub(0x1_0000);
    if let Some(offset) = old
        && let Some(block) = view.bytes::<8>(offset)?
        && [block[..4] == MAGIC.to_le_bytes(), block[..4] == MAGIC.to_be_bytes()].contains(&true)
    {
        add(found, "MD RAID 0.90", Class::Member, offset);
    }
    let end = (view.size / 512).checked_sub(16).map(|sectors| (sectors & !7) * 512);
    for (name, offset) in [("MD RAID 1.0", end), ("MD RAID 1.1", Some(0)), ("MD RAID 1.2", Some(4096))] {
        let Some(offset) = offset else { continue };
        let Some(block) = view.bytes::<152>(offset)? else { continue };
        // The block says itself where it stands, in sectors: a 1.0 of a smaller device is not taken for a 1.2.
        if le32(&block, 0) == MAGIC && le32(&block, 4) == 1 && le64(&block, 144) == offset / 512 {
            add(found, name, Class::Member, offset);
        }
    }
    Ok(())
}

fn firmware_raid(view: &View, found: &mut Found) -> io::Result<()> {
    let last = view.size.saturating_sub(512);
    if view.has(view.size.saturating_sub(1024), b"Intel Raid ISM Cfg Sig. ")? {
        add(found, "Intel RAID", Class::Member, view.size - 1024);
    }
    if view.has(last, &[0xde, 0x11, 0xde, 0x11])? || view.has(last, &[0x11, 0xde, 0x11, 0xde])? {
        add(found, "DDF RAID", Class::Member, last);
    }
    Ok(())
}

fn zfs(view: &View, found: &mut Found) -> io::Result<()> {
    const LABEL: u64 = 256 << 10;
    const UBERBLOCKS: u64 = 128 << 10;
    const MAGIC: u64 = 0x00ba_b10c;
    let end = view.size / LABEL * LABEL;
    let labels = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
    let mut ring = vec![0u8; UBERBLOCKS as usize];
    for label in labels.into_iter().flatten() {
        let start = label + UBERBLOCKS;
        if !view.fill(start, &mut ring)? {
            continue;
        }
        let is_uberblock = |slot: &[u8]| slot[..8] == MAGIC.to_le_bytes() || slot[..8] == MAGIC.to_be_bytes();
        if let Some(slot) = ring.chunks_exact(1024).position(is_uberblock) {
            add(found, "ZFS", Class::Member, start + 1024 * slot as u64);
        }
    }
    Ok(())
}

fn drbd(view: &View, found: &mut Found) -> io::Result<()> {
    // Internal metadata fills the last aligned 4 KiB; versions 8.3, 8.4 and 9 differ in the last digit.
    let Some(offset) = (view.size & !0xfff).checked_sub(4096) else { return Ok(()) };
    let Some(block) = view.bytes::<128>(offset)? else { return Ok(()) };
    let is_magic = |word: &[u8]| matches!(word, [0x83, 0x74, 0x02, 0x6b..=0x6d]);
    if block.chunks_exact(4).any(is_magic) {
        add(found, "DRBD", Class::Member, offset);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn image(size: usize, patches: &[(usize, &[u8])]) -> Vec<u8> {
        let mut image = vec![0; size];
        for (offset, bytes) in patches {
            image[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        image
    }

    fn names(image: &[u8]) -> Vec<&'static str> {
        probe(image, image.len() as u64).unwrap().iter().map(|signature| signature.name).collect()
    }

    #[track_caller]
    fn check(patches: &[(usize, &[u8])], expected: &[&str]) {
        assert_eq!(names(&image(4 * MIB, patches)), expected);
    }

    /// A partition entry: flag, type, first sector, sectors.
    fn entry(flag: u8, kind: u8, first: u32, sectors: u32) -> [u8; 16] {
        let mut entry = [0; 16];
        (entry[0], entry[4]) = (flag, kind);
        entry[8..12].copy_from_slice(&first.to_le_bytes());
        entry[12..].copy_from_slice(&sectors.to_le_bytes());
        entry
    }

    const BOOT: (usize, &[u8]) = (510, &[0x55, 0xaa]);

    #[test]
    fn every_fixed_mark() {
        for magic in MAGICS {
            // A boot sector that names its file system, an entry of its own, needs nothing else.
            check(&[(magic.offset as usize, magic.bytes)], &[magic.name]);
        }
    }

    #[test]
    fn partition_tables() {
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
    }

    #[test]
    fn boot_sectors_are_no_tables() {
        check(&[BOOT, (0x36, b"FAT16   ")], &["FAT"]);
        check(&[BOOT, (0x52, b"FAT32   ")], &["FAT"]);
        let parameters = [0xeb, 0x3c, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 1, 0, 2, 0, 2, 0, 0, 0xf8];
        check(&[BOOT, (0, &parameters)], &["FAT"]);
        check(&[BOOT, (3, b"NTFS    ")], &["NTFS"]);
        check(&[BOOT, (3, b"EXFAT   ")], &["exFAT"]);
        // Boot code that jumps, and a table: GRUB's.
        check(&[BOOT, (0, &[0xeb, 0x63, 0x90]), (446, &entry(0, 0x83, 2048, 100))], &["DOS"]);
    }

    #[test]
    fn sun_label_needs_its_checksum() {
        check(&[(508, &[0xda, 0xbe, 0xda, 0xbe])], &["Sun disk label"]);
        check(&[(508, &[0xda, 0xbe, 0xda, 0xbf])], &[]);
    }

    fn ext_superblock(compatible: u32, incompatible: u32, read_only: u32) -> Vec<u8> {
        let mut block = vec![0; 128];
        let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &1024u32.to_le_bytes());
        put(4, &4096u32.to_le_bytes());
        put(0x38, &[0x53, 0xef]);
        put(0x4c, &1u32.to_le_bytes());
        put(0x5c, &compatible.to_le_bytes());
        put(0x60, &incompatible.to_le_bytes());
        put(0x64, &read_only.to_le_bytes());
        block
    }

    #[test]
    fn ext_generations() {
        check(&[(1024, &ext_superblock(0, 0x2, 0x3))], &["ext2"]);
        check(&[(1024, &ext_superblock(0x4, 0x2, 0x3))], &["ext3"]);
        check(&[(1024, &ext_superblock(0x3c, 0x2c2, 0x46b))], &["ext4"]);
        check(&[(1024, &ext_superblock(0, 0x40, 0))], &["ext4"]);
        check(&[(1024, &ext_superblock(0, 0x8, 0))], &["ext journal"]);
        check(&[(1024 + 0x38, &[0x53, 0xef])], &[]);
        let mut huge_blocks = ext_superblock(0, 0, 0);
        huge_blocks[0x18] = 7;
        check(&[(1024, &huge_blocks)], &[]);
    }

    fn md_superblock(super_offset_sectors: u64) -> Vec<u8> {
        let mut block = vec![0; 256];
        block[..4].copy_from_slice(&0xa92b_4efcu32.to_le_bytes());
        block[4] = 1;
        block[144..152].copy_from_slice(&super_offset_sectors.to_le_bytes());
        block
    }

    #[test]
    fn md_generations() {
        let end = 4 * MIB - 8192;
        check(&[(0, &md_superblock(0))], &["MD RAID 1.1"]);
        check(&[(4096, &md_superblock(8))], &["MD RAID 1.2"]);
        check(&[(end, &md_superblock(end as u64 / 512))], &["MD RAID 1.0"]);
        check(&[(4096, &md_superblock(9))], &[]);
        check(&[(4 * MIB - 65536, &[0xfc, 0x4e, 0x2b, 0xa9])], &["MD RAID 0.90"]);
        check(&[(4 * MIB - 65536, &[0xa9, 0x2b, 0x4e, 0xfc])], &["MD RAID 0.90"]);
        // On an odd size the superblocks at the end stand at rounded places.
        let odd = 4 * MIB + 3 * 512;
        let at = (odd / 512 - 16) / 8 * 8 * 512;
        assert_eq!(names(&image(odd, &[(at, &md_superblock(at as u64 / 512))])), ["MD RAID 1.0"]);
        assert_eq!(names(&image(odd, &[(4 * MIB - 65536, &[0xfc, 0x4e, 0x2b, 0xa9])])), ["MD RAID 0.90"]);
    }

    #[test]
    fn members_and_containers() {
        let label = b"LABELONE\x01\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0LVM2 001";
        for sector in 0..4 {
            check(&[(sector * 512, label)], &["LVM2"]);
        }
        check(&[(4 * 512, label)], &[]);
        check(&[(512, b"LABELONE")], &[]);
        check(&[(0, b"LUKS\xba\xbe\0\x01")], &["LUKS1"]);
        check(&[(0, b"LUKS\xba\xbe\0\x02"), (0x4000, b"SKUL\xba\xbe\0\x02")], &["LUKS2"]);
        check(&[(0x40_0000 - 0x20_0000, b"SKUL\xba\xbe\0\x02")], &["LUKS2"]);
        check(&[(4 * MIB - 1024, b"Intel Raid ISM Cfg Sig. 1.3.00")], &["Intel RAID"]);
        check(&[(4 * MIB - 512, &[0xde, 0x11, 0xde, 0x11])], &["DDF RAID"]);
        check(&[(4 * MIB - 4096 + 60, &[0x83, 0x74, 0x02, 0x6b])], &["DRBD"]);
        check(&[(1024, b"H+\0\x04")], &["HFS+"]);
    }

    #[test]
    fn zfs_labels_in_both_byte_orders() {
        let (little, big) = (0x00ba_b10cu64.to_le_bytes(), 0x00ba_b10cu64.to_be_bytes());
        let kib = 1024;
        check(&[(128 * kib, &little)], &["ZFS"]);
        check(&[((128 + 77) * kib, &big)], &["ZFS"]);
        check(&[((256 + 128) * kib, &little)], &["ZFS"]);
        check(&[(4 * MIB - 256 * kib + 200 * kib, &big)], &["ZFS"]);
        check(&[(100 * kib, &little)], &[]);
        let odd = image(4 * MIB + 100 * kib, &[(4 * MIB - 128 * kib, &little)]);
        assert_eq!(names(&odd), ["ZFS"]);
    }

    #[test]
    fn several_at_once_and_copies_once() {
        let ext4 = ext_superblock(0x3c, 0x2c2, 0x46b);
        check(&[BOOT, (446, &entry(0, 0x83, 64, 64)), (1024, &ext4)], &["DOS", "ext4"]);
        check(&[(512, b"EFI PART"), (4 * MIB - 512, b"EFI PART")], &["GPT"]);
    }

    #[test]
    fn nothing_in_zeros_random_data_and_tiny_images() {
        for size in [0, 1, 511, 512, 513, 4096, 65536, 256 << 10, 4 * MIB + 1] {
            assert_eq!(names(&image(size, &[])), [] as [&str; 0], "{size} bytes");
        }
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for _image in 0..4 {
            let mut random = vec![0u8; 4 * MIB];
            for word in random.chunks_exact_mut(8) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                word.copy_from_slice(&state.to_le_bytes());
            }
            assert_eq!(names(&random), [] as [&str; 0]);
        }
    }

    #[test]
    fn unreadable_is_an_error() {
        struct Broken;
        impl ReadAt for Broken {
            fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
                if offset > 60_000 { Err(io::Error::from_raw_os_error(5)) } else { Ok(buffer.len()) }
            }
        }
        assert_eq!(probe(Broken, 1 << 20).unwrap_err().raw_os_error(), Some(5));
    }

    #[test]
    fn sentences() {
        let check = |name: &'static str, class: Class, expected: &str| {
            assert_eq!(Signature { name, class, offset: 0 }.to_string(), expected);
        };
        check("GPT", Class::PartitionTable, "GPT partition table");
        check("BSD disk label", Class::PartitionTable, "BSD disk label");
        check("ext4", Class::FileSystem, "ext4 file system");
        check("swap", Class::Swap, "swap space");
        check("hibernation image", Class::Swap, "hibernation image");
        check("LVM2", Class::Member, "LVM2 member");
        check("VMFS member", Class::Member, "VMFS member");
        check("LUKS2", Class::Encrypted, "LUKS2 encrypted volume");
    }
}
