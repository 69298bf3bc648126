//! Records that are not whole: of runs that were killed, and damaged ones.

use std::path::Path;

use serde_json::{Value, json};

use crate::{run, scratch};

/// The record of a bench of two tests on a simulated volume.
fn record(dir: &Path) -> Value {
    let bench = ["bench", "--quick", "--seed=1", "--only=lat-read,rand-read", "--history=own.db"];
    run(dir, &[&bench[..], &["sim:custom?size=1GiB&iops=1000"]].concat()).quietly();
    let exported = run(dir, &["history", "--history=own.db", "export", "1"]).quietly().stdout;
    serde_json::from_str(&exported).unwrap()
}

/// What importing `record` into a history of its own comes to, and the report of the run there.
fn imported(dir: &Path, record: &Value) -> (String, String) {
    std::fs::write(dir.join("record.json"), record.to_string()).unwrap();
    std::fs::remove_file(dir.join("other.db")).ok();
    let import = run(dir, &["history", "--history=other.db", "import", "record.json"]);
    let shown = run(dir, &["history", "--history=other.db", "show", "--full"]);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    (words(&import.stderr), words(&shown.stdout))
}

#[test]
fn a_run_that_was_killed_says_so_and_qualifies_its_verdicts() {
    let dir = scratch();
    let whole = record(dir.path());
    let (stderr, shown) = imported(dir.path(), &whole);
    assert_eq!(stderr, "");
    assert!(shown.contains("Workload suitability"), "{shown}");
    assert!(!shown.contains("stopped before its end"), "{shown}");
    // As a process leaves it that is killed in its second test.
    let mut killed = whole.clone();
    (killed["status"], killed["findings"]) = ("incomplete".into(), json!([]));
    killed["tests"].as_array_mut().unwrap().truncate(1);
    let (stderr, shown) = imported(dir.path(), &killed);
    assert_eq!(stderr, "");
    for part in [
        "stopped before its end: killed, or still running",
        "The run stopped before its end: verdicts rest on the 1 test that completed; further tests may change them.",
    ] {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
    // One that was stopped by a signal says which, and qualifies its verdicts as well.
    let mut stopped = killed.clone();
    stopped["header"]["interrupted"] = "signal 2".into();
    let (_, shown) = imported(dir.path(), &stopped);
    assert!(!shown.contains("killed, or still running"), "{shown}");
    for part in ["The run was interrupted: signal 2.", "verdicts rest on the 1 test that completed"] {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
}

#[test]
fn damaged_records_are_refused_by_part_and_field() {
    let dir = scratch();
    let whole = record(dir.path());
    let check = |path: &str, expected: &str| {
        let mut damaged = whole.clone();
        *damaged.pointer_mut(path).unwrap() = json!({});
        let (stderr, _) = imported(dir.path(), &damaged);
        assert!(stderr.contains(expected) && stderr.contains("hint: "), "{path}: {stderr}");
        let shown = run(dir.path(), &["compare", "record.json", "record.json"]);
        assert!(shown.code != Some(0) && shown.stderr.contains(expected), "{path}: {shown:?}");
    };
    check("/header", "header has no 'target'");
    check("/tests/1", "tests[1] has no 'id'");
    check("/tests/0/jobs/0", "tests[0].jobs[0] has no 'name'");
    check("/tests/0/jobs/0/plan", "tests[0].jobs[0] has no 'plan'");
}
