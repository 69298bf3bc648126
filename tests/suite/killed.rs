//! Interrupted runs: by Ctrl-C, by SIGTERM, by `kill -9`, and on a device that no longer responds.
//!
//! Partial results are reported, the history has the finished tests, and no files remain in the target.

mod fio_runs;
mod hanging;

use fathom_tests::{
    Cap, LoopDevice, MIB, Mount, Program, Throttle, fathom, fathom_under, loading, must_run, need, run,
    scratch, suite, wait_for,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How long something may take to begin: many times what a busy machine needs.
const BEGIN: Duration = Duration::from_secs(60);

/// From a signal to the end, where nothing hangs. A worker that does not answer is given four seconds.
const END: Duration = Duration::from_secs(60);

/// A test of a fraction of a second, then one that only a signal ends.
fn two_tests(endless: &str) -> String {
    let reads = "options = { rw = \"randread\", bs = \"4k\" }";
    let endless = format!("options = {{ rw = \"{endless}\", bs = \"4k\", iodepth = 4 }}");
    let short = format!("{reads}\ntime_share = 0.001");
    suite("300s", &[("short", &short), ("endless", &endless), ("never", reads)])
}

/// A home with a suite, a history, and what to run there.
struct Bench {
    home: TempDir,
}

impl Bench {
    fn new() -> Self {
        let home = scratch();
        std::fs::write(home.path().join("suite.toml"), two_tests("randrw"))
            .expect("the directory is new and ours");
        Bench { home }
    }

    fn history(&self) -> PathBuf {
        self.home.path().join(".local/share/fathom/history.db")
    }

    /// A bench of the suite in `target`.
    fn command(&self, target: &Path) -> Command {
        self.arguments(fathom(self.home.path()), target)
    }

    fn arguments(&self, mut command: Command, target: &Path) -> Command {
        command.args(["bench", "--size=16m", "--suite"]).arg(self.home.path().join("suite.toml")).arg(target);
        command
    }

    /// The record of the newest run; `None` before there is one.
    fn newest(&self) -> Option<Value> {
        if !self.history().exists() {
            return None;
        }
        let ended = run(fathom(self.home.path()).args(["history", "show", "--json"]));
        ended.status.success().then(|| ended.document())
    }

    /// Waits until the short test is stored, so that the endless one runs.
    fn await_endless(&self, program: &mut Program) {
        let is_stored =
            || self.newest().is_some_and(|run| status_of(&run, "short") == Some("complete".to_owned()));
        let came = wait_for(BEGIN, || program.has_ended() || is_stored());
        assert!(came && !program.has_ended(), "{}\n{}", program.stdout(), program.stderr());
        await_work(program);
    }

    fn assert_integrity(&self) {
        let checked = must_run(Command::new("sqlite3").arg(self.history()).arg("PRAGMA integrity_check"));
        assert_eq!(checked, "ok");
    }

    /// The status that `history list` gives the newest run.
    fn listed_status(&self) -> String {
        let ended = run(fathom(self.home.path()).args(["history", "list", "--json"]));
        ended.assert_code(0);
        let rows = ended.document();
        let last = rows.as_array().and_then(|rows| rows.last()).expect("the run is in the list");
        last["status"].as_str().expect("a status is a word").to_owned()
    }
}

fn status_of(document: &Value, id: &str) -> Option<String> {
    let test = document["tests"].as_array()?.iter().find(|test| test["id"] == id)?;
    Some(test["status"].as_str()?.to_owned())
}

/// Bytes that `program` has read and written.
fn moved(program: &Program) -> u64 {
    let path = format!("/proc/{}/io", program.pid().as_raw_nonzero());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let value = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    // Which of them counts depends on the page cache.
    value("wchar:") + value("rchar:") + value("read_bytes:") + value("write_bytes:")
}

/// Waits until `program` has moved `bytes` more than it has now.
pub(crate) fn await_growth(program: &mut Program, bytes: u64) {
    let before = moved(program);
    program.run_until(BEGIN, |program| moved(program) > before + bytes);
}

/// Processor time that `program` has used, hundredths of a second.
fn worked(program: &Program) -> u64 {
    let stat = format!("/proc/{}/stat", program.pid().as_raw_nonzero());
    let text = std::fs::read_to_string(stat).unwrap_or_default();
    // The name may hold anything; the fields after it are numbers but for the state.
    let after_name = text.rsplit(") ").next().unwrap_or_default();
    let fields: Vec<u64> = after_name.split(' ').map(|field| field.parse().unwrap_or(0)).collect();
    fields.get(11).unwrap_or(&0) + fields.get(12).unwrap_or(&0)
}

/// Waits until `program` measures, with any engine.
pub(crate) fn await_work(program: &mut Program) {
    let before = worked(program);
    program.run_until(BEGIN, |program| worked(program) > before + 20);
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the target can be listed");
    let names =
        entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned());
    names.filter(|name| name != "lost+found").collect()
}

