//! Every command, in every phase in which it may be for long: it ends when asked, by whichever signal, with its own exit code.
//!
//! No test measures how long that takes. A program that does not look for signals where it stands does not end at all
//! here, since each of these waits lasts for hours, and a program that its own time limit ended says so.

use std::process::{Command, Stdio};
use std::time::Duration;

use fathom_tests::{
    LoopDevice, MIB, Program, fathom, fathom_named, is_long, loading, need, run, scratch, wait_for,
};
use rustix::process::Signal;

use crate::killed::{await_growth, await_work};

/// How long something may take to begin, and to end: many times what a busy machine needs.
const BEGIN: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(60);

/// The sign that a program has reached the intended phase.
#[derive(Clone, Copy, Debug)]
enum Witness {
    /// It has a thread of this name.
    Thread(&'static str),
    /// It has moved that many bytes.
    Moved(u64),
    /// It has been at work for 0.2 s of processor time.
    Worked,
    /// It has printed this.
    Said(&'static str),
    /// It waits for a pipe without a reader.
    Full,
}

fn await_witness(program: &mut Program, witness: Witness) {
    let came = match witness {
        Witness::Moved(bytes) => return await_growth(program, bytes),
        Witness::Worked => return await_work(program),
        Witness::Thread(name) => wait_for(BEGIN, || program.has_ended() || has_task(program, "comm", name)),
        Witness::Said(text) => wait_for(BEGIN, || program.has_ended() || said(program).contains(text)),
        Witness::Full => wait_for(BEGIN, || program.has_ended() || has_task(program, "wchan", "pipe_write")),
    };
    assert!(came && !program.has_ended(), "{witness:?}: {program:?}: {}", said(program));
}

fn said(program: &Program) -> String {
    program.stdout() + &program.stderr()
}

/// True where `file` of one of its threads in `/proc` ends with `text`: `comm` is the name, `wchan` where it waits.
fn has_task(program: &Program, file: &str, text: &str) -> bool {
    let tasks = format!("/proc/{}/task", program.pid().as_raw_nonzero());
    let tasks = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join(file)).ok())
        .any(|it| it.trim().ends_with(text))
}

/// A command line, the sign of the intended phase, and the expected end.
type Case = (&'static [&'static str], Witness, i32);

/// A job of fio that is at this for hours, and a simulated one.
macro_rules! fio {
    ($($more:literal),*) => {
        &["fio", "--name=waits", "--filename=f", "--size=1m", "--rw=randread", "--time_based", "--runtime=9h", $($more),*]
    };
}
macro_rules! fio_sim {
    ($volume:literal, $($more:literal),*) => {
        &["fio", "--name=a", concat!("--filename=sim:custom?", $volume), "--time_based", $($more),*]
    };
}

use Witness::{Full, Moved, Said, Thread, Worked};

const FIO: [Case; 17] = [
    (fio!("--startdelay=9h"), Thread("waits"), 128),
    (fio!("--ramp_time=9h"), Thread("waits"), 128),
    (fio!("--thinktime=9h"), Thread("waits"), 128),
    (fio!("--rate_iops=1"), Thread("waits"), 128),
    (fio!("--rate=1", "--iodepth=8", "--ioengine=libaio"), Thread("waits"), 128),
    (fio!("--ioengine=null", "--thinktime=1h"), Thread("waits"), 128),
    (fio!("--ioengine=null", "--exec_prerun=sleep 9h"), Thread("waits"), 128),
    (
        &["fio", "--name=waits", "--ioengine=null", "--size=1m", "--exec_postrun=sleep 9h"],
        Thread("waits"),
        128,
    ),
    (&["fio", "--name=a", "--filename=f", "--size=3g", "--rw=read", "--direct=1"], Moved(8 * MIB), 128),
    (&["fio", "-"], Thread("signals"), 128),
    (fio_sim!("bandwidth=1GiB", "--rw=trim", "--runtime=100d"), Worked, 128),
    (fio_sim!("latency_spread=1", "--rw=randread", "--runtime=100d"), Worked, 128),
    (fio_sim!("iops=1000000000000000", "--rw=randread", "--runtime=100d"), Worked, 128),
    (fio_sim!("bandwidth=1", "--rw=randread", "--iodepth=64", "--runtime=1"), Worked, 128),
    (fio_sim!("iops=1000&first_touch=1000000", "--rw=randread", "--iodepth=64", "--runtime=1"), Worked, 128),
    (fio_sim!("iops=100", "--rw=randread", "--startdelay=99999d", "--runtime=1"), Worked, 128),
    (fio_sim!("iops=1&stall=1s+inf", "--rw=randread", "--runtime=99999d"), Worked, 128),
];

