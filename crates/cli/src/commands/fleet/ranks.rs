//! The records that the ranks of a job left in a directory: merged when rank 0 could not report, and what the job's exit is.

use std::path::{Path, PathBuf};

use fathom_analysis::fleet::rank_ranges;
use fathom_record::{MergeRules, RunRecord, TestStatus};

use super::launched::LaunchEnd;
use crate::commands::merge::Merging;
use crate::commands::merge::reading::read_files;
use crate::exit::{Complaint, Exit};
use crate::output;

/// Endings of the record of a rank, and of what a rank that did not come to its end has so far.
const RECORD: &str = "json";
const PARTIAL: &str = "partial";
/// How the names of both begin.
const RANK: &str = "rank-";
/// How the names of marks begin and end, which ranks leave where the job did not end well.
const MARK: (&str, &str) = (".rank-", ".mark");
/// Ranges of ranks that are named.
const MAX_RANGES: usize = 12;

/// The records of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankFiles {
    /// Of ranks that came to their end, by name.
    pub complete: Vec<PathBuf>,
    /// Of ranks that did not.
    pub partial: Vec<PathBuf>,
    /// A rank left its mark: the ranks have lost each other, or still run.
    pub has_marks: bool,
}

impl RankFiles {
    /// What is in `dir`; nothing where it cannot be read, as where the hosts do not share it.
    pub fn of(dir: &Path) -> RankFiles {
        let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
        let mut files = RankFiles::default();
        for path in entries.map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.has_marks |= name.starts_with(MARK.0) && name.ends_with(MARK.1);
            let is_of_rank = name.starts_with(RANK);
            match path.extension().and_then(|ending| ending.to_str()) {
                Some(RECORD) if is_of_rank => files.complete.push(path),
                Some(PARTIAL) if is_of_rank => files.partial.push(path),
                _ => {}
            }
        }
        let RankFiles { complete, partial, .. } = &mut files;
        complete.sort();
        partial.sort();
        // A rank that has both died between writing the one and removing the other.
        partial.retain(|path| complete.binary_search(&path.with_extension(RECORD)).is_err());
        files
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.complete.is_empty() && self.partial.is_empty()
    }

    /// The merged record of a job of `ranks`, or of as many as its records say; `None` where no rank has one that can be merged.
    ///
    /// # Errors
    /// The records are of different jobs.
    pub fn merged(&self, ranks: Option<u32>) -> Result<Option<RunRecord>, Complaint> {
        if self.is_empty() {
            return Ok(None);
        }
        let records = self.complete.len() + self.partial.len();
        let mut merging = Merging::new(MergeRules { ranks, records, ..MergeRules::default() });
        let complete: Vec<&Path> = self.complete.iter().map(PathBuf::as_path).collect();
        read_files(&complete, |read| merging.add(read))?;
        let partial: Vec<&Path> = self.partial.iter().map(PathBuf::as_path).collect();
        read_files(&partial, |read| {
            // A rank that died before it measured has nothing to merge; it is missing.
            if read.record.as_ref().is_ok_and(|record| !record.tests.is_empty())
                && let Err(complaint) = merging.add(read)
            {
                output::warn(&format!("warning: {}", complaint.message));
            }
            Ok(())
        })?;
        if merging.is_empty() {
            return Ok(None);
        }
        let mut record = merging.finish()?;
        record.header.notes.extend(self.ended_early(&record));
        Ok(Some(record))
    }

    /// That ranks whose records so far are counted did not come to their end.
    fn ended_early(&self, record: &RunRecord) -> Option<String> {
        let missing = record.header.fleet.iter().flat_map(|fleet| &fleet.missing);
        let missing: Vec<u32> = missing.copied().collect();
        let number = |path: &PathBuf| path.file_stem()?.to_str()?.strip_prefix(RANK)?.parse::<u32>().ok();
        let ranks = self.partial.iter().filter_map(number).filter(|rank| !missing.contains(rank));
        let ranks: Vec<u32> = ranks.collect();
        let named = rank_ranges(&ranks, MAX_RANGES);
        (!ranks.is_empty())
            .then(|| format!("these ranks did not come to their end, and count with what they had: {named}"))
    }

    /// True where every rank has a record of all that it was to measure.
    pub fn are_whole(&self, record: &RunRecord) -> bool {
        let has_all = record.header.fleet.as_ref().is_some_and(|fleet| fleet.is_complete());
        has_all && self.ended_well(record)
    }

    /// The same where the other hosts may keep their records in directories that are not seen here: ranks that met at the end took
    /// their marks away. Rank 0, which reports, has a record where it is seen at all.
    pub fn are_whole_as_seen(&self, record: &RunRecord) -> bool {
        let has_first = record.header.fleet.as_ref().is_none_or(|fleet| !fleet.missing.contains(&0));
        self.are_whole(record) || has_first && !self.has_marks && self.ended_well(record)
    }

    fn ended_well(&self, record: &RunRecord) -> bool {
        self.partial.is_empty() && record.status != TestStatus::Incomplete
    }
}

/// What is left to do when a launcher has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remainder {
    /// Nothing: this is the exit.
    Nothing(Exit),
    /// The merged record is to be reported before.
    Report(Exit),
    /// No rank left a record, and none reported.
    NoRecord(Exit),
}

