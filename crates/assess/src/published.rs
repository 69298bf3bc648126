//! Published figures beside those that the models give under the same loads, through the whole program in virtual time. Which load a
//! figure is compared with, and why figures are not explained, is data: `data/published_models.toml`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use fathom_catalog::{
    Catalog, CatalogEntry, ComparedFigure, FigureVerdict, Published, PublishedFigure, PublishedRun,
};
use fathom_options::{MachineNumbers, ParseEnvironment, parse_command_line};
use fathom_stats::{Latency, RunOutcome};
use fathom_volume::Limit;
use serde::Deserialize;

use crate::{
    AssessError, BenchTarget, PlanTargets, SimulatedVolume, VolumeTypes, engine_rows, host_facts, session_for,
};

/// Largest relative difference of an explained figure.
const TOLERANCE: f64 = 0.05;
const MIB: f64 = (1 << 20) as f64;
/// The volume whose rate after its burst, and the type whose smallest volume of the highest rate, a text states.
const GP2: &str = "sim:aws-gp2-2016?size=50GiB";

/// What published figures are compared with.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedModels {
    #[serde(rename = "case")]
    cases: Vec<Case>,
    #[serde(rename = "quantity")]
    quantities: Vec<FigureQuantity>,
    #[serde(rename = "reason")]
    reasons: Vec<Reason>,
}

/// A load on a simulated volume.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The published run, and which of its loads.
    pub key: String,
    /// The volume.
    pub volume: String,
    /// The options of `fathom fio`.
    pub options: String,
    /// Times that the published run was longer: counts and times are multiplied by it.
    #[serde(default = "as_long")]
    pub scale: f64,
}

fn as_long() -> f64 {
    1.0
}

/// The quantity that a figure is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureQuantity {
    /// How the run begins.
    run: String,
    metric: String,
    /// The load; what begins with a colon continues the run.
    #[serde(default)]
    case: String,
    is: String,
}

/// Why figures are not explained.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reason {
    run: String,
    #[serde(default)]
    metric: String,
    why: String,
}

fn models() -> &'static PublishedModels {
    static MODELS: OnceLock<PublishedModels> = OnceLock::new();
    // A test compares all figures.
    MODELS.get_or_init(|| toml::from_str(include_str!("../data/published_models.toml")).unwrap_or_default())
}

/// Every load.
pub fn cases() -> &'static [Case] {
    &models().cases
}

/// Every figure of `runs` beside that of the model.
///
/// # Errors
/// A load cannot be simulated.
pub fn compare(runs: &[&PublishedRun]) -> Result<Vec<ComparedFigure>, AssessError> {
    let mut results = Results::default();
    let figures = runs.iter().flat_map(|run| run.figures.iter().map(move |figure| (*run, figure)));
    figures.map(|(run, figure)| compared(run, figure, &mut results)).collect()
}

/// The runs on volumes of the type `id`, or all.
pub fn runs_of(id: Option<&str>) -> Vec<&'static PublishedRun> {
    let is_of = |run: &&PublishedRun| id.is_none_or(|id| run.types.iter().any(|known| known == id));
    Published::shipped().runs.iter().filter(is_of).collect()
}

fn compared(
    run: &PublishedRun,
    figure: &PublishedFigure,
    results: &mut Results,
) -> Result<ComparedFigure, AssessError> {
    let stated =
        models().quantities.iter().find(|one| run.id.starts_with(&one.run) && one.metric == figure.metric);
    let case = match stated.map_or("", |stated| stated.case.as_str()) {
        part if part.is_empty() || part.starts_with(':') => format!("{}{part}", run.id),
        other => other.to_owned(),
    };
    let quantity = stated.map_or(figure.metric.as_str(), |stated| stated.is.as_str());
    let simulated = match quantity {
        "after the burst" => Some(after_the_burst()?),
        "smallest of the highest rate" => Some(smallest_of_the_highest_rate()?),
        "saturation" => Some(saturation(&case, results)?),
        _ if run.id.ends_with("ioping") => results.of(&case)?.and_then(|measured| measured.ioping(quantity)),
        _ => results.of(&case)?.and_then(|measured| measured.quantity(quantity, &figure.unit)),
    };
    let agreement = simulated.and_then(|value| agreement(figure, value));
    let verdict = match agreement {
        None => FigureVerdict::Unexplained,
        Some(_) if is_of_the_load(run, figure) => FigureVerdict::Load,
        Some(_) if is_input(run, figure, &case) => FigureVerdict::Input,
        Some(_) if is_as_measured(run, figure) => FigureVerdict::AsMeasured,
        Some(_) => FigureVerdict::Rule,
    };
    let fits =
        |reason: &&Reason| run.id.starts_with(&reason.run) && figure.metric.starts_with(&reason.metric);
    // A test finds figures without a reason.
    let why = || models().reasons.iter().find(fits).map_or("", |reason| reason.why.as_str());
    Ok(ComparedFigure {
        run: run.id.clone(),
        figure: figure.clone(),
        simulated,
        deviation: agreement.flatten(),
        verdict,
        why: (verdict == FigureVerdict::Unexplained).then(why),
    })
}

