//! Schedules on a real device: `kill -9`, going on, and a slow device whose runs exceed the interval.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fathom_tests::{
    Cap, LoopDevice, MIB, Program, Throttle, fathom, fathom_under, loading, must_run, need, run, scratch,
    suite, wait_for,
};
use rustix::process::Signal;
use serde_json::Value;

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A schedule of eight short runs on `target`.
fn schedule(home: &Path, target: &Path) -> Program {
    let mut command = fathom(home);
    command.args(["bench", "--quick", "--every=4s", "--for=32s", "--only=rand-read", "--runtime=300ms"]);
    Program::start(command.args(["--json", "--seed=7"]).arg(target))
}

/// The records in the history of `home`.
fn records(home: &Path) -> Vec<Value> {
    if !home.join(".local/share/fathom/history.db").exists() {
        return Vec::new();
    }
    let exported = run(fathom(home).args(["history", "export"]));
    exported.stdout.lines().map(|line| serde_json::from_str(line).expect("a line is a record")).collect()
}

fn complete(home: &Path) -> usize {
    records(home).iter().filter(|record| record["status"] == "complete").count()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The slots that `missed` names.
fn missed_slots(missed: &Value) -> Vec<u64> {
    let ranges = missed.as_array().into_iter().flatten();
    ranges.flat_map(|one| number(&one["first"])..number(&one["first"]) + number(&one["count"])).collect()
}

#[test]
fn a_killed_schedule_goes_on_and_accounts_for_every_slot() {
    need!(root, limits, tool "losetup", tool "sqlite3", path "/dev/shm");
    let _loading = loading();
    let (home, device) = (scratch(), LoopDevice::in_memory(64 * MIB));
    let mut killed = schedule(home.path(), device.path());
    assert!(wait_for(PATIENCE, || killed.has_ended() || complete(home.path()) >= 2), "no run was kept");
    killed.signal(Signal::KILL);
    assert_eq!(killed.finish_within(PATIENCE).status.code(), None);
    let kept = complete(home.path());
    let mut again = schedule(home.path(), device.path());
    assert!(wait_for(PATIENCE, || again.has_ended() || complete(home.path()) > kept), "it did not go on");
    again.signal(Signal::INT);
    let interrupted = again.finish_within(PATIENCE);
    interrupted.assert_code(130);
    assert!(number(&interrupted.document()["slots_left"]) > 0, "{interrupted}");
    let last = schedule(home.path(), device.path()).finish_within(PATIENCE);
    last.assert_code(0);
    let document = last.document();
    for run in document["runs"].as_array().expect("runs are a list") {
        let [due, started] = ["due_unix_ms", "started_unix_ms"].map(|key| number(&run[key]));
        assert!((due..due + 1000).contains(&started), "a run begins at its slot: {run:#}");
    }
    let records = records(home.path());
    let scheduled = || records.iter().map(|record| &record["header"]["scheduled"]);
    let names: BTreeSet<String> = scheduled().map(|slot| slot["schedule"].to_string()).collect();
    assert_eq!(names.len(), 1, "all are runs of one schedule");
    let run: Vec<u64> = scheduled().map(|slot| number(&slot["slot"])).collect();
    let missed = scheduled().map(|slot| &slot["missed"]).chain([&document["missed"]]);
    let missed: BTreeSet<u64> = missed.flat_map(missed_slots).collect();
    assert!(run.iter().all(|slot| !missed.contains(slot)), "{run:?} {missed:?}");
    let mut all: Vec<u64> = run.into_iter().chain(missed).collect();
    all.sort_unstable();
    assert_eq!(all, (0..8).collect::<Vec<u64>>(), "each slot once: {document:#}");
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
    let all_blocks = "options = { rw = \"read\", bs = \"1m\" }\nends = \"size\"";
    std::fs::write(home.path().join("suite.toml"), suite("10s", &[("all", all_blocks)]))
        .expect("the directory is new and ours");
    let mut command = fathom_under(&throttle, home.path());
    command.args(["bench", "--every=2s", "--for=8s", "--size=16m", "--json", "--suite"]);
    let ended = run(command.arg(home.path().join("suite.toml")).arg(device.path()));
    ended.assert_code(0);
    let document = ended.document();
    let reasons: Vec<&Value> =
        document["missed"].as_array().expect("a list").iter().map(|missed| &missed["reason"]).collect();
    assert!(reasons.contains(&&Value::from("overrun")), "{document:#}");
    let runs = document["runs"].as_array().map_or(0, Vec::len) as u64;
    assert_eq!(runs + number(&document["missed_slots"]), 4, "{document:#}");
}
