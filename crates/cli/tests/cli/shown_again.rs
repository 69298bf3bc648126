//! `history show` prints what the command printed.

use std::path::Path;

use crate::{run, scratch};

const VOLUME: &str = "sim:custom?iops=700&bandwidth=20MiB&latency=500us&parallelism=64&size=1GiB";

const COMMANDS: [&[&str]; 7] = [
    &["bench", "--quick", "--only=lat-read,commit,rand-mixed", "--expect", "lat-read.iops>=5000"],
    &["sweep", "--budget=10s", "--expect=p99<5ms", "--expect=iops>=600"],
    &["surface", "--points=10", "--budget=10s"],
    &["identify", "--budget=5m"],
    &["prepare", "--fill", "--touch"],
    &["ping", "-c", "30", "-i", "10ms", "--expect", "p50<5ms"],
    &["simulate", "--profile=oltp", "--for=1m", "aws-io1?size=100GiB&iops=2000"],
];

/// Standard output of a command that is kept, and that of `history show` for its run.
fn printed_and_shown(dir: &Path, command: &[&str], format: &[&str], shown_as: &str) -> (String, String) {
    let printed = run(dir, &[command, format].concat());
    assert!(matches!(printed.code, Some(0 | 3)), "{command:?}: {printed:?}");
    let shown = run(dir, &["history", "show", "--format", shown_as]).quietly().stdout;
    assert!(shown.lines().count() > 1, "{command:?}: {shown}");
    (printed.stdout, shown)
}

#[test]
fn every_run_is_shown_again_as_it_was_printed() {
    let dir = scratch();
    for command in COMMANDS {
        let command = [command, &["--keep", VOLUME]].concat();
        for format in ["markdown", "csv", "jsonl", "json"] {
            let (printed, shown) = printed_and_shown(dir.path(), &command, &["--format", format], format);
            assert_eq!(printed, shown, "{command:?} as {format}");
        }
        let (printed, shown) = printed_and_shown(dir.path(), &command, &[], "text");
        let (report, _) = printed.split_once("\nKept as run ").expect("it says where the run is kept");
        assert!(report.ends_with(&shown), "{command:?}:\n{report}\n--- and again:\n{shown}");
    }
}

#[test]
fn a_simulation_of_years_is_shown_again_as_it_was_printed() {
    let dir = scratch();
    // Nine years apart.
    let trace = "fio version 3 iolog\n0 /t read 0 4096\n283824000000000 /t read 0 4096\n";
    std::fs::write(dir.path().join("t"), trace).unwrap();
    let command = ["simulate", "--keep", "--trace=t", "custom?iops=100&latency=1ms&size=1GiB"];
    for format in ["markdown", "csv", "json"] {
        let (printed, shown) = printed_and_shown(dir.path(), &command, &["--format", format], format);
        assert_eq!(printed, shown, "{format}");
    }
}

#[test]
fn a_monitored_device_is_shown_again_as_it_was_printed() {
    let first = std::fs::read_dir("/sys/block").ok().and_then(|mut names| names.next()?.ok());
    let Some(device) = first.and_then(|entry| entry.file_name().into_string().ok()) else { return };
    let dir = scratch();
    let command = ["monitor", "--keep", "--count=2", "--interval=50ms", &device];
    for format in ["markdown", "csv", "json"] {
        let (printed, shown) = printed_and_shown(dir.path(), &command, &["--format", format], format);
        assert_eq!(printed, shown, "{format}");
    }
    let (printed, shown) = printed_and_shown(dir.path(), &command, &[], "text");
    let (lines, _) = printed.split_once("\nKept as run ").expect("it says where the run is kept");
    assert_eq!(lines, shown);
    run(dir.path(), &["history", "trend", "iops", "--test", &device]).quietly();
}

#[test]
fn a_run_of_fio_is_shown_again_as_it_was_printed() {
    let dir = scratch();
    let target = format!("--filename={VOLUME}");
    let command = [
        "fio", "--keep", "--name=t", &target, "--rw=randrw", "--runtime=2", "--time_based",
        "--ioengine=libaio",
    ];
    for (format, shown_as) in [("normal", "text"), ("json", "json")] {
        let option = format!("--output-format={format}");
        let (printed, shown) = printed_and_shown(dir.path(), &command, &[&option], shown_as);
        assert_eq!(printed, shown, "{format}");
    }
}
