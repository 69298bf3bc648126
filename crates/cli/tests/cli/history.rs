//! The list of past runs, and what can be done with it.

use std::path::Path;

use serde_json::Value;

use crate::{on_both, run, scratch};

on_both!(
    runs_are_listed_shown_exported_and_removed,
    runs_are_named_from_the_newest_back,
    runs_are_tagged_from_the_start,
    a_run_that_is_imported_again_is_the_same_run,
    output_of_other_programs_is_imported_shown_and_listed,
);

const BENCH: [&str; 9] =
    ["bench", "--buffered", "--size", "16m", "--runtime", "200ms", "--only", "lat-read", "--json"];

fn runs_are_listed_shown_exported_and_removed(dir: &Path) {
    let history = |args: &[&str]| {
        let mut line = vec!["history"];
        line.extend(args);
        run(dir, &line)
    };
    assert_eq!(history(&["list", "--json"]).quietly().stdout.trim(), "[]");
    for label in ["volume=a", "volume=b"] {
        let mut args = BENCH.to_vec();
        args.extend(["--label", label]);
        run(dir, &args).quietly();
    }
    let rows: Value = serde_json::from_str(&history(&["list", "--json"]).quietly().stdout).unwrap();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, volume) in rows.iter().zip(["a", "b"]) {
        assert_eq!((row["status"].as_str(), row["target"].as_str()), (Some("complete"), dir.to_str()));
        assert_eq!(row["labels"]["volume"], volume);
        assert!(row["command"].as_str().unwrap().starts_with("fathom bench --buffered"));
        assert!(row["started"].as_str().unwrap().ends_with('Z'));
    }
    let newest: Value =
        serde_json::from_str(&history(&["list", "--json", "--newest", "1"]).quietly().stdout).unwrap();
    assert_eq!(newest[0]["id"], 2);
    assert!(history(&["list"]).quietly().stdout.contains("volume=b"));
    assert!(history(&["show"]).quietly().stdout.contains("lat-read"));
    assert!(history(&["show", "1", "--show-fio"]).quietly().stdout.contains("fio --name=lat-read"));
    let exported = history(&["export"]).quietly().stdout;
    let records: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((records.len(), records[0]["schema"].as_str()), (2, Some("fathom.record/2")));
    assert_eq!(history(&["tag", "before", "1", "2"]).quietly().stdout, "Tagged runs 1, 2: before.\n");
    assert_eq!(history(&["tag", "before", "2", "--remove"]).quietly().stdout, "Untagged run 2: before.\n");
    let tagged: Value =
        serde_json::from_str(&history(&["list", "--json", "--tag", "before"]).quietly().stdout).unwrap();
    assert_eq!(
        (tagged.as_array().unwrap().len(), &tagged[0]["id"], &tagged[0]["tags"][0]),
        (1, &1.into(), &"before".into())
    );
    assert!(history(&["list", "--tag", "after"]).quietly().stdout.contains("No run matches --tag after"));
    let number = history(&["tag", "17", "1"]);
    assert!(number.code == Some(1) && number.stderr.contains("hint: use a word"), "{}", number.stderr);
    assert_eq!(history(&["rm", "1", "--dry-run"]).quietly().stdout, "Would remove run 1.\n");
    assert_eq!(
        history(&["prune", "--newest=9", "--yes"]).quietly().stdout,
        "  No more than 9 runs are stored.\n"
    );
    assert_eq!(history(&["rm", "1"]).quietly().stdout, "Removed run 1.\n");
    let gone = history(&["show", "1"]);
    assert_eq!(gone.code, Some(1));
    assert!(gone.stderr.contains("no run 1") && gone.stderr.contains("hint: "), "{}", gone.stderr);
}

#[test]
fn what_is_no_history_is_said_so() {
    let dir = scratch();
    std::fs::write(dir.path().join("junk"), "this is no database, and long enough to be none").unwrap();
    assert_eq!(run(dir.path(), &["history", "list", "--json"]).quietly().stdout, "[]\n");
    for (args, code, parts) in [
        (&["history", "list", "--history", "junk"][..], 1, &["junk", "not a fathom history", "hint: "][..]),
        (&["history", "show", "--history", "none"], 1, &["none", "no such file", "hint: "]),
        (&["history", "list", "--history", "."], 1, &["is a directory", "hint: "]),
        (&["history", "show", "first"], 2, &["expected a run number"]),
        (&["history"], 2, &["Usage: fathom history"]),
        (&["history", "list", "--kind", "catalog"], 2, &["no command 'catalog' keeps runs"]),
        (&["history", "rm"], 2, &["<RUNS>"]),
        (&["history", "rm", "7"], 1, &["history.db"]),
        (&["history", "rm", "7", "--target=/x"], 2, &["--target /x has no effect on runs that are named"]),
        (&["history", "rm", "7", "--older-than=1d"], 2, &["cannot be used with '--older-than"]),
        (&["history", "list", "--status=good"], 2, &["good", "complete"]),
    ] {
        let ended = run(dir.path(), args);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        for part in parts {
            assert!(ended.stderr.contains(part), "{args:?} lacks {part:?}: {}", ended.stderr);
        }
    }
}