/// What is left to do after a launcher that ended so, where the records are `whole`, not whole, or not here.
pub fn remainder(end: &LaunchEnd, whole: Option<bool>) -> Remainder {
    let of_code = match end.code {
        _ if end.is_interrupted => Exit::Interrupted,
        Some(0) => Exit::Done,
        Some(75) => Exit::Partial,
        // What a shell and a launcher say of a signal is no answer of the ranks.
        Some(code @ 1..=127) => Exit::Ranks(code as u8),
        _ => Exit::Failed,
    };
    let exit = match (of_code, whole) {
        (Exit::Ranks(_) | Exit::Failed, Some(false)) => Exit::Partial,
        (exit, _) => exit,
    };
    match whole {
        _ if end.has_report || of_code == Exit::Done => Remainder::Nothing(exit),
        // Rank 0 has come to its end and says the same, in whatever form.
        Some(true) if matches!(of_code, Exit::Ranks(_)) => Remainder::Nothing(exit),
        Some(_) => Remainder::Report(exit),
        None => Remainder::NoRecord(exit),
    }
}

/// How a run of a series ends whose records are whole, or not.
pub fn of_run(end: &LaunchEnd, is_whole: bool) -> Exit {
    match remainder(end, Some(is_whole)) {
        _ if !is_whole => Exit::Partial,
        Remainder::Nothing(exit) | Remainder::Report(exit) | Remainder::NoRecord(exit) => exit,
    }
}

/// How a series ends that would have ended with `before`, and has another run: missing ranks come first, then the earliest that failed.
pub fn of_series(before: Exit, run: Exit) -> Exit {
    if before == Exit::Done || run == Exit::Partial { run } else { before }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(code: Option<i32>, has_report: bool) -> LaunchEnd {
        LaunchEnd { code, has_report, is_interrupted: false }
    }

    #[test]
    fn lost_ranks_are_75_whatever_the_launcher_says() {
        use Remainder::{NoRecord, Nothing, Report};
        for (code, has_report, whole, expected) in [
            (Some(0), true, Some(true), Nothing(Exit::Done)),
            (Some(0), true, None, Nothing(Exit::Done)),
            // srun with pmi2: rank 0 has reported and ended the job.
            (Some(137), true, Some(false), Nothing(Exit::Partial)),
            // Open MPI: the launcher killed rank 0 too.
            (Some(134), false, Some(false), Report(Exit::Partial)),
            (None, false, Some(false), Report(Exit::Partial)),
            (Some(75), true, Some(false), Nothing(Exit::Partial)),
            (Some(75), false, Some(false), Report(Exit::Partial)),
            (Some(3), true, Some(true), Nothing(Exit::Ranks(3))),
            (Some(3), false, Some(true), Nothing(Exit::Ranks(3))),
            (Some(2), false, None, NoRecord(Exit::Ranks(2))),
            (Some(255), false, None, NoRecord(Exit::Failed)),
            (Some(255), false, Some(true), Report(Exit::Failed)),
        ] {
            assert_eq!(remainder(&end(code, has_report), whole), expected, "{code:?} {has_report} {whole:?}");
        }
        let interrupted = LaunchEnd { is_interrupted: true, ..end(Some(1), false) };
        assert_eq!(remainder(&interrupted, Some(false)), Report(Exit::Interrupted));
    }

    #[test]
    fn a_rank_has_one_record() {
        let dir = tempfile::tempdir().unwrap();
        for name in
            ["rank-00000.json", "rank-00000.partial", "rank-00001.partial", "rank-00001.mark", "other.json"]
        {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let files = RankFiles::of(dir.path());
        assert_eq!(files.complete, [dir.path().join("rank-00000.json")]);
        assert_eq!(files.partial, [dir.path().join("rank-00001.partial")]);
        assert!(RankFiles::of(Path::new("/nonexistent")).is_empty());
        assert!(!files.has_marks);
        std::fs::write(dir.path().join(".rank-00001.mark"), "").unwrap();
        assert!(RankFiles::of(dir.path()).has_marks);
    }

    #[test]
    fn records_that_are_elsewhere_are_not_missing() {
        let fleet = fathom_record::FleetRecord { missing: vec![1], ..Default::default() };
        let mut record = RunRecord { status: TestStatus::Complete, ..RunRecord::default() };
        record.header.fleet = Some(fleet);
        let parted = RankFiles::default();
        assert!(!parted.are_whole(&record) && parted.are_whole_as_seen(&record));
        let lost = RankFiles { has_marks: true, ..RankFiles::default() };
        assert!(!lost.are_whole_as_seen(&record));
    }

    #[test]
    fn a_series_ends_as_its_ranks_do() {
        assert_eq!(of_run(&end(Some(0), true), true), Exit::Done);
        assert_eq!(of_run(&end(Some(0), true), false), Exit::Partial);
        assert_eq!(of_run(&end(Some(1), true), true), Exit::Ranks(1));
        assert_eq!(of_series(Exit::Done, Exit::Ranks(1)), Exit::Ranks(1));
        assert_eq!(of_series(Exit::Ranks(1), Exit::Done), Exit::Ranks(1));
        assert_eq!(of_series(Exit::Ranks(1), Exit::Partial), Exit::Partial);
    }
}
