//! `fathom ping`, and the program under the name `ioping` compared with Debian's.
//!
//! ioping's output is compared without the times; fathom's own output is compared with devices whose behaviour is
//! known: a file in the cache, a hole, a device that fails, stops for a while, or never comes back.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fathom_tests::{
    Ended, LoopDevice, MIB, Mount, NbdDisk, Program, fathom, fathom_named, loading, measuring_capped, need,
    run, scratch, wait_for,
};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

/// A directory with a file of 16 MiB that has been written.
fn with_file() -> TempDir {
    let directory = scratch();
    std::fs::write(directory.path().join("file"), vec![7; 16 * MIB as usize]).expect("the directory is ours");
    directory
}

fn ping(home: &Path, words: &[&str]) -> Command {
    let mut command = fathom(home);
    command.arg("ping").args(words).current_dir(home);
    command
}

/// `text` with every measured number as `N`: what remains is the form.
fn form(text: &str) -> String {
    let mut kept = String::new();
    for line in text.lines() {
        let line = line.replace(" (fast)", "").replace(" (slow)", "");
        let words: Vec<&str> = line.split(' ').collect();
        let is_raw = words.len() == 10 && words.iter().all(|word| word.parse::<u64>().is_ok());
        let shown: Vec<String> =
            words.iter().enumerate().map(|(at, word)| measured(&words, at, word, is_raw)).collect();
        // A unit goes with its number, and one before "iops" may have none.
        kept.push_str(&shown.join(" ").replace("N k", "N").replace("N M", "N"));
        kept.push('\n');
    }
    kept
}

fn measured(words: &[&str], at: usize, word: &str, is_raw: bool) -> String {
    let next = words.get(at + 1).copied().unwrap_or_default().trim_end_matches(',');
    let last = at.checked_sub(1).map_or("", |before| words[before]);
    let bare = word.trim_end_matches(',');
    let is_time = ["ns", "us", "ms", "s", "min"];
    let is_rate = ["B/s", "KiB/s", "MiB/s", "GiB/s", "iops", "k", "M"];
    let number = word.trim_start_matches("time=").parse::<f64>().is_ok();
    let json =
        ["\"timestamp\":", "\"localtime\":", "\"time\":", "\"iops\":", "\"bps\":", "\"min\":", "\"avg\":"];
    let is_json = json.contains(&last) || ["\"max\":", "\"mdev\":"].contains(&last);
    match () {
        () if is_raw && !matches!(at, 0 | 8) => "N".to_owned(),
        () if is_json => "N".to_owned(),
        () if number && is_time.contains(&next) => "N".to_owned(),
        () if number && is_rate.contains(&next) => "N".to_owned(),
        () if is_time.contains(&bare) || is_rate[..4].contains(&bare) => "U".to_owned(),
        () => word.to_owned(),
    }
}

