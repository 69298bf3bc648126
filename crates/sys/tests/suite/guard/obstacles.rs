//! What the guard says of devices and files in use.

use std::fs::OpenOptions;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

use fathom_sys::device::guard::exclusive_open_fails;
use fathom_sys::device::obstacle::Relation;
use fathom_sys::device::{DeviceError, Obstacle, ObstacleClass};

use super::loop_device::{LoopDevice, can_make_loops, in_use, run};

#[track_caller]
fn check(path: impl AsRef<Path>, expected: &[Obstacle]) {
    assert_eq!(in_use(path.as_ref()).unwrap(), expected, "{}", path.as_ref().display());
}

/// The obstacles of a path that are uses, without what lies on it.
fn uses(path: impl AsRef<Path>) -> Vec<Obstacle> {
    in_use(path.as_ref())
        .unwrap()
        .into_iter()
        .filter(|obstacle| obstacle.class() == ObstacleClass::InUse)
        .collect()
}

fn mounted(node: &str, mount_point: &Path) -> Obstacle {
    related(Relation::Itself, node, mount_point)
}

fn related(relation: Relation, node: &str, mount_point: &Path) -> Obstacle {
    Obstacle::Mounted { device: node.into(), relation, mount_point: mount_point.into(), seen_by: None }
}

fn behind(device: &str, user: Obstacle) -> Obstacle {
    Obstacle::BackingFile { device: device.into(), user: Box::new(user) }
}

fn make_ext4(node: &str) {
    run("mkfs.ext4", &["-q", "-F", node]);
}

#[test]
fn free_device() {
    if can_make_loops() {
        let device = LoopDevice::new(8);
        check(&device.node, &[]);
        check(&device.file, &[]);
        assert!(!exclusive_open_fails(Path::new(&device.node)).unwrap());
    }
}

#[test]
fn mounted_under_any_name() {
    if !can_make_loops() {
        return;
    }
    let mut device = LoopDevice::new(16);
    make_ext4(&device.node);
    let point = device.mount(&device.node.clone());
    let expected = [mounted(&device.node, &point)];
    assert_eq!(uses(&device.node), expected);
    let alias = device.dir.path().join("alias");
    symlink(&device.node, &alias).unwrap();
    assert_eq!(uses(&alias), expected);
    let twin = device.dir.path().join("twin");
    let minor = device.name().trim_start_matches("loop");
    run("mknod", &[twin.to_str().unwrap(), "b", "7", minor]);
    assert_eq!(uses(&twin), expected);
    assert!(exclusive_open_fails(Path::new(&device.node)).unwrap());
}

#[test]
fn bound_mounts_are_all_named() {
    if !can_make_loops() {
        return;
    }
    let mut device = LoopDevice::new(16);
    make_ext4(&device.node);
    let first = device.mount(&device.node.clone());
    let second = device.mount(&device.node.clone());
    assert_eq!(uses(&device.node), [mounted(&device.node, &first), mounted(&device.node, &second)]);
}

#[test]
fn mounted_partition() {
    if !can_make_loops() {
        return;
    }
    let mut device = LoopDevice::new(32);
    let first = device.add_partition(1, 2048, 32768);
    let second = device.add_partition(2, 34816, 2048);
    make_ext4(&first);
    let point = device.mount(&first);
    assert_eq!(uses(&device.node), [related(Relation::Partition, &first, &point)]);
    assert_eq!(uses(&first), [mounted(&first, &point)]);
    check(&second, &[]);
}

#[test]
fn partition_of_a_disk_mounted_as_a_whole() {
    if !can_make_loops() {
        return;
    }
    let mut device = LoopDevice::new(16);
    make_ext4(&device.node);
    let partition = device.add_partition(1, 2048, 2048);
    let point = device.mount(&device.node.clone());
    check(&partition, &[related(Relation::Disk, &device.node, &point)]);
}

#[test]
fn partitions_without_a_table() {
    if !can_make_loops() {
        return;
    }
    let mut device = LoopDevice::new(8);
    let partition = device.add_partition(1, 2048, 2048);
    check(&device.node, &[Obstacle::Partitioned { partitions: vec![partition.into()] }]);
}

