//! Plots as one picture: panels under a title and a legend, over the sources. It is drawn once, as shapes, which every form of file
//! writes in its own way.
//!
//! Colours are those that colour-blind readers tell apart; dashes and markers tell the series apart as well.

mod bars;
mod curves;
pub(super) mod drawing;
mod heat;
pub(super) mod look;

use crate::columns::wrap;
use crate::view::{HeatMap, Plot, PlotForm, PlotSeries};

use drawing::{Anchor, Drawing};
use look::{LineLook, TextLook};

/// A picture: plots that belong together.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// The plots, in reading order.
    pub plots: Vec<Plot>,
    /// Maps below them.
    pub maps: Vec<HeatMap>,
    /// Where the values are from, and what to know of them.
    pub notes: Vec<String>,
}

/// A rectangle of the picture.
#[derive(Clone, Copy, Debug)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    /// Of the legend between the title and what is drawn.
    legend: f64,
}

/// Width of the whole picture.
const WIDTH: f64 = 960.0;
const MARGIN: f64 = 24.0;
const GAP: f64 = 28.0;
/// Height of a line of text.
const LINE: f64 = 18.0;
/// Width of a character, about.
const CHARACTER: f64 = 7.6;
/// Height of a panel of curves: alone in its row, or beside another.
const WIDE_PANEL: f64 = 380.0;
const PANEL: f64 = 290.0;

/// The shapes of the picture.
pub(super) fn draw(chart: &Chart) -> Drawing {
    let inner = WIDTH - 2.0 * MARGIN;
    let notes: Vec<String> =
        chart.notes.iter().flat_map(|note| wrap(note, (inner / (CHARACTER * 0.85)) as usize, 0, 2)).collect();
    let titles: Vec<&str> = chart
        .plots
        .iter()
        .map(|plot| plot.title.as_str())
        .chain(chart.maps.iter().map(|map| map.measure))
        .collect();
    let mut drawing =
        Drawing { title: chart.title.clone(), description: titles.join("; "), ..Drawing::default() };
    let mut y = MARGIN + LINE;
    drawing.text((MARGIN, y), Anchor::Start, TextLook::Title, &fitted(&chart.title, inner / 1.15));
    y += LINE * 1.6;
    if let Some(plot) = common_names(&chart.plots) {
        let has_lines = chart.plots.iter().all(|plot| plot.form == PlotForm::Steps);
        let legend = Legend { series: &plot.series, has_lines, x: MARGIN, y, width: inner };
        let height = draw_legend(&legend, &mut drawing);
        y += if height > 0.0 { height + LINE * 0.6 } else { 0.0 };
    }
    y = draw_panels(chart, inner, y, &mut drawing);
    for note in &notes {
        drawing.text((MARGIN, y), Anchor::Start, TextLook::Note, note);
        y += LINE * 0.9;
    }
    (drawing.width, drawing.height) = (WIDTH, (y + MARGIN * 0.5).round());
    drawing
}

/// A legend with the place of its first row.
struct Legend<'a> {
    series: &'a [PlotSeries],
    /// Steps have no markers.
    has_lines: bool,
    x: f64,
    y: f64,
    width: f64,
}

/// Draws a legend, and returns its height.
fn draw_legend(legend: &Legend<'_>, drawing: &mut Drawing) -> f64 {
    let rows = legend_rows(legend.series, legend.width);
    let mut y = legend.y;
    for row in &rows {
        for entry in row {
            let x = legend.x + entry.x;
            match legend.has_lines {
                true => drawing.line((x, y - 4.0), (x + 13.0, y - 4.0), LineLook::Curve(entry.place)),
                false => drawing.marker(entry.place, (x + 6.0, y - 4.0)),
            }
            drawing.text((x + 18.0, y), Anchor::Start, TextLook::Label, &entry.name);
        }
        y += LINE;
    }
    y - legend.y
}

/// The plot whose names are those of all: then one legend stands above them, else each has its own.
fn common_names(plots: &[Plot]) -> Option<&Plot> {
    let (first, others) = plots.split_first()?;
    let names = |plot: &Plot| plot.series.iter().map(|series| series.name.clone()).collect::<Vec<_>>();
    others.iter().all(|other| names(other) == names(first)).then_some(first)
}

/// Draws plots and maps from `y` on, and returns where they end.
fn draw_panels(chart: &Chart, inner: f64, mut y: f64, drawing: &mut Drawing) -> f64 {
    let columns = if has_columns(&chart.plots) { 2 } else { 1 };
    let width = (inner - GAP * (columns as f64 - 1.0)) / columns as f64;
    let has_legends = common_names(&chart.plots).is_none();
    let legend_height = |plot: &Plot| match has_legends {
        true => legend_rows(&plot.series, width).len() as f64 * LINE,
        false => 0.0,
    };
    for row in chart.plots.chunks(columns) {
        let legend = row.iter().map(legend_height).fold(0.0, f64::max);
        let height = row.iter().map(|plot| panel_height(plot, columns)).fold(0.0, f64::max) + legend;
        for (column, plot) in row.iter().enumerate() {
            let x = MARGIN + column as f64 * (width + GAP);
            let area = Area { x, y, width, height, legend };
            if has_legends {
                let has_lines = plot.form == PlotForm::Steps;
                let legend = Legend { series: &plot.series, has_lines, x, y: y + LINE, width };
                draw_legend(&legend, drawing);
            }
            match plot.form {
                PlotForm::Bars => bars::draw(plot, area, drawing),
                PlotForm::Steps | PlotForm::Lines => curves::draw(plot, area, drawing),
            }
        }
        y += height + GAP;
    }
    for map in &chart.maps {
        let height = heat::height(map);
        heat::draw(map, Area { x: MARGIN, y, width: inner, height, legend: 0.0 }, drawing);
        y += height + GAP;
    }
    y
}

