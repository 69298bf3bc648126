//! The marks of on-disk formats that stand at one fixed place: a table, read by [`super::signature`].
//!
//! Only marks of at least four bytes are here; shorter ones are found in random data and need more than a comparison.

use super::signature::Class::{self, Encrypted, FileSystem, Member, PartitionTable, Swap};

/// A format known by fixed bytes at a fixed offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct Magic {
    pub(super) name: &'static str,
    pub(super) class: Class,
    pub(super) offset: u64,
    pub(super) bytes: &'static [u8],
}

const fn magic(name: &'static str, class: Class, offset: u64, bytes: &'static [u8]) -> Magic {
    Magic { name, class, offset, bytes }
}

const KIB: u64 = 1024;

/// All fixed marks, in the order of their offsets.
pub(super) const MAGICS: &[Magic] = &[
    magic("xfs", FileSystem, 0, b"XFSB"),
    magic("squashfs", FileSystem, 0, b"hsqs"),
    magic("squashfs", FileSystem, 0, b"sqsh"),
    magic("cramfs", FileSystem, 0, &[0x45, 0x3d, 0xcd, 0x28]),
    magic("romfs", FileSystem, 0, b"-rom1fs-"),
    magic("Ceph BlueStore", Member, 0, b"bluestore block device"),
    magic("VDO", Member, 0, b"dmvdo001"),
    magic("device-mapper integrity", Member, 0, b"integrt\0"),
    magic("device-mapper verity", Member, 0, b"verity\0\0"),
    magic("device-mapper snapshot", Member, 0, b"SnAp"),
    magic("SGI disk label", PartitionTable, 0, &[0x0b, 0xe5, 0xa9, 0x41]),
    magic("NTFS", FileSystem, 3, b"NTFS    "),
    magic("exFAT", FileSystem, 3, b"EXFAT   "),
    magic("ReFS", FileSystem, 3, b"ReFS\0"),
    magic("BitLocker", Encrypted, 3, b"-FVE-FS-"),
    magic("APFS", FileSystem, 32, b"NXSB"),
    magic("Oracle ASM", Member, 32, b"ORCLDISK"),
    magic("BSD disk label", PartitionTable, 512, &[0x57, 0x45, 0x56, 0x82]),
    magic("Stratis", Member, 516, b"!Stra0tis\x86\xff\x02^\x41rh"),
    magic("f2fs", FileSystem, KIB, &[0x10, 0x20, 0xf5, 0xf2]),
    magic("erofs", FileSystem, KIB, &[0xe2, 0xe1, 0xf5, 0xe0]),
    magic("nilfs2", FileSystem, KIB, &[2, 0, 0, 0, 0, 0, 0x34, 0x34]),
    magic("ocfs2", FileSystem, KIB, b"OCFSV2"),
    magic("ocfs2", FileSystem, 2 * KIB, b"OCFSV2"),
    magic("ocfs2", FileSystem, 4 * KIB, b"OCFSV2"),
    magic("ocfs2", FileSystem, 8 * KIB, b"OCFSV2"),
    magic("swap", Swap, 4 * KIB - 10, b"SWAPSPACE2"),
    magic("swap", Swap, 8 * KIB - 10, b"SWAPSPACE2"),
    magic("swap", Swap, 16 * KIB - 10, b"SWAPSPACE2"),
    magic("swap", Swap, 32 * KIB - 10, b"SWAPSPACE2"),
    magic("swap", Swap, 64 * KIB - 10, b"SWAPSPACE2"),
    magic("swap", Swap, 4 * KIB - 10, b"SWAP-SPACE"),
    magic("hibernation image", Swap, 4 * KIB - 10, b"S1SUSPEND"),
    magic("hibernation image", Swap, 4 * KIB - 10, b"S2SUSPEND"),
    magic("hibernation image", Swap, 4 * KIB - 10, b"LINHIB0001"),
    magic(
        "bcache",
        Member,
        4 * KIB + 24,
        &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81],
    ),
    magic(
        "bcachefs",
        FileSystem,
        4 * KIB + 24,
        &[0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef],
    ),
    magic("reiserfs", FileSystem, 8 * KIB + 52, b"ReIsErFs"),
    magic("UFS", FileSystem, 8 * KIB + 1372, &[0x54, 0x19, 0x01, 0x00]),
    magic("jfs", FileSystem, 32 * KIB, b"JFS1"),
    magic("ISO 9660", FileSystem, 32 * KIB + 1, b"CD001"),
    magic("UDF", FileSystem, 32 * KIB + 1, b"BEA01"),
    magic("UDF", FileSystem, 34 * KIB + 1, b"BEA01"),
    magic("reiserfs", FileSystem, 64 * KIB + 52, b"ReIsEr2Fs"),
    magic("reiserfs", FileSystem, 64 * KIB + 52, b"ReIsEr3Fs"),
    magic("btrfs", FileSystem, 64 * KIB + 64, b"_BHRfS_M"),
    magic("gfs2", FileSystem, 64 * KIB, &[0x01, 0x16, 0x19, 0x70, 0x00, 0x00, 0x00, 0x01]),
    magic("UFS2", FileSystem, 64 * KIB + 1372, &[0x19, 0x01, 0x54, 0x19]),
    magic("VMFS member", Member, 1024 * KIB, &[0x0d, 0xd0, 0x01, 0xc0]),
    magic("VMFS", FileSystem, 2048 * KIB, &[0x5e, 0xf1, 0xab, 0x2f]),
];
