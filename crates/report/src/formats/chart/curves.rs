//! A panel of curves, steps and dots over two axes.

use super::drawing::{Anchor, Drawing, Point, Rectangle};
use super::look::{AreaLook, LineLook, TextLook};
use super::{Area, CHARACTER, LINE, fitted, text_width};
use crate::view::{AxisEnds, AxisScale, Plot, PlotForm, PlotSeries};

/// The field between the axes, and the ends of both.
struct Field<'a> {
    plot: &'a Plot,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: AxisEnds,
    y: AxisEnds,
}

impl Field<'_> {
    fn across(&self, x: f64) -> f64 {
        self.left + self.plot.x.place(x, self.x) * (self.right - self.left)
    }

    fn up(&self, y: f64) -> f64 {
        self.bottom - self.plot.y.place(y, self.y) * (self.bottom - self.top)
    }
}

/// Draws the panel.
pub(super) fn draw(plot: &Plot, area: Area, drawing: &mut Drawing) {
    let (x, y) = (plot.x_ends(), plot.y_ends());
    let ticks = plot.y.ticks(y, 6);
    let texts: Vec<String> = ticks.iter().map(|tick| (plot.y.text)(*tick)).collect();
    let has_label = !plot.y.label.is_empty();
    let label = if has_label { LINE } else { 0.0 };
    let field = Field {
        plot,
        left: area.x + text_width(texts.iter().map(String::as_str)) + label + 12.0,
        right: area.x + area.width - 12.0,
        top: area.y + area.legend + LINE * 0.9,
        bottom: area.y + area.height - LINE * 2.4,
        x,
        y,
    };
    drawing.text((area.x, area.y), Anchor::Start, TextLook::Panel, &fitted(&plot.title, area.width));
    for (tick, text) in ticks.iter().zip(&texts) {
        let at = field.up(*tick);
        drawing.line((field.left, at), (field.right, at), LineLook::Grid);
        drawing.text((field.left - 6.0, at + 4.0), Anchor::End, TextLook::Tick, text);
    }
    if has_label {
        let scale = if plot.y.scale == AxisScale::Logarithmic { " (logarithmic)" } else { "" };
        let middle = f64::midpoint(field.top, field.bottom);
        drawing.upright_text((area.x + 11.0, middle), TextLook::Tick, &format!("{}{scale}", plot.y.label));
    }
    draw_x_axis(&field, drawing);
    draw_marks(&field, drawing);
    draw_limits(&field, drawing);
    for (place, series) in plot.series.iter().enumerate() {
        draw_series(&field, place, series, drawing);
    }
}

/// The axis with as many of its ticks as have room.
fn draw_x_axis(field: &Field<'_>, drawing: &mut Drawing) {
    const MAX_TICKS: usize = 13;
    let (plot, bottom) = (field.plot, field.bottom);
    drawing.line((field.left, bottom), (field.right, bottom), LineLook::Axis);
    let ticks = plot.x.ticks(field.x, MAX_TICKS);
    let texts: Vec<String> = ticks.iter().map(|tick| plot.x.word(*tick)).collect();
    let room = text_width(texts.iter().map(String::as_str)) + CHARACTER;
    let mut free = f64::NEG_INFINITY;
    for (tick, text) in ticks.iter().zip(&texts) {
        let at = field.across(*tick);
        // The last text stays within the panel.
        let is_last = at + text_width(std::iter::once(text.as_str())) * 0.5 > field.right + 12.0;
        let (anchor, before) = if is_last { (Anchor::End, room) } else { (Anchor::Middle, room * 0.5) };
        if at - before < free {
            continue;
        }
        drawing.line((at, bottom), (at, bottom + 4.0), LineLook::Axis);
        drawing.text((at, bottom + LINE), anchor, TextLook::Tick, text);
        free = at + room - before;
    }
    if !plot.x.label.is_empty() {
        let at = (f64::midpoint(field.left, field.right), bottom + LINE * 1.9);
        drawing.text(at, Anchor::Middle, TextLook::Tick, &plot.x.label);
    }
}

/// Stretches without values, and one word for neighbours whose words would lie over each other.
fn draw_marks(field: &Field<'_>, drawing: &mut Drawing) {
    /// Width of a mark of a moment.
    const LEAST: f64 = 2.0;
    let height = field.bottom - field.top;
    let mut words: Vec<(f64, f64)> = Vec::new();
    for mark in &field.plot.marks {
        let (from, to) = (field.across(mark.from), field.across(mark.to));
        let width = (to - from).max(LEAST).min(field.right - from);
        drawing.rectangles(vec![Rectangle { x: from, y: field.top, width, height }], AreaLook::Mark);
        let half = text_width(std::iter::once(mark.reason)) * 0.5;
        let middle = f64::midpoint(from, to).min(field.right - half).max(field.left + half);
        if words.iter().all(|(other, width)| (other - middle).abs() >= half + width) {
            let at = (middle, field.bottom - 5.0);
            drawing.text(at, Anchor::Middle, TextLook::Absent, mark.reason);
            words.push((middle, half));
        }
    }
}

/// Lines of limits; the names of those that are nearly the same stand under each other.
fn draw_limits(field: &Field<'_>, drawing: &mut Drawing) {
    let mut names: Vec<f64> = Vec::new();
    for limit in &field.plot.limits {
        let at = field.up(limit.y);
        drawing.line((field.left, at), (field.right, at), LineLook::Limit(limit.series));
        let mut name = at - 4.0;
        while names.iter().any(|other| (other - name).abs() < LINE) {
            name += LINE;
        }
        names.push(name);
        drawing.text((field.right, name), Anchor::End, TextLook::Tick, &limit.name);
    }
}

/// More points than this are a line without markers.
const MAX_MARKERS: usize = 40;

fn draw_series(field: &Field<'_>, place: usize, series: &PlotSeries, drawing: &mut Drawing) {
    match field.plot.form {
        PlotForm::Lines | PlotForm::Bars => {
            let points: Vec<Point> =
                series.points.iter().map(|point| (field.across(point.from), field.up(point.y))).collect();
            let markers = if points.len() <= MAX_MARKERS { points.clone() } else { Vec::new() };
            drawing.lines(vec![points], LineLook::Curve(place));
            markers.into_iter().for_each(|at| drawing.marker(place, at));
        }
        PlotForm::Steps => draw_steps(field, place, series, drawing),
    }
}

/// Stretches as lines, joined where one follows another, and moments as dots.
fn draw_steps(field: &Field<'_>, place: usize, series: &PlotSeries, drawing: &mut Drawing) {
    const DOT: f64 = 2.0;
    let mut lines: Vec<Vec<Point>> = Vec::new();
    let mut dots = Vec::new();
    let mut end = None;
    for point in &series.points {
        let (from, to, at) = (field.across(point.from), field.across(point.to), field.up(point.y));
        if point.to <= point.from {
            dots.push(Rectangle { x: from - DOT * 0.5, y: at - DOT * 0.5, width: DOT, height: DOT });
            end = None;
            continue;
        }
        // Half a stretch without points is not a gap: clocks are read one after another.
        let follows = end.is_some_and(|end| point.from - end <= (point.to - point.from) * 0.51);
        match lines.last_mut().filter(|_| follows) {
            Some(line) => line.extend([(from, at), (to, at)]),
            None => lines.push(vec![(from, at), (to, at)]),
        }
        end = Some(point.to);
    }
    drawing.lines(lines, LineLook::Curve(place));
    drawing.rectangles(dots, AreaLook::Series(place));
}
