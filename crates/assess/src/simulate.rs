//! `simulate`: what a load would get of modelled volumes, each by itself, on virtual time.
//!
//! A job file or a profile goes the way of every other run, options, plan, session, so that what is predicted is what a
//! measurement would do; a trace is put to the volume request by request. Credit is looked at as time goes on.

mod jobs;
mod load;
mod replay;
mod trace;

use fathom_analysis::forecast::Forecast;
use fathom_catalog::{MonthlyCost, MonthlyUse};
use fathom_model::Nanos;
use fathom_runner::StopHandle;

use crate::AssessError;
use crate::catalogue::VolumeTypes;
use crate::simulated::SimulatedVolume;

pub use load::{JobLoad, SimulatedLoad};
pub use trace::Trace;

/// What is to be predicted.
#[derive(Clone, Debug)]
pub struct SimulateSettings {
    /// The volumes, as typed; `sim:` may be left out.
    pub volumes: Vec<String>,
    /// The types that their names mean.
    pub types: VolumeTypes,
    /// What they are to serve.
    pub load: SimulatedLoad,
    /// For how long; `None` = as the load says by itself.
    pub length: Option<Nanos>,
}

/// What one volume would give, and what it would cost.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// What it would give.
    pub forecast: Forecast,
    /// What it costs in a month of that load; `None` where no price is sourced.
    pub cost: Option<MonthlyCost>,
}

/// Is told how a simulation goes on. Every method may be left out.
pub trait SimulateObserver {
    /// The volume at `index` begins.
    fn volume_begun(&mut self, _index: usize) {}
    /// It has come so far, ns of virtual time, at so many requests a second.
    fn progress(&mut self, _at_ns: u64, _iops: f64) {}
}

impl SimulateObserver for () {}

/// A month: 730 hours, as providers count it.
const MONTH_NS: u64 = 730 * 3_600 * 1_000_000_000;

/// The volumes that these names mean among `types`; each name may leave `sim:` out.
///
/// # Errors
/// One of them means none.
pub fn volumes(names: &[String], types: &VolumeTypes) -> Result<Vec<SimulatedVolume>, AssessError> {
    let full = |name: &String| if name.starts_with("sim:") { name.clone() } else { format!("sim:{name}") };
    names.iter().map(|name| SimulatedVolume::named(full(name).as_ref(), types)).collect()
}

/// Puts the load on each volume. One that is stopped by `stop` ends with what it has, and none follows it.
///
/// # Errors
/// A name means no volume, or the load does not fit one.
pub fn simulate(
    settings: &SimulateSettings,
    stop: &StopHandle,
    observer: &mut dyn SimulateObserver,
) -> Result<Vec<Simulated>, AssessError> {
    let mut results = Vec::new();
    for (index, volume) in volumes(&settings.volumes, &settings.types)?.iter().enumerate() {
        observer.volume_begun(index);
        let (forecast, billed) = match &settings.load {
            SimulatedLoad::Jobs(load) => jobs::predict(load, volume, settings.length, stop, observer)?,
            SimulatedLoad::Trace(trace) => replay::predict(trace, volume, settings.length, stop, observer)?,
        };
        let cost = cost(volume, &settings.types, &forecast, billed)?;
        results.push(Simulated { forecast, cost });
        if stop.is_requested() {
            break;
        }
    }
    Ok(results)
}

fn cost(
    volume: &SimulatedVolume,
    types: &VolumeTypes,
    forecast: &Forecast,
    billed: u64,
) -> Result<Option<MonthlyCost>, AssessError> {
    let Some((id, parameters)) = &volume.chosen else { return Ok(None) };
    let Some(entry) = types.catalogue()?.get(id) else { return Ok(None) };
    let ios = forecast.ops.iter().map(|op| op.ios).sum();
    let used = MonthlyUse {
        ios: forecast.scaled_to(MONTH_NS, ios),
        billed_transactions: forecast.scaled_to(MONTH_NS, billed),
    };
    let refused = |refusal: fathom_catalog::ModelRefusal| {
        let hint = refusal.hint().map(str::to_owned);
        AssessError::Simulated { target: volume.path.display().to_string(), reason: refusal.reason, hint }
    };
    entry.cost_of_month(parameters, used).map_err(refused)
}
