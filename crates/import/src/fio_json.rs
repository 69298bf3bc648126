//! `--output-format=json` and `json+` of fio 2.x and 3.x.
//!
//! Up to 2.x times are in µs, `io_bytes` is in KiB and whole rates are what is left of division; 3.x has ns, bytes and fractions.

use std::collections::BTreeMap;

use fathom_model::{Op, PerOp};
use fathom_record::import::{
    DepthShare, Figure, FigurePlace, ImportedCpu, ImportedDisk, ImportedEntry, ImportedLatency, ImportedOp,
    ImportedPercentile, ImportedTest, LatencyBin, LatencyShare, RateWindows,
};
use serde_json::{Map, Value};

use crate::json::{self, JsonDigits};
use crate::load;
use crate::report::SourceReport;

const KIB: f64 = 1024.0;
const EXACT: JsonDigits = JsonDigits::EXACT;

/// What every document of fio has.
pub(crate) const MARK: &str = "\"fio version\"";

/// True for a document of fio.
pub(crate) fn is_fio(document: &Value) -> bool {
    jobs(document).is_some()
}

/// True if `next` is a later state of the run that `earlier` is of.
pub(crate) fn is_of_same_run(earlier: &Value, next: &Value) -> bool {
    let each = |document: &Value| jobs(document).map_or(&[][..], Vec::as_slice).to_vec();
    let done = |job: &Value| -> u64 {
        let of = |op: Op| job[op.name()]["total_ios"].as_u64().unwrap_or(0);
        Op::DATA.into_iter().map(of).sum()
    };
    let (one, other) = (each(earlier), each(next));
    let mut pairs = one.iter().zip(&other);
    let is_later = |(one, other): (&Value, &Value)| {
        one["jobname"] == other["jobname"]
            && done(one) <= done(other)
            && one["elapsed"].as_u64() <= other["elapsed"].as_u64()
    };
    let has_grown = one.iter().map(done).sum::<u64>() < other.iter().map(done).sum();
    // Whole seconds of elapsed time are taken from the time of the report.
    let is_same_start = started(earlier).abs_diff(started(next)) <= 2000;
    one.len() == other.len() && is_same_start && has_grown && pairs.all(is_later)
}

/// Reads a document.
pub(crate) fn read(document: &Value) -> SourceReport {
    let mut report = SourceReport::default();
    let version = json::text(document, "fio version");
    let version = version.trim_start_matches("fio").trim_start_matches(['-', ' ']).to_owned();
    let disks: Vec<ImportedDisk> = members(document, "disk_util").iter().map(disk).collect();
    let global = options(&document["global options"]);
    for (index, job) in jobs(document).into_iter().flatten().enumerate() {
        let name = json::text(job, "jobname");
        // A server adds one up for all its clients.
        if name == "All clients" {
            continue;
        }
        let group = job["groupid"].as_u64().and_then(|id| u32::try_from(id).ok()).unwrap_or(0);
        let test = &mut report.test(&name, group).imported;
        add_job(test, job, &name, &global);
        test.places.push(FigurePlace { text: format!("jobs[{index}]"), ..FigurePlace::default() });
        (test.tool, test.tool_version) = ("fio".to_owned(), version.clone());
        test.disks.clone_from(&disks);
    }
    report.started_unix_ms = started(document);
    report
}

/// The entries of a document of fio.
fn jobs(document: &Value) -> Option<&Vec<Value>> {
    document.get("fio version")?;
    ["jobs", "client_stats"].iter().find_map(|key| document[key].as_array())
}

fn members<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object[key].as_array().map_or(&[], Vec::as_slice)
}

/// When the first job began, as far as it is known, ms since the epoch.
fn started(document: &Value) -> u64 {
    let jobs = jobs(document).map_or(&[][..], Vec::as_slice);
    let first = jobs.iter().filter_map(|job| job["job_start"].as_u64()).min();
    let reported = || {
        let seconds = document["timestamp"].as_u64()?;
        let ms = document["timestamp_ms"].as_u64().or_else(|| seconds.checked_mul(1000))?;
        let elapsed = jobs.iter().filter_map(|job| job["elapsed"].as_u64()).max()?;
        ms.checked_sub(elapsed.checked_mul(1000)?)
    };
    // Later is no time of this calendar.
    first.or_else(reported).filter(|&ms| ms < 1 << 48).unwrap_or(0)
}

