//! Whether a count may differ from the stored one as it does, and what to do where it may not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// By how much a count may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountRatio {
    growth: f64,
    /// A stored value that is too high would hide growth that comes later.
    fall: f64,
}

impl CountRatio {
    /// Where the same compiler made the stored counts.
    pub const SAME_COMPILER: CountRatio = CountRatio { growth: 0.03, fall: 0.03 };
    /// With another compiler: it changes counts by itself, and a lower count is not an improvement.
    pub const OTHER_COMPILER: CountRatio = CountRatio { growth: 0.10, fall: 1.0 };

    /// In words.
    pub fn name(self) -> String {
        format!("{:.0} %", self.growth * 100.0)
    }
}

/// One case: stored and counted. One of the two may be missing, never both.
#[derive(Clone, Debug, PartialEq)]
pub struct CountLine {
    name: String,
    stored: Option<f64>,
    now: Option<f64>,
}

/// The cases of both, by name.
pub fn lines(stored: &BTreeMap<String, f64>, now: &BTreeMap<String, f64>) -> Vec<CountLine> {
    let names: BTreeSet<&String> = stored.keys().chain(now.keys()).collect();
    let line = |name: &String| CountLine {
        name: name.clone(),
        stored: stored.get(name).copied(),
        now: now.get(name).copied(),
    };
    names.into_iter().map(line).collect()
}

impl CountLine {
    /// The problem and the remedy; `None` if the case passes.
    pub fn complaint(&self, ratio: CountRatio) -> Option<String> {
        let name = &self.name;
        const WRITE: &str = "`cargo xtask instructions --write`";
        match (self.stored, self.now) {
            (Some(stored), Some(now)) if now > stored * (1.0 + ratio.growth) => Some(format!(
                "{name} has grown by {:.1} %, from {stored:.2} to {now:.2} instructions: make it cheaper, or store it with \
                 {WRITE} and say why in the commit",
                (now / stored - 1.0) * 100.0
            )),
            (Some(stored), Some(now)) if now < stored * (1.0 - ratio.fall) => Some(format!(
                "{name} has fallen by {:.1} %, from {stored:.2} to {now:.2} instructions: store the gain with {WRITE} in \
                 the same commit, or later growth would hide in it",
                (1.0 - now / stored) * 100.0
            )),
            (Some(_), None) => Some(format!("{name} is stored, but there is no such case: {WRITE} drops it")),
            (None, Some(now)) => {
                Some(format!("{name} is not stored ({now:.2} instructions): {WRITE} stores it"))
            }
            _ => None,
        }
    }
}

impl fmt::Display for CountLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |count: Option<f64>| count.map_or_else(|| "-".to_owned(), |count| format!("{count:.2}"));
        write!(f, "{:<32} {:>10} {:>10}", self.name, shown(self.stored), shown(self.now))?;
        match (self.stored, self.now) {
            (Some(stored), Some(now)) if now == stored => write!(f, "{:>8}", "="),
            (Some(stored), Some(now)) => write!(f, "{:>+8.1} %", (now / stored - 1.0) * 100.0),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_differ_within_the_tolerance() {
        let check = |stored, now, ratio, expected: Option<&str>| {
            let line = CountLine { name: "stats/latency".to_owned(), stored, now };
            let complaint = line.complaint(ratio).unwrap_or_default();
            match expected {
                Some(expected) => assert!(complaint.contains(expected), "'{complaint}' says no '{expected}'"),
                None => assert_eq!(complaint, "", "{stored:?} {now:?}"),
            }
        };
        let (same, other) = (CountRatio::SAME_COMPILER, CountRatio::OTHER_COMPILER);
        check(Some(100.0), Some(100.0), same, None);
        check(Some(100.0), Some(102.9), same, None);
        check(Some(100.0), Some(103.1), same, Some("grown by 3.1 %, from 100.00 to 103.10"));
        check(Some(100.0), Some(97.1), same, None);
        check(Some(100.0), Some(96.9), same, Some("fallen by 3.1 %, from 100.00 to 96.90"));
        check(Some(100.0), Some(103.1), other, None);
        check(Some(100.0), Some(110.1), other, Some("grown by 10.1 %"));
        check(Some(100.0), Some(1.0), other, None);
        check(None, Some(21.0), same, Some("is not stored (21.00 instructions)"));
        check(Some(21.0), None, same, Some("no such case"));
    }

    #[test]
    fn every_case_of_either_side_has_a_line() {
        let counts =
            |counts: &[(&str, f64)]| counts.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
        let stored = counts(&[("a/b", 8.0), ("a/gone", 8.0), ("a/moved", 8.0)]);
        let now = counts(&[("a/b", 8.0), ("a/moved", 8.2), ("a/new", 8.0)]);
        let lines = lines(&stored, &now);
        let shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let columns = |line: &String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(columns(&shown[0]), ["a/b", "8.00", "8.00", "="]);
        assert_eq!(columns(&shown[1]), ["a/gone", "8.00", "-"]);
        assert_eq!(columns(&shown[2]), ["a/moved", "8.00", "8.20", "+2.5", "%"]);
        assert_eq!(columns(&shown[3]), ["a/new", "-", "8.00"]);
        assert_eq!(shown.len(), 4);
    }
}
