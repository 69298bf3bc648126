//! What `surface` shows: plots over offset and time, rates and access time, the file benchmark, and what a scan found.

use fathom_analysis::pattern::block_name;
use fathom_analysis::surface::file::{FileRow, FileRowKind};
use fathom_analysis::surface::point::State;
use fathom_analysis::surface::scan::Scan;
use fathom_analysis::surface::{SaturatedRate, Surface, SurfaceRate, assess};
use fathom_model::text::errno_text;
use fathom_model::{Nanos, units};
use fathom_record::{RunRecord, TestStatus};

use super::{data, plots, rows};
use crate::run_view;
use crate::stream::RowSource;
use crate::view::{Block, Cell, Column, Row, Table, View};

/// Everything that is known of a surface; the fio command of each test where `show_fio` says so.
pub fn view(record: &RunRecord, surface: &Surface, show_fio: bool) -> View {
    let mut view = run_view::of_run(record);
    view.data = data::data(surface);
    view.push("", [Block::Table(rows::table(&record.header, &record.tests))]);
    push_below_rows(record, surface, show_fio, &mut view);
    view
}

/// The rows of a surface, whose values are in the order of its parts.
pub const ROWS: RowSource = RowSource {
    table: rows::table,
    data: None,
    units: |_| None,
    below: |analysis, show_fio| {
        let mut view = View::default();
        push_below_rows(analysis.record, &assess(analysis.record), show_fio, &mut view);
        view
    },
    has_titles: true,
};

/// What stands below the rows.
fn push_below_rows(record: &RunRecord, surface: &Surface, show_fio: bool, view: &mut View) {
    view.push("", [plots::plots(surface, record.header.size_bytes)]);
    view.push("Rates and access time", [Block::Table(rates(surface))]);
    view.push("File benchmark", [file_table(&surface.file_benchmark)]);
    view.push("File benchmark by block size, sequential", [block_size_table(&surface.file_benchmark)]);
    if let Some(scan) = &surface.scan {
        push_scan(scan, view);
    }
    view.push("Findings", [run_view::findings(record)]);
    view.push("", [Block::Notes(notes(record, surface))]);
    view.push("Equivalent fio commands", show_fio.then(|| run_view::fio_commands(record)));
}

/// Every rate and the access time, and the CPU time that transfers took.
fn rates(surface: &Surface) -> Table {
    let columns = [
        Column::left(""),
        Column::right("min").takes_remark(),
        Column::right("mean"),
        Column::right("p50"),
        Column::right("p99"),
        Column::right("max"),
        Column::left("unit"),
        Column::left("samples"),
    ];
    let row = |name: &str, rates: [Option<f64>; 4], of: String| {
        let [min, mean, median, max] = rates.map(|rate| rate.map(Cell::mebibytes).into());
        Row::new([name.into(), min, mean, median, Cell::default(), max, "MiB/s".into(), of.into()])
    };
    let remark = |name: &str, remark: String| Row { remark: Some(remark), ..Row::new([name]) };
    let mut rows = Vec::new();
    if let Some(SaturatedRate { mean, iodepth: Some(depth), block_size_bytes: Some(block), points }) =
        &surface.saturated_rate
    {
        let of = format!("{} places, QD {depth}, {}", points.len(), block_name(*block));
        let all = || points.iter().filter_map(|rate| rate.bytes_per_second);
        match *mean {
            Some(mean) => {
                let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
                rows.push(row("Saturated rate", [Some(least), Some(mean), None, Some(most)], of));
            }
            None => rows.push(remark("Saturated rate", points.first().map(missing).unwrap_or_default())),
        }
    }
    if let Some(spread) = &surface.transfer_rate {
        let points = if spread.points == 1 { "point" } else { "points" };
        let rates = [spread.min, spread.weighted_mean, spread.median, spread.max];
        rows.push(row("Transfer rate", rates.map(Some), format!("{} {points}, QD 1", spread.points)));
    } else if !surface.points.is_empty() {
        rows.push(remark("Transfer rate", "not measured: no point has a rate".to_owned()));
    }
    if let Some(burst) = &surface.burst_rate {
        rows.push(match burst.bytes_per_second {
            Some(rate) => row("Burst rate", [None, Some(rate), None, None], String::new()),
            None => remark("Burst rate", missing(burst)),
        });
    }
    let access = &surface.access_lat_ns;
    if access.samples > 0 {
        let ns = |ns: Option<u64>| Cell::from(ns.map(Cell::latency));
        let limited = if surface.is_access_limited { ", limited" } else { "" };
        let probes = format!("{} probes{limited}", units::grouped(access.samples));
        let mean = access.mean.map(Cell::mean_latency).into();
        let [min, p50, p99, max] = [access.min, access.p50, access.p99, access.max].map(ns);
        rows.push(Row::new(["Access time".into(), min, mean, p50, p99, max, "".into(), probes.into()]));
    }
    if let Some(cpu) = surface.cpu_fraction {
        let host = surface.machine_busy_fraction.map(|busy| format!("; host {:.0} % busy", busy * 100.0));
        rows.push(remark("CPU used", format!("{:.1} % of one CPU{}", cpu * 100.0, host.unwrap_or_default())));
    }
    Table::new(columns, rows)
}

fn missing(rate: &SurfaceRate) -> String {
    match (rate.stalled_ns, &rate.reason) {
        (Some(ns), _) => format!("stalled: no completion for {}", units::duration(Nanos(ns))),
        (None, Some(reason)) => reason.clone(),
        (None, None) => "not measured: no I/O completed".to_owned(),
    }
}

