//! Charts in cells: rates as bars, latencies as bars of two percentiles, and the heat map of latencies over time.

use fathom_model::units::latency;
use fathom_record::latency_bin_lower_edge;
use fathom_report::live::{LivePoint, LiveSeries};

use super::canvas::{Area, Canvas, Colour, Paint};
use super::course::Course;

/// Eighths of a cell, from the lowest.
const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_EIGHTHS: [char; 8] = ['.', '.', '.', ':', ':', ':', '#', '#'];
/// From few to many.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];
const ASCII_SHADES: [char; 4] = ['.', ':', '*', '#'];
/// The same in colour, so that the shades are no longer needed to tell them apart.
const HEATS: [Colour; 4] = [Colour::Blue, Colour::Cyan, Colour::Yellow, Colour::Red];
/// Columns of the labels beside a heat map.
const LABEL_COLUMNS: usize = 9;

/// A bar of a chart: its height and the height up to which it is drawn in another way, as shares of the chart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bar {
    pub height: f64,
    pub lower: f64,
}

/// The points of a test, as wide as they are to be drawn.
pub struct TimeAxis {
    pub points: Vec<LivePoint>,
    /// Columns of one point.
    pub each: usize,
    /// Median and 99th percentile of each point, or twice the mean where only that is known, ns; 0 without latencies.
    percentiles: Vec<(u64, u64)>,
}

impl TimeAxis {
    /// The points of `course` in at most `most` columns.
    pub fn of(course: &Course, most: usize) -> TimeAxis {
        let points = course.series.map(|series| series.columns(most)).unwrap_or_default();
        let each = LiveSeries::columns_each(&points, course.planned_ns, most);
        let percentiles = points.iter().map(|point| {
            if !course.has_bins {
                let mean_ns = point.latency_mean_ns().unwrap_or(0);
                return (mean_ns, mean_ns);
            }
            let latencies = point.latencies();
            let percentile = |percent: f64| latencies.percentile(percent).unwrap_or(0);
            (percentile(50.0), percentile(99.0))
        });
        TimeAxis { percentiles: percentiles.collect(), points, each }
    }

    /// The highest IOPS of a tick.
    pub fn highest_iops(&self) -> f64 {
        self.points.iter().map(|point| point.iops_range.1).fold(0.0, f64::max)
    }

    /// The highest 99th percentile of a point, ns; 0 without latencies.
    pub fn highest_p99(&self) -> u64 {
        self.percentiles.iter().map(|(_, p99)| *p99).max().unwrap_or(0)
    }

    /// What is drawn for each point, in each of its columns.
    fn spread<T: Copy>(&self, drawn: impl Iterator<Item = T>) -> Vec<T> {
        drawn.flat_map(|one| std::iter::repeat_n(one, self.each)).collect()
    }
}

/// Draws a bar in each column of `area`, from the left.
fn bars(canvas: &mut Canvas, area: Area, bars: &[Bar], (lower, upper): (Paint, Paint)) {
    let eighths = if canvas.look.unicode { EIGHTHS } else { ASCII_EIGHTHS };
    let shade = if canvas.look.unicode { SHADES[0] } else { ASCII_SHADES[1] };
    for (x, bar) in bars.iter().enumerate().take(area.width) {
        let full = (area.height * 8) as f64;
        let parts = |share: f64| (share.clamp(0.0, 1.0) * full).round() as usize;
        // What is there at all can be seen.
        let (height, below) = (parts(bar.height).max(usize::from(bar.height > 0.0)), parts(bar.lower));
        for row in 0..area.height {
            let place = (area.x + x, area.y + area.height - 1 - row);
            let in_cell = |level: usize| level.saturating_sub(row * 8).min(8);
            match (in_cell(height), in_cell(below)) {
                (0, _) => {}
                (8, 0) if bar.lower < bar.height => canvas.set(place, shade, upper),
                (level, 0) => canvas.set(place, eighths[level - 1], upper),
                (level, below) if below >= level => canvas.set(place, eighths[level - 1], lower),
                (_, below) => canvas.set(place, eighths[below - 1], lower),
            }
        }
    }
}

