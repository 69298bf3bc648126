//! Devices that stop answering: noticed while it lasts, kept in the record, and no reason to hang.
//!
//! Messages during the run follow the program's own clock ("no I/O completed for 1 s" was printed before two had
//! passed), so a delayed test does not fail wrongly.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fathom_tests::{
    Cap, Ended, LoopDevice, MIB, NbdDisk, Program, Throttle, fathom, fathom_under, kept_runs, loading,
    measuring_capped, need, newest_record, scratch, suite, wait_for,
};
use rustix::process::Signal;
use serde_json::Value;

use crate::findings::{found, number, told};
use crate::killed::FuseMount;
use crate::ours::filename;

/// How long the device stands still.
const STALL: Duration = Duration::from_secs(3);

/// A disk that is slow enough to leave the machine to others.
fn disk() -> NbdDisk {
    NbdDisk::new(16 * MIB, &["delay"], &["rdelay=2ms"])
}

fn reads(mut command: Command, target: &Path, engine: &str, runtime: &str) -> Command {
    command.args(["fio", "--name=held", "--rw=randread", "--direct=1", "--bs=4k", "--size=16m", "--keep"]);
    command.args(["--time_based", "--iodepth=4", runtime, &format!("--ioengine={engine}"), "--eta=never"]);
    command.arg(filename(target));
    command
}

/// The stalls of the first job of the newest run kept in `home`.
fn stalls(home: &Path) -> Vec<Value> {
    newest_record(home)["tests"][0]["jobs"][0]["stalls"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_stall_is_in_the_record() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _capped = measuring_capped();
    let engines = ["io_uring", "libaio", "psync"];
    let disks = engines.map(|_| disk());
    let homes = engines.map(|_| scratch());
    let mut running: Vec<Program> = engines
        .iter()
        .zip(disks.iter().zip(&homes))
        .map(|(engine, (disk, home))| {
            Program::start(&mut reads(fathom(home.path()), &disk.path(), engine, "--runtime=6"))
        })
        .collect();
    let ended_early = wait_for(Duration::from_secs(2), || running.iter_mut().any(Program::has_ended));
    assert!(!ended_early, "a run is over before its device has stalled");
    disks.iter().for_each(NbdDisk::hang);
    wait_for(STALL, || false);
    disks.iter().for_each(NbdDisk::resume);
    for ((engine, home), program) in engines.iter().zip(&homes).zip(running) {
        program.finish().assert_code(0);
        let stalls = stalls(home.path());
        let stall = stalls.first().unwrap_or_else(|| panic!("{engine}: nothing was noticed"));
        let seconds = stall["length_ns"].as_f64().expect("a length is a number") / 1e9;
        assert!((2.8..4.5).contains(&seconds), "{engine}: {stall:#}");
        let depth = if *engine == "psync" { 1 } else { 4 };
        assert_eq!((&stall["depth"], &stall["over"]), (&Value::from(depth), &Value::Bool(true)), "{engine}");
        let offsets =
            stall["offsets"].as_array().unwrap_or_else(|| panic!("{engine}: no offsets in {stall:#}"));
        assert_eq!(offsets.len(), depth, "{engine}: {stall:#}");
        assert!(
            offsets.iter().all(|offset| offset.as_u64().is_some_and(|at| at < 16 * MIB && at % 4096 == 0))
        );
    }
}

/// Requests of io_uring that the device holds back do not hold the process.
#[test]
fn a_run_with_stuck_requests_ends_after_a_signal() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let (home, device) = (scratch(), LoopDevice::in_memory(32 * MIB));
    let held = Throttle::new(device.path(), &Cap { read_bps: Some(64), ..Cap::default() });
    let command = fathom_under(&held, home.path());
    let mut program = Program::start(&mut reads(command, device.path(), "io_uring", "--runtime=300"));
    let begun = wait_for(Duration::from_secs(20), || program.stdout().contains("Starting 1 process"));
    assert!(begun && !wait_for(Duration::from_secs(2), || program.has_ended()), "{}", program.stderr());
    program.signal(Signal::INT);
    // Five seconds, and as many again for a machine that does much else.
    let ended: Ended = program.finish_within(Duration::from_secs(10));
    ended.assert_code(128).assert_told(&["held: thread", "stuck in the kernel with 4 requests in flight"]);
    let stalls = stalls(home.path());
    assert_eq!(
        (stalls.len(), &stalls[0]["over"], &stalls[0]["depth"]),
        (1, &Value::Bool(false), &Value::from(4))
    );
    drop(held);
}

/// One test of the length that [`COMMANDS`] have.
const READS: (&str, &str) = ("reads", "options = { rw = \"randread\", bs = \"4k\", iodepth = 4 }");

