//! Turns a stored output of Debian's fio 3.33 (text and `json+` of the same run) into the report it was made from.

use fathom_model::Op;
use fathom_model::plan::{DepthPlan, MeasurePlan, OnError};
use fathom_record::{
    BatchCounts, CpuUsage, DepthCounts, DiskCounters, DiskOutcome, EntryOp, ErrorCount, Histogram, JobRecord,
    Latency, LatencyClasses, Moments, OpOutcome, PhaseOutcome, PlanRecord, ReportEntry, Windows,
    WorkerFailure,
};
use fathom_report::FioReport;
use serde_json::Value;

/// One stored run.
pub struct Fixture {
    pub name: String,
    /// What fio printed in text, without the lines before the results.
    pub text: String,
    /// Its JSON document as printed.
    pub json: String,
    /// The report rebuilt from that JSON.
    pub report: FioReport,
}

/// What fio 3.42 prints where 3.33 printed something else, and nothing else differs.
pub const TEXT_DIFFERENCES: [(&str, &str); 4] = [
    ("fio-3.33", "fio-3.42"),
    ("; 0 zone resets", ""),
    ("fsync/fdatasync/sync_file_range:", "fsync/fdatasync/sync_file_range/syncfs:"),
    ("target=0, window=0,", "target=0.00ns, window=0.00ns,"),
];

/// Keys of 3.42 that 3.33 does not print.
pub const NEWER_KEYS: [&str; 5] =
    ["job_start", "latency_target_ns", "latency_window_us", "read_sectors", "write_sectors"];

/// Every stored run.
pub fn fixtures() -> Vec<Fixture> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/fio-3.33");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the fixtures")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let fixtures: Vec<Fixture> = paths.iter().map(|path| read(path)).collect();
    assert!(fixtures.len() >= 15, "the fixtures are there");
    fixtures
}

fn read(path: &std::path::Path) -> Fixture {
    let whole = std::fs::read_to_string(path).expect("a readable fixture");
    let (before, rest) = whole.split_once("\n{\n").expect("a document");
    let (json, text) = rest.split_once("\n}\n").expect("its end");
    let json = format!("{{\n{json}\n}}\n");
    assert!(before.contains("fio-3.33"));
    let document: Value = serde_json::from_str(&json).expect("fio's JSON is JSON");
    let report = report(&document, text);
    let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
    Fixture { name, text: text.to_owned(), json, report }
}

fn int(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is an unsigned integer"))
}

fn float(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is a number"))
}

/// The whole number of ms that `text` holds between two marks.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let rest = &text[text.find(start)? + start.len()..];
    Some(&rest[..rest.find(end)?])
}

fn report(document: &Value, text: &str) -> FioReport {
    let jobs = document["jobs"].as_array().expect("jobs");
    let heads: Vec<&str> = text.lines().filter(|line| line.contains(": (groupid=")).collect();

    assert_eq!(jobs.len(), heads.len(), "every entry is printed: {text}");
    let options = |value: &Value| -> Vec<(String, String)> {
        let pairs = value.as_object().into_iter().flatten();
        pairs.map(|(name, value)| (name.clone(), value.as_str().expect("text").to_owned())).collect()
    };
    let mut entries: Vec<ReportEntry> = jobs.iter().zip(&heads).map(|(job, head)| entry(job, head)).collect();
    for (entry, job) in entries.iter_mut().zip(jobs) {
        entry.job.options = options(&job["job options"]);
    }
    let disks = document["disk_util"].as_array().into_iter().flatten().map(disk).collect();
    FioReport {
        is_for_programs: false,
        idleness: None,
        all_clients: None,
        entries,
        disks,
        finished_unix_ms: int(&document["timestamp_ms"]),
        global_options: options(&document["global options"]),
        notes: Vec::new(),
    }
}

