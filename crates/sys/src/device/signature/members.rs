//! Members of volume groups, software RAIDs and pools, and encrypted devices, whose detection needs more than a
//! comparison.

use std::io;

use super::SignatureClass::{Encrypted, Member};
use super::view::{View, be32, le16, le32, le64};
use super::{Found, add};

/// All of them.
pub(super) fn probe(view: &View, found: &mut Found) -> io::Result<()> {
    lvm(view, found)?;
    luks(view, found)?;
    file_vault(view, found)?;
    md(view, found)?;
    zfs(view, found)?;
    drbd(view, found)?;
    dasd(view, found)?;
    geom(view, found)
}

fn lvm(view: &View, found: &mut Found) -> io::Result<()> {
    for offset in (0..4).map(|sector| sector * 512) {
        if view.has(offset, b"LABELONE")? && view.has(offset + 24, b"LVM2 001")? {
            add(found, "LVM2", Member, offset);
        }
    }
    // The first generation has two bytes and one of two versions.
    if view.has(0, b"HM\x01\0")? || view.has(0, b"HM\x02\0")? {
        add(found, "LVM1", Member, 0);
    }
    Ok(())
}

fn luks(view: &View, found: &mut Found) -> io::Result<()> {
    if view.has(0, b"LUKS\xba\xbe\x00\x01")? {
        add(found, "LUKS1", Encrypted, 0);
    } else if view.has(0, b"LUKS\xba\xbe")? {
        add(found, "LUKS2", Encrypted, 0);
    }
    // The second header of LUKS2 follows the first one's area of 16 KiB to 4 MiB.
    for offset in (0..9).map(|step| 0x4000u64 << step) {
        if view.has(offset, b"SKUL\xba\xbe")? {
            add(found, "LUKS2", Encrypted, offset);
        }
    }
    Ok(())
}

/// A physical volume of Core Storage: two bytes, and the only version and checksum algorithm that there are.
fn file_vault(view: &View, found: &mut Found) -> io::Result<()> {
    let Some(block) = view.bytes::<96>(0)? else { return Ok(()) };
    if block[88..90] == *b"CS" && le16(&block, 8) == 1 && le32(&block, 90) == 1 {
        add(found, "FileVault 2", Encrypted, 88);
    }
    Ok(())
}

fn md(view: &View, found: &mut Found) -> io::Result<()> {
    const MAGIC: u32 = 0xa92b_4efc;
    let old = (view.size & !0xffff).checked_sub(0x1_0000);
    if let Some(offset) = old
        && let Some(block) = view.bytes::<4>(offset)?
        && [le32(&block, 0), be32(&block, 0)].contains(&MAGIC)
    {
        add(found, "MD RAID 0.90", Member, offset);
    }
    let end = view.sector_from_end(16).map(|offset| offset & !0xfff);
    for (name, offset) in [("MD RAID 1.0", end), ("MD RAID 1.1", Some(0)), ("MD RAID 1.2", Some(4096))] {
        let Some(offset) = offset else { continue };
        let Some(block) = view.bytes::<152>(offset)? else { continue };
        // The block says itself where it stands, in sectors: a 1.0 of a smaller device is not taken for a 1.2.
        if le32(&block, 0) == MAGIC && le32(&block, 4) == 1 && le64(&block, 144) == offset / 512 {
            add(found, name, Member, offset);
        }
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
            add(found, "ZFS", Member, start + 1024 * slot as u64);
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
        add(found, "DRBD", Member, offset);
    }
    Ok(())
}

/// The volume label of a mainframe's disk, in the third block: `VOL1`, `LNX1` or `CMS1` in EBCDIC.
fn dasd(view: &View, found: &mut Found) -> io::Result<()> {
    const VOL1: &[u8] = &[0xe5, 0xd6, 0xd3, 0xf1];
    const LNX1: &[u8] = &[0xd3, 0xd5, 0xe7, 0xf1];
    const CMS1: &[u8] = &[0xc3, 0xd4, 0xe2, 0xf1];
    for offset in [512, 1024, 2048, 4096].map(|block| 2 * block) {
        let Some(label) = view.bytes::<8>(offset)? else { break };
        let is_label = [VOL1, LNX1, CMS1].contains(&&label[..4]) || label[4..] == *VOL1;
        if is_label {
            add(found, "DASD volume label", super::SignatureClass::PartitionTable, offset);
        }
    }
    Ok(())
}

/// FreeBSD's disk transformations (labels, mirrors, encryption) mark the last sector.
fn geom(view: &View, found: &mut Found) -> io::Result<()> {
    for sector in [512, 4096] {
        if let Some(offset) = (view.size / sector).checked_sub(1).map(|last| last * sector)
            && view.has(offset, b"GEOM::")?
        {
            add(found, "FreeBSD GEOM", Member, offset);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::device::signature::fixture::{MIB, check, image, names};

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
    fn lvm_generations() {
        let label = b"LABELONE\x01\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0LVM2 001";
        for sector in 0..4 {
            check(&[(sector * 512, label)], &["LVM2"]);
        }
        check(&[(4 * 512, label)], &[]);
        check(&[(512, b"LABELONE")], &[]);
        check(&[(0, b"HM\x01\0")], &["LVM1"]);
        check(&[(0, b"HM\x02\0")], &["LVM1"]);
        check(&[(0, b"HM\x03\0")], &[]);
    }

    #[test]
    fn encrypted_volumes() {
        check(&[(0, b"LUKS\xba\xbe\0\x01")], &["LUKS1"]);
        check(&[(0, b"LUKS\xba\xbe\0\x02"), (0x4000, b"SKUL\xba\xbe\0\x02")], &["LUKS2"]);
        check(&[(0x40_0000 - 0x20_0000, b"SKUL\xba\xbe\0\x02")], &["LUKS2"]);
        check(&[(8, &[1]), (88, b"CS\x01")], &["FileVault 2"]);
        check(&[(8, &[2]), (88, b"CS\x01")], &[]);
        check(&[(88, b"CS")], &[]);
    }

    #[test]
    fn marks_near_the_end() {
        check(&[(4 * MIB - 4096 + 60, &[0x83, 0x74, 0x02, 0x6b])], &["DRBD"]);
        check(&[(4 * MIB - 4096 + 60, &[0x83, 0x74, 0x02, 0x6a])], &[]);
        check(&[(4 * MIB - 512, b"GEOM::MIRROR")], &["FreeBSD GEOM"]);
        check(&[(4 * MIB - 4096, b"GEOM::ELI")], &["FreeBSD GEOM"]);
    }

    #[test]
    fn dasd_labels_in_every_size_of_block() {
        for block in [512, 1024, 2048, 4096] {
            for (at, mark) in [(4, [0xe5, 0xd6, 0xd3, 0xf1]), (0, [0xd3, 0xd5, 0xe7, 0xf1])] {
                check(&[(2 * block + at, &mark)], &["DASD volume label"]);
            }
        }
        check(&[(8192, &[0xc3, 0xd4, 0xe2, 0xf1])], &["DASD volume label"]);
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
}
