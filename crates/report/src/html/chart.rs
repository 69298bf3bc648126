//! Charts: the place of each, its data for the script, and a picture for readers without scripts.

use serde_json::{Value, json};

use super::HtmlWriter;
use crate::formats::chart::Chart;
use crate::formats::svg;
use crate::view::{Axis, AxisEnds, AxisScale, Cell, HeatMap, MapTick, Plot, PlotForm, PlotPoint};

/// Ticks that a chart has room for at most; the script leaves out some.
const X_TICKS: usize = 13;
const Y_TICKS: usize = 6;

/// Writes a plot; `charts` counts those of the page. Every value comes with its text, so that it reads as in all other reports.
pub(super) fn plot(plot: &Plot, charts: &mut usize, out: &mut HtmlWriter) {
    // A value of a name holds from its place to the next: the name stands in the middle.
    let is_between = plot.form == PlotForm::Steps && !plot.x.names.is_empty();
    let series = plot.series.iter().map(|series| {
        let points: Vec<Value> = series.points.iter().map(|point| self::point(plot, point)).collect();
        json!({ "name": series.name, "points": points })
    });
    let data = json!({
        "form": match plot.form {
            PlotForm::Steps => "steps",
            PlotForm::Lines => "lines",
            PlotForm::Bars => "bars",
        },
        "title": plot.title,
        "x": axis(&plot.x, plot.x_ends(), X_TICKS, if is_between { 0.5 } else { 0.0 }),
        "y": axis(&plot.y, plot.y_ends(), Y_TICKS, 0.0),
        "series": series.collect::<Vec<Value>>(),
        "limits": plot.limits,
        "marks": plot.marks,
    });
    let chart = || Chart { title: plot.title.clone(), plots: vec![plot.clone()], ..Chart::default() };
    figure(&plot.title, &description(plot), &data, chart, charts, out);
}

/// Writes a map of many cells as a picture: column, row and value of each.
pub(super) fn heat_map(map: &HeatMap, charts: &mut usize, out: &mut HtmlWriter) {
    let cell = |row: usize, column: usize, cell: &Option<Cell>| Some((column, row, cell.as_ref()?.number()?));
    let cells = map.rows.iter().enumerate().flat_map(|(row, (_, cells))| {
        cells.iter().enumerate().filter_map(move |(column, inner)| cell(row, column, inner))
    });
    let title = map.name();
    let data = json!({
        "form": "heat",
        "title": title,
        "x": map.across,
        "y": map.down,
        "unit": map.measure,
        "columns": map.columns,
        "rows": map.rows.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "across": ticks(map.across_ticks()),
        "down": ticks(map.down_ticks()),
        "cells": cells.collect::<Vec<_>>(),
        "most": map.most(),
        "series": [],
    });
    let description = format!("Heat map of {} columns and {} rows.", map.columns.len(), map.rows.len());
    let chart = || Chart { title: title.clone(), maps: vec![map.clone()], ..Chart::default() };
    figure(&title, &description, &data, chart, charts, out);
}

/// Places in columns, or in rows from the top, each with its text.
fn ticks(ticks: Vec<MapTick>) -> Vec<(f64, String)> {
    ticks.into_iter().map(|tick| (tick.place, tick.text)).collect()
}

/// An axis, its ticks moved by `shift` from their values.
fn axis(axis: &Axis, ends: AxisEnds, most: usize, shift: f64) -> Value {
    let tick = |value: f64| (value + shift, axis.word(value));
    json!({
        "label": axis.label,
        "log": axis.scale == AxisScale::Logarithmic,
        "from": ends.from,
        "to": ends.to,
        "ticks": axis.ticks(ends, most).into_iter().map(tick).collect::<Vec<_>>(),
        "names": axis.names,
    })
}

/// From, to, value, its text, the text of its place, and both ends of its interval.
fn point(plot: &Plot, point: &PlotPoint) -> Value {
    let PlotPoint { from, to, y, interval } = *point;
    let (text, place) = ((plot.y.text)(y), plot.x.word(f64::midpoint(from, to)));
    match interval {
        Some(AxisEnds { from: low, to: high }) => json!([from, to, y, text, place, low, high]),
        None => json!([from, to, y, text, place]),
    }
}

/// What a reader who does not see the picture is told first.
fn description(plot: &Plot) -> String {
    let form = match plot.form {
        PlotForm::Bars => "Bar chart",
        PlotForm::Steps | PlotForm::Lines => "Line chart",
    };
    let points = plot.series.iter().flat_map(|series| &series.points);
    let ends = points.fold(None, |ends: Option<(f64, f64)>, point| {
        let (least, most) = ends.unwrap_or((point.y, point.y));
        Some((least.min(point.y), most.max(point.y)))
    });
    let Some((least, most)) = ends else { return format!("{form} without values.") };
    let text = |value: f64| (plot.y.text)(value);
    let (least, most, unit) = (text(least), text(most), &plot.y.label);
    format!("{form}: from {least} to {most} {unit}. Arrow keys read the values, plus and minus zoom.")
}

fn figure(
    title: &str,
    description: &str,
    data: &Value,
    chart: impl FnOnce() -> Chart,
    charts: &mut usize,
    out: &mut HtmlWriter,
) {
    *charts += 1;
    out.open("figure", &[("class", "chart"), ("id", &format!("c{charts}"))]);
    out.element("figcaption", &[], title);
    out.raw("<div class=\"legend\"></div>\n");
    let label = format!("{title}. {description}");
    out.open("div", &[("class", "plot"), ("tabindex", "0"), ("role", "group"), ("aria-label", &label)]);
    if !out.needs_scripts {
        out.raw("<noscript>");
        out.raw(&svg::inline(&chart()));
        out.raw("</noscript>");
    }
    out.close("div");
    out.raw(
        "<div class=\"below\"><p class=\"readout\" role=\"status\"></p>\n<div class=\"controls\"></div>\n",
    );
    out.raw("<details><summary>Values</summary>");
    out.open(
        "div",
        &[
            ("class", "scroll tall"),
            ("tabindex", "0"),
            ("role", "group"),
            ("aria-label", &format!("Values: {title}")),
        ],
    );
    out.close("div");
    out.close("details");
    out.close("div");
    out.raw("<script type=\"application/json\">");
    out.raw(&inert(data));
    out.raw("</script>\n");
    out.close("figure");
}

/// A document that is no markup wherever it stands, and has no character that is not seen.
fn inert(data: &Value) -> String {
    let text = data.to_string();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !matches!(c, '<' | '>' | '&') && !fathom_model::text::is_hidden(c) {
            out.push(c);
            continue;
        }
        c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
    }
    out
}
