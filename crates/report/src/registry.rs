//! Every report format: name, what it is, and the function that writes it.

use std::io;

use fathom_record::RunRecord;

use crate::{
    Style, TextWriter, bench::json as bench_json, bench::table as bench_table, fio::json as fio_json,
    fio::normal as fio_normal,
};

/// One report format.
pub struct ReportFormat {
    /// Name as typed.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// fio's own `--output-format` has it.
    pub fio: bool,
    /// Writes the report of a record.
    pub render: fn(&RunRecord, &Style, &mut TextWriter) -> io::Result<()>,
}

/// The formats, in the order help shows them.
pub const FORMATS: &[ReportFormat] = &[
    ReportFormat { name: "normal", doc: "fio's text", fio: true, render: fio_normal::render },
    ReportFormat {
        name: "json",
        doc: "fio's JSON",
        fio: true,
        render: |record, style, out| fio_json::render(record, style, &mut out.json()),
    },
    ReportFormat {
        name: "json+",
        doc: "fio's JSON with every bin of the histograms",
        fio: true,
        render: |record, style, out| fio_json::render_plus(record, style, &mut out.json()),
    },
    ReportFormat { name: "table", doc: "a table for people", fio: false, render: bench_table::render },
    ReportFormat {
        name: "bench-json",
        doc: "the document of `bench --json`",
        fio: false,
        render: |record, style, out| bench_json::render(record, style, &mut out.json()),
    },
    ReportFormat {
        name: "record",
        doc: "the whole stored record as JSON",
        fio: false,
        render: |record, _, out| record.write_json(&mut out.json()),
    },
];

/// The format of that name.
pub fn find(name: &str) -> Option<&'static ReportFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_writer::text;

    #[test]
    fn names_are_unique_and_every_format_writes_an_empty_record() {
        for (index, format) in FORMATS.iter().enumerate() {
            assert!(FORMATS[..index].iter().all(|other| other.name != format.name), "{}", format.name);
            let out = text(|out| (format.render)(&RunRecord::default(), &Style::default(), out))
                .expect("writing to memory");
            assert!(!out.is_empty(), "{}", format.name);
        }
        assert!(find("json+").is_some() && find("yaml").is_none());
    }
}
