//! One run record in a separate file, used if the history cannot be used.
//!
//! The file is a complete run record at all times: each change writes the whole record under a random name and renames
//! it. The cost grows with the square of the number of tests, but is small compared with the tests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fathom_record::{Finding, RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_sys::files::{create_new, replace_output};

use crate::Error;
use crate::store::replace_header;

/// A record in a separate file.
#[derive(Debug)]
pub struct SideFile {
    path: PathBuf,
    record: RunRecord,
}

impl SideFile {
    /// Starts a record as `fathom-STARTED-PID.json` in `directory`. It counts as incomplete until it is finished.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn begin(directory: &Path, header: &RunHeader) -> Result<SideFile, Error> {
        SideFile::take_over(directory, RunRecord { header: header.clone(), ..RunRecord::default() })
    }

    /// Continues a record that was begun elsewhere.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn take_over(directory: &Path, record: RunRecord) -> Result<SideFile, Error> {
        let path = reserve(directory, record.header.started_unix_ms)?;
        let side_file = SideFile { path, record };
        match side_file.write() {
            Ok(()) => Ok(side_file),
            Err(error) => {
                // It is empty, and the first error is the one to report.
                let _ = fs::remove_file(&side_file.path);
                Err(error)
            }
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The record, even if the last write failed.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// Adds a finished test. When this returns, the test outlives a crash of the machine.
    ///
    /// # Errors
    /// The file cannot be written; it then keeps its previous contents.
    pub fn append(&mut self, test: &TestRecord) -> Result<(), Error> {
        self.record.tests.push(test.clone());
        self.write()
    }

    /// Stores the end of the run: its status, final header and findings.
    ///
    /// # Errors
    /// The file cannot be written; it then keeps its previous contents.
    pub fn finish(
        &mut self,
        status: TestStatus,
        header: &RunHeader,
        findings: &[Finding],
    ) -> Result<(), Error> {
        self.record.status = status;
        replace_header(&mut self.record, header);
        self.record.findings = findings.to_vec();
        self.write()
    }

    fn write(&self) -> Result<(), Error> {
        let written = replace_output(&self.path, PRIVATE_MODE, |out| self.record.write_json(out));
        written.map_err(|source| failed(&self.path, source))
    }
}

/// Records contain names of hosts, devices and commands, which are private.
const PRIVATE_MODE: u32 = 0o600;

/// Creates the empty file, so that no other run uses its name.
fn reserve(directory: &Path, started_unix_ms: u64) -> Result<PathBuf, Error> {
    let started = match i64::try_from(started_unix_ms).map(jiff::Timestamp::from_millisecond) {
        Ok(Ok(time)) if started_unix_ms > 0 => time.strftime("%Y%m%dT%H%M%SZ").to_string(),
        _ => "simulated".to_owned(),
    };
    let stem = format!("fathom-{started}-{}", std::process::id());
    let mut path = directory.join(format!("{stem}.json"));
    for number in 2.. {
        match create_new(&path) {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                path = directory.join(format!("{stem}-{number}.json"));
            }
            Err(source) => return Err(failed(&path, source)),
        }
    }
    Ok(path)
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::io("write the record to", path, source)
}
