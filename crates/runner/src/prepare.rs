//! Everything that can fail before the measurement: inspecting targets, the guard, layout, opening.

mod open;
mod specify;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use fathom_engine::{EngineEntry, NameUse, registry};
use fathom_model::plan::ThreadPlan;
use fathom_model::{JobPlan, Op, RunPlan};
use fathom_stats::RunOutcome;
use fathom_sys::device::{HostFacts, TargetHandle, TargetIdentity};
use fathom_sys::io::describe;
use fathom_sys::open_files::allow_open_files;

use crate::feed::Flows;
use crate::files::{FileNeeds, lay_out_all, needs, places, remove, written};
use crate::host_setup::{self, HostChanges};
use crate::logging::{LogPort, LogThread};
use crate::observe::RunObserver;
use crate::session::Session;
use crate::targets::{self, Target, TargetKind};
use crate::worker::WorkerSpec;
use crate::{RunError, execute, guard, names, verify_spec};
use specify::specify;

/// A run whose targets are laid out and open, ready to start.
pub struct Prepared<'a> {
    pub(crate) session: &'a Session,
    pub(crate) plan: &'a RunPlan,
    pub(crate) specs: Vec<WorkerSpec>,
    pub(crate) notes: Vec<String>,
    /// Files to remove at the end, if their paths still lead to them.
    pub(crate) unlink: Vec<(PathBuf, TargetIdentity)>,
    /// Names that were new before the run, to remove at the end.
    unlink_names: Vec<PathBuf>,
    /// A path on each device and file system under test.
    pub(crate) paths: Vec<PathBuf>,
    /// The admitted targets: a claim lasts as long as its handle.
    pub(crate) _targets: Vec<Arc<TargetHandle>>,
    log: Option<LogThread>,
    host: HostChanges,
    flows: Flows,
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        // Of a run that did not start; nobody is left to be told.
        let _ = std::mem::take(&mut self.host).undo();
    }
}

impl Prepared<'_> {
    /// Notes what is removed at the end of the run of a job with `unlink`.
    fn unlink_later(&mut self, job: &JobPlan, targets: &BTreeMap<PathBuf, Target>) {
        let made = || job.clones.iter().flat_map(|clone| &clone.paths);
        // On disk, the name of a session file may belong to another file.
        let ours = made().filter(|path| targets[*path].is_file() && self.session.own_file(path).is_none());
        self.unlink.extend(ours.filter_map(|path| Some((path.clone(), targets[path].identity?))));
        let new = made().filter(|path| targets[*path].kind == TargetKind::NewName);
        self.unlink_names.extend(new.cloned());
    }

    /// Runs every phase: opens the engines of its workers, and starts it when all are ready and the session's control
    /// permits.
    pub fn start(mut self, observer: &mut dyn RunObserver) -> RunOutcome {
        let (unlink, unlink_names) = (self.unlink.clone(), std::mem::take(&mut self.unlink_names));
        let log = self.log.take();
        let host = std::mem::take(&mut self.host);
        let mut outcome = execute::run(self, observer);
        outcome.notes.extend(host.undo());
        outcome.notes.extend(log.map(LogThread::finish).unwrap_or_default());
        for (path, identity) in unlink {
            if let Err(error) = remove(&path, identity) {
                outcome.notes.push(format!("could not remove {}: {}", path.display(), describe(&error)));
            }
        }
        outcome.notes.extend(unlink_names.iter().filter_map(|path| names::remove(path)));
        outcome
    }
}

