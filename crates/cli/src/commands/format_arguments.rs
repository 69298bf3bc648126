//! The options that choose the form of a report.

use clap::Args;
use fathom_report::formats::Format;

use crate::exit::Complaint;

/// What is said of the form of a report.
#[derive(Args)]
pub struct FormatArguments {
    /// Report format: text, markdown, csv, jsonl or json
    #[arg(long, value_name = "FORMAT", default_value_t, conflicts_with = "json")]
    format: Format,
    /// Print JSON only; short for --format json
    #[arg(long)]
    json: bool,
}

impl FormatArguments {
    /// The form asked for.
    pub const fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
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
