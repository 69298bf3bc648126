//! fio's JSON: every key and type of 3.42's document for what is measured here, in its order and layout.
//!
//! What fio has no key for goes into a last object named `fathom`, which is there only when it has something to say.

use std::io::{self, Write};

use fathom_model::plan::{MeasurePlan, UnifiedReporting};
use fathom_record::{
    DiskCounters, Latency, LatencyClasses, OpOutcome, ReportEntry, RunRecord, VerifyOutcome,
};
use serde_json::{Map, Value, json};

use crate::Style;
use crate::fio::conditions::{latency_members, steady_object};
use crate::fio::direction::{Direction, directions};
use crate::fio::disk::{ListedDisk, listed, utilization};
use crate::fio::json_value::write_document;
use crate::fio::latency::json_percentile;
use crate::fio::priority;
use crate::fio::report::{
    BATCH_LABELS, DEPTH_LABELS, EntryShares, FIO_VERSION, FioReport, GroupFigures, continued_errors, errno,
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
    let mut document = json!({
        "fio version": FIO_VERSION,
        "timestamp": finished_ms / 1000,
        "timestamp_ms": finished_ms,
        "time": style.time(finished_ms, "%a %b %e %H:%M:%S %Y"),
    });
    if !report.global_options.is_empty() {
        document["global options"] = options(&report.global_options);
    }
    let jobs = report.entries.iter().map(|entry| job(entry, &groups[&entry.job.group], bins));
    document["jobs"] = jobs.collect();
    let disks = listed(&report.disks);
    if !disks.is_empty() {
        document["disk_util"] = disks.iter().map(disk).collect();
    }
    if let Some(idleness) = &report.idleness {
        document["cpu_idleness"] = idleness.json();
    }
    if let Some(own) = own(report) {
        document["fathom"] = own;
    }
    write_document(&document, out)
}

/// What fio has no key for; `None` where there is nothing to say.
fn own(report: &FioReport) -> Option<Value> {
    let mut own = Map::new();
    let mut add = |name: &str, list: Vec<Value>| {
        if !list.is_empty() {
            own.insert(name.to_owned(), list.into());
        }
    };
    add("notes", report.notes.iter().map(|note| note.as_str().into()).collect());
    let served =
        report.entries.iter().filter(|entry| entry.job.measured.kernel_threads != Default::default());
    add("kernel_threads", served.map(kernel_threads).collect());
    add("open_loop", report.entries.iter().filter_map(response_object).collect());
    if let Some(all) = &report.all_clients {
        own.insert("fleet".to_owned(), all.fleet.clone());
    }
    (!own.is_empty()).then_some(own.into())
}

/// CPU time that is in none of the entry's own percentages.
fn kernel_threads(entry: &ReportEntry) -> Value {
    let threads = &entry.job.measured.kernel_threads;
    json!({
        "jobname": entry.job.name,
        "groupid": entry.job.group,
        "workers": threads.workers,
        "workers_ns": threads.workers_ns,
        "submitter_ns": threads.submitter_ns,
    })
}

/// Options as given; of one given twice, the last value in the first place.
fn options(options: &[(String, String)]) -> Value {
    options.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect::<Map<_, _>>().into()
}

/// fio's "no idea", which it also gives for jobs that failed.
const ETA_UNKNOWN: i32 = i32::MAX;

fn job(entry: &ReportEntry, group: &GroupFigures, bins: Bins) -> Value {
    let job = &entry.job;
    let measured = &job.measured;
    let shares = EntryShares::new(entry);
    let mut object = json!({
        "jobname": job.name,
        "groupid": job.group,
        "job_start": job.started_unix_ms,
        "error": errno(entry),
        "eta": if errno(entry) == 0 { 0 } else { ETA_UNKNOWN },
        "elapsed": entry.elapsed_ns.div_ceil(1_000_000_000),
    });
    if !job.options.is_empty() {
        object["job options"] = options(&job.options);
    }
    let directions = directions(entry, group);
    for one in directions.iter().filter(|one| one.name != "mixed") {
        object[one.name] = direction(entry, one, bins);
    }
    // fio's text has them always, its JSON only along with those of the data.
    let [_, clat, lat] = job.plan.measure.shown_percentiles();
    let list = (clat || lat).then_some(job.plan.measure.percentiles.as_slice());
    if job.plan.measure.unified != UnifiedReporting::Mixed {
        object["sync"] =
            json!({ "total_ios": measured.syncs, "lat_ns": latency(&measured.sync_lat, list, bins) });
    }
    for one in directions.iter().filter(|one| one.name == "mixed") {
        object[one.name] = direction(entry, one, bins);
    }
    extend(
        &mut object,
        json!({
            "job_runtime": entry.job_runtime_ns / 1_000_000,
            "usr_cpu": shares.user,
            "sys_cpu": shares.system,
            "ctx": measured.cpu.voluntary_switches + measured.cpu.involuntary_switches,
            "majf": measured.cpu.major_faults,
            "minf": measured.cpu.minor_faults,
            "iodepth_level": labelled(&DEPTH_LABELS, &shares.depth),
            "iodepth_submit": labelled(&BATCH_LABELS, &shares.submit),
            "iodepth_complete": labelled(&BATCH_LABELS, &shares.complete),
            "latency_ns": labelled(&LatencyClasses::LABELS, &shares.ns),
            "latency_us": labelled(&LatencyClasses::LABELS, &shares.us),
            "latency_ms": labelled(&LatencyClasses::LABELS, &shares.ms),
        }),
    );
    if let Some((total, first)) = continued_errors(entry) {
        extend(&mut object, json!({ "total_err": total, "first_error": first }));
    }
    if let Some(verified) = &job.verified {
        object["verify"] = checked(verified);
    }
    extend(&mut object, latency_members(job));
    if let Some(description) = job.description.as_ref().filter(|text| !text.is_empty()) {
        object["desc"] = description.as_str().into();
    }
    if let Some(steady) = &job.steady {
        object["steadystate"] = steady_object(steady);
    }
    object
}

