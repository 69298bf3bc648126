//! fio's terse output: a line per entry, fields separated by semicolons, in its versions 2 to 5.
//!
//! Version 3 has no trims; 4 adds them, 5 also what is known of the windows. Version 2 has
//! neither the version of fio nor disks, and the description on a line of its own.

use std::io;

use fathom_record::{DiskOutcome, Latency, ReportEntry, RunRecord};

use crate::TextWriter;
use crate::fio::direction::{Direction, directions};
use crate::fio::disk::{listed, utilization};
use crate::fio::report::{
    EntryShares, FIO_VERSION, FioReport, GroupFigures, continued_errors, errno, per_second,
};

/// Percentiles of a direction; those that are not asked for are `0%=0`.
const PERCENTILES: usize = 20;

/// Writes the line of every entry in this version.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, version: u8, out: &mut TextWriter) -> io::Result<()> {
    let report = FioReport::new(record);
    let groups = report.groups();
    let out = &mut out.verbatim();
    for entry in &report.entries {
        let mut line = Line::default();
        line.entry(entry, &groups[&entry.job.group], version);
        if version > 2 {
            line.disks(&report.disks);
        }
        if let Some((total, first)) = continued_errors(entry) {
            line.put(total);
            line.put(first);
        }
        let description = entry.job.description.as_deref().unwrap_or_default();
        if version == 2 && !description.is_empty() {
            writeln!(out, "{}", line.0)?;
            line.0.clear();
        }
        match description {
            "" => writeln!(out, "{}", line.0)?,
            text => writeln!(out, "{};{text}", line.0)?,
        }
    }
    Ok(())
}

/// The fields so far.
#[derive(Default)]
struct Line(String);

impl Line {
    fn put(&mut self, field: impl std::fmt::Display) {
        if !self.0.is_empty() {
            self.0.push(';');
        }
        self.0.push_str(&field.to_string());
    }

    fn float(&mut self, value: f64) {
        self.put(format_args!("{value:.6}"));
    }

    fn entry(&mut self, entry: &ReportEntry, group: &GroupFigures, version: u8) {
        let job = &entry.job;
        self.put(version);
        if version > 2 {
            self.put(FIO_VERSION);
        }
        self.put(&job.name);
        self.put(job.group);
        self.put(errno(entry));
        for direction in directions(entry, group).iter().filter(|one| version != 3 || one.name != "trim") {
            self.direction(entry, direction, version);
        }
        let shares = EntryShares::new(entry);
        [shares.user, shares.system].into_iter().for_each(|share| self.put(format_args!("{share:.6}%")));
        let cpu = &job.measured.cpu;
        self.put(cpu.voluntary_switches + cpu.involuntary_switches);
        self.put(cpu.major_faults);
        self.put(cpu.minor_faults);
        shares.depth.into_iter().for_each(|share| self.put(format_args!("{share:.1}%")));
        // There is no field for latencies below 1 us.
        let mut classes = shares.us;
        classes[0] += shares.ns.iter().sum::<f64>();
        classes.into_iter().chain(shares.ms).for_each(|share| self.put(format_args!("{share:.2}%")));
    }

    fn direction(&mut self, entry: &ReportEntry, direction: &Direction<'_>, version: u8) {
        let Direction { counted, of, group, .. } = direction;
        let measure = &entry.job.plan.measure;
        self.put(counted.bytes >> 10);
        self.put(per_second(counted.bytes, of.runtime_ms) >> 10);
        self.put(per_second(counted.ios, of.runtime_ms));
        self.put(of.runtime_ms);
        self.latency(&counted.slat);
        self.latency(&counted.clat);
        let shown = match measure.shown_percentiles() {
            [_, _, true] => Some(&counted.lat),
            [_, true, _] => Some(&counted.clat),
            _ => None,
        };
        let list = measure.percentiles.iter().filter(|_| shown.is_some()).take(PERCENTILES);
        let mut put = 0;
        for &percent in list {
            let ns = shown.and_then(|latency| latency.fio_percentile(percent)).unwrap_or(0);
            self.put(format_args!("{percent:.6}%={}", ns / 1000));
            put += 1;
        }
        (put..PERCENTILES).for_each(|_| self.put("0%=0"));
        self.latency(&counted.lat);
        let bandwidth = &of.bandwidth;
        self.put(bandwidth.min);
        self.put(bandwidth.max);
        let share = if bandwidth.samples == 0 { 0.0 } else { group.percent_of(bandwidth.mean) };
        self.put(format_args!("{share:.6}%"));
        self.float(bandwidth.mean);
        self.float(bandwidth.stdev());
        if version == 5 {
            self.put(bandwidth.samples);
            self.put(of.iops.min);
            self.put(of.iops.max);
            self.float(of.iops.mean);
            self.float(of.iops.stdev());
            self.put(of.iops.samples);
        }
    }

    /// Minimum, maximum, mean and standard deviation in us.
    fn latency(&mut self, latency: &Latency) {
        let moments = &latency.moments;
        self.put(moments.min / 1000);
        self.put(moments.max / 1000);
        self.float(moments.mean() / 1000.0);
        self.float(moments.stdev() / 1000.0);
    }

    fn disks(&mut self, disks: &[DiskOutcome]) {
        for one in listed(disks) {
            let c = &one.disk.counters;
            self.put(&one.disk.name);
            for counter in [
                c.read_ios, c.write_ios, c.read_merges, c.write_merges, c.read_ticks_ms, c.write_ticks_ms,
                c.queue_ms,
            ] {
                self.put(counter);
            }
            self.put(format_args!("{:.2}%", utilization(one.disk)));
        }
    }
}
