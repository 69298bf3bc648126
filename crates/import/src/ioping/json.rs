//! `-J` of ioping: a list of requests and statistics.

use fathom_model::Op;
use fathom_record::import::{Figure, ImportedLatency, ImportedOp, PacedLoad};
use serde_json::Value;

use crate::json::{self, JsonDigits};
use crate::report::SourceReport;

const EXACT: JsonDigits = JsonDigits::EXACT;
/// Means and rates that are rounded down.
const FLOORED: JsonDigits = JsonDigits { whole: 1.0, ..JsonDigits::EXACT };

fn entries(document: &Value) -> &[Value] {
    document.as_array().map_or(&[], Vec::as_slice)
}

/// True where a document is ioping's.
pub(crate) fn is_ioping(document: &Value) -> bool {
    entries(document).iter().any(|entry| entry["io"].is_object() || entry["stat"].is_object())
}

/// Reads the statistics of the list; where a run was killed, its requests alone.
pub(crate) fn read(document: &Value) -> SourceReport {
    let mut report = SourceReport::default();
    let mut requests = Requests::default();
    for entry in entries(document) {
        if report.started_unix_ms == 0 {
            let ms = entry["timestamp"].as_f64().map(|seconds| seconds * 1e3);
            report.started_unix_ms = ms.filter(|ms| (0.0..2.8e14).contains(ms)).map_or(0, |ms| ms as u64);
        }
        if entry["io"].is_object() {
            requests.add(&entry["io"]);
        }
        if entry["stat"].is_object() {
            let target = json::text(&entry["target"], "path");
            let size = requests.size.or_else(|| mean_size(&entry["stat"]));
            let op = requests.op();
            let figures = statistics(&entry["stat"], std::mem::take(&mut requests.counted));
            let load = super::load(size, op, Some(target));
            report.tests.push(super::test(load, op, figures, paced(&entry["load"])));
        }
    }
    if report.tests.is_empty() {
        let op = requests.op();
        let lat = ImportedLatency { requests: requests.counted, ..ImportedLatency::default() };
        let figures = ImportedOp { lat, ..ImportedOp::default() };
        report.tests.push(super::test(super::load(requests.size, op, None), op, figures, None));
        report.notes.push("the list has no statistics: the run was ended early".to_owned());
    }
    report
}

/// The requests before their statistics.
#[derive(Default)]
struct Requests {
    reads: bool,
    writes: bool,
    size: Option<u64>,
    counted: Vec<Figure<u64>>,
}

impl Requests {
    fn add(&mut self, io: &Value) {
        match io["operation"].as_str() {
            Some("read") => self.reads = true,
            Some("write") => self.writes = true,
            _ => {}
        }
        self.size = self.size.or(io["size"].as_u64().filter(|&size| size > 0 && size < 1 << 40));
        if io["ignored"].as_bool() != Some(true) {
            self.counted.extend(EXACT.figure::<u64>(io, "time"));
        }
    }

    /// The operation; `None` where there were both, or none is known.
    fn op(&self) -> Option<Op> {
        match (self.reads, self.writes) {
            (true, false) => Some(Op::Read),
            (false, true) => Some(Op::Write),
            _ => None,
        }
    }
}

/// Without requests in the list, their size is that of all by their count.
fn mean_size(stat: &Value) -> Option<u64> {
    let (count, size) = (stat["count"].as_u64()?, stat["size"].as_u64()?);
    (count > 0 && size % count == 0 && size > 0).then(|| size / count)
}

fn statistics(stat: &Value, requests: Vec<Figure<u64>>) -> ImportedOp {
    ImportedOp {
        ios: EXACT.figure(stat, "count"),
        bytes: EXACT.figure(stat, "size"),
        runtime_ns: EXACT.figure(stat, "time"),
        iops: EXACT.figure(stat, "iops"),
        bytes_per_second: FLOORED.figure(stat, "bps"),
        lat: ImportedLatency {
            samples: EXACT.figure(stat, "count"),
            min: EXACT.figure(stat, "min"),
            mean: FLOORED.figure(stat, "avg"),
            max: EXACT.figure(stat, "max"),
            stddev: FLOORED.figure(stat, "mdev"),
            requests,
            ..ImportedLatency::default()
        },
        ..ImportedOp::default()
    }
}

fn paced(load: &Value) -> Option<PacedLoad> {
    load.is_object().then(|| PacedLoad {
        ios: EXACT.figure(load, "count"),
        bytes: EXACT.figure(load, "size"),
        wall_ns: EXACT.figure(load, "time"),
        iops: EXACT.figure(load, "iops"),
        bytes_per_second: FLOORED.figure(load, "bps"),
        ..PacedLoad::default()
    })
}
