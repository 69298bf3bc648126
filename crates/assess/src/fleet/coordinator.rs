//! The thread that meets the other ranks on behalf of this one, and what the run asks of it.
//!
//! It alone uses the launcher's connection, whose fences block: the run waits for a start, and its holder for the end, by messages
//! from here, and neither is held up where a signal ends this rank while others are waited for.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use fathom_options::FleetOptions;
use fathom_record::RunRecord;
use fathom_runner::{PhaseGate, ReadyPhase, StopHandle};
use fathom_sys::clock::{RealClock, monotonic_ns, unix_us};

use super::decider::RankAnswers;
use super::directory::RecordDirectory;
use super::exchange::{Exchange, to_json};
use super::hello::FleetPlace;
use super::meeting::{RankState, RunPoint, Verdict, verdict};
use super::records::{self, FIRST_START, FleetReport, NEXT_START};
use crate::{AssessError, ErrorKind};

/// From the decision to a start by the clock: every rank must know of it by then.
const CLOCK_LEAD_US: u64 = 2_000_000;
/// Most ranks, and most bytes of all records, that are collected through the launcher where a directory is shared.
const MAX_RANKS_BY_LAUNCHER: u32 = 256;
const MAX_BYTES_BY_LAUNCHER: u64 = 256 << 20;
/// Bytes of records that a launcher passes on in a second, at the least.
const LAUNCHER_BYTES_PER_SECOND: u64 = 1 << 20;
/// Time for rank 0 to read one state, beside the grace.
const PER_RANK: Duration = Duration::from_millis(10);
/// How often a run that waits looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// What the run, or its holder, asks for.
pub(super) enum Request {
    /// This rank is in `state` until it is its turn.
    Meet { state: RankState, question: Option<Question>, reply: Sender<Answer> },
    /// Its run has ended, or could not begin; with its record, and the text of it.
    Part { state: RankState, own: Option<Box<(RunRecord, String)>>, reply: Sender<Ending> },
    /// The launcher is to end the job.
    Abort(Sender<()>),
}

/// What a rank puts beside the question what to measure.
pub(super) struct Question {
    /// What it measured last.
    pub result: Vec<u8>,
    /// What rank 0 answers by.
    pub answers: Option<RankAnswers>,
}

/// It is the rank's turn, with rank 0's answer to a question; or why its run goes no further. What rank 0 answered by comes back.
pub(super) type Answer = (Result<Vec<u8>, String>, Option<RankAnswers>);

/// How the ranks have parted.
pub(super) enum Ending {
    Met(Option<Box<FleetReport>>),
    Refused(String),
    /// They did not meet at this time, ns of the monotonic clock.
    Lost(u64),
}

/// Has a rank meet the others in `state` until it is its turn, unless `stop` is requested; then there is no answer.
pub(super) fn meet(
    requests: &Sender<Request>,
    state: RankState,
    question: Option<Question>,
    stop: &StopHandle,
) -> Option<Answer> {
    let (reply, answer) = channel();
    let parted = || Some((Err("the ranks have parted".to_owned()), None));
    if requests.send(Request::Meet { state, question, reply }).is_err() {
        return parted();
    }
    while !stop.is_requested() {
        match answer.recv_timeout(LOOK) {
            Ok(answer) => return Some(answer),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return parted(),
        }
    }
    None
}

/// Lets each phase start when it starts on all ranks.
pub(super) struct FleetGate {
    requests: Mutex<Sender<Request>>,
    /// The test that runs, from 1.
    step: AtomicU32,
    /// The last phase that was ready.
    last: Mutex<RunPoint>,
}

impl FleetGate {
    pub(super) fn new(requests: Sender<Request>) -> FleetGate {
        FleetGate { requests: Mutex::new(requests), step: AtomicU32::new(1), last: Mutex::default() }
    }
}