#[test]
fn a_damaged_run_is_named_and_the_others_are_shown() {
    let dir = scratch();
    for target in ["sim:custom?iops=100", "sim:custom?iops=101", "sim:custom?iops=102"] {
        run(dir.path(), &["bench", target, "--quick", "--only=rand-read", "--keep"]).quietly();
    }
    let path = dir.path().join("home/.local/share/fathom/history.db");
    let mut bytes = std::fs::read(&path).unwrap();
    // Pages that are free by now may hold what was stored at first.
    let (text, kind) =
        (br#""kind":"bench","suite":"standard"},"target":"sim:custom?iops=102""#, br#""kind":1234567"#);
    let found: Vec<usize> =
        (0..bytes.len() - text.len()).filter(|&at| bytes[at..].starts_with(text)).collect();
    assert!(!found.is_empty());
    for at in found {
        bytes[at..at + kind.len()].copy_from_slice(kind);
    }
    std::fs::write(&path, bytes).unwrap();

    let warning = |ended: &crate::Ended, code: i32| {
        assert_eq!(ended.code, Some(code), "{ended:?}");
        let line = format!("warning: {}: cannot read run 3: ", path.display());
        assert!(
            ended.stderr.starts_with(&line) && ended.stderr.contains("`fathom history rm NUMBER`"),
            "{ended:?}"
        );
    };
    // The list does not need the record.
    let listed = run(dir.path(), &["history", "list", "--json"]).quietly();
    let rows: Value = serde_json::from_str(&listed.stdout).unwrap();
    let ids: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["id"].as_u64()).collect();
    assert_eq!(ids, [Some(1), Some(2), Some(3)]);

    let shown = run(dir.path(), &["history", "show"]);
    warning(&shown, 0);
    assert!(shown.stdout.starts_with("sim:custom?iops=101"), "{shown:?}");
    run(dir.path(), &["history", "show", "1"]).quietly();
    let refused = run(dir.path(), &["history", "show", "3"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("cannot read run 3") && refused.stdout.is_empty(), "{refused:?}");

    let exported = run(dir.path(), &["history", "export"]);
    warning(&exported, 1);
    assert_eq!(exported.stdout.lines().count(), 2);
    run(dir.path(), &["history", "rm", "3"]).quietly();
    run(dir.path(), &["history", "list"]).quietly();
}

/// Keeps a short simulated run.
fn keep(dir: &Path, more: &[&str]) {
    let args = ["bench", "sim:custom?iops=500", "--quick", "--only=rand-read", "--keep"];
    run(dir, &[&args[..], more].concat()).quietly();
}

fn runs_are_named_from_the_newest_back(dir: &Path) {
    for seed in ["--seed=1", "--seed=2", "--seed=3"] {
        keep(dir, &[seed]);
    }
    let history = |args: &[&str]| run(dir, &[&["history"], args].concat()).quietly().stdout;
    for (name, number) in [("last", "3"), ("last~2", "1")] {
        assert_eq!(history(&["show", name, "--json"]), history(&["show", number, "--json"]), "{name}");
        assert_eq!(history(&["export", name]), history(&["export", number]), "{name}");
    }
    assert_eq!(history(&["tag", "new", "last~1", "last"]), "Tagged runs 2, 3: new.\n");
    assert_eq!(history(&["note", "last", "a note"]), "Noted on run 3.\n");
    assert_eq!(history(&["diff", "last~1", "last"]), history(&["diff", "2", "3"]));
    let missing = run(dir, &["history", "show", "last~3"]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.stderr.contains("no run last~3: it has 3 runs"), "{}", missing.stderr);
    assert_eq!(history(&["rm", "last"]), "Removed run 3.\n");
}

fn runs_are_tagged_from_the_start(dir: &Path) {
    keep(dir, &["--tag=before", "--tag=kernel 6.12"]);
    let sweep = ["sweep", "sim:custom?iops=500", "--rw=randread", "--budget=30s", "--keep", "--tag=before"];
    let swept = run(dir, &sweep);
    assert_eq!(swept.code, Some(0), "{swept:?}");
    run(dir, &["ping", "-c", "2", "-q", "sim:custom?iops=500", "--keep", "--tag=ping"]);
    let tagged = |tag: &str| {
        let listed = run(dir, &["history", "list", "--json", "--tag", tag]).quietly().stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        listed.as_array().unwrap().iter().map(|run| run["id"].as_u64().unwrap()).collect::<Vec<u64>>()
    };
    assert_eq!((tagged("before"), tagged("kernel 6.12"), tagged("ping")), (vec![1, 2], vec![1], vec![3]));
    let refused = run(dir, &["bench", "sim:custom?iops=500", "--tag=17"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("a tag cannot be a number"), "{}", refused.stderr);
}

fn a_run_that_is_imported_again_is_the_same_run(dir: &Path) {
    keep(dir, &["--tag=first"]);
    let exported = run(dir, &["history", "export"]).quietly().stdout;
    std::fs::write(dir.join("run.json"), exported).unwrap();
    let import = || run(dir, &["history", "import", "run.json"]).quietly().stdout;
    assert_eq!(import(), "Already in the history as run 1: bench, 1 test.\n");
    run(dir, &["history", "rm", "last"]).quietly();
    assert_eq!(import(), "Imported run 2: bench, 1 test.\n");
    let listed = run(dir, &["history", "list", "--tag=first", "--format=csv"]).quietly().stdout;
    assert_eq!(listed.lines().count(), 2, "the tags of the start are in the record: {listed}");
}

fn output_of_other_programs_is_imported_shown_and_listed(dir: &Path) {
    const TEXT: &str = "bw-test: (groupid=0, jobs=1): err= 0: pid=2584: Fri Apr 20 17:14:19 2018\n \
                        write: io=22937MB, , , runt=120160msec\n    issued    : total=r=0/w=22937/d=0, short=r=0/w=0/d=0\n";
    std::fs::write(dir.join("fio.txt"), TEXT).unwrap();
    let imported = run(dir, &["history", "import", "fio.txt"]).quietly().stdout;
    assert_eq!(imported, "Imported run 1: fio.txt, fio text, 1 test, 2 figures missing.\n");
    // The same source is the same run.
    let again = run(dir, &["history", "import", "fio.txt"]).quietly().stdout;
    assert!(again.starts_with("Already in the history as run 1: fio.txt"), "{again}");
    let shown = run(dir, &["history", "show", "--full"]).quietly().stdout;
    for expected in [
        "bw-test",
        "191*",
        "191*",
        "2 min",
        "Missing figures",
        "write bandwidth",
        "follows from other figures",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let csv = run(dir, &["history", "show", "--format", "csv"]).quietly().stdout;
    assert!(csv.contains("bw-test,bw-test,write.bytes,24051187712,1048576,printed"), "{csv}");
    let json = run(dir, &["history", "show", "--json"]).quietly().stdout;
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["schema"], "fathom.import/1");
    assert_eq!(document["tests"][0]["imported"]["missing"][0]["figure"], "write IOPS");
    let trend = run(dir, &["history", "trend", "write.iops"]).quietly().stdout;
    assert!(trend.contains("191"), "{trend}");
    let list = run(dir, &["history", "list", "--kind", "import"]).quietly().stdout;
    assert!(list.contains("import"), "{list}");
    let exported = run(dir, &["history", "export", "1"]).quietly().stdout;
    std::fs::write(dir.join("run.json"), exported).unwrap();
    let own = run(dir, &["history", "import", "run.json", "--history", "other.db"]).quietly().stdout;
    assert!(own.starts_with("Imported run 1:"), "{own}");
}

#[test]
fn imported_tests_ran_together_only_where_the_output_says_so() {
    let dir = scratch();
    let notes = |file: &str, text: &str| {
        std::fs::write(dir.path().join(file), text).unwrap();
        let import = ["history", "import", file, "--history", "h.db"];
        run(dir.path(), &import).quietly();
        run(dir.path(), &["history", "show", "--full", "--history", "h.db"]).quietly().stdout
    };
    let job = |name: &str, group: u32| {
        format!(
            "{name}: (groupid={group}, jobs=1): err= 0: pid=7: Fri Apr 20 17:14:19 2018\n  \
             read: IOPS=1000, BW=4000KiB/s (4096kB/s)(39.1MiB/10000msec)\n"
        )
    };
    let together = notes("one.txt", &[job("first", 0), job("second", 0)].concat());
    assert!(together.contains("first ran together with second."), "{together}");
    let apart = notes("two.txt", &[job("first", 0), job("second", 1)].concat());
    assert!(!apart.contains("ran together"), "{apart}");
    let table = "test,metric,value,unit\nrand-read,read.iops,1828,IOPS\nseq-read,read.bw,52,MiB/s\n";
    let table = notes("sheet.csv", table);
    assert!(table.contains("seq-read") && !table.contains("ran together"), "{table}");
}

#[test]
fn an_import_that_fails_names_line_and_remedy_and_keeps_nothing() {
    let dir = scratch();
    std::fs::write(dir.path().join("good.csv"), "test,metric,value,unit\na,iops,5,\n").unwrap();
    std::fs::write(dir.path().join("bad.csv"), "test,metric,value,unit\na,bw,5,\n").unwrap();
    let failed = run(dir.path(), &["history", "import", "good.csv", "bad.csv", "--history", "h.db"]);
    assert_eq!(failed.code, Some(2));
    assert!(
        failed.stderr.contains("cannot import bad.csv: line 2: the value has no unit"),
        "{}",
        failed.stderr
    );
    assert!(failed.stderr.contains("hint: write B/s"), "{}", failed.stderr);
    assert!(!dir.path().join("h.db").exists());
}
