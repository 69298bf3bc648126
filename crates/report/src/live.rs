//! A run while it goes on: its state, as the full-screen view and the live streams show it, and the texts of the streams.
//!
//! A [`LiveState`] grows by the events of the run; nothing here reads a clock or keeps more than a bounded number of points.

mod devices;
mod followed;
pub mod json;
pub mod metrics;
mod monitor;
mod ping;
mod series;
mod state;
#[cfg(test)]
mod tests;

pub use devices::{DeviceLoad, HostShares};
pub use followed::FollowedRun;
pub use monitor::{LiveDevice, LiveMonitor, MonitorTick};
pub use ping::{LivePing, PingEnd};
pub use series::{LivePoint, LiveSeries, MOST_POINTS};
pub use state::{
    LiveLatency, LiveStage, LiveState, LiveStep, LiveStepState, LiveTest, STALLED_FROM_NS, StepFigures,
};