impl PhaseGate for FleetGate {
    fn pass(&self, phase: &ReadyPhase, stop: &StopHandle) {
        let step = self.step.load(Ordering::Acquire);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let stage = if last.step == step { last.stage + 1 } else { 1 };
        *last = RunPoint { step, stage };
        let state = RankState::Ready { point: *last, longest_ns: phase.longest_ns };
        drop(last);
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((Err(reason), _)) = meet(&requests, state, None, stop) {
            stop.request(&reason);
        }
    }

    fn enter_step(&self, number: u32) {
        self.step.store(number, Ordering::Release);
    }
}

/// What came of attending meetings in one state.
enum Attended {
    /// It is this rank's turn, with the answer to its question.
    Turn(Vec<u8>),
    /// The run goes no further, for this reason.
    Over(String),
    Collect {
        from_directory: bool,
        bytes: u64,
        states: Vec<RankState>,
    },
}

impl Attended {
    fn over(self) -> String {
        match self {
            Attended::Over(reason) => reason,
            Attended::Turn(_) | Attended::Collect { .. } => "the ranks have parted".to_owned(),
        }
    }
}

pub(super) struct Coordinator {
    pub place: Arc<FleetPlace>,
    pub directory: Option<Arc<RecordDirectory>>,
    pub exchange: Exchange,
    pub options: FleetOptions,
    /// Meetings so far.
    meetings: u64,
    /// What started last: when, ns of the monotonic clock, and how long it takes at the most, if runtimes determine that.
    started: Option<(u64, Option<u64>)>,
    is_stopped: bool,
    /// No rank measures, for this reason.
    pub refused: Arc<OnceLock<String>>,
    /// The ranks do not meet any more: since when, ns of the monotonic clock, and why.
    lost: Option<(u64, String)>,
}

impl Coordinator {
    /// Meets the ranks of a job that have met once.
    pub fn new(
        exchange: Exchange,
        place: FleetPlace,
        options: FleetOptions,
        directory: Option<RecordDirectory>,
    ) -> Coordinator {
        Coordinator {
            place: Arc::new(place),
            directory: directory.map(Arc::new),
            exchange,
            options,
            meetings: 0,
            started: None,
            is_stopped: false,
            refused: Arc::default(),
            lost: None,
        }
    }

    /// Serves the run of this rank until its holder has gone; `tell` gets the line on a fence that not all ranks came to.
    pub fn serve(mut self, inbox: &Receiver<Request>, tell: &dyn Fn(&str)) {
        for request in inbox {
            // Who asked may have gone meanwhile, after a signal.
            match request {
                Request::Meet { state, mut question, reply } => {
                    let answer = match self.attend(&state, &mut question, tell) {
                        Ok(Attended::Turn(answer)) => Ok(answer),
                        Ok(other) => Err(other.over()),
                        Err(reason) => Err(reason),
                    };
                    let _ = reply.send((answer, question.and_then(|question| question.answers)));
                }
                Request::Part { state, own, reply } => {
                    let state = match state {
                        // What others have measured since is not given up.
                        RankState::Failed { reason } if self.started.is_some() => {
                            let (note, interrupted) = (Some(reason.clone()), Some(reason));
                            RankState::Ended { bytes: 0, note, interrupted }
                        }
                        state => state,
                    };
                    let ending = self.part(&state, own, tell);
                    let _ = reply.send(ending);
                }
                Request::Abort(done) => {
                    let reason = self.lost.as_ref().map_or("the ranks did not meet", |(_, reason)| reason);
                    self.exchange.abort(super::MISSING_EXIT, reason);
                    let _ = done.send(());
                }
            }
        }
    }