fn entry(job: &Value, head: &str) -> ReportEntry {
    let job_runtime_ns = int(&job["job_runtime"]) * 1_000_000;
    let mut measured = PhaseOutcome {
        read: op(&job["read"]),
        write: op(&job["write"]),
        trim: op(&job["trim"]),
        syncs: int(&job["sync"]["total_ios"]),
        sync_lat: latency(&job["sync"]["lat_ns"]),
        ..Default::default()
    };
    let issued: u64 = Op::DATA.iter().map(|&op| measured.op(op).ios).sum();
    let counts = |value: &Value, least: f64| -> Vec<u64> {
        let shares = value.as_object().expect("shares").values().map(float);
        shares.map(|share| if share == least { 1 } else { count(share, issued) }).collect()
    };
    // fio prints 0.1 for any smaller share of depths, and 0.01 for any of latencies.
    measured.depth = DepthCounts(counts(&job["iodepth_level"], 0.1).try_into().expect("seven classes"));
    measured.submit = batches(&job["iodepth_submit"]);
    measured.complete = batches(&job["iodepth_complete"]);
    let cpu = |share: &Value| (float(share) / 100.0 * job_runtime_ns as f64).round() as u64;
    measured.cpu = CpuUsage {
        user_ns: cpu(&job["usr_cpu"]),
        system_ns: cpu(&job["sys_cpu"]),
        voluntary_switches: int(&job["ctx"]),
        major_faults: int(&job["majf"]),
        minor_faults: int(&job["minf"]),
        ..Default::default()
    };
    let classes = LatencyClasses {
        ns: counts(&job["latency_ns"], 0.01).try_into().expect("ten classes"),
        us: counts(&job["latency_us"], 0.01).try_into().expect("ten classes"),
        ms: counts(&job["latency_ms"], 0.01).try_into().expect("twelve classes"),
    };
    let errno = job["error"].as_i64().expect("an errno") as i32;
    let record = JobRecord {
        name: job["jobname"].as_str().expect("a name").to_owned(),
        description: job["desc"].as_str().map(str::to_owned),
        group: int(&job["groupid"]) as u32,
        thread_id: between(head, " pid=", ":").expect("a pid").parse().expect("a number"),
        plan: PlanRecord {
            depth: DepthPlan::new(int(&job["latency_depth"]) as u32),
            measure: measure(job),
            on_error: OnError { continue_read: job["total_err"].is_u64(), ..OnError::default() },
            ..PlanRecord::default()
        },
        error: (errno != 0).then(|| WorkerFailure { errno, ..Default::default() }),
        errors: job["total_err"]
            .as_u64()
            .map(|count| ErrorCount { op: Op::Write, errno, count })
            .into_iter()
            .collect(),
        measured,
        ..Default::default()
    };
    ReportEntry {
        job: record,
        workers: between(head, "jobs=", ")").expect("a count").parse().expect("a number"),
        ops: [entry_op(&job["read"]), entry_op(&job["write"]), entry_op(&job["trim"])],
        job_runtime_ns,
        classes,
        elapsed_ns: int(&job["elapsed"]) * 1_000_000_000,
    }
}

/// Counts with the shares printed; what the others leave of the whole is shared by those printed as 0.1.
fn batches(value: &Value) -> BatchCounts {
    let shares: Vec<f64> = value.as_object().expect("shares").values().map(float).collect();
    let exact: u64 = shares.iter().filter(|&&share| share != 0.1).map(|&share| count(share, CALLS)).sum();
    let least = shares.iter().filter(|&&share| share == 0.1).count() as u64;
    let rest = CALLS.saturating_sub(exact) / least.max(1);
    let counts: Vec<u64> =
        shares.iter().map(|&share| if share == 0.1 { rest.max(1) } else { count(share, CALLS) }).collect();
    BatchCounts(counts.try_into().expect("seven classes"))
}

/// Calls that batch shares are turned into; fio does not print their number.
const CALLS: u64 = 1_000_000_000;

/// The count whose share of `total` is `percent`.
fn count(percent: f64, total: u64) -> u64 {
    (percent / 100.0 * total as f64).round() as u64
}

