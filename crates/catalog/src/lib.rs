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
mod cost;
mod custom;
mod difference;
mod entry;
mod explain;
mod host_cache;
mod imported_prices;
mod instances;
mod levels;
mod limits;
mod measured;
mod misread;
mod offers;
mod parts;
mod price_list;
mod published;
mod resolve;
mod search;
mod sheet;
mod target;
mod wire;

pub use catalog::{Catalog, CatalogError};
pub use cost::MonthlyUse;
pub use difference::{CatalogChange, WrittenTypes};
pub use entry::{CatalogEntry, Confidence, Lifecycle};
pub use host_cache::{CachingMode, HostCaching};
pub use imported_prices::ImportedPrices;
pub use instances::{INSTANCE_STAGE, Instance, InstanceBurst, InstanceList, InstanceRates, Instances};
pub use offers::{
    Fit, Lift, MeasuredRate, PricedOffers, PublishedMatch, PublishedMatches, SAME_RATE, VolumeOffer,
};
pub use price_list::{HOURS_OF_MONTH, PriceList, PriceListChoice, PriceListError, read_price_list};
pub use published::{
    ComparedFigure, FigureVerdict, Published, PublishedArticle, PublishedFigure, PublishedRun,
    PublishedSheet, UnknownPublished,
};
pub use resolve::{ModelRefusal, Parameters, Resolved};
pub use search::{
    Constraints, FoundVolume, LatencyNeed, MeasuredVolume, Resemblance, SearchResult, SearchScope, SizeSteps,
    UnsuitableReason, UnsuitableType, VolumeNeed,
};
pub use sheet::{BlockRow, LimitDirection, Rule, Sheet, SheetLimit};
pub use target::{SimulatedTarget, TargetError};
