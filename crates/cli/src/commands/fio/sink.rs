//! The documents of a run, and where they go: standard output or the file of `--output`.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use fathom_options::{CommandOptions, OutputFormat};
use fathom_record::{FindingId, RunRecord};
use fathom_report::fio::idleness::CpuIdleness;
use fathom_report::fio::json::Bins;
use fathom_report::{
    FioReport, Style, TextWriter, fio::json as fio_json, fio::normal as fio_normal, fio::terse as fio_terse,
};
use fathom_sys::files::{PathRefusal, create_output};

use super::refusal;
use crate::exit::Complaint;
use crate::output;

/// Which documents come out, and where to.
pub struct Sink {
    file: Option<(PathBuf, File)>,
    formats: Vec<OutputFormat>,
    terse_version: u8,
    /// The text ends with notes: a person reads it, or has asked for them.
    shows_notes: bool,
}

impl Sink {
    /// Opens the file before anything is measured.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(command: &CommandOptions) -> Result<Sink, Complaint> {
        let mut formats = command.formats.clone();
        if formats.is_empty() {
            formats.push(OutputFormat::Normal);
        }
        let file = match &command.output {
            None => None,
            Some(path) => Some((
                path.clone(),
                create_output(path).map_err(|error| {
                    let usual = "name a file in a directory that exists and can be written: --output=FILE";
                    let refused = PathRefusal::of(&error).map(PathRefusal::hint);
                    let (name, why) = (path.display(), output::plain(&error));
                    refusal(
                        format!("fio: cannot open {name} for the output: {why}"),
                        Some(refused.unwrap_or(usual).to_owned()),
                    )
                })?,
            )),
        };
        let shows_notes = command.advise || (file.is_none() && output::stdout_is_seen());
        Ok(Sink { file, formats, terse_version: command.terse_version.unwrap_or(3), shows_notes })
    }

    /// Nothing comes out.
    pub fn silent() -> Sink {
        Sink { file: None, formats: Vec::new(), terse_version: 3, shows_notes: false }
    }

    /// The text of a run on simulated volumes always says that nothing was measured.
    pub fn with_notes_of_simulated(self, is_simulated: bool) -> Sink {
        Sink { shows_notes: self.shows_notes || is_simulated, ..self }
    }

    /// True where fio's text is among the documents.
    pub fn has_text(&self) -> bool {
        self.formats.contains(&OutputFormat::Normal)
    }

    /// Writes to where the documents go.
    ///
    /// # Errors
    /// It cannot be written; a reader of standard output that has gone away is none.
    pub fn write(&mut self, write: impl FnOnce(&mut TextWriter) -> io::Result<()>) -> Result<(), Complaint> {
        let Some((path, file)) = &mut self.file else { return super::print(write) };
        output::write_to(&mut io::BufWriter::new(output::CountedWriter(file)), write).map_err(|error| {
            let (path, why) = (path.display(), output::plain(&error));
            refusal(format!("fio: cannot write the output to {path}: {why}"), None)
        })
    }

    /// True where the documents go to a file.
    pub fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// The documents in fio's order, whatever order was asked for.
    pub fn report(&mut self, record: &RunRecord, idleness: Option<CpuIdleness>) -> Result<(), Complaint> {
        let style = Style::local();
        // Scripts search fio's text for words that notes may have too.
        let is_for_programs = !self.shows_notes;
        let report = FioReport { idleness, is_for_programs, ..FioReport::new(record) };
        let (formats, terse_version) = (self.formats.clone(), self.terse_version);
        if formats.is_empty() {
            return Ok(());
        }
        let has_json = [OutputFormat::Json, OutputFormat::JsonPlus].iter().any(|json| formats.contains(json));
        if is_for_programs && !has_json {
            match output::stderr_is_seen() {
                true => fio_normal::notes(&report).iter().for_each(|note| output::warn(note)),
                false => burst_notes(record).for_each(|note| output::warn(&note)),
            }
        }
        self.write(|out| {
            if formats.contains(&OutputFormat::Terse) {
                fio_terse::render(record, terse_version, out)?;
            }
            if formats.contains(&OutputFormat::JsonPlus) {
                fio_json::render_report(&report, Bins::With, &style, &mut out.json())?;
            } else if formats.contains(&OutputFormat::Json) {
                fio_json::render_report(&report, Bins::Without, &style, &mut out.json())?;
            }
            // Standard error has the reason why nothing began; an empty report would only repeat it.
            if formats.contains(&OutputFormat::Normal)
                && record.tests.iter().any(|test| !test.jobs.is_empty())
            {
                fio_normal::render_report(&report, &style, out)?;
                fio_normal::render_hosts(record, &style, out)?;
            }
            Ok(())
        })
    }
}

/// The mean over a burst and what follows is the rate of neither. A log has to say so too, although no terminal shows the notes.
fn burst_notes(record: &RunRecord) -> impl Iterator<Item = String> {
    let falls = record.findings.iter().filter(|finding| finding.id == FindingId::BurstSuspected);
    falls.map(|finding| format!("fathom: {}", finding.text()))
}
