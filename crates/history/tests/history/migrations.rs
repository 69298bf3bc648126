//! Histories of every earlier format become current ones: no run is lost, and old runs are listed, found and in trends like
//! new ones.

use std::path::Path;

use fathom_analysis::criterion::Metric;
use fathom_history::{Filter, RunId, RunKey, TrendQuery};
use fathom_record::{RunRecord, TestRecord, TestStatus};

use crate::fixture::{assert_sound, open, place, record};

/// The steps from an empty file; a format is the number of those that were taken.
const STEPS: [&str; 3] = [
    include_str!("../../migrations/sqlite/0001.sql"),
    include_str!("../../migrations/sqlite/0002.sql"),
    include_str!("../../migrations/sqlite/0003.sql"),
];

/// A history of format `format` as its version of the program left it, with these runs.
fn old(path: &Path, format: usize, records: &[RunRecord]) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA foreign_keys = ON").unwrap();
    for step in &STEPS[..format] {
        connection.execute_batch(step).unwrap();
    }
    let ids = format!("PRAGMA application_id = 0x6674686d; PRAGMA user_version = {format}");
    connection.execute_batch(&ids).unwrap();
    for (index, record) in records.iter().enumerate() {
        let json = |value: serde_json::Value| value.to_string();
        let header = json(serde_json::to_value(&record.header).unwrap());
        let findings = json(serde_json::to_value(&record.findings).unwrap());
        let values = (record.status.name(), &record.schema, &header, &findings);
        let sql = "INSERT INTO runs (status, schema, header, findings) VALUES (?1, ?2, ?3, ?4)";
        connection.execute(sql, values).unwrap();
        let run = index as i64 + 1;
        for (position, test) in record.tests.iter().enumerate() {
            let body = json(serde_json::to_value(test).unwrap());
            let sql = "INSERT INTO tests (run_id, position, body) VALUES (?1, ?2, ?3)";
            connection.execute(sql, (run, position as i64, body)).unwrap();
        }
        connection.execute("INSERT INTO tags (run_id, tag) VALUES (?1, 'kept')", [run]).unwrap();
    }
}

/// A test with a rate, as imports make it.
fn measured(id: &str, read_iops: f64) -> TestRecord {
    let table = format!("test,metric,value,unit\n{id},read.iops,{read_iops},\n");
    fathom_import::records(&table, "table.csv").unwrap().remove(0).tests.remove(0)
}

#[test]
fn every_format_becomes_the_current_one() {
    let mut first = record("/first", &["rand-read", "b"]);
    first.header.labels.insert("type".to_owned(), "aws-gp2".to_owned());
    first.tests[0] = measured("rand-read", 3000.0);
    let second = RunRecord { status: TestStatus::Failed, ..record("/second", &["c"]) };
    for format in 1..=STEPS.len() {
        let (_directory, path) = place();
        old(&path, format, &[first.clone(), second.clone()]);
        let mut history = open(&path);
        let rows = history.list(&Filter::default()).unwrap();
        assert!(rows.unreadable.is_empty());
        let [one, two] = &rows.rows[..] else { panic!("{rows:?}") };
        assert_eq!((one.target.as_str(), one.tests, one.findings), ("/first", 2, 1), "format {format}");
        assert_eq!((one.hostname.as_str(), one.device.as_str()), ("host", "host:/first"));
        assert_eq!((one.volume_type.as_deref(), one.best.read_iops), (Some("aws-gp2"), Some(3000.0)));
        assert_eq!((two.status, two.tests, &two.tags), (TestStatus::Failed, 1, &vec!["kept".to_owned()]));
        for (run, expected) in [(1, &first), (2, &second)] {
            assert_eq!(history.load(RunId(run)).unwrap(), *expected, "format {format}");
        }
        let query = TrendQuery {
            metric: Metric::parse("read.iops").unwrap(),
            test: Some("rand-read".to_owned()),
            by: RunKey::Device,
            filter: Filter::default(),
        };
        let trend = history.trend(&query).unwrap();
        assert_eq!((trend.len(), trend[0].point.value), (1, 3000.0), "format {format}");
        let found = history.list(&Filter { test: Some("c".to_owned()), ..Filter::default() }).unwrap();
        assert_eq!(found.rows.iter().map(|row| row.id).collect::<Vec<_>>(), [2]);
        // And it can be written.
        history.import(&record("/third", &["d"])).unwrap();
        history.add_note(RunId(1), "migrated", 1).unwrap();
        drop(history);
        assert_sound(&path);
    }
}

#[test]
fn a_run_that_cannot_be_read_survives_the_migration_unchanged() {
    let (_directory, path) = place();
    old(&path, 3, &[record("/first", &["a"]), record("/second", &["b"])]);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute("UPDATE runs SET header = '{\"later\":' WHERE id = 1", []).unwrap();
    connection.execute("UPDATE tests SET body = '[' WHERE run_id = 2", []).unwrap();
    drop(connection);
    let listing = open(&path).list(&Filter::default()).unwrap();
    assert_eq!((listing.rows.len(), listing.unreadable.len()), (1, 1));
    assert_eq!((listing.rows[0].id, listing.rows[0].tests), (2, 1));
    let connection = rusqlite::Connection::open(&path).unwrap();
    let header: String =
        connection.query_row("SELECT header FROM runs WHERE id = 1", [], |row| row.get(0)).unwrap();
    assert_eq!(header, "{\"later\":");
}
