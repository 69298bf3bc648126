//! The view at the sizes of common terminals, with and without colour, and with text of others.

use fathom_analysis::monitor::{
    DeviceActivity, InFlight, MonitorInterval, OpActivity, ProcessActivity, WatchedDevice,
};
use fathom_analysis::ping::{PingAccount, PingCounts, PingHow, PingProgress};
use fathom_model::{Nanos, Op, PerOp};
use fathom_record::load::{ObservedLoad, OpLoad};
use fathom_record::{
    Activity, Finding, HostRecord, Interval, Latency, PingActivity, RunHeader, Severity, TestRecord,
    TestStatus,
};
use fathom_report::live::{LivePing, LiveTest, MonitorTick, PingEnd};
use fathom_stats::{DeviceTick, DiskCounters, HostCounters, HostInterval, Snapshot, histogram};

use super::*;

const TICK_NS: u64 = 500_000_000;
const COLOURED: Look = Look { colour: true, unicode: true };
const PLAIN: Look = Look { colour: false, unicode: true };
const ASCII: Look = Look { colour: false, unicode: false };

fn options() -> ViewOptions<'static> {
    ViewOptions {
        is_paused: false,
        shows_help: false,
        next: Some(END_TEST),
        device: None,
        units: UnitSystem::Iec,
    }
}

/// A tick of random reads and writes that get slower in waves.
fn tick(number: u64) -> Snapshot {
    let slow = 1 + number % 10;
    let (reads, writes) = (30_000 - 1_000 * slow, 10_000 - 500 * slow);
    let bin = |ns: u64| histogram::bin(ns) as u16;
    let mut clat_bins =
        vec![(bin(60_000 * slow), reads), (bin(200_000 * slow), writes - 300), (bin(900_000), 300)];
    if number.is_multiple_of(7) {
        clat_bins.push((bin(40_000_000), 1));
    }
    clat_bins.sort_unstable();
    let per_second = |count: u64| count as f64 * 2.0;
    let counters = DiskCounters {
        read_ios: reads,
        read_sectors: reads * 8,
        read_ticks_ms: 1_200,
        write_ios: writes,
        write_sectors: writes * 8,
        write_ticks_ms: 900,
        busy_ms: 493,
        queue_ms: 15_800,
        ..DiskCounters::default()
    };
    let cpu = HostCounters {
        cpu_ns: 4 * TICK_NS,
        busy_ns: TICK_NS / 2,
        steal_ns: TICK_NS / 10,
        iowait_ns: TICK_NS,
        ..HostCounters::default()
    };
    Snapshot {
        elapsed_ns: (number + 1) * TICK_NS,
        remaining_ns: Some(30_000_000_000u64.saturating_sub((number + 1) * TICK_NS)),
        iops: [per_second(reads), per_second(writes), 0.0],
        bytes_per_second: [per_second(reads) * 4096.0, per_second(writes) * 4096.0, 0.0],
        clat_mean_ns: Some(110_000 * slow),
        running: 4,
        workers: 4,
        states: "mmmm".to_owned(),
        tick_ns: TICK_NS,
        ios: [reads, writes, 0],
        bytes: [reads * 4096, writes * 4096, 0],
        in_flight: 32,
        ramping: number < 4,
        clat_bins: if number < 4 { Vec::new() } else { clat_bins.clone() },
        ramp_clat_bins: if number < 4 { clat_bins } else { Vec::new() },
        devices: vec![DeviceTick { name: "nvme1n1".to_owned(), span_ns: TICK_NS, counters }],
        host: Some(HostInterval { host: 0, start_ns: 0, end_ns: TICK_NS, counters: cpu }),
        ..Snapshot::default()
    }
}

fn test(id: &str, number: usize) -> LiveTest {
    LiveTest { id: id.to_owned(), title: format!("What {id} does"), number, of: Some(4) }
}

