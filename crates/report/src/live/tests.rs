//! What other programs read from the live streams, and what the state keeps.

use std::collections::BTreeMap;

use fathom_analysis::monitor::{
    DeviceActivity, MonitorInterval, OpActivity, Presence, ProcessActivity, WatchedDevice,
};
use fathom_analysis::ping::{PingAccount, PingHow, PingProgress};
use fathom_model::{Nanos, Op, PerOp};
use fathom_record::load::{ObservedLoad, OpLoad};
use fathom_record::{
    Activity, DeviceTick, DiskCounters, Finding, Histogram, HostCounters, HostInterval, HostRecord, Latency,
    PingActivity, RunHeader, Snapshot, TestRecord, TestStatus, latency_bin,
};
use serde_json::Value;

use super::json::{LinePlace, LiveLine};
use super::*;

const TICK_NS: u64 = 500_000_000;

fn tick(ios: u64, clat_ns: u64) -> Snapshot {
    let bins = if ios > 0 { vec![(latency_bin(clat_ns) as u16, ios)] } else { Vec::new() };
    Snapshot {
        elapsed_ns: TICK_NS,
        remaining_ns: Some(3 * TICK_NS),
        tick_ns: TICK_NS,
        ios: [ios, 0, 0],
        bytes: [ios * 4096, 0, 0],
        iops: [ios as f64 * 2.0, 0.0, 0.0],
        bytes_per_second: [ios as f64 * 8192.0, 0.0, 0.0],
        clat_sum_ns: ios * clat_ns,
        clat_mean_ns: (ios > 0).then_some(clat_ns),
        clat_bins: bins,
        in_flight: 8,
        stalled_ns: 3_000_000,
        running: 1,
        workers: 1,
        ..Snapshot::default()
    }
}

fn ramp(ios: u64, clat_ns: u64) -> Snapshot {
    let tick = tick(ios, clat_ns);
    Snapshot { ramping: true, ramp_clat_bins: tick.clat_bins.clone(), clat_bins: Vec::new(), ..tick }
}

fn state() -> LiveState {
    let mut state = LiveState::new([("rand-read".to_owned(), "Random reads".to_owned())]);
    let host = HostRecord { hostname: "web\"1\\".to_owned(), ..HostRecord::default() };
    let labels = BTreeMap::from([("my-label".to_owned(), "a\nb".to_owned())]);
    state.begin(&RunHeader {
        target: "/mnt/data".to_owned(),
        hosts: vec![host],
        labels,
        ..RunHeader::default()
    });
    state.begin_test(LiveTest {
        id: "rand-read".to_owned(),
        title: "Random reads".to_owned(),
        number: 1,
        of: Some(2),
    });
    state.time_left = Some(Nanos::from_secs(9));
    state.tick(&ramp(100, 5_000_000));
    let counters = DiskCounters {
        read_ios: 1000,
        read_sectors: 8000,
        read_ticks_ms: 250,
        busy_ms: 400,
        queue_ms: 1000,
        ..DiskCounters::default()
    };
    let cpu = HostCounters { cpu_ns: 1_000_000_000, busy_ns: 250_000_000, ..HostCounters::default() };
    state.tick(&Snapshot {
        devices: vec![DeviceTick { name: "vda".to_owned(), span_ns: TICK_NS, counters }],
        host: Some(HostInterval { host: 0, start_ns: 0, end_ns: TICK_NS, counters: cpu }),
        ..tick(1000, 250_000)
    });
    state
}

