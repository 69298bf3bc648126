//! The report of rank 0: the records of all ranks, merged as `fathom merge` does, and who is missing.
//!
//! Each rank keeps its own in a directory: `rank-00003.json`, which `fathom merge` reads; while it runs `rank-00003.partial`, which stays
//! where the rank dies; and `.rank-00003.mark`, the last meeting that it came to.

use std::path::{Path, PathBuf};
use std::{fs, io};

use fathom_model::text::listed;
use fathom_record::{FleetMerger, MergeRules, RunRecord};
use fathom_sys::clock::{RealClock, monotonic_ns, unix_ms};
use fathom_sys::files::{RECORD, SYSTEM_TEXT, replace_output};
use serde::{Deserialize, Serialize};

use super::coordinator::RankState;
use super::hello::FleetPlace;
use crate::error::plain;
use crate::findings::findings_of;

/// What ranks that are ready wait for.
pub(super) const FIRST_START: &str = "all ranks to prepare";
pub(super) const NEXT_START: &str = "the start of the next phase";
/// Ranks that are named in one sentence.
const MAX_NAMED: usize = 16;
/// How often the records of ranks that still write them are looked for.
const LOOK_NS: u64 = 100_000_000;

/// A rank without a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRank {
    /// The rank.
    pub rank: u32,
    /// Its host, as far as it is known.
    pub host: String,
    /// How far it came, or why its record is missing.
    pub reason: String,
}

/// What rank 0 has of all ranks.
#[derive(Debug, Default)]
pub struct FleetReport {
    /// The merged record; `None` where no rank has one.
    pub record: Option<RunRecord>,
    /// Ranks without a record, in order.
    pub missing: Vec<MissingRank>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

impl FleetReport {
    /// "61 of 64 ranks; missing: h3 rank 3 (…)"; `None` where none is missing.
    pub fn missing_line(&self, ranks: u32) -> Option<String> {
        if self.missing.is_empty() {
            return None;
        }
        let there = ranks as usize - self.missing.len();
        let name = |missing: &MissingRank| {
            let MissingRank { rank, host, reason } = missing;
            let host = if host.is_empty() { String::new() } else { format!(" on {host}") };
            format!("rank {rank}{host} ({reason})")
        };
        let names: Vec<String> = self.missing.iter().map(name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Some(format!("{there} of {ranks} ranks; missing: {}", listed(&names, MAX_NAMED)))
    }
}

/// Reads the record of a rank.
pub(super) fn parse(text: &[u8]) -> Result<RunRecord, String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    RunRecord::from_json(text).map_err(|error| error.to_string())
}

/// The report of all ranks; `own` is the record of rank 0 where it has one, `record` gets those of others.
pub(super) fn collect(
    place: &FleetPlace,
    own: Option<RunRecord>,
    mut record: impl FnMut(u32) -> Result<RunRecord, String>,
) -> FleetReport {
    let mut own = own;
    let of_rank = |rank| match rank {
        0 => own.take().ok_or_else(|| "it ended without a record".to_owned()),
        _ => record(rank),
    };
    merged(place, of_rank)
}

/// The report of what can be found where the ranks do not meet any more: the records that are in the directory by `until_ns` of the
/// monotonic clock.
pub(super) fn found(
    place: &FleetPlace,
    directory: Option<&RecordDirectory>,
    own: Option<RunRecord>,
    until_ns: u64,
) -> FleetReport {
    let mut own = own;
    let meeting = directory.and_then(|directory| directory.mark_of(0)).map_or(0, |mark| mark.meeting);
    let of_rank = |rank: u32| {
        if let Some(own) = own.take_if(|_| rank == 0) {
            return Ok(own);
        }
        let Some(directory) = directory else {
            return Err("unknown: add --fleet-out with a directory that all hosts share".to_owned());
        };
        let mark = directory.mark_of(rank);
        // A rank that has come as far as this one writes its record now.
        let is_there = mark.as_ref().is_some_and(|mark| mark.meeting >= meeting);
        while is_there && !directory.record(rank).exists() && monotonic_ns() < until_ns {
            let clock = RealClock::start();
            clock.sleep_until(clock.now() + LOOK_NS, std::time::Duration::from_nanos(LOOK_NS), || true);
        }
        directory.read_record(rank).map_err(|error| match mark {
            Some(_) if directory.record(rank).exists() => error,
            Some(mark) if is_there => format!("it waited for {}, without a record", mark.phase),
            Some(mark) => {
                let partial = directory.partial(rank);
                let kept =
                    if partial.exists() { format!("; see {}", partial.display()) } else { String::new() };
                // Rank 0 has left that meeting, so this rank had come to it.
                match mark.phase.as_str() {
                    FIRST_START | NEXT_START => format!("it began to measure and did not come back{kept}"),
                    phase => format!("last seen waiting for {phase}{kept}"),
                }
            }
            None => "its record is not in the directory of rank 0".to_owned(),
        })
    };
    merged(place, of_rank)
}

fn merged(place: &FleetPlace, mut of_rank: impl FnMut(u32) -> Result<RunRecord, String>) -> FleetReport {
    let rules =
        MergeRules { ranks: Some(place.ranks), records: place.ranks as usize, ..MergeRules::default() };
    let mut merger = FleetMerger::new(rules);
    let mut report = FleetReport::default();
    for rank in 0..place.ranks {
        let source = format!("rank-{rank:05}.json");
        let merged = of_rank(rank).and_then(|record| {
            merger.add(&source, record).map_err(|refusal| format!("cannot be merged: {refusal}"))
        });
        if let Err(reason) = merged {
            report.missing.push(MissingRank { rank, host: place.host_of(rank).to_owned(), reason });
        }
    }
    report.record = merger.finish();
    if let Some(record) = &mut report.record {
        record.findings = findings_of(record);
        // What rank 0 was told to merge is its own; the record says what it is.
        record.header.fleet.iter_mut().for_each(|fleet| {
            fleet.missing = report.missing.iter().map(|missing| missing.rank).collect();
        });
    }
    report
}

/// What ranks told beside their records.
pub(super) fn notes_of(place: &FleetPlace, states: &[RankState]) -> Vec<String> {
    let of_rank = |(rank, state): (usize, &RankState)| match state {
        RankState::Ended { note: Some(note), .. } => Some(format!("{}: {note}", place.name_of(rank as u32))),
        _ => None,
    };
    states.iter().enumerate().filter_map(of_rank).collect()
}

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
