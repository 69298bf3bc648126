//! `fathom report`: past runs as a page with charts, or as Markdown, CSV, JSON, or a chart of its own.

mod format;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use fathom_analysis::Analysis;
use fathom_analysis::compare::source::{ComparedSource, MAX_SOURCES, SourceRun};
use fathom_analysis::compare::{CompareSettings, VolumeComparison, compare};
use fathom_history::Location;
use fathom_model::units::{self, UnitSystem};
use fathom_record::{ActivityKind, RunRecord};
use fathom_report::compare::{self as compare_report, ChartKind, Layout};
use fathom_report::formats::Format;
use fathom_report::formats::chart::Chart;
use fathom_report::formats::picture::PictureFormat;
use fathom_report::page::{self, RunChart};
use fathom_report::view::{Block, Section, View};
use fathom_report::{Style, html};
use fathom_sys::files::{PathRefusal, check_output, replace_output};

pub use format::ReportFormat;

use super::compare::sources::SourceReader;
use super::monitor::NEW_FILE_MODE;
use super::run_arguments::{location, words};
use super::shown;
use super::words::any_of;
use crate::exit::{Complaint, Exit};
use crate::output;

/// What `fathom report` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ReportArguments {
    /// Runs, named as for `fathom compare`; several are compared first
    #[arg(default_value = "last", num_args = 1..=MAX_SOURCES, value_name = "RUN")]
    sources: Vec<String>,
    /// Write to this file, whose ending chooses the format; - is standard output [default: text on standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format: html, text, markdown, csv, jsonl or json; of a chart svg or png [default: as the file ends, else text
    /// or svg]
    #[arg(long, value_name = "FORMAT")]
    format: Option<ReportFormat>,
    /// Print the full report: every section, finding and note
    #[arg(long)]
    full: bool,
    // Help with the kinds of both lists, so that a new chart is in it.
    #[arg(long, value_name = "KIND", help = chart_help())]
    chart: Option<String>,
    /// Units: iec (MiB/s) or si (MB/s) [default: those of the expectations, else iec]
    #[arg(long, value_name = "UNITS")]
    units: Option<UnitSystem>,
    /// History to read: a file, or postgres://... [default: FATHOM_HISTORY, else the user's own file]
    #[arg(long, value_name = "FILE|URI", value_parser = location)]
    history: Option<Location>,
}

const EXAMPLES: &str = "\
Examples:
  fathom report                          the newest run; --full has everything
  fathom report 17 -o volume.html        run 17; the page opens offline and loads nothing
  fathom report 12 17 -o before.html     both, compared first
  fathom report last -o issue.md         Markdown, to paste into an issue or a chat
  fathom report 17 --chart latency -o latency.png
  fathom report result.json -o fio.html  the JSON that fio wrote
  fathom report 'sim:aws-gp3?size=100GiB' 'sim:aws-io2-block-express?iops=3000' -o types.html

Exit status: 0 done, 1 failed, 2 usage.";

fn chart_help() -> String {
    let (of_run, of_several) = (RunChart::ALL.map(RunChart::name), ChartKind::ALL.map(ChartKind::name));
    let (of_run, of_several) = (any_of(&of_run), any_of(&of_several));
    format!("Only this chart, as SVG or PNG: {of_run} of one run; {of_several} of several")
}

impl ReportArguments {
    /// The file that the report goes to; `None` for standard output.
    fn destination(&self) -> Option<PathBuf> {
        match &self.output {
            Some(path) if path.as_os_str() == "-" => None,
            Some(path) => Some(path.clone()),
            None if !output::stdout_is_seen() => None,
            // A page or a picture is nothing for a terminal.
            None => match (self.format, self.is_chart()) {
                (Some(ReportFormat::Chart(PictureFormat::Png)), _) => Some("fathom-chart.png".into()),
                (_, true) => Some("fathom-chart.svg".into()),
                (Some(ReportFormat::Html), _) => Some("fathom-report.html".into()),
                _ => None,
            },
        }
    }

    fn is_chart(&self) -> bool {
        self.chart.is_some() || matches!(self.format, Some(ReportFormat::Chart(_)))
    }

