//! What `sweep` ends with in a terminal: heat maps, curves, the limits, the knees and the answers to what was asked.

use std::cmp::Ordering;
use std::io;

use fathom_analysis::estimate::Estimate;
use fathom_analysis::pattern::{AccessPattern, block_name};
use fathom_analysis::sweep::Sweep;
use fathom_analysis::sweep::knee::Knee;
use fathom_analysis::sweep::limits::{BlockSizeRange, DirectionLimits};
use fathom_analysis::sweep::point::SweepPoint;
use fathom_model::units;
use fathom_record::{RunRecord, TestStatus};

use crate::bench::table::{self as bench_table, INDENT, count, decimal};
use crate::columns::{Align, Columns, wrap};
use crate::sweep::goals::about_the_objective;
use crate::sweep::map::{Grid, MapMeasure, bar, side_by_side};
use crate::{Style, TextWriter};

/// Writes everything.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, sweep: &Sweep, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let page = SweepPage { style, width: style.width.max(40) };
    bench_table::header(record, style, page.width, out)?;
    if sweep.points.iter().all(|point| point.ios == 0) {
        writeln!(out, "  Nothing was measured.")?;
        return page.notes(record, sweep, out);
    }
    for (rw, jobs) in grids(&sweep.points) {
        page.grid(sweep, rw, jobs, out)?;
    }
    page.limits(sweep, out)?;
    page.knees(&sweep.knees, out)?;
    page.answers("the most under", sweep.slo.as_ref(), out)?;
    page.offered(sweep, out)?;
    page.answers("the least depth for", sweep.reach.as_ref(), out)?;
    page.notes(record, sweep, out)
}

/// The patterns with their numbers of jobs that have more than one point.
fn grids(points: &[SweepPoint]) -> Vec<(AccessPattern, u32)> {
    let mut grids: Vec<(AccessPattern, u32)> =
        points.iter().map(|point| (point.spot.rw, point.spot.numjobs)).collect();
    grids.sort_unstable();
    grids.dedup();
    let main = points.first().map(|point| point.spot.numjobs);
    let size = |of: &(AccessPattern, u32)| {
        points.iter().filter(|point| (point.spot.rw, point.spot.numjobs) == *of).count()
    };
    grids.retain(|of| size(of) > 1 || Some(of.1) == main);
    grids
}

pub(crate) struct SweepPage<'a> {
    pub(crate) style: &'a Style,
    pub(crate) width: usize,
}

