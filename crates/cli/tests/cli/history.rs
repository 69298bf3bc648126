//! The list of past runs, and what can be done with it.

use serde_json::Value;

use crate::{run, scratch};

const BENCH: [&str; 11] = [
    "bench",
    "--history",
    "h.db",
    "--buffered",
    "--size",
    "16m",
    "--runtime",
    "200ms",
    "--only",
    "lat-read",
    "--json",
];

#[test]
fn runs_are_listed_shown_exported_and_removed() {
    let dir = scratch();
    let history = |args: &[&str]| {
        let mut line = vec!["history"];
        line.extend(args);
        line.extend(["--history", "h.db"]);
        run(dir.path(), &line)
    };
    assert_eq!(history(&["list", "--json"]).quietly().stdout.trim(), "[]");
    for label in ["volume=a", "volume=b"] {
        let mut args = BENCH.to_vec();
        args.extend(["--label", label]);
        run(dir.path(), &args).quietly();
    }
    let rows: Value = serde_json::from_str(&history(&["list", "--json"]).quietly().stdout).unwrap();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, volume) in rows.iter().zip(["a", "b"]) {
        assert_eq!((row["status"].as_str(), row["target"].as_str()), (Some("complete"), dir.path().to_str()));
        assert_eq!(row["labels"]["volume"], volume);
        assert!(row["command"].as_str().unwrap().starts_with("fathom bench --history"));
        assert!(row["started"].as_str().unwrap().ends_with('Z'));
    }
    let newest: Value =
        serde_json::from_str(&history(&["list", "--json", "--newest", "1"]).quietly().stdout).unwrap();
    assert_eq!(newest[0]["id"], 2);
    assert!(history(&["list"]).quietly().stdout.contains("volume=b"));
    assert!(history(&["show"]).quietly().stdout.contains("read latency"));
    assert!(history(&["show", "1", "--show-fio"]).quietly().stdout.contains("fio --name=lat-read"));
    let exported = history(&["export"]).quietly().stdout;
    let records: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((records.len(), records[0]["schema"].as_str()), (2, Some("fathom.record/1")));
    assert_eq!(history(&["rm", "1"]).quietly().stdout, "Removed run 1.\n");
    let gone = history(&["show", "1"]);
    assert_eq!(gone.code, Some(1));
    assert!(gone.stderr.contains("no run 1") && gone.stderr.contains("hint: "), "{}", gone.stderr);
}

#[test]
fn what_is_no_history_is_said_so() {
    let dir = scratch();
    std::fs::write(dir.path().join("junk"), "this is no database, and long enough to be none").unwrap();
    for (args, code, parts) in [
        (&["history", "list", "--history", "junk"][..], 1, &["junk", "not a fathom history", "hint: "][..]),
        (&["history", "show", "--history", "none"], 1, &["none", "no such file", "hint: "]),
        (&["history", "list", "--history", "."], 1, &["is a directory", "hint: "]),
        (&["history", "show", "first"], 2, &["named by its number"]),
        (&["history"], 2, &["Usage: fathom history"]),
        (&["history", "rm"], 2, &["<RUNS>"]),
    ] {
        let ended = run(dir.path(), args);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        for part in parts {
            assert!(ended.stderr.contains(part), "{args:?} lacks {part:?}: {}", ended.stderr);
        }
    }
}
