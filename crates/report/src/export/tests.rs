//! What other programs read from the exports.

use std::collections::BTreeMap;

use fathom_record::{
    HistoryRow, Interval, IntervalOp, JobRecord, Latency, OpOutcome, PhaseOutcome, RunHeader, RunRecord,
    TestRecord, TestStatus,
};
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

/// A run of 4 s with latencies from 50 µs to some ms.
fn run(id: u64, started_unix_ms: u64) -> ExportedRun {
    let mut read = OpOutcome::default();
    let mut series = Vec::new();
    for second in 0..4 {
        let mut part = Latency::default();
        for request in 0..1000u64 {
            part.record(50_000 + (request * 7919 + second * 31 + id) % 1000 * 3_000);
        }
        read.ios += 1000;
        read.bytes += 1000 * 4096;
        read.clat.merge(&part);
        read.lat.merge(&part);
        let clat_bins = part.histogram.sparse().map(|(bin, count)| (bin as u16, count)).collect();
        let op = IntervalOp { ios: 1000, bytes: 1000 * 4096, clat_sum_ns: 0, clat_bins };
        let (start_ns, end_ns) = (second * SECOND_NS, (second + 1) * SECOND_NS);
        series.push(Interval { tick: second as u32, start_ns, end_ns, read: op, ..Interval::default() });
    }
    let measured = PhaseOutcome { end_ns: 4 * SECOND_NS, read, series, ..PhaseOutcome::default() };
    let test = TestRecord {
        id: "rand read,1".to_owned(),
        status: TestStatus::Complete,
        started_unix_ms,
        jobs: vec![JobRecord { measured, ..JobRecord::default() }],
        ..TestRecord::default()
    };
    let row = HistoryRow {
        id,
        started_unix_ms,
        hostname: "web1".to_owned(),
        device: "vol\"01\\".to_owned(),
        target: "/mnt".to_owned(),
        labels: BTreeMap::from([("my-label".to_owned(), "a\nb".to_owned())]),
        ..HistoryRow::default()
    };
    let header = RunHeader { started_unix_ms, ..RunHeader::default() };
    ExportedRun { row, record: RunRecord { header, tests: vec![test], ..RunRecord::default() } }
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A family of an exposition: its unit and its samples by their labels.
#[derive(Default)]
struct ReadFamily {
    unit: String,
    samples: BTreeMap<String, f64>,
}

/// Reads an exposition by the rules of OpenMetrics 1.0 for gauges, and refuses everything else.
fn read_openmetrics(text: &str) -> BTreeMap<String, ReadFamily> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let lines = text.strip_suffix("# EOF\n").expect("the last line is # EOF");
    let mut families: BTreeMap<String, ReadFamily> = BTreeMap::new();
    let mut current = String::new();
    for line in lines.lines() {
        if let Some(metadata) = line.strip_prefix("# ") {
            let (keyword, rest) = metadata.split_once(' ').expect("metadata has a name");
            let (name, value) = rest.split_once(' ').expect("metadata has a value");
            assert!(is_name(name), "{line}");
            match keyword {
                "TYPE" => {
                    assert_eq!(value, "gauge");
                    assert!(families.insert(name.to_owned(), ReadFamily::default()).is_none(), "{line}");
                    current = name.to_owned();
                }
                "UNIT" => {
                    assert!(name.ends_with(&format!("_{value}")), "{line}");
                    families.get_mut(name).unwrap().unit = value.to_owned();
                }
                "HELP" => {}
                other => panic!("unknown metadata {other}"),
            }
            assert!(
                name == current && families[name].samples.is_empty(),
                "metadata in the wrong place: {line}"
            );
            continue;
        }
        let (name, rest) = line.split_once('{').expect("a sample has labels");
        assert_eq!(name, current, "samples of a family are together");
        let (labels, value) = rest.rsplit_once("} ").expect("labels end before the value");
        let mut left = labels;
        let mut names = Vec::new();
        while !left.is_empty() {
            let (label, quoted) = left.split_once("=\"").expect("a label has a value");
            assert!(is_name(label) && !names.contains(&label), "{line}");
            names.push(label);
            let mut is_escaped = false;
            let end = quoted.find(|c: char| {
                let ends = c == '"' && !is_escaped;
                assert!(!is_escaped || matches!(c, '\\' | '"' | 'n'), "{line}");
                is_escaped = c == '\\' && !is_escaped;
                ends
            });
            let end = end.expect("a value ends");
            left = &quoted[end + 1..];
            left = left.strip_prefix(',').unwrap_or(left);
        }
        let value: f64 = value.parse().unwrap();
        assert!(value.is_finite(), "{line}");
        let family = families.get_mut(name).unwrap();
        assert!(family.samples.insert(labels.to_owned(), value).is_none(), "twice: {line}");
    }
    families
}

