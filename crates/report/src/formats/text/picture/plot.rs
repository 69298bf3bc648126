//! Plots of lines and dots: braille where the terminal has it, else one character to the dot.

use super::Picture;
use crate::Style;
use crate::view::Plot;

/// Size of a plot, labels included, and its characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlotSize {
    pub width: usize,
    /// Lines of the field.
    pub height: usize,
    pub is_unicode: bool,
}

/// The letter that marks a stretch without a value.
pub(super) fn letter(reason: &str) -> char {
    match reason {
        "failed" => 'x',
        reason => reason.chars().next().unwrap_or('?'),
    }
}

/// Title, field, axis and, where there are marks, their line.
pub(super) fn picture(plot: &Plot, size: PlotSize, style: &Style) -> Picture {
    let mut lines = lines(plot, size);
    lines[0] = style.bold(lines[0].trim_end_matches(' '));
    let first = plot.title.chars().count();
    let width = |index: usize| if index == 0 { first } else { size.width };
    Picture { lines: lines.into_iter().enumerate().map(|(index, line)| (line, width(index))).collect() }
}

fn lines(plot: &Plot, size: PlotSize) -> Vec<String> {
    let top = nice(plot.points.iter().map(|point| point.y).fold(0.0, f64::max));
    let (most, none) = ((plot.y_cell)(top).text, (plot.y_cell)(0.0).text);
    let label = most.chars().count().max(none.chars().count());
    let field = PlotField::new(size.width.saturating_sub(label + 2).max(8), size);
    let rows = field.draw(plot, top);
    let (wall, floor, corner) = if size.is_unicode { ('│', '─', '└') } else { ('|', '-', '+') };
    let mut lines = vec![plot.title.clone()];
    for (number, row) in rows.iter().enumerate() {
        let text = if number == 0 { most.as_str() } else { "" };
        lines.push(format!("{text:>label$} {wall}{row}"));
    }
    let axis: String = std::iter::repeat_n(floor, field.columns).collect();
    lines.push(format!("{none:>label$} {corner}{axis}"));
    if !plot.marks.is_empty() {
        lines.push(format!("{:label$}  {}", "", field.marks(plot)));
    }
    let (first, last) = &plot.x_labels;
    let gap = field.columns.saturating_sub(first.chars().count() + last.chars().count());
    lines.push(format!("{:label$}  {first}{}{last}", "", " ".repeat(gap)));
    let pad = |line: String| format!("{line}{}", " ".repeat(size.width.saturating_sub(line.chars().count())));
    lines.into_iter().map(pad).collect()
}

/// The next of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten.
fn nice(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    // A value that is itself such a step is not to slip behind it.
    steps.into_iter().map(|step| step * power).find(|step| *step >= value * 0.999_999).unwrap_or(value)
}

/// Dots of a character: across and down.
const BRAILLE: (usize, usize) = (2, 4);

struct PlotField {
    columns: usize,
    rows: usize,
    dots: (usize, usize),
}

impl PlotField {
    fn new(columns: usize, size: PlotSize) -> PlotField {
        PlotField { columns, rows: size.height, dots: if size.is_unicode { BRAILLE } else { (1, 1) } }
    }

    fn draw(&self, plot: &Plot, top: f64) -> Vec<String> {
        let (wide, high) = (self.columns * self.dots.0, self.rows * self.dots.1);
        let mut set = vec![false; wide * high];
        for point in &plot.points {
            let (from, to) = span(point.from, point.to, plot.x_end, wide);
            let up = ((point.y / top).clamp(0.0, 1.0) * (high - 1) as f64).round() as usize;
            for dot in &mut set[(high - 1 - up) * wide..][from..=to] {
                *dot = true;
            }
        }
        let is_set = |x: usize, y: usize| set[y * wide + x];
        (0..self.rows)
            .map(|row| (0..self.columns).map(|column| self.letter(&is_set, column, row)).collect())
            .collect()
    }

    fn letter(&self, is_set: &impl Fn(usize, usize) -> bool, column: usize, row: usize) -> char {
        if self.dots == (1, 1) {
            return if is_set(column, row) { '*' } else { ' ' };
        }
        // The order of the dots in the code: three down on either side, then the lowest of both.
        const BITS: [[u32; 2]; 4] = [[0, 3], [1, 4], [2, 5], [6, 7]];
        let mut code = 0;
        for (y, bits) in BITS.iter().enumerate() {
            for (x, bit) in bits.iter().enumerate() {
                code |= u32::from(is_set(column * 2 + x, row * 4 + y)) << bit;
            }
        }
        match code {
            0 => ' ',
            code => char::from_u32(0x2800 + code).unwrap_or(' '),
        }
    }

    fn marks(&self, plot: &Plot) -> String {
        let mut line = vec![' '; self.columns];
        for mark in &plot.marks {
            let (from, to) = span(mark.from, mark.to, plot.x_end, self.columns);
            line[from..=to].fill(letter(mark.reason));
        }
        line.into_iter().collect()
    }
}

/// The first and last of `cells` that lie between `from` and `to`; one at least.
fn span(from: f64, to: f64, most: f64, cells: usize) -> (usize, usize) {
    let cell = |x: f64| if most > 0.0 { x / most * cells as f64 } else { 0.0 };
    let first = (cell(from).floor().max(0.0) as usize).min(cells - 1);
    let last = (cell(to).ceil() as usize).saturating_sub(1).clamp(first, cells - 1);
    (first, last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Cell, PlotMark, PlotPoint};

    fn drawn(points: &[PlotPoint], marks: &[PlotMark], is_unicode: bool) -> Vec<String> {
        let plot = Plot {
            title: "rate".to_owned(),
            points: points.to_vec(),
            marks: marks.to_vec(),
            x_end: 8.0,
            x_labels: ("0".to_owned(), "8".to_owned()),
            y_cell: |value| Cell::real(value, format!("{value:.0}")),
        };
        lines(&plot, PlotSize { width: 12, height: 2, is_unicode })
    }

    #[test]
    fn lines_dots_and_marks_lie_where_they_belong() {
        let point = |from, to, y| PlotPoint { from, to, y };
        let points = [point(0.0, 4.0, 10.0), point(4.0, 6.0, 0.0)];
        let marks = [PlotMark { from: 6.0, to: 8.0, reason: "unwritten" }];
        let expected =
            ["rate        ", "10 |****    ", "   |    **  ", " 0 +--------", "          uu", "    0      8"];
        assert_eq!(drawn(&points, &marks, false), expected);
        let expected =
            ["rate        ", "10 │⠉⠉⠉⠉    ", "   │    ⣀⣀  ", " 0 └────────", "          uu", "    0      8"];
        assert_eq!(drawn(&points, &marks, true), expected);
        // A dot at the very end is still within.
        assert_eq!(drawn(&[point(8.0, 8.0, 1.0)], &[], false)[1], "1 |        *");
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, expected) in
            [(0.0, 1.0), (97.0, 100.0), (101.0, 150.0), (200.0, 200.0), (0.7, 0.8), (9.0, 10.0)]
        {
            assert!((nice(value) - expected).abs() < 1e-9, "{value}: {}", nice(value));
        }
    }
}
