//! What a page has figures of: the tests of a run, or the jobs of a job file.

use fathom_analysis::pattern::block_name;
use fathom_record::{ActivityKind, ReportEntry, RunRecord, TestRecord, TestStatus, TestSummary, entries};

use crate::run_view;
use crate::view::{Block, Cell, Column, Row, Table};

/// The complete tests with their names; of fio's job file its entries, as fio reports them.
pub(super) fn measured(record: &RunRecord) -> Vec<(String, TestSummary)> {
    let tests = record.tests.iter().filter(|test| test.status == TestStatus::Complete);
    let parts: Vec<(String, TestSummary)> = match record.header.activity.kind() {
        // Only tests know the time that their hosts have in common.
        ActivityKind::Fio if record.header.fleet.is_none() => tests.flat_map(of_entries).collect(),
        _ => tests.map(|test| (run_view::id(test).to_owned(), TestSummary::new(test))).collect(),
    };
    parts.into_iter().filter(|(_, summary)| summary.total.is_some()).collect()
}

fn of_entries(test: &TestRecord) -> Vec<(String, TestSummary)> {
    entries(test).iter().map(|entry| (entry.job.name.clone(), summary(entry))).collect()
}

/// The figures of one entry.
fn summary(entry: &ReportEntry) -> TestSummary {
    TestSummary::new(&TestRecord { jobs: vec![entry.job.clone()], ..TestRecord::default() })
}

/// A row for each entry of fio's job file; none where there is only one.
pub(super) fn jobs(record: &RunRecord) -> Option<Block> {
    if record.header.activity.kind() != ActivityKind::Fio || record.header.fleet.is_some() {
        return None;
    }
    let entries: Vec<ReportEntry> = record.tests.iter().flat_map(entries).collect();
    let columns = [
        Column::left("job"),
        Column::left("rw"),
        Column::right("block"),
        Column::right("QD"),
        Column::right("workers"),
        Column::right("read IOPS"),
        Column::right("write IOPS"),
        Column::right("MiB/s"),
        Column::right("mean"),
        Column::right("p50"),
        Column::right("p99"),
        Column::right("max"),
    ];
    (entries.len() > 1).then(|| Block::Table(Table::new(columns, entries.iter().map(row))))
}

fn row(entry: &ReportEntry) -> Row {
    let summary = summary(entry);
    let largest = entry.job.largest_blocks();
    let total = summary.total.clone().unwrap_or_default();
    let latency = total.latency();
    let ns = |value: Option<u64>| -> Cell { value.map(Cell::latency).into() };
    Row::new([
        entry.job.name.as_str().into(),
        entry.job.rw().into(),
        block_name(largest.read.max(largest.write).max(largest.trim)).into(),
        Cell::count(entry.job.iodepth().into()),
        Cell::count(entry.workers.into()),
        summary.read.as_ref().map(|op| Cell::iops(op.iops)).into(),
        summary.write.as_ref().map(|op| Cell::iops(op.iops)).into(),
        summary.total.as_ref().map(|op| Cell::mebibytes(op.bytes_per_second)).into(),
        latency.mean.map(Cell::mean_latency).into(),
        ns(latency.p50),
        ns(latency.p99),
        ns(latency.max),
    ])
}
