//! Requests under a rate: issued independently of the device, with response times from the due time.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fathom_tests::{
    Ended, MIB, NbdDisk, Program, fathom, fio, loading, measuring_capped, need, scratch, wait_for,
};
use serde_json::Value;

use crate::ours::{Ours, filename, steadily, within};

/// How long the device stands still.
const STALL: Duration = Duration::from_secs(2);

/// A run of 12 s at 200 reads per second, on a disk that stands still for two of them.
struct Stalled {
    disk: NbdDisk,
    program: Program,
    engine: &'static str,
}

impl Stalled {
    fn start(home: &Path, engine: &'static str) -> Self {
        let disk = NbdDisk::new(16 * MIB, &[], &[]);
        let mut command = fathom(home);
        command.args(["fio", "--name=paced", "--rw=randread", "--direct=1", "--bs=4k", "--size=16m"]);
        command.args(["--rate_iops=200", "--time_based", "--runtime=12", "--iodepth=4", "--eta=never"]);
        command.args(["--output-format=json", "--keep", &format!("--ioengine={engine}")]);
        let program = Program::start(command.arg(filename(&disk.path())));
        Stalled { disk, program, engine }
    }
}

/// The latency object at `path` of the first job's reads in fathom's part of the document.
fn response<'a>(document: &'a Value, name: &str) -> &'a Value {
    &document["fathom"]["open_loop"][0]["read"][name]
}

fn ns(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_stall_is_in_the_response_times_of_all_requests_due_in_it() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _capped = measuring_capped();
    let home = scratch();
    let mut running: Vec<Stalled> =
        ["io_uring", "libaio", "psync"].map(|engine| Stalled::start(home.path(), engine)).into();
    let ended_early =
        wait_for(Duration::from_secs(4), || running.iter_mut().any(|run| run.program.has_ended()));
    assert!(!ended_early, "a run is over before its device has stalled");
    running.iter().for_each(|run| run.disk.hang());
    wait_for(STALL, || false);
    running.iter().for_each(|run| run.disk.resume());
    for Stalled { disk: _disk, program, engine } in running {
        let ended = program.finish();
        ended.assert_code(0);
        check_stalled(engine, &ended);
    }
}

/// Of 2,400 requests, the 400 that were due in the stall wait from 2 s down to nothing: 280 of them over 0.6 s.
#[track_caller]
fn check_stalled(engine: &str, ended: &Ended) {
    let document = ended.document();
    let times = response(&document, "response_ns");
    let (p95, p99) = (ns(&times["p95"]) / 1e9, ns(&times["p99"]) / 1e9);
    assert!(
        (1.2..=1.6).contains(&p95) && (1.68..=2.08).contains(&p99),
        "{engine}: {p95} s and {p99} s: {times:#}"
    );
    assert_eq!(times["p999"], Value::Null, "2,400 samples do not carry it");
    let read = &document["jobs"][0]["read"];
    assert!(ns(&read["total_ios"]) >= 2_390.0 && ns(&read["total_ios"]) <= 2_401.0, "{engine}: {read:#}");
    // The device's own latencies are unchanged: few requests were in flight during the stall.
    let p99 = &read["clat_ns"]["percentile"]["99.000000"];
    assert!(ns(p99) < 1e9, "{engine}: {p99}");
    assert_eq!(response(&document, "sustained"), &Value::Bool(true), "{engine}: {document:#}");
}

#[test]
fn rates_are_kept_and_reported_as_in_fio() {
    need!(root, tool "fio");
    let _loading = loading();
    let (ours, target) = (Ours::new(), scratch());
    let file = filename(&target.path().join("file"));
    let run = |arguments: &[&'static str], ours: &Ours| {
        let common =
            ["--name=paced", "--size=16m", "--rw=randrw", "--runtime=2", "--time_based", file.as_str()];
        let all = || common.iter().copied().chain(arguments.iter().copied());
        (ours.fio(all()), fio(all()))
    };
    for (arguments, expected) in [
        (&["--rate_iops=300,200", "--rwmixread=75"][..], [300.0, 200.0]),
        (&["--rate=1m,512k", "--bs=8k"][..], [128.0, 64.0]),
        (&["--rate_iops=200", "--ioengine=io_uring", "--iodepth=8"][..], [200.0, 200.0]),
    ] {
        steadily(|| {
            let (our, fios) = run(arguments, &ours);
            for (op, expected) in ["read", "write"].into_iter().zip(expected) {
                within(&format!("{arguments:?}: our {op}s"), our.iops(op), expected, 4.0)?;
                within(&format!("{arguments:?}: fio's {op}s"), fios.iops(op), expected, 4.0)?;
            }
            Ok(())
        });
    }
}

#[test]
fn a_rate_above_the_limit_is_reported() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _loading = loading();
    let (home, disk) = (scratch(), NbdDisk::new(16 * MIB, &["delay"], &["rdelay=20ms"]));
    let run = |format: &str| {
        let mut command: Command = fathom(home.path());
        command.args(["fio", "--name=paced", "--rw=randread", "--direct=1", "--bs=4k", "--size=16m"]);
        command.args(["--rate_iops=500", "--time_based", "--runtime=2", "--eta=never"]);
        let ended = fathom_tests::run(command.args(["--advise", format]).arg(filename(&disk.path())));
        ended.assert_code(0);
        ended
    };
    let document = run("--output-format=json").document();
    let read = &document["fathom"]["open_loop"][0]["read"];
    assert_eq!(read["sustained"], Value::Bool(false), "{read:#}");
    // At most 50 a second come back, one at a time.
    assert!(ns(&read["backlog"]) > 850.0 && ns(&read["offered_iops"]) > 490.0, "{read:#}");
    let notes = document["fathom"]["notes"].to_string();
    assert!(notes.contains("did not sustain the rate"), "{notes}");
    run("--output-format=normal").assert_shown(&[
        "fathom notes:",
        "paced: read response from the intended start at 500.0 offered per second: p50 ",
        "did not sustain the rate",
    ]);
}
