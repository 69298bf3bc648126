//! Each host of a test beside the others.

use fathom_analysis::fleet::{FleetTestAssessment, HostResult};
use fathom_record::TestStatus;

use crate::view::{Cell, Column, Row, Table, Tone};

/// Hosts of one table; of more the slowest and the quickest are shown.
const MAX_ROWS: usize = 40;
const SLOWEST: usize = 20;
const QUICKEST: usize = 10;

const COLUMNS: [Column; 12] = [
    Column::left("host"),
    Column::right("IOPS").takes_remark(),
    Column::right("of median").dispensable(8),
    Column::right("MiB/s").dispensable(7),
    Column::right("mean").dispensable(5),
    Column::right("p50"),
    Column::right("p99"),
    Column::right("max").dispensable(4),
    Column::right("errors").dispensable(6),
    Column::right("start").dispensable(3),
    Column::right("CPU").dispensable(2),
    Column::right("steal").dispensable(1),
];

/// The hosts of a test, and what is said of those that are not shown.
pub(super) fn table(test: &FleetTestAssessment) -> (Table, Option<String>) {
    let median = test.variation.iops.map(|iops| iops.median);
    let measured = test.hosts.iter().filter(|host| host.outcome.end_ns > 0);
    let first_ns = measured.map(|host| host.outcome.start_ns).min().unwrap_or(0);
    let (shown, note) = shown(&test.hosts);
    let rows = shown.into_iter().map(|host| row(host, median, first_ns));
    (Table::new(COLUMNS, rows).without_empty(), note)
}

/// All hosts in their order, or where they are many the slowest and the quickest.
fn shown(hosts: &[HostResult]) -> (Vec<&HostResult>, Option<String>) {
    if hosts.len() <= MAX_ROWS {
        return (hosts.iter().collect(), None);
    }
    let is_complete = |host: &&HostResult| host.outcome.status == TestStatus::Complete;
    let mut by_rate: Vec<&HostResult> = hosts.iter().collect();
    by_rate.sort_by(|one, other| {
        let key = |host: &&HostResult| (is_complete(host), host.outcome.iops);
        key(one).partial_cmp(&key(other)).unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut shown = by_rate[..SLOWEST].to_vec();
    shown.extend(&by_rate[by_rate.len() - QUICKEST..]);
    let note = format!(
        "The {SLOWEST} slowest and the {QUICKEST} quickest of {} hosts; --format csv has all.",
        fathom_model::units::grouped(hosts.len() as u64)
    );
    (shown, Some(note))
}

fn row(host: &HostResult, median: Option<f64>, first_ns: u64) -> Row {
    let outcome = &host.outcome;
    let latency = &outcome.lat_ns;
    let rate = Some(outcome.iops).filter(|iops| *iops > 0.0);
    let share = rate.zip(median).filter(|(_, median)| *median > 0.0).map(|(iops, median)| iops / median);
    let ns = |value: Option<u64>| Cell::from(value.map(Cell::latency));
    let cells: [Cell; 12] = [
        host.host.as_str().into(),
        rate.map(Cell::iops).into(),
        share.map(Cell::percent).into(),
        rate.map(|_| Cell::mebibytes(outcome.bytes_per_second)).into(),
        latency.mean.map(Cell::mean_latency).into(),
        ns(latency.p50),
        ns(latency.p99),
        ns(latency.max),
        Some(outcome.failed).filter(|failed| *failed > 0).map(Cell::count).into(),
        Some(outcome.end_ns).filter(|end| *end > 0).map(|_| start(outcome.start_ns - first_ns)).into(),
        outcome.cpu_busy_fraction.map(Cell::percent).into(),
        outcome.cpu_steal_fraction.map(Cell::percent).into(),
    ];
    let (tone, remark) = match (outcome.status, &outcome.reason) {
        (TestStatus::Complete, _) => (Tone::Normal, None),
        (TestStatus::Skipped, reason) => (Tone::Dim, Some(ended("skipped", reason.as_deref()))),
        (status, reason) => (Tone::Alarm, Some(ended(status.name(), reason.as_deref()))),
    };
    Row { cells: cells.into(), tone, remark, ..Row::default() }
}

fn ended(status: &str, reason: Option<&str>) -> String {
    reason.map_or_else(|| status.to_owned(), |reason| format!("{status}: {reason}"))
}

/// A start after that of the first host: `+1.25 s`.
fn start(ns: u64) -> Cell {
    let text = match ns {
        ..1_000_000_000 => format!("+{} ms", ns / 1_000_000),
        _ => format!("+{}", fathom_model::units::duration(fathom_model::Nanos(ns))),
    };
    Cell::integer(ns, text)
}
