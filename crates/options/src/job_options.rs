//! `JobOptions`: the options given for one job, and nothing else.
//!
//! `resolve` turns them into a plan and applies defaults; here `None` means "not given".

use fathom_model::plan::{FillPattern, Mix, ReplayPlan, SteadyStatePlan, VerifyMethod};
use fathom_model::{BlockSize, JobPlan, PerOp, RateProcess};

use crate::error::OptionError;
use crate::section::apply_pair;

/// The options given for one job. `Default` is a job without options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobOptions {
    /// Reported name, if it differs from the section's.
    pub name: Option<String>,
    /// The targets.
    pub filename: Option<Vec<String>>,
    /// `filename` was given for all jobs; the job's own names replace it instead of adding to it.
    pub filename_is_inherited: bool,
    /// Directories whose files are targets; `Invocation::list_directories` replaces them by names.
    pub opendir: Vec<String>,
    /// Prefixes of the targets, spread over the clones.
    pub directory: Option<Vec<String>>,
    /// Template of generated file names.
    pub filename_format: Option<String>,
    /// Files per clone.
    pub nrfiles: Option<u32>,
    /// Operations and order.
    pub rw: Option<ReadWriteOption>,
    /// Bytes per request.
    pub bs: PerOp<Option<u64>>,
    /// Mixed sizes, which take precedence over `bs`.
    pub bssplit: PerOp<Option<BlockSize>>,
    /// Bounds of sizes, which take precedence over `bs`.
    pub bsrange: PerOp<Option<(u64, u64)>>,
    /// Sizes of `bsrange` are any number of bytes.
    pub bs_unaligned: Option<bool>,
    /// Sizes are those of sequential and random requests.
    pub bs_is_seq_rand: Option<bool>,
    /// Generator of random numbers.
    pub random_generator: Option<RandomGenerator>,
    /// Zones are visited in turn.
    pub strided: Option<bool>,
    /// Requests in flight.
    pub iodepth: Option<u32>,
    /// Most requests per submission; 0 = the depth.
    pub iodepth_batch: Option<u32>,
    /// Completions to wait for.
    pub iodepth_batch_complete_min: Option<u32>,
    /// Most completions per call; 0 = the minimum.
    pub iodepth_batch_complete_max: Option<u32>,
    /// Queue depth at which to refill; 0 = the full depth.
    pub iodepth_low: Option<u32>,
    /// Engine, by its registered name if the engines are known.
    pub ioengine: Option<String>,
    /// The engine's private options, canonical names; a bare flag is `1`.
    pub engine_options: Vec<(String, String)>,
    /// Clones.
    pub numjobs: Option<u32>,
    /// Start a new group.
    pub new_group: Option<bool>,
    /// Wait for all earlier jobs.
    pub stonewall: Option<bool>,
    /// Share of reads in percent.
    pub rwmixread: Option<u8>,
    /// The same random sequence in every run.
    pub randrepeat: Option<bool>,
    /// Seed.
    pub randseed: Option<u64>,
    /// Blocks may repeat.
    pub norandommap: Option<bool>,
    /// Fresh random data for every write.
    pub refill_buffers: Option<bool>,
    /// Stamp each block.
    pub scramble_buffers: Option<bool>,
    /// Write zeroes.
    pub zero_buffers: Option<bool>,
    /// Omit latencies and bandwidth samples.
    pub gtod_reduce: Option<bool>,
    /// Omit total latencies.
    pub disable_lat: Option<bool>,
    /// Omit completion latencies.
    pub disable_clat: Option<bool>,
    /// Omit submission latencies.
    pub disable_slat: Option<bool>,
    /// Omit bandwidth samples.
    pub disable_bw: Option<bool>,
    /// Times in logs are those of a clock.
    pub log_alternate_epoch: Option<bool>,
    /// Number of that clock.
    pub log_clock_id: Option<u32>,
    /// CPUs, ascending.
    pub cpus_allowed: Option<Vec<usize>>,
    /// How the clones share the CPUs.
    pub cpus_allowed_policy: Option<CpuPolicy>,
    /// Remove the files between two loops.
    pub unlink_each_loop: Option<bool>,
    /// Bytes per second; 0 = no limit.
    pub rate: PerOp<Option<u64>>,
    /// Requests per second; 0 = no limit.
    pub rate_iops: PerOp<Option<u64>>,
    /// Distribution of the due times of a rate.
    pub rate_process: Option<RateProcess>,
    /// Name of the job to wait for.
    pub wait_for: Option<String>,
    /// What is steady when the job ends, without the times of `end.steady_state`.
    pub steady_state: Option<SteadyStatePlan>,
    /// The check of data that is read back.
    pub verify: VerifyOptions,
    /// Data of writes.
    pub buffer_pattern: Option<FillPattern>,
    /// Share of the data that compresses, percent.
    pub compress_percent: Option<u8>,
    /// Bytes of a chunk with that share; 0 = the default.
    pub compress_chunk: Option<u32>,
    /// Share of the writes that repeat data, percent.
    pub dedupe_percent: Option<u8>,
    /// What they repeat.
    pub dedupe_mode: Option<DedupeOption>,
    /// Size of the working set in percent.
    pub dedupe_set_percent: Option<u8>,
    /// One working set for all jobs.
    pub dedupe_global: Option<bool>,
    /// Recorded requests that replace those of the job; without recordings, none.
    pub replay: ReplayPlan,
    /// What the plan of the job takes as it is given, the rest being its default.
    pub plan: JobPlan,
}

