//! Schedules on a real device: `kill -9`, `--resume`, a slow device whose runs exceed the interval, and two schedules at once.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fathom_tests::{
    Cap, LoopDevice, Program, Throttle, fathom, fathom_under, loading, must_run, need, run, scratch, wait_for,
};
use rustix::process::Signal;
use serde_json::Value;

const MIB: u64 = 1 << 20;
/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A schedule of short runs on `target`.
fn schedule(mut command: Command, target: &Path, name: &str, lasts: &str) -> Command {
    command.args([
        "bench",
        "--quick",
        "--every=4s",
        lasts,
        "--schedule",
        name,
        "--only=rand-read",
        "--runtime=300ms",
    ]);
    command.args(["--json", "--seed=7"]).arg(target);
    command
}

/// The complete runs in the history of `home`.
fn complete(home: &Path) -> usize {
    if !home.join(".local/share/fathom/history.db").exists() {
        return 0;
    }
    let listed = run(fathom(home).args(["history", "list", "--status=complete", "--json"]));
    if listed.status.success() { listed.document().as_array().map_or(0, Vec::len) } else { 0 }
}

fn slots_of(document: &Value) -> Vec<u64> {
    let runs = document["runs"].as_array().expect("runs are a list");
    runs.iter().map(|run| run["slot"].as_u64().expect("a slot is a number")).collect()
}

#[test]
fn a_killed_schedule_goes_on_and_accounts_for_every_slot() {
    need!(root, limits, tool "losetup", tool "sqlite3", path "/dev/shm");
    let _loading = loading();
    let (home, device) = (scratch(), LoopDevice::in_memory(64 * MIB));
    let start = |command: &mut Command| Program::start(command);
    let mut killed = start(&mut schedule(fathom(home.path()), device.path(), "nightly", "--for=32s"));
    assert!(wait_for(PATIENCE, || killed.has_ended() || complete(home.path()) >= 2), "no run was kept");
    killed.signal(Signal::KILL);
    assert_eq!(killed.finish_within(PATIENCE).status.code(), None);
    let kept = complete(home.path());
    // A second process cannot follow the schedule beside the first.
    let mut first = start(fathom(home.path()).args(["bench", "--resume", "--json"]).arg(device.path()));
    assert!(wait_for(PATIENCE, || first.has_ended() || complete(home.path()) > kept), "it did not go on");
    let second = run(fathom(home.path()).args(["bench", "--resume", "--json"]).arg(device.path()));
    second.assert_code(1).assert_told(&["schedule nightly is already running on this host"]);
    first.signal(Signal::INT);
    let interrupted = first.finish_within(PATIENCE);
    interrupted.assert_code(130);
    let document = interrupted.document();
    assert_eq!(document["resume"], "fathom bench --resume --schedule nightly", "{document:#}");
    let last = run(fathom(home.path()).args(["bench", "--resume", "--schedule=nightly", "--json"]));
    last.assert_code(0);
    let document = last.document();
    let missed: u64 = document["missed_slots"].as_u64().expect("a number");
    let slots = slots_of(&document);
    assert!(slots.windows(2).all(|pair| pair[0] < pair[1]), "each slot once, in order: {slots:?}");
    assert_eq!((slots.len() as u64 + missed, &document["slots_left"]), (8, &0.into()), "{document:#}");
    assert!(slots.len() >= kept, "no finished run is lost");
    for run in document["runs"].as_array().expect("runs are a list") {
        let [due, started] = ["due_unix_ms", "started_unix_ms"].map(|key| run[key].as_u64().expect("a time"));
        assert!((due..due + 1000).contains(&started), "a run begins at its slot: {run:#}");
    }
    let history = home.path().join(".local/share/fathom/history.db");
    assert_eq!(must_run(Command::new("sqlite3").arg(history).arg("PRAGMA integrity_check")), "ok");
}

#[test]
fn a_run_beyond_its_interval_skips_slots_and_says_so() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let (home, device) = (scratch(), LoopDevice::in_memory(64 * MIB));
    // A test of all blocks, whose time nobody knows before: 16 MiB at 4 MiB/s.
    let throttle = Throttle::new(device.path(), &Cap::bytes_per_second(4 * MIB));
    std::fs::write(home.path().join("suite.toml"), SUITE).expect("the directory is new and ours");
    let mut command = fathom_under(&throttle, home.path());
    command.args(["bench", "--every=2s", "--for=8s", "--size=16m", "--json", "--suite"]);
    let ended = run(command.arg(home.path().join("suite.toml")).arg(device.path()));
    ended.assert_code(0);
    let document = ended.document();
    let reasons: Vec<&Value> =
        document["missed"].as_array().expect("a list").iter().map(|missed| &missed["reason"]).collect();
    assert!(reasons.contains(&&Value::from("overrun")), "{document:#}");
    assert_eq!(slots_of(&document).len() as u64 + document["missed_slots"].as_u64().expect("a number"), 4);
}

/// One test that reads every block once.
const SUITE: &str = r#"
title = "One test"
description = "Reads every block."
source = "fathom"
[options]
ioengine = "psync"
direct = 1
[profile.quick]
runtime = "10s"
ramp = "0s"
size = "16MiB"
[profile.default]
runtime = "10s"
ramp = "0s"
size = "16MiB"
[profile.thorough]
runtime = "10s"
ramp = "0s"
size = "16MiB"
[[test]]
id = "all"
title = "all blocks"
options = { rw = "read", bs = "1m" }
ends = "size"
"#;