#[test]
fn openmetrics_hold_by_its_rules_and_the_newest_run_counts() {
    let runs = [run(1, 1_790_000_000_000), run(2, 1_790_000_100_500)];
    let families = read_openmetrics(&text(|out| openmetrics(&runs, out)));
    let only = |name: &str| {
        let samples = &families[name].samples;
        assert_eq!(samples.len(), 1, "{name}");
        *samples.values().next().unwrap()
    };
    assert_eq!((only("fathom_test_run"), only("fathom_test_run_started_seconds")), (2.0, 1_790_000_100.5));
    let sample = |name: &str, parts: &[&str]| {
        let found =
            families[name].samples.iter().find(|(labels, _)| parts.iter().all(|part| labels.contains(part)));
        *found.unwrap_or_else(|| panic!("{name} {parts:?}")).1
    };
    let common = r#"host="web1",device="vol\"01\\",target="/mnt",test="rand read,1",label_my_label="a\nb""#;
    assert_eq!(sample("fathom_test_iops", &[common, "direction=\"read\""]), 1000.0);
    assert_eq!(sample("fathom_test_bytes_per_second", &["direction=\"read\""]), 4_096_000.0);
    let p50 =
        sample("fathom_test_latency_seconds", &["direction=\"read\"", "span=\"lat\"", "statistic=\"p50\""]);
    assert!((0.0014..0.0017).contains(&p50), "{p50}");
    assert_eq!(families["fathom_test_latency_seconds"].unit, "seconds");
    assert_eq!(text(|out| openmetrics(&[], out)), "# EOF\n");
}

#[test]
fn histogram_logs_have_the_percentiles_of_the_records() {
    let runs = [run(7, 1_790_000_000_000)];
    let written = text(|out| hlog(&runs, out));
    assert!(written.contains("#[Histogram log format version 1.3]"), "{written}");
    let mut deserializer = Deserializer::new();
    let mut all = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    let mut intervals = 0;
    for entry in IntervalLogIterator::new(written.as_bytes()) {
        match entry.unwrap() {
            LogEntry::Interval(interval) => {
                assert_eq!(interval.tag().unwrap().as_str(), "7.rand_read_1.read");
                assert_eq!(interval.start_timestamp().as_secs(), intervals);
                assert_eq!(interval.duration().as_secs(), 1);
                let bytes = decoded(interval.encoded_histogram());
                let part: hdrhistogram::Histogram<u64> =
                    deserializer.deserialize(&mut bytes.as_slice()).unwrap();
                assert!((interval.max() - part.max() as f64 / 1e6).abs() < 0.01);
                all.add(part).unwrap();
                intervals += 1;
            }
            LogEntry::StartTime(time) | LogEntry::BaseTime(time) => assert_eq!(time.as_secs(), 1_790_000_000),
        }
    }
    let clat = &runs[0].record.tests[0].jobs[0].measured.read.clat;
    assert_eq!((intervals, all.len()), (4, clat.histogram.samples()));
    for percent in [1.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
        let (ours, theirs) = (clat.histogram.percentile(percent).unwrap(), all.value_at_percentile(percent));
        let off = (theirs as f64 / ours as f64 - 1.0).abs();
        assert!(off < 0.001, "p{percent}: {ours} and {theirs}");
    }
}

/// Base64 without the crate that wrote it.
fn decoded(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        bits = bits << 6 | ALPHABET.iter().position(|known| *known == letter).unwrap() as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

#[test]
fn a_test_whose_intervals_lack_requests_is_one_interval() {
    let mut run = run(7, 0);
    run.record.tests[0].jobs[0].measured.series.pop();
    let written = text(|out| hlog(&[run], out));
    let lines: Vec<&str> = written.lines().filter(|line| line.starts_with("Tag=")).collect();
    assert_eq!(lines.len(), 1, "{written}");
    assert!(lines[0].starts_with("Tag=7.rand_read_1.read,0.000,4.000,"), "{}", lines[0]);
}

#[test]
fn tables_have_a_row_for_each_figure() {
    let runs = [run(1, 1_790_000_000_000)];
    let view = figure_view(&runs);
    let written = crate::text_writer::text(|out| crate::formats::csv::render(&view, out)).unwrap();
    assert!(written.starts_with(
        "run,started_unix_ms,host,device,volume_type,target,command,status,tags,test,metric,value,unit\n"
    ));
    assert!(written.contains("\"rand read,1\",read.iops,1000,IOPS\n"), "{written}");
}
