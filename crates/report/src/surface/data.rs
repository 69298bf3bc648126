//! The values of a surface: a row for each point, rate, probe, row of the file benchmark, and range that a scan found.

use fathom_analysis::surface::file::{FileRow, FileRowKind};
use fathom_analysis::surface::point::{State, SurfacePoint};
use fathom_analysis::surface::scan::Scan;
use fathom_analysis::surface::{SingleAccess, Surface, SurfaceRate};

use crate::run_view::{LATENCY_COLUMNS, latency_cells};
use crate::view::{Cell, Table};

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
    let bytes = |bytes: Option<u64>| Cell::from(bytes.map(Cell::bytes));
    let ns = |ns: Option<u64>| Cell::from(ns.map(Cell::latency));
    let mut table = Table::data::<&SurfaceRow>(
        &[
            ("part", &|row| row.part.into()),
            ("offset_bytes", &|row| bytes(row.offset)),
            ("length_bytes", &|row| bytes(row.bytes)),
            ("rw", &|row| row.rw.into()),
            ("block_size_bytes", &|row| bytes(row.block_size)),
            ("iodepth", &|row| row.iodepth.map(|depth| Cell::count(depth.into())).into()),
            ("state", &|row| row.state.into()),
            ("reason", &|row| row.reason.as_deref().into()),
            ("iops", &|row| row.iops.map(Cell::iops).into()),
            ("bytes_per_second", &|row| row.bytes_per_second.map(Cell::mebibytes).into()),
            ("elapsed_ns", &|row| ns(row.elapsed_ns)),
            ("measured_ns", &|row| ns(row.measured_ns)),
            ("stalled_ns", &|row| ns(row.stalled_ns)),
            ("errors", &|row| row.errors.map(Cell::count).into()),
            ("errno", &|row| row.errno.map(|errno| errno.to_string()).into()),
            ("lat_ns", &|row| ns(row.lat_ns)),
            ("repeated_lat_ns", &|row| ns(row.repeated_lat_ns)),
        ],
        &rows,
    );
    table.columns.extend(LATENCY_COLUMNS);
    table.rows.iter_mut().zip(rows).for_each(|(row, of)| row.cells.extend(of.latency));
    table
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
