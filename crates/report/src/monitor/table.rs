//! What `monitor` shows: lines of fixed columns for a pipe, a table that fits the width for a terminal. Pure.

use std::collections::BTreeMap;

use fathom_analysis::monitor::{MonitorInterval, OpActivity, Presence};
use fathom_model::Nanos;
use fathom_model::Op;
use fathom_model::units::{bytes, duration, grouped, latency};
use fathom_record::LatencyRecord;

use crate::Style;
use crate::columns::{Align, Columns, cut, pad, wrap};

/// A column of the lines: its head, and its width, which more digits may exceed.
const LINE: [(&str, usize); 20] = [
    ("time", 8),
    ("device", 10),
    ("r/s", 8),
    ("rMiB/s", 7),
    ("rKiB", 6),
    ("r_ms", 7),
    ("w/s", 8),
    ("wMiB/s", 7),
    ("wKiB", 6),
    ("w_ms", 7),
    ("t/s", 6),
    ("tMiB/s", 7),
    ("t_ms", 6),
    ("f/s", 6),
    ("f_ms", 6),
    ("queue", 6),
    ("now", 4),
    ("busy%", 5),
    ("busy_ms", 7),
    ("owner", 0),
];

/// Columns on the left side: words.
const WORDS: usize = 2;

/// The head of the lines.
pub fn head() -> String {
    join(LINE.iter().map(|(name, _)| (*name).to_owned()).collect())
}

/// One device in one interval on one line: units as the head says, `-` where there is no value. A stalled device and one
/// that is not there have a word instead of rates.
pub fn line(interval: &MonitorInterval, style: &Style) -> String {
    let mut cells = vec![style.time(interval.end_unix_ms, "%H:%M:%S"), interval.device.name.clone()];
    if interval.presence == Presence::Gone {
        cells.push("gone".to_owned());
        return join(cells);
    }
    if let Some(stalled) = stall(interval) {
        cells.push(stalled);
        return join(cells);
    }
    let number =
        |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |v| format!("{v:.digits$}"));
    let rate = |count: u64| number(interval.per_second(count), 1);
    let mib = |count: u64| number(interval.per_second(count).map(|rate| rate / 1_048_576.0), 2);
    let ms = |done: &OpActivity| number(done.await_ns().map(|ns| ns / 1e6), 2);
    for op in [Op::Read, Op::Write] {
        let done = &interval.activity.ops[op];
        let kib = number(done.mean_bytes().map(|mean| mean / 1024.0), 1);
        cells.extend([rate(done.ios), mib(done.bytes), kib, ms(done)]);
    }
    let (trim, flush) = (&interval.activity.ops.trim, &interval.activity.flush);
    cells.extend([rate(trim.ios), mib(trim.bytes), ms(trim), rate(flush.ios), ms(flush)]);
    cells.push(number(interval.queue_depth_mean(), 2));
    cells.push(interval.in_flight.last.to_string());
    cells.push(number(interval.utilisation().map(|share| share * 100.0), 1));
    cells.push(number(interval.busy_per_request_ns().map(|ns| ns / 1e6), 3));
    let owners: Vec<String> = interval
        .owners
        .iter()
        .map(|owner| format!("{}({})", owner.command.replace(' ', "_"), owner.process))
        .collect();
    cells.push(if owners.is_empty() { "-".to_owned() } else { owners.join(",") });
    join(cells)
}

fn join(cells: Vec<String>) -> String {
    let mut line = String::new();
    for (index, (cell, (_, width))) in cells.iter().zip(LINE).enumerate() {
        if index > 0 {
            line.push(' ');
        }
        match index {
            0..WORDS => line.push_str(&pad(cell, width)),
            _ => line.push_str(&format!("{cell:>width$}")),
        }
    }
    line.trim_end_matches(' ').to_owned()
}

/// What is to be said of a device that does not answer.
fn stall(interval: &MonitorInterval) -> Option<String> {
    let length = interval.stalled_ns.filter(|_| !interval.activity.is_some())?;
    Some(format!("stalled for {}, {} in flight", duration(Nanos(length)), grouped(interval.in_flight.last)))
}

/// The table for a terminal: one line per device, and below it what the columns have no room for.
pub fn table(intervals: &[MonitorInterval], style: &Style) -> Vec<String> {
    let heads = [
        "device", "read/s", "rMiB/s", "rsize", "rawait", "write/s", "wMiB/s", "wsize", "wawait", "queue",
        "busy", "busy/IO",
    ];
    let mut columns = Columns {
        head: heads.to_vec(),
        align: std::iter::once(Align::Left).chain([Align::Right; 11]).collect(),
        rows: intervals.iter().map(row).collect(),
    };
    let gap = columns.fit(style.width, &["busy/IO", "wsize", "rsize"]);
    let mut lines: Vec<String> = columns.lines(gap).iter().map(|line| cut(line, style.width)).collect();
    let head = style.bold(&lines.remove(0));
    let rows = lines.into_iter().zip(intervals).flat_map(|(row, interval)| {
        let row = if stall(interval).is_some() { style.red(&row) } else { row };
        let below = below(interval).into_iter().flat_map(|text| wrap(&text, style.width, 2, 4));
        std::iter::once(row).chain(below.map(|line| style.dim(&line)).collect::<Vec<_>>())
    });
    std::iter::once(head).chain(rows.collect::<Vec<_>>()).collect()
}

