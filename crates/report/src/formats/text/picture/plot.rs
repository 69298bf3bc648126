//! Plots of lines and dots: braille where the terminal has it, else one character to the dot. Where several series share a plot, each
//! value is a letter.

use super::Picture;
use crate::Style;
use crate::view::{AxisEnds, Plot, PlotForm, PlotSeries};

/// Size of a plot, labels included, and its characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlotSize {
    pub width: usize,
    /// Lines of the field.
    pub height: usize,
    pub is_unicode: bool,
}

/// Values in the same place.
const SEVERAL: char = '*';
/// A line where there is no braille.
const LINE: char = '.';

/// The letter that marks a stretch without a value.
pub(super) fn letter(reason: &str) -> char {
    match reason {
        "failed" => 'x',
        reason => reason.chars().next().unwrap_or('?'),
    }
}

/// The letter of a series: of its name, else of its place.
pub(super) fn series_letter(plot: &Plot, place: usize) -> char {
    let named = plot.series[place].name.chars().next().filter(|first| {
        let is_same = |other: &PlotSeries| other.name.starts_with(*first);
        first.is_alphanumeric() && plot.series.iter().filter(|other| is_same(other)).count() == 1
    });
    named.unwrap_or_else(|| char::from(b'a' + (place % 26) as u8))
}

/// Title, field, axis and, where there are marks, their line.
pub(super) fn picture(plot: &Plot, size: PlotSize, style: &Style) -> Picture {
    let mut lines = lines(plot, size);
    let first = lines[0].trim_end_matches(' ').chars().count();
    lines[0] = style.bold(lines[0].trim_end_matches(' '));
    let width = |index: usize| if index == 0 { first } else { size.width };
    Picture { lines: lines.into_iter().enumerate().map(|(index, line)| (line, width(index))).collect() }
}

fn lines(plot: &Plot, size: PlotSize) -> Vec<String> {
    let ends = plot.y_ends();
    let (most, least) = ((plot.y.text)(ends.to), (plot.y.text)(ends.from));
    let ticks: Vec<f64> = if plot.series.len() > 1 { plot.y.ticks(ends, 4) } else { Vec::new() };
    let text_of = |value: &f64| (plot.y.text)(*value);
    let label = ticks.iter().map(text_of).chain([most.clone(), least.clone()]);
    let label = label.map(|text| text.chars().count()).max().unwrap_or(0);
    let field = PlotField::new(size.width.saturating_sub(label + 2).max(8), size);
    let rows = field.draw(plot, ends);
    let (wall, floor, corner) = if size.is_unicode { ('│', '─', '└') } else { ('|', '-', '+') };
    let mut lines = vec![title(plot)];
    for (number, row) in rows.iter().enumerate() {
        // The row that a tick falls into; the first and the last have the ends.
        let of_row = |value: &&f64| {
            let up = plot.y.place(**value, ends) * (size.height - 1) as f64;
            size.height - 1 - up.round() as usize == number && number > 0
        };
        let tick = ticks.iter().find(of_row).filter(|value| **value > ends.from).map(text_of);
        let text = if number == 0 { most.clone() } else { tick.unwrap_or_default() };
        lines.push(format!("{text:>label$} {wall}{row}"));
    }
    let axis: String = std::iter::repeat_n(floor, field.columns).collect();
    lines.push(format!("{least:>label$} {corner}{axis}"));
    if !plot.marks.is_empty() {
        lines.push(format!("{:label$}  {}", "", field.marks(plot)));
    }
    lines.push(format!("{:label$}  {}", "", x_axis(plot, field.columns)));
    if !plot.x.label.is_empty() {
        lines.push(format!("{:label$}  {:^2$}", "", plot.x.label, field.columns));
    }
    let pad = |line: String| format!("{line}{}", " ".repeat(size.width.saturating_sub(line.chars().count())));
    lines.into_iter().map(pad).collect()
}

