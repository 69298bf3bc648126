//! The document of `surface --json`: `fathom.surface/1`.

use std::io::{self, Write};

use fathom_analysis::surface::file::{FileRow, FileRowKind};
use fathom_analysis::surface::point::{State, SurfacePoint};
use fathom_analysis::surface::scan::Scan;
use fathom_analysis::surface::{RateSpread, Surface, SurfaceRate};
use fathom_record::{Finding, LatencySummary, RunRecord, TestStatus};
use serde::Serialize;

use crate::run_json::DocumentHead;
use crate::{Style, document};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.surface/1";

#[derive(Serialize)]
struct SurfaceDocument<'a> {
    #[serde(flatten)]
    head: DocumentHead<'a>,
    /// Bytes per second over the points that were measured; null where there is none.
    transfer_rate: Option<SpreadDocument>,
    /// The same with many requests under way; null where it was not measured.
    saturated_rate: Option<SaturatedDocument<'a>>,
    /// Bytes per second; null where it was not measured, or stalled.
    burst_rate: Option<f64>,
    burst: Option<RateDocument<'a>>,
    access_time_ns: &'a LatencySummary,
    /// Share of one CPU.
    cpu_fraction: Option<f64>,
    /// Share of all CPUs, whoever used them.
    machine_busy_fraction: Option<f64>,
    points: Vec<SurfacePointDocument<'a>>,
    probes: Vec<ProbeDocument>,
    /// Null where it was not measured.
    file_benchmark: Option<FileDocument<'a>>,
    /// Null without `--scan`.
    scan: Option<ScanDocument<'a>>,
    findings: &'a [Finding],
}

#[derive(Serialize)]
struct SpreadDocument {
    min: f64,
    max: f64,
    mean: f64,
    median: f64,
    p5: f64,
    /// Standard deviation over the mean.
    cv: f64,
    /// All bytes over all time.
    weighted_mean: f64,
    /// Points it is made of.
    points: usize,
}

#[derive(Serialize)]
struct SaturatedDocument<'a> {
    /// Bytes per second; null where no place has a rate.
    mean: Option<f64>,
    iodepth: Option<u32>,
    block_size_bytes: Option<u64>,
    points: Vec<RateDocument<'a>>,
}

#[derive(Serialize)]
struct RateDocument<'a> {
    offset_bytes: u64,
    /// Null where nothing completed, or a stall is part of it.
    bytes_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stalled_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct SurfacePointDocument<'a> {
    offset_bytes: u64,
    /// As it was counted, also where the place is unwritten or cached; null where it stalled or failed.
    bytes_per_second: Option<f64>,
    /// From the beginning of the surface to that of the point.
    elapsed_ns: u64,
    /// How long was measured.
    measured_ns: u64,
    bytes: u64,
    /// `measured`, `unwritten`, `cached`, `stalled` or `failed`; only the first counts in the transfer rate.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stalled_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "is_none")]
    errors: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

#[derive(Serialize)]
struct ProbeDocument {
    offset_bytes: u64,
    time_ns: u64,
    elapsed_ns: u64,
}

#[derive(Serialize)]
struct FileDocument<'a> {
    sequential: RowPairDocument<'a>,
    random_4k_single: RowPairDocument<'a>,
    random_4k_multi: RowPairDocument<'a>,
    block_sizes: Vec<SurfaceBlockDocument<'a>>,
}

#[derive(Serialize)]
struct RowPairDocument<'a> {
    read: Option<RowDocument<'a>>,
    write: Option<RowDocument<'a>>,
}

#[derive(Serialize)]
struct SurfaceBlockDocument<'a> {
    block_size_bytes: u64,
    #[serde(flatten)]
    rates: RowPairDocument<'a>,
}

#[derive(Serialize)]
struct RowDocument<'a> {
    status: TestStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    block_size_bytes: u64,
    iodepth: u32,
    /// Null where nothing completed, or a stall is part of it.
    iops: Option<f64>,
    bytes_per_second: Option<f64>,
    lat_ns: &'a LatencySummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    stalled_ns: Option<u64>,
}

#[derive(Serialize)]
struct ScanDocument<'a> {
    scanned_bytes: u64,
    unreadable_bytes: u64,
    unreadable: Vec<UnreadableDocument>,
    slow_from_ns: u64,
    slow: Vec<SlowDocument>,
    block_time_ns: &'a LatencySummary,
}

#[derive(Serialize)]
struct UnreadableDocument {
    offset_bytes: u64,
    length_bytes: u64,
    errno: i32,
    /// Every sector of it was tried by itself.
    exact: bool,
}