/// The row of `kind` and `block` in both directions, each cell as `cell` makes it of one that has a rate.
fn both_ways(
    rows: &[FileRow],
    (kind, block): (FileRowKind, u64),
    cell: impl Fn(&FileRow) -> Option<Cell>,
) -> [Cell; 2] {
    [false, true].map(|writes| {
        let is_it = |row: &&FileRow| {
            (row.test.kind, row.test.block_size_bytes, row.test.rw.writes()) == (kind, block, writes)
        };
        match rows.iter().find(is_it) {
            None => Cell::default(),
            Some(row) if row.stalled_ns.is_some() => "stalled".into(),
            Some(row) if row.status == TestStatus::Skipped => "n/a".into(),
            Some(row) => cell(row).unwrap_or_else(|| row.status.name().into()),
        }
    })
}

fn file_table(rows: &[FileRow]) -> Block {
    let cell = |row: &FileRow| match row.test.kind {
        FileRowKind::Single | FileRowKind::Multi => row.iops.map(|iops| with_unit(Cell::iops(iops), "IOPS")),
        _ => row.bytes_per_second.map(|rate| with_unit(Cell::mebibytes(rate), "MiB/s")),
    };
    let main = rows.iter().filter(|row| row.test.kind != FileRowKind::Block);
    let mut names: Vec<(FileRowKind, u64, String)> = main
        .map(|row| {
            let order = if row.test.rw.is_sequential() { "sequential" } else { "random" };
            let depth = match row.test.iodepth {
                0 => "deep queue".to_owned(),
                depth => format!("QD {depth}"),
            };
            (
                row.test.kind,
                row.test.block_size_bytes,
                format!("{order} {}, {depth}", block_name(row.test.block_size_bytes)),
            )
        })
        .collect();
    names.dedup_by_key(|(kind, block, _)| (*kind, *block));
    let columns = [Column::left("workload"), Column::right("read"), Column::right("write")];
    let line = |(kind, block, name): (FileRowKind, u64, String)| {
        let [read, write] = both_ways(rows, (kind, block), cell);
        Row::new([name.into(), read, write])
    };
    Block::Table(Table::new(columns, names.into_iter().map(line)))
}

fn with_unit(cell: Cell, unit: &str) -> Cell {
    Cell { text: format!("{} {unit}", cell.text), ..cell }
}

fn block_size_table(rows: &[FileRow]) -> Block {
    let of_kind = rows.iter().filter(|row| row.test.kind == FileRowKind::Block);
    let mut blocks: Vec<u64> = of_kind.map(|row| row.test.block_size_bytes).collect();
    blocks.dedup();
    let columns =
        [Column::right("block"), Column::right("read MiB/s").drawn(), Column::right("write MiB/s").drawn()];
    let line = |block: u64| {
        let [read, write] =
            both_ways(rows, (FileRowKind::Block, block), |row| row.bytes_per_second.map(Cell::mebibytes));
        Row::new([Cell::integer(block, block_name(block)), read, write])
    };
    Block::Table(Table::new(columns, blocks.into_iter().map(line)))
}

/// Places that a list names.
const MOST_LISTED: usize = 20;

fn push_scan(scan: &Scan, view: &mut View) {
    let found = match scan.unreadable_bytes {
        0 => "all readable".to_owned(),
        some => format!("{} unreadable", units::bytes(some)),
    };
    view.push("Scan", [Block::note(format!("{} scanned; {found}.", units::bytes(scan.scanned_bytes)))]);
    let place = |offset: u64, length: u64| {
        [Cell::integer(offset, offset.to_string()), Cell::integer(length, length.to_string())]
    };
    let bad = scan.unreadable.iter().map(|range| {
        let exact = if range.is_exact { "" } else { "; not narrowed down to sectors" };
        let error = format!("{} (errno {}){exact}", errno_text(range.errno), range.errno);
        Row::new(place(range.offset_bytes, range.length_bytes).into_iter().chain([error.into()]))
    });
    let columns = [Column::right("offset"), Column::right("bytes"), Column::left("error")];
    view.push("Unreadable ranges", listed(columns, bad.collect()));
    let slow = scan.slow.iter().map(|block| {
        let times = [Cell::latency(block.lat_ns), block.repeated_lat_ns.map(Cell::latency).into()];
        Row::new(place(block.offset_bytes, block.length_bytes).into_iter().chain(times))
    });
    let columns = ["offset", "bytes", "time", "second read"].map(Column::right);
    view.push("Slow blocks", listed(columns, slow.collect()));
}

fn listed(columns: impl Into<Vec<Column>>, mut rows: Vec<Row>) -> [Block; 2] {
    let more = rows.len().saturating_sub(MOST_LISTED);
    rows.truncate(MOST_LISTED);
    let note = (more > 0).then(|| format!("{more} more; --format csv or json lists all."));
    [Block::Table(Table::new(columns, rows)), Block::Notes(note.into_iter().collect())]
}

fn notes(record: &RunRecord, surface: &Surface) -> Vec<String> {
    let mut notes = record.header.notes.clone();
    if surface.is_access_limited {
        notes.push(
            "The access time is limited: the probes waited for an IOPS limit, however far apart.".to_owned(),
        );
    }
    let failed: Vec<&String> = surface
        .points
        .iter()
        .filter_map(|point| match &point.state {
            State::Failed { reason } => Some(reason),
            _ => None,
        })
        .collect();
    if let Some(reason) = failed.first() {
        notes.push(format!("{} of {} points failed: {reason}", failed.len(), surface.points.len()));
    }
    let skipped = surface.file_benchmark.iter().filter(|row| row.status == TestStatus::Skipped);
    let mut reasons: Vec<&String> = skipped.filter_map(|row| row.reason.as_ref()).collect();
    reasons.sort();
    reasons.dedup();
    notes.extend(reasons.into_iter().map(|reason| format!("n/a: {reason}")));
    notes.extend(run_view::interruption(record));
    notes
}
