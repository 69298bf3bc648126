//! Building the specification of a worker: its files, its requests and its queue depth.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use fathom_engine::{EngineEntry, EngineSetup, NameUse, OpenFile, RawEngineOptions};
use fathom_model::plan::{AccessPlan, DepthPlan, OpenSync};
use fathom_model::{BlockSize, JobPlan, PerOp, RunPlan};
use fathom_stats::live::Recorded;
use fathom_workload::{Extent, SourcePlan};

use super::Prepared;
use super::open::open_file;
use crate::exits::ExitRule;
use crate::files::UsedRanges;
use crate::targets::{self, Target};
use crate::worker::{ReplaySpec, WorkerSpec};
use crate::{RunError, Session, names, verify_spec};

/// Opens the files of one worker and builds its specification.
pub(super) fn specify(
    prepared: &mut Prepared<'_>,
    (job_index, clone): (usize, usize),
    entry: &'static EngineEntry,
    targets: &mut BTreeMap<PathBuf, Target>,
    ranges: &UsedRanges,
) -> Result<WorkerSpec, RunError> {
    let job = &prepared.plan.jobs[job_index];
    let max_block = targets::largest_block(job);
    let names = names::use_of(prepared.session, entry);
    let UsedFiles { files, extents, to_file_ends } =
        open_files(prepared.session, (job_index, job, clone), names, targets, ranges)?;
    let io = &job.io;
    let cut = targets::cut_zones(job, &extents).filter(|note| !prepared.notes.contains(note));
    prepared.notes.extend(cut);
    let depth = depth_of(job, entry, &mut prepared.notes);
    let synchronous = entry.traits.synchronous || (entry.traits.synchronous_alone && depth.iodepth == 1);
    let source = match names {
        Some(names) => source_of_names(job, clone, extents, names),
        None => {
            let earlier = earlier_writes(prepared.plan, job_index, clone)?;
            SourcePlan { to_file_ends, ..source_of(job, clone, extents, earlier) }
        }
    };
    Ok(WorkerSpec {
        job: job_index,
        clone,
        writes_through: io.open_sync != OpenSync::None,
        name: job.name.clone(),
        entry,
        setup: EngineSetup {
            depth: depth.iodepth,
            max_block: max_block as usize,
            files,
            paths: if names.is_some() { job.clones[clone].paths.clone() } else { Vec::new() },
            direct: io.direct,
            writes: io.modifies(),
            random: io.pattern.random,
            options: engine_options(job),
            priorities: job.threads.request_priorities.clone(),
        },
        source,
        payload: io.payload.clone(),
        verify: verify_spec::specify(prepared.plan, job_index, clone)?,
        depth,
        time: job.time,
        serialize_overlap: io.serialize_overlap,
        on_error: job.on_error,
        cpus: job.clones[clone].cpus.clone(),
        recorded: recorded(job, clone, synchronous, entry),
        priorities_are_of_lat: job.measure.lat_percentiles,
        used: verify_spec::ops_recorded(job),
        invalidate: io.invalidate,
        end_fsync: io.end_fsync && io.pattern.writes(),
        log: None,
        issue_log: None,
        replay: replay_of(job, clone),
        exit: ExitRule::of(job),
        threads: job.threads.clone(),
        usage: job.files.usage,
        end: job.end.clone(),
        cycles_ns: prepared.session.time.ns_of_cycles(job.time.think_time.cycles),
        flow: prepared.flows.share(job),
    })
}

/// The files of a worker, opened, and the ranges that it uses of them.
struct UsedFiles {
    files: Vec<OpenFile>,
    extents: Vec<Extent>,
    /// The ranges end where the files end.
    to_file_ends: bool,
}

fn open_files(
    session: &Session,
    (job_index, job, clone): (usize, &JobPlan, usize),
    names: Option<NameUse>,
    targets: &mut BTreeMap<PathBuf, Target>,
    ranges: &UsedRanges,
) -> Result<UsedFiles, RunError> {
    let mut used = UsedFiles { files: Vec::new(), extents: Vec::new(), to_file_ends: true };
    for path in &job.clones[clone].paths {
        let Some(target) = targets.get_mut(path) else { continue };
        let known = ranges.get(&(job_index, clone, path.clone()));
        let extent = known.map_or_else(|| targets::extent(job, clone, target), |extent| Ok(*extent))?;
        used.files.push(match names {
            Some(_) => OpenFile { file: None, size: 0, is_block_device: false, volume: 0 },
            None => open_file(session, job, target, extent)?,
        });
        used.to_file_ends &= extent.offset.saturating_add(extent.len) >= target.bytes();
        used.extents.push(extent);
        target.opened();
    }
    Ok(used)
}