/// A bench in its third test of four, after `ticks` ticks of it.
fn state(ticks: u64) -> LiveState {
    let ids = ["lat-read", "seq-read", "rand-mixed", "rand-write"];
    let mut state = LiveState::new(ids.map(|id| (id.to_owned(), format!("What {id} does"))));
    let host = HostRecord { hostname: "db1".to_owned(), ..HostRecord::default() };
    state.begin(&RunHeader { target: "/mnt/data".to_owned(), hosts: vec![host], ..RunHeader::default() });
    for (index, status) in [TestStatus::Complete, TestStatus::Skipped].into_iter().enumerate() {
        state.begin_test(test(ids[index], index + 1));
        let mut ended = TestRecord { id: ids[index].to_owned(), status, ..TestRecord::default() };
        if status == TestStatus::Complete {
            let mut job = fathom_record::JobRecord::default();
            (job.measured.read.ios, job.measured.read.bytes) = (12_000, 12_000 * 4096);
            job.measured.end_ns = 10 * 1_000_000_000;
            job.measured.series = vec![Interval { end_ns: job.measured.end_ns, ..Interval::default() }];
            ended.jobs = vec![job];
        }
        state.end_test(&ended);
    }
    state.begin_test(test(ids[2], 3));
    (0..ticks).for_each(|number| state.tick(&tick(number)));
    state.time_left = Some(Nanos::from_secs(75));
    let finding =
        |severity: Severity, claim: &str| Finding { severity, claim: claim.to_owned(), ..Finding::default() };
    state.set_findings(vec![
        finding(Severity::Info, "The block cache of the file system was not used."),
        finding(
            Severity::Warning,
            "Other processes issued 148 IOPS on nvme1n1 (3.9 % of the measured load).",
        ),
    ]);
    state
}

fn rows(state: &LiveState, size: (usize, usize), look: Look) -> String {
    draw(state, &options(), size, look).rows()
}

#[test]
fn at_80x24() {
    insta::assert_snapshot!(rows(&state(40), (80, 24), PLAIN));
}

#[test]
fn at_200x50() {
    insta::assert_snapshot!(rows(&state(90), (200, 50), PLAIN));
}

#[test]
fn in_ascii_at_100x30() {
    let drawn = rows(&state(40), (100, 30), ASCII);
    assert!(drawn.is_ascii(), "{drawn}");
    insta::assert_snapshot!(drawn);
}

#[test]
fn in_a_small_terminal() {
    insta::assert_snapshot!(rows(&state(40), (50, 10), PLAIN));
}

#[test]
fn before_anything_ran_with_the_help_and_paused() {
    let mut begun = LiveState::new([]);
    begun.lay_out(1 << 30, 4 << 30);
    let options = ViewOptions { is_paused: true, shows_help: true, next: None, ..options() };
    insta::assert_snapshot!(draw(&begun, &options, (80, 24), PLAIN).rows());
}

#[test]
fn colours_are_used_where_they_are_wanted_and_carry_nothing_alone() {
    let (coloured, plain) =
        (draw(&state(40), &options(), (80, 24), COLOURED), draw(&state(40), &options(), (80, 24), PLAIN));
    assert!(coloured.is_coloured() && !plain.is_coloured());
    let sequences = String::from_utf8(coloured.bytes_after(None)).unwrap();
    let is_basic = |parameters: &str| {
        parameters
            .split(';')
            .all(|code| matches!(code, "0" | "1" | "7" | "31" | "32" | "33" | "34" | "35" | "36"))
    };
    let parameters = sequences.split("\x1b[").filter_map(|piece| Some(piece.split_once('m')?.0));
    let parameters = parameters.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'));
    assert!(parameters.clone().count() > 10 && parameters.clone().all(is_basic), "16 colours suffice");
    // The heat map without colour tells its levels apart by shades.
    assert!(plain.rows().contains('░') && plain.rows().contains('▒'));
}

#[test]
fn every_size_can_be_drawn() {
    let state = state(600);
    for width in [1, 2, 10, 30, 59, 60, 61, 79, 80, 129, 130, 131, 250] {
        for height in [1, 2, 3, 10, 15, 16, 17, 24, 60] {
            let canvas = draw(&state, &options(), (width, height), COLOURED);
            assert_eq!((canvas.width, canvas.height), (width, height));
            let help = ViewOptions { shows_help: true, ..options() };
            draw(&state, &help, (width, height), ASCII);
        }
    }
}

