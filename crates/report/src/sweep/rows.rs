//! The points and offered rates of a sweep in the order they were measured.

use fathom_analysis::sweep::offered::OfferedPoint;
use fathom_analysis::sweep::point::SweepPoint;
use fathom_record::{RunHeader, TestRecord, TestStatus};

use crate::view::{Cell, Column, Row, Table, decimal};

/// Room for `randwrite-256k-d256-x16`.
const NAME: u8 = 24;

const COLUMNS: [Column; 6] = [
    Column::left("test").reserved(NAME),
    Column::right("IOPS").takes_remark().reserved(9),
    Column::right("MiB/s").reserved(8),
    Column::right("mean"),
    Column::right("p99").dispensable(1),
    Column::right("mean QD").dispensable(0),
];

pub(super) fn table(_header: &RunHeader, tests: &[TestRecord]) -> Table {
    let rows = tests.iter().filter_map(row);
    Table { reserves: true, ..Table::new(COLUMNS, rows) }
}

fn row(test: &TestRecord) -> Option<Row> {
    let (rates, latency, depth) = if let Some(offered) = OfferedPoint::of(test) {
        let bytes = offered.iops * offered.offer.block_size_bytes as f64;
        ((offered.iops, bytes), offered.response_ns, None)
    } else {
        let point = SweepPoint::of(test)?;
        ((point.iops, point.bytes_per_second), point.lat_ns, point.queue_depth_mean)
    };
    let is_measured = rates.0 > 0.0 && test.status != TestStatus::Failed;
    let cells = [
        test.id.as_str().into(),
        Cell::iops(rates.0),
        Cell::mebibytes(rates.1),
        latency.mean.map(Cell::mean_latency).into(),
        latency.p99.map(Cell::latency).into(),
        depth.map(|depth| Cell::real(depth, decimal(depth))).into(),
    ];
    let cells = cells.into_iter().take(if is_measured { COLUMNS.len() } else { 1 });
    Some(Row::ended(cells, test))
}
