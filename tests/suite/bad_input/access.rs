//! What the machine and its permissions do not allow: targets, space, direct I/O, io_uring, limits, and devices that fail.

use super::{NOBODY, Place, SHORT, assert_refused, names_in};
use fathom_tests::{
    LoopDevice, MIB, Mount, fathom_path, loading, measuring_alone, must_run, need, run, scratch,
};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

#[test]
fn targets_without_permission_are_refused() {
    need!(root, tool "setpriv");
    let _loading = loading();
    let place = Place::new();
    let own = place.home.path().join("fathom");
    copy_program(&own);
    let closed = scratch();
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let closed = closed.path();
    let protected = closed.join("protected");
    fs::write(&protected, vec![7; 20 << 20]).expect("the directory is ours");
    let secret = closed.join("secret");
    fs::write(&secret, "x").expect("the directory is ours");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let no_home = closed.join("no-home");
    let as_nobody = |words: &[&str]| {
        let mut command = Command::new(NOBODY[0]);
        command.args(&NOBODY[1..]).arg(&own).args(words).current_dir(closed);
        command.env("HOME", &no_home).env_remove("FATHOM_HISTORY").env_remove("XDG_DATA_HOME");
        run(&mut command)
    };
    let [shown, protected_shown, secret_shown] =
        [closed, &protected, &secret].map(|path| path.display().to_string());
    let directory = format!("--directory={shown}");
    let fio = ["fio", "--name=bad", "--size=64k", "--rw=randwrite"];
    assert_refused(
        &as_nobody(&[&fio[..], &[&directory]].concat()),
        1,
        &["bad.0.0", "Permission denied", "run as the owner"],
    );
    assert_refused(&as_nobody(&fio), 1, &["bad.0.0", "Permission denied"]);
    let name = |path: &str| format!("--filename={path}");
    assert_refused(
        &as_nobody(&[&fio[..], &[&name(&protected_shown)]].concat()),
        1,
        &[&protected_shown, "Permission denied"],
    );
    let read = ["fio", "--name=bad", "--size=1", "--bs=1", "--rw=read"];
    assert_refused(
        &as_nobody(&[&read[..], &[&name(&secret_shown)]].concat()),
        1,
        &[&secret_shown, "Permission denied"],
    );
    assert_refused(&as_nobody(&[&fio[..], &["--output=report"]].concat()), 1, &["report", "--output=FILE"]);
    as_nobody(&[&read[..], &[&name(&protected_shown)]].concat()).assert_code(0);
    // bench: the directory, the directory it stands in, and files.
    let bench = [SHORT, &["--no-history"]].concat();
    assert_refused(
        &as_nobody(&[&bench[..], &[&shown]].concat()),
        1,
        &[&shown, "Permission denied", "hint: choose"],
    );
    assert_refused(&as_nobody(&bench), 1, &["Permission denied", "hint: choose"]);
    as_nobody(&[&bench[..], &[&protected_shown]].concat()).assert_code(0);
    let destroy = format!("--destroy-data={protected_shown}");
    let ended = as_nobody(&[
        "bench", "--quick", "--runtime=100ms", "--only=lat-write", "--no-history", &destroy, &protected_shown,
    ]);
    ended.assert_code(1);
    assert!(format!("{}{}", ended.stdout, ended.stderr).contains("Permission denied"), "{ended}");
    // A history that cannot be made stops nothing.
    let ended = as_nobody(&[SHORT, &[&protected_shown]].concat());
    ended.assert_code(0).assert_shown(&["Kept in ", ".json"]).assert_told(&[
        "warning: ",
        &no_home.display().to_string(),
        "hint: ",
    ]);
    let kept = ended.stdout.lines().find_map(|line| line.strip_prefix("Kept in ")).expect("it says where");
    // Users without a home get a private directory among the temporary files.
    let (kept, temporary) = (Path::new(kept.trim_end_matches('.')), std::env::temp_dir());
    let private = kept.parent().filter(|parent| parent.parent() == Some(&temporary));
    let private = private.expect("the record is in a directory of its own");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(private), mode(kept)), (0o700, 0o600));
    fs::remove_dir_all(private).expect("root may");
    assert_eq!(names_in(closed).len(), 2, "{:?}", names_in(closed));
    assert_eq!(fs::read(&protected).expect("it is ours"), vec![7; 20 << 20]);
}

