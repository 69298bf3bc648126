//! `fathom compare`: several volumes side by side, like for like, with intervals, verdicts and a conclusion.

pub mod sources;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use fathom_analysis::compare::figure::Deltas;
use fathom_analysis::compare::gate::FailCondition;
use fathom_analysis::compare::source::{ComparedSource, LABELS, MAX_SOURCES, SourceRun, VolumePrice};
use fathom_analysis::compare::{CompareSettings, VolumeComparison, compare};
use fathom_analysis::criterion::parse_percent;
use fathom_assess::compare::parse_price;
use fathom_assess::{BenchSettings, Effort, RunSettings};
use fathom_history::Location;
use fathom_model::Nanos;
use fathom_report::Style;
use fathom_report::compare::{ChartKind, Layout, chart, json, junit, plots, view};
use fathom_report::formats::picture::PictureFormat;

use self::sources::SourceReader;
use super::catalog::CatalogArguments;
use super::format_arguments::FormatArguments;
use super::report;
use super::run_arguments::{location, words};
use super::words::{any_of, positive_duration};
use crate::exit::{Complaint, Exit};

/// What `fathom compare` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CompareArguments {
    /// Sources, named A, B, C, ... in their order; a comma joins repeated runs of one source
    #[arg(required = true, num_args = 1..=MAX_SOURCES, value_name = "SOURCE")]
    sources: Vec<String>,
    /// Compare the hosts of merged runs (host), or value for money (price)
    #[arg(long, value_enum, value_name = "PART", hide_possible_values = true)]
    by: Option<ComparedBy>,
    /// Letter of the source to compare with
    #[arg(long, value_name = "LETTER", default_value = "A")]
    base: String,
    /// Compare only these tests, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "ID,...")]
    only: Vec<String>,
    /// Smallest difference that counts [default: rates 3%, latencies 5%]
    #[arg(long, value_parser = parse_percent, value_name = "PERCENT")]
    delta: Option<f64>,
    /// Price of a volume: A=12USD/month (repeatable)
    ///
    /// In place of that of the catalogue.
    #[arg(long = "price", value_parser = price, value_name = "LETTER=PRICE")]
    prices: Vec<Price>,
    /// Volume type of a source: A=aws-gp2?size=50GiB (repeatable)
    ///
    /// Its published rules then count.
    #[arg(long = "type", value_parser = volume_type, value_name = "LETTER=TYPE")]
    volume_types: Vec<(usize, String)>,
    /// Fail on a condition: 'rand-read.iops < 0.95' (repeatable)
    ///
    /// The whole interval has to satisfy it. A bare number is the ratio to the base, '< 5000 IOPS' or '> 5ms' a value.
    #[arg(long = "fail-if", value_parser = FailCondition::parse, value_name = "CONDITION")]
    conditions: Vec<FailCondition>,
    /// Exit with 4 if a condition is inconclusive and none holds
    #[arg(help_heading = "Conditions", long, requires = "conditions")]
    strict: bool,
    /// Write the results of --fail-if as JUnit XML
    #[arg(help_heading = "Conditions", long, requires = "conditions", value_name = "FILE")]
    junit: Option<PathBuf>,
    // Help with the list of kinds, so that a new chart is in it.
    #[arg(
        long = "chart",
        help_heading = "Output",
        value_parser = ChartRequest::parse,
        value_name = "[KIND:]FILE.svg|KIND",
        help = chart_help()
    )]
    charts: Vec<ChartRequest>,
    /// Write the report to a file as well; its ending chooses the format
    ///
    /// .html is a page with charts, .md Markdown, .json the document.
    #[arg(short = 'o', long = "output", help_heading = "Output", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Explain a cell instead: 'B:rand-read.iops' (repeatable)
    ///
    /// Its runs, their places in the sources, the fio command and the computation.
    #[arg(long = "explain", value_name = "CELL")]
    explain: Vec<String>,
    /// Show volumes in rows and figures in columns
    #[arg(long, help_heading = "Output")]
    transpose: bool,
    /// Suite of simulated volumes [default: the tests of the other sources, else standard]
    #[arg(help_heading = "Simulated volumes", long, value_name = "NAME")]
    suite: Option<String>,
    /// Run the shorter tests of the suite on simulated volumes
    #[arg(help_heading = "Simulated volumes", long)]
    quick: bool,
    /// Measured time of each test on simulated volumes: 30s, 2m
    #[arg(help_heading = "Simulated volumes", long, value_parser = positive_duration, value_name = "TIME")]
    runtime: Option<Nanos>,
    /// Runs of each simulated volume, each with other random choices
    #[arg(help_heading = "Simulated volumes", long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// History to read: a file, or postgres://... [default: FATHOM_HISTORY, else the user's own file]
    #[arg(help_heading = "History", long, value_name = "FILE|URI", value_parser = location)]
    history: Option<Location>,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
    #[command(flatten, next_help_heading = "Catalogue")]
    catalog: CatalogArguments,
}