/// The commands of fathom, each for its own disk; sizes and times as the suite has them.
const COMMANDS: [(&str, &[&str]); 3] = [
    ("bench", &["--json", "--quick", "--size=16m", "--suite=suite.toml"]),
    ("sweep", &["--json", "--bs=4k", "--iodepth=4,8", "--budget=60"]),
    ("ping", &["--json", "-i", "100ms", "-w", "24s"]),
];

/// Commands, each on its own disk, which hangs.
struct Running {
    disks: Vec<NbdDisk>,
    homes: Vec<tempfile::TempDir>,
    programs: Vec<Program>,
}

impl Running {
    /// In their measured part: the inspection takes a second, and so does the first point of the sweep.
    fn start() -> Self {
        Running::begin(&COMMANDS, Duration::from_millis(1600))
    }

    /// `commands`, whose disks hang after a while.
    fn begin(commands: &[(&str, &[&str])], hang_after: Duration) -> Self {
        let disks: Vec<NbdDisk> = commands.iter().map(|_| disk()).collect();
        let homes: Vec<tempfile::TempDir> = commands.iter().map(|_| scratch()).collect();
        let start = |((name, words), (disk, home)): (&(&str, &[&str]), (&NbdDisk, &tempfile::TempDir))| {
            let suite = suite("24s", &[READS]);
            std::fs::write(home.path().join("suite.toml"), suite).expect("the directory is new and ours");
            let mut command = fathom(home.path());
            command.current_dir(home.path()).arg(name).args(*words).arg(disk.path());
            Program::start(&mut command)
        };
        let programs = commands.iter().zip(disks.iter().zip(&homes)).map(start).collect();
        let mut running = Running { disks, homes, programs };
        let has_ended = |running: &mut Running| running.programs.iter_mut().any(Program::has_ended);
        let ended_early = wait_for(hang_after, || has_ended(&mut running));
        assert!(!ended_early, "a command is over before its device hangs");
        running.disks.iter().for_each(NbdDisk::hang);
        running
    }

    /// The programs, each of which reports within five seconds after a signal, while its disk still hangs.
    #[track_caller]
    fn interrupted(self) -> Vec<Program> {
        self.programs.iter().for_each(|program| program.signal(Signal::INT));
        let is_document = |program: &Program| serde_json::from_str::<Value>(&program.stdout()).is_ok();
        // And as many again for a machine that does much else.
        let is_reported = wait_for(Duration::from_secs(10), || self.programs.iter().all(is_document));
        let said = self.programs.iter().map(|program| program.stdout() + &program.stderr());
        let said: Vec<String> = said.collect();
        self.disks.iter().for_each(NbdDisk::resume);
        assert!(is_reported, "no report:\n{said:#?}");
        self.programs
    }
}

/// Twenty seconds, and what the machine took longer to count them.
#[track_caller]
fn assert_twenty(length_ns: f64) {
    assert!((19.9e9..26e9).contains(&length_ns), "{length_ns} ns");
}

/// A stall of 20 s is reported while it lasts, survived, and recorded.
#[test]
fn a_hang_of_twenty_seconds_is_reported_survived_and_recorded() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _capped = measuring_capped();
    let Running { disks, homes, programs } = Running::start();
    let early = [
        "no I/O completed for 1 s, 4 in flight",
        "no I/O completed for 1 s, 4 in flight",
        "no answer for 1.",
    ];
    let is_told = || programs.iter().zip(early).all(|(program, early)| program.stderr().contains(early));
    let mut told_while_it_lasts = false;
    wait_for(Duration::from_secs(5), || {
        told_while_it_lasts |= is_told();
        false
    });
    let said: Vec<String> = programs.iter().map(Program::stderr).collect();
    wait_for(Duration::from_secs(15), || false);
    disks.iter().for_each(NbdDisk::resume);
    let ended: Vec<Ended> = programs.into_iter().map(Program::finish).collect();
    assert!(told_while_it_lasts, "{said:#?}");
    for ended in &ended {
        ended.assert_code(0);
    }
    ended[0].assert_told(&["I/Os complete again"]);
    ended[2].assert_told(&["answered after "]);
    let [bench, sweep, ping] = [0, 1, 2].map(|at| ended[at].document());
    for (document, home) in [(&bench, &homes[0]), (&sweep, &homes[1])] {
        let stalled = found(document, "stalled").unwrap();
        assert_twenty(number(stalled, "length_ns"));
        assert_eq!((number(stalled, "depth"), &stalled["severity"]), (4.0, &"warning".into()), "{stalled:#}");
        assert_eq!(stalled["evidence"]["offsets_bytes"].as_array().map(Vec::len), Some(4), "{stalled:#}");
        assert!(told(document, "not-steady").is_none(), "{:#}", document["findings"]);
        let kept = stalls(home.path());
        assert_eq!((kept.len(), &kept[0]["over"], &kept[0]["depth"]), (1, &true.into(), &4.into()));
        assert_twenty(kept[0]["length_ns"].as_f64().unwrap_or(0.0));
        let start_ns = kept[0]["start_ns"].as_f64().unwrap_or(f64::MAX);
        assert!(start_ns < 3e9, "{:#}", kept[0]);
    }
    // The point that stalled was measured once more, and the sweep went on behind it.
    let points = sweep["points"].as_array().expect("points");
    let seen: Vec<(Option<u64>, bool)> =
        points.iter().map(|point| (point["iodepth"].as_u64(), !point["stalled_ns"].is_null())).collect();
    assert_eq!(seen, [(Some(4), true), (Some(4), false), (Some(8), false)], "{sweep:#}");
    assert_twenty(points[0]["stalled_ns"].as_f64().unwrap_or(0.0));
    let stall = &ping["stalls"][0];
    assert_twenty(stall["length_ns"].as_f64().unwrap_or(0.0));
    let offset = stall["offset_bytes"].as_u64().unwrap_or(u64::MAX);
    assert!(offset < 16 * MIB && ping["stall_count"] == 1, "{ping:#}");
}