#[test]
fn a_full_file_system_is_reported() {
    need!(root, tool "mount");
    let _loading = loading();
    let place = Place::new();
    let small = Mount::tmpfs(24 * MIB);
    let shown = small.path().display().to_string();
    let directory = format!("--directory={shown}");
    let fio = |more: &[&str]| run(place.command(&["fio", "--name=bad", "--size=64m", &directory]).args(more));
    for layout in
        [&["--rw=read", "--fallocate=none"][..], &["--rw=read"], &["--rw=write", "--fallocate=keep"]]
    {
        assert_refused(&fio(layout), 1, &["bad.0.0", "No space left", "lower size"]);
        fs::remove_file(small.join("bad.0.0")).ok();
    }
    // During the measurement: the writes until then are reported.
    let ended = fio(&["--rw=write", "--fallocate=none", "--output-format=json"]);
    ended.assert_code(1).assert_told(&["No space left", "lower size"]);
    let job = ended.document()["jobs"][0].clone();
    assert_eq!(job["error"], 28);
    assert!(job["write"]["io_bytes"].as_u64().is_some_and(|bytes| bytes > 20 * MIB), "{job:#}");
    fs::remove_file(small.join("bad.0.0")).expect("fio's files stay");
    // A job that ends before it lacks the space needs no more than it writes.
    fio(&["--rw=write", "--io_size=1m"]).assert_code(0);
    fs::remove_file(small.join("bad.0.0")).expect("fio's files stay");
    for (more, parts) in [
        (&["--size=64m"][..], &["MiB free", "--size"][..]),
        (&[], &["a tenth of it is too little", "--size 16m"]),
    ] {
        let words = [&["bench", "--quick", "--no-history"], more, &[&shown]].concat();
        assert_refused(&run(&mut place.command(&words)), 1, parts);
    }
    // All of it but a little is taken meanwhile.
    fs::write(small.join("taken"), vec![1; 10 << 20]).expect("there is room");
    let words = [SHORT, &[&shown]].concat();
    assert_refused(&run(&mut place.command(&words)), 1, &["MiB free", "hint: "]);
    assert_eq!(names_in(small.path()), ["taken"]);
}

#[test]
fn file_systems_without_direct_io_are_reported() {
    need!(root, tool "mount");
    let _loading = loading();
    let place = Place::new();
    struct Ramfs(TempDir);
    impl Drop for Ramfs {
        fn drop(&mut self) {
            Command::new("umount").arg(self.0.path()).output().ok();
        }
    }
    let ramfs = Ramfs(scratch());
    must_run(Command::new("mount").args(["-t", "ramfs", "fathom-test"]).arg(ramfs.0.path()));
    let file = ramfs.0.path().join("file");
    fs::write(&file, vec![7; 20 << 20]).expect("there is memory");
    let filename = format!("--filename={}", file.display());
    for engine in ["psync", "io_uring", "libaio"] {
        let words = ["fio", "--name=bad", "--size=1m", "--rw=randread", "--direct=1", &filename];
        let ended = run(place.command(&words).arg(format!("--ioengine={engine}")));
        assert_refused(&ended, 1, &["file", "O_DIRECT", "direct=0"]);
    }
    let ended = run(&mut place.bench(&file, &[]));
    assert_eq!(ended.assert_code(1).stderr, "");
    ended.assert_shown(&["failed", "O_DIRECT", "--buffered"]);
    run(&mut place.bench(&file, &["--buffered"])).assert_code(0);
    assert_refused(&run(&mut place.bench(ramfs.0.path(), &[])), 1, &["cannot store files", "choose"]);
}