fn row(interval: &MonitorInterval) -> Vec<String> {
    let mut cells = vec![interval.device.name.clone()];
    if interval.presence == Presence::Gone {
        cells.push("not there".to_owned());
        return cells;
    }
    if let Some(stalled) = stall(interval) {
        cells.push(stalled);
        return cells;
    }
    let none = || "-".to_owned();
    for op in [Op::Read, Op::Write] {
        let done = &interval.activity.ops[op];
        if done.ios == 0 {
            cells.extend([none(), none(), none(), none()]);
            continue;
        }
        cells.push(interval.per_second(done.ios).map_or_else(none, rate));
        cells.push(interval.per_second(done.bytes).map_or_else(none, mib));
        cells.push(done.mean_bytes().map_or_else(none, size));
        cells.push(wait(done));
    }
    cells.push(interval.queue_depth_mean().map_or_else(none, |depth| format!("{depth:.2}")));
    cells.push(interval.utilisation().map_or_else(none, |share| format!("{:.0} %", share * 100.0)));
    cells.push(interval.busy_per_request_ns().map_or_else(none, |ns| latency(ns.round() as u64)));
    cells
}

/// Discards, flushes, requests in flight, what the trace tells, and whose load it is; each only where there is any.
fn below(interval: &MonitorInterval) -> Vec<String> {
    if interval.presence == Presence::Gone || !interval.activity.is_some() {
        return Vec::new();
    }
    let mut parts = Vec::new();
    let per_second = |count: u64| interval.per_second(count).map(rate).unwrap_or_default();
    let (trim, flush) = (&interval.activity.ops.trim, &interval.activity.flush);
    if trim.ios > 0 {
        let moved = interval.per_second(trim.bytes).map(mib).unwrap_or_default();
        parts.push(format!("trim {}/s {moved} MiB/s {}", per_second(trim.ios), wait(trim)));
    }
    if flush.ios > 0 {
        parts.push(format!("flush {}/s {}", per_second(flush.ios), wait(flush)));
    }
    let in_flight = &interval.in_flight;
    parts.push(format!("in flight {} now, {} at most", in_flight.last, in_flight.most));
    let mut lines = vec![parts.join("; ")];
    lines.extend(traced(interval));
    lines.extend(owners(interval));
    lines
}

/// Order, sizes and time at the device, where requests are traced; a line for each kind.
fn traced(interval: &MonitorInterval) -> Vec<String> {
    let Some(load) = &interval.load else { return Vec::new() };
    let mut lines = Vec::new();
    for (op, seen) in &load.ops {
        let Some(share) = seen.sequential_share() else { continue };
        let mut parts = Vec::new();
        if !op.is_sync() {
            parts.push(format!("{:.0} % sequential, {}", share * 100.0, sizes(&seen.all().sizes)));
        }
        let summary = LatencyRecord::from_stats(&seen.service).summary();
        let known = [("p50", summary.p50), ("p99", summary.p99), ("max", summary.max)];
        let known: Vec<String> =
            known.iter().filter_map(|(name, ns)| Some(format!("{name} {}", latency((*ns)?)))).collect();
        if !known.is_empty() {
            parts.push(format!("at the device {}", known.join(" ")));
        }
        let name = if op.is_sync() { "flush" } else { op.name() };
        lines.push(format!("{name}: {}", parts.join(", ")));
    }
    if load.lost > 0 {
        lines.push(format!("{} events came too fast to be seen", grouped(load.lost)));
    }
    lines
}

/// The size of the requests, or the most frequent one.
fn sizes(sizes: &BTreeMap<u64, u64>) -> String {
    let most = sizes.iter().max_by_key(|(_, count)| **count).map_or(0, |(&size, _)| size);
    if sizes.len() > 1 { format!("{} sizes, mostly {}", sizes.len(), bytes(most)) } else { bytes(most) }
}

fn owners(interval: &MonitorInterval) -> Option<String> {
    let one = |owner: &fathom_analysis::monitor::ProcessActivity| {
        let mut moved = Vec::new();
        for (rate, verb) in [(owner.read_bytes_per_second, "read"), (owner.write_bytes_per_second, "written")]
        {
            if rate > 0.0 {
                moved.push(format!("{} MiB/s {verb}", mib(rate)));
            }
        }
        format!("{} ({}) {}", owner.command, owner.process, moved.join(" "))
    };
    let owners: Vec<String> = interval.owners.iter().map(one).collect();
    (!owners.is_empty()).then(|| format!("by {}", owners.join(", ")))
}