#[derive(Serialize)]
struct SlowDocument {
    offset_bytes: u64,
    length_bytes: u64,
    time_ns: u64,
    /// When it was read once more; null where that was not tried, or failed.
    again_ns: Option<u64>,
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, surface: &Surface, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let probe = |probe: &fathom_analysis::surface::SingleAccess| ProbeDocument {
        offset_bytes: probe.offset,
        time_ns: probe.time_ns,
        elapsed_ns: probe.elapsed_ns,
    };
    let document = SurfaceDocument {
        head: DocumentHead::new(SCHEMA, record, style),
        transfer_rate: surface.transfer.map(spread),
        saturated_rate: saturated(surface),
        burst_rate: surface.burst.as_ref().and_then(|burst| burst.bytes_per_second),
        burst: surface.burst.as_ref().map(rate),
        access_time_ns: &surface.access,
        cpu_fraction: surface.cpu_fraction,
        machine_busy_fraction: surface.machine_busy_fraction,
        points: surface.points.iter().map(point).collect(),
        probes: surface.probes.iter().map(probe).collect(),
        file_benchmark: file(&surface.file),
        scan: surface.scan.as_ref().map(scan),
        findings: &record.findings,
    };
    document::write(&document, out)
}

fn spread(spread: RateSpread) -> SpreadDocument {
    let RateSpread { count, min, max, mean, median, p5, cv, weighted_mean } = spread;
    SpreadDocument { min, max, mean, median, p5, cv, weighted_mean, points: count }
}

fn saturated(surface: &Surface) -> Option<SaturatedDocument<'_>> {
    (!surface.saturated.is_empty()).then(|| SaturatedDocument {
        mean: surface.saturated_rate(),
        iodepth: surface.saturated_with.map(|(depth, _)| depth),
        block_size_bytes: surface.saturated_with.map(|(_, block)| block),
        points: surface.saturated.iter().map(rate).collect(),
    })
}

fn rate(rate: &SurfaceRate) -> RateDocument<'_> {
    RateDocument {
        offset_bytes: rate.offset,
        bytes_per_second: rate.bytes_per_second,
        stalled_ns: rate.stalled_ns,
        reason: rate.reason.as_deref(),
    }
}

fn point(point: &SurfacePoint) -> SurfacePointDocument<'_> {
    let (stalled_ns, reason) = match &point.state {
        State::Stalled(ns) => (Some(*ns), None),
        State::Failed(reason) => (None, Some(reason.as_str())),
        State::Measured | State::Unwritten | State::Cached => (None, None),
    };
    SurfacePointDocument {
        offset_bytes: point.offset,
        bytes_per_second: point.counted_rate,
        elapsed_ns: point.elapsed_ns,
        measured_ns: point.measured_ns,
        bytes: point.bytes,
        state: point.state.name(),
        stalled_ns,
        reason,
        errors: point.errors,
    }
}

fn file(rows: &[FileRow]) -> Option<FileDocument<'_>> {
    let pair = |kind: FileRowKind, block: Option<u64>| {
        let find = |writes: bool| {
            let is_it = |row: &&FileRow| {
                row.test.kind == kind
                    && row.test.rw.writes() == writes
                    && block.is_none_or(|block| row.test.block == block)
            };
            rows.iter().find(is_it).map(file_row)
        };
        RowPairDocument { read: find(false), write: find(true) }
    };
    let mut blocks: Vec<u64> =
        rows.iter().filter(|row| row.test.kind == FileRowKind::Block).map(|row| row.test.block).collect();
    blocks.dedup();
    let ladder = blocks.into_iter().map(|block| SurfaceBlockDocument {
        block_size_bytes: block,
        rates: pair(FileRowKind::Block, Some(block)),
    });
    (!rows.is_empty()).then(|| FileDocument {
        sequential: pair(FileRowKind::Sequential, None),
        random_4k_single: pair(FileRowKind::Single, None),
        random_4k_multi: pair(FileRowKind::Multi, None),
        block_sizes: ladder.collect(),
    })
}

fn file_row(row: &FileRow) -> RowDocument<'_> {
    RowDocument {
        status: row.status,
        reason: row.reason.as_deref(),
        block_size_bytes: row.test.block,
        iodepth: row.test.depth,
        iops: row.iops,
        bytes_per_second: row.bytes_per_second,
        lat_ns: &row.lat,
        stalled_ns: row.stalled_ns,
    }
}

fn scan(scan: &Scan) -> ScanDocument<'_> {
    let unreadable = scan.unreadable.iter().map(|range| UnreadableDocument {
        offset_bytes: range.offset,
        length_bytes: range.length,
        errno: range.errno,
        exact: range.is_exact,
    });
    let slow = scan.slow.iter().map(|block| SlowDocument {
        offset_bytes: block.offset,
        length_bytes: block.length,
        time_ns: block.time_ns,
        again_ns: block.again_ns,
    });
    ScanDocument {
        scanned_bytes: scan.scanned_bytes,
        unreadable_bytes: scan.unreadable.iter().map(|range| range.length).sum(),
        unreadable: unreadable.collect(),
        slow_from_ns: scan.slow_from_ns,
        slow: slow.collect(),
        block_time_ns: &scan.block,
    }
}
