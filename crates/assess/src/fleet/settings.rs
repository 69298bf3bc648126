//! What a job of many ranks is asked for.

use std::path::PathBuf;

use fathom_model::Nanos;

/// How the ranks start a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FleetStart {
    /// When the launcher lets them out of a fence.
    #[default]
    Barrier,
    /// At an instant of the wall clock, which is the same on all hosts to a millisecond.
    Clock,
}

/// What of the target a rank uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetSplit {
    /// Its share of one file or device.
    Offset,
}

/// What a job of many ranks is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetSettings {
    /// Where each rank writes its record.
    pub out: Option<PathBuf>,
    /// Longest wait for all ranks to come.
    pub join: Nanos,
    /// Longest wait for all ranks to be ready to measure.
    pub prepare: Nanos,
    /// Longest wait for all ranks beyond the time that their jobs take.
    pub grace: Nanos,
    /// How phases start.
    pub start: FleetStart,
    /// What of the target a rank uses; `None` = all of it.
    pub split: Option<FleetSplit>,
    /// The file of roles.
    pub plan: Option<PathBuf>,
}

impl Default for FleetSettings {
    fn default() -> Self {
        FleetSettings {
            out: None,
            join: Nanos::from_secs(60),
            prepare: Nanos::from_secs(30 * 60),
            grace: Nanos::from_secs(30),
            start: FleetStart::Barrier,
            split: None,
            plan: None,
        }
    }
}
