//! `fathom bench --every` from the outside.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{
    Ended, ended, files_in, history_args, on_both, program, run, run_with_history, scratch, scratch_with,
};

on_both!(runs_are_ordinary_runs_with_the_name_of_the_schedule, two_schedules_of_one_target_are_told_apart);

const VOLUME: &str = "sim:aws-gp2-2016?size=50GiB";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A short schedule on a directory, every second.
fn on_directory(dir: &Path, args: &[&str]) -> Ended {
    let short = ["--only=rand-read", "--runtime=1ms", "--size=16m", "--buffered", "--json"];
    run(dir, &[&["bench", "data"], &short[..], args, history_args(dir)].concat())
}

#[test]
fn a_week_of_a_simulated_volume_is_one_document() {
    let dir = scratch();
    let args = ["bench", "--every=1h", "--for=7d", "--only=rand-read,seq-read", "--json", VOLUME];
    let found = json(&run(dir.path(), &args).quietly().stdout);
    assert_eq!((&found["schema"], &found["slots"]), (&"fathom.schedule/1".into(), &168.into()));
    assert_eq!(
        (&found["slots_left"], &found["missed_slots"], &found["resume"]),
        (&0.into(), &0.into(), &Value::Null)
    );
    let runs = found["runs"].as_array().unwrap();
    let due: Vec<u64> = runs.iter().map(|run| run["due_ms"].as_u64().unwrap()).collect();
    assert!(runs.iter().all(|run| run["due_unix_ms"] == Value::Null), "its time is virtual");
    assert_eq!(due, (0..168).map(|slot| slot * 3_600_000).collect::<Vec<u64>>(), "no slot drifts");
    let figures = found["figures"].as_array().unwrap();
    let names: Vec<(&str, &str)> =
        figures.iter().map(|it| (it["test"].as_str().unwrap(), it["metric"].as_str().unwrap())).collect();
    assert_eq!(
        names,
        [
            ("rand-read", "total.iops"),
            ("rand-read", "total.lat_ns.p99"),
            ("seq-read", "total.bytes_per_second"),
            ("seq-read", "total.lat_ns.p99"),
        ]
    );
    for figure in figures {
        assert_eq!(figure["runs"], 168);
        assert_eq!(figure["by_hour"]["groups"].as_array().unwrap().len(), 24);
        assert_eq!(figure["by_hour"]["verdict"], "no-difference", "{figure}");
        assert_eq!(figure["by_host"]["verdict"], "inconclusive");
    }
    assert!((figures[0]["median"].as_f64().unwrap() - 3000.0).abs() < 1.0);
    assert!(!dir.path().join("home").exists(), "simulated runs are not kept unless asked for");
}

#[test]
fn burst_credits_return_between_runs() {
    let dir = scratch();
    let schedule = |every: &str| {
        let args = ["bench", every, "--for=6h", "--only=rand-read", "--runtime=5m", VOLUME];
        let text = run(dir.path(), &args).quietly().stdout;
        text.split_whitespace().collect::<Vec<&str>>().join(" ")
    };
    let rested = schedule("--every=1h");
    assert!(rested.contains("each run begins with at least 3.57 M, which suffices."), "{rested}");
    assert!(rested.contains("6 complete") && !rested.contains("fell by"), "{rested}");
    let tired = schedule("--every=10m");
    assert!(tired.contains("from run 7 on they may not suffice, and a run may fall to 150 IOPS."), "{tired}");
    assert!(tired.contains("rand-read: IOPS fell by 91 %") && tired.contains("(7 runs)"), "{tired}");
}

fn runs_are_ordinary_runs_with_the_name_of_the_schedule(dir: &Path) {
    let args =
        ["bench", "--every=6h", "--for=2d", "--schedule=nightly", "--only=rand-read", "--label=volume=a"];
    let text = run_with_history(dir, &[&args[..], &[VOLUME]].concat()).quietly().stdout;
    assert!(text.contains("Kept with the label schedule=nightly"), "{text}");
    let history = |args: &[&str]| run_with_history(dir, &[&["history"], args].concat()).quietly().stdout;
    let listed = json(&history(&["list", "--label=schedule=nightly", "--json"]));
    assert_eq!(listed.as_array().unwrap().len(), 8);
    assert_eq!(listed[7]["labels"], serde_json::json!({"schedule": "nightly", "volume": "a"}));
    let trend = json(&history(&["trend", "rand-read.read.iops", "--by=label:schedule", "--json"]));
    assert_eq!(trend["series"][0]["group"], "nightly");
    let record = json(&history(&["export", "3"]));
    let scheduled = &record["header"]["scheduled"];
    assert_eq!((&scheduled["slot"], &scheduled["schedule"]["every_ms"]), (&2.into(), &21_600_000.into()));
    let csv = run(dir, &["bench", "--every=6h", "--for=2d", "--only=rand-read", "--format=csv", VOLUME]);
    assert_eq!(csv.quietly().stdout.lines().count(), 1 + 2 * 8, "a line for each figure of each run");
}

