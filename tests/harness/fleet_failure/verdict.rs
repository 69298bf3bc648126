//! What must be true of a job in which something failed: it ends in time, with a code that is documented, names who is missing, and
//! keeps what the others have measured.

use std::os::unix::process::ExitStatusExt as _;

use serde_json::{Deserializer, Value};

use super::{FleetFailure, PlantedFailure, RankPhase};
use crate::cluster::Launcher;
use crate::program::Ended;
use crate::staged_job::StagedJob;

/// The exit code of a job that ranks are missing from, of one that was refused, and of one with a process that was killed.
const MISSING: i32 = 75;
const REFUSED: i32 = 1;
const KILLED: i32 = 137;
/// MPICH's launcher has the number of the signal that ended a process, or fails itself while it ends the others.
const KILLED_BY_MPICH: i32 = 9;
const MPICH_FAILED: i32 = 255;
const MPICH_LOST_ITS_PIPE: i32 = 141;

/// What became of a job in which something failed.
#[derive(Debug)]
pub struct FailureOutcome {
    /// The failure.
    pub planted: PlantedFailure,
    /// The host of the rank that failed.
    pub host: &'static str,
    /// The end of the launcher; `None` where it had to be ended.
    pub ended: Option<Ended>,
    /// From the failure to that, s.
    pub seconds: f64,
    /// The ranks that had written their records before the failure.
    pub(super) had_ended: Vec<usize>,
    /// The ranks that outlived the job.
    pub(super) left: Vec<usize>,
    /// The ranks of which there is a record.
    pub kept: Vec<usize>,
    /// The end of `fathom merge`, where there are records.
    pub(super) merged: Option<Ended>,
}

impl FailureOutcome {
    /// What contradicts docs/src/reference/merged-runs.md; nothing where the job behaved as documented.
    pub fn violations(&self) -> Vec<String> {
        let mut found = Vec::new();
        if !self.left.is_empty() {
            found.push(format!("ranks {:?} have not ended", self.left));
        }
        match &self.ended {
            None if self.may_outlive_its_ranks() => {}
            None => found.push(format!("no end within {:.0} s", self.seconds)),
            Some(ended) => {
                if !self.code().is_some_and(|code| self.planted.documented_codes().contains(&code)) {
                    found.push(format!("it ended with {}", ended.status));
                }
                found.extend(self.wrong_report(ended));
            }
        }
        found.extend(self.wrong_merge());
        found
    }

    /// The exit code of the launcher, as a shell has it.
    pub fn code(&self) -> Option<i32> {
        let status = self.ended.as_ref()?.status;
        status.code().or_else(|| Some(128 + status.signal()?))
    }

    /// What was printed, without the report of the merge.
    pub fn printed(&self) -> String {
        let job = self.ended.as_ref().map_or_else(String::new, Ended::to_string);
        let merged = self.merged.as_ref().map_or("", |merged| merged.stderr.as_str());
        format!("{job}\n-- merge\n{merged}")
    }

    /// Open MPI's launcher waits for a host that is cut off until TCP gives up.
    fn may_outlive_its_ranks(&self) -> bool {
        (self.planted.launcher, self.planted.failure) == (Launcher::Mpirun, FleetFailure::CableCut)
    }

    /// What is wrong with what rank 0 has printed.
    fn wrong_report(&self, ended: &Ended) -> Vec<String> {
        let mut found = Vec::new();
        let fleet = document(&ended.stdout).map(|document| document["fathom"]["fleet"].clone());
        let merged = fleet.as_ref().and_then(|fleet| fleet["merged"].as_u64()).unwrap_or(0) as usize;
        let missing = fleet.as_ref().map_or(0, |fleet| fleet["missing"].as_array().map_or(0, Vec::len));
        if fleet.is_some() && merged + missing != StagedJob::RANKS {
            found.push(format!("a report of {merged} ranks misses {missing}"));
        }
        let is_whole = merged == StagedJob::RANKS;
        if ended.status.success() && !is_whole {
            found.push(format!("a success with {merged} ranks"));
        }
        if fleet.is_some() && !is_whole && !ended.stderr.contains(" ranks; missing: ") {
            found.push("a report of some ranks does not name the others".to_owned());
        }
        let absent = self.expected_words().into_iter().filter(|words| !ended.stderr.contains(words.as_str()));
        found.extend(absent.map(|words| format!("not told: {words}")));
        found
    }

