//! A run of fio's jobs: begun, followed to its end, and reported.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_assess::{MeasurementEvent, PlanTargets, StepObserver, is_simulated, stuck_note};
use fathom_model::{Nanos, RunPlan};
use fathom_options::{CommandOptions, Invocation, show_command};
use fathom_record::{RunHeader, RunRecord, TestMeta, TestRecord, TestStatus, test_record};
use fathom_report::fio::banner as fio_banner;
use fathom_runner::{
    EventSender, Progress, RunControl, RunError, RunEvent, RunHandle, StopHandle, WritePermit,
    make_directories,
};
use fathom_stats::RunOutcome;

use super::aggregate_log::AggregateLog;
use super::debug::DebugTrace;
use super::failures::{ended_lines, tell_failures};
use super::idleness::IdleWatch;
use super::keeper::{self, Keeper};
use super::live;
use super::logs::FioLogs;
use super::observer::{FioObserver, eta_line, layouts, shows_eta};
use super::ranks::{FioRank, PartialRecords, RankRun};
use super::requests::Requests;
use super::sink::Sink;
use super::{named, refusal};
use crate::exit::{Complaint, Exit};
use crate::live::single::SingleTest;
use crate::progress::StallNote;
use crate::{output, signals};

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
            let header = Box::new(keeper::with_conditions(header, &plan, &session));
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

/// Measures alone, or as a rank.
pub(super) fn measure(
    words: &[String],
    invocation: &Invocation,
    plan: Arc<RunPlan>,
    targets: PlanTargets,
    rank: Option<FioRank>,
) -> Result<Exit, Complaint> {
    match measure_on(words, invocation, plan, targets, rank.as_ref()) {
        Ok(Measured::Alone(exit)) => Ok(exit),
        Ok(Measured::OfRank(run)) => rank.map_or(Ok(Exit::FioSetup), |rank| rank.leave(*run)),
        Err(refusal) => {
            if let Some(rank) = rank {
                rank.fail(&refusal.message);
            }
            Err(refusal)
        }
    }
}

/// What came of a run.
enum Measured {
    /// It was reported.
    Alone(Exit),
    /// It is reported with those of the other ranks.
    OfRank(Box<RankRun>),
}

fn measure_on(
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
    let is_simulated = keeper::targets(&plan).iter().any(|path| is_simulated(path));
    let can_be_followed = keeper.is_kept() && !is_simulated;
    let live = live::open(command, &plan, &keeper.header, control.clone(), can_be_followed)?;
    keeper.hub = live.hub();
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
    keeper.finish(&record, &mut notes);
    record.header = RunHeader { notes, ..keeper.header };
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
