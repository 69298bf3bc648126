//! The view of a run of several hosts.

use std::collections::BTreeSet;

use fathom_analysis::Analysis;
use fathom_analysis::fleet::{
    FleetAssessment, FleetTestAssessment, HostResult, OutlierTest, SharedLimitVerdict, Variation, assess,
    rank_ranges,
};
use fathom_analysis::verdict::VolumeVerdict;
use fathom_model::Nanos;
use fathom_model::text::listed;
use fathom_model::units::{self, grouped};
use fathom_record::{LatencySummary, RunRecord, TestRecord, TestStatus, TestSummary};
use serde_json::{Value, json};

use super::hosts;
use crate::document::object;
use crate::run_view::{self, LATENCY_COLUMNS, latency_members};
use crate::verdict;
use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, Tone, View, ViewHead};

/// Ranges of missing ranks that are listed.
const MAX_RANGES: usize = 12;
/// Targets that are named.
const MAX_TARGETS: usize = 4;

/// Everything that a run of several hosts shows; the fio command of each test where `show_fio` says so.
pub fn view(record: &RunRecord, show_fio: bool) -> View {
    let mut view = run_view::of_run(record);
    let Some(assessment) = assess(record) else { return view };
    let summaries: Vec<TestSummary> = record.tests.iter().map(TestSummary::new).collect();
    view.head =
        view.head.map(|head| ViewHead { target: targets(&assessment), host: machines(record), ..head });
    view.data = data(&assessment, &summaries);
    let tested = || record.tests.iter().zip(&assessment.tests).zip(&summaries);
    let rows = tested().map(|((test, assessed), summary)| total(test, assessed, summary));
    verdict::push(&VolumeVerdict::of_tests(&Analysis::of(record)), record, &mut view);
    view.push("", [Block::Table(Table::new(TOTAL_COLUMNS, rows).without_empty())]);
    view.sections.extend(beside(record).sections);
    let notes: Vec<String> = record.header.notes.iter().cloned().chain(test_notes(record)).collect();
    view.push_full("Notes", [Block::Notes(notes)]);
    if show_fio {
        view.push("Equivalent fio commands", [run_view::fio_commands(record)]);
    }
    view
}

/// What stands beside the totals: who took part, what was found, how the hosts vary, and each of them.
pub fn beside(record: &RunRecord) -> View {
    let mut view = View::default();
    let Some(assessment) = assess(record) else { return view };
    view.push_full("Fleet", [Block::KeyFigures(figures(&assessment)), Block::Table(times(&assessment))]);
    view.push_full("Findings", [run_view::findings(record)]);
    let rows = assessment.tests.iter().flat_map(|test| variations(test, assessment.tests.len()));
    view.push_full(
        "Variation between hosts",
        [Block::Table(Table::new(VARIATION_COLUMNS, rows).without_empty())],
    );
    for test in &assessment.tests {
        let title = match assessment.tests.len() {
            1 => "Hosts".to_owned(),
            _ => format!("Hosts: {}", test.id),
        };
        let (table, note) = hosts::table(test);
        view.push_full(title, [Block::Table(table), Block::Notes(note.into_iter().collect())]);
    }
    view.push_full("Not determined", [Block::Notes(undetermined(&assessment))]);
    view
}

