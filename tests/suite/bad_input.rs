//! Input that the program cannot use: each gets one message that names it and the remedy, its exit status, no trace of
//! a panic, and nothing stays behind.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fathom_tests::{
    Ended, LoopDevice, LoopOptions, Mount, Program, fathom, fathom_path, loading, measuring_alone, must_run,
    need, run, scratch, wait_for,
};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A home, and a target that everybody may write to, both gone afterwards.
struct Place {
    home: TempDir,
    target: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Place { home: scratch(), target: scratch() };
        for directory in [&place.home, &place.target] {
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
        }
        place
    }

    fn target(&self) -> &Path {
        self.target.path()
    }

    /// `fathom` with `words`, in which `%` is the target.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = fathom(self.home.path());
        let target = self.target().to_string_lossy();
        command.args(words.iter().map(|word| word.replace('%', &target)));
        command
    }

    /// `fathom fio` with a job on the target's directory.
    fn fio(&self, more: &[&str]) -> Command {
        self.command(&[&["fio", "--name=bad", "--directory=%"], more].concat())
    }

    /// A bench of a quarter of a second on `target`.
    fn bench(&self, target: &Path, more: &[&str]) -> Command {
        self.command(&[SHORT, more, &[&target.to_string_lossy()]].concat())
    }

    fn side_files(&self, directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory)
            .expect("it can be listed")
            .map(|entry| entry.expect("it is there").path());
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
    }
}

const SHORT: &[&str] = &["bench", "--quick", "--runtime=100ms", "--size=16m", "--only=lat-read"];

/// As a user who owns nothing here.
const NOBODY: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it can be listed");
    entries.map(|entry| entry.expect("it is there").file_name().to_string_lossy().into_owned()).collect()
}

/// One message and one remedy, and what went to stdout is no report.
#[track_caller]
fn assert_refused(ended: &Ended, code: i32, parts: &[&str]) {
    ended.assert_code(code).assert_told(parts);
    assert!(
        ended.stderr.lines().filter(|line| !line.is_empty()).count() <= 5,
        "more than a message and a remedy:\n{ended}"
    );
    assert!(!ended.stdout.contains("IOPS="), "{ended}");
}

#[test]
fn invalid_fio_command_lines_are_refused() {
    let _loading = loading();
    let place = Place::new();
    let check = |words: &[&str], parts: &[&str]| {
        assert_refused(&run(&mut place.command(&[&["fio"], words].concat())), 1, parts);
    };
    check(&[], &["No job(s) defined", "--name=NAME"]);
    check(&["--"], &["No job(s) defined", "--name=NAME"]);
    check(&[""], &["'' job file"]);
    check(&["--nmae=t"], &["--nmae=t", "Did you mean name?"]);
    check(&["--name=t", "--iodetph=4"], &["--iodetph=4", "Did you mean iodepth?"]);
    check(&["--name=t", "--ioengine=sinc"], &["engine sinc", "Did you mean sync?"]);
    check(&["--name=t", "--ioengine=tape"], &["engine tape", "use one of", "psync"]);
    check(&["--name=t", "--rw=sideways"], &["rw=sideways", "randread"]);
    check(&["--name=t", "--size=much"], &["size=much", "It takes"]);
    check(&["--name=t", "--size=-1"], &["size=-1"]);
    check(&["--name=t", "--size"], &["--size", "requires an argument"]);
    check(&["--name="], &["name=", "must not be empty"]);
    check(&["--name=t", "--filename="], &["filename="]);
    check(&["--name=t", "--iodepth=0"], &["iodepth=0", "1 min"]);
    check(&["--name=t", "--numjobs=0"], &["numjobs=0", "1 min"]);
    check(&["--name=t", "--size=4k", "--numjobs=5000"], &["numjobs=5000", "4096"]);
    check(&["--name=t", "--bs=0", "--size=1m"], &["bs=0"]);
    check(&["--name=t", "--bs=1t", "--size=1m"], &["bs=1t"]);
    check(&["--name=t", "--rwmixread=101"], &["rwmixread=101"]);
    check(&["--name=t", "--size=1m", "--output-format=xml"], &["xml"]);
    check(&["--name=t", "--size=1m", "--section=other", "--section"], &["section"]);
    check(&["--cmdhelp=iodepht"], &["iodepht", "Did you mean iodepth?"]);
    check(&["--enghelp=nope"], &["nope"]);
    assert_eq!(names_in(place.target()), [""; 0]);
}

