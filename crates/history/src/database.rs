//! The database of a history: an SQLite file or a PostgreSQL server, behind one interface for statements.
//!
//! Statements are written once, in the SQL that both understand. Two things differ and are translated for a server: `?1` is
//! `$1`, and there is no `INDEXED BY`. Everything else that differs is a method here.

mod postgres;
mod sqlite;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use fathom_record::RecordError;
use fathom_sys::files::HISTORY_OWNER;
use fathom_sys::libpq::{Parameter, PqCell, PqRows};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use serde::de::Error as _;

use crate::error::{ErrorKind, Failure};
use crate::migrations::DatabaseOwner;
use crate::{Error, Location, RunId, ServerUri, migrations};
pub use postgres::SERVER_PATIENCE;
pub use sqlite::hurry;
pub(crate) use sqlite::{Access, is_in_a_hurry};

/// `fthm`, in every history, to distinguish it from other databases.
pub(crate) const APPLICATION_ID: i32 = i32::from_be_bytes(HISTORY_OWNER);

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It reads one state of the database.
    Read,
    /// It writes, during a run. In a file it excludes other writers from the start: two transactions that begin by reading could
    /// block each other's writes. The time that a server may take is limited for all of it.
    Write,
    /// It writes much: that time is limited for each answer.
    Long,
}

/// An open database.
#[derive(Debug)]
pub(crate) enum Database {
    Sqlite(rusqlite::Connection),
    Server(postgres::Session),
}

impl Database {
    /// Opens the history at `location`, an absolute path or a server, in the current format. Waits up to `patience` for other
    /// processes.
    pub(crate) fn open(location: &Location, access: Access, patience: Duration) -> Result<Database, Error> {
        match location {
            Location::File(path) => sqlite::open(location, path, access, patience).map(Database::Sqlite),
            Location::Server(server) => open_server(location, server, access, patience),
        }
    }

    /// Runs `work` in a transaction, which is undone where it fails.
    pub(crate) fn transaction<T>(
        &self,
        mode: Mode,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (mut work, mut value) = (Some(work), None);
        self.run(mode, &mut |transaction| {
            value = work.take().map(|work| work(transaction)).transpose()?;
            Ok(())
        })?;
        Ok(value.expect("a transaction that succeeds ran its work"))
    }

    /// As [`Database::transaction`], once for all kinds of work.
    fn run(
        &self,
        mode: Mode,
        work: &mut dyn FnMut(&Transaction<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match self {
            Database::Sqlite(connection) => {
                let behavior = match mode {
                    Mode::Read => rusqlite::TransactionBehavior::Deferred,
                    Mode::Write | Mode::Long => rusqlite::TransactionBehavior::Immediate,
                };
                let transaction = rusqlite::Transaction::new_unchecked(connection, behavior)?;
                work(&Transaction::Sqlite(&transaction))?;
                Ok(transaction.commit()?)
            }
            Database::Server(session) => {
                session.transaction(mode, &mut || work(&Transaction::Server(session)))
            }
        }
    }

    /// Returns the space of removed runs to the file system. A server does that by itself.
    pub(crate) fn give_back_space(&self) -> Result<(), Failure> {
        match self {
            Database::Sqlite(connection) => sqlite::give_back_space(connection).map_err(Failure::from),
            Database::Server(_) => Ok(()),
        }
    }

    /// The bytes that it takes, and those of them that no run uses, where that is known.
    pub(crate) fn bytes(&self, location: &Location) -> Result<(u64, Option<u64>), Failure> {
        match self {
            Database::Sqlite(connection) => sqlite::bytes(connection, location.file()),
            Database::Server(_) => self.transaction(Mode::Read, postgres::bytes).map(|bytes| (bytes, None)),
        }
    }
}

fn open_server(
    location: &Location,
    server: &Arc<ServerUri>,
    access: Access,
    patience: Duration,
) -> Result<Database, Error> {
    let failed = |failure| Error::from_failure(location, "open it", failure);
    if let Some(problem) = server.problem() {
        return Err(Error::at(location, ErrorKind::Unusable, "the connection URI is malformed", problem));
    }
    let session = postgres::Session::connect(server, patience).map_err(failed)?;
    let database = Database::Server(session);
    let look = |transaction: &Transaction<'_>| {
        Ok((migrations::identify(transaction)?, postgres::is_read_only(transaction)?))
    };
    let (found, is_read_only) = database.transaction(Mode::Read, look).map_err(failed)?;
    let found = migrations::permitted(found, location)?;
    let is_current = found == DatabaseOwner::Ours(migrations::FORMAT);
    match access {
        Access::Existing if found == DatabaseOwner::Empty => {
            Err(Error::missing(location, "the database has no history"))
        }
        Access::Create if is_read_only => Err(Error::read_only(location)),
        _ if is_current => Ok(database),
        _ if is_read_only => Err(Error::read_only(location)),
        _ => migrations::migrate(&database, location, migrations::STEPS).map(|_| database),
    }
}

