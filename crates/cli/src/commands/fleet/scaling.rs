//! `fathom fleet scaling`: how the total grows over runs with different numbers of ranks.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use fathom_analysis::scaling::{ScalingRun, scaling};
use fathom_history::Location;
use fathom_model::text::listed;
use fathom_record::{MergeRules, RunRecord};
use fathom_report::formats::picture::PictureFormat;
use fathom_report::html;
use fathom_report::scaling::{chart, json, view};

use super::run::RankFiles;
use crate::commands::compare::sources::SourceReader;
use crate::commands::format_arguments::FormatArguments;
use crate::commands::merge::Merging;
use crate::commands::merge::{ReadRecord, SourceName, expand, read_files};
use crate::commands::report;
use crate::commands::run_arguments::{location, words};
use crate::exit::{Complaint, Exit};
use crate::output;

/// What `fathom fleet scaling` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ScalingArguments {
    /// Runs with different numbers of ranks: merged records, runs of the history, directories of the records of one run, and
    /// directories of such directories
    #[arg(required = true, value_name = "RUN|FILE|DIR")]
    sources: Vec<String>,
    /// Write the curves as a picture
    #[arg(long, value_name = "FILE.svg|FILE.png", value_parser = picture)]
    chart: Option<ChartFile>,
    /// Write the report as a page with charts as well
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// History to read: a file, or postgres://... [default: FATHOM_HISTORY, else the user's own file]
    #[arg(long, value_name = "FILE|URI", value_parser = location)]
    history: Option<Location>,
    #[command(flatten)]
    form: FormatArguments,
}

/// Examples of `fleet scaling`.
const EXAMPLES: &str = "\
Examples:
  fathom fleet scaling results/                        what `fathom fleet run --fleet-scale` left
  fathom fleet scaling one.json four.json sixteen.json merged records
  fathom fleet scaling 12 13 14 --chart scaling.svg    merged runs of the history
  fathom fleet scaling results/ --report scaling.html
  fathom fleet scaling results/ --json

Exit status: 0 done, 1 failed, 2 usage.";

/// A file for a picture.
#[derive(Clone, Debug)]
struct ChartFile {
    path: PathBuf,
    format: PictureFormat,
}

fn picture(text: &str) -> Result<ChartFile, String> {
    let path = PathBuf::from(text);
    match PictureFormat::of_file(&path) {
        Some(format) => Ok(ChartFile { path, format }),
        None => Err("the name of a picture ends in .svg or .png".to_owned()),
    }
}

/// A run that was read.
pub struct LoadedRun {
    /// Where it was read from.
    pub source: String,
    /// Its merged record, or that of a single host.
    pub record: RunRecord,
}

/// Reads the runs and reports how they scale.
///
/// # Errors
/// A run cannot be read; they make no curve; a file cannot be written.
pub fn run(arguments: &ScalingArguments, command: &[OsString]) -> Result<Exit, Complaint> {
    if let Some(path) = &arguments.report {
        report::check_page(path)?;
    }
    let reader = SourceReader::new(Vec::new(), arguments.history.clone(), words(command));
    let mut runs = Vec::new();
    for name in &arguments.sources {
        runs.extend(loaded(name, &reader)?);
    }
    show(&runs, arguments)?;
    Ok(Exit::Done)
}

/// Prints how these runs scale, in text.
///
/// # Errors
/// They make no curve, or standard output cannot be written.
pub fn print(runs: Vec<LoadedRun>) -> Result<(), Complaint> {
    let arguments = ScalingArguments {
        sources: Vec::new(),
        chart: None,
        report: None,
        history: None,
        form: FormatArguments::default(),
    };
    show(&runs, &arguments)
}

fn show(runs: &[LoadedRun], arguments: &ScalingArguments) -> Result<(), Complaint> {
    let borrowed: Vec<ScalingRun<'_>> =
        runs.iter().map(|run| ScalingRun { source: &run.source, record: &run.record }).collect();
    let curves = scaling(&borrowed)
        .map_err(|refusal| Complaint::usage(refusal.reason, Some(refusal.hint.to_owned())))?;
    let target = target(runs);
    let style = arguments.form.style();
    if let Some(ChartFile { path, format }) = &arguments.chart {
        report::write(path, &report::picture(&chart(&curves, &target, &style), *format)?)?;
    }
    if let Some(path) = &arguments.report {
        report::write(path, html::render(&view(&curves, &target), &style).as_bytes())?;
    }
    arguments.form.print(|| view(&curves, &target), |out| json::render(&curves, &target, out))?;
    Ok(())
}

/// What was measured.
fn target(runs: &[LoadedRun]) -> String {
    let names: BTreeSet<&str> = runs.iter().map(|run| run.record.header.target.as_str()).collect();
    listed(&names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>(), 2)
}

/// The runs behind one name.
fn loaded(name: &str, reader: &SourceReader) -> Result<Vec<LoadedRun>, Complaint> {
    let path = Path::new(name);
    if !path.is_dir() {
        let runs = reader.recorded(name)?.into_iter();
        return Ok(runs.map(|run| LoadedRun { source: run.origin, record: run.record }).collect());
    }
    let directories = directories(path)?;
    let has_records =
        |path: &Path| !RankFiles::of(path).is_empty() || expand(&[path.display().to_string()]).is_ok();
    if has_records(path) {
        return of_directory(path);
    }
    let with_records: Vec<&PathBuf> = directories.iter().filter(|path| has_records(path)).collect();
    if with_records.is_empty() {
        let message = format!("neither {name} nor a directory in it has records");
        let hint = "name merged records, or the directory of `fathom fleet run --fleet-scale`".to_owned();
        return Err(Complaint::usage(message, Some(hint)));
    }
    let runs: Vec<Vec<LoadedRun>> =
        with_records.into_iter().map(|path| of_directory(path)).collect::<Result<_, _>>()?;
    Ok(runs.into_iter().flatten().collect())
}

/// The directories in `path`, by name.
fn directories(path: &Path) -> Result<Vec<PathBuf>, Complaint> {
    let entries = std::fs::read_dir(path).map_err(|error| {
        Complaint::failed(format!("cannot read {}: {}", path.display(), output::plain(&error)), None)
    })?;
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut found: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
    found.sort();
    Ok(found)
}

/// The records of a directory: merged ones are runs of their own, those of ranks make one run.
fn of_directory(path: &Path) -> Result<Vec<LoadedRun>, Complaint> {
    let source = path.display().to_string();
    let ranks = RankFiles::of(path);
    // As the run itself counts ranks that did not come to their end.
    if !ranks.partial.is_empty()
        && let Some(record) = ranks.merged(None)?
    {
        return Ok(vec![LoadedRun { source, record }]);
    }
    let names = expand(std::slice::from_ref(&source))?;
    let files: Vec<&Path> = names.iter().filter_map(SourceName::file).collect();
    let mut runs = Vec::new();
    let mut merging = Merging::new(MergeRules { records: files.len(), ..MergeRules::default() });
    read_files(&files, |read| match read {
        ReadRecord { source, record: Ok(record) } if record.header.fleet.is_some() => {
            runs.push(LoadedRun { source, record });
            Ok(())
        }
        read => merging.add(read),
    })?;
    if !merging.is_empty() {
        runs.push(LoadedRun { source, record: merging.finish()? });
    }
    Ok(runs)
}
