//! The sources of a comparison: what a name on the command line means, and how its runs are read or made.

use std::path::Path;

use fathom_analysis::compare::source::{ComparedSource, SourceRun};
use fathom_assess::compare::{PUBLISHED, is_simulated_name, measure, set_volume_type, source_of, suite_of};
use fathom_assess::{AssessError, BenchSettings, RunSettings, Suite, VolumeTypes, engine_rows, findings_of};
use fathom_catalog::{Published, UnknownPublished};
use fathom_history::{Filter, History, Location, PATIENCE, RunId};
use fathom_record::{Activity, ActivityKind, HistoryRow, RunRecord};
use fathom_sys::files::IMPORT;

use crate::exit::Complaint;
use crate::store;

/// Reads the sources that are asked for.
#[derive(Default)]
pub struct SourceReader {
    /// The sources, as typed.
    pub names: Vec<String>,
    /// The history, where it was named.
    pub history: Option<Location>,
    /// The suite that simulated volumes run, where it was named.
    pub suite: Option<String>,
    /// How simulated volumes run it, and the types that names of volumes mean.
    pub bench: BenchSettings,
    /// Runs of each simulated volume.
    pub runs: u32,
    /// The types of volumes, by the places of their sources.
    pub volume_types: Vec<(usize, String)>,
}

impl SourceReader {
    /// These sources, with everything else as by default.
    pub fn new(names: Vec<String>, history: Option<Location>, command: Vec<String>) -> SourceReader {
        let run = RunSettings { command, ..RunSettings::default() };
        let bench = BenchSettings { run, ..BenchSettings::default() };
        SourceReader { names, history, bench, ..SourceReader::default() }
    }
}

/// Most runs that a tag, a host or a label stands for: the newest.
const MAX_RUNS: usize = 100;
const HINT: &str = "use a run number, last, last~1, tag:NAME, host:NAME, label:NAME=VALUE, a file, -, sim:ID, or published:ID";

/// A selection of runs in the history.
#[derive(Debug, PartialEq)]
enum Selection {
    Run(RunId),
    Newest,
    Tag(String),
    Host(String),
    Label(String, Option<String>),
}

impl SourceReader {
    /// All sources, in their order: those that exist first, so that models run the same tests.
    ///
    /// # Errors
    /// One cannot be found, read or simulated.
    pub fn read(&self) -> Result<Vec<ComparedSource>, Complaint> {
        let names = &self.names;
        if names.iter().filter(|name| *name == "-").count() > 1 {
            return Err(Complaint::usage("standard input can be one source only", None));
        }
        let mut sources: Vec<Vec<SourceRun>> = Vec::with_capacity(names.len());
        for name in names {
            let runs = if is_simulated_name(name) { Vec::new() } else { self.recorded(name)? };
            if names.len() > 1 {
                runs.iter().try_for_each(check_comparable)?;
            }
            sources.push(runs);
        }
        self.simulate(&mut sources)?;
        let types = &self.bench.run.types;
        for (place, volume_type) in &self.volume_types {
            for run in &mut sources[*place] {
                set_volume_type(&mut run.record, volume_type, types)?;
            }
        }
        let source = |(name, runs): (&String, _)| Ok(source_of(name.clone(), runs, types)?);
        names.iter().zip(sources).map(source).collect()
    }

    /// Runs the tests on the models, which are the sources without runs.
    fn simulate(&self, sources: &mut [Vec<SourceRun>]) -> Result<(), Complaint> {
        if sources.iter().all(|runs| !runs.is_empty()) {
            return Ok(());
        }
        let records: Vec<RunRecord> = sources.iter().flatten().map(|run| run.record.clone()).collect();
        let suite = match (&self.suite, suite_of(&records)) {
            (Some(name), _) => Suite::load(name, &engine_rows())?,
            (None, Some(suite)) => suite,
            (None, None) if records.is_empty() => Suite::load("standard", &engine_rows())?,
            (None, None) => {
                let message = "the other sources have no tests that a simulated volume could run";
                return Err(Complaint::usage(message, Some("name a suite: --suite standard".to_owned())));
            }
        };
        let mut settings = self.bench.clone();
        settings.run.size = records.iter().map(|record| record.header.size_bytes).find(|size| *size > 0);
        let ids = || suite.tests.iter().map(|test| &test.id);
        settings.only.retain(|id| ids().any(|known| known == id));
        if settings.only.is_empty() && !self.bench.only.is_empty() {
            let known: Vec<&str> = ids().map(String::as_str).collect();
            let message = format!("no test is named {}", self.bench.only.join(" or "));
            return Err(Complaint::usage(message, Some(format!("use one of {}", known.join(", ")))));
        }
        for (name, runs) in self.names.iter().zip(sources).filter(|(_, runs)| runs.is_empty()) {
            let records = measure(name, self.runs, &suite, &settings)?;
            let is_one = records.len() == 1;
            let run = |(number, record): (usize, RunRecord)| {
                let origin = if is_one { "simulated".to_owned() } else { format!("simulated run {number}") };
                SourceRun { origin, record }
            };
            *runs = (1..).zip(records).map(run).collect();
        }
        Ok(())
    }

