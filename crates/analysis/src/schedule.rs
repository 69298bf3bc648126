//! Schedules: which slot is next, what a whole schedule uses of burst credits, and how its runs vary by hour and by host.

mod credits;
mod slots;
mod variation;

pub use credits::{CreditBucket, CreditCourse, credit_course};
pub use slots::{MissedCause, NextSlot, SlotAction, add_missed, next_slot, tolerance_ms};
pub use variation::{
    FigureVariation, GroupVariation, ScheduledValue, VariationVerdict, leading_metrics, variation,
};
