//! What real tools write is recognised; what is made by hand here is also what `blkid` recognises.

mod checksums;
mod hand_made;
mod makers;

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::LazyLock;

use fathom_sys::device::Obstacle;
use fathom_sys::device::guard::signatures_on;
use fathom_sys::device::signature::SignatureClass;

use super::loop_device::{LoopDevice, can_make_loops, command, in_use, is_on_path, output_of, run};
use hand_made::{Blkid, hand_made, md_superblock};
use makers::MAKERS;

/// A file `image` in `dir`, zero but for the patches.
fn image(dir: &Path, size: u64, patches: &[(u64, &[u8])]) -> String {
    let path = dir.join("image");
    let file = File::create(&path).unwrap();
    file.set_len(size).unwrap();
    for (offset, bytes) in patches {
        file.write_all_at(bytes, *offset).unwrap();
    }
    path.to_str().unwrap().to_string()
}

fn names(path: &str) -> Vec<&'static str> {
    signatures_on(Path::new(path)).unwrap().iter().map(|signature| signature.name).collect()
}

/// The formats that `blkid` lists; none where there is no `blkid`, which CI does not forgive.
static KNOWN_TO_BLKID: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    if !is_on_path("blkid") {
        assert!(std::env::var_os("CI").is_none(), "blkid is needed in CI");
        eprintln!("skipped: blkid is not installed");
        return BTreeSet::new();
    }
    run("blkid", &["-k"]).lines().map(str::to_owned).collect()
});

fn blkid_knows(kind: &str) -> bool {
    KNOWN_TO_BLKID.contains(kind)
}

/// What `blkid` says of an image, a `KEY=VALUE` a line, or its complaint; `None` where there is no `blkid`.
fn says_blkid(path: &str) -> Option<String> {
    if KNOWN_TO_BLKID.is_empty() {
        return None;
    }
    // It exits with 2 where it recognises nothing and with 8 where it recognises too much.
    let output = output_of(command("blkid").args(["-p", "-o", "export", path])).unwrap();
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// Formats of `blkid` that no row of a test makes, and why.
const UNTESTED: &[(&str, &str)] =
    &[("ext4dev", "ext4 while it was in development, told from ext4 by a flag that changes nothing here")];

#[test]
fn all_formats_of_blkid_are_tested() {
    let mut tested: BTreeSet<&str> = UNTESTED.iter().map(|(kind, _)| *kind).collect();
    tested.extend(MAKERS.iter().filter_map(|maker| maker.blkid.strip_prefix("TYPE=")));
    tested.extend(hand_made().iter().filter_map(|row| match row.blkid {
        Blkid::Says(line) => line.strip_prefix("TYPE="),
        Blkid::Unasked { kind, .. } => Some(kind),
    }));
    let missing: Vec<&String> =
        KNOWN_TO_BLKID.iter().filter(|kind| !tested.contains(kind.as_str())).collect();
    assert!(missing.is_empty(), "neither a row nor a reason in UNTESTED: {missing:?}");
}

#[test]
fn an_image_file_may_be_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = image(dir.path(), 1 << 20, &[(0, b"XFSB")]);
    assert_eq!(names(&path), ["xfs"]);
    assert_eq!(in_use(Path::new(&path)).unwrap(), []);
}

#[track_caller]
fn check_device(device: &LoopDevice, expected: (&str, SignatureClass)) {
    let found = in_use(Path::new(&device.node)).unwrap();
    let [Obstacle::Signature { what }] = found.as_slice() else { panic!("{expected:?}: {found:?}") };
    assert_eq!((what.name, what.class), expected);
    run("wipefs", &["--all", &device.node]);
    assert_eq!(in_use(Path::new(&device.node)).unwrap(), [], "wiped");
}

#[test]
fn devices_with_an_image_are_not_free() {
    if !can_make_loops() {
        return;
    }
    let device = LoopDevice::new(320);
    let raw = File::options().write(true).open(&device.node).unwrap();
    // One Linux partition from sector 2048 on, 4096 sectors long.
    raw.write_all_at(&[0, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 16, 0, 0], 446).unwrap();
    raw.write_all_at(&[0x55, 0xaa], 510).unwrap();
    check_device(&device, ("DOS", SignatureClass::PartitionTable));
    run("mkfs.ext4", &["-q", "-F", &device.node]);
    check_device(&device, ("ext4", SignatureClass::FileSystem));
    run("mkfs.xfs", &["-q", "-f", &device.node]);
    check_device(&device, ("xfs", SignatureClass::FileSystem));
    run("mkfs.btrfs", &["-q", "-f", &device.node]);
    check_device(&device, ("btrfs", SignatureClass::FileSystem));
    run("mkfs.nilfs2", &["-q", "-f", &device.node]);
    check_device(&device, ("nilfs2", SignatureClass::FileSystem));
    run("mkswap", &[&device.node]);
    check_device(&device, ("swap", SignatureClass::Swap));
    run("pvcreate", &["--yes", "--devices", &device.node, &device.node]);
    check_device(&device, ("LVM2", SignatureClass::Member));
    raw.write_all_at(&md_superblock(8), 4096).unwrap();
    check_device(&device, ("MD RAID 1.2", SignatureClass::Member));
}