/// Small plots stand two in a row.
fn has_columns(plots: &[Plot]) -> bool {
    plots.len() > 1 && plots.iter().all(|plot| plot.form != PlotForm::Bars)
}

fn panel_height(plot: &Plot, columns: usize) -> f64 {
    match (plot.form, columns) {
        (PlotForm::Bars, _) => bars::height(plot),
        (_, 1) => WIDE_PANEL,
        (..) => PANEL,
    }
}

/// A name of the legend.
struct LegendEntry {
    place: usize,
    name: String,
    /// From the left edge of the legend.
    x: f64,
}

/// The names of all series, in rows within `width`; none where there is one series without a name.
fn legend_rows(series: &[PlotSeries], width: f64) -> Vec<Vec<LegendEntry>> {
    let mut rows: Vec<Vec<LegendEntry>> = Vec::new();
    let mut x = width;
    for (place, series) in series.iter().enumerate().filter(|(_, series)| !series.name.is_empty()) {
        let needed = 18.0 + series.name.chars().count() as f64 * CHARACTER + 18.0;
        if x + needed > width || rows.is_empty() {
            rows.push(Vec::new());
            x = 0.0;
        }
        if let Some(row) = rows.last_mut() {
            row.push(LegendEntry { place, name: series.name.clone(), x });
        }
        x += needed;
    }
    rows
}

/// A title within `width`.
fn fitted(title: &str, width: f64) -> String {
    let most = (width / (CHARACTER * 1.15)) as usize;
    if title.chars().count() <= most {
        return title.to_owned();
    }
    title.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Width that the texts of an axis take.
fn text_width<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    texts.map(|text| text.chars().count()).max().unwrap_or(0) as f64 * CHARACTER * 0.88
}

#[cfg(test)]
pub(super) mod sample {
    //! A chart with every part and hostile text, for the tests of the forms of files.

    use super::Chart;
    use crate::view::{Axis, AxisEnds, HeatMap, Plot, PlotForm, PlotLimit, PlotMark, PlotPoint, PlotSeries};

    fn number(value: f64) -> String {
        format!("{value:.0}")
    }

    fn series(name: &str, points: &[(f64, f64)]) -> PlotSeries {
        let point = |(x, y): &(f64, f64)| PlotPoint::at(*x, *y);
        PlotSeries { name: name.to_owned(), points: points.iter().map(point).collect() }
    }

    pub(crate) fn chart() -> Chart {
        let hostile = "<script>alert(1)</script> & \"q\" \u{1b}[2J\u{202e}";
        let bars = Plot {
            title: hostile.to_owned(),
            form: PlotForm::Bars,
            x: Axis::named(vec!["rand-read".to_owned(), hostile.to_owned()]),
            y: Axis::linear("IOPS", number),
            series: vec![
                PlotSeries {
                    name: hostile.to_owned(),
                    points: vec![PlotPoint {
                        interval: Some(AxisEnds { from: 90.0, to: 110.0 }),
                        ..PlotPoint::at(0.0, 100.0)
                    }],
                },
                series("B", &[(0.0, 75.0), (1.0, 150.0)]),
            ],
            limits: Vec::new(),
            marks: vec![PlotMark { series: 0, from: 1.0, to: 1.0, reason: "stalled" }],
        };
        let curves = Plot {
            title: "IOPS by queue depth".to_owned(),
            form: PlotForm::Lines,
            x: Axis::logarithmic("queue depth", number).marked(vec![1.0, 8.0, 64.0]),
            y: Axis::linear("IOPS", number),
            series: vec![series("A", &[(1.0, 10.0), (8.0, 80.0), (64.0, 100.0)]), series("B", &[(1.0, 5.0)])],
            limits: vec![PlotLimit { name: "limit of A".to_owned(), series: 0, y: 100.0 }],
            marks: Vec::new(),
        };
        let map = HeatMap {
            measure: "I/Os",
            across: "time",
            down: "latency",
            columns: vec![hostile.to_owned(), "1 s".to_owned()],
            rows: vec![(hostile.to_owned(), vec![Some(crate::view::Cell::count(4)), None])],
            ..HeatMap::default()
        };
        Chart {
            title: hostile.to_owned(),
            plots: vec![bars, curves],
            maps: vec![map],
            notes: vec![hostile.to_owned()],
        }
    }
}
