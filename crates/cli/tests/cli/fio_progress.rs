//! What `fathom fio` prints while it runs, and in which formats, on a volume whose every number is exact.

use serde_json::Value;

use crate::{files_in, run, scratch};

const VOLUME: &str = "--filename=sim:custom?size=1GiB&iops=2000&latency=1ms";

fn printed(extra: &[&str]) -> String {
    let args: Vec<&str> = ["fio", "--name=a", VOLUME, "--rw=randread", "--iodepth=8"]
        .into_iter()
        .chain(extra.iter().copied())
        .collect();
    run(scratch().path(), &args).quietly().stdout
}

/// Seconds left, as the lines of progress say after each second.
fn estimates(text: &str) -> Vec<u64> {
    let part = |line: &str| {
        let clock = line.split_once("[eta ")?.1.split_once(']')?.0;
        let (minutes, seconds) = clock.strip_suffix('s')?.split_once("m:")?;
        Some(minutes.parse::<u64>().ok()? * 60 + seconds.parse::<u64>().ok()?)
    };
    text.lines().filter(|line| line.starts_with("Jobs: 1 (f=1)")).filter_map(part).collect()
}

#[test]
fn the_estimated_end_is_right_after_a_third_of_the_run() {
    // 60 s at 2,000 requests of 4 KiB per second.
    for end in [
        &["--runtime=60", "--time_based"][..],
        &["--size=480000k", "--io_size=480000k"],
        &["--rate_iops=1000", "--io_size=240000k"],
    ] {
        let args: Vec<&str> =
            ["--eta=always", "--eta-newline=1"].into_iter().chain(end.iter().copied()).collect();
        let estimates = estimates(&printed(&args));
        assert!((58..=61).contains(&estimates.len()), "{end:?}: {estimates:?}");
        let total = 60.0;
        for (second, &left) in (1..).zip(&estimates).skip(19) {
            let error = (f64::from(second) + left as f64) / total - 1.0;
            assert!(error.abs() < 0.1, "{end:?}: {left} s left after {second} s");
        }
    }
}

#[test]
fn the_line_of_progress_has_the_limits_of_rates() {
    let second = |extra: &[&str]| {
        let text = printed(&[extra, &["--eta=always", "--eta-newline=1", "--runtime=5"]].concat());
        text.split(['\n', '\r'])
            .filter(|line| line.starts_with("Jobs:"))
            .nth(1)
            .unwrap_or_default()
            .to_owned()
    };
    assert!(second(&["--rate_iops=500"]).starts_with("Jobs: 1 (f=1), 0-500 IOPS: [r(1)][30.0%][r="));
    assert!(second(&["--rate=400k"]).starts_with("Jobs: 1 (f=1), 0B/s-400KiB/s: [r(1)]"));
    assert!(
        second(&[]).starts_with("Jobs: 1 (f=1): [r(1)][30.0%][r=8000KiB/s][r=2000 IOPS][eta 00m:04s]"),
        "{}",
        second(&[])
    );
}

#[test]
fn reports_come_at_intervals_and_at_the_end() {
    let text = printed(&["--runtime=5", "--time_based", "--status-interval=2", "--output-format=json"]);
    let documents: Vec<Value> =
        serde_json::Deserializer::from_str(&text).into_iter().collect::<Result<_, _>>().unwrap();
    let runtimes: Vec<u64> =
        documents.iter().map(|document| document["jobs"][0]["read"]["runtime"].as_u64().unwrap()).collect();
    assert_eq!(runtimes.len(), 3);
    assert_eq!(runtimes[..2], [2_000, 4_000]);
}

#[test]
fn terse_lines() {
    let mut lines = Vec::new();
    for version in 2..=5 {
        let args = ["--runtime=5", "--time_based", "--description=words", "--output-format=terse"];
        lines.push(printed(&[&args[..], &[&format!("--terse-version={version}")]].concat()));
    }
    insta::assert_snapshot!("sim_fio_terse", lines.concat());
    let minimal = printed(&["--runtime=5", "--time_based", "--minimal"]);
    assert_eq!(minimal.split(';').count(), 121);
    let appended = printed(&["--runtime=5", "--time_based", "--append-terse"]);
    let terse = appended.lines().position(|line| line.starts_with("3;fio-3.42;a;0;0;"));
    let text = appended.lines().position(|line| line.starts_with("a: (groupid=0"));
    assert!(terse.is_some() && terse < text, "{appended}");
}

#[test]
fn figures_and_directions_are_as_asked_for() {
    let args = [
        "--rw=randrw",
        "--runtime=5",
        "--time_based",
        "--unified_rw_reporting=both",
        "--significant_figures=6",
    ];
    insta::assert_snapshot!("sim_fio_unified", printed(&args));
    let text = printed(&["--rw=randrw", "--runtime=5", "--unified_rw_reporting=mixed", "--unit_base=1"]);
    assert!(text.contains("  mixed: IOPS=") && text.contains("  MIXED: bw=62.5Mibit/s"), "{text}");
    assert!(!text.contains("READ:") && !text.contains("  read:"), "{text}");
    let json = printed(&["--rw=randrw", "--runtime=5", "--unified_rw_reporting=1", "--output-format=json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    let job = document["jobs"][0].as_object().unwrap();
    assert!(job.contains_key("mixed") && !job.contains_key("read") && !job.contains_key("sync"));
    let samples = printed(&[
        "--runtime=6", "--time_based", "--bwavgtime=1000", "--iopsavgtime=2000", "--output-format=json",
    ]);
    let document: Value = serde_json::from_str(&samples).unwrap();
    let read = &document["jobs"][0]["read"];
    assert_eq!((read["bw_samples"].as_u64(), read["iops_samples"].as_u64()), (Some(6), Some(3)));
    let decimal = printed(&["--kb_base=1000", "--size=4m", "--bs=4k"]);
    assert!(decimal.contains("bs=(R) 4000B-4000B") && decimal.contains("(4000kB/"), "{decimal}");
    let none = printed(&["--stats=0", "--runtime=1"]);
    assert!(!none.contains("IOPS="), "{none}");
}

#[test]
fn a_trigger_ends_the_run_and_its_command_runs() {
    let dir = scratch();
    let args = [
        "fio", "--name=a", VOLUME, "--runtime=3600", "--time_based", "--output-format=json",
        "--bandwidth-log",
    ];
    let trigger = ["--trigger-timeout=2", "--trigger=touch triggered"];
    let ended = run(dir.path(), &[&args[..], &trigger].concat()).quietly();
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(document["jobs"][0]["read"]["runtime"].as_u64().unwrap() < 3_600_000);
    assert_eq!(files_in(dir.path()).iter().filter(|path| path.ends_with("triggered")).count(), 1);
    let log = std::fs::read_to_string(dir.path().join("agg-read_bw.log")).unwrap();
    assert!(log.starts_with("500, 4000, 0, 0, 0\n1000, "), "{log:.100}");
}
