//! The figures beside the charts: percentiles now and so far, the queue, the device's own view, the machine.

use fathom_model::units::{UnitSystem, grouped, latency};
use fathom_report::live::{DeviceLoad, LiveLatency, LiveState};

use super::canvas::{Area, Canvas, Colour, Paint};

/// A line of the panel.
struct Line {
    text: String,
    paint: Paint,
}

impl Line {
    fn heading(text: impl Into<String>) -> Line {
        Line { text: text.into(), paint: Paint::BOLD }
    }

    fn plain(text: impl Into<String>) -> Line {
        Line { text: text.into(), paint: Paint::PLAIN }
    }
}

/// Draws the panel, as much of it as there is room for.
pub fn draw(canvas: &mut Canvas, area: Area, state: &LiveState, units: UnitSystem) {
    let mut lines = latency_lines(state);
    lines.extend(load_lines(state, units));
    // The devices beneath the target's own come last, where there is room for them.
    let devices = state.devices();
    let mut devices = devices.iter();
    lines.extend(devices.next().into_iter().flat_map(|load| device_lines(load, units)));
    lines.extend(machine_lines(state));
    lines.extend(devices.flat_map(|load| device_lines(load, units)));
    let mut rest = area;
    for line in lines {
        let (row, below) = rest.split_rows(1);
        canvas.text(row, &line.text, line.paint);
        rest = below;
    }
}

fn latency_lines(state: &LiveState) -> Vec<Line> {
    let mut lines = vec![Line::heading(format!("{:<7}{:>9}{:>9}", "clat", "now", "so far"))];
    let values = |of: LiveLatency| [of.p50, of.p90, of.p99, of.p999, of.max];
    let (now, so_far) = (values(state.latency_now()), values(state.latency_so_far()));
    let text = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), latency);
    for (name, (now, so_far)) in
        ["p50", "p90", "p99", "p99.9", "max"].into_iter().zip(now.into_iter().zip(so_far))
    {
        lines.push(Line::plain(format!("{name:<7}{:>9}{:>9}", text(now), text(so_far))));
    }
    lines
}

fn load_lines(state: &LiveState, units: UnitSystem) -> Vec<Line> {
    let snapshot = &state.snapshot;
    let moved: f64 = snapshot.bytes_per_second.iter().sum();
    let mut lines = vec![
        Line::plain(format!("{:<14}{:>11}/s", "Bandwidth", units.amount(moved as u64))),
        Line::plain(format!("{:<14}{:>13}", "In flight", grouped(snapshot.in_flight))),
    ];
    if snapshot.workers > 1 {
        let workers = format!("{} of {}", snapshot.running, snapshot.workers);
        lines.push(Line::plain(format!("{:<14}{workers:>13}", "Jobs running")));
    }
    lines
}

fn device_lines(load: &DeviceLoad, units: UnitSystem) -> Vec<Line> {
    let moved = units.amount((load.read_bytes_per_second + load.write_bytes_per_second) as u64);
    let wait = load.await_mean_ns.map_or_else(|| "-".to_owned(), |ns| latency(ns as u64));
    vec![
        Line::heading(format!("Device {}, busy {}", load.name, percent(load.utilisation))),
        Line::plain(format!("{} IOPS, {moved}/s", grouped(load.iops.round() as u64))),
        Line::plain(format!("queue {:.1}, await {wait}", load.queue_depth_mean)),
    ]
}

fn machine_lines(state: &LiveState) -> Vec<Line> {
    let Some(shares) = state.host_shares() else { return Vec::new() };
    // More than a hundredth of the time lost to other guests shows in latencies.
    let paint = if shares.steal > 0.01 { Paint::of(Colour::Yellow) } else { Paint::PLAIN };
    let steal = format!("steal {}, I/O wait {}", percent(shares.steal), percent(shares.iowait));
    vec![Line::heading(format!("CPU busy {}", percent(shares.busy))), Line { text: steal, paint }]
}

/// `12 %`, with a decimal where there is little.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}