/// What the columns mean, for below the table.
pub fn legend(intervals: &[MonitorInterval], style: &Style) -> Vec<String> {
    let text = "rawait, wawait: from when a request is made to its completion. queue: requests waiting or served, mean over time. \
                busy: share of time with any request in flight; a device that serves several at once can be 100 % busy \
                and take more.";
    let mut lines = wrap(text, style.width, 0, 0);
    for device in intervals.iter().map(|interval| &interval.device) {
        let mut parts = vec![device.name.clone()];
        parts.extend(device.asked.as_ref().map(|asked| format!("asked for as {asked}")));
        if !device.under.is_empty() {
            parts.push(format!("lies on {}", device.under.join(", ")));
        }
        if device.stacked {
            parts.push("counts requests before they are merged or split".to_owned());
        }
        if parts.len() > 1 {
            lines.extend(wrap(&format!("{}: {}", parts[0], parts[1..].join("; ")), style.width, 0, 2));
        }
    }
    lines.into_iter().map(|line| style.dim(&line)).collect()
}

/// The mean wait; where the kernel's whole milliseconds are too coarse for it, what it is less than.
fn wait(done: &OpActivity) -> String {
    match (done.await_ns(), done.await_error_ns()) {
        (Some(ns), Some(error)) if ns < error => format!("<{}", latency(error.round() as u64)),
        (Some(ns), _) => latency(ns.round() as u64),
        (None, _) => "-".to_owned(),
    }
}

/// `1,204`, with a decimal below ten.
fn rate(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { grouped(value.round() as u64) }
}

fn mib(value: f64) -> String {
    let mib = value / 1_048_576.0;
    match mib {
        _ if mib < 9.995 => format!("{mib:.2}"),
        _ if mib < 99.95 => format!("{mib:.1}"),
        _ => grouped(mib.round() as u64),
    }
}

/// `4.0K`, `1.2M`.
fn size(mean: f64) -> String {
    let kib = mean / 1024.0;
    match kib {
        _ if kib < 99.95 => format!("{kib:.1}K"),
        _ if kib < 999.5 => format!("{kib:.0}K"),
        _ => format!("{:.1}M", kib / 1024.0),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fathom_analysis::monitor::{Activity, ProcessActivity, WatchedDevice};
    use fathom_model::PerOp;

    use super::*;

    fn interval() -> MonitorInterval {
        let read = OpActivity { ios: 12_345, merges: 20, bytes: 12_345 * 4096, ticks_ms: 24_690 };
        let flush = OpActivity { ios: 10, ticks_ms: 25, ..OpActivity::default() };
        let ops = PerOp { read, ..PerOp::default() };
        MonitorInterval {
            number: 1,
            elapsed_ns: 1_000_000_000,
            device: Arc::new(WatchedDevice { name: "nvme0n1".into(), ..WatchedDevice::default() }),
            activity: Activity { ops, flush, busy_ms: 990, queue_ms: 24_715 },
            owners: vec![ProcessActivity {
                process: 77,
                command: "a b".into(),
                read_bytes_per_second: 50_565_120.0,
                ..ProcessActivity::default()
            }],
            ..MonitorInterval::default()
        }
    }

    #[test]
    fn lines_have_as_many_words_as_their_head() {
        let line = line(&interval(), &Style::default());
        assert_eq!(line.split_whitespace().count(), head().split_whitespace().count());
        assert_eq!(
            line,
            "00:00:00 nvme0n1     12345.0   48.22    4.0    2.00      0.0    0.00      -       -    0.0    0.00      -   10.0   2.50  24.71    0  99.0   0.080 a_b(77)"
        );
    }

    #[test]
    fn a_table_fits_and_says_the_rest_below() {
        for width in [60, 80, 120, 200] {
            let lines = table(&[interval()], &Style { width, ..Style::default() });
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:#?}");
            assert_eq!(lines.len(), 4, "{lines:#?}");
        }
        let lines = table(&[interval()], &Style::default());
        assert_eq!(lines[2], "  flush 10/s 2.50ms; in flight 0 now, 0 at most");
        assert_eq!(lines[3], "  by a b (77) 48.2 MiB/s read");
    }

    #[test]
    fn what_cannot_be_measured_is_said() {
        let stalled =
            MonitorInterval { stalled_ns: Some(2_100_000_000), activity: Activity::default(), ..interval() };
        assert!(line(&stalled, &Style::default()).ends_with("stalled for 2 s, 0 in flight"));
        assert!(table(&[stalled], &Style::default())[1].contains("stalled for 2 s"));
        let gone = MonitorInterval { presence: Presence::Gone, ..interval() };
        assert!(line(&gone, &Style::default()).ends_with(" gone"));
    }

    #[test]
    fn a_wait_below_the_counter_is_no_zero() {
        let check = |ios: u64, ticks_ms: u64, expected: &str| {
            assert_eq!(wait(&OpActivity { ios, ticks_ms, ..OpActivity::default() }), expected);
        };
        check(0, 0, "-");
        check(20, 0, "<50.0us");
        check(20, 1, "50.0us");
        check(1, 0, "<1.00ms");
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!([0.0, 9.94, 9.96, 1234.4].map(rate), ["0.0", "9.9", "10", "1,234"]);
        assert_eq!([512.0, 4096.0, 131_072.0, 1_048_576.0].map(size), ["0.5K", "4.0K", "128K", "1.0M"]);
        assert_eq!([1e6, 2e8].map(mib), ["0.95", "191"]);
    }
}
