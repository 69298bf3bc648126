//! PostgreSQL's own client library, loaded when a server is first used: it brings every way to authenticate, TLS, service files
//! and password files, and is not part of the program.
//!
//! Calls block; who must not wait makes them on a thread of its own. Values are exchanged in the binary format, which is exact.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{NonNull, null, null_mut};
use std::sync::OnceLock;

pub use crate::library::{LOADS_LIBRARIES, LibraryError};
use crate::library::{Library, library_functions};

/// The names of the library, the newest last.
const NAMES: &[&CStr] = &[c"libpq.so.5", c"libpq.so"];

type Conn = *mut c_void;
type Res = *mut c_void;

library_functions! { Functions:
    connect = c"PQconnectdbParams" fn(*const *const c_char, *const *const c_char, c_int) -> Conn;
    status = c"PQstatus" fn(Conn) -> c_int;
    error_message = c"PQerrorMessage" fn(Conn) -> *const c_char;
    set_notice_receiver =
        c"PQsetNoticeReceiver" fn(Conn, NoticeReceiver, *mut c_void) -> Option<NoticeReceiver>;
    finish = c"PQfinish" fn(Conn);
    exec = c"PQexec" fn(Conn, *const c_char) -> Res;
    exec_params = c"PQexecParams" fn(
        Conn, *const c_char, c_int, *const u32, *const *const c_char, *const c_int, *const c_int, c_int,
    ) -> Res;
    result_status = c"PQresultStatus" fn(Res) -> c_int;
    error_field = c"PQresultErrorField" fn(Res, c_int) -> *const c_char;
    affected = c"PQcmdTuples" fn(Res) -> *const c_char;
    rows = c"PQntuples" fn(Res) -> c_int;
    columns = c"PQnfields" fn(Res) -> c_int;
    column_type = c"PQftype" fn(Res, c_int) -> u32;
    is_null = c"PQgetisnull" fn(Res, c_int, c_int) -> c_int;
    value = c"PQgetvalue" fn(Res, c_int, c_int) -> *const c_char;
    length = c"PQgetlength" fn(Res, c_int, c_int) -> c_int;
    clear = c"PQclear" fn(Res);
}

type NoticeReceiver = unsafe extern "C" fn(*mut c_void, *const c_void);

/// Notices ("schema already exists, skipping") would otherwise go to standard error.
unsafe extern "C" fn ignore_notice(_argument: *mut c_void, _result: *const c_void) {}

/// The functions, loaded once.
fn functions() -> Result<&'static Functions, LibraryError> {
    static LOADED: OnceLock<Result<Functions, LibraryError>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| Library::load(NAMES).and_then(|library| Functions::load(&library)));
    loaded.as_ref().map_err(Clone::clone)
}

/// A failure of a connection or a statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PqError {
    /// The library cannot be loaded.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// There is no connection, or it is lost.
    #[error("{message}")]
    Connection {
        /// The library's message, on one line.
        message: String,
    },
    /// The server refused the statement.
    #[error("{message}")]
    Statement {
        /// The server's message, on one line.
        message: String,
        /// The server's five characters (SQLSTATE).
        state: String,
    },
}

/// A value of a statement. Its type is part of it, so that the server need not guess.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// A 64-bit integer.
    Int(i64),
    /// A 64-bit float.
    Real(Option<f64>),
    /// A text without NUL, which the server does not store.
    Text(Option<String>),
}

impl Parameter {
    /// The object id of the type.
    const fn oid(&self) -> u32 {
        match self {
            Parameter::Int(_) => INT8,
            Parameter::Real(_) => FLOAT8,
            Parameter::Text(_) => TEXT,
        }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Parameter::Int(number) => Some(number.to_be_bytes().to_vec()),
            Parameter::Real(number) => number.map(|number| number.to_be_bytes().to_vec()),
            Parameter::Text(text) => text.as_ref().map(|text| text.as_bytes().to_vec()),
        }
    }
}

const BOOL: u32 = 16;
const NAME: u32 = 19;
const INT8: u32 = 20;
const INT4: u32 = 23;
const TEXT: u32 = 25;
const FLOAT8: u32 = 701;

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PqCell<'a> {
    /// None.
    Null,
    /// An integer or a truth value.
    Int(i64),
    /// A float.
    Real(f64),
    /// A text, as bytes.
    Text(&'a [u8]),
    /// A value of a type that is not read here.
    Other,
}

const CONNECTION_OK: c_int = 0;
/// The format of values.
const BINARY: c_int = 1;
const EMPTY_QUERY: c_int = 0;
const COMMAND_OK: c_int = 1;
const TUPLES_OK: c_int = 2;
/// Fields of an error.
const SQLSTATE: c_int = b'C' as c_int;
const MESSAGE: c_int = b'M' as c_int;
const DETAIL: c_int = b'D' as c_int;

/// A connection to a server.
pub struct Connection {
    functions: &'static Functions,
    raw: NonNull<c_void>,
}

