//! The full-screen view: a pure function of a state and a size to a canvas of cells.

mod canvas;
mod charts;
mod course;
mod figures;
mod lists;
mod monitor;
mod ping;
#[cfg(test)]
mod tests;

use fathom_model::Nanos;
use fathom_model::units::{UnitSystem, duration, grouped, latency};
use fathom_report::live::{LivePoint, LiveStage, LiveState};

use crate::progress;
use canvas::{Area, Colour, Paint};
pub use canvas::{Canvas, Look};
use charts::TimeAxis;
use course::Course;

/// The smallest screen with charts.
const MIN_SIZE: (usize, usize) = (60, 16);
/// Columns of the figures beside the charts.
const FIGURE_COLUMNS: usize = 29;
/// From this width on the plan stands beside the charts.
const PLAN_BESIDE_FROM: usize = 130;
const PLAN_COLUMNS: usize = 62;

/// What a view says of the key `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextWords {
    /// At the lower edge.
    pub short: &'static str,
    /// In the help.
    pub long: &'static str,
}

/// It ends the running test.
pub const END_TEST: NextWords =
    NextWords { short: "next test", long: "end this test, keep it as incomplete, go on with the next" };
/// It shows another device.
pub const SHOW_DEVICE: NextWords =
    NextWords { short: "next device", long: "show the charts and processes of the next device" };

/// What the view shows beside the state.
#[derive(Clone, Copy, Debug)]
pub struct ViewOptions<'a> {
    /// The state is not the latest.
    pub is_paused: bool,
    /// The help covers the middle.
    pub shows_help: bool,
    /// What the key for the next does; `None` = nothing.
    pub next: Option<NextWords>,
    /// The device of a monitor whose figures are shown; `None` = the one that has done most.
    pub device: Option<&'a str>,
    /// Units of rates and amounts.
    pub units: UnitSystem,
}

/// Draws `state` on a screen of `size`: columns and rows.
pub fn draw(state: &LiveState, options: &ViewOptions, size: (usize, usize), look: Look) -> Canvas {
    let mut canvas = Canvas::new(size, look);
    let (head, rest) = canvas.area().split_rows(1);
    let (body, foot) = rest.split_rows(rest.height.saturating_sub(1));
    header(&mut canvas, head, state, options);
    if size.0 < MIN_SIZE.0 || size.1 < MIN_SIZE.1 {
        small(&mut canvas, body, state, options);
    } else {
        panels(&mut canvas, body, state, options);
    }
    canvas.bar(foot, Paint::REVERSE);
    canvas.text(foot, &lists::key_row(options.next), Paint::REVERSE);
    if options.shows_help {
        lists::help(&mut canvas, options.next);
    }
    canvas
}

/// The command, its target, and the time left.
fn header(canvas: &mut Canvas, area: Area, state: &LiveState, options: &ViewOptions) {
    canvas.bar(area, Paint::REVERSE);
    let left = state.time_left.map(|left| format!("{} left ", duration(left))).unwrap_or_default();
    let paused = if options.is_paused { "PAUSED  " } else { "" };
    let right = format!("{paused}{left}");
    let (name, _) = area.split_columns(area.width.saturating_sub(right.len() + 1));
    let title = format!(" fathom {} {}", state.command, state.target);
    canvas.text(name, title.trim_end(), Paint { bold: true, ..Paint::REVERSE });
    canvas.text_right(area, &right, Paint::REVERSE);
}

/// What there is room for where there is little.
fn small(canvas: &mut Canvas, area: Area, state: &LiveState, options: &ViewOptions) {
    let course = Course::of(state, options.device);
    let lines = [
        stage_text(state, options),
        format!("{}  {}/s", rate_text(course.iops), options.units.amount(course.bytes_per_second as u64)),
        latency_text(&course),
        format!("(charts need {} x {})", MIN_SIZE.0, MIN_SIZE.1),
    ];
    canvas.lines(area, lines.map(|line| (line, Paint::PLAIN)));
}

fn panels(canvas: &mut Canvas, area: Area, state: &LiveState, options: &ViewOptions) {
    let (stage, rest) = area.split_rows(1);
    stage_row(canvas, stage, state, options);
    let has_plan_beside = area.width >= PLAN_BESIDE_FROM;
    let second_rows = 1 + rest.height / 12;
    let first_rows = if has_plan_beside { 0 } else { 2 + rest.height / 12 };
    let lists_rows = 1 + second_rows + if has_plan_beside { 0 } else { 1 + first_rows };
    let (upper, lower) = rest.split_rows(rest.height - lists_rows);
    let (upper, beside) = match has_plan_beside {
        true => upper.split_columns(upper.width - PLAN_COLUMNS),
        false => (upper, Area::default()),
    };
    let (left, right) = upper.split_columns(upper.width - FIGURE_COLUMNS);
    let (left, _) = left.split_columns(left.width - 2);
    time_charts(canvas, left, &Course::of(state, options.device));
    figures::draw(canvas, right, state, options);
    let (first, second) = lower.split_rows(if has_plan_beside { 0 } else { 1 + first_rows });
    let first = if has_plan_beside { beside.split_columns(1).1 } else { first };
    if let Some(monitor) = &state.monitor {
        titled(canvas, first, "Devices", |canvas, area| monitor::devices(canvas, area, monitor, options));
        titled(canvas, second, "Processes", |canvas, area| {
            monitor::processes(canvas, area, state, options);
        });
        return;
    }
    match &state.ping {
        Some(ping) => titled(canvas, first, "Requests", |canvas, area| ping::requests(canvas, area, ping)),
        None => {
            titled(canvas, first, "Plan", |canvas, area| lists::plan(canvas, area, state, options.units));
        }
    }
    titled(canvas, second, "Findings", |canvas, area| lists::findings(canvas, area, state));
}

