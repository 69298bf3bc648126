//! A run of fio's jobs: begun, followed to its end, and reported.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_assess::{
    MeasurementEvent, PlanTargets, StepObserver, TestKeeper, enter_conditions, is_simulated, stuck_note,
};
use fathom_history::without_password;
use fathom_model::text::errno_text;
use fathom_model::units::UnitSystem;
use fathom_model::{Nanos, RunPlan};
use fathom_options::{CommandOptions, Eta, Invocation, show_command};
use fathom_record::{Activity, RunHeader, RunRecord, TestMeta, TestRecord, TestStatus, test_record};
use fathom_report::fio::{banner as fio_banner, error_place, shown_errno};
use fathom_report::{Family, NumberUnit, fio_number};
use fathom_runner::{
    EventSender, LayoutProgress, Progress, RunControl, RunError, RunEvent, RunHandle, RunObserver, Session,
    StopHandle, WritePermit, make_directories,
};
use fathom_stats::{
    FailedRequest, FailureCause, RunOutcome, Snapshot, VerifyOutcome, WorkerFailure, WorkerOutcome,
};

use super::debug::DebugTrace;
use super::ranks::{FioRank, PartialRecords, RankRun};
use super::requests::Requests;
use super::sink::{AggregateLog, FioLogs, Sink};
use super::{IdleWatch, named, refusal};
use crate::exit::{Complaint, Exit};
use crate::live::{LiveArguments, LiveOutputs, LiveRun, LiveStream, NextKey, SingleTest};
use crate::progress::StallNote;
use crate::store::HistoryKeeper;
use crate::{output, signals, store};

/// A run of fio's jobs on a thread of its own.
type FioHandle = RunHandle<MeasurementEvent, Result<RunOutcome, RunError>>;

/// Begins to run `plan`; where it is kept, under the header that comes back with the conditions it runs under.
fn begin(
    control: RunControl,
    invocation: &Invocation,
    plan: Arc<RunPlan>,
    targets: PlanTargets,
    kept: Option<RunHeader>,
    logs: Option<FioLogs>,
) -> Result<FioHandle, Complaint> {
    let permit = WritePermit::fio(&may_destroy(&invocation.command)).read_only(invocation.command.readonly);
    let status_interval = invocation.command.status_interval;
    let directories = invocation.directories();
    let controlled = control.clone();
    let run = move |events: &mut EventSender<_, _>| {
        if !targets.is_simulated() {
            make_directories(&plan, &directories)?.iter().for_each(|made| note_made(made));
        }
        let mut session = targets.session().controlled(controlled);
        session.set_permit(permit);
        if let Some(logs) = logs {
            session.set_log(Box::new(logs));
        }
        if let Some(header) = kept {
            let header = Box::new(with_conditions(header, &plan, &session));
            events.step(&MeasurementEvent::Begun(header));
        }
        if let Some(interval) = status_interval {
            events.send_outcomes(interval);
        }
        session.run(&plan, events)
    };
    RunHandle::begin(control, run)
        .map_err(|error| refusal(format!("fio: cannot start a thread: {}", output::plain(&error)), None))
}

/// A directory that was made on the root file system may be a mount point without its volume.
fn note_made(directory: &Path) {
    let device = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.dev());
    if directory.is_absolute() && device(directory) == device(Path::new("/")) {
        output::warn(&format!(
            "fio: created {} on the root file system; if a volume is to be mounted there, mount it first",
            directory.display()
        ));
    }
}

/// What came of a run.
pub(super) enum Measured {
    /// It was reported.
    Alone(Exit),
    /// It is reported with those of the other ranks.
    OfRank(Box<RankRun>),
}

