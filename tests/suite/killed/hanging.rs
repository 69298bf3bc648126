//! Signals on a device that no longer responds.

use super::{BEGIN, Bench, END, await_work, moved, status_of, two_tests};
use fathom_tests::{Ended, MIB, NbdDisk, Program, fathom, loading, need, scratch, wait_for};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Starts `command`, hangs the disk under it once it has moved something, and signals it.
fn hung(command: &mut Command, disk: &NbdDisk) -> Program {
    let mut program = Program::start(command);
    await_work(&mut program);
    disk.hang();
    // Requests in flight complete or not; a moment later there is no more I/O. On a busy machine nothing moves for some
    // ms although the disk has not heard of it yet.
    let (mut last, mut still) = (moved(&program), 0);
    wait_for(Duration::from_secs(5), || {
        let now = moved(&program);
        still = if now == last { still + 1 } else { 0 };
        last = now;
        still == 40
    });
    program.signal(Signal::INT);
    program
}

fn fio_on(disk: &NbdDisk, home: &Path, engine: &str) -> Command {
    let mut command = fathom(home);
    command.args(["fio", "--name=hung", "--rw=randread", "--direct=1", "--bs=4k", "--size=16m"]);
    command.args(["--time_based", "--runtime=300", "--iodepth=4", &format!("--ioengine={engine}")]);
    command.arg(format!("--filename={}", disk.path().display()));
    command
}

#[test]
fn a_device_that_hangs_does_not_delay_the_report() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _loading = loading();
    let engines = ["psync", "io_uring", "libaio"];
    let (homes, disks) = (engines.map(|_| scratch()), engines.map(|_| NbdDisk::new(16 * MIB, &[], &[])));
    let mut programs: Vec<Program> = Vec::new();
    for (engine, (home, disk)) in engines.iter().zip(homes.iter().zip(&disks)) {
        programs.push(hung(&mut fio_on(disk, home.path(), engine), disk));
    }
    for (program, disk) in programs.into_iter().zip(&disks) {
        let ended = wait_for_report(program, disk);
        ended.assert_code(128).assert_shown(&["fio: terminating on signal 2", "read: IOPS="]);
        ended.assert_told(&["hung", "thread", "stuck in the kernel", "does not respond"]);
    }
}

/// Its end; a process cannot leave the kernel before its requests have, so the disk answers again once the report is
/// there.
fn wait_for_report(mut program: Program, disk: &NbdDisk) -> Ended {
    let is_reported =
        wait_for(END, || program.has_ended() || program.stderr().contains("stuck in the kernel"));
    disk.resume();
    assert!(is_reported, "no report:\n{}\n{}", program.stdout(), program.stderr());
    program.finish_within(END)
}

#[test]
fn a_bench_on_a_hanging_device_ends_and_keeps_its_results() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", tool "sqlite3", path "/dev/fuse");
    let _loading = loading();
    let bench = Bench::new();
    let disk = NbdDisk::new(32 * MIB, &[], &[]);
    std::fs::write(bench.home.path().join("suite.toml"), two_tests("randread")).expect("it is ours");
    let mut program = Program::start(&mut bench.command(&disk.path()));
    bench.await_endless(&mut program);
    disk.hang();
    program.signal(Signal::INT);
    let is_reported = wait_for(END, || program.has_ended() || program.stdout().contains("Kept as run 1"));
    disk.resume();
    assert!(is_reported, "no report:\n{}\n{}", program.stdout(), program.stderr());
    let ended = program.finish_within(END);
    ended.assert_code(130).assert_shown(&["stuck in the kernel"]);
    let kept = bench.newest().expect("the run is kept");
    assert_eq!(status_of(&kept, "short").as_deref(), Some("complete"), "{kept:#}");
    bench.assert_integrity();
}

#[test]
fn a_second_signal_ends_a_hanging_run_immediately() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _loading = loading();
    let home = scratch();
    let disk = NbdDisk::new(16 * MIB, &[], &[]);
    let program = hung(&mut fio_on(&disk, home.path(), "psync"), &disk);
    // Two signals before the first is handled count as one, so a user repeats it.
    let is_told = wait_for(Duration::from_secs(3), || {
        program.signal(Signal::INT);
        program.stderr().contains("stopped immediately")
    });
    disk.resume();
    assert!(is_told, "{}", program.stderr());
    program.finish_within(END).assert_code(128).assert_told(&["stopped immediately"]);
}

#[test]
fn signals_are_handled_while_the_main_thread_hangs() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _loading = loading();
    let home = scratch();
    let disk = NbdDisk::new(16 * MIB, &[], &[]);
    disk.hang();
    let mut program = Program::start(&mut fio_on(&disk, home.path(), "psync"));
    // Then it opens the target, which does not respond.
    let has_begun = wait_for(BEGIN, || program.stdout().contains("Starting 1 process"));
    let is_told = wait_for(END, || {
        program.signal(Signal::INT);
        program.stderr().contains("stopped immediately") || program.has_ended()
    });
    disk.resume();
    assert!(has_begun && is_told, "{}\n{}", program.stdout(), program.stderr());
    program.finish_within(END).assert_code(128).assert_told(&["stopped immediately"]);
}
