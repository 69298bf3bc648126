//! Bars: a line for each, with its value, under the name of their group.

use super::Picture;
use super::plot::{PlotSize, title};
use crate::Style;
use crate::columns::{pad, width};
use crate::view::{AxisEnds, Plot};

/// Narrowest bar of the largest value.
const MIN_BAR: usize = 10;

/// Parts of a character that a bar may end in, from none to seven eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Title, then a line for each bar.
pub(super) fn picture(plot: &Plot, size: PlotSize, style: &Style) -> Picture {
    let ends = plot.y_ends();
    let names = plot.x.names.iter().map(|name| width(name)).max().unwrap_or(0);
    let series = plot.series.iter().map(|series| width(&series.name)).max().unwrap_or(0);
    let rows: Vec<BarRow<'_>> = (0..plot.x.names.len()).flat_map(|group| rows(plot, group)).collect();
    let texts = rows.iter().map(|row| width(&row.text)).max().unwrap_or(0);
    let room = size.width.saturating_sub(names + series + texts + 4).max(MIN_BAR);
    let scale = match plot.y.scale {
        crate::view::AxisScale::Linear => String::new(),
        crate::view::AxisScale::Logarithmic => {
            format!(", logarithmic from {}", (plot.y.text)(ends.from))
        }
    };
    let title = format!("{}{scale}", title(plot));
    let mut lines = vec![(style.bold(&title), width(&title))];
    for row in rows {
        let bar = row.value.map(|value| bar(plot, value, ends, room, size.is_unicode)).unwrap_or_default();
        let line = format!("{}  {}  {}{}", pad(row.group, names), pad(row.series, series), bar, row.text);
        let seen = width(&line);
        lines.push((line, seen));
    }
    Picture { lines }
}

/// One bar, or why there is none.
struct BarRow<'a> {
    group: &'a str,
    series: &'a str,
    value: Option<f64>,
    text: String,
}

fn rows(plot: &Plot, group: usize) -> Vec<BarRow<'_>> {
    let at = group as f64;
    let mut rows = Vec::new();
    for (place, series) in plot.series.iter().enumerate() {
        let point = series.points.iter().find(|point| point.from == at);
        let mark = plot.marks.iter().find(|mark| mark.series == place && mark.from == at);
        let text = match (point, mark) {
            (Some(point), _) => {
                let shown = (plot.y.text)(point.y);
                let ends = point.interval.map(|ends| [ends.from, ends.to].map(plot.y.text));
                // Where both ends read like the value, they say nothing.
                let ends = ends.filter(|ends| ends.iter().any(|end| *end != shown));
                let interval = ends.map(|[from, to]| format!(" ({from} to {to})")).unwrap_or_default();
                format!(" {shown}{interval}")
            }
            (None, Some(mark)) => mark.reason.to_owned(),
            (None, None) => continue,
        };
        let name = if rows.is_empty() { plot.x.names[group].as_str() } else { "" };
        rows.push(BarRow { group: name, series: &series.name, value: point.map(|point| point.y), text });
    }
    rows
}

fn bar(plot: &Plot, value: f64, ends: AxisEnds, room: usize, is_unicode: bool) -> String {
    let eighths = (plot.y.place(value, ends) * (room * 8) as f64).round() as usize;
    match is_unicode {
        true => format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]),
        false => "#".repeat((eighths + 4) / 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Axis, PlotForm, PlotMark, PlotPoint, PlotSeries};

    #[test]
    fn each_bar_has_its_value_or_the_reason_why_there_is_none() {
        let plot = Plot {
            title: "IOPS".to_owned(),
            form: PlotForm::Bars,
            x: Axis::named(vec!["rand-read".to_owned(), "x".to_owned()]),
            y: Axis::linear("", |value| format!("{value:.0}")),
            series: vec![
                PlotSeries {
                    name: "A".to_owned(),
                    points: vec![PlotPoint {
                        interval: Some(AxisEnds { from: 90.0, to: 110.0 }),
                        ..PlotPoint::at(0.0, 100.0)
                    }],
                },
                PlotSeries {
                    name: "B".to_owned(),
                    points: vec![PlotPoint::at(0.0, 75.0), PlotPoint::at(1.0, 150.0)],
                },
            ],
            limits: Vec::new(),
            marks: vec![PlotMark { series: 0, from: 1.0, to: 1.0, reason: "stalled" }],
        };
        let lines = |is_unicode: bool| -> Vec<String> {
            let size = PlotSize { width: 42, height: 0, is_unicode };
            let picture = picture(&plot, size, &Style::default());
            picture.lines.into_iter().map(|(line, _)| line).collect()
        };
        assert_eq!(
            lines(false),
            [
                "IOPS",
                "rand-read  A  ######## 100 (90 to 110)",
                "           B  ###### 75",
                "x          A  stalled",
                "           B  ############ 150",
            ]
        );
        assert_eq!(lines(true)[2], "           B  ██████ 75");
    }
}
