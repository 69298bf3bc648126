//! The full-screen view: a pure function of a state and a size to a canvas of cells.

mod canvas;
mod charts;
mod monitor;
mod ping;
#[cfg(test)]
mod tests;

use fathom_model::Nanos;
use fathom_model::units::{UnitSystem, duration, grouped, latency};
use fathom_record::{Finding, Severity, TestStatus};
use fathom_report::live::{
    DeviceLoad, LiveLatency, LivePing, LivePoint, LiveStage, LiveState, LiveStep, LiveStepState,
};
use fathom_report::{pad, width, wrap};

use crate::progress;
use canvas::{Area, Colour, Paint};
pub use canvas::{Canvas, Look};
use charts::{Course, TimeAxis};

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
    canvas.text(foot, &key_row(options.next), Paint::REVERSE);
    if options.shows_help {
        help(&mut canvas, options.next);
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
    draw_figures(canvas, right, state, options);
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
            titled(canvas, first, "Plan", |canvas, area| plan(canvas, area, state, options.units));
        }
    }
    titled(canvas, second, "Findings", |canvas, area| findings(canvas, area, state));
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
pub fn draw_figures(canvas: &mut Canvas, area: Area, state: &LiveState, options: &ViewOptions) {
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
    std::iter::once(figure_heading(span))
        .chain(rows.map(|(name, (now, so_far))| figure_row(name, now, so_far)))
        .collect()
}

fn figure_heading(title: &str) -> Line {
    Line::heading(format!("{title:<8}{:>8}{:>9}", "now", "so far"))
}

fn figure_row(name: &str, now: Option<u64>, so_far: Option<u64>) -> Line {
    let text = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), latency);
    Line::plain(format!("{name:<7}{:>9}{:>9}", text(now), text(so_far)))
}

