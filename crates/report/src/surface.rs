//! Reports of `surface`: plots over offset and time, rates and access time, the file benchmark, and what a scan found.

use std::io::{self, Write};

use fathom_analysis::pattern::block_name;
use fathom_analysis::surface::file::{FileRow, FileRowKind};
use fathom_analysis::surface::point::{State, SurfacePoint};
use fathom_analysis::surface::scan::Scan;
use fathom_analysis::surface::{RateSpread, SaturatedRate, SingleAccess, Surface, SurfaceRate, assess};
use fathom_analysis::verdict::SurfaceVerdict;
use fathom_model::text::errno_text;
use fathom_model::{Nanos, units};
use fathom_record::{Finding, FindingId, RunHeader, RunRecord, TestRecord, TestStatus};
use serde_json::{Value, json};

use crate::axis_text::{offset_axis, time_axis};
use crate::document::object;
use crate::run_view::{self, LATENCY_COLUMNS, latency_members};
use crate::stream::RowSource;
use crate::view::{
    Axis, Block, Cell, Column, Front, FrontFigure, Plot, PlotForm, PlotMark, PlotPoint, PlotSeries, Row,
    Table, View, iops_text,
};
use crate::{Style, run_json, verdict};

/// Writes the document of `surface --json`, indented.
///
/// # Errors
/// Those of `out`.
pub fn document(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let surface = assess(record);
    run_json::write("fathom.surface/1", record, SurfaceVerdict::of(record, &surface), &surface, style, out)
}

/// The report; the fio command of each test where `show_fio` says so.
pub fn view(record: &RunRecord, show_fio: bool) -> View {
    let surface = assess(record);
    let mut view = View { data: data(&surface), ..run_view::of_run(record) };
    push_verdict(record, &surface, &mut view);
    view.push_full("", [Block::Table(table(&record.header, &record.tests))]);
    let all = plots(&surface, record.header.size_bytes);
    view.push_brief("", [Block::Plots(all.first().cloned().into_iter().collect())]);
    view.push_full("", [Block::Plots(all)]);
    view.push_full("Rates and access time", [Block::Table(rates(&surface))]);
    view.push("File benchmark", [file_table(&surface.file_benchmark)]);
    view.push_full("File benchmark by block size, sequential", [block_size_table(&surface.file_benchmark)]);
    if let Some(scan) = &surface.scan {
        push_scan(scan, &mut view);
    }
    view.push_full("Findings", [run_view::findings(record)]);
    view.push_full("", [Block::Notes(notes(record, &surface))]);
    view.push("Equivalent fio commands", show_fio.then(|| run_view::fio_commands(record)));
    view
}

/// The rows of a surface, whose values are in the order of its parts.
pub const ROWS: RowSource = RowSource { table, data: None, units: |_| None, has_titles: true };

/// The rates, the access time and what the scan found, then what is said of their course over the area.
fn push_verdict(record: &RunRecord, surface: &Surface, view: &mut View) {
    let verdict = SurfaceVerdict::of(record, surface);
    let mebibytes = |rate: f64| Cell::mebibytes(rate).text;
    view.warn("Stopped", run_view::interruption(record));
    view.say(
        "Transfer",
        surface.transfer_rate.map(|spread| {
            let (mean, min, max) =
                (mebibytes(spread.weighted_mean), mebibytes(spread.min), mebibytes(spread.max));
            format!("{mean} MiB/s on average, {min} to {max} MiB/s over the area (QD 1)")
        }),
    );
    let saturated = surface.saturated_rate.as_ref().and_then(|rate| Some((rate.mean?, rate.iodepth?)));
    view.say("Saturated", saturated.map(|(mean, depth)| format!("{} MiB/s at QD {depth}", mebibytes(mean))));
    view.say(
        "Access",
        verdict.access_mean_ns.map(|mean| {
            let limited = if surface.is_access_limited { ", held up by an IOPS limit" } else { "" };
            let p99 = surface
                .access_lat_ns
                .p99
                .map(|ns| format!(", p99 {}", units::latency(ns)))
                .unwrap_or_default();
            format!("{} on average{p99}{limited}", Cell::mean_latency(mean).text)
        }),
    );
    if let Some(scan) = &surface.scan {
        let text = format!("{} scanned; {}", units::bytes(scan.scanned_bytes), scan_text(scan));
        if scan.unreadable_bytes > 0 { view.warn("Scan", text) } else { view.say("Scan", text) }
    }
    let is_of_course =
        |found: &&Finding| matches!(found.id, FindingId::RateFollowsPlace | FindingId::RateChanges);
    for found in record.findings.iter().filter(is_of_course) {
        view.say("Course", found.claim.clone());
    }
    verdict::push_problems(record, view);
    view.say("Next", verdict.next.clone());
    view.front = front(surface, &verdict);
}