#[test]
fn invalid_command_lines_of_own_commands_are_refused() {
    let _loading = loading();
    let place = Place::new();
    let check = |words: &[&str], code: i32, parts: &[&str]| {
        assert_refused(&run(&mut place.command(words)), code, parts);
    };
    check(&[""], 2, &["''", "--help"]);
    check(&["bensh"], 2, &["bensh", "bench"]);
    check(&["bench", "--quik"], 2, &["--quik", "--quick"]);
    check(&["bench", "--quick", "--thorough", "%"], 2, &["--thorough"]);
    check(&["bench", "--suite=nope", "%"], 2, &["'nope'", "standard", "TOML"]);
    check(&["bench", "--suite=%", "%"], 2, &["suite"]);
    check(&["bench", "--only=nope", "%"], 2, &["'nope'", "lat-read"]);
    check(&["bench", "--only=", "%"], 2, &["''", "lat-read"]);
    check(&["bench", "--engine=nope", "%"], 2, &["'nope'", "libaio"]);
    check(&["bench", "--size=0", "%"], 2, &["0 B", "--size 16m"]);
    check(&["bench", "--size=1", "%"], 2, &["'1' has no unit", "1m for MiB"]);
    check(&["bench", "--size=many", "%"], 2, &["'many'", "k, m, g"]);
    check(&["bench", "--size=99999999999999999999t", "%"], 2, &["--size"]);
    check(&["bench", "--size=16000000t", "%"], 1, &["iB free", "--size"]);
    check(&["bench", "--runtime=0", "%"], 2, &["--runtime"]);
    check(&["bench", "--runtime=-3", "%"], 2, &["-3"]);
    check(&["bench", "--label=provider", "%"], 2, &["provider", "NAME=VALUE"]);
    check(&["bench", "--destroy-data=", "%"], 2, &["--destroy-data"]);
    check(&["bench", "/nope/nothing"], 1, &["/nope/nothing", "no such file or directory", "hint"]);
    check(&["bench", "/dev/null"], 1, &["/dev/null", "neither"]);
    check(&["bench", "/proc"], 1, &["/proc", "choose"]);
    check(&["bench", "%/../nope"], 1, &["no such file"]);
    check(&["history", "show", "first"], 2, &["first", "number"]);
    check(&["history", "show"], 1, &["history.db", "bench"]);
    check(&["history", "rm"], 2, &["<RUNS>"]);
    check(&["history", "rm", "7"], 1, &["history.db"]);
    check(&["history", "list", "--status=good"], 2, &["good", "complete"]);
    run(&mut place.command(&["history", "list", "--json"])).assert_code(0).assert_shown(&["[]"]);
    // Without arguments there is help, for people and not for scripts.
    for words in [&[][..], &["--"], &["history"]] {
        run(&mut place.command(words)).assert_code(2).assert_told(&["Usage: fathom", "Examples:"]);
    }
    assert_eq!((names_in(place.target()), names_in(place.home.path())), (vec![], vec![]));
}

#[test]
fn arguments_that_are_not_utf8_are_refused() {
    let _loading = loading();
    let place = Place::new();
    let word = OsStr::from_bytes(b"--name=\xff\xfe");
    assert_refused(&run(place.command(&["fio"]).arg(word)), 1, &["not valid UTF-8"]);
    assert_refused(&run(place.command(&[]).arg(OsStr::from_bytes(b"\xff"))), 2, &["--help"]);
    assert_refused(
        &run(place.command(&["bench"]).arg(OsStr::from_bytes(b"/nope\xff"))),
        1,
        &["no such file"],
    );
    // Invalid option text is not interpreted as another name.
    let odd = place.target().join(OsStr::from_bytes(b"odd \xff"));
    fs::create_dir(&odd).expect("the directory is ours");
    assert_refused(&run(place.command(SHORT).arg(&odd)), 1, &["not valid UTF-8", "link"]);
    let plain = place.target().join("plain: a\\b %s");
    std::os::unix::fs::symlink(&odd, &plain).expect("the directory is ours");
    run(place.command(SHORT).arg(&plain)).assert_code(0);
    assert_eq!(names_in(&odd), [""; 0]);
}