/// The list that any percentile object of the job was made from.
fn measure(job: &Value) -> MeasurePlan {
    let mut measure =
        MeasurePlan { clat_percentiles: false, percentiles: Vec::new(), ..MeasurePlan::default() };
    let sync = [("sync", "lat_ns")];
    let data = ["read", "write", "trim"]
        .into_iter()
        .flat_map(|op| ["slat_ns", "clat_ns", "lat_ns"].into_iter().map(move |kind| (op, kind)));
    for (op, kind) in data.chain(sync) {
        let Some(object) = job[op][kind]["percentile"].as_object() else { continue };
        measure.percentiles = object.keys().map(|key| key.parse().expect("a percentage")).collect();
        measure.percentiles.sort_by(f64::total_cmp);
        match (op, kind) {
            ("sync", _) => {}
            (_, "slat_ns") => measure.slat_percentiles = true,
            (_, "clat_ns") => measure.clat_percentiles = true,
            _ => measure.lat_percentiles = true,
        }
    }
    measure
}

fn op(value: &Value) -> OpOutcome {
    OpOutcome {
        issued: int(&value["total_ios"]),
        ios: int(&value["total_ios"]),
        bytes: int(&value["io_bytes"]),
        short: int(&value["short_ios"]),
        slat: latency(&value["slat_ns"]),
        clat: latency(&value["clat_ns"]),
        lat: latency(&value["lat_ns"]),
        ..Default::default()
    }
}

/// Moments whose mean and deviation are those printed.
fn latency(value: &Value) -> Latency {
    let count = int(&value["N"]);
    let (mean, stdev) = (float(&value["mean"]), float(&value["stddev"]));
    let sum = (mean * count as f64).round();
    let squares = stdev * stdev * count.saturating_sub(1) as f64 + sum * sum / count.max(1) as f64;
    let bin = |(ns, count): (&String, &Value)| {
        (fathom_stats::histogram::bin(ns.parse().expect("a value in ns")), int(count))
    };
    let bins = value["bins"].as_object().into_iter().flatten().map(bin);
    Latency {
        moments: Moments {
            count,
            sum: sum as u128,
            sum_squares: squares.round() as u128,
            min: int(&value["min"]),
            max: int(&value["max"]),
        },
        histogram: Histogram::from_sparse(bins),
    }
}

fn entry_op(value: &Value) -> EntryOp {
    let windows = |name: &str, deviation: &str| {
        let samples = int(&value[format!("{name}_samples")]);
        Windows {
            samples,
            min: int(&value[format!("{name}_min")]),
            max: int(&value[format!("{name}_max")]),
            mean: float(&value[format!("{name}_mean")]),
            squares: float(&value[deviation]).powi(2) * samples.saturating_sub(1) as f64,
        }
    };
    EntryOp {
        runtime_ms: int(&value["runtime"]),
        bandwidth: windows("bw", "bw_dev"),
        iops: windows("iops", "iops_stddev"),
    }
}

fn disk(value: &Value) -> DiskOutcome {
    let busy_ms = 1_000;
    let counters = DiskCounters {
        read_ios: int(&value["read_ios"]),
        write_ios: int(&value["write_ios"]),
        read_merges: int(&value["read_merges"]),
        write_merges: int(&value["write_merges"]),
        read_ticks_ms: int(&value["read_ticks"]),
        write_ticks_ms: int(&value["write_ticks"]),
        queue_ms: int(&value["in_queue"]),
        busy_ms: if float(&value["util"]) > 0.0 { busy_ms } else { 0 },
        ..Default::default()
    };
    let elapsed_ns = match float(&value["util"]) {
        0.0 => 1_000_000_000,
        util => (busy_ms as f64 * 1e6 * 100.0 / util) as u64,
    };
    DiskOutcome {
        name: value["name"].as_str().expect("a name").to_owned(),
        counters,
        elapsed_ns,
        ..Default::default()
    }
}
