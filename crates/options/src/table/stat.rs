//! Options about recorded latencies and the report.

use fathom_model::{OptionRow, OptionValueKind};

use super::set;
use crate::job_options::JobOptions;
use crate::value;

/// The rows of this category.
pub(super) const ROWS: &[OptionRow<JobOptions>] = &[
    OptionRow {
        name: "group_reporting",
        aliases: &[],
        kind: OptionValueKind::Flag,
        default: "0",
        doc: "Report all clones and jobs of a group as one.",
        apply: |options, text| set(&mut options.group_reporting, value::boolean(text)),
    },
    OptionRow {
        name: "new_group",
        aliases: &[],
        kind: OptionValueKind::Flag,
        default: "0",
        doc: "Start a new reporting group with this job.",
        apply: |options, text| set(&mut options.new_group, value::boolean(text)),
    },
    OptionRow {
        name: "gtod_reduce",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Omit all latencies and bandwidth samples, and with them most clock reads.",
        apply: |options, text| set(&mut options.gtod_reduce, value::boolean(text)),
    },
    OptionRow {
        name: "disable_lat",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Omit total latencies.",
        apply: |options, text| set(&mut options.disable_lat, value::boolean(text)),
    },
    OptionRow {
        name: "disable_clat",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Omit completion latencies.",
        apply: |options, text| set(&mut options.disable_clat, value::boolean(text)),
    },
    OptionRow {
        name: "disable_slat",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Omit submission latencies.",
        apply: |options, text| set(&mut options.disable_slat, value::boolean(text)),
    },
    OptionRow {
        name: "disable_bw_measurement",
        aliases: &["disable_bw"],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Omit bandwidth and IOPS samples.",
        apply: |options, text| set(&mut options.disable_bw, value::boolean(text)),
    },
    OptionRow {
        name: "clat_percentiles",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "1",
        doc: "Report percentiles of completion latencies.",
        apply: |options, text| set(&mut options.clat_percentiles, value::boolean(text)),
    },
    OptionRow {
        name: "lat_percentiles",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Report percentiles of total latencies.",
        apply: |options, text| set(&mut options.lat_percentiles, value::boolean(text)),
    },
    OptionRow {
        name: "slat_percentiles",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Report percentiles of submission latencies.",
        apply: |options, text| set(&mut options.slat_percentiles, value::boolean(text)),
    },
    OptionRow {
        name: "percentile_list",
        aliases: &[],
        kind: OptionValueKind::Floats,
        default: "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99",
        doc: "Percentiles to report, at most 20 between 0 and 100, separated by colons.",
        apply: |options, text| set(&mut options.percentile_list, value::percentiles(text)),
    },
];

#[cfg(test)]
mod tests {
    use fathom_model::plan::DEFAULT_PERCENTILES;

    use super::*;

    #[test]
    fn values() {
        let check = |pair, field: fn(&JobOptions) -> bool| {
            assert!(field(&JobOptions::from_pairs(&[pair]).unwrap()), "{pair:?}");
        };
        check(("group_reporting", ""), |o| o.group_reporting == Some(true));
        check(("new_group", "1"), |o| o.new_group == Some(true));
        check(("gtod_reduce", "1"), |o| o.gtod_reduce == Some(true));
        check(("disable_lat", "1"), |o| o.disable_lat == Some(true));
        check(("disable_clat", "1"), |o| o.disable_clat == Some(true));
        check(("disable_slat", "1"), |o| o.disable_slat == Some(true));
        check(("disable_bw", "1"), |o| o.disable_bw == Some(true));
        check(("clat_percentiles", "0"), |o| o.clat_percentiles == Some(false));
        check(("lat_percentiles", "1"), |o| o.lat_percentiles == Some(true));
        check(("slat_percentiles", "1"), |o| o.slat_percentiles == Some(true));
        check(("percentile_list", "99:50"), |o| o.percentile_list == Some(vec![50.0, 99.0]));
        for bad in [("percentile_list", "99:101"), ("percentile_list", ""), ("gtod_reduce", "")] {
            assert!(JobOptions::from_pairs(&[bad]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_default_percentiles_are_those_of_the_plan() {
        let row = ROWS.iter().find(|row| row.name == "percentile_list").unwrap();
        assert_eq!(value::percentiles(row.default).unwrap(), DEFAULT_PERCENTILES);
    }
}