#[test]
fn ioping_prints_what_debians_ioping_prints() {
    need!(tool "ioping");
    let _loading = loading();
    let directory = with_file();
    let ours = fathom_named(directory.path(), "ioping");
    let check = |words: &str| {
        let run_as = |program: &Path| {
            run(Command::new(program).args(words.split_whitespace()).current_dir(directory.path()))
        };
        let (theirs, ours) = (run_as(Path::new("ioping")), run_as(&ours));
        assert_eq!(ours.status.code(), theirs.status.code(), "{words}\n{theirs}\n{ours}");
        assert_eq!(form(&ours.stdout), form(&theirs.stdout), "{words}");
        let first = |ended: &Ended| ended.stderr.lines().next().unwrap_or_default().to_owned();
        assert_eq!(first(&ours), first(&theirs), "{words}");
    };
    for words in [
        "-c 3 -i 1ms file",
        "-D -c 3 -i 1ms .",
        "-W -c 3 -i 1ms .",
        "-WWW -c 2 -i 1ms file",
        "-G -c 3 -i 1ms .",
        "-A -D -c 2 -i 1ms file",
        "-H -A -c 2 -i 1ms file",
        "-Y -W -c 2 -i 1ms .",
        "-y -W -c 2 -i 1ms .",
        "-L -C -c 2 -i 1ms file",
        "-N -c 1 -D -a 0 -C -s 8k -S 1m -o 1m -e 3 file",
        "-q -c 3 -i 1ms file",
        "-B -c 3 -i 1ms file",
        "-p 2 -c 6 -i 1ms file",
        "-q -p 2 -c 6 -i 1ms file",
        "-B -p 2 -c 6 -i 1ms file",
        "-P 30ms -c 8 -i 10ms file",
        "-J -c 2 -i 1ms file",
        "-q -J -c 2 -i 1ms file",
        "-J -p 2 -c 4 -i 1ms file",
        "-b 3 -c 6 -i 10ms file",
        "-T 1ns -c 4 -i 1ms file",
        "-t 1s -c 4 -i 1ms file",
        "-a 5 -c 3 -i 1ms file",
        "-w 50ms -i 20ms file",
        "-r 100 -c 2 file",
        "-l 1m -count 2 file",
        "-C -c 2 -i 1ms -s 10239 file",
        "-k -c 1 .",
        "-c 1 /dev/null",
        "-W file",
        "-WW file",
        "-D -c 1 -s 1000 file",
        "-S 128m file",
        "-o 70m file",
        "-s 17m file",
        "-c 1 /proc/version",
        "-c 1 /proc",
        "missing",
        "-c x file",
        "-i 1q file",
        "-c 1 a b",
        "-Z",
        "--nosuch file",
        "--c 1 file",
        "--batch=3 file",
        "-c",
        "-v",
    ] {
        check(words);
    }
    let kept = std::fs::metadata(directory.path().join("ioping.tmp")).expect("-k keeps it");
    assert_eq!(kept.len(), MIB);
}

#[test]
fn requests_are_labelled_by_their_source() {
    let _loading = loading();
    let directory = with_file();
    let home = directory.path();
    std::fs::File::create(home.join("hole")).and_then(|file| file.set_len(16 * MIB)).expect("it is ours");
    let served = |words: &[&str]| {
        let words: Vec<&str> = words.iter().copied().chain(["-c", "20", "-i", "1ms", "--json"]).collect();
        let ended = run(&mut ping(home, &words));
        let document = ended.assert_code(0).document();
        assert_eq!(
            (&document["schema"], &document["requests"]),
            (&"fathom.ping/1".into(), &20.into()),
            "{ended}"
        );
        ["device", "cache", "hole"].map(|word| document["served"][word].as_u64().unwrap_or(u64::MAX))
    };
    assert_eq!(served(&["file"]), [20, 0, 0], "direct");
    assert_eq!(served(&["hole"]), [0, 0, 20], "a hole");
    std::fs::read(home.join("file")).expect("it is there");
    assert_eq!(served(&["--buffered", "-C", "file"]), [0, 20, 0], "left in the cache");
    // Dirty pages stay; clean ones are dropped before each request.
    run(Command::new("sync").arg("-f").arg(home)).assert_code(0);
    assert_eq!(served(&["--buffered", "file"]), [20, 0, 0], "dropped");
    assert_eq!(served(&["-W", "."]), [20, 0, 0], "flushed writes");
    assert_eq!(served(&["-W", "-C", "--buffered", "."]), [0, 20, 0], "writes into the cache");
}

#[test]
fn failures_are_counted_and_objectives_checked() {
    need!(tool "nbdkit", tool "nbdfuse", tool "fusermount3");
    let _loading = loading();
    let home = scratch();
    let broken = NbdDisk::new(16 * MIB, &["error"], &["error-pread=EIO", "error-pread-rate=100%"]);
    let path = broken.path().display().to_string();
    let ended =
        run(&mut ping(home.path(), &["-c", "3", "-i", "1ms", "--json", "--expect", "p50<10s", &path]));
    let document = ended.assert_code(3).document();
    assert_eq!((&document["requests"], &document["errors"]), (&3.into(), &3.into()), "{ended}");
    assert_eq!(document["slo"][0]["verdict"], "missed", "{ended}");
    run(&mut ping(home.path(), &["-c", "3", "-i", "1ms", &path]))
        .assert_code(1)
        .assert_shown(&["Input/output error"]);
    let whole = with_file();
    let slo = |objective: &str| {
        run(&mut ping(whole.path(), &["-c", "20", "-i", "1ms", "-q", "--expect", objective, "file"]))
    };
    slo("p50<1m,max<=1h").assert_code(0).assert_shown(&["lat_ns.p50<60s ", " met"]);
    slo("max<1ns").assert_code(3).assert_shown(&["lat_ns.max<1ns missed"]);
}

