//! Runs of fio's command line that a signal ends: partial results, one document, and files that were being laid out.

use super::{Bench, END, await_growth, await_work, names_in};
use fathom_tests::{
    Cap, LoopDevice, MIB, Mount, Program, Throttle, fathom, fathom_under, loading, need, run, scratch,
};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A fio run of `engine` that only a signal ends, in `target`, where its files are made first.
fn endless_fio(home: &Path, target: &Path, engine: &str) -> Command {
    if names_in(target).is_empty() {
        let directory = format!("--directory={}", target.display());
        let mut layout = fathom(home);
        layout.args(["fio", "--name=endless", "--size=16m", "--rw=randrw", "--numjobs=2", "--create_only=1"]);
        run(layout.arg(directory)).assert_code(0);
    }
    let mut command = fathom(home);
    command.args(["fio", "--name=endless", "--size=16m", "--rw=randrw", "--time_based", "--runtime=300"]);
    command.args(["--numjobs=2", &format!("--ioengine={engine}"), "--iodepth=4"]);
    command.arg(format!("--directory={}", target.display()));
    command
}

#[test]
fn fio_reports_partial_results_after_a_signal() {
    need!(root);
    let _loading = loading();
    let (home, target) = (scratch(), scratch());
    for (engine, signal) in [
        ("psync", Signal::INT),
        ("psync", Signal::TERM),
        ("io_uring", Signal::INT),
        ("libaio", Signal::INT),
        ("mmap", Signal::TERM),
    ] {
        let number = signal.as_raw();
        let mut program = Program::start(&mut endless_fio(home.path(), target.path(), engine));
        await_work(&mut program);
        program.signal(signal);
        let ended = program.finish_within(END);
        ended.assert_code(128).assert_shown(&[
            &format!("fio: terminating on signal {number}"),
            "endless: (groupid=0, jobs=1): err= 0:",
            "read: IOPS=",
            "write: IOPS=",
            "Run status group 0 (all jobs):",
        ]);
        assert_eq!(ended.stderr, "", "{ended}");
    }
}

#[test]
fn fio_prints_one_document_after_a_signal() {
    need!(root);
    let _loading = loading();
    let (home, target) = (scratch(), scratch());
    let output = home.path().join("report.json");
    for to_file in [false, true] {
        let mut command = endless_fio(home.path(), target.path(), "psync");
        command.arg("--output-format=json");
        if to_file {
            command.arg(format!("--output={}", output.display()));
        }
        let mut program = Program::start(&mut command);
        await_work(&mut program);
        program.signal(Signal::INT);
        let ended = program.finish_within(END);
        ended.assert_code(128).assert_told(&["fio: terminating on signal 2"]);
        let document: Value = if to_file {
            assert_eq!(ended.stdout, "");
            let text = std::fs::read_to_string(&output).expect("the report was written");
            serde_json::from_str(&text).expect("the report is one document")
        } else {
            ended.document()
        };
        for job in 0..2 {
            let ios = document["jobs"][job]["read"]["total_ios"].as_u64();
            assert!(ios.is_some_and(|ios| ios > 0), "{document:#}");
        }
    }
}

#[test]
fn fio_ends_during_file_layout() {
    need!(root, limits, tool "losetup", tool "mkfs.ext4");
    let _loading = loading();
    let device = LoopDevice::new(64 * MIB);
    let mount = Mount::made(device.path(), "ext4");
    for (signal, format) in [(Signal::INT, "normal"), (Signal::TERM, "json"), (Signal::KILL, "normal")] {
        let home = scratch();
        let slow = Throttle::new(device.path(), &Cap::bytes_per_second(2 * MIB));
        let mut command = fathom_under(&slow, home.path());
        command.args(["fio", "--name=slow", "--size=32m", "--rw=randread"]);
        command.arg(format!("--output-format={format}"));
        command.arg(format!("--directory={}", mount.path().display()));
        let mut program = Program::start(&mut command);
        await_growth(&mut program, 3 * MIB);
        program.signal(signal);
        let ended = program.finish_within(END);
        drop(slow);
        match format {
            _ if signal == Signal::KILL => assert_eq!(ended.status.code(), None),
            "json" => assert!(ended.assert_code(128).document()["jobs"].is_array()),
            _ => {
                ended.assert_code(128).assert_shown(&["fio: terminating on signal 2"]);
            }
        }
        // Files of fio's jobs remain, but an incomplete one must not have its full size.
        let length = std::fs::metadata(mount.join("slow.0.0")).map_or(0, |file| file.len());
        assert!(length < 32 * MIB, "{length} bytes after {}", signal.as_raw());
        std::fs::remove_file(mount.join("slow.0.0")).ok();
    }
}

#[test]
fn a_kept_fio_run_is_incomplete_after_a_signal() {
    need!(root, tool "sqlite3");
    let _loading = loading();
    for signal in [Signal::INT, Signal::KILL] {
        let (bench, target) = (Bench::new(), scratch());
        let mut command = endless_fio(bench.home.path(), target.path(), "psync");
        let mut program = Program::start(command.arg("--keep"));
        await_work(&mut program);
        program.signal(signal);
        program.finish_within(END);
        bench.assert_integrity();
        assert_eq!(bench.listed_status(), "incomplete");
    }
}