/// The deviation of the model's figure if it agrees with the published one; `Some(None)` where a bound is met.
fn agreement(figure: &PublishedFigure, value: f64) -> Option<Option<f64>> {
    let bound = |is_met: bool| is_met.then_some(None);
    let upper = figure.metric.ends_with("_lt") || figure.metric.ends_with(".lt");
    match figure.qualifier.as_deref() {
        _ if upper => bound(value < figure.value),
        Some("upper bound") => bound(value < figure.value),
        Some("lower bound") => bound(value > figure.value),
        _ if figure.value == 0.0 => bound(value == 0.0),
        _ => {
            let deviation = value / figure.value - 1.0;
            (deviation.abs() <= TOLERANCE).then_some(Some(deviation))
        }
    }
}

/// True for what the load itself determines: bytes and counts of a run of fixed size, the time of a run of fixed time, and
/// zeros of what it does not do.
fn is_of_the_load(run: &PublishedRun, figure: &PublishedFigure) -> bool {
    let metric = figure.metric.as_str();
    let is_timed = run.id.starts_with("a1-");
    match metric {
        "wall" => run.id.ends_with("ioping"),
        "disk.util" | "bw_samples.per" => true,
        _ if run.tool.starts_with("fio") && figure.value == 0.0 => true,
        _ if metric.starts_with("issued.") || metric.starts_with("disk.ios.") => !is_timed,
        "read.io" | "write.io" => !is_timed,
        "read.runtime" | "write.runtime" => is_timed,
        _ if metric.ends_with(".mint") || metric.ends_with(".maxt") => is_timed,
        _ => false,
    }
}

/// True if a model was fitted to this figure, or to another of the same measurement.
fn is_input(run: &PublishedRun, figure: &PublishedFigure, case: &str) -> bool {
    // fio and ioping report one measurement by many figures, which texts repeat; HD Tune measures each of its own.
    let is_text = run.tool == "prose";
    let is_one = (run.tool.starts_with("fio") || run.tool.starts_with("ioping") || is_text)
        && !figure.metric.starts_with("max.");
    let id = if is_text { case } else { &run.id };
    let mut fitted = Catalog::shipped().fitted_figures().filter_map(|name| name.split_once('/'));
    fitted.any(|(of, name)| of == id && (is_one || name == figure.metric))
}

/// True if the types that were measured have no published rule.
fn is_as_measured(run: &PublishedRun, figure: &PublishedFigure) -> bool {
    let mut types = run.types.iter().filter_map(|id| Catalog::shipped().get(id)).peekable();
    match run.id.as_str() {
        "a0-claims" => figure.metric.starts_with("do."),
        _ => types.peek().is_some() && types.all(CatalogEntry::is_as_measured),
    }
}

/// What a load measured: reads, writes and trims apart.
#[derive(Clone)]
struct Measured {
    ios: [f64; 3],
    bytes: [f64; 3],
    lat: [Latency; 3],
    seconds: f64,
    scale: f64,
}

impl Measured {
    fn of(outcome: &RunOutcome, case: &Case) -> Measured {
        let mut measured = Measured {
            ios: [0.0; 3],
            bytes: [0.0; 3],
            lat: Default::default(),
            seconds: 0.0,
            scale: case.scale,
        };
        // The first worker of a file benchmark writes the file.
        let filling = usize::from(case.options.starts_with("--name=fill"));
        for worker in outcome.workers.iter().skip(filling) {
            let phase = &worker.measured;
            measured.seconds = measured.seconds.max((phase.end_ns - phase.start_ns) as f64 / 1e9);
            for (index, op) in phase.ops().into_iter().enumerate() {
                measured.ios[index] += op.ios as f64;
                measured.bytes[index] += op.bytes as f64;
                measured.lat[index].merge(&op.lat);
            }
        }
        measured
    }

    fn iops(&self) -> f64 {
        self.ios.iter().sum::<f64>() / self.seconds
    }

