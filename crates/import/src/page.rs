//! A text with any number of outputs of fio and ioping, as a page or the log of several runs has them: each is read by itself, in
//! its format, and they stay in their order.

use std::collections::BTreeMap;

use fathom_record::ImportFormat;
use fathom_record::import::{Figure, FigureNumber, ImportedTest};

use crate::report::{SourceReport, SourceTest};
use crate::text::SourceText;
use crate::{
    ImportError, fio_json, fio_terse, fio_text, heading, ioping, json, load, page_table, statement, tools,
};

/// Reads every output of a text.
///
/// # Errors
/// The text has no output, or the only one is damaged.
pub(crate) fn read(text: &str) -> Result<(ImportFormat, SourceReport), ImportError> {
    let mut page = Page::default();
    let rest = page.take_documents(text);
    let rest = page.take_terse(rest);
    let source = SourceText::new(&rest);
    page.take_text(&source);
    page.outputs.sort_by_key(|output| output.report.line());
    heading::name_apart(&source, &mut page.outputs);
    statement::tie(&source, &mut page.outputs);
    page.report(text)
}

/// One output.
pub(crate) struct Output {
    format: ImportFormat,
    pub report: SourceReport,
}

#[derive(Default)]
struct Page {
    outputs: Vec<Output>,
    notes: Vec<String>,
    /// Why a part could not be read.
    broken: Option<ImportError>,
}

impl Page {
    fn add(&mut self, format: ImportFormat, read: Result<SourceReport, ImportError>) {
        match read {
            Ok(report) => self.outputs.push(Output { format, report }),
            Err(error) => self.broken = self.broken.take().or(Some(error)),
        }
    }

    /// Takes the JSON documents; the rest has empty lines in their place.
    fn take_documents(&mut self, text: &str) -> String {
        let mut rest = String::with_capacity(text.len());
        let mut end = 0;
        let mut fio: Vec<(u64, serde_json::Value)> = Vec::new();
        for found in json::documents(text) {
            let (line, document) = match found {
                Ok(found) => {
                    rest.push_str(&text[end..found.range.start]);
                    rest.extend(text[found.range.clone()].matches('\n'));
                    end = found.range.end;
                    (found.line, found.value)
                }
                Err(broken) if text[broken.start..].contains(fio_json::MARK) => {
                    self.broken = self.broken.take().or(Some(broken.error));
                    continue;
                }
                Err(_) => continue,
            };
            if fio_json::is_fio(&document) {
                fio.push((line, document));
            } else if ioping::json::is_ioping(&document) {
                self.add(ImportFormat::IopingJson, Ok(ioping::json::read(&document).at(line)));
            }
        }
        rest.push_str(&text[end..]);
        // `--status-interval` prints a document again and again, each with what was done until then.
        for (at, (line, document)) in fio.iter().enumerate() {
            match fio.get(at + 1) {
                Some((_, next)) if fio_json::is_of_same_run(document, next) => self.leave_out(*line),
                _ => self.add(ImportFormat::FioJson, Ok(fio_json::read(document).at(*line))),
            }
        }
        rest
    }

    fn leave_out(&mut self, line: u64) {
        self.notes.push(format!(
            "line {line} skipped: intermediate output of a run whose final output was imported"
        ));
    }

    /// Takes the lines of fio's terse format: those that follow each other are one output.
    fn take_terse(&mut self, text: String) -> String {
        if !text.lines().any(|line| fio_terse::is_line(line.trim())) {
            return text;
        }
        let mut rest = String::with_capacity(text.len());
        let mut lines: Vec<(u64, &str)> = Vec::new();
        for (index, line) in text.split_inclusive('\n').enumerate() {
            if fio_terse::is_line(line.trim()) {
                lines.push((index as u64 + 1, line.trim()));
                rest.push('\n');
                continue;
            }
            if !line.trim().is_empty() {
                self.end_terse(&mut lines);
            }
            rest.push_str(line);
        }
        self.end_terse(&mut lines);
        rest
    }

    fn end_terse(&mut self, lines: &mut Vec<(u64, &str)>) {
        if let Some(&(first, _)) = lines.first() {
            self.add(ImportFormat::FioTerse, Ok(fio_terse::read(lines).at(first)));
            lines.clear();
        }
    }

    /// Takes what fio and ioping print for people.
    fn take_text(&mut self, source: &SourceText) {
        if source.as_str().lines().any(ioping::text::is_ioping_line) {
            for ping in ioping::text::read(source) {
                self.add(ImportFormat::IopingText, Ok(ping));
            }
        }
        let source = source.without(ioping::text::is_ioping_line);
        for output in tools::read(&source) {
            self.add(ImportFormat::Program, Ok(output));
        }
        for table in page_table::read(&source) {
            self.add(ImportFormat::Table, Ok(table));
        }
        if !fio_text::is_fio_text(&source) {
            return;
        }
        match fio_text::read(&source) {
            Ok(found) => {
                found.earlier.into_iter().for_each(|line| self.leave_out(line));
                for mut report in found.outputs {
                    report.tests.iter_mut().for_each(without_label);
                    add_command_line(&source, &mut report);
                    self.add(ImportFormat::FioText, Ok(report));
                }
            }
            Err(error) => self.add(ImportFormat::FioText, Err(error)),
        }
    }

