//! The guard: mounted, used or signed targets are not written to without the flag that permits it, and no byte of them
//! changes.

use std::ffi::OsStr;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

use fathom_tests::{
    Ended, LoopDevice, LoopOptions, MIB, Mount, fathom, loading, must_run, need, run, scratch,
};
use serde_json::Value;
use tempfile::TempDir;

/// `fathom` with its own home, without overriding options.
struct Front {
    home: TempDir,
}

impl Front {
    fn new() -> Self {
        Front { home: scratch() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = fathom(self.home.path());
        command.args(arguments);
        command
    }

    /// `fathom fio` on `target`; `more` comes last.
    fn fio(&self, target: &Path, rw: &str, more: &[&str]) -> Command {
        let mut command = self.command(&["fio", "--name=guarded", "--bs=4k", "--size=64k", "--direct=1"]);
        command.arg(format!("--rw={rw}")).arg(format!("--filename={}", target.display())).args(more);
        command
    }

    /// A short bench of reads and writes on `target`.
    fn bench(&self, target: &Path, destroy: Option<&Path>) -> Command {
        let mut command = self.command(&["bench", "--only=lat-read,lat-write", "--quick", "--runtime=100ms"]);
        command.args(["--size=16m", "--no-history"]).arg(target);
        if let Some(device) = destroy {
            command.arg("--destroy-data").arg(device);
        }
        command
    }
}

/// A sum over all that `path` holds.
fn content(path: &Path) -> String {
    // Data written by direct I/O is read from the device, not from older cached pages.
    let sum = must_run(Command::new("md5sum").arg(path));
    sum.split(' ').next().expect("md5sum prints a sum").to_owned()
}

fn destroying(target: &Path) -> String {
    format!("--destroy-data={}", target.display())
}

/// Every way to write is refused with `reason` and `remedy`; reading is not; nothing has changed.
#[track_caller]
fn assert_refused(target: &Path, reason: &str, remedy: &str) {
    let front = Front::new();
    let before = content(target);
    for rw in ["write", "randwrite", "rw", "randtrim", "trimwrite"] {
        let ended = run(&mut front.fio(target, rw, &[]));
        ended.assert_code(1).assert_told(&[
            "refusing to write to",
            &target.to_string_lossy(),
            reason,
            remedy,
        ]);
    }
    let elsewhere = scratch();
    let other = elsewhere.path().join("other");
    std::fs::write(&other, "x").expect("the directory is ours");
    run(&mut front.fio(target, "randwrite", &[&destroying(&other)])).assert_code(1).assert_told(&[reason]);
    run(front.fio(target, "randwrite", &[]).env("FATHOM_DESTROY_DATA", &other))
        .assert_code(1)
        .assert_told(&[reason]);
    for rw in ["randread", "read"] {
        let ended = run(&mut front.fio(target, rw, &[]));
        assert_eq!(
            (ended.assert_code(0).stderr.as_str(), ended.stdout.contains("read: IOPS=")),
            ("", true),
            "{ended}"
        );
    }
    assert_eq!(content(target), before, "{} has changed", target.display());
}

/// With `--destroy-data` or the variable it is written after all, and with nothing else.
#[track_caller]
fn assert_overruled(target: &Path, prepare: impl Fn()) {
    let front = Front::new();
    let before = content(target);
    let ended = run(&mut front.fio(target, "write", &["--allow_mounted_write=1"]));
    ended.assert_code(1);
    assert_eq!(content(target), before);
    for by_variable in [false, true] {
        prepare();
        let before = content(target);
        let ended = if by_variable {
            run(front.fio(target, "write", &[]).env("FATHOM_DESTROY_DATA", target))
        } else {
            run(&mut front.fio(target, "write", &[&destroying(target)]))
        };
        assert_eq!(
            (ended.assert_code(0).stderr.as_str(), ended.stdout.contains("write: IOPS=")),
            ("", true),
            "{ended}"
        );
        assert_ne!(content(target), before, "{} is as it was", target.display());
    }
}

fn patch(device: &Path, at: u64, bytes: &[u8]) {
    let file = std::fs::OpenOptions::new().write(true).open(device).expect("it is our device");
    file.write_all_at(bytes, at).and_then(|()| file.sync_all()).expect("a loop device can be written");
}

fn tool(name: &str, arguments: &[&str], device: &Path) {
    must_run(Command::new(name).args(arguments).arg(device));
}

/// A table with one partition of 4 MiB at 1 MiB.
fn partition_table(kind: &str, device: &Path) {
    let script =
        format!("printf 'label: {kind}\\nstart=1MiB, size=4MiB\\n' | sfdisk --quiet --no-reread \"$0\"");
    must_run(Command::new("sh").arg("-c").arg(script).arg(device));
}

/// A version 1.2 superblock of Linux MD, 4 KiB from the start, with the fields that are checked.
fn md_superblock(device: &Path) {
    let mut block = [0_u8; 256];
    block[..4].copy_from_slice(&0xa92b_4efc_u32.to_le_bytes());
    block[4] = 1;
    // super_offset in sectors.
    block[144] = 8;
    // Its checksum: all words of the structure added up, carries folded in, with its own field (216) as zero.
    let sum: u64 =
        block.chunks(4).map(|word| u64::from(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))).sum();
    let folded = (sum & 0xffff_ffff) + (sum >> 32);
    block[216..220].copy_from_slice(&(folded as u32).to_le_bytes());
    patch(device, 4096, &block);
}