/// A transaction, in which statements run.
pub(crate) enum Transaction<'a> {
    Sqlite(&'a rusqlite::Connection),
    Server(&'a postgres::Session),
}

/// Whether more rows are wanted.
pub(crate) type RowFlow = Result<ControlFlow<()>, Failure>;
/// Takes a row.
type RowTaker<'a> = &'a mut dyn FnMut(&Row<'_>) -> RowFlow;
/// More rows are wanted.
pub(crate) const MORE: RowFlow = Ok(ControlFlow::Continue(()));

impl Transaction<'_> {
    /// Runs a statement; returns the number of rows that it changed.
    pub(crate) fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<usize, Failure> {
        match self {
            Transaction::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                Ok(statement.execute(rusqlite::params_from_iter(values))?)
            }
            Transaction::Server(session) => session.run(&server_sql(sql), values).map(|rows| rows.affected()),
        }
    }

    /// Runs statements without values.
    pub(crate) fn batch(&self, sql: &str) -> Result<(), Failure> {
        match self {
            Transaction::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            Transaction::Server(session) => session.batch(sql).map(drop),
        }
    }

    /// Reads a statement's rows one by one.
    pub(crate) fn each(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut take: impl FnMut(&Row<'_>) -> RowFlow,
    ) -> Result<(), Failure> {
        self.take_rows(sql, values, &mut take)
    }

    fn take_rows(&self, sql: &str, values: &[Value<'_>], take: RowTaker<'_>) -> Result<(), Failure> {
        match self {
            Transaction::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query(rusqlite::params_from_iter(values))?;
                while let Some(row) = rows.next()? {
                    if take(&Row::Sqlite(row))?.is_break() {
                        break;
                    }
                }
                Ok(())
            }
            Transaction::Server(session) => {
                take_each(&session.run(&server_sql(sql), values)?, take).map(drop)
            }
        }
    }

    /// As [`Transaction::each`], for statements with many rows: a server sends them in parts, as far as they are wanted.
    pub(crate) fn scan(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut take: impl FnMut(&Row<'_>) -> RowFlow,
    ) -> Result<(), Failure> {
        match self {
            Transaction::Sqlite(_) => self.take_rows(sql, values, &mut take),
            Transaction::Server(session) => {
                session.scan(&server_sql(sql), values, &mut |rows| take_each(rows, &mut take))
            }
        }
    }

    /// The first row of a statement.
    pub(crate) fn first<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> T,
    ) -> Result<Option<T>, Failure> {
        let (mut read, mut first) = (Some(read), None);
        self.each(sql, values, |row| {
            first = read.take().map(|read| read(row));
            Ok(ControlFlow::Break(()))
        })?;
        Ok(first)
    }

    /// The number in the first column of the first row; 0 where there is none.
    pub(crate) fn number(&self, sql: &str) -> Result<i64, Failure> {
        Ok(self.first(sql, &[], |row| row.int(0))?.flatten().unwrap_or(0))
    }

    /// Whether a run exists. In a transaction that writes nobody else removes or changes it until the end.
    pub(crate) fn holds(&self, run: RunId) -> Result<bool, Failure> {
        const SELECT: &str = "SELECT id FROM runs WHERE id = ?1";
        match self {
            Transaction::Sqlite(_) => self.first(SELECT, &[run.0.into()], |_| ()),
            Transaction::Server(_) => self.first(&format!("{SELECT} FOR UPDATE"), &[run.0.into()], |_| ()),
        }
        .map(|found| found.is_some())
    }

    /// Excludes others that look for a run and add it if there is none, until the end of the transaction.
    pub(crate) fn exclude_others(&self) -> Result<(), Failure> {
        match self {
            // Every transaction that writes does.
            Transaction::Sqlite(_) => Ok(()),
            Transaction::Server(session) => postgres::exclude_others(session),
        }
    }

    /// The application id and the format; `None` where the database has no tables.
    pub(crate) fn format(&self) -> Result<Option<(i64, i64)>, Failure> {
        match self {
            Transaction::Sqlite(_) => sqlite::format(self),
            Transaction::Server(_) => postgres::format(self),
        }
    }

    /// Stores the format, and whose the database is.
    pub(crate) fn set_format(&self, format: i32) -> Result<(), Failure> {
        match self {
            Transaction::Sqlite(connection) => sqlite::set_format(connection, format),
            Transaction::Server(_) => postgres::set_format(self, format),
        }
    }
}

fn take_each(rows: &PqRows, take: RowTaker<'_>) -> RowFlow {
    for index in 0..rows.len() {
        if take(&Row::Server(rows, index))?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    MORE
}

/// A statement as a server takes it.
fn server_sql(sql: &str) -> String {
    sql.replace('?', "$").replace(" INDEXED BY runs_listed", "")
}

/// A value of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Int(i64),
    Real(Option<f64>),
    Text(Option<&'a str>),
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<Option<f64>> for Value<'_> {
    fn from(number: Option<f64>) -> Self {
        Value::Real(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(Some(text))
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Value::Text(text)
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Int(number) => ValueRef::Integer(*number),
            Value::Real(number) => number.map_or(ValueRef::Null, ValueRef::Real),
            Value::Text(text) => text.map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes())),
        }))
    }
}

