//! The thread that meets the other ranks on behalf of this one, and what the run asks of it.
//!
//! It alone uses the launcher's connection, whose fences block: the run waits for a start, and its holder for the end, by messages
//! from here, and neither is held up where a signal ends this rank while others are waited for.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use fathom_analysis::sweep::offered::{OfferedPoint, next_offer};
use fathom_analysis::sweep::plan::{NextPoint, next};
use fathom_analysis::sweep::point::SweepPoint;
use fathom_analysis::sweep::spec::SweepSpec;
use fathom_options::FleetOptions;
use fathom_record::{
    Activity, BenchActivity, FleetMerger, LaunchRecord, MergeRules, RunHeader, RunRecord, TestRecord,
};
use fathom_runner::{PhaseGate, ReadyPhase, StopHandle};
use fathom_sys::clock::{RealClock, monotonic_ns, unix_us};
use serde::{Deserialize, Serialize};

use super::hello::FleetPlace;
use super::records::RecordDirectory;
use super::records::{self, FIRST_START, FleetReport, NEXT_START};
use super::{Exchange, to_json};
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
            RankState::Asks { .. } => "the next test",
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

/// Rank 0's answer to the results of the ranks that ask.
pub(super) type RankAnswers = Box<dyn FnMut(&[(u32, Vec<u8>)]) -> Vec<u8> + Send>;

/// What a sweep has measured.
#[derive(Clone, Debug, Default)]
pub struct SweepSoFar {
    /// Points of the grid.
    pub points: Vec<SweepPoint>,
    /// Rates that were offered.
    pub offered: Vec<OfferedPoint>,
}

impl SweepSoFar {
    /// Takes in a test. Whatever came of it, it counts as tried.
    pub fn add(&mut self, test: &TestRecord) {
        self.points.extend(SweepPoint::of(test));
        self.offered.extend(OfferedPoint::of(test));
    }

    /// What to measure next.
    pub fn next(&self, spec: &SweepSpec) -> NextPoint {
        match next(spec, &self.points) {
            NextPoint::Done => next_offer(spec, &self.points, &self.offered),
            step => step,
        }
    }
}

/// Decides on the points of a sweep.
pub trait PointDecider {
    /// What to measure next; `so_far` is what this run measured, `last` its last test.
    fn next(
        &mut self,
        spec: &SweepSpec,
        so_far: &SweepSoFar,
        last: Option<&TestRecord>,
        stop: &StopHandle,
    ) -> NextPoint;
}

/// Decides from what the run itself measured.
#[derive(Clone, Copy, Debug)]
pub struct AloneDecider;

impl PointDecider for AloneDecider {
    fn next(
        &mut self,
        spec: &SweepSpec,
        so_far: &SweepSoFar,
        _last: Option<&TestRecord>,
        _stop: &StopHandle,
    ) -> NextPoint {
        so_far.next(spec)
    }
}

/// Asks rank 0, which decides from what all ranks measured.
pub struct LedDecider {
    requests: Sender<Request>,
    /// Of rank 0: how it answers.
    answers: Option<RankAnswers>,
    leads: bool,
    step: u32,
}

/// What a rank puts beside a question.
#[derive(Serialize, Deserialize)]
struct RankResult {
    /// Time that is left for the points, ns; known once the target is ready.
    budget_ns: u64,
    last: Option<TestRecord>,
}

impl LedDecider {
    pub(super) fn new(requests: Sender<Request>, leads: bool) -> LedDecider {
        LedDecider { requests, answers: None, leads, step: 0 }
    }
}

impl PointDecider for LedDecider {
    fn next(
        &mut self,
        spec: &SweepSpec,
        _so_far: &SweepSoFar,
        last: Option<&TestRecord>,
        stop: &StopHandle,
    ) -> NextPoint {
        self.step += 1;
        if self.leads && self.answers.is_none() {
            self.answers = Some(answers(spec.clone()));
        }
        let result = RankResult { budget_ns: spec.budget_ns, last: last.cloned() };
        let state = RankState::Asks { point: RunPoint { step: self.step, stage: 0 } };
        let question = Question { result: to_json(&result), answers: self.answers.take() };
        let Some((answered, answers)) = meet(&self.requests, state, Some(question), stop) else {
            return NextPoint::Done;
        };
        self.answers = answers;
        let parsed = answered.and_then(|answer| {
            serde_json::from_slice(&answer).map_err(|_| "rank 0 has ended its sweep".to_owned())
        });
        parsed.unwrap_or_else(|reason: String| {
            stop.request(&reason);
            NextPoint::Done
        })
    }
}

/// How rank 0 answers in a sweep of `spec`.
fn answers(spec: SweepSpec) -> RankAnswers {
    let (mut spec, mut so_far) = (spec, SweepSoFar::default());
    Box::new(move |results| {
        let parsed: Vec<(u32, RankResult)> = results
            .iter()
            .filter_map(|(rank, text)| Some((*rank, serde_json::from_slice(text).ok()?)))
            .collect();
        for (_, result) in &parsed {
            // The budget of the rank whose file layout took longest.
            spec.budget_ns = spec.budget_ns.min(result.budget_ns);
        }
        if let Some(test) = merged(parsed) {
            so_far.add(&test);
        }
        to_json(&so_far.next(&spec))
    })
}

/// One test of all ranks, as if it were of one.
fn merged(results: Vec<(u32, RankResult)>) -> Option<TestRecord> {
    let mut merger = FleetMerger::new(MergeRules { records: results.len(), ..MergeRules::default() });
    for (rank, result) in results {
        let Some(test) = result.last else { continue };
        let launch = LaunchRecord { rank, ..LaunchRecord::default() };
        // The tests of a sweep merge like those of a bench.
        let activity = Activity::Bench(BenchActivity::default());
        let header = RunHeader { activity, launch: Some(launch), ..RunHeader::default() };
        let record = RunRecord { header, status: test.status, tests: vec![test], ..RunRecord::default() };
        // Ranks whose points differ are left out of the decision; the final merge names them.
        let _ = merger.add(&format!("rank {rank}"), record);
    }
    merger.finish()?.tests.pop()
}

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