    /// Meets until all ranks part.
    fn part(
        &mut self,
        state: &RankState,
        own: Option<Box<(RunRecord, String)>>,
        tell: &dyn Fn(&str),
    ) -> Ending {
        let reached = match self.attend(state, &mut None, tell) {
            Ok(Attended::Collect { from_directory, bytes, states }) => {
                let collected = self.collect(from_directory, bytes, &states, own);
                collected
                    .map(|report| Ending::Met(report.map(Box::new)))
                    .map_err(|error| self.lose(&error, tell))
            }
            Ok(other) => {
                // Leaving at once makes some launchers report a failure of their own.
                let _ = self.exchange.finish();
                Ok(Ending::Refused(other.over()))
            }
            Err(reason) => Err(reason),
        };
        reached.unwrap_or_else(|_| {
            Ending::Lost(self.lost.as_ref().map_or_else(monotonic_ns, |(at_ns, _)| *at_ns))
        })
    }

    /// Meets in `state` until it is this rank's turn, or the end of all. The error is why the ranks do not meet any more.
    fn attend(
        &mut self,
        state: &RankState,
        question: &mut Option<Question>,
        tell: &dyn Fn(&str),
    ) -> Result<Attended, String> {
        if let Some((_, reason)) = &self.lost {
            return Err(reason.clone());
        }
        if let Some(reason) = self.refused.get() {
            return Ok(Attended::Over(reason.clone()));
        }
        self.meet_until(state, question).map_err(|error| self.lose(&error, tell))
    }