/// The result of checking data that was read back; not in fio's report.
fn checked(verified: &VerifyOutcome) -> Value {
    json!({ "checked": verified.checked, "bad": verified.bad, "first_bad": verified.first_bad })
}

/// Adds the members of `more` behind those of `object`.
fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(members), Value::Object(more)) = (object, more) {
        members.extend(more);
    }
}

fn labelled(labels: &[&str], shares: &[f64]) -> Value {
    let members = labels.iter().zip(shares).map(|(label, share)| ((*label).to_owned(), Value::from(*share)));
    members.collect::<Map<_, _>>().into()
}

fn direction(entry: &ReportEntry, direction: &Direction<'_>, bins: Bins) -> Value {
    let Direction { counted: op, of, group, .. } = direction;
    let measure = &entry.job.plan.measure;
    let [slat, clat, lat] = measure.shown_percentiles();
    let rate = per_second(op.bytes, of.runtime_ms);
    let iops = if of.runtime_ms == 0 { 0.0 } else { op.ios as f64 * 1000.0 / of.runtime_ms as f64 };
    let latency = |kind, on: bool| latency(kind, on.then_some(measure.percentiles.as_slice()), bins);
    let bandwidth = &of.bandwidth;
    let mut object = json!({
        "io_bytes": op.bytes,
        "io_kbytes": op.bytes >> 10,
        "bw_bytes": rate,
        "bw": rate >> 10,
        "iops": iops,
        "runtime": of.runtime_ms,
        "total_ios": op.ios,
        "short_ios": op.short,
        "drop_ios": 0,
        "slat_ns": latency(&op.slat, slat),
        "clat_ns": latency(&op.clat, clat),
        "lat_ns": latency(&op.lat, lat),
    });
    let prios = priorities(op, measure, clat || lat, bins);
    if !prios.is_empty() {
        object["prios"] = prios.into();
    }
    let windows = json!({
        "bw_min": bandwidth.min,
        "bw_max": bandwidth.max,
        "bw_agg": if bandwidth.samples == 0 { 0.0 } else { group.percent_of(bandwidth.mean) },
        "bw_mean": bandwidth.mean,
        "bw_dev": bandwidth.stdev(),
        "bw_samples": bandwidth.samples,
        "iops_min": of.iops.min,
        "iops_max": of.iops.max,
        "iops_mean": of.iops.mean,
        "iops_stddev": of.iops.stdev(),
        "iops_samples": of.iops.samples,
    });
    extend(&mut object, windows);
    object
}

/// fio's list of latencies by priority.
fn priorities(op: &OpOutcome, measure: &MeasurePlan, has_percentiles: bool, bins: Bins) -> Vec<Value> {
    let list = has_percentiles.then_some(measure.percentiles.as_slice());
    let kind = format!("{}_ns", priority::kind(measure));
    let listed = priority::listed(op).into_iter().map(|(of, recorded)| {
        let mut object = json!({ "prioclass": of.class, "prio": of.level, "priohint": of.hint });
        object[&kind] = latency(recorded, list, bins);
        object
    });
    listed.collect()
}

/// A latency object; with percentiles where a list is given and there are samples.
fn latency(latency: &Latency, list: Option<&[f64]>, bins: Bins) -> Value {
    let moments = &latency.moments;
    let mut object = json!({
        "min": moments.min,
        "max": moments.max,
        "mean": moments.mean(),
        "stddev": moments.stdev(),
        "N": moments.count,
    });
    let Some(list) = list.filter(|_| moments.count > 0) else { return object };
    let percentile =
        |&percent: &f64| Some((json_percentile(percent), latency.fio_percentile(percent)?.into()));
    object["percentile"] = list.iter().filter_map(percentile).collect::<Map<_, _>>().into();
    if bins == Bins::With {
        let bins = latency.fio_bins();
        let bins = bins.iter().map(|(ns, count)| (ns.to_string(), Value::from(*count)));
        object["bins"] = bins.collect::<Map<_, _>>().into();
    }
    object
}

fn disk(listed: &ListedDisk<'_>) -> Value {
    let mut object = json!({ "name": listed.disk.name });
    counters(&mut object, "", &listed.disk.counters, utilization(listed.disk));
    if let Some((mean, utilization)) = &listed.aggregate {
        counters(&mut object, "aggr_", mean, *utilization);
    }
    object
}

fn counters(object: &mut Value, prefix: &str, c: &DiskCounters, utilization: f64) {
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
        object[format!("{prefix}{name}")] = value.into();
    }
    object[format!("{prefix}util")] = utilization.into();
}
