//! Formats that no program of Debian makes, or none that is small: as much of each by hand as `blkid` wants to see.

use super::checksums::{crc32, crc32c, sum16};
use super::{blkid_knows, image, names, says_blkid};

const MIB: u64 = 1 << 20;
/// The smallest in which all formats fit, as libblkid sees it.
const SIZE: u64 = 80 * MIB;
/// The last sector.
const LAST: u64 = SIZE - 512;

type Patch = (u64, Vec<u8>);

/// An image, and what is to be seen in it.
pub struct HandMade {
    patches: Vec<Patch>,
    name: &'static str,
    pub blkid: Blkid,
}

/// What `blkid -p` is to say.
pub enum Blkid {
    /// This line.
    Says(&'static str),
    /// It is not asked, for this reason.
    Unasked { kind: &'static str, reason: &'static str },
}

use Blkid::{Says, Unasked};

fn at(offset: u64, bytes: impl AsRef<[u8]>) -> Patch {
    (offset, bytes.as_ref().to_vec())
}

/// Bytes with some values set.
fn block(size: usize, values: &[(usize, &[u8])]) -> Vec<u8> {
    let mut block = vec![0; size];
    for (offset, bytes) in values {
        block[*offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    block
}

/// All of them.
pub fn hand_made() -> Vec<HandMade> {
    let mut all = Vec::new();
    let mut row = |name, blkid, patches: Vec<Patch>| all.push(HandMade { patches, name, blkid });
    tables(&mut row);
    members(&mut row);
    firmware_raid(&mut row);
    encrypted(&mut row);
    file_systems(&mut row);
    old_file_systems(&mut row);
    swap(&mut row);
    all
}

type Row<'a> = &'a mut dyn FnMut(&'static str, Blkid, Vec<Patch>);

fn tables(row: Row) {
    // One Linux partition from sector 2048 on, 4096 sectors long.
    let partition = [0, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 16, 0, 0];
    row("DOS", Says("PTTYPE=dos"), vec![at(446, partition), at(510, [0x55, 0xaa])]);
    row("AIX disk label", Says("PTTYPE=aix"), vec![at(0, [0xc9, 0xc2, 0xd4, 0xc1])]);
    let ultrix = [0x57, 0x29, 0x03, 0, 1, 0, 0, 0];
    row("Ultrix disk label", Says("PTTYPE=ultrix"), vec![at(16384 - 72, ultrix)]);
    let sectors = u32::try_from(SIZE / 512).unwrap();
    let atari =
        [&sectors.to_be_bytes()[..], b"\x01GEM", &2u32.to_be_bytes(), &1000u32.to_be_bytes()].concat();
    row("Atari disk label", Says("PTTYPE=atari"), vec![at(0x1c2, atari)]);
    for offset in [64, 128, 512] {
        let blkid =
            Unasked { kind: "bsd", reason: "that of Debian 12 says nothing of those made by parted either" };
        row("BSD disk label", blkid, vec![at(offset, [0x57, 0x45, 0x56, 0x82])]);
    }
    let nested = |kind| Unasked { kind, reason: "it looks for these within a DOS partition only" };
    row("Solaris disk label", nested("solaris"), vec![at(512 + 12, [0xee, 0xde, 0x0d, 0x60, 1])]);
    row("UnixWare disk label", nested("unixware"), vec![at(29 * 512 + 4, [0x0d, 0x60, 0x5e, 0xca])]);
}

/// A superblock of MD of version 1 at `sector`.
pub fn md_superblock(sector: u64) -> Vec<u8> {
    let magic = 0xa92b_4efcu32.to_le_bytes();
    let mut block = block(512, &[(0, &magic), (4, &[1]), (144, &sector.to_le_bytes())]);
    // The sum of the first 256 bytes in words, folded, with its own field (216) as zero.
    let words = block[..256].chunks(4).map(|word| u64::from(u32::from_le_bytes(word.try_into().unwrap())));
    let sum: u64 = words.sum();
    let folded = (sum & 0xffff_ffff) + (sum >> 32);
    block[216..220].copy_from_slice(&u32::try_from(folded).unwrap().to_le_bytes());
    block
}

fn members(row: Row) {
    let md = || Says("TYPE=linux_raid_member");
    row("MD RAID 1.1", md(), vec![at(0, md_superblock(0))]);
    row("MD RAID 1.2", md(), vec![at(4096, md_superblock(8))]);
    row("MD RAID 1.0", md(), vec![at(SIZE - 8192, md_superblock((SIZE - 8192) / 512))]);
    for magic in [0xa92b_4efcu32.to_le_bytes(), 0xa92b_4efcu32.to_be_bytes()] {
        row("MD RAID 0.90", md(), vec![at(SIZE - 65536, magic)]);
    }
    for sector in 0..4u64 {
        let mut label = block(
            512,
            &[
                (0, b"LABELONE"),
                (8, &sector.to_le_bytes()),
                (20, &[32]),
                (24, b"LVM2 001"),
                (32, &[b'u'; 32]),
            ],
        );
        let checksum = crc32(0xf597_a6cf, &label[20..]);
        label[16..20].copy_from_slice(&checksum.to_le_bytes());
        row("LVM2", Says("TYPE=LVM2_member"), vec![at(sector * 512, label)]);
    }
    row("LVM1", Says("TYPE=LVM1_member"), vec![at(0, b"HM\x01\0")]);
    row("device-mapper snapshot", Says("TYPE=DM_snapshot_cow"), vec![at(0, b"SnAp\x01\0\0\0\x01\0\0\0")]);
    row("device-mapper integrity", Says("TYPE=DM_integrity"), vec![at(0, b"integrt\0\x04")]);
    row("VMFS member", Says("TYPE=VMFS_volume_member"), vec![at(MIB, [0x0d, 0xd0, 0x01, 0xc0])]);
    row("UBI", Says("TYPE=ubi"), vec![at(0, b"UBI#\x01")]);
    row("VDO", Says("TYPE=vdo"), vec![at(0, b"dmvdo001")]);
    row("Ceph BlueStore", Says("TYPE=ceph_bluestore"), vec![at(0, b"bluestore block device\n")]);
    row("Oracle ASM", Says("TYPE=oracleasm"), vec![at(32, b"ORCLDISK")]);
    for offset in [512, 9 * 512] {
        let mut stratis = block(512, &[(4, b"!Stra0tis\x86\xff\x02^\x41rh")]);
        let checksum = crc32c(&stratis[4..]);
        stratis[..4].copy_from_slice(&checksum.to_le_bytes());
        row("Stratis", Says("TYPE=stratis"), vec![at(offset, stratis)]);
    }
    for version in 0x6b..=0x6d {
        row("DRBD", Says("TYPE=drbd"), vec![at(SIZE - 4096 + 60, [0x83, 0x74, 0x02, version])]);
    }
    row("DRBD Proxy log", Says("TYPE=drbdproxy_datalog"), vec![at(0, b"DRBDdlh*")]);
    let control = [&b"$DRBDmgr=q1"[..], &[b'a'; 32], b"\n"].concat();
    row("DRBD Manage", Says("TYPE=drbdmanage_control_volume"), vec![at(0, control)]);
    let mut mpool = block(66, &[(0, b"mpoolDev")]);
    let checksum = crc32c(&mpool[..62]);
    mpool[62..].copy_from_slice(&checksum.to_le_bytes());
    row("mpool", Says("TYPE=mpool"), vec![at(0, mpool)]);
    let ring = |magic: [u8; 8]| (0..4).map(|slot| at((128 + slot) << 10, magic)).collect();
    row("ZFS", Says("TYPE=zfs_member"), ring(0x00ba_b10cu64.to_le_bytes()));
    row("ZFS", Says("TYPE=zfs_member"), ring(0x00ba_b10cu64.to_be_bytes()));
    let heartbeat = Unasked { kind: "opensvc_hb", reason: "libblkid 2.42 was the first to know it" };
    row("OpenSVC heartbeat", heartbeat, vec![at(4, [0x3d, 0xc1, 0x3c, 0x87, 0xc0, 0x5b, 0xe3, 0xb6])]);
}

fn firmware_raid(row: Row) {
    for mark in [[0xde, 0x11, 0xde, 0x11], [0x11, 0xde, 0x11, 0xde]] {
        row("DDF RAID", Says("TYPE=ddf_raid_member"), vec![at(LAST, mark)]);
        row("DDF RAID", Says("TYPE=ddf_raid_member"), vec![at(SIZE - 257 * 512, mark)]);
    }
    let intel = b"Intel Raid ISM Cfg Sig. 1.3.00";
    row("Intel RAID", Says("TYPE=isw_raid_member"), vec![at(SIZE - 1024, intel)]);
    row("LSI MegaRAID", Says("TYPE=lsi_mega_raid_member"), vec![at(LAST, b"$XIDE$")]);
    row("VIA RAID", Says("TYPE=via_raid_member"), vec![at(LAST, [0x55, 0xaa, 1])]);
    let mut silicon = block(512, &[(0x60, &[0, 0, 0, 0x2f])]);
    let checksum = sum16(&silicon[..0x13e]).wrapping_neg();
    silicon[0x13e..0x140].copy_from_slice(&checksum.to_le_bytes());
    row("Silicon Image RAID", Says("TYPE=silicon_medley_raid_member"), vec![at(LAST, silicon)]);
    row("NVIDIA RAID", Says("TYPE=nvidia_raid_member"), vec![at(SIZE - 1024, nvidia())]);
    for distance in [63, 255, 256, 16, 399, 591, 675, 735, 911, 974, 991, 951, 3087] {
        let patch = at(SIZE - distance * 512, b"Promise Technology, Inc.");
        row("Promise RAID", Says("TYPE=promise_fasttrack_raid_member"), vec![patch]);
    }
    for state in [0xf3, 0xfd] {
        let patch = at(SIZE - 11 * 512, [state, 0x16, 0x78, 0x5a]);
        row("HighPoint RAID", Says("TYPE=hpt45x_raid_member"), vec![patch]);
    }
    for state in [0xf0, 0xfd] {
        row("HighPoint RAID", Says("TYPE=hpt37x_raid_member"), vec![at(4640, [state, 0x16, 0x78, 0x5a])]);
    }
    let adaptec = vec![at(LAST, [0x37, 0xfc, 0x4d, 0x1e]), at(LAST + 256, b"DPTM")];
    row("Adaptec RAID", Says("TYPE=adaptec_raid_member"), adaptec);
    row("JMicron RAID", Says("TYPE=jmicron_raid_member"), vec![at(LAST, b"JM"), at(LAST + 4, [0xb6, 0xb2])]);
}

/// The name, the length in words, and a checksum that later versions of `blkid` look at.
fn nvidia() -> Vec<u8> {
    const WORDS: u32 = 30;
    let mut block = block(120, &[(0, b"NVIDIA  "), (8, &WORDS.to_le_bytes())]);
    let words = block.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    let sum = words.fold(0u32, u32::wrapping_add);
    block[12..16].copy_from_slice(&sum.wrapping_neg().to_le_bytes());
    block
}

fn encrypted(row: Row) {
    const GUID: [u8; 16] =
        [0x3b, 0xd6, 0x67, 0x49, 0x29, 0x2e, 0xd8, 0x4a, 0x83, 0x99, 0xf6, 0xa3, 0x39, 0xe3, 0xd0, 0x01];
    row("BitLocker", Says("TYPE=BitLocker"), vec![at(0, b"\xeb\x52\x90-FVE-FS-")]);
    let metadata = || at(8192, b"-FVE-FS-");
    let address = 8192u64.to_le_bytes();
    let windows_7 = vec![at(0, b"\xeb\x58\x90-FVE-FS-"), at(160, GUID), at(176, address), metadata()];
    row("BitLocker", Says("TYPE=BitLocker"), windows_7);
    let to_go = vec![at(0, b"\xeb\x58\x90MSWIN4.1"), at(424, GUID), at(440, address), metadata()];
    row("BitLocker", Says("TYPE=BitLocker"), to_go);
    row("LUKS1", Says("TYPE=crypto_LUKS"), vec![at(0, b"LUKS\xba\xbe\0\x01")]);
    for offset in (0..9).map(|step| 0x4000u64 << step) {
        let second = block(512, &[(0, b"SKUL\xba\xbe\0\x02"), (256, &offset.to_be_bytes())]);
        row("LUKS2", Says("TYPE=crypto_LUKS"), vec![at(offset, second)]);
    }
    let vault = Unasked { kind: "cs_fvault2", reason: "libblkid 2.39 was the first to know it" };
    row("FileVault 2", vault, vec![at(8, [1, 0, 0x10]), at(88, b"CS\x01")]);
    let opal = Unasked { kind: "luks_opal", reason: "the same header, on a disk that encrypts by itself" };
    row("LUKS2", opal, vec![at(0, b"LUKS\xba\xbe\0\x02"), at(208, b"HW-OPAL")]);
}

fn file_systems(row: Row) {
    row("exfs", Says("TYPE=exfs"), vec![at(0, exfs())]);
    row("reiser4", Says("TYPE=reiser4"), vec![at(65536, b"ReIsEr4")]);
    for (offset, mark) in
        [(8192, "ReIsErFs"), (65536, "ReIsErFs"), (65536, "ReIsEr2Fs"), (65536, "ReIsEr3Fs")]
    {
        let superblock = block(64, &[(12, &[100]), (45, &[16]), (52, mark.as_bytes())]);
        row("reiserfs", Says("TYPE=reiserfs"), vec![at(offset, superblock)]);
    }
    let mut zonefs = block(4096, &[(0, b"SFOZ")]);
    let checksum = crc32(u32::MAX, &zonefs);
    zonefs[4..8].copy_from_slice(&checksum.to_le_bytes());
    row("zonefs", Says("TYPE=zonefs"), vec![at(0, zonefs)]);
    let gfs = |format: u32, multihost: u32| {
        let mark = [0x01, 0x16, 0x19, 0x70, 0, 0, 0, 1];
        vec![at(65536, mark), at(65536 + 24, format.to_be_bytes()), at(65536 + 28, multihost.to_be_bytes())]
    };
    row("gfs", Says("TYPE=gfs"), gfs(1309, 1401));
    row("gfs2", Says("TYPE=gfs2"), gfs(1801, 1900));
    row("ocfs", Says("TYPE=ocfs"), vec![at(8192, b"OracleCFS")]);
    for offset in [1024, 2048, 4096, 8192] {
        row("ocfs2", Says("TYPE=ocfs2"), vec![at(offset, b"OCFSV2")]);
    }
    row("VMFS", Says("TYPE=VMFS"), vec![at(2 * MIB, [0x5e, 0xf1, 0xab, 0x2f])]);
    row("btrfs", Says("TYPE=btrfs"), vec![at(65536 + 64, b"_BHRfS_M")]);
    let zoned = Unasked { kind: "btrfs", reason: "it looks there on zoned devices only" };
    row("btrfs", zoned, vec![at(64, b"_BHRfS_M")]);
    row("ReFS", Says("TYPE=ReFS"), vec![at(3, b"ReFS\0")]);
    row("HFS+", Says("TYPE=hfsplus"), vec![at(1024, b"H+\0\x04"), at(1024 + 40, [0, 0, 16, 0])]);
    row("HFS+", Says("TYPE=hfsplus"), vec![at(1024, b"HX\0\x05"), at(1024 + 40, [0, 0, 16, 0])]);
    let squashfs = |mark: &[u8], version| vec![at(0, mark), at(28, version)];
    row("squashfs", Says("TYPE=squashfs3"), squashfs(b"sqsh", [0, 3]));
    row("squashfs", Says("TYPE=squashfs3"), squashfs(b"hsqs", [3, 0]));
    let newer = |kind| Unasked { kind, reason: "the libblkid of Debian 12 does not know it" };
    let bcachefs = *b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";
    row("bcachefs", newer("bcachefs"), vec![at(4096 + 24, bcachefs)]);
    for kind in ["scoutfs_meta", "scoutfs_data"] {
        row("scoutfs", newer(kind), vec![at(65536 + 4, [0x8b, 0x42, 0x3c, 0x10])]);
    }
    row("ISO 9660", Says("TYPE=iso9660"), vec![at(32768, b"\x01CD001")]);
    row("High Sierra", Says("TYPE=iso9660"), vec![at(32768 + 9, b"CDROM")]);
}

/// A superblock of four groups of 16 MiB, in big-endian fields.
fn exfs() -> Vec<u8> {
    let (blocks, group) = (4u64 << 12, 1u32 << 12);
    block(
        512,
        &[
            (0, b"EXFS"),
            (4, &4096u32.to_be_bytes()),
            (8, &blocks.to_be_bytes()),
            (80, &1u32.to_be_bytes()),
            (84, &group.to_be_bytes()),
            (88, &4u32.to_be_bytes()),
            (102, &512u16.to_be_bytes()),
            (104, &512u16.to_be_bytes()),
            (120, &[12, 9, 9, 3]),
        ],
    )
}

fn old_file_systems(row: Row) {
    row(
        "HPFS",
        Says("TYPE=hpfs"),
        vec![at(8192, [0x49, 0xe8, 0x95, 0xf9]), at(8704, [0x49, 0x18, 0x91, 0xf9])],
    );
    for magic in [0xfd18_7e20u32.to_le_bytes(), 0xfd18_7e20u32.to_be_bytes()] {
        for block in [0, 9, 15, 18] {
            row("System V", Says("TYPE=sysv"), vec![at(block * 1024 + 1016, magic)]);
        }
    }
    // The kernel, which must know, looks for the mark eight bytes before the place where libblkid does.
    row("Xenix", Says("TYPE=xenix"), vec![at(2040, [0x44, 0x55, 0x2b, 0]), at(2048, [0x44, 0x55, 0x2b])]);
    row("Xenix", Says("TYPE=xenix"), vec![at(2040, [0, 0x2b, 0x55, 0x44]), at(2048, [0x2b, 0x55, 0x44])]);
    for magic in [0x137fu16, 0x138f, 0x2468, 0x2478] {
        let of_zones = if magic < 0x2000 { 2 } else { 22 };
        let number = 1440u16.to_be_bytes();
        let fields: [(usize, &[u8]); 6] = [
            (0, &number),
            (of_zones, &number),
            (4, &[0, 1]),
            (6, &[0, 1]),
            (8, &[0, 50]),
            (16, &magic.to_be_bytes()),
        ];
        row("minix", Says("TYPE=minix"), vec![at(1024, block(32, &fields))]);
    }
    row("VxFS", Says("TYPE=vxfs"), vec![at(1024, [0xf5, 0xfc, 0x01, 0xa5])]);
    row("VxFS", Says("TYPE=vxfs"), vec![at(8192, [0xa5, 0x01, 0xfc, 0xf5])]);
    row("Novell Storage Services", Says("TYPE=nss"), vec![at(4096, b"SPB5")]);
    for place in [0, 8192, 65536, 256 << 10] {
        for magic in [0x0001_1954u32, 0x0009_5014, 0x0019_5612, 0x0061_2195, 0x0523_1994] {
            row("UFS", Says("TYPE=ufs"), vec![at(place + 1372, magic.to_le_bytes())]);
            row("UFS", Says("TYPE=ufs"), vec![at(place + 1372, magic.to_be_bytes())]);
        }
        row("UFS2", Says("TYPE=ufs"), vec![at(place + 1372, 0x1954_0119u32.to_le_bytes())]);
    }
    let words =
        [(32, 0x4246_5331), (36, 0x4249_4745), (40, 1024), (44, 10), (68, 0xdd12_1031), (112, 0x15b6_830e)];
    for order in [u32::to_le_bytes, u32::to_be_bytes] {
        let run = if order(1) == 1u32.to_le_bytes() { [4, 0, 1, 0] } else { [0, 4, 0, 1] };
        for superblock in [0, 512] {
            // The root directory is a run of one block, the fifth, and its inode has a mark of its own.
            let mut patches = vec![at(superblock + 120, run), at(4096, order(0x3bbe_0ad9))];
            patches.extend(words.map(|(offset, value)| at(superblock + offset, order(value))));
            row("BeFS", Says("TYPE=befs"), patches);
        }
    }
}

fn swap(row: Row) {
    let header = || at(1024, [1, 0, 0, 0, 9, 0, 0, 0]);
    for page in [4096, 8192, 16384, 32768, 65536] {
        row("swap", Says("TYPE=swap"), vec![at(page - 10, b"SWAPSPACE2"), header()]);
        row("swap", Says("TYPE=swap"), vec![at(page - 10, b"SWAP-SPACE")]);
        for mark in ["S1SUSPEND", "S2SUSPEND", "ULSUSPEND", "LINHIB0001"] {
            row("hibernation image", Says("TYPE=swsuspend"), vec![at(page - 10, mark), header()]);
        }
    }
    let tux_on_ice = at(0, [0xed, 0xc3, 0x02, 0xe9, 0x98, 0x56, 0xe5, 0x0c]);
    row("hibernation image", Says("TYPE=swsuspend"), vec![tux_on_ice, header()]);
}

#[test]
fn hand_made_formats_are_recognised_as_by_blkid() {
    let mut wrong = Vec::new();
    for HandMade { patches, name, blkid } in hand_made() {
        let dir = tempfile::tempdir().unwrap();
        let borrowed: Vec<(u64, &[u8])> =
            patches.iter().map(|(offset, bytes)| (*offset, &bytes[..])).collect();
        let path = image(dir.path(), SIZE, &borrowed);
        let places: Vec<u64> = patches.iter().map(|(offset, _)| *offset).collect();
        let found = names(&path);
        if found != [name] {
            wrong.push(format!("{name} at {places:?}: found {found:?}"));
        }
        let line = match blkid {
            Says(line) => line,
            Unasked { kind, reason } => {
                eprintln!("{name}: blkid is not asked for {kind}: {reason}");
                continue;
            }
        };
        let is_known = line.strip_prefix("TYPE=").is_none_or(blkid_knows);
        if let Some(says) = says_blkid(&path).filter(|_| is_known)
            && !says.lines().any(|said| said == line)
        {
            wrong.push(format!("{name} at {places:?}: blkid says {says:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
