//! The options that choose the form of a report.

use std::io;

use clap::Args;
use fathom_model::units::UnitSystem;
use fathom_report::formats::Format;
use fathom_report::view::View;
use fathom_report::{JsonWriter, Style};

use crate::exit::Complaint;
use crate::output;

/// The format of a report.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct FormatArguments {
    /// Report format: text, markdown, csv, jsonl or json
    #[arg(long, value_name = "FORMAT", default_value_t, conflicts_with = "json")]
    format: Format,
    /// Print JSON only; short for --format json
    #[arg(long)]
    json: bool,
    /// Print the full report: every section, finding and note
    #[arg(long)]
    full: bool,
    /// Units of text and Markdown: iec (MiB/s) or si (MB/s) [default: those of the expectations, else iec]
    #[arg(long, value_name = "UNITS")]
    units: Option<UnitSystem>,
}

impl FormatArguments {
    /// This form.
    pub const fn of(format: Format, full: bool, units: Option<UnitSystem>) -> FormatArguments {
        FormatArguments { format, json: false, full, units }
    }

    /// The form asked for.
    pub const fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// How a report in this form looks on standard output.
    pub fn style(&self) -> Style {
        Style { units: self.units, is_full: self.full, ..output::style() }
    }

    /// Prints `view`, or as JSON what `document` writes.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print(
        &self,
        view: impl FnOnce() -> View,
        document: impl FnOnce(&mut JsonWriter<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        output::print(|out| self.format().write(&self.style(), out, view, document))
    }

    /// Whether what has no table is printed as JSON; else it is text.
    ///
    /// # Errors
    /// Another form was asked for `subject`.
    pub fn is_json(&self, subject: &str) -> Result<bool, Complaint> {
        match self.format() {
            Format::Text => Ok(false),
            Format::Json => Ok(true),
            format => Err(Complaint::usage(
                format!("cannot print {subject} as {format}"),
                Some("use --format text or json".to_owned()),
            )),
        }
    }
}
