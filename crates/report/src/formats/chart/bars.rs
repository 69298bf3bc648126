//! A panel of bars: groups of horizontal bars with their values, since names need room.

use super::drawing::{Anchor, Drawing, Point, Rectangle};
use super::look::{AreaLook, LineLook, TextLook};
use super::{Area, LINE, fitted, text_width};
use crate::view::{AxisScale, Plot, PlotPoint};

const BAR: f64 = 15.0;
const BETWEEN: f64 = 12.0;
/// Width of names in the size of labels to that in the size of values.
const NAMES: f64 = 1.15;

/// Height of the panel.
pub(super) fn height(plot: &Plot) -> f64 {
    let bars: usize = (0..plot.x.names.len()).map(|group| bars_of(plot, group).count()).sum();
    LINE * 3.4 + bars as f64 * BAR + plot.x.names.len() as f64 * BETWEEN
}

/// A bar, or why there is none.
enum Bar<'a> {
    Value(&'a PlotPoint),
    Absent(&'static str),
}

/// The bars of a group with the places of their series.
fn bars_of(plot: &Plot, group: usize) -> impl Iterator<Item = (usize, Bar<'_>)> {
    let at = group as f64;
    plot.series.iter().enumerate().filter_map(move |(place, series)| {
        let point = series.points.iter().find(|point| point.from == at).map(Bar::Value);
        let mark = || plot.marks.iter().find(|mark| mark.series == place && mark.from == at);
        Some((place, point.or_else(|| Some(Bar::Absent(mark()?.reason)))?))
    })
}

/// Draws the panel.
pub(super) fn draw(plot: &Plot, area: Area, drawing: &mut Drawing) {
    let ends = plot.y_ends();
    let values = plot
        .series
        .iter()
        .flat_map(|series| &series.points)
        .map(|point| format!("A {}", (plot.y.text)(point.y)));
    let values: Vec<String> = values.collect();
    let left = area.x + text_width(plot.x.names.iter().map(String::as_str)) * NAMES + 12.0;
    let right = area.x + area.width - text_width(values.iter().map(String::as_str)) - 14.0;
    let across = |value: f64| left + plot.y.place(value, ends) * (right - left).max(40.0);
    drawing.text((area.x, area.y), Anchor::Start, TextLook::Panel, &fitted(&plot.title, area.width));
    let top = area.y + area.legend + LINE * 0.7;
    let bottom = area.y + area.height - LINE * 2.2;
    for tick in plot.y.ticks(ends, 6) {
        drawing.line((across(tick), top), (across(tick), bottom), LineLook::Grid);
        let at = (across(tick), bottom + LINE * 0.9);
        drawing.text(at, Anchor::Middle, TextLook::Tick, &(plot.y.text)(tick));
    }
    let scale = if plot.y.scale == AxisScale::Logarithmic { " (logarithmic)" } else { "" };
    let at = (f64::midpoint(left, right), bottom + LINE * 1.8);
    drawing.text(at, Anchor::Middle, TextLook::Tick, &format!("{}{scale}", plot.y.label));
    let mut y = top + BETWEEN * 0.5;
    for group in 0..plot.x.names.len() {
        let start = y;
        for (place, bar) in bars_of(plot, group) {
            let letter = letter(plot, place);
            match bar {
                Bar::Absent(reason) => drawing.text(
                    (left + 6.0, y + BAR * 0.5 + 4.0),
                    Anchor::Start,
                    TextLook::Absent,
                    &format!("{letter}{reason}"),
                ),
                Bar::Value(point) => {
                    let text = format!("{letter}{}", (plot.y.text)(point.y));
                    let low = point.interval.map(|interval| across(interval.from));
                    let high = point.interval.map(|interval| across(interval.to));
                    let span = BarSpan { left, end: across(point.y), interval: low.zip(high) };
                    draw_bar(&span, y, place, &text, drawing);
                }
            }
            y += BAR;
        }
        let at = (left - 8.0, f64::midpoint(start, y) + 4.0);
        drawing.text(at, Anchor::End, TextLook::Label, &plot.x.names[group]);
        y += BETWEEN;
    }
    drawing.line((left, top), (left, bottom), LineLook::Axis);
}

/// Where a bar and its interval lie.
struct BarSpan {
    left: f64,
    end: f64,
    interval: Option<(f64, f64)>,
}

/// Draws a bar below `y` with its value behind it.
fn draw_bar(span: &BarSpan, y: f64, place: usize, text: &str, drawing: &mut Drawing) {
    let bar = Rectangle { x: span.left, y: y + 1.0, width: span.end - span.left, height: BAR - 2.0 };
    drawing.rectangles(vec![bar], AreaLook::Series(place));
    let middle = y + BAR * 0.5;
    let mut label = span.end;
    if let Some((from, to)) = span.interval {
        drawing.lines(interval_lines(from, to, middle), LineLook::Interval);
        label = label.max(to);
    }
    drawing.text((label + 6.0, middle + 4.0), Anchor::Start, TextLook::Tick, text);
}

/// The first word of the name of a series before its value, so that bars differ without colours.
fn letter(plot: &Plot, place: usize) -> String {
    let name = &plot.series[place].name;
    name.split(' ')
        .next()
        .filter(|letter| letter.len() <= 2)
        .map(|letter| format!("{letter} "))
        .unwrap_or_default()
}

/// A line with caps on both ends.
fn interval_lines(from: f64, to: f64, y: f64) -> Vec<Vec<Point>> {
    const CAP: f64 = 3.5;
    let cap = |x: f64| vec![(x, y - CAP), (x, y + CAP)];
    vec![vec![(from, y), (to, y)], cap(from), cap(to)]
}