/// Checks that `directory` is empty, immediately or, if a server removes files, a moment later.
#[track_caller]
fn assert_empty(directory: &Path) {
    let is_empty = wait_for(Duration::from_secs(5), || names_in(directory).is_empty());
    assert!(is_empty, "left in {}: {:?}", directory.display(), names_in(directory));
}

/// Interrupts the endless test and checks all remains.
fn bench_broken_off(target: &Path, signal: Signal) {
    let bench = Bench::new();
    let mut program = Program::start(&mut bench.command(target));
    bench.await_endless(&mut program);
    assert!(names_in(target).iter().all(|name| name.starts_with(".fuse_hidden")), "{:?}", names_in(target));
    program.signal(signal);
    let ended = program.finish_within(END);
    if signal == Signal::KILL {
        assert_eq!(ended.status.code(), None);
    } else {
        ended.assert_code(130).assert_shown(&["short", "endless", "incomplete", "Kept as run 1"]);
        assert!(!ended.stdout.contains("never "), "{ended}");
    }
    assert_empty(target);
    bench.assert_integrity();
    assert_eq!(bench.listed_status(), "incomplete");
    let kept = bench.newest().expect("the run is kept");
    assert_eq!(status_of(&kept, "short").as_deref(), Some("complete"), "{kept:#}");
    let endless = (signal != Signal::KILL).then(|| "incomplete".to_owned());
    assert_eq!(status_of(&kept, "endless"), endless, "{kept:#}");
    assert_eq!(status_of(&kept, "never"), None);
    if signal != Signal::KILL {
        let endless = kept["tests"][1].clone();
        assert!(endless["read"]["ios"].as_u64().is_some_and(|ios| ios > 0), "{endless:#}");
    }
    if signal == Signal::KILL {
        let shown = run(fathom(bench.home.path()).args(["history", "show", "--full"]));
        let words = shown.assert_code(0).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["stopped before its end: killed, or still running", "verdicts rest on the 1 test that"] {
            assert!(words.contains(part), "{part:?} is not in {words}");
        }
    }
    // The next run finds a history it can go on with.
    let next = run(bench.command(target).args(["--only=short", "--runtime=100s"]));
    next.assert_code(0).assert_shown(&["Kept as run 2"]);
    assert_eq!(next.stderr, "");
}

/// A lost connection: every write to the terminal fails from then on.
#[test]
fn a_bench_without_its_terminal_keeps_finished_tests() {
    need!(tool "sqlite3");
    let _loading = loading();
    let (bench, target) = (Bench::new(), scratch());
    let (mut program, terminal) = Program::start_on_terminal(&mut bench.command(target.path()));
    bench.await_endless(&mut program);
    drop(terminal);
    // As a shell hands on what the kernel has sent.
    program.signal(Signal::HUP);
    program.signal(Signal::HUP);
    program.finish_within(END).assert_code(130);
    assert_empty(target.path());
    bench.assert_integrity();
    let kept = bench.newest().expect("the run is kept");
    assert_eq!(status_of(&kept, "endless").as_deref(), Some("incomplete"), "{kept:#}");
}

#[test]
fn an_interrupted_bench_keeps_finished_tests() {
    need!(root, tool "sqlite3");
    let _loading = loading();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL] {
        bench_broken_off(scratch().path(), signal);
    }
}

#[test]
fn no_file_is_left_in_memory_or_without_unnamed_files() {
    need!(root, tool "mount", tool "sqlite3", tool "mkfs.ext4", tool "fuse2fs", path "/dev/fuse");
    let _loading = loading();
    let tmpfs = Mount::tmpfs(64 * MIB);
    for signal in [Signal::INT, Signal::KILL] {
        bench_broken_off(tmpfs.path(), signal);
    }
    let fuse = FuseMount::new(128 * MIB);
    for signal in [Signal::TERM, Signal::KILL] {
        bench_broken_off(&fuse.path, signal);
    }
}

