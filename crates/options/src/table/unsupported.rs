//! Options of fio that are not supported yet: known by name, so that they are refused as such and never ignored.
//!
//! A value that changes nothing (`stats=1`) is no reason to refuse a job file: such values are in `inert` and
//! accepted.

/// A row of the table of refused options.
pub struct UnsupportedOption {
    /// fio's canonical name.
    pub name: &'static str,
    /// Other names for the same option.
    pub aliases: &'static [&'static str],
    /// It may be given without a value.
    pub flag: bool,
    /// Values that change nothing.
    pub inert: &'static [&'static str],
    /// The remedy.
    pub instead: &'static str,
}

const fn row(name: &'static str) -> UnsupportedOption {
    UnsupportedOption { name, aliases: &[], flag: false, inert: &[], instead: "" }
}

/// fio's options that are refused.
pub const UNSUPPORTED: &[UnsupportedOption] = &[
    UnsupportedOption {
        inert: &["completed"],
        instead: "use end_fsync=1, so that completed writes are on the medium when the state is saved",
        ..row("verify_policy")
    },
    UnsupportedOption { inert: &["1"], instead: "omit it: a trim has one range", ..row("num_range") },
    UnsupportedOption {
        inert: &["0"],
        instead: "read the errors of trims by their number in the JSON report",
        ..row("block_error_percentiles")
    },
    UnsupportedOption { inert: &["0"], instead: "use `fathom prepare`", ..row("sprandom") },
    UnsupportedOption {
        inert: &["0"],
        instead: "use write_hint, which NVMe drives map to placement",
        ..row("fdp")
    },
    UnsupportedOption {
        aliases: &["data_placement"],
        inert: &["none"],
        instead: "use write_hint, which NVMe drives map to placement",
        ..row("dataplacement")
    },
    UnsupportedOption {
        instead: "replay each trace with read_iolog, in a job of its own",
        ..row("merge_blktrace_file")
    },
    UnsupportedOption { instead: "use the profiles of `fathom bench`", ..row("profile") },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_are_short_ascii_clauses() {
        for row in UNSUPPORTED {
            assert!(
                !row.instead.is_empty() && row.instead.is_ascii() && !row.instead.ends_with('.'),
                "{}",
                row.name
            );
        }
    }
}