/// The title, with what the values are where it does not say so.
pub(super) fn title(plot: &Plot) -> String {
    let (title, label) = (plot.title.to_lowercase(), plot.y.label.to_lowercase());
    if title.contains(&label) { plot.title.clone() } else { format!("{}: {}", plot.title, plot.y.label) }
}

/// The ends, and the marks between them that have room.
fn x_axis(plot: &Plot, columns: usize) -> String {
    let ends = plot.x_ends();
    let ticks = if plot.x.ticks.is_empty() { Vec::new() } else { plot.x.ticks(ends, columns / 6) };
    let (first, last) = (plot.x.word(ends.from), plot.x.word(ends.to));
    let mut line: Vec<char> = vec![' '; columns];
    let mut write = |text: &str, start: usize| {
        let width = text.chars().count();
        let is_free = line.iter().skip(start.saturating_sub(1)).take(width + 2).all(|c| *c == ' ');
        if start + width <= columns && is_free {
            text.chars().enumerate().for_each(|(at, c)| line[start + at] = c);
        }
    };
    write(&first, 0);
    write(&last, columns.saturating_sub(last.chars().count()));
    for tick in ticks {
        let text = plot.x.word(tick);
        let at = (plot.x.place(tick, ends) * (columns - 1) as f64).round() as usize;
        write(&text, at.saturating_sub(text.chars().count() / 2));
    }
    line.into_iter().collect::<String>().trim_end_matches(' ').to_owned()
}

/// Dots of a character: across and down.
const BRAILLE: (usize, usize) = (2, 4);

struct PlotField {
    columns: usize,
    rows: usize,
    dots: (usize, usize),
}

/// A dot of the field.
#[derive(Clone, Copy)]
struct Dot {
    x: usize,
    y: usize,
}

impl PlotField {
    fn new(columns: usize, size: PlotSize) -> PlotField {
        PlotField { columns, rows: size.height, dots: if size.is_unicode { BRAILLE } else { (1, 1) } }
    }

    fn draw(&self, plot: &Plot, ends: AxisEnds) -> Vec<String> {
        let (wide, high) = (self.columns * self.dots.0, self.rows * self.dots.1);
        let mut set = vec![false; wide * high];
        let x_ends = plot.x_ends();
        let up = |y: f64| high - 1 - (plot.y.place(y, ends) * (high - 1) as f64).round() as usize;
        for limit in &plot.limits {
            // A dotted line.
            let y = up(limit.y);
            (0..wide).step_by(4).for_each(|x| set[y * wide + x] = true);
        }
        let across = |x: f64| (plot.x.place(x, x_ends) * (wide - 1) as f64).round() as usize;
        for series in &plot.series {
            if plot.form == PlotForm::Lines {
                let dots: Vec<Dot> =
                    series.points.iter().map(|point| Dot { x: across(point.from), y: up(point.y) }).collect();
                for pair in dots.windows(2) {
                    join(pair[0], pair[1], |dot| set[dot.y * wide + dot.x] = true);
                }
            }
            for point in &series.points {
                let (from, to) = span(point.from, point.to, x_ends, plot, wide);
                set[up(point.y) * wide..][from..=to].fill(true);
            }
        }
        let is_set = |x: usize, y: usize| set[y * wide + x];
        let mut rows: Vec<Vec<char>> = (0..self.rows)
            .map(|row| (0..self.columns).map(|column| self.letter(&is_set, column, row)).collect())
            .collect();
        if plot.form == PlotForm::Lines && self.dots == (1, 1) {
            rows.iter_mut().flatten().filter(|c| **c == SEVERAL).for_each(|c| *c = LINE);
        }
        if plot.series.len() > 1 {
            self.name_series(plot, ends, &mut rows);
        }
        rows.into_iter().map(|row| row.into_iter().collect()).collect()
    }