/// Measures alone, or as a rank.
pub(super) fn measure(
    words: &[String],
    invocation: &Invocation,
    plan: Arc<RunPlan>,
    targets: PlanTargets,
    rank: Option<&FioRank>,
) -> Result<Measured, Complaint> {
    let command = &invocation.command;
    let mut sink = sink_of(command, rank, &targets)?;
    let trace = DebugTrace::new(&command.debug);
    let (logs, aggregate) = (FioLogs::new(&plan, trace.requests())?, AggregateLog::open(command)?);
    let control = rank.map_or_else(RunControl::default, FioRank::control);
    let caught = signals::watch(control.stop_handle()).map_err(|error| named(signals::unwatched(error)))?;
    let mut notes = targets.notes.clone();
    trace.begin(invocation, &plan, &mut sink)?;
    announce(invocation, &plan, &mut sink, &mut notes)?;
    let mut keeper = Keeper::new(command, words, invocation, &plan, &notes, rank.is_some());
    let is_simulated = target_paths(&plan).iter().any(|path| is_simulated(path));
    let can_be_followed = keeper.is_kept() && !is_simulated;
    let live = open_live(command, &plan, &keeper.header, control.clone(), can_be_followed)?;
    keeper.history.hub = live.hub();
    let shows_eta = shows_eta(command, &sink) && !live.has_screen();
    let handle =
        begin(control.clone(), invocation, plan.clone(), targets, keeper.kept_header().cloned(), logs)?;
    let mut observer = FioObserver {
        sink,
        plan: &plan,
        unannounced: layouts(&plan),
        eta: shows_eta.then(|| eta_line(command, &plan)),
        aggregate,
        stall: StallNote::default(),
        meta: meta_of(invocation),
        idle: IdleWatch::new(command),
        trace,
    };
    let (requests, partial) = (Requests::new(command), rank.and_then(FioRank::partial));
    let mut watched = Watched { stop: control.stop_handle(), caught, requests, live, partial };
    let Some(ran) = follow(handle, &mut watched, &mut keeper, &mut observer) else {
        return Ok(match rank {
            None => Measured::Alone(Exit::FioInterrupted),
            Some(_) => Measured::OfRank(Box::new(RankRun::stuck(observer.sink))),
        });
    };
    if let Some(eta) = &mut observer.eta {
        eta.finish();
    }
    let (mut sink, idleness) = (observer.sink, observer.idle.map(|idle| idle.end()));
    observer.trace.end(&mut sink)?;
    let failure = ran.as_ref().err().map(ToString::to_string);
    tell_ended(&ran, &mut sink)?;
    let (test, exit) = judge(ran, &plan, invocation, caught.number().is_some());
    watched.live.end(&test);
    let header = keeper.header.clone();
    let mut record = RunRecord { status: test.status, header, tests: vec![test], ..RunRecord::default() };
    record.findings = fathom_analysis::Analysis::of(&record).findings();
    if rank.is_some() {
        record.header.notes = notes;
        let (interrupted, keeps) = (control.stop_handle().reason(), command.keep);
        let run = RankRun { record, failure, interrupted, sink, idleness, keeps };
        return Ok(Measured::OfRank(Box::new(run)));
    }
    keeper.finish(&mut record, &mut notes);
    record.header.notes = notes;
    caught.number().map_or(Ok(()), |signal| tell_signal(signal, &mut sink))?;
    sink.report(&record, idleness)?;
    Ok(Measured::Alone(exit))
}

/// Where the documents go; nowhere for a rank that does not report.
fn sink_of(
    command: &CommandOptions,
    rank: Option<&FioRank>,
    targets: &PlanTargets,
) -> Result<Sink, Complaint> {
    let sink = if rank.is_none_or(FioRank::reports) { Sink::open(command)? } else { Sink::silent() };
    Ok(sink.with_notes_of_simulated(targets.is_simulated()))
}

/// Begins the report; what it has no place for becomes notes.
fn announce(
    invocation: &Invocation,
    plan: &RunPlan,
    sink: &mut Sink,
    notes: &mut Vec<String>,
) -> Result<(), Complaint> {
    if !sink.has_text() {
        notes.extend(invocation.messages.iter().cloned());
        return Ok(());
    }
    sink.write(|out| {
        invocation.messages.iter().try_for_each(|message| writeln!(out.verbatim(), "{message}"))?;
        fio_banner::render_plan(plan, out)
    })
}

/// Says which workers failed: in fio's text; beside the other documents on standard error, so that they can be parsed.
fn tell_ended(ran: &Result<RunOutcome, RunError>, sink: &mut Sink) -> Result<(), Complaint> {
    let lines = ran.as_ref().map(ended_lines).unwrap_or_default();
    if !sink.has_text() {
        lines.iter().for_each(|line| output::warn(line));
        return Ok(());
    }
    sink.write(|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))
}