#[test]
fn text_of_others_stays_text() {
    let mut hostile = state(10);
    let evil = "\x1b[2J\u{202e}<script>\n";
    hostile.target = evil.to_owned();
    hostile.begin_test(LiveTest { id: evil.to_owned(), title: evil.to_owned(), number: 4, of: None });
    hostile.add_message(evil);
    hostile.tick(&tick(1));
    let canvas = draw(&hostile, &options(), (200, 50), PLAIN);
    let written = String::from_utf8(canvas.bytes_after(None)).unwrap();
    assert!(!written.contains('\u{202e}') && !written.contains('\n'), "{written}");
    assert_eq!(written.matches("\x1b[2J").count(), 1, "the one that clears the screen");
    assert!(canvas.rows().contains("\\x1b[2J\\u{202e}<script>\\x0a"), "{}", canvas.rows());
}

#[test]
fn a_stall_takes_the_place_of_the_stage() {
    let mut stalled = state(10);
    stalled.tick(&Snapshot { stalled_ns: 7_000_000_000, stalled_in_flight: 32, ..tick(11) });
    let drawn = rows(&stalled, (80, 24), PLAIN);
    assert!(drawn.contains("no I/O completed for 7 s, 32 in flight"), "{drawn}");
}

/// A ping of `ticks` half seconds on a fixed schedule of 5 ms, which fell behind for a while.
fn ping(ticks: u64) -> LiveState {
    let mut state = LiveState::new([("ping".to_owned(), "read, one I/O at a time".to_owned())]);
    let activity = Activity::Ping(PingActivity::default());
    state.begin(&RunHeader { activity, target: "/mnt/data".to_owned(), ..RunHeader::default() });
    state.begin_test(LiveTest { id: "ping".to_owned(), title: String::new(), number: 1, of: Some(1) });
    let how = PingHow {
        operation: "read".to_owned(),
        block_size_bytes: 4096,
        fixed_schedule: true,
        interval_ns: 5_000_000,
        ..PingHow::default()
    };
    state.begin_ping(LivePing::new(how, PingEnd { count: None, work_ns: Some(60 * 1_000_000_000) }));
    let mut account = PingAccount { response_ns: Some(Latency::default()), ..PingAccount::default() };
    for number in 0..ticks {
        for request in 0..100 {
            let lat_ns = 200_000 + 30_000 * (number % 7) + 10_000 * (request % 5);
            account.lat_ns.record(lat_ns);
            account.response_ns.as_mut().unwrap().record(lat_ns + 1_000_000 * (number % 3));
        }
        account.ios.read += 100;
        account.bytes.read += 100 * 4096;
        account.load.answered = account.ios.read;
        account.intervals = account.ios.read;
        account.latest_ns = (number + 1) * TICK_NS;
        account.counts =
            PingCounts { requests: account.ios.read + 3, errors: 1, timeouts: 2, ..PingCounts::default() };
        account.counts.served.device = account.ios.read;
        let elapsed_ns = (number + 1) * TICK_NS;
        let Snapshot { devices, host, .. } = tick(number);
        let progress = PingProgress { elapsed_ns, account: account.clone(), waits_ns: None, devices, host };
        state.tick_ping(&progress);
    }
    state
}

#[test]
fn a_ping_at_80x24() {
    insta::assert_snapshot!(rows(&ping(40), (80, 24), PLAIN));
}

#[test]
fn a_ping_at_200x50() {
    insta::assert_snapshot!(rows(&ping(90), (200, 50), PLAIN));
}

#[test]
fn a_request_without_an_answer_takes_the_place_of_the_stage() {
    let mut state = ping(10);
    let account = state.ping.as_ref().unwrap().account.clone();
    let waits_ns = Some(3_000_000_000);
    state.tick_ping(&PingProgress {
        elapsed_ns: 8_000_000_000,
        account,
        waits_ns,
        ..PingProgress::default()
    });
    let drawn = rows(&state, (80, 24), PLAIN);
    assert!(drawn.contains("no I/O completed for 3 s, 1 in flight"), "{drawn}");
}

