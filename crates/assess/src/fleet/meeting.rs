//! What the ranks tell each other at a meeting, and what follows from it. Pure functions.

use serde::{Deserialize, Serialize};

/// A place in the course of a run, in order: a test (from 1), and in it a question on what to measure (0) or a phase (from 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct RunPoint {
    /// The test.
    pub step: u32,
    /// 0, or the phase.
    pub stage: u32,
}

/// What a rank tells at a meeting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum RankState {
    /// It is ready to start a phase of this length.
    Ready {
        point: RunPoint,
        /// `None` where runtimes do not determine it.
        longest_ns: Option<u64>,
    },
    /// It asks what to measure; the last result is put beside.
    Asks { point: RunPoint },
    /// It could not begin.
    Failed { reason: String },
    /// Its run has ended.
    Ended {
        /// Length of its record, bytes.
        bytes: u64,
        /// Why its record could not be written to the directory.
        note: Option<String>,
        /// Why it ended before its time.
        interrupted: Option<String>,
    },
}

/// What follows from a meeting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Verdict {
    /// Those who are ready at this point start, at this time of the wall clock or behind the next fence.
    Start { point: RunPoint, longest_ns: Option<u64>, at_unix_us: Option<u64> },
    /// Those who ask at this point get rank 0's answer.
    Answer { point: RunPoint },
    /// Every rank ends its run, and they meet again: one was interrupted.
    Stop { reason: String },
    /// Every rank leaves: one could not begin.
    Refuse { reason: String },
    /// All runs have ended: rank 0 collects the records, those of the directory or those that the ranks put.
    Collect {
        from_directory: bool,
        /// Length of all records.
        bytes: u64,
    },
}

impl RankState {
    /// Length of the record of a rank that has ended.
    pub fn bytes(&self) -> u64 {
        match self {
            RankState::Ended { bytes, .. } => *bytes,
            _ => 0,
        }
    }

    /// True for a rank whose record the directory does not have.
    pub fn is_unwritten(&self) -> bool {
        matches!(self, RankState::Ended { note: Some(_), bytes, .. } if *bytes > 0)
    }

    /// Where in its course a rank is that waits for its turn.
    pub fn point(&self) -> Option<RunPoint> {
        match self {
            RankState::Ready { point, .. } | RankState::Asks { point } => Some(*point),
            RankState::Failed { .. } | RankState::Ended { .. } => None,
        }
    }
}

/// What follows from the states of all ranks, in their order. `name` names a rank; `is_stopped` once all were told to end.
pub(super) fn verdict(
    states: &[RankState],
    name: impl Fn(usize) -> String,
    is_stopped: bool,
    collects_from_directory: impl Fn(u64) -> bool,
) -> Verdict {
    let of_a_rank = |rank: usize, reason: &str| format!("{}: {reason}", name(rank));
    let failed = states.iter().enumerate().find_map(|(rank, state)| match state {
        RankState::Failed { reason } => Some(of_a_rank(rank, reason)),
        _ => None,
    });
    if let Some(reason) = failed {
        return Verdict::Refuse { reason };
    }
    let Some(point) = states.iter().filter_map(RankState::point).min() else {
        let bytes = states.iter().map(RankState::bytes).sum();
        return Verdict::Collect { from_directory: collects_from_directory(bytes), bytes };
    };
    let interrupted = states.iter().enumerate().find_map(|(rank, state)| match state {
        RankState::Ended { interrupted: Some(reason), .. } => Some(of_a_rank(rank, reason)),
        _ => None,
    });
    if let Some(reason) = interrupted.filter(|_| !is_stopped) {
        return Verdict::Stop { reason };
    }
    if point.stage == 0 {
        return Verdict::Answer { point };
    }
    let lengths = states.iter().filter_map(|state| match state {
        RankState::Ready { point: own, longest_ns } if *own == point => Some(*longest_ns),
        _ => None,
    });
    let longest_ns = lengths.into_iter().try_fold(0, |longest: u64, next| Some(longest.max(next?)));
    Verdict::Start { point, longest_ns, at_unix_us: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(step: u32, stage: u32, longest_ns: Option<u64>) -> RankState {
        RankState::Ready { point: RunPoint { step, stage }, longest_ns }
    }

    fn ended(interrupted: Option<&str>) -> RankState {
        RankState::Ended { bytes: 10, note: None, interrupted: interrupted.map(str::to_owned) }
    }

    fn of(states: &[RankState]) -> Verdict {
        verdict(states, |rank| format!("rank {rank}"), false, |bytes| bytes > 25)
    }

    #[test]
    fn the_earliest_point_starts_and_the_others_wait() {
        let start = |step, stage, longest_ns| Verdict::Start {
            point: RunPoint { step, stage },
            longest_ns,
            at_unix_us: None,
        };
        assert_eq!(of(&[ready(1, 1, Some(5)), ready(1, 1, Some(7))]), start(1, 1, Some(7)));
        assert_eq!(of(&[ready(1, 1, Some(5)), ready(1, 1, None)]), start(1, 1, None));
        // A rank that skipped a test, one with fewer phases, and one that is done.
        assert_eq!(of(&[ready(2, 1, Some(5)), ready(1, 2, Some(7))]), start(1, 2, Some(7)));
        assert_eq!(of(&[ended(None), ready(3, 1, Some(1))]), start(3, 1, Some(1)));
        // A question stands before the phases of its test.
        let asks = RankState::Asks { point: RunPoint { step: 2, stage: 0 } };
        assert_eq!(of(&[ready(2, 1, None), asks]), Verdict::Answer { point: RunPoint { step: 2, stage: 0 } });
    }

    #[test]
    fn records_that_were_not_written_are_known() {
        let state = |bytes, note: Option<&str>| RankState::Ended {
            bytes,
            note: note.map(str::to_owned),
            interrupted: None,
        };
        assert!(state(10, Some("cannot write")).is_unwritten());
        // A rank that failed has no record at all.
        assert!(!state(10, None).is_unwritten() && !state(0, Some("no space")).is_unwritten());
    }

    #[test]
    fn failures_and_interruptions_are_of_all() {
        let failed = RankState::Failed { reason: "no space".to_owned() };
        let refused = Verdict::Refuse { reason: "rank 1: no space".to_owned() };
        assert_eq!(of(&[ready(1, 1, None), failed]), refused);
        let states = [ended(Some("signal 15")), ready(1, 2, None)];
        assert_eq!(of(&states), Verdict::Stop { reason: "rank 0: signal 15".to_owned() });
        // Once all know of it, a rank that is late to end may start nothing new, and is waited for.
        let again = verdict(&states, |_| String::new(), true, |_| false);
        assert!(matches!(again, Verdict::Start { .. }));
        let collect = |from_directory, bytes| Verdict::Collect { from_directory, bytes };
        assert_eq!(of(&[ended(Some("signal 15")), ended(None)]), collect(false, 20));
        assert_eq!(of(&[ended(None), ended(None), ended(None)]), collect(true, 30));
    }
}