fn line(line: LiveLine<'_>, state: &LiveState) -> Value {
    let mut out = Vec::new();
    json::write(line, state, LinePlace { line: 7, dropped: 2 }, &mut out).unwrap();
    assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 1, "one line");
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn a_snapshot_line_has_the_figures_of_the_tick_and_of_the_test() {
    let read = line(LiveLine::Snapshot, &state());
    let at = |path: &str| read.pointer(path).unwrap_or_else(|| panic!("{path} in {read}")).clone();
    for (path, expected) in [
        ("/schema", Value::from("fathom.live/1")),
        ("/type", "snapshot".into()),
        ("/line", 7.into()),
        ("/dropped", 2.into()),
        ("/target", "/mnt/data".into()),
        ("/stage", "measuring".into()),
        ("/test/id", "rand-read".into()),
        ("/test/of", 2.into()),
        ("/interval_ns", TICK_NS.into()),
        ("/remaining_ns", (3 * TICK_NS).into()),
        ("/run_remaining_ns", 9_000_000_000u64.into()),
        ("/stalled_ns", Value::Null),
        ("/in_flight", 8.into()),
        ("/read/ios", 1000.into()),
        ("/read/iops", 2000.0.into()),
        ("/read/bytes_per_second", 8_192_000.0.into()),
        ("/clat_ns/now/mean", 250_000.into()),
        ("/clat_ns/now/samples", 1000.into()),
        // The ramp before it is not counted.
        ("/clat_ns/so_far/samples", 1000.into()),
        ("/devices/0/name", "vda".into()),
        ("/devices/0/iops", 2000.0.into()),
        ("/devices/0/read_iops", 2000.0.into()),
        ("/devices/0/await_mean_ns", 250_000.0.into()),
        ("/devices/0/queue_depth_mean", 2.0.into()),
        ("/devices/0/utilisation", 0.8.into()),
        ("/cpu/busy", 0.25.into()),
    ] {
        assert_eq!(at(path), expected, "{path}");
    }
    let p99 = at("/clat_ns/now/p99").as_u64().unwrap();
    assert!(p99.abs_diff(250_000) <= 250_000 / 128, "{p99}");
    let [edge, count] = at("/clat_ns/now/bins/0").as_array().unwrap().clone().try_into().unwrap();
    assert!(edge.as_u64().unwrap() <= 250_000 && count == 1000, "{edge} {count}");
}

#[test]
fn every_event_is_a_line() {
    let mut state = state();
    let test = TestRecord {
        id: "rand-read".to_owned(),
        status: TestStatus::Incomplete,
        reason: Some("signal 2".to_owned()),
        ..TestRecord::default()
    };
    state.end_test(&test);
    let finding = Finding { claim: "A claim.".to_owned(), ..Finding::default() };
    state.lay_out(1, 2);
    for (event, kind, path, expected) in [
        (LiveLine::Begun, "begin", "/command", Value::from("bench")),
        (LiveLine::Layout, "layout", "/total_bytes", 2.into()),
        (LiveLine::TestBegun, "test_begin", "/test/number", 1.into()),
        (LiveLine::TestEnded(&test), "test_end", "/test/status", "incomplete".into()),
        (LiveLine::TestEnded(&test), "test_end", "/test/reason", "signal 2".into()),
        (LiveLine::Finding(&finding), "finding", "/finding/claim", "A claim.".into()),
        (LiveLine::Message("words"), "message", "/text", "words".into()),
        (LiveLine::Ended, "end", "/line", 7.into()),
    ] {
        let read = line(event, &state);
        assert_eq!((read["type"].as_str(), read.pointer(path)), (Some(kind), Some(&expected)), "{read}");
    }
}

/// The samples of an exposition by name and labels, and the type of each family.
fn exposition(state: &LiveState) -> (BTreeMap<String, f64>, BTreeMap<String, String>) {
    let mut out = Vec::new();
    metrics::render(state, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let text = text.strip_suffix("# EOF\n").expect("the last line is # EOF");
    let (mut samples, mut types) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} is there twice");
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let value = value.parse().unwrap();
            assert!(samples.insert(name.to_owned(), value).is_none(), "{name} is there twice");
        }
    }
    (samples, types)
}

/// The value of the only sample of `name` whose labels hold `parts`.
fn sample(samples: &BTreeMap<String, f64>, name: &str, parts: &[&str]) -> f64 {
    let found = samples.iter().filter(|(key, _)| {
        key.split('{').next() == Some(name) && parts.iter().all(|part| key.contains(part))
    });
    let found: Vec<f64> = found.map(|(_, value)| *value).collect();
    assert_eq!(found.len(), 1, "{name} {parts:?}: {found:?} of {samples:?}");
    found[0]
}

