//! fio's JSON: every key and type of 3.42's document for what is measured here, in its order and layout.
//!
//! What fio has no key for goes into a last object named `fathom`, which is there only when it has something to say.

use std::io::{self, Write};

use fathom_model::Op;
use fathom_record::{DiskCounters, EntryOp, Latency, LatencyClasses, OpOutcome, ReportEntry, RunRecord};

use crate::Style;
use crate::fio::disk::{listed, utilization};
use crate::fio::json_value::{Object, Value};
use crate::fio::latency::json_percentile;
use crate::fio::report::{
    BATCH_LABELS, DEPTH_LABELS, EntryShares, FIO_VERSION, FioReport, GroupOp, continued_errors, errno,
    per_second,
};
use crate::fio::response::response_object;

/// fio's `json`, or `json+`, which adds every bin of the histograms whose percentiles are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bins {
    /// `json`.
    Without,
    /// `json+`.
    With,
}

/// Writes `json`.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    render_report(&FioReport::new(record), Bins::Without, style, out)
}

/// Writes `json+`.
///
/// # Errors
/// Those of `out`.
pub fn render_plus(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    render_report(&FioReport::new(record), Bins::With, style, out)
}

/// Writes the document of a report.
///
/// # Errors
/// Those of `out`.
pub fn render_report(report: &FioReport, bins: Bins, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let groups = report.groups();
    let finished_ms = report.finished_unix_ms;
    let mut document = Object::default();
    document.set("fio version", FIO_VERSION);
    document.set("timestamp", finished_ms / 1000);
    document.set("timestamp_ms", finished_ms);
    document.set("time", style.time(finished_ms, "%a %b %e %H:%M:%S %Y"));
    if !report.global_options.is_empty() {
        document.set("global options", options(&report.global_options));
    }
    let jobs = report.entries.iter().map(|entry| job(entry, &groups[&entry.job.group], bins).into());
    document.set("jobs", jobs.collect::<Vec<Value>>());
    if let Some(disks) = disks(report) {
        document.set("disk_util", disks);
    }
    if let Some(own) = own(report) {
        document.set("fathom", own);
    }
    document.write_document(out)
}

/// What fio has no key for; `None` where there is nothing to say.
fn own(report: &FioReport) -> Option<Object> {
    let mut own = Object::default();
    if !report.notes.is_empty() {
        let notes: Vec<Value> = report.notes.iter().map(|note| note.as_str().into()).collect();
        own.set("notes", notes);
    }
    let served =
        report.entries.iter().filter(|entry| entry.job.measured.kernel_threads != Default::default());
    let threads: Vec<Value> = served.map(|entry| kernel_threads(entry).into()).collect();
    if !threads.is_empty() {
        own.set("kernel_threads", threads);
    }
    let scheduled: Vec<Value> = report.entries.iter().filter_map(response_object).map(Value::from).collect();
    if !scheduled.is_empty() {
        own.set("open_loop", scheduled);
    }
    (!own.is_empty()).then_some(own)
}

/// CPU time that is in none of the entry's own percentages.
fn kernel_threads(entry: &ReportEntry) -> Object {
    let threads = &entry.job.measured.kernel_threads;
    let mut object = Object::default();
    object.set("jobname", entry.job.name.as_str());
    object.set("groupid", entry.job.group);
    object.set("workers", threads.workers);
    object.set("workers_ns", threads.workers_ns);
    object.set("submitter_ns", threads.submitter_ns);
    object
}

/// Options as said; of one said twice, the last value in the first place.
fn options(said: &[(String, String)]) -> Object {
    let mut unique: Vec<(&str, &str)> = Vec::new();
    for (name, value) in said {
        match unique.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = value,
            None => unique.push((name, value)),
        }
    }
    Object::of(unique)
}

/// fio's "no idea", which it also gives for jobs that failed.
const ETA_UNKNOWN: i32 = i32::MAX;

fn job(entry: &ReportEntry, group: &[GroupOp; 3], bins: Bins) -> Object {
    let job = &entry.job;
    let measured = &job.measured;
    let shares = EntryShares::new(entry);
    let mut object = Object::default();
    object.set("jobname", job.name.as_str());
    object.set("groupid", job.group);
    object.set("job_start", job.started_unix_ms);
    object.set("error", errno(entry));
    object.set("eta", if errno(entry) == 0 { 0 } else { ETA_UNKNOWN });
    object.set("elapsed", entry.elapsed_ns.div_ceil(1_000_000_000));
    if !job.options.is_empty() {
        object.set("job options", options(&job.options));
    }
    for op in Op::DATA {
        let group = &group[op as usize];
        object.set(op.name(), direction(entry, measured.op(op), entry.op(op), group, bins));
    }
    let mut sync = Object::default();
    sync.set("total_ios", measured.syncs);
    // fio's text has them always, its JSON only along with those of the data.
    let [_, clat, lat] = job.plan.measure.shown_percentiles();
    let list = (clat || lat).then_some(job.plan.measure.percentiles.as_slice());
    sync.set("lat_ns", latency(&measured.sync_lat, list, bins));
    object.set("sync", sync);
    object.set("job_runtime", entry.job_runtime_ns / 1_000_000);
    object.set("usr_cpu", shares.user);
    object.set("sys_cpu", shares.system);
    object.set("ctx", measured.cpu.voluntary_switches + measured.cpu.involuntary_switches);
    object.set("majf", measured.cpu.major_faults);
    object.set("minf", measured.cpu.minor_faults);
    object.set("iodepth_level", labelled(&DEPTH_LABELS, &shares.depth));
    object.set("iodepth_submit", labelled(&BATCH_LABELS, &shares.submit));
    object.set("iodepth_complete", labelled(&BATCH_LABELS, &shares.complete));
    object.set("latency_ns", labelled(&LatencyClasses::LABELS, &shares.ns));
    object.set("latency_us", labelled(&LatencyClasses::LABELS, &shares.us));
    object.set("latency_ms", labelled(&LatencyClasses::LABELS, &shares.ms));
    if let Some((total, first)) = continued_errors(entry) {
        object.set("total_err", total);
        object.set("first_error", first);
    }
    object.set("latency_depth", job.iodepth());
    object.set("latency_target", 0);
    object.set("latency_target_ns", 0);
    object.set("latency_percentile", 100.0);
    object.set("latency_window", 0);
    object.set("latency_window_us", 0);
    if let Some(description) = job.description.as_ref().filter(|text| !text.is_empty()) {
        object.set("desc", description.as_str());
    }
    object
}

