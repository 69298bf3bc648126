//! What a bench is held against: promises said on the command line, in files, by suites, and by types of the catalogue.
//!
//! Makes records of them before anything runs, so that a promise about a test that does not exist is refused then. Whether
//! they held is told by `fathom_analysis::promise`.

mod file;
mod volume;

use std::collections::BTreeMap;
use std::path::PathBuf;

use fathom_analysis::criterion::{Criterion, Metric, MetricDirection, MetricKind, Statistic, parse_value};
use fathom_analysis::promise;
use fathom_catalog::SimulatedTarget;
use fathom_model::{JobPlan, RunPlan};
use fathom_record::PromiseRecord;

use crate::AssessError;
use crate::catalogue::VolumeTypes;
use crate::planned::PlannedTest;
use crate::simulated::{SimulatedVolume, is_simulated};
use crate::suite::Suite;
use volume::{Promising, Shape};

/// By how much a value may miss where nothing else is said, in percent.
pub(crate) const TOLERANCE_PERCENT: f64 = 5.0;
/// The label that names the class of machine or volume.
pub(crate) const CLASS: &str = "class";

/// What the results are to be held against.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expecting {
    /// Promises in one line each, or types of the catalogue (`--expect`).
    pub said: Vec<String>,
    /// Files of promises.
    pub files: Vec<PathBuf>,
    /// By how much a value may miss where a promise does not say.
    pub tolerance_percent: Option<f64>,
    /// The class of machine or volume, where promises differ by that.
    pub class: Option<String>,
}

/// The tests that are going to run, and what each means.
pub(crate) struct Tests<'a> {
    pub(crate) suite: &'a Suite,
    pub(crate) planned: &'a [PlannedTest],
    pub(crate) plans: Vec<RunPlan>,
    pub(crate) types: &'a VolumeTypes,
}

impl Tests<'_> {
    fn job(&self, id: &str) -> Option<&JobPlan> {
        let at = self.planned.iter().position(|test| test.id == id)?;
        self.plans.get(at)?.jobs.first()
    }

    fn is_in_suite(&self, id: &str) -> bool {
        self.suite.tests.iter().any(|test| test.id == id)
    }
}

/// What is held against the results, and what a reader should know of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Promised {
    pub(crate) promises: Vec<PromiseRecord>,
    pub(crate) notes: Vec<String>,
}

/// All promises; of those for classes only the chosen one's, where one is chosen.
///
/// # Errors
/// One makes no sense, or is about something that there is not.
pub(crate) fn promises(
    expecting: &Expecting,
    tests: &Tests<'_>,
    labels: &BTreeMap<String, String>,
) -> Result<Promised, AssessError> {
    let (mut all, mut notes) = (Vec::new(), Vec::new());
    for text in &expecting.said {
        match text.contains(['<', '>']) {
            true => all.push(of_line(text, expecting, tests)?),
            false => all.extend(of_volume(text, expecting, tests, &mut notes)?),
        }
    }
    for path in &expecting.files {
        all.extend(of_filed(&path.display().to_string(), file::read(path)?, expecting, tests)?);
    }
    all.extend(of_suite(tests));
    for promise in &mut all {
        add_machine(promise, tests)?;
    }
    if !all.is_empty() {
        check_labels(labels)?;
    }
    let promises = match &expecting.class {
        Some(class) => choose(all, class)?,
        // Whoever labels runs may mean something else by it.
        None => match labels.get(CLASS).filter(|_| !promise::classes(&all).is_empty()) {
            Some(class) => choose(all, class)?,
            None => all,
        },
    };
    Ok(Promised { promises, notes })
}

/// Adds what the machine lets through, where the target is a modelled volume and its name says so.
fn add_machine(promise: &mut PromiseRecord, tests: &Tests<'_>) -> Result<(), AssessError> {
    let measure = Metric::parse(&promise.metric).map(|quantity| quantity.kind);
    let in_bytes = match measure {
        Some(MetricKind::Iops) => false,
        Some(MetricKind::BytesPerSecond) => true,
        _ => return Ok(()),
    };
    let Some(job) = tests.job(&promise.test) else { return Ok(()) };
    let mut paths = job.clones.iter().flat_map(|clone| &clone.paths);
    let (Some(path), Some(shape)) = (paths.next().filter(|path| is_simulated(path)), Shape::of(job)) else {
        return Ok(());
    };
    // Several volumes at once may have several machines.
    if paths.any(|other| other != path) {
        return Ok(());
    }
    let known = volume::instance_limit(&SimulatedVolume::named(path, tests.types)?.model, &shape, in_bytes);
    let limit = &mut promise.conditions.instance_limit;
    *limit = limit.iter().copied().chain(known).reduce(f64::min);
    Ok(())
}

