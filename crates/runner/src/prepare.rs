//! Everything that can fail before the measurement: inspecting targets, the guard, layout, opening.

mod open;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use fathom_engine::{EngineEntry, EngineSetup, RawEngineOptions, registry};
use fathom_model::plan::{DepthPlan, ThreadPlan};
use fathom_model::{JobPlan, Op, RunPlan};
use fathom_stats::RunOutcome;
use fathom_stats::live::Recorded;
use fathom_sys::device::{HostFacts, TargetHandle, TargetIdentity};
use fathom_sys::io::describe;
use fathom_sys::open_files::allow_open_files;
use fathom_workload::{Extent, SourcePlan};

use crate::exits::ExitRule;
use crate::feed::Flows;
use crate::files::{lay_out_all, needs, places, remove, written};
use crate::host_setup::{self, HostChanges};
use crate::logging::{LogPort, LogThread};
use crate::observe::RunObserver;
use crate::session::Session;
use crate::targets::{self, Target, TargetKind};
use crate::worker::WorkerSpec;
use crate::{RunError, execute, guard, verify_spec};
use open::open_file;

/// A run whose targets are laid out and open, ready to start.
pub struct Prepared<'a> {
    pub(crate) session: &'a Session,
    pub(crate) plan: &'a RunPlan,
    pub(crate) specs: Vec<WorkerSpec>,
    pub(crate) notes: Vec<String>,
    /// Files to remove at the end, if their paths still lead to them.
    pub(crate) unlink: Vec<(PathBuf, TargetIdentity)>,
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
    /// Runs every phase: opens the engines of its workers, and starts it when all are ready and the session's control
    /// permits.
    pub fn start(mut self, observer: &mut dyn RunObserver) -> RunOutcome {
        let unlink = self.unlink.clone();
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
        paths: Vec::new(),
        _targets: Vec::new(),
        log: None,
        host: HostChanges::default(),
        flows: Flows::default(),
    };
    let jobs = plan.jobs.iter().map(|job| entry_of(session, job)).collect::<Result<Vec<_>, _>>()?;
    check_memory(session, plan, &jobs)?;
    // Each file is open for its worker; those that are inspected and laid out, briefly also by themselves.
    let (workers, files) = counts(plan);
    allow_open_files(2 * files + OPEN_PER_WORKER * workers + OPEN_BESIDE);
    let mut targets = inspect_all(session, plan, &jobs)?;
    let needs = needs(plan, &targets)?;
    prepared.notes = guard::admit(&session.permit, &written(session, plan, &targets, &needs))?;
    lay_out_all(session, &mut targets, needs, observer)?;
    if session.is_simulated() && plan.jobs.iter().any(acts_on_threads) {
        let note = "note: simulated volumes have no threads: priorities, NUMA nodes and commands of the job have no effect";
        prepared.notes.push(note.to_owned());
    }
    if !session.is_simulated() {
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
        let keeps_data = entry.traits.needs_files && !session.is_simulated();
        prepared.notes.extend(verify_spec::notes(plan, index, keeps_data));
        for clone in 0..job.clones.len() {
            let spec = specify(&mut prepared, (index, clone), entry, &mut targets)?;
            let log = log_port(&prepared, job, first_worker + clone, spec.recorded.slat);
            prepared.specs.push(WorkerSpec { log, ..spec });
        }
        if job.files.unlink {
            let made = job.clones.iter().flat_map(|clone| &clone.paths);
            // On disk, the name of a session file may belong to another file.
            let ours = made.filter(|path| targets[*path].is_file() && session.own_file(path).is_none());
            let identified = ours.filter_map(|path| Some((path.clone(), targets[path].identity?)));
            prepared.unlink.extend(identified);
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
    log.open().map_err(|reason| RunError::Plan {
        job: job.name.clone(),
        reason,
        hint: "name a log in a directory that exists and can be written".to_owned(),
    })?;
    LogThread::start(log, plan).map(Some).map_err(|error| RunError::Plan {
        job: job.name.clone(),
        reason: format!("cannot start a thread for the logs: {}", describe(&error)),
        hint: "raise `ulimit -u`".to_owned(),
    })
}

/// The way to the log for one worker; times in virtual time refer to no clock.
fn log_port(prepared: &Prepared<'_>, job: &JobPlan, worker: usize, slat: bool) -> Option<LogPort> {
    let logs = &job.measure.logs;
    let clock = logs.clock.filter(|_| !prepared.session.is_simulated());
    prepared.log.as_ref().filter(|_| logs.is_any()).map(|log| log.port(worker, clock, slat))
}

/// Whether a job says anything about its threads but when they start.
fn acts_on_threads(job: &JobPlan) -> bool {
    let starts_and_shares = ThreadPlan { wait_for: None, flow: Default::default(), ..job.threads.clone() };
    starts_and_shares != ThreadPlan::default()
}

/// The engine of a job, checked against the job's requirements.
fn entry_of(session: &Session, job: &JobPlan) -> Result<&'static EngineEntry, RunError> {
    let entry = registry::find(&job.engine.name)
        .ok_or_else(|| RunError::UnknownEngine { job: job.name.clone(), engine: job.engine.name.clone() })?;
    let lacks = |op: &Op| entry.traits.lacks.contains(op) && !session.is_simulated();
    if let Some(op) = targets::ops_used(job).find(lacks) {
        return Err(RunError::Plan {
            job: job.name.clone(),
            reason: format!("engine {} cannot {op}", entry.name),
            hint: "use ioengine=libaio, io_uring or psync".to_owned(),
        });
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
        return Err(RunError::Plan { job: job.name.clone(), reason, hint });
    }
    let zero = match () {
        () if job.depth.iodepth == 0 => Some("iodepth"),
        () if targets::ops_used(job).any(|op| job.io.block_size[op].smallest() == 0) => Some("bs"),
        () => None,
    };
    if let Some(what) = zero {
        return Err(RunError::Plan {
            job: job.name.clone(),
            reason: format!("{what}=0 transfers no data"),
            hint: format!("set {what} to 1 or more"),
        });
    }
    if targets::largest_block(job) > u64::from(u32::MAX / 2) {
        return Err(RunError::Plan {
            job: job.name.clone(),
            reason: format!(
                "a block of {} bytes exceeds the maximum request size",
                targets::largest_block(job)
            ),
            hint: "lower bs below 2g".to_owned(),
        });
    }
    Ok(entry)
}