#[test]
fn read_only_targets_are_refused_for_writes() {
    need!(root, tool "losetup", tool "mkfs.ext4", tool "mount");
    let _loading = loading();
    let place = Place::new();
    let device = LoopDevice::new(64 * MIB);
    {
        let mount = Mount::made(device.path(), "ext4");
        fs::write(mount.join("file"), vec![7; 20 << 20]).expect("there is room");
    }
    let mount = Mount::of(device.path(), &["ro"]);
    let fio = |words: &[&str]| run(place.command(&["fio", "--name=bad", "--size=64k"]).args(words));
    let directory = format!("--directory={}", mount.path().display());
    assert_refused(
        &fio(&["--rw=write", &directory]),
        1,
        &["bad.0.0", "Read-only file system", "choose a writable target"],
    );
    let file = format!("--filename={}", mount.join("file").display());
    assert_refused(
        &fio(&["--rw=randrw", &file]),
        1,
        &["file", "Read-only file system", "choose a writable target"],
    );
    fio(&["--rw=randread", &file]).assert_code(0);
    assert_refused(&run(&mut place.bench(mount.path(), &[])), 1, &["mounted read-only", "choose"]);
    run(&mut place.bench(&mount.join("file"), &[])).assert_code(0);
}

/// `kernel.io_uring_disabled` for users without privilege; put back on drop. It affects the whole machine, so whoever
/// sets it runs alone.
struct UringForbidden(String);

const URING_SWITCH: &str = "/proc/sys/kernel/io_uring_disabled";

impl UringForbidden {
    fn new() -> Self {
        let before = fs::read_to_string(URING_SWITCH).expect("it was looked for");
        fs::write(URING_SWITCH, "1").expect("root may set it");
        UringForbidden(before)
    }
}

impl Drop for UringForbidden {
    fn drop(&mut self) {
        fs::write(URING_SWITCH, &self.0).ok();
    }
}

/// Copies by a program of its own: a descriptor of ours that may write, handed on to what another test starts at this
/// moment, would make the copy too busy to be run.
fn copy_program(to: &Path) {
    must_run(Command::new("cp").arg(fathom_path()).arg(to));
}

/// A copy of the program that every user can start, and a command that runs it as nobody after `limits`.
fn as_nobody(place: &Place, limits: &[&str], words: &[&str]) -> Command {
    let own = place.home.path().join("fathom");
    if !own.exists() {
        copy_program(&own);
    }
    let target = place.target().to_string_lossy();
    let mut command = Command::new(NOBODY[0]);
    command
        .args(&NOBODY[1..])
        .args(limits)
        .arg(&own)
        .args(words.iter().map(|word| word.replace('%', &target)));
    command.env("HOME", place.home.path()).env_remove("FATHOM_HISTORY").env_remove("XDG_DATA_HOME");
    command
}

#[test]
fn forbidden_io_uring_is_reported_with_a_remedy() {
    need!(root, tool "setpriv", path "/proc/sys/kernel/io_uring_disabled");
    let _alone = measuring_alone();
    let place = Place::new();
    let forbidden = UringForbidden::new();
    let fio = ["fio", "--name=bad", "--directory=%", "--size=64k", "--rw=randrw", "--ioengine=io_uring"];
    let ended = run(&mut as_nobody(&place, &[], &fio));
    ended.assert_code(1).assert_told(&["io_uring", "kernel.io_uring_disabled", "ioengine=libaio"]);
    let bench =
        ["bench", "--quick", "--runtime=100ms", "--size=16m", "--only=lat-read,rand-read", "--json", "%"];
    let ended = run(&mut as_nobody(&place, &[], &bench));
    let document = ended.assert_code(0).document();
    let notes = document["run"]["notes"].to_string();
    assert!(notes.contains("io_uring is not available") && notes.contains("uses libaio instead"), "{notes}");
    for test in document["tests"].as_array().expect("a bench has tests") {
        assert_eq!(test["status"], "complete");
        assert!(test["fio"].as_str().is_some_and(|fio| fio.contains("ioengine=libaio")), "{test:#}");
    }
    // Who asks for it does not get another.
    let ended = run(&mut as_nobody(&place, &[], &[SHORT, &["--engine=io_uring", "%"]].concat()));
    ended.assert_code(1);
    let said = format!("{}{}", ended.stdout, ended.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("Operation not permitted") && said.contains("kernel.io_uring_disabled"), "{ended}");
    drop(forbidden);
}

