//! The form of a job's figures in fio's reports.

use serde::{Deserialize, Serialize};

/// How numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FigureForm {
    /// Digits of a number.
    #[serde(rename = "significant_figures")]
    pub digits: u8,
    /// Powers of 1000 come first, and those of 1024 in parentheses.
    pub decimal: bool,
    /// Rates are in bits.
    pub bits: bool,
}

impl Default for FigureForm {
    fn default() -> Self {
        FigureForm { digits: 4, decimal: false, bits: false }
    }
}

/// Whether operations are reported together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnifiedReporting {
    /// Each by itself.
    #[default]
    None,
    /// Only together.
    Mixed,
    /// Each by itself, and together.
    Both,
}