/// Says that a signal ended the run.
fn tell_signal(signal: i32, sink: &mut Sink) -> Result<(), Complaint> {
    let line = format!("fio: terminating on signal {signal}");
    if !sink.has_text() {
        output::warn(&line);
        return Ok(());
    }
    sink.write(|out| {
        writeln!(out)?;
        writeln!(out, "{line}")
    })
}

/// What may end the run, or ask for its status, and what shows it.
struct Watched<'a> {
    stop: StopHandle,
    caught: &'a signals::SignalWatch,
    requests: Requests,
    live: SingleTest,
    /// Of a rank: what keeps the record so far.
    partial: Option<PartialRecords<'a>>,
}

/// Follows the run to its end; `None` where its thread is stuck and was given up.
fn follow(
    mut handle: FioHandle,
    watched: &mut Watched<'_>,
    keeper: &mut Keeper,
    observer: &mut FioObserver<'_>,
) -> Option<Result<RunOutcome, RunError>> {
    loop {
        if watched.caught.takes_status_request() {
            handle.ask_for_outcome();
        }
        match handle.wait() {
            Progress::Event(MeasurementEvent::Run(RunEvent::OutcomeSoFar(outcome)))
                if watched.partial.as_mut().is_some_and(PartialRecords::takes) =>
            {
                if let Some(partial) = &watched.partial {
                    partial.keep(&keeper.header, &observer.meta, observer.plan, &outcome);
                }
            }
            Progress::Event(MeasurementEvent::Run(event)) => {
                event.tell(observer);
                watched.live.take(&event);
                if let RunEvent::Snapshot(snapshot) = event {
                    let elapsed = Nanos(snapshot.elapsed_ns);
                    if watched.partial.as_mut().is_some_and(|partial| partial.is_due(elapsed)) {
                        handle.ask_for_outcome();
                    }
                    if watched.requests.takes_status() {
                        handle.ask_for_outcome();
                    }
                    if watched.requests.takes_trigger(elapsed) {
                        watched.stop.request("trigger");
                        watched.requests.run_trigger(|| watched.caught.number().is_some());
                    }
                }
            }
            Progress::Event(MeasurementEvent::Begun(header)) => keeper.begin(*header),
            Progress::Event(_) | Progress::Waiting => {}
            Progress::Ended(ran) => return Some(ran),
            Progress::Stuck(state) => {
                output::warn(&format!("fathom: {}", stuck_note(&state)));
                output::warn("fathom: nothing was measured");
                return None;
            }
        }
    }
}

fn meta_of(invocation: &Invocation) -> TestMeta {
    TestMeta { id: "fio".to_owned(), title: "fio".to_owned(), fio: show_command(invocation) }
}

/// The record of what ran and the exit it leads to. A run that could not begin is reported on standard error.
fn judge(
    ran: Result<RunOutcome, RunError>,
    plan: &RunPlan,
    invocation: &Invocation,
    signalled: bool,
) -> (TestRecord, Exit) {
    let meta = meta_of(invocation);
    match ran {
        Ok(outcome) => {
            let failed = outcome.workers.iter().filter(|worker| worker.failure.is_some()).count();
            let exit = if signalled { Exit::FioInterrupted } else { Exit::FioJobs(failed) };
            tell_failures(&outcome, plan);
            (test_record(meta, plan, outcome), exit)
        }
        Err(RunError::Stopped { reason }) => {
            let test = TestRecord { status: TestStatus::Incomplete, ..TestRecord::failed(meta, reason) };
            (test, Exit::FioInterrupted)
        }
        Err(error) => {
            output::warn(&format!("fio: {error}"));
            let hint = error.hint();
            if let Some(hint) = &hint {
                output::warn(hint);
            }
            (TestRecord::failed(meta, error.to_string()), Exit::FioSetup)
        }
    }
}

/// `--destroy-data`, and the same as a variable for scripts that cannot be changed.
fn may_destroy(command: &CommandOptions) -> Vec<PathBuf> {
    let variable = std::env::var_os("FATHOM_DESTROY_DATA").filter(|value| !value.is_empty());
    let from_variable = variable.iter().flat_map(std::env::split_paths);
    command.destroy_data.iter().cloned().chain(from_variable).collect()
}