#[test]
fn a_half_unreadable_device_gives_a_failure() {
    need!(root, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let home = scratch();
    let half = LoopDevice::in_memory(16 * MIB);
    half.truncate_backing(8 * MIB);
    let path = half.path().display().to_string();
    let words = ["-L", "-s", "1m", "-c", "16", "-i", "0", &path];
    // In order: the first half is read, the second is past the end of the backing file.
    run(&mut ping(home.path(), &words))
        .assert_code(1)
        .assert_shown(&["8 of 16 requests: Input/output error"]);
    let ended = run(&mut ping(home.path(), &[&["--json"], &words[..]].concat()));
    let document = ended.assert_code(1).document();
    assert_eq!((&document["requests"], &document["errors"]), (&16.into(), &8.into()), "{ended}");
    let ioping = fathom_named(home.path(), "ioping");
    run(Command::new(ioping).args(["-D"]).args(words)).assert_code(3).assert_told(&["request failed"]);
}

#[test]
fn impossible_targets_are_refused_with_a_hint() {
    let _loading = loading();
    let directory = with_file();
    let check = |words: &str, code: i32, told: &[&str]| {
        let words: Vec<&str> = words.split(' ').collect();
        run(&mut ping(directory.path(), &words)).assert_code(code).assert_told(told).assert_told(&["hint: "]);
    };
    check("--json -J file", 2, &["cannot combine"]);
    check("--schedule fixed -i 0 file", 2, &["needs an interval"]);
    check("--expect p99>1 file", 2, &["is not an objective"]);
    check("--live xml file", 2, &["use ndjson"]);
    check("--engine nosuch file", 2, &["unknown engine 'nosuch'"]);
    check("-W file", 2, &["think twice"]);
    check("-W --destroy-data=other file", 2, &["is not the target named by --destroy-data=other"]);
    check("missing", 1, &["No such file"]);
    check("-q", 2, &["no destination"]);
}

#[test]
fn devices_are_written_only_when_permitted_and_never_while_mounted() {
    need!(root, tool "losetup", tool "mkfs.ext4", tool "mount", tool "ioping");
    let _loading = loading();
    let home = scratch();
    let device = LoopDevice::new(64 * MIB);
    let path = device.path().display().to_string();
    let ioping = fathom_named(home.path(), "ioping");
    let as_ioping = |words: &[&str]| run(Command::new(&ioping).args(words).arg(&path));
    let theirs = run(Command::new("ioping").args(["-J", "-c", "2", "-i", "1ms"]).arg(&path));
    let ours = as_ioping(&["-J", "-c", "2", "-i", "1ms"]);
    assert_eq!(form(&ours.assert_code(0).stdout), form(&theirs.assert_code(0).stdout));
    let named = format!("--destroy-data={path}");
    for words in [vec!["-W", &path], vec!["-WWW", &path]] {
        run(&mut ping(home.path(), &words)).assert_code(2).assert_told(&["requires --destroy-data="]);
    }
    let write = ["-W", "-c", "2", "-i", "1ms", &named, &path];
    run(&mut ping(home.path(), &write)).assert_code(0).assert_shown(&[">>>", "written"]);
    as_ioping(&["-WW", "-c", "2"]).assert_code(2).assert_told(&["think twice"]);
    as_ioping(&["-WWW", "-c", "2", "-i", "1ms"]).assert_code(0);
    let _mount = Mount::made(device.path(), "ext4");
    as_ioping(&["-WWW", "-c", "2"]).assert_code(2).assert_told(&["is mounted at"]);
    run(&mut ping(home.path(), &write)).assert_code(1).assert_told(&["is mounted at", "unmount it first"]);
    run(&mut ping(home.path(), &["-c", "2", "-i", "1ms", &path])).assert_code(0);
}

/// A disk of memory that holds data everywhere.
fn disk() -> NbdDisk {
    let disk = NbdDisk::new(16 * MIB, &[], &[]);
    std::fs::write(disk.path(), vec![7; 16 * MIB as usize]).expect("the disk takes it");
    disk
}

#[test]
fn a_stall_is_in_the_response_times_of_all_waiting_requests() {
    need!(tool "nbdkit", tool "nbdfuse", tool "fusermount3");
    let _capped = measuring_capped();
    let home = scratch();
    // About 1.6 s of six at 200 per second, on all engines concurrently: sleeping programs do not disturb each other.
    let engines = ["io_uring", "libaio", "psync"];
    let disks = engines.map(|_| disk());
    let mut programs: Vec<(Program, &NbdDisk, &str)> = Vec::new();
    for (engine, disk) in engines.into_iter().zip(&disks) {
        let path = disk.path().display().to_string();
        let words = ["-r", "200", "-w", "6", "--schedule", "fixed", "--events", "--engine", engine, &path];
        programs.push((Program::start(&mut ping(home.path(), &words)), disk, engine));
    }
    for (program, ..) in &programs {
        assert!(
            wait_for(Duration::from_secs(20), || program.stdout().lines().count() > 100),
            "{}",
            program.stderr()
        );
    }
    disks.iter().for_each(NbdDisk::hang);
    for (program, ..) in &programs {
        let is_told = || program.stdout().contains("\"event\":\"stalled\"");
        assert!(wait_for(Duration::from_secs(20), is_told), "{}", program.stderr());
    }
    disks.iter().for_each(NbdDisk::resume);
    for (program, _, engine) in programs {
        let ended = program.finish();
        ended.assert_code(0).assert_told(&["stalled: a request has had no answer", "answered after"]);
        let document = summary(&ended);
        let ns = |time: &str, measure: &str| document[time][measure].as_f64().unwrap_or_default();
        let stall = document["stalls"][0]["length_ns"].as_f64().unwrap_or_default();
        // Of 1200 requests 60 lie beyond p95. Those due during the stall waited for its end, each 5 ms less than the one
        // before it, or longer where the machine is slow to make up for them.
        let (p95, max) = (ns("response_ns", "p95"), ns("response_ns", "max"));
        assert!(max >= stall * 0.98 && stall > 1.4e9, "{engine}: {document}");
        assert!(p95 > (max - 60.0 * 5e6) * 0.97 && p95 <= max, "{engine}: {p95} of {max}: {document}");
        assert!(
            ns("lat_ns", "p95") < p95 / 5.0,
            "{engine}: the times themselves know one request only: {document}"
        );
        assert_eq!((&document["requests"], &document["errors"]), (&1200.into(), &0.into()), "{engine}");
        assert!(document["stall_count"].as_u64() >= Some(1), "{engine}: {document}");
    }
}

/// The last line of the events.
fn summary(ended: &Ended) -> Value {
    let last = ended.stdout.lines().last().unwrap_or_default();
    let document: Value = serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}:\n{ended}"));
    assert_eq!((&document["event"], &document["schema"]), (&"summary".into(), &"fathom.ping/1".into()));
    document
}