fn ping_lines(ping: &LivePing, state: &LiveState) -> Vec<Line> {
    let responses = ping::responses(ping);
    let title = (!responses.is_empty()).then(|| figure_heading("response"));
    let rows = responses.into_iter().map(|(name, now, so_far)| figure_row(name, now, so_far));
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

/// Widest name in the plan.
const NAME_COLUMNS: usize = 24;

/// Draws the plan around the step that runs, as much as there is room for.
pub fn plan(canvas: &mut Canvas, area: Area, state: &LiveState, units: UnitSystem) {
    let steps = &state.steps;
    let wide = steps.iter().map(|step| width(step_name(step))).max().unwrap_or(0).min(NAME_COLUMNS);
    let is_running = |step: &LiveStep| step.state == LiveStepState::Running;
    let has_ended = |step: &LiveStep| matches!(step.state, LiveStepState::Ended(_));
    let current =
        steps.iter().position(is_running).or_else(|| steps.iter().rposition(has_ended)).unwrap_or(0);
    // One that has ended stays in sight above the one that runs.
    let first = current.saturating_sub(area.height / 2).min(steps.len().saturating_sub(area.height));
    let unicode = canvas.look.unicode;
    let lines = steps.iter().skip(first).take(area.height).map(|step| {
        let (mark, paint) = mark(step, unicode);
        let text = format!("{mark} {}  {}", pad(step_name(step), wide), outcome(step, units));
        (text.trim_end().to_owned(), paint)
    });
    canvas.lines(area, lines);
}

fn step_name(step: &LiveStep) -> &str {
    if step.id.is_empty() { &step.title } else { &step.id }
}

fn mark(step: &LiveStep, unicode: bool) -> (char, Paint) {
    let either = |symbol: char, ascii: char| if unicode { symbol } else { ascii };
    match step.state {
        LiveStepState::Planned => (either('·', '.'), Paint::PLAIN),
        LiveStepState::Running => (either('▶', '>'), Paint::BOLD),
        LiveStepState::Ended(TestStatus::Complete) => (either('✓', '+'), Paint::of(Colour::Green)),
        LiveStepState::Ended(TestStatus::Skipped) => ('-', Paint::PLAIN),
        LiveStepState::Ended(TestStatus::Incomplete) => ('~', Paint::of(Colour::Yellow)),
        LiveStepState::Ended(TestStatus::Failed) => (either('✗', 'x'), Paint::of(Colour::Red)),
    }
}

fn outcome(step: &LiveStep, units: UnitSystem) -> String {
    let status = match step.state {
        LiveStepState::Planned => return step.title.clone(),
        LiveStepState::Running => return format!("running: {}", step.title),
        LiveStepState::Ended(TestStatus::Complete) => "",
        LiveStepState::Ended(status) => status.name(),
    };
    let Some(figures) = step.figures else { return status.to_owned() };
    let iops = format!("{} IOPS", grouped(figures.iops.round() as u64));
    let rate = format!("{}/s", units.amount(figures.bytes_per_second as u64));
    let p99 = figures.clat_p99_ns.map(|ns| format!("p99 {}", latency(ns))).unwrap_or_default();
    format!("{iops:<12}  {rate:<10}  {p99:<12}  {status}").trim_end().to_owned()
}

/// Draws the findings, the gravest first, and above them what has just been reported.
pub fn findings(canvas: &mut Canvas, area: Area, state: &LiveState) {
    let mut found: Vec<&Finding> = state.findings.iter().collect();
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let messages = state.messages.iter().rev().take(1).map(|text| (text.clone(), Paint::of(Colour::Yellow)));
    let claims = found.into_iter().map(|finding| {
        let paint = match finding.severity {
            Severity::Error => Paint::of(Colour::Red),
            Severity::Warning => Paint::of(Colour::Yellow),
            Severity::Info => Paint::PLAIN,
        };
        let tests = match finding.tests.as_slice() {
            [] => String::new(),
            [test] => format!("{test}: "),
            [test, ..] => format!("{test} and {} more: ", finding.tests.len() - 1),
        };
        (format!("{tests}{}", finding.claim), paint)
    });
    let bullet = if canvas.look.unicode { "• " } else { "* " };
    let lines = messages.chain(claims).flat_map(|(text, paint)| {
        let lines = wrap(&format!("{bullet}{text}"), area.width, 0, 2);
        lines.into_iter().map(move |line| (line, paint))
    });
    let rest = canvas.lines(area, lines);
    if rest == area {
        canvas.text(area, "none so far", Paint::PLAIN);
    }
}

/// The keys and what they do, for the help.
fn keys(next: Option<NextWords>) -> Vec<(&'static str, &'static str)> {
    let next = next.map(|words| ("n", words.long));
    let first = [("p", "pause the display, not the measurement; p again resumes")];
    let last = [
        ("q", "stop; what has been measured is kept (as Ctrl-C)"),
        ("r", "draw the screen again"),
        ("?", "show or hide this help"),
    ];
    first.into_iter().chain(next).chain(last).collect()
}

/// Draws the help over the middle of the screen.
pub fn help(canvas: &mut Canvas, next: Option<NextWords>) {
    let lines: Vec<String> = [String::new()]
        .into_iter()
        .chain(keys(next).into_iter().map(|(key, does)| format!("  {key}   {does}")))
        .chain([
            String::new(),
            "  IOPS: lowest to highest half second of each column.".to_owned(),
            "  Latency: bars to the median and to the 99th percentile.".to_owned(),
            String::new(),
        ])
        .collect();
    let columns = lines.iter().map(|line| width(line)).max().unwrap_or(0) + 2;
    let (columns, rows) = (columns.min(canvas.width), (lines.len() + 1).min(canvas.height));
    let (x, y) = ((canvas.width - columns) / 2, (canvas.height - rows) / 2);
    let mut rest = Area { x, y, width: columns, height: rows };
    for (index, line) in ["  Keys".to_owned()].iter().chain(&lines).enumerate() {
        let (row, below) = rest.split_rows(1);
        if row.height > 0 {
            canvas.bar(row, Paint::REVERSE);
            let paint = if index == 0 { Paint { bold: true, ..Paint::REVERSE } } else { Paint::REVERSE };
            canvas.text(row, line, paint);
        }
        rest = below;
    }
}

/// The keys in one row, for the lower edge of the screen.
pub fn key_row(next: Option<NextWords>) -> String {
    let next = next.map(|words| format!("  n {}", words.short)).unwrap_or_default();
    format!(" p pause{next}  q stop and keep  ? help")
}
