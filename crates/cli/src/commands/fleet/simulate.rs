//! `fathom fleet simulate`: the path from records to the report on generated records of many ranks.

use std::io;

use clap::Args;
use fathom_assess::generated_fleet::GeneratedFleet;
use fathom_model::Nanos;
use fathom_model::units::parse_duration;
use fathom_record::{MergeRules, RunRecord};
use fathom_report::formats::Format;
use fathom_report::view::{Block, Cell, Column, KeyFigure, Row, Table, View};
use fathom_report::{document, html, page};
use fathom_sys::clock::monotonic_ns;
use fathom_sys::device::SysRoot;
use serde::Serialize;

use crate::commands::format_arguments::FormatArguments;
use crate::commands::merge::Merging;
use crate::commands::merge::reading::read_texts;
use crate::commands::shown;
use crate::exit::{Complaint, Exit};
use crate::output;

/// What `fathom fleet simulate` takes.
#[derive(Args)]
pub struct SimulateFleetArguments {
    /// Ranks, each with a record
    #[arg(long, default_value_t = 10_000, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(2..=MOST_RANKS))]
    ranks: u32,
    /// Measured time of each record
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = runtime)]
    runtime: Nanos,
    #[command(flatten)]
    form: FormatArguments,
}

/// Examples of `fleet simulate`.
pub const EXAMPLES: &str = "\
Examples:
  fathom fleet simulate --ranks 10000
  fathom fleet simulate --ranks 500 --runtime 10m --json";

const MOST_RANKS: i64 = 100_000;
/// Records that are generated before they are merged.
const AT_A_TIME: u32 = 64;
const KIB: u64 = 1024;

fn runtime(text: &str) -> Result<Nanos, String> {
    let length = parse_duration(text).map_err(|error| error.to_string())?;
    let allowed = Nanos::from_secs(1)..=Nanos::from_secs(86_400);
    if allowed.contains(&length) { Ok(length) } else { Err("use 1s to 24h".to_owned()) }
}

/// What merging and reporting took.
#[derive(Debug, Serialize)]
struct FleetSimulation {
    schema: &'static str,
    ranks: u32,
    runtime_ns: u64,
    /// Size of all records.
    records_bytes: u64,
    /// Time to generate them, which is no part of merging.
    generate_ns: u64,
    /// Time to read and merge them.
    merge_ns: u64,
    /// Time to find what they tell.
    assess_ns: u64,
    /// Time to write text, JSON and page.
    report_ns: u64,
    /// Size of the merged record.
    merged_bytes: u64,
    /// Size of the page.
    page_bytes: u64,
    /// Most memory of the whole process; null where the kernel does not tell.
    peak_memory_bytes: Option<u64>,
    /// I/Os of all records.
    ios: u64,
    /// I/Os of the merged record.
    merged_ios: u64,
    findings: usize,
}

/// Generates, merges and reports.
///
/// # Errors
/// The merged record has not the I/Os of all records; standard output cannot be written.
pub fn run(arguments: &SimulateFleetArguments) -> Result<Exit, Complaint> {
    let fleet = GeneratedFleet { ranks: arguments.ranks, runtime: arguments.runtime };
    let rules = MergeRules { records: arguments.ranks as usize, ..MergeRules::default() };
    let mut merging = Merging::new(rules);
    let (mut generate_ns, mut merge_ns, mut records_bytes, mut ios) = (0, 0, 0, 0);
    for from in (0..arguments.ranks).step_by(AT_A_TIME as usize) {
        let began = monotonic_ns();
        let ranks = from..arguments.ranks.min(from + AT_A_TIME);
        let texts: Vec<(String, String)> = ranks
            .map(|rank| {
                let record = fleet.record(rank);
                ios += ios_of(&record);
                (format!("rank-{rank:05}.rec"), record.to_json())
            })
            .collect();
        records_bytes += texts.iter().map(|(_, text)| text.len() as u64).sum::<u64>();
        generate_ns += monotonic_ns() - began;
        let began = monotonic_ns();
        read_texts(&texts, |read| merging.add(read))?;
        merge_ns += monotonic_ns() - began;
    }
    let began = monotonic_ns();
    let record = merging.finish()?;
    let assess_ns = monotonic_ns() - began;
    let began = monotonic_ns();
    let page_bytes = report(&record, arguments)?;
    let report_ns = monotonic_ns() - began;
    let result = FleetSimulation {
        schema: "fathom.fleet-simulation/1",
        ranks: arguments.ranks,
        runtime_ns: arguments.runtime.0,
        records_bytes,
        generate_ns,
        merge_ns,
        assess_ns,
        report_ns,
        merged_bytes: record.to_json().len() as u64,
        page_bytes,
        peak_memory_bytes: peak_memory(),
        ios,
        merged_ios: ios_of(&record),
        findings: record.findings.len(),
    };
    arguments.form.print(|| view(&result), |out| document::write(&result, out))?;
    if result.ios != result.merged_ios {
        let message =
            format!("the records have {} I/Os, and the merged record {}", result.ios, result.merged_ios);
        return Err(Complaint::failed(message, None));
    }
    Ok(Exit::Done)
}

fn ios_of(record: &RunRecord) -> u64 {
    let jobs = record.tests.iter().flat_map(|test| &test.jobs);
    jobs.flat_map(|job| job.measured.ops()).map(|op| op.ios).sum()
}

/// Writes every report to memory; the size of the page.
fn report(record: &RunRecord, arguments: &SimulateFleetArguments) -> io::Result<u64> {
    let style = arguments.form.style();
    for format in [Format::Text, Format::Json, Format::Csv] {
        let mut text = Vec::new();
        output::write_to(&mut text, |out| shown::show(record, &style, format, out))?;
    }
    let view = page::view(record, shown::view(record, true));
    Ok(html::render(&view, &style).len() as u64)
}

/// Most memory that the process has had.
fn peak_memory() -> Option<u64> {
    let status = SysRoot::real().text("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * KIB)
}

fn view(result: &FleetSimulation) -> View {
    let span = |ns: u64| Cell::latency(ns);
    let cells: Vec<(&str, Cell)> = vec![
        ("records", Cell::count(result.ranks.into())),
        ("size of the records", Cell::bytes(result.records_bytes)),
        ("generated in (not counted)", span(result.generate_ns)),
        ("read and merged in", span(result.merge_ns)),
        ("assessed in", span(result.assess_ns)),
        ("text, JSON, CSV and page in", span(result.report_ns)),
        ("merged and reported in", span(result.merge_ns + result.assess_ns + result.report_ns)),
        ("size of the merged record", Cell::bytes(result.merged_bytes)),
        ("size of the page", Cell::bytes(result.page_bytes)),
        ("most memory", result.peak_memory_bytes.map(Cell::bytes).into()),
        ("I/Os of the records", Cell::count(result.ios)),
        ("I/Os of the merged record", Cell::count(result.merged_ios)),
        ("findings", Cell::count(result.findings as u64)),
    ];
    let row = |(name, cell): &(&str, Cell)| Row::new([Cell::from(*name), cell.clone()]);
    let data = Table::new(["name", "value"].map(Column::left), cells.iter().map(row));
    let mut view = View { data, ..View::default() };
    let figures = cells.into_iter().map(|(name, cell)| KeyFigure::new(name, cell)).collect();
    view.push("", [Block::KeyFigures(figures)]);
    view
}
