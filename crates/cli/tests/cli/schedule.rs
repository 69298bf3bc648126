//! `fathom bench --every` from the outside.

use std::path::Path;

use serde_json::Value;

use crate::{on_both, run, run_with_history, scratch, scratch_with};

on_both!(runs_are_ordinary_runs_with_the_name_of_the_schedule);

const VOLUME: &str = "sim:aws-gp2-2016?size=50GiB";
/// With a tenth of its rates, and as long a burst.
const SLOW: &str = "sim:custom?iops=15&burst_iops=300&bucket_ios=540000&latency=500us";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_week_of_a_simulated_volume_is_one_document() {
    let dir = scratch();
    let args = ["bench", "--every=4h", "--for=7d", "--only=rand-read,seq-read", "--json", VOLUME];
    let found = json(&run(dir.path(), &args).quietly().stdout);
    assert_eq!((&found["schema"], &found["slots"]), (&"fathom.schedule/2".into(), &42.into()));
    assert_eq!((&found["slots_left"], &found["missed_slots"]), (&0.into(), &0.into()));
    assert_eq!(found["schedule"]["name"], "sim-aws-gp2-2016-size-50GiB-4-h-168-h");
    let runs = found["runs"].as_array().unwrap();
    let due: Vec<u64> = runs.iter().map(|run| run["due_unix_ms"].as_u64().unwrap()).collect();
    assert_eq!(due, (0..42).map(|slot| slot * 14_400_000).collect::<Vec<u64>>(), "no slot drifts");
    for run in runs {
        let figures = run["figures"].as_array().unwrap();
        let names = figures.iter().map(|it| format!("{}.{}", it["test"], it["metric"]).replace('"', ""));
        let leading = ["iops", "bytes_per_second", "lat_ns.mean", "lat_ns.p99"];
        let expected = ["rand-read", "seq-read"].map(|test| leading.map(|it| format!("{test}.total.{it}")));
        assert_eq!((names.collect::<Vec<_>>(), &run["status"]), (expected.concat(), &"complete".into()));
        assert!((figures[0]["value"].as_f64().unwrap() - 3000.0).abs() < 5.0, "{run}");
    }
    assert!(!dir.path().join("home").exists(), "simulated runs are not kept unless asked for");
}

#[test]
fn burst_credits_return_between_runs() {
    let dir = scratch();
    let rates = |every: &str| -> Vec<f64> {
        let args = ["bench", every, "--for=2h", "--only=rand-read", "--runtime=5m", "--json", SLOW];
        let document = json(&run(dir.path(), &args).quietly().stdout);
        let runs = document["runs"].as_array().unwrap();
        runs.iter().map(|run| run["figures"][0]["value"].as_f64().unwrap()).collect()
    };
    let rested = rates("--every=1h");
    assert!(rested.len() == 2 && rested.iter().all(|&iops| iops > 299.0), "{rested:?}");
    // The credits of the seventh run do not suffice.
    let tired = rates("--every=10m");
    let lasts = tired.iter().position(|&iops| iops < 299.0);
    assert!(tired.len() == 12 && lasts == Some(6), "{tired:?}");
    assert!(tired[11] < 40.0, "{tired:?}");
}

