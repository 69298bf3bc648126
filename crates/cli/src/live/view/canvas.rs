//! A screen as a grid of cells, and the bytes that bring a terminal from one to the next.
//!
//! Text of others is cleaned as it is put into cells, so no cell holds anything that a terminal obeys.

use fathom_model::text::shown;
use fathom_report::width;

/// The eight basic colours without black and white, which are the ground of one terminal or another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Red = 31,
    Green = 32,
    Yellow = 33,
    Blue = 34,
    Magenta = 35,
    Cyan = 36,
}

/// How a cell is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    /// `None` = the terminal's own.
    pub colour: Option<Colour>,
    pub bold: bool,
    pub reverse: bool,
}

impl Paint {
    /// The terminal's own.
    pub const PLAIN: Paint = Paint { colour: None, bold: false, reverse: false };
    /// Headings.
    pub const BOLD: Paint = Paint { bold: true, ..Paint::PLAIN };
    /// Bars at the edges of the screen.
    pub const REVERSE: Paint = Paint { reverse: true, ..Paint::PLAIN };

    /// Text in this colour.
    pub const fn of(colour: Colour) -> Paint {
        Paint { colour: Some(colour), ..Paint::PLAIN }
    }

    /// The parameters of the sequence that sets it.
    fn parameters(self) -> String {
        let mut parameters = "0".to_owned();
        for (is_set, code) in [(self.bold, ";1"), (self.reverse, ";7")] {
            parameters.push_str(if is_set { code } else { "" });
        }
        if let Some(colour) = self.colour {
            parameters.push_str(&format!(";{}", colour as u8));
        }
        parameters
    }
}

/// One place of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// `None` in the right half of a wide character.
    pub glyph: Option<char>,
    pub paint: Paint,
}

const BLANK: Cell = Cell { glyph: Some(' '), paint: Paint::PLAIN };

/// A part of the screen, in cells from its upper left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Area {
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
}

impl Area {
    /// The upper `rows`, and what is left below them.
    pub fn split_rows(self, rows: usize) -> (Area, Area) {
        let rows = rows.min(self.height);
        (Area { height: rows, ..self }, Area { y: self.y + rows, height: self.height - rows, ..self })
    }

    /// The left `columns`, and what is left beside them.
    pub fn split_columns(self, columns: usize) -> (Area, Area) {
        let columns = columns.min(self.width);
        (Area { width: columns, ..self }, Area { x: self.x + columns, width: self.width - columns, ..self })
    }
}

/// How the terminal shows things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub colour: bool,
    /// Characters beyond ASCII.
    pub unicode: bool,
}

/// The grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canvas {
    pub width: usize,
    pub height: usize,
    pub look: Look,
    cells: Vec<Cell>,
}

impl Canvas {
    /// An empty screen.
    pub fn new((width, height): (usize, usize), look: Look) -> Canvas {
        Canvas { width, height, look, cells: vec![BLANK; width * height] }
    }

    /// All of it.
    pub fn area(&self) -> Area {
        Area { x: 0, y: 0, width: self.width, height: self.height }
    }

    /// Sets one cell, if there is such a place.
    pub fn set(&mut self, (x, y): (usize, usize), glyph: char, paint: Paint) {
        self.put((x, y), Some(glyph), paint);
    }

    fn put(&mut self, (x, y): (usize, usize), glyph: Option<char>, paint: Paint) {
        let paint = if self.look.colour { paint } else { Paint { colour: None, ..paint } };
        if x < self.width && y < self.height {
            self.cells[y * self.width + x] = Cell { glyph, paint };
        }
    }

    /// Paints a row of `area` as a bar.
    pub fn bar(&mut self, area: Area, paint: Paint) {
        (0..area.width).for_each(|x| self.set((area.x + x, area.y), ' ', paint));
    }

    /// Writes `text` into the first row of `area`, cut where it does not fit; returns the columns it took.
    pub fn text(&mut self, area: Area, text: &str, paint: Paint) -> usize {
        if area.height == 0 {
            return 0;
        }
        let clean = self.fitted(&shown(text), area.width);
        let mut at = 0;
        for glyph in clean.chars() {
            let columns = width(glyph.encode_utf8(&mut [0; 4]));
            if columns == 0 {
                continue;
            }
            self.put((area.x + at, area.y), Some(glyph), paint);
            (1..columns).for_each(|more| self.put((area.x + at + more, area.y), None, paint));
            at += columns;
        }
        at
    }

    /// Writes `text` at the right end of the first row of `area`.
    pub fn text_right(&mut self, area: Area, text: &str, paint: Paint) {
        let taken = width(&shown(text)).min(area.width);
        let (_, right) = area.split_columns(area.width - taken);
        self.text(right, text, paint);
    }

    /// Writes one line of `lines` into each row of `area`, as many as there is room for; returns what is left below them.
    pub fn lines(&mut self, area: Area, lines: impl IntoIterator<Item = (String, Paint)>) -> Area {
        let mut rest = area;
        for (text, paint) in lines {
            let (row, below) = rest.split_rows(1);
            self.text(row, &text, paint);
            rest = below;
        }
        rest
    }

