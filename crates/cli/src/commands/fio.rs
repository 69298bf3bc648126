//! `fathom fio …`: fio's command line, fio's outputs, fio's exit codes.
//!
//! Everything a script sees is fio's. What fio has no words for goes to the end of the text or into the JSON, and to
//! standard error only if that is a terminal.

mod advice;
mod aggregate_log;
mod directories;
mod failures;
mod idleness;
mod keeper;
mod live;
mod logs;
mod observer;
mod ranks;
mod requests;
mod sink;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_assess::{
    AssessError, MeasurementEvent, PlanTargets, StepObserver, VolumeTypes, engine_rows, host_facts,
    is_simulated, stuck_note,
};
use fathom_model::{Nanos, RunPlan};
use fathom_options::{
    CommandOptions, EngineRow, Invocation, MachineNumbers, OptionError, ParseEnvironment, command_help,
    engine_help, parse_command_line, show_command, usage,
};
use fathom_record::{RunHeader, RunRecord, TestMeta, TestRecord, TestStatus, test_record};
use fathom_report::{FIO_VERSION, fio::banner as fio_banner};
use fathom_runner::{
    EventSender, Progress, RunControl, RunError, RunEvent, RunHandle, StopHandle, WritePermit,
    load_recordings,
};
use fathom_stats::RunOutcome;
use fathom_sys::files::{InputError, JOB_FILE};

use crate::exit::{Exit, without_excerpt};
use crate::live::single::SingleTest;
use crate::stall_note::StallNote;
use crate::{output, signals};
use aggregate_log::AggregateLog;
use failures::tell_failures;
use idleness::IdleWatch;
use keeper::Keeper;
use logs::FioLogs;
use observer::{FioObserver, eta_line, layouts, shows_eta};
use ranks::{FioRank, Joined, PartialRecords, RankRun};
use requests::Requests;
use sink::Sink;

/// Does what fio does with these words.
pub fn run(args: &[OsString]) -> Exit {
    let words: Result<Vec<String>, _> = args.iter().map(|word| word.clone().into_string()).collect();
    let words = match words {
        Ok(words) => words,
        Err(word) => {
            output::warn(&format!("fio: '{}' is not valid UTF-8", word.display()));
            return Exit::FioSetup;
        }
    };
    match start(&words) {
        Ok(exit) => exit,
        Err(FioRefusal { message, excerpt, hint }) => {
            output::warn(&message);
            if let Some(excerpt) = excerpt {
                let _ = output::warn_by(|out| out.own_lines(&excerpt));
            }
            if let Some(hint) = hint {
                output::warn(&hint);
            }
            Exit::FioSetup
        }
    }
}

/// Why nothing is run.
struct FioRefusal {
    message: String,
    /// The lines of a job file that it is about.
    excerpt: Option<String>,
    hint: Option<String>,
}

impl FioRefusal {
    fn new(message: String, hint: Option<String>) -> FioRefusal {
        FioRefusal { message, excerpt: None, hint }
    }
}

impl From<OptionError> for FioRefusal {
    fn from(error: OptionError) -> FioRefusal {
        let excerpt = error.place().map(ToString::to_string);
        let (message, excerpt) = without_excerpt(error.to_string(), excerpt);
        FioRefusal { message, excerpt, hint: error.hint() }
    }
}

impl From<AssessError> for FioRefusal {
    fn from(error: AssessError) -> FioRefusal {
        let (message, excerpt) = without_excerpt(format!("fio: {error}"), error.excerpt());
        FioRefusal { message, excerpt, hint: error.hint() }
    }
}

impl From<RunError> for FioRefusal {
    fn from(error: RunError) -> FioRefusal {
        FioRefusal::new(format!("fio: {error}"), error.hint())
    }
}

impl From<io::Error> for FioRefusal {
    fn from(error: io::Error) -> FioRefusal {
        FioRefusal::new(format!("fio: cannot write to standard output: {}", output::plain(&error)), None)
    }
}

