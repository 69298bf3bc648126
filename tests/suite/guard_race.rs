//! The guard while names and mounts change: only targets that were found free are written to.

use std::io::{Seek as _, Write as _};
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fathom_tests::{
    LoopDevice, MIB, Program, fathom, is_long, loading, must_run, need, run, scratch, wait_for,
};
use rustix::process::Signal;

fn content(path: &Path) -> String {
    must_run(Command::new("md5sum").arg(path)).split(' ').next().unwrap_or_default().to_owned()
}

fn ext4(device: &Path) {
    must_run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(device));
}

/// Makes `link` lead to `target` in one step.
fn lead(link: &Path, target: &Path) {
    let next = link.with_extension("next");
    symlink(target, &next).and_then(|()| std::fs::rename(&next, link)).expect("the directory is ours");
}

/// Switches `link` between the two devices, and mounts and unmounts the protected one, until `is_over`.
fn disturb(link: &Path, free: &Path, protected: &Path, point: &Path, is_over: &AtomicBool) {
    let umount = || Command::new("umount").arg(point).output().ok();
    while !is_over.load(Ordering::Acquire) {
        let mount = Command::new("mount").args(["-o", "ro,noload"]).arg(protected).arg(point).output();
        for _ in 0..20 {
            lead(link, protected);
            lead(link, free);
        }
        if mount.is_ok_and(|mount| mount.status.success()) {
            umount();
        }
        for _ in 0..20 {
            lead(link, protected);
            lead(link, free);
        }
    }
    umount();
}

#[test]
fn nothing_reaches_a_protected_device_while_links_and_mounts_change() {
    need!(root, tool "losetup", tool "mkfs.ext4", tool "mount");
    let _loading = loading();
    let runs = if is_long() { 1000 } else { 100 };
    let (free, protected) = (LoopDevice::new(32 * MIB), LoopDevice::new(32 * MIB));
    let (home, directory, point) = (scratch(), scratch(), scratch());
    ext4(protected.path());
    let link = directory.path().join("device");
    lead(&link, free.path());
    let before = content(protected.path());
    let is_over = AtomicBool::new(false);
    let (mut written, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            disturb(&link, free.path(), protected.path(), point.path(), &is_over);
        });
        for number in 0..runs {
            let mut command = fathom(home.path());
            if number % 25 == 0 {
                // Consent for the free device does not extend to what the link leads to.
                command.args(["bench", "--no-history", "--only=rand-write", "--runtime=10ms", "--size=16m"]);
                command.arg("--destroy-data").arg(free.path()).arg(&link);
            } else {
                command.args(["fio", "--name=race", "--rw=write", "--bs=4k", "--size=64k"]);
                command.arg(format!("--filename={}", link.display()));
            }
            match run(&mut command).status.code() {
                Some(0) => written += 1,
                Some(1 | 2) => refused += 1,
                code => panic!("ended with {code:?}"),
            }
        }
        is_over.store(true, Ordering::Release);
        thread.join().expect("it panicked");
    });
    assert_eq!(content(protected.path()), before, "the protected device has changed");
    assert!(written > 0 && refused > 0, "{written} written, {refused} refused: nothing was tried");
}

#[test]
fn a_device_is_claimed_during_file_layout() {
    need!(root, tool "losetup", tool "mkfs.ext4", tool "mount");
    let _loading = loading();
    let (device, home, directory) = (LoopDevice::new(32 * MIB), scratch(), scratch());
    let file: PathBuf = directory.path().join("file");
    let mut command = fathom(home.path());
    command.args(["fio", "--name=laid-out", "--rw=read", "--bs=1m", "--size=40g", "--fallocate=none"]);
    command.arg(format!("--filename={}", file.display()));
    command.args(["--name=device", "--rw=write", "--bs=4k", "--size=64k"]);
    command.arg(format!("--filename={}", device.path().display()));
    let program = Program::start(&mut command);
    assert!(wait_for(Duration::from_secs(60), || file.exists()), "no layout began");
    // The device is not written to yet, and no other process can claim it.
    let mkfs = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(device.path()).output().expect("it runs");
    assert!(!mkfs.status.success(), "a file system was made on a device that a run has claimed");
    program.signal(Signal::TERM);
    program.finish();
    ext4(device.path());
}

#[test]
fn a_file_that_replaced_another_is_not_removed() {
    need!(root);
    let _loading = loading();
    let (home, directory) = (scratch(), scratch());
    let file: PathBuf = directory.path().join("file");
    let mut command = fathom(home.path());
    command.args(["fio", "--name=unlinked", "--rw=write", "--bs=4k", "--size=64k", "--unlink=1"]);
    command.args(["--time_based", "--runtime=30s"]).arg(format!("--filename={}", file.display()));
    let program = Program::start(&mut command);
    assert!(wait_for(Duration::from_secs(60), || file.exists()), "no file was made");
    let other = directory.path().join("other");
    std::fs::write(&other, "somebody else's").expect("the directory is ours");
    std::fs::rename(&other, &file).expect("the directory is ours");
    program.signal(Signal::INT);
    program.finish();
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "somebody else's");
}

#[test]
fn file_layout_keeps_data_appended_by_others() {
    need!(root);
    let _loading = loading();
    let (home, directory) = (scratch(), scratch());
    let file: PathBuf = directory.path().join("log");
    std::fs::write(&file, vec![0; MIB as usize]).expect("the directory is ours");
    let mut command = fathom(home.path());
    command.args(["fio", "--name=laid-out", "--rw=read", "--bs=1m", "--size=40g", "--fallocate=none"]);
    command.arg(format!("--filename={}", file.display()));
    let mut program = Program::start(&mut command);
    let length = || std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
    let began = wait_for(Duration::from_secs(60), || length() > 2 * MIB || program.has_ended());
    assert!(began && !program.has_ended(), "no layout began: {}", program.stderr());
    let mut log = std::fs::OpenOptions::new().append(true).open(&file).expect("it is ours");
    log.write_all(b"IMPORTANT").expect("there is room");
    let end = log.stream_position().expect("it is a file");
    assert!(wait_for(Duration::from_secs(60), || length() > end + MIB), "the layout did not go on");
    program.signal(Signal::TERM);
    program.finish();
    let mut line = [0; 9];
    std::fs::File::open(&file)
        .and_then(|file| file.read_exact_at(&mut line, end - 9))
        .expect("what was appended is there");
    assert_eq!(&line, b"IMPORTANT");
}
