//! The pictures of a sweep in a terminal: heat maps over block size and depth, and bars along one of them.

use fathom_analysis::pattern::{AccessPattern, block_name};
use fathom_analysis::sweep::point::SweepPoint;
use fathom_model::units;

use crate::Style;
use crate::bench::table::{INDENT, count, decimal};

/// Lines with their width as it is seen, so that several blocks of them can stand side by side.
pub(crate) struct Picture {
    lines: Vec<(String, usize)>,
}

/// What a heat map shows.
#[derive(Clone, Copy)]
pub(crate) enum MapMeasure {
    Iops,
    Bandwidth,
    Latency,
}

impl MapMeasure {
    fn title(self) -> &'static str {
        match self {
            MapMeasure::Iops => "IOPS",
            MapMeasure::Bandwidth => "MiB/s",
            MapMeasure::Latency => "mean latency",
        }
    }

    fn value(self, point: &SweepPoint) -> Option<f64> {
        match self {
            MapMeasure::Iops => (point.ios > 0).then_some(point.iops),
            MapMeasure::Bandwidth => (point.ios > 0).then_some(point.bytes_per_second / 1_048_576.0),
            MapMeasure::Latency => point.lat_ns.mean,
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            MapMeasure::Iops => short(value),
            MapMeasure::Bandwidth => decimal(value),
            MapMeasure::Latency => units::latency(value.round() as u64),
        }
    }
}

/// A rate in at most five characters: `0.8`, `999`, `9,999`, `12.3k`, `1.23M`.
fn short(rate: f64) -> String {
    match rate {
        999_500.0.. => format!("{:.2}M", rate / 1e6),
        99_950.0.. => format!("{:.0}k", rate / 1e3),
        9_999.5.. => format!("{:.1}k", rate / 1e3),
        _ => count(rate),
    }
}

const SHADES: [&str; 5] = [" ", "░", "▒", "▓", "█"];

/// The points of one pattern and number of jobs over block size and depth.
pub(crate) struct Grid<'a> {
    points: Vec<&'a SweepPoint>,
    pub blocks: Vec<u64>,
    depths: Vec<u32>,
}

impl<'a> Grid<'a> {
    pub(crate) fn new(points: &'a [SweepPoint], rw: AccessPattern, jobs: u32) -> Grid<'a> {
        let points: Vec<&SweepPoint> =
            points.iter().filter(|point| (point.spot.rw, point.spot.numjobs) == (rw, jobs)).collect();
        let mut blocks: Vec<u64> = points.iter().map(|point| point.spot.block_size_bytes).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let mut depths: Vec<u32> = points.iter().map(|point| point.spot.iodepth).collect();
        depths.sort_unstable();
        depths.dedup();
        Grid { points, blocks, depths }
    }

    fn at(&self, block: u64, depth: u32) -> Option<&SweepPoint> {
        self.points
            .iter()
            .rfind(|point| (point.spot.block_size_bytes, point.spot.iodepth) == (block, depth))
            .copied()
    }

    /// The depths to show within `width`: those that fewest points have go first.
    fn shown(&self, width: usize, cell: usize) -> Vec<u32> {
        let mut shown = self.depths.clone();
        let most = (width.saturating_sub(INDENT + 8) / (cell + 2)).max(1);
        let measured = |depth: u32| self.points.iter().filter(|point| point.spot.iodepth == depth).count();
        while shown.len() > most {
            let Some(rarest) = shown.iter().copied().rev().min_by_key(|&depth| measured(depth)) else {
                break;
            };
            shown.retain(|&depth| depth != rarest);
        }
        shown
    }

    /// The heat map of `measure`.
    pub(crate) fn map(&self, measure: MapMeasure, width: usize, style: &Style) -> Picture {
        let cell = |point: &SweepPoint| match measure.value(point) {
            _ if point.stalled_ns.is_some() => "stalled".to_owned(),
            Some(value) => measure.text(value),
            None => "failed".to_owned(),
        };
        let wide = self.points.iter().map(|point| cell(point).chars().count()).max().unwrap_or(0).max(4);
        let depths = self.shown(width, wide + 1);
        let most = self.points.iter().filter_map(|point| measure.value(point)).fold(0.0, f64::max);
        let mut head = format!("{:INDENT$}{:>8}", "", measure.title());
        let title_width = head.chars().count();
        for depth in &depths {
            head.push_str(&format!("  {:>1$}", format!("d{depth}"), wide + 1));
        }
        let seen = title_width + depths.len() * (wide + 3);
        let mut lines = vec![(style.bold(&head), seen)];
        for &block in &self.blocks {
            let mut line = format!("{:>title_width$}", block_name(block));
            for &depth in &depths {
                let Some(point) = self.at(block, depth) else {
                    line.push_str(&" ".repeat(wide + 3));
                    continue;
                };
                let share =
                    measure.value(point).map_or(0.0, |value| if most > 0.0 { value / most } else { 0.0 });
                let text = format!("{:>wide$}", cell(point));
                line.push_str("  ");
                line.push_str(&style.shade(share, &text, SHADES));
            }
            lines.push((line, seen));
        }
        Picture { lines }
    }
}

/// Pictures side by side as far as `width` goes, the others below.
pub(crate) fn side_by_side(pictures: Vec<Picture>, width: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut row: Vec<(String, usize)> = Vec::new();
    let flush = |row: &mut Vec<(String, usize)>, out: &mut Vec<String>| {
        if !row.is_empty() && !out.is_empty() {
            out.push(String::new());
        }
        out.extend(row.drain(..).map(|(line, _)| line.trim_end_matches(' ').to_owned()));
    };
    for picture in pictures {
        let (used, more) = (wide(&row), wide(&picture.lines));
        if !row.is_empty() && (used + 3 + more > width || row.len() != picture.lines.len()) {
            flush(&mut row, &mut out);
        }
        if row.is_empty() {
            row = picture.lines;
            continue;
        }
        for ((line, seen), (next, next_seen)) in row.iter_mut().zip(picture.lines) {
            line.push_str(&" ".repeat(used + 3 - *seen));
            line.push_str(&next);
            *seen = used + 3 + next_seen;
        }
    }
    flush(&mut row, &mut out);
    out
}

fn wide(lines: &[(String, usize)]) -> usize {
    lines.iter().map(|(_, seen)| *seen).max().unwrap_or(0)
}

/// A bar of `share` of `width` characters, filled up with spaces; eighths are drawn.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(EIGHTHS[eighths % 8]);
    let length = bar.chars().count();
    bar.push_str(&" ".repeat(width.saturating_sub(length)));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_stay_short() {
        for (rate, expected) in [
            (0.82, "0.8"),
            (999.4, "999"),
            (9_999.4, "9,999"),
            (12_345.0, "12.3k"),
            (99_951.0, "100k"),
            (1_234_567.0, "1.23M"),
        ] {
            assert_eq!(short(rate), expected);
        }
    }

    #[test]
    fn bars_keep_their_width() {
        for (share, expected) in [(0.0, "    "), (0.5, "██  "), (1.0, "████"), (2.0, "████"), (0.28, "█▏  ")]
        {
            assert_eq!(bar(share, 4), expected);
        }
    }

    #[test]
    fn pictures_stand_side_by_side_where_they_fit() {
        let picture =
            |text: &str| Picture { lines: vec![(text.to_owned(), text.len()), ("x".to_owned(), 1)] };
        let both = || vec![picture("abcd"), picture("efg")];
        assert_eq!(side_by_side(both(), 10), ["abcd   efg", "x      x"]);
        assert_eq!(side_by_side(both(), 9), ["abcd", "x", "", "efg", "x"]);
    }
}