#[test]
fn a_schedule_names_the_expectations_that_it_missed() {
    let dir = scratch();
    let args = ["bench", "--every=10m", "--for=80m", "--only=rand-read", "--runtime=5m", VOLUME];
    // Credits are exhausted in the seventh run.
    let checked = |form: &[&str]| {
        run(dir.path(), &[&args[..], &["--expect=rand-read.iops>=2000", "--size=1g"], form].concat())
    };
    let text = checked(&[]);
    assert_eq!(text.code, Some(3), "{text:?}");
    assert!(text.stdout.contains("\nExpectations\n") && text.stdout.contains("missed, -"), "{}", text.stdout);
    let document = json(&checked(&["--json"]).stdout);
    let unmet = document["unmet_expectations"].as_array().unwrap();
    let missed: Vec<&Value> = unmet.iter().filter(|one| one["verdict"] == "missed").collect();
    assert!(!missed.is_empty() && missed.len() < 8, "{document:#}");
    for one in missed {
        assert_eq!((&one["test"], &one["value"]), (&"rand-read".into(), &2000.0.into()));
        assert!(one["measured"].as_f64() < Some(2000.0), "{one:#}");
        let due = format!("{} min after the start", one["slot"].as_u64().unwrap() * 10);
        assert!(text.stdout.contains(&due) || text.stdout.contains("1 h"), "{}", text.stdout);
    }
    let met = run(dir.path(), &[&args[..], &["--expect=rand-read.iops>=100"]].concat());
    assert_eq!(met.code, Some(0), "{met:?}");
    assert!(!met.stdout.contains("Expectations"), "{}", met.stdout);
}

#[test]
fn simulated_schedules_of_different_times_have_different_names() {
    let dir = scratch();
    let names = [["--every=1h", "--for=3h"], ["--every=90m", "--for=3h"]].map(|times| {
        let args = [&["bench", "--only=rand-read", "--json", "--history=h.db", VOLUME], &times[..]].concat();
        json(&run(dir.path(), &args).quietly().stdout)["schedule"]["name"].as_str().unwrap().to_owned()
    });
    assert_eq!(names, ["sim-aws-gp2-2016-size-50GiB-1h-3h", "sim-aws-gp2-2016-size-50GiB-90m-3h"]);
}

#[test]
fn a_schedule_goes_on_with_its_own_plan_and_names_what_it_missed() {
    let dir = scratch_with(&["data"]);
    // It began two slots ago, and nothing ran.
    let from = format!("--from={}", stamp(-7200));
    let due = ["--every=1h", "--for=3h", "--schedule=late", &from, "--due"];
    let first = json(&on_directory(dir.path(), &due).quietly().stdout);
    assert_eq!(first["runs"].as_array().unwrap().len(), 1, "{first}");
    assert_eq!(first["runs"][0]["slot"], 2);
    let missed = serde_json::json!([{"first": 0, "count": 2, "reason": "not-running"}]);
    assert_eq!(first["missed"], missed);
    // The slot is not run twice, and the schedule is over.
    let again = json(&on_directory(dir.path(), &due).quietly().stdout);
    assert_eq!((&again["runs"][0]["run"], &again["runs"][1]), (&1.into(), &Value::Null));
    assert_eq!(again["missed"], missed);
    let elsewhere = dir.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let summary = run(&elsewhere, &["bench", "--resume", "--schedule=late", "--history=../h.db", "--json"]);
    assert_eq!(json(&summary.quietly().stdout)["missed_slots"], 2);
    let none = run(dir.path(), &["bench", "--resume", "data", "--history=h.db"]);
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("the history has no unfinished schedule of "), "{}", none.stderr);
    assert!(files_in(&dir.path().join("data")).is_empty());
}

