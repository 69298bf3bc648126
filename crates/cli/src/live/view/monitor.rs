//! What a monitor shows: its devices, the figures of one of them, and the processes behind its load.

use fathom_analysis::monitor::{MonitorInterval, OpActivity, Presence};
use fathom_model::Nanos;
use fathom_model::units::{UnitSystem, bytes, duration, grouped, latency};
use fathom_report::live::{DeviceLoad, LiveDevice, LiveMonitor, LiveState};
use fathom_report::{pad, width};

use super::ViewOptions;
use super::canvas::{Area, Canvas, Colour, Paint};
use super::{Line, latency_lines, percent};

/// Widest name in the list.
const NAME_COLUMNS: usize = 16;

/// `Interval 5 of 60: sda (/mnt/data), 100 GiB`
pub fn stage(monitor: &LiveMonitor, options: &ViewOptions) -> String {
    let of = monitor.of.map(|of| format!(" of {}", grouped(of))).unwrap_or_default();
    let Some(device) = monitor.shown(options.device) else { return "first interval".to_owned() };
    let watched = &device.now.device;
    let asked = watched.asked.as_ref().map(|asked| format!(" ({asked})")).unwrap_or_default();
    let under =
        if watched.under.is_empty() { String::new() } else { format!(" on {}", watched.under.join(", ")) };
    let number = grouped(monitor.number);
    format!("Interval {number}{of}: {}{asked}{under}, {}", watched.name, bytes(watched.size_bytes))
}

/// That the device does not respond.
pub fn stall(monitor: &LiveMonitor, options: &ViewOptions) -> Option<String> {
    let now = &monitor.shown(options.device)?.now;
    let length = duration(Nanos(now.stalled_ns?));
    Some(format!("{}: no I/O completed for {length}, {} in flight", now.device.name, now.in_flight.last))
}

/// Draws a row for each device, around the one that is shown.
pub fn devices(canvas: &mut Canvas, area: Area, monitor: &LiveMonitor, options: &ViewOptions) {
    let shown = monitor.shown(options.device).map(LiveDevice::name);
    let index = monitor.devices.iter().position(|device| Some(device.name()) == shown).unwrap_or(0);
    let first = index.saturating_sub(area.height / 2).min(monitor.devices.len().saturating_sub(area.height));
    let names = monitor.devices.iter().map(|device| width(device.name()));
    let wide = names.max().unwrap_or(0).min(NAME_COLUMNS);
    let mark = if canvas.look.unicode { '▶' } else { '>' };
    let lines = monitor.devices.iter().skip(first).map(|device| {
        let is_shown = Some(device.name()) == shown;
        let mark = if is_shown { mark } else { ' ' };
        let (text, paint) = device_row(&device.now, options.units);
        (format!("{mark} {}  {text}", pad(device.name(), wide)), Paint { bold: is_shown, ..paint })
    });
    canvas.lines(area, lines.collect::<Vec<_>>());
}

fn device_row(now: &MonitorInterval, units: UnitSystem) -> (String, Paint) {
    if now.presence == Presence::Gone {
        return ("gone".to_owned(), Paint::of(Colour::Yellow));
    }
    let Some(load) = DeviceLoad::of_interval(now) else {
        let length = duration(Nanos(now.stalled_ns.unwrap_or(0)));
        return (format!("stalled for {length}, {} in flight", now.in_flight.last), Paint::of(Colour::Red));
    };
    let rate = units.amount((load.read_bytes_per_second + load.write_bytes_per_second) as u64);
    let iops = format!("{} IOPS", grouped(load.iops.round() as u64));
    let rate = format!("{rate}/s");
    let queue = format!("queue {:.1}", load.queue_depth_mean);
    (format!("{iops:<12}  {rate:<12}  {queue:<10}  busy {}", percent(load.utilisation)), Paint::PLAIN)
}

/// Draws the processes behind the load of the device that is shown, below the latest message.
pub fn processes(canvas: &mut Canvas, area: Area, state: &LiveState, options: &ViewOptions) {
    let message = state.messages.last().map(|text| (text.clone(), Paint::of(Colour::Yellow)));
    let rest = canvas.lines(area, message);
    let device = state.monitor.as_ref().and_then(|monitor| monitor.shown(options.device));
    let owners = device.map(|device| device.now.owners.as_slice()).unwrap_or_default();
    let lines = owners.iter().map(|owner| {
        let rate = |bytes: f64| format!("{}/s", options.units.amount(bytes as u64));
        let (read, written) = (rate(owner.read_bytes_per_second), rate(owner.write_bytes_per_second));
        let text =
            format!("{}[{}]  read {read}, write {written}  {}", owner.command, owner.process, owner.file);
        (text, Paint::PLAIN)
    });
    if owners.is_empty() {
        canvas.text(rest, "none seen in the last interval", Paint::PLAIN);
    }
    canvas.lines(rest, lines.collect::<Vec<_>>());
}

/// The figures of the device that is shown.
pub fn figures(monitor: &LiveMonitor, options: &ViewOptions) -> Vec<Line> {
    let Some(device) = monitor.shown(options.device) else { return Vec::new() };
    let mut lines = Vec::new();
    if device.is_traced() {
        lines.extend(latency_lines("service", device.service_now(), device.service_so_far()));
    } else {
        lines.extend(by_kind(device, "await", |done| done.await_ns().map(|ns| latency(ns as u64))));
    }
    // Flushes move nothing.
    let size = |done: &OpActivity| done.mean_bytes().filter(|mean| *mean > 0.0);
    lines.extend(by_kind(device, "size", |done| size(done).map(|mean| options.units.amount(mean as u64))));
    let now = &device.now;
    let moved = now.per_second(now.activity.total().bytes);
    let moved =
        moved.map_or_else(|| "-".to_owned(), |moved| format!("{}/s", options.units.amount(moved as u64)));
    let busy = now.utilisation().map_or_else(|| "-".to_owned(), percent);
    let mean = now.queue_depth_mean().map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}"));
    let in_flight = format!("{}, at most {}", now.in_flight.last, device.so_far.in_flight.most);
    for (name, value) in
        [("Bandwidth", moved), ("Queue depth", mean), ("In flight", in_flight), ("Busy", busy)]
    {
        lines.push(Line::plain(format!("{name:<12}{value:>15}")));
    }
    if let Some(load) = &device.so_far.load {
        let paint = if load.lost > 0 { Paint::of(Colour::Yellow) } else { Paint::PLAIN };
        lines.push(Line { text: format!("{:<12}{:>15}", "Lost events", grouped(load.lost)), paint });
    }
    lines
}

/// A table of a figure of each kind of request that has it, now and so far.
fn by_kind(device: &LiveDevice, title: &str, text: impl Fn(&OpActivity) -> Option<String>) -> Vec<Line> {
    let (now, so_far) = (&device.now.activity, &device.so_far.activity);
    let kinds = [
        ("read", now.ops.read, so_far.ops.read),
        ("write", now.ops.write, so_far.ops.write),
        ("trim", now.ops.trim, so_far.ops.trim),
        ("flush", now.flush, so_far.flush),
    ];
    let row = |(name, now, so_far): &(&str, OpActivity, OpActivity)| {
        let (now, so_far) = (text(now).unwrap_or_else(|| "-".to_owned()), text(so_far)?);
        Some(Line::plain(format!("{name:<7}{now:>10}{so_far:>10}")))
    };
    let heading = Line::heading(format!("{title:<7}{:>10}{:>10}", "now", "so far"));
    std::iter::once(heading).chain(kinds.iter().filter_map(row)).collect()
}