    fn format_for(&self, destination: Option<&Path>) -> Result<ReportFormat, Complaint> {
        let of_file = destination.and_then(ReportFormat::of_file);
        let svg = ReportFormat::Chart(PictureFormat::Svg);
        let usual = match (self.is_chart(), &self.output) {
            (true, _) => svg,
            // A file without an ending is a page.
            (false, Some(path)) if path.as_os_str() != "-" => ReportFormat::Html,
            (false, _) => ReportFormat::Other(Format::Text),
        };
        let format = self.format.or(of_file);
        if let (None, Some(path)) = (format, destination)
            && path.extension().is_some()
        {
            return Err(unsupported(path));
        }
        match (format.unwrap_or(usual), &self.chart) {
            (ReportFormat::Chart(_), None) => Err(Complaint::usage(
                "an SVG or PNG file holds one chart",
                Some(format!("name it: --chart {}", RunChart::ALL.map(RunChart::name).join(" or --chart "))),
            )),
            (ReportFormat::Chart(PictureFormat::Png), _)
                if destination.is_none() && output::stdout_is_seen() =>
            {
                let hint = "name a file: -o chart.png".to_owned();
                Err(Complaint::usage("PNG is not text and needs a file or a pipe", Some(hint)))
            }
            (format @ ReportFormat::Chart(_), _) => Ok(format),
            (format, Some(_)) => Err(Complaint::usage(
                format!("--chart writes SVG or PNG, not {format}"),
                Some("use a file.svg or a file.png".to_owned()),
            )),
            (format, None) => Ok(format),
        }
    }
}

/// Makes the report.
///
/// # Errors
/// A run cannot be read, has nothing to show, or the file cannot be written.
pub fn run(arguments: ReportArguments, command: &[OsString]) -> Result<Exit, Complaint> {
    let destination = arguments.destination();
    let format = arguments.format_for(destination.as_deref())?;
    destination.iter().try_for_each(|path| check(path))?;
    let names = arguments.sources.clone();
    let sources = SourceReader::new(names, arguments.history.clone(), words(command)).read()?;
    let is_text = format == ReportFormat::Other(Format::Text);
    let style = Style {
        show_fio: arguments.full || !is_text,
        is_full: arguments.full,
        units: arguments.units,
        ..output::style()
    };
    let report = Report::new(&sources)?;
    let text = match (format, &arguments.chart) {
        (ReportFormat::Html, _) => html::render(&report.page(), &style).into_bytes(),
        (ReportFormat::Chart(format), Some(kind)) => picture(&report.chart(kind, &style)?, format)?,
        (ReportFormat::Chart(_), None) => Vec::new(),
        (ReportFormat::Other(format), _) => report.other(format, &style)?,
    };
    match &destination {
        None => output::print_whole(&text)?,
        Some(path) => {
            write(path, &text)?;
            output::print(|out| {
                writeln!(out, "Wrote {} ({}).", path.display(), units::bytes(text.len() as u64))
            })?;
        }
    }
    Ok(Exit::Done)
}

/// Writes the report of a comparison in the format that the ending of the file stands for.
///
/// # Errors
/// The file cannot be written.
pub fn write_comparison(
    path: &Path,
    sources: &[ComparedSource],
    comparison: VolumeComparison,
    layout: Layout,
    style: &Style,
) -> Result<(), Complaint> {
    let report = Report::Several(sources, Box::new(comparison), layout);
    let text = match ReportFormat::of_file(path) {
        Some(ReportFormat::Other(format)) => {
            report.other(format, &Style { colour: false, ..style.clone() })?
        }
        _ => html::render(&report.page(), style).into_bytes(),
    };
    write(path, &text)
}

/// What the page of `sources` shows.
///
/// # Errors
/// They cannot be compared.
pub fn page_of(sources: &[ComparedSource]) -> Result<View, Complaint> {
    Ok(Report::new(sources)?.page())
}

/// The report of `sources` as a file with this ending has it; `None` where no such file has a report.
///
/// # Errors
/// They cannot be compared.
pub fn file_of(
    sources: &[ComparedSource],
    ending: &str,
    style: &Style,
) -> Result<Option<Vec<u8>>, Complaint> {
    let report = Report::new(sources)?;
    Ok(match ReportFormat::of_file(&Path::new("report").with_extension(ending)) {
        Some(ReportFormat::Html) => Some(html::render(&report.page(), style).into_bytes()),
        Some(ReportFormat::Other(format)) => Some(report.other(format, style)?),
        Some(ReportFormat::Chart(_)) | None => None,
    })
}

