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

use std::ops::RangeInclusive;

use fathom_model::OptionValueKind::{self, *};
use fathom_model::plan::SizeSpec;
use fathom_model::{Nanos, Op, PerOp};

use crate::job_options::JobOptions;
use crate::value;

pub use unsupported::{UNSUPPORTED, UnsupportedOption};

/// The category of the options that change nothing.
pub(crate) const HARMLESS: &str = "Accepted without effect";

/// All supported job options by category, in the order of the help.
pub const OPTION_TABLE: &[(&str, &[JobOption])] = &[
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
    Supported(&'static JobOption),
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

/// A row of the table.
pub struct JobOption {
    /// fio's canonical name.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub kind: OptionValueKind,
    /// The default, as a user would type it; empty if the option has none.
    pub default: &'static str,
    /// One sentence for help and the compatibility page.
    pub doc: &'static str,
    setter: Setter,
}

/// Parses a value and stores it; the kinds that many options have are parsed here.
enum Setter {
    Bool(fn(&mut JobOptions, bool)),
    Time(fn(&str) -> Result<Nanos, String>, fn(&mut JobOptions, Nanos)),
    Integer(RangeInclusive<u64>, fn(&mut JobOptions, u64)),
    /// 32 bits, from a least value.
    Count(u32, fn(&mut JobOptions, u32)),
    Percent(fn(&mut JobOptions, u8)),
    Text(fn(&mut JobOptions, &str) -> Result<(), String>),
    /// Checks the value by its kind and stores nothing.
    Unused,
}

/// All whole numbers that fio knows.
const ANY: RangeInclusive<u64> = 0..=u64::MAX;

const fn new(name: &'static str, kind: OptionValueKind, default: &'static str, setter: Setter) -> JobOption {
    JobOption { name, aliases: &[], kind, default, doc: "", setter }
}

const fn switch(name: &'static str, set: fn(&mut JobOptions, bool)) -> JobOption {
    new(name, Bool, "0", Setter::Bool(set))
}

const fn flag(name: &'static str, set: fn(&mut JobOptions, bool)) -> JobOption {
    new(name, Flag, "0", Setter::Bool(set))
}

const fn seconds(name: &'static str, set: fn(&mut JobOptions, Nanos)) -> JobOption {
    new(name, Seconds, "0", Setter::Time(value::seconds, set))
}

const fn micros(name: &'static str, set: fn(&mut JobOptions, Nanos)) -> JobOption {
    new(name, Micros, "0", Setter::Time(value::micros, set))
}

const fn int(name: &'static str, range: RangeInclusive<u64>, set: fn(&mut JobOptions, u64)) -> JobOption {
    new(name, Int, "", Setter::Integer(range, set))
}

const fn size(name: &'static str, range: RangeInclusive<u64>, set: fn(&mut JobOptions, u64)) -> JobOption {
    new(name, Size, "", Setter::Integer(range, set))
}

const fn count(name: &'static str, min: u32, set: fn(&mut JobOptions, u32)) -> JobOption {
    new(name, Int, "", Setter::Count(min, set))
}

const fn percent(name: &'static str, set: fn(&mut JobOptions, u8)) -> JobOption {
    new(name, Int, "", Setter::Percent(set))
}

const fn unused(name: &'static str, kind: OptionValueKind) -> JobOption {
    new(name, kind, "", Setter::Unused)
}

/// An option with a syntax of its own.
const fn row(
    name: &'static str,
    kind: OptionValueKind,
    apply: fn(&mut JobOptions, &str) -> Result<(), String>,
) -> JobOption {
    new(name, kind, "", Setter::Text(apply))
}

impl JobOption {
    const fn aliases(self, aliases: &'static [&'static str]) -> JobOption {
        JobOption { aliases, ..self }
    }

    const fn default(self, default: &'static str) -> JobOption {
        JobOption { default, ..self }
    }

    const fn doc(self, doc: &'static str) -> JobOption {
        JobOption { doc, ..self }
    }

    /// Stores the parsed text; the error says what is wrong with the value.
    pub fn apply(&self, options: &mut JobOptions, text: &str) -> Result<(), String> {
        match &self.setter {
            Setter::Bool(set) => set(options, value::boolean(text)?),
            Setter::Time(parse, set) => set(options, parse(text)?),
            Setter::Integer(range, set) => {
                set(options, value::integer_in(text, *range.start(), *range.end())?)
            }
            Setter::Count(min, set) => set(options, value::count(text, *min)?),
            Setter::Percent(set) => set(options, value::percent(text)?),
            Setter::Text(apply) => apply(options, text)?,
            Setter::Unused => check(self.kind, text)?,
        }
        Ok(())
    }
}

/// Checks the value of an option that changes nothing.
fn check(kind: OptionValueKind, text: &str) -> Result<(), String> {
    match kind {
        Bool => value::boolean(text).map(drop),
        Size => value::integer(text).map(drop),
        Int => value::count(text, 0).map(drop),
        Floats => numbers(text, f64::MAX),
        Choice(words) if !words.contains(&text.trim()) => {
            Err(format!("valid values are {}", words.join(", ")))
        }
        _ => Ok(()),
    }
}

/// Checks numbers from 0 to `max`, separated by colons.
fn numbers(text: &str, max: f64) -> Result<(), String> {
    let is_one =
        |number: &str| number.trim().parse::<f64>().is_ok_and(|number| (0.0..=max).contains(&number));
    match text.split(':').find(|number| !is_one(number)) {
        None => Ok(()),
        Some(other) if max == f64::MAX => Err(format!("'{other}' is not a number")),
        Some(other) => Err(format!("value out of range: '{other}' is not a number from 0 to {max}")),
    }
}

/// Stores the entries of a read,write,trim list, all or none; a list without any is refused by `needed`, unless that is empty.
fn per_op<T: Clone>(
    values: &mut PerOp<T>,
    text: &str,
    needed: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<(), String> {
    let entries = value::per_operation(text)?;
    if entries == [None; 3] && !needed.is_empty() {
        return Err(needed.to_owned());
    }
    let mut parsed = values.clone();
    for (op, entry) in Op::DATA.into_iter().zip(entries) {
        if let Some(entry) = entry {
            parsed[op] = parse(entry)?;
        }
    }
    *values = parsed;
    Ok(())
}

/// A size of 0 means all.
fn unless_zero(size: SizeSpec) -> Option<SizeSpec> {
    Some(size).filter(|size| *size != SizeSpec::Bytes(0))
}

/// Stores a parsed value, or returns its error.
pub(crate) fn set<T>(field: &mut Option<T>, parsed: Result<T, String>) -> Result<(), String> {
    *field = Some(parsed?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
                assert_eq!(row.apply(&mut options, row.default), Ok(()), "{}={}", row.name, row.default);
                if let OptionValueKind::Choice(words) = row.kind {
                    assert!(words.contains(&row.default), "{}", row.name);
                }
            }
        }
    }

    /// What the values of a case change in the options of a job, or why one is refused.
    fn effect(case: &str) -> String {
        let pairs = case.split('\t').filter_map(|pair| pair.split_once('='));
        let pairs: Vec<(&str, String)> =
            pairs.map(|(name, value)| (name, value.replace('\u{2423}', " "))).collect();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        match JobOptions::from_pairs(&pairs) {
            Ok(options) => {
                let before = leaves(&JobOptions::default());
                let changed: Vec<String> =
                    leaves(&options).into_iter().filter(|leaf| !before.contains(leaf)).collect();
                if changed.is_empty() { "nothing".to_owned() } else { changed.join(", ") }
            }
            Err(error) => format!("error: {error}"),
        }
    }

    /// Each value inside these options with its place.
    fn leaves(options: &JobOptions) -> Vec<String> {
        let (mut leaves, mut places) = (Vec::new(), Vec::<(String, usize)>::new());
        for line in format!("{options:#?}").lines() {
            let line = line.trim().trim_end_matches(',');
            if line.starts_with(['}', ')', ']']) {
                places.pop();
                continue;
            }
            let place: String = places.iter().skip(1).map(|(name, _)| format!("{name}.")).collect();
            let name = match line.split_once(": ") {
                Some((name, _)) => name.to_owned(),
                None => places.last().map_or(String::new(), |(_, items)| items.to_string()),
            };
            if let Some((_, items)) = places.last_mut() {
                *items += 1;
            }
            match line.ends_with(['{', '(', '[']) {
                true => places.push((name, 0)),
                false => {
                    let value = line.split_once(": ").map_or(line, |(_, value)| value);
                    leaves.push(format!("{place}{name}={value}"));
                }
            }
        }
        leaves
    }

    #[test]
    fn values_of_every_option_have_their_recorded_effects() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/table/values.txt");
        let read = || std::fs::read_to_string(path).unwrap();
        let recorded = read();
        let cases: Vec<&str> = recorded.lines().filter(|line| !line.starts_with(' ')).collect();
        let found: String = cases.iter().map(|case| format!("{case}\n  {}\n", effect(case))).collect();
        if std::env::var_os("FATHOM_BLESS").is_some() {
            std::fs::write(path, &found).unwrap();
        }
        for (recorded, found) in read().lines().zip(found.lines()) {
            assert_eq!(recorded, found, "to renew it: FATHOM_BLESS=1");
        }
        assert_eq!(read().len(), found.len());
        let names = cases.iter().flat_map(|case| case.split('\t')).filter_map(|pair| pair.split_once('='));
        let names: BTreeSet<&str> = names.map(|(name, _)| name).collect();
        for row in OPTION_TABLE.iter().flat_map(|(_, rows)| rows.iter()) {
            let has_case = names.contains(row.name) || row.aliases.iter().any(|alias| names.contains(alias));
            assert!(has_case, "{} has no case in values.txt", row.name);
        }
    }

    #[test]
    fn exactly_the_listed_choices_are_accepted() {
        for (_, rows) in OPTION_TABLE {
            for row in *rows {
                if let OptionValueKind::Choice(words) = row.kind {
                    for word in words {
                        assert_eq!(
                            row.apply(&mut JobOptions::default(), word),
                            Ok(()),
                            "{}={word}",
                            row.name
                        );
                    }
                    let error = row.apply(&mut JobOptions::default(), "no-such-word").unwrap_err();
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
