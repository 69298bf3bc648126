//! A panel of curves, steps and dots over two axes.

use super::style::fill_class;
use super::writer::{Anchor, SvgWriter};
use super::{Area, LINE, fitted, series_class, text_width};
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
pub(super) fn draw(plot: &Plot, area: Area, svg: &mut SvgWriter) {
    let (x, y) = (plot.x_ends(), plot.y_ends());
    let ticks = plot.y.ticks(y, 6);
    let texts: Vec<String> = ticks.iter().map(|tick| (plot.y.text)(*tick)).collect();
    let has_label = !plot.y.label.is_empty();
    let label = if has_label { LINE } else { 0.0 };
    let field = Field {
        plot,
        left: area.x + text_width(texts.iter().map(String::as_str)) + label + 12.0,
        right: area.x + area.width - 12.0,
        top: area.y + LINE * 0.9,
        bottom: area.y + area.height - LINE * 2.4,
        x,
        y,
    };
    svg.text(area.x, area.y, Anchor::Start, "panel", &fitted(&plot.title, area.width));
    for (tick, text) in ticks.iter().zip(&texts) {
        let at = field.up(*tick);
        svg.line((field.left, at), (field.right, at), "grid");
        svg.text(field.left - 6.0, at + 4.0, Anchor::End, "tick", text);
    }
    if has_label {
        let scale = if plot.y.scale == AxisScale::Logarithmic { " (logarithmic)" } else { "" };
        let middle = f64::midpoint(field.top, field.bottom);
        svg.upright_text(area.x + 11.0, middle, "tick", &format!("{}{scale}", plot.y.label));
    }
    x_axis(&field, svg);
    for limit in &plot.limits {
        let at = field.up(limit.y);
        svg.line((field.left, at), (field.right, at), &format!("limit {}", series_class(limit.series)));
        svg.text(field.right, at - 4.0, Anchor::End, "tick", &limit.name);
    }
    for mark in &plot.marks {
        let (from, to) = (field.across(mark.from), field.across(mark.to));
        if mark.to > mark.from {
            svg.rectangle(from, field.top, ((to - from).max(1.0), field.bottom - field.top), "mark");
        }
        svg.text(f64::midpoint(from, to), field.bottom - 4.0, Anchor::Middle, "absent", mark.reason);
    }
    for (place, series) in plot.series.iter().enumerate() {
        draw_series(&field, place, series, svg);
    }
}

fn x_axis(field: &Field<'_>, svg: &mut SvgWriter) {
    let (plot, bottom) = (field.plot, field.bottom);
    svg.line((field.left, bottom), (field.right, bottom), "axis");
    for tick in plot.x.ticks(field.x, 9) {
        let at = field.across(tick);
        svg.line((at, bottom), (at, bottom + 4.0), "axis");
        // The last text stays within the panel.
        let anchor = if tick == field.x.to { Anchor::End } else { Anchor::Middle };
        svg.text(at, bottom + LINE, anchor, "tick", &plot.x.word(tick));
    }
    if !plot.x.label.is_empty() {
        let middle = f64::midpoint(field.left, field.right);
        svg.text(middle, bottom + LINE * 1.9, Anchor::Middle, "tick", &plot.x.label);
    }
}

/// More points than this are a line without markers.
const MOST_MARKERS: usize = 40;

fn draw_series(field: &Field<'_>, place: usize, series: &PlotSeries, svg: &mut SvgWriter) {
    let class = format!("curve {}", series_class(place));
    match field.plot.form {
        PlotForm::Lines | PlotForm::Bars => {
            let points: Vec<(f64, f64)> =
                series.points.iter().map(|point| (field.across(point.from), field.up(point.y))).collect();
            svg.curve(&points, &class);
            if points.len() <= MOST_MARKERS {
                points.iter().for_each(|(x, y)| svg.marker(place, *x, *y));
            }
        }
        PlotForm::Steps => {
            for point in &series.points {
                let (from, to, at) = (field.across(point.from), field.across(point.to), field.up(point.y));
                match to > from {
                    true => svg.line((from, at), (to, at), &class),
                    false => svg.rectangle(from - 1.0, at - 1.0, (2.0, 2.0), &fill_class(place)),
                }
            }
        }
    }
}