/// Says whether a report can be written to `path`, before anything is measured for it.
///
/// # Errors
/// It cannot, or its ending stands for no report.
pub fn check_report(path: &Path) -> Result<(), Complaint> {
    check_report_name(path)?;
    check(path)
}

/// Says whether `path` is the name of a report.
///
/// # Errors
/// Its ending stands for none.
pub fn check_report_name(path: &Path) -> Result<(), Complaint> {
    match ReportFormat::of_file(path) {
        Some(ReportFormat::Html | ReportFormat::Other(_)) => Ok(()),
        Some(ReportFormat::Chart(_)) => {
            let hint = "`fathom report last --chart KIND -o FILE` draws one chart afterwards".to_owned();
            Err(Complaint::usage(format!("{} would be a chart, not a report", path.display()), Some(hint)))
        }
        None => Err(unsupported(path)),
    }
}

/// The complaint about a file whose ending stands for no format.
fn unsupported(path: &Path) -> Complaint {
    let message = match path.extension() {
        Some(ending) => format!("unsupported output format: .{}", ending.to_string_lossy()),
        None => format!("{} has no ending that names a format", path.display()),
    };
    let hint = "end it in .html, .md, .csv, .json, .jsonl or .txt; of a chart .svg or .png";
    Complaint::usage(message, Some(hint.to_owned()))
}

/// Writes the report of one run in the format that the ending of the file stands for.
///
/// # Errors
/// The file cannot be written.
pub fn write_report(path: &Path, record: &RunRecord, style: &Style) -> Result<(), Complaint> {
    let Some(ReportFormat::Other(format)) = ReportFormat::of_file(path) else {
        return write_page(path, record, style);
    };
    // A file is no terminal.
    let style = Style { colour: false, ..style.clone() };
    let mut text = Vec::new();
    output::write_to(&mut text, |out| shown::show(record, &style, format, out))?;
    write(path, &text)
}

/// Says whether a page can be written to `path`, before anything is measured for it.
///
/// # Errors
/// It cannot, or the ending of the file is that of another format.
pub fn check_page(path: &Path) -> Result<(), Complaint> {
    check_page_name(path)?;
    check(path)
}

/// Says whether `path` is the name of a page.
///
/// # Errors
/// Its ending is that of another format.
fn check_page_name(path: &Path) -> Result<(), Complaint> {
    if ReportFormat::of_file(path) == Some(ReportFormat::Html) {
        return Ok(());
    }
    let message = format!("{} would be a page with charts, whose name ends in .html", path.display());
    Err(Complaint::usage(message, Some("name it page.html, or use --format for other formats".to_owned())))
}

fn check(path: &Path) -> Result<(), Complaint> {
    check_output(path).map_err(|error| unwritable(path, &error))
}

/// Writes the page of one run.
///
/// # Errors
/// The file cannot be written.
pub fn write_page(path: &Path, record: &RunRecord, style: &Style) -> Result<(), Complaint> {
    write(path, html::render(&page_of_run(record), style).as_bytes())
}

/// Writes a view as a page.
///
/// # Errors
/// The file cannot be written.
pub fn write_view(path: &Path, view: &View, style: &Style) -> Result<(), Complaint> {
    write(path, html::render(view, style).as_bytes())
}

/// The file of a chart.
///
/// # Errors
/// The form cannot hold it, or the program was built without it.
pub fn picture(chart: &Chart, format: PictureFormat) -> Result<Vec<u8>, Complaint> {
    format.render(chart).map_err(|error| Complaint::failed(error.message, Some(error.hint.to_owned())))
}

/// Replaces a file by `text`.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, text: &[u8]) -> Result<(), Complaint> {
    replace_output(path, NEW_FILE_MODE, |out| out.write_all(text)).map_err(|error| unwritable(path, &error))
}

/// The complaint about a file that cannot be written.
pub fn unwritable(path: &Path, error: &std::io::Error) -> Complaint {
    let hint = PathRefusal::of(error).map(|refusal| refusal.hint().to_owned());
    Complaint::failed(format!("cannot write {}: {}", path.display(), output::plain(error)), hint)
}