fn start(words: &[String]) -> Result<Exit, FioRefusal> {
    let rank = match ranks::join(words)? {
        Joined::Alone => None,
        Joined::Rank(rank) => Some(*rank),
        Joined::Parted(exit) => return Ok(exit),
    };
    let words = &ranks::expanded(words, rank.as_ref());
    match prepare(words, rank.as_ref()) {
        Ok(Prepared::Exit(exit)) => Ok(exit),
        Ok(Prepared::Run(run)) => {
            let PreparedRun { invocation, plan, targets } = *run;
            measure(words, &invocation, Arc::new(plan), targets, rank)
        }
        Err(refusal) => {
            if let Some(rank) = rank {
                rank.fail(&refusal.message);
            }
            Err(refusal)
        }
    }
}

/// What a command line leads to.
enum Prepared {
    /// Nothing is measured.
    Exit(Exit),
    Run(Box<PreparedRun>),
}

struct PreparedRun {
    invocation: Invocation,
    plan: RunPlan,
    targets: PlanTargets,
}

/// Reads the command line; answers one that only prints.
fn prepare(words: &[String], rank: Option<&FioRank>) -> Result<Prepared, FioRefusal> {
    let engines = engine_rows();
    let host = host_facts();
    let parsed = parse_command_line(
        words,
        &ParseEnvironment {
            engines: &engines,
            read_file: &|path| ranks::read_job_file(path, rank),
            variable: &|name| ranks::variable(name, rank),
            machine: machine_numbers(host.cpus),
        },
    );
    if matches!(parsed, Err(OptionError::NoJobs)) {
        output::print(|out| out.own_lines(&format!("{FIO_VERSION}\n{}", usage())))?;
    }
    let mut invocation = parsed?;
    if invocation.command.only_prints() {
        return answer(&invocation.command, &engines).map(Prepared::Exit);
    }
    if let Some(rank) = rank {
        rank.take_role(&mut invocation, &engines)?;
    }
    invocation.list_directories(&directories::files_below)?;
    let mut plan = invocation.plan(&host)?;
    if let Some(rank) = rank {
        rank.fit(&mut plan)?;
    }
    if invocation.command.showcmd {
        output::print(|out| writeln!(out.verbatim(), "{}", show_command(&invocation)))?;
        return Ok(Prepared::Exit(Exit::Done));
    }
    if invocation.command.parse_only {
        return Ok(Prepared::Exit(Exit::Done));
    }
    load_recordings(&mut plan)?;
    let targets = PlanTargets::of(&plan, &VolumeTypes::default())?;
    if rank.is_none_or(FioRank::reports) {
        advice::give(&invocation.command, &plan);
    }
    Ok(Prepared::Run(Box::new(PreparedRun { invocation, plan, targets })))
}

/// `--version`, `--help` and the like.
fn answer(command: &CommandOptions, engines: &[EngineRow]) -> Result<Exit, FioRefusal> {
    let text = if command.version {
        format!("{FIO_VERSION}\n")
    } else if command.help {
        format!("{FIO_VERSION}\n{}", usage())
    } else if let Some(watch) = IdleWatch::new(command) {
        watch.end().to_string()
    } else if let Some(topic) = &command.cmdhelp {
        command_help(topic.as_deref()).map_err(|nearest| {
            let message = format!("No such command: {}", topic.as_deref().unwrap_or_default());
            FioRefusal::new(message, nearest.map(|name| format!("Did you mean {name}?")))
        })?
    } else {
        let topic = command.enghelp.as_ref().and_then(|topic| topic.as_deref());
        engine_help(engines, topic).map_err(|message| FioRefusal::new(message, None))?
    };
    output::print(|out| out.own_lines(&text))?;
    Ok(Exit::Done)
}

/// Reads a job file; `-` is standard input.
pub(super) fn read_job_file(path: &Path) -> io::Result<Vec<u8>> {
    JOB_FILE.read(path).map_err(InputError::into_io)
}

/// The numbers that job files can name.
pub(super) fn machine_numbers(cpus: usize) -> MachineNumbers {
    let memory = fathom_sys::device::SysRoot::real().text("/proc/meminfo").unwrap_or_default();
    let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|text| text.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    MachineNumbers {
        cpus: cpus as u64,
        page_size: rustix::param::page_size() as u64,
        memory_mib: kib.unwrap_or(0) / 1024,
    }
}

/// A run of fio's jobs on a thread of its own.
type FioHandle = RunHandle<MeasurementEvent, Result<RunOutcome, RunError>>;