/// Says what fio says while a run goes on.
pub struct FioObserver<'a> {
    pub sink: Sink,
    pub plan: &'a RunPlan,
    /// The clone that each file is laid out for: job, and place in it; without those whose layout was reported.
    pub unannounced: HashMap<&'a Path, (usize, usize)>,
    pub eta: Option<EtaLine>,
    pub aggregate: Option<AggregateLog>,
    pub stall: StallNote,
    pub meta: TestMeta,
    pub idle: Option<IdleWatch>,
    pub trace: DebugTrace,
}

impl RunObserver for FioObserver<'_> {
    fn layout(&mut self, progress: &LayoutProgress) {
        if let Some(idle) = &mut self.idle {
            idle.restart();
        }
        self.trace.layout(progress, &mut self.sink);
        if !self.sink.has_text() {
            return;
        }
        let Some((index, clone)) = self.unannounced.remove(progress.path.as_path()) else { return };
        let (job, paths) = (&self.plan.jobs[index], &self.plan.jobs[index].clones[clone].paths);
        // One line tells of all files of a clone.
        let files = paths.len();
        for path in paths {
            self.unannounced.remove(path.as_path());
        }
        let line = fio_banner::layout_line(&job.name, files, progress.total_bytes * files as u64);
        // The report says so if the output cannot be written.
        let _ = self.sink.write(|out| writeln!(out, "{line}"));
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.trace.snapshot(snapshot, &mut self.sink);
        if let Some(aggregate) = &mut self.aggregate {
            aggregate.add(snapshot);
        }
        // What reads fio's output knows no such lines, so they are for people alone.
        if let Some(line) = self.stall.line(snapshot).filter(|_| output::stderr_is_seen()) {
            if let Some(eta) = &mut self.eta {
                eta.finish();
            }
            output::warn(&line);
        }
        if let Some(eta) = &mut self.eta {
            eta.show(snapshot);
        }
    }

    /// As fio answers SIGUSR1: with the documents of the end, as they would be now.
    fn outcome_so_far(&mut self, outcome: &RunOutcome) {
        if let Some(eta) = &mut self.eta {
            eta.finish();
        }
        let test = test_record(self.meta.clone(), self.plan, outcome.clone());
        let record = RunRecord { status: test.status, tests: vec![test], ..RunRecord::default() };
        // The report says so if the output cannot be written.
        let _ = self.sink.report(&record, self.idle.as_ref().map(IdleWatch::end));
    }
}

/// Which clone each file of `plan` is laid out for: the first that names it.
pub fn layouts(plan: &RunPlan) -> HashMap<&Path, (usize, usize)> {
    let mut layouts = HashMap::new();
    for (index, job) in plan.jobs.iter().enumerate() {
        for (clone, path) in
            job.clones.iter().enumerate().flat_map(|(c, p)| p.paths.iter().map(move |p| (c, p)))
        {
            layouts.entry(path.as_path()).or_insert((index, clone));
        }
    }
    layouts
}

/// As fio decides it: never between the lines of a JSON document, else on a terminal or where asked for.
pub fn shows_eta(command: &CommandOptions, sink: &Sink) -> bool {
    if command.eta == Eta::Never || (!sink.has_text() && !sink.is_file()) {
        return false;
    }
    command.eta == Eta::Always || output::stdout_is_seen()
}

/// The line of the estimated end, as it was asked for.
pub fn eta_line(command: &CommandOptions, plan: &RunPlan) -> EtaLine {
    EtaLine::new(command.eta_interval.unwrap_or(Nanos::from_secs(1)), command.eta_newline, plan)
}

/// Keeps the run in the history where that was asked for.
pub struct Keeper {
    is_asked_for: bool,
    /// The run is that of a rank: its record goes to rank 0, and not to the history.
    is_of_rank: bool,
    history: HistoryKeeper,
    /// What the record says of the run as a whole.
    pub header: RunHeader,
}

