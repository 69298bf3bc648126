//! The forms of a report, by their names and the endings of files.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use fathom_report::formats::Format;
use fathom_report::formats::picture::PictureFormat;

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// A page with charts.
    Html,
    /// One chart.
    Chart(PictureFormat),
    /// As other commands have it.
    Other(Format),
}

impl ReportFormat {
    /// The names of all, in the order of help.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let ours = ["html"].into_iter();
        ours.chain(Format::ALL.map(Format::name)).chain(PictureFormat::ALL.map(PictureFormat::name))
    }

    /// The format that the ending of a file stands for.
    pub fn of_file(path: &Path) -> Option<ReportFormat> {
        if let Some(format) = PictureFormat::of_file(path) {
            return Some(ReportFormat::Chart(format));
        }
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match ending.as_str() {
            "html" | "htm" => ReportFormat::Html,
            "md" | "markdown" => ReportFormat::Other(Format::Markdown),
            "csv" => ReportFormat::Other(Format::Csv),
            "json" => ReportFormat::Other(Format::Json),
            "jsonl" | "ndjson" => ReportFormat::Other(Format::Jsonl),
            "txt" => ReportFormat::Other(Format::Text),
            _ => return None,
        })
    }
}

impl fmt::Display for ReportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReportFormat::Html => f.write_str("html"),
            ReportFormat::Chart(format) => format.fmt(f),
            ReportFormat::Other(format) => format.fmt(f),
        }
    }
}

impl FromStr for ReportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<ReportFormat, String> {
        if let Some(format) = PictureFormat::ALL.into_iter().find(|format| format.name() == text) {
            return Ok(ReportFormat::Chart(format));
        }
        match text {
            "html" => Ok(ReportFormat::Html),
            // The endings of such files.
            "md" => Ok(ReportFormat::Other(Format::Markdown)),
            "txt" => Ok(ReportFormat::Other(Format::Text)),
            other => other.parse().map(ReportFormat::Other).map_err(|_: String| {
                let names = ReportFormat::names().collect::<Vec<_>>().join(", ");
                format!("unknown format '{other}': use one of {names}")
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_a_file_chooses_the_format() {
        for (name, expected) in [
            ("a.html", Some(ReportFormat::Html)),
            ("a.HTM", Some(ReportFormat::Html)),
            ("a.md", Some(ReportFormat::Other(Format::Markdown))),
            ("a.csv", Some(ReportFormat::Other(Format::Csv))),
            ("a.svg", Some(ReportFormat::Chart(PictureFormat::Svg))),
            ("a.PNG", Some(ReportFormat::Chart(PictureFormat::Png))),
            ("a.ipynb", None),
            ("a.jpg", None),
            ("html", None),
        ] {
            assert_eq!(ReportFormat::of_file(Path::new(name)), expected, "{name}");
        }
        for name in ReportFormat::names() {
            assert_eq!(name.parse::<ReportFormat>().map(|format| format.to_string()), Ok(name.to_owned()));
        }
        assert!("yaml".parse::<ReportFormat>().is_err());
    }
}
