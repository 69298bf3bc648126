//! fio's normal output: the entries, the status of each group, the disks.

use std::io;

use fathom_model::plan::{FigureForm, UnifiedReporting};
use fathom_record::{DiskCounters, DiskOutcome, RunRecord};

use crate::fio::disk::{ListedDisk, listed, utilization};
use crate::fio::entry::write_entry;
use crate::fio::number::Figures;
use crate::fio::report::{self, FioReport, GroupOp};
use crate::fio::response::response_lines;
use crate::formats::text;
use crate::{Style, TextWriter, fio::banner as fio_banner, fleet};

/// Writes banner and results of a run.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    fio_banner::render(record, out)?;
    render_results(record, style, out)?;
    render_hosts(record, style, out)
}

/// Writes what a run of several hosts has beside fio's results; nothing of a run of one.
///
/// # Errors
/// Those of `out`.
pub fn render_hosts(record: &RunRecord, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    if record.header.fleet.is_some() {
        let beside = fleet::beside(record);
        writeln!(out)?;
        text::render(&beside, &Style { is_full: true, ..style.clone() }, out)?;
    }
    Ok(())
}

/// Writes the results alone, for a run whose banner was written when it began.
///
/// # Errors
/// Those of `out`.
pub fn render_results(record: &RunRecord, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    render_report(&FioReport::new(record), style, out)
}

/// Writes the results of a report.
///
/// # Errors
/// Those of `out`.
pub fn render_report(report: &FioReport, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let groups = report.groups();
    let out = &mut out.verbatim();
    writeln!(out)?;
    // Of one job the sum over the hosts says all.
    let is_shown = report.all_clients.is_none() || report.entries.len() > 1;
    for entry in report.entries.iter().filter(|_| is_shown) {
        write_entry(out, entry, &groups[&entry.job.group], style, report.finished_unix_ms)?;
    }
    if let Some(all) = &report.all_clients {
        let of_all = report::groups(std::slice::from_ref(&all.entry));
        write_entry(out, &all.entry, &of_all[&all.entry.job.group], style, report.finished_unix_ms)?;
    }
    for (number, group) in &groups {
        writeln!(out)?;
        writeln!(out, "Run status group {number} (all jobs):")?;
        if group.unified != UnifiedReporting::Mixed {
            for (name, op) in ["READ", "WRITE", "TRIM"].into_iter().zip(&group.ops) {
                group_line(out, name, op, &group.form)?;
            }
        }
        if group.unified != UnifiedReporting::None {
            group_line(out, "MIXED", &group.mixed, &group.form)?;
        }
    }
    disk_lines(out, &report.disks)?;
    if let Some(idleness) = &report.idleness {
        writeln!(out)?;
        idleness.to_string().lines().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    if report.is_for_programs {
        return Ok(());
    }
    let notes = notes(report);
    if !notes.is_empty() {
        writeln!(out)?;
        writeln!(out, "fathom notes:")?;
    }
    notes.iter().try_for_each(|note| writeln!(out, "  {note}"))
}

/// What fio's text has no place for: response times and notes.
pub fn notes(report: &FioReport) -> Vec<String> {
    let responses = report.entries.iter().flat_map(response_lines);
    responses.chain(report.notes.iter().cloned()).collect()
}

fn group_line(out: &mut TextWriter, name: &str, op: &GroupOp, form: &FigureForm) -> io::Result<()> {
    if op.max_runtime_ms == 0 {
        return Ok(());
    }
    let rate = |rate, family| form.bandwidth(rate, family);
    let range = |family| format!("{}-{}", rate(op.min_bandwidth, family), rate(op.max_bandwidth, family));
    let [first, second] = form.families();
    writeln!(
        out,
        "{name:>7}: bw={} ({}), {} ({}), io={} ({}), run={}-{}msec",
        rate(op.bandwidth(), first),
        rate(op.bandwidth(), second),
        range(first),
        range(second),
        form.bytes(op.bytes, first),
        form.bytes(op.bytes, second),
        op.min_runtime_ms,
        op.max_runtime_ms
    )
}

fn disk_lines(out: &mut TextWriter, disks: &[DiskOutcome]) -> io::Result<()> {
    let disks = listed(disks);
    if disks.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    writeln!(out, "Disk stats (read/write):")?;
    for ListedDisk { disk, slaves, aggregate } in &disks {
        let aggregate =
            aggregate.as_ref().map(|(mean, share)| format!(", {}", counters("aggr", mean, *share)));
        let own = counters("", &disk.counters, utilization(disk));
        writeln!(out, "  {}: {own}{}", disk.name, aggregate.unwrap_or_default())?;
        for slave in slaves {
            writeln!(out, "    {}: {}", slave.name, counters("", &slave.counters, utilization(slave)))?;
        }
    }
    Ok(())
}

fn counters(prefix: &str, c: &DiskCounters, utilization: f64) -> String {
    format!(
        "{prefix}ios={}/{}, {prefix}sectors={}/{}, {prefix}merge={}/{}, {prefix}ticks={}/{}, {prefix}in_queue={}, \
         {prefix}util={utilization:3.2}%",
        c.read_ios,
        c.write_ios,
        c.read_sectors,
        c.write_sectors,
        c.read_merges,
        c.write_merges,
        c.read_ticks_ms,
        c.write_ticks_ms,
        c.queue_ms
    )
}
