//! File systems whose marks are short, have several possible offsets, or are shared by several formats.

use std::io;

use super::SignatureClass::FileSystem;
use super::view::{View, be16, be32, le16, le32};
use super::{Found, add};

/// All of them.
pub(super) fn probe(view: &View, found: &mut Found) -> io::Result<()> {
    fat(view, found)?;
    ext(view, found)?;
    minix(view, found)?;
    hfs(view, found)?;
    gfs(view, found)?;
    ufs(view, found)?;
    system_v(view, found)?;
    optical(view, found)?;
    xfs_log(view, found)?;
    nilfs_copy(view, found)
}

/// FAT, NTFS, exFAT and others end their first sector like a partition table but hold parameters instead of one.
pub(super) fn is_boot_sector(first: &[u8; 512]) -> bool {
    is_other_boot_sector(first) || is_fat(first)
}

fn is_other_boot_sector(first: &[u8; 512]) -> bool {
    // OS/2 gives the boot sectors of its own file systems parameters as of a FAT.
    [&b"NTFS    "[..], b"EXFAT   ", b"-FVE-FS-"].contains(&&first[3..11])
        || [&b"HPFS    "[..], b"JFS     "].contains(&&first[0x36..0x3e])
}

fn is_fat(first: &[u8; 512]) -> bool {
    const NAMES: [&[u8]; 6] = [b"FAT12   ", b"FAT16   ", b"FAT     ", b"FAT32   ", b"MSDOS", b"MSWIN"];
    let is_named =
        NAMES.iter().any(|name| first[0x36..].starts_with(name) || first[0x52..].starts_with(name));
    is_named || has_fat_parameters(first)
}

/// A plausible parameter block: a FAT whose maker wrote no type name.
fn has_fat_parameters(first: &[u8; 512]) -> bool {
    let (sector, cluster) = (le16(first, 11), first[13]);
    let (reserved, fats, media) = (le16(first, 14), first[16], first[21]);
    (512..=4096).contains(&sector)
        && sector.is_power_of_two()
        && cluster.is_power_of_two()
        && reserved > 0
        && (1..=2).contains(&fats)
        && (media == 0xf0 || media >= 0xf8)
}

fn fat(view: &View, found: &mut Found) -> io::Result<()> {
    let Some(first) = view.bytes::<512>(0)? else { return Ok(()) };
    if !is_other_boot_sector(&first) && is_fat(&first) {
        add(found, "FAT", FileSystem, 0);
    }
    Ok(())
}

const EXT_OFFSET: u64 = 1024;
const EXT_MAGIC: u16 = 0xef53;

