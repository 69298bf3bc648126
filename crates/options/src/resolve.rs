//! From options to plans: defaults, cross-checks, groups and phases.
//!
//! This is the only place where fio's defaults are applied.

use fathom_model::plan::{
    DepthPlan, EndPlan, EnginePlan, IoPlan, LogPlan, MeasurePlan, Mix, Pattern, SteadyFigure,
    SteadyStatePlan, ThreadPlan, TimePlan,
};
use fathom_model::{JobPlan, Nanos, PerOp, RunPlan};

use crate::access;
use crate::clones;
use crate::engines;
use crate::error::OptionError;
use crate::job_options::{JobOptions, ReadWriteOption};
use crate::priorities;
use crate::rate;
use crate::replay;
use crate::section::{RawOptions, Section};
use crate::verify;

/// Most workers of one run, as in fio.
pub const MAX_WORKERS: u32 = 4096;

/// Facts about the machine that affect the meaning of options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanningHost {
    /// CPUs, numbered from 0; bounds `cpus_allowed`.
    pub cpus: usize,
    /// A number that differs from run to run, for `randrepeat=0`.
    pub entropy: u64,
}

/// Resolves the jobs for this machine: clones, groups and phases; contradictions are refused.
pub fn resolve(sections: &[Section], host: &PlanningHost) -> Result<RunPlan, OptionError> {
    let mut plan = RunPlan::default();
    let (mut group, mut phase, mut workers) = (0, 0, 0_u32);
    for section in sections {
        let options = &section.options;
        let waits = section.starts_file || options.stonewall == Some(true);
        if !plan.jobs.is_empty() {
            phase += u32::from(waits);
            group += u32::from(waits || options.new_group == Some(true));
        }
        let clones = options.numjobs.unwrap_or(1);
        let first_worker = workers;
        workers = workers.saturating_add(clones);
        if workers > MAX_WORKERS {
            return Err(refused(
                section,
                format!("has numjobs={clones}: maximum number of jobs ({MAX_WORKERS}) reached"),
                format!("lower numjobs so that all jobs together have at most {MAX_WORKERS} clones"),
            ));
        }
        let mut job = JobPlan { group, phase, ..job(section, first_worker, host)? };
        job.threads.wait_for = waited_for(section, &sections[..plan.jobs.len()])?;
        plan.jobs.push(job);
    }
    Ok(plan)
}

/// The index of the job that `section` waits for, one of those `before` it.
fn waited_for(section: &Section, before: &[Section]) -> Result<Option<usize>, OptionError> {
    let Some(name) = &section.options.wait_for else { return Ok(None) };
    let reported = |section: &Section| section.options.name.clone().unwrap_or_else(|| section.name.clone());
    match before.iter().rposition(|earlier| reported(earlier) == *name) {
        Some(index) => Ok(Some(index)),
        None => Err(refused(
            section,
            format!("waits for job '{name}', which is not one of those before it"),
            "name an earlier job in wait_for",
        )),
    }
}

/// An error about one job.
pub(crate) fn refused(section: &Section, problem: impl AsRef<str>, remedy: impl Into<String>) -> OptionError {
    OptionError::job(&section.name, problem.as_ref(), remedy)
}

fn job(section: &Section, first_worker: u32, host: &PlanningHost) -> Result<JobPlan, OptionError> {
    let options = &section.options;
    if let Some((problem, remedy)) = access::contradiction(options) {
        return Err(refused(section, problem, remedy));
    }
    let (mut io, time) = (io(options), &options.plan.time);
    io.verify = verify::plan(section, &io)?;
    let replay = replay::plan(section, &io)?;
    Ok(JobPlan {
        name: options.name.clone().unwrap_or_else(|| section.name.clone()),
        engine: EnginePlan { name: engine_name(options).to_owned(), options: options.engine_options.clone() },
        depth: depth(options, &io),
        time: TimePlan {
            rate: rate::plan(section, &io)?,
            time_based: time.time_based && time.runtime.is_some(),
            ..*time
        },
        io,
        measure: measure(options),
        clones: clones::clones(section, first_worker, host)?,
        threads: ThreadPlan {
            request_priorities: priorities::plan(section)?,
            ..options.plan.threads.clone()
        },
        end: end(options),
        replay,
        options: merged(&section.raw_options),
        ..options.plan.clone()
    })
}

/// The engine of a job: the one it names, or `sim` for simulated volumes, or fio's default.
pub(crate) fn engine_name(options: &JobOptions) -> &str {
    let redirect = options.replay.redirect.as_ref().and_then(|path| path.to_str());
    let mut names = options.filename.iter().flatten().map(String::as_str).chain(redirect);
    let mut is_simulated = || names.any(|name| name.starts_with("sim:"));
    match &options.ioengine {
        Some(name) => name,
        None if is_simulated() => "sim",
        None => "psync",
    }
}

