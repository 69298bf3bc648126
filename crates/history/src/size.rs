//! How large a history is.

use crate::{Error, History, place};

/// Size and contents of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistorySize {
    /// Bytes of its files: the database, and the log of changes that are not in it yet.
    pub bytes: u64,
    /// Of these, bytes of pages that no run uses any more.
    pub free_bytes: u64,
    /// Runs.
    pub runs: u64,
    /// Tests of all runs.
    pub tests: u64,
    /// Number of the format.
    pub format: u32,
}

impl History {
    /// Its size and the number of its runs.
    ///
    /// # Errors
    /// Those of the database.
    pub fn size(&self) -> Result<HistorySize, Error> {
        let read = |sql: &str| {
            self.connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|number| number.max(0) as u64)
        };
        let all = || -> rusqlite::Result<HistorySize> {
            Ok(HistorySize {
                bytes: 0,
                free_bytes: read("PRAGMA freelist_count")? * read("PRAGMA page_size")?,
                runs: read("SELECT count(*) FROM runs INDEXED BY runs_listed")?,
                tests: read("SELECT coalesce(sum(tests), 0) FROM runs INDEXED BY runs_listed")?,
                format: read("PRAGMA user_version")? as u32,
            })
        };
        let size = all().map_err(|error| self.failed("read its size", error))?;
        let length = |suffix: &str| {
            std::fs::metadata(place::with_suffix(self.path(), suffix)).map_or(0, |file| file.len())
        };
        Ok(HistorySize { bytes: length("") + length("-wal"), ..size })
    }
}