#[test]
fn metrics_have_the_figures_with_labels_of_what_is_measured() {
    let (samples, types) = exposition(&state());
    let of = |name: &str, parts: &[&str]| sample(&samples, name, parts);
    let target = r#"host="web\"1\\",device="#;
    assert_eq!(of("fathom_live_iops", &[target, "test=\"rand-read\"", "direction=\"read\""]), 2000.0);
    assert_eq!(
        of("fathom_live_bytes_total", &["label_my_label=\"a\\nb\"", "direction=\"read\""]),
        4_505_600.0
    );
    assert_eq!(of("fathom_live_ios_total", &["direction=\"read\""]), 1100.0);
    assert_eq!(of("fathom_live_device_utilisation_ratio", &["block_device=\"vda\""]), 0.8);
    assert_eq!(of("fathom_live_cpu_ratio", &["mode=\"busy\""]), 0.25);
    assert_eq!((of("fathom_live_running", &[]), of("fathom_live_tests", &[])), (1.0, 2.0));
    assert_eq!(of("fathom_live_run_remaining_seconds", &[]), 9.0);
    let p99 = of("fathom_live_latency_seconds", &["statistic=\"p99\"", "window=\"so_far\""]);
    assert!((p99 - 250e-6).abs() < 2e-6, "{p99}");
    assert_eq!(types["fathom_live_ios"], "counter");
    assert_eq!(types["fathom_live_completion_latency_seconds"], "histogram");
}

#[test]
fn the_histogram_counts_every_latency_below_its_limits() {
    let (samples, _) = exposition(&state());
    let name = "fathom_live_completion_latency_seconds_bucket";
    let mut buckets: Vec<(f64, f64)> = samples
        .iter()
        .filter(|(key, _)| key.starts_with(name))
        .map(|(key, count)| {
            let limit = key.split("le=\"").nth(1).unwrap().split('"').next().unwrap();
            (limit.parse().unwrap_or(f64::INFINITY), *count)
        })
        .collect();
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
    assert!(buckets.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1), "{buckets:?}");
    let at = |seconds: f64| buckets.iter().find(|(limit, _)| *limit >= seconds).unwrap().1;
    assert_eq!((at(100e-6), at(260e-6), at(6e-3), at(f64::INFINITY)), (0.0, 1000.0, 1100.0, 1100.0));
    let sum = sample(&samples, "fathom_live_completion_latency_seconds_sum", &[]);
    assert!((sum - (100.0 * 5e-3 + 1000.0 * 250e-6)).abs() < 1e-9, "{sum}");
}

#[test]
fn between_tests_there_are_no_rates() {
    let mut state = state();
    state.end_test(&TestRecord { id: "rand-read".to_owned(), ..TestRecord::default() });
    let (samples, _) = exposition(&state);
    assert!(!samples.keys().any(|key| key.starts_with("fathom_live_iops")));
    assert_eq!(sample(&samples, "fathom_live_running", &[]), 0.0);
    let (empty, _) = exposition(&LiveState::default());
    assert_eq!(sample(&empty, "fathom_live_running", &[]), 0.0);
}

#[test]
fn a_long_series_is_bounded_and_hides_no_extreme() {
    let mut series = LiveSeries::default();
    let ticks = 100_000u64;
    for number in 0..ticks {
        let ios = if number == 77_777 { 9_000 } else { 10 + number % 3 };
        series.push(LivePoint::of(&tick(ios, 1000)));
    }
    assert!(series.points().len() <= MAX_POINTS, "{}", series.points().len());
    for columns in [1, 7, 60, 1000] {
        let joined = series.columns(columns);
        assert!(joined.len() <= columns.max(1) && !joined.is_empty());
        assert_eq!(joined.iter().map(|point| point.span_ns).sum::<u64>(), ticks * TICK_NS);
        let most = joined.iter().map(|point| point.iops_range.1).fold(0.0, f64::max);
        let least = joined.iter().map(|point| point.iops_range.0).fold(f64::MAX, f64::min);
        assert_eq!((most, least), (18_000.0, 20.0));
        let all = joined.iter().flat_map(|point| &point.latency_bins).map(|(_, count)| count).sum::<u64>();
        assert_eq!(all, joined.iter().map(|point| point.ios[0]).sum::<u64>());
    }
}

