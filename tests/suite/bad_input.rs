//! Input that the program cannot use: each gets one message that names it and the remedy, its exit status, no trace of
//! a panic, and nothing stays behind.

mod access;
mod histories;
mod surroundings;

use fathom_tests::{Ended, LoopDevice, LoopOptions, fathom, loading, must_run, need, run, scratch};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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
        &["size=18446744073709551615", "exceeds the maximum of 9223372036854775807"],
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
    check("--filename=/proc/nope/file", &["/proc/nope", "No such file or directory", "create its directory"]);
    check("--directory=/nope", &["/nope: is not a directory", "create it"]);
    check("--filename=%", &["is a directory", "name a file in it"]);
    check("--filename=/dev/fathom-test-none", &["there is no such device", "lsblk"]);
    assert!(!Path::new("/dev/fathom-test-none").exists());
    check("--filename=/dev/tty", &["/dev/tty", "is a character device", "/dev/null"]);
    assert_eq!(names_in(place.target()), [""; 0]);
}

#[test]
fn names_of_devices_are_not_removed() {
    need!(root);
    let _loading = loading();
    let place = Place::new();
    let node = place.target().join("null");
    must_run(Command::new("mknod").arg(&node).args(["c", "1", "3"]));
    let name = format!("--filename={}", node.display());
    let delete = ["--name=d", "--ioengine=filedelete", "--size=4k", &name];
    let write = ["--name=w", "--rw=write", "--size=4k", &name];
    for jobs in [delete.to_vec(), [&write[..], &delete].concat()] {
        assert_refused(&run(place.command(&["fio"]).args(jobs)), 1, &["is a device", "name regular files"]);
        assert!(node.exists());
    }
    run(place.command(&["fio"]).args(write).arg("--unlink=1")).assert_code(0);
    assert!(node.exists());
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
