//! A history on a PostgreSQL server, in a schema of its own.
//!
//! The connection belongs to a thread of its own, because the client library blocks. Whoever asks waits for an answer for a
//! limited time; after that the connection is given up, with all that it may still do, and every later question fails at once.
//! Every transaction sets what it needs by itself, so that the server may be behind a pooler of transactions.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fathom_sys::clock::monotonic_ns;
use fathom_sys::libpq::{Connection, Parameter, PqError, PqRows};

use super::sqlite::{self, HURRIED};
use super::{APPLICATION_ID, Mode, RowFlow, Transaction, Value};
use crate::ServerUri;
use crate::error::{ErrorKind, Failure};

/// Longest wait for other users of a server during a run: the record can go to a side file instead.
pub const SERVER_PATIENCE: Duration = Duration::from_secs(3);
/// Longest time for an answer, beyond the waiting for locks.
const ANSWER: Duration = Duration::from_secs(2);
/// Interval at which a wait looks whether it is in a hurry.
const LOOK: Duration = Duration::from_millis(20);
/// Longest wait for a connection to be closed.
const CLOSING: Duration = Duration::from_millis(200);
/// Rows of a scan that are sent together.
const SCANNED: usize = 5_000;

/// Servers that did not answer in time when they were last asked.
static SLOW: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Work for the thread of the connection.
enum Question {
    Batch(String),
    Run(String, Vec<Parameter>),
}

/// `None` when the connection is open.
type Answer = Result<Option<PqRows>, PqError>;

/// A connection.
pub(crate) struct Session {
    server: Arc<ServerUri>,
    questions: Option<Sender<Question>>,
    answers: Receiver<Answer>,
    /// Longest wait for locks.
    patience: Duration,
    /// The current transaction, and when it began on the monotonic clock.
    current: Cell<Option<(Mode, u64)>>,
    /// Why the connection was given up.
    lost: RefCell<Option<Failure>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({:?})", self.server)
    }
}

impl Session {
    /// Connects.
    pub(crate) fn connect(server: &Arc<ServerUri>, patience: Duration) -> Result<Session, Failure> {
        let (questions, asked) = channel();
        let (answered, answers) = channel();
        let uri = server.uri().to_owned();
        let thread = std::thread::Builder::new().name("history".to_owned());
        thread.spawn(move || serve(&uri, &asked, &answered)).map_err(|error| {
            Failure::new(ErrorKind::Unreachable, format!("cannot start a thread: {error}"))
        })?;
        let session = Session {
            server: server.clone(),
            questions: Some(questions),
            answers,
            patience,
            current: Cell::new(None),
            lost: RefCell::new(None),
        };
        session.answer()?;
        Ok(session)
    }

    /// Runs `work` in a transaction.
    pub(crate) fn transaction(
        &self,
        mode: Mode,
        work: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.current.set(Some((mode, monotonic_ns())));
        let ended = self.begin(mode).and_then(|()| work()).and_then(|()| self.batch("COMMIT").map(drop));
        if ended.is_err() {
            // Where this fails the connection is lost, which also undoes it.
            let _ = self.batch("ROLLBACK");
        }
        self.current.set(None);
        ended
    }

    fn begin(&self, mode: Mode) -> Result<(), Failure> {
        let begin = match mode {
            Mode::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Mode::Write | Mode::Long => "BEGIN",
        };
        // A stored test is durable, as in a file; a client that is stopped must not keep others waiting. 0 would be no limit.
        let (locks, idle) = (self.patience.as_millis().max(1), 60_000);
        self.batch(&format!(
            "{begin}; SET LOCAL search_path = fathom; SET LOCAL lock_timeout = {locks};
             SET LOCAL synchronous_commit = on; SET LOCAL idle_in_transaction_session_timeout = {idle}"
        ))
        .map(drop)
    }