/// A heading with `draw` below it.
fn titled(canvas: &mut Canvas, area: Area, title: &str, draw: impl FnOnce(&mut Canvas, Area)) {
    let (head, rest) = area.split_rows(1);
    canvas.text(head, title, Paint::BOLD);
    draw(canvas, rest);
}

/// Rates, latencies and the heat map, above each other, on the same time axis.
fn time_charts(canvas: &mut Canvas, area: Area, course: &Course) {
    let axis = TimeAxis::of(course, charts::heat_columns(area));
    let bars = 1 + usize::from(course.has_rates);
    let rows = area.height.saturating_sub(bars + usize::from(course.has_distribution));
    // The heat map has the larger part.
    let chart = match (course.has_distribution, bars) {
        (true, 2) => rows * 3 / 10,
        (true, _) => rows * 4 / 10,
        (false, _) => rows / bars,
    };
    let chart = chart.max(1);
    let indent = |area: Area| area.split_columns(area.width - charts::heat_columns(area)).1;
    let (rate, rest) = area.split_rows(if course.has_rates { 1 + chart } else { 0 });
    let title = format!("{}, peak {}", rate_text(course.iops), grouped(axis.highest_iops().round() as u64));
    titled(canvas, rate, &title, |canvas, area| charts::rates(canvas, indent(area), &axis));
    let (latency_area, heat) = rest.split_rows(1 + chart);
    let most = axis.highest_p99();
    let name = if course.has_bins { "peak p99" } else { "peak" };
    let peak = if most > 0 { format!(", {name} {}", latency(most)) } else { String::new() };
    let title = format!("{}{peak}", latency_text(course));
    titled(canvas, latency_area, &title, |canvas, area| {
        charts::latencies(canvas, indent(area), &axis);
    });
    if course.has_distribution {
        let title = format!("Latency distribution{}", axis_text(&axis.points));
        titled(canvas, heat, &title, |canvas, area| charts::heat_map(canvas, area, &axis));
    }
}

/// `, 0 to 42 s, 2 s each`: the time of the points and the length of one.
fn axis_text(points: &[LivePoint]) -> String {
    let all: u64 = points.iter().map(|point| point.span_ns).sum();
    // The last may have begun only now.
    let whole = &points[..points.len().saturating_sub(1).max(points.len().min(1))];
    if whole.is_empty() {
        return String::new();
    }
    let mean_ns = whole.iter().map(|point| point.span_ns).sum::<u64>() as f64 / whole.len() as f64;
    // Ticks come a little late; half seconds are what they are meant to be.
    let each = (mean_ns / 5e8).round() / 2.0;
    let each = if each > 0.0 { format!("{each} s") } else { duration(Nanos(mean_ns as u64)) };
    format!(", 0 to {}, {each} each", duration(Nanos(all)))
}

/// The test, and how far it is.
fn stage_row(canvas: &mut Canvas, area: Area, state: &LiveState, options: &ViewOptions) {
    let stall = match &state.monitor {
        Some(monitor) => monitor::stall(monitor, options),
        None => state.stalled_ns().map(|_| progress::describe(&state.snapshot)),
    };
    match stall {
        Some(stall) => {
            canvas.text(area, &stall, Paint { bold: true, ..Paint::of(Colour::Red) });
        }
        None => {
            canvas.text(area, &stage_text(state, options), Paint::BOLD);
        }
    }
}

fn stage_text(state: &LiveState, options: &ViewOptions) -> String {
    if let Some(monitor) = &state.monitor {
        return monitor::stage(monitor, options);
    }
    let snapshot = &state.snapshot;
    let mut text = String::new();
    if let Some(test) = &state.test {
        let of = test.of.map(|of| format!(" of {of}")).unwrap_or_default();
        text = format!("Test {}{of}: {}  ", test.number, test.id);
    }
    if let Some(ping) = &state.ping {
        text = format!("{}  ", ping::title(ping, options.units));
    }
    match &state.stage {
        LiveStage::Layout(done, total) => {
            let amounts = [*done, *total].map(fathom_model::units::bytes);
            format!("{text}file layout: {} of {}", amounts[0], amounts[1])
        }
        stage @ (LiveStage::Ramp | LiveStage::Measuring) => {
            let elapsed = duration(Nanos(snapshot.elapsed_ns));
            let all = snapshot.remaining_ns.map(|left| Nanos(snapshot.elapsed_ns + left));
            let all = all.map(|all| format!(" of {}", duration(all))).unwrap_or_default();
            format!("{text}{}, {elapsed}{all}", stage.name())
        }
        stage => format!("{text}{}", stage.name()),
    }
}

fn rate_text(iops: [f64; 3]) -> String {
    let iops = iops.map(|iops| iops.round() as u64);
    let names = ["read", "write", "trim"].into_iter().zip(iops).filter(|(_, iops)| *iops > 0);
    let parts: Vec<String> = names.map(|(name, iops)| format!("{name} {}", grouped(iops))).collect();
    let apart = if parts.len() > 1 { format!(" ({})", parts.join(", ")) } else { String::new() };
    format!("IOPS {}{apart}", grouped(iops.iter().sum()))
}

fn latency_text(course: &Course) -> String {
    let mean = course.mean_ns.map_or_else(|| "unknown".to_owned(), latency);
    format!("Latency ({}) mean {mean}", course.span)
}
