//! What a page has figures of: the tests of a run, or the jobs of a job file.

use fathom_analysis::pattern::block_name;
use fathom_analysis::{Analysis, RecordRow};
use fathom_record::{
    ActivityKind, Observed, OpSummary, ReportEntry, RunRecord, TestRecord, TestStatus, TestSummary, entries,
};

use super::course;
use crate::bench::view::{row_latency, shape};
use crate::columns::capital;
use crate::run_view;
use crate::view::{Block, Cell, Column, Row, Table, TestDetails, TestRows};

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

/// A row for each of several tests, with its charts; none where a test has no rates.
pub(super) fn tests(analysis: &Analysis<'_>, drawn: &[&TestRecord]) -> Option<TestRows> {
    let record = analysis.record;
    let all: Vec<RecordRow<'_>> = analysis.tests().to_vec();
    let of =
        |test: &&TestRecord| all.iter().find(|row| row.test.id == test.id && row.summary.total.is_some());
    let rows: Vec<&RecordRow<'_>> = drawn.iter().map(of).collect::<Option<_>>()?;
    if rows.len() < 2 {
        return None;
    }
    let latency = |row: &RecordRow<'_>| row_latency(&row.summary);
    let name = |row: &RecordRow<'_>| match &row.test.observed {
        Some(Observed::Forecast(forecast)) => forecast.target.clone(),
        _ => capital(run_view::name(&row.test)),
    };
    let table = Table::of::<RecordRow<'_>>(
        &[
            (Column::left("test"), &|row| name(row).into()),
            (Column::left("I/O").dispensable(0), &|row| shape(&row.test.jobs).into()),
            (Column::right("IOPS"), &|row| row.summary.total.as_ref().map(|op| Cell::iops(op.iops)).into()),
            (Column::right("after burst").dispensable(2), &|row| {
                row.duration().after_burst().map(Cell::iops).into()
            }),
            (Column::right("MiB/s").dispensable(3), &|row| {
                row.summary.total.as_ref().map(|op| Cell::mebibytes(op.bytes_per_second)).into()
            }),
            (Column::right("p50").dispensable(1), &|row| latency(row).p50.map(Cell::latency).into()),
            (Column::right("p99"), &|row| latency(row).p99.map(Cell::latency).into()),
        ],
        rows.iter().copied(),
    );
    let ended = |(row, of): (Row, &&RecordRow<'_>)| Row::ended(row.cells, &of.test);
    let table = Table { rows: table.rows.into_iter().zip(&rows).map(ended).collect(), ..table };
    let details = drawn.iter().map(|test| TestDetails {
        course: course::glance(test),
        blocks: super::charts(record, test).into_iter().filter(|block| !block.is_empty()).collect(),
    });
    Some(TestRows { table: table.without_empty(), details: details.collect() })
}

/// A row for each entry of fio's job file; none where there is only one.
pub(super) fn jobs(record: &RunRecord) -> Option<Block> {
    if record.header.activity.kind() != ActivityKind::Fio || record.header.fleet.is_some() {
        return None;
    }
    let entries: Vec<ReportEntry> = record.tests.iter().flat_map(entries).collect();
    let jobs: Vec<Job> = entries.into_iter().map(|entry| Job { summary: summary(&entry), entry }).collect();
    let latency = |job: &Job| job.summary.total.as_ref().map(OpSummary::latency).cloned().unwrap_or_default();
    let table = Table::of::<Job>(
        &[
            (Column::left("job"), &|job| job.entry.job.name.as_str().into()),
            (Column::left("rw"), &|job| job.entry.job.rw().into()),
            (Column::right("block"), &|job| {
                let largest = job.entry.job.largest_blocks();
                block_name(largest.read.max(largest.write).max(largest.trim)).into()
            }),
            (Column::right("QD"), &|job| Cell::count(job.entry.job.iodepth().into())),
            (Column::right("workers"), &|job| Cell::count(job.entry.workers.into())),
            (Column::right("read IOPS"), &|job| {
                job.summary.read.as_ref().map(|op| Cell::iops(op.iops)).into()
            }),
            (Column::right("write IOPS"), &|job| {
                job.summary.write.as_ref().map(|op| Cell::iops(op.iops)).into()
            }),
            (Column::right("MiB/s"), &|job| {
                job.summary.total.as_ref().map(|op| Cell::mebibytes(op.bytes_per_second)).into()
            }),
            (Column::right("mean"), &|job| latency(job).mean.map(Cell::mean_latency).into()),
            (Column::right("p50"), &|job| latency(job).p50.map(Cell::latency).into()),
            (Column::right("p99"), &|job| latency(job).p99.map(Cell::latency).into()),
            (Column::right("max"), &|job| latency(job).max.map(Cell::latency).into()),
        ],
        &jobs,
    );
    (jobs.len() > 1).then_some(Block::Table(table))
}

/// An entry of fio's report with its figures.
struct Job {
    entry: ReportEntry,
    summary: TestSummary,
}