    /// What is to be told on standard error.
    fn expected_words(&self) -> Vec<String> {
        let (victim, host) = (self.planted.victim(), self.host);
        match self.planted.failure {
            FleetFailure::OtherVersion => vec![" runs fathom 0.0.0".to_owned(), format!("on {host} runs")],
            FleetFailure::FullDisk => {
                let unwritten = (0..StagedJob::RANKS).filter(|rank| !self.kept.contains(rank));
                unwritten.map(|rank| format!("warning: rank {rank} on ")).collect()
            }
            _ if !self.planted.leaves_rank_0_alone() => Vec::new(),
            _ if self.planted.phase() == Some(RankPhase::Join) => {
                vec!["all ranks to join".to_owned()]
            }
            // One that writes its record, even if nobody can reach it, is not missed.
            _ if self.kept.contains(&victim) => vec!["not all ranks came in time".to_owned()],
            _ => vec![format!("rank {victim} on {host} (")],
        }
    }

    /// What is wrong with the records.
    fn wrong_merge(&self) -> Vec<String> {
        let mut found = Vec::new();
        let lost: Vec<usize> =
            self.to_be_kept().into_iter().filter(|rank| !self.kept.contains(rank)).collect();
        if !lost.is_empty() {
            found.push(format!("the records of ranks {lost:?} are lost"));
        }
        let Some(merged) = &self.merged else { return found };
        let expected = if self.kept.len() == StagedJob::RANKS { 0 } else { MISSING };
        if merged.status.code() != Some(expected) {
            found.push(format!("merge of {:?} ended with {}", self.kept, merged.status));
        }
        let count =
            document(&merged.stdout).and_then(|document| document["fathom"]["fleet"]["merged"].as_u64());
        if count != Some(self.kept.len() as u64) {
            found.push(format!("merge counts {count:?} of {:?}", self.kept));
        }
        found
    }

    /// The ranks whose records must be there.
    fn to_be_kept(&self) -> Vec<usize> {
        let all = 0..StagedJob::RANKS;
        let victim = self.planted.victim();
        match self.planted.phase() {
            Some(RankPhase::Measuring) if self.planted.is_late() => all.collect(),
            Some(RankPhase::Measuring) if self.planted.leaves_others_alone() => {
                all.filter(|rank| *rank / 2 != victim / 2).collect()
            }
            Some(RankPhase::Collect) => self.had_ended.clone(),
            _ => Vec::new(),
        }
    }
}

impl PlantedFailure {
    /// True where the launcher does nothing about it, so that ranks meet their deadlines.
    fn leaves_others_alone(&self) -> bool {
        match self.failure {
            FleetFailure::Killed(_) => self.launcher == Launcher::SrunPmi2,
            FleetFailure::Stopped | FleetFailure::CableCut => true,
            FleetFailure::FullDisk | FleetFailure::OtherVersion => true,
        }
    }

    /// True where rank 0, on the first host, has the time to say who is missing.
    fn leaves_rank_0_alone(&self) -> bool {
        let fails = match self.failure {
            FleetFailure::CableCut => self.victim() < 2,
            _ => self.victim() == 0,
        };
        !fails && self.leaves_others_alone()
    }

    /// The exit codes of the launcher that docs/src/reference/merged-runs.md has for it.
    fn documented_codes(&self) -> &'static [i32] {
        match (self.failure, self.launcher) {
            (FleetFailure::FullDisk, _) => &[0],
            (FleetFailure::OtherVersion, _) => &[REFUSED],
            (FleetFailure::Killed(_), Launcher::Mpiexec) => {
                &[MISSING, KILLED_BY_MPICH, MPICH_FAILED, MPICH_LOST_ITS_PIPE]
            }
            (FleetFailure::Killed(_), _) | (_, Launcher::SrunPmi2) => &[MISSING, KILLED],
            _ => &[MISSING],
        }
    }
}

/// The JSON document in an output, before and behind which launchers may have printed something.
fn document(text: &str) -> Option<Value> {
    let begin = if text.starts_with("{\n") { 0 } else { text.find("\n{\n")? + 1 };
    Deserializer::from_str(&text[begin..]).into_iter().next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_found_between_other_lines() {
        let banner = "\n====\n=   BAD TERMINATION {\n";
        assert_eq!(document(&format!("{banner}{{\n\"a\": 1}}{banner}")).unwrap()["a"], 1);
        assert_eq!(document("{\n\"a\": 2}\n").unwrap()["a"], 2);
        assert_eq!(document(banner), None);
    }
}
