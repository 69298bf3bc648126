use fathom_model::Nanos;

use super::*;

fn request(at_ms: u64, op: Op, clat_ns: u64) -> LoggedIo {
    let (at_ns, lat_ns, offset) = (at_ms * 1_000_000, clat_ns + 10, at_ms * 4096);
    LoggedIo { at_ns, clat_ns, lat_ns, offset, len: 4096, op, priority: 0, is_high: false }
}

fn all(name: &str) -> LogPlan {
    let named = || Some(name.to_owned());
    LogPlan {
        bandwidth: named(),
        iops: named(),
        latency: named(),
        histogram: named(),
        bandwidth_window: Nanos::from_millis(500),
        iops_window: Nanos::from_millis(500),
        ..LogPlan::default()
    }
}

/// The texts of all logs for these requests of a worker that ends after `end_ms`.
fn texts(plan: &LogPlan, requests: &[LoggedIo], end_ms: u64) -> Vec<String> {
    let mut texts = LogTexts::default();
    let mut log = WorkerLog::new(plan, [true; 3], 0);
    log.add(requests, &mut texts);
    log.end(end_ms * 1_000_000, &mut texts);
    texts.into_iter().map(|text| String::from_utf8(text).expect("digits")).collect()
}

#[test]
fn file_names_are_fios() {
    let plan = LogPlan { histogram: None, ..all("x") };
    let names = |plan: &LogPlan| -> Vec<String> {
        LogKind::ALL.into_iter().filter_map(|kind| kind.file_name(plan, "job", 3)).collect()
    };
    assert_eq!(names(&plan), ["x_bw.3.log", "x_iops.3.log", "x_slat.3.log", "x_clat.3.log", "x_lat.3.log"]);
    let shared = LogPlan { shared: true, latency: None, histogram: Some(String::new()), ..plan.clone() };
    assert_eq!(names(&shared), ["x_bw.log", "x_iops.log", "job_clat_hist.log"]);
    let compressed = LogPlan { compressed: true, histogram: None, iops: None, latency: None, ..all("x") };
    assert_eq!(names(&compressed), ["x_bw.3.log.fz"]);
    let histogram = LogPlan { bandwidth: None, iops: None, latency: None, ..all("d/x") };
    assert_eq!(names(&histogram), ["d/x_clat_hist.3.log"]);
}

/// fio 3.33 logged 26838 for 4 KiB in 152,614 ns, and 1302384 for 3,145 ns.
#[test]
fn every_request_has_a_line() {
    let requests = [request(0, Op::Read, 152_614), request(28, Op::Write, 3_145)];
    let logs = texts(&all("x"), &requests, 30);
    assert_eq!(logs[0], "0, 26838, 0, 4096, 0\n28, 1302384, 1, 4096, 0\n");
    assert_eq!(logs[1], "0, 1, 0, 4096, 0\n28, 1, 1, 4096, 0\n");
    assert_eq!(logs[2], "0, 10, 0, 4096, 0\n28, 10, 1, 4096, 0\n");
    assert_eq!(logs[3], "0, 152614, 0, 4096, 0\n28, 3145, 1, 4096, 0\n");
    assert_eq!(logs[4], "0, 152624, 0, 4096, 0\n28, 3155, 1, 4096, 0\n");
}

#[test]
fn columns_are_added_as_asked_for() {
    let plan = LogPlan { offset: true, priority: true, issue_time: true, ..all("x") };
    let logs = texts(&plan, &[request(7, Op::Trim, 1_000)], 8);
    assert_eq!(logs[2], "7, 10, 2, 4096, 28672, 0x0000, 6999000\n");
    assert_eq!(logs[3], "7, 1000, 2, 4096, 28672, 0x0000, 6999000\n");
    // fio 3.41 logs the time of issue with these two latencies alone.
    assert_eq!(logs[4], "7, 1010, 2, 4096, 28672, 0x0000, 0\n");
    assert!(logs[0].ends_with(", 28672, 0x0000, 0\n") && logs[1].ends_with(", 28672, 0x0000, 0\n"));
    let prioritized = LoggedIo { priority: 0x600b, is_high: true, ..request(7, Op::Trim, 1_000) };
    assert_eq!(texts(&plan, &[prioritized], 8)[3], "7, 1000, 2, 4096, 28672, 0x600b, 6999000\n");
    let flagged = LogPlan { priority: false, issue_time: false, ..plan.clone() };
    assert_eq!(texts(&flagged, &[prioritized], 8)[3], "7, 1000, 2, 4096, 28672, 1\n");
    let averaged = LogPlan { window: Nanos::from_millis(5), values: WindowValues::Both, ..plan };
    let logs = texts(&averaged, &[request(3, Op::Read, 1_000), request(4, Op::Read, 2_001)], 8);
    assert_eq!(logs[3], "8, 1501, 2001, 0, 0, 0, 0x0000, 0\n");
    let greatest = LogPlan { values: WindowValues::Greatest, issue_time: false, ..averaged };
    assert_eq!(texts(&greatest, &[request(3, Op::Read, 1_000)], 8)[3], "8, 1000, 0, 0, 0, 0x0000\n");
}