impl Keeper {
    /// Keeps the run where `--keep` or the variable says so; that of a rank is not kept, but has a record all the same.
    pub fn new(
        command: &CommandOptions,
        words: &[String],
        invocation: &Invocation,
        plan: &RunPlan,
        notes: &[String],
        is_of_rank: bool,
    ) -> Keeper {
        let is_asked_for = is_of_rank || command.keep || store::named(None).is_some();
        let mut header = RunHeader { activity: Activity::Fio, notes: notes.to_vec(), ..RunHeader::default() };
        if is_asked_for {
            let names: Vec<String> =
                target_paths(plan).iter().map(|path| path.display().to_string()).collect();
            let words = words.iter().map(|word| without_password(word).into_owned());
            header.command = ["fathom", "fio"].map(str::to_owned).into_iter().chain(words).collect();
            header.target = names.join(",");
            header.tool_version = env!("CARGO_PKG_VERSION").to_owned();
            header.job_text = show_command(invocation);
        }
        let place = store::place(None, is_asked_for && !is_of_rank);
        let mut history = HistoryKeeper::new(place, None);
        history.notes = Some(Vec::new());
        Keeper { is_asked_for, is_of_rank, history, header }
    }

    /// The header to begin with, where the run is kept.
    pub fn kept_header(&self) -> Option<&RunHeader> {
        Some(&self.header).filter(|_| self.is_asked_for)
    }

    /// True where the run goes to the history.
    pub fn is_kept(&self) -> bool {
        self.is_asked_for && !self.is_of_rank
    }

    /// Enters the run.
    pub fn begin(&mut self, header: RunHeader) {
        self.header = header;
        if self.is_of_rank {
            return;
        }
        if self.history.is_nowhere() {
            let note = format!("{}; the run is not kept", store::NO_PLACE);
            self.history.notes.get_or_insert_default().push(note);
        }
        self.history.begin(&self.header);
    }

    /// Stores what ran and what it tells; what could not be stored goes to `notes`.
    pub fn finish(&mut self, ran: &mut RunRecord, notes: &mut Vec<String>) {
        ran.tests.iter().for_each(|test| self.history.append(test));
        ran.header.interrupted = ran.tests.last().and_then(|test| test.interrupted.clone());
        self.history.finish(ran);
        notes.extend(self.history.notes.take().into_iter().flatten());
    }
}

/// The targets of `plan`, one after the other.
pub fn target_paths(plan: &RunPlan) -> Vec<&PathBuf> {
    let mut targets: Vec<&PathBuf> =
        plan.jobs.iter().flat_map(|job| &job.clones).flat_map(|clone| &clone.paths).collect();
    targets.dedup();
    targets
}

/// `header` with the time and the conditions under which `plan` is run on `session`; it looks at the target.
pub fn with_conditions(mut header: RunHeader, plan: &RunPlan, session: &Session) -> RunHeader {
    // A run on virtual time has no facts of this machine and its clock.
    if session.is_simulated() {
        return header;
    }
    let targets: Vec<_> = target_paths(plan).into_iter().map(PathBuf::as_path).collect();
    enter_conditions(&mut header, &targets, session.clock_facts());
    header
}

/// Opens what the command line asks for to show a run of `plan` while it goes on; others can follow a run that is kept.
///
/// # Errors
/// It names no stream, or the terminal, a file or an address cannot be had.
pub fn open_live(
    command: &CommandOptions,
    plan: &Arc<RunPlan>,
    header: &RunHeader,
    control: RunControl,
    can_be_followed: bool,
) -> Result<SingleTest, Complaint> {
    let parse = |text: &String| {
        LiveStream::parse(text)
            .map_err(|sentence| refusal(format!("fio: cannot stream to --live={text}"), Some(sentence)))
    };
    let streams = command.live.iter().map(parse).collect::<Result<_, _>>()?;
    let arguments = LiveArguments { tui: command.tui, streams };
    let next = NextKey::EndTest(control);
    let run = LiveRun { steps: Vec::new(), next, units: UnitSystem::default(), can_be_followed };
    let outputs = LiveOutputs::open(&arguments, run).map_err(named)?;
    let mut shown = SingleTest::new(outputs);
    let names: Vec<String> = target_paths(plan).iter().map(|path| path.display().to_string()).collect();
    let header = RunHeader { target: names.join(","), ..header.clone() };
    let mut jobs: Vec<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
    jobs.dedup();
    shown.begin(&header, "fio", jobs.join(", "));
    Ok(shown)
}