    /// All latencies, ns.
    fn all_lat(&self) -> Latency {
        let mut all = Latency::default();
        self.lat.iter().for_each(|lat| all.merge(lat));
        all
    }

    /// A quantity in this unit, by the name that fio prints it under, or `iops`, `bw` and `latency` of all I/Os; `None` of those that
    /// models do not have.
    fn quantity(&self, name: &str, unit: &str) -> Option<f64> {
        let name = name.strip_prefix("group.").unwrap_or(name);
        let name = name.strip_prefix("last_status.").unwrap_or(name);
        let index = if name.contains("read") { 0 } else { 1 };
        let bytes_per_second = |bytes: f64| bytes / self.seconds / bytes_of(unit);
        let milliseconds = self.seconds * 1e3 * self.scale;
        let in_flight_ms = |lat: &Latency| lat.moments.mean() * lat.moments.count as f64 / 1e6 * self.scale;
        match name {
            "iops" => Some(self.iops()),
            "bw" | "bw_samples.avg" => Some(bytes_per_second(self.bytes.iter().sum())),
            "read.bw" | "write.bw" | "read.aggrb" | "write.aggrb" | "read.minb" | "read.maxb"
            | "write.minb" | "write.maxb" => Some(bytes_per_second(self.bytes[index])),
            "read.iops" | "write.iops" => Some(self.ios[index] / self.seconds),
            "read.io" | "write.io" => Some(self.bytes[index] * self.scale / bytes_of(unit)),
            "read.runtime" | "write.runtime" | "read.mint" | "read.maxt" | "write.mint" | "write.maxt" => {
                Some(milliseconds * 1e6 / ns_of(unit))
            }
            "issued.read" | "disk.ios.read" => Some(self.ios[0] * self.scale),
            "issued.write" | "disk.ios.write" => Some(self.ios[1] * self.scale),
            "issued.trim" => Some(self.ios[2]),
            "disk.ticks.read" => Some(in_flight_ms(&self.lat[0])),
            "disk.ticks.write" => Some(in_flight_ms(&self.lat[1])),
            "disk.in_queue" => Some(in_flight_ms(&self.all_lat())),
            // I/Os were in flight all the time; the job's bandwidth is the group's.
            "disk.util" => Some((in_flight_ms(&self.all_lat()) / milliseconds).min(1.0) * 100.0),
            "bw_samples.per" => Some(100.0),
            _ => latency(name, unit, &self.all_lat()),
        }
    }

    /// What ioping prints of one request a second.
    fn ioping(&self, metric: &str) -> Option<f64> {
        let moments = self.all_lat().moments;
        let mean_us = moments.mean() / 1e3;
        match metric {
            "latency.avg" => Some(mean_us),
            "latency.mdev" => Some(moments.stdev() / 1e3),
            "iops" => Some(1e6 / mean_us),
            "bw" => Some(1e6 / mean_us * 4096.0 / MIB),
            // Nine intervals from the first of ten requests to the last.
            "wall" => Some(self.seconds * 1e3 / moments.count as f64 * 9.0),
            _ => None,
        }
    }
}

/// Bytes of a unit; HD Tune prints KiB as KB.
fn bytes_of(unit: &str) -> f64 {
    match unit {
        "kB/s(10^3)" => 1e3,
        "MB/s" => 1e6,
        "MiB/s" | "MiB" => MIB,
        _ => 1024.0,
    }
}

fn ns_of(unit: &str) -> f64 {
    match unit {
        "s" => 1e9,
        "ms" => 1e6,
        _ => 1e3,
    }
}

/// clat and lat are the same on a simulated volume, as submitting takes no time.
fn latency(metric: &str, unit: &str, all: &Latency) -> Option<f64> {
    if let Some(bucket) = metric.strip_prefix("lat_bucket_ms.") {
        const EDGES: [f64; 11] = [0.0, 2.0, 4.0, 10.0, 20.0, 50.0, 100.0, 250.0, 500.0, 750.0, 1000.0];
        let upper: f64 = bucket.parse().ok()?;
        let lower = EDGES.into_iter().rfind(|edge| *edge < upper)?;
        let within = |ns: u64| (lower..upper).contains(&(ns as f64 / 1e6));
        let bins = all.histogram.sparse().filter(|(bin, _)| within(fathom_stats::histogram::midpoint(*bin)));
        return Some(bins.map(|(_, count)| count).sum::<u64>() as f64 * 100.0 / all.moments.count as f64);
    }
    let ns = ns_of(unit);
    let (span, name) = metric.split_once('.')?;
    match name {
        _ if !["clat", "lat", "latency"].contains(&span) => None,
        "avg" => Some(all.moments.mean() / ns),
        "min" => Some(all.moments.min as f64 / ns),
        "max" => Some(all.moments.max as f64 / ns),
        "stdev" => Some(all.moments.stdev() / ns),
        _ => all.histogram.percentile(name.strip_prefix('p')?.parse().ok()?).map(|value| value as f64 / ns),
    }
}

