//! Reports of `simulate`.

pub mod json;
mod view;

use fathom_analysis::forecast::Forecast;
use fathom_catalog::MonthlyCost;

pub use view::view;

/// A volume under a load, and what it costs.
pub type PricedForecast<'a> = (&'a Forecast, Option<&'a MonthlyCost>);
