//! The directory in which each rank of a job keeps its record: `rank-00003.json`, which `fathom merge` reads; while it runs
//! `rank-00003.partial`, which stays where the rank dies; and `.rank-00003.mark`, the last meeting that it came to.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fathom_record::RunRecord;
use fathom_sys::clock::unix_ms;
use fathom_sys::files::{RECORD, SYSTEM_TEXT, replace_output};
use serde::{Deserialize, Serialize};

use crate::error::plain;

/// The last meeting that a rank came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RankMark {
    pub rank: u32,
    pub host: String,
    /// A number that tells jobs apart.
    pub job: u64,
    /// What it waited for there.
    pub phase: String,
    /// The number of the meeting, from 0.
    pub meeting: u64,
    /// When, by its own wall clock, ms since the epoch.
    pub unix_ms: u64,
}

/// The directory, for one rank.
#[derive(Debug)]
pub(super) struct RecordDirectory {
    path: PathBuf,
    rank: u32,
    host: String,
    job: u64,
}

impl RecordDirectory {
    /// What is wrong with the directory at `path` for a rank: it has its record already.
    pub fn earlier(path: &Path, rank: u32) -> Option<String> {
        let directory = RecordDirectory { path: path.to_owned(), rank, host: String::new(), job: 0 };
        let old = [directory.record(rank), directory.partial(rank)].into_iter().find(|old| old.exists())?;
        Some(format!("{} is there already, of an earlier job", old.display()))
    }

    /// The directory at `path`, which is made where it is missing; `job` tells this job apart. What is wrong with it shows when the
    /// record is written.
    pub fn open(path: &Path, rank: u32, host: &str, job: u64) -> RecordDirectory {
        let _ = fs::create_dir_all(path);
        let directory = RecordDirectory { path: path.to_owned(), rank, host: host.to_owned(), job };
        directory.mark("all ranks to join", 0);
        directory
    }

    /// Where the record of a rank is.
    pub fn record(&self, rank: u32) -> PathBuf {
        self.path.join(format!("rank-{rank:05}.json"))
    }

    /// Where the record so far of a rank is.
    pub fn partial(&self, rank: u32) -> PathBuf {
        self.path.join(format!("rank-{rank:05}.partial"))
    }

    /// Writes the record of this rank, all of it or nothing, through to the device.
    ///
    /// # Errors
    /// A sentence with the name of the file.
    pub fn write_record(&self, record: &RunRecord) -> Result<(), String> {
        self.write(&self.record(self.rank), record)?;
        let _ = fs::remove_file(self.partial(self.rank));
        Ok(())
    }

    /// Writes the record so far of this rank.
    ///
    /// # Errors
    /// A sentence with the name of the file.
    pub fn write_partial(&self, record: &RunRecord) -> Result<(), String> {
        self.write(&self.partial(self.rank), record)
    }

    fn write(&self, path: &Path, record: &RunRecord) -> Result<(), String> {
        let mut text = record.to_json();
        text.push('\n');
        let written = replace_output(path, 0o666, |out| out.write_all(text.as_bytes()));
        written.map_err(|error| format!("cannot write {}: {}", path.display(), plain(&error)))
    }

    /// The record of a rank.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub fn read_record(&self, rank: u32) -> Result<RunRecord, String> {
        let text = RECORD.read_text(&self.record(rank)).map_err(|error| error.to_string())?;
        super::records::parse(text.as_bytes())
    }

    /// This rank waits for `phase` at a meeting. A mark that cannot be written is missed by nobody until a rank is.
    pub fn mark(&self, phase: &str, meeting: u64) {
        let _ = self.put_mark(phase, meeting);
    }

    fn put_mark(&self, phase: &str, meeting: u64) -> io::Result<()> {
        let (rank, host, job, phase) = (self.rank, self.host.clone(), self.job, phase.to_owned());
        let mark = RankMark { rank, host, job, phase, meeting, unix_ms: unix_ms() };
        let text = serde_json::to_string(&mark).map_err(io::Error::other)?;
        replace_output(&self.mark_path(self.rank), 0o666, |out| out.write_all(text.as_bytes()))
    }

    fn mark_path(&self, rank: u32) -> PathBuf {
        self.path.join(format!(".rank-{rank:05}.mark"))
    }

    /// The last mark of a rank of this job, where it can be seen from here.
    pub fn mark_of(&self, rank: u32) -> Option<RankMark> {
        let text = SYSTEM_TEXT.read_text(&self.mark_path(rank)).ok()?;
        let mark: RankMark = serde_json::from_str(&text).ok()?;
        (mark.job == self.job && mark.rank == rank).then_some(mark)
    }

    /// Takes the mark of this rank away, when the job has ended well.
    pub fn clear_mark(&self) {
        let _ = fs::remove_file(self.mark_path(self.rank));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_finds_the_marks_and_records_of_its_own_job() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new");
        let one = RecordDirectory::open(&path, 1, "h1", 7);
        let zero = RecordDirectory::open(&path, 0, "h0", 7);
        one.mark("the end of all runs", 3);
        let mark = zero.mark_of(1).unwrap();
        assert_eq!((mark.meeting, mark.phase.as_str(), mark.host.as_str()), (3, "the end of all runs", "h1"));
        assert_eq!(RecordDirectory::open(&path, 2, "h2", 8).mark_of(1), None);
        let record = RunRecord::default();
        one.write_partial(&record).unwrap();
        assert!(one.partial(1).exists() && zero.read_record(1).is_err());
        one.write_record(&record).unwrap();
        assert!(!one.partial(1).exists() && zero.read_record(1).is_ok());
        one.clear_mark();
        assert_eq!(zero.mark_of(1), None);
        let refused = RecordDirectory::earlier(&path, 1).unwrap();
        assert!(refused.ends_with("rank-00001.json is there already, of an earlier job"), "{refused}");
        assert_eq!(RecordDirectory::earlier(&path, 0), None);
    }
}
