//! Records to store, and histories to store them in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_history::{History, HistoryPath, Location};
use fathom_record::{Finding, HostRecord, RunHeader, RunRecord, Severity, TestRecord, TestStatus};
use fathom_tests::PostgresServer;
use tempfile::TempDir;

pub const PATIENCE: Duration = Duration::from_secs(60);

/// Runs tests, each a function of a [`Place`], on a file and on a server.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test] fn $name() { super::$name(&$crate::fixture::Place::file()); })+
        }
        mod postgres {
            $(#[test] fn $name() {
                if let Some(place) = $crate::fixture::Place::server() { super::$name(&place); }
            })+
        }
    };
}
pub(crate) use on_both;

/// A history that does not exist yet, and a directory for its files and side files.
pub struct Place {
    pub directory: TempDir,
    pub location: Location,
    database: Option<String>,
}

impl Place {
    pub fn file() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::File(directory.path().join("history.db"));
        Place { directory, location, database: None }
    }

    /// `None`, after saying so, where there is no server.
    pub fn server() -> Option<Place> {
        PostgresServer::shared().map(Place::on)
    }

    /// A new database of a server.
    pub fn on(server: &PostgresServer) -> Place {
        let database = server.create_database();
        let location = Location::new(server.uri(&database));
        Place { directory: tempfile::tempdir().unwrap(), location, database: Some(database) }
    }

    /// Another of the same kind.
    pub fn another(&self) -> Place {
        match self.server_and_database() {
            Some((server, _)) => Place::on(server),
            None => Place::file(),
        }
    }

    /// The database of a server.
    pub fn database(&self) -> &str {
        self.database.as_deref().unwrap_or_default()
    }

    pub fn is_server(&self) -> bool {
        self.database.is_some()
    }

    pub fn open(&self) -> History {
        History::open(&self.location, PATIENCE).unwrap()
    }

    /// Where a run is stored, with side files in this place.
    pub fn path(&self, patience: Duration) -> HistoryPath {
        let own_directory = Some(self.directory.path().join("own"));
        HistoryPath { patience, own_directory, ..HistoryPath::new(Some(self.location.clone())) }
    }

    /// As the environment variable names it.
    pub fn uri(&self) -> String {
        match self.server_and_database() {
            Some((server, database)) => server.uri(database),
            None => self.location.to_string(),
        }
    }

    /// Runs SQL, past the history.
    pub fn sql(&self, sql: &str) -> String {
        if let Some((server, database)) = self.server_and_database() {
            return server.sql(database, sql);
        }
        let connection = rusqlite::Connection::open(self.location.file().unwrap()).unwrap();
        let mut statement = connection.prepare(sql).unwrap();
        let mut rows = statement.query([]).unwrap();
        let row = rows.next().unwrap();
        row.map_or(String::new(), |row| row.get::<_, rusqlite::types::Value>(0).map(shown).unwrap())
    }

    /// The shared server, where this place is on it.
    fn server_and_database(&self) -> Option<(&'static PostgresServer, &str)> {
        let database = self.database.as_deref()?;
        Some((PostgresServer::shared()?, database))
    }

    /// Fails unless the database is intact.
    pub fn assert_sound(&self) {
        if let Some(path) = self.location.file() {
            return assert_sound(path);
        }
        for table in ["tests", "tags", "notes", "metrics"] {
            let orphans = format!("SELECT count(*) FROM {table} WHERE run_id NOT IN (SELECT id FROM runs)");
            assert_eq!(self.sql(&orphans), "0", "{table}");
        }
        let gaps = "SELECT count(*) FROM (SELECT run_id FROM tests GROUP BY run_id
            HAVING max(position) + 1 <> count(*)) AS incomplete";
        assert_eq!(self.sql(gaps), "0");
        assert_eq!(self.sql("SELECT count(*) FROM runs WHERE header = ''"), "0");
    }
}

fn shown(value: rusqlite::types::Value) -> String {
    match value {
        rusqlite::types::Value::Integer(number) => number.to_string(),
        rusqlite::types::Value::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

/// A directory, and the path of a history that does not exist yet.
pub fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    (directory, path)
}

/// The history in a file.
pub fn at(path: &Path) -> Location {
    Location::File(path.to_path_buf())
}

pub fn open(path: &Path) -> History {
    History::open(&at(path), PATIENCE).unwrap()
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