/// The rates over the area and the access time.
fn front(surface: &Surface, verdict: &SurfaceVerdict) -> Front {
    let spread = |name: &str, of: fn(&RateSpread) -> f64| {
        surface.transfer_rate.as_ref().map(|spread| FrontFigure::new(name, Cell::rate(of(spread))))
    };
    let latency = |name: &str, ns: Option<u64>| ns.map(|ns| FrontFigure::new(name, Cell::latency(ns)));
    let saturated = surface.saturated_rate.as_ref().and_then(|rate| Some((rate.mean?, rate.iodepth?)));
    let figures = [
        spread("Least", |spread| spread.min),
        spread("Mean", |spread| spread.weighted_mean),
        spread("Most", |spread| spread.max),
        saturated.map(|(mean, depth)| FrontFigure::new(format!("At QD {depth}"), Cell::rate(mean))),
        verdict.access_mean_ns.map(|mean| FrontFigure::new("Access time", Cell::mean_latency(mean))),
        latency("Access, p99", surface.access_lat_ns.p99),
    ];
    Front {
        title: "Transfer rate and access time",
        figures: figures.into_iter().flatten().collect(),
        ..Front::default()
    }
}

fn scan_text(scan: &Scan) -> String {
    let slow = match scan.slow.len() {
        0 => String::new(),
        1 => ", 1 slow block".to_owned(),
        count => format!(", {count} slow blocks"),
    };
    match scan.unreadable_bytes {
        0 => format!("all readable{slow}"),
        some => format!("{} unreadable{slow}", units::bytes(some)),
    }
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
const MAX_LISTED: usize = 20;

fn push_scan(scan: &Scan, view: &mut View) {
    let text = format!("{} scanned; {}.", units::bytes(scan.scanned_bytes), scan_text(scan));
    view.push_full("Scan", [Block::note(text)]);
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
    let more = rows.len().saturating_sub(MAX_LISTED);
    rows.truncate(MAX_LISTED);
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

/// Room for `sequential write 128k, QD 32`.
const NAME: u8 = 28;

const COLUMNS: [Column; 4] = [
    Column::left("measurement").reserved(NAME),
    Column::right("MiB/s").takes_remark().reserved(8),
    Column::right("IOPS").reserved(9),
    Column::right("access time"),
];

fn table(header: &RunHeader, tests: &[TestRecord]) -> Table {
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

const MIB: f64 = (1 << 20) as f64;

/// The plots of a surface over an area of `area` bytes.
fn plots(surface: &Surface, area: u64) -> Vec<Plot> {
    let mut plots = Vec::new();
    if !surface.points.is_empty() {
        plots.push(rate_by_place(surface, area));
    }
    if surface.points.len() > 1 && !is_in_order(&surface.points) {
        plots.push(rate_by_time(surface));
    }
    if !surface.probes.is_empty() {
        let probe = |probe: &SingleAccess| PlotPoint::at(probe.offset_bytes as f64, probe.lat_ns as f64);
        let points = surface.probes.iter().map(probe).collect();
        let x = offset_axis(area);
        plots.push(steps("Access time by offset", x, Axis::linear("", latency_text), points));
    }
    plots
}

/// The transfer rate over the area.
pub(crate) fn rate_by_place(surface: &Surface, area: u64) -> Plot {
    let place = area as f64 / surface.points.len().max(1) as f64;
    let at = |point: &SurfacePoint| (point.offset_bytes as f64, point.offset_bytes as f64 + place);
    let mark = |point: &SurfacePoint| {
        let (from, to) = at(point);
        (point.state != State::Measured).then(|| PlotMark { series: 0, from, to, reason: point.state.name() })
    };
    let mut points: Vec<PlotPoint> = measured(surface).map(|point| rate_point(point, at(point))).collect();
    points.sort_by(|one, other| one.from.total_cmp(&other.from));
    Plot {
        marks: surface.points.iter().filter_map(mark).collect(),
        ..steps("Transfer rate by offset, MiB/s", offset_axis(area), Axis::linear("", rate_text), points)
    }
}

/// The transfer rate over the time of the measurement.
pub(crate) fn rate_by_time(surface: &Surface) -> Plot {
    let time =
        |point: &SurfacePoint| (point.elapsed_ns as f64, (point.elapsed_ns + point.measured_ns) as f64);
    let end = surface.points.iter().map(|point| point.elapsed_ns + point.measured_ns).max().unwrap_or(0);
    let points = measured(surface).map(|point| rate_point(point, time(point))).collect();
    let x = Axis { label: String::new(), ..time_axis(0, end) };
    steps("Transfer rate by time, MiB/s", x, Axis::linear("", rate_text), points)
}

fn steps(title: &str, x: Axis, y: Axis, mut points: Vec<PlotPoint>) -> Plot {
    // Places are measured in an order of their own; a line joins neighbours.
    points.sort_by(|one, other| one.from.total_cmp(&other.from));
    let series = vec![PlotSeries { name: String::new(), points }];
    Plot {
        title: title.to_owned(),
        form: PlotForm::Steps,
        x,
        y,
        series,
        limits: Vec::new(),
        marks: Vec::new(),
    }
}

fn measured(surface: &Surface) -> impl Iterator<Item = &SurfacePoint> {
    surface.points.iter().filter(|point| point.state == State::Measured)
}

fn latency_text(ns: f64) -> String {
    units::latency(ns.round() as u64)
}

fn rate_text(rate: f64) -> String {
    iops_text(rate).trim_end_matches(".0").to_owned()
}

fn rate_point(point: &SurfacePoint, (from, to): (f64, f64)) -> PlotPoint {
    PlotPoint { from, to, y: point.bytes_per_second.unwrap_or(0.0) / MIB, interval: None }
}

/// Time tells no more than the offset does.
fn is_in_order(points: &[SurfacePoint]) -> bool {
    points.windows(2).all(|pair| pair[0].offset_bytes < pair[1].offset_bytes)
        || points.windows(2).all(|pair| pair[0].offset_bytes > pair[1].offset_bytes)
}

/// The columns of the values: a row for each point, rate, probe, row of the file benchmark, and range that a scan found.
fn data(surface: &Surface) -> Table {
    const COLUMNS: &str = "\
        part,offset_bytes,length_bytes,rw,block_size_bytes,iodepth,state,reason,iops,bytes_per_second,\
        elapsed_ns,measured_ns,stalled_ns,errors,errno,lat_ns,repeated_lat_ns";
    let mut rows: Vec<Value> = Vec::new();
    let part = |name: &str, members: Value| object([json!({ "part": name }), members]);
    rows.extend(
        surface
            .points
            .iter()
            .map(|point| object([json!({ "part": "transfer", "length_bytes": point.bytes }), json!(point)])),
    );
    if let Some(SaturatedRate { iodepth, block_size_bytes, points, .. }) = &surface.saturated_rate {
        let load = json!({ "part": "saturated", "iodepth": iodepth, "block_size_bytes": block_size_bytes });
        rows.extend(points.iter().map(|rate| object([load.clone(), json!(rate)])));
    }
    rows.extend(surface.burst_rate.iter().map(|rate| part("burst", json!(rate))));
    rows.extend(surface.probes.iter().map(|probe| part("access", json!(probe))));
    rows.extend(surface.file_benchmark.iter().map(|row| {
        let name = match row.test.kind {
            FileRowKind::Sequential => "file-sequential",
            FileRowKind::Single => "file-random-single",
            FileRowKind::Multi => "file-random-multi",
            FileRowKind::Block => "file-block-size",
        };
        let state = json!({ "part": name, "state": row.status });
        object([state, json!(row), latency_members(&row.lat_ns)])
    }));
    if let Some(scan) = &surface.scan {
        rows.extend(scan.unreadable.iter().map(|range| {
            let state = if range.is_exact { "exact" } else { "not exact" };
            let rest = json!({ "state": state, "errno": range.errno.to_string() });
            part("unreadable", object([json!(range), rest]))
        }));
        rows.extend(scan.slow.iter().map(|block| part("slow", json!(block))));
    }
    Table::of_documents(&[COLUMNS, LATENCY_COLUMNS], rows)
}