/// An ext4 image mounted without the kernel's ext4, and so without O_TMPFILE; unmounted on drop.
pub(crate) struct FuseMount {
    pub(crate) path: PathBuf,
    server: Child,
    _directory: TempDir,
}

impl FuseMount {
    pub(crate) fn new(size: u64) -> Self {
        let directory = scratch();
        let image = directory.path().join("image");
        let path = directory.path().join("mounted");
        let file = std::fs::File::create(&image).expect("the directory is new and ours");
        file.set_len(size).expect("a sparse file may be long");
        std::fs::create_dir(&path).expect("the directory is new and ours");
        must_run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image));
        let mut server = Command::new("fuse2fs");
        server.args(["-f", "-o", "rw,fakeroot"]).arg(&image).arg(&path);
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("fuse2fs runs");
        let mount = FuseMount { path, server, _directory: directory };
        assert!(wait_for(BEGIN, || mount.path.join("lost+found").exists()), "fuse2fs did not come up");
        mount
    }

    /// Whoever looks for a name in it waits until [`FuseMount::resume`].
    pub(crate) fn hang(&self) {
        kill_process(Pid::from_child(&self.server), Signal::STOP).expect("the server is there");
    }

    pub(crate) fn resume(&self) {
        kill_process(Pid::from_child(&self.server), Signal::CONT).expect("the server is there");
    }
}

impl Drop for FuseMount {
    fn drop(&mut self) {
        kill_process(Pid::from_child(&self.server), Signal::CONT).ok();
        let unmount = || {
            let output = Command::new("fusermount3").arg("-u").arg(&self.path).output();
            output.is_ok_and(|output| output.status.success())
        };
        // Releases follow the end of the process that had the file open.
        wait_for(Duration::from_secs(5), unmount);
        wait_for(Duration::from_secs(5), || !matches!(self.server.try_wait(), Ok(None)));
    }
}

#[test]
fn a_bench_interrupted_in_file_layout_leaves_no_file() {
    need!(root, limits, tool "losetup", tool "mkfs.ext4", tool "sqlite3");
    let _loading = loading();
    let device = LoopDevice::new(64 * MIB);
    let mount = Mount::made(device.path(), "ext4");
    let free = || rustix::fs::statvfs(mount.path()).expect("it is mounted").f_bfree;
    let before = free();
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::TERM, Some(130)), (Signal::KILL, None)] {
        let bench = Bench::new();
        let slow = Throttle::new(device.path(), &Cap::bytes_per_second(2 * MIB));
        let command = fathom_under(&slow, bench.home.path());
        let mut program = Program::start(&mut bench.arguments(command, mount.path()));
        await_growth(&mut program, 3 * MIB);
        assert_eq!(names_in(mount.path()), [""; 0]);
        program.signal(signal);
        let ended = program.finish_within(END);
        assert_eq!(ended.status.code(), code, "{ended}");
        if code.is_some() {
            ended.assert_told(&["file layout", "nothing was measured"]);
        }
        drop(slow);
        assert_empty(mount.path());
        // Nothing was finished: either no run is there or an incomplete one without tests.
        if bench.history().exists() {
            bench.assert_integrity();
        }
    }
    // A file without a name takes space until its last descriptor is closed.
    assert!(wait_for(Duration::from_secs(10), || free() == before), "{} blocks of {before} are free", free());
}

#[test]
fn an_interrupted_bench_prints_one_document() {
    need!(root, tool "sqlite3");
    let _loading = loading();
    let target = scratch();
    let bench = Bench::new();
    let mut program = Program::start(bench.command(target.path()).arg("--json"));
    bench.await_endless(&mut program);
    program.signal(Signal::INT);
    let ended = program.finish_within(END);
    let document = ended.assert_code(130).document();
    assert_eq!(document["run"]["status"], "incomplete");
    assert_eq!(document["run"]["interrupted"], "signal 2");
    assert_eq!(status_of(&document, "short").as_deref(), Some("complete"));
    assert_eq!(status_of(&document, "endless").as_deref(), Some("incomplete"));
}