    /// The runs of a source that exists: a file, or selections joined by commas.
    ///
    /// # Errors
    /// One cannot be found or read.
    pub fn recorded(&self, name: &str) -> Result<Vec<SourceRun>, Complaint> {
        if name == "-" || is_file(name) {
            return of_file(name);
        }
        let mut runs = Vec::new();
        for part in name.split(',').map(str::trim) {
            if part == "-" || is_file(part) {
                runs.extend(of_file(part)?);
            } else if let Some(id) = part.strip_prefix(PUBLISHED) {
                runs.push(self.of_article(id)?);
            } else if is_simulated_name(part) {
                let message = format!("{part} cannot be repeated with a comma");
                return Err(Complaint::usage(message, Some("use --runs COUNT".to_owned())));
            } else {
                runs.extend(self.of_history(part)?);
            }
        }
        Ok(runs)
    }

    /// Published figures, with the type of their volume where they name it.
    fn of_article(&self, id: &str) -> Result<SourceRun, Complaint> {
        let unknown = |error: UnknownPublished| Complaint::usage(error.message, Some(error.hint));
        let sheet = Published::shipped().sheet(id).map_err(unknown)?;
        let origin = format!("{PUBLISHED}{id}");
        let mut record = fathom_import::import(&sheet.table, &origin).map_err(|error| {
            Complaint::failed(format!("cannot read {origin}: {error}"), Some(error.hint.clone()))
        })?;
        record.header.target = sheet.volume;
        record.header.notes = sheet.notes;
        if !sheet.named.is_empty() {
            set_volume_type(&mut record, &sheet.named, &self.bench.run.types)?;
        }
        Ok(SourceRun { origin, record })
    }

    fn of_history(&self, text: &str) -> Result<Vec<SourceRun>, Complaint> {
        let location = store::existing(self.history.clone())?;
        if text.contains(['/', '.']) && !text.contains([':', '~']) {
            let message = format!("cannot find source '{text}': there is no such file");
            return Err(Complaint::failed(message, Some(HINT.to_owned())));
        }
        let (selection, back) =
            selection(text).map_err(|error| Complaint::usage(error, Some(HINT.to_owned())))?;
        let Some(history) = History::open_if_there(&location, PATIENCE)? else {
            let message = format!("cannot find source '{text}': there is no history and no such file");
            return Err(Complaint::failed(message, Some(HINT.to_owned())));
        };
        let ids = match selection {
            Selection::Run(id) => vec![id],
            selection => selected(&history, &selection, back)?,
        };
        if ids.is_empty() {
            return Err(Complaint::failed(format!("no run matches '{text}'"), Some(HINT.to_owned())));
        }
        let load = |id: RunId| {
            let record = store::load_run(&history, id)?;
            Ok(SourceRun { origin: format!("run {id}"), record })
        };
        ids.into_iter().map(load).collect()
    }
}

/// The probes of an identification go past every limit on purpose, each at another load: they are no tests that another run has.
fn check_comparable(run: &SourceRun) -> Result<(), Complaint> {
    if run.record.header.activity.kind() != ActivityKind::Identify {
        return Ok(());
    }
    let message = format!("cannot compare {}: it is a run of `identify`", run.origin);
    let hint = "compare runs of fathom bench or fathom sweep on both volumes; `fathom history show` and `fathom report` show the \
                limits of one identification";
    Err(Complaint::usage(message, Some(hint.to_owned())))
}

/// Runs of a history, each a source by itself. Nothing but their numbers is looked up, and no file is read.
///
/// # Errors
/// One does not exist, cannot be read, or cannot be compared.
pub fn of_runs(history: &History, ids: &[RunId]) -> Result<Vec<ComparedSource>, Complaint> {
    let source = |&id: &RunId| {
        let run = SourceRun { origin: format!("run {id}"), record: store::load_run(history, id)? };
        if ids.len() > 1 {
            check_comparable(&run)?;
        }
        Ok(source_of(id.to_string(), vec![run], &VolumeTypes::default())?)
    };
    ids.iter().map(source).collect()
}