#[test]
fn devices_with_signatures_are_written_only_when_named() {
    need!(root, tool "losetup", tool "sfdisk", tool "mkfs.ext4", tool "mkfs.xfs", tool "mkswap", tool "pvcreate");
    let _loading = loading();
    type Make = fn(&Path);
    let makers: [(&str, Make); 7] = [
        ("DOS partition table", |device| partition_table("dos", device)),
        ("GPT partition table", |device| partition_table("gpt", device)),
        ("ext4 file system", |device| tool("mkfs.ext4", &["-q", "-F"], device)),
        ("xfs file system", |device| tool("mkfs.xfs", &["-q", "-f"], device)),
        ("swap", |device| tool("mkswap", &["--quiet"], device)),
        ("LVM", |device| {
            let device_text = device.to_string_lossy();
            tool("pvcreate", &["--yes", "--quiet", "--devices", &device_text], device);
        }),
        ("MD", md_superblock),
    ];
    for (reason, make) in makers {
        let device = LoopDevice::new(if reason.starts_with("xfs") { 300 * MIB } else { 32 * MIB });
        make(device.path());
        assert_refused(device.path(), reason, &destroying(device.path()));
        assert_overruled(device.path(), || make(device.path()));
    }
}

#[test]
fn mounted_devices_are_refused() {
    need!(root, tool "losetup", tool "mkfs.ext4", tool "mount");
    let _loading = loading();
    let device = LoopDevice::new(32 * MIB);
    tool("mkfs.ext4", &["-q", "-F"], device.path());
    // Read-only, so that the file system itself writes nothing meanwhile; the guard makes no difference.
    let mount = Mount::of(device.path(), &["ro", "noload"]);
    let reason = format!("{} is mounted at {}", device.path().display(), mount.path().display());
    assert_refused(device.path(), &reason, "allow_mounted_write=1");
    let front = Front::new();
    let before = content(device.path());
    // The one flag does not stand for the other.
    let named = destroying(device.path());
    run(&mut front.fio(device.path(), "write", &[&named])).assert_code(1).assert_told(&[&reason]);
    let allowed = run(&mut front.fio(device.path(), "write", &["--allow_mounted_write=1"]));
    allowed.assert_code(1).assert_told(&["ext4 file system", &named]);
    run(&mut front.bench(device.path(), Some(device.path())))
        .assert_code(1)
        .assert_told(&[&reason, "unmount"]);
    // bench knows no such flag.
    run(front.bench(device.path(), Some(device.path())).arg("--allow_mounted_write=1")).assert_code(2);
    assert_eq!(content(device.path()), before);
    let both = run(&mut front.fio(device.path(), "write", &["--allow_mounted_write=1", &named]));
    both.assert_code(0).assert_shown(&["write: IOPS="]);
    // So it is with the file under the device.
    assert_refused(device.backing(), &reason, "allow_mounted_write=1");
    run(&mut front.fio(device.backing(), "write", &["--allow_mounted_write=1"])).assert_code(0);
    drop(mount);
    run(&mut front.fio(device.backing(), "write", &[])).assert_code(0);
}

#[test]
fn other_names_of_a_device_are_treated_like_the_first() {
    need!(root, tool "losetup", tool "mkfs.ext4");
    let _loading = loading();
    let device = LoopDevice::new(32 * MIB);
    tool("mkfs.ext4", &["-q", "-F"], device.path());
    let directory = scratch();
    let by_id = directory.path().join("by-id");
    std::fs::create_dir(&by_id).expect("the directory is ours");
    let alias = by_id.join("virtual-disk_1");
    std::os::unix::fs::symlink(device.path(), &alias).expect("the directory is ours");
    // A separate node with the same numbers, as in a container.
    let node = directory.path().join("node");
    let rdev = std::os::unix::fs::MetadataExt::rdev(&std::fs::metadata(device.path()).expect("it is there"));
    let [major, minor] = [rustix::fs::major(rdev), rustix::fs::minor(rdev)].map(|number| number.to_string());
    must_run(Command::new("mknod").arg(&node).args(["b", &major, &minor]));
    for name in [&alias, &node] {
        assert_refused(name, "ext4 file system", &destroying(name));
    }
    let front = Front::new();
    // The device may be named by either of its names.
    for (target, named) in [(&alias, device.path()), (&device.path().to_owned(), alias.as_path())] {
        tool("mkfs.ext4", &["-q", "-F"], device.path());
        run(&mut front.fio(target, "write", &[&destroying(named)])).assert_code(0);
        tool("mkfs.ext4", &["-q", "-F"], device.path());
        run(&mut front.bench(target, Some(named))).assert_code(0).assert_shown(&["lat-write"]);
    }
}