/// What is said of the machine counts when promises are judged, so it has to be a number.
fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), AssessError> {
    let numbers = [("instance_iops", MetricKind::Iops), ("instance_bandwidth", MetricKind::BytesPerSecond)];
    for (name, measure) in numbers {
        let Some(Err(reason)) = labels.get(name).map(|text| parse_value(measure, text)) else { continue };
        let hint = "write instance_iops=4000, instance_bandwidth=62.5MB";
        return Err(refuse(&format!("--label {name}"), reason, hint));
    }
    Ok(())
}

fn choose(mut all: Vec<PromiseRecord>, class: &str) -> Result<Vec<PromiseRecord>, AssessError> {
    let classes = promise::classes(&all);
    if !classes.contains(&class) {
        return Err(AssessError::Promise {
            said: class.to_owned(),
            reason: "is no class that anything is promised to".to_owned(),
            hint: Some(match classes.as_slice() {
                [] => "leave --class out: nothing is promised to classes here".to_owned(),
                classes => format!("there are {}", classes.join(", ")),
            }),
        });
    }
    all.retain(|promise| promise.class.is_empty() || promise.class == class);
    Ok(all)
}

fn refuse(text: &str, reason: impl Into<String>, hint: impl Into<String>) -> AssessError {
    AssessError::Promise { said: text.to_owned(), reason: reason.into(), hint: Some(hint.into()) }
}

const FORM: &str = "write TEST.METRIC>=VALUE, such as rand-read.iops>=5000 or lat-read.lat_ns.p99<5ms+-2%, \
                    or a type of the catalogue, such as aws-gp3?size=100GiB";

fn of_line(text: &str, expecting: &Expecting, tests: &Tests<'_>) -> Result<PromiseRecord, AssessError> {
    let (test, criterion) = parse(text, text, tests)?;
    check(text, &test, criterion.metric, tests)?;
    Ok(record("--expect", test, &criterion, expecting.tolerance_percent))
}

/// The criterion `expect`, said in `text`, and its test: the only one where it names none.
fn parse(text: &str, expect: &str, tests: &Tests<'_>) -> Result<(String, Criterion), AssessError> {
    let mut criterion = Criterion::parse(expect).map_err(|reason| refuse(text, reason, FORM))?;
    if let MetricKind::Latency(_, statistic) = criterion.metric.kind
        && !statistic.is_recorded()
    {
        let reason = format!("{} is not recorded", statistic.name());
        return Err(refuse(text, reason, format!("use {}", Statistic::RECORDED)));
    }
    let is_test = |name: &str| tests.job(name).is_some() || tests.is_in_suite(name);
    let named = match (criterion.test.take(), criterion.metric.direction) {
        // A test may be called as a direction is.
        (None, Some(direction)) if is_test(direction.name()) => {
            criterion.metric.direction = None;
            Some(direction.name().to_owned())
        }
        (test, _) => test,
    };
    match (named, tests.planned) {
        (Some(test), _) => Ok((test, criterion)),
        (None, [only]) => Ok((only.id.clone(), criterion)),
        (None, _) => {
            let all: Vec<&str> = tests.planned.iter().map(|test| test.id.as_str()).collect();
            let reason = format!("it names no test, and {} run", all.len());
            Err(refuse(
                text,
                reason,
                format!("write TEST.{}; the tests are {}", criterion.metric, all.join(", ")),
            ))
        }
    }
}

fn record(source: &str, test: String, criterion: &Criterion, tolerance: Option<f64>) -> PromiseRecord {
    PromiseRecord {
        source: source.to_owned(),
        test,
        metric: criterion.metric.to_string(),
        is: criterion.comparison.sign().to_owned(),
        value: criterion.value,
        tolerance_percent: criterion.tolerance_percent.or(tolerance).unwrap_or(TOLERANCE_PERCENT),
        ..PromiseRecord::default()
    }
}

/// Refuses what is about a test that does not run, or about something that it does not do.
fn check(text: &str, test: &str, quantity: Metric, tests: &Tests<'_>) -> Result<(), AssessError> {
    let ids: Vec<&str> = tests.planned.iter().map(|test| test.id.as_str()).collect();
    let Some(job) = tests.job(test) else {
        let reason = match tests.is_in_suite(test) {
            true => format!("the test '{test}' is not among those that run"),
            false => format!("there is no test '{test}'"),
        };
        return Err(refuse(text, reason, format!("the tests are {}", ids.join(", "))));
    };
    let (io, pattern) = (&job.io, job.io.pattern);
    let is_synced = io.fsync_every > 0 || io.fdatasync_every > 0 || io.end_fsync;
    let does = match quantity.direction {
        Some(MetricDirection::Read) => pattern.reads(),
        Some(MetricDirection::Write) => pattern.writes(),
        Some(MetricDirection::Trim) => pattern.trims(),
        Some(MetricDirection::Sync) => is_synced,
        Some(MetricDirection::Total) | None => true,
    };
    let Some(direction) = quantity.direction.filter(|_| !does) else { return Ok(()) };
    let reason = format!("the test '{test}' ({}) has no {}", pattern.name(), direction.name());
    Err(refuse(text, reason, "leave the direction out: the one that the test has is meant"))
}

