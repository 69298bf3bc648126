//! The format of a text, from its content.

use fathom_record::ImportFormat;

use crate::text::SourceText;
use crate::{bench_json, fio_terse, fio_text, ioping, page_table, table, tools};

/// The format of a text; `None` where it is none that is known. Of several in one text, the one with the most exact figures.
pub fn detect(text: &str) -> Option<ImportFormat> {
    let is_json_of = |mark: &str, opening: char| {
        text.contains(mark) && text.lines().any(|line| line.trim_start().starts_with(opening))
    };
    if bench_json::is_document(text) {
        return Some(ImportFormat::BenchJson);
    }
    if is_json_of("\"fio version\"", '{') {
        return Some(ImportFormat::FioJson);
    }
    if is_json_of("\"target\"", '[') && (text.contains("\"stat\"") || text.contains("\"io\"")) {
        return Some(ImportFormat::IopingJson);
    }
    if text.lines().any(|line| fio_terse::is_line(line.trim())) {
        return Some(ImportFormat::FioTerse);
    }
    if ioping::raw::is_raw(text) {
        return Some(ImportFormat::IopingRaw);
    }
    if table::is_csv(text) {
        return Some(ImportFormat::Csv);
    }
    if table::is_toml(text) {
        return Some(ImportFormat::Toml);
    }
    let source = SourceText::new(text);
    if source.as_str().lines().any(ioping::text::is_ioping_line) {
        return Some(ImportFormat::IopingText);
    }
    if fio_text::is_fio_text(&source) {
        return Some(ImportFormat::FioText);
    }
    if !tools::read(&source).is_empty() {
        return Some(ImportFormat::Program);
    }
    (!page_table::read(&source).is_empty()).then_some(ImportFormat::Table)
}
