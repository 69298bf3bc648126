//! The thread that meets the other ranks on behalf of this one.
//!
//! It alone uses the launcher's connection, whose fences block: the run waits for a start, and its holder for the end, by messages
//! from here, and neither is held up where a signal ends this rank while others are waited for.

mod collection;
mod waits;

use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fathom_record::RunRecord;
use fathom_sys::clock::{RealClock, monotonic_ns, unix_us};

use super::decider::RankAnswers;
use super::directory::RecordDirectory;
use super::error::FleetError;
use super::exchange::Exchange;
use super::hello::FleetPlace;
use super::meeting::{RankState, RunPoint, Verdict, verdict};
use super::message::{Asked, Ending, GateAnswer, Request};
use super::settings::{FleetSettings, FleetStart};

/// From the decision to a start by the clock: every rank must know of it by then.
const CLOCK_LEAD_US: u64 = 2_000_000;
/// Most ranks, and most bytes of all records, that are collected through the launcher where a directory is shared.
const MOST_RANKS_BY_LAUNCHER: u32 = 256;
const MOST_BYTES_BY_LAUNCHER: u64 = 256 << 20;

/// What came of attending meetings in one state.
enum Attended {
    Start,
    Answer(Vec<u8>),
    Stopped(String),
    Refused(String),
    Collect { from_directory: bool, bytes: u64, states: Vec<RankState> },
}

pub(super) struct Coordinator {
    pub place: Arc<FleetPlace>,
    pub directory: Option<Arc<RecordDirectory>>,
    exchange: Exchange,
    settings: FleetSettings,
    /// Meetings so far.
    meetings: u64,
    /// What started last.
    started: Option<StartedPhase>,
    is_stopped: bool,
    /// No rank measures, for this reason.
    refused: Arc<OnceLock<String>>,
    lost: Option<Loss>,
}

/// What started on some of the ranks.
#[derive(Clone, Copy)]
struct StartedPhase {
    /// When, ns of the monotonic clock.
    at_ns: u64,
    /// How long it takes at the most, if runtimes determine that.
    longest_ns: Option<u64>,
}

/// The ranks do not meet any more.
struct Loss {
    /// Since when, ns of the monotonic clock.
    at_ns: u64,
    reason: String,
}

impl Coordinator {
    /// Meets the ranks of a job that have met once.
    pub fn new(
        exchange: Exchange,
        place: Arc<FleetPlace>,
        settings: FleetSettings,
        directory: Option<Arc<RecordDirectory>>,
    ) -> Coordinator {
        Coordinator {
            place,
            directory,
            exchange,
            settings,
            meetings: 0,
            started: None,
            is_stopped: false,
            refused: Arc::default(),
            lost: None,
        }
    }

    /// Why no rank measures, once that is known.
    pub fn refused(&self) -> Arc<OnceLock<String>> {
        self.refused.clone()
    }

