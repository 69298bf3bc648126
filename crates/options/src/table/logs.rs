//! Options about log files.

use fathom_model::Nanos;
use fathom_model::OptionValueKind::{Choice, Int, LogName};
use fathom_model::plan::WindowValues;

use super::{JobOption, count, int, row, set, switch};
use crate::value;

const VALUES: [(&str, WindowValues); 5] = [
    ("avg", WindowValues::Mean),
    ("max", WindowValues::Greatest),
    ("both", WindowValues::Both),
    ("0", WindowValues::Mean),
    ("1", WindowValues::Greatest),
];

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

pub(super) const ROWS: &[JobOption] = &[
    row("write_bw_log", LogName, |options, text| name(&mut options.plan.measure.logs.bandwidth, text))
        .doc("Log bandwidth to NAME_bw.N.log, N counting all clones from 1."),
    row("write_lat_log", LogName, |options, text| name(&mut options.plan.measure.logs.latency, text))
        .doc("Log latencies to NAME_slat.N.log, NAME_clat.N.log and NAME_lat.N.log."),
    row("write_iops_log", LogName, |options, text| name(&mut options.plan.measure.logs.iops, text))
        .doc("Log IOPS to NAME_iops.N.log."),
    row("write_hist_log", LogName, |options, text| name(&mut options.plan.measure.logs.histogram, text))
        .doc("Log histograms of completion latencies to NAME_clat_hist.N.log."),
    row("log_avg_msec", Int, |options, text| {
        millis(text).map(|window| options.plan.measure.logs.window = window)
    })
    .default("0")
    .doc("Log a line per this many milliseconds instead of one per request."),
    row("log_hist_msec", Int, |options, text| {
        millis(text).map(|window| options.plan.measure.logs.histogram_window = window)
    })
    .default("0")
    .doc("Log a histogram per this many milliseconds; 0 logs one at the end."),
    int("log_hist_coarseness", 0..=6, |options, power| {
        options.plan.measure.logs.histogram_coarseness = power as u8
    })
    .default("0")
    .doc("Combine bins of logged histograms, 2 to the power of this into one; 0 to 6."),
    row("log_window_value", Choice(&["avg", "max", "both", "0", "1"]), |options, text| {
        value::choice(text, &VALUES).map(|values| options.plan.measure.logs.values = values)
    })
    .aliases(&["log_max_value"])
    .default("avg")
    .doc("Log the mean of a window, its greatest value, or both in two columns."),
    switch("log_offset", |options, offset| options.plan.measure.logs.offset = offset)
        .doc("Add a column with the offset of each request."),
    switch("log_prio", |options, priority| options.plan.measure.logs.priority = priority)
        .doc("Log the I/O priority in hexadecimal instead of whether it is high."),
    switch("log_issue_time", |options, issue_time| options.plan.measure.logs.issue_time = issue_time).doc(
        "Add a column with the time at which each request was issued, in nanoseconds since the \
              start; 0 in logs of other values than slat and clat.",
    ),
    switch("log_store_compressed", |options, compressed| options.plan.measure.logs.compressed = compressed)
        .doc("Compress the log files, with .fz after their names; --inflate-log prints one."),
    switch("log_alternate_epoch", |options, on| options.log_alternate_epoch = Some(on))
        .aliases(&["log_unix_epoch"])
        .doc("Log times of the clock log_alternate_epoch_clock_id instead of those since the start."),
    count("log_alternate_epoch_clock_id", 0, |options, count| options.log_clock_id = Some(count))
        .default("0")
        .doc("Number of the clock for log_alternate_epoch; 0 is the time of day."),
    switch("per_job_logs", |options, own| options.plan.measure.logs.shared = !own)
        .default("1")
        .doc("Write a file per clone; 0 writes one for all clones, without a number in its name."),
    row("bwavgtime", Int, |options, text| {
        sample(text).map(|span| options.plan.measure.logs.bandwidth_window = span)
    })
    .default("500")
    .doc(
        "Milliseconds of a bandwidth sample in reports, at least 500; logs have their window by \
              log_avg_msec.",
    ),
    row("iopsavgtime", Int, |options, text| {
        sample(text).map(|span| options.plan.measure.logs.iops_window = span)
    })
    .default("500")
    .doc(
        "Milliseconds of an IOPS sample in reports, at least 500; logs have their window by \
              log_avg_msec.",
    ),
];

#[cfg(test)]
mod tests {
    use crate::section::Section;

    #[test]
    fn a_log_without_a_name_is_one_and_needs_a_value_on_a_command_line() {
        let section = Section::from_pairs("job", &[("write_iops_log", "")], &[]).unwrap();
        assert_eq!(section.options.plan.measure.logs.iops.as_deref(), Some(""));
        assert_eq!(section.command_line(), "fio --name=job --write_iops_log=");
    }
}