/// Refuses buffers that exceed the available memory: filling them would make the kernel kill this process or another.
fn check_memory(session: &Session, plan: &RunPlan, entries: &[&'static EngineEntry]) -> Result<(), RunError> {
    /// Buffers below this size are not checked.
    const SMALL: u64 = 64 << 20;
    let mut phases: BTreeMap<u32, u64> = BTreeMap::new();
    let mut known = None;
    for (job, entry) in plan.jobs.iter().zip(entries) {
        if session.is_simulated() || !entry.traits.needs_files || job.files.create_only {
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
            return Err(RunError::Plan {
                job: job.name.clone(),
                reason: format!(
                    "buffers of {} MiB are needed, and {} MiB of memory are available",
                    *phase >> 20,
                    available >> 20
                ),
                hint: "lower iodepth, bs or numjobs".to_owned(),
            });
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
            let needs_file = entry.traits.needs_files;
            let known: Option<&Target> = targets.get(path);
            if known.is_none_or(|target| needs_file && target.kind == TargetKind::Virtual) {
                let uses = known.map_or(0, |target| target.uses);
                let target = targets::inspect(session, path, needs_file)?;
                targets.insert(path.clone(), Target { uses, ..target });
            }
            if let Some(target) = targets.get_mut(path) {
                target.uses += 1;
            }
        }
    }
    Ok(targets)
}

/// Opens the files of one worker and builds its specification.
fn specify(
    prepared: &mut Prepared<'_>,
    (job_index, clone): (usize, usize),
    entry: &'static EngineEntry,
    targets: &mut BTreeMap<PathBuf, Target>,
) -> Result<WorkerSpec, RunError> {
    let job = &prepared.plan.jobs[job_index];
    let max_block = targets::largest_block(job);
    let (mut files, mut extents) = (Vec::new(), Vec::new());
    for path in &job.clones[clone].paths {
        let Some(target) = targets.get_mut(path) else { continue };
        let extent = targets::extent(job, clone, target)?;
        files.push(open_file(prepared.session, job, target, extent)?);
        extents.push(extent);
        target.opened();
    }
    let io = &job.io;
    let cut = targets::cut_zones(job, &extents).filter(|note| !prepared.notes.contains(note));
    prepared.notes.extend(cut);
    let depth = depth_of(job, entry, &mut prepared.notes);
    let synchronous = entry.traits.synchronous || (entry.traits.synchronous_alone && depth.iodepth == 1);
    let measure = &job.measure;
    Ok(WorkerSpec {
        job: job_index,
        clone,
        name: job.name.clone(),
        entry,
        setup: EngineSetup {
            depth: depth.iodepth,
            max_block: max_block as usize,
            files,
            direct: io.direct,
            writes: io.modifies(),
            random: io.pattern.random,
            options: engine_options(job),
        },
        source: source_of(job, clone, extents),
        payload: io.payload.clone(),
        verify: verify_spec::specify(prepared.plan, job_index, clone)?,
        depth,
        time: job.time,
        serialize_overlap: io.serialize_overlap,
        on_error: job.on_error,
        cpus: job.clones[clone].cpus.clone(),
        recorded: Recorded {
            slat: measure.slat && !synchronous,
            clat: measure.clat,
            lat: measure.lat,
            is_synchronous: synchronous,
            scheduled: job.time.rate.rates.iter().any(|(_, rate)| rate.is_some()),
            syncs: io.fsync_every > 0 || data_syncs(job) > 0,
        },
        used: verify_spec::ops_recorded(job),
        invalidate: io.invalidate,
        end_fsync: io.end_fsync && io.pattern.writes(),
        log: None,
        exit: ExitRule::of(job),
        threads: job.threads.clone(),
        usage: job.files.usage,
        end: job.end.clone(),
        cycles_ns: prepared.session.time.ns_of_cycles(job.time.think_time.cycles),
        flow: prepared.flows.share(job),
    })
}

/// The private options of the engine of a job, and what it is told besides.
fn engine_options(job: &JobPlan) -> RawEngineOptions {
    let options = RawEngineOptions(job.engine.options.iter().cloned().collect());
    if job.files.usage.atomic { options.atomic() } else { options }
}

/// Writes between two datasyncs, or between two syncs of what was written, which take their place.
fn data_syncs(job: &JobPlan) -> u32 {
    job.files.usage.range_sync.map_or(job.io.fdatasync_every, |sync| sync.every)
}

/// The requests of one clone in the ranges of its files.
fn source_of(job: &JobPlan, clone: usize, extents: Vec<Extent>) -> SourcePlan {
    let io = &job.io;
    let range: u64 = extents.iter().map(|extent| extent.len).sum();
    SourcePlan {
        pattern: io.pattern,
        block_size: io.block_size.clone(),
        extents,
        random_map: io.random_map,
        access: io.access.clone(),
        bytes_per_loop: targets::bytes_per_loop(io, range),
        loops: verify_spec::loops(job),
        fsync_every: io.fsync_every,
        fdatasync_every: data_syncs(job),
        seed: job.clones[clone].seed,
    }
}

/// A synchronous engine always has one request in flight.
fn depth_of(job: &JobPlan, entry: &EngineEntry, notes: &mut Vec<String>) -> DepthPlan {
    let depth = job.depth;
    if !entry.traits.synchronous || depth.iodepth == 1 {
        let batch_submit = depth.batch_submit.clamp(1, depth.iodepth);
        let batch_submit_inline = depth.batch_submit_inline.clamp(batch_submit, depth.iodepth);
        let batch_complete_max = depth.batch_complete_max.max(1);
        return DepthPlan { batch_submit, batch_submit_inline, batch_complete_max, ..depth };
    }
    let note =
        "note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1";
    if !notes.iter().any(|known| known == note) {
        notes.push(note.to_owned());
    }
    DepthPlan::new(1)
}
