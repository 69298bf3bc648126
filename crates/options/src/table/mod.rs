//! The option tables: one option = one row, grouped by category.
//!
//! To add an option, add a row to the slice of its category (and a field to `JobOptions`); lookup, help and the
//! compatibility page follow. An option of fio that is not supported is a row of `UNSUPPORTED`.

mod access;
mod conditions;
mod engine;
mod files;
mod harmless;
mod host;
mod io;
mod logs;
mod replay;
mod stat;
mod threads;
mod time;
mod unsupported;
mod verify;

use fathom_model::OptionRow;

use crate::job_options::JobOptions;

pub use unsupported::{UNSUPPORTED, UnsupportedOption};

/// The category of the options that change nothing.
pub(crate) const HARMLESS: &str = "Accepted without effect";

/// All supported job options by category, in the order of the help.
pub const OPTION_TABLE: &[(&str, &[OptionRow<JobOptions>])] = &[
    ("Files and targets", files::ROWS),
    ("I/O", io::ROWS),
    ("Data and verification", verify::ROWS),
    ("Offsets, sizes and files", access::ROWS),
    ("Engine, depth and placement", engine::ROWS),
    ("Threads and commands", threads::ROWS),
    ("Users, control groups and devices", host::ROWS),
    ("Time and order", time::ROWS),
    ("Conditions", conditions::ROWS),
    ("Measuring and reporting", stat::ROWS),
    ("Logs", logs::ROWS),
    ("Recording and replay", replay::ROWS),
    (HARMLESS, harmless::ROWS),
];

/// The length of a request has 32 bits.
const MAX_BLOCK: u64 = u32::MAX as u64;

/// An option of fio.
#[derive(Clone, Copy)]
pub(crate) enum KnownOption {
    /// Supported.
    Supported(&'static OptionRow<JobOptions>),
    /// Not supported yet.
    Unsupported(&'static UnsupportedOption),
}

impl KnownOption {
    /// Canonical name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            KnownOption::Supported(row) => row.name,
            KnownOption::Unsupported(row) => row.name,
        }
    }

    /// Other names.
    pub(crate) fn aliases(self) -> &'static [&'static str] {
        match self {
            KnownOption::Supported(row) => row.aliases,
            KnownOption::Unsupported(row) => row.aliases,
        }
    }

    /// True if it may be given without a value.
    pub(crate) fn value_is_optional(self) -> bool {
        match self {
            KnownOption::Supported(row) => row.kind.value_is_optional(),
            KnownOption::Unsupported(row) => row.flag,
        }
    }
}

/// All job options of fio.
pub(crate) fn all() -> impl Iterator<Item = KnownOption> {
    let supported = OPTION_TABLE.iter().flat_map(|(_, rows)| rows.iter()).map(KnownOption::Supported);
    supported.chain(UNSUPPORTED.iter().map(KnownOption::Unsupported))
}

/// All names of job options, aliases included.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    all().flat_map(|known| std::iter::once(known.name()).chain(known.aliases().iter().copied()))
}

/// The option of this name or alias.
pub(crate) fn find(name: &str) -> Option<KnownOption> {
    all().find(|known| known.name() == name || known.aliases().contains(&name))
}

/// The candidate closest to `word`, if it is close enough to be the intended one.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let length = word.chars().count();
    let limit = length.div_ceil(3).min(4);
    let near = |name: &&str| strsim::osa_distance(word, name);
    // Candidates whose length differs by more are not compared: a word may have a megabyte.
    let best = candidates.filter(|name| name.len().abs_diff(length) <= limit).min_by_key(near)?;
    (near(&best) <= limit).then(|| best.to_owned())
}

/// Stores a parsed value, or returns its error.
fn set<T>(field: &mut Option<T>, parsed: Result<T, String>) -> Result<(), String> {
    *field = Some(parsed?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fathom_model::OptionValueKind;

    use super::*;

    #[test]
    fn names_are_unique() {
        let mut seen = BTreeSet::new();
        for name in names() {
            assert!(seen.insert(name), "{name} twice");
            assert!(
                name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c)),
                "{name} is not a name"
            );
        }
    }

    #[test]
    fn docs_are_one_ascii_sentence() {
        for (_, rows) in OPTION_TABLE {
            for row in *rows {
                assert!(row.doc.is_ascii(), "{}", row.name);
                assert!(row.doc.ends_with('.') && !row.doc.contains(". "), "{}: {}", row.name, row.doc);
                assert!(
                    row.doc.starts_with(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit()),
                    "{}",
                    row.name
                );
            }
        }
    }

    #[test]
    fn defaults_are_accepted_by_their_own_row() {
        for (_, rows) in OPTION_TABLE {
            for row in rows.iter().filter(|row| !row.default.is_empty()) {
                let mut options = JobOptions::default();
                assert_eq!((row.apply)(&mut options, row.default), Ok(()), "{}={}", row.name, row.default);
                if let OptionValueKind::Choice(words) = row.kind {
                    assert!(words.contains(&row.default), "{}", row.name);
                }
            }
        }
    }

    #[test]
    fn exactly_the_listed_choices_are_accepted() {
        for (_, rows) in OPTION_TABLE {
            for row in *rows {
                if let OptionValueKind::Choice(words) = row.kind {
                    for word in words {
                        assert_eq!(
                            (row.apply)(&mut JobOptions::default(), word),
                            Ok(()),
                            "{}={word}",
                            row.name
                        );
                    }
                    let error = (row.apply)(&mut JobOptions::default(), "no-such-word").unwrap_err();
                    assert!(error.contains(words[0]), "{}: {error}", row.name);
                }
            }
        }
    }

    #[test]
    fn misspelt_names_get_the_closest_one() {
        for (word, expected) in [
            ("iodpeth", Some("iodepth")),
            ("runti", Some("runtime")),
            ("blocksze", Some("blocksize")),
            ("sise", Some("size")),
            ("zzzzzzzz", None),
        ] {
            assert_eq!(nearest(word, names()).as_deref(), expected, "{word}");
        }
        // A word of a very different length is not compared: that would take minutes.
        assert_eq!(nearest(&"a".repeat(1 << 22), names()), None);
    }
}
