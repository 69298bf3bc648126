//! Options about log files.

use fathom_model::plan::WindowValues;
use fathom_model::{Nanos, OptionRow, OptionValueKind};

use super::set;
use crate::job_options::JobOptions;
use crate::value;

const VALUES: [(&str, WindowValues); 5] = [
    ("avg", WindowValues::Mean),
    ("max", WindowValues::Greatest),
    ("both", WindowValues::Both),
    ("0", WindowValues::Mean),
    ("1", WindowValues::Greatest),
];

const fn row(
    name: &'static str,
    kind: OptionValueKind,
    default: &'static str,
    doc: &'static str,
    apply: fn(&mut JobOptions, &str) -> Result<(), String>,
) -> OptionRow<JobOptions> {
    OptionRow { name, aliases: &[], kind, default, doc, apply }
}

/// A name; none means that of the job.
fn name(field: &mut Option<String>, text: &str) -> Result<(), String> {
    set(field, Ok(text.trim().to_owned()))
}

fn millis(text: &str) -> Result<Nanos, String> {
    value::integer(text).map(Nanos::from_millis)
}

/// The length of a sample.
fn sample(text: &str) -> Result<Nanos, String> {
    value::integer_in(text, 1, u64::MAX / 1_000_000).map(Nanos::from_millis)
}

/// The rows of this category.
pub(super) const ROWS: &[OptionRow<JobOptions>] = &[
    row(
        "write_bw_log",
        OptionValueKind::LogName,
        "",
        "Log bandwidth to NAME_bw.N.log, N counting all clones from 1.",
        |options, text| name(&mut options.logs.bandwidth, text),
    ),
    row(
        "write_lat_log",
        OptionValueKind::LogName,
        "",
        "Log latencies to NAME_slat.N.log, NAME_clat.N.log and NAME_lat.N.log.",
        |options, text| name(&mut options.logs.latency, text),
    ),
    row("write_iops_log", OptionValueKind::LogName, "", "Log IOPS to NAME_iops.N.log.", |options, text| {
        name(&mut options.logs.iops, text)
    }),
    row(
        "write_hist_log",
        OptionValueKind::LogName,
        "",
        "Log histograms of completion latencies to NAME_clat_hist.N.log.",
        |options, text| name(&mut options.logs.histogram, text),
    ),
    row(
        "log_avg_msec",
        OptionValueKind::Int,
        "0",
        "Log a line per this many milliseconds instead of one per request.",
        |options, text| millis(text).map(|window| options.logs.window = window),
    ),
    row(
        "log_hist_msec",
        OptionValueKind::Int,
        "0",
        "Log a histogram per this many milliseconds; 0 logs one at the end.",
        |options, text| millis(text).map(|window| options.logs.histogram_window = window),
    ),
    row(
        "log_hist_coarseness",
        OptionValueKind::Int,
        "0",
        "Combine bins of logged histograms, 2 to the power of this into one; 0 to 6.",
        |options, text| {
            value::integer_in(text, 0, 6).map(|power| options.logs.histogram_coarseness = power as u8)
        },
    ),
    OptionRow {
        aliases: &["log_max_value"],
        ..row(
            "log_window_value",
            OptionValueKind::Choice(&["avg", "max", "both", "0", "1"]),
            "avg",
            "Log the mean of a window, its greatest value, or both in two columns.",
            |options, text| value::choice(text, &VALUES).map(|values| options.logs.values = values),
        )
    },
    row(
        "log_offset",
        OptionValueKind::Bool,
        "0",
        "Add a column with the offset of each request.",
        |options, text| value::boolean(text).map(|offset| options.logs.offset = offset),
    ),
    row(
        "log_prio",
        OptionValueKind::Bool,
        "0",
        "Log the I/O priority in hexadecimal instead of whether it is high.",
        |options, text| value::boolean(text).map(|priority| options.logs.priority = priority),
    ),
    row(
        "log_issue_time",
        OptionValueKind::Bool,
        "0",
        "Add a column with the time at which each request was issued, in nanoseconds since the start; 0 in logs of other values than slat and clat.",
        |options, text| value::boolean(text).map(|issue_time| options.logs.issue_time = issue_time),
    ),
    row(
        "log_store_compressed",
        OptionValueKind::Bool,
        "0",
        "Compress the log files, with .fz after their names; --inflate-log prints one.",
        |options, text| value::boolean(text).map(|compressed| options.logs.compressed = compressed),
    ),
    OptionRow {
        aliases: &["log_unix_epoch"],
        ..row(
            "log_alternate_epoch",
            OptionValueKind::Bool,
            "0",
            "Log times of the clock log_alternate_epoch_clock_id instead of those since the start.",
            |options, text| set(&mut options.log_alternate_epoch, value::boolean(text)),
        )
    },
    row(
        "log_alternate_epoch_clock_id",
        OptionValueKind::Int,
        "0",
        "Number of the clock for log_alternate_epoch; 0 is the time of day.",
        |options, text| set(&mut options.log_clock_id, value::count(text, 0)),
    ),
    row(
        "per_job_logs",
        OptionValueKind::Bool,
        "1",
        "Write a file per clone; 0 writes one for all clones, without a number in its name.",
        |options, text| value::boolean(text).map(|own| options.logs.shared = !own),
    ),
    row(
        "bwavgtime",
        OptionValueKind::Int,
        "500",
        "Milliseconds of a bandwidth sample in reports, at least 500; logs have their window by log_avg_msec.",
        |options, text| sample(text).map(|span| options.logs.bandwidth_window = span),
    ),
    row(
        "iopsavgtime",
        OptionValueKind::Int,
        "500",
        "Milliseconds of an IOPS sample in reports, at least 500; logs have their window by log_avg_msec.",
        |options, text| sample(text).map(|span| options.logs.iops_window = span),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::Section;

    #[test]
    fn values() {
        let options = JobOptions::from_pairs(&[
            ("write_bw_log", "dir/a"),
            ("write_lat_log", ""),
            ("log_avg_msec", "1000"),
            ("log_hist_coarseness", "6"),
            ("log_max_value", "1"),
            ("log_unix_epoch", "1"),
            ("per_job_logs", "0"),
            ("bwavgtime", "250"),
        ])
        .unwrap();
        let logs = &options.logs;
        assert_eq!((logs.bandwidth.as_deref(), logs.latency.as_deref()), (Some("dir/a"), Some("")));
        assert_eq!((logs.window, logs.histogram_coarseness), (Nanos::from_secs(1), 6));
        assert_eq!((logs.values, logs.shared), (WindowValues::Greatest, true));
        assert_eq!(
            (options.log_alternate_epoch, Some(logs.bandwidth_window)),
            (Some(true), Some(Nanos::from_millis(250)))
        );
        for bad in [
            ("log_hist_coarseness", "7"),
            ("log_entries", "12"),
            ("log_compression", "1"),
            ("bwavgtime", "0"),
            ("log_window_value", "median"),
            ("log_avg_msec", ""),
        ] {
            assert!(JobOptions::from_pairs(&[bad]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_log_without_a_name_is_one_and_needs_a_value_on_a_command_line() {
        let section = Section::from_pairs("job", &[("write_iops_log", "")], &[]).unwrap();
        assert_eq!(section.options.logs.iops.as_deref(), Some(""));
        assert_eq!(section.command_line(), "fio --name=job --write_iops_log=");
    }
}