#[test]
fn memory_and_descriptor_limits_are_reported() {
    need!(root, tool "setpriv", tool "prlimit");
    let _loading = loading();
    let place = Place::new();
    let fio = [
        "fio", "--name=bad", "--directory=%", "--size=1m", "--rw=randread", "--ioengine=io_uring",
        "--iodepth=64",
    ];
    let ended = run(&mut as_nobody(&place, &["prlimit", "--memlock=4096:4096"], &fio));
    // Newer kernels charge a ring to the memory controller instead; then nothing is wrong.
    if !ended.status.success() {
        ended
            .assert_code(1)
            .assert_told(&["io_uring", "Cannot allocate memory", "RLIMIT_MEMLOCK", "ulimit -l"]);
    }
    // Every number of descriptors from too few to enough. Which is enough depends on whether a worker has taken its own
    // table before the next one opens its files.
    for limit in 4..24 {
        let nofile = format!("--nofile={limit}:{limit}");
        let jobs = [&fio[..], &["--numjobs=16"]].concat();
        let ended = run(&mut as_nobody(&place, &["prlimit", &nofile], &jobs));
        if limit < 16 || !ended.status.success() {
            assert!(ended.status.code().is_some_and(|code| (1..=16).contains(&code)), "{limit}: {ended}");
            ended.assert_told(&["Too many open files", "ulimit -n"]);
        }
        let jobs = [SHORT, &["--only=rand-read-jobs", "%"]].concat();
        let ended = run(&mut as_nobody(&place, &["prlimit", &nofile], &jobs));
        let said =
            format!("{}{}", ended.stdout, ended.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        if limit < 16 || !ended.status.success() {
            ended.assert_code(1);
            assert!(said.contains("Too many open files") && said.contains("ulimit -n"), "{limit}: {ended}");
        }
        for name in names_in(place.target()) {
            assert!(name.starts_with("bad."), "{limit}: {name}");
        }
    }
}

#[test]
fn device_errors_are_reported() {
    need!(root, tool "losetup");
    let _loading = loading();
    let place = Place::new();
    let device = LoopDevice::written(32 * MIB);
    device.truncate_backing(MIB);
    let filename = format!("--filename={}", device.path().display());
    for engine in ["psync", "sync", "pvsync", "pvsync2", "libaio", "io_uring"] {
        let words = [
            "fio", "--name=bad", "--size=32m", "--rw=randread", "--direct=1", "--output-format=json",
            &filename,
        ];
        let ended =
            run(place.command(&words).args(["--iodepth=4", "--numjobs=3", &format!("--ioengine={engine}")]));
        ended.assert_code(3).assert_told(&[
            "fio: io_u error on file ",
            ": Input/output error: read offset=",
            "dmesg",
        ]);
        let document = ended.document();
        for job in 0..3 {
            assert_eq!(document["jobs"][job]["error"], 5, "{engine}: {document:#}");
        }
    }
    let ended = run(place.bench(device.path(), &["--only=rand-read", "--json"]).env("RUST_BACKTRACE", "1"));
    let test = ended.assert_code(1).document()["tests"][1].clone();
    assert_eq!(
        (test["status"].as_str(), test["errors"][0]["errno"].as_u64()),
        (Some("failed"), Some(5)),
        "{test:#}"
    );
    let reason = test["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("Input/output error") && reason.contains("dmesg"), "{reason}");
}
