//! How large a history is.

use crate::{Error, History};

/// Size and contents of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistorySize {
    /// Bytes of its files, the log of changes included, or of its tables and indices on a server.
    pub bytes: u64,
    /// Of these, bytes of pages that no run uses any more; `None` where that is unknown.
    pub free_bytes: Option<u64>,
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
        const ACTION: &str = "read its size";
        const RUNS: &str = "SELECT count(*) FROM runs INDEXED BY runs_listed";
        const TESTS: &str = "SELECT CAST(coalesce(sum(tests), 0) AS BIGINT) FROM runs INDEXED BY runs_listed";
        let counted = self.read(ACTION, |transaction| {
            let count = |sql: &str| transaction.number(sql).map(|number| number.max(0) as u64);
            let format = transaction.format()?.map_or(0, |(_, format)| format);
            Ok(HistorySize {
                runs: count(RUNS)?,
                tests: count(TESTS)?,
                format: u32::try_from(format).unwrap_or(0),
                ..HistorySize::default()
            })
        })?;
        let bytes = self.database().bytes(self.location());
        let (bytes, free_bytes) = bytes.map_err(|failure| self.failed(ACTION, failure))?;
        Ok(HistorySize { bytes, free_bytes, ..counted })
    }
}