/// What the loads measured, each simulated when it is first asked for.
#[derive(Default)]
struct Results {
    measured: BTreeMap<&'static str, Measured>,
}

impl Results {
    /// What the load `key` measured; `None` if there is no such load.
    fn of(&mut self, key: &str) -> Result<Option<Measured>, AssessError> {
        if let Some(known) = self.measured.get(key) {
            return Ok(Some(known.clone()));
        }
        let Some(case) = cases().iter().find(|case| case.key == key) else { return Ok(None) };
        let measured = Measured::of(&outcome_of(&case.volume, &case.options, None)?, case);
        self.measured.insert(&case.key, measured.clone());
        Ok(Some(measured))
    }
}

fn outcome_of(volume: &str, options: &str, on: Option<&BenchTarget>) -> Result<RunOutcome, AssessError> {
    let mut words: Vec<String> = Vec::new();
    for word in options.split(' ') {
        words.push(word.to_owned());
        if word.starts_with("--name=") {
            words.push(format!("--filename={volume}"));
        }
    }
    let environment = ParseEnvironment {
        engines: &engine_rows(),
        read_file: &|_| Err(std::io::ErrorKind::NotFound.into()),
        variable: &|_| None,
        machine: MachineNumbers::default(),
    };
    let parsed = parse_command_line(&words, &environment)?;
    let plan = parsed.plan(&host_facts())?;
    let session = match on {
        Some(target) => session_for([target]),
        None => PlanTargets::of(&plan, &VolumeTypes::default())?.session(),
    };
    Ok(session.run(&plan, &mut ())?)
}

/// IOPS after the burst credits: ten seconds of burst are left, and the last thirty of sixty count.
fn after_the_burst() -> Result<f64, AssessError> {
    let mut volume = SimulatedVolume::named(GP2.as_ref(), &VolumeTypes::default())?;
    if let Some(Limit::Credit { initial, .. }) =
        volume.model.shared.first_mut().and_then(|stage| stage.ios.as_mut())
    {
        *initial = 28_500;
    }
    let options = "--name=test --ioengine=libaio --direct=1 --rw=randread --bs=4k --iodepth=64 --time_based --runtime=60";
    let outcome = outcome_of(GP2, options, Some(&BenchTarget::Simulated(Box::new(volume))))?;
    let late = outcome.workers.iter().flat_map(|worker| worker.measured.series.iter());
    let (ios, ns) = late
        .filter(|interval| (30_000_000_000..60_000_000_000).contains(&interval.start_ns))
        .fold((0, 0), |(ios, ns), one| (ios + one.read.ios, ns + one.end_ns - one.start_ns));
    Ok(ios as f64 * 1e9 / ns as f64)
}

/// The smallest volume in GiB whose baseline is the highest of the type.
fn smallest_of_the_highest_rate() -> Result<f64, AssessError> {
    let baseline = |gib: u64| -> Result<f64, AssessError> {
        let name = format!("sim:aws-gp2-2016?size={gib}GiB");
        let volume = SimulatedVolume::named(name.as_ref(), &VolumeTypes::default())?;
        let limit = volume.model.shared.first().and_then(|stage| stage.ios);
        Ok(limit.map_or(0.0, |limit| limit.baseline().as_f64()))
    };
    let most = baseline(16_384)?;
    for gib in 3_000..4_000 {
        if baseline(gib)? >= most {
            return Ok(gib as f64);
        }
    }
    Ok(0.0)
}

/// The first queue depth that reaches the rate of depth 64, which is that of the load `case`.
fn saturation(case: &str, results: &mut Results) -> Result<f64, AssessError> {
    let Some(most) = results.of(case)? else { return Ok(0.0) };
    for depth in [2, 4] {
        let shallow = format!("{}-d{depth}", case.replace(":bs", ":"));
        if results.of(&shallow)?.is_some_and(|measured| measured.iops() >= most.iops() * 0.99) {
            return Ok(f64::from(depth));
        }
    }
    Ok(0.0)
}
