//! The main job from the outside: what it prints, what its document holds, what it leaves alone.

use serde_json::Value;

use crate::{files_in, run, scratch};

const SHORT: [&str; 6] = ["bench", "--buffered", "--size", "16m", "--runtime", "300ms"];

fn with<'a>(extra: &[&'a str]) -> Vec<&'a str> {
    SHORT.iter().copied().chain(extra.iter().copied()).collect()
}

#[test]
fn a_directory_is_assessed_and_left_as_it_was() {
    let dir = scratch();
    let target = dir.path().join("target");
    std::fs::create_dir(&target).unwrap();
    let args = with(&["target", "--history", "h.db", "--only", "lat-read,commit,seq-write-jobs"]);
    let plan = run(dir.path(), &[&args[..], &["--dry-run"]].concat()).quietly().stdout;
    for part in ["Standard assessment: 3 tests on /", "Writes a 16.0 MiB test file", "  lat-read "] {
        assert!(plan.contains(part), "{part:?} is not in {plan}");
    }
    // A pipe gets the report alone.
    let text = run(dir.path(), &args).quietly().stdout;
    for part in ["lat-read", "commit", "seq-write-jobs", "Kept as run 1."] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(!text.contains('\x1b'), "a pipe gets plain text");
    assert_eq!(files_in(&target).len(), 0);
}

#[test]
fn the_document_has_its_documented_members() {
    let dir = scratch();
    let args = with(&[
        "--no-history", "--json", "--label", "provider=mine", "--seed", "5", "--only", "rand-mixed,commit",
    ]);
    let document: Value = serde_json::from_str(&run(dir.path(), &args).quietly().stdout).unwrap();
    assert_eq!(document["schema"], "fathom.bench/1");
    assert_eq!(document["target"], dir.path().to_str().unwrap());
    assert_eq!(document["run"]["id"], Value::Null);
    assert_eq!(document["run"]["seed"], 5);
    assert_eq!(document["run"]["labels"]["provider"], "mine");
    assert_eq!(document["conditions"]["host"]["provider"]["name"], "mine");
    assert!(document["findings"].is_array());
    let tests = document["tests"].as_array().unwrap();
    let mixed = tests.iter().find(|test| test["id"] == "rand-mixed").unwrap();
    assert_eq!(mixed["status"], "complete");
    assert!(mixed["fio"].as_str().unwrap().contains("--rwmixread=75"));
    for op in ["read", "write", "total"] {
        for number in ["ios", "iops", "bytes_per_second"] {
            assert!(mixed[op][number].as_f64().unwrap() > 0.0, "{op}.{number}");
        }
        for latency in ["slat_ns", "clat_ns", "lat_ns"] {
            assert!(mixed[op][latency]["mean"].as_f64().unwrap() > 0.0, "{op}.{latency}");
        }
    }
    let sum =
        |number: &str| mixed["read"][number].as_u64().unwrap() + mixed["write"][number].as_u64().unwrap();
    assert_eq!(mixed["total"]["ios"].as_u64().unwrap(), sum("ios"));
    for key in ["stability", "device", "elapsed_ns", "errors"] {
        assert!(mixed.get(key).is_some(), "{key}");
    }
}

#[test]
fn the_fio_command_of_a_row_runs_as_printed() {
    let dir = scratch();
    let args = with(&["--no-history", "--json", "--only", "rand-mixed"]);
    let document: Value = serde_json::from_str(&run(dir.path(), &args).quietly().stdout).unwrap();
    let line = document["tests"][0]["fio"].as_str().unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(words[0], "fio");
    assert!(run(dir.path(), &words).quietly().stdout.contains("rand-mixed: (groupid=0, jobs=1): err= 0"));
}