const EXAMPLES: &str = "\
Sources:
  17, last, last~2       a run of the history by its number, the newest, the third newest
  tag:NAME               all runs with a tag; NAME alone where no file has that name
  host:NAME              all runs of a host
  label:NAME=VALUE       all runs with a label
  tag:NAME~0             only the newest of them; ~1 the one before
  FILE, -                a file or standard input: records of `fathom history export`,
                         `fathom bench --json`, output of fio (JSON, terse, text) or
                         ioping, or a CSV or TOML table of test, metric, value, unit
  sim:ID?size=50GiB      a simulated volume; runs the tests of the other sources
  published:ID           figures of an article: see `fathom catalog published`
  17,18,19               repeated runs of one source: they make intervals and verdicts

Examples:
  fathom compare last~1 last
  fathom compare 12,14,16 13,15,17           three runs each, alternating
  fathom compare tag:before tag:after --fail-if 'rand-read.iops < 0.95'
  fathom compare last 'sim:aws-gp3?size=100GiB' --by price --price A=12USD/month
  fathom compare 'sim:aws-gp2-2016?size=50GiB' sim:aws-gp3 sim:do-volume-standard
  fathom compare label:volume=ssd-3 label:volume=ssd-4 --format markdown
  fathom compare last~1 last --chart bars.svg --chart depth:depth.svg --chart latency
  fathom compare published:a0-do published:a0-aws --explain B:randread.iops
  fathom compare fleet.json --by host        the hosts of a merged run
  fathom compare before.json after.json      two merged runs

Exit status: 0 done, 1 failed, 2 usage, 3 a --fail-if condition holds, 4 with --strict one is inconclusive.";

