//! What `monitor` shows on a terminal and at its end: a row for each device, and below it what the columns have no room for. Pure.

use std::collections::BTreeMap;

use fathom_analysis::monitor::{MonitorInterval, OpActivity, Presence, ProcessActivity};
use fathom_model::units::{bytes, duration, grouped, latency};
use fathom_model::{Nanos, Op};
use fathom_record::RunRecord;

use super::json::document;
use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, Tone, View};

/// What devices did in the time that `title` names.
pub fn view(title: &str, intervals: &[MonitorInterval]) -> View {
    let columns = [
        Column::left("device"),
        Column::right("read/s").takes_remark(),
        Column::right("rMiB/s").dispensable(5),
        Column::right("rsize").dispensable(2),
        Column::right("rawait"),
        Column::right("write/s"),
        Column::right("wMiB/s").dispensable(4),
        Column::right("wsize").dispensable(1),
        Column::right("wawait"),
        Column::right("queue").dispensable(3),
        Column::right("busy"),
        Column::right("busy/IO").dispensable(0),
    ];
    let mut view = View { data: data(intervals), ..View::default() };
    let table = Table::new(columns, intervals.iter().map(row));
    let details = intervals.iter().flat_map(|interval| {
        let figure = |text| KeyFigure { tone: Tone::Dim, ..KeyFigure::new(&interval.device.name, text) };
        below(interval).into_iter().map(figure)
    });
    view.push(title, [Block::Table(table), Block::KeyFigures(details.collect())]);
    view.push("", [Block::Notes(legend(intervals))]);
    view
}

/// The means of a run over all its time.
pub fn means(record: &RunRecord) -> View {
    let devices = record.tests.iter().filter_map(|test| test.monitored());
    let means: Vec<MonitorInterval> = devices.map(|device| device.means.clone()).collect();
    let longest = means.iter().map(|means| means.elapsed_ns).max().unwrap_or(0);
    let mut view = view(&format!("Means over {}", duration(Nanos(longest))), &means);
    let notes = record.tests.first().map(|test| test.notes.clone()).unwrap_or_default();
    view.push("", [Block::Notes(notes)]);
    view
}

/// The remark on a device that does not answer.
pub(super) fn stall(interval: &MonitorInterval) -> Option<String> {
    let length = interval.stalled_ns.filter(|_| !interval.activity.is_some())?;
    Some(format!("stalled for {}, {} in flight", duration(Nanos(length)), grouped(interval.in_flight.last)))
}

fn row(interval: &MonitorInterval) -> Row {
    let device = Cell::from(interval.device.name.as_str());
    if interval.presence == Presence::Gone {
        return Row { remark: Some("not present".to_owned()), ..Row::new([device]) };
    }
    if let Some(stalled) = stall(interval) {
        return Row { cells: vec![device], tone: Tone::Alarm, remark: Some(stalled), ..Row::default() };
    }
    let none = || Cell::from("-");
    let mut cells = vec![device];
    for op in [Op::Read, Op::Write] {
        let done = &interval.activity.ops[op];
        if done.ios == 0 {
            cells.extend([none(), none(), none(), none()]);
            continue;
        }
        cells.push(interval.per_second(done.ios).map_or_else(none, Cell::iops));
        cells.push(interval.per_second(done.bytes).map_or_else(none, Cell::mebibytes));
        cells.push(done.mean_bytes().map_or_else(none, |mean| Cell::bytes(mean.round() as u64)));
        cells.push(wait(done).into());
    }
    let queue = |depth: f64| Cell::real(depth, format!("{depth:.2}"));
    let busy = |share: f64| Cell::real(share, format!("{:.0} %", share * 100.0));
    cells.push(interval.queue_depth_mean().map_or_else(none, queue));
    cells.push(interval.utilisation().map_or_else(none, busy));
    cells.push(interval.busy_per_request_ns().map_or_else(none, |ns| Cell::mean_latency(ns.round())));
    Row::new(cells)
}

/// Discards, flushes, requests in flight, what the trace tells, and whose load it is; each only where there is any.
fn below(interval: &MonitorInterval) -> Vec<String> {
    if interval.presence == Presence::Gone || !interval.activity.is_some() {
        return Vec::new();
    }
    let mut parts = Vec::new();
    let per_second =
        |count: u64| interval.per_second(count).map(|rate| Cell::iops(rate).text).unwrap_or_default();
    let (trim, flush) = (&interval.activity.ops.trim, &interval.activity.flush);
    if trim.ios > 0 {
        let moved = interval.per_second(trim.bytes).map(mebibytes).unwrap_or_default();
        parts.push(format!("trim {}/s {moved} MiB/s {}", per_second(trim.ios), wait(trim)));
    }
    if flush.ios > 0 {
        parts.push(format!("flush {}/s {}", per_second(flush.ios), wait(flush)));
    }
    let in_flight = &interval.in_flight;
    // Between two readings there may have been more.
    let readings = match in_flight.samples {
        1 => "1 reading".to_owned(),
        samples => format!("{samples} readings"),
    };
    parts.push(format!("in flight {} now, at most {} in {readings}", in_flight.last, in_flight.most));
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
        let summary = seen.service.summary();
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
        lines.push(format!("{} events were lost: they came too fast", grouped(load.lost)));
    }
    lines
}

fn mebibytes(bytes_per_second: f64) -> String {
    Cell::mebibytes(bytes_per_second).text
}

/// The size of the requests, or the most frequent one.
fn sizes(sizes: &BTreeMap<u64, u64>) -> String {
    let most = sizes.iter().max_by_key(|(_, count)| **count).map_or(0, |(&size, _)| size);
    if sizes.len() > 1 { format!("{} sizes, mostly {}", sizes.len(), bytes(most)) } else { bytes(most) }
}

