//! The format of a source, from its content.

use fathom_workload::replay::{IologVersion, is_blktrace};

use crate::recording::is_recording;
use crate::{blkparse, cloudwatch_csv, sar_text};

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadFormat {
    /// fio's iolog, version 2: waits without times.
    IologTwo,
    /// fio's iolog, version 3.
    IologThree,
    /// The binary events of blktrace.
    Blktrace,
    /// The text of blkparse.
    Blkparse,
    /// `iostat -x -t -o JSON`.
    IostatJson,
    /// `sadf -j -- -d`.
    SadfJson,
    /// `sar -d`.
    SarText,
    /// `query_range` of a Prometheus server on the counters of node_exporter.
    PrometheusRange,
    /// `aws cloudwatch get-metric-statistics`.
    CloudwatchStatistics,
    /// `aws cloudwatch get-metric-data`.
    CloudwatchData,
    /// A table of CloudWatch metrics in CSV.
    CloudwatchCsv,
    /// `az monitor metrics list`.
    AzureMonitor,
    /// `timeSeries.list` of Google Cloud Monitoring.
    GcpMonitoring,
    /// `fathom monitor --record`.
    Recording,
}

/// How a source is to be passed to its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// Bytes, for [`read_blktrace`](crate::read_blktrace).
    Events,
    /// Blocks, for [`read_recording`](crate::recording::read_recording).
    Recording,
    /// Lines, for [`TraceLines`](crate::TraceLines).
    Lines,
    /// A whole text, for [`read_text`](crate::read_text).
    Text,
}

impl LoadFormat {
    /// Every format in the order of the variants: its name in documents, and what it is, for people.
    pub const ALL: [(LoadFormat, &'static str, &'static str); 14] = [
        (LoadFormat::IologTwo, "fio-iolog-2", "fio iolog version 2"),
        (LoadFormat::IologThree, "fio-iolog-3", "fio iolog version 3"),
        (LoadFormat::Blktrace, "blktrace", "blktrace events"),
        (LoadFormat::Blkparse, "blkparse", "blkparse text"),
        (LoadFormat::IostatJson, "iostat-json", "iostat JSON"),
        (LoadFormat::SadfJson, "sadf-json", "sadf JSON"),
        (LoadFormat::SarText, "sar-text", "sar text"),
        (LoadFormat::PrometheusRange, "prometheus-range", "Prometheus query_range"),
        (LoadFormat::CloudwatchStatistics, "cloudwatch-statistics", "CloudWatch get-metric-statistics"),
        (LoadFormat::CloudwatchData, "cloudwatch-data", "CloudWatch get-metric-data"),
        (LoadFormat::CloudwatchCsv, "cloudwatch-csv", "CloudWatch CSV"),
        (LoadFormat::AzureMonitor, "azure-monitor", "Azure Monitor"),
        (LoadFormat::GcpMonitoring, "gcp-monitoring", "GCP Monitoring"),
        (LoadFormat::Recording, "fathom-recording", "fathom recording"),
    ];

    pub const fn name(self) -> &'static str {
        LoadFormat::ALL[self as usize].1
    }

    pub const fn title(self) -> &'static str {
        LoadFormat::ALL[self as usize].2
    }
}

/// What some programs of Windows write in front of a text.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A text, or its first line, without a mark in front of it.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// How a source that begins with `head` is read. Of a trace the first line is enough.
pub fn source_kind(head: &[u8]) -> SourceKind {
    if is_blktrace(head) {
        return SourceKind::Events;
    }
    if is_recording(head) {
        return SourceKind::Recording;
    }
    let head = head.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(head);
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match std::str::from_utf8(line).is_ok_and(|line| trace_format(line).is_some()) {
        true => SourceKind::Lines,
        false => SourceKind::Text,
    }
}

/// The format of a trace with this first line.
pub(crate) fn trace_format(first: &str) -> Option<LoadFormat> {
    let first = without_mark(first);
    match IologVersion::of(first) {
        Some(IologVersion::Two) => Some(LoadFormat::IologTwo),
        Some(IologVersion::Three) => Some(LoadFormat::IologThree),
        None => blkparse::is_line(first).then_some(LoadFormat::Blkparse),
    }
}

/// Words that only the documents of one format have, the more telling first.
const JSON_MARKS: [(&str, LoadFormat); 10] = [
    ("\"disk_device\"", LoadFormat::IostatJson),
    ("\"disk-device\"", LoadFormat::SadfJson),
    ("\"MetricDataResults\"", LoadFormat::CloudwatchData),
    ("\"Datapoints\"", LoadFormat::CloudwatchStatistics),
    ("\"metadatavalues\"", LoadFormat::AzureMonitor),
    ("\"timeseries\"", LoadFormat::AzureMonitor),
    ("compute.googleapis.com/", LoadFormat::GcpMonitoring),
    ("\"resultType\"", LoadFormat::PrometheusRange),
    ("\"sysstat\"", LoadFormat::IostatJson),
    ("\"timeSeries\"", LoadFormat::GcpMonitoring),
];

/// The format of a whole text; `None` where it is unknown.
pub(crate) fn format_of(text: &str) -> Option<LoadFormat> {
    let trimmed = text.trim_start();
    if trimmed.starts_with(['{', '[']) {
        return JSON_MARKS.iter().find(|(mark, _)| text.contains(mark)).map(|(_, format)| *format);
    }
    if let Some(format) = trace_format(text.lines().next()?) {
        return Some(format);
    }
    if sar_text::is_sar(text) {
        return Some(LoadFormat::SarText);
    }
    cloudwatch_csv::is_table(text).then_some(LoadFormat::CloudwatchCsv)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_apart_by_their_beginning() {
        for (head, expected) in [
            (&b"\x07tae"[..], SourceKind::Events),
            (b"ea\x74\x07", SourceKind::Events),
            (b"eat", SourceKind::Text),
            (b"FTHMH\x01", SourceKind::Recording),
            (b"FTHMR\x01", SourceKind::Text),
            (b"fio version 3 iolog\n\xff", SourceKind::Lines),
            (b"8,0 1 17 0.5 1 Q R 8 + 8 [fio]\n", SourceKind::Lines),
            (b"\xef\xbb\xbffio version 3 iolog\r\n", SourceKind::Lines),
            (b"{\"sysstat\": {", SourceKind::Text),
            (b"", SourceKind::Text),
            (b"\xff\xfe\n", SourceKind::Text),
        ] {
            assert_eq!(source_kind(head), expected, "{head:?}");
        }
    }

    #[test]
    fn names_and_titles_are_unique() {
        for (index, (format, name, title)) in LoadFormat::ALL.into_iter().enumerate() {
            assert_eq!(format as usize, index);
            for (_, other_name, other_title) in &LoadFormat::ALL[index + 1..] {
                assert!(name != *other_name && title != *other_title);
            }
        }
    }
}
