//! Trends, searches, notes and differences of the stored runs.

use std::path::Path;

use serde_json::Value;

use crate::{on_both, run};

on_both!(
    a_metric_is_shown_over_the_stored_runs,
    a_change_is_named_first_with_its_place_and_size,
    runs_are_searched_by_what_is_known_of_them,
    a_text_lists_the_newest_hundred_runs,
    the_differences_of_two_runs_are_those_of_their_comparison,
    runs_are_exported_for_other_programs,
);

/// Keeps a table with this rate as run.
fn keep(dir: &Path, name: &str, iops: f64) {
    let table = format!("test,metric,value,unit\nrand-read,read.iops,{iops},\n");
    std::fs::write(dir.join(name), table).unwrap();
    run(dir, &["history", "import", name]).quietly();
}

fn json(dir: &Path, args: &[&str]) -> Value {
    let ended = run(dir, &[&["history"], args, &["--json"]].concat()).quietly();
    serde_json::from_str(&ended.stdout).unwrap()
}

fn text(dir: &Path, args: &[&str]) -> String {
    run(dir, &[&["history"], args].concat()).quietly().stdout
}

fn a_metric_is_shown_over_the_stored_runs(dir: &Path) {
    for iops in ["100", "101"] {
        let target = format!("sim:custom?iops={iops}");
        run(dir, &["bench", &target, "--quick", "--only=rand-read,lat-read", "--keep"]).quietly();
    }
    let trend = json(dir, &["trend", "iops", "--test", "rand-read"]);
    assert_eq!((&trend["schema"], &trend["metric"]), (&"fathom.trend/1".into(), &"total.iops".into()));
    let series = trend["series"].as_array().unwrap();
    assert_eq!(series.len(), 2);
    for (series, iops) in series.iter().zip([100.0, 101.0]) {
        assert_eq!((&series["test"], &series["verdict"]), (&"rand-read".into(), &"inconclusive".into()));
        assert!((series["points"][0]["value"].as_f64().unwrap() - iops).abs() < 1.0, "{series}");
    }
    // The test may stand before the metric.
    assert_eq!(json(dir, &["trend", "rand-read.iops"])["series"], trend["series"]);
    let types = json(dir, &["trend", "rand-read.iops", "--by", "type"]);
    assert_eq!(
        (&types["series"][0]["group"], types["series"].as_array().unwrap().len()),
        (&"custom".into(), 1)
    );
    let one = text(dir, &["trend", "read.lat_ns.mean", "--target", "sim:custom?iops=101", "--format", "csv"]);
    assert_eq!(one.lines().count(), 3, "{one}");
    assert!(one.starts_with("run,started_unix_ms,target,group,test,metric,value,level_median,"), "{one}");
    assert!(text(dir, &["trend", "read.iops"]).contains("101 IOPS"));
    let none = text(dir, &["trend", "read.iops", "--host", "web1"]);
    assert!(none.contains("No stored run has read.iops under --host web1. Tests that have it: "), "{none}");
    text(dir, &["rm", "1", "2"]);
    assert_eq!(text(dir, &["trend", "read.iops"]), "  No stored run has read.iops.\n");
    for (args, part) in [
        (&["history", "trend", "speed"][..], "'speed' names no metric"),
        (&["history", "trend", "read.iops", "--by", "day"], "use target, device, host, type"),
        (&["history", "trend", "a.read.iops", "--test", "b"], "name the test once"),
        (&["history", "list", "--since", "soon"], "cannot read the time 'soon'"),
    ] {
        let refused = run(dir, args);
        assert!(refused.code == Some(2) && refused.stderr.contains(part), "{refused:?}");
    }
}

fn a_change_is_named_first_with_its_place_and_size(dir: &Path) {
    for number in 0..24 {
        let level = if number < 12 { 3000.0 } else { 2640.0 };
        // Runs with the same figures would be one.
        keep(dir, "volume.csv", level + f64::from(number * 7 % 5) + f64::from(number) / 100.0);
    }
    let shown = text(dir, &["trend", "rand-read.read.iops", "--by", "device"]);
    let verdict = shown.lines().find(|line| !line.trim().is_empty() && !line.starts_with("Verdict")).unwrap();
    assert!(verdict.contains("rand-read: read IOPS fell by 12 %"), "{shown}");
    for part in
        ["between run 12 (", "and run 13 (", "from a median of 3,002 IOPS (12 runs)", "lines: medians"]
    {
        assert!(shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(part), "{part}: {shown}");
    }
    let trend = json(dir, &["trend", "rand-read.read.iops", "--by", "device"]);
    let change = &trend["series"][0]["changes"][0];
    assert_eq!((&change["last_before"], &change["first_after"]), (&12.into(), &13.into()), "{trend}");
    let ratio = |end: &str| change["ratio"][end].as_f64().unwrap();
    assert!(ratio("low") <= ratio("value") && ratio("value") <= ratio("high") && ratio("high") < 0.89);
    let markdown = text(dir, &["trend", "rand-read.read.iops", "--format", "markdown"]);
    assert!(markdown.contains("fell by 12 %"), "{markdown}");
}

