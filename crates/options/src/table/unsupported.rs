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
        inert: &["completed"],
        instead: "use end_fsync=1, so that completed writes are on the medium when the state is saved",
        ..row(2, "verify_policy")
    },
    UnsupportedOption { inert: &["1"], instead: "omit it: a trim has one range", ..row(2, "num_range") },
    UnsupportedOption {
        inert: &["0"],
        instead: "compress the log files afterwards, for example with gzip",
        ..row(2, "log_store_compressed")
    },
    UnsupportedOption {
        inert: &["0"],
        instead: "read the errors of trims by their number in the JSON report",
        ..row(2, "block_error_percentiles")
    },
    UnsupportedOption { inert: &["0"], instead: "use `fathom prepare`", ..row(3, "sprandom") },
    UnsupportedOption {
        inert: &["0"],
        instead: "use write_hint, which NVMe drives map to placement",
        ..row(3, "fdp")
    },
    UnsupportedOption {
        aliases: &["data_placement"],
        inert: &["none"],
        instead: "use write_hint, which NVMe drives map to placement",
        ..row(3, "dataplacement")
    },
    UnsupportedOption { instead: "use the profiles of `fathom bench`", ..row(3, "profile") },
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
