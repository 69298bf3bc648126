//! The figures beside the charts: percentiles now and so far, the queue, the device's own view, the machine.

use fathom_model::units::{UnitSystem, grouped, latency};
use fathom_report::live::{DeviceLoad, LiveLatency, LivePing, LiveState};

use super::canvas::{Area, Canvas, Colour, Paint};
use super::{ViewOptions, monitor, ping};

/// A line of the panel.
pub struct Line {
    pub text: String,
    pub paint: Paint,
}

impl Line {
    /// A heading.
    pub fn heading(text: impl Into<String>) -> Line {
        Line { text: text.into(), paint: Paint::BOLD }
    }

    /// A figure.
    pub fn plain(text: impl Into<String>) -> Line {
        Line { text: text.into(), paint: Paint::PLAIN }
    }
}

/// Draws the panel, as much of it as there is room for.
pub fn draw(canvas: &mut Canvas, area: Area, state: &LiveState, options: &ViewOptions) {
    let lines = match &state.monitor {
        Some(watched) => {
            let mut lines = monitor::figures(watched, options);
            lines.extend(machine_lines(state));
            lines
        }
        None => test_lines(state, options.units),
    };
    canvas.lines(area, lines.into_iter().map(|line| (line.text, line.paint)));
}

fn test_lines(state: &LiveState, units: UnitSystem) -> Vec<Line> {
    let mut lines = latency_lines(state.span.name(), state.latency_now(), state.latency_so_far());
    match &state.ping {
        Some(ping) => lines.extend(ping_lines(ping, state)),
        None => lines.extend(load_lines(state, units)),
    }
    // The devices beneath the target's own come last, where there is room for them.
    let devices = state.devices();
    let mut devices = devices.iter();
    lines.extend(devices.next().into_iter().flat_map(|load| device_lines(load, units)));
    lines.extend(machine_lines(state));
    lines.extend(devices.flat_map(|load| device_lines(load, units)));
    lines
}

/// A table of the percentiles of latencies that span `span`.
pub fn latency_lines(span: &str, now: LiveLatency, so_far: LiveLatency) -> Vec<Line> {
    let values = |of: LiveLatency| [of.p50, of.p90, of.p99, of.p999, of.max];
    let both = values(now).into_iter().zip(values(so_far));
    let rows = ["p50", "p90", "p99", "p99.9", "max"].into_iter().zip(both);
    std::iter::once(heading(span)).chain(rows.map(|(name, (now, so_far))| row(name, now, so_far))).collect()
}

fn heading(title: &str) -> Line {
    Line::heading(format!("{title:<8}{:>8}{:>9}", "now", "so far"))
}

fn row(name: &str, now: Option<u64>, so_far: Option<u64>) -> Line {
    let text = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), latency);
    Line::plain(format!("{name:<7}{:>9}{:>9}", text(now), text(so_far)))
}

fn ping_lines(ping: &LivePing, state: &LiveState) -> Vec<Line> {
    let responses = ping::responses(ping);
    let title = (!responses.is_empty()).then(|| heading("response"));
    let rows = responses.into_iter().map(|(name, now, so_far)| row(name, now, so_far));
    let iops: f64 = state.snapshot.iops.iter().sum();
    // Below ten a second a whole number says little.
    let iops = if iops < 9.95 { format!("{iops:.1}") } else { grouped(iops.round() as u64) };
    let rate = Line::plain(format!("{:<14}{iops:>13}", "IOPS"));
    title.into_iter().chain(rows).chain([rate]).collect()
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
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}
