//! Options about recorded latencies and the report.

use fathom_model::OptionValueKind::{Choice, Floats};
use fathom_model::plan::UnifiedReporting;

use super::{JobOption, flag, int, row, switch};
use crate::value;

const UNIFIED: [(&str, UnifiedReporting); 6] = [
    ("none", UnifiedReporting::None),
    ("mixed", UnifiedReporting::Mixed),
    ("both", UnifiedReporting::Both),
    ("0", UnifiedReporting::None),
    ("1", UnifiedReporting::Mixed),
    ("2", UnifiedReporting::Both),
];

pub(super) const ROWS: &[JobOption] = &[
    flag("group_reporting", |options, on| options.plan.group_reporting = on)
        .doc("Report all clones and jobs of a group as one."),
    flag("new_group", |options, on| options.new_group = Some(on))
        .doc("Start a new reporting group with this job."),
    switch("gtod_reduce", |options, on| options.gtod_reduce = Some(on))
        .doc("Omit all latencies and bandwidth samples, and with them most clock reads."),
    switch("disable_lat", |options, on| options.disable_lat = Some(on)).doc("Omit total latencies."),
    switch("disable_clat", |options, on| options.disable_clat = Some(on)).doc("Omit completion latencies."),
    switch("disable_slat", |options, on| options.disable_slat = Some(on)).doc("Omit submission latencies."),
    switch("disable_bw_measurement", |options, on| options.disable_bw = Some(on))
        .aliases(&["disable_bw"])
        .doc("Omit bandwidth and IOPS samples."),
    switch("clat_percentiles", |options, on| options.plan.measure.clat_percentiles = on)
        .default("1")
        .doc("Report percentiles of completion latencies."),
    switch("lat_percentiles", |options, on| options.plan.measure.lat_percentiles = on)
        .doc("Report percentiles of total latencies."),
    switch("slat_percentiles", |options, on| options.plan.measure.slat_percentiles = on)
        .doc("Report percentiles of submission latencies."),
    row("percentile_list", Floats, |options, text| {
        value::percentiles(text).map(|value| options.plan.measure.percentiles = value)
    })
    .default("1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99")
    .doc("Percentiles to report, at most 20 between 0 and 100, separated by colons."),
    row("unified_rw_reporting", Choice(&["none", "mixed", "both", "0", "1", "2"]), |options, text| {
        value::choice(text, &UNIFIED).map(|value| options.plan.measure.unified = value)
    })
    .default("none")
    .doc("Report all operations as one (mixed), or both ways."),
    row("kb_base", Choice(&["1024", "1000"]), |options, text| {
        value::choice(text, &[("1024", false), ("1000", true)])
            .map(|decimal| options.plan.measure.figures.decimal = decimal)
    })
    .default("1024")
    .doc(
        "Read k as 1024 and kib as 1000, or the other way round; report in powers of the same base \
              first.",
    ),
    row("unit_base", Choice(&["0", "8", "1"]), |options, text| {
        value::choice(text, &[("0", false), ("8", false), ("1", true)])
            .map(|bits| options.plan.measure.figures.bits = bits)
    })
    .default("0")
    .doc("Report rates in bytes (8, and 0 for all engines) or bits (1)."),
    int("significant_figures", 1..=10, |options, digits| options.plan.measure.figures.digits = digits as u8)
        .default("4")
        .doc("Digits of rates and sizes in the normal output, 1 to 10."),
    switch("disk_util", |options, on| options.plan.measure.disk_util = on)
        .default("1")
        .doc("Report the counters of the devices under the targets."),
    switch("stats", |options, on| options.plan.measure.stats = on)
        .default("1")
        .doc("Report the job; 0 leaves it out of the report."),
];

#[cfg(test)]
mod tests {
    use fathom_model::plan::DEFAULT_PERCENTILES;

    use super::*;

    #[test]
    fn the_default_percentiles_are_those_of_the_plan() {
        let row = ROWS.iter().find(|row| row.name == "percentile_list").unwrap();
        assert_eq!(value::percentiles(row.default).unwrap(), DEFAULT_PERCENTILES);
    }
}
