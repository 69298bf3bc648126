//! A panel of bars: groups of horizontal bars with their values, since names need room.

use super::style::fill_class;
use super::writer::{Anchor, SvgWriter};
use super::{Area, LINE, fitted, text_width};
use crate::view::{AxisScale, Plot, PlotPoint};

const BAR: f64 = 15.0;
const BETWEEN: f64 = 12.0;

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
pub(super) fn draw(plot: &Plot, area: Area, svg: &mut SvgWriter) {
    let ends = plot.y_ends();
    let values = plot
        .series
        .iter()
        .flat_map(|series| &series.points)
        .map(|point| format!("A {}", (plot.y.text)(point.y)));
    let values: Vec<String> = values.collect();
    let left = area.x + text_width(plot.x.names.iter().map(String::as_str)) + 12.0;
    let right = area.x + area.width - text_width(values.iter().map(String::as_str)) - 14.0;
    let across = |value: f64| left + plot.y.place(value, ends) * (right - left).max(40.0);
    svg.text(area.x, area.y, Anchor::Start, "panel", &fitted(&plot.title, area.width));
    let top = area.y + LINE * 0.7;
    let bottom = area.y + area.height - LINE * 2.2;
    for tick in plot.y.ticks(ends, 6) {
        svg.line((across(tick), top), (across(tick), bottom), "grid");
        svg.text(across(tick), bottom + LINE * 0.9, Anchor::Middle, "tick", &(plot.y.text)(tick));
    }
    let scale = if plot.y.scale == AxisScale::Logarithmic { " (logarithmic)" } else { "" };
    svg.text(
        f64::midpoint(left, right),
        bottom + LINE * 1.8,
        Anchor::Middle,
        "tick",
        &format!("{}{scale}", plot.y.label),
    );
    let mut y = top + BETWEEN * 0.5;
    for group in 0..plot.x.names.len() {
        let start = y;
        for (place, bar) in bars_of(plot, group) {
            let middle = y + BAR * 0.5;
            let letter = letter(plot, place);
            match bar {
                Bar::Absent(reason) => {
                    svg.text(left + 6.0, middle + 4.0, Anchor::Start, "absent", &format!("{letter}{reason}"))
                }
                Bar::Value(point) => {
                    let end = across(point.y);
                    svg.rectangle(left, y + 1.0, (end - left, BAR - 2.0), &fill_class(place));
                    let mut label = end;
                    if let Some(interval) = point.interval {
                        let (from, to) = (across(interval.from), across(interval.to));
                        svg.path(&interval_path(from, to, middle), "interval");
                        label = label.max(to);
                    }
                    svg.text(
                        label + 6.0,
                        middle + 4.0,
                        Anchor::Start,
                        "tick",
                        &format!("{letter}{}", (plot.y.text)(point.y)),
                    );
                }
            }
            y += BAR;
        }
        let middle = f64::midpoint(start, y);
        svg.text(left - 8.0, middle + 4.0, Anchor::End, "label", &plot.x.names[group]);
        y += BETWEEN;
    }
    svg.line((left, top), (left, bottom), "axis");
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
fn interval_path(from: f64, to: f64, y: f64) -> String {
    const CAP: f64 = 3.5;
    format!(
        "M{from:.1} {y:.1}H{to:.1}M{from:.1} {:.1}V{:.1}M{to:.1} {:.1}V{:.1}",
        y - CAP,
        y + CAP,
        y - CAP,
        y + CAP
    )
}