/// After a signal during a stall, each command reports its partial results within five seconds.
#[test]
fn commands_on_unresponsive_devices_end_after_a_signal() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _capped = measuring_capped();
    let running = Running::start();
    wait_for(Duration::from_secs(1), || false);
    for (program, (name, _)) in running.interrupted().into_iter().zip(COMMANDS) {
        let ended = program.finish();
        ended.assert_code(130);
        let all = format!("{}{}", ended.stdout, ended.stderr);
        assert!(all.contains("stuck"), "{name} does not name the thread:\n{ended}");
    }
}

/// The inspection before the tests reads the target as well.
#[test]
fn a_hang_during_the_inspection_is_told_of_and_a_signal_ends_it() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _capped = measuring_capped();
    let running = Running::begin(&COMMANDS[..2], Duration::from_millis(400));
    let is_told = wait_for(Duration::from_secs(10), || {
        running
            .programs
            .iter()
            .all(|program| program.stderr().contains("no I/O completed for 1 s, 1 in flight"))
    });
    for program in running.interrupted() {
        assert!(is_told, "{}", program.stderr());
        let ended = program.finish();
        ended.assert_code(130);
        assert_eq!(ended.document()["run"]["status"], "incomplete", "{ended}");
    }
}

/// Between two tests the run itself accesses the target, and the controller abandons the run.
#[test]
fn a_target_that_hangs_between_tests_does_not_delay_the_report() {
    need!(root, tool "fuse2fs", tool "mkfs.ext4", tool "fusermount3", path "/dev/fuse");
    let _loading = loading();
    let (home, names) = (scratch(), FuseMount::new(32 * MIB));
    let (file, link) = (home.path().join("data"), names.path.join("link"));
    std::fs::write(&file, vec![7; 16 * MIB as usize]).expect("the directory is new and ours");
    std::os::unix::fs::symlink(&file, &link).expect("the file system has room");
    let suite = suite("3s", &[READS, ("again", READS.1)]);
    std::fs::write(home.path().join("suite.toml"), suite).expect("the directory is new and ours");
    let mut command = fathom(home.path());
    command.current_dir(home.path()).args(["bench", "--json", "--quick", "--size=16m", "--suite=suite.toml"]);
    let mut program = Program::start(command.arg(&link));
    let ended_early = wait_for(Duration::from_millis(1500), || program.has_ended());
    // The data is elsewhere: the test continues and ends, and lookups of the name block.
    names.hang();
    let is_kept =
        wait_for(Duration::from_secs(20), || kept_runs(home.path()).iter().any(|run| run["tests"] == 1));
    program.signal(Signal::INT);
    // Five seconds, and as many again for a machine that does much else.
    let is_reported =
        wait_for(Duration::from_secs(10), || serde_json::from_str::<Value>(&program.stdout()).is_ok());
    names.resume();
    assert!(is_kept && !ended_early && is_reported, "{}\n{}", program.stdout(), program.stderr());
    let ended = program.finish_within(Duration::from_secs(10));
    ended.assert_code(130).assert_told(&["thread is stuck in the kernel"]);
    let document = ended.document();
    assert_eq!(document["run"]["status"], "incomplete");
    let tests = document["tests"].as_array().expect("tests");
    assert_eq!((tests.len(), &tests[0]["status"]), (1, &"complete".into()), "{document:#}");
}