fn chart_help() -> String {
    format!(
        "Draw a chart in the report: {}; KIND:FILE.svg or .png writes it to a file, FILE.svg alone the bars \
         (repeatable)",
        any_of(&ChartKind::ALL.map(ChartKind::described))
    )
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ComparedBy {
    /// The hosts of merged runs with each other
    Host,
    /// What each source gives for its price
    Price,
}

/// The price of a source.
#[derive(Clone, Debug, PartialEq)]
struct Price {
    place: usize,
    per_month: f64,
    currency: String,
}

/// Reads `A=12USD/month`.
fn price(text: &str) -> Result<Price, String> {
    let form = || format!("'{text}' is not a price: write A=12USD/month");
    let (letter, amount) = text.split_once('=').ok_or_else(form)?;
    let (per_month, currency) = parse_price(amount).ok_or_else(form)?;
    Ok(Price { place: place(letter)?, per_month, currency })
}

/// Reads `12USD/month`.
///
/// # Errors
/// The text is not a price.
pub fn monthly_price(text: &str) -> Result<(f64, String), String> {
    parse_price(text).ok_or_else(|| format!("'{text}' is not a price: write 12USD/month"))
}

/// Reads `A=aws-gp2?size=50GiB`.
fn volume_type(text: &str) -> Result<(usize, String), String> {
    let (letter, named) = text
        .split_once('=')
        .filter(|(_, named)| !named.is_empty())
        .ok_or_else(|| format!("'{text}' is not a type: write A=aws-gp2?size=50GiB"))?;
    Ok((place(letter)?, named.to_owned()))
}

/// A chart, and the file that it goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChartRequest {
    kind: ChartKind,
    file: Option<ChartFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ChartFile {
    path: PathBuf,
    format: PictureFormat,
}

impl ChartRequest {
    /// Reads `bars`, `out.svg` or `depth:out.png`.
    fn parse(text: &str) -> Result<ChartRequest, String> {
        let file = |name: &str| {
            PictureFormat::of_file(Path::new(name))
                .map(|format| ChartFile { path: PathBuf::from(name), format })
        };
        let (kind, file) = match text.split_once(':').map(|(kind, name)| (kind, name, file(name))) {
            Some((kind, _, Some(file))) => (kind.parse()?, Some(file)),
            named => match (file(text), named) {
                (Some(file), _) => (ChartKind::Bars, Some(file)),
                (None, Some((_, name, _))) => {
                    return Err(format!(
                        "unsupported chart file '{name}': write KIND:FILE.svg or KIND:FILE.png"
                    ));
                }
                (None, None) => (text.parse()?, None),
            },
        };
        Ok(ChartRequest { kind, file })
    }

    /// Writes the chart to its file.
    fn write(&self, comparison: &VolumeComparison, style: &Style) -> Result<(), Complaint> {
        let Some(file) = &self.file else { return Ok(()) };
        let chart = chart(comparison, self.kind, style).map_err(|error| Complaint::usage(error, None))?;
        report::write(&file.path, &report::picture(&chart, file.format)?)
    }
}

/// The place of a source by its letter.
fn place(letter: &str) -> Result<usize, String> {
    let letter = letter.trim().to_ascii_uppercase();
    LABELS
        .iter()
        .position(|label| *label == letter)
        .ok_or_else(|| format!("'{letter}' is not the letter of a source: use A, B, ..."))
}

/// Compares.
///
/// # Errors
/// A source cannot be read or measured, or an option makes no sense.
pub fn run(arguments: CompareArguments, command: &[OsString]) -> Result<Exit, Complaint> {
    let by_host = arguments.by == Some(ComparedBy::Host);
    let given = [("--price", arguments.prices.is_empty()), ("--type", arguments.volume_types.is_empty())];
    if let Some((option, _)) = given.iter().find(|(_, is_empty)| by_host && !is_empty) {
        let hint = Some("name two sources to compare volumes".to_owned());
        return Err(Complaint::usage(format!("--by host and {option} cannot be combined"), hint));
    }
    if arguments.sources.len() < 2 && !by_host {
        let message = format!("a comparison takes 2 to {MAX_SOURCES} sources");
        let hint = "name another source, or compare the hosts of one merged run: --by host".to_owned();
        return Err(Complaint::usage(message, Some(hint)));
    }
    arguments.output.as_deref().map_or(Ok(()), report::check_report)?;
    // Of hosts there are as many as the records say.
    let count = if by_host { MAX_SOURCES } else { arguments.sources.len() };
    let base = place(&arguments.base).map_err(|error| Complaint::usage(error, None))?;
    let prices = arguments.prices.iter().map(|price| (price.place, "--price"));
    let types = arguments.volume_types.iter().map(|(place, _)| (*place, "--type"));
    for (place, option) in std::iter::once((base, "--base")).chain(prices).chain(types) {
        if place >= count {
            let message = format!("{option} names source {}, but there are {count}", LABELS[place]);
            return Err(Complaint::usage(message, Some(format!("use A to {}", LABELS[count - 1]))));
        }
    }
    let reader = SourceReader {
        names: arguments.sources,
        history: arguments.history,
        suite: arguments.suite,
        bench: BenchSettings {
            run: RunSettings {
                types: arguments.catalog.types(),
                command: words(command),
                ..RunSettings::default()
            },
            effort: if arguments.quick { Effort::Quick } else { Effort::Default },
            runtime: arguments.runtime,
            only: arguments.only.clone(),
            ..BenchSettings::default()
        },
        runs: arguments.runs,
        volume_types: arguments.volume_types,
    };
    let mut sources = reader.read()?;
    if by_host {
        sources = hosts_of(sources)?;
        check_base(base, sources.len())?;
    }
    for Price { place, per_month, currency } in arguments.prices {
        sources[place].volume.price =
            Some(VolumePrice { per_month, currency, source: "--price".to_owned(), ..VolumePrice::default() });
    }
    let deltas = arguments.delta.map(|percent| Deltas { rate: percent / 100.0, latency: percent / 100.0 });
    let settings = CompareSettings {
        base,
        deltas: deltas.unwrap_or_default(),
        only: arguments.only,
        conditions: arguments.conditions,
        explain: arguments.explain,
    };
    let comparison = compare(&sources, &settings).map_err(|error| Complaint::usage(error, None))?;
    let style = arguments.form.style();
    arguments.charts.iter().try_for_each(|request| request.write(&comparison, &style))?;
    if let Some(path) = &arguments.junit {
        report::write(path, junit::render(&comparison, arguments.strict).as_bytes())?;
    }
    let mut shown = Vec::new();
    for request in arguments.charts.iter().filter(|request| request.file.is_none()) {
        shown.extend(plots(&comparison, request.kind).map_err(|error| Complaint::usage(error, None))?);
    }
    let layout = match arguments.by {
        Some(ComparedBy::Price) => Layout::Value,
        _ if arguments.transpose => Layout::Transposed,
        _ => Layout::Volumes,
    };
    arguments.form.print(|| view(&comparison, layout, shown), |out| json::render(&comparison, out))?;
    let is_inconclusive = arguments.strict && comparison.is_inconclusive();
    let exit = Exit::Done.with_criteria(comparison.is_failed(), is_inconclusive);
    if let Some(path) = &arguments.output {
        report::write_comparison(path, &sources, comparison, layout, &style)?;
    }
    Ok(exit)
}

fn check_base(base: usize, count: usize) -> Result<(), Complaint> {
    if base < count {
        return Ok(());
    }
    let message = format!("--base names source {}, but there are {count} hosts", LABELS[base]);
    Err(Complaint::usage(message, Some(format!("use A to {}", LABELS[count - 1]))))
}

/// The hosts of merged runs, a source each; several runs of a host are repetitions.
fn hosts_of(sources: Vec<ComparedSource>) -> Result<Vec<ComparedSource>, Complaint> {
    let mut hosts: Vec<ComparedSource> = Vec::new();
    let is_one = sources.len() == 1;
    for source in sources {
        let mut of_source: Vec<ComparedSource> = Vec::new();
        for run in source.runs {
            let Some(divided) = run.record.divided_by_host() else {
                let message = format!("{} is a run of one host", run.origin);
                return Err(Complaint::usage(message, Some("--by host takes merged runs".to_owned())));
            };
            for (host, record) in divided {
                let run = SourceRun { origin: format!("{host} of {}", run.origin), record };
                let name = if is_one { host } else { format!("{host} of {}", source.name) };
                match of_source.iter_mut().find(|known| known.name == name) {
                    Some(known) => known.runs.push(run),
                    None => of_source.push(ComparedSource {
                        name,
                        kind: source.kind,
                        runs: vec![run],
                        ..ComparedSource::default()
                    }),
                }
            }
        }
        hosts.extend(of_source);
    }
    match hosts.len() {
        0 | 1 => Err(Complaint::usage("there is one host only", Some("merge runs of several".to_owned()))),
        count if count > MAX_SOURCES => {
            let message = format!("{count} hosts are more than the {MAX_SOURCES} that can be compared");
            let hint = "`fathom fleet merge` has a row for each, and names those that stand out".to_owned();
            Err(Complaint::usage(message, Some(hint)))
        }
        _ => Ok(hosts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_have_a_kind_a_file_or_both() {
        let file = |name: &str| Some(PathBuf::from(name));
        for (text, expected) in [
            ("bars", Some((ChartKind::Bars, None))),
            ("out.svg", Some((ChartKind::Bars, file("out.svg")))),
            ("depth:a/b.SVG", Some((ChartKind::Depth, file("a/b.SVG")))),
            ("log-bars:out.svg", Some((ChartKind::LogBars, file("out.svg")))),
            ("pie", None),
            ("pie:out.svg", None),
            ("bars:out.png", Some((ChartKind::Bars, file("out.png")))),
            ("bars:out.jpg", None),
            ("", None),
        ] {
            let found = ChartRequest::parse(text).ok();
            let found = found.map(|request| (request.kind, request.file.map(|file| file.path)));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn prices_have_an_amount_a_currency_and_a_month() {
        for (text, expected) in [
            ("A=12USD/month", Some((0, 12.0, "USD"))),
            ("b=0.5 EUR/month", Some((1, 0.5, "EUR"))),
            ("AA=12USD/month", Some((26, 12.0, "USD"))),
            ("A=12USD", None),
            ("A=12/month", None),
            ("A=USD/month", None),
            ("1=12USD/month", None),
            ("12USD/month", None),
        ] {
            let found = price(text).ok();
            let expected = expected.map(|(place, per_month, currency): (usize, f64, &str)| Price {
                place,
                per_month,
                currency: currency.to_owned(),
            });
            assert_eq!(found, expected, "{text}");
        }
    }
}
