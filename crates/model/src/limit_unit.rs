//! What a limit, a burst bucket or a credit counts.

use serde::{Deserialize, Serialize};

use crate::units::{bytes, grouped};

/// I/Os as the provider counts them, or bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitUnit {
    #[default]
    Ios,
    Bytes,
}

impl LimitUnit {
    /// A rate per second: `150 IOPS`, `64.0 MiB/s`.
    pub fn rate_text(self, per_second: f64) -> String {
        match self {
            LimitUnit::Ios => format!("{} IOPS", grouped(per_second.round() as u64)),
            LimitUnit::Bytes => format!("{}/s", bytes(per_second.round() as u64)),
        }
    }
}