fn runs_are_searched_by_what_is_known_of_them(dir: &Path) {
    let bench = |target: &str, label: &str| {
        let args = ["bench", target, "--quick", "--only=rand-read", "--keep", "--label", label];
        run(dir, &args).quietly();
    };
    bench("sim:custom?iops=100", "volume=a");
    bench("sim:aws-gp3?size=50GiB", "volume=b");
    assert_eq!(text(dir, &["note", "1", "before the kernel update"]), "Noted on run 1.\n");
    let ids = |args: &[&str]| -> Vec<u64> {
        let rows = json(dir, &[&["list"], args].concat());
        rows.as_array().unwrap().iter().map(|row| row["id"].as_u64().unwrap()).collect()
    };
    for (args, expected) in [
        (&["--text", "KERNEL"][..], &[1][..]),
        (&["--type", "aws-gp3"], &[2]),
        (&["--device", "sim:custom"], &[1]),
        (&["--label", "volume=b"], &[2]),
        (&["--test", "rand-read"], &[1, 2]),
        (&["--test", "seq-read"], &[]),
        (&["--since", "1h"], &[1, 2]),
        (&["--until", "2020-01-01"], &[]),
        (&["--newest", "1"], &[2]),
    ] {
        assert_eq!(ids(args), expected, "{args:?}");
    }
    assert!(text(dir, &["list"]).contains("before the kernel"));
    assert!(text(dir, &["list", "--host", "x"]).contains("No run matches --host x; the history has 2 runs."));
    assert_eq!(text(dir, &["note", "1", "--remove"]), "Removed 1 note of run 1.\n");
    let empty = run(dir, &["history", "note", "1", " "]);
    assert!(empty.code == Some(1) && empty.stderr.contains("the note is empty"), "{empty:?}");
    let size = json(dir, &["size"]);
    assert_eq!((&size["runs"], &size["schema"]), (&2.into(), &"fathom.history-size/1".into()));
    assert!(size["bytes"].as_u64().unwrap() > 4096);
}

fn a_text_lists_the_newest_hundred_runs(dir: &Path) {
    let rows: Vec<String> = (0..101).map(|number| format!("t{number},read.iops,{number}1,")).collect();
    for row in &rows {
        std::fs::write(
            dir.join(format!("{}.csv", &row[..row.find(',').unwrap()])),
            format!("test,metric,value,unit\n{row}\n"),
        )
        .unwrap();
    }
    let names: Vec<String> = (0..101).map(|number| format!("t{number}.csv")).collect();
    let mut args = vec!["history", "import"];
    args.extend(names.iter().map(String::as_str));
    run(dir, &args).quietly();
    let shown = text(dir, &["list"]);
    let rows_of = |shown: &str| shown.lines().filter(|line| line.contains(" import ")).count();
    assert!(shown.contains("--all lists the older ones too") && rows_of(&shown) == 100, "{shown}");
    assert_eq!(rows_of(&text(dir, &["list", "--all"])), 101);
    assert_eq!(json(dir, &["list"]).as_array().unwrap().len(), 101);
}

fn the_differences_of_two_runs_are_those_of_their_comparison(dir: &Path) {
    for args in [["sim:custom?iops=100", "--runtime=2s"], ["sim:custom?iops=150", "--runtime=3s"]] {
        run(dir, &[&["bench", "--only=rand-read", "--keep"], &args[..]].concat()).quietly();
    }
    let diff = json(dir, &["diff", "1", "2"]);
    let compared = run(dir, &["compare", "1", "2", "--json"]).quietly();
    let compared: Value = serde_json::from_str(&compared.stdout).unwrap();
    assert_eq!((&diff["schema"], &diff["differences"]), (&"fathom.diff/1".into(), &compared["differences"]));
    let (pairs, all) = (diff["pairs"].as_array().unwrap(), compared["pairs"].as_array().unwrap());
    assert!(!pairs.is_empty() && pairs.iter().all(|pair| all.contains(pair)));
    let iops = pairs.iter().find(|pair| pair["metric"] == "iops").unwrap();
    assert!((iops["ratio"].as_f64().unwrap() - 1.5).abs() < 0.05, "{iops}");
    let shown = text(dir, &["diff", "1", "2"]);
    assert!(shown.contains("Run 1 and run 2 differ in") && shown.contains("runtime"), "{shown}");
    let same = text(dir, &["diff", "1", "1"]);
    assert!(same.contains("differ in no condition and no figure"), "{same}");
}

fn runs_are_exported_for_other_programs(dir: &Path) {
    for iops in ["100", "200"] {
        let target = format!("sim:custom?iops={iops}");
        run(dir, &["bench", &target, "--quick", "--only=rand-read,lat-read", "--keep"]).quietly();
    }
    let csv = text(dir, &["export", "--format", "csv"]);
    assert!(
        csv.starts_with("run,started_unix_ms,host,device,volume_type,target,command,status,tags,test,"),
        "{csv}"
    );
    assert!(
        csv.lines().any(|line| line.starts_with("2,0,") && line.contains(",rand-read,read.iops,200")),
        "{csv}"
    );
    let one = text(dir, &["export", "1", "--format", "csv"]);
    assert!(one.lines().skip(1).all(|line| line.starts_with("1,")) && one.lines().count() > 10, "{one}");
    assert_eq!(text(dir, &["export", "--target", "sim:custom?iops=200"]).lines().count(), 1);
    let metrics = text(dir, &["export", "--format", "openmetrics"]);
    assert!(
        metrics.ends_with("\n# EOF\n") && metrics.contains("# UNIT fathom_test_latency_seconds seconds\n"),
        "{metrics}"
    );
    assert_eq!(text(dir, &["export", "--format", "hlog", "-o", "run.hlog"]), "");
    let log = std::fs::read_to_string(dir.join("run.hlog")).unwrap();
    assert!(
        log.starts_with("#[Histogram log format version 1.3]\n") && log.contains("\nTag=2.rand-read.read,"),
        "{log}"
    );
    for (args, part) in [
        (&["history", "export", "1", "--tag", "x"][..], "by number or by filters"),
        (&["history", "export", "1", "--format", "csv", "-o", "none/x"], "cannot write none/x"),
        (&["history", "export", "9", "--format", "csv"], "no run 9"),
    ] {
        let refused = run(dir, args);
        assert!(refused.code != Some(0) && refused.stderr.contains(part), "{refused:?}");
    }
}