impl Value<'_> {
    fn to_parameter(self) -> Parameter {
        match self {
            Value::Int(number) => Parameter::Int(number),
            Value::Real(number) => Parameter::Real(number),
            // Servers store no NUL. Records have none: their JSON escapes it.
            Value::Text(text) => Parameter::Text(text.map(|text| text.replace('\0', "\u{2400}"))),
        }
    }
}

/// A row of an answer.
pub(crate) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Server(&'a PqRows, usize),
}

impl Row<'_> {
    fn cell(&self, index: usize) -> PqCell<'_> {
        match self {
            Row::Sqlite(row) => match row.get_ref(index) {
                Ok(ValueRef::Null) => PqCell::Null,
                Ok(ValueRef::Integer(number)) => PqCell::Int(number),
                Ok(ValueRef::Real(number)) => PqCell::Real(number),
                Ok(ValueRef::Text(text)) => PqCell::Text(text),
                Ok(ValueRef::Blob(_)) | Err(_) => PqCell::Other,
            },
            Row::Server(rows, row) => rows.cell(*row, index),
        }
    }

    /// The run whose number is in a column.
    pub(crate) fn run(&self, index: usize) -> RunId {
        RunId(self.int(index).unwrap_or_default())
    }

    /// The integer in a column.
    pub(crate) fn int(&self, index: usize) -> Option<i64> {
        match self.cell(index) {
            PqCell::Int(number) => Some(number),
            _ => None,
        }
    }

    /// The number in a column.
    pub(crate) fn real(&self, index: usize) -> Option<f64> {
        match self.cell(index) {
            PqCell::Int(number) => Some(number as f64),
            PqCell::Real(number) => Some(number),
            _ => None,
        }
    }

    /// The text in a column.
    pub(crate) fn text(&self, index: usize) -> Option<&str> {
        match self.cell(index) {
            PqCell::Text(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    /// The text in a column, which is the `name` of a run; anything else gives an error.
    pub(crate) fn part(&self, index: usize, name: &str) -> Result<&str, RecordError> {
        let wrong = |what: &str| {
            RecordError::Malformed(serde_json::Error::custom(format!("the {name} is {what}, not a text")))
        };
        match self.cell(index) {
            PqCell::Text(text) => std::str::from_utf8(text).map_err(|_| wrong("no valid UTF-8")),
            PqCell::Null => Err(wrong("missing")),
            PqCell::Int(_) | PqCell::Real(_) => Err(wrong("a number")),
            PqCell::Other => Err(wrong("of another type")),
        }
    }
}
