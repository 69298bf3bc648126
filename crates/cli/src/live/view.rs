//! The full-screen view: a pure function of a state and a size to a canvas of cells.

mod canvas;
mod charts;
mod figures;
mod lists;
#[cfg(test)]
mod tests;

use fathom_model::Nanos;
use fathom_model::units::{UnitSystem, duration, grouped, latency};
use fathom_report::live::{LivePoint, LiveStage, LiveState};

use crate::stall_note;
use canvas::{Area, Colour, Paint};
pub use canvas::{Canvas, Look};
use charts::TimeAxis;

/// The smallest screen with charts.
const LEAST_SIZE: (usize, usize) = (60, 16);
/// Columns of the figures beside the charts.
const FIGURE_COLUMNS: usize = 29;
/// From this width on the plan stands beside the charts.
const PLAN_BESIDE_FROM: usize = 130;
const PLAN_COLUMNS: usize = 62;

/// What the view shows beside the state.
#[derive(Clone, Copy, Debug)]
pub struct ViewOptions {
    /// The state is not the latest.
    pub is_paused: bool,
    /// The help covers the middle.
    pub shows_help: bool,
    /// The key for the next test does something.
    pub can_skip: bool,
    /// Units of rates and amounts.
    pub units: UnitSystem,
}

/// Draws `state` on a screen of `size`: columns and rows.
pub fn draw(state: &LiveState, options: &ViewOptions, size: (usize, usize), look: Look) -> Canvas {
    let mut canvas = Canvas::new(size, look);
    let (head, rest) = canvas.area().split_rows(1);
    let (body, foot) = rest.split_rows(rest.height.saturating_sub(1));
    header(&mut canvas, head, state, options);
    if size.0 < LEAST_SIZE.0 || size.1 < LEAST_SIZE.1 {
        small(&mut canvas, body, state, options.units);
    } else {
        panels(&mut canvas, body, state, options);
    }
    canvas.bar(foot, Paint::REVERSE);
    canvas.text(foot, &lists::key_row(options.can_skip), Paint::REVERSE);
    if options.shows_help {
        lists::help(&mut canvas, options.can_skip);
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
fn small(canvas: &mut Canvas, area: Area, state: &LiveState, units: UnitSystem) {
    let moved: f64 = state.snapshot.bytes_per_second.iter().sum();
    let lines = [
        stage_text(state),
        format!("{}  {}/s", rate_text(state), units.amount(moved as u64)),
        latency_text(state),
        format!("(charts need {} x {})", LEAST_SIZE.0, LEAST_SIZE.1),
    ];
    let mut rest = area;
    for line in lines {
        let (row, below) = rest.split_rows(1);
        canvas.text(row, &line, Paint::PLAIN);
        rest = below;
    }
}

fn panels(canvas: &mut Canvas, area: Area, state: &LiveState, options: &ViewOptions) {
    let (stage, rest) = area.split_rows(1);
    stage_row(canvas, stage, state);
    let has_plan_beside = area.width >= PLAN_BESIDE_FROM;
    let finding_rows = 1 + rest.height / 12;
    let plan_rows = if has_plan_beside { 0 } else { 2 + rest.height / 12 };
    let lists_rows = 1 + finding_rows + if has_plan_beside { 0 } else { 1 + plan_rows };
    let (upper, lower) = rest.split_rows(rest.height - lists_rows);
    let (upper, beside) = match has_plan_beside {
        true => upper.split_columns(upper.width - PLAN_COLUMNS),
        false => (upper, Area::default()),
    };
    let (left, right) = upper.split_columns(upper.width - FIGURE_COLUMNS);
    let (left, _) = left.split_columns(left.width - 2);
    time_charts(canvas, left, state);
    figures::draw(canvas, right, state, options.units);
    if has_plan_beside {
        let (_, beside) = beside.split_columns(1);
        titled(canvas, beside, "Plan", |canvas, area| lists::plan(canvas, area, state, options.units));
    }
    let (plan, found) = lower.split_rows(if has_plan_beside { 0 } else { 1 + plan_rows });
    titled(canvas, plan, "Plan", |canvas, area| lists::plan(canvas, area, state, options.units));
    titled(canvas, found, "Findings", |canvas, area| lists::findings(canvas, area, state));
}

/// A heading with `draw` below it.
fn titled(canvas: &mut Canvas, area: Area, title: &str, draw: impl FnOnce(&mut Canvas, Area)) {
    let (head, rest) = area.split_rows(1);
    canvas.text(head, title, Paint::BOLD);
    draw(canvas, rest);
}

/// Rates, latencies and the heat map, above each other, on the same time axis.
fn time_charts(canvas: &mut Canvas, area: Area, state: &LiveState) {
    let axis = TimeAxis::of(state, charts::heat_columns(area));
    // Three headings; the heat map has the larger part of the rest.
    let rows = area.height.saturating_sub(3);
    let chart = (rows * 3 / 10).max(1);
    let (rate, rest) = area.split_rows(1 + chart);
    let (latency_area, heat) = rest.split_rows(1 + chart);
    let indent = |area: Area| area.split_columns(area.width - charts::heat_columns(area)).1;
    let most = axis.highest_iops();
    let title = format!("{}, peak {}", rate_text(state), grouped(most.round() as u64));
    titled(canvas, rate, &title, |canvas, area| charts::rates(canvas, indent(area), &axis));
    let most = axis.highest_p99();
    let peak = if most > 0 { format!(", peak p99 {}", latency(most)) } else { String::new() };
    let title = format!("{}{peak}", latency_text(state));
    titled(canvas, latency_area, &title, |canvas, area| {
        charts::latencies(canvas, indent(area), &axis);
    });
    let title = format!("Latency distribution{}", axis_text(&axis.points));
    titled(canvas, heat, &title, |canvas, area| charts::heat_map(canvas, area, &axis));
}

/// `, 0 to 42 s, 2 s each`: the time of the points and the length of one.
fn axis_text(points: &[LivePoint]) -> String {
    let all: u64 = points.iter().map(|point| point.span_ns).sum();
    let Some(first) = points.first() else { return String::new() };
    // Ticks come a little late; half seconds are what they are meant to be.
    let each = (first.span_ns as f64 / 5e8).round() / 2.0;
    format!(", 0 to {}, {each} s each", duration(Nanos(all)))
}

/// The test, and how far it is.
fn stage_row(canvas: &mut Canvas, area: Area, state: &LiveState) {
    let snapshot = &state.snapshot;
    if state.stalled_ns().is_some() {
        canvas.text(area, &stall_note::describe(snapshot), Paint { bold: true, ..Paint::of(Colour::Red) });
        return;
    }
    canvas.text(area, &stage_text(state), Paint::BOLD);
}

fn stage_text(state: &LiveState) -> String {
    let snapshot = &state.snapshot;
    let mut text = String::new();
    if let Some(test) = &state.test {
        let of = test.of.map(|of| format!(" of {of}")).unwrap_or_default();
        text = format!("Test {}{of}: {}  ", test.number, test.id);
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

fn rate_text(state: &LiveState) -> String {
    let iops = state.snapshot.iops.map(|iops| iops.round() as u64);
    let names = ["read", "write", "trim"].into_iter().zip(iops).filter(|(_, iops)| *iops > 0);
    let parts: Vec<String> = names.map(|(name, iops)| format!("{name} {}", grouped(iops))).collect();
    let apart = if parts.len() > 1 { format!(" ({})", parts.join(", ")) } else { String::new() };
    format!("IOPS {}{apart}", grouped(iops.iter().sum()))
}

fn latency_text(state: &LiveState) -> String {
    let mean = state.snapshot.clat_mean_ns.map_or_else(|| "unknown".to_owned(), latency);
    format!("Latency (clat) mean {mean}")
}