/// A failed job ends with a code that is not 0, so standard error may say why.
fn tell_failures(outcome: &RunOutcome, plan: &RunPlan) {
    for worker in &outcome.workers {
        let job = plan.jobs.get(worker.job).map_or("", |job| job.name.as_str());
        if let Some(problem) = worker.verified.as_ref().and_then(|verified| verified.unsaved.as_ref()) {
            output::warn(&format!("fio: {job}: {problem}"));
        }
        if let Some(verified) = worker.verified.as_ref().filter(|verified| verified.bad > 0) {
            tell_bad_blocks(job, verified);
            continue;
        }
        let Some(failure) = &worker.failure else { continue };
        output::warn(&failure_line(failure, job, |file| file_name(plan, worker, file)));
        if let Some(hint) = &failure.hint {
            output::warn(hint);
        }
    }
}

/// fio's line for each worker that failed, with its thread.
fn ended_lines(outcome: &RunOutcome) -> Vec<String> {
    let failed =
        outcome.workers.iter().filter_map(|worker| Some((worker.thread_id, worker.failure.as_ref()?)));
    failed
        .map(|(pid, failure)| {
            let errno = shown_errno(failure.errno);
            format!("fio: pid={pid}, err={errno}/{}", error_place(errno, failure.cause))
        })
        .collect()
}

/// The name of a worker's file as the job gives it; its number where the files have no names.
fn file_name(plan: &RunPlan, worker: &WorkerOutcome, file: u32) -> String {
    let clone = plan.jobs.get(worker.job).and_then(|job| job.clones.get(worker.clone));
    let path = clone.and_then(|clone| clone.paths.get(file as usize));
    path.map_or_else(|| file.to_string(), |path| path.display().to_string())
}

/// Why a worker failed: in fio's words where fio has some.
fn failure_line(failure: &WorkerFailure, job: &str, name: impl Fn(u32) -> String) -> String {
    match failure.cause {
        FailureCause::Request(FailedRequest { op, file, offset, len }) => {
            let (name, why) = (name(file), errno_text(shown_errno(failure.errno)));
            format!("fio: io_u error on file {name}: {why}: {op} offset={offset}, buflen={len}")
        }
        FailureCause::NoData(FailedRequest { op, file, offset, len }) => {
            format!("fio: {job}: {op} of {len} bytes at offset {offset} of {} moved no data", name(file))
        }
        FailureCause::MaxLatency { request: FailedRequest { op, file, offset, len }, lat_ns, limit_ns } => {
            let name = name(file);
            format!(
                "fio: latency of {lat_ns} nsec exceeds specified max ({limit_ns} nsec): {name} {op} {offset} {len}"
            )
        }
        FailureCause::LeastRate => format!("{job}: {}", failure.message),
        FailureCause::Other => format!("fio: {job}: {}", failure.message),
    }
}

/// What is wrong with blocks that were read, in fio's words, and how many there are.
fn tell_bad_blocks(job: &str, verified: &VerifyOutcome) {
    for bad in &verified.first_bad {
        bad.problem.iter().for_each(|line| output::warn(line));
        bad.dumps.iter().for_each(|line| output::warn(&format!("       {line}")));
    }
    let VerifyOutcome { checked, bad, first_bad, .. } = verified;
    let rest = match bad - first_bad.len() as u64 {
        0 => String::new(),
        rest => format!(", {rest} of them not listed"),
    };
    output::warn(&format!(
        "fio: {job}: {} in {}{rest}",
        counted(*bad, "bad part"),
        counted(*checked, "checked block")
    ));
}

