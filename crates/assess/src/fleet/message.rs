//! What the run of a rank, and its holder, ask of the thread that meets the other ranks, and what it answers.

use std::sync::mpsc::Sender;

use fathom_record::RunRecord;

use super::decider::RankAnswers;
use super::meeting::RunPoint;
use super::records::FleetReport;

/// What ranks that are ready wait for.
pub(super) const FIRST_START: &str = "all ranks to prepare";
pub(super) const NEXT_START: &str = "the start of the next phase";

/// What the run, or its holder, asks for.
pub(super) enum Request {
    /// A phase is ready to start.
    Ready { point: RunPoint, longest_ns: Option<u64>, reply: Sender<GateAnswer> },
    /// What to measure next; `result` is what was measured last. Rank 0 answers by `answers`.
    Ask { point: RunPoint, result: Vec<u8>, answers: Option<RankAnswers>, reply: Sender<Asked> },
    /// The rank could not begin to measure.
    Failed { reason: String, reply: Sender<Ending> },
    /// The run has ended.
    Ended {
        record: Box<RunRecord>,
        /// Why the record could not be written to the directory.
        note: Option<String>,
        interrupted: Option<String>,
        reply: Sender<Ending>,
    },
    /// The launcher is to end the job.
    Abort(Sender<()>),
}

/// The answer to a phase that is ready.
pub(super) enum GateAnswer {
    Start,
    /// It never starts, for this reason.
    Never(String),
}

/// The answer to a question.
pub(super) struct Asked {
    /// Rank 0's answer; none where the run is to end, for this reason.
    pub answer: Result<Vec<u8>, String>,
    /// What rank 0 answered by.
    pub answers: Option<RankAnswers>,
}

/// How the ranks have parted.
pub(super) enum Ending {
    Met(Option<Box<FleetReport>>),
    Refused(String),
    /// They did not meet at this time, ns of the monotonic clock.
    Lost(u64),
}