    pub(crate) fn batch(&self, sql: &str) -> Result<PqRows, Failure> {
        self.ask(Question::Batch(sql.to_owned()))
    }

    pub(crate) fn run(&self, sql: &str, values: &[Value<'_>]) -> Result<PqRows, Failure> {
        let values = values.iter().map(|value| value.to_parameter()).collect();
        self.ask(Question::Run(sql.to_owned(), values))
    }

    /// Passes the rows of a statement to `take`, part by part, until it wants no more.
    pub(crate) fn scan(
        &self,
        sql: &str,
        values: &[Value<'_>],
        take: &mut dyn FnMut(&PqRows) -> RowFlow,
    ) -> Result<(), Failure> {
        self.run(&format!("DECLARE scanned NO SCROLL CURSOR FOR {sql}"), values)?;
        loop {
            let rows = self.run(&format!("FETCH {SCANNED} FROM scanned"), &[])?;
            if take(&rows)?.is_break() || rows.len() < SCANNED {
                return self.batch("CLOSE scanned").map(drop);
            }
        }
    }

    fn ask(&self, question: Question) -> Result<PqRows, Failure> {
        if let Some(lost) = &*self.lost.borrow() {
            return Err(lost.clone());
        }
        if self.questions.as_ref().is_none_or(|questions| questions.send(question).is_err()) {
            return Err(self.give_up(closed()));
        }
        self.answer()?.ok_or_else(|| self.give_up(closed()))
    }

    /// Waits for the next answer.
    fn answer(&self) -> Result<Option<PqRows>, Failure> {
        let asked = monotonic_ns();
        loop {
            let failure = match self.answers.recv_timeout(LOOK) {
                Ok(Ok(rows)) => {
                    self.set_slow(false);
                    return Ok(rows);
                }
                Ok(Err(error @ PqError::Statement { .. })) => return Err(self.failure(error)),
                Ok(Err(error)) => self.failure(error),
                Err(RecvTimeoutError::Disconnected) => closed(),
                Err(RecvTimeoutError::Timeout) => {
                    let since = |start: u64| Duration::from_nanos(monotonic_ns().saturating_sub(start));
                    let limit = self.limit();
                    let begun = match self.current.get() {
                        Some((Mode::Write, begun)) => begun,
                        Some((_, begun)) if sqlite::is_in_a_hurry() => begun,
                        _ => asked,
                    };
                    if since(begun) < limit {
                        continue;
                    }
                    self.set_slow(true);
                    let waited = since(asked);
                    let text = format!("the server did not answer within {:.1} s", waited.as_secs_f64());
                    Failure::new(ErrorKind::Unreachable, text)
                }
            };
            return Err(self.give_up(failure));
        }
    }

    /// Longest wait for an answer: the full time only once for a server that hangs.
    fn limit(&self) -> Duration {
        let is_slow = || SLOW.lock().is_ok_and(|slow| slow.iter().any(|uri| uri == self.server.uri()));
        if sqlite::is_in_a_hurry() || is_slow() { HURRIED } else { self.patience + ANSWER }
    }

    fn set_slow(&self, is_slow: bool) {
        let Ok(mut slow) = SLOW.lock() else { return };
        slow.retain(|uri| uri != self.server.uri());
        if is_slow {
            slow.push(self.server.uri().to_owned());
        }
    }

    fn give_up(&self, failure: Failure) -> Failure {
        self.lost.borrow_mut().get_or_insert(failure).clone()
    }

    fn failure(&self, error: PqError) -> Failure {
        let message = self.server.redact(&error.to_string());
        match error {
            PqError::Library(_) => Failure::new(ErrorKind::NoClient, message),
            PqError::Connection { .. } => Failure::new(ErrorKind::Unreachable, message),
            PqError::Statement { state, .. } => {
                Failure { kind: kind_of(&state), message, code: format!("SQLSTATE {state}") }
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.questions = None;
        // The thread says farewell to the server; one that is stuck is left behind.
        if self.lost.borrow().is_none() {
            let _ = self.answers.recv_timeout(CLOSING);
        }
    }
}

fn closed() -> Failure {
    Failure::new(ErrorKind::Unreachable, "the connection is closed".to_owned())
}

/// Connects, and answers questions until nobody asks any more.
fn serve(uri: &str, questions: &Receiver<Question>, answers: &Sender<Answer>) {
    let settings = [("dbname", uri), ("fallback_application_name", "fathom"), ("client_encoding", "UTF8")];
    let mut connection = match Connection::open(&settings) {
        Ok(connection) => connection,
        Err(error) => return drop(answers.send(Err(error))),
    };
    if answers.send(Ok(None)).is_err() {
        return;
    }
    while let Ok(question) = questions.recv() {
        let answer = match question {
            Question::Batch(sql) => connection.batch(&sql),
            Question::Run(sql, values) => connection.run(&sql, &values),
        };
        if answers.send(answer.map(Some)).is_err() {
            return;
        }
    }
}

/// What an error of the server is, by its code.
fn kind_of(state: &str) -> ErrorKind {
    match state {
        "55P03" | "57014" | "40P01" | "40001" => ErrorKind::Locked,
        "53100" => ErrorKind::NoSpace,
        "25006" => ErrorKind::ReadOnly,
        "42501" => ErrorKind::Denied,
        "57P01" | "57P02" | "57P03" => ErrorKind::Unreachable,
        _ if state.starts_with("XX0") => ErrorKind::Corrupt,
        _ if state.starts_with("08") => ErrorKind::Unreachable,
        _ => ErrorKind::Other,
    }
}

/// Whether the server accepts no changes: a standby, or one that is set so.
pub(crate) fn is_read_only(transaction: &Transaction<'_>) -> Result<bool, Failure> {
    const ASK: &str =
        "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean";
    Ok(transaction.first(ASK, &[], |row| row.int(0) == Some(1))?.unwrap_or(false))
}

/// See [`Transaction::exclude_others`].
pub(crate) fn exclude_others(session: &Session) -> Result<(), Failure> {
    session.run("SELECT pg_advisory_xact_lock($1)", &[i64::from(APPLICATION_ID).into()]).map(drop)
}

/// See [`Transaction::format`].
pub(crate) fn format(transaction: &Transaction<'_>) -> Result<Option<(i64, i64)>, Failure> {
    const TABLES: &str = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('fathom')";
    const OURS: &str = "SELECT count(*) FROM pg_class
        WHERE relnamespace = to_regnamespace('fathom') AND relname = 'history_format'";
    const FORMAT: &str = "SELECT application_id, number FROM fathom.history_format";
    if transaction.number(OURS)? == 0 {
        return Ok((transaction.number(TABLES)? > 0).then_some((0, 0)));
    }
    let read = transaction.first(FORMAT, &[], |row| row.int(0).zip(row.int(1)))?;
    Ok(Some(read.flatten().unwrap_or((0, 0))))
}

/// See [`Transaction::set_format`].
pub(crate) fn set_format(transaction: &Transaction<'_>, format: i32) -> Result<(), Failure> {
    transaction.batch("DELETE FROM history_format")?;
    let values = [i64::from(APPLICATION_ID).into(), i64::from(format).into()];
    let insert = "INSERT INTO history_format (application_id, number) VALUES (?1, ?2)";
    transaction.execute(insert, &values).map(drop)
}

/// The size of the tables with their indices.
pub(crate) fn bytes(transaction: &Transaction<'_>) -> Result<u64, Failure> {
    const SIZE: &str = "SELECT CAST(coalesce(sum(pg_total_relation_size(oid)), 0) AS BIGINT) FROM pg_class
        WHERE relnamespace = to_regnamespace('fathom') AND relkind = 'r'";
    transaction.number(SIZE).map(|bytes| bytes.max(0) as u64)
}
