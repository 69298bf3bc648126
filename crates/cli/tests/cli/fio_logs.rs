//! The log files of `fathom fio` add up to its report, on a volume whose every number is exact.

use serde_json::Value;

use crate::{files_in, run, scratch};

/// A mixed load in two clones for ten simulated seconds, with every log.
const JOB: [&str; 14] = [
    "fio",
    "--name=a",
    "--filename=sim:custom?size=1GiB&iops=2000&latency=1ms",
    "--rw=randrw",
    "--bs=4k",
    "--iodepth=4",
    "--numjobs=2",
    "--runtime=10",
    "--time_based",
    "--output-format=json",
    "--write_bw_log=x",
    "--write_iops_log=x",
    "--write_lat_log=x",
    "--write_hist_log=x",
];

/// A log as numbers; directions are those of `read` and `write`.
fn log(dir: &std::path::Path, name: &str) -> Vec<Vec<u64>> {
    let text = std::fs::read_to_string(dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    text.lines().map(|line| line.split(", ").map(|field| field.parse().unwrap()).collect()).collect()
}

/// The report and the lines of the logs of both clones of `kind`.
fn logged(extra: &[&str], kinds: &[&str]) -> (Value, Vec<Vec<Vec<Vec<u64>>>>) {
    let dir = scratch();
    let args: Vec<&str> = JOB.iter().copied().chain(extra.iter().copied()).collect();
    let ended = run(dir.path(), &args).quietly();
    let document = serde_json::from_str(&ended.stdout).unwrap();
    let logs = kinds
        .iter()
        .map(|kind| (1..=2).map(|worker| log(dir.path(), &format!("x_{kind}.{worker}.log"))).collect())
        .collect();
    (document, logs)
}

fn of(lines: &[Vec<u64>], direction: u64) -> impl Iterator<Item = &Vec<u64>> {
    lines.iter().filter(move |line| line[if line.len() > 100 { 1 } else { 2 }] == direction)
}

#[test]
fn logs_of_requests_add_up_to_the_report() {
    let (document, logs) = logged(&[], &["bw", "iops", "clat", "lat", "clat_hist"]);
    for worker in 0..2 {
        for (direction, op) in ["read", "write"].into_iter().enumerate() {
            let reported = &document["jobs"][worker][op];
            let total = reported["total_ios"].as_u64().unwrap();
            assert!(total > 1_000, "{op}: {total}");
            let direction = direction as u64;
            for kind in [0, 1] {
                let lines: Vec<&Vec<u64>> = of(&logs[kind][worker], direction).collect();
                assert_eq!(lines.len() as u64, total);
                assert_eq!(lines.iter().map(|line| line[3]).sum::<u64>(), total * 4096);
            }
            for (kind, name) in [(2, "clat_ns"), (3, "lat_ns")] {
                let sum: u64 = of(&logs[kind][worker], direction).map(|line| line[1]).sum();
                let mean = reported[name]["mean"].as_f64().unwrap();
                assert!((sum as f64 / total as f64 - mean).abs() < 1.0, "{name}: {sum} of {total} is {mean}");
                let greatest = of(&logs[kind][worker], direction).map(|line| line[1]).max();
                assert_eq!(greatest, reported[name]["max"].as_u64());
            }
            let counted: u64 =
                of(&logs[4][worker], direction).map(|line| line[3..].iter().sum::<u64>()).sum();
            assert_eq!(counted, total);
        }
    }
}

#[test]
fn logs_of_windows_add_up_to_the_report() {
    let extra = ["--log_avg_msec=1000", "--log_hist_msec=1000"];
    let (document, logs) = logged(&extra, &["bw", "iops", "clat_hist"]);
    for worker in 0..2 {
        for (direction, op) in ["read", "write"].into_iter().enumerate() {
            let reported = &document["jobs"][worker][op];
            for (kind, total) in [(0, "io_kbytes"), (1, "total_ios")] {
                let total = reported[total].as_u64().unwrap() as f64;
                let mut since = 0;
                let mut sum = 0.0;
                for line in of(&logs[kind][worker], direction as u64) {
                    sum += (line[1] * (line[0] - since)) as f64 / 1_000.0;
                    since = line[0];
                }
                assert!((sum / total - 1.0).abs() < 0.005, "{op}: {sum} of {total}");
                assert_eq!(of(&logs[kind][worker], direction as u64).count(), 10);
            }
            let lines: Vec<&Vec<u64>> = of(&logs[2][worker], direction as u64).collect();
            let counted: u64 = lines.iter().map(|line| line[3..].iter().sum::<u64>()).sum();
            assert_eq!(counted, reported["total_ios"].as_u64().unwrap());
            assert!((10..=11).contains(&lines.len()), "{} histograms", lines.len());
        }
    }
}

#[test]
fn clones_can_share_their_logs() {
    let dir = scratch();
    let args: Vec<&str> = JOB.iter().copied().chain(["--per_job_logs=0", "--log_avg_msec=500"]).collect();
    run(dir.path(), &args).quietly();
    let names: Vec<_> =
        ["bw", "clat", "clat_hist", "iops", "lat", "slat"].map(|kind| format!("x_{kind}.log")).into();
    let made: Vec<String> =
        files_in(dir.path()).iter().map(|path| path.file_name().unwrap().display().to_string()).collect();
    assert_eq!(made, names);
    assert_eq!(log(dir.path(), "x_iops.log").len(), 2 * 2 * 20);
}

#[test]
fn a_refused_run_leaves_older_logs() {
    let dir = scratch();
    std::fs::write(dir.path().join("x_bw.1.log"), "older").unwrap();
    for target in ["--filename=/dev/nonexistent", "--filename=/dev/missing/data"] {
        let ended = run(
            dir.path(),
            &["fio", "--name=a", "--size=1m", target, "--write_bw_log=x", "--write_iops_log=x"],
        );
        assert_eq!(ended.code, Some(1));
        let files = files_in(dir.path());
        assert_eq!(files, [dir.path().join("x_bw.1.log")], "{target}");
        assert_eq!(std::fs::read_to_string(&files[0]).unwrap(), "older");
    }
}

#[test]
fn a_log_that_cannot_be_made_ends_the_run_before_it_begins() {
    let dir = scratch();
    let ended = run(dir.path(), &["fio", "--name=a", "--size=1m", "--write_bw_log=nowhere/x"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("cannot open the log nowhere/x_bw.1.log"), "{}", ended.stderr);
    assert_eq!(files_in(dir.path()).len(), 0);
}
