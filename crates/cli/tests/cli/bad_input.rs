//! Whatever a user gets wrong: one clear message that names it, a remedy, the right code, no panic, nothing measured.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use crate::{files_in, program, run, scratch};

const BENCH_USAGE: i32 = 2;
const BENCH_FAILED: i32 = 1;

/// Runs `args` and checks the code, what is on standard error, and that it looks like a message of ours.
#[track_caller]
fn check(dir: &Path, args: &[&str], code: i32, parts: &[&str]) {
    let ended = run(dir, args);
    assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
    for part in parts {
        assert!(ended.stderr.contains(part), "{args:?} lacks {part:?}: {}", ended.stderr);
    }
    let lines = ended.stderr.lines().filter(|line| !line.is_empty()).count();
    let is_short = lines <= 6 || ended.stderr.contains("Usage: fathom");
    assert!(is_short, "{args:?}: more than a message and a remedy: {}", ended.stderr);
    for bug in ["panicked", "internal error", "RUST_BACKTRACE", "os error 2)\n\n"] {
        assert!(!ended.stderr.contains(bug), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn fio_says_what_is_wrong_with_an_option() {
    let dir = scratch();
    let job = |extra: &[&'static str]| {
        let mut args = vec!["fio", "--name=a", "--filename=f", "--size=1m"];
        args.extend(extra);
        args
    };
    for (extra, parts) in [
        (&["--iodepth=0"][..], &["iodepth=0", "1 min"][..]),
        (&["--numjobs=0"], &["numjobs=0", "1 min"]),
        (&["--numjobs=5000"], &["numjobs=5000", "4096"]),
        (&["--bs=0"], &["bs=0"]),
        (&["--direct"], &["--direct", "requires an argument"]),
        (&["--rw=raed"], &["raed", "randread"]),
        (&["--bs=1t"], &["bs=1t"]),
        (&["--size=much"], &["size=much", "It takes"]),
        (&["--size=-1"], &["size=-1"]),
        (&["--size"], &["--size", "requires an argument"]),
        (&["--filename="], &["filename="]),
        (&["--rwmixread=101"], &["rwmixread=101"]),
        (&["--section=other", "--section"], &["section"]),
        (&["--ioengine=sinc"], &["engine sinc", "Did you mean sync?"]),
        (&["--iodpeth=4"], &["unrecognized option '--iodpeth=4'", "Did you mean iodepth?"]),
        (&["--ioengine=warp"], &["engine warp", "use one of", "libaio", "psync"]),
        (&["--ioengine=rbd"], &["rbd is not supported"]),
        (&["--output-format=xml"], &["xml", "json"]),
        (&["--rw=write", "--readonly"], &["read-only mode", "--readonly"]),
        (&["--runtime=soon"], &["runtime=soon"]),
        (&["--cpus_allowed=9999"], &["9999"]),
    ] {
        check(dir.path(), &job(extra), 1, parts);
    }
    for (args, parts) in [
        (&["fio", "--"][..], &["No job(s) defined", "--name=NAME"][..]),
        (&["fio", ""], &["'' job file"]),
        (&["fio", "--nmae=t"], &["--nmae=t", "Did you mean name?"]),
        (&["fio", "--name="], &["name=", "must not be empty"]),
        (&["fio", "--cmdhelp=iodepht"], &["iodepht", "Did you mean iodepth?"]),
        (&["fio", "--enghelp=nope"], &["nope"]),
    ] {
        check(dir.path(), args, 1, parts);
    }
    assert_eq!(files_in(dir.path()), [] as [&Path; 0], "nothing was made");
}

#[test]
fn fio_says_what_is_wrong_with_a_target() {
    let dir = scratch();
    for (args, parts) in [
        (
            &["--filename=/dev/no/such/f", "--size=1m"][..],
            &["/dev/no/such/f", "No such file", "create its directory"][..],
        ),
        (&["--filename=.", "--size=1m"], &["is a directory", "filename="]),
        (&["--filename=/dev/tty", "--size=1m"], &["/dev/tty", "is a character device"]),
        (&["--filename=f"], &["f", "you need to specify size=", "size=1g"]),
        (&["--filename=f", "--size=0"], &["you need to specify size="]),
        (&["--filename=f", "--size=1"], &["1 bytes", "smaller than the block size", "raise size"]),
        (&["--filename=f", "--size=4095"], &["smaller than the block size"]),
        (&["--filename=f", "--size=18446744073709551615"], &["exceeds the maximum of 9223372036854775807"]),
        (
            &["--filename=f", "--rw=write", "--size=9223372036854775807", "--offset=4k"],
            &["past the largest file", "lower size"],
        ),
        (&["--filename=f", "--rw=write", "--size=8000000t"], &["lower size"]),
        (
            &["--filename=f", "--size=1g", "--bs=1g", "--iodepth=4096", "--ioengine=libaio"],
            &["MiB of memory", "lower iodepth"],
        ),
        (
            &["--filename=/dev/fathom-test-none", "--size=64k", "--rw=randwrite"],
            &["there is no such device", "lsblk"],
        ),
        (&["--filename=f", "--size=1m", "--bs=1000", "--direct=1"], &["bs=1000", "512", "direct=0"]),
        (&["--directory=/no/such", "--size=1m"], &["/no/such"]),
        (&["--filename=f", "--size=1m", "--output=/no/such/out"], &["/no/such/out", "--output=FILE"]),
        (&["--filename=f", "--size=1m", "--ioengine=io_uring", "--iodepth=100000"], &["100000", "lower"]),
        (
            &["--filename=f", "--size=1m", "--ioengine=libaio", "--iodepth=10000000"],
            &["job 'a'", "lower iodepth"],
        ),
        (&["--ioengine=null", "--size=1m", "--iodepth=2147483648"], &["at most 4194304", "lower iodepth"]),
        (&["--filename=sim:aws-gp3", "--size=1m", "--iodepth=2147483648"], &["at most 4194304"]),
    ] {
        let mut line = vec!["fio", "--name=a"];
        line.extend(args);
        check(dir.path(), &line, 1, parts);
    }
    assert!(!Path::new("/dev/fathom-test-none").exists());
    // An engine that waits for each request has a depth of one, and says so.
    let capped = ["fio", "--name=a", "--filename=f", "--size=1m", "--iodepth=100000", "--ioengine=psync"];
    let ended = run(dir.path(), &capped).quietly();
    assert!(ended.stdout.contains("queue depth will be capped at 1"), "{}", ended.stdout);
}

#[test]
fn fio_takes_sizes_and_blocks_of_any_shape_through_the_page_cache() {
    let dir = scratch();
    for args in [
        &["--size=1", "--bs=1"][..],
        &["--size=30000", "--bs=3", "--rw=randrw"],
        &["--size=10001", "--bs=1000", "--rw=write"],
        &["--size=64k", "--bs=5k", "--rw=randread"],
    ] {
        let mut line = vec!["fio", "--name=a", "--filename=odd"];
        line.extend(args);
        let ended = run(dir.path(), &line).quietly();
        assert!(ended.stdout.contains("err= 0"), "{args:?}: {}", ended.stdout);
    }
}

#[test]
fn job_files_that_are_none() {
    let dir = scratch();
    let write = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
    write("binary.fio", &[0x7f, b'E', b'L', b'F', 0, 1, 2, 3, 0xff, 0xfe]);
    write("empty.fio", b"");
    write("loose.fio", b"size=1m\n[a]\n");
    write("unknown.fio", b"[a]\nsise=1m\n");
    write("global.fio", b"[global]\nsize=1m\n");
    write("value.fio", b"[job]\nsize=much\n");
    std::fs::File::create(dir.path().join("huge.fio")).unwrap().set_len(100 << 20).unwrap();
    for (file, parts) in [
        ("binary.fio", &["binary.fio", "binary"][..]),
        ("huge.fio", &["huge.fio", "larger than"]),
        ("missing.fio", &["missing.fio", "unable to open"]),
        ("empty.fio", &["No job(s) defined"]),
        ("global.fio", &["No job(s) defined"]),
        ("loose.fio", &["loose.fio:1"]),
        ("unknown.fio", &["sise=1m", "unknown.fio:2", "Did you mean size?"]),
        (".", &["'.'"]),
        ("value.fio", &["size=much", "value.fio:2:"]),
        ("/dev/zero", &["character device, not a regular file"]),
        ("-", &["No job(s) defined"]),
    ] {
        check(dir.path(), &["fio", file], 1, parts);
    }
}

#[test]
fn fio_without_jobs_prints_its_usage() {
    let dir = scratch();
    let ended = run(dir.path(), &["fio"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stdout.starts_with("fio-3.42\n") && ended.stdout.contains("--output-format"),
        "{}",
        ended.stdout
    );
    assert!(ended.stderr.starts_with("No job(s) defined\n"), "{}", ended.stderr);
}

#[test]
fn bench_says_what_is_wrong_with_a_target() {
    let dir = scratch();
    std::fs::write(dir.path().join("small"), b"hello").unwrap();
    std::fs::write(dir.path().join("large"), vec![1; 20 << 20]).unwrap();
    for (args, parts) in [
        (&["/no/such/place"][..], &["error: /no/such/place: no such file", "hint: use a directory"][..]),
        (&["small"], &["error: small: has 5 B", "hint: use the directory"]),
        (&["/dev/null"], &["error: /dev/null: is neither", "hint: "]),
        (&["/proc"], &["error: /proc: ", "cannot store files", "hint: choose a directory"]),
        (&["--size", "8000t"], &["error: .: needs 7.8 PiB", "hint: use --size"]),
        (
            &["--size", "1g", "large"],
            &["error: large: --size is 1.0 GiB, but the target has 20.0 MiB", "hint: "],
        ),
        (&["--destroy-data=small", "."], &["--destroy-data=small", "hint: use the path of the target"]),
        (&["--destroy-data=.", "."], &["is a directory", "omit --destroy-data"]),
    ] {
        let mut line = vec!["bench", "--no-history"];
        line.extend(args);
        check(dir.path(), &line, BENCH_FAILED, parts);
    }
    assert_eq!(files_in(dir.path()).len(), 2, "nothing was made");
}

#[test]
fn bench_says_what_is_wrong_with_an_option() {
    let dir = scratch();
    std::fs::write(dir.path().join("mine.toml"), "title = 1").unwrap();
    for (args, parts) in [
        (&["--size", "0"][..], &["error: 0 B is too small", "hint: use at least --size 16m"][..]),
        (&["--size", "1m"], &["error: 1.0 MiB is too small"]),
        (&["--size", "50"], &["'50' has no unit: write 50g for GiB, 50m for MiB or 50b for bytes"]),
        (&["--size", "-1"], &["-1"]),
        (&["--size", "4x"], &["'4x' is not a size"]),
        (&["--runtime", "0"], &["the time must be above 0"]),
        (&["--runtime", "1m30"], &["'1m30' is not a duration", "as in 5m30s"]),
        (&["--suite", "standrad"], &["unknown suite 'standrad'", "hint: use one of standard"]),
        (&["--suite", "/no/such.toml"], &["/no/such.toml", "No such file"]),
        (&["--suite", "mine.toml"], &["mine.toml", "line 1"]),
        (&["--only", "rand-raed"], &["no test 'rand-raed'", "hint: use one of lat-read"]),
        (&["--engine", "warp"], &["unknown engine 'warp'", "hint: use one of io_uring"]),
        (&["--label", "provider"], &["NAME=VALUE"]),
        (&["--quick", "--thorough"], &["cannot be used with"]),
        (&["--frobnicate"], &["--frobnicate"]),
        (&["--quik"], &["--quik", "--quick"]),
        (&["--suite=."], &["suite"]),
        (&["--only="], &["''", "lat-read"]),
        (&["--size=99999999999999999999t"], &["--size"]),
        (&["--runtime=-3"], &["-3"]),
        (&["--destroy-data="], &["--destroy-data"]),
        (&["--history", "h", "--no-history"], &["cannot be used with"]),
    ] {
        let mut line = vec!["bench"];
        line.extend(args);
        check(dir.path(), &line, BENCH_USAGE, parts);
    }
    check(dir.path(), &["benhc"], BENCH_USAGE, &["benhc", "bench"]);
    check(dir.path(), &[""], BENCH_USAGE, &["''", "--help"]);
    // Without arguments there is help, for people and not for scripts.
    for words in [&[][..], &["--"], &["history"]] {
        check(dir.path(), words, BENCH_USAGE, &["Usage: fathom", "Examples:"]);
    }
}

#[test]
fn a_directory_that_may_not_be_written_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    std::fs::create_dir(&target).unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&target, PermissionsExt::from_mode(0o555)).unwrap();
    let mut command = program(dir.path());
    if rustix::process::geteuid().is_root() {
        // Root may write anywhere: be somebody else, with a copy of the program that somebody else may run.
        let copy = dir.path().join("fathom");
        // By another program: a descriptor of ours that may write, inherited by what another test starts at this
        // moment, would make the copy too busy to be run.
        let copied =
            std::process::Command::new("cp").arg(env!("CARGO_BIN_EXE_fathom")).arg(&copy).status().unwrap();
        assert!(copied.success());
        command = std::process::Command::new(&copy);
        command.current_dir(dir.path()).uid(65534).gid(65534);
    }
    let output = command.args(["bench", "--no-history", "target"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(BENCH_FAILED), "{stderr}");
    assert!(stderr.contains("error: target: cannot create the test file: Permission denied"), "{stderr}");
    assert!(stderr.contains("hint: choose a directory that this user can write to"), "{stderr}");
}
