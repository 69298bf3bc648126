//! Widths of text and wrapped paragraphs, as a [`TextWriter`](crate::TextWriter) shows them on a terminal.

use fathom_model::text::shown;
use textwrap::core::Fragment;
use textwrap::wrap_algorithms::wrap_first_fit;
use unicode_width::UnicodeWidthStr;

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

/// Characters of a name that leaves room for figures.
const MAX_NAME: usize = 32;

/// A name for a table of a brief report: the end of a path, the beginning of any other.
pub(crate) fn brief_name(name: &str) -> String {
    let length = name.chars().count();
    match length > MAX_NAME {
        false => name.to_owned(),
        true if name.starts_with('/') => {
            ['…'].into_iter().chain(name.chars().skip(length - MAX_NAME + 1)).collect()
        }
        true => name.chars().take(MAX_NAME - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_wrap_between_words() {
        assert_eq!(wrap("one two three", 9, 2, 4), ["  one two", "    three"]);
        assert_eq!(wrap("averylongword x", 5, 0, 1), ["averylongword", " x"]);
        assert!(wrap("  ", 10, 0, 0).is_empty());
    }
}
