//! What real tools write is recognised; what is made by hand here is also what `blkid` recognises.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use fathom_sys::device::guard::signatures_on;
use fathom_sys::device::signature::Class;
use fathom_sys::device::{Obstacle, in_use};

use crate::loop_device::{LoopDevice, can_make_loops, command, run};

fn image(dir: &Path, mib: u64, patches: &[(u64, &[u8])]) -> String {
    let path = dir.join("image");
    let file = File::create(&path).unwrap();
    file.set_len(mib << 20).unwrap();
    for (offset, bytes) in patches {
        file.write_all_at(bytes, *offset).unwrap();
    }
    path.to_str().unwrap().to_string()
}

fn names(path: &str) -> Vec<&'static str> {
    signatures_on(Path::new(path)).unwrap().iter().map(|signature| signature.name).collect()
}

/// Tools that write into plain files, as any user may.
const MAKERS: &[(&str, u64, &[&str], &str)] = &[
    ("mkfs.ext2", 16, &["-q", "-F"], "ext2"),
    ("mkfs.ext3", 16, &["-q", "-F"], "ext3"),
    ("mkfs.ext4", 16, &["-q", "-F"], "ext4"),
    ("mkfs.ext4", 16, &["-q", "-F", "-b", "1024", "-O", "^has_journal"], "ext4"),
    ("mkfs.xfs", 320, &["-q"], "xfs"),
    ("mkfs.xfs", 320, &["-q", "-m", "crc=0", "-s", "size=4096"], "xfs"),
    ("mkswap", 16, &[], "swap"),
    ("mkswap", 16, &["--pagesize", "65536"], "swap"),
];

#[test]
fn real_tools_on_files() {
    for (tool, mib, arguments, expected) in MAKERS {
        if command(tool).arg("-V").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "{tool} is needed in CI");
            eprintln!("skipped: {tool} is not installed");
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = image(dir.path(), *mib, &[]);
        let mut arguments = arguments.to_vec();
        arguments.push(&path);
        run(tool, &arguments);
        assert_eq!(names(&path), [*expected], "{tool} {arguments:?}");
        assert_eq!(in_use(Path::new(&path)).unwrap(), [], "a file may be overwritten");
    }
}

const BOOT: (u64, &[u8]) = (510, &[0x55, 0xaa]);
/// One Linux partition from sector 2048 on, 4096 sectors long.
const PARTITION: (u64, &[u8]) = (446, &[0, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 16, 0, 0]);

fn md_superblock(sector: u64) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..4].copy_from_slice(&0xa92b_4efcu32.to_le_bytes());
    block[4] = 1;
    block[144..152].copy_from_slice(&sector.to_le_bytes());
    // blkid wants a checksum: the sum of the first 256 bytes in words, folded, with its own field (216) as zero.
    let sum: u64 =
        block[..256].chunks(4).map(|word| u64::from(u32::from_le_bytes(word.try_into().unwrap()))).sum();
    let folded = (sum & 0xffff_ffff) + (sum >> 32);
    block[216..220].copy_from_slice(&u32::try_from(folded).unwrap().to_le_bytes());
    block
}

#[test]
fn hand_made_ones_are_what_blkid_sees() {
    let has_blkid = command("blkid").arg("-V").output().is_ok();
    assert!(has_blkid || std::env::var_os("CI").is_none(), "blkid is needed in CI");
    let end = (16 << 20) - 8192;
    let (first, fourth, last) = (md_superblock(0), md_superblock(8), md_superblock(end / 512));
    let check = |patches: &[(u64, &[u8])], expected: &str, of_blkid: &str| {
        let dir = tempfile::tempdir().unwrap();
        let path = image(dir.path(), 16, patches);
        assert_eq!(names(&path), [expected]);
        if has_blkid {
            let says = run("blkid", &["-p", "-o", "export", &path]);
            assert!(says.lines().any(|line| line == of_blkid), "{expected}: blkid says {says:?}");
        }
    };
    check(&[BOOT, PARTITION], "DOS", "PTTYPE=dos");
    check(&[(0, &first)], "MD RAID 1.1", "TYPE=linux_raid_member");
    check(&[(4096, &fourth)], "MD RAID 1.2", "TYPE=linux_raid_member");
    check(&[(end, &last)], "MD RAID 1.0", "TYPE=linux_raid_member");
    check(&[(0, b"LUKS\xba\xbe\0\x01")], "LUKS1", "TYPE=crypto_LUKS");
    check(&[(65536 + 64, b"_BHRfS_M")], "btrfs", "TYPE=btrfs");
    check(&[(0, b"bluestore block device\n")], "Ceph BlueStore", "TYPE=ceph_bluestore");
    check(&[(32768 + 1, b"CD001"), (32768, b"\x01")], "ISO 9660", "TYPE=iso9660");
}

#[track_caller]
fn check_device(device: &LoopDevice, expected: (&str, Class)) {
    let found = in_use(Path::new(&device.node)).unwrap();
    let [Obstacle::Signature { what }] = found.as_slice() else { panic!("{expected:?}: {found:?}") };
    assert_eq!((what.name, what.class), expected);
    run("wipefs", &["--all", &device.node]);
    assert_eq!(in_use(Path::new(&device.node)).unwrap(), [], "wiped");
}

#[test]
fn devices_that_bear_one() {
    if !can_make_loops() {
        return;
    }
    let device = LoopDevice::new(320);
    let raw = File::options().write(true).open(&device.node).unwrap();
    raw.write_all_at(PARTITION.1, PARTITION.0).unwrap();
    raw.write_all_at(BOOT.1, BOOT.0).unwrap();
    check_device(&device, ("DOS", Class::PartitionTable));
    run("mkfs.ext4", &["-q", "-F", &device.node]);
    check_device(&device, ("ext4", Class::FileSystem));
    run("mkfs.xfs", &["-q", "-f", &device.node]);
    check_device(&device, ("xfs", Class::FileSystem));
    run("mkswap", &[&device.node]);
    check_device(&device, ("swap", Class::Swap));
    run("pvcreate", &["--yes", "--devices", &device.node, &device.node]);
    check_device(&device, ("LVM2", Class::Member));
    raw.write_all_at(&md_superblock(8), 4096).unwrap();
    check_device(&device, ("MD RAID 1.2", Class::Member));
}
