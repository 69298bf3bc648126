//! Reports of `simulate`.

pub mod json;
mod view;

use fathom_record::forecast::Forecast;
use fathom_record::{RunRecord, TestRecord};

pub use view::view;

/// A volume under a load: its test and the results in it.
type VolumeForecast<'a> = (&'a TestRecord, &'a Forecast);

/// The volumes of a run.
fn volumes(record: &RunRecord) -> Vec<VolumeForecast<'_>> {
    record.tests.iter().filter_map(|test| Some((test, test.forecast()?))).collect()
}