// SAFETY: a connection may be used by any thread, by one at a time, and `&mut self` or ownership ensures that.
unsafe impl Send for Connection {}

impl Connection {
    /// Connects with these settings, by libpq's keywords; one named `dbname` may be a URI. Later settings override earlier ones.
    ///
    /// # Errors
    /// The library is missing; the server cannot be reached, or refuses.
    pub fn open(settings: &[(&str, &str)]) -> Result<Connection, PqError> {
        let functions = functions()?;
        let texts: Vec<(CString, CString)> =
            settings.iter().map(|(name, value)| (c_text(name), c_text(value))).collect();
        let list = |pick: fn(&(CString, CString)) -> &CString| -> Vec<*const c_char> {
            texts.iter().map(|text| pick(text).as_ptr()).chain([null()]).collect()
        };
        let (names, values) = (list(|text| &text.0), list(|text| &text.1));
        // SAFETY: both lists end with null and outlive the call.
        let raw = unsafe { (functions.connect)(names.as_ptr(), values.as_ptr(), 1) };
        let Some(raw) = NonNull::new(raw) else {
            return Err(PqError::Connection { message: "out of memory".to_owned() });
        };
        let connection = Connection { functions, raw };
        if !connection.is_open() {
            return Err(PqError::Connection { message: connection.message() });
        }
        // SAFETY: the connection is open, and the function needs no argument.
        unsafe { (functions.set_notice_receiver)(raw.as_ptr(), ignore_notice, null_mut()) };
        Ok(connection)
    }

    /// False once the connection is lost.
    pub fn is_open(&self) -> bool {
        // SAFETY: the connection lives as long as `self`.
        unsafe { (self.functions.status)(self.raw.as_ptr()) == CONNECTION_OK }
    }

    /// Runs several statements without values, separated by semicolons; returns the rows of the last.
    ///
    /// # Errors
    /// The connection is lost, or the server refuses one.
    pub fn batch(&mut self, sql: &str) -> Result<PqRows, PqError> {
        let sql = c_text(sql);
        // SAFETY: the connection lives as long as `self`, and the text until the end of the call.
        let result = unsafe { (self.functions.exec)(self.raw.as_ptr(), sql.as_ptr()) };
        self.rows(result)
    }

    /// Runs one statement, with `$1` and so on for `values`.
    ///
    /// # Errors
    /// The connection is lost, or the server refuses it.
    pub fn run(&mut self, sql: &str, values: &[Parameter]) -> Result<PqRows, PqError> {
        let sql = c_text(sql);
        let types: Vec<u32> = values.iter().map(Parameter::oid).collect();
        let bytes: Vec<Option<Vec<u8>>> = values.iter().map(Parameter::bytes).collect();
        // An empty vector's pointer is not null, as it must be for an empty text.
        let pointers: Vec<*const c_char> =
            bytes.iter().map(|value| value.as_ref().map_or(null(), |value| value.as_ptr().cast())).collect();
        let lengths: Vec<c_int> =
            bytes.iter().map(|value| value.as_ref().map_or(0, |value| value.len() as c_int)).collect();
        let formats = vec![BINARY; values.len()];
        let (types, pointers, lengths) = (types.as_ptr(), pointers.as_ptr(), lengths.as_ptr());
        let (connection, sql, count) = (self.raw.as_ptr(), sql.as_ptr(), values.len() as c_int);
        let exec = self.functions.exec_params;
        // SAFETY: the four lists have as many elements as there are values, and outlive the call.
        let result =
            unsafe { exec(connection, sql, count, types, pointers, lengths, formats.as_ptr(), BINARY) };
        self.rows(result)
    }

    fn rows(&self, result: Res) -> Result<PqRows, PqError> {
        let functions = self.functions;
        let Some(raw) = NonNull::new(result) else {
            return Err(PqError::Connection { message: self.message() });
        };
        let rows = PqRows { functions, raw };
        // SAFETY: the result lives as long as `rows`.
        if matches!(unsafe { (functions.result_status)(result) }, EMPTY_QUERY | COMMAND_OK | TUPLES_OK) {
            return Ok(rows);
        }
        // What has no code does not come from the server: the library lost it.
        let Some(state) = rows.field(SQLSTATE).filter(|_| self.is_open()) else {
            return Err(PqError::Connection { message: self.message() });
        };
        let message = rows.field(MESSAGE).unwrap_or_else(|| self.message());
        let detail = rows.field(DETAIL).map_or(String::new(), |detail| format!(" ({detail})"));
        Err(PqError::Statement { message: one_line(&format!("{message}{detail}")), state })
    }

    fn message(&self) -> String {
        // SAFETY: the connection lives as long as `self`, and the text until the next call.
        let text = unsafe { (self.functions.error_message)(self.raw.as_ptr()) };
        // SAFETY: see above; the text is never null.
        one_line(&unsafe { owned_text(text) }.unwrap_or_default())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: nobody uses the connection any more.
        unsafe { (self.functions.finish)(self.raw.as_ptr()) };
    }
}

