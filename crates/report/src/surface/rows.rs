//! The rates of a surface in the order they were measured, and the places that could not be; the plots show the others.

use fathom_analysis::surface::assess;
use fathom_analysis::surface::point::State;
use fathom_record::{RunHeader, RunRecord, TestRecord, TestStatus};

use crate::view::{Cell, Column, Row, Table};

/// Room for `sequential write 128k, QD 32`.
const NAME: u8 = 28;

const COLUMNS: [Column; 4] = [
    Column::left("measurement").reserved(NAME),
    Column::right("MiB/s").takes_remark().reserved(8),
    Column::right("IOPS").reserved(9),
    Column::right("access time"),
];

pub(super) fn table(header: &RunHeader, tests: &[TestRecord]) -> Table {
    let rows = tests.iter().filter_map(|test| row(header, test));
    Table { reserves: true, ..Table::new(COLUMNS, rows) }
}

/// The row of a rate, of a row of the file benchmark or of a place that was not measured; `None` of others, which the plots show.
fn row(header: &RunHeader, test: &TestRecord) -> Option<Row> {
    let run = RunRecord { header: header.clone(), tests: vec![test.clone()], ..RunRecord::default() };
    let surface = assess(&run);
    let (point, file) = (surface.points.first(), surface.file_benchmark.first());
    let saturated = surface.saturated_rate.as_ref().and_then(|rate| rate.points.first());
    let rate = saturated.or(surface.burst_rate.as_ref());
    let access = surface.access_lat_ns.mean;
    if point.is_none() && file.is_none() && rate.is_none() && access.is_none() {
        return None;
    }
    let state = point.map(|point| &point.state).filter(|_| test.status == TestStatus::Complete);
    if state == Some(&State::Measured) {
        return None;
    }
    let bytes = rate.map_or_else(|| file?.bytes_per_second, |rate| rate.bytes_per_second);
    let cells = [
        test.title.as_str().into(),
        bytes.map(Cell::mebibytes).into(),
        file.and_then(|row| row.iops).map(Cell::iops).into(),
        access.map(Cell::mean_latency).into(),
    ];
    let row = Row::ended(cells, test);
    let remark = match state {
        None | Some(State::Measured) => row.remark,
        Some(State::Failed { reason }) => Some(format!("failed: {reason}")),
        Some(state) => Some(state.name().to_owned()),
    };
    Some(Row { remark, ..row })
}
