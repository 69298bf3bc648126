//! Volume types that providers sell: their published rules as data, each with its source, date and confidence.
//!
//! An entry and its parameters (size, provisioned IOPS and bandwidth) make a [`fathom_volume::VolumeModel`]; a type whose
//! provider publishes no rule is refused with the reason. Generations are entries of their own: what a type gave in 2016
//! stays as it was. [`SimulatedTarget`] reads what the command line calls such a volume. The fields are explained in `data/README.md`.
#![forbid(unsafe_code)]

mod alike;
mod amount;
mod catalog;
mod check;
mod cost;
mod custom;
mod entry;
mod fit;
mod fit_size;
mod fit_why;
mod levels;
mod lifts;
mod limits;
mod load;
mod misread;
mod most;
mod parts;
mod reach;
mod resolve;
mod sheet;
mod target;
mod wire;

pub use alike::{Alike, MeasuredVolume};
pub use catalog::{Catalog, CatalogError};
pub use cost::MonthlyUse;
pub use entry::{CatalogEntry, Confidence, Lifecycle};
pub use fit::{Fit, LatencyNeed, Other, PricedOffers, Reason, Spell, VolumeNeed, VolumeOffer};
pub use lifts::Lift;
pub use load::OfferedLoad;
pub use reach::{BurstReach, LimitUnit, ReachedRate, reach};
pub use resolve::{ModelRefusal, Parameters, Resolved};
pub use sheet::{BlockRow, LimitDirection, Rule, Sheet, SheetLimit};
pub use target::{SimulatedTarget, TargetError};