/// One run, or several with their comparison.
enum Report<'a> {
    One(&'a RunRecord, usize),
    Several(&'a [ComparedSource], Box<VolumeComparison>, Layout),
}

impl Report<'_> {
    fn new(sources: &[ComparedSource]) -> Result<Report<'_>, Complaint> {
        let [source] = sources else {
            let comparison = compare(sources, &CompareSettings::default());
            let comparison = comparison.map_err(|error| Complaint::usage(error, None))?;
            return Ok(Report::Several(sources, Box::new(comparison), Layout::Volumes));
        };
        let newest = newest(source).ok_or_else(|| Complaint::failed("there is no run to report", None))?;
        Ok(Report::One(newest, source.runs.len()))
    }

    fn page(&self) -> View {
        match self {
            Report::One(record, runs) => {
                let mut view = page_of_run(record);
                if *runs > 1 {
                    let note = format!("This is the newest of {runs} runs.");
                    view.sections
                        .insert(0, Section { blocks: vec![Block::note(note)], ..Section::default() });
                }
                view
            }
            Report::Several(sources, comparison, layout) => several(sources, comparison, *layout),
        }
    }

    fn chart(&self, kind: &str, style: &Style) -> Result<Chart, Complaint> {
        let chart = match self {
            Report::One(record, _) => {
                kind.parse().and_then(|kind: RunChart| page::chart(record, kind, style))
            }
            Report::Several(_, comparison, _) => {
                kind.parse().and_then(|kind: ChartKind| compare_report::chart(comparison, kind, style))
            }
        };
        chart.map_err(|error| Complaint::usage(error, None))
    }

    fn other(&self, format: Format, style: &Style) -> Result<Vec<u8>, Complaint> {
        let mut text = Vec::new();
        output::write_to(&mut text, |out| match self {
            // fio's own text is for those who run fio; a report is ours.
            Report::One(record, _)
                if format == Format::Text && record.header.activity.kind() == ActivityKind::Fio =>
            {
                format.write(style, out, || shown::view(&Analysis::of(record), style.show_fio), |_| Ok(()))
            }
            Report::One(record, _) => shown::show(record, style, format, out),
            Report::Several(_, comparison, layout) => format.write(
                style,
                out,
                || compare_report::view(comparison, *layout, Vec::new()),
                |out| compare_report::json::render(comparison, out),
            ),
        })?;
        Ok(text)
    }
}

/// The page of one run.
fn page_of_run(record: &RunRecord) -> View {
    let analysis = Analysis::of(record);
    page::view(&analysis, shown::view(&analysis, true))
}

fn newest(source: &ComparedSource) -> Option<&RunRecord> {
    let run: Option<&SourceRun> = source.runs.iter().max_by_key(|run| run.record.header.started_unix_ms);
    run.map(|run| &run.record)
}

/// The comparison with all its charts, then the page of each source.
fn several(sources: &[ComparedSource], comparison: &VolumeComparison, layout: Layout) -> View {
    let charts = [
        ChartKind::Bars,
        ChartKind::Ladder,
        ChartKind::Depth,
        ChartKind::Latency,
        ChartKind::Day,
        ChartKind::Surface,
    ];
    let plots = charts.into_iter().filter_map(|kind| compare_report::plots(comparison, kind).ok()).flatten();
    let mut view = compare_report::view(comparison, layout, plots.collect());
    // The conclusion, then the pictures, then the figures.
    let is_charts = |section: &Section| section.blocks.iter().any(|block| matches!(block, Block::Plots(_)));
    if let Some(place) = view.sections.iter().position(is_charts) {
        view.sections[1.min(place)..=place].rotate_right(1);
    }
    for (summary, source) in comparison.sources.iter().zip(sources) {
        let Some(record) = newest(source) else { continue };
        let page = page_of_run(record);
        view.push(format!("{}: Verdict", summary.source), [Block::KeyFigures(page.verdict)]);
        view.sections.extend(page.sections.into_iter().map(|section| {
            let title = if section.title.is_empty() { "Results" } else { section.title.as_str() };
            Section { title: format!("{}: {title}", summary.source), ..section }
        }));
    }
    view
}
