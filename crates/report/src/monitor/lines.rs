//! What `monitor` writes into a pipe: a line of fixed columns for each interval of a device. Pure.

use std::io;

use fathom_analysis::monitor::{MonitorInterval, OpActivity, Presence};
use fathom_model::Op;
use fathom_record::RunRecord;

use super::view::stall;
use crate::view::head_in;
use crate::{Style, TextWriter, pad};

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
pub fn head(style: &Style) -> String {
    let system = style.units.unwrap_or_default();
    join(LINE.iter().map(|(name, _)| head_in(system, name).to_owned()).collect())
}

/// The head and all lines of a run, then what a reader should know.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    writeln!(out, "{}", head(style))?;
    super::intervals(record)
        .into_iter()
        .try_for_each(|interval| writeln!(out, "{}", line(interval, style)))?;
    let notes = record.tests.first().map_or(&[][..], |test| &test.notes);
    notes.iter().try_for_each(|note| writeln!(out, "Note: {note}."))
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
    let mega = style.units.unwrap_or_default().mega();
    let moved = |count: u64| number(interval.per_second(count).map(|rate| rate / mega), 2);
    let ms = |done: &OpActivity| number(done.await_ns().map(|ns| ns / 1e6), 2);
    for op in [Op::Read, Op::Write] {
        let done = &interval.activity.ops[op];
        let kib = number(done.mean_bytes().map(|mean| mean / 1024.0), 1);
        cells.extend([rate(done.ios), moved(done.bytes), kib, ms(done)]);
    }
    let (trim, flush) = (&interval.activity.ops.trim, &interval.activity.flush);
    cells.extend([rate(trim.ios), moved(trim.bytes), ms(trim), rate(flush.ios), ms(flush)]);
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

#[cfg(test)]
pub(super) mod tests {
    use fathom_analysis::monitor::{DeviceActivity, ProcessActivity, WatchedDevice};
    use fathom_model::PerOp;

    use super::*;

    pub(in crate::monitor) fn interval() -> MonitorInterval {
        let read = OpActivity { ios: 12_345, merges: 20, bytes: 12_345 * 4096, ticks_ms: 24_690 };
        let flush = OpActivity { ios: 10, ticks_ms: 25, ..OpActivity::default() };
        let ops = PerOp { read, ..PerOp::default() };
        MonitorInterval {
            number: 1,
            elapsed_ns: 1_000_000_000,
            device: WatchedDevice { name: "nvme0n1".into(), ..WatchedDevice::default() },
            activity: DeviceActivity { ops, flush, busy_ms: 990, queue_ms: 24_715 },
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
        assert_eq!(line.split_whitespace().count(), head(&Style::default()).split_whitespace().count());
        assert_eq!(
            line,
            "00:00:00 nvme0n1     12345.0   48.22    4.0    2.00      0.0    0.00      -       -    0.0    0.00      -   10.0   2.50  24.71    0  99.0   0.080 a_b(77)"
        );
    }

    #[test]
    fn unknown_rates_have_a_reason() {
        let stalled = MonitorInterval {
            stalled_ns: Some(2_100_000_000),
            activity: DeviceActivity::default(),
            ..interval()
        };
        assert!(line(&stalled, &Style::default()).ends_with("stalled for 2 s, 0 in flight"));
        let gone = MonitorInterval { presence: Presence::Gone, ..interval() };
        assert!(line(&gone, &Style::default()).ends_with(" gone"));
    }
}
