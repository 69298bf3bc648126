//! The text of OpenMetrics 1.0: families, labels and samples.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use fathom_model::text::is_hidden;

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FamilyKind {
    /// A value that rises and falls.
    Gauge,
    /// A count since the start.
    Counter,
    /// Counts below upper limits.
    Histogram,
}

impl FamilyKind {
    const fn name(self) -> &'static str {
        match self {
            FamilyKind::Gauge => "gauge",
            FamilyKind::Counter => "counter",
            FamilyKind::Histogram => "histogram",
        }
    }
}

/// A family of samples.
pub(crate) struct Family {
    /// The name without its unit.
    pub stem: &'static str,
    /// Suffix of the name; empty where it has no unit.
    pub unit: &'static str,
    pub help: &'static str,
    pub kind: FamilyKind,
}

impl Family {
    /// A family of gauges.
    pub const fn gauge(stem: &'static str, unit: &'static str, help: &'static str) -> Family {
        Family { stem, unit, help, kind: FamilyKind::Gauge }
    }

    /// A family of counters.
    pub const fn counter(stem: &'static str, unit: &'static str, help: &'static str) -> Family {
        Family { stem, unit, help, kind: FamilyKind::Counter }
    }

    /// A family of histograms.
    pub const fn histogram(stem: &'static str, unit: &'static str, help: &'static str) -> Family {
        Family { stem, unit, help, kind: FamilyKind::Histogram }
    }

    /// True where `other` has the same name.
    fn is(&self, other: &Family) -> bool {
        (self.stem, self.unit) == (other.stem, other.unit)
    }

    /// The whole name, which ends in the unit.
    pub fn name(&self) -> String {
        let separator = if self.unit.is_empty() { "" } else { "_" };
        [self.stem, separator, self.unit].concat()
    }

    /// Writes what stands above the samples.
    pub fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        let Family { unit, help, kind, .. } = self;
        let name = self.name();
        writeln!(out, "# TYPE {name} {}", kind.name())?;
        if !unit.is_empty() {
            writeln!(out, "# UNIT {name} {unit}")?;
        }
        writeln!(out, "# HELP {name} {help}")
    }
}

/// Labels in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelSet(Vec<(String, String)>);

impl LabelSet {
    /// Fathom's own labels; those without a value are left out.
    pub fn of(known: &[(&str, &str)]) -> LabelSet {
        let known = known.iter().filter(|(_, value)| !value.is_empty());
        LabelSet(known.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    /// Adds the labels of the user, under names apart from fathom's own.
    pub fn with_users(mut self, labels: &BTreeMap<String, String>) -> LabelSet {
        for (name, value) in labels {
            // Two names may become one.
            let name = label_name(name);
            if self.0.iter().all(|(known, _)| *known != name) {
                self.0.push((name, value.clone()));
            }
        }
        self
    }

    /// The same and these.
    pub fn and(&self, more: &[(&str, &str)]) -> LabelSet {
        LabelSet([self.0.clone(), LabelSet::of(more).0].concat())
    }
}

impl fmt::Display for LabelSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{name}=\"{}\"", escaped(value))?;
        }
        Ok(())
    }
}

/// Labels and values by family.
#[derive(Default)]
pub(crate) struct Samples {
    /// In the order in which each had its first sample.
    families: Vec<(&'static Family, BTreeMap<String, f64>)>,
}

impl Samples {
    /// Adds a sample, in place of one with the same labels.
    pub fn add(&mut self, family: &'static Family, labels: &LabelSet, value: f64) {
        let place = self.families.iter().position(|(known, _)| known.is(family));
        let place = place.unwrap_or_else(|| {
            self.families.push((family, BTreeMap::new()));
            self.families.len() - 1
        });
        self.families[place].1.insert(labels.to_string(), value);
    }

    /// Writes the families that have samples.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (family, found) in &self.families {
            family.head(out)?;
            let name = family.name();
            let suffix = if family.kind == FamilyKind::Counter { "_total" } else { "" };
            for (labels, value) in found {
                writeln!(out, "{name}{suffix}{{{labels}}} {value}")?;
            }
        }
        Ok(())
    }
}

/// Writes what ends the text.
pub(crate) fn end(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# EOF")
}

/// A name that labels may have, apart from fathom's own.
fn label_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("label_{}", name.chars().map(allowed).collect::<String>())
}

/// The value as a label has it, without characters that a terminal obeys.
fn escaped(value: &str) -> String {
    let letter = |c: char| match c {
        '\\' => "\\\\".to_owned(),
        '"' => "\\\"".to_owned(),
        '\n' => "\\n".to_owned(),
        c if is_hidden(c) => "_".to_owned(),
        c => c.to_string(),
    };
    value.chars().map(letter).collect()
}