#[test]
fn a_hanging_device_does_not_delay_the_report() {
    need!(tool "nbdkit", tool "nbdfuse", tool "fusermount3");
    let _loading = loading();
    let home = scratch();
    for engine in ["io_uring", "psync"] {
        let disk = disk();
        let path = disk.path().display().to_string();
        let words = ["-i", "10ms", "--events", "--engine", engine, &path];
        let mut program = Program::start(&mut ping(home.path(), &words));
        assert!(
            wait_for(Duration::from_secs(20), || program.stdout().lines().count() > 20),
            "{}",
            program.stderr()
        );
        disk.hang();
        let is_told = || program.stderr().contains("stalled: a request has had no answer");
        assert!(wait_for(Duration::from_secs(20), is_told), "{engine}: {}", program.stderr());
        program.signal(Signal::INT);
        let is_reported = || program.stdout().contains("\"event\":\"summary\"");
        assert!(wait_for(Duration::from_secs(15), is_reported), "{engine}: {}", program.stderr());
        // A call that the kernel will not break off keeps the process; a ring lets go of it.
        if engine == "io_uring" {
            assert!(wait_for(Duration::from_secs(15), || program.has_ended()), "{}", program.stderr());
        }
        disk.resume();
        let ended = program.finish();
        ended.assert_code(130).assert_told(&["never completed: thread "]);
        let document = summary(&ended);
        assert_eq!((&document["stalls"][0]["unanswered"], &document["timeouts"]), (&true.into(), &1.into()));
        assert!(document["lat_ns"]["samples"].as_u64() > Some(10), "{document}");
    }
}
