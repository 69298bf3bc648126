//! Stacks, facts and counters of real loop devices.

use std::path::{Path, PathBuf};

use fathom_sys::device::{DeviceKind, DiskSampler, DiskStats, PathKind, TargetStack};

use super::loop_device::{LoopDevice, can_make_loops, run};

#[test]
fn file_on_a_partition_of_a_loop_in_a_file_on_a_loop() {
    if !can_make_loops() {
        return;
    }
    let mut lower = LoopDevice::new(64);
    run("mkfs.ext4", &["-q", "-F", &lower.node]);
    let inner = lower.mount(&lower.node.clone()).join("inner image");
    std::fs::File::create(&inner).unwrap().set_len(32 << 20).unwrap();
    let mut upper = LoopDevice::over(tempfile::tempdir().unwrap(), inner.clone(), &[]);
    let partition = upper.add_partition(1, 2048, 32768);
    run("mkfs.ext4", &["-q", "-F", &partition]);
    let point = upper.mount(&partition);
    let file = point.join("file");
    std::fs::write(&file, "x").unwrap();

    let stack = TargetStack::of(&file).unwrap();
    assert_eq!(stack.target, PathKind::File);
    let partition_name = partition.trim_start_matches("/dev/");
    assert_eq!(stack.names()[..3], [partition_name, upper.name(), lower.name()]);
    assert_eq!(stack.devices[0].kind, DeviceKind::Partition { number: 1 });
    assert_eq!(stack.devices[0].under, [upper.name()]);
    assert_eq!(stack.devices[0].size_bytes, 16 << 20);
    assert_eq!(stack.devices[1].kind, DeviceKind::Loop { backing_file: Some(inner) });
    assert_eq!(stack.devices[1].under, [lower.name()]);
    assert_eq!(stack.devices[1].size_bytes, 32 << 20);
    let filesystem = stack.filesystem.unwrap();
    assert_eq!((filesystem.fs_type.as_str(), filesystem.mount_point), ("ext4", point.clone()));
    assert!(!filesystem.is_root_filesystem && !filesystem.read_only);
    assert!(filesystem.free_bytes > 0 && filesystem.free_bytes < 16 << 20);

    let device = TargetStack::of(Path::new(&partition)).unwrap();
    assert_eq!((device.target, device.filesystem), (PathKind::BlockDevice, None));
    assert_eq!(device.devices, stack.devices);
}

#[test]
fn loop_over_a_device_and_over_memory() {
    if !can_make_loops() {
        return;
    }
    let lower = LoopDevice::new(8);
    let upper = LoopDevice::over(tempfile::tempdir().unwrap(), lower.node.clone().into(), &[]);
    let stack = TargetStack::of(Path::new(&upper.node)).unwrap();
    assert_eq!(stack.names()[..2], [upper.name(), lower.name()]);

    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = memory.path().join("image");
    std::fs::File::create(&file).unwrap().set_len(1 << 20).unwrap();
    let device = LoopDevice::over(memory, file.clone(), &[]);
    let stack = TargetStack::of(Path::new(&device.node)).unwrap();
    assert_eq!(stack.devices.len(), 1);
    assert_eq!(stack.devices[0].locality.word(), "memory");
    let file_stack = TargetStack::of(&file).unwrap();
    assert_eq!((file_stack.devices, file_stack.filesystem.unwrap().fs_type.as_str()), (Vec::new(), "tmpfs"));
}

#[test]
fn odd_size() {
    if !can_make_loops() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file: PathBuf = dir.path().join("odd");
    std::fs::File::create(&file).unwrap().set_len((1 << 20) + 700).unwrap();
    let device = LoopDevice::over(dir, file, &[]);
    let stack = TargetStack::of(Path::new(&device.node)).unwrap();
    assert_eq!(stack.devices[0].size_bytes, (1 << 20) + 512, "whole sectors only");
}

#[test]
fn counters_equal_the_written_bytes() {
    if !can_make_loops() {
        return;
    }
    let device = LoopDevice::new(8);
    let sampler = DiskSampler::open(&[device.name()]).unwrap();
    let (mut before, mut after): (Vec<DiskStats>, Vec<DiskStats>) = (Vec::new(), Vec::new());
    sampler.sample(&mut before).unwrap();
    let of = format!("of={}", device.node);
    run("dd", &["if=/dev/zero", &of, "bs=64k", "count=16", "oflag=direct", "status=none"]);
    sampler.sample(&mut after).unwrap();
    let grown = after[0].since(&before[0]);
    assert_eq!(grown.write_bytes(), 1 << 20);
    assert_eq!(grown.write_ios + grown.write_merges, 16);
    let all = fathom_sys::device::diskstats::read_diskstats(&fathom_sys::device::SysRoot::real()).unwrap();
    assert_eq!(all[device.name()].write_sectors, after[0].write_sectors);
}