fn runs_are_ordinary_runs_with_the_name_of_the_schedule(dir: &Path) {
    let labels = ["--label=schedule=nightly", "--label=volume=a"];
    let args = ["bench", "--every=6h", "--for=2d", "--only=rand-read", labels[0], labels[1], VOLUME];
    let text = run_with_history(dir, &args).quietly().stdout;
    assert!(text.contains("Kept with the label schedule=nightly"), "{text}");
    assert!(text.contains("\n8/8  42 h after the start  complete  run 8  rand-read 3,000 IOPS\n"), "{text}");
    let history = |args: &[&str]| run_with_history(dir, &[&["history"], args].concat()).quietly().stdout;
    let listed = json(&history(&["list", "--label=schedule=nightly", "--json"]));
    assert_eq!(listed.as_array().unwrap().len(), 8);
    assert_eq!(listed[7]["labels"], serde_json::json!({"schedule": "nightly", "volume": "a"}));
    let trend = json(&history(&["trend", "rand-read.read.iops", "--by=label:schedule", "--json"]));
    assert_eq!(trend["series"][0]["group"], "nightly");
    let record = json(&history(&["export", "3"]));
    let scheduled = &record["header"]["scheduled"];
    assert_eq!((&scheduled["slot"], &scheduled["schedule"]["every_ms"]), (&2.into(), &21_600_000.into()));
    for (format, lines) in [("csv", 1 + 4 * 8), ("jsonl", 4 * 8)] {
        let args = ["bench", "--every=6h", "--for=2d", "--only=rand-read", "--format", format, VOLUME];
        let printed = run(dir, &args).quietly().stdout;
        assert_eq!(printed.lines().count(), lines, "a line for each figure of each run: {printed}");
    }
}

#[test]
fn a_schedule_names_the_expectations_that_it_missed() {
    let dir = scratch();
    let args = ["bench", "--every=10m", "--for=80m", "--only=rand-read", "--runtime=5m", SLOW];
    // Credits are exhausted in the seventh run.
    let checked = |form: &[&str]| {
        run(dir.path(), &[&args[..], &["--expect=rand-read.iops>=200", "--size=1g"], form].concat())
    };
    let text = checked(&[]);
    assert_eq!(text.code, Some(3), "{text:?}");
    let runs = json(&checked(&["--json"]).stdout)["runs"].as_array().unwrap().clone();
    let is_missed = |run: &&Value| run["unmet_expectations"][0]["verdict"] == "missed";
    let missed: Vec<&Value> = runs.iter().filter(is_missed).collect();
    assert!(!missed.is_empty() && missed.len() < 8, "{runs:#?}");
    for run in missed {
        let unmet = &run["unmet_expectations"][0];
        assert_eq!((&unmet["test"], &unmet["value"]), (&"rand-read".into(), &200.0.into()));
        assert!(unmet["measured"].as_f64() < Some(200.0), "{run:#}");
        let slot = format!("\n{}/8  ", run["slot"].as_u64().unwrap() + 1);
        let line = text.stdout.split_once(&slot).unwrap().1.lines().next().unwrap();
        assert!(line.contains("rand-read IOPS missed, -"), "{line}");
    }
    let met = run(dir.path(), &[&args[..], &["--expect=rand-read.iops>=10"]].concat());
    assert!(met.code == Some(0) && !met.stdout.contains("missed"), "{met:?}");
}

#[test]
fn what_makes_no_schedule_is_refused_with_a_remedy() {
    let dir = scratch();
    for (args, part) in [
        (&["--every=1h"][..], "--for <TIME>"),
        (&["--for=7d"], "--every <TIME>"),
        (&["--every=0", "--for=7d"], "an interval needs at least 1 s"),
        (&["--every=1h", "--for=1h"], "hint: use a longer --for"),
        (&["--every=1m", "--for=100d"], "144,000 runs are more than the 20,000 of a schedule"),
        (&["--every=1m", "--for=1h"], "and the interval is 1 min"),
        (&["--every=1h", "--for=7d", "--against=sim:aws-gp3"], "cannot be used with"),
    ] {
        let ended = run(dir.path(), &[&["bench", VOLUME], args].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(part), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn an_interval_shorter_than_the_tests_is_refused_whatever_the_layout_takes() {
    let dir = scratch_with(&["data"]);
    let long =
        ["bench", "data", "--only=rand-read", "--runtime=30s", "--size=16m", "--no-history", "--dry-run"];
    let ended = run(dir.path(), &[&long[..], &["--every=10s", "--for=1m"]].concat());
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("and the interval is 10 s\nhint: use --every "), "{}", ended.stderr);
    let plan = run(dir.path(), &[&long[..], &["--every=1h", "--for=3h"]].concat()).quietly();
    assert!(plan.stdout.contains("and the time to write its test file"), "{}", plan.stdout);
}