fn interval(name: &str, number: u64, ios: u64) -> MonitorInterval {
    let done = |ios: u64, size: u64, ms_each: f64| OpActivity {
        ios,
        bytes: ios * size,
        ticks_ms: (ios as f64 * ms_each) as u64,
        merges: 0,
    };
    let wave = 1 + number % 5;
    let ops = PerOp {
        read: done(ios * wave, 4096, 0.2 * wave as f64),
        write: done(ios / 4 * wave, 65_536, 1.5),
        ..PerOp::default()
    };
    let flush = done(ios / 40, 0, 2.5);
    let mut in_flight = InFlight::default();
    [4, 9 * wave, 3].into_iter().for_each(|now| in_flight.record(now));
    MonitorInterval {
        number,
        device: WatchedDevice {
            name: name.to_owned(),
            asked: (name == "nvme1n1").then(|| "/mnt/data".to_owned()),
            size_bytes: 100 << 30,
            ..WatchedDevice::default()
        },
        elapsed_ns: 1_000_000_000,
        activity: DeviceActivity { ops, flush, busy_ms: 180 * wave, queue_ms: 700 * wave },
        in_flight,
        owners: vec![ProcessActivity {
            process: 4711,
            command: "postgres".to_owned(),
            read_bytes_per_second: 5e6,
            write_bytes_per_second: 2e7,
            file: "/mnt/data/base/16384".to_owned(),
        }],
        ..MonitorInterval::default()
    }
}

/// A monitor of two devices after `intervals` intervals; the first is traced where that `is_traced`.
fn monitor(intervals: u64, is_traced: bool) -> LiveState {
    let mut state = LiveState::new([]);
    let target = "nvme1n1,sda".to_owned();
    state.begin(&RunHeader { activity: Activity::Monitor, target, ..RunHeader::default() });
    for number in 1..=intervals {
        let mut first = interval("nvme1n1", number, 1000);
        let mut read = OpLoad::default();
        (0..1000).for_each(|at| read.service.record(100_000 + 7_000 * (at % 50) * (1 + number % 5)));
        let load = ObservedLoad { ops: [(Op::Read, read)].into(), lost: u64::from(number == 2) };
        first.load = is_traced.then_some(load);
        let intervals = [first, interval("sda", number, 20)];
        let host = tick(number).host;
        state.tick_monitor(&MonitorTick {
            intervals: &intervals,
            host,
            elapsed_ns: number * 1_000_000_000,
            of: Some(60),
        });
    }
    state
}

fn monitor_options() -> ViewOptions<'static> {
    ViewOptions { next: Some(SHOW_DEVICE), ..options() }
}

#[test]
fn a_monitor_at_80x24() {
    insta::assert_snapshot!(draw(&monitor(40, false), &monitor_options(), (80, 24), PLAIN).rows());
}

#[test]
fn a_monitor_that_traces_at_200x50() {
    insta::assert_snapshot!(draw(&monitor(60, true), &monitor_options(), (200, 50), PLAIN).rows());
}

#[test]
fn a_monitor_shows_the_device_that_is_chosen_and_those_that_do_not_respond() {
    let mut state = monitor(5, true);
    let watched = state.monitor.as_ref().unwrap();
    assert_eq!(watched.after(None).as_deref(), Some("sda"));
    assert_eq!(watched.after(Some("sda")).as_deref(), Some("nvme1n1"));
    let chosen = ViewOptions { device: Some("sda"), ..monitor_options() };
    let drawn = draw(&state, &chosen, (80, 24), PLAIN).rows();
    assert!(drawn.contains("Interval 5 of 60: sda, 100 GiB") && drawn.contains("▶ sda"), "{drawn}");
    let stalled = MonitorInterval { stalled_ns: Some(7_000_000_000), ..interval("sda", 6, 0) };
    let intervals = [stalled];
    let tick = MonitorTick { intervals: &intervals, host: None, elapsed_ns: 6_000_000_000, of: None };
    state.tick_monitor(&tick);
    let drawn = draw(&state, &chosen, (80, 24), PLAIN).rows();
    assert!(drawn.contains("sda: no I/O completed for 7 s, 3 in flight"), "{drawn}");
    assert!(!drawn.contains("nvme1n1  "), "it has gone: {drawn}");
    for width in [1, 10, 60, 80, 129, 130, 250] {
        for height in [1, 3, 10, 16, 24, 60] {
            draw(&state, &chosen, (width, height), COLOURED);
            draw(&ping(30), &options(), (width, height), COLOURED);
        }
    }
}