fn owners(interval: &MonitorInterval) -> Option<String> {
    let one = |owner: &ProcessActivity| {
        let mut moved = Vec::new();
        for (rate, verb) in [(owner.read_bytes_per_second, "read"), (owner.write_bytes_per_second, "written")]
        {
            if rate > 0.0 {
                moved.push(format!("{} MiB/s {verb}", mebibytes(rate)));
            }
        }
        format!("{} ({}) {}", owner.command, owner.process, moved.join(" "))
    };
    let owners: Vec<String> = interval.owners.iter().map(one).collect();
    (!owners.is_empty()).then(|| format!("by {}", owners.join(", ")))
}

/// What the columns mean, and what is known of the devices.
fn legend(intervals: &[MonitorInterval]) -> Vec<String> {
    let text = "rawait, wawait: mean time from issue to completion. queue: mean queue depth. busy: share of time \
         with any I/O in flight; a parallel device can be 100 % busy and still have capacity.";
    let mut notes = vec![text.to_owned()];
    for device in intervals.iter().map(|interval| &interval.device) {
        let mut parts = Vec::new();
        parts.extend(device.asked.as_ref().map(|asked| format!("given as {asked}")));
        if !device.under.is_empty() {
            parts.push(format!("on {}", device.under.join(", ")));
        }
        if device.stacked {
            parts.push("counts requests before they are merged or split".to_owned());
        }
        if !parts.is_empty() {
            notes.push(format!("{}: {}", device.name, parts.join("; ")));
        }
    }
    notes
}

/// The mean wait; where the kernel's whole milliseconds are too coarse for it, what it is less than.
fn wait(done: &OpActivity) -> String {
    match (done.await_ns(), done.await_error_ns()) {
        (Some(ns), Some(error)) if ns < error => format!("<{}", latency(error.round() as u64)),
        (Some(ns), _) => latency(ns.round() as u64),
        (None, _) => "-".to_owned(),
    }
}

/// Each device with its values in base units.
fn data(intervals: &[MonitorInterval]) -> Table {
    const COLUMNS: &str = "\
        device=device.name,path=device.path,size_bytes=device.size_bytes,end_unix_ms,elapsed_ns,presence,stalled_ns,\
        read_ios=read.ios,read_iops=read.iops,read_bytes_per_second=read.bytes_per_second,\
        read_request_bytes_mean=read.request_bytes_mean,read_await_mean_ns=read.await_mean_ns,\
        write_ios=write.ios,write_iops=write.iops,write_bytes_per_second=write.bytes_per_second,\
        write_request_bytes_mean=write.request_bytes_mean,write_await_mean_ns=write.await_mean_ns,\
        trim_ios=trim.ios,trim_iops=trim.iops,trim_bytes_per_second=trim.bytes_per_second,\
        trim_await_mean_ns=trim.await_mean_ns,\
        flush_ios=flush.ios,flush_iops=flush.iops,flush_await_mean_ns=flush.await_mean_ns,\
        queue_depth_mean,utilisation,busy_per_request_ns";
    Table::of_documents(&[COLUMNS], intervals.iter().map(document))
}

#[cfg(test)]
mod tests {
    use fathom_analysis::monitor::DeviceActivity;

    use super::*;
    use crate::monitor::lines::tests::interval;
    use crate::{Style, formats, text_writer};

    fn lines(interval: MonitorInterval, width: usize) -> Vec<String> {
        let (view, style) = (view("Means over 1 s", &[interval]), Style { width, ..Style::default() });
        let text =
            text_writer::text(|out| formats::text::render(&view, &style, out)).expect("writing to memory");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_table_fits_and_details_stand_below() {
        for width in [60, 80, 120, 200] {
            let lines = lines(interval(), width);
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:#?}");
        }
        let lines = lines(interval(), 80);
        assert_eq!(lines[3], "  nvme0n1  flush 10/s 2.50 ms; in flight 0 now, at most 0 in 0 readings");
        assert_eq!(lines[4], "  nvme0n1  by a b (77) 48.2 MiB/s read");
    }

    #[test]
    fn devices_without_rates_have_a_remark() {
        let stalled = MonitorInterval {
            stalled_ns: Some(2_100_000_000),
            activity: DeviceActivity::default(),
            ..interval()
        };
        assert_eq!(lines(stalled, 120)[2], "  nvme0n1  stalled for 2 s, 0 in flight");
        let gone = MonitorInterval { presence: Presence::Gone, ..interval() };
        assert_eq!(lines(gone, 120)[2], "  nvme0n1  not present");
    }

    #[test]
    fn every_form_has_the_values() {
        let view = view("Means over 1 s", &[interval()]);
        insta::assert_snapshot!(
            "monitor_markdown",
            text_writer::text(|out| formats::markdown::render(&view, &Style::default(), out))
                .expect("writing to memory")
        );
        insta::assert_snapshot!(
            "monitor_csv",
            text_writer::text(|out| formats::csv::render(&view, out)).expect("writing to memory")
        );
    }

    #[test]
    fn a_wait_below_the_counter_is_no_zero() {
        let check = |ios: u64, ticks_ms: u64, expected: &str| {
            assert_eq!(wait(&OpActivity { ios, ticks_ms, ..OpActivity::default() }), expected);
        };
        check(0, 0, "-");
        check(20, 0, "<50.0 µs");
        check(20, 1, "50.0 µs");
        check(1, 0, "<1.00 ms");
    }
}
