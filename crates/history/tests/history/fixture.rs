//! Records to store, and a directory to store them in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_history::History;
use fathom_record::{Finding, HostRecord, RunHeader, RunRecord, Severity, TestRecord, TestStatus};
use tempfile::TempDir;

pub const PATIENCE: Duration = Duration::from_secs(60);

/// A directory, and the path of a history that does not exist yet.
pub fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    (directory, path)
}

pub fn open(path: &Path) -> History {
    History::open(path, PATIENCE).unwrap()
}

pub fn header(target: &str) -> RunHeader {
    let mut header = RunHeader {
        command: vec!["fathom".into(), "bench".into(), target.into()],
        target: target.into(),
        tool_version: "0.1.0".into(),
        started_unix_ms: 1_790_000_000_123,
        ..RunHeader::default()
    };
    header.hosts = vec![HostRecord {
        hostname: "host".into(),
        boot_id: "boot".into(),
        started_monotonic_ns: 77,
        // Values that an inexact parser of decimal fractions rounds wrongly.
        load: vec![0.1 + 0.2, 5e-324, 1.797_693_134_862_315_7e35, 8.41e21],
        ..HostRecord::default()
    }];
    header.labels.insert("volume".into(), "gp2 \"fast\" ü\u{0}\n".into());
    header
}

pub fn test(id: &str) -> TestRecord {
    TestRecord {
        id: id.into(),
        status: TestStatus::Complete,
        elapsed_ns: 1 << 53,
        fio: format!("fio --name={id}"),
        ..TestRecord::default()
    }
}

pub fn findings() -> Vec<Finding> {
    let mut finding = Finding {
        id: "cache-hits".to_owned().into(),
        severity: Severity::Warning,
        claim: "A cache answered.".into(),
        ..Finding::default()
    };
    finding.evidence.insert("share".into(), 0.123_456_789_012_345_67.into());
    vec![finding]
}

/// A finished run with tests of these names.
pub fn record(target: &str, tests: &[&str]) -> RunRecord {
    RunRecord {
        status: TestStatus::Complete,
        header: header(target),
        tests: tests.iter().map(|id| test(id)).collect(),
        findings: findings(),
        ..RunRecord::default()
    }
}

pub fn test_ids(record: &RunRecord) -> Vec<&str> {
    record.tests.iter().map(|test| test.id.as_str()).collect()
}

/// Runs SQLite's integrity check.
pub fn assert_sound(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let opinion: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(opinion, "ok");
    let orphans: i64 =
        connection.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0)).unwrap();
    assert_eq!(orphans, 0);
}