#[test]
fn very_long_command_lines_are_handled() {
    let _loading = loading();
    let place = Place::new();
    let many = |word: &str, count: usize| {
        (0..count).map(|number| word.replace('#', &number.to_string())).collect::<Vec<_>>()
    };
    let ended = run(place.command(&["fio"]).args(many("--name=job#", 20_000)));
    assert_refused(&ended, 1, &["maximum number of jobs (4096)", "numjobs"]);
    run(place.fio(&["--size=64k", "--rw=write"]).args(many("--bs=4k", 20_000))).assert_code(0);
    run(place.command(SHORT).arg(place.target()).args(many("--label=l#=v", 5_000))).assert_code(0);
    let long = format!("--name={}", "x".repeat(100_000));
    run(&mut place.command(&["fio", "--directory=%", &long, "--size=64k"]))
        .assert_code(1)
        .assert_told(&["File name too long"]);
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let _loading = loading();
    let place = Place::new();
    let check = |words: &[&str], parts: &[&str]| assert_refused(&run(&mut place.fio(words)), 1, parts);
    check(&["--rw=read"], &["bad.0.0", "no size", "size="]);
    check(&["--rw=write", "--size=0"], &["bad.0.0", "no size", "size="]);
    check(&["--rw=write", "--size=1"], &["1 bytes", "smaller than the block size", "raise size or lower bs"]);
    check(&["--rw=write", "--size=1k", "--bs=4k"], &["1024 bytes", "raise size or lower bs"]);
    check(
        &["--rw=write", "--size=18446744073709551615"],
        &["max value out of range", "9223372036854775807 max"],
    );
    check(
        &["--rw=write", "--size=9223372036854775807", "--offset=4k"],
        &["past the largest file", "lower size"],
    );
    check(&["--rw=write", "--size=8000000t"], &["bad.0.0", "lower size"]);
    check(
        &["--rw=randread", "--size=1g", "--bs=1g", "--iodepth=4096", "--ioengine=libaio"],
        &["MiB of memory", "lower iodepth"],
    );
    // Blocks of an odd size are nothing special through the page cache.
    for (bs, size) in [("3", "9000"), ("513", "51300"), ("5000", "1m")] {
        let ended = run(&mut place.fio(&["--rw=randrw", &format!("--bs={bs}"), &format!("--size={size}")]));
        assert_eq!(ended.assert_code(0).stderr, "");
    }
}

#[test]
fn blocks_unsuitable_for_direct_io_are_refused() {
    need!(root, tool "losetup");
    let _loading = loading();
    let place = Place::new();
    let device = LoopDevice::with(&LoopOptions { sector: 4096, ..LoopOptions::of_size(32 * MIB) });
    let filename = format!("--filename={}", device.path().display());
    for engine in ["psync", "io_uring", "libaio"] {
        for bs in ["1000", "512", "3"] {
            let words = ["fio", "--name=bad", "--direct=1", &filename, "--size=1m", "--rw=randread"];
            let ended =
                run(place.command(&words).args([format!("--bs={bs}"), format!("--ioengine={engine}")]));
            assert_refused(&ended, 1, &[&format!("bs={bs}"), "multiple of 4096", "direct=0"]);
        }
    }
    let ended = run(&mut place.fio(&["--size=1m", "--bs=1000", "--direct=1", "--rw=write"]));
    assert_refused(&ended, 1, &["bs=1000", "direct=0"]);
}

#[test]
fn queue_depths_above_the_kernels_limit_are_refused() {
    let _loading = loading();
    let place = Place::new();
    let deep = ["--size=1m", "--rw=randread", "--iodepth=100000"];
    let check = |engine: &str, parts: &[&str]| {
        let ended = run(place.fio(&deep).arg(format!("--ioengine={engine}")));
        ended.assert_code(1).assert_told(parts);
    };
    check("io_uring", &["iodepth=100000", "32768", "use more jobs"]);
    check("libaio", &["100000", "fs.aio-max-nr", "lower iodepth"]);
    // An engine that waits for each request has a depth of one, and says so.
    let ended = run(place.fio(&deep).arg("--ioengine=psync"));
    assert_eq!(ended.assert_code(0).assert_shown(&["queue depth will be capped at 1"]).stderr, "");
}

