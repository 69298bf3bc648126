//! Devices that stop answering: noticed while it lasts, kept in the record, and no reason to hang.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fathom_tests::{
    Cap, Ended, LoopDevice, NbdDisk, Program, Throttle, fathom, fathom_under, loading, must_run, need,
    scratch, wait_for,
};
use rustix::process::Signal;
use serde_json::Value;

use crate::ours::filename;

const MIB: u64 = 1 << 20;

/// How long the device stands still.
const STALL: Duration = Duration::from_secs(3);

fn reads(mut command: Command, target: &Path, engine: &str, runtime: &str) -> Command {
    command.args(["fio", "--name=held", "--rw=randread", "--direct=1", "--bs=4k", "--size=16m", "--keep"]);
    command.args(["--time_based", "--iodepth=4", runtime, &format!("--ioengine={engine}"), "--eta=never"]);
    command.arg(filename(target));
    command
}

/// The stalls of the first job of the newest run kept in `home`.
fn stalls(home: &Path) -> Vec<Value> {
    let lines = must_run(fathom(home).args(["history", "export"]));
    let newest = lines.lines().last().expect("the run was kept");
    let record: Value = serde_json::from_str(newest).expect("an exported record is one line of JSON");
    record["tests"][0]["jobs"][0]["stalls"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_stall_is_in_the_record() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _loading = loading();
    let engines = ["io_uring", "libaio", "psync"];
    let disks = engines.map(|_| NbdDisk::new(16 * MIB, &[], &[]));
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
fn a_run_whose_requests_do_not_come_back_is_gone_when_asked() {
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
