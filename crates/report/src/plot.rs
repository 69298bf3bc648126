//! Plots of lines and dots in a terminal: braille where the terminal has it, else one character to the dot.

/// A stroke of a plot: a line at `y` from `from` to `to`, or a dot where they are the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stroke {
    pub from: f64,
    pub to: f64,
    pub y: f64,
}

/// A mark below the axis, where there is no value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlotMark {
    pub from: f64,
    pub to: f64,
    pub letter: char,
}

/// What is drawn; `x` goes from 0 to `x_most`, `y` from 0 to the greatest stroke.
pub(crate) struct Plot<'a> {
    pub title: String,
    pub strokes: &'a [Stroke],
    pub marks: &'a [PlotMark],
    pub x_most: f64,
    /// The ends of the axis in words.
    pub x_ends: (String, String),
    pub y_text: &'a dyn Fn(f64) -> String,
}

/// Size and looks of a plot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paper {
    /// Characters, labels included.
    pub width: usize,
    /// Lines of the field.
    pub height: usize,
    pub unicode: bool,
}

impl Plot<'_> {
    /// Title, field, axis and, where there are marks, their line; every line is `width` characters wide.
    pub(crate) fn lines(&self, paper: &Paper) -> Vec<String> {
        let top = nice(self.strokes.iter().map(|stroke| stroke.y).fold(0.0, f64::max));
        let (most, none) = ((self.y_text)(top), (self.y_text)(0.0));
        let label = most.chars().count().max(none.chars().count());
        let field = PlotField::new(paper.width.saturating_sub(label + 2).max(8), paper);
        let rows = field.draw(self, top);
        let (wall, floor, corner) = if paper.unicode { ('│', '─', '└') } else { ('|', '-', '+') };
        let mut lines = vec![self.title.clone()];
        for (number, row) in rows.iter().enumerate() {
            let text = if number == 0 { most.as_str() } else { "" };
            lines.push(format!("{text:>label$} {wall}{row}"));
        }
        let axis: String = std::iter::repeat_n(floor, field.columns).collect();
        lines.push(format!("{none:>label$} {corner}{axis}"));
        if !self.marks.is_empty() {
            lines.push(format!("{:label$}  {}", "", field.marks(self)));
        }
        let (first, last) = &self.x_ends;
        let gap = field.columns.saturating_sub(first.chars().count() + last.chars().count());
        lines.push(format!("{:label$}  {first}{}{last}", "", " ".repeat(gap)));
        let pad =
            |line: String| format!("{line}{}", " ".repeat(paper.width.saturating_sub(line.chars().count())));
        lines.into_iter().map(pad).collect()
    }
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
    fn new(columns: usize, paper: &Paper) -> PlotField {
        PlotField { columns, rows: paper.height, dots: if paper.unicode { BRAILLE } else { (1, 1) } }
    }

    fn draw(&self, plot: &Plot<'_>, top: f64) -> Vec<String> {
        let (wide, high) = (self.columns * self.dots.0, self.rows * self.dots.1);
        let mut set = vec![false; wide * high];
        for stroke in plot.strokes {
            let (from, to) = span(stroke.from, stroke.to, plot.x_most, wide);
            let up = ((stroke.y / top).clamp(0.0, 1.0) * (high - 1) as f64).round() as usize;
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

    fn marks(&self, plot: &Plot<'_>) -> String {
        let mut line = vec![' '; self.columns];
        for mark in plot.marks {
            let (from, to) = span(mark.from, mark.to, plot.x_most, self.columns);
            line[from..=to].fill(mark.letter);
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

    fn drawn(strokes: &[Stroke], marks: &[PlotMark], unicode: bool) -> Vec<String> {
        let plot = Plot {
            title: "rate".to_owned(),
            strokes,
            marks,
            x_most: 8.0,
            x_ends: ("0".to_owned(), "8".to_owned()),
            y_text: &|value| format!("{value:.0}"),
        };
        plot.lines(&Paper { width: 12, height: 2, unicode })
    }

    #[test]
    fn lines_dots_and_marks_lie_where_they_belong() {
        let stroke = |from, to, y| Stroke { from, to, y };
        let strokes = [stroke(0.0, 4.0, 10.0), stroke(4.0, 6.0, 0.0)];
        let marks = [PlotMark { from: 6.0, to: 8.0, letter: 'u' }];
        let expected =
            ["rate        ", "10 |****    ", "   |    **  ", " 0 +--------", "          uu", "    0      8"];
        assert_eq!(drawn(&strokes, &marks, false), expected);
        let expected =
            ["rate        ", "10 │⠉⠉⠉⠉    ", "   │    ⣀⣀  ", " 0 └────────", "          uu", "    0      8"];
        assert_eq!(drawn(&strokes, &marks, true), expected);
        // A dot at the very end is still within.
        assert_eq!(drawn(&[stroke(8.0, 8.0, 1.0)], &[], false)[1], "1 |        *");
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