/// The runs of a selection, oldest first; with `back` the only one, so many before the newest.
fn selected(history: &History, selection: &Selection, back: Option<usize>) -> Result<Vec<RunId>, Complaint> {
    let mut filter = Filter::default();
    match selection {
        Selection::Tag(tag) => filter.tag = Some(tag.clone()),
        Selection::Label(name, value) => filter.labels = vec![(name.clone(), value.clone())],
        Selection::Newest => filter.newest = Some(back.unwrap_or(0) + 1),
        Selection::Host(_) | Selection::Run(_) => {}
    }
    let listing = history.list(&filter)?;
    store::tell_of_unreadable(&listing.unreadable);
    let is_of_host = |row: &&HistoryRow| !matches!(selection, Selection::Host(host) if *host != row.hostname);
    let ids: Vec<RunId> = listing.rows.iter().filter(is_of_host).map(|row| RunId(row.id as i64)).collect();
    let only = matches!(selection, Selection::Newest).then_some(0).or(back);
    Ok(match only.map(|_| back.unwrap_or(0)) {
        Some(back) => ids.iter().rev().nth(back).copied().into_iter().collect(),
        None => ids[ids.len().saturating_sub(MAX_RUNS)..].to_vec(),
    })
}

/// Reads a selection, and how many runs before the newest of it is meant.
fn selection(text: &str) -> Result<(Selection, Option<usize>), String> {
    let (name, back) = match text.rsplit_once('~') {
        Some((name, back)) => match back.parse::<usize>() {
            Ok(back) => (name, Some(back)),
            Err(_) => return Err(format!("'{text}': ~ takes a number of runs, as in last~2")),
        },
        None => (text, None),
    };
    let selection = match name.split_once(':') {
        Some(("tag", tag)) => Selection::Tag(tag.to_owned()),
        Some(("host", host)) => Selection::Host(host.to_owned()),
        Some(("label", label)) => match label.split_once('=') {
            Some((name, value)) => Selection::Label(name.to_owned(), Some(value.to_owned())),
            None => Selection::Label(label.to_owned(), None),
        },
        Some((kind, _)) => return Err(format!("unknown kind of source '{kind}:'")),
        None if name == "last" => Selection::Newest,
        None if name.is_empty() => return Err("a source has no name".to_owned()),
        None => match (name.parse::<RunId>(), back) {
            (Ok(_), Some(_)) => return Err(format!("'{text}': ~ does not apply to a run number")),
            (Ok(id), None) => Selection::Run(id),
            (Err(_), _) => Selection::Tag(name.to_owned()),
        },
    };
    Ok((selection, back))
}

fn is_file(name: &str) -> bool {
    Path::new(name).exists()
}

/// The runs in a file: records, or the output of another program.
fn of_file(name: &str) -> Result<Vec<SourceRun>, Complaint> {
    let bytes = IMPORT.read(Path::new(name)).map_err(AssessError::from)?;
    let text = fathom_import::decode(&bytes);
    let origin = if name == "-" { "standard input" } else { name };
    let records = fathom_import::records(&text, name).map_err(|error| {
        Complaint::usage(format!("cannot read {origin}: {error}"), Some(error.hint.clone()))
    })?;
    let several = records.len() > 1;
    let run = |(place, mut record): (usize, RunRecord)| {
        if matches!(record.header.activity, Activity::Import(_)) {
            record.findings = findings_of(&record);
        }
        let origin = if several { format!("{origin} ({})", place + 1) } else { origin.to_owned() };
        SourceRun { origin, record }
    };
    Ok(records.into_iter().enumerate().map(run).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_select_runs() {
        let label = |value: Option<&str>| Selection::Label("volume".to_owned(), value.map(str::to_owned));
        for (text, expected) in [
            ("17", Some((Selection::Run(RunId(17)), None))),
            ("last", Some((Selection::Newest, None))),
            ("last~2", Some((Selection::Newest, Some(2)))),
            ("tag:before", Some((Selection::Tag("before".to_owned()), None))),
            ("before", Some((Selection::Tag("before".to_owned()), None))),
            ("before~1", Some((Selection::Tag("before".to_owned()), Some(1)))),
            ("host:web1", Some((Selection::Host("web1".to_owned()), None))),
            ("label:volume=ssd-3", Some((label(Some("ssd-3")), None))),
            ("label:volume", Some((label(None), None))),
            ("17~1", None),
            ("last~x", None),
            ("tags:x", None),
            ("", None),
        ] {
            assert_eq!(selection(text).ok(), expected, "{text}");
        }
    }
}
