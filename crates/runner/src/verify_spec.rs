//! The check of the data of a worker, from its plan.

use std::path::{Path, PathBuf};

use fathom_model::{JobPlan, Op, RunPlan};
use fathom_stats::DATA_OPS;
use fathom_sys::files::VERIFY_STATE;
use fathom_workload::verify::SavedState;

use crate::worker::VerifySpec;
use crate::{RunError, targets};

/// The note on engines and volumes that keep no data.
const NOTHING_KEPT: &str = "verify has nothing to check: the engine, or a simulated volume, keeps no data";

/// The check of clone number `clone` of job number `job`.
pub(crate) fn specify(plan: &RunPlan, job: usize, clone: usize) -> Result<Option<VerifySpec>, RunError> {
    let this = &plan.jobs[job];
    let Some(verify) = this.io.verify.clone() else { return Ok(None) };
    let paths = &this.clones[clone].paths;
    let before: usize = plan.jobs[..job].iter().map(|job| job.clones.len()).sum();
    let worker = before + clone;
    let loads = verify.only && verify.loads_state;
    let path = state_path(verify.state_directory.as_deref(), &this.name, worker as u64);
    let limit = if loads { Some(saved_writes(this, clone, &path)?) } else { None };
    Ok(Some(VerifySpec {
        names: paths.iter().map(|path| path.display().to_string()).collect(),
        passes: passes(this),
        shares_files: shares_files(plan, this, clone),
        worker: (worker + 1) as u16,
        job: (this.name.clone(), worker as u64),
        limit,
        plan: verify,
    }))
}

/// Whether other workers write to the files of a clone, or it names one twice.
fn shares_files(plan: &RunPlan, job: &JobPlan, clone: usize) -> bool {
    let paths = &job.clones[clone].paths;
    paths.iter().enumerate().any(|(index, path)| {
        paths[..index].contains(path) || writers(plan, job, path) > usize::from(job.io.pattern.writes())
    })
}

/// fio's name of the saved state of a worker, in `directory` or the working directory. As in fio, `worker` counts those of all
/// jobs.
pub(crate) fn state_path(directory: Option<&Path>, job: &str, worker: u64) -> PathBuf {
    let name = format!("local-{}-{worker}-verify.state", job.replace('/', "_"));
    directory.map_or_else(|| PathBuf::from(&name), |directory| directory.join(&name))
}

/// The writes of a saved state, where a job that reads alone is to read no others.
pub(crate) fn writes_to_read(plan: &RunPlan, job: usize, clone: usize) -> Result<Option<u64>, RunError> {
    let this = &plan.jobs[job];
    let Some(verify) = this.io.verify.as_ref().filter(|verify| verify.loads_state && !verify.only) else {
        return Ok(None);
    };
    if this.io.pattern.writes() {
        return Ok(None);
    }
    let before: usize = plan.jobs[..job].iter().map(|job| job.clones.len()).sum();
    let path = state_path(verify.state_directory.as_deref(), &this.name, (before + clone) as u64);
    saved_writes(this, clone, &path).map(Some)
}

/// The writes of a clone that were complete when its state was saved in `path`.
fn saved_writes(job: &JobPlan, clone: usize, path: &Path) -> Result<u64, RunError> {
    let refused = |reason: String, hint: &str| {
        RunError::plan(&job.name, format!("cannot load {}: {reason}", path.display()), hint)
    };
    let bytes = VERIFY_STATE
        .read(path)
        .map_err(|error| refused(error.to_string(), "run the job with verify_state_save=1 first"))?;
    let state = SavedState::from_bytes(&bytes)
        .map_err(|problem| refused(format!("it {problem}"), "run the job with verify_state_save=1 again"))?;
    let is_ordered = !job.io.pattern.random || state.seed == Some(job.clones[clone].seed);
    if !is_ordered {
        return Err(refused(
            "the writes were made in another random order".to_owned(),
            "use the same randseed, and the program that wrote the data",
        ));
    }
    Ok(state.writes)
}

/// Whether the job goes on until its runtime ends.
fn is_endless(job: &JobPlan) -> bool {
    job.time.time_based && job.time.runtime.is_some()
}

/// Passes of a job with a check: until its runtime ends, it reads back each, as many as there are.
fn passes(job: &JobPlan) -> Option<u32> {
    let reads_back = job.io.verify.as_ref().is_some_and(|verify| verify.reads_back && !verify.only);
    match is_endless(job) {
        true => reads_back.then_some(u32::MAX),
        false => Some(job.io.loops.max(1)),
    }
}

/// Loops of the source of a job: with a check, each is a pass of its own.
pub(crate) fn loops(job: &JobPlan) -> Option<u32> {
    let check = job.io.verify.as_ref().filter(|_| job.io.pattern.writes());
    match check {
        // The writes of one pass are counted.
        Some(verify) if verify.only => Some(1),
        Some(_) => passes(job).map(|_| 1),
        None => (!is_endless(job)).then_some(job.io.loops.max(1)),
    }
}

/// Workers that write to `path` in the phase of `job`.
fn writers(plan: &RunPlan, job: &JobPlan, path: &Path) -> usize {
    let together = plan.jobs.iter().filter(|other| other.phase == job.phase && other.io.pattern.modifies());
    together
        .flat_map(|other| &other.clones)
        .filter(|clone| clone.paths.iter().any(|used| used == path))
        .count()
}

/// Whether the counters of read, write and trim are used.
pub(crate) fn ops_recorded(job: &JobPlan) -> [bool; DATA_OPS] {
    let is_read_back = job.io.verify.is_some();
    Op::DATA.map(|op| op == Op::Read && is_read_back || targets::ops_used(job).any(|used| used == op))
}

/// What the user should know of the check of `job`; `keeps_data` if its targets do.
pub(crate) fn notes(plan: &RunPlan, job: usize, keeps_data: bool) -> Vec<String> {
    let this = &plan.jobs[job];
    let Some(verify) = &this.io.verify else { return Vec::new() };
    let mut notes = Vec::new();
    if !keeps_data {
        notes.push(NOTHING_KEPT.to_owned());
    }
    if !this.io.pattern.writes() {
        return notes;
    }
    let shared = (0..this.clones.len()).any(|clone| shares_files(plan, this, clone));
    if shared {
        notes.push(
            "multiple writers may overwrite blocks that belong to other jobs. This can cause verification failures."
                .to_owned(),
        );
    }
    if is_endless(this) && verify.reads_back && verify.backlog.is_none() && !verify.only {
        notes.push(
            "blocks are read back after each pass; those of the pass that the runtime ends are not"
                .to_owned(),
        );
    }
    notes
}
