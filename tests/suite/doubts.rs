//! Runs whose numbers are in doubt, each for a reason that is known: a client without CPU time, a device that was never
//! written, one so slow that its queue outlasts the test.

use std::process::{Command, Stdio};

use fathom_tests::{
    Cap, LoopDevice, LoopOptions, MIB, Throttle, document, fathom_under, measuring_alone, measuring_capped,
    need, scratch, with_environment,
};
use serde_json::Value;

use crate::findings::{found, told};
use crate::ours::{Ours, steadily};

/// No use gets a yes.
fn no_yes(document: &Value) -> Result<(), String> {
    let uses = document["conclusions"].as_array().expect("conclusions");
    match uses.iter().find(|one| one["verdict"] == "yes") {
        Some(one) => Err(format!("{one:#}")),
        None => Ok(()),
    }
}

#[test]
fn threads_that_share_their_cpu_with_others_are_reported() {
    need!(tool "taskset", tool "nice");
    let _alone = measuring_alone();
    let (ours, directory) = (Ours::new(), scratch());
    let mut busy = Command::new("taskset")
        .args(["-c", "0", "sh", "-c", "while :; do :; done"])
        .stdin(Stdio::null())
        .spawn()
        .expect("a loop starts");
    let plain = ours.command();
    let mut command = with_environment(Command::new("taskset"), &plain);
    // At equal priority a thread that mostly waits for the target is scheduled at once.
    command.args(["-c", "0", "nice", "-n", "10"]).arg(plain.get_program());
    command.args(["bench", "--json", "--no-history", "--quick", "--size=64m", "--only=lat-read"]);
    let document = document(command.arg(directory.path()));
    busy.kill().and_then(|()| busy.wait()).expect("the loop ends");
    let waited = found(&document, "cpu-wait").unwrap();
    assert!(waited["evidence"]["longest_wait_fraction"].as_f64() > Some(0.1), "{waited:#}");
    no_yes(&document).unwrap();
}

#[test]
fn a_device_that_was_never_written_gets_no_yes() {
    need!(root, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let ours = Ours::new();
    for written in [false, true] {
        let options = LoopOptions { in_memory: true, direct_io: false, ..LoopOptions::of_size(64 * MIB) };
        let device = LoopDevice::with(&LoopOptions { written, ..options });
        let mut command = ours.command();
        command.args(["bench", "--json", "--no-history", "--quick", "--only=lat-read"]);
        let document = document(command.arg(device.path()));
        assert_eq!(told(&document, "unwritten").is_some(), !written, "{:#}", document["findings"]);
        no_yes(&document).unwrap();
    }
}

#[test]
fn a_slow_device_is_measured_with_a_queue_that_it_completes() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let (home, device) = (scratch(), LoopDevice::in_memory(64 * MIB));
    let cap = Cap { read_bps: Some(400_000), ..Cap::default() };
    let throttle = Throttle::new(device.path(), &cap);
    steadily(|| {
        let mut command = fathom_under(&throttle, home.path());
        command.args(["bench", "--json", "--no-history", "--quick", "--only=lat-read,seq-read"]);
        let document = document(command.arg(device.path()));
        let tests = document["tests"].as_array().expect("tests");
        let slow = tests.iter().find(|test| test["id"] == "seq-read").expect("it ran");
        // 32 requests of 1 MiB would take 84 s.
        let measured_s = slow["measured_ns"].as_f64().expect("it was measured") / 1e9;
        if measured_s > 20.0 {
            return Err(format!("{measured_s} s"));
        }
        match told(&document, "stalled") {
            Some(stalled) => Err(format!("{stalled:#}")),
            None => Ok(()),
        }
    });
}
