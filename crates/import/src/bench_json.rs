//! The document of `fathom bench --json`: its figures, conditions and fio commands. Series and histograms are in records alone.

use std::collections::BTreeMap;

use fathom_model::Op;
use fathom_record::import::{
    Figure, FigurePlace, ImportedEntry, ImportedLatency, ImportedOp, ImportedPercentile, ImportedTest,
};
use fathom_record::{HostRecord, ImportFormat, RunRecord, TargetRecord, TestStatus};
use serde_json::Value;

use crate::json::{self, JsonDigits};
use crate::report::{SourceReport, SourceTest};
use crate::{ImportError, load};

const EXACT: JsonDigits = JsonDigits::EXACT;
const SCHEMA: &str = "fathom.bench/1";

/// True where a text has such a document.
pub(crate) fn is_document(text: &str) -> bool {
    text.contains(SCHEMA)
}

/// Reads the last document of a text.
pub(crate) fn read(text: &str, file: &str) -> Result<RunRecord, ImportError> {
    let is_bench = |document: &Value| document["schema"] == SCHEMA && document["tests"].is_array();
    let document = json::last_document(text, is_bench)?;
    let started = document["run"]["started_unix_ms"].as_u64().filter(|&ms| ms < 1 << 48);
    let tests = document["tests"].as_array().into_iter().flatten().enumerate();
    let version = json::text(&document["run"], "tool_version");
    let mut report = SourceReport {
        tests: tests.map(|(index, test)| source_test(test, index, &version)).collect(),
        started_unix_ms: started.unwrap_or(0),
        ..SourceReport::default()
    };
    report.notes = strings(&document["run"]["notes"]);
    let mut record = report.record(ImportFormat::BenchJson, file)?;
    let header = &mut record.header;
    header.target = json::text(&document, "target");
    header.size_bytes = document["run"]["size_bytes"].as_u64().unwrap_or(0);
    let labels = document["run"]["labels"].as_object().into_iter().flatten();
    header.labels =
        labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
    let conditions = &document["conditions"];
    header.hosts = serde_json::from_value::<HostRecord>(conditions["host"].clone()).into_iter().collect();
    header.conditions.target =
        serde_json::from_value::<TargetRecord>(conditions["target"].clone()).unwrap_or_default();
    for (test, source) in record.tests.iter_mut().zip(document["tests"].as_array().into_iter().flatten()) {
        test.status = serde_json::from_value::<TestStatus>(source["status"].clone()).unwrap_or_default();
        test.reason = source["reason"].as_str().map(str::to_owned);
        test.fio = json::text(source, "fio");
    }
    // What no run can reach makes no record.
    RunRecord::from_json(&record.to_json()).map_err(|error| {
        ImportError::new(
            0,
            format!("the document is damaged: {error}"),
            "export the run with `fathom history export`",
        )
    })
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
}

fn source_test(test: &Value, index: usize, version: &str) -> SourceTest {
    let name = json::text(test, "id");
    let mut entry = ImportedEntry { name: name.clone(), error: Some(0), ..ImportedEntry::default() };
    for op in Op::DATA {
        if let Some(found) = operation(&test[op.name()], test) {
            *entry.op_mut(op) = found;
        }
    }
    if let Some(sync) = operation(&test["sync"], test) {
        *entry.op_mut(Op::Sync) = sync;
    }
    let places = vec![FigurePlace { text: format!("tests[{index}]"), ..FigurePlace::default() }];
    let imported = ImportedTest {
        tool: "fathom bench".to_owned(),
        tool_version: version.to_owned(),
        load: load::of_options(options(&json::text(test, "fio"))),
        entries: vec![entry],
        places,
        ..ImportedTest::default()
    };
    SourceTest { name, group: index as u32, imported, ..SourceTest::default() }
}

fn operation(object: &Value, test: &Value) -> Option<ImportedOp> {
    object.is_object().then(|| ImportedOp {
        iops: EXACT.figure(object, "iops"),
        bytes_per_second: EXACT.figure(object, "bytes_per_second"),
        bytes: EXACT.figure(object, "bytes"),
        ios: EXACT.figure(object, "ios"),
        runtime_ns: EXACT.figure(test, "measured_ns"),
        slat: latency(&object["slat_ns"]),
        clat: latency(&object["clat_ns"]),
        lat: latency(&object["lat_ns"]),
        ..ImportedOp::default()
    })
}

fn latency(object: &Value) -> ImportedLatency {
    const PERCENTILES: [(&str, f64); 6] =
        [("p50", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0), ("p999", 99.9), ("p9999", 99.99)];
    let percentile = |(name, percent): (&str, f64)| {
        let ns: Figure<u64> = EXACT.figure(object, name)?;
        Some(ImportedPercentile { percent, ns })
    };
    ImportedLatency {
        samples: EXACT.figure(object, "samples"),
        min: EXACT.figure(object, "min"),
        mean: EXACT.figure(object, "mean"),
        max: EXACT.figure(object, "max"),
        stddev: EXACT.figure(object, "stdev"),
        percentiles: PERCENTILES.into_iter().filter_map(percentile).collect(),
        ..ImportedLatency::default()
    }
}

/// The options of a fio command; a name of its own begins a job.
fn options(command: &str) -> BTreeMap<String, String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in command.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    let option = |word: &String| {
        let (name, value) = word.strip_prefix("--")?.split_once('=').unwrap_or((&word[2..], ""));
        Some((name.to_owned(), value.to_owned()))
    };
    words.iter().filter_map(option).filter(|(name, _)| name != "name").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_a_command_are_its_load() {
        let found = options("fio --name=t '--filename=/mnt/a b' --rw=randread --bs=4k --time_based");
        let expected = [("bs", "4k"), ("filename", "/mnt/a b"), ("rw", "randread"), ("time_based", "")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }
}
