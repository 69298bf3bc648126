//! Forms that any [`View`] is rendered in.
//!
//! To add one: its module with a `render`, a variant of [`Format`], and its arm in [`Format::write`].

pub mod chart;
pub mod csv;
pub mod jsonl;
pub mod markdown;
pub mod picture;
#[cfg(feature = "png")]
pub mod png;
pub mod svg;
pub mod text;

use std::fmt;
use std::io;
use std::str::FromStr;

use crate::view::View;
use crate::{JsonWriter, Style, TextWriter};

/// A form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For a terminal or a log.
    #[default]
    Text,
    /// GitHub's Markdown.
    Markdown,
    /// The values, one row each.
    Csv,
    /// The same values, one JSON object for each row.
    Jsonl,
    /// The results as one document.
    Json,
}

impl Format {
    /// All of them, in the order help shows them.
    pub const ALL: [Format; 5] = [Format::Text, Format::Markdown, Format::Csv, Format::Jsonl, Format::Json];

    /// The name as typed.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Markdown => "markdown",
            Format::Csv => "csv",
            Format::Jsonl => "jsonl",
            Format::Json => "json",
        }
    }

    /// Writes `view`, or as JSON what `document` writes.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(
        self,
        style: &Style,
        out: &mut TextWriter,
        view: impl FnOnce() -> View,
        document: impl FnOnce(&mut JsonWriter<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        match self {
            Format::Text => text::render(&view(), style, out),
            Format::Markdown => markdown::render(&view(), style, out),
            Format::Csv => csv::render(&view(), out),
            Format::Jsonl => jsonl::render(&view(), out),
            Format::Json => document(&mut out.json()),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        let names = || Format::ALL.map(Format::name).join(", ");
        Format::ALL
            .into_iter()
            .find(|format| format.name() == text)
            .ok_or_else(|| format!("unknown format '{text}': use one of {}", names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_name_of_its_own_and_writes_an_empty_view() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
            let written = crate::text_writer::text(|out| {
                format.write(&Style::default(), out, View::default, |out| crate::document::write(&(), out))
            });
            assert!(written.is_ok(), "{format}");
        }
        assert!("yaml".parse::<Format>().is_err());
    }
}
