//! The results of commands that do not run jobs of fio: part of a test, in place of its jobs.

pub mod forecast;
pub mod import;
pub mod load;
pub mod monitor;
pub mod ping;

use serde::{Deserialize, Serialize};

use crate::{TestRecord, TestSummary};
use forecast::Forecast;
use import::ImportedTest;
use monitor::MonitoredDevice;
use ping::Ping;

/// The results of such a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Observed {
    /// `simulate`: a volume under a load.
    Forecast(Box<Forecast>),
    /// `history import`: a test of another program.
    Import(Box<ImportedTest>),
    /// `monitor`: a device.
    Monitor(Box<MonitoredDevice>),
    /// `ping`: single requests.
    Ping(Box<Ping>),
}

impl TestRecord {
    /// The forecast of a volume, where this is one.
    pub fn forecast(&self) -> Option<&Forecast> {
        match self.observed.as_ref()? {
            Observed::Forecast(forecast) => Some(forecast),
            _ => None,
        }
    }

    /// The test of another program, where this is one.
    pub fn imported(&self) -> Option<&ImportedTest> {
        match self.observed.as_ref()? {
            Observed::Import(test) => Some(test),
            _ => None,
        }
    }

    /// The device that was monitored, where this is one.
    pub fn monitored(&self) -> Option<&MonitoredDevice> {
        match self.observed.as_ref()? {
            Observed::Monitor(device) => Some(device),
            _ => None,
        }
    }

    /// The ping, where this is one.
    pub fn ping(&self) -> Option<&Ping> {
        match self.observed.as_ref()? {
            Observed::Ping(ping) => Some(ping),
            _ => None,
        }
    }

    /// The headline numbers of what was observed; `None` of a test that ran jobs.
    pub(crate) fn observed_summary(&self) -> Option<TestSummary> {
        Some(match self.observed.as_ref()? {
            Observed::Forecast(forecast) => forecast.summary(),
            Observed::Import(test) => test.summary(),
            Observed::Monitor(device) => device.summary(),
            Observed::Ping(ping) => ping.summary(),
        })
    }
}