fn counted(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Digits of the rates.
const DIGITS: usize = 4;

/// Prints the line anew as the run goes on.
pub struct EtaLine {
    interval: Nanos,
    newline: Option<Nanos>,
    limits: String,
    shown_at: Option<u64>,
    broken_at: u64,
    length: usize,
}

impl EtaLine {
    /// A line about a run of `plan`, renewed every `interval`, and begun anew every `newline`.
    pub fn new(interval: Nanos, newline: Option<Nanos>, plan: &RunPlan) -> EtaLine {
        EtaLine { interval, newline, limits: limits(plan), shown_at: None, broken_at: 0, length: 0 }
    }

    /// Shows `snapshot` where it is time to.
    pub fn show(&mut self, snapshot: &Snapshot) {
        let now = snapshot.elapsed_ns;
        // Ticks come a little late or early; one that is nearly due counts.
        if self.shown_at.is_some_and(|at| now.saturating_sub(at) + 50_000_000 < self.interval.0) {
            return;
        }
        self.shown_at = Some(now);
        let text = line(snapshot, &self.limits);
        // What a longer line left behind is overwritten.
        let width = self.length.max(text.len());
        let ends = self.newline.is_some_and(|newline| now.saturating_sub(self.broken_at) >= newline.0);
        if ends {
            self.broken_at = now;
        }
        self.length = if ends { 0 } else { text.len() };
        let _ = output::print(|out| match ends {
            true => writeln!(out, "{text:width$}"),
            false => out.passing_line(&text, width),
        });
    }

    /// Leaves the line as it is and goes on below it.
    pub fn finish(&mut self) {
        if self.length > 0 {
            let _ = output::print(|out| writeln!(out));
            self.length = 0;
        }
    }
}

/// The least and greatest rates of the jobs, where their plans limit them: `, 0-500 IOPS`.
fn limits(plan: &RunPlan) -> String {
    let (mut bytes, mut ios) = (0.0_f64, 0.0_f64);
    for job in &plan.jobs {
        let clones = job.clones.len() as f64;
        // The plan counts requests in both cases.
        let is_in_bytes = job.options.iter().chain(&plan.global_options).any(|(name, _)| name == "rate");
        for (op, rate) in job.time.rate.rates.iter().filter_map(|(op, rate)| Some((op, (*rate)?))) {
            let per_second = clones * 1e9 / rate.mean_gap_ns();
            match is_in_bytes {
                true => bytes += per_second * job.io.block_size[op].bytes_of_hundred() as f64 / 100.0,
                false => ios += per_second,
            }
        }
    }
    match (bytes.round() as u64, ios.round() as u64) {
        (0, 0) => String::new(),
        (0, ios) => format!(", 0-{ios} IOPS"),
        (bytes, _) => {
            let most = fio_number(bytes, DIGITS, Family::Binary, NumberUnit::BytesPerSecond);
            format!(", 0B/s-{most}")
        }
    }
}

/// The line without its end.
fn line(snapshot: &Snapshot, limits: &str) -> String {
    let mut text = format!(
        "Jobs: {running} (f={running}){limits}: [{}]",
        states(&snapshot.states),
        running = snapshot.running
    );
    text.push_str(&match percent(snapshot) {
        Some(percent) => format!("[{percent:.1}%]"),
        None => "[-.-%]".to_owned(),
    });
    let used = |index: usize| snapshot.bytes_per_second[index] > 0.0 || snapshot.iops[index] > 0.0;
    let rates = |render: &dyn Fn(usize) -> String| {
        let parts: Vec<String> = ["r", "w", "t"]
            .into_iter()
            .enumerate()
            .filter(|(index, _)| used(*index))
            .map(|(index, letter)| format!("{letter}={}", render(index)))
            .collect();
        parts.join(",")
    };
    if (0..3).any(used) {
        let bandwidth = |index: usize| {
            fio_number(
                snapshot.bytes_per_second[index] as u64,
                DIGITS,
                Family::Binary,
                NumberUnit::BytesPerSecond,
            )
        };
        let iops =
            |index: usize| fio_number(snapshot.iops[index] as u64, DIGITS, Family::Decimal, NumberUnit::None);
        text.push_str(&format!("[{}][{} IOPS]", rates(&bandwidth), rates(&iops)));
    }
    if let Some(left) = snapshot.remaining_ns {
        text.push_str(&format!("[eta {}]", clock(left.div_ceil(1_000_000_000))));
    }
    text
}

/// Runs of the same letter as `R(10)`.
fn states(letters: &str) -> String {
    let mut runs: Vec<(char, usize)> = Vec::new();
    for letter in letters.chars() {
        match runs.last_mut() {
            Some((last, count)) if *last == letter => *count += 1,
            _ => runs.push((letter, 1)),
        }
    }
    let parts: Vec<String> = runs.iter().map(|(letter, count)| format!("{letter}({count})")).collect();
    parts.join(",")
}

fn percent(snapshot: &Snapshot) -> Option<f64> {
    let left = snapshot.remaining_ns?;
    let all = snapshot.elapsed_ns + left;
    (all > 0).then(|| snapshot.elapsed_ns as f64 * 100.0 / all as f64)
}

/// `00m:09s`, `01h:02m:03s`, `2d:03h:04m:05s`.
fn clock(seconds: u64) -> String {
    let (days, hours, minutes, rest) =
        (seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let mut text = String::new();
    if days > 0 {
        text.push_str(&format!("{days}d:"));
    }
    if days > 0 || hours > 0 {
        text.push_str(&format!("{hours:02}h:"));
    }
    text + &format!("{minutes:02}m:{rest:02}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_requests_are_told_in_the_words_of_fio() {
        let request = FailedRequest { op: fathom_model::Op::Read, file: 1, offset: 4096, len: 512 };
        let line = |errno, cause| {
            let failure = WorkerFailure { errno, message: "why".to_owned(), cause, hint: None };
            let line = failure_line(&failure, "job", |file| format!("x{file}"));
            let outcome = RunOutcome {
                workers: vec![WorkerOutcome { thread_id: 7, failure: Some(failure), ..Default::default() }],
                ..Default::default()
            };
            (line, ended_lines(&outcome).concat())
        };
        let check = |errno, cause, of_failure: &str, of_end: &str| {
            assert_eq!(line(errno, cause), (of_failure.to_owned(), of_end.to_owned()));
        };
        check(
            95,
            FailureCause::Request(request),
            "fio: io_u error on file x1: Operation not supported: read offset=4096, buflen=512",
            "fio: pid=7, err=95/file:fathom:0, func=io_u error, error=Operation not supported",
        );
        check(
            110,
            FailureCause::MaxLatency { request, lat_ns: 20, limit_ns: 10 },
            "fio: latency of 20 nsec exceeds specified max (10 nsec): x1 read 4096 512",
            "fio: pid=7, err=110/file:fathom:0, func=max latency exceeded, error=Connection timed out",
        );
        check(
            5,
            FailureCause::NoData(request),
            "fio: job: read of 512 bytes at offset 4096 of x1 moved no data",
            "fio: pid=7, err=5/file:fathom:0, func=full resid, error=Input/output error",
        );
        check(
            0,
            FailureCause::Other,
            "fio: job: why",
            "fio: pid=7, err=22/file:fathom:0, func=io_u error, error=Invalid argument",
        );
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(
            (counted(1, "bad part").as_str(), counted(2, "bad part").as_str()),
            ("1 bad part", "2 bad parts")
        );
    }

    #[test]
    fn lines() {
        let mixed = Snapshot {
            elapsed_ns: 3_000_000_000,
            remaining_ns: Some(1_000_000_000),
            iops: [24_900.0, 24_800.0, 0.0],
            bytes_per_second: [97.4 * 1048576.0, 96.8 * 1048576.0, 0.0],
            running: 1,
            workers: 1,
            states: "m".to_owned(),
            ..Snapshot::default()
        };
        assert_eq!(
            line(&mixed, ""),
            "Jobs: 1 (f=1): [m(1)][75.0%][r=97.4MiB/s,w=96.8MiB/s][r=24.9k,w=24.8k IOPS][eta 00m:01s]"
        );
        let idle = Snapshot { running: 2, states: "PPP_r".to_owned(), ..Snapshot::default() };
        assert_eq!(line(&idle, ", 0-9 IOPS"), "Jobs: 2 (f=2), 0-9 IOPS: [P(3),_(1),r(1)][-.-%]");
    }

    #[test]
    fn clocks() {
        for (seconds, expected) in
            [(0, "00m:00s"), (61, "01m:01s"), (3723, "01h:02m:03s"), (183_845, "2d:03h:04m:05s")]
        {
            assert_eq!(clock(seconds), expected);
        }
    }
}