#[test]
fn missing_targets_are_refused() {
    let _loading = loading();
    let place = Place::new();
    let check = |target: &str, parts: &[&str]| {
        for rw in ["read", "randwrite"] {
            let ended =
                run(place.command(&["fio", "--name=bad", "--size=64k", target]).arg(format!("--rw={rw}")));
            assert_refused(&ended, 1, parts);
        }
    };
    check("--filename=/nope/file", &["/nope/file", "No such file or directory", "create its directory"]);
    check("--directory=/nope", &["/nope/bad.0.0", "create its directory"]);
    check("--filename=%", &["is a directory", "name a file in it"]);
    check("--filename=/dev/null", &["/dev/null", "neither a regular file nor a block device"]);
    check("--filename=/dev/fathom-test-none", &["there is no such device", "lsblk"]);
    assert!(!Path::new("/dev/fathom-test-none").exists());
    check("--filename=/dev/tty", &["/dev/tty", "neither a regular file nor a block device"]);
    assert_eq!(names_in(place.target()), [""; 0]);
}

#[test]
fn invalid_job_files_are_refused() {
    let _loading = loading();
    let place = Place::new();
    let file = |name: &str, content: &[u8]| {
        let path = place.target().join(name);
        fs::write(&path, content).expect("the directory is ours");
        path
    };
    let noise: Vec<u8> = (0..300_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let long = file("long", b"");
    File::options().write(true).open(&long).and_then(|file| file.set_len(100 * MIB)).expect("it is ours");
    let text = file("text", "[job]\nrw=read\n".repeat(8 << 20 >> 4).as_bytes());
    let check = |path: &Path, parts: &[&str]| {
        assert_refused(
            &run(place.command(&["fio"]).arg(path)),
            1,
            &[parts, &[&*path.to_string_lossy()]].concat(),
        );
    };
    check(&file("noise", &noise), &["binary"]);
    check(&file("image", b"\x7fELF\x02\x01\x01\0\0\0"), &["binary"]);
    check(&long, &["larger than 1 MiB", "--filename"]);
    check(&text, &["larger than 1 MiB", "--filename"]);
    check(place.target(), &["job file", "directory"]);
    check(&place.target().join("missing"), &["job file", "check the path"]);
    check(Path::new("/dev/zero"), &["character device, not a regular file"]);
    check(&file("outside", b"rw=read\n"), &["outside of [] job section", ":1:1", "[global]"]);
    check(&file("typo", b"[job]\nrw=read\niodetph=4\n"), &["iodetph", ":3:", "Did you mean iodepth?"]);
    check(&file("value", b"[job]\nsize=much\n"), &["size=much", ":2:"]);
    let ended = run(place.command(&["fio"]).arg(file("empty", b"")));
    assert_refused(&ended, 1, &["No job(s) defined", "[section]"]);
    let ended = run(place.command(&["fio", "-"]).stdin(Stdio::null()));
    assert_refused(&ended, 1, &["No job(s) defined"]);
}

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
    let as_nobody = |words: &[&str]| {
        let mut command = Command::new(NOBODY[0]);
        command.args(&NOBODY[1..]).arg(&own).args(words).current_dir(closed);
        command.env("HOME", "/nonexistent").env_remove("FATHOM_HISTORY").env_remove("XDG_DATA_HOME");
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
        "bench",
        "--quick",
        "--runtime=100ms",
        "--only=lat-write",
        "--no-history",
        &destroy,
        &protected_shown,
    ]);
    ended.assert_code(1);
    assert!(format!("{}{}", ended.stdout, ended.stderr).contains("Permission denied"), "{ended}");
    // A history that cannot be made stops nothing.
    let ended = as_nobody(&[SHORT, &[&protected_shown]].concat());
    ended.assert_code(0).assert_shown(&["Kept in ", ".json"]).assert_told(&[
        "warning: ",
        "/nonexistent",
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
    for layout in [&["--rw=read", "--fallocate=none"][..], &["--rw=read"], &["--rw=write"]] {
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
fn a_history_without_space_does_not_stop_the_run() {
    need!(root, tool "mount");
    let _loading = loading();
    let place = Place::new();
    let small = Mount::tmpfs(MIB);
    fs::write(small.join("taken"), vec![1; (1 << 20) - 8192]).expect("there is room");
    let history = format!("--history={}", small.join("history.db").display());
    let ended = run(&mut place.bench(place.target(), &[&history]));
    ended.assert_code(0).assert_shown(&["lat-read", "Kept in "]).assert_told(&["warning: ", "history.db"]);
    let kept = ended.stdout.lines().find_map(|line| line.strip_prefix("Kept in ")).expect("it says where");
    fs::remove_file(kept.trim_end_matches('.')).expect("the record is where it says");
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
        "fio",
        "--name=bad",
        "--directory=%",
        "--size=1m",
        "--rw=randread",
        "--ioengine=io_uring",
        "--iodepth=64",
    ];
    let ended = run(&mut as_nobody(&place, &["prlimit", "--memlock=4096:4096"], &fio));
    // Newer kernels charge a ring to the memory controller instead; then nothing is wrong.
    if !ended.status.success() {
        ended.assert_code(1).assert_told(&[
            "io_uring",
            "Cannot allocate memory",
            "RLIMIT_MEMLOCK",
            "ulimit -l",
        ]);
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
            "fio",
            "--name=bad",
            "--size=32m",
            "--rw=randread",
            "--direct=1",
            "--output-format=json",
            &filename,
        ];
        let ended =
            run(place.command(&words).args(["--iodepth=4", "--numjobs=3", &format!("--ioengine={engine}")]));
        ended.assert_code(3).assert_told(&[
            "bad: read of 4096 bytes at offset",
            "Input/output error",
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

/// The messages of `fathom` about an unusable history, for reading and for measuring; measuring continues.
fn unusable_history(history: &Path, parts: &[&str]) {
    let place = Place::new();
    let directory = history.parent().expect("a history is in a directory");
    let named = format!("--history={}", history.display());
    assert_refused(&run(place.command(&["history", "list"]).arg(&named)), 1, parts);
    assert_refused(&run(place.command(&["history", "show"]).arg(&named)), 1, parts);
    assert_refused(&run(place.command(&["history", "rm", "1"]).arg(&named)), 1, parts);
    let before = place.side_files(directory).len();
    let ended = run(&mut place.bench(place.target(), &[&named]));
    ended
        .assert_code(0)
        .assert_shown(&["lat-read", "Kept in "])
        .assert_told(&["warning: ", "hint: "])
        .assert_told(parts);
    assert_eq!(ended.stderr.lines().count(), 2, "{ended}");
    let side_files = place.side_files(directory);
    assert_eq!(side_files.len(), before + 1, "{ended}");
    let record: serde_json::Value = side_files
        .iter()
        .find(|path| ended.stdout.contains(&*path.to_string_lossy()))
        .and_then(|path| serde_json::from_str(&fs::read_to_string(path).ok()?).ok())
        .expect("the record is where it says");
    assert_eq!(record["tests"][0]["id"], "lat-read");
    // fio's front says so in its report.
    let words = ["--size=64k", "--rw=write", "--output-format=json"];
    let ended = run(place.fio(&words).env("FATHOM_HISTORY", history));
    assert_eq!(ended.assert_code(0).stderr, "");
    assert!(ended.document().to_string().contains("the record is kept in"), "{ended}");
    assert_eq!(names_in(place.target()), ["bad.0.0"]);
}

/// A history with one run in it.
fn history_in(directory: &Path) -> PathBuf {
    let (place, history) = (Place::new(), directory.join("history.db"));
    let named = format!("--history={}", history.display());
    run(&mut place.bench(place.target(), &[&named])).assert_code(0).assert_shown(&["Kept as run 1"]);
    history
}

#[test]
fn unusable_histories_do_not_stop_the_run() {
    need!(tool "sqlite3");
    let _loading = loading();
    let directory = scratch();
    let history = history_in(directory.path());
    let noise: Vec<u8> = (0..100_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("noise.db"), &noise).expect("it is ours");
    unusable_history(&path("noise.db"), &["noise.db", "is not a fathom history", "mv "]);
    assert_eq!(fs::read(path("noise.db")).expect("it is ours"), noise, "what is not ours is not written to");
    fs::copy(&history, path("newer.db")).expect("it is ours");
    must_run(Command::new("sqlite3").arg(path("newer.db")).arg("PRAGMA user_version=999"));
    unusable_history(&path("newer.db"), &["newer.db", "format 999", "newer"]);
    fs::copy(&history, path("cut.db")).expect("it is ours");
    File::options().write(true).open(path("cut.db")).and_then(|file| file.set_len(9000)).expect("it is ours");
    unusable_history(&path("cut.db"), &["cut.db", "damaged", "mv "]);
    must_run(
        Command::new("sqlite3")
            .arg(path("other.db"))
            .arg("CREATE TABLE addresses (name); INSERT INTO addresses VALUES (1)"),
    );
    unusable_history(&path("other.db"), &["other.db", "is the database of another program"]);
    fs::create_dir(path("directory.db")).expect("it is ours");
    unusable_history(&path("directory.db"), &["directory.db", "is a directory"]);
}

#[test]
fn a_locked_history_does_not_stop_the_run() {
    need!(tool "sqlite3");
    let _loading = loading();
    let directory = scratch();
    let history = history_in(directory.path());
    // sqlite3 holds the lock until its input ends.
    let mut holder = Command::new("sqlite3")
        .arg(&history)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was found on the path");
    let mut input = holder.stdin.take().expect("it is a pipe");
    std::io::Write::write_all(&mut input, b"BEGIN EXCLUSIVE;\nSELECT 'locked';\n").expect("it reads");
    let mut line = String::new();
    let mut output = std::io::BufReader::new(holder.stdout.take().expect("it is a pipe"));
    std::io::BufRead::read_line(&mut output, &mut line).expect("it answers");
    assert_eq!(line, "locked\n");
    let place = Place::new();
    let named = format!("--history={}", history.display());
    // Reading does not wait.
    run(place.command(&["history", "list"]).arg(&named)).assert_code(0).assert_shown(&["complete"]);
    let ended = run(&mut place.bench(place.target(), &[&named]));
    ended.assert_code(0).assert_shown(&["lat-read", "Kept in "]);
    ended.assert_told(&["warning: ", "is locked by another process", "fuser"]);
    assert_eq!(place.side_files(directory.path()).len(), 1);
    let ended = run(place.command(&["history", "rm", "1"]).arg(&named));
    assert_refused(&ended, 1, &["is locked by another process", "fuser"]);
    drop(input);
    holder.wait().expect("it is our child");
    run(place.command(&["history", "rm", "1"]).arg(&named)).assert_code(0);
}

#[test]
fn a_history_beside_a_device_leaves_no_files() {
    need!(root);
    let _loading = loading();
    let place = Place::new();
    let before = names_in(Path::new("/dev")).iter().filter(|name| name.starts_with("fathom-")).count();
    let ended = run(&mut place.bench(place.target(), &["--history=/dev/null"]));
    ended.assert_code(0).assert_told(&["/dev/null", "not a regular file"]);
    if let Some(kept) = ended.stdout.lines().find_map(|line| line.strip_prefix("Kept in ")) {
        fs::remove_file(kept.trim_end_matches('.')).expect("the record is where it says");
    }
    let after = names_in(Path::new("/dev")).iter().filter(|name| name.starts_with("fathom-")).count();
    assert_eq!(after, before, "{ended}");
}

/// Runs `script` in a shell with the program as `$0` and the target as `$1`.
fn in_shell(place: &Place, script: &str) -> Ended {
    let plain = place.command(&[]);
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(plain.get_program()).arg(place.target());
    command.env("HOME", place.home.path()).env_remove("FATHOM_HISTORY").env_remove("XDG_DATA_HOME");
    run(&mut command)
}

/// The lines of standard error but those on a stall: the disk that these tests share may make one.
fn without_stalls(stderr: &str) -> String {
    let is_stall = |line: &&str| line.contains("no I/O completed") || line.contains("complete again");
    stderr.lines().filter(|line| !is_stall(line)).map(|line| format!("{line}\n")).collect()
}

#[test]
fn closed_pipes_end_the_output_without_a_panic() {
    let _loading = loading();
    let place = Place::new();
    let bench = "bench --quick --runtime=100ms --size=16m --only=lat-read \"$1\"";
    let fio = "fio --name=t --directory=\"$1\" --size=1m --rw=write";
    for words in [bench, fio, "history list", "--help", "fio --cmdhelp=all"] {
        for script in [
            // The reader has seen enough; the writer has done its work.
            format!("{{ \"$0\" {words}; echo $? >&2; }} | head -n 1"),
            format!("{{ \"$0\" {words}; echo $? >&2; }} | :"),
            format!("\"$0\" {words} >&-; echo $? >&2"),
            format!("\"$0\" {words} >&- <&-; echo $? >&2"),
        ] {
            let ended = in_shell(&place, &script);
            assert_eq!(without_stalls(&ended.assert_code(0).stderr), "0\n", "{script}");
        }
        // What cannot be written is told.
        let ended = in_shell(&place, &format!("\"$0\" {words} >/dev/full"));
        assert_refused(&ended, 1, &["standard output", "No space left on device"]);
        let ended = in_shell(&place, &format!("\"$0\" {words} >/dev/full 2>&1"));
        ended.assert_code(1);
    }
    let ended = in_shell(&place, &format!("\"$0\" {fio} --output=/dev/full"));
    assert_refused(&ended, 1, &["/dev/full", "No space left on device"]);
    let ended = in_shell(&place, &format!("\"$0\" {fio} --output=/nope/report"));
    assert_refused(&ended, 1, &["/nope/report", "--output=FILE"]);
    assert_eq!(names_in(place.target()), ["t.0.0"]);
}

#[test]
fn missing_environment_variables_are_handled() {
    let _loading = loading();
    let place = Place::new();
    let environments: [&[(&str, &str)]; 6] = [
        &[],
        &[("TERM", "dumb")],
        &[("HOME", "")],
        &[("HOME", "relative"), ("XDG_DATA_HOME", "relative")],
        &[("TZ", "No/Where"), ("LANG", "xx_YY"), ("COLUMNS", "0"), ("PATH", "")],
        &[("FATHOM_HISTORY", ""), ("FATHOM_DESTROY_DATA", ":::"), ("NO_COLOR", "")],
    ];
    for environment in environments {
        let mut bench = place.bench(place.target(), &[]);
        let ended = run(bench.env_clear().envs(environment.iter().copied()).current_dir(place.home.path()));
        ended.assert_code(0).assert_shown(&["lat-read"]);
        // Without a home no run can be stored, which is reported.
        assert!(!ended.stdout.contains("Kept"), "{ended}");
        ended.assert_told(&["warning: ", "not kept", "--history"]);
        assert_eq!(without_stalls(&ended.stderr).lines().count(), 2, "{ended}");
        let mut bench = place.bench(place.target(), &["--no-history"]);
        let ended = run(bench.env_clear().envs(environment.iter().copied()));
        assert_eq!(without_stalls(&ended.assert_code(0).stderr), "");
        let mut fio = place.fio(&["--size=64k", "--rw=write"]);
        let ended = run(fio.env_clear().envs(environment.iter().copied()));
        assert_eq!(ended.assert_code(0).stderr, "");
    }
    assert_eq!((names_in(place.target()), names_in(place.home.path())), (vec!["bad.0.0".to_owned()], vec![]));
}

#[test]
fn a_removed_working_directory_is_reported() {
    let _loading = loading();
    let place = Place::new();
    let script = "mkdir \"$1/gone\" && cd \"$1/gone\" && rmdir ../gone && exec \"$0\" ";
    let ended = in_shell(&place, &format!("{script} fio --name=t --size=1m --rw=write"));
    assert_refused(&ended, 1, &["t.0.0", "No such file or directory"]);
    let ended = in_shell(&place, &format!("{script} bench --quick"));
    assert_refused(&ended, 1, &["error: .", "No such file or directory", "hint: "]);
    let ended = in_shell(&place, &format!("{script} {} ..", SHORT.join(" ")));
    assert!(ended.status.code() == Some(1) || ended.status.success(), "{ended}");
}

#[test]
fn two_benches_share_a_directory_and_a_history() {
    need!(tool "sqlite3");
    let _loading = loading();
    let place = Place::new();
    let mut programs: Vec<Program> = (0..3)
        .map(|_| Program::start(&mut place.bench(place.target(), &["--only=lat-write,commit,rand-read"])))
        .collect();
    let have_ended = || programs.iter_mut().all(Program::has_ended);
    assert!(wait_for(Duration::from_secs(90), have_ended));
    for program in programs {
        let ended = program.finish();
        assert_eq!(ended.assert_code(0).assert_shown(&["Kept as run "]).stderr, "");
    }
    assert_eq!(names_in(place.target()), [""; 0]);
    let rows = run(&mut place.command(&["history", "list", "--json"])).document();
    let rows = rows.as_array().expect("a list");
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row["status"] == "complete"), "{rows:#?}");
    let history = place.home.path().join(".local/share/fathom/history.db");
    assert_eq!(must_run(Command::new("sqlite3").arg(history).arg("PRAGMA integrity_check")), "ok");
}