    /// The launcher's interface.
    pub fn launcher(&self) -> &'static str {
        self.exchange.name()
    }

    /// Serves the run of this rank until its holder has gone; `tell` gets the line on a fence that not all ranks came to.
    pub fn serve(mut self, inbox: &Receiver<Request>, tell: &dyn Fn(&str)) {
        for request in inbox {
            // Who asked may have gone meanwhile, after a signal.
            match request {
                Request::Ready { point, longest_ns, reply } => {
                    let state = RankState::Ready { point, longest_ns };
                    let answer = match self.attend(&state, None, &mut None, tell) {
                        Ok(Attended::Start) => GateAnswer::Start,
                        Ok(other) => GateAnswer::Never(other.reason()),
                        Err(reason) => GateAnswer::Never(reason),
                    };
                    let _ = reply.send(answer);
                }
                Request::Ask { point, result, mut answers, reply } => {
                    let state = RankState::Asks { point };
                    let answer = match self.attend(&state, Some(&result), &mut answers, tell) {
                        Ok(Attended::Answer(answer)) => Ok(answer),
                        Ok(other) => Err(other.reason()),
                        Err(reason) => Err(reason),
                    };
                    let _ = reply.send(Asked { answer, answers });
                }
                Request::Failed { reason, reply } => {
                    // What others have measured since is not given up.
                    let state = match self.started {
                        None => RankState::Failed { reason },
                        Some(_) => {
                            let (note, interrupted) = (Some(reason.clone()), Some(reason));
                            RankState::Ended { bytes: 0, note, interrupted }
                        }
                    };
                    let ending = self.part(&state, None, tell);
                    let _ = reply.send(ending);
                }
                Request::Ended { record, note, interrupted, reply } => {
                    let text = record.to_json();
                    let state = RankState::Ended { bytes: text.len() as u64, note, interrupted };
                    let ending = self.part(&state, Some((*record, text)), tell);
                    let _ = reply.send(ending);
                }
                Request::Abort(done) => {
                    let reason = self.lost.as_ref().map_or("the ranks did not meet", |lost| &lost.reason);
                    self.exchange.abort(super::MISSING_EXIT, reason);
                    let _ = done.send(());
                }
            }
        }
    }

    /// Meets until all ranks part.
    fn part(&mut self, state: &RankState, own: Option<(RunRecord, String)>, tell: &dyn Fn(&str)) -> Ending {
        let lost = |this: &Coordinator| {
            Ending::Lost(this.lost.as_ref().map_or_else(monotonic_ns, |lost| lost.at_ns))
        };
        match self.attend(state, None, &mut None, tell) {
            Err(_) => lost(self),
            Ok(Attended::Collect { from_directory, bytes, states }) => {
                let collected = self.collect(from_directory, bytes, &states, own);
                match collected {
                    Ok(report) => Ending::Met(report.map(Box::new)),
                    Err(error) => {
                        self.lose(&error, tell);
                        lost(self)
                    }
                }
            }
            Ok(other) => {
                // Leaving at once makes some launchers report a failure of their own.
                let _ = self.exchange.finish();
                Ending::Refused(other.reason())
            }
        }
    }

    /// Meets in `state` until it is this rank's turn, or the end of all. `result` is put beside a question, which rank 0 answers by
    /// `answers`. The error is why the ranks do not meet any more.
    fn attend(
        &mut self,
        state: &RankState,
        result: Option<&[u8]>,
        answers: &mut Option<RankAnswers>,
        tell: &dyn Fn(&str),
    ) -> Result<Attended, String> {
        if let Some(lost) = &self.lost {
            return Err(lost.reason.clone());
        }
        if let Some(reason) = self.refused.get() {
            return Ok(Attended::Refused(reason.clone()));
        }
        self.meet_until(state, result, answers).map_err(|error| self.lose(&error, tell))
    }

    fn meet_until(
        &mut self,
        state: &RankState,
        result: Option<&[u8]>,
        answers: &mut Option<RankAnswers>,
    ) -> Result<Attended, FleetError> {
        loop {
            let number = self.meetings;
            self.meetings += 1;
            self.exchange.phase = self.phase(state);
            let limit = self.limit();
            if let Some(directory) = &self.directory {
                directory.mark(self.exchange.phase, self.meetings);
            }
            if let Some(result) = result {
                self.exchange.put(&format!("r{number}"), result)?;
            }
            let (states, verdict) = self.meet(number, state, limit)?;
            let own = match state {
                RankState::Ready { point, .. } | RankState::Asks { point } => Some(*point),
                RankState::Failed { .. } | RankState::Ended { .. } => None,
            };
            match verdict {
                Verdict::Start { point, longest_ns, at_unix_us } => {
                    self.start(at_unix_us)?;
                    self.started = Some(StartedPhase { at_ns: monotonic_ns(), longest_ns });
                    if own == Some(point) {
                        return Ok(Attended::Start);
                    }
                }
                Verdict::Answer { point } => {
                    let answer = self.answer(number, point, &states, answers)?;
                    // What is asked takes no time of its own.
                    let (at_ns, longest_ns) = (monotonic_ns(), Some(0));
                    self.started = Some(StartedPhase { at_ns, longest_ns });
                    if own == Some(point) {
                        return Ok(Attended::Answer(answer));
                    }
                }
                Verdict::Stop { reason } => {
                    self.is_stopped = true;
                    if own.is_some() {
                        return Ok(Attended::Stopped(reason));
                    }
                }
                Verdict::Refuse { reason } => {
                    return Ok(Attended::Refused(self.refused.get_or_init(|| reason).clone()));
                }
                Verdict::Collect { from_directory, bytes } => {
                    return Ok(Attended::Collect { from_directory, bytes, states });
                }
            }
        }
    }

    /// One meeting: rank 0 reads all states and decides, and all read that. Only rank 0 has the states.
    fn meet(
        &mut self,
        number: u64,
        state: &RankState,
        limit: Duration,
    ) -> Result<(Vec<RankState>, Verdict), FleetError> {
        let (states_name, verdict_name) = (format!("s{number}"), format!("v{number}"));
        self.exchange.put(&states_name, &to_json(state))?;
        self.exchange.fence(limit)?;
        let mut states = Vec::new();
        if self.place.rank == 0 {
            for rank in 0..self.place.ranks {
                states.push(self.read(rank, &states_name)?);
            }
            let decided = self.decide(&states);
            self.exchange.put(&verdict_name, &to_json(&decided))?;
        }
        self.exchange.fence(self.short_limit())?;
        let verdict = self.read(0, &verdict_name)?;
        Ok((states, verdict))
    }

    fn decide(&self, states: &[RankState]) -> Verdict {
        let by_directory = |bytes: u64| {
            let is_large = self.place.ranks > MOST_RANKS_BY_LAUNCHER || bytes > MOST_BYTES_BY_LAUNCHER;
            is_large && !states.iter().any(RankState::is_unwritten) && self.is_shared()
        };
        let decided = verdict(states, |rank| self.place.name_of(rank as u32), self.is_stopped, by_directory);
        match decided {
            Verdict::Start { point, longest_ns, .. } => {
                let by_clock = self.settings.start == FleetStart::Clock;
                let at_unix_us = by_clock.then(|| unix_us() + CLOCK_LEAD_US);
                Verdict::Start { point, longest_ns, at_unix_us }
            }
            other => other,
        }
    }

    /// True where rank 0 sees the directories of all ranks in its own.
    fn is_shared(&self) -> bool {
        let sees = |directory: &Arc<RecordDirectory>| {
            (1..self.place.ranks).all(|rank| directory.mark_of(rank).is_some())
        };
        self.directory.as_ref().is_some_and(sees)
    }

    /// Returns when all ranks start.
    fn start(&mut self, at_unix_us: Option<u64>) -> Result<(), FleetError> {
        let Some(at) = at_unix_us else {
            self.exchange.phase = "the common start";
            return self.exchange.fence(self.short_limit());
        };
        let clock = RealClock::start();
        let wait_ns = at.saturating_sub(unix_us()) * 1_000;
        clock.sleep_until(clock.now() + wait_ns, Duration::from_secs(1), || true);
        Ok(())
    }

    /// Rank 0's answer to the ranks that asked at `point`.
    fn answer(
        &mut self,
        number: u64,
        point: RunPoint,
        states: &[RankState],
        answers: &mut Option<RankAnswers>,
    ) -> Result<Vec<u8>, FleetError> {
        let name = format!("a{number}");
        if let Some(answers) = answers {
            let mut results = Vec::new();
            for (rank, state) in states.iter().enumerate() {
                if *state == (RankState::Asks { point }) {
                    results.push((rank as u32, self.exchange.get(rank as u32, &format!("r{number}"))?));
                }
            }
            let answer = answers(&results);
            self.exchange.put(&name, &answer)?;
        } else if self.place.rank == 0 {
            // Rank 0 has ended: there is nobody to ask.
            self.exchange.put(&name, b"")?;
        }
        self.exchange.fence(self.short_limit())?;
        self.exchange.get(0, &name)
    }

    fn read<T: serde::de::DeserializeOwned>(&mut self, rank: u32, name: &str) -> Result<T, FleetError> {
        let text = self.exchange.get(rank, name)?;
        let phase = self.exchange.phase;
        serde_json::from_slice(&text).map_err(|error| FleetError::Message {
            phase,
            rank,
            reason: error.to_string(),
        })
    }

    /// The ranks do not meet any more: keeps why, tells it and returns it.
    fn lose(&mut self, error: &FleetError, tell: &dyn Fn(&str)) -> String {
        let reason = match error.is_deadline() {
            true => format!("not all ranks came in time (waiting for {})", self.exchange.phase),
            false => error.to_string(),
        };
        if self.lost.is_none() {
            tell(&format!("fathom: {}: {reason}", self.place.name()));
            self.lost = Some(Loss { at_ns: monotonic_ns(), reason: reason.clone() });
        }
        reason
    }
}

impl Attended {
    /// Why the run of this rank goes no further.
    fn reason(self) -> String {
        match self {
            Attended::Stopped(reason) | Attended::Refused(reason) => reason,
            Attended::Start | Attended::Answer(_) | Attended::Collect { .. } => {
                "the ranks have parted".to_owned()
            }
        }
    }
}

fn to_json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("states have no maps and no values that cannot be written")
}
