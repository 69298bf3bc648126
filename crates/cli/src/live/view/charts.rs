//! Charts in cells: rates as bars, latencies as bars of two percentiles, and the heat map of latencies over time.

use fathom_model::units::latency;
use fathom_record::latency_bin_lower_edge;
use fathom_report::live::{LiveDevice, LivePoint, LiveSeries, LiveState};

use super::canvas::{Area, Canvas, Colour, Paint};

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

/// Rates and latencies over time, and the latest of them.
pub struct Course<'a> {
    /// `None` where nothing is known yet.
    pub series: Option<&'a LiveSeries>,
    /// When it is expected to end, ns.
    pub planned_ns: u64,
    /// IOPS now: read, write, trim.
    pub iops: [f64; 3],
    /// Bandwidth now.
    pub bytes_per_second: f64,
    /// What the latencies span.
    pub span: &'static str,
    /// Mean latency now, ns.
    pub mean_ns: Option<u64>,
    /// There is a chart of rates.
    pub has_rates: bool,
    /// There is a chart of the distribution of latencies.
    pub has_distribution: bool,
    /// Latencies are known one by one, not only as means.
    pub has_bins: bool,
}

impl<'a> Course<'a> {
    /// That of `state`; of a monitor, that of `device`, or of the one that has done most.
    pub fn of(state: &'a LiveState, device: Option<&str>) -> Course<'a> {
        let planned_ns = state.snapshot.elapsed_ns + state.snapshot.remaining_ns.unwrap_or(0);
        if let Some(monitor) = &state.monitor {
            return Course::of_device(monitor.shown(device), planned_ns);
        }
        let snapshot = &state.snapshot;
        Course {
            series: Some(&state.series),
            planned_ns,
            iops: snapshot.iops,
            bytes_per_second: snapshot.bytes_per_second.iter().sum(),
            span: state.span.name(),
            mean_ns: snapshot.clat_mean_ns,
            has_rates: state.ping.is_none(),
            has_distribution: true,
            has_bins: true,
        }
    }

    fn of_device(device: Option<&'a LiveDevice>, planned_ns: u64) -> Course<'a> {
        let is_traced = device.is_some_and(LiveDevice::is_traced);
        let Some(now) = device.map(|device| &device.now) else {
            return Course {
                series: None,
                planned_ns,
                iops: [0.0; 3],
                bytes_per_second: 0.0,
                span: "await",
                mean_ns: None,
                has_rates: true,
                has_distribution: false,
                has_bins: false,
            };
        };
        let ops = &now.activity.ops;
        let mean_ns = if is_traced {
            let loads = || now.load.iter().flat_map(|load| load.ops.values());
            let count: u128 = loads().map(|load| u128::from(load.service.moments.count)).sum();
            loads().map(|load| load.service.moments.sum).sum::<u128>().checked_div(count).map(|ns| ns as u64)
        } else {
            now.activity.total().await_ns().map(|ns| ns as u64)
        };
        let per_second = |count: u64| now.per_second(count).unwrap_or(0.0);
        Course {
            series: device.map(|device| &device.series),
            planned_ns,
            iops: [ops.read.ios, ops.write.ios, ops.trim.ios].map(per_second),
            bytes_per_second: per_second(now.activity.total().bytes),
            span: if is_traced { "service" } else { "await" },
            mean_ns,
            has_rates: true,
            has_distribution: is_traced,
            has_bins: is_traced,
        }
    }
}
