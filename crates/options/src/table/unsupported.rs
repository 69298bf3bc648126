//! Options of fio that are not supported yet: known by name, so that they are refused as such and never ignored.
//!
//! A value that changes nothing (`verify=0`) is no reason to refuse a job file: such values are in `inert` and
//! accepted.

/// A row of the table of refused options.
pub struct UnsupportedOption {
    /// fio's canonical name.
    pub name: &'static str,
    /// Other names for the same option.
    pub aliases: &'static [&'static str],
    /// How widely it is used: 1 = in most job files, 2 = useful, 3 = rare.
    pub tier: u8,
    /// It may be given without a value.
    pub flag: bool,
    /// Values that change nothing.
    pub inert: &'static [&'static str],
    /// The remedy; empty if there is none.
    pub instead: &'static str,
}

const fn row(tier: u8, name: &'static str) -> UnsupportedOption {
    UnsupportedOption { name, aliases: &[], tier, flag: false, inert: &[], instead: "" }
}

/// fio's options that are refused, by tier.
pub const UNSUPPORTED: &[UnsupportedOption] = &[
    UnsupportedOption {
        aliases: &["blocksize_range"],
        instead: "give one size with bs, or the sizes and their shares with bssplit",
        ..row(1, "bsrange")
    },
    UnsupportedOption { inert: &["0"], instead: "limit the bytes with io_size", ..row(1, "number_ios") },
    UnsupportedOption {
        inert: &["tausworthe"],
        instead: "omit it: every block is visited once without a map anyway",
        ..row(1, "random_generator")
    },
    UnsupportedOption {
        inert: &["random"],
        instead: "omit it for a uniform distribution",
        ..row(1, "random_distribution")
    },
    UnsupportedOption {
        inert: &["100"],
        instead: "use a rw=rand... pattern for all requests, or two jobs",
        ..row(1, "percentage_random")
    },
    UnsupportedOption { inert: &["0"], instead: "use end_fsync=1", ..row(1, "fsync_on_close") },
    UnsupportedOption { instead: "use zero_buffers, or omit it for random data", ..row(1, "buffer_pattern") },
    UnsupportedOption {
        instead: "use zero_buffers for fully compressible data, refill_buffers for none",
        ..row(1, "buffer_compress_percentage")
    },
    UnsupportedOption { instead: "use zero_buffers or refill_buffers", ..row(1, "buffer_compress_chunk") },
    UnsupportedOption {
        inert: &["0"],
        instead: "use scramble_buffers=0 for repeating buffers, refill_buffers for unique ones",
        ..row(1, "dedupe_percentage")
    },
    UnsupportedOption { inert: &["0"], instead: "omit it: data is not read back", ..row(1, "verify") },
    UnsupportedOption { inert: &["0", "1"], ..row(1, "do_verify") },
    row(1, "verify_interval"),
    row(1, "verify_pattern"),
    UnsupportedOption { inert: &["0", "1"], ..row(1, "verify_fatal") },
    UnsupportedOption { inert: &["0", "1"], ..row(1, "verify_dump") },
    row(1, "verify_async"),
    row(1, "verify_backlog"),
    row(1, "verify_backlog_batch"),
    UnsupportedOption { inert: &["0", "1"], ..row(1, "verify_state_save") },
    row(1, "verify_state_load"),
    UnsupportedOption { flag: true, ..row(1, "verify_only") },
    UnsupportedOption {
        aliases: &["ratemin"],
        inert: &["0"],
        instead: "check in the JSON report whether rate was sustained",
        ..row(1, "rate_min")
    },
    UnsupportedOption {
        inert: &["0"],
        instead: "check in the JSON report whether rate_iops was sustained",
        ..row(1, "rate_iops_min")
    },
    UnsupportedOption { aliases: &["ratecycle"], ..row(1, "rate_cycle") },
    UnsupportedOption { inert: &["0"], instead: "use thinktime, which sleeps", ..row(1, "thinktime_spin") },
    UnsupportedOption { instead: "run one job per iodepth", ..row(1, "latency_target") },
    row(1, "latency_window"),
    row(1, "latency_percentile"),
    UnsupportedOption { instead: "read the maximum from the report", ..row(1, "max_latency") },
    UnsupportedOption { instead: "use --output-format=json", ..row(1, "write_bw_log") },
    UnsupportedOption { instead: "use --output-format=json", ..row(1, "write_lat_log") },
    UnsupportedOption { instead: "use --output-format=json", ..row(1, "write_iops_log") },
    UnsupportedOption { instead: "use --output-format=json", ..row(1, "write_hist_log") },
    UnsupportedOption { inert: &["0"], ..row(1, "log_avg_msec") },
    UnsupportedOption { inert: &["0"], ..row(1, "log_hist_msec") },
    UnsupportedOption { inert: &["0"], ..row(1, "log_offset") },
    UnsupportedOption { aliases: &["log_unix_epoch"], ..row(1, "log_alternate_epoch") },
    row(1, "per_job_logs"),
    UnsupportedOption { aliases: &["log_max_value"], ..row(1, "log_window_value") },
    UnsupportedOption { inert: &["1"], instead: "omit it", ..row(1, "disk_util") },
    UnsupportedOption { instead: "use cpus_allowed with the CPUs of the node", ..row(1, "numa_cpu_nodes") },
    row(1, "numa_mem_policy"),
    UnsupportedOption { inert: &["0"], instead: "use nice(1)", ..row(1, "nice") },
    UnsupportedOption { instead: "use ionice(1)", ..row(1, "prio") },
    UnsupportedOption { instead: "use ionice(1)", ..row(1, "prioclass") },
    row(1, "openfiles"),
    UnsupportedOption {
        inert: &["roundrobin"],
        instead: "omit it: files are used round-robin",
        ..row(1, "file_service_type")
    },
    UnsupportedOption {
        inert: &["0"],
        instead: "omit it: files are laid out before the start",
        ..row(1, "create_on_open")
    },
    UnsupportedOption { inert: &["1"], ..row(1, "create_serialize") },
    row(1, "fadvise_hint"),
    UnsupportedOption { flag: true, instead: "use exitall", ..row(1, "exitall_on_error") },
    UnsupportedOption { aliases: &["ss"], instead: "use a fixed runtime", ..row(1, "steadystate") },
    UnsupportedOption { aliases: &["ss_dur"], ..row(1, "steadystate_duration") },
    UnsupportedOption { aliases: &["ss_ramp"], ..row(1, "steadystate_ramp_time") },
    UnsupportedOption { inert: &["1024"], instead: "write sizes as k or kib", ..row(1, "kb_base") },
    UnsupportedOption { inert: &["0"], ..row(1, "unit_base") },
    UnsupportedOption {
        inert: &["none", "0"],
        instead: "add the directions up from the JSON report",
        ..row(1, "unified_rw_reporting")
    },
    UnsupportedOption {
        inert: &["clock_gettime"],
        instead: "omit it: the best clock is chosen",
        ..row(1, "clocksource")
    },
    UnsupportedOption {
        aliases: &["iomem"],
        inert: &["malloc"],
        instead: "omit it: buffers are aligned and, where possible, huge pages",
        ..row(1, "mem")
    },
    UnsupportedOption { inert: &["4"], ..row(1, "significant_figures") },
    UnsupportedOption { instead: "use stonewall", ..row(1, "wait_for") },
    row(1, "bwavgtime"),
    row(1, "iopsavgtime"),
    UnsupportedOption { inert: &["0"], ..row(1, "pre_read") },
    UnsupportedOption { inert: &["0"], ..row(2, "serialize_overlap") },
    UnsupportedOption { inert: &["inline"], ..row(2, "io_submit_mode") },
    UnsupportedOption { inert: &["none"], ..row(2, "filetype") },
    UnsupportedOption { inert: &["1"], ..row(2, "unique_filename") },
    UnsupportedOption { instead: "list the files with filename", ..row(2, "opendir") },
    UnsupportedOption {
        aliases: &["blockalign"],
        instead: "omit it: random offsets are aligned to the block size",
        ..row(2, "ba")
    },
    UnsupportedOption { aliases: &["blocksize_unaligned"], flag: true, ..row(2, "bs_unaligned") },
    UnsupportedOption { inert: &["sequential"], ..row(2, "rw_sequencer") },
    UnsupportedOption { aliases: &["fill_fs"], inert: &["0"], ..row(2, "fill_device") },
    UnsupportedOption { inert: &["0"], ..row(2, "file_append") },
    row(2, "offset_align"),
    row(2, "sync_file_range"),
    UnsupportedOption { inert: &["0"], ..row(2, "write_barrier") },
    UnsupportedOption { inert: &["0"], ..row(2, "atomic") },
    row(2, "verify_offset"),
    row(2, "verify_policy"),
    row(2, "verify_pattern_interval"),
    row(2, "verify_write_sequence"),
    row(2, "verify_header_seed"),
    UnsupportedOption { inert: &["0"], ..row(2, "experimental_verify") },
    UnsupportedOption { inert: &["0"], ..row(2, "trim_percentage") },
    row(2, "trim_verify_zero"),
    row(2, "trim_backlog"),
    row(2, "trim_backlog_batch"),
    row(2, "write_iolog"),
    row(2, "read_iolog"),
    UnsupportedOption { inert: &["0"], ..row(2, "replay_no_stall") },
    row(2, "replay_redirect"),
    row(2, "replay_scale"),
    row(2, "replay_align"),
    row(2, "replay_time_scale"),
    UnsupportedOption { instead: "run the command beforehand", ..row(2, "exec_prerun") },
    UnsupportedOption { instead: "run the command afterwards", ..row(2, "exec_postrun") },
    UnsupportedOption { inert: &["none"], ..row(2, "zonemode") },
    row(2, "zonesize"),
    row(2, "zonerange"),
    row(2, "zoneskip"),
    row(2, "num_range"),
    row(2, "random_sequence_stride"),
    UnsupportedOption { instead: "use ramp_time", ..row(2, "ramp_size") },
    UnsupportedOption { inert: &["0"], ..row(2, "thinkcycles") },
    UnsupportedOption {
        inert: &["complete"],
        instead: "use thinktime_blocks",
        ..row(2, "thinktime_blocks_type")
    },
    UnsupportedOption { inert: &["0"], ..row(2, "rate_ignore_thinktime") },
    row(2, "latency_run"),
    UnsupportedOption { inert: &["1"], ..row(2, "create_fsync") },
    UnsupportedOption { inert: &["0"], instead: "use end_fsync=1", ..row(2, "end_syncfs") },
    UnsupportedOption { inert: &["0"], instead: "use unlink=1", ..row(2, "unlink_each_loop") },
    UnsupportedOption {
        inert: &["group"],
        instead: "use exitall, which stops the jobs of the phase",
        ..row(2, "exit_what")
    },
    row(2, "log_compression"),
    row(2, "log_store_compressed"),
    row(2, "log_compression_cpus"),
    row(2, "log_entries"),
    row(2, "log_prio"),
    row(2, "log_issue_time"),
    row(2, "log_alternate_epoch_clock_id"),
    row(2, "log_hist_coarseness"),
    UnsupportedOption { inert: &["0"], ..row(2, "block_error_percentiles") },
    UnsupportedOption { inert: &["1"], ..row(2, "stats") },
    UnsupportedOption { inert: &["repeat"], ..row(2, "dedupe_mode") },
    row(2, "dedupe_working_set_percentage"),
    row(2, "dedupe_global"),
    UnsupportedOption { aliases: &["ss_interval"], ..row(2, "steadystate_check_interval") },
    row(2, "gtod_cpu"),
    UnsupportedOption { instead: "use cpus_allowed", ..row(2, "cpumask") },
    UnsupportedOption { inert: &["0"], ..row(2, "flow") },
    row(2, "flow_id"),
    row(2, "flow_sleep"),
    UnsupportedOption { inert: &["none"], ..row(2, "write_hint") },
    UnsupportedOption { inert: &["0"], ..row(2, "error_dump") },
    UnsupportedOption { inert: &["none"], ..row(2, "lockfile") },
    row(2, "lockmem"),
    row(3, "hugepage-size"),
    row(2, "ignore_error"),
    row(2, "job_start_clock_id"),
    row(2, "priohint"),
    row(3, "sprandom"),
    row(3, "read_iolog_chunked"),
    row(3, "replay_skip"),
    row(3, "merge_blktrace_file"),
    row(3, "merge_blktrace_scalars"),
    row(3, "merge_blktrace_iters"),
    UnsupportedOption { instead: "set it in /sys/block/DEVICE/queue/scheduler", ..row(3, "ioscheduler") },
    row(3, "zonecapacity"),
    row(3, "read_beyond_wp"),
    row(3, "max_open_zones"),
    row(3, "job_max_open_zones"),
    row(3, "ignore_zone_limits"),
    row(3, "zone_reset_threshold"),
    row(3, "zone_reset_frequency"),
    row(3, "recover_zbd_write_error"),
    row(3, "write_zone_remainder"),
    UnsupportedOption { inert: &["0"], ..row(3, "fdp") },
    UnsupportedOption { aliases: &["data_placement"], inert: &["none"], ..row(3, "dataplacement") },
    UnsupportedOption { aliases: &["fdp_pli_select"], ..row(3, "plid_select") },
    UnsupportedOption { aliases: &["fdp_pli"], ..row(3, "plids") },
    row(3, "dp_scheme"),
    row(3, "comm"),
    row(3, "profile"),
    UnsupportedOption { instead: "start it in that group", ..row(3, "cgroup") },
    row(3, "cgroup_nodelete"),
    row(3, "cgroup_weight"),
    UnsupportedOption { instead: "start it as that user", ..row(3, "uid") },
    UnsupportedOption { instead: "start it as that group", ..row(3, "gid") },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_are_short_ascii_clauses() {
        for row in UNSUPPORTED {
            assert!((1..=3).contains(&row.tier), "{}", row.name);
            assert!(row.instead.is_ascii() && !row.instead.ends_with('.'), "{}", row.name);
        }
    }
}