#[test]
fn a_short_test_fills_its_chart() {
    let columns = vec![LivePoint { span_ns: TICK_NS, ..LivePoint::default() }; 3];
    let each = |planned_ns: u64, most: usize| LiveSeries::columns_each(&columns, planned_ns, most);
    assert_eq!(
        [each(0, 40), each(4 * TICK_NS, 40), each(8 * TICK_NS, 41), each(100 * TICK_NS, 40)],
        [13, 10, 5, 1]
    );
    assert_eq!(LiveSeries::columns_each(&[], 0, 0), 1);
}

#[test]
fn percentiles_need_samples_beyond_them() {
    let latency = |samples: u64| LiveLatency::of(&Histogram::from_sparse([(latency_bin(1000), samples)]));
    let known = |samples: u64| {
        let LiveLatency { p50, p90, p99, p999, max, .. } = latency(samples);
        [p50, p90, p99, p999, max].map(|value| value.is_some())
    };
    assert_eq!(known(0), [false; 5]);
    assert_eq!(known(9), [true, false, false, false, true]);
    assert_eq!(known(99), [true, true, false, false, true]);
    assert_eq!(known(1000), [true; 5]);
}

#[test]
fn a_step_that_was_not_planned_is_added_and_repeated_ones_stay_one() {
    let mut state = state();
    let step =
        |id: &str, number: usize| LiveTest { id: id.to_owned(), title: String::new(), number, of: None };
    state.begin_test(step("new", 2));
    state.begin_test(step("rand-read", 3));
    let ids: Vec<&str> = state.steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["rand-read", "new"]);
    assert_eq!(state.steps[0].state, LiveStepState::Running);
    assert!(state.series.points().is_empty() && state.test_clat.samples() == 0, "figures are of one test");
    assert_eq!(state.run_ios[0], 1100, "counters are of the run");
}

/// A ping on a fixed schedule of 1 ms, and its account.
fn ping() -> (LiveState, PingAccount) {
    let mut state = LiveState::new([]);
    let activity = Activity::Ping(PingActivity::default());
    state.begin(&RunHeader { activity, target: "/mnt/data".to_owned(), ..RunHeader::default() });
    state.begin_test(LiveTest { id: "ping".to_owned(), number: 1, of: Some(1), ..LiveTest::default() });
    let how = PingHow { interval_ns: 1_000_000, fixed_schedule: true, ..PingHow::default() };
    state.begin_ping(LivePing::new(how, PingEnd { count: Some(1000), work_ns: None }));
    (state, PingAccount { response_ns: Some(Latency::default()), ..PingAccount::default() })
}

/// The account after `more` requests of `lat_ns`, which were due so long before.
fn answered(account: &PingAccount, more: u64, lat_ns: u64) -> PingAccount {
    let mut account = account.clone();
    account.lat_ns.merge(&Latency::repeated(more, lat_ns));
    account.response_ns.as_mut().unwrap().merge(&Latency::repeated(more, lat_ns + 5_000_000));
    account.counts.requests += more;
    (account.ios.read, account.bytes.read) = (account.ios.read + more, account.bytes.read + more * 4096);
    account.intervals += more;
    account
}