fn options(object: &Value) -> BTreeMap<String, String> {
    let entries = object.as_object().into_iter().flatten();
    entries.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

fn add_job(test: &mut ImportedTest, job: &Value, name: &str, global: &BTreeMap<String, String>) {
    let mut all = global.clone();
    all.extend(options(&job["job options"]));
    let is_reported_by_group = all.contains_key("group_reporting");
    if !all.is_empty() {
        test.load = load::of_options(all);
    }
    // Lists of clones have an entry for each.
    let jobs = if is_reported_by_group { test.load.jobs } else { Some(1) };
    let mut entry = ImportedEntry {
        name: name.to_owned(),
        jobs: jobs.filter(|_| !test.load.options.is_empty()),
        description: json::text(job, "desc"),
        error: job["error"].as_i64().and_then(|error| i32::try_from(error).ok()),
        total: op(&job["mixed"]),
        sync: sync(&job["sync"]),
        job_runtime_ns: JsonDigits { scale: 1e6, whole: 1.0, ..EXACT }.figure(job, "job_runtime"),
        cpu: ImportedCpu {
            user_percent: EXACT.figure(job, "usr_cpu"),
            system_percent: EXACT.figure(job, "sys_cpu"),
            machine_percent: None,
            context_switches: EXACT.figure(job, "ctx"),
            major_faults: EXACT.figure(job, "majf"),
            minor_faults: EXACT.figure(job, "minf"),
        },
        depths: shares(&job["iodepth_level"])
            .filter_map(|(label, percent)| {
                Some(DepthShare { from: label.trim_start_matches(">=").parse().ok()?, percent })
            })
            .collect(),
        failed: EXACT.figure(job, "total_err"),
        ..ImportedEntry::default()
    };
    entry.depths.sort_by_key(|share| share.from);
    for direction in Op::DATA {
        if let Some(found) = op(&job[direction.name()]) {
            *entry.op_mut(direction) = found;
        }
    }
    for (key, unit_ns) in [("latency_ns", 1), ("latency_us", 1_000), ("latency_ms", 1_000_000)] {
        let of_unit = shares(&job[key]).filter_map(|(label, percent)| {
            let below_ns =
                if label.starts_with(">=") { 0 } else { label.parse::<u64>().ok()?.checked_mul(unit_ns)? };
            Some(LatencyShare { below_ns, percent })
        });
        entry.latencies.extend(of_unit);
    }
    entry.latencies.sort_by_key(|share| if share.below_ns == 0 { u64::MAX } else { share.below_ns });
    test.entries.push(entry);
}

/// Percentages by their labels; those of 0 are no figures of text either.
fn shares(object: &Value) -> impl Iterator<Item = (&str, Figure<f64>)> {
    let entries = object.as_object().into_iter().flatten();
    entries.filter_map(|(label, _)| Some((label.as_str(), EXACT.figure(object, label)?)))
}

/// One operation; `None` where it was not run.
fn op(object: &Value) -> Option<ImportedOp> {
    let has = |key: &str| object[key].as_f64().is_some_and(|value| value > 0.0);
    if !["io_bytes", "io_kbytes", "total_ios", "runtime"].iter().any(|key| has(key)) {
        return None;
    }
    // From 3.x on.
    let is_in_bytes = object.get("io_kbytes").is_some();
    let bytes = if is_in_bytes { EXACT } else { JsonDigits { scale: KIB, whole: 1.0, real: 1.0 } };
    let kib = JsonDigits { scale: KIB, whole: 1.0, real: 0.005 };
    let rate = if object.get("bw_bytes").is_some() {
        JsonDigits { whole: 1.0, ..EXACT }.figure(object, "bw_bytes")
    } else {
        kib.figure(object, "bw")
    };
    Some(ImportedOp {
        iops: JsonDigits { scale: 1.0, whole: 1.0, real: if is_in_bytes { 5e-7 } else { 0.005 } }
            .figure(object, "iops"),
        bytes_per_second: rate,
        bytes: bytes.figure(object, "io_bytes"),
        ios: EXACT.figure(object, "total_ios"),
        short: EXACT.figure(object, "short_ios"),
        dropped: EXACT.figure(object, "drop_ios"),
        runtime_ns: JsonDigits { scale: 1e6, whole: 1.0, ..EXACT }.figure(object, "runtime"),
        slat: latency(object, "slat"),
        clat: latency(object, "clat"),
        lat: latency(object, "lat"),
        bandwidth_windows: windows(object, ["bw_min", "bw_max", "bw_mean", "bw_dev", "bw_samples"], kib),
        iops_windows: windows(
            object,
            ["iops_min", "iops_max", "iops_mean", "iops_stddev", "iops_samples"],
            JsonDigits { whole: 1.0, ..EXACT },
        ),
        ..ImportedOp::default()
    })
}

fn windows(object: &Value, keys: [&str; 5], digits: JsonDigits) -> Option<RateWindows> {
    let [min, max, mean, stddev, samples] = keys;
    let samples: Option<Figure<u64>> = EXACT.figure(object, samples);
    // 2.x does not say how many there were.
    let is_empty = samples.map_or_else(|| object[mean].as_f64() == Some(0.0), |samples| samples.value == 0);
    if is_empty || object.get(mean).is_none() {
        return None;
    }
    // Their share of the group is added up from rounded rates.
    let group_percent = JsonDigits { real: 1e-3, ..EXACT }.figure(object, "bw_agg");
    Some(RateWindows {
        min: digits.figure(object, min),
        mean: digits.figure(object, mean),
        max: digits.figure(object, max),
        stddev: digits.figure(object, stddev),
        samples,
        group_percent: group_percent.filter(|_| min == "bw_min"),
    })
}

/// `slat_ns` of 3.x, `slat` in µs of 2.x.
fn latency(object: &Value, span: &str) -> ImportedLatency {
    let (in_ns, in_us) = (&object[format!("{span}_ns")], &object[span]);
    let (object, digits) = match in_ns.is_object() {
        true => (in_ns, EXACT),
        false => (in_us, JsonDigits { scale: 1e3, whole: 1.0, real: 0.005 }),
    };
    let samples: Option<Figure<u64>> = EXACT.figure(object, "N");
    let is_zero = |key: &str| object[key].as_f64().is_none_or(|value| value == 0.0);
    if samples.map_or(is_zero("max") && is_zero("mean"), |samples| samples.value == 0) {
        return ImportedLatency::default();
    }
    let entries = |key: &str| object[key].as_object().into_iter().flatten();
    let percentile = |label: &String, of: &Map<String, Value>| {
        // 2.x fills its list up with percentiles of 0.
        let percent = label.parse::<f64>().ok().filter(|percent| *percent > 0.0 && *percent <= 100.0)?;
        let number = of.get(label)?.as_f64()?;
        Some(ImportedPercentile {
            percent,
            ns: Figure::printed(number * digits.scale, digits.whole * digits.scale)?,
        })
    };
    let of = object["percentile"].as_object();
    let mut percentiles: Vec<ImportedPercentile> =
        of.into_iter().flat_map(|of| of.keys().filter_map(|label| percentile(label, of))).collect();
    percentiles.sort_by(|one, other| one.percent.total_cmp(&other.percent));
    let bin = |(ns, count): (&String, &Value)| {
        let is_plausible = |number: &u64| *number < 1 << 53;
        Some(LatencyBin {
            ns: ns.parse().ok().filter(is_plausible)?,
            count: count.as_u64().filter(is_plausible)?,
        })
    };
    let mut bins: Vec<LatencyBin> = entries("bins").filter_map(bin).collect();
    bins.sort_by_key(|bin| bin.ns);
    ImportedLatency {
        samples,
        min: digits.figure(object, "min"),
        mean: digits.figure(object, "mean"),
        max: digits.figure(object, "max"),
        stddev: digits.figure(object, "stddev"),
        percentiles,
        bins,
        requests: Vec::new(),
    }
}

/// The calls of fsync; `None` where there were none.
fn sync(object: &Value) -> Option<ImportedOp> {
    let ios: Figure<u64> = EXACT.figure(object, "total_ios").filter(|ios: &Figure<u64>| ios.value > 0)?;
    Some(ImportedOp { ios: Some(ios), lat: latency(object, "lat"), ..ImportedOp::default() })
}

fn disk(object: &Value) -> ImportedDisk {
    let pair = |reads: &str, writes: &str| PerOp {
        read: EXACT.figure(object, reads),
        write: EXACT.figure(object, writes),
        trim: None,
    };
    ImportedDisk {
        name: json::text(object, "name"),
        is_below: false,
        ios: pair("read_ios", "write_ios"),
        sectors: pair("read_sectors", "write_sectors"),
        merges: pair("read_merges", "write_merges"),
        ticks_ms: pair("read_ticks", "write_ticks"),
        in_queue_ms: EXACT.figure(object, "in_queue"),
        util_percent: EXACT.figure(object, "util"),
    }
}