/// Begins to run `plan`; where it is kept, under the header that comes back with the conditions it runs under.
fn begin(
    control: RunControl,
    command: &CommandOptions,
    plan: Arc<RunPlan>,
    targets: PlanTargets,
    kept: Option<RunHeader>,
    logs: Option<FioLogs>,
) -> Result<FioHandle, FioRefusal> {
    let permit = WritePermit::fio(&may_destroy(command));
    let status_interval = command.status_interval;
    let controlled = control.clone();
    let run = move |events: &mut EventSender<_, _>| {
        let mut session = targets.session().controlled(controlled);
        session.set_permit(permit);
        if let Some(logs) = logs {
            session.set_log(Box::new(logs));
        }
        if let Some(header) = kept {
            events.begun(&keeper::with_conditions(header, &plan, &session));
        }
        if let Some(interval) = status_interval {
            events.send_outcomes(interval);
        }
        session.run(&plan, events)
    };
    RunHandle::begin(control, run).map_err(|error| {
        FioRefusal::new(format!("fio: cannot start a thread: {}", output::plain(&error)), None)
    })
}

fn measure(
    words: &[String],
    invocation: &Invocation,
    plan: Arc<RunPlan>,
    targets: PlanTargets,
    rank: Option<FioRank>,
) -> Result<Exit, FioRefusal> {
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
) -> Result<Measured, FioRefusal> {
    let command = &invocation.command;
    let mut sink = if rank.is_none_or(FioRank::reports) { Sink::open(command)? } else { Sink::silent() };
    let (logs, aggregate) = (FioLogs::new(&plan)?, AggregateLog::open(command)?);
    let control = rank.map_or_else(RunControl::default, FioRank::control);
    let caught = signals::watch(control.stop_handle()).map_err(|error| {
        let message = format!("fio: cannot watch for signals: {}", output::plain(&error));
        FioRefusal::new(message, signals::hint(&error))
    })?;
    let mut notes = targets.notes.clone();
    if sink.has_text() {
        sink.write(|out| {
            invocation.messages.iter().try_for_each(|message| writeln!(out.verbatim(), "{message}"))?;
            fio_banner::render_plan(&plan, out)
        })?;
    } else {
        notes.extend(invocation.messages.iter().cloned());
    }
    let mut keeper = Keeper::new(command, words, invocation, &plan, &notes, rank.is_some());
    let is_simulated = keeper::targets(&plan).iter().any(|path| is_simulated(path));
    let can_be_followed = keeper.is_kept() && !is_simulated;
    let live = live::open(command, &plan, &keeper.header, control.clone(), can_be_followed)?;
    keeper.hub = live.hub();
    let shows_eta = shows_eta(command, &sink) && !live.has_screen();
    let handle = begin(control.clone(), command, plan.clone(), targets, keeper.kept_header().cloned(), logs)?;
    let mut observer = FioObserver {
        sink,
        plan: &plan,
        unannounced: layouts(&plan),
        eta: shows_eta.then(|| eta_line(command, &plan)),
        aggregate,
        stall: StallNote::default(),
        meta: meta_of(invocation),
        idle: IdleWatch::new(command),
    };
    let requests = Requests::new(command);
    let partial = rank.and_then(FioRank::partial);
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
    let failure = ran.as_ref().err().map(ToString::to_string);
    let (test, exit) = judge(ran, &plan, invocation, caught.number().is_some());
    watched.live.end(&test);
    let header = keeper.header.clone();
    let mut record = RunRecord { status: test.status, header, tests: vec![test], ..RunRecord::default() };
    record.findings = fathom_analysis::findings(&record);
    if rank.is_some() {
        record.header.notes = notes;
        let (interrupted, keeps) = (control.stop_handle().reason(), command.keep);
        let run = RankRun { record, failure, interrupted, sink, idleness, keeps };
        return Ok(Measured::OfRank(Box::new(run)));
    }
    keeper.finish(&record, &mut notes);
    record.header = RunHeader { notes, ..keeper.header };
    if let Some(signal) = caught.number() {
        let line = format!("fio: terminating on signal {signal}");
        if sink.has_text() {
            sink.write(|out| {
                writeln!(out)?;
                writeln!(out, "{line}")
            })?
        } else {
            output::warn(&line)
        }
    }
    sink.report(&record, idleness)?;
    Ok(Measured::Alone(exit))
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
                        watched.requests.run_trigger();
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