/// The answer to a statement.
pub struct PqRows {
    functions: &'static Functions,
    raw: NonNull<c_void>,
}

// SAFETY: a result is not changed after it was made, and belongs to no thread.
unsafe impl Send for PqRows {}

impl PqRows {
    /// The number of rows.
    pub fn len(&self) -> usize {
        // SAFETY: the result lives as long as `self`.
        let rows = unsafe { (self.functions.rows)(self.raw.as_ptr()) };
        usize::try_from(rows).unwrap_or(0)
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of rows that the statement changed.
    pub fn affected(&self) -> usize {
        // SAFETY: the result lives as long as `self`, and so does the text.
        let text = unsafe { owned_text((self.functions.affected)(self.raw.as_ptr())) };
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// The value in a row and a column; null where there is no such place.
    pub fn cell(&self, row: usize, column: usize) -> PqCell<'_> {
        // SAFETY: the result lives as long as `self`.
        let columns = unsafe { (self.functions.columns)(self.raw.as_ptr()) };
        if row >= self.len() || column >= usize::try_from(columns).unwrap_or(0) {
            return PqCell::Null;
        }
        let (row, column, raw) = (row as c_int, column as c_int, self.raw.as_ptr());
        // SAFETY: the place exists.
        if unsafe { (self.functions.is_null)(raw, row, column) } != 0 {
            return PqCell::Null;
        }
        // SAFETY: the place exists, and the value has this many bytes, which live as long as the result.
        let bytes = unsafe {
            let length = usize::try_from((self.functions.length)(raw, row, column)).unwrap_or(0);
            std::slice::from_raw_parts((self.functions.value)(raw, row, column).cast::<u8>(), length)
        };
        // SAFETY: the column exists.
        let column_type = unsafe { (self.functions.column_type)(raw, column) };
        cell(column_type, bytes)
    }

    fn field(&self, code: c_int) -> Option<String> {
        // SAFETY: the result lives as long as `self`, and so does the text.
        unsafe { owned_text((self.functions.error_field)(self.raw.as_ptr(), code)) }
    }
}

impl Drop for PqRows {
    fn drop(&mut self) {
        // SAFETY: nobody uses the result any more.
        unsafe { (self.functions.clear)(self.raw.as_ptr()) };
    }
}

/// A value in the binary format.
fn cell(column_type: u32, bytes: &[u8]) -> PqCell<'_> {
    let eight = || <[u8; 8]>::try_from(bytes).ok();
    let read = match column_type {
        BOOL => bytes.first().map(|&byte| PqCell::Int(i64::from(byte))),
        INT4 => bytes.try_into().ok().map(|bytes| PqCell::Int(i64::from(i32::from_be_bytes(bytes)))),
        INT8 => eight().map(|bytes| PqCell::Int(i64::from_be_bytes(bytes))),
        FLOAT8 => eight().map(|bytes| PqCell::Real(f64::from_be_bytes(bytes))),
        TEXT | NAME => Some(PqCell::Text(bytes)),
        _ => None,
    };
    read.unwrap_or(PqCell::Other)
}

/// A C string; what follows a NUL is cut off.
fn c_text(text: &str) -> CString {
    let until = text.split('\0').next().unwrap_or_default();
    CString::new(until).unwrap_or_default()
}

/// # Safety
/// `text` is null or a C string that lives during the call.
unsafe fn owned_text(text: *const c_char) -> Option<String> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// A message on one line, without the questions that libpq adds below it.
fn one_line(message: &str) -> String {
    let lines = message.lines().filter(|line| !line.starts_with('\t')).map(str::trim);
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line() {
        let check = |message: &str, expected: &str| assert_eq!(one_line(message), expected);
        check("out of memory\n", "out of memory");
        check(
            "connection to server at \"db\" failed: refused\n\tIs the server running?\nsecond host: refused\n",
            "connection to server at \"db\" failed: refused; second host: refused",
        );
    }

    #[test]
    fn binary_values_are_read() {
        assert_eq!(cell(INT8, &7_i64.to_be_bytes()), PqCell::Int(7));
        assert_eq!(cell(INT4, &(-7_i32).to_be_bytes()), PqCell::Int(-7));
        assert_eq!(cell(FLOAT8, &0.1_f64.to_be_bytes()), PqCell::Real(0.1));
        assert_eq!(cell(TEXT, b"x"), PqCell::Text(b"x"));
        assert_eq!(cell(BOOL, &[1]), PqCell::Int(1));
        assert_eq!(cell(INT8, b"x"), PqCell::Other);
        assert_eq!(cell(1700, b"x"), PqCell::Other);
    }

    #[test]
    fn a_server_that_does_not_exist_is_an_error_with_its_reason() {
        match Connection::open(&[("host", "/nonexistent"), ("dbname", "x")]) {
            Err(PqError::Connection { message, .. }) => {
                assert!(message.contains("/nonexistent"), "{message}")
            }
            Err(PqError::Library(error)) => assert!(error.cause.contains("libpq"), "{error}"),
            other => panic!("{:?}", other.err()),
        }
    }
}
