//! What `surface` ends with in a terminal: plots over place and time, the rates, the file benchmark, what a scan found, and
//! what it all tells.

use std::io;

use fathom_analysis::pattern::block_name;
use fathom_analysis::surface::file::{FileRow, FileRowKind};
use fathom_analysis::surface::point::{State, SurfacePoint};
use fathom_analysis::surface::scan::Scan;
use fathom_analysis::surface::{SaturatedRate, Surface, SurfaceRate};
use fathom_model::{Nanos, units};
use fathom_record::{RunRecord, TestStatus};

use crate::bench::table::{self as bench_table, INDENT, count, decimal};
use crate::columns::{Align, Columns, wrap};
use crate::plot::{Paper, Plot, PlotMark, Stroke};
use crate::{Style, TextWriter};

/// Writes everything.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, surface: &Surface, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let page = SurfacePage { style, width: style.width.max(40) };
    bench_table::header(record, style, page.width, out)?;
    page.plots(record, surface, out)?;
    page.rates(surface, out)?;
    page.file(&surface.file_benchmark, out)?;
    if let Some(scan) = &surface.scan {
        page.scan(scan, out)?;
    }
    page.notes(record, surface, out)?;
    bench_table::findings(record, style, page.width, out)
}

struct SurfacePage<'a> {
    style: &'a Style,
    width: usize,
}

/// Two plots stand side by side from this width on.
const SIDE_BY_SIDE: usize = 132;
const GAP: usize = 3;
/// Places that a list names.
const MOST_LISTED: usize = 20;

fn mebibytes(bytes_per_second: f64) -> String {
    decimal(bytes_per_second / 1_048_576.0)
}