/// What the text of a file called `name` promises.
///
/// # Errors
/// As for a file.
pub(crate) fn of_text(
    name: &str,
    text: &str,
    expecting: &Expecting,
    tests: &Tests<'_>,
) -> Result<Vec<PromiseRecord>, AssessError> {
    of_filed(name, file::of_text(name, text)?, expecting, tests)
}

fn of_filed(
    name: &str,
    all_filed: Vec<file::Filed>,
    expecting: &Expecting,
    tests: &Tests<'_>,
) -> Result<Vec<PromiseRecord>, AssessError> {
    let mut all = Vec::new();
    for filed in all_filed {
        let text = format!("{name}: {}", filed.expect);
        let (test, said) = parse(&text, &filed.expect, tests)?;
        // A file is for the whole suite, and what is left out today is judged another time.
        let is_left_out = tests.job(&test).is_none() && tests.is_in_suite(&test);
        let is_rate = said.metric.kind == MetricKind::Iops;
        if filed.depth_per_iops.is_some() && !is_rate || filed.share.is_some() && said.metric.is_latency() {
            let hint = "time is for rates, and depth_per_iops for requests a second";
            return Err(refuse(&text, "it is not said of a rate of requests", hint));
        }
        if !is_left_out {
            check(&text, &test, said.metric, tests)?;
        }
        let mut conditions = filed.conditions;
        conditions.depth = conditions.depth.or(filed.depth_per_iops.map(|per_iops| per_iops * said.value));
        let promise =
            record(&filed.source, test, &said, filed.tolerance_percent.or(expecting.tolerance_percent));
        all.push(PromiseRecord {
            class: filed.class,
            share: filed.share,
            conditions,
            cannot: is_left_out.then(|| "the test was left out".to_owned()),
            ..promise
        });
    }
    Ok(all)
}

/// What a type of volume promises of each test.
fn of_volume(
    text: &str,
    expecting: &Expecting,
    tests: &Tests<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<PromiseRecord>, AssessError> {
    let looks_like_a_line =
        text.split('?').next().is_some_and(|id| id.is_empty() || id.contains(['.', ' ', '=']));
    if looks_like_a_line {
        return Err(refuse(text, "it is neither a comparison nor a type of volume", FORM));
    }
    let (id, rest) = text.split_once('?').unwrap_or((text, ""));
    let (rested, rest): (Vec<&str>, Vec<&str>) =
        rest.split('&').filter(|part| !part.is_empty()).partition(|part| part.starts_with("rested="));
    let is_rested = match rested.as_slice() {
        [] | ["rested=0"] => false,
        ["rested=1"] => true,
        _ => {
            return Err(refuse(text, "rested is 0 or 1", "rested=1 says that the volume has all its credit"));
        }
    };
    let named = if rest.is_empty() { id.to_owned() } else { format!("{id}?{}", rest.join("&")) };
    let catalog = tests.types.catalogue()?;
    let target = SimulatedTarget::parse(catalog, &named).map_err(|error| AssessError::Promise {
        said: text.to_owned(),
        hint: error.hint(),
        reason: error.reason,
    })?;
    // How long requests take is no part of what is promised of their number.
    let told = target.assumptions.iter().filter(|assumption| !assumption.starts_with("its latency"));
    notes.extend(told.map(|assumption| format!("{named}, as it is promised: {assumption}")));
    let promising = Promising {
        source: text,
        model: &target.model,
        entry: catalog.get(&target.id),
        tolerance_percent: expecting.tolerance_percent,
        is_rested,
    };
    let alone = tests.planned.iter().zip(&tests.plans).filter(|(test, _)| test.targets.len() == 1);
    let shaped = alone.filter_map(|(test, plan)| Some((test, Shape::of(plan.jobs.first()?)?)));
    let all: Vec<PromiseRecord> =
        shaped.flat_map(|(test, shape)| volume::promises(&promising, &test.id, &shape)).collect();
    match all.is_empty() {
        true => Err(refuse(text, "it promises nothing of these tests", "choose others with --only")),
        false => Ok(all),
    }
}

/// What a suite expects; what a use needs is not promised by anybody.
fn of_suite(tests: &Tests<'_>) -> Vec<PromiseRecord> {
    let judged = tests.planned.iter().filter(|test| test.purpose.is_none() && test.targets.len() == 1);
    let of_test = |test: &PlannedTest| {
        let of = |expected: &crate::Expectation| PromiseRecord {
            source: format!("suite {}", tests.suite.name),
            class: expected.class.clone(),
            test: test.id.clone(),
            metric: expected.metric.clone(),
            is: expected.is.sign().to_owned(),
            value: expected.value,
            tolerance_percent: tests.suite.tolerance_percent,
            ..PromiseRecord::default()
        };
        test.expected.iter().map(of).collect::<Vec<_>>()
    };
    judged.flat_map(of_test).collect()
}