/// What is recorded of the requests of one clone.
fn recorded(job: &JobPlan, clone: usize, is_synchronous: bool, entry: &EngineEntry) -> Recorded {
    let (io, measure) = (&job.io, &job.measure);
    // Asynchronous engines are not replaced by threads.
    let by_threads = job.threads.offload && entry.name != job.engine.name;
    Recorded {
        // As in fio: a thread executes the request, and the worker does not wait for it to begin.
        slat: measure.slat && !is_synchronous && !by_threads,
        clat: measure.clat,
        lat: measure.lat,
        is_synchronous,
        scheduled: job.time.rate.rates.iter().any(|(_, rate)| rate.is_some()),
        syncs: io.fsync_every > 0 || data_syncs(job) > 0 || replays_syncs(job, clone),
    }
}

/// The private options of the engine of a job, with those that follow from the plan.
fn engine_options(job: &JobPlan) -> RawEngineOptions {
    let options = RawEngineOptions(job.engine.options.iter().cloned().collect());
    if job.files.usage.atomic { options.atomic() } else { options }
}

/// Writes between two datasyncs, or between two syncs of what was written, which take their place.
fn data_syncs(job: &JobPlan) -> u32 {
    job.files.usage.range_sync.map_or(job.io.fdatasync_every, |sync| sync.every)
}

/// The recorded requests of one clone.
fn replay_of(job: &JobPlan, clone: usize) -> Option<ReplaySpec> {
    let replay = job.replay.as_ref()?;
    Some(ReplaySpec { recorded: Arc::clone(replay.of_clone(clone)?), keeps_times: !replay.no_stall })
}

/// Whether there are syncs among the recorded requests of a clone.
fn replays_syncs(job: &JobPlan, clone: usize) -> bool {
    let recorded = job.replay.as_ref().and_then(|replay| replay.of_clone(clone));
    recorded.is_some_and(|recorded| recorded.requests.iter().any(|recorded| recorded.request.op.is_sync()))
}

/// The requests of one clone in the ranges of its files.
///
/// `earlier_writes` are those of a saved state, of which the job reads no more.
fn source_of(job: &JobPlan, clone: usize, extents: Vec<Extent>, earlier_writes: Option<u64>) -> SourcePlan {
    let io = &job.io;
    let range: u64 = extents.iter().map(|extent| extent.len).sum();
    // Writes of a saved state are read once.
    let loops = if earlier_writes.is_some() { Some(1) } else { verify_spec::loops(job) };
    let (mut bytes_per_loop, loops) = targets::bytes_and_loops(io, range, loops);
    let mut access = io.access.clone();
    // Requests of one size are counted by their bytes: so their order is that of a job without a number.
    if let Some(size) = only_size(job) {
        if access.number_ios > 0 {
            bytes_per_loop = bytes_per_loop.min(access.number_ios.saturating_mul(size));
            access.number_ios = 0;
        }
        if let Some(writes) = earlier_writes {
            bytes_per_loop = bytes_per_loop.min(writes.saturating_mul(size));
        }
    }
    SourcePlan {
        pattern: io.pattern,
        block_size: io.block_size.clone(),
        extents,
        to_file_ends: true,
        random_map: io.random_map,
        access,
        bytes_per_loop,
        loops,
        fsync_every: io.fsync_every,
        fdatasync_every: data_syncs(job),
        seed: job.clones[clone].seed,
        // What a later job reads back is what this one wrote, however many passes either has.
        repeats: io.verify.is_some(),
    }
}

/// As [`source_of`], with one request per file, which can only be repeated where it leaves the name as it was.
fn source_of_names(job: &JobPlan, clone: usize, extents: Vec<Extent>, names: NameUse) -> SourcePlan {
    let files: u64 = extents.iter().map(|extent| extent.len).sum();
    let source = source_of(job, clone, extents, None);
    SourcePlan {
        block_size: PerOp::splat(targets::largest_block(job).into()),
        random_map: true,
        access: AccessPlan { number_ios: job.io.access.number_ios, ..AccessPlan::default() },
        bytes_per_loop: source.bytes_per_loop.min(files),
        loops: if names.can_be_repeated() { verify_spec::loops(job) } else { Some(1) },
        ..source
    }
}

/// The writes of a saved state that a clone reads back, which are counted in requests of one size.
fn earlier_writes(plan: &RunPlan, job_index: usize, clone: usize) -> Result<Option<u64>, RunError> {
    let writes = verify_spec::writes_to_read(plan, job_index, clone)?;
    let job = &plan.jobs[job_index];
    if writes.is_some() && only_size(job).is_none() {
        return Err(RunError::plan(
            &job.name,
            "verify_state_load counts requests of one size, and this job has several",
            "use verify_only=1 in the job that wrote the data, or omit verify_state_load",
        ));
    }
    Ok(writes)
}

/// The size of all requests with data of a job, if there is only one.
fn only_size(job: &JobPlan) -> Option<u64> {
    let mut sizes = targets::ops_used(job).map(|op| match job.io.block_size[op] {
        BlockSize::Fixed(size) => Some(size),
        BlockSize::Split(_) | BlockSize::Range(_) => None,
    });
    let first = sizes.next()??;
    sizes.all(|size| size == Some(first)).then_some(first)
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
