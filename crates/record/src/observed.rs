//! The results of commands that do not run jobs of fio: part of a test, in place of its jobs.

pub mod forecast;

use serde::{Deserialize, Serialize};

use crate::{TestRecord, TestSummary};
use forecast::Forecast;

/// The results of such a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Observed {
    /// `simulate`: a volume under a load.
    Forecast(Forecast),
}

impl TestRecord {
    /// The forecast of a volume, where this is one.
    pub fn forecast(&self) -> Option<&Forecast> {
        match self.observed.as_deref()? {
            Observed::Forecast(forecast) => Some(forecast),
        }
    }

    /// The headline numbers of what was observed; `None` of a test that ran jobs.
    pub(crate) fn observed_summary(&self) -> Option<TestSummary> {
        let summary = match self.observed.as_deref()? {
            Observed::Forecast(forecast) => forecast.summary(),
        };
        Some(TestSummary { elapsed_ns: self.elapsed_ns, ..summary })
    }
}