#[test]
fn a_ping_is_its_account_and_the_difference_to_the_account_before() {
    let (mut state, account) = ping();
    let first = answered(&account, 100, 2_000_000);
    let progress = PingProgress { elapsed_ns: TICK_NS, account: first.clone(), ..PingProgress::default() };
    state.tick_ping(&progress);
    let mut second = answered(&first, 200, 250_000);
    (second.counts.errors, second.counts.timeouts, second.latest_ns) = (3, 1, 350_000_000);
    state.tick_ping(&PingProgress {
        elapsed_ns: 2 * TICK_NS,
        account: second,
        waits_ns: Some(1000),
        ..PingProgress::default()
    });
    let read = line(LiveLine::Snapshot, &state);
    for (path, expected) in [
        ("/command", Value::from("ping")),
        ("/test/id", "ping".into()),
        ("/stage", "measuring".into()),
        ("/interval_ns", TICK_NS.into()),
        ("/read/ios", 200.into()),
        ("/read/iops", 400.0.into()),
        ("/in_flight", 1.into()),
        ("/lat_ns/now/samples", 200.into()),
        ("/lat_ns/now/mean", 250_000.into()),
        ("/lat_ns/so_far/samples", 300.into()),
        ("/ping/requests", 300.into()),
        ("/ping/errors", 3.into()),
        ("/ping/timeouts", 1.into()),
        ("/ping/missed_intervals", 51.into()),
        ("/ping/response_ns/now/samples", 200.into()),
        ("/ping/response_ns/so_far/samples", 300.into()),
        // 700 more at the pace so far, which is that of the answers.
        ("/remaining_ns", (700 * (2 * TICK_NS / 300)).into()),
    ] {
        assert_eq!(read.pointer(path), Some(&expected), "{path} of {read}");
    }
    assert!(read.get("clat_ns").is_none(), "{read}");
    let (samples, types) = exposition(&state);
    let of = |name: &str, parts: &[&str]| sample(&samples, name, parts);
    assert_eq!(of("fathom_live_requests_total", &["test=\"ping\""]), 300.0);
    assert_eq!((of("fathom_live_errors_total", &[]), of("fathom_live_timeouts_total", &[])), (3.0, 1.0));
    assert_eq!(of("fathom_live_missed_intervals", &[]), 51.0);
    assert_eq!(of("fathom_live_ios_total", &["direction=\"read\""]), 300.0);
    let p50 = |span: &str, window: &str| {
        let (span, window) = (format!("span=\"{span}\""), format!("window=\"{window}\""));
        of("fathom_live_latency_seconds", &[&span, &window, "statistic=\"p50\""])
    };
    for (span, window, expected) in
        [("lat", "now", 250e-6), ("lat", "so_far", 250e-6), ("response", "now", 5.25e-3)]
    {
        assert!((p50(span, window) / expected - 1.0).abs() < 0.01, "{span} {window}");
    }
    assert_eq!(types["fathom_live_total_latency_seconds"], "histogram");
    assert_eq!(of("fathom_live_total_latency_seconds_count", &[]), 300.0);
}

#[test]
fn a_request_without_an_answer_is_a_stall_of_the_ping() {
    let (mut state, account) = ping();
    let waits_ns = Some(3_000_000_000);
    state.tick_ping(&PingProgress {
        elapsed_ns: 4_000_000_000,
        account,
        waits_ns,
        ..PingProgress::default()
    });
    let read = line(LiveLine::Snapshot, &state);
    assert_eq!((&read["stalled_ns"], &read["read"]["iops"]), (&3_000_000_000u64.into(), &0.0.into()));
    assert_eq!(sample(&exposition(&state).0, "fathom_live_stalled_seconds", &[]), 3.0);
}

fn interval(name: &str, number: u64) -> MonitorInterval {
    let done = |ios: u64, size: u64| OpActivity { ios, bytes: ios * size, ticks_ms: ios, merges: 0 };
    let ops = PerOp { read: done(1000, 4096), write: done(200, 65_536), trim: OpActivity::default() };
    let mut read = OpLoad::default();
    (0..1000).for_each(|_| read.service.record(250_000));
    let mut interval = MonitorInterval {
        number,
        device: WatchedDevice { name: name.to_owned(), ..WatchedDevice::default() },
        elapsed_ns: 2 * TICK_NS,
        activity: DeviceActivity { ops, flush: done(5, 0), busy_ms: 400, queue_ms: 1200 },
        load: Some(ObservedLoad { ops: [(Op::Read, read)].into(), lost: 7 }),
        owners: vec![ProcessActivity {
            process: 17,
            command: "post\"gres".to_owned(),
            write_bytes_per_second: 1e6,
            ..ProcessActivity::default()
        }],
        ..MonitorInterval::default()
    };
    interval.in_flight.record(3);
    interval
}