/// The statuses of a bench's tests by id, and the reasons.
fn tests_of(ended: &Ended) -> Vec<(String, String, String)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let document = ended.document();
    let tests = document["tests"].as_array().expect("a bench has tests").iter();
    tests.map(|test| (word(&test["id"]), word(&test["status"]), word(&test["reason"]))).collect()
}

/// Without the flag `bench` reads only, says why it does not write, and changes nothing; with it, it writes.
fn bench_asks_first(target: &Path) {
    let front = Front::new();
    let before = content(target);
    let ended = run(front.bench(target, None).arg("--json"));
    let tests = tests_of(ended.assert_code(0));
    let [(_, read, _), (_, write, reason)] = tests.as_slice() else { panic!("{tests:?}") };
    assert_eq!((read.as_str(), write.as_str()), ("complete", "skipped"), "{ended}");
    assert!(reason.contains(&destroying(target)), "{reason}");
    // No suite and no engine writes either.
    for more in [["--suite=database-disk", "--size=16m"], ["--suite=cloud-disk", "--engine=libaio"]] {
        let mut command = front.command(&["bench", "--quick", "--runtime=100ms", "--no-history"]);
        run(command.args(more).arg(target));
        assert_eq!(content(target), before, "{more:?}");
    }
    let elsewhere = scratch();
    let other = elsewhere.path().join("other");
    std::fs::write(&other, "x").expect("the directory is ours");
    let ended = run(&mut front.bench(target, Some(&other)));
    assert!(ended.status.code().is_some_and(|code| code == 1 || code == 2), "{ended}");
    ended.assert_told(&["is not the target named by --destroy-data", "other"]);
    assert_eq!(content(target), before, "{} has changed", target.display());
    let ended = run(front.bench(target, Some(target)).arg("--json"));
    assert!(tests_of(ended.assert_code(0)).iter().all(|(_, status, _)| status == "complete"), "{ended}");
    assert_ne!(content(target), before);
}

#[test]
fn bench_writes_to_a_device_or_file_only_when_it_is_named() {
    need!(root, tool "losetup");
    let _loading = loading();
    let device = LoopDevice::written(32 * MIB);
    bench_asks_first(device.path());
    let directory = scratch();
    let file = directory.path().join("database");
    std::fs::copy(device.backing(), &file).expect("there is room");
    bench_asks_first(&file);
    assert_eq!(std::fs::metadata(&file).expect("it is still there").len(), 32 * MIB);
    // The variable is fio's front's.
    let front = Front::new();
    let before = content(&file);
    let ended = run(front.bench(&file, None).arg("--json").env("FATHOM_DESTROY_DATA", &file));
    assert_eq!(tests_of(&ended)[1].1, "skipped", "{ended}");
    assert_eq!(content(&file), before);
}

#[test]
fn a_device_that_cannot_be_written_is_refused_with_every_flag() {
    need!(root, tool "losetup");
    let _loading = loading();
    let device = LoopDevice::with(&LoopOptions { read_only: true, ..LoopOptions::of_size(32 * MIB) });
    let front = Front::new();
    let named = destroying(device.path());
    for more in [[].as_slice(), &["--allow_mounted_write=1", &named]] {
        let ended = run(&mut front.fio(device.path(), "randwrite", more));
        ended.assert_code(1).assert_told(&["is read-only", "choose a target that can be written"]);
    }
    run(&mut front.bench(device.path(), Some(device.path()))).assert_code(1).assert_told(&["is read-only"]);
    run(&mut front.bench(device.path(), None)).assert_code(0);
}

#[test]
fn all_targets_are_inspected_before_any_is_written() {
    need!(root, tool "losetup", tool "mkswap");
    let _loading = loading();
    let (free, signed) = (LoopDevice::new(32 * MIB), LoopDevice::new(32 * MIB));
    tool("mkswap", &["--quiet"], signed.path());
    let front = Front::new();
    let before = [content(free.path()), content(signed.path())];
    let both = format!("{}:{}", free.path().display(), signed.path().display());
    run(&mut front.fio(Path::new(OsStr::new(&both)), "randwrite", &[])).assert_code(1).assert_told(&["swap"]);
    // The same in two jobs.
    let second = format!("--filename={}", signed.path().display());
    let mut jobs =
        front.fio(free.path(), "randwrite", &["--name=second", "--rw=write", "--size=64k", &second]);
    run(&mut jobs).assert_code(1).assert_told(&["swap"]);
    assert_eq!([content(free.path()), content(signed.path())], before);
}