/// Prepares `plan` on `session`.
pub(crate) fn prepare<'a>(
    session: &'a Session,
    plan: &'a RunPlan,
    observer: &mut dyn RunObserver,
) -> Result<Prepared<'a>, RunError> {
    session.control.prepares();
    let mut prepared = Prepared {
        session,
        plan,
        specs: Vec::new(),
        notes: Vec::new(),
        unlink: Vec::new(),
        unlink_names: Vec::new(),
        paths: Vec::new(),
        _targets: Vec::new(),
        log: None,
        host: HostChanges::default(),
        flows: Flows::default(),
    };
    let jobs = plan.jobs.iter().map(|job| entry_of(session, job)).collect::<Result<Vec<_>, _>>()?;
    check_in_flight(plan, &jobs)?;
    check_memory(session, plan, &jobs)?;
    // Each file is open for its worker; those that are inspected and laid out, briefly also by themselves.
    let (workers, files) = counts(plan);
    allow_open_files(2 * files + OPEN_PER_WORKER * workers + OPEN_BESIDE);
    let mut targets = inspect_all(session, plan, &jobs)?;
    let FileNeeds { needs, ranges } = needs(plan, &mut targets)?;
    prepared.notes = guard::admit(&session.permit, &written(session, plan, &targets, &needs))?;
    prepared.notes.extend(targets.values().filter_map(Target::note));
    lay_out_all(session, &mut targets, needs, observer)?;
    if session.is_simulated() {
        if plan.jobs.iter().any(acts_on_threads) {
            let note = "note: simulated volumes have no threads: priorities, NUMA nodes and commands of the job have no effect";
            prepared.notes.push(note.to_owned());
        }
    } else {
        names::make_directories(named(plan, &jobs), &targets)?;
        let (host, notes) = host_setup::apply(plan, &targets)?;
        prepared.host = host;
        prepared.notes.extend(notes);
    }
    session.control.prepares();
    prepared.log = start_log(session, plan)?;
    let mut workers = 0;
    for (index, (job, entry)) in plan.jobs.iter().zip(&jobs).enumerate() {
        let first_worker = workers;
        workers += job.clones.len();
        if job.files.create_only {
            continue;
        }
        let keeps_data = entry.traits.needs_files && entry.traits.names.is_none() && !session.is_simulated();
        prepared.notes.extend(verify_spec::notes(plan, index, keeps_data));
        for clone in 0..job.clones.len() {
            let spec = specify(&mut prepared, (index, clone), entry, &mut targets, &ranges)?;
            let (log, issue_log) = log_ports(&prepared, job, first_worker + clone, spec.recorded.slat);
            prepared.specs.push(WorkerSpec { log, issue_log, ..spec });
        }
        if job.files.unlink {
            prepared.unlink_later(job, &targets);
        }
    }
    prepared.unlink.sort();
    prepared.unlink.dedup();
    prepared.paths = places(&targets);
    let is_device = |target: &Target| target.kind == TargetKind::BlockDevice;
    prepared._targets = targets.into_values().filter(is_device).filter_map(|target| target.handle).collect();
    Ok(prepared)
}

/// Starts the thread of the session's log, if any job is logged.
fn start_log(session: &Session, plan: &RunPlan) -> Result<Option<LogThread>, RunError> {
    let Some(mut log) = session.take_log() else { return Ok(None) };
    let Some(job) = plan.jobs.iter().find(|job| job.measure.logs.is_any()) else { return Ok(None) };
    log.open().map_err(|reason| {
        RunError::plan(&job.name, reason, "name a log in a directory that exists and can be written")
    })?;
    LogThread::start(log, plan).map(Some).map_err(|error| {
        RunError::plan(
            &job.name,
            format!("cannot start a thread for the logs: {}", describe(&error)),
            "raise `ulimit -u`",
        )
    })
}

/// The ways to the log for one worker: for completed and for issued requests. Times in virtual time refer to no clock.
fn log_ports(
    prepared: &Prepared<'_>,
    job: &JobPlan,
    worker: usize,
    slat: bool,
) -> (Option<LogPort>, Option<LogPort>) {
    let logs = &job.measure.logs;
    let Some(log) = &prepared.log else { return (None, None) };
    let clock = logs.clock.filter(|_| !prepared.session.is_simulated());
    let completed = logs.logs_completions().then(|| log.port(worker, clock, slat));
    (completed, logs.follows_issued().then(|| log.port(worker, None, false)))
}