fn labelled(labels: &[&str], shares: &[f64]) -> Object {
    Object::of(labels.iter().copied().zip(shares.iter().copied()))
}

fn direction(entry: &ReportEntry, op: &OpOutcome, of: &EntryOp, group: &GroupOp, bins: Bins) -> Object {
    let measure = &entry.job.plan.measure;
    let [slat, clat, lat] = measure.shown_percentiles();
    let rate = per_second(op.bytes, of.runtime_ms);
    let iops = if of.runtime_ms == 0 { 0.0 } else { op.ios as f64 * 1000.0 / of.runtime_ms as f64 };
    let mut object = Object::default();
    object.set("io_bytes", op.bytes);
    object.set("io_kbytes", op.bytes >> 10);
    object.set("bw_bytes", rate);
    object.set("bw", rate >> 10);
    object.set("iops", iops);
    object.set("runtime", of.runtime_ms);
    object.set("total_ios", op.ios);
    object.set("short_ios", op.short);
    object.set("drop_ios", 0);
    for (name, kind, on) in
        [("slat_ns", &op.slat, slat), ("clat_ns", &op.clat, clat), ("lat_ns", &op.lat, lat)]
    {
        object.set(name, latency(kind, on.then_some(measure.percentiles.as_slice()), bins));
    }
    let bandwidth = &of.bandwidth;
    object.set("bw_min", bandwidth.min);
    object.set("bw_max", bandwidth.max);
    object.set("bw_agg", if bandwidth.samples == 0 { 0.0 } else { group.percent_of(bandwidth.mean) });
    object.set("bw_mean", bandwidth.mean);
    object.set("bw_dev", bandwidth.stdev());
    object.set("bw_samples", bandwidth.samples);
    object.set("iops_min", of.iops.min);
    object.set("iops_max", of.iops.max);
    object.set("iops_mean", of.iops.mean);
    object.set("iops_stddev", of.iops.stdev());
    object.set("iops_samples", of.iops.samples);
    object
}

/// A latency object; with percentiles where a list is given and there are samples.
fn latency(latency: &Latency, list: Option<&[f64]>, bins: Bins) -> Object {
    let moments = &latency.moments;
    let mut object = Object::default();
    object.set("min", moments.min);
    object.set("max", moments.max);
    object.set("mean", moments.mean());
    object.set("stddev", moments.stdev());
    object.set("N", moments.count);
    let Some(list) = list.filter(|_| moments.count > 0) else { return object };
    let percentiles = list.iter().filter_map(|&p| Some((json_percentile(p), latency.fio_percentile(p)?)));
    object.set("percentile", Object::of(percentiles));
    if bins == Bins::With {
        object.set("bins", Object::of(latency.fio_bins().iter().map(|(ns, count)| (ns.to_string(), *count))));
    }
    object
}

fn disks(report: &FioReport) -> Option<Vec<Value>> {
    let listed = listed(&report.disks);
    let disk = |listed: &crate::fio::disk::ListedDisk| {
        let mut object = Object::default();
        object.set("name", listed.disk.name.as_str());
        counters(&mut object, "", &listed.disk.counters, utilization(listed.disk));
        if let Some((mean, utilization)) = &listed.aggregate {
            counters(&mut object, "aggr_", mean, *utilization);
        }
        Value::from(object)
    };
    (!listed.is_empty()).then(|| listed.iter().map(disk).collect())
}

fn counters(object: &mut Object, prefix: &str, c: &DiskCounters, utilization: f64) {
    for (name, value) in [
        ("read_ios", c.read_ios),
        ("write_ios", c.write_ios),
        ("read_sectors", c.read_sectors),
        ("write_sectors", c.write_sectors),
        ("read_merges", c.read_merges),
        ("write_merges", c.write_merges),
        ("read_ticks", c.read_ticks_ms),
        ("write_ticks", c.write_ticks_ms),
        ("in_queue", c.queue_ms),
    ] {
        object.set(format!("{prefix}{name}"), value);
    }
    object.set(format!("{prefix}util"), utilization);
}