/// The moment so many seconds from now, in UTC.
fn stamp(seconds: i64) -> String {
    let now =
        Command::new("date").args(["-u", "-d", &format!("{seconds} seconds"), "+%FT%TZ"]).output().unwrap();
    String::from_utf8(now.stdout).unwrap().trim().to_owned()
}

fn two_schedules_of_one_target_are_told_apart(dir: &Path) {
    std::fs::create_dir(dir.join("data")).unwrap();
    for name in ["a", "b"] {
        let from = format!("--from={}", stamp(0));
        let args = ["--every=1h", "--for=7d", &from, "--due"];
        let ended = on_directory(dir, &[&args[..], &["--schedule", name]].concat()).quietly();
        assert_eq!(json(&ended.stdout)["slots_left"], 167);
    }
    let both = run(dir, &[&["bench", "--resume", "data"], history_args(dir)].concat());
    assert_eq!(both.code, Some(2));
    assert!(
        both.stderr.contains("are unfinished: b, a")
            && both.stderr.contains("hint: choose one with --schedule")
    );
    let plan =
        run(dir, &[&["bench", "--resume", "--schedule=a", "data", "--dry-run"], history_args(dir)].concat());
    assert!(plan.stdout.contains("continues with run 2"), "{plan:?}");
    let other = on_directory(dir, &["--every=2h", "--for=7d", "--schedule=a"]);
    assert_eq!(other.code, Some(2));
    assert!(other.stderr.contains("the history has a schedule a with other instants"), "{}", other.stderr);
}

#[test]
fn what_makes_no_schedule_is_refused_with_a_remedy() {
    let dir = scratch();
    for (args, part) in [
        (&["--every=1h"][..], "--for <TIME>"),
        (&["--for=7d"], "--every <TIME>"),
        (&["--every=0", "--for=7d"], "the time must be above 0"),
        (&["--every=1h", "--for=1h"], "hint: use a longer --for"),
        (&["--every=1m", "--for=100d"], "144,000 runs are more than the 20,000 of a schedule"),
        (&["--every=1m", "--for=1h"], "and the interval is 1 min"),
        (&["--every=1h", "--for=7d", "--against=sim:aws-gp3"], "cannot be used with"),
        (&["--every=1h", "--for=7d", "--schedule=a b"], "cannot name a schedule"),
        (&["--every=1h", "--for=7d", "--schedule=a", "--label=schedule=b"], "names another schedule than a"),
        (&["--every=1h", "--for=7d", "--from=soon"], "'soon' is no time"),
        (&["--every=1h", "--for=7d", "--systemd"], "a timer cannot run a simulated schedule"),
        (&["--schedule=a"], "add --every and --for to begin one"),
        (&["--resume"], "a simulated schedule cannot be resumed"),
        (&["--resume", "--quick"], "cannot be used with"),
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

#[test]
fn systemd_accepts_the_units_of_odd_names() {
    let dir = scratch();
    let odd = dir.path().join("a b'\"%h $HOME;\\");
    std::fs::create_dir(&odd).unwrap();
    let target = "déjà vu\\";
    std::fs::create_dir(odd.join(target)).unwrap();
    let args = [
        "bench",
        "--every=1h",
        "--for=7d",
        "--schedule=odd",
        "--systemd",
        "--json",
        "--label",
        "say=\"100% $x\"\t",
    ];
    let printed = ended(program(&odd).args(args).arg(target).output().unwrap()).quietly();
    let units = json(&printed.stdout);
    let service = units["service"]["text"].as_str().unwrap();
    for part in ["\"déjà vu\\\\\"", "\"say=\\\"100%% $$x\\\"\\x09\"", "--due --from=20", "history.db"] {
        assert!(service.contains(part), "{part} is not in {service}");
    }
    let timer = units["timer"]["text"].as_str().unwrap();
    assert!(timer.contains("OnCalendar=*-*-* 00/1:00:00 UTC\n"), "{timer}");
    let Ok(version) = Command::new("systemd-analyze").arg("--version").output() else { return };
    assert!(version.status.success());
    for unit in ["service", "timer"] {
        let (name, text) = (units[unit]["name"].as_str().unwrap(), units[unit]["text"].as_str().unwrap());
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "fathom-odd.service", "fathom-odd.timer"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let complaints = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(!complaints.contains("fathom-odd"), "{complaints}");
    assert!(verified.status.success(), "{complaints}");
}