/// Whether a job says anything about its threads but when they start, and that they execute requests.
fn acts_on_threads(job: &JobPlan) -> bool {
    let starts_and_shares =
        ThreadPlan { wait_for: None, flow: Default::default(), offload: false, ..job.threads.clone() };
    starts_and_shares != ThreadPlan::default()
}

/// The engine in place of `entry` where threads of their own execute its requests.
fn offloaded(job: &JobPlan, entry: &'static EngineEntry) -> Result<&'static EngineEntry, RunError> {
    if !job.threads.offload {
        return Ok(entry);
    }
    registry::offloaded(entry).ok_or_else(|| RunError::plan(&job.name, format!("engine {} cannot be used with io_submit_mode=offload", entry.name), "use ioengine=psync, sync, vsync, pvsync, pvsync2, libaio, posixaio or null, or io_submit_mode=inline"))
}

/// The engine of a job, checked against the job's requirements.
fn entry_of(session: &Session, job: &JobPlan) -> Result<&'static EngineEntry, RunError> {
    let entry = registry::find(&job.engine.name).ok_or_else(|| RunError::unknown_engine(job))?;
    let lacks = |op: &Op| entry.traits.lacks.contains(op) && !session.is_simulated();
    if let Some(op) = targets::ops_used(job).find(lacks) {
        return Err(RunError::plan(
            &job.name,
            format!("engine {} cannot {op}", entry.name),
            "use ioengine=libaio, io_uring or psync",
        ));
    }
    let usage = job.files.usage;
    let unfit = match () {
        () if usage.atomic && !entry.writes_atomically() => {
            Some(format!("engine {} has no atomic writes", entry.name))
        }
        () if usage.range_sync.is_some() && session.is_simulated() => {
            Some("sync_file_range needs files: simulated volumes have no page cache".to_owned())
        }
        () => None,
    };
    if let Some(reason) = unfit {
        let hint =
            "use ioengine=libaio, io_uring or pvsync2 on a file or device, or omit the option".to_owned();
        return Err(RunError::plan(&job.name, reason, hint));
    }
    if job.replay.as_ref().is_some_and(|replay| replay.recorded.is_empty()) {
        return Err(RunError::plan(&job.name, "read_iolog is not available here", "use fathom fio"));
    }
    let zero = match () {
        () if job.depth.iodepth == 0 => Some("iodepth"),
        () if targets::ops_used(job).any(|op| job.io.block_size[op].smallest() == 0) => Some("bs"),
        () => None,
    };
    if let Some(what) = zero {
        return Err(RunError::plan(
            &job.name,
            format!("{what}=0 transfers no data"),
            format!("set {what} to 1 or more"),
        ));
    }
    if targets::largest_block(job) > u64::from(u32::MAX / 2) {
        return Err(RunError::plan(
            &job.name,
            format!("a block of {} bytes exceeds the maximum request size", targets::largest_block(job)),
            "lower bs below 2g",
        ));
    }
    offloaded(job, entry)
}

/// Most requests in flight of a phase: half a gigabyte is kept of them, and no device has as many.
const MAX_IN_FLIGHT: u64 = 1 << 22;