/// `/dev/nvme1n1`, `64 hosts`.
fn targets(assessment: &FleetAssessment) -> Vec<String> {
    let names: BTreeSet<&str> = assessment.hosts.iter().map(|host| host.target.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let named = listed(&names, MAX_TARGETS);
    // A simulated volume belongs to its rank, whatever its name.
    let measured = || assessment.hosts.iter().filter(|host| host.device != host.target);
    let devices: BTreeSet<&str> = measured().map(|host| host.device.as_str()).collect();
    let is_shared = devices.len() == 1 && !devices.contains("") && measured().count() > 1;
    let mut parts = vec![named, hosts_text(assessment.merged)];
    parts.extend(is_shared.then(|| "one device".to_owned()));
    parts.retain(|part| !part.is_empty());
    parts
}

fn hosts_text(count: usize) -> String {
    if count == 1 { "1 host".to_owned() } else { format!("{} hosts", grouped(count as u64)) }
}

/// The program, and what all hosts have in common.
fn machines(record: &RunRecord) -> Vec<String> {
    let header = &record.header;
    let same = |of: fn(&fathom_record::HostRecord) -> String| {
        let first = header.hosts.first().map(of).filter(|text| !text.is_empty())?;
        header.hosts.iter().all(|host| of(host) == first).then_some(first)
    };
    let mut parts = Vec::new();
    if !header.tool_version.is_empty() {
        parts.push(format!("fathom {}", header.tool_version));
    }
    parts.extend(same(|host| host.kernel.clone()).map(|kernel| format!("Linux {kernel}")));
    parts.extend(same(|host| match host.cpus_allowed.max(host.cpus_online) {
        0 => String::new(),
        1 => "1 CPU each".to_owned(),
        cpus => format!("{cpus} CPUs each"),
    }));
    parts
}

const TOTAL_COLUMNS: [Column; 9] = [
    Column::left("test"),
    Column::right("hosts").dispensable(5),
    Column::right("IOPS").takes_remark(),
    Column::right("CI%").dispensable(2),
    Column::right("MiB/s"),
    Column::right("mean").dispensable(1),
    Column::right("p50"),
    Column::right("p99"),
    Column::right("p99.9").dispensable(3),
];

fn total(test: &TestRecord, assessed: &FleetTestAssessment, summary: &TestSummary) -> Row {
    let total = summary.total.as_ref();
    let none = LatencySummary::default();
    let latency = total.map_or(&none, |total| total.latency());
    let ns = |value: Option<u64>| Cell::from(value.map(Cell::latency));
    let cells: [Cell; 9] = [
        test.id.as_str().into(),
        Cell::count(assessed.hosts.len() as u64),
        assessed.iops.map(Cell::iops).into(),
        summary
            .stability
            .map(|stability| stability.mean_ci95_fraction)
            .map(|half| Cell::real(half, format!("{:.1}", half * 100.0)))
            .into(),
        assessed.bytes_per_second.map(Cell::mebibytes).into(),
        latency.mean.map(Cell::mean_latency).into(),
        ns(latency.p50),
        ns(latency.p99),
        ns(latency.p999),
    ];
    let row = Row { cells: cells.into(), ..Row::default() };
    let is_of_figures = test.jobs.is_empty() && test.observed.is_none();
    match (total.is_some(), test.status) {
        (false, _) if is_of_figures && assessed.variation.iops.is_some() => {
            Row { remark: Some("no total: only the figures of each host are known".to_owned()), ..row }
        }
        (false, status) => {
            let reason = test.reason.clone().unwrap_or_else(|| "no I/O completed".to_owned());
            Row { tone: Tone::Alarm, remark: Some(format!("{}: {reason}", status.name())), ..row }
        }
        (true, TestStatus::Failed | TestStatus::Incomplete) => row.toned(Tone::Alarm),
        _ => row,
    }
}

/// Who took part, and how well their times agree.
fn figures(assessment: &FleetAssessment) -> Vec<KeyFigure> {
    let lacking = assessment.unreadable.len().max(assessment.missing.len());
    let expected =
        assessment.ranks.map_or(assessment.merged + lacking, |ranks| (ranks as usize).max(assessment.merged));
    let mut who = format!("{} of {} merged", grouped(assessment.merged as u64), grouped(expected as u64));
    if !assessment.missing.is_empty() {
        who += &format!("; missing: {}", rank_ranges(&assessment.missing, MAX_RANGES));
    }
    for unreadable in assessment.unreadable.iter().take(MAX_TARGETS) {
        who += &format!("; {}: {}", unreadable.source, unreadable.reason);
    }
    if assessment.unreadable.len() > MAX_TARGETS {
        who += &format!("; {} more unreadable", assessment.unreadable.len() - MAX_TARGETS);
    }
    let is_whole =
        assessment.missing.is_empty() && assessment.unreadable.is_empty() && assessment.merged == expected;
    let label = if assessment.ranks.is_some() { "Ranks" } else { "Records" };
    let tone = if is_whole { Tone::Normal } else { Tone::Alarm };
    let mut figures = vec![KeyFigure { tone, ..KeyFigure::new(label, who) }];
    if let [test] = assessment.tests.as_slice()
        && is_timed(test)
    {
        figures.push(KeyFigure::new("Start spread", span(test.start_spread_ns)));
        let common = match test.window_ns {
            0 => NO_COMMON_TIME.to_owned(),
            ns => format!("{}; {} of the I/Os lie outside", span(ns), outside(test).text),
        };
        figures.push(KeyFigure::new("Common time", common));
    }
    let clock = &assessment.clock;
    let clocks = match (clock.error_ns, &clock.reason) {
        (Some(0), Some(reason)) => format!("one clock: {reason}"),
        (Some(ns), _) => format!("at most {} apart", units::latency(ns)),
        (None, Some(reason)) => format!("unknown: {reason}"),
        (None, None) => "unknown".to_owned(),
    };
    figures.push(KeyFigure::new("Clock error", clocks));
    figures
}

/// What is said of a test in which not all hosts measured at the same time.
const NO_COMMON_TIME: &str = "none: there is no rate of all hosts";

/// The times of a test are known: its hosts have courses, or started apart.
fn is_timed(test: &FleetTestAssessment) -> bool {
    test.start_spread_ns > 0 || test.hosts.iter().any(|host| !host.outcome.course.is_empty())
}

fn outside(test: &FleetTestAssessment) -> Cell {
    Cell::percent(test.outside_fraction)
}

const TIME_COLUMNS: [Column; 4] = [
    Column::left("test"),
    Column::right("start spread"),
    Column::right("common time"),
    Column::right("I/Os outside"),
];

/// The times of several tests.
fn times(assessment: &FleetAssessment) -> Table {
    let row = |test: &FleetTestAssessment| {
        let cells: [Cell; 4] = [
            test.id.as_str().into(),
            Cell::integer(test.start_spread_ns, span(test.start_spread_ns)),
            match test.window_ns {
                0 => "none".into(),
                ns => Cell::integer(ns, span(ns)),
            },
            Some(test).filter(|test| test.window_ns > 0).map(outside).into(),
        ];
        Row::new(cells)
    };
    let timed = assessment.tests.iter().filter(|test| is_timed(test));
    let rows: Vec<Row> = if assessment.tests.len() > 1 { timed.map(row).collect() } else { Vec::new() };
    Table::new(TIME_COLUMNS, rows)
}

/// `850 ms`, `1 min 5 s`.
fn span(ns: u64) -> String {
    if ns < 1_000_000_000 { format!("{} ms", ns / 1_000_000) } else { units::duration(Nanos(ns)) }
}

const VARIATION_COLUMNS: [Column; 7] = [
    Column::left("test"),
    Column::left("figure"),
    Column::right("min"),
    Column::right("median"),
    Column::right("max"),
    Column::right("CV"),
    Column::right("hosts").dispensable(1),
];

/// A figure, how it varies over hosts, and the cell for a value of it.
type VariationRow = (&'static str, Option<Variation>, fn(f64) -> Cell);

fn variations(test: &FleetTestAssessment, tests: usize) -> Vec<Row> {
    let variation = &test.variation;
    let kinds: [VariationRow; 4] = [
        ("IOPS", variation.iops, Cell::iops),
        ("bandwidth", variation.bytes_per_second, Cell::rate),
        ("p50 latency", variation.lat_p50_ns, Cell::mean_latency),
        ("p99 latency", variation.lat_p99_ns, Cell::mean_latency),
    ];
    let rows = kinds.into_iter().filter_map(|(name, variation, cell)| Some((name, variation?, cell)));
    rows.enumerate()
        .map(|(place, (name, of, cell))| {
            let test = if tests > 1 { test.id.as_str() } else { "" };
            let cells: [Cell; 7] = [
                test.into(),
                name.into(),
                cell(of.min),
                cell(of.median),
                cell(of.max),
                Cell::percent(of.cv),
                Cell::count(of.count as u64),
            ];
            Row { begins_group: place == 0, ..Row::new(cells) }
        })
        .collect()
}

/// What the tests cannot tell, and why.
fn undetermined(assessment: &FleetAssessment) -> Vec<String> {
    let mut notes = Vec::new();
    for test in &assessment.tests {
        let mut note = |what: &str, reason: &str| {
            let of_test = if assessment.tests.len() > 1 { format!("{}: ", test.id) } else { String::new() };
            notes.push(format!("{of_test}{what}: inconclusive ({}).", reason.trim_end_matches('.')));
        };
        if let (OutlierTest::None, Some(reason)) = (test.outliers.test, &test.outliers.reason) {
            note("outliers", reason);
        }
        if let Some(reason) = &test.stragglers.reason {
            note("stragglers", reason);
        }
        if test.shared_limit.verdict == SharedLimitVerdict::Inconclusive {
            note("shared limit", &test.shared_limit.reason);
        }
    }
    notes
}

fn test_notes(record: &RunRecord) -> Vec<String> {
    let of_test = |test: &TestRecord| {
        let notes: Vec<String> = test.notes.iter().map(|note| format!("{}: {note}", test.id)).collect();
        notes
    };
    record.tests.iter().flat_map(of_test).collect()
}

/// All hosts together, and each of them.
fn data(assessment: &FleetAssessment, summaries: &[TestSummary]) -> Table {
    const COLUMNS: &str = "test,host,rank,status,iops,bytes_per_second,ios,bytes,failed,start_ns,measured_ns";
    let mut rows: Vec<Value> = Vec::new();
    for (test, summary) in assessment.tests.iter().zip(summaries) {
        let total = summary.total.as_ref();
        let all = json!({
            "test": test.id,
            "host": "all",
            "status": worst(test),
            "iops": test.iops,
            "bytes_per_second": test.bytes_per_second,
            "ios": total.map_or(0, |total| total.ios),
            "bytes": total.map_or(0, |total| total.bytes),
            "failed": test.hosts.iter().map(|host| host.outcome.failed).sum::<u64>(),
            "start_ns": test.hosts.iter().map(|host| host.outcome.start_ns).max().unwrap_or(0),
            "measured_ns": test.window_ns,
        });
        let latency = total.map(|total| total.latency().clone()).unwrap_or_default();
        rows.push(object([all, latency_members(&latency)]));
        rows.extend(test.hosts.iter().map(|HostResult { host, rank, outcome }| {
            let one = json!({
                "test": test.id,
                "host": host,
                "rank": rank,
                "status": outcome.status,
                "iops": outcome.iops,
                "bytes_per_second": outcome.bytes_per_second,
                "ios": outcome.ios.iter().sum::<u64>(),
                "bytes": outcome.bytes.iter().sum::<u64>(),
                "failed": outcome.failed,
                "start_ns": outcome.start_ns,
                "measured_ns": outcome.measured_ns(),
            });
            object([one, latency_members(&outcome.lat_ns)])
        }));
    }
    Table::of_documents(&[COLUMNS, LATENCY_COLUMNS], rows)
}

/// How the test ended where it ended worst.
fn worst(test: &FleetTestAssessment) -> TestStatus {
    let order = [TestStatus::Failed, TestStatus::Incomplete, TestStatus::Complete];
    let is_there = |status: &TestStatus| test.hosts.iter().any(|host| host.outcome.status == *status);
    order.into_iter().find(is_there).unwrap_or(TestStatus::Skipped)
}
