//! The values of a surface: a row for each point, rate, probe, row of the file benchmark, and range that a scan found.

use fathom_analysis::surface::file::{FileRow, FileRowKind};
use fathom_analysis::surface::point::{State, SurfacePoint};
use fathom_analysis::surface::scan::Scan;
use fathom_analysis::surface::{SingleAccess, Surface, SurfaceRate};

use crate::run_view::{LATENCY_COLUMNS, latency_cells};
use crate::view::{Cell, Column, Row, Table};

/// What a row has of these; the rest is empty.
#[derive(Default)]
struct SurfaceRow {
    part: &'static str,
    offset: Option<u64>,
    bytes: Option<u64>,
    rw: Option<&'static str>,
    block_size: Option<u64>,
    iodepth: Option<u32>,
    state: &'static str,
    reason: Option<String>,
    iops: Option<f64>,
    bytes_per_second: Option<f64>,
    elapsed_ns: Option<u64>,
    measured_ns: Option<u64>,
    stalled_ns: Option<u64>,
    errors: Option<u64>,
    errno: Option<i32>,
    lat_ns: Option<u64>,
    repeated_lat_ns: Option<u64>,
    latency: [Cell; LATENCY_COLUMNS.len()],
}

const COLUMNS: [&str; 17] = [
    "part",
    "offset_bytes",
    "length_bytes",
    "rw",
    "block_size_bytes",
    "iodepth",
    "state",
    "reason",
    "iops",
    "bytes_per_second",
    "elapsed_ns",
    "measured_ns",
    "stalled_ns",
    "errors",
    "errno",
    "lat_ns",
    "repeated_lat_ns",
];

pub(super) fn data(surface: &Surface) -> Table {
    let mut rows: Vec<SurfaceRow> = surface.points.iter().map(point).collect();
    rows.extend(surface.saturated_rate.iter().flat_map(|saturated| {
        saturated.points.iter().map(|rate| SurfaceRow {
            iodepth: saturated.iodepth,
            block_size: saturated.block_size_bytes,
            ..rate_row("saturated", rate)
        })
    }));
    rows.extend(surface.burst_rate.iter().map(|rate| rate_row("burst", rate)));
    rows.extend(surface.probes.iter().map(probe));
    rows.extend(surface.file_benchmark.iter().map(file));
    rows.extend(surface.scan.iter().flat_map(scan));
    let columns = COLUMNS.map(Column::right).into_iter().chain(LATENCY_COLUMNS).collect::<Vec<_>>();
    Table::new(columns, rows.into_iter().map(row))
}

fn row(row: SurfaceRow) -> Row {
    let bytes = |bytes: Option<u64>| Cell::from(bytes.map(Cell::bytes));
    let ns = |ns: Option<u64>| Cell::from(ns.map(Cell::latency));
    let count = |count: Option<u64>| Cell::from(count.map(Cell::count));
    let cells = [
        row.part.into(),
        bytes(row.offset),
        bytes(row.bytes),
        row.rw.into(),
        bytes(row.block_size),
        count(row.iodepth.map(u64::from)),
        row.state.into(),
        row.reason.into(),
        row.iops.map(Cell::iops).into(),
        row.bytes_per_second.map(Cell::mebibytes).into(),
        ns(row.elapsed_ns),
        ns(row.measured_ns),
        ns(row.stalled_ns),
        count(row.errors),
        row.errno.map(|errno| errno.to_string()).into(),
        ns(row.lat_ns),
        ns(row.repeated_lat_ns),
    ];
    Row::new(cells.into_iter().chain(row.latency))
}

fn point(point: &SurfacePoint) -> SurfaceRow {
    let (stalled_ns, reason) = match &point.state {
        State::Stalled { stalled_ns } => (Some(*stalled_ns), None),
        State::Failed { reason } => (None, Some(reason.clone())),
        State::Measured | State::Unwritten | State::Cached => (None, None),
    };
    SurfaceRow {
        part: "transfer",
        offset: Some(point.offset_bytes),
        bytes: Some(point.bytes),
        state: point.state.name(),
        reason,
        bytes_per_second: point.bytes_per_second,
        elapsed_ns: Some(point.elapsed_ns),
        measured_ns: Some(point.measured_ns),
        stalled_ns,
        errors: Some(point.errors),
        ..SurfaceRow::default()
    }
}

fn rate_row(part: &'static str, rate: &SurfaceRate) -> SurfaceRow {
    SurfaceRow {
        part,
        offset: Some(rate.offset_bytes),
        reason: rate.reason.clone(),
        bytes_per_second: rate.bytes_per_second,
        stalled_ns: rate.stalled_ns,
        ..SurfaceRow::default()
    }
}

fn probe(probe: &SingleAccess) -> SurfaceRow {
    SurfaceRow {
        part: "access",
        offset: Some(probe.offset_bytes),
        lat_ns: Some(probe.lat_ns),
        elapsed_ns: Some(probe.elapsed_ns),
        ..SurfaceRow::default()
    }
}

fn file(row: &FileRow) -> SurfaceRow {
    let part = match row.test.kind {
        FileRowKind::Sequential => "file-sequential",
        FileRowKind::Single => "file-random-single",
        FileRowKind::Multi => "file-random-multi",
        FileRowKind::Block => "file-block-size",
    };
    SurfaceRow {
        part,
        rw: Some(row.test.rw.name()),
        block_size: Some(row.test.block_size_bytes),
        iodepth: Some(row.test.iodepth),
        state: row.status.name(),
        reason: row.reason.clone(),
        iops: row.iops,
        bytes_per_second: row.bytes_per_second,
        stalled_ns: row.stalled_ns,
        latency: latency_cells(&row.lat_ns),
        ..SurfaceRow::default()
    }
}

fn scan(scan: &Scan) -> Vec<SurfaceRow> {
    let unreadable = scan.unreadable.iter().map(|range| SurfaceRow {
        part: "unreadable",
        offset: Some(range.offset_bytes),
        bytes: Some(range.length_bytes),
        state: if range.is_exact { "exact" } else { "not exact" },
        errno: Some(range.errno),
        ..SurfaceRow::default()
    });
    let slow = scan.slow.iter().map(|block| SurfaceRow {
        part: "slow",
        offset: Some(block.offset_bytes),
        bytes: Some(block.length_bytes),
        lat_ns: Some(block.lat_ns),
        repeated_lat_ns: block.repeated_lat_ns,
        ..SurfaceRow::default()
    });
    unreadable.chain(slow).collect()
}
