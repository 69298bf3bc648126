//! Options about recorded latencies and the report.

use fathom_model::plan::UnifiedReporting;
use fathom_model::{OptionRow, OptionValueKind};

use super::set;
use crate::job_options::JobOptions;
use crate::value;

const UNIFIED: [(&str, UnifiedReporting); 6] = [
    ("none", UnifiedReporting::None),
    ("mixed", UnifiedReporting::Mixed),
    ("both", UnifiedReporting::Both),
    ("0", UnifiedReporting::None),
    ("1", UnifiedReporting::Mixed),
    ("2", UnifiedReporting::Both),
];

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
    OptionRow {
        name: "unified_rw_reporting",
        aliases: &[],
        kind: OptionValueKind::Choice(&["none", "mixed", "both", "0", "1", "2"]),
        default: "none",
        doc: "Report all operations as one (mixed), or both ways.",
        apply: |options, text| set(&mut options.unified_rw_reporting, value::choice(text, &UNIFIED)),
    },
    OptionRow {
        name: "kb_base",
        aliases: &[],
        kind: OptionValueKind::Choice(&["1024", "1000"]),
        default: "1024",
        doc: "Read k as 1024 and kib as 1000, or the other way round; report in powers of the same base first.",
        apply: |options, text| {
            value::choice(text, &[("1024", false), ("1000", true)])
                .map(|decimal| options.figures.decimal = decimal)
        },
    },
    OptionRow {
        name: "unit_base",
        aliases: &[],
        kind: OptionValueKind::Choice(&["0", "8", "1"]),
        default: "0",
        doc: "Report rates in bytes (8, and 0 for all engines) or bits (1).",
        apply: |options, text| {
            value::choice(text, &[("0", false), ("8", false), ("1", true)])
                .map(|bits| options.figures.bits = bits)
        },
    },
    OptionRow {
        name: "significant_figures",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "4",
        doc: "Digits of rates and sizes in the normal output, 1 to 10.",
        apply: |options, text| {
            value::integer_in(text, 1, 10).map(|digits| options.figures.digits = digits as u8)
        },
    },
    OptionRow {
        name: "disk_util",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "1",
        doc: "Report the counters of the devices under the targets.",
        apply: |options, text| set(&mut options.disk_util, value::boolean(text)),
    },
    OptionRow {
        name: "stats",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "1",
        doc: "Report the job; 0 leaves it out of the report.",
        apply: |options, text| set(&mut options.stats, value::boolean(text)),
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
        check(("percentile_list", "50,99"), |o| o.percentile_list == Some(vec![50.0, 99.0]));
        check(("significant_figures", "6"), |o| o.figures.digits == 6);
        check(("unit_base", "1"), |o| o.figures.bits);
        check(("stats", "0"), |o| o.stats == Some(false));
        let decimal =
            JobOptions::from_pairs(&[("kb_base", "1000"), ("size", "4k"), ("bs", "1kib,2k")]).unwrap();
        assert_eq!(decimal.size, Some(fathom_model::plan::SizeSpec::Bytes(4000)));
        assert_eq!((decimal.bs.read, decimal.bs.write), (Some(1024), Some(2000)));
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