impl SweepPage<'_> {
    /// The maps and curves of one pattern.
    fn grid(&self, sweep: &Sweep, rw: AccessPattern, jobs: u32, out: &mut TextWriter) -> io::Result<()> {
        let jobs_text = if jobs > 1 { format!(", {jobs} jobs") } else { String::new() };
        let title = format!("{}{jobs_text}, by block size and requests in flight", capital(rw.title()));
        writeln!(out, "{}", self.style.bold(&title))?;
        let grid = Grid::new(&sweep.points, rw, jobs);
        let map = |measure| grid.map(measure, self.width, self.style);
        let maps = vec![map(MapMeasure::Iops), map(MapMeasure::Bandwidth), map(MapMeasure::Latency)];
        for line in side_by_side(maps, self.width) {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
        let knee = sweep.knees.iter().find(|knee| (knee.rw, knee.numjobs) == (rw, jobs));
        if let Some(knee) = knee {
            self.by_depth(sweep, knee, out)?;
        }
        self.by_block(sweep, &grid, rw, jobs, out)
    }

    /// The curve over depth of the smallest block size that was swept in full.
    fn by_depth(&self, sweep: &Sweep, knee: &Knee, out: &mut TextWriter) -> io::Result<()> {
        let of_knee = |point: &&SweepPoint| {
            let spot = point.spot;
            (spot.rw, spot.block_size_bytes, spot.numjobs) == (knee.rw, knee.block_size_bytes, knee.numjobs)
                && point.ios > 0
        };
        let mut points: Vec<&SweepPoint> = sweep.points.iter().filter(of_knee).collect();
        points.sort_by_key(|point| point.spot.iodepth);
        let most = points.iter().map(|point| point.iops).fold(0.0, f64::max);
        let wide = (self.width / 4).clamp(8, 40);
        let shown = |ns: Option<u64>| ns.map(units::latency).unwrap_or_default();
        let row = |point: &&SweepPoint| {
            let marks = [
                (knee.iodepth_latency == point.spot.iodepth).then_some("best for latency"),
                (knee.iodepth_throughput == Some(point.spot.iodepth)).then_some("95 % of the plateau"),
            ];
            let marks: Vec<&str> = marks.into_iter().flatten().collect();
            vec![
                point.spot.iodepth.to_string(),
                bar(if most > 0.0 { point.iops / most } else { 0.0 }, wide),
                count(point.iops),
                point.lat_ns.mean.map(|mean| units::latency(mean as u64)).unwrap_or_default(),
                shown(point.lat_ns.p99),
                point.queue_depth_mean.map(|held| format!("{held:.1}")).unwrap_or_default(),
                marks.join(", "),
            ]
        };
        let head = vec!["depth", "", "IOPS", "mean", "p99", "held", "knee"];
        let align =
            [Align::Right, Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Left];
        let columns = Columns { head, align: align.to_vec(), rows: points.iter().map(row).collect() };
        let title = format!("{} by depth", block_name(knee.block_size_bytes));
        self.columns(&title, columns, &["held", "p99", "knee"], out)
    }

    /// The most each block size got.
    fn by_block(
        &self,
        sweep: &Sweep,
        grid: &Grid<'_>,
        rw: AccessPattern,
        jobs: u32,
        out: &mut TextWriter,
    ) -> io::Result<()> {
        let best = |block: u64| {
            let of_block = sweep.points.iter().filter(|point| {
                (point.spot.rw, point.spot.numjobs, point.spot.block_size_bytes) == (rw, jobs, block)
                    && point.ios > 0
            });
            of_block.max_by(|a, b| a.iops.total_cmp(&b.iops))
        };
        let bests: Vec<&SweepPoint> = grid.blocks.iter().filter_map(|&block| best(block)).collect();
        if bests.len() < 2 {
            return Ok(());
        }
        let most =
            |measure: fn(&SweepPoint) -> f64| bests.iter().map(|point| measure(point)).fold(1e-9, f64::max);
        let (iops, bytes) = (most(|point| point.iops), most(|point| point.bytes_per_second));
        let wide = (self.width.saturating_sub(30) / 2).clamp(8, 30);
        let row = |point: &&SweepPoint| {
            vec![
                block_name(point.spot.block_size_bytes),
                bar(point.iops / iops, wide),
                count(point.iops),
                bar(point.bytes_per_second / bytes, wide),
                decimal(point.bytes_per_second / 1_048_576.0),
            ]
        };
        let align = [Align::Right, Align::Left, Align::Right, Align::Left, Align::Right];
        let head = vec!["", "", "IOPS", "", "MiB/s"];
        let columns = Columns { head, align: align.to_vec(), rows: bests.iter().map(row).collect() };
        self.columns("The most of each block size", columns, &[], out)
    }

    pub(crate) fn columns(
        &self,
        title: &str,
        columns: Columns,
        dispensable: &[&str],
        out: &mut TextWriter,
    ) -> io::Result<()> {
        writeln!(out, "{}", self.style.bold(title))?;
        columns.write(self.style, INDENT, self.width, dispensable, out)?;
        writeln!(out)
    }

    fn paragraph(&self, label: &str, text: &str, out: &mut TextWriter) -> io::Result<()> {
        const LABEL: usize = 17;
        for (index, line) in wrap(text, self.width, INDENT + LABEL, INDENT + LABEL).iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            writeln!(out, "{:INDENT$}{label:LABEL$}{}", "", line.trim_start_matches(' '))?;
        }
        Ok(())
    }

    fn limits(&self, sweep: &Sweep, out: &mut TextWriter) -> io::Result<()> {
        writeln!(out, "{}", self.style.bold("What limits it"))?;
        for (name, limits) in [("read", &sweep.limits.read), ("write", &sweep.limits.write)] {
            let (Some(iops), Some(bytes)) = (limits.iops, limits.bytes_per_second) else { continue };
            self.paragraph(&format!("{name} IOPS"), &estimate(iops, count, "IOPS"), out)?;
            let mib = |rate: f64| decimal(rate / 1_048_576.0);
            self.paragraph(&format!("{name} bandwidth"), &estimate(bytes, mib, "MiB/s"), out)?;
            if let Some(text) = crossover(limits) {
                self.paragraph(&format!("{name} crossover"), &text, out)?;
            }
            if let Some(range) = limits.near_both_block_size_bytes {
                self.paragraph(&format!("{name} near both"), &near_both(sweep, name, range), out)?;
            }
            if limits.is_client_bound {
                let text = "the jobs were busy all the time where the rate was greatest: this machine's processor \
                            is the limit there, more --numjobs may get more";
                self.paragraph(&format!("{name} client"), text, out)?;
            }
        }
        writeln!(out)
    }

    fn knees(&self, knees: &[Knee], out: &mut TextWriter) -> io::Result<()> {
        if knees.is_empty() {
            return Ok(());
        }
        let row = |knee: &Knee| {
            let jobs = if knee.numjobs > 1 { format!(" x{}", knee.numjobs) } else { String::new() };
            let throughput = match knee.iodepth_throughput {
                Some(depth) if knee.rules_differ => format!("{depth} (broad)"),
                Some(depth) => depth.to_string(),
                None => "not reached".to_owned(),
            };
            let low = knee.low_latency;
            let (depth, iops) =
                low.map(|low| (format!("d{}", low.iodepth), count(low.iops))).unwrap_or_default();
            vec![
                knee.rw.title().to_owned(),
                format!("{}{jobs}", block_name(knee.block_size_bytes)),
                knee.iodepth_latency.to_string(),
                throughput,
                knee.plateau_iops.map(count).unwrap_or_default(),
                iops,
                depth,
            ]
        };
        let head = vec!["", "", "latency", "throughput", "plateau IOPS", "IOPS at d1's latency", "at"];
        let align =
            [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Right, Align::Right];
        let columns = Columns { head, align: align.to_vec(), rows: knees.iter().map(row).collect() };
        self.columns("Depth to choose", columns, &["plateau IOPS"], out)
    }

    fn notes(&self, record: &RunRecord, sweep: &Sweep, out: &mut TextWriter) -> io::Result<()> {
        let mut notes = record.header.notes.clone();
        for point in &sweep.points {
            let title = point.spot.title();
            if let Some(ns) = point.stalled_ns {
                let length = units::duration(fathom_model::Nanos(ns));
                notes.push(format!(
                    "{title}: stalled, nothing completed for {length}; no rule rests on this point"
                ));
            } else if let Some(reason) =
                point.reason.as_ref().filter(|_| point.status != TestStatus::Complete)
            {
                notes.push(format!("{title}: {}: {reason}", point.status.name()));
            }
        }
        notes.extend(depths_not_held(&sweep.points));
        notes.extend(about_the_objective(sweep));
        for alike in record.findings.chunk_by(|one, next| one.id == next.id) {
            let (first, others) = (&alike[0], alike.len() - 1);
            let others = if others > 0 { format!(" ({others} more points alike)") } else { String::new() };
            notes.push(format!("{}: {}: {}{others}", first.id, first.tests.join(", "), first.claim));
        }
        notes.extend(record.header.interrupted.iter().map(|why| format!("the sweep was broken off: {why}")));
        for line in notes.iter().flat_map(|note| wrap(note, self.width, INDENT, INDENT + 2)) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

/// One line for all points that held another depth than was asked for.
fn depths_not_held(points: &[SweepPoint]) -> Option<String> {
    let share =
        |point: &SweepPoint| point.queue_depth_mean.map(|held| held / f64::from(point.spot.in_flight()));
    let off = points.iter().filter(|point| point.ios > 0 && point.stalled_ns.is_none() && !point.is_sound());
    let off: Vec<&SweepPoint> = off.filter(|point| point.status == TestStatus::Complete).collect();
    let worst = off.iter().min_by(|a, b| share(a).partial_cmp(&share(b)).unwrap_or(Ordering::Equal))?;
    let held = worst.queue_depth_mean.unwrap_or(0.0);
    let points = if off.len() == 1 { "1 point".to_owned() } else { format!("{} points", off.len()) };
    Some(format!(
        "{points} held another depth than was asked for (the worst, {}, {held:.1} on average), so no rule rests on \
         them",
        worst.spot.title()
    ))
}

fn estimate(estimate: Estimate, text: impl Fn(f64) -> String, unit: &str) -> String {
    match estimate {
        Estimate::Known { value, low, high } => {
            format!("{} {unit} ({} to {})", text(value), text(low), text(high))
        }
        Estimate::AtLeast(low) => format!("not reached; at least {} {unit}", text(low)),
        Estimate::AtMost(high) => format!("at most {} {unit}", text(high)),
    }
}

fn kib(bytes: f64) -> String {
    format!("{:.1}", bytes / 1024.0)
}

fn crossover(limits: &DirectionLimits) -> Option<String> {
    let text = estimate(limits.crossover_block_size_bytes?, kib, "KiB");
    Some(match limits.crossover_block_size_bytes? {
        Estimate::Known { .. } => {
            format!("{text}: smaller blocks meet the IOPS limit, larger ones the bandwidth limit")
        }
        Estimate::AtLeast(low) => format!("at blocks of {} KiB or more", kib(low)),
        Estimate::AtMost(high) => format!("at blocks of {} KiB or less", kib(high)),
    })
}

/// The range near both limits, with a point that was measured in it.
fn near_both(sweep: &Sweep, direction: &str, BlockSizeRange { low, high }: BlockSizeRange) -> String {
    let range = format!("blocks of {} to {} KiB get 90 % of both limits or more", kib(low), kib(high));
    let in_range = sweep.points.iter().filter(|point| {
        (low..=high).contains(&(point.spot.block_size_bytes as f64))
            && point.spot.rw.writes() == (direction == "write")
            && point.is_sound()
    });
    match in_range.max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second)) {
        Some(point) => format!(
            "{range}; measured at {}: {} IOPS and {} MiB/s",
            block_name(point.spot.block_size_bytes),
            count(point.iops),
            decimal(point.bytes_per_second / 1_048_576.0)
        ),
        None => range,
    }
}

pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
