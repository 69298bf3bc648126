//! `fathom monitor --record`: what is recorded equals fio's own log and the kernel's counters, and a killed recorder leaves what it
//! wrote.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fathom_tests::{LoopDevice, MIB, Program, fathom, loading, need, run, scratch, wait_for};
use rustix::process::Signal;
use serde_json::Value;

use crate::ours::filename;

/// I/Os of each run of fio.
const IOS: usize = 4_000;

/// The recorder of a device, which has begun.
fn recorder(home: &Path, file: &Path, device: &LoopDevice) -> Program {
    let mut command = fathom(home);
    command.args(["monitor", "--no-owners", "--record"]).arg(file).arg(device.name());
    let recorder = Program::start(&mut command);
    assert!(
        wait_for(Duration::from_secs(10), || recorder.stderr().contains("recording every I/O")),
        "{}",
        recorder.stderr()
    );
    recorder
}

/// Debian's fio: random reads and writes of three sizes, one after the other, with a log.
fn load(device: &LoopDevice, log: &Path) {
    let mut command = Command::new("fio");
    command.args([
        "--name=load",
        "--direct=1",
        "--ioengine=psync",
        "--rw=randrw",
        "--bssplit=4k/50:8k/30:64k/20",
    ]);
    command.args(["--norandommap", "--rate_iops=1000,1000", "--eta=never"]);
    command.arg(format!("--number_ios={IOS}")).arg(format!("--write_iolog={}", log.display()));
    command.arg(filename(device.path()));
    run(&mut command).assert_code(0);
}

/// Operation, offset and length of each I/O of an iolog, in order.
fn requests(text: &str) -> Vec<(String, u64, u64)> {
    let request = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, _, op @ ("read" | "write" | "trim"), offset, length] = words[..] else { return None };
        Some((op.to_owned(), offset.parse().ok()?, length.parse().ok()?))
    };
    text.lines().filter_map(request).collect()
}

fn info(home: &Path, file: &Path) -> Value {
    let ended = run(fathom(home).args(["trace", "info", "--json"]).arg(file));
    ended.assert_code(0);
    ended.document()
}

/// At most 0.5 % of the I/Os lack a latency, because the kernel reported no completion; there are no other notes.
fn assert_is_whole(document: &Value) {
    let notes: Vec<&str> =
        document["notes"].as_array().expect("notes").iter().filter_map(Value::as_str).collect();
    let [without_latency] = notes[..] else { return assert_eq!(notes, [""; 0]) };
    let (count, rest) = without_latency.split_once(" I/O").expect("a number of I/Os");
    assert!(rest.contains("the kernel reported no completion"), "{without_latency}");
    let count: u64 = count.replace(',', "").parse().expect("a number");
    let entries = document["entries"].as_u64().expect("entries");
    assert!(count <= entries / 200, "{count} of {entries}");
}

#[test]
fn every_request_of_fio_is_recorded_once() {
    need!(root, tool "losetup", tool "fio", path "/dev/shm");
    let _loading = loading();
    let (home, device) = (scratch(), LoopDevice::in_memory(256 * MIB));
    let (file, log) = (home.path().join("app.load"), home.path().join("fio.iolog"));
    let recorder = recorder(home.path(), &file, &device);
    let before = device.stat();
    load(&device, &log);
    let after = device.stat();
    recorder.signal(Signal::INT);
    let ended = recorder.finish();
    ended.assert_code(130);
    assert!(ended.stderr.contains("no event lost"), "{}", ended.stderr);

    let converted = run(fathom(home.path()).args(["trace", "convert", "--file=/dev/null"]).arg(&file));
    converted.assert_code(0);
    let recorded = requests(&converted.stdout);
    let issued = requests(&std::fs::read_to_string(&log).expect("fio's log"));
    assert_eq!(issued.len(), IOS);
    // Others, udev among them, may have read the device before or after.
    let mut ours = recorded.iter();
    for request in &issued {
        assert!(ours.any(|one| one == request), "{request:?} is missing among {} requests", recorded.len());
    }
    let count = |op: &str| recorded.iter().filter(|request| request.0 == op).count() as u64;
    let counted = [0, 4].map(|field| after[field] - before[field]);
    assert_eq!([count("read"), count("write")], counted, "the kernel's counters");

    let document = info(home.path(), &file);
    let total = document["operations"].as_array().and_then(|all| all.last()).expect("operations");
    assert_eq!(total["ops"].as_u64(), Some(recorded.len() as u64), "{total:#}");
    let latency = total["lat_ns"]["p50"].as_u64().expect("latencies");
    assert!((1_000..1_000_000_000).contains(&latency), "{latency}");
    assert_is_whole(&document);
}

#[test]
fn killed_recorders_leave_readable_files() {
    need!(root, tool "losetup", tool "fio", path "/dev/shm");
    let _loading = loading();
    let (home, device) = (scratch(), LoopDevice::in_memory(64 * MIB));
    let (file, log) = (home.path().join("app.load"), home.path().join("fio.iolog"));
    let recorder = recorder(home.path(), &file, &device);
    load(&device, &log);
    recorder.signal(Signal::KILL);
    recorder.finish();
    let document = info(home.path(), &file);
    let entries = document["entries"].as_u64().expect("entries");
    assert!(entries > IOS as u64 / 4, "{entries}");
    let notes = document["notes"].to_string();
    assert!(notes.contains("the recorder was killed"), "{notes}");
}

#[test]
fn rotated_files_are_one_recording() {
    need!(root, tool "losetup", tool "fio", path "/dev/shm");
    let _loading = loading();
    let (home, device) = (scratch(), LoopDevice::in_memory(64 * MIB));
    let file = home.path().join("app.load");
    let mut command = fathom(home.path());
    command.args(["monitor", "--no-owners", "--record-size=1MiB", "--record"]).arg(&file).arg(device.name());
    let recorder = Program::start(&mut command);
    assert!(
        wait_for(Duration::from_secs(10), || recorder.stderr().contains("recording every I/O")),
        "{}",
        recorder.stderr()
    );
    let before = device.stat();
    let mut fio = Command::new("fio");
    fio.args([
        "--name=load", "--direct=1", "--ioengine=psync", "--rw=randread", "--bs=4k", "--norandommap",
        "--io_size=1g", "--number_ios=150000",
    ]);
    run(fio.arg(filename(device.path()))).assert_code(0);
    let after = device.stat();
    recorder.signal(Signal::INT);
    let ended = recorder.finish();
    assert!(
        ended.stderr.contains("no event lost") && ended.stderr.contains(" in 2 files"),
        "{}",
        ended.stderr
    );
    let joined = home.path().join("joined");
    let parts = ["00001", "00002"]
        .map(|part| std::fs::read(home.path().join(format!("app.load.{part}"))).expect("a part"));
    std::fs::write(&joined, parts.concat()).expect("the file is written");
    let document = info(home.path(), &joined);
    assert_eq!(document["operations"][0]["ops"].as_u64(), Some(after[0] - before[0]));
    assert_eq!(document["gaps"], Value::Array(Vec::new()));
    assert_is_whole(&document);
}