#[test]
fn a_file_is_only_read_unless_it_may_be_destroyed() {
    let dir = scratch();
    let target = dir.path().join("data");
    let content: Vec<u8> = (0..20u32 << 20).map(|index| (index / 977) as u8).collect();
    std::fs::write(&target, &content).unwrap();
    let line = ["bench", "data", "--no-history", "--buffered", "--runtime", "200ms", "--json"];
    let only = ["--only", "rand-read,rand-write"];
    let statuses = |extra: &[&str]| -> Vec<(String, String)> {
        let args: Vec<&str> = line.iter().chain(&only).chain(extra).copied().collect();
        let document: Value = serde_json::from_str(&run(dir.path(), &args).quietly().stdout).unwrap();
        let word = |test: &Value, key: &str| test[key].as_str().unwrap_or_default().to_owned();
        document["tests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|test| (word(test, "status"), word(test, "reason")))
            .collect()
    };
    let found = statuses(&[]);
    assert_eq!((found[0].0.as_str(), found[1].0.as_str()), ("complete", "skipped"));
    assert!(found[1].1.contains("--destroy-data=data"), "{}", found[1].1);
    assert!(std::fs::read(&target).unwrap() == content, "the file was changed");
    let found = statuses(&["--destroy-data=data"]);
    assert_eq!((found[0].0.as_str(), found[1].0.as_str()), ("complete", "complete"));
    let now = std::fs::read(&target).unwrap();
    assert!(now.len() == content.len() && now != content, "written to, within its size");
}

#[test]
fn expectations_of_a_suite_are_checked_for_each_class() {
    let dir = scratch();
    let args = with(&["--no-history", "--json", "--suite", "digitalocean-volumes", "--only", "lat-read"]);
    let document: Value = serde_json::from_str(&run(dir.path(), &args).quietly().stdout).unwrap();
    let all = document["expectations"].as_array().unwrap();
    let classes: Vec<&str> = all.iter().map(|one| one["class"].as_str().unwrap()).collect();
    assert_eq!(classes, ["standard", "high-cpu"]);
    for one in all {
        assert_eq!(
            (one["test"].as_str(), one["metric"].as_str()),
            (Some("lat-read"), Some("read.lat_ns.mean"))
        );
        assert_eq!(
            (one["value"].as_f64(), one["source"].as_str()),
            (Some(5e6), Some("suite digitalocean-volumes"))
        );
    }
}

#[test]
fn expectations_are_checked_and_a_missed_one_decides_the_exit() {
    let dir = scratch();
    let line = [
        "bench",
        "sim:custom?iops=5000&latency=500us",
        "--quick",
        "--only",
        "rand-read,lat-read",
        "--history",
        "h.db",
    ];
    let bench = |extra: &[&str], exit: i32| {
        let args: Vec<&str> = line.iter().chain(extra).copied().collect();
        let ended = run(dir.path(), &args);
        assert_eq!(ended.code, Some(exit), "{}{}", ended.stdout, ended.stderr);
        ended
    };
    let text = bench(&["--expect", "rand-read.iops>=5000", "--expect", "lat-read.iops>=5000"], 0).stdout;
    assert!(text.contains("1 met, 1 inconclusive (measured for 3 s"), "{text}");
    let broken = bench(&["--json", "--expect", "rand-read.iops>=6000±2%"], 3).stdout;
    let document: Value = serde_json::from_str(&broken).unwrap();
    let expectation = &document["expectations"][0];
    let words = ["test", "metric", "is", "verdict"].map(|key| expectation[key].as_str().unwrap());
    assert_eq!(words, ["rand-read", "iops", ">=", "missed"]);
    assert_eq!(
        (expectation["value"].as_f64(), expectation["tolerance_percent"].as_f64()),
        (Some(6000.0), Some(2.0))
    );
    let interval = &expectation["interval"];
    let [low, measured, high] =
        [&interval["low"], &expectation["measured"], &interval["high"]].map(|value| value.as_f64().unwrap());
    assert!(low <= measured && measured <= high && (measured - 5000.0).abs() < 10.0, "{expectation}");
    assert!(expectation["basis"].as_str().unwrap().contains("below the expectation"), "{expectation}");
    assert_eq!(document["expectation_missed"], true);
    // The tolerance of all, and what was kept of the run.
    bench(&["--tolerance", "20%", "--expect", "rand-read.iops>=6000"], 0);
    let shown = run(dir.path(), &["history", "show", "2", "--history", "h.db"]).quietly().stdout;
    assert!(shown.contains("missed, -17 %"), "{shown}");
    let wrong = bench(&["--expect", "rand-raed.iops>=1"], 2).stderr;
    for part in ["rand-raed.iops>=1: there is no test 'rand-raed'", "hint: the tests are lat-read, rand-read"]
    {
        assert!(wrong.contains(part), "{wrong}");
    }
}

/// The rows of the expectations of a bench on a simulated volume.
#[track_caller]
fn expectation_rows(volume: &str, runtime: &str, expected: &[&str]) -> Vec<String> {
    let dir = scratch();
    let line = ["bench", "--no-history", volume, "--only=rand-read", "--runtime", runtime];
    let expected = expected.iter().flat_map(|text| ["--expect", text]);
    let text = run(dir.path(), &line.into_iter().chain(expected).collect::<Vec<_>>()).stdout;
    let rows = text.split("\nExpectations\n").nth(1).unwrap_or_default().lines();
    let rows = rows.filter(|row| row.trim_start().starts_with("rand-read  IOPS"));
    rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_missed_rate_stands_beside_its_own_interval_and_deviation() {
    let volume = "sim:custom?iops=150&burst_iops=3000&bucket_ios=171000&latency=500us";
    let rows = expectation_rows(volume, "120", &["rand-read.iops>=2000"]);
    assert_eq!(rows, ["rand-read IOPS >= 2,000 5 % 150 missed, -92 %"]);
}

#[test]
fn what_meets_an_expectation_is_seen_to_meet_it() {
    let expected = ["rand-read.iops>6000", "rand-read.iops>=6000", "rand-read.iops>=6200"];
    let rows = expectation_rows("sim:custom?iops=6000&latency=500us", "20", &expected);
    let expected = [
        "rand-read IOPS > 6,000 5 % 6,000.05 5,970-6,030 met",
        "rand-read IOPS >= 6,000 5 % 6,000 5,970-6,030 met",
        "rand-read IOPS >= 6,200 5 % 6,000 5,970-6,030 met within 5 %",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_suite_of_ones_own_runs() {
    let dir = scratch();
    let text = "title = 'Mine'\ndescription = 'd'\nsource = 'me'\n\
        [profile]\nquick = { runtime = '100ms', ramp = '0', size = '16m' }\n\
        default = { runtime = '100ms', ramp = '0', size = '16m' }\n\
        thorough = { runtime = '100ms', ramp = '0', size = '16m' }\n\
        [[test]]\nid = 'whole'\ntitle = 'whole file'\nends = 'size'\n\
        options = { rw = 'read', bs = '64k', ioengine = 'psync' }\n";
    std::fs::write(dir.path().join("mine.toml"), text).unwrap();
    let args = ["bench", "--no-history", "--json", "--suite", "mine.toml"];
    let document: Value = serde_json::from_str(&run(dir.path(), &args).quietly().stdout).unwrap();
    assert_eq!(document["tests"][0]["read"]["bytes"], 16 << 20);
}

#[test]
fn a_plan_touches_nothing() {
    let dir = scratch();
    let text =
        run(dir.path(), &["bench", "--dry-run", "--show-fio", "--size", "64m", "--quick"]).quietly().stdout;
    assert!(text.contains("rand-mixed") && text.contains("fio --name=rand-mixed"), "{text}");
    let json = run(dir.path(), &["bench", "--dry-run", "--json", "--size", "64m"]).quietly().stdout;
    let plan: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (plan["schema"].as_str(), plan["size_bytes"].as_u64()),
        (Some("fathom.plan/1"), Some(64 << 20))
    );
    assert_eq!(plan["tests"].as_array().unwrap().len(), 10);
    assert_eq!(files_in(dir.path()).len(), 0);
}

#[test]
fn answers_without_a_target() {
    let dir = scratch();
    for (args, part) in [
        (&["--help"][..], "fathom bench --quick /mnt/data"),
        (&["bench", "--help"], "--suite digitalocean-volumes"),
        (&["history", "--help"], "fathom history export 17"),
        (&["--version"], "fathom 0."),
    ] {
        let ended = run(dir.path(), args).quietly();
        assert!(ended.stdout.contains(part), "{args:?}: {}", ended.stdout);
    }
}