    /// Clean text in at most `columns`; where it is longer, it ends in a mark, as ASCII where the look asks for it.
    fn fitted(&self, text: &str, columns: usize) -> String {
        let text: String = match self.look.unicode {
            true => text.to_owned(),
            false => text.replace('µ', "u").chars().map(|c| if c.is_ascii() { c } else { '?' }).collect(),
        };
        if width(&text) <= columns {
            return text;
        }
        let mut out = String::new();
        for glyph in text.chars() {
            let columns_of_it = width(glyph.encode_utf8(&mut [0; 4]));
            if width(&out) + columns_of_it + 1 > columns {
                break;
            }
            out.push(glyph);
        }
        if columns > 0 {
            out.push(if self.look.unicode { '…' } else { '~' });
        }
        out
    }

    /// What brings a terminal that shows `before` to this; `None` = it shows something else.
    pub fn bytes_after(&self, before: Option<&Canvas>) -> Vec<u8> {
        let before = before.filter(|before| (before.width, before.height) == (self.width, self.height));
        let mut out = String::new();
        if before.is_none() {
            out.push_str("\x1b[0m\x1b[2J");
        }
        let mut paint = None;
        for y in 0..self.height {
            let mut pen = None;
            for x in 0..self.width {
                let cell = self.cells[y * self.width + x];
                let known = before.map_or(BLANK, |before| before.cells[y * self.width + x]);
                let Some(glyph) = cell.glyph.filter(|_| cell != known) else { continue };
                if pen != Some(x) {
                    out.push_str(&format!("\x1b[{};{}H", y + 1, x + 1));
                }
                if paint != Some(cell.paint) {
                    out.push_str(&format!("\x1b[{}m", cell.paint.parameters()));
                    paint = Some(cell.paint);
                }
                out.push(glyph);
                pen = Some(x + width(glyph.encode_utf8(&mut [0; 4])));
            }
        }
        if paint.is_some() {
            out.push_str("\x1b[0m");
        }
        out.into_bytes()
    }
}

#[cfg(test)]
impl Canvas {
    /// The rows as text, without the blanks at their ends.
    pub fn rows(&self) -> String {
        let rows = self.cells.chunks(self.width).map(|row| {
            let row: String = row.iter().filter_map(|cell| cell.glyph).collect();
            row.trim_end().to_owned() + "\n"
        });
        rows.collect()
    }

    /// True where a cell has a colour.
    pub fn is_coloured(&self) -> bool {
        self.cells.iter().any(|cell| cell.paint.colour.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look = Look { colour: true, unicode: true };

    fn canvas(text: &str, look: Look) -> Canvas {
        let mut canvas = Canvas::new((10, 2), look);
        canvas.text(canvas.area(), text, Paint::of(Colour::Red));
        canvas
    }

    #[test]
    fn text_of_others_is_cleaned_and_cut() {
        let check = |text: &str, look: Look, expected: &str| {
            assert_eq!(canvas(text, look).rows(), format!("{expected}\n\n"), "{text:?}");
        };
        check("plain", LOOK, "plain");
        check("a\x1b[2Jb", LOOK, "a\\x1b[2Jb");
        check("0123456789ab", LOOK, "012345678…");
        check("0123456789ab", Look { unicode: false, ..LOOK }, "012345678~");
        check("1.2 µs é", Look { unicode: false, ..LOOK }, "1.2 us ?");
        check("漢字漢字漢字", LOOK, "漢字漢字…");
        check("e\u{301}", LOOK, "e");
    }

    #[test]
    fn only_what_changed_is_written() {
        let first = canvas("abc", LOOK);
        let bytes = |canvas: &Canvas, before| String::from_utf8(canvas.bytes_after(before)).unwrap();
        assert_eq!(bytes(&first, None), "\x1b[0m\x1b[2J\x1b[1;1H\x1b[0;31mabc\x1b[0m");
        assert_eq!(bytes(&first, Some(&first)), "");
        assert_eq!(bytes(&canvas("aXc", LOOK), Some(&first)), "\x1b[1;2H\x1b[0;31mX\x1b[0m");
        let other_size = Canvas::new((9, 2), LOOK);
        assert!(bytes(&first, Some(&other_size)).starts_with("\x1b[0m\x1b[2J"));
    }

    #[test]
    fn a_wide_character_takes_two_cells() {
        let (wide, narrow) = (canvas("漢b", LOOK), canvas("abb", LOOK));
        let bytes = |canvas: &Canvas, before| String::from_utf8(canvas.bytes_after(before)).unwrap();
        assert_eq!(bytes(&wide, Some(&narrow)), "\x1b[1;1H\x1b[0;31m漢\x1b[0m");
        assert_eq!(bytes(&narrow, Some(&wide)), "\x1b[1;1H\x1b[0;31mab\x1b[0m");
    }

    #[test]
    fn without_colour_no_sequence_sets_one() {
        let plain = canvas("abc", Look { colour: false, ..LOOK });
        assert!(!plain.is_coloured());
        assert!(!String::from_utf8(plain.bytes_after(None)).unwrap().contains("31"));
    }
}
