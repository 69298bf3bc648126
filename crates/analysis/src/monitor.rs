//! What devices did while they were monitored: the intervals of each added up, and the load as a job. Pure.

pub mod capture;
pub mod job;
pub mod load;
mod tally;

pub use fathom_record::monitor::{
    DeviceActivity, InFlight, MonitorInterval, MonitoredDevice, OpActivity, Presence, ProcessActivity,
    WatchedDevice,
};
pub use tally::MonitorTally;
