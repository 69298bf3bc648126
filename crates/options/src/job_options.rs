//! `JobOptions`: exactly what was said about one job, and nothing else.
//!
//! Defaults live in `resolve`, which turns this into a plan; here `None` means "not said".

use fathom_model::plan::{Fallocate, Mix, OpenSync, SizeSpec, ThinkTime};
use fathom_model::{BlockSize, Nanos, PerOp, RateProcess};

use crate::error::OptionError;
use crate::section::apply_pair;

/// What was said about one job. `Default` is a job about which nothing was said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobOptions {
    /// Reported name, where it differs from the section's.
    pub name: Option<String>,
    /// Free text.
    pub description: Option<String>,
    /// The targets.
    pub filename: Option<Vec<String>>,
    /// The names in `filename` were said for all jobs; the job's own replace them instead of adding to them.
    pub filename_is_inherited: bool,
    /// Prefixes of the targets, spread over the clones.
    pub directory: Option<Vec<String>>,
    /// Template of made-up file names.
    pub filename_format: Option<String>,
    /// Files per clone.
    pub nrfiles: Option<u32>,
    /// Operations and order.
    pub rw: Option<ReadWriteOption>,
    /// Bytes per request.
    pub bs: PerOp<Option<u64>>,
    /// Mixed sizes, which go before `bs`.
    pub bssplit: PerOp<Option<BlockSize>>,
    /// Bytes of the target that are used; 0 bytes stands for "all".
    pub size: Option<SizeSpec>,
    /// Bytes to move.
    pub io_size: Option<SizeSpec>,
    /// Bytes per file.
    pub filesize: Option<u64>,
    /// Start of the used range.
    pub offset: Option<SizeSpec>,
    /// Added to the offset per clone.
    pub offset_increment: Option<SizeSpec>,
    /// Requests in flight.
    pub iodepth: Option<u32>,
    /// Most requests per submission; 0 = the depth.
    pub iodepth_batch: Option<u32>,
    /// Completions waited for.
    pub iodepth_batch_complete_min: Option<u32>,
    /// Most completions taken at once; 0 = the minimum.
    pub iodepth_batch_complete_max: Option<u32>,
    /// Refill mark; 0 = the depth.
    pub iodepth_low: Option<u32>,
    /// Engine, by its registered name once the engines are known.
    pub ioengine: Option<String>,
    /// The engine's private options, canonical names; a bare flag is `1`.
    pub engine_options: Vec<(String, String)>,
    /// O_DIRECT.
    pub direct: Option<bool>,
    /// Clones.
    pub numjobs: Option<u32>,
    /// Threads instead of processes.
    pub thread: Option<bool>,
    /// Longest time to run; zero = no limit.
    pub runtime: Option<Nanos>,
    /// Go on until `runtime` is over.
    pub time_based: Option<bool>,
    /// Unmeasured time at the start.
    pub ramp_time: Option<Nanos>,
    /// Wait before the start, drawn from a range.
    pub startdelay: Option<(Nanos, Nanos)>,
    /// One report entry for the group.
    pub group_reporting: Option<bool>,
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
    /// fsync after this many writes.
    pub fsync: Option<u32>,
    /// fdatasync after this many writes.
    pub fdatasync: Option<u32>,
    /// fsync at the end.
    pub end_fsync: Option<bool>,
    /// O_SYNC or O_DSYNC.
    pub sync: Option<OpenSync>,
    /// Fresh random data for every write.
    pub refill_buffers: Option<bool>,
    /// Stamp each block.
    pub scramble_buffers: Option<bool>,
    /// Write zeroes.
    pub zero_buffers: Option<bool>,
    /// Drop the page cache first.
    pub invalidate: Option<bool>,
    /// Leave out latencies and bandwidth samples.
    pub gtod_reduce: Option<bool>,
    /// Leave out total latencies.
    pub disable_lat: Option<bool>,
    /// Leave out completion latencies.
    pub disable_clat: Option<bool>,
    /// Leave out submission latencies.
    pub disable_slat: Option<bool>,
    /// Leave out bandwidth samples.
    pub disable_bw: Option<bool>,
    /// Which percentiles, ascending.
    pub percentile_list: Option<Vec<f64>>,
    /// Percentiles of completion latencies.
    pub clat_percentiles: Option<bool>,
    /// Percentiles of total latencies.
    pub lat_percentiles: Option<bool>,
    /// Percentiles of submission latencies.
    pub slat_percentiles: Option<bool>,
    /// Repetitions; 0 counts as 1.
    pub loops: Option<u32>,
    /// The first job to end stops the others.
    pub exitall: Option<bool>,
    /// Failed reads, and failed writes, do not end the job.
    pub continue_on_error: Option<(bool, bool)>,
    /// CPUs, ascending.
    pub cpus_allowed: Option<Vec<usize>>,
    /// How the clones share the CPUs.
    pub cpus_allowed_policy: Option<CpuPolicy>,
    /// Remove the files at the end.
    pub unlink: Option<bool>,
    /// How files get their size.
    pub fallocate: Option<Fallocate>,
    /// Pauses between requests.
    pub think_time: ThinkTime,
    /// Bytes per second; 0 = no limit.
    pub rate: PerOp<Option<u64>>,
    /// Requests per second; 0 = no limit.
    pub rate_iops: PerOp<Option<u64>>,
    /// How the requests of a rate are spread.
    pub rate_process: Option<RateProcess>,
    /// Lay out before writing as well.
    pub overwrite: Option<bool>,
    /// Only lay out.
    pub create_only: Option<bool>,
    /// Files may be made.
    pub allow_file_create: Option<bool>,
    /// Write to a mounted device.
    pub allow_mounted_write: Option<bool>,
}

/// The value of `rw`; the share of reads comes from `rwmixread`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadWriteOption {
    /// Random offsets.
    pub random: bool,
    /// Operations; `ReadWrite` carries the default share.
    pub mix: Mix,
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
    /// The options said by `pairs` of name (or alias) and value; flags take an empty value. Fails as the command
    /// line does. Knows no engines: `Section::from_pairs` takes their private options as well.
    pub fn from_pairs(pairs: &[(&str, &str)]) -> Result<JobOptions, OptionError> {
        let mut options = JobOptions::default();
        for (name, value) in pairs {
            apply_pair(&mut options, name, value)?;
        }
        Ok(options)
    }

    /// What a job starts from when these options were said for all jobs.
    pub fn inherited(&self) -> JobOptions {
        JobOptions { filename_is_inherited: self.filename.is_some(), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_go_through_the_rows() {
        let options =
            JobOptions::from_pairs(&[("readwrite", "randread"), ("bs", "4k"), ("time_based", "")]).unwrap();
        assert_eq!(options.rw, Some(ReadWriteOption { random: true, mix: Mix::Read }));
        assert_eq!(options.bs, PerOp::splat(Some(4096)));
        assert_eq!(options.time_based, Some(true));
        assert_eq!(options.size, None);
        assert!(JobOptions::from_pairs(&[("iodpeth", "4")]).is_err());
        assert!(JobOptions::from_pairs(&[("direct", "")]).is_err());
    }
}