const OWN: [Case; 12] = [
    (&["simulate", "custom?iops=100", "--profile", "oltp", "--for", "3650d"], Worked, 130),
    (&["simulate", "custom?bandwidth=1GiB", "--job", "trim.fio"], Worked, 130),
    (&["simulate", "custom?iops=100", "--trace", "busy.iolog", "--for", "3650d"], Worked, 130),
    (&["simulate", "custom?iops=100", "--trace", "-"], Thread("signals"), 130),
    (&["simulate", "custom?iops=100", "--job", "-"], Thread("signals"), 130),
    (&["monitor", "-i", "1h", "."], Thread("signals"), 130),
    (&["ping", "-i", "1h", "--buffered", "."], Said("time="), 130),
    (
        &["bench", "--engine=psync", "--buffered", "--size=64m", "--runtime=1h", "--until-steady", "."],
        Moved(256 * MIB),
        130,
    ),
    (&["sweep", "--engine=psync", "--buffered", "--size=64m", "--budget=9h", "."], Moved(256 * MIB), 130),
    (&["identify", "--engine=psync", "--buffered", "--size=64m", "--budget=9h", "."], Moved(64 * MIB), 130),
    (&["surface", "--engine=psync", "--buffered", "--size=64m", "--budget=9h", "."], Moved(256 * MIB), 130),
    (&["prepare", "--buffered", "--size=3g", "new"], Moved(8 * MIB), 130),
];

/// Its standard output goes to a pipe without a reader.
const UNREAD: [Case; 3] = [
    (&["monitor", "--json", "-i", "10ms", "."], Full, 130),
    (&["ping", "-i", "0", "--buffered", "."], Full, 130),
    (
        &["fio", "--name=a", "--ioengine=null", "--size=1m", "--numjobs=64", "--output-format=json+"],
        Full,
        128,
    ),
];

/// A command in its own directory, with the files that the cases name.
fn command(home: &std::path::Path, words: &[&str]) -> Command {
    let files = [
        ("trim.fio", "[a]\nrw=trim\n"),
        ("busy.iolog", "fio version 3 iolog\n0 /t add\n0 /t read 0 4096\n10000 /t read 4096 4096\n"),
    ];
    for (name, text) in files {
        std::fs::write(home.join(name), text).expect("the directory is new and ours");
    }
    let mut command = fathom(home);
    // Whoever reads standard input waits for it.
    command.args(words).current_dir(home).stdin(Stdio::piped());
    command
}

/// Ends each command by a signal: one of three, which take turns, or by all of them where the whole test runs.
fn check(cases: &[Case], start: fn(&mut Command) -> Program) {
    let signals = [Signal::INT, Signal::TERM, Signal::HUP];
    for (index, (words, witness, code)) in cases.iter().enumerate() {
        let signals = if is_long() { &signals[..] } else { &signals[index % 3..][..1] };
        let homes: Vec<_> = signals.iter().map(|_| scratch()).collect();
        let mut programs: Vec<Program> =
            homes.iter().map(|home| start(&mut command(home.path(), words))).collect();
        for (program, signal) in programs.iter_mut().zip(signals) {
            await_witness(program, *witness);
            program.signal(*signal);
        }
        for (program, signal) in programs.into_iter().zip(signals) {
            let ended = program.finish_within(END);
            assert_eq!(ended.status.code(), Some(*code), "{signal:?}: {ended}");
            // A pipe without a reader has no other end.
            let was_forced = ended.stderr.contains("stopped immediately");
            assert!(matches!(witness, Full) || !was_forced, "{signal:?}: {ended}");
        }
    }
}

#[test]
fn fio_ends_after_a_signal_in_every_phase() {
    let _loading = loading();
    check(&FIO, Program::start);
}

#[test]
fn own_commands_end_after_a_signal_in_every_phase() {
    let _loading = loading();
    check(&OWN, Program::start);
}

#[test]
fn a_reader_that_does_not_read_delays_nothing() {
    let _loading = loading();
    check(&UNREAD, Program::start_unread);
}

#[test]
fn ioping_exits_with_success_after_a_signal() {
    let _loading = loading();
    let home = scratch();
    let mut command = Command::new(fathom_named(home.path(), "ioping"));
    let mut program = Program::start(command.args(["-i", "1h", "."]).current_dir(home.path()));
    await_witness(&mut program, Said("time="));
    program.signal(Signal::TERM);
    program.finish_within(END).assert_code(0);
}