impl SurfacePage<'_> {
    fn plots(&self, record: &RunRecord, surface: &Surface, out: &mut TextWriter) -> io::Result<()> {
        let area = record.header.size_bytes as f64;
        let ends = ("0".to_owned(), units::bytes(record.header.size_bytes));
        let place = area / surface.points.len().max(1) as f64;
        let at = |point: &SurfacePoint| (point.offset_bytes as f64, point.offset_bytes as f64 + place);
        let rate = |point: &SurfacePoint| point.bytes_per_second.unwrap_or(0.0) / 1_048_576.0;
        let shown = |point: &&SurfacePoint| point.state == State::Measured;
        let stroke = |point: &SurfacePoint| Stroke { from: at(point).0, to: at(point).1, y: rate(point) };
        let by_place: Vec<Stroke> = surface.points.iter().filter(shown).map(stroke).collect();
        let mark = |point: &SurfacePoint| {
            letter(&point.state).map(|letter| PlotMark { from: at(point).0, to: at(point).1, letter })
        };
        let marks: Vec<PlotMark> = surface.points.iter().filter_map(mark).collect();
        let rate_text = |value: f64| count(value).trim_end_matches(".0").to_owned();
        let mut plots = Vec::new();
        let plot = |title: &str,
                    strokes: &[Stroke],
                    marks: &[PlotMark],
                    (x_most, x_ends): (f64, (String, String))| {
            let plot = Plot { title: title.to_owned(), strokes, marks, x_most, x_ends, y_text: &rate_text };
            plot.lines(&self.paper())
        };
        if !surface.points.is_empty() {
            plots.push(plot("Transfer rate by place, MiB/s", &by_place, &marks, (area, ends.clone())));
        }
        if surface.points.len() > 1 && !is_in_order(&surface.points) {
            let end =
                surface.points.iter().map(|point| point.elapsed_ns + point.measured_ns).max().unwrap_or(0);
            let dot = |point: &SurfacePoint| {
                let (from, to) = (point.elapsed_ns, point.elapsed_ns + point.measured_ns);
                Stroke { from: from as f64, to: to as f64, y: rate(point) }
            };
            let by_time: Vec<Stroke> = surface.points.iter().filter(shown).map(dot).collect();
            let ends = ("0".to_owned(), units::duration(Nanos(end)));
            plots.push(plot("Transfer rate by time, MiB/s", &by_time, &[], (end as f64, ends)));
        }
        if !surface.probes.is_empty() {
            let dot = |probe: &fathom_analysis::surface::SingleAccess| {
                let at = probe.offset_bytes as f64;
                Stroke { from: at, to: at, y: probe.lat_ns as f64 / 1e6 }
            };
            let probes: Vec<Stroke> = surface.probes.iter().map(dot).collect();
            let text = |value: f64| units::latency((value * 1e6).round() as u64);
            let title = "Access time by place".to_owned();
            let plot =
                Plot { title, strokes: &probes, marks: &[], x_most: area, x_ends: ends, y_text: &text };
            plots.push(plot.lines(&self.paper()));
        }
        self.side_by_side(plots, out)?;
        self.legend(&marks, out)
    }

    fn paper(&self) -> Paper {
        let wide = self.width - INDENT;
        let width = if self.width >= SIDE_BY_SIDE { (wide - GAP) / 2 } else { wide };
        Paper { width: width.min(120), height: 10, unicode: self.style.unicode }
    }

    fn side_by_side(&self, plots: Vec<Vec<String>>, out: &mut TextWriter) -> io::Result<()> {
        let together = if self.width >= SIDE_BY_SIDE { 2 } else { 1 };
        for row in plots.chunks(together) {
            let lines = row.iter().map(Vec::len).max().unwrap_or(0);
            let blank = " ".repeat(self.paper().width);
            for number in 0..lines {
                let line: Vec<&str> =
                    row.iter().map(|plot| plot.get(number).unwrap_or(&blank).as_str()).collect();
                let line = line.join(&" ".repeat(GAP));
                let line = line.trim_end_matches(' ');
                let line = if number == 0 { self.style.bold(line) } else { line.to_owned() };
                writeln!(out, "{:INDENT$}{line}", "")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn legend(&self, marks: &[PlotMark], out: &mut TextWriter) -> io::Result<()> {
        let all = [('u', "unwritten"), ('c', "cached"), ('s', "stalled"), ('x', "failed")];
        let there = all.iter().filter(|(letter, _)| marks.iter().any(|mark| mark.letter == *letter));
        let words: Vec<String> = there.map(|(letter, word)| format!("{letter} {word}")).collect();
        if words.is_empty() {
            return Ok(());
        }
        writeln!(out, "{:INDENT$}{}", "", self.style.dim(&format!("Without a rate: {}", words.join(", "))))?;
        writeln!(out)
    }

    fn rates(&self, surface: &Surface, out: &mut TextWriter) -> io::Result<()> {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut row = |name: &str, text: String| rows.push(vec![name.to_owned(), text]);
        let missing = |rate: &SurfaceRate| match (rate.stalled_ns, &rate.reason) {
            (Some(ns), _) => format!("stalled: nothing completed for {}", units::duration(Nanos(ns))),
            (None, Some(reason)) => reason.clone(),
            (None, None) => "nothing completed".to_owned(),
        };
        if let Some(spread) = &surface.transfer_rate {
            let [min, mean, median, max] =
                [spread.min, spread.mean, spread.median, spread.max].map(mebibytes);
            let points =
                if spread.points == 1 { "1 point".to_owned() } else { format!("{} points", spread.points) };
            row(
                "Transfer rate",
                format!("min {min}  mean {mean}  median {median}  max {max} MiB/s, {points}"),
            );
        } else if !surface.points.is_empty() {
            row("Transfer rate", "no point has one".to_owned());
        }
        if let Some(SaturatedRate { mean, iodepth: Some(depth), block_size_bytes: Some(block), points }) =
            &surface.saturated_rate
        {
            let how = format!("{depth} at a time of {}, {} places", block_name(*block), points.len());
            let rates = || points.iter().filter_map(|rate| rate.bytes_per_second);
            let (least, most) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
            let text = match (*mean, points.first()) {
                (Some(mean), _) => {
                    let [least, mean, most] = [least, mean, most].map(mebibytes);
                    format!("min {least}  mean {mean}  max {most} MiB/s, {how}")
                }
                (None, first) => first.map(missing).unwrap_or_default(),
            };
            row("Saturated", text);
        }
        if let Some(burst) = &surface.burst_rate {
            let text = burst.bytes_per_second.map(|rate| format!("{} MiB/s", mebibytes(rate)));
            row("Burst rate", text.unwrap_or_else(|| missing(burst)));
        }
        rows.extend(access_and_cpu(surface));
        const LABEL: usize = 15;
        for row in rows {
            for (index, line) in wrap(&row[1], self.width, INDENT + LABEL, INDENT + LABEL).iter().enumerate()
            {
                // Two spaces stand between values where there is room.
                let text = if wrap(&row[1], self.width, INDENT + LABEL, 0).len() == 1 {
                    &row[1]
                } else {
                    line.trim_start_matches(' ')
                };
                let label = if index == 0 { row[0].as_str() } else { "" };
                writeln!(out, "{:INDENT$}{label:LABEL$}{text}", "")?;
            }
        }
        Ok(())
    }

    fn file(&self, rows: &[FileRow], out: &mut TextWriter) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        writeln!(out, "{}", self.style.bold("File benchmark"))?;
        let cell = |row: Option<&FileRow>, kind: FileRowKind| match row {
            None => String::new(),
            Some(row) if row.stalled_ns.is_some() => "stalled".to_owned(),
            Some(row) if row.status == TestStatus::Skipped => "n/a".to_owned(),
            Some(row) => match (kind, row.iops, row.bytes_per_second) {
                (FileRowKind::Single | FileRowKind::Multi, Some(iops), _) => format!("{} IOPS", count(iops)),
                (_, _, Some(rate)) => format!("{} MiB/s", mebibytes(rate)),
                _ => row.status.name().to_owned(),
            },
        };
        let of = |kind: FileRowKind, block: u64, writes: bool| {
            rows.iter().find(|row| {
                (row.test.kind, row.test.block_size_bytes, row.test.rw.writes()) == (kind, block, writes)
            })
        };
        let mut names: Vec<(FileRowKind, u64, String)> = rows
            .iter()
            .map(|row| {
                let (block, depth) = (block_name(row.test.block_size_bytes), row.test.iodepth);
                let name = match row.test.kind {
                    FileRowKind::Sequential => format!("sequential {block}"),
                    FileRowKind::Single => format!("random {block}"),
                    FileRowKind::Multi if depth == 0 => format!("random {block}, many at a time"),
                    FileRowKind::Multi => format!("random {block}, {depth} at a time"),
                    FileRowKind::Block => format!("sequential {block}, ladder"),
                };
                (row.test.kind, row.test.block_size_bytes, name)
            })
            .collect();
        names.dedup_by_key(|(kind, block, _)| (*kind, *block));
        let line = |(kind, block, name): &(FileRowKind, u64, String)| {
            vec![name.clone(), cell(of(*kind, *block, false), *kind), cell(of(*kind, *block, true), *kind)]
        };
        let columns = Columns {
            head: vec!["", "read", "write"],
            align: vec![Align::Left, Align::Right, Align::Right],
            rows: names.iter().map(line).collect(),
        };
        for (index, line) in columns.lines(3).iter().enumerate() {
            let line = if index == 0 { self.style.dim(line) } else { line.clone() };
            writeln!(out, "{:INDENT$}{line}", "")?;
        }
        Ok(())
    }

    fn scan(&self, scan: &Scan, out: &mut TextWriter) -> io::Result<()> {
        writeln!(out)?;
        writeln!(out, "{}", self.style.bold("Scan"))?;
        let unreadable: u64 = scan.unreadable.iter().map(|range| range.length_bytes).sum();
        let found = match unreadable {
            0 => "all of it can be read".to_owned(),
            some => format!("{} cannot be read", units::bytes(some)),
        };
        writeln!(out, "{:INDENT$}{} scanned, {found}.", "", units::bytes(scan.scanned_bytes))?;
        let mut lists = Vec::new();
        let row = |offset: u64, length: u64, what: String| vec![offset.to_string(), length.to_string(), what];
        let bad = scan.unreadable.iter().map(|range| {
            let exact = if range.is_exact { "" } else { ", not looked at sector by sector" };
            row(range.offset_bytes, range.length_bytes, format!("unreadable, errno {}{exact}", range.errno))
        });
        lists.push((bad.collect::<Vec<_>>(), "unreadable ranges"));
        let slow = scan.slow.iter().map(|block| {
            let again = block.repeated_lat_ns.map(|ns| format!(", once more {}", units::latency(ns)));
            row(
                block.offset_bytes,
                block.length_bytes,
                format!("{}{}", units::latency(block.lat_ns), again.unwrap_or_default()),
            )
        });
        lists.push((slow.collect::<Vec<_>>(), "slow blocks"));
        for (mut rows, what) in lists.into_iter().filter(|(rows, _)| !rows.is_empty()) {
            let more = rows.len().saturating_sub(MOST_LISTED);
            rows.truncate(MOST_LISTED);
            let head = vec!["offset", "bytes", what];
            let columns = Columns { head, align: vec![Align::Right, Align::Right, Align::Left], rows };
            for (index, line) in columns.lines(2).iter().enumerate() {
                let line = if index == 0 { self.style.dim(line) } else { line.clone() };
                writeln!(out, "{:INDENT$}{line}", "")?;
            }
            if more > 0 {
                writeln!(out, "{:INDENT$}and {more} more; --json lists all", "")?;
            }
        }
        Ok(())
    }

    fn notes(&self, record: &RunRecord, surface: &Surface, out: &mut TextWriter) -> io::Result<()> {
        let mut notes = record.header.notes.clone();
        let failed = || surface.points.iter().filter(|point| matches!(point.state, State::Failed { .. }));
        if let Some(State::Failed { reason }) = failed().next().map(|point| &point.state) {
            notes.push(format!("{} of {} points failed: {reason}", failed().count(), surface.points.len()));
        }
        let skipped = surface.file_benchmark.iter().filter(|row| row.status == TestStatus::Skipped);
        let mut reasons: Vec<&String> = skipped.filter_map(|row| row.reason.as_ref()).collect();
        reasons.sort();
        reasons.dedup();
        notes.extend(reasons.into_iter().map(|reason| format!("n/a: {reason}")));
        notes
            .extend(record.header.interrupted.iter().map(|why| format!("the surface was broken off: {why}")));
        if !notes.is_empty() {
            writeln!(out)?;
        }
        for line in notes.iter().flat_map(|note| wrap(note, self.width, INDENT, INDENT + 2)) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

/// The rows of what is no rate.
fn access_and_cpu(surface: &Surface) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = |name: &str, text: String| rows.push(vec![name.to_owned(), text]);
    if let (Some(mean), Some(max)) = (surface.access_lat_ns.mean, surface.access_lat_ns.max) {
        let latency = |name: &str, ns: Option<u64>| ns.map(|ns| format!("{name} {}  ", units::latency(ns)));
        let percentiles: String =
            [latency("p50", surface.access_lat_ns.p50), latency("p99", surface.access_lat_ns.p99)]
                .into_iter()
                .flatten()
                .collect();
        let mean = units::latency(mean as u64);
        let text = format!(
            "mean {mean}  {percentiles}max {}, {} probes",
            units::latency(max),
            surface.access_lat_ns.samples
        );
        row("Access time", text);
    }
    if let Some(cpu) = surface.cpu_fraction {
        let machine = surface.machine_busy_fraction;
        let machine = machine.map(|busy| format!("; the machine was {:.0} % busy", busy * 100.0));
        row("CPU", format!("{:.1} % of one{}", cpu * 100.0, machine.unwrap_or_default()));
    }
    rows
}

/// The letter of a place without a rate.
fn letter(state: &State) -> Option<char> {
    match state {
        State::Measured => None,
        State::Unwritten => Some('u'),
        State::Cached => Some('c'),
        State::Stalled { .. } => Some('s'),
        State::Failed { .. } => Some('x'),
    }
}

/// The time says nothing that the place does not.
fn is_in_order(points: &[SurfacePoint]) -> bool {
    points.windows(2).all(|pair| pair[0].offset_bytes < pair[1].offset_bytes)
        || points.windows(2).all(|pair| pair[0].offset_bytes > pair[1].offset_bytes)
}