    /// The letter of each series at its values.
    fn name_series(&self, plot: &Plot, ends: AxisEnds, rows: &mut [Vec<char>]) {
        let x_ends = plot.x_ends();
        let mut owners = vec![None; self.columns * self.rows];
        for (place, series) in plot.series.iter().enumerate() {
            let letter = series_letter(plot, place);
            for point in &series.points {
                let middle = plot.x.place(f64::midpoint(point.from, point.to), x_ends);
                let column = (middle * (self.columns - 1) as f64).round() as usize;
                let up = (plot.y.place(point.y, ends) * (self.rows - 1) as f64).round() as usize;
                let row = self.rows - 1 - up;
                let owner = &mut owners[row * self.columns + column];
                rows[row][column] = match *owner {
                    Some(other) if other != place => SEVERAL,
                    _ => letter,
                };
                *owner = Some(place);
            }
        }
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
            let (from, to) = span(mark.from, mark.to, plot.x_ends(), plot, self.columns);
            line[from..=to].fill(letter(mark.reason));
        }
        line.into_iter().collect()
    }
}

/// Every dot on the way from one to the other.
fn join(one: Dot, other: Dot, mut set: impl FnMut(Dot)) {
    let steps = one.x.abs_diff(other.x).max(one.y.abs_diff(other.y)).max(1);
    let between = |one: usize, other: usize, step: usize| {
        (one as f64 + (other as f64 - one as f64) * step as f64 / steps as f64).round() as usize
    };
    (0..=steps)
        .for_each(|step| set(Dot { x: between(one.x, other.x, step), y: between(one.y, other.y, step) }));
}

/// The first and last of `cells` that lie between `from` and `to`; one at least.
fn span(from: f64, to: f64, ends: AxisEnds, plot: &Plot, cells: usize) -> (usize, usize) {
    let cell = |x: f64| plot.x.place(x, ends) * cells as f64;
    let first = (cell(from).floor().max(0.0) as usize).min(cells - 1);
    let last = (cell(to).ceil() as usize).saturating_sub(1).clamp(first, cells - 1);
    (first, last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Axis, PlotMark, PlotPoint};

    fn plot(points: &[PlotPoint], marks: &[PlotMark]) -> Plot {
        Plot {
            title: "rate".to_owned(),
            form: PlotForm::Steps,
            x: Axis::linear("", |value| format!("{value:.0}")).ending(0.0, 8.0),
            y: Axis::linear("", |value| format!("{value:.0}")),
            series: vec![PlotSeries { name: String::new(), points: points.to_vec() }],
            limits: Vec::new(),
            marks: marks.to_vec(),
        }
    }

    fn drawn(points: &[PlotPoint], marks: &[PlotMark], is_unicode: bool) -> Vec<String> {
        lines(&plot(points, marks), PlotSize { width: 12, height: 2, is_unicode })
    }

    #[test]
    fn lines_dots_and_marks_lie_where_they_belong() {
        let point = |from, to, y| PlotPoint { from, to, y, interval: None };
        let points = [point(0.0, 4.0, 10.0), point(4.0, 6.0, 0.0)];
        let marks = [PlotMark { series: 0, from: 6.0, to: 8.0, reason: "unwritten" }];
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
    fn series_that_share_a_plot_are_letters() {
        let mut shared = plot(&[PlotPoint::at(0.0, 10.0), PlotPoint::at(8.0, 0.0)], &[]);
        shared.form = PlotForm::Lines;
        shared.series[0].name = "A".to_owned();
        let points = vec![PlotPoint::at(0.0, 0.0), PlotPoint::at(8.0, 0.0)];
        shared.series.push(PlotSeries { name: "B".to_owned(), points });
        let size = PlotSize { width: 12, height: 3, is_unicode: false };
        let found = lines(&shared, size);
        assert_eq!((found[0].trim_end(), found[1].as_str()), ("rate", "10 |A.      "));
        assert!(found[3].starts_with("   |B") && found[3].ends_with(SEVERAL), "{found:?}");
    }
}