#[test]
fn swap_on_a_device_and_in_a_file() {
    if !can_make_loops() {
        return;
    }
    let mut device = LoopDevice::new(16);
    run("mkswap", &[&device.node]);
    device.swap_on(&device.node.clone());
    assert_eq!(uses(&device.node), [Obstacle::SwapInUse { path: device.node.clone().into() }]);

    let mut home = LoopDevice::new(32);
    make_ext4(&home.node);
    let file = home.mount(&home.node.clone()).join("swap file");
    std::fs::write(&file, vec![0; 4 << 20]).unwrap();
    let file_text = file.to_str().unwrap();
    run("chmod", &["600", file_text]);
    run("mkswap", &[file_text]);
    home.swap_on(file_text);
    check(&file, &[Obstacle::SwapInUse { path: file.clone() }]);
}

#[test]
fn file_behind_a_mounted_loop() {
    if !can_make_loops() {
        return;
    }
    let mut device = LoopDevice::new(16);
    make_ext4(&device.node);
    check(&device.file, &[]);
    let point = device.mount(&device.node.clone());
    let expected = [behind(&device.node, mounted(&device.node, &point))];
    check(&device.file, &expected);
    let link = device.dir.path().join("hard link");
    std::fs::hard_link(&device.file, &link).unwrap();
    check(&link, &expected);
    let other = LoopDevice::sharing(&device, &[]);
    assert_eq!(uses(&other.node), expected);
}

#[test]
fn device_behind_a_mounted_loop() {
    if !can_make_loops() {
        return;
    }
    let lower = LoopDevice::new(16);
    make_ext4(&lower.node);
    let mut upper = LoopDevice::over(tempfile::tempdir().unwrap(), lower.node.clone().into(), &[]);
    let point = upper.mount(&upper.node.clone());
    assert_eq!(uses(&lower.node), [behind(&upper.node, mounted(&upper.node, &point))]);
    assert_eq!(uses(&upper.node), [mounted(&upper.node, &point)]);
}

#[test]
fn loop_over_a_mounted_device() {
    if !can_make_loops() {
        return;
    }
    let mut lower = LoopDevice::new(16);
    make_ext4(&lower.node);
    let upper = LoopDevice::over(tempfile::tempdir().unwrap(), lower.node.clone().into(), &[]);
    let point = lower.mount(&lower.node.clone());
    assert_eq!(uses(&upper.node), [mounted(&lower.node, &point)]);
}

#[test]
fn read_only_device() {
    if !can_make_loops() {
        return;
    }
    let device = LoopDevice::new(8);
    let read_only = LoopDevice::sharing(&device, &["--read-only"]);
    check(&read_only.node, &[Obstacle::ReadOnly { device: read_only.node.clone().into() }]);
}

#[test]
fn exclusively_opened_without_a_trace() {
    if !can_make_loops() {
        return;
    }
    let device = LoopDevice::new(8);
    let holder = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&device.node).unwrap();
    check(&device.node, &[Obstacle::Busy { device: device.node.clone().into() }]);
    drop(holder);
    check(&device.node, &[]);
}

#[test]
fn held_by_device_mapper() {
    if !can_make_loops() {
        return;
    }
    let devices = std::fs::read_to_string("/proc/devices").unwrap();
    if !devices.contains("device-mapper") {
        // Not a matter of what is installed; the guard's unit tests hold a device on a made-up /sys.
        eprintln!("skipped: this kernel has no device-mapper");
        return;
    }
    let device = LoopDevice::new(8);
    let name = format!("fathom-{}-{}", std::process::id(), device.name());
    run("dmsetup", &["create", &name, "--table", &format!("0 8192 linear {} 0", device.node)]);
    let found = uses(&device.node);
    run("dmsetup", &["remove", &name]);
    let [Obstacle::Holder { device: held, holder, .. }] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(held, Path::new(&device.node));
    assert!(holder.to_str().unwrap().starts_with("/dev/mapper/fathom-"), "{holder:?}");
}

#[test]
fn unreadable_device_is_not_free() {
    if !can_make_loops() {
        return;
    }
    let device = LoopDevice::new(8);
    std::fs::File::options().write(true).open(&device.file).unwrap().set_len(0).unwrap();
    let error = in_use(Path::new(&device.node)).unwrap_err();
    assert!(
        matches!(&error, DeviceError::Io { attempted: "read", path, .. } if path == Path::new(&device.node)),
        "{error}"
    );
}
