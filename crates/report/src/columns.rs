//! Plain aligned columns and wrapped paragraphs; widths are those of the text as a [`TextWriter`] shows it on a terminal.

use std::io;

use fathom_model::text::shown;
use textwrap::core::Fragment;
use textwrap::wrap_algorithms::wrap_first_fit;
use unicode_width::UnicodeWidthStr;

use crate::{Style, TextWriter};

/// Columns that `text` takes on a terminal once it is shown.
pub fn width(text: &str) -> usize {
    shown(text).width()
}

/// `text`, filled up with blanks to `columns`.
pub fn pad(text: &str, columns: usize) -> String {
    format!("{text}{:1$}", "", columns.saturating_sub(width(text)))
}

/// `text` with a capital at its beginning.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// On which side a column is filled up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows to be aligned under one head.
pub(crate) struct Columns {
    pub head: Vec<&'static str>,
    pub align: Vec<Align>,
    pub rows: Vec<Vec<String>>,
}

impl Columns {
    /// The lines, head first, every column as wide as its widest cell, `gap` apart. A row shorter than the head ends
    /// in a cell that runs on to the right and widens no column.
    pub(crate) fn lines(&self, gap: usize) -> Vec<String> {
        let widths = self.widths();
        let head: Vec<String> = self.head.iter().map(|&name| name.to_owned()).collect();
        std::iter::once(&head).chain(&self.rows).map(|row| self.line(row, &widths, gap)).collect()
    }

    /// Width of the lines.
    pub(crate) fn width(&self, gap: usize) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + gap * widths.len().saturating_sub(1)
    }

    /// Makes the table fit into `width` and returns the gap to use: two spaces, else one, else without the columns of
    /// `dispensable`, first to last.
    pub(crate) fn fit(&mut self, width: usize, dispensable: &[&str]) -> usize {
        for name in std::iter::once(None).chain(dispensable.iter().map(Some)) {
            if let Some(name) = name {
                self.drop(name);
            }
            if let Some(gap) = [2, 1].into_iter().find(|&gap| self.width(gap) <= width) {
                return gap;
            }
        }
        1
    }

    /// Writes the table under a dim head, `indent` from the left, and as [`Columns::fit`] makes it fit into `width`.
    pub(crate) fn write(
        mut self,
        style: &Style,
        indent: usize,
        width: usize,
        dispensable: &[&str],
        out: &mut TextWriter,
    ) -> io::Result<()> {
        let gap = self.fit(width - indent, dispensable);
        for (index, line) in self.lines(gap).iter().enumerate() {
            let line = if index == 0 { style.dim(line) } else { line.clone() };
            writeln!(out, "{:indent$}{line}", "")?;
        }
        Ok(())
    }

    /// Removes a column.
    pub(crate) fn drop(&mut self, name: &str) {
        let Some(index) = self.head.iter().position(|&head| head == name) else { return };
        self.head.remove(index);
        self.align.remove(index);
        for row in self.rows.iter_mut().filter(|row| row.len() > index) {
            row.remove(index);
        }
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.head.iter().map(|name| width(name)).collect();
        for row in &self.rows {
            let aligned = if row.len() < self.head.len() { row.len().saturating_sub(1) } else { row.len() };
            for (width, cell) in widths.iter_mut().zip(&row[..aligned]) {
                *width = (*width).max(self::width(cell));
            }
        }
        widths
    }

    fn line(&self, row: &[String], widths: &[usize], gap: usize) -> String {
        let mut line = String::new();
        for (index, cell) in row.iter().enumerate() {
            if index > 0 {
                line.push_str(&" ".repeat(gap));
            }
            let runs_on = index + 1 == row.len() && row.len() < self.head.len();
            let fill = if runs_on { 0 } else { widths[index].saturating_sub(self::width(cell)) };
            let fill = " ".repeat(fill);
            match self.align[index] {
                Align::Right if !runs_on => line.extend([fill.as_str(), cell]),
                _ => line.extend([cell, fill.as_str()]),
            }
        }
        line.trim_end_matches(' ').to_owned()
    }
}

/// A word, as wide as it is shown.
#[derive(Debug)]
struct Word<'a>(&'a str);

impl Fragment for Word<'_> {
    fn width(&self) -> f64 {
        width(self.0) as f64
    }

    fn whitespace_width(&self) -> f64 {
        1.0
    }

    fn penalty_width(&self) -> f64 {
        0.0
    }
}

/// `text` in lines of at most `width` characters, broken between words; the second and later lines are indented by `rest`.
pub fn wrap(text: &str, width: usize, first: usize, rest: usize) -> Vec<String> {
    let words: Vec<Word<'_>> = text.split(' ').filter(|word| !word.is_empty()).map(Word).collect();
    let room = |indent: usize| width.saturating_sub(indent) as f64;
    let lines = wrap_first_fit(&words, &[room(first), room(rest)]);
    let lines = lines.into_iter().filter(|words| !words.is_empty()).enumerate().map(|(index, words)| {
        let words: Vec<&str> = words.iter().map(|word| word.0).collect();
        format!("{:1$}{2}", "", if index == 0 { first } else { rest }, words.join(" "))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_a_last_cell_may_run_on() {
        let columns = Columns {
            head: vec!["test", "IOPS", "p50"],
            align: vec![Align::Left, Align::Right, Align::Right],
            rows: vec![
                vec!["a".into(), "1,000".into(), "5µs".into()],
                vec!["bcdef".into(), "skipped: because of something".into()],
            ],
        };
        assert_eq!(
            columns.lines(2),
            ["test    IOPS  p50", "a      1,000  5µs", "bcdef  skipped: because of something"]
        );
        assert_eq!(columns.width(2), 17);
    }

    #[test]
    fn columns_fit_by_narrower_gaps_and_then_by_dropping() {
        for (width, expected) in
            [(12, (2, 3)), (11, (1, 3)), (10, (1, 3)), (9, (2, 2)), (5, (2, 1)), (1, (1, 1))]
        {
            let mut columns = Columns {
                head: vec!["aaa", "bbb", "cc"],
                align: vec![Align::Left; 3],
                rows: vec![vec!["x".into(), "y".into(), "z".into()]],
            };
            assert_eq!((columns.fit(width, &["bbb", "cc"]), columns.head.len()), expected, "{width}");
        }
    }

    #[test]
    fn paragraphs_wrap_between_words() {
        assert_eq!(wrap("one two three", 9, 2, 4), ["  one two", "    three"]);
        assert_eq!(wrap("averylongword x", 5, 0, 1), ["averylongword", " x"]);
        assert!(wrap("  ", 10, 0, 0).is_empty());
    }
}
