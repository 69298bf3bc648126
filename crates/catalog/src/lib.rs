//! Volume types that providers sell: their published rules as data, each with its source, date and confidence.
//!
//! An entry and its parameters (size, provisioned IOPS and bandwidth) make a [`fathom_volume::VolumeModel`]; a type
//! whose provider publishes no rule is refused with the reason. Each generation is a separate entry: the rules of 2016
//! stay unchanged. [`SimulatedTarget`] parses the name of such a volume on the command line. `data/README.md` explains
//! the fields.
#![forbid(unsafe_code)]

mod amount;
mod catalog;
mod check;
mod closest;
mod cost;
mod custom;
mod entry;
mod explain;
mod fit;
mod fit_size;
mod fit_why;
mod host_cache;
mod imported_prices;
mod instances;
mod levels;
mod lifts;
mod limits;
mod measured;
mod misread;
mod most;
mod parts;
mod price_list;
mod published;
mod rate_match;
mod resolve;
mod sheet;
mod target;
mod wire;

pub use catalog::{Catalog, CatalogError};
pub use closest::{ClosestVolume, MeasuredVolume};
pub use cost::MonthlyUse;
pub use entry::{CatalogEntry, Confidence, Lifecycle};
pub use fit::{
    Fit, FitScope, LatencyNeed, PricedOffers, UnsuitableReason, UnsuitableType, VolumeNeed, VolumeOffer,
};
pub use host_cache::{CachingMode, HostCaching};
pub use imported_prices::ImportedPrices;
pub use instances::{INSTANCE_STAGE, Instance, InstanceBurst, InstanceList, InstanceRates, Instances};
pub use lifts::Lift;
pub use price_list::{HOURS_OF_MONTH, PriceList, PriceListChoice, PriceListError, read_price_list};
pub use published::{
    ComparedFigure, FigureVerdict, Published, PublishedArticle, PublishedFigure, PublishedRun,
    PublishedSheet, UnknownPublished,
};
pub use rate_match::{MeasuredRate, PublishedMatch, PublishedMatches, SAME_RATE};
pub use resolve::{ModelRefusal, Parameters, Resolved};
pub use sheet::{BlockRow, LimitDirection, Rule, Sheet, SheetLimit};
pub use target::{SimulatedTarget, TargetError};