fn ext(view: &View, found: &mut Found) -> io::Result<()> {
    let Some(block) = view.bytes::<128>(EXT_OFFSET)? else { return Ok(()) };
    // Two bytes alone are found in random data: the geometry must make sense as well.
    let (inodes, blocks, log_block_size, revision) =
        (le32(&block, 0), le32(&block, 4), le32(&block, 0x18), le32(&block, 0x4c));
    let is_empty = inodes == 0 && blocks == 0;
    if le16(&block, 0x38) != EXT_MAGIC || log_block_size > 6 || revision > 1 || is_empty {
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
    add(found, name, FileSystem, EXT_OFFSET + 0x38);
    Ok(())
}

/// Versions 1 and 2 differ from 3 in the places of their fields; each occurs in both byte orders.
fn minix(view: &View, found: &mut Found) -> io::Result<()> {
    const OFFSET: u64 = 1024;
    const OLD: [u16; 4] = [0x137f, 0x138f, 0x2468, 0x2478];
    const NEW: u16 = 0x4d5a;
    // Zones of more than 256 blocks have never been in use.
    const MAX_LOG_ZONE_SIZE: u16 = 8;
    let Some(block) = view.bytes::<64>(OFFSET)? else { return Ok(()) };
    if le16(&block, 0x38) == EXT_MAGIC {
        return Ok(());
    }
    for read in [le16, be16] {
        let at = |offset| read(&block, offset);
        // A bitmap of 1024 bytes has a bit for 8192 inodes, of which a 16-bit number counts eight blocks full.
        let is_old = OLD.contains(&at(16))
            && (1..=9).contains(&at(4))
            && u32::from(at(4)) * 8192 > u32::from(at(0))
            && at(6) > 0
            && at(10) <= MAX_LOG_ZONE_SIZE;
        let block_size = at(28);
        let is_new = at(24) == NEW
            && at(6) > 0
            && at(8) > 0
            && at(12) <= MAX_LOG_ZONE_SIZE
            && block_size >= 512
            && block_size.is_power_of_two();
        if is_old || is_new {
            add(found, "minix", FileSystem, OFFSET + if is_old { 16 } else { 24 });
        }
    }
    Ok(())
}

/// HFS has two bytes only, so its geometry must make sense; HFS+ may lie within an HFS that is but a wrapper.
fn hfs(view: &View, found: &mut Found) -> io::Result<()> {
    const OFFSET: u64 = 1024;
    let Some(block) = view.bytes::<128>(OFFSET)? else { return Ok(()) };
    let is_plus = [b"H+\0\x04", b"HX\0\x05"].contains(&&[block[0], block[1], block[2], block[3]]);
    let (blocks, block_size, name_length) = (be16(&block, 18), be32(&block, 20), block[36]);
    let is_old = block[..2] == *b"BD"
        && blocks > 0
        && block_size.is_multiple_of(512)
        && (512..=64 << 20).contains(&block_size)
        && (1..=27).contains(&name_length);
    if is_plus || is_old && [*b"H+", *b"HX"].contains(&[block[124], block[125]]) {
        add(found, "HFS+", FileSystem, OFFSET);
    } else if is_old {
        add(found, "HFS", FileSystem, OFFSET);
    }
    Ok(())
}

/// Both generations have the same mark; the format number distinguishes them.
fn gfs(view: &View, found: &mut Found) -> io::Result<()> {
    const OFFSET: u64 = 64 << 10;
    const FIRST_GENERATION: u32 = 1309;
    let Some(block) = view.bytes::<28>(OFFSET)? else { return Ok(()) };
    if block[..8] == [0x01, 0x16, 0x19, 0x70, 0, 0, 0, 1] {
        let name = if be32(&block, 24) == FIRST_GENERATION { "gfs" } else { "gfs2" };
        add(found, name, FileSystem, OFFSET);
    }
    Ok(())
}

/// The superblock is at one of four places, in either byte order, and says which dialect it is: those of 4.4BSD and
/// System V, UFS2 (0x19540119), and HP-UX with long names, feature flags, security or more than 4 GB.
fn ufs(view: &View, found: &mut Found) -> io::Result<()> {
    const UFS2: u32 = 0x1954_0119;
    const OTHERS: [u32; 5] = [0x0001_1954, 0x0009_5014, 0x0019_5612, 0x0061_2195, 0x0523_1994];
    for superblock in [0, 8 << 10, 64 << 10, 256 << 10] {
        let offset = superblock + 1372;
        let Some(mark) = view.bytes::<4>(offset)? else { break };
        let orders = [le32(&mark, 0), be32(&mark, 0)];
        if orders.contains(&UFS2) {
            add(found, "UFS2", FileSystem, offset);
        } else if OTHERS.iter().any(|magic| orders.contains(magic)) {
            add(found, "UFS", FileSystem, offset);
        }
    }
    Ok(())
}

/// System V releases 2 and 4 and Xenix, in either byte order. Coherent and the Seventh Edition leave no mark.
fn system_v(view: &View, found: &mut Found) -> io::Result<()> {
    const SYSTEM_V: u32 = 0xfd18_7e20;
    const XENIX: u32 = 0x002b_5544;
    let places = [0, 9, 15, 18].map(|block| ("System V", SYSTEM_V, block * 1024 + 512 + 504));
    for (name, magic, offset) in places.into_iter().chain([("Xenix", XENIX, 1024 + 1016)]) {
        if view.bytes::<4>(offset)?.is_some_and(|mark| [le32(&mark, 0), be32(&mark, 0)].contains(&magic)) {
            add(found, name, FileSystem, offset);
        }
    }
    Ok(())
}

/// The volume descriptors of ISO 9660 and UDF stand in a row, each at the start of a sector of 2 or 4 KiB.
fn optical(view: &View, found: &mut Found) -> io::Result<()> {
    const START: u64 = 32 << 10;
    const MAX_DESCRIPTORS: u64 = 64;
    const OF_UDF: [&[u8]; 6] = [b"BEA01", b"BOOT2", b"CDW02", b"NSR02", b"NSR03", b"TEA01"];
    if view.has(START + 9, b"CDROM")? {
        add(found, "High Sierra", FileSystem, START + 9);
    }
    for sector in [2048, 4096] {
        for offset in (0..MAX_DESCRIPTORS).map(|index| START + index * sector + 1) {
            let Some(mark) = view.bytes::<5>(offset)? else { break };
            if mark == *b"CD001" {
                add(found, "ISO 9660", FileSystem, offset);
            } else if OF_UDF.contains(&&mark[..]) {
                add(found, "UDF", FileSystem, offset);
            } else {
                break;
            }
        }
    }
    Ok(())
}

/// A log on a separate device has no superblock, but a record begins in some sector of the first 256 KiB.
fn xfs_log(view: &View, found: &mut Found) -> io::Result<()> {
    if view.has(0, b"XFSB")? {
        return Ok(());
    }
    for offset in (0..512).map(|sector| sector * 512) {
        let Some(record) = view.bytes::<304>(offset)? else { break };
        let (version, format) = (be32(&record, 8), be32(&record, 300));
        if record[..4] == [0xfe, 0xed, 0xba, 0xbe] && (1..=3).contains(&version) && (1..=3).contains(&format)
        {
            add(found, "XFS log", FileSystem, offset);
            break;
        }
    }
    Ok(())
}

/// The second superblock, in the last 4 KiB. The first is a fixed mark.
fn nilfs_copy(view: &View, found: &mut Found) -> io::Result<()> {
    const REVISION_2: &[u8] = &[2, 0, 0, 0, 0, 0, 0x34, 0x34];
    let aligned = (view.size & !0xfff).checked_sub(4096);
    for offset in [view.sector_from_end(8), aligned].into_iter().flatten() {
        if view.has(offset, REVISION_2)? {
            add(found, "nilfs2", FileSystem, offset);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::device::signature::fixture::{BOOT, MIB, check, image, names};

    #[test]
    fn fat_by_name_or_by_parameters() {
        let parameters = [0xeb, 0x3c, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 1, 0, 2, 0, 2, 0, 0, 0xf8];
        check(&[BOOT, (0, &parameters)], &["FAT"]);
        // Ataris write neither the jump nor the end of a boot sector.
        check(&[(3, &parameters[3..])], &["FAT"]);
        check(&[(0x52, b"FAT32   ")], &["FAT"]);
        check(&[(0x36, b"MSDOS")], &["FAT"]);
        for (at, byte) in [(12, 3), (13, 3), (14, 0), (16, 3), (21, 0xf1)] {
            let mut wrong = parameters;
            wrong[at] = byte;
            check(&[(0, &wrong)], &[]);
        }
        let offset = 8 << 10;
        let hpfs = &[0x49, 0xe8, 0x95, 0xf9];
        check(&[BOOT, (0, &parameters), (0x36, b"HPFS    "), (offset, hpfs)], &["HPFS"]);
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
        let ext4 = ext_superblock(0x3c, 0x2c2, 0x46b);
        check(&[(1024, &ext4)], &["ext4"]);
        check(&[(1024, &ext_superblock(0, 0x40, 0))], &["ext4"]);
        check(&[(1024, &ext_superblock(0, 0x8, 0))], &["ext journal"]);
        check(&[(1024 + 0x38, &[0x53, 0xef])], &[]);
        let mut huge_blocks = ext_superblock(0, 0, 0);
        huge_blocks[0x18] = 7;
        check(&[(1024, &huge_blocks)], &[]);
        check(&[BOOT, (1024, &ext4)], &["DOS", "ext4"]);
    }

    /// A superblock of the byte order that `bytes` makes.
    fn minix(magic: (usize, u16), bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        let mut block = vec![0; 64];
        let mut put = |at: usize, value: u16| block[at..at + 2].copy_from_slice(&bytes(value));
        put(magic.0, magic.1);
        let is_old = magic.0 == 16;
        let fields: &[(usize, u16)] =
            if is_old { &[(0, 1440), (4, 1), (6, 1), (8, 50)] } else { &[(6, 1), (8, 1), (28, 4096)] };
        for (at, value) in fields {
            put(*at, *value);
        }
        block
    }

    #[test]
    fn minix_in_all_versions_and_byte_orders() {
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            for magic in [(16, 0x137f), (16, 0x138f), (16, 0x2468), (16, 0x2478), (24, 0x4d5a)] {
                let block = minix(magic, order);
                check(&[(1024, &block)], &["minix"]);
                check(&[(1024, &block), (1024 + 4, &[0; 4])], &[]);
            }
        }
        check(&[(1024 + 16, &[0x7f, 0x13])], &[]);
        check(&[(1024 + 24, &[0x5a, 0x4d])], &[]);
    }

    #[test]
    fn hfs_and_what_it_wraps() {
        let mut old = [0; 128];
        old[..2].copy_from_slice(b"BD");
        (old[19], old[22], old[36]) = (9, 2, 5);
        check(&[(1024, &old)], &["HFS"]);
        for wrapped in [b"H+", b"HX"] {
            check(&[(1024, &old), (1024 + 124, wrapped)], &["HFS+"]);
        }
        for (at, byte) in [(19, 0), (23, 1), (36, 28)] {
            let mut wrong = old;
            wrong[at] = byte;
            check(&[(1024, &wrong)], &[]);
        }
        check(&[(1024, b"H+\0\x04")], &["HFS+"]);
        check(&[(1024, b"HX\0\x05")], &["HFS+"]);
        check(&[(1024, b"H+\0\x05")], &[]);
    }

    #[test]
    fn gfs_generations() {
        let mark: (usize, &[u8]) = (64 << 10, &[0x01, 0x16, 0x19, 0x70, 0, 0, 0, 1]);
        let format = (64 << 10) + 24;
        check(&[mark, (format, &1309u32.to_be_bytes())], &["gfs"]);
        check(&[mark, (format, &1801u32.to_be_bytes())], &["gfs2"]);
        check(&[mark, (format, &1802u32.to_be_bytes())], &["gfs2"]);
    }

    #[test]
    fn ufs_at_all_places_in_all_dialects() {
        for place in [0, 8 << 10, 64 << 10, 256 << 10] {
            for magic in [0x0001_1954u32, 0x0009_5014, 0x0019_5612, 0x0061_2195, 0x0523_1994] {
                check(&[(place + 1372, &magic.to_le_bytes())], &["UFS"]);
                check(&[(place + 1372, &magic.to_be_bytes())], &["UFS"]);
            }
            check(&[(place + 1372, &0x1954_0119u32.to_le_bytes())], &["UFS2"]);
            check(&[(place + 1372, &0x1954_0119u32.to_be_bytes())], &["UFS2"]);
        }
    }

    #[test]
    fn system_v_and_xenix() {
        for block in [0, 9, 15, 18] {
            check(&[(block * 1024 + 1016, &0xfd18_7e20u32.to_le_bytes())], &["System V"]);
            check(&[(block * 1024 + 1016, &0xfd18_7e20u32.to_be_bytes())], &["System V"]);
        }
        check(&[(2040, &0x002b_5544u32.to_le_bytes())], &["Xenix"]);
        check(&[(2040, &0x002b_5544u32.to_be_bytes())], &["Xenix"]);
    }

    #[test]
    fn optical_volumes() {
        let at = |sector: usize, size: usize| (32 << 10) + sector * size + 1;
        for mark in [b"BEA01", b"BOOT2", b"CDW02", b"NSR02", b"NSR03", b"TEA01"] {
            check(&[(at(0, 2048), mark)], &["UDF"]);
        }
        let both: [(usize, &[u8]); 3] =
            [(at(0, 2048), b"CD001"), (at(1, 2048), b"CD001"), (at(2, 2048), b"BEA01")];
        check(&both[..2], &["ISO 9660"]);
        check(&both, &["ISO 9660", "UDF"]);
        check(&[(at(0, 4096), b"CD001"), (at(1, 4096), b"NSR03")], &["ISO 9660", "UDF"]);
        // What follows a sector that is no descriptor is not one of the row.
        check(&both[1..], &[]);
        check(&[((32 << 10) + 9, b"CDROM")], &["High Sierra"]);
    }

    #[test]
    fn xfs_logs() {
        let mut record = vec![0; 512];
        record[..4].copy_from_slice(&[0xfe, 0xed, 0xba, 0xbe]);
        (record[11], record[303]) = (2, 1);
        check(&[(0, &record)], &["XFS log"]);
        check(&[(511 * 512, &record)], &["XFS log"]);
        check(&[(512 * 512, &record)], &[]);
        check(&[(0, b"XFSB"), (4096, &record)], &["xfs"]);
        record[11] = 4;
        check(&[(0, &record)], &[]);
    }

    #[test]
    fn the_second_superblock_of_nilfs() {
        let mark: &[u8] = &[2, 0, 0, 0, 0, 0, 0x34, 0x34];
        check(&[(4 * MIB - 4096, mark)], &["nilfs2"]);
        let odd = 4 * MIB + 3 * 512;
        assert_eq!(names(&image(odd, &[(odd - 4096, mark)])), ["nilfs2"]);
        assert_eq!(names(&image(odd, &[(4 * MIB - 4096, mark)])), ["nilfs2"]);
    }
}
