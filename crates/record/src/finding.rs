//! A finding: what the numbers tell, why, and what to do about it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::FindingId;
use crate::wire::is_default;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    #[default]
    Info,
    /// A number should be read with care.
    Warning,
    /// A number is wrong, or I/O failed.
    Error,
}

impl Severity {
    /// The word used in JSON and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A claim, its evidence, a remedy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// The kind of finding.
    pub id: FindingId,
    /// How much it matters.
    pub severity: Severity,
    /// One sentence.
    pub claim: String,
    /// The tests it rests on, by id.
    #[serde(skip_serializing_if = "is_default")]
    pub tests: Vec<String>,
    /// The values it rests on, by name (with unit suffix).
    pub evidence: BTreeMap<String, serde_json::Value>,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl Finding {
    /// The claim and the remedy as one text.
    pub fn text(&self) -> String {
        match &self.remedy {
            Some(remedy) => format!("{} {remedy}", self.claim),
            None => self.claim.clone(),
        }
    }

    /// The same with one more piece of evidence; its name ends in its unit where it has one.
    pub fn with(mut self, name: &str, value: impl Into<serde_json::Value>) -> Finding {
        self.evidence.insert(name.to_owned(), value.into());
        self
    }

    /// Adds evidence that has fields of its own.
    pub fn with_all<T: Serialize>(self, name: &str, values: &[T]) -> Finding {
        let values: Vec<_> = values.iter().filter_map(|value| serde_json::to_value(value).ok()).collect();
        self.with(name, values)
    }
}
