//! Reports of `monitor`.

pub mod job;
pub mod json;
pub mod lines;
mod view;

use fathom_analysis::monitor::MonitorInterval;
use fathom_record::RunRecord;

pub use view::{means, view};

/// The intervals that a run has one by one, in their order.
pub fn intervals(record: &RunRecord) -> Vec<&MonitorInterval> {
    let devices = record.tests.iter().filter_map(|test| test.monitored());
    let mut intervals: Vec<&MonitorInterval> = devices.flat_map(|device| &device.intervals).collect();
    intervals.sort_by_key(|interval| interval.number);
    intervals
}