/// With 3 requests per second and windows of 500 ms, fio 3.33 logged latencies at 671, 1004, 1666 ms.
#[test]
fn a_mean_has_the_time_of_the_request_that_ends_it() {
    let plan = LogPlan { window: Nanos::from_millis(500), ..all("x") };
    let requests: Vec<LoggedIo> =
        [4, 337, 671, 1_004, 1_337, 1_666].map(|at| request(at, Op::Read, at)).into();
    let logs = texts(&plan, &requests, 1_900);
    assert_eq!(logs[3], "671, 337, 0, 0, 0\n1004, 1004, 0, 0, 0\n1666, 1502, 0, 0, 0\n");
    // The pieces without requests have no line, and the last piece counts for the window before it.
    assert_eq!(logs[1], "500, 4, 0, 0, 0\n1000, 2, 0, 0, 0\n1500, 4, 0, 0, 0\n1900, 3, 0, 0, 0\n");
    let short = texts(&plan, &requests, 1_700);
    assert_eq!(short[1], "500, 4, 0, 0, 0\n1000, 2, 0, 0, 0\n1700, 4, 0, 0, 0\n");
    assert_eq!(texts(&plan, &requests[..1], 5)[0], "5, 800, 0, 0, 0\n");
}

#[test]
fn the_greatest_rate_is_that_of_the_shorter_windows() {
    let plan = LogPlan { window: Nanos::from_secs(2), values: WindowValues::Both, ..all("x") };
    let requests: Vec<LoggedIo> = [100, 200, 300, 900, 1_999].map(|at| request(at, Op::Write, 1)).into();
    assert_eq!(texts(&plan, &requests, 2_000)[1], "2000, 3, 6, 1, 0, 0\n");
}

#[test]
fn rates_times_lengths_are_what_was_moved() {
    let plan = LogPlan { window: Nanos::from_millis(100), ..all("x") };
    for count in [1, 99, 1_000] {
        let requests: Vec<LoggedIo> = (0..count).map(|i| request(i * 1_234 / count, Op::Read, 1)).collect();
        let mut since = 0.0;
        let mut moved = 0.0;
        for line in texts(&plan, &requests, 1_234)[1].lines() {
            let fields: Vec<f64> = line.split(", ").map(|field| field.parse().expect("a number")).collect();
            if count == 1_000 {
                moved += fields[1] * (fields[0] - since) / 1_000.0;
                since = fields[0];
            } else {
                moved += fields[1] / 10.0;
            }
        }
        let most = if count == 1_000 { 1.0 } else { 6.0 };
        assert!((moved - count as f64).abs() <= most, "{count}: {moved}");
    }
}

#[test]
fn histograms_add_up_to_all_requests() {
    let mut plan = LogPlan { histogram_window: Nanos::from_millis(10), ..all("x") };
    let requests: Vec<LoggedIo> =
        (0..95).map(|i| request(i, Op::DATA[i as usize % 2], i * 1_000_000_000)).collect();
    for coarseness in 0..=6 {
        plan.histogram_coarseness = coarseness;
        let log = texts(&plan, &requests, 95).remove(5);
        let mut counted = 0;
        for line in log.lines() {
            let columns: Vec<u64> =
                line.split(", ").map(|column| column.parse().expect("a number")).collect();
            assert_eq!(columns.len(), 3 + (1856 >> coarseness));
            assert_eq!(columns[2], 4096);
            counted += columns[3..].iter().sum::<u64>();
        }
        assert_eq!(counted, 95);
        assert!(log.starts_with("10, 0, 4096, ") && log.lines().count() == 20, "{coarseness}");
    }
    plan.histogram_window = Nanos::ZERO;
    assert_eq!(texts(&plan, &requests, 95)[5].lines().count(), 2);
}

#[test]
fn lines_are_in_the_order_of_time() {
    let plan = LogPlan { window: Nanos::from_millis(100), ..all("x") };
    let requests: Vec<LoggedIo> =
        [(10, Op::Read), (20, Op::Write), (120, Op::Read), (900, Op::Read), (910, Op::Write)]
            .map(|(at, op)| request(at, op, 1))
            .into();
    let lines =
        "100, 10, 0, 0, 0\n100, 10, 1, 0, 0\n200, 10, 0, 0, 0\n1000, 10, 0, 0, 0\n1000, 10, 1, 0, 0\n";
    assert_eq!(texts(&plan, &requests, 1_000)[1], lines);
}