/// The options of the check of data that is read back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerifyOptions {
    /// How data is checked; `Some(None)` = not at all.
    pub method: Option<Option<VerifyMethod>>,
    /// Read back what was written.
    pub reads_back: Option<bool>,
    /// Bytes between two headers.
    pub interval: Option<u32>,
    /// Position of the header.
    pub offset: Option<u32>,
    /// Data after the header.
    pub pattern: Option<FillPattern>,
    /// Bytes after which the pattern begins anew.
    pub pattern_interval: Option<u32>,
    /// End at the first bad block.
    pub fatal: Option<bool>,
    /// Write bad blocks to files.
    pub dump: Option<bool>,
    /// Writes after which blocks are read back; 0 = at the end.
    pub backlog: Option<u64>,
    /// Blocks to read back at a time; 0 = as many as were written.
    pub backlog_batch: Option<u64>,
    /// Share of the written blocks to trim, percent.
    pub trim_percent: Option<u8>,
    /// Writes between two batches of trims; 0 = no trims.
    pub trim_backlog: Option<u64>,
    /// Trims of a batch; 0 = as many as writes between two.
    pub trim_batch: Option<u64>,
    /// Trimmed blocks must be zeroes.
    pub trim_is_zero: Option<bool>,
    /// Write nothing.
    pub only: Option<bool>,
    /// Check the seed of the header.
    pub header_seed: Option<bool>,
    /// Check the order of writes.
    pub write_sequence: Option<bool>,
    /// Save what was written.
    pub state_save: Option<bool>,
    /// Check what was saved as written.
    pub state_load: Option<bool>,
}

/// The value of `dedupe_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DedupeOption {
    /// Repeat the write before.
    Repeat,
    /// Repeat a block of a working set.
    WorkingSet,
}

/// The value of `rw`; the share of reads comes from `rwmixread`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadWriteOption {
    /// Random offsets.
    pub random: bool,
    /// Operations; `ReadWrite` has the default share.
    pub mix: Mix,
}

/// A generator of random numbers of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomGenerator {
    /// Offsets may repeat unless there is a random map.
    Tausworthe,
    /// Offsets do not repeat.
    Lfsr,
}

/// How clones share the CPUs of `cpus_allowed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuPolicy {
    /// Each may run on all of them.
    #[default]
    Shared,
    /// Each gets one.
    Split,
}

impl JobOptions {
    /// The options in `pairs` of name (or alias) and value; flags take an empty value. Errors are those of the command
    /// line. Private options of engines are unknown here: see `Section::from_pairs`.
    pub fn from_pairs(pairs: &[(&str, &str)]) -> Result<JobOptions, OptionError> {
        let mut options = JobOptions::default();
        for (name, value) in pairs {
            apply_pair(&mut options, name, value)?;
        }
        Ok(options)
    }

    /// The initial options of a job if these were given for all jobs. As in fio, each keeps the name of its section.
    pub fn inherited(&self) -> JobOptions {
        JobOptions { filename_is_inherited: self.filename.is_some(), name: None, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_applied_by_the_option_rows() {
        let options =
            JobOptions::from_pairs(&[("readwrite", "randread"), ("bs", "4k"), ("time_based", "")]).unwrap();
        assert_eq!(options.rw, Some(ReadWriteOption { random: true, mix: Mix::Read }));
        assert_eq!(options.bs, PerOp::splat(Some(4096)));
        assert!(options.plan.time.time_based);
        assert_eq!(options.plan.io.size, None);
        assert!(JobOptions::from_pairs(&[("iodpeth", "4")]).is_err());
        assert!(JobOptions::from_pairs(&[("direct", "")]).is_err());
    }
}