/// Refuses more requests in flight than are worth their memory.
fn check_in_flight(plan: &RunPlan, entries: &[&'static EngineEntry]) -> Result<(), RunError> {
    let mut phases: BTreeMap<u32, u64> = BTreeMap::new();
    for (job, entry) in plan.jobs.iter().zip(entries) {
        let depth = if entry.traits.synchronous { 1 } else { job.depth.iodepth };
        let in_flight = phases.entry(job.phase).or_default();
        *in_flight = in_flight.saturating_add(u64::from(depth) * job.clones.len() as u64);
        if *in_flight > MAX_IN_FLIGHT {
            return Err(RunError::plan(
                &job.name,
                format!(
                    "has iodepth={depth}: at most {MAX_IN_FLIGHT} requests in flight are supported over all jobs"
                ),
                "lower iodepth or numjobs",
            ));
        }
    }
    Ok(())
}

/// Refuses buffers that exceed the available memory: filling them would make the kernel kill this process or another.
fn check_memory(session: &Session, plan: &RunPlan, entries: &[&'static EngineEntry]) -> Result<(), RunError> {
    /// Buffers below this size are not checked.
    const SMALL: u64 = 64 << 20;
    let mut phases: BTreeMap<u32, u64> = BTreeMap::new();
    let mut known = None;
    for (job, entry) in plan.jobs.iter().zip(entries) {
        if session.is_simulated()
            || !entry.traits.needs_files
            || entry.traits.names.is_some()
            || job.files.create_only
        {
            continue;
        }
        let slots = if entry.traits.synchronous { 1 } else { u64::from(job.depth.iodepth) };
        let workers = job.clones.len() as u64;
        let bytes = targets::largest_block(job).saturating_mul(slots).saturating_mul(workers);
        let phase = phases.entry(job.phase).or_default();
        *phase = phase.saturating_add(bytes);
        if *phase <= SMALL {
            continue;
        }
        let available = *known.get_or_insert_with(|| HostFacts::read().memory_available.unwrap_or(u64::MAX));
        if *phase > available {
            return Err(RunError::plan(
                &job.name,
                format!(
                    "buffers of {} MiB are needed, and {} MiB of memory are available",
                    *phase >> 20,
                    available >> 20
                ),
                "lower iodepth, bs or numjobs",
            ));
        }
    }
    Ok(())
}

/// Descriptors of a worker besides its files: a ring, and those for its thread statistics.
const OPEN_PER_WORKER: u64 = 4;
/// Descriptors of a run besides its workers: counters of devices and of the host, the history.
const OPEN_BESIDE: u64 = 256;

/// Workers, and files that they open.
fn counts(plan: &RunPlan) -> (u64, u64) {
    let clones = plan.jobs.iter().flat_map(|job| &job.clones);
    clones.fold((0, 0), |(workers, files), clone| (workers + 1, files + clone.paths.len() as u64))
}

fn inspect_all(
    session: &Session,
    plan: &RunPlan,
    entries: &[&'static EngineEntry],
) -> Result<BTreeMap<PathBuf, Target>, RunError> {
    let mut targets = BTreeMap::new();
    for (job, entry) in plan.jobs.iter().zip(entries) {
        for path in job.clones.iter().flat_map(|clone| &clone.paths) {
            let names = names::use_of(session, entry);
            let needs_file = entry.traits.needs_files && names.is_none_or(NameUse::needs_file);
            let is_open = |target: &Target| {
                !matches!(target.kind, TargetKind::Virtual | TargetKind::Name | TargetKind::NewName)
            };
            // What an earlier job makes by name, a later one may inspect or remove.
            let is_made = |target: &Target| target.kind != TargetKind::Virtual && names.is_some();
            let known: Option<&Target> = targets.get(path);
            if known.is_none_or(|target| needs_file && !is_open(target) && !is_made(target)) {
                let uses = known.map_or(0, |target| target.uses);
                let target = match names.map_or(Ok(None), |names| names::inspect(path, names))? {
                    Some(target) => target,
                    None => targets::inspect(session, path, needs_file)?,
                };
                targets.insert(path.clone(), Target { uses, ..target });
            }
            if let Some(target) = targets.get_mut(path) {
                if names == Some(NameUse::RemoveFile) && target.is_device() {
                    return Err(RunError::unsuitable(
                        path,
                        "is a device, and filedelete would remove its name",
                        "name regular files",
                    ));
                }
                target.uses += 1;
            }
        }
    }
    Ok(targets)
}

/// The names that engines act on.
fn named<'a>(
    plan: &'a RunPlan,
    entries: &'a [&'static EngineEntry],
) -> impl Iterator<Item = (&'a PathBuf, NameUse)> {
    let jobs = plan.jobs.iter().zip(entries);
    let used = jobs.filter_map(|(job, entry)| Some((job, entry.traits.names?)));
    used.flat_map(|(job, names)| {
        job.clones.iter().flat_map(move |clone| clone.paths.iter().map(move |path| (path, names)))
    })
}