/// If every read fails immediately, nothing waits.
#[test]
fn a_scan_of_an_unresponsive_device_ends_after_a_signal() {
    need!(root, tool "losetup");
    let _loading = loading();
    let (home, gone) = (scratch(), LoopDevice::new(1 << 40));
    gone.truncate_backing(0);
    let path = gone.path().display().to_string();
    let mut program = Program::start(fathom(home.path()).args(["surface", "--scan", &path]));
    // Most of the processor time goes into the search for the sectors that fail, after the first block.
    await_work(&mut program);
    program.signal(Signal::INT);
    let ended = program.finish_within(END);
    ended.assert_code(130).assert_shown(&["Kept as run"]);
    assert!(!ended.stderr.contains("stopped immediately"), "{ended}");
}

#[test]
fn a_locked_history_does_not_delay_the_end() {
    let _loading = loading();
    let home = scratch();
    let history = home.path().join(".local/share/fathom/history.db");
    let null = ["fio", "--name=a", "--ioengine=null", "--size=1m", "--keep"];
    run(fathom(home.path()).args(null)).assert_code(0);
    let database = std::fs::File::options().write(true).read(true).open(&history).expect("the run was kept");
    rustix::fs::fcntl_lock(&database, rustix::fs::FlockOperation::NonBlockingLockExclusive).expect("unused");
    let mut listing = Program::start(fathom(home.path()).args(["history", "list"]));
    let holds = |program: &Program| {
        let open = format!("/proc/{}/fd", program.pid().as_raw_nonzero());
        let open = std::fs::read_dir(open).into_iter().flatten().flatten();
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|path| path == history)
    };
    assert!(wait_for(BEGIN, || holds(&listing) || listing.has_ended()) && !listing.has_ended());
    listing.signal(Signal::TERM);
    listing.finish_within(END).assert_code(130);
    // A run that could not be stored in the history has a side file.
    let mut bench = command(home.path(), &["bench", "--buffered", "--quick", "--size=16m", "."]);
    let mut bench = Program::start(&mut bench);
    assert!(wait_for(BEGIN, || holds(&bench) || bench.has_ended()) && !bench.has_ended());
    bench.signal(Signal::TERM);
    let ended = bench.finish_within(END);
    ended.assert_code(130).assert_told(&["is kept in"]);
    assert!(!ended.stderr.contains("stopped immediately"), "{ended}");
}

#[test]
fn signals_ignored_at_the_start_stay_ignored() {
    let _loading = loading();
    let home = scratch();
    let ping = command(home.path(), &["ping", "-i", "1ms", "--buffered", "."]);
    // As nohup does it.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(ping.get_program()).args(ping.get_args());
    let mut program = Program::start(shell.current_dir(home.path()));
    await_witness(&mut program, Said("time="));
    program.signal(Signal::HUP);
    program.signal(Signal::USR1);
    // Taken later than the other, so that the other had its chance.
    await_witness(&mut program, Said("requests so far"));
    program.signal(Signal::INT);
    program.finish_within(END).assert_code(130);
}

#[test]
fn a_progress_signal_prints_progress_and_the_run_continues() {
    let _loading = loading();
    for (words, line) in [
        (&["ping", "-i", "1h", "--buffered", "."][..], "ping: 1 requests so far"),
        (&["monitor", "-i", "10ms", "."], " intervals so far"),
        (
            &["bench", "--engine=psync", "--buffered", "--size=64m", "--runtime=1h", "."],
            "fathom: running for ",
        ),
        (&["simulate", "custom?iops=100", "--profile", "oltp", "--for", "3650d"], "fathom: running for "),
    ] {
        let home = scratch();
        let mut program = Program::start(&mut command(home.path(), words));
        await_witness(&mut program, Thread("signals"));
        // Before the run no handler exists, so the signal is repeated.
        let is_told = wait_for(BEGIN, || {
            program.signal(Signal::USR1);
            program.has_ended() || program.stderr().contains(line)
        });
        assert!(is_told && !program.has_ended(), "{words:?}: {}", said(&program));
        program.signal(Signal::TERM);
        program.finish_within(END).assert_code(130);
    }
}

#[test]
fn fio_prints_its_report_so_far_after_a_progress_signal() {
    let _loading = loading();
    let home = scratch();
    let words = fio!("--rate_iops=100", "--output-format=normal,json");
    let mut program = Program::start(&mut command(home.path(), words));
    await_witness(&mut program, Thread("waits"));
    program.signal(Signal::USR1);
    await_witness(&mut program, Said("Run status group 0"));
    assert!(!program.stdout().contains("terminating"));
    program.signal(Signal::TERM);
    let ended = program.finish_within(END);
    ended.assert_code(128);
    assert_eq!(ended.stdout.matches("Run status group 0").count(), 2, "{ended}");
    assert_eq!(ended.stdout.matches("\"fio version\"").count(), 2, "{ended}");
    assert!(!ended.stdout.contains("err=22"), "{ended}");
}