    fn meet_until(
        &mut self,
        state: &RankState,
        question: &mut Option<Question>,
    ) -> Result<Attended, AssessError> {
        let own = state.point();
        loop {
            let number = self.meetings;
            self.meetings += 1;
            self.exchange.phase = self.phase(state);
            let limit = self.limit();
            if let Some(directory) = &self.directory {
                directory.mark(self.exchange.phase, self.meetings);
            }
            if let Some(question) = question {
                self.exchange.put(&format!("r{number}"), &question.result)?;
            }
            let (states, verdict) = self.meet(number, state, limit)?;
            match verdict {
                Verdict::Start { point, longest_ns, at_unix_us } => {
                    self.start(at_unix_us)?;
                    self.started = Some((monotonic_ns(), longest_ns));
                    if own == Some(point) {
                        return Ok(Attended::Turn(Vec::new()));
                    }
                }
                Verdict::Answer { point } => {
                    let answer = self.answer(number, point, &states, question)?;
                    // What is asked takes no time of its own.
                    self.started = Some((monotonic_ns(), Some(0)));
                    if own == Some(point) {
                        return Ok(Attended::Turn(answer));
                    }
                }
                Verdict::Stop { reason } => {
                    self.is_stopped = true;
                    if own.is_some() {
                        return Ok(Attended::Over(reason));
                    }
                }
                Verdict::Refuse { reason } => {
                    return Ok(Attended::Over(self.refused.get_or_init(|| reason).clone()));
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
    ) -> Result<(Vec<RankState>, Verdict), AssessError> {
        let (states_name, verdict_name) = (format!("s{number}"), format!("v{number}"));
        self.exchange.put(&states_name, &to_json(state))?;
        self.exchange.fence(limit)?;
        let mut states = Vec::new();
        if self.place.rank == 0 {
            for rank in 0..self.place.ranks {
                states.push(self.exchange.read(rank, &states_name)?);
            }
            let decided = self.decide(&states);
            self.exchange.put(&verdict_name, &to_json(&decided))?;
        }
        self.exchange.fence(self.short_limit())?;
        let verdict = self.exchange.read(0, &verdict_name)?;
        Ok((states, verdict))
    }

    fn decide(&self, states: &[RankState]) -> Verdict {
        let by_directory = |bytes: u64| {
            let is_large = self.place.ranks > MAX_RANKS_BY_LAUNCHER || bytes > MAX_BYTES_BY_LAUNCHER;
            is_large && !states.iter().any(RankState::is_unwritten) && self.is_shared()
        };
        let mut decided =
            verdict(states, |rank| self.place.name_of(rank as u32), self.is_stopped, by_directory);
        if let Verdict::Start { at_unix_us, .. } = &mut decided {
            *at_unix_us = self.options.starts_by_clock.then(|| unix_us() + CLOCK_LEAD_US);
        }
        decided
    }

    /// True where rank 0 sees the directories of all ranks in its own.
    fn is_shared(&self) -> bool {
        let sees = |directory: &Arc<RecordDirectory>| {
            (1..self.place.ranks).all(|rank| directory.mark_of(rank).is_some())
        };
        self.directory.as_ref().is_some_and(sees)
    }

    /// Returns when all ranks start.
    fn start(&mut self, at_unix_us: Option<u64>) -> Result<(), AssessError> {
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
        question: &mut Option<Question>,
    ) -> Result<Vec<u8>, AssessError> {
        let name = format!("a{number}");
        if let Some(answers) = question.as_mut().and_then(|question| question.answers.as_mut()) {
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

    /// Brings all records to rank 0, which are so many bytes: no rank is done before the last.
    fn collect(
        &mut self,
        from_directory: bool,
        bytes: u64,
        states: &[RankState],
        own: Option<Box<(RunRecord, String)>>,
    ) -> Result<Option<FleetReport>, AssessError> {
        self.exchange.phase = "the records of all ranks";
        let (record, text) = own.map(|own| *own).unzip();
        let is_put = |text: &String| !from_directory && self.place.rank != 0 && !text.is_empty();
        if let Some(text) = text.filter(is_put) {
            self.exchange.put("record", text.as_bytes())?;
        }
        let passed = Duration::from_secs(bytes / LAUNCHER_BYTES_PER_SECOND);
        self.exchange.fence(self.short_limit() + passed)?;
        if self.place.rank != 0 {
            self.exchange.finish()?;
            return Ok(None);
        }
        let (place, directory) = (self.place.clone(), self.directory.clone());
        let mut report = records::collect(&place, record, |rank| {
            if from_directory {
                return directory.as_ref().ok_or("no directory")?.read_record(rank);
            }
            let text = self.exchange.get(rank, "record").map_err(|error| error.to_string())?;
            records::parse(&text)
        });
        report.notes.splice(0..0, records::notes_of(&place, states));
        // The report is there, whatever the launcher says.
        let _ = self.exchange.finish();
        Ok(Some(report))
    }

    /// What a rank in `state` waits for.
    fn phase(&self, state: &RankState) -> &'static str {
        match state {
            RankState::Ended { .. } => "the end of all runs",
            _ if self.started.is_none() => FIRST_START,
            RankState::Failed { .. } => "the other ranks, having failed",
            RankState::Ready { .. } => NEXT_START,
            RankState::Asks { .. } => "what to measure next",
        }
    }

    /// Longest wait for the other ranks: until they have prepared, or for the rest of what they run, and the grace. Where runtimes do not
    /// determine the length of a run, the others may take twice as long as this rank.
    fn limit(&self) -> Duration {
        let Some((at_ns, longest_ns)) = self.started else { return self.options.prepare() };
        let spent_ns = monotonic_ns().saturating_sub(at_ns);
        let left_ns = longest_ns.map_or(spent_ns, |longest_ns| longest_ns.saturating_sub(spent_ns));
        Duration::from_nanos(left_ns) + self.options.grace()
    }

    /// Longest wait for ranks that have just met.
    fn short_limit(&self) -> Duration {
        self.options.grace() + PER_RANK * self.place.ranks
    }

    /// The ranks do not meet any more: keeps why, tells it and returns it.
    fn lose(&mut self, error: &AssessError, tell: &dyn Fn(&str)) -> String {
        let reason = match error.kind == ErrorKind::Lost {
            true => format!("not all ranks came in time (waiting for {})", self.exchange.phase),
            false => error.to_string(),
        };
        if self.lost.is_none() {
            tell(&format!("fathom: {}: {reason}", self.place.name()));
            self.lost = Some((monotonic_ns(), reason.clone()));
        }
        reason
    }
}
