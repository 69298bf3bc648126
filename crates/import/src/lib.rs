//! Records from the output of other programs: of fio and ioping in any format, of dd, sysbench, disk testers and iostat as text, and
//! tables of figures; alone, or several in a page, of which the text is read where it is in HTML.
//!
//! Reads what is there, with the resolution of the text, and lists what is missing. A unit is never guessed, and whether figures
//! contradict one another is not decided here.

#![forbid(unsafe_code)]

mod bench_json;
mod derive;
mod detect;
mod encoding;
mod error;
mod fio_json;
mod fio_terse;
mod fio_text;
mod heading;
mod html;
mod ioping;
mod json;
mod load;
mod number;
mod page;
mod page_table;
mod report;
mod statement;
mod table;
mod text;
mod tools;

pub use detect::detect;
pub use encoding::decode;
pub use error::ImportError;

use fathom_record::{ImportFormat, RunRecord};

/// Reads the output of another program; `file` is its name, for the record.
///
/// # Errors
/// The text has no figure of a known format, or is cut off in its middle; the error names the line and the remedy.
pub fn import(text: &str, file: &str) -> Result<RunRecord, ImportError> {
    let text = text::without_escapes(text);
    let text = if html::is_html(&text) { html::text_of(&text).into() } else { text };
    let format = detect(&text).ok_or_else(|| ImportError::unknown(&text))?;
    import_as(format, &text, file)
}

/// Reads every record of a text: fathom's own, one a line as `fathom history export` writes them, or the one of another
/// program's output.
///
/// # Errors
/// As [`import`]; a record of fathom cannot be read.
pub fn records(text: &str, file: &str) -> Result<Vec<RunRecord>, ImportError> {
    let is_own = text.trim_start().starts_with('{') && text.contains(OWN_SCHEMA);
    if !is_own {
        return import(text, file).map(|record| vec![record]);
    }
    let own = |line: u64, text: &str| {
        RunRecord::from_json(text).map_err(|error| {
            let hint = error.hint().unwrap_or("export the run again");
            ImportError::new(
                line,
                std::error::Error::source(&error)
                    .map_or_else(|| error.to_string(), |why| format!("{error}: {why}")),
                hint,
            )
        })
    };
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    // One record may also be spread over several lines.
    match lines().all(|(_, line)| line.starts_with('{') && line.trim_end().ends_with('}')) {
        true => lines().map(|(index, line)| own(index as u64 + 1, line)).collect(),
        false => own(0, text).map(|record| vec![record]),
    }
}

/// What only a record of fathom has.
const OWN_SCHEMA: &str = "\"fathom.record/";

/// Reads a text of this format.
///
/// # Errors
/// As [`import`].
pub fn import_as(format: ImportFormat, text: &str, file: &str) -> Result<RunRecord, ImportError> {
    let report = match format {
        ImportFormat::BenchJson => return bench_json::read(text, file),
        ImportFormat::IopingRaw => ioping::raw::read(text)?,
        ImportFormat::Csv => table::read_csv(text)?,
        ImportFormat::Toml => table::read_toml(text)?,
        // The others may stand beside one another.
        _ => {
            let (format, report) = page::read(text)?;
            return report.record(format, file);
        }
    };
    report.record(format, file)
}