fn io(options: &JobOptions) -> IoPlan {
    let ReadWriteOption { random, mix } =
        options.rw.unwrap_or(ReadWriteOption { random: false, mix: Mix::Read });
    let mix = match (mix, options.rwmixread) {
        (Mix::ReadWrite { .. }, Some(read_percent)) => Mix::ReadWrite { read_percent },
        _ => mix,
    };
    let (access, random_map) = access::plan(options);
    IoPlan {
        pattern: Pattern { mix, random },
        block_size: access::block_size(options),
        random_map,
        access,
        direct: options.plan.io.direct || options.plan.files.usage.atomic,
        payload: verify::payload(options),
        ..options.plan.io.clone()
    }
}

/// Batch sizes above the depth are limited to it; 0 means the depth, except for the completions to wait for.
fn depth(options: &JobOptions, io: &IoPlan) -> DepthPlan {
    let depth = options.iodepth.unwrap_or(1);
    let largest = io.block_size.iter().map(|(_, size)| size.largest()).max().unwrap_or(0);
    // Adjacent requests are submitted one by one, as those of sequential jobs.
    let is_scattered =
        io.pattern.random && io.access.run <= 1 && io.access.percentage_random == PerOp::splat(100);
    let mut defaults = DepthPlan::batched(depth, is_scattered, largest);
    if !io.direct && matches!(options.ioengine.as_deref(), Some("libaio" | "linuxaio")) {
        // The kernel executes these requests while they are submitted. Reads of more than two it leaves to another thread to begin,
        // which a busy CPU delays by milliseconds.
        defaults.batch_submit = defaults.batch_submit.min(2);
        defaults.batch_submit_inline = defaults.batch_submit_inline.min(2);
    }
    let within = |given: Option<u32>, default: u32| match given {
        None => default,
        Some(0) => depth,
        Some(count) => count.min(depth),
    };
    let min = options.iodepth_batch_complete_min.unwrap_or(defaults.batch_complete_min).min(depth);
    let batch_submit = within(options.iodepth_batch, defaults.batch_submit);
    let max = match options.iodepth_batch_complete_max {
        None => defaults.batch_complete_max,
        Some(0) => min.max(1),
        Some(count) => count.clamp(min.max(1), depth),
    };
    let given =
        [options.iodepth_batch, options.iodepth_batch_complete_min, options.iodepth_batch_complete_max];
    let batch_submit_inline = match given {
        [None, None, None] => defaults.batch_submit_inline,
        _ => batch_submit,
    };
    DepthPlan {
        iodepth: depth,
        batch_submit,
        batch_submit_inline,
        batch_complete_min: min,
        batch_complete_max: max,
        low: within(options.iodepth_low, defaults.low),
    }
}

/// Conditions of the end, with fio's defaults for those that are used.
fn end(options: &JobOptions) -> EndPlan {
    let mut end = options.plan.end.clone();
    if end.steady_state.duration > Nanos::ZERO {
        let default = SteadyStatePlan {
            figure: SteadyFigure::Iops,
            slope: true,
            limit: 0.01,
            percent: true,
            ..SteadyStatePlan::default()
        };
        let SteadyStatePlan { duration, ramp, interval, .. } = end.steady_state;
        let interval = if interval == Nanos::ZERO { Nanos::from_secs(1) } else { interval };
        end.steady_state =
            SteadyStatePlan { duration, ramp, interval, ..options.steady_state.unwrap_or(default) };
    }
    let target = &mut end.latency_target;
    if target.target > Nanos::ZERO {
        target.window = if target.window == Nanos::ZERO { Nanos::from_millis(100) } else { target.window };
    }
    if target.percentile == 0.0 {
        target.percentile = 100.0;
    }
    let cycle = &mut end.least_rates.cycle;
    *cycle = if *cycle == Nanos::ZERO { Nanos::from_secs(1) } else { *cycle };
    end
}

/// Percentiles are shown only for recorded latencies; `gtod_reduce` omits all of them.
fn measure(options: &JobOptions) -> MeasurePlan {
    let asked = &options.plan.measure;
    let recorded = |disabled: Option<bool>| !disabled.or(options.gtod_reduce).unwrap_or(false);
    let (slat, clat) = (recorded(options.disable_slat), recorded(options.disable_clat));
    // As in fio, requests on names have a completion latency alone.
    let lat = recorded(options.disable_lat) && !engines::acts_on_names(engine_name(options));
    MeasurePlan {
        slat,
        clat,
        lat,
        bandwidth: recorded(options.disable_bw),
        slat_percentiles: slat && asked.slat_percentiles,
        clat_percentiles: clat && asked.clat_percentiles,
        lat_percentiles: lat && asked.lat_percentiles,
        logs: LogPlan {
            clock: options.log_alternate_epoch.filter(|&on| on).map(|_| options.log_clock_id.unwrap_or(0)),
            ..asked.logs.clone()
        },
        ..asked.clone()
    }
}

/// Each name once, with its last value; file names add up and are joined.
pub(crate) fn merged(options: &RawOptions) -> RawOptions {
    let mut merged = RawOptions::new();
    for (name, value) in options {
        match merged.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) if name == "filename" => {
                known.push(':');
                known.push_str(value);
            }
            Some((_, known)) => known.clone_from(value),
            None => merged.push((name.clone(), value.clone())),
        }
    }
    merged
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
