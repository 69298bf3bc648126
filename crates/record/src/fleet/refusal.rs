//! Why a record cannot be merged with those before it.

use crate::ActivityKind;

/// A record that cannot be merged with those before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeRefusal {
    /// Its command has no common result of several hosts.
    #[error("records of `fathom {kind}` cannot be merged")]
    Kind {
        /// The command.
        kind: ActivityKind,
    },
    /// It was merged itself.
    #[error("it is a merged record")]
    Merged,
    /// It has no tests.
    #[error("it has no tests")]
    Empty,
    /// Another command, suite or job.
    #[error("{subject}: {first} in {first_source}, {other} here")]
    Job {
        /// What differs.
        subject: String,
        /// In the first record.
        first: String,
        /// In this one.
        other: String,
        /// Where the first record is from.
        first_source: String,
    },
    /// Another version of the program.
    #[error("it was written by fathom {other}, and {first_source} by fathom {first}")]
    Version {
        /// Of the first record.
        first: String,
        /// Of this one.
        other: String,
        /// Where the first record is from.
        first_source: String,
    },
    /// Another kind of target.
    #[error("its target is a {other}, and that of {first_source} a {first}")]
    Target {
        /// Of the first record.
        first: String,
        /// Of this one.
        other: String,
        /// Where the first record is from.
        first_source: String,
    },
    /// Two records of one rank.
    #[error("it is of rank {rank}, and so is {first_source}")]
    DuplicateRank {
        /// The rank.
        rank: u32,
        /// Where the other is from.
        first_source: String,
    },
    /// The same record twice.
    #[error("it is the same run as {first_source}")]
    SameRun {
        /// Where the other is from.
        first_source: String,
    },
    /// Counters that cannot be those of runs.
    #[error("its counters cannot be added to those of the other records")]
    TooLarge,
}

impl MergeRefusal {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            MergeRefusal::Kind { .. } => {
                "records of bench, fio, ping and sweep, and imported figures, can be merged"
            }
            MergeRefusal::Merged => "merge the records of the hosts again, with those that are to be added",
            MergeRefusal::Empty => "was the run interrupted before its first test? leave the record out",
            MergeRefusal::Job { .. } => {
                "every host must run the same jobs; leave out the record, or merge it separately"
            }
            MergeRefusal::Version { .. } => "use one version on every host, or add --allow version",
            MergeRefusal::Target { .. } => {
                "figures of different kinds of targets do not add up; --allow target merges them all the same"
            }
            MergeRefusal::DuplicateRank { .. } => "are records of two jobs in one directory?",
            MergeRefusal::SameRun { .. } => "name each record once",
            MergeRefusal::TooLarge => "was the file edited? leave it out",
        }
    }
}