    fn report(mut self, text: &str) -> Result<(ImportFormat, SourceReport), ImportError> {
        self.drop_repeated();
        let Some(first) = self.outputs.first() else {
            return Err(self.broken.unwrap_or_else(|| ImportError::unknown(text)));
        };
        if let Some(broken) = &self.broken {
            self.notes.push(format!("not imported: {broken}"));
        }
        let is_mixed = self.outputs.iter().any(|output| output.format != first.format);
        let format = if is_mixed { ImportFormat::Page } else { first.format };
        if self.outputs.len() > 1 {
            let lines: Vec<String> =
                self.outputs.iter().map(|output| output.report.line().to_string()).collect();
            self.notes.push(format!(
                "{} outputs at lines {}: each is imported as tests of its own",
                lines.len(),
                lines.join(", ")
            ));
        }
        let mut report = SourceReport::default();
        self.outputs.into_iter().for_each(|output| report.append(output.report));
        report.notes.extend(self.notes);
        Ok((format, report))
    }

    /// fio prints one run in several formats if it is asked to (`normal,json`): the most exact stays.
    fn drop_repeated(&mut self) {
        let best = self.outputs.iter().map(|output| exactness(output.format)).max().unwrap_or_default();
        if self.outputs.iter().all(|output| exactness(output.format) == best) || best == 0 {
            return;
        }
        let mut at = 0;
        while at < self.outputs.len() {
            let own = &self.outputs[at];
            let is_better = |other: &&Output| {
                exactness(other.format) > exactness(own.format) && is_same_run(&own.report, &other.report)
            };
            match self.outputs.iter().find(is_better) {
                Some(better) => {
                    self.notes.push(format!(
                        "line {} skipped: the same run as at line {}, in another format",
                        own.report.line(),
                        better.report.line()
                    ));
                    self.outputs.remove(at);
                }
                None => at += 1,
            }
        }
    }
}

/// Pages put a label of their own in front of an output: `Outputlat-read: (groupid=0, jobs=1)`.
fn without_label(test: &mut SourceTest) {
    let behind = test.name.strip_prefix("Output");
    if let Some(name) = behind.filter(|name| name.starts_with(|sign: char| sign.is_ascii_lowercase())) {
        test.name = name.to_owned();
    }
}

/// Lines above an output in which its command line is looked for.
const MAX_ABOVE: u64 = 14;

/// Completes the loads of an output of fio by the options of the command line above it, where that names the same test.
fn add_command_line(source: &SourceText, report: &mut SourceReport) {
    let line = report.line();
    let lines: Vec<&str> = source.lines(line.saturating_sub(MAX_ABOVE).max(1), line.max(1)).lines().collect();
    let begins = |line: &&str| {
        line.split_whitespace().any(|word| word == "fio" || word.ends_with("/fio")) && line.contains('=')
    };
    let Some(at) = lines.iter().rposition(begins) else { return };
    let continues = lines[at..].iter().take_while(|line| line.trim_end().ends_with('\\')).count();
    let command = lines[at..lines.len().min(at + continues + 1)].join(" ");
    let words = command.split_whitespace().skip_while(|word| !word.ends_with("fio"));
    let options = words.filter_map(|word| {
        let option = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        Some((name.to_owned(), value.trim_matches(['"', '\'']).to_owned()))
    });
    let names = command.matches("-name=").count();
    let options: BTreeMap<String, String> = options.collect();
    let Some(name) = options.get("name").filter(|_| names == 1) else { return };
    for test in report.tests.iter_mut().filter(|test| test.name == *name) {
        let given = load::of_options(options.clone());
        let load = &mut test.imported.load;
        load.direct = load.direct.or(given.direct);
        load.read_percent = load.read_percent.or(given.read_percent);
        load.size_bytes = load.size_bytes.or(given.size_bytes);
        load.runtime_ns = load.runtime_ns.or(given.runtime_ns);
        load.target = load.target.take().or(given.target);
        load.rw = load.rw.take().or(given.rw);
        load.engine = load.engine.take().or(given.engine);
        if load.sync.is_empty() {
            load.sync = given.sync;
        }
        for (name, value) in given.options {
            load.options.entry(name).or_insert(value);
        }
    }
}

fn exactness(format: ImportFormat) -> u8 {
    match format {
        ImportFormat::FioJson => 2,
        ImportFormat::FioTerse => 1,
        _ => 0,
    }
}

/// The same jobs with the same number of I/Os, or the same runtime where a format has no numbers.
fn is_same_run(one: &SourceReport, other: &SourceReport) -> bool {
    let is_alike = |one: &ImportedTest, other: &ImportedTest| {
        let (Some(one), Some(other)) = (one.total(), other.total()) else { return false };
        match (one.ios.zip(other.ios), one.runtime_ns.zip(other.runtime_ns)) {
            (Some((one, other)), _) => is_equal(one, other),
            (None, Some((one, other))) => is_equal(one, other),
            (None, None) => false,
        }
    };
    let mut pairs = one.tests.iter().zip(&other.tests);
    one.tests.len() == other.tests.len()
        && pairs.all(|(one, other)| one.name == other.name && is_alike(&one.imported, &other.imported))
}

fn is_equal<T: FigureNumber>(one: Figure<T>, other: Figure<T>) -> bool {
    let apart = (one.value.as_real() - other.value.as_real()).abs();
    apart <= one.resolution.as_real() + other.resolution.as_real()
}
