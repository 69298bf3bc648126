//! `simulate`: what a load would get of simulated volumes, each by itself, on virtual time.
//!
//! A job file or a profile goes the way of every other run, options, plan, session, so that what is predicted is what a
//! measurement would do; a trace is put to the volume request by request. Credit is looked at as time goes on.

mod jobs;
mod load;
mod trace;

use std::collections::BTreeMap;

use fathom_catalog::MonthlyUse;
use fathom_model::Nanos;
use fathom_predict::OfferedLoad;
use fathom_record::forecast::{Forecast, ForecastOp};
use fathom_record::{Activity, Observed, RunHeader, RunRecord, SimulateActivity, TestRecord, TestStatus};
use fathom_runner::StopHandle;

use crate::AssessError;
use crate::catalogue::VolumeTypes;
use crate::findings::findings_of;
use crate::published_rates;
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
    /// The same for people, with its length.
    pub load_text: String,
    /// For how long; `None` = as the load says by itself.
    pub length: Option<Nanos>,
    /// Labels of the run.
    pub labels: BTreeMap<String, String>,
    /// The command line, program name first.
    pub command: Vec<String>,
}

/// What a volume gives, and how it ended.
#[derive(Debug)]
struct Predicted {
    forecast: Forecast,
    /// What ended it before its time; `None` where nothing did.
    interrupted: Option<String>,
    /// What went wrong on the volume, which ended the load or a part of it.
    failure: Option<String>,
    /// What a reader should know.
    notes: Vec<String>,
    /// Transactions of billed bursts.
    billed: u64,
}

/// Receives the events of a simulation. Every method is optional.
pub trait SimulateObserver {
    /// The volumes are known; simulating begins.
    fn begun(&mut self, _header: &RunHeader) {}
    /// The volume at `index` begins.
    fn volume_begun(&mut self, _index: usize) {}
    /// It has come so far, ns of virtual time, at so many requests a second.
    fn progress(&mut self, _at_ns: u64, _iops: f64) {}
    /// It has come to its end.
    fn volume_ended(&mut self, _test: &TestRecord) {}
}

impl SimulateObserver for () {}

/// The volumes that these names mean among `types`; each name may leave `sim:` out.
///
/// # Errors
/// One of them means none.
pub fn volumes(names: &[String], types: &VolumeTypes) -> Result<Vec<SimulatedVolume>, AssessError> {
    names.iter().map(|name| SimulatedVolume::of_name(name, types)).collect()
}

/// Puts the load on each volume: a test each. One that is stopped by `stop` ends with what it has, and none follows it.
///
/// # Errors
/// A name means no volume, or the load does not fit one.
pub fn simulate(
    settings: &SimulateSettings,
    stop: &StopHandle,
    observer: &mut dyn SimulateObserver,
) -> Result<RunRecord, AssessError> {
    let SimulateSettings { types, load, length, .. } = settings;
    let volumes = volumes(&settings.volumes, types)?;
    let names: Vec<String> = volumes.iter().map(|volume| volume.path.display().to_string()).collect();
    let asked_ns = length.map(|length| length.0);
    let activity = SimulateActivity { load: settings.load_text.clone(), asked_ns };
    let header = RunHeader {
        command: settings.command.clone(),
        activity: Activity::Simulate(activity),
        target: names.join(","),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        labels: settings.labels.clone(),
        ..RunHeader::default()
    };
    observer.begun(&header);
    let mut record = RunRecord { header, ..RunRecord::default() };
    for (index, volume) in volumes.iter().enumerate() {
        observer.volume_begun(index);
        let mut predicted = match load {
            SimulatedLoad::Jobs(load) => jobs::predict(load, volume, *length, stop, observer)?,
            SimulatedLoad::Trace(trace) => trace::predict(trace, volume, *length, stop, observer)?,
        };
        let forecast = &predicted.forecast;
        let rates = [forecast.total().ios, predicted.billed].map(|count| forecast.per_second(count));
        let used = MonthlyUse::at_rates(rates[0], rates[1]);
        predicted.forecast.monthly_cost = volume.cost_of_month(types, used)?;
        predicted.forecast.target = volume.path.display().to_string();
        let test = record.push(test_of(volume, predicted));
        observer.volume_ended(test);
        if stop.is_requested() {
            break;
        }
    }
    record.header.interrupted = stop.reason();
    let ended = |status| record.tests.iter().any(|test| test.status == status);
    record.status = match () {
        () if stop.is_requested() || ended(TestStatus::Incomplete) => TestStatus::Incomplete,
        () if ended(TestStatus::Failed) => TestStatus::Failed,
        () => TestStatus::Complete,
    };
    record.findings = findings_of(&record);
    Ok(record)
}

fn test_of(volume: &SimulatedVolume, predicted: Predicted) -> TestRecord {
    let Predicted { forecast, interrupted, failure, notes, .. } = predicted;
    let status = match (&failure, &interrupted) {
        (Some(_), _) => TestStatus::Failed,
        (None, Some(_)) => TestStatus::Incomplete,
        (None, None) => TestStatus::Complete,
    };
    let load = offered_load(&forecast);
    TestRecord {
        id: forecast.target.clone(),
        title: volume.title.clone(),
        status,
        published: load
            .and_then(|load| published_rates::of_simulated(&forecast.target, &volume.model, &load)),
        reason: failure.or_else(|| interrupted.clone()),
        observed: Some(Observed::Forecast(Box::new(forecast))),
        notes: volume.own_notes().into_iter().chain(notes).collect(),
        interrupted,
        ..TestRecord::default()
    }
}

/// The load of a forecast: the mean size of its reads and of its writes, in no order.
fn offered_load(forecast: &Forecast) -> Option<OfferedLoad> {
    let (read, write) = (&forecast.ops.read, &forecast.ops.write);
    let ios = read.ios + write.ios;
    let of =
        |op: &ForecastOp| (op.ios > 0).then(|| (op.bytes as f64 / op.ios as f64, op.ios as f64 / ios as f64));
    (ios > 0).then(|| OfferedLoad {
        blocks: [of(read), of(write)].into_iter().flatten().collect(),
        sequential: false,
        synced_after: None,
        read_fraction: Some(read.ios as f64 / ios as f64),
    })
}
