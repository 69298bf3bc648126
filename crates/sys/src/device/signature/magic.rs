//! The marks of on-disk formats that stand at one fixed place.
//!
//! Only marks of at least four bytes are here; shorter ones are found in random data and need more than a comparison.

use super::SignatureClass::{self, Encrypted, FileSystem, Member, PartitionTable};

/// A format known by fixed bytes at a fixed offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct Magic {
    pub(super) name: &'static str,
    pub(super) class: SignatureClass,
    pub(super) offset: u64,
    pub(super) bytes: &'static [u8],
}

const fn magic(name: &'static str, class: SignatureClass, offset: u64, bytes: &'static [u8]) -> Magic {
    Magic { name, class, offset, bytes }
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The start of BitLocker's unique id, which stands where the version of Windows puts it.
const BITLOCKER: &[u8] =
    &[0x3b, 0xd6, 0x67, 0x49, 0x29, 0x2e, 0xd8, 0x4a, 0x83, 0x99, 0xf6, 0xa3, 0x39, 0xe3, 0xd0, 0x01];
const BCACHE: &[u8] =
    &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81];
const BCACHEFS: &[u8] =
    &[0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef];
const STRATIS: &[u8] = b"!Stra0tis\x86\xff\x02^\x41rh";

/// All fixed marks, in the order of their offsets. Of the copies of a superblock only those count that `wipefs` erases
/// too: a device that was wiped is free.
pub(super) const MAGICS: &[Magic] = &[
    magic("xfs", FileSystem, 0, b"XFSB"),
    magic("exfs", FileSystem, 0, b"EXFS"),
    magic("squashfs", FileSystem, 0, b"hsqs"),
    magic("squashfs", FileSystem, 0, b"sqsh"),
    magic("cramfs", FileSystem, 0, &[0x45, 0x3d, 0xcd, 0x28]),
    magic("cramfs", FileSystem, 0, &[0x28, 0xcd, 0x3d, 0x45]),
    magic("romfs", FileSystem, 0, b"-rom1fs-"),
    magic("zonefs", FileSystem, 0, b"SFOZ"),
    magic("ubifs", FileSystem, 0, &[0x31, 0x18, 0x10, 0x06]),
    magic("SCO BFS", FileSystem, 0, &[0xce, 0xfa, 0xad, 0x1b]),
    magic("UBI", Member, 0, b"UBI#"),
    magic("mpool", Member, 0, b"mpoolDev"),
    magic("DRBD Proxy log", Member, 0, b"DRBDdlh*"),
    magic("DRBD Manage", Member, 0, b"$DRBDmgr=q"),
    magic("Ceph BlueStore", Member, 0, b"bluestore block device"),
    magic("VDO", Member, 0, b"dmvdo001"),
    magic("device-mapper integrity", Member, 0, b"integrt\0"),
    magic("device-mapper verity", Member, 0, b"verity\0\0"),
    magic("device-mapper snapshot", Member, 0, b"SnAp"),
    magic("qcow2 disk image", Member, 0, b"QFI\xfb\0\0\0"),
    magic("VHDX disk image", Member, 0, b"vhdxfile"),
    magic("AIX disk label", PartitionTable, 0, &[0xc9, 0xc2, 0xd4, 0xc1]),
    magic("SGI disk label", PartitionTable, 0, &[0x0b, 0xe5, 0xa9, 0x41]),
    magic("NTFS", FileSystem, 3, b"NTFS    "),
    magic("exFAT", FileSystem, 3, b"EXFAT   "),
    magic("ReFS", FileSystem, 3, b"ReFS\0"),
    magic("BitLocker", Encrypted, 3, b"-FVE-FS-"),
    magic("OpenSVC heartbeat", Member, 4, &[0x3d, 0xc1, 0x3c, 0x87, 0xc0, 0x5b, 0xe3, 0xb6]),
    magic("APFS", FileSystem, 32, b"NXSB"),
    magic("BeFS", FileSystem, 32, b"BFS1"),
    magic("BeFS", FileSystem, 32, b"1SFB"),
    magic("Oracle ASM", Member, 32, b"ORCLDISK"),
    magic("device-mapper thin pool", Member, 32, &27_022_010u64.to_le_bytes()),
    magic("device-mapper cache", Member, 32, &0o6_142_003u64.to_le_bytes()),
    magic("BSD disk label", PartitionTable, 64, &[0x57, 0x45, 0x56, 0x82]),
    // On a zoned device the superblocks are a log in the first two zones.
    magic("btrfs", FileSystem, 64, b"_BHRfS_M"),
    magic("BSD disk label", PartitionTable, 128, &[0x57, 0x45, 0x56, 0x82]),
    magic("BitLocker", Encrypted, 160, BITLOCKER),
    magic("BitLocker", Encrypted, 424, BITLOCKER),
    magic("BSD disk label", PartitionTable, 512, &[0x57, 0x45, 0x56, 0x82]),
    magic("Stratis", Member, 512 + 4, STRATIS),
    magic("Solaris disk label", PartitionTable, 512 + 12, &[0xee, 0xde, 0x0d, 0x60]),
    magic("BeFS", FileSystem, 512 + 32, b"BFS1"),
    magic("BeFS", FileSystem, 512 + 32, b"1SFB"),
    magic("f2fs", FileSystem, KIB, &[0x10, 0x20, 0xf5, 0xf2]),
    magic("erofs", FileSystem, KIB, &[0xe2, 0xe1, 0xf5, 0xe0]),
    magic("nilfs2", FileSystem, KIB, &[2, 0, 0, 0, 0, 0, 0x34, 0x34]),
    magic("VxFS", FileSystem, KIB, &[0xf5, 0xfc, 0x01, 0xa5]),
    magic("ocfs2", FileSystem, KIB, b"OCFSV2"),
    magic("ocfs2", FileSystem, 2 * KIB, b"OCFSV2"),
    magic("Windows dynamic disk", Member, 3 * KIB, b"PRIVHEAD"),
    magic("ocfs2", FileSystem, 4 * KIB, b"OCFSV2"),
    magic("Novell Storage Services", FileSystem, 4 * KIB, b"SPB5"),
    magic("bcache", Member, 4 * KIB + 24, BCACHE),
    magic("bcachefs", FileSystem, 4 * KIB + 24, BCACHEFS),
    magic("Stratis", Member, 9 * 512 + 4, STRATIS),
    magic("HighPoint RAID", Member, 9 * 512 + 32, &[0xf0, 0x16, 0x78, 0x5a]),
    magic("HighPoint RAID", Member, 9 * 512 + 32, &[0xfd, 0x16, 0x78, 0x5a]),
    magic("HPFS", FileSystem, 8 * KIB, &[0x49, 0xe8, 0x95, 0xf9]),
    magic("VxFS", FileSystem, 8 * KIB, &[0xa5, 0x01, 0xfc, 0xf5]),
    magic("ocfs", FileSystem, 8 * KIB, b"OracleCFS"),
    magic("ocfs2", FileSystem, 8 * KIB, b"OCFSV2"),
    magic("reiserfs", FileSystem, 8 * KIB + 20, b"ReIsErFs"),
    magic("reiserfs", FileSystem, 8 * KIB + 52, b"ReIsErFs"),
    magic("UnixWare disk label", PartitionTable, 29 * 512 + 4, &[0x0d, 0x60, 0x5e, 0xca]),
    magic("Ultrix disk label", PartitionTable, 16 * KIB - 72, &[0x57, 0x29, 0x03, 0, 1, 0, 0, 0]),
    magic("jfs", FileSystem, 32 * KIB, b"JFS1"),
    magic("reiser4", FileSystem, 64 * KIB, b"ReIsEr4"),
    magic("scoutfs", FileSystem, 64 * KIB + 4, &[0x8b, 0x42, 0x3c, 0x10]),
    magic("reiserfs", FileSystem, 64 * KIB + 52, b"ReIsErFs"),
    magic("reiserfs", FileSystem, 64 * KIB + 52, b"ReIsEr2Fs"),
    magic("reiserfs", FileSystem, 64 * KIB + 52, b"ReIsEr3Fs"),
    magic("btrfs", FileSystem, 64 * KIB + 64, b"_BHRfS_M"),
    magic("VMFS member", Member, MIB, &[0x0d, 0xd0, 0x01, 0xc0]),
    magic("VMFS", FileSystem, 2 * MIB, &[0x5e, 0xf1, 0xab, 0x2f]),
];
