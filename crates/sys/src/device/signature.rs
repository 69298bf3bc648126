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
        let Some(block) = view.bytes::<136>(offset)? else { continue };
        // The block says itself where it stands, in sectors: a 1.0 of a smaller device is not taken for a 1.2.
        if le32(&block, 0) == MAGIC && le32(&block, 4) == 1 && le64(&block, 128) == offset / 512 {
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