/// IOPS over time, from 0 to the highest tick.
pub fn rates(canvas: &mut Canvas, area: Area, axis: &TimeAxis) {
    let most = axis.highest_iops();
    let share = |iops: f64| if most > 0.0 { iops / most } else { 0.0 };
    let bar = |point: &LivePoint| Bar { height: share(point.iops_range.1), lower: share(point.iops_range.0) };
    let each = axis.spread(axis.points.iter().map(bar));
    let ramp = axis.points.iter().take_while(|point| point.is_ramp).count() * axis.each;
    bars(canvas, area, &each, (Paint::of(Colour::Green), Paint::of(Colour::Yellow)));
    let (head, _) = area.split_columns(ramp);
    bars(canvas, head, &each[..ramp], (Paint::of(Colour::Blue), Paint::of(Colour::Blue)));
}

/// Median and 99th percentile over time, from 0 to the highest.
pub fn latencies(canvas: &mut Canvas, area: Area, axis: &TimeAxis) {
    let most = axis.highest_p99();
    let share = |ns: u64| if most > 0 { ns as f64 / most as f64 } else { 0.0 };
    let bar = |(p50, p99): &(u64, u64)| Bar { height: share(*p99), lower: share(*p50) };
    let each = axis.spread(axis.percentiles.iter().map(bar));
    bars(canvas, area, &each, (Paint::of(Colour::Cyan), Paint::of(Colour::Magenta)));
}

/// The rows of a heat map: powers of two of ns, from the lowest to the highest.
#[derive(Clone, Copy, Debug, PartialEq)]
struct HeatScale {
    low: f64,
    high: f64,
    rows: usize,
}

impl HeatScale {
    /// A scale for all latencies of `points`; `None` where there are none.
    fn of(points: &[LivePoint], rows: usize) -> Option<HeatScale> {
        let bins = || points.iter().flat_map(|point| &point.latency_bins).map(|(bin, _)| usize::from(*bin));
        let exponent = |bin: usize| (latency_bin_lower_edge(bin).max(1) as f64).log2();
        let (low, high) = (exponent(bins().min()?).floor(), exponent(bins().max()? + 1).ceil());
        Some(HeatScale { low, high: high.max(low + 1.0), rows })
    }

    /// The row of a bin, from the bottom.
    fn row(&self, bin: u16) -> usize {
        let exponent = (latency_bin_lower_edge(usize::from(bin)).max(1) as f64).log2();
        let share = (exponent - self.low) / (self.high - self.low);
        ((share * self.rows as f64) as usize).min(self.rows - 1)
    }

    /// The latency at the lower edge of a row, ns.
    fn edge(&self, row: usize) -> u64 {
        (self.low + (self.high - self.low) * row as f64 / self.rows as f64).exp2() as u64
    }
}

/// How many columns of time a heat map in `area` has.
pub const fn heat_columns(area: Area) -> usize {
    area.width.saturating_sub(LABEL_COLUMNS)
}

/// The distribution of latencies at each point: the more of its requests a cell has, the stronger it is; a single one shows.
pub fn heat_map(canvas: &mut Canvas, area: Area, axis: &TimeAxis) {
    if area.height == 0 || area.width <= LABEL_COLUMNS {
        return;
    }
    let Some(scale) = HeatScale::of(&axis.points, area.height) else {
        canvas.text(area, "no latencies so far", Paint::PLAIN);
        return;
    };
    let (labels, map) = area.split_columns(LABEL_COLUMNS);
    for row in (0..area.height).step_by(2) {
        let (_, line) = labels.split_rows(area.height - 1 - row);
        let (line, _) = line.split_columns(LABEL_COLUMNS - 1);
        canvas.text_right(line, &latency(scale.edge(row)), Paint::PLAIN);
    }
    let shades = if canvas.look.unicode { SHADES } else { ASCII_SHADES };
    for (index, point) in axis.points.iter().enumerate() {
        let mut counts = vec![0u64; scale.rows];
        for (bin, count) in &point.latency_bins {
            counts[scale.row(*bin)] += count;
        }
        let all: u64 = counts.iter().sum();
        for (row, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let level = ((count as f64 / all as f64).sqrt() * 3.999) as usize;
            let glyph = if canvas.look.colour && canvas.look.unicode { SHADES[3] } else { shades[level] };
            for x in (index * axis.each..(index + 1) * axis.each).take_while(|x| *x < map.width) {
                let place = (map.x + x, map.y + map.height - 1 - row);
                canvas.set(place, glyph, Paint::of(HEATS[level]));
            }
        }
    }
}
