//! Plots as one SVG file: panels under a title and a legend, over the sources.
//!
//! The file holds its own style: colours that colour-blind readers tell apart, for light and dark backgrounds and for print, where dashes
//! and markers tell the series apart as well. Text of others cannot become markup.

mod bars;
mod curves;
mod heat;
mod style;
mod writer;

use crate::columns::wrap;
use crate::view::{HeatMap, Plot, PlotForm};

use style::{STYLE, series_class};
use writer::{Anchor, SvgWriter};

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

/// The picture as a file.
pub fn render(chart: &Chart) -> String {
    drawn(chart, STYLE)
}

/// The picture for a page that has the style of its classes.
pub(crate) fn inline(chart: &Chart) -> String {
    drawn(chart, "")
}

fn drawn(chart: &Chart, style: &str) -> String {
    let inner = WIDTH - 2.0 * MARGIN;
    let legend = legend_rows(&chart.plots, inner);
    let notes: Vec<String> =
        chart.notes.iter().flat_map(|note| wrap(note, (inner / (CHARACTER * 0.85)) as usize, 0, 2)).collect();
    let mut y = MARGIN + LINE;
    let mut svg = SvgWriter::default();
    svg.text(MARGIN, y, Anchor::Start, "title", &chart.title);
    y += LINE * 0.6;
    // Steps have no markers.
    let has_lines = chart.plots.iter().all(|plot| plot.form == PlotForm::Steps);
    for row in &legend {
        y += LINE;
        for entry in row {
            match has_lines {
                true => svg.line(
                    (entry.x, y - 4.0),
                    (entry.x + 13.0, y - 4.0),
                    &format!("curve {}", series_class(entry.place)),
                ),
                false => svg.marker(entry.place, entry.x + 6.0, y - 4.0),
            }
            svg.text(entry.x + 18.0, y, Anchor::Start, "label", &entry.name);
        }
    }
    y += LINE * 1.6;
    let columns = if has_columns(&chart.plots) { 2 } else { 1 };
    let width = (inner - GAP * (columns as f64 - 1.0)) / columns as f64;
    for row in chart.plots.chunks(columns) {
        let height = row.iter().map(|plot| panel_height(plot, columns)).fold(0.0, f64::max);
        for (column, plot) in row.iter().enumerate() {
            let x = MARGIN + column as f64 * (width + GAP);
            let area = Area { x, y, width, height };
            match plot.form {
                PlotForm::Bars => bars::draw(plot, area, &mut svg),
                PlotForm::Steps | PlotForm::Lines => curves::draw(plot, area, &mut svg),
            }
        }
        y += height + GAP;
    }
    for map in &chart.maps {
        let height = heat::height(map);
        heat::draw(map, Area { x: MARGIN, y, width: inner, height }, &mut svg);
        y += height + GAP;
    }
    for note in &notes {
        svg.text(MARGIN, y, Anchor::Start, "note", note);
        y += LINE * 0.9;
    }
    let titles: Vec<&str> = chart
        .plots
        .iter()
        .map(|plot| plot.title.as_str())
        .chain(chart.maps.iter().map(|map| map.measure))
        .collect();
    svg.document(WIDTH, y + MARGIN * 0.5, &chart.title, &titles.join("; "), style)
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
    x: f64,
}

/// The names of all series, in rows within `width`; none where there is one series without a name.
fn legend_rows(plots: &[Plot], width: f64) -> Vec<Vec<LegendEntry>> {
    let longest = plots.iter().max_by_key(|plot| plot.series.len());
    let names = longest.into_iter().flat_map(|plot| plot.series.iter().map(|series| series.name.clone()));
    let mut rows: Vec<Vec<LegendEntry>> = Vec::new();
    let mut x = width;
    for (place, name) in names.enumerate().filter(|(_, name)| !name.is_empty()) {
        let needed = 18.0 + name.chars().count() as f64 * CHARACTER + 18.0;
        if x + needed > width || rows.is_empty() {
            rows.push(Vec::new());
            x = 0.0;
        }
        if let Some(row) = rows.last_mut() {
            row.push(LegendEntry { place, name, x: MARGIN + x });
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
mod tests {
    use super::*;
    use crate::view::{Axis, AxisEnds, PlotLimit, PlotMark, PlotPoint, PlotSeries};

    fn number(value: f64) -> String {
        format!("{value:.0}")
    }

    fn series(name: &str, points: &[(f64, f64)]) -> PlotSeries {
        let point = |(x, y): &(f64, f64)| PlotPoint::at(*x, *y);
        PlotSeries { name: name.to_owned(), points: points.iter().map(point).collect() }
    }

    fn chart() -> Chart {
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
        };
        Chart {
            title: hostile.to_owned(),
            plots: vec![bars, curves],
            maps: vec![map],
            notes: vec![hostile.to_owned()],
        }
    }

    #[test]
    fn text_of_others_is_no_markup() {
        let svg = render(&chart());
        assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;"), "{svg}");
        assert!(svg.chars().all(|c| c == '\n' || !fathom_model::text::is_hidden(c)));
        // Every tag is closed: a parser would take it.
        let opened = svg.matches('<').count() - svg.matches("</").count() - svg.matches("/>").count();
        assert_eq!(opened, svg.matches("</").count(), "{svg}");
    }

    #[test]
    fn a_file_has_titles_axes_units_a_legend_and_both_colour_schemes() {
        let svg = render(&chart());
        for part in [
            "<title>",
            "<desc>",
            "prefers-color-scheme: dark",
            "queue depth",
            ">IOPS<",
            ">stalled<",
            ">limit of A<",
            "@media print",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        // An interval has caps on both ends.
        assert_eq!(svg.matches("class=\"interval\"").count(), 1);
    }
}