#[test]
fn a_monitor_has_its_devices_by_the_names_that_they_have_everywhere() {
    let mut state = LiveState::new([]);
    state.begin(&RunHeader {
        activity: Activity::Monitor,
        target: "sda,sdb".to_owned(),
        ..RunHeader::default()
    });
    state.begin_monitor();
    assert_eq!(line(LiveLine::Begun, &state)["command"], "monitor");
    for number in 1..=2 {
        let gone = MonitorInterval { presence: Presence::Gone, ..interval("sdb", number) };
        let intervals = [interval("sda", number), gone];
        let elapsed_ns = number * 2 * TICK_NS;
        state.tick_monitor(&MonitorTick { intervals: &intervals, host: None, elapsed_ns, of: Some(10) });
    }
    let read = line(LiveLine::Snapshot, &state);
    for (path, expected) in [
        ("/stage", Value::from("measuring")),
        ("/elapsed_ns", (4 * TICK_NS).into()),
        ("/interval_ns", (2 * TICK_NS).into()),
        ("/run_remaining_ns", (16 * TICK_NS).into()),
        ("/devices/0/name", "sda".into()),
        ("/devices/0/read_iops", 1000.0.into()),
        ("/devices/0/write_bytes_per_second", 13_107_200.0.into()),
        ("/devices/0/queue_depth_mean", 1.2.into()),
        ("/intervals/0/schema", "fathom.monitor/1".into()),
        ("/intervals/0/write/request_bytes_mean", 65_536.0.into()),
        ("/intervals/0/requests/lost", 7.into()),
        ("/intervals/1/presence", "gone".into()),
    ] {
        assert_eq!(read.pointer(path), Some(&expected), "{path} of {read}");
    }
    assert_eq!(read["devices"].as_array().unwrap().len(), 1, "one that is away has no rates");
    let (samples, types) = exposition(&state);
    let of =
        |name: &str, parts: &[&str]| sample(&samples, name, &[parts, &["block_device=\"sda\""]].concat());
    let (read, write) = ("direction=\"read\"", "direction=\"write\"");
    assert_eq!(
        (of("fathom_live_device_iops", &[read]), of("fathom_live_device_ios_total", &[read])),
        (1000.0, 2000.0)
    );
    assert_eq!(of("fathom_live_device_bytes_total", &[write]), 2.0 * 200.0 * 65_536.0);
    assert_eq!(of("fathom_live_device_request_size_bytes", &[write]), 65_536.0);
    assert_eq!(of("fathom_live_device_trace_lost_events_total", &[]), 14.0);
    assert_eq!(of("fathom_live_device_await_seconds", &[]), 1e-3);
    assert_eq!(of("fathom_live_in_flight", &[]), 3.0);
    assert_eq!(of("fathom_live_process_bytes_per_second", &["process=\"17\"", write]), 1e6);
    let p99 = of("fathom_live_latency_seconds", &["span=\"service\"", "statistic=\"p99\"", "window=\"now\""]);
    assert!((p99 - 250e-6).abs() < 2e-6, "{p99}");
    assert_eq!(types["fathom_live_device_service_seconds"], "histogram");
    assert_eq!(of("fathom_live_device_service_seconds_count", &[]), 2000.0);
    assert!(!samples.keys().any(|name| name.starts_with("fathom_live_ios_total")), "it makes no requests");
}

#[test]
fn a_family_has_one_name_and_ends_in_its_unit() {
    let (mut state, account) = ping();
    state.tick_ping(&PingProgress { elapsed_ns: TICK_NS, account, ..PingProgress::default() });
    let mut out = Vec::new();
    metrics::render(&state, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    for (name, unit) in text.lines().filter_map(|line| line.strip_prefix("# UNIT ")?.split_once(' ')) {
        assert!(name.ends_with(&format!("_{unit}")), "{name} {unit}");
    }
}
