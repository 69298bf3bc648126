//! The place of a run in a schedule: runs of one plan at fixed instants.

use serde::{Deserialize, Serialize};

/// The label by which the runs of a schedule are found and grouped in the history.
pub const SCHEDULE_LABEL: &str = "schedule";

/// Runs of one plan that begin at fixed instants, the slots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSchedule {
    /// What its runs have in common, as their label `schedule`.
    pub name: String,
    /// The instant of slot 0, ms since the epoch; 0 of a simulated schedule.
    pub begins_unix_ms: u64,
    /// Time between two slots, ms.
    pub every_ms: u64,
    /// Time from slot 0 to the end, ms; no slot begins at the end or later.
    pub lasts_ms: u64,
}

/// A slot of a schedule, whose run this is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduledSlot {
    /// The schedule.
    pub schedule: RunSchedule,
    /// Number of the slot, from 0.
    pub slot: u64,
    /// Slots between the run before and this one that have none.
    pub missed: Vec<MissedSlots>,
}

/// Slots in a row without a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedSlots {
    /// Number of the first, from 0.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Why.
    pub reason: MissedReason,
    /// The error, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Why a slot has no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissedReason {
    /// The run before had not ended.
    Overrun,
    /// The machine was suspended.
    Suspended,
    /// The machine was off, or fathom was not started.
    NotRunning,
    /// The clock was set forward past the slot.
    ClockStep,
    /// The run could not begin.
    Failed,
    /// A reason of another version.
    #[serde(other)]
    Other,
}

impl MissedReason {
    /// The reason in a sentence.
    pub const fn text(self) -> &'static str {
        match self {
            MissedReason::Overrun => "the run before had not ended",
            MissedReason::Suspended => "the machine was suspended",
            MissedReason::NotRunning => "the machine was off, or fathom was not running",
            MissedReason::ClockStep => "the clock was set forward",
            MissedReason::Failed => "the run could not begin",
            MissedReason::Other => "a reason of another version of fathom",
        }
    }
}

impl RunSchedule {
    /// Number of slots.
    pub const fn slots(&self) -> u64 {
        if self.every_ms == 0 { 0 } else { self.lasts_ms.div_ceil(self.every_ms) }
    }

    /// The instant of a slot, ms since the epoch; of a simulated schedule in its virtual time.
    pub const fn instant_of(&self, slot: u64) -> u64 {
        self.begins_unix_ms.saturating_add(slot.saturating_mul(self.every_ms))
    }

    /// The end, ms since the epoch.
    pub const fn ends_unix_ms(&self) -> u64 {
        self.begins_unix_ms.saturating_add(self.lasts_ms)
    }
}
